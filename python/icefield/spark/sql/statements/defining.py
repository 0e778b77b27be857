"""Statements that create, drop and describe tables and namespaces, on the operations of catalogs."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from pyspark.sql import types as st

from icefield.errors import NotFoundError, TableAlreadyExistsError
from icefield.expressions import AlwaysTrue
from icefield.partitioning import PartitionField, PartitionSpec
from icefield.schema import Schema
from icefield.spark.changing.deleting import delete as delete_rows
from icefield.spark.columns.types import iceberg_schema
from icefield.spark.sql.grammar.statements import (
    AlterNamespace,
    ColumnDefinition,
    CommentOn,
    CreateNamespace,
    CreateTable,
    DropNamespace,
    DropTable,
    PartitionTerm,
    Truncate,
)
from icefield.spark.sql.running import RESERVED, Run
from icefield.spark.sql.statements.inserting import written_branch
from icefield.spark.sql.streamed import rows_of
from icefield.spark.writes.writing import append
from icefield.types import NestedField

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from icefield.spark.sql.catalogs import Target
    from icefield.table import Table

__all__ = ["create_table", "drop_table", "namespaces", "truncate"]

#: What Java's connector takes after USING, and the file format that a table then has.
_PROVIDERS = {"iceberg": None, "parquet": "parquet", "orc": "orc", "avro": "avro"}
_FIRST_FIELD = 1000


def create_table(run: Run, parsed: CreateTable, target: Target) -> None:
    """Create or replace a table; with a query, with its rows."""
    catalog, name = target.catalog, target.identifier
    exists = catalog.table_exists(name)
    if exists and parsed.how == "create if not exists":
        return
    if exists and parsed.how == "create":
        raise TableAlreadyExistsError(f"{run.statement.place(parsed.name.start)}: table {target} exists already")
    if not exists and parsed.how == "replace":
        with run.at(parsed.name.start):
            target.table()
    frame = run.query(parsed.query) if parsed.query else None
    if frame is not None and parsed.columns:
        raise run.statement.error(
            parsed.columns[0].path.start, "a table of a query has the columns of that; give them names and types there"
        )
    schema = _schema(run, parsed.columns) if frame is None else iceberg_schema(frame.schema.toNullable())
    spec = _spec(run, parsed.partitioning, schema)
    properties = _properties(run, parsed)
    if exists:
        with catalog.replace_table_transaction(name, schema, parsed.location, spec, properties=properties) as change:
            if frame is not None:
                # In the driver: the rows become visible with the rest of the change.
                change.overwrite(rows_of(frame))
        return
    table = catalog.create_table(name, schema, parsed.location, spec, properties=properties)
    if frame is None:
        return
    try:
        append(frame, table)
    except BaseException:
        _drop_empty(target, table)
        raise


def _drop_empty(target: Target, made: Table) -> None:
    """Drop a table that was made for rows that could not be written, unless it is or has become another's.

    Its files stay, as others may write to it in this very moment: there is its first metadata file only.
    """
    with suppress(NotFoundError):
        now = target.table()
        if now.table_uuid == made.table_uuid and not now.snapshots():
            target.catalog.drop_table(target.identifier)


def _schema(run: Run, columns: tuple[ColumnDefinition, ...]) -> Schema:
    types = [run.type_of(column.type) for column in columns]
    fields = [
        st.StructField(
            column.path.parts[0], kind, not column.required, {"comment": column.comment} if column.comment else None
        )
        for column, kind in zip(columns, types, strict=True)
    ]
    schema = iceberg_schema(st.StructType(fields))
    wanted = [(place, column.default) for place, column in enumerate(columns) if column.default]
    if not wanted:
        return schema
    defaults = run.constants([piece for _, piece in wanted], [types[place] for place, _ in wanted])
    made = list(schema.fields)
    for (place, _), value in zip(wanted, defaults, strict=True):
        one = made[place]
        made[place] = NestedField(
            one.field_id, one.name, one.field_type, one.required, one.doc, initial_default=value, write_default=value
        )
    return Schema(*made)


def _spec(run: Run, terms: tuple[PartitionTerm, ...], schema: Schema) -> PartitionSpec:
    fields = []
    for number, term in enumerate(terms, _FIRST_FIELD):
        column = schema.find_field(".".join(term.column.parts), run.case_sensitive)
        full = schema.find_column_name(column.field_id) or column.name
        fields.append(PartitionField(column.field_id, number, term.transform, term.name or default_name(full, term)))
    return PartitionSpec(*fields)


def default_name(column: str, term: PartitionTerm) -> str:
    """Return the name of a partition field, as Java gives it to fields of new tables."""
    kind = term.transform.partition("[")[0]
    return column if kind == "identity" else f"{column}_{'trunc' if kind == 'truncate' else kind}"


def _properties(run: Run, parsed: CreateTable) -> dict[str, str]:
    found = dict(parsed.properties)
    provider = (parsed.provider or "iceberg").lower()
    if provider not in _PROVIDERS:
        known = ", ".join(_PROVIDERS)
        raise run.statement.refusal(parsed.name.start, f"USING {parsed.provider} is not supported: use one of {known}")
    if (file_format := _PROVIDERS[provider]) is not None:
        found.setdefault("write.format.default", file_format)
    if parsed.comment is not None:
        found["comment"] = parsed.comment
    for key in found:
        if (instead := RESERVED.get(key)) is not None:
            raise run.statement.error(parsed.name.start, f"{key!r} is no property that can be set: use {instead}")
    return {**found, "owner": run.user()}


def drop_table(run: Run, parsed: DropTable, target: Target) -> None:
    """Drop a table; its files stay without PURGE, as in Java."""
    try:
        with run.at(parsed.name.start):
            target.catalog.drop_table(target.identifier, purge_requested=parsed.purge)
    except NotFoundError:
        if not parsed.if_exists:
            raise


def truncate(run: Run, parsed: Truncate, target: Target) -> None:
    """Remove all rows of a table or a branch, as DELETE without a condition does."""
    table, branch = written_branch(run, parsed.name, target)
    delete_rows(run.spark, table, AlwaysTrue(), branch=branch)


def namespaces(
    run: Run, parsed: CreateNamespace | DropNamespace | AlterNamespace | CommentOn, target: Target
) -> DataFrame:
    """Create, drop or change a namespace."""
    catalog, name = target.catalog, target.identifier
    if isinstance(parsed, CreateNamespace):
        made = {**parsed.properties, "owner": run.user()}
        if parsed.if_not_exists:
            catalog.create_namespace_if_not_exists(name, made)
        else:
            catalog.create_namespace(name, made)
    elif isinstance(parsed, DropNamespace):
        if not parsed.if_exists or catalog.namespace_exists(name):
            with run.at(parsed.name.start):
                catalog.drop_namespace(name)
    elif isinstance(parsed, AlterNamespace):
        with run.at(parsed.name.start):
            catalog.update_namespace_properties(name, parsed.removals, dict(parsed.updates))
    elif parsed.comment is None:
        catalog.update_namespace_properties(name, ["comment"])
    else:
        catalog.update_namespace_properties(name, (), {"comment": parsed.comment})
    return run.nothing()
