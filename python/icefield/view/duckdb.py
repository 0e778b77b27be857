"""A view's query in DuckDB: its names become those of the tables of the view's catalog."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

from icefield._support.optional import require
from icefield.errors import (
    InvalidArgumentError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    UnsupportedFeatureError,
)

if TYPE_CHECKING:
    import duckdb

    from icefield._inputs.identifiers import Identifier
    from icefield.view.metadata import ViewVersion

__all__ = ["registered"]

_DIALECT = "duckdb"


class Queried(Protocol):
    """The parts of a view that running its query needs."""

    @property
    def catalog(self) -> Any:
        """The catalog of the view."""

    def name(self) -> Identifier:
        """The name of the view."""

    def sql(self, dialect: str) -> str:
        """The query in a dialect."""

    def current_version(self) -> ViewVersion:
        """The version of the view."""

    def schema(self) -> Any:
        """The columns of the view."""


def registered(view: Queried, table_name: str, connection: Any) -> duckdb.DuckDBPyConnection:
    """Create a temporary view of the query in DuckDB, and return the connection."""
    if not table_name:
        raise InvalidArgumentError("table_name must not be empty")
    opened: Any = require("duckdb").connect() if connection is None else connection
    _Views(opened).create(view, table_name, (view.name(),))
    return opened  # type: ignore[no-any-return]


class _Views:
    """The views and tables that are registered for one view."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        #: What the names of the catalog are called in the connection.
        self.names: dict[Identifier, str] = {}

    def create(self, view: Queried, name: str, above: tuple[Identifier, ...]) -> None:
        text = view.sql(_DIALECT)
        tree = self._parsed(view, text)
        written = []
        for table, ctes in _tables(tree, frozenset()):
            parts = _parts(table)
            if len(parts) > 1 or parts[0].lower() not in ctes:
                written.append(tuple(part.lower() for part in parts))
                self._rename(view, table, self._registered(view, parts, above))
        _requalify(tree, written)
        changed = self.connection.execute("SELECT json_deserialize_sql(?::JSON)", [json.dumps(tree)]).fetchall()[0][0]
        columns = [field.name for field in view.schema().fields]
        listed = ", ".join(map(_quoted, columns))
        # The view's names of its columns, in their order.
        statement = f"CREATE OR REPLACE TEMP VIEW {_quoted(name)} AS SELECT * FROM ({changed}) AS q({listed})"  # noqa: S608
        found = len(self.connection.execute(f"DESCRIBE {changed}").fetchall())
        if found != len(columns):
            raise InvalidArgumentError(f"view {_dotted(view)}: the query has {found} columns, the view {len(columns)}")
        self.connection.execute(statement)

    def _parsed(self, view: Queried, text: str) -> Any:
        found = json.loads(self.connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [text]).fetchall()[0][0])
        if found["error"] or len(found["statements"]) != 1:
            reason = found.get("error_message") or "expected one query"
            raise InvalidArgumentError(f"view {_dotted(view)}: DuckDB cannot read its query: {reason}")
        return found

    def _registered(self, view: Queried, parts: Identifier, above: tuple[Identifier, ...]) -> str:
        """Return the private name of a table or view of the catalog."""
        identifier = _identifier(view, parts)
        if identifier in above:
            cycle = " -> ".join(".".join(one) for one in (*above, identifier))
            raise InvalidArgumentError(f"view {_dotted(view)} is part of a cycle: {cycle}")
        if (known := self.names.get(identifier)) is not None:
            return known
        made = f"icefield_{uuid.uuid4().hex}"
        try:
            table = view.catalog.load_table(identifier)
        except (NoSuchTableError, NoSuchNamespaceError) as error:
            try:
                inner = view.catalog.load_view(identifier)
            except (NoSuchViewError, UnsupportedFeatureError):
                raise type(error)(f"view {_dotted(view)}: {error}") from error
            self.create(inner, made, (*above, identifier))
        else:
            table.scan().to_duckdb(made, self.connection)
        self.names[identifier] = made
        return made

    def _rename(self, view: Queried, table: dict[str, Any], name: str) -> None:
        if table.get("at_clause") is not None:
            raise UnsupportedFeatureError(f"view {_dotted(view)}: AT in its query is not supported")
        alias = table.get("alias") or _parts(table)[-1]
        table.update(catalog_name="", schema_name="", table_name=name, alias=alias)
        if "qualified_name" in table:
            table["qualified_name"] = {"path": [name]}


def _identifier(view: Queried, parts: Identifier) -> Identifier:
    version, own = view.current_version(), str(view.catalog.name)
    home = version.default_catalog or own
    if len(parts) > 2:  # noqa: PLR2004 - DuckDB reads three parts as a catalog, a schema and a table
        # They are also a namespace of two levels and a table.
        if parts[0] != own and home == own and view.catalog.namespace_exists(parts[:-1]):
            return parts
        home, parts = parts[0], parts[1:]
    elif len(parts) == 1:
        parts = (*(version.default_namespace or view.name()[:-1]), *parts)
    if home != own:
        raise UnsupportedFeatureError(
            f"view {_dotted(view)}: its query names {'.'.join(parts)} of catalog {home}, which is not its own ({own})"
        )
    return parts


def _parts(table: dict[str, Any]) -> Identifier:
    return tuple(part for name in ("catalog_name", "schema_name", "table_name") if (part := table.get(name)))


def _tables(node: Any, ctes: frozenset[str]) -> Iterator[tuple[dict[str, Any], frozenset[str]]]:
    """Find the tables in a parsed query, each with the names of WITH that count there."""
    if isinstance(node, list):
        for one in node:
            yield from _tables(one, ctes)
        return
    if not isinstance(node, dict):
        return
    if node.get("type") == "BASE_TABLE":
        yield node, ctes
        return
    entries = (node.get("cte_map") or {}).get("map") or []
    for entry in entries:
        # An earlier one counts in a later one, and each in itself where it is recursive.
        inner = _query_of(entry)
        is_recursive = "RECURSIVE" in str(inner.get("type", ""))
        yield from _tables(inner, ctes | {str(entry["key"]).lower()} if is_recursive else ctes)
        ctes |= {str(entry["key"]).lower()}
    for key, value in node.items():
        if key != "cte_map":
            yield from _tables(value, ctes)


def _requalify(node: Any, written: list[Identifier]) -> None:
    """Leave out what stood before the names of tables in references to their columns."""
    if isinstance(node, list):
        for one in node:
            _requalify(one, written)
    elif isinstance(node, dict):
        names = node.get("column_names") if node.get("type") == "COLUMN_REF" else None
        if names:
            lower = tuple(name.lower() for name in names)
            widths = [
                width
                for parts in written
                for width in range(2, len(parts) + 1)
                if len(lower) > width and lower[:width] == parts[-width:]
            ]
            node["column_names"] = names[max(widths, default=1) - 1 :]
        for value in node.values():
            _requalify(value, written)


def _query_of(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the query of an entry of WITH; versions of DuckDB write it in two forms."""
    value = entry["value"]
    found = value.get("query_node") or (value.get("query") or {}).get("node") or {}
    return found if isinstance(found, dict) else {}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _dotted(view: Queried) -> str:
    return ".".join(view.name())
