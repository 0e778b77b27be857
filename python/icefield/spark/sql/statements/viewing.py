"""Views in catalogs of icefield: created, changed, dropped and described by statements, and read without one."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pyspark.sql import types as st

from icefield.catalog import Catalog
from icefield.errors import AlreadyExistsError, InvalidArgumentError, NoSuchViewError, NotFoundError
from icefield.spark.columns.types import iceberg_schema, spark_schema
from icefield.spark.sessions.session import is_classic
from icefield.spark.sql.catalogs import CatalogNames, Target
from icefield.spark.sql.grammar.statements import RenameTable, SetProperties, UnsetProperties, ViewQuery
from icefield.spark.sql.grammar.text import Statement
from icefield.spark.sql.literals import quoted_name, quoted_text
from icefield.spark.sql.queries import tables_in
from icefield.spark.sql.running import Run, drop_views
from icefield.spark.sql.sources import view_of
from icefield.view import ViewVersion

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from icefield.schema import Schema
    from icefield.spark.sql.grammar.statements import AlterView, CreateView, Describe, DropView, Show
    from icefield.spark.sql.grammar.text import Name, Piece
    from icefield.table import Table
    from icefield.view import View

__all__ = ["alter", "create", "described", "drop", "of_view", "shown", "table_or_view"]

_CREATED_BY = "create_engine_version"
_CHANGED_BY = "engine_version"
#: The names that the columns have in the query, with commas between them, as Java's connector writes it.
_QUERY_COLUMNS = "spark.query-column-names"
#: Properties that are shown elsewhere, or are not those of users.
_RESERVED = frozenset({"comment", "owner", "location", "provider", _CREATED_BY, _CHANGED_BY, _QUERY_COLUMNS})


def of_view(spark: SparkSession, view: View) -> DataFrame:
    """Return the rows of a view of any catalog."""
    catalog = cast("Catalog", view.catalog)
    run = Run(spark, CatalogNames(spark, {catalog.name: catalog}), Statement(""))
    try:
        return run.of_view(Target(catalog.name, catalog, view.name()), view)
    finally:
        if is_classic(spark):
            drop_views(spark, run.views)


def create(run: Run, parsed: CreateView, target: Target) -> None:
    """Create or replace a view in a catalog."""
    catalog, name = target.catalog, target.identifier
    if parsed.if_not_exists and (catalog.view_exists(name) or catalog.table_exists(name)):
        return
    schema, version, columns = _query(run, parsed.query, target, parsed.columns, parsed.comments, parsed.name)
    engine = f"Spark {run.spark.version}"
    properties = {**parsed.properties, _CHANGED_BY: engine, _QUERY_COLUMNS: ",".join(columns)}
    with run.at(parsed.name.start):
        try:
            if parsed.replace and catalog.view_exists(name):
                catalog.replace_view(name, schema, version, properties=properties)
                return
            catalog.create_view(name, schema, version, None, {_CREATED_BY: engine, **properties})
        except AlreadyExistsError as error:
            raise type(error)(f"{run.statement.place(parsed.name.start)}: {error}") from error


def _query(
    run: Run, query: Piece, target: Target, names: tuple[str, ...], comments: tuple[str | None, ...], at: Name
) -> tuple[Schema, ViewVersion, list[str]]:
    """Return the columns of a view's query, the version that has it, and the names of its columns."""
    if run.markers(query):
        raise run.statement.refusal(query.start, "the query of a view has no parameters: write the values")
    for use in tables_in(run.statement, query):
        if len(use.name.parts) == 1 and run.names.is_temporary(use.name.parts[0]):
            raise run.statement.error(
                use.name.start, f"view {target} must not name the temporary view {use.name}, which others do not have"
            )
    # The view itself is not yet there, or will be another one.
    run.within = ((target.catalog_name, *target.identifier),)
    frame = run.query(query)
    fields = frame.schema.fields
    if names and len(names) != len(fields):
        raise run.statement.error(at.end, f"{len(names)} names for {len(fields)} columns")
    named = [
        st.StructField(new, one.dataType, one.nullable, {"comment": comment} if comment else one.metadata)
        for one, new, comment in zip(fields, names or frame.columns, comments or [None] * len(fields), strict=True)
    ]
    lower = [one.name if run.case_sensitive else one.name.lower() for one in named]
    if twice := [one.name for one, key in zip(named, lower, strict=True) if lower.count(key) > 1]:
        raise run.statement.error(query.start, f"the query has two columns {twice[0]}: give them other names")
    spark = run.names
    here = spark.current or str(run.spark.catalog.currentCatalog())
    version = ViewVersion(
        {"spark": run.statement.of(query)},
        spark.namespace if spark.current is not None else (str(run.spark.catalog.currentDatabase()),),
        None if here == target.catalog_name else here,
        {"engine-name": "spark", "engine-version": run.spark.version},
    )
    return iceberg_schema(st.StructType(named)), version, frame.columns


def drop(run: Run, parsed: DropView, target: Target) -> None:
    """Drop a view of a catalog."""
    try:
        with run.at(parsed.name.start):
            target.catalog.drop_view(target.identifier)
    except NotFoundError:
        if not parsed.if_exists:
            raise


def alter(run: Run, parsed: AlterView, target: Target) -> None:
    """Change a view of a catalog."""
    catalog, action = target.catalog, parsed.action
    with run.at(parsed.name.start):
        view = catalog.load_view(target.identifier)
    if isinstance(action, SetProperties):
        _check(run, parsed, action.properties)
        view.update_properties(action.properties)
    elif isinstance(action, UnsetProperties):
        _check(run, parsed, action.keys)
        if not action.if_exists and (gone := [key for key in action.keys if key not in view.properties]):
            raise run.statement.error(parsed.name.end, f"the view has no property {', '.join(gone)}")
        view.update_properties(removals=action.keys)
    elif isinstance(action, RenameTable):
        _rename(run, action, target)
    else:
        _requery(run, action, target, parsed.name)


def _check(run: Run, parsed: AlterView, keys: object) -> None:
    for key in cast("tuple[str, ...]", keys):
        if key in _RESERVED - {"comment"}:
            raise run.statement.error(parsed.name.end, f"property {key!r} of a view is not set by statements")


def _rename(run: Run, action: RenameTable, target: Target) -> None:
    new = action.name.parts
    if len(new) > 1 and new[0] in run.names:
        if new[0] != target.catalog_name:
            raise run.statement.error(action.name.start, f"a view stays in its catalog {target.catalog_name}")
        new = new[1:]
    # A name alone is in the namespace of the view.
    target.catalog.rename_view(target.identifier, new if len(new) > 1 else (*target.identifier[:-1], *new))


def _requery(run: Run, action: ViewQuery, target: Target, at: Name) -> None:
    schema, version, columns = _query(run, action.query, target, (), (), at)
    properties = {_CHANGED_BY: f"Spark {run.spark.version}", _QUERY_COLUMNS: ",".join(columns)}
    target.catalog.replace_view(target.identifier, schema, version, properties=properties)


# What is shown


def table_or_view(run: Run, name: Name, target: Target) -> Table | View:
    """Load a table, or the view of this name."""
    try:
        return run.table(name, target)
    except NotFoundError:
        if (view := view_of(target)) is None:
            raise
        return view


def shown(run: Run, parsed: Show, target: Target, view: View) -> DataFrame:
    """Return the rows of a SHOW statement about a view."""
    if parsed.what == "columns":
        return run.result("col_name string", [(field.name,) for field in view.schema().fields])
    if parsed.what == "create table":
        return run.result("createtab_stmt string", [(_created(view, target),)])
    if parsed.what != "properties":
        raise InvalidArgumentError(
            f"{run.statement.place(parsed.name.start if parsed.name else 0)}: {target} is a view"
        )
    properties = {key: value for key, value in view.properties.items() if key not in _RESERVED - {"comment"}}
    if parsed.key is None:
        return run.result("key string, value string", sorted(properties.items()))
    missing = f"View {target} does not have property: {parsed.key}"
    return run.result("key string, value string", [(parsed.key, properties.get(parsed.key, missing))])


def _created(view: View, target: Target) -> str:
    """Return CREATE VIEW of a view as it is now."""
    columns = [
        quoted_name(field.name) + (f" COMMENT {quoted_text(field.doc)}" if field.doc else "")
        for field in view.schema().fields
    ]
    lines = [
        f"CREATE VIEW {quoted_name(target.catalog_name, *target.identifier)} (",
        "  " + ",\n  ".join(columns) + ")",
    ]
    if comment := view.properties.get("comment"):
        lines.append(f"COMMENT {quoted_text(comment)}")
    own = sorted((key, value) for key, value in view.properties.items() if key not in _RESERVED)
    if own:
        pairs = [f"{quoted_text(key)} = {quoted_text(value)}" for key, value in own]
        lines.append("TBLPROPERTIES (\n  " + ",\n  ".join(pairs) + ")")
    return "\n".join([*lines, "AS", _spark_query(view), ""])


def _if_needed(part: str) -> str:
    """Return a part of a name, in backquotes where SQL needs them."""
    return part if part.isidentifier() and part.isascii() else quoted_name(part)


def _spark_query(view: View) -> str:
    try:
        return view.sql("spark")
    except NoSuchViewError:
        # It is shown, though not run here.
        return next(iter(view.queries.values()), "")


def described(run: Run, parsed: Describe, target: Target, view: View) -> DataFrame:
    """Return the columns of a view, and with EXTENDED the rest."""
    if parsed.column is not None:
        raise run.statement.refusal(parsed.column.start, "DESCRIBE of one column of a view is not supported")
    fields = spark_schema(view.schema()).fields
    docs = {field.name: field.doc for field in view.schema().fields}
    rows: list[tuple[str, str, str]] = [(one.name, one.dataType.simpleString(), docs[one.name] or "") for one in fields]
    if parsed.extended:
        known = view.properties
        own = sorted((key, value) for key, value in known.items() if key not in _RESERVED)
        shown = ", ".join(f"{quoted_text(key)} = {quoted_text(value)}" for key, value in own)
        rows += [
            ("", "", ""),
            ("# Detailed View Information", "", ""),
            ("Comment", known.get("comment", ""), ""),
            (
                "View Catalog and Namespace",
                ".".join(map(_if_needed, (target.catalog_name, *target.identifier[:-1]))),
                "",
            ),
            ("View Query Output Columns", f"[{known.get(_QUERY_COLUMNS, '').replace(',', ', ')}]", ""),
            ("View Properties", f"[{shown}]", ""),
            ("Created By", known.get(_CREATED_BY, ""), ""),
        ]
    return run.result("col_name string, data_type string, comment string", rows)
