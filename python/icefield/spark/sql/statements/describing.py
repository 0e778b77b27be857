"""SHOW and DESCRIBE: what there is, as rows with Spark's columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from icefield.errors import NotFoundError
from icefield.spark.columns.types import spark_schema
from icefield.spark.sql.catalogs import Selected
from icefield.spark.sql.grammar.statements import Describe, DescribeNamespace, Show
from icefield.spark.sql.literals import literal, quoted_name, quoted_text
from icefield.spark.sql.running import RESERVED
from icefield.spark.sql.sources import PLACES
from icefield.spark.sql.statements import viewing
from icefield.view import View

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from icefield.schema import Schema
    from icefield.spark.sql.catalogs import Target
    from icefield.spark.sql.running import Run
    from icefield.table import Table

__all__ = ["describe", "describe_namespace", "show"]

#: Properties of tables and namespaces that Spark shows in places of their own.
_RESERVED = (*RESERVED, "comment")
#: Names that stand without backquotes, as Spark writes them.
_PLAIN = re.compile(r"(?!\d+$)[A-Za-z0-9_]+", re.ASCII)


def show(run: Run, parsed: Show, target: Target) -> DataFrame:
    """Return the rows of a SHOW statement about a catalog, a namespace or a table."""
    if parsed.what in ("tables", "views", "namespaces"):
        return _listed(run, parsed, target)
    if parsed.name is None:
        raise run.statement.error(0, "expected the name of a table")
    table = viewing.table_or_view(run, parsed.name, target)
    if isinstance(table, View):
        return viewing.shown(run, parsed, target, table)
    if parsed.what == "columns":
        return run.result("col_name string", [(field.name,) for field in table.schema().fields])
    if parsed.what == "partitions":
        return run.result("partition string", [(path,) for path in _partitions(table)])
    if parsed.what == "create table":
        return run.result("createtab_stmt string", [(_created(table, str_of(target)),)])
    shown = {key: value for key, value in _properties(table).items() if key not in _RESERVED}
    if parsed.key is None:
        return run.result("key string, value string", sorted(shown.items()))
    missing = f"Table {target} does not have property: {parsed.key}"
    return run.result("key string, value string", [(parsed.key, shown.get(parsed.key, missing))])


def str_of(target: Target) -> str:
    """Return the name of a table as SQL."""
    return _sql_name(target.catalog_name, *target.identifier)


def _sql_name(*parts: str) -> str:
    """Return a name as SQL, with backquotes where they are needed."""
    return ".".join(part if _PLAIN.fullmatch(part) else quoted_name(part) for part in parts)


def _listed(run: Run, parsed: Show, target: Target) -> DataFrame:
    catalog, below = target.catalog, target.identifier
    at = 0 if parsed.name is None else parsed.name.start
    with run.at(at):
        if parsed.what == "namespaces":
            found = [".".join(name) for name in catalog.list_namespaces(below)]
            return run.result("namespace string", [(name,) for name in found if _like(name, parsed.pattern)])
        listed = catalog.list_tables(below) if parsed.what == "tables" else catalog.list_views(below)
    names = [name[-1] for name in listed if _like(name[-1], parsed.pattern)]
    namespace = ".".join(below)
    column = "tableName" if parsed.what == "tables" else "viewName"
    rows = [(namespace, name, False) for name in names]
    return run.result(f"namespace string, {column} string, isTemporary boolean", rows)


def catalogs(run: Run, pattern: str | None, names: list[str]) -> DataFrame:
    """Return the names of catalogs, of icefield and of Spark."""
    own = [row[0] for row in run.spark.sql("SHOW CATALOGS").collect()]
    found = sorted({*own, *names})
    return run.result("catalog string", [(name,) for name in found if _like(name, pattern)])


def _like(name: str, pattern: str | None) -> bool:
    """Return whether a name matches a pattern of Spark: ``*`` is any text, ``|`` stands between alternatives."""
    if pattern is None:
        return True
    forms = (".*".join(map(re.escape, one.strip().split("*"))) for one in pattern.split("|"))
    return any(re.fullmatch(form, name, re.IGNORECASE | re.DOTALL) for form in forms)


def _partitions(table: Table) -> Iterator[str]:
    schema = table.schema()
    specs = table.specs()
    for row in table.inspect.partitions().to_pylist():
        if "partition" in row:
            spec = specs[row["spec_id"]]
            values = [row["partition"].get(field.name) for field in spec.fields]
            yield spec.partition_to_path(values, schema)


def _properties(table: Table) -> dict[str, str]:
    snapshot = table.current_snapshot()
    return {
        **table.properties,
        "format": f"iceberg/{table.properties.get('write.format.default', 'parquet')}",
        "format-version": str(table.format_version),
        "current-snapshot-id": "none" if snapshot is None else str(snapshot.snapshot_id),
    }


def _terms(table: Table) -> list[str]:
    """Return the partitioning as SQL."""
    schema = table.schema()
    found = []
    for field in table.spec().fields:
        if field.transform.is_void or field.source_id is None:
            continue
        name = _sql_name(*(schema.find_column_name(field.source_id) or field.name).split("."))
        transform = field.transform
        width = transform.num_buckets or transform.width
        if transform.is_identity:
            found.append(name)
        elif width is not None:
            found.append(f"{transform.name}({width}, {name})")
        else:
            found.append(f"{transform.name}s({name})")
    return found


def _created(table: Table, name: str) -> str:
    """Return CREATE TABLE of a table as it is now."""
    columns = []
    for field, own in zip(spark_schema(table.schema()).fields, table.schema().fields, strict=True):
        parts = [
            _sql_name(field.name),
            field.dataType.simpleString().upper() if own.field_type.is_primitive else field.dataType.simpleString(),
        ]
        parts += ["NOT NULL"] if own.required else []
        parts += [f"COMMENT {quoted_text(own.doc)}"] if own.doc else []
        parts += [] if own.write_default is None else [f"DEFAULT {literal(own.write_default)}"]
        columns.append(" ".join(parts))
    lines = [f"CREATE TABLE {name} (", "  " + ",\n  ".join(columns) + ")", "USING iceberg"]
    if terms := _terms(table):
        lines.append(f"PARTITIONED BY ({', '.join(terms)})")
    shown = _properties(table)
    if (comment := shown.pop("comment", None)) is not None:
        lines.append(f"COMMENT {quoted_text(comment)}")
    lines.append(f"LOCATION {quoted_text(table.location())}")
    for derived in ("format", "current-snapshot-id", *_RESERVED):
        shown.pop(derived, None)
    pairs = [f"{quoted_text(key)} = {quoted_text(value)}" for key, value in sorted(shown.items())]
    lines.append("TBLPROPERTIES (\n  " + ",\n  ".join(pairs) + ")")
    return "\n".join(lines) + "\n"


def describe(run: Run, parsed: Describe, target: Target) -> DataFrame:
    """Return the columns of a table, its partitioning, and with EXTENDED the rest."""
    try:
        found = viewing.table_or_view(run, parsed.name, target)
    except NotFoundError:
        with run.at(parsed.name.start):
            chosen = run.selected(target)
    else:
        if isinstance(found, View):
            return viewing.described(run, parsed, target, found)
        chosen = Selected(found)
    table = chosen.table
    if parsed.column is not None:
        return _described_column(run, parsed, _shown_schema(run, parsed, chosen))
    schema = _shown_schema(run, parsed, chosen)
    rows = _described_columns(schema)
    if chosen.metadata is None and (terms := _terms(table)):
        rows += [("", "", ""), ("# Partitioning", "", "")]
        rows += [(f"Part {place}", term, "") for place, term in enumerate(terms)]
    if parsed.extended and chosen.metadata is None:
        places = _described_columns(table.scan(selected_fields=PLACES).projection())
        shown = _properties(table)
        pairs = ",".join(f"{key}={value}" for key, value in sorted(shown.items()) if key not in _RESERVED)
        rows += [
            ("", "", ""),
            ("# Metadata Columns", "", ""),
            *((name, kind, "") for name, kind, _ in places),
            ("", "", ""),
            ("# Detailed Table Information", "", ""),
            ("Name", str(target), ""),
            ("Type", "MANAGED", ""),
            *([("Comment", shown["comment"], "")] if "comment" in shown else []),
            ("Location", table.location(), ""),
            ("Provider", "iceberg", ""),
            *([("Owner", shown["owner"], "")] if "owner" in shown else []),
            ("Table Properties", f"[{pairs}]", ""),
        ]
    return run.result("col_name string, data_type string, comment string", rows)


def _shown_schema(run: Run, parsed: Describe, chosen: Selected) -> Schema:
    if chosen.metadata == "changes":
        raise run.statement.refusal(parsed.name.start, "DESCRIBE of changes is not supported: SELECT from them")
    return chosen.table.schema() if chosen.metadata is None else chosen.table.inspect.schema(chosen.metadata)


def _described_columns(schema: Schema) -> list[tuple[str, str, str | None]]:
    docs = {field.name: field.doc for field in schema.fields}
    return [(one.name, one.dataType.simpleString(), docs[one.name]) for one in spark_schema(schema).fields]


def _described_column(run: Run, parsed: Describe, schema: Schema) -> DataFrame:
    name = parsed.column
    if name is None or len(name.parts) != 1:
        raise run.statement.error(parsed.name.end, f"expected the name of one column, got {name}")
    own = schema.find_field(name.parts[0], run.case_sensitive)
    kind = next(one.dataType for one in spark_schema(schema).fields if one.name == own.name)
    rows = [("col_name", own.name), ("data_type", kind.simpleString()), ("comment", own.doc or "NULL")]
    return run.result("info_name string, info_value string", rows)


def describe_namespace(run: Run, parsed: DescribeNamespace, target: Target) -> DataFrame:
    """Return the properties of a namespace."""
    with run.at(parsed.name.start):
        properties = target.catalog.load_namespace_properties(target.identifier)
    rows = [("Catalog Name", target.catalog_name), ("Namespace Name", ".".join(target.identifier))]
    names = {"comment": "Comment", "location": "Location", "owner": "Owner"}
    rows += [(names[key], properties[key]) for key in names if key in properties]
    rest = [f"({key},{value})" for key, value in sorted(properties.items()) if key not in names]
    if parsed.extended:
        rows.append(("Properties", f"({', '.join(rest)})" if rest else ""))
    return run.result("info_name string, info_value string", rows)
