"""CALL, on the procedures of `icefield.procedures`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from pyspark.errors import PySparkException
from pyspark.sql import types as st

from icefield.errors import InvalidArgumentError, NotFoundError, UnsupportedFeatureError
from icefield.expressions import AlwaysFalse
from icefield.procedures import find
from icefield.procedures.declared import LETTER_CASE, Procedure, table_parts
from icefield.procedures.rewrites import compaction_arguments, compaction_row
from icefield.scan.options import expression_of
from icefield.spark.changing.compacting import compact
from icefield.spark.changing.conditions import found
from icefield.spark.columns.names import quoted
from icefield.spark.reads.changes import changes
from icefield.spark.sql.grammar.text import Piece, Statement
from icefield.spark.sql.queries import edited
from icefield.spark.sql.statements.migrating import migrate
from icefield.spark.sql.transforms import PREFIX, transforms_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from icefield.catalog import Catalog
    from icefield.expressions import RowFilter
    from icefield.schema import Schema
    from icefield.spark.sql.catalogs import Target
    from icefield.spark.sql.grammar.statements import Call
    from icefield.spark.sql.running import Run

__all__ = ["call"]

_TYPES = {"long": st.LongType(), "int": st.IntegerType(), "string": st.StringType(), "timestamp": st.TimestampType()}
_RANGE = ("start-snapshot-id", "end-snapshot-id", "start-timestamp", "end-timestamp")


def call(run: Run, parsed: Call) -> DataFrame:
    """Call a procedure of a catalog, and return its rows."""
    target = run.names.namespace_target(parsed.procedure.parts[:-1])
    if target is None:
        return run.whole()
    at = parsed.procedure.start
    if target.identifier != ("system",):
        raise run.statement.error(at, f"expected {target.catalog_name}.system.procedure(...), got {parsed.procedure}")
    try:
        procedure = find(parsed.procedure.parts[-1])
        arguments = _arguments(run, parsed, procedure)
        name = _own_name(run, target, cast("tuple[str, ...]", arguments["table"]))
        if isinstance(where := arguments.get("where"), str):
            schema_of_rows = target.catalog.load_table(name).schema()
            arguments |= {"where": _where(run, schema_of_rows, where)}
        if procedure.name == "create_changelog_view":
            rows = [_changelog_view(run, target.catalog, {**arguments, "table": name})]
        elif procedure.name == "migrate":
            rows = [(migrate(run.spark, target.catalog, name, arguments),)]
        elif procedure.name == "rewrite_data_files":
            compaction = compaction_arguments({**arguments, LETTER_CASE: run.case_sensitive})
            rows = [compaction_row(compact(run.spark, target.catalog.load_table(name), **compaction))]
        else:
            # With the catalog in front, which procedures take for its name and for no namespace.
            arguments |= {"table": (target.catalog.name, *name), LETTER_CASE: run.case_sensitive}
            rows = procedure.run(target.catalog, arguments)
    except (InvalidArgumentError, NotFoundError, UnsupportedFeatureError) as error:
        raise type(error)(f"{run.statement.place(at)}: {error}") from error
    schema = st.StructType([st.StructField(one.name, _TYPES[one.type], one.nullable) for one in procedure.columns])
    return run.result(schema, rows)


def _where(run: Run, schema: Schema, text: str) -> RowFilter:
    """Return the filter that a procedure is given, in which functions of a catalog are the transforms of filters.

    What is none of icefield's filters is taken as Spark's SQL, if Iceberg has all of it as a filter: there text may
    stand in double quotes, as it does in Iceberg's documentation.
    """
    own = _with_transforms(run, text)
    try:
        expression_of(own).bind(schema, run.case_sensitive)
    except InvalidArgumentError:
        with suppress(PySparkException):
            known = found(run.spark, text, schema)
            if known.column is None:
                return known.filter
    return own


def _with_transforms(run: Run, text: str) -> str:
    """Return a condition with ``bucket(16, id)`` for ``catalog.system.bucket(16, id)``."""
    try:
        condition = Statement(text)
    except InvalidArgumentError:
        return text
    calls = transforms_in(condition, Piece(0, len(text)), run.has_catalog)
    return edited(text, [replace(one, text=one.text.removeprefix(PREFIX)) for one in calls])


def _own_name(run: Run, target: Target, parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the name of a table within the catalog of a procedure; the name may begin with that of the catalog.

    Raises
    ------
    InvalidArgumentError
        If the table is in another catalog, or in no namespace.

    """
    head, *rest = parts
    own = tuple(parts)
    if rest and (head in run.names or head == "spark_catalog"):
        if head != target.catalog_name:
            raise InvalidArgumentError(
                f"{'.'.join(parts)} is a table in catalog {head}, and the procedure is of {target.catalog_name}"
            )
        own = tuple(rest)
    elif not rest and run.names.current == target.catalog_name:
        own = (*run.names.namespace, head)
    if len(own) < 2:  # noqa: PLR2004 - a namespace and a table
        raise InvalidArgumentError(f"expected the name of a table in a namespace, got {'.'.join(parts)!r}")
    return own


def _arguments(run: Run, parsed: Call, procedure: Procedure) -> dict[str, object]:
    """Return the values of a CALL, which Spark evaluates, as arguments of a procedure."""
    kinds = {one.name.lower(): one.type for one in procedure.parameters}
    types = [one.type for one in procedure.parameters]
    given = [types[place] if place < len(types) else None for place in range(len(parsed.positional))]
    given += [kinds.get(str(name).lower()) for name, _ in parsed.named]
    pieces = [*parsed.positional, *(piece for _, piece in parsed.named)]
    values = run.constants(pieces, [st.TimestampType() if kind == "timestamp" else None for kind in given])
    count = len(parsed.positional)
    named = {str(name): value for (name, _), value in zip(parsed.named, values[count:], strict=True)}
    return procedure.arguments(values[:count], named)


def _changelog_view(run: Run, catalog: Catalog, arguments: dict[str, object]) -> tuple[object, ...]:
    """Create a view of the changes of a table, and return its name."""
    own = cast("tuple[str, ...]", arguments["table"])
    table = catalog.load_table(own)
    options = cast("Mapping[str, str]", arguments.get("options", {}))
    if unknown := sorted(set(options) - set(_RANGE)):
        raise InvalidArgumentError(f"create_changelog_view: unknown option {unknown[0]!r}; known: {', '.join(_RANGE)}")
    numbers = {key: int(value) for key, value in options.items()}
    between = table.metadata.snapshots_between(
        start_snapshot_id=numbers.get("start-snapshot-id"),
        start_timestamp_ms=numbers.get("start-timestamp"),
        end_snapshot_id=numbers.get("end-snapshot-id"),
        end_timestamp_ms=numbers.get("end-timestamp"),
    )
    first, last = between or (None, None)
    columns = cast("list[str] | None", arguments.get("identifier_columns"))
    updates = cast("bool | None", arguments.get("compute_updates"))
    frame = changes(
        run.spark,
        table,
        from_snapshot_id_exclusive=first,
        to_snapshot_id_inclusive=last,
        filter=AlwaysFalse() if between is None else None,
        remove_carryovers=True,
        net_changes=bool(arguments.get("net_changes", False)),
        compute_updates=columns is not None if updates is None else updates,
        identifier_columns=columns,
    )
    view = cast("str", arguments.get("changelog_view", quoted(f"{own[-1]}_changes")))
    parts = table_parts(view)
    if len(parts) != 1:
        raise InvalidArgumentError(f"create_changelog_view: the name of the view has one part, got {view!r}")
    frame.createOrReplaceTempView(parts[0])
    return (view,)
