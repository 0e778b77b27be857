"""A view that was loaded from its catalog."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from icefield._inputs.arguments import property_names, property_texts
from icefield._inputs.identifiers import Identifier
from icefield._outputs.html import html_of
from icefield._support.optional import require
from icefield.errors import InvalidArgumentError, NoSuchViewError
from icefield.schema import Schema
from icefield.view.duckdb import registered
from icefield.view.metadata import Document, SQLViewRepresentation, ViewHistoryEntry, ViewVersion, check_dialects

if TYPE_CHECKING:
    import duckdb
    from pyspark.sql import DataFrame, SparkSession

    from icefield._inputs.identifiers import IdentifierLike
    from icefield.arrow import SchemaLike

__all__ = ["CatalogOfViews", "View", "ViewHistoryEntry", "ViewVersion"]


class CatalogOfViews(Protocol):
    """The methods of a catalog that a view calls."""

    @property
    def name(self) -> str:
        """The name of the catalog."""

    def load_view(self, identifier: IdentifierLike) -> View:
        """Load a view."""

    def load_table(self, identifier: IdentifierLike) -> Any:
        """Load a table."""

    def replace_view(
        self,
        identifier: IdentifierLike,
        schema: SchemaLike,
        queries: Mapping[str, str] | ViewVersion,
        *,
        default_namespace: IdentifierLike | None = None,
        default_catalog: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> View:
        """Replace the query of a view."""

    def commit_view(
        self,
        identifier: IdentifierLike,
        requirements: Iterable[Mapping[str, object]],
        updates: Iterable[Mapping[str, object]],
    ) -> View:
        """Apply updates to a view."""


class View:
    """A view as it was when it was loaded.

    Parameters
    ----------
    identifier
        Namespace and name.
    metadata
        Its metadata, as the specification of views has them in JSON.
    metadata_location
        Location of the file that holds them; empty where there is none.
    catalog
        The catalog that has it.

    """

    def __init__(
        self, identifier: Identifier, metadata: Document, metadata_location: str, catalog: CatalogOfViews
    ) -> None:
        self._identifier = identifier
        self.metadata = metadata
        self.metadata_location = metadata_location
        self.catalog = catalog

    def name(self) -> Identifier:
        """Return the namespace and the name."""
        return self._identifier

    def uuid(self) -> str:
        """Return the view's uuid."""
        return str(self.metadata["view-uuid"])

    def location(self) -> str:
        """Return the base location of the view."""
        return str(self.metadata["location"])

    @property
    def properties(self) -> dict[str, str]:
        """Properties of the view."""
        found = self.metadata.get("properties") or {}
        return {str(key): value if isinstance(value, str) else json.dumps(value) for key, value in found.items()}

    # Versions

    @property
    def versions(self) -> list[ViewVersion]:
        """The versions that the view still has, as its metadata list them."""
        return [ViewVersion.from_json(one) for one in self.metadata["versions"]]

    def version(self, version_id: int) -> ViewVersion | None:
        """Return a version by its id; ``None`` if the view does not have it."""
        return next((one for one in self.versions if one.version_id == version_id), None)

    def _version_json(self, version_id: int) -> Document:
        found: Document = next(one for one in self.metadata["versions"] if one.get("version-id") == version_id)
        return found

    def current_version(self) -> ViewVersion:
        """Return the current version."""
        found = self.version(int(self.metadata["current-version-id"]))
        if found is None:
            raise NoSuchViewError(f"view {self}: its metadata have no current version")
        return found

    def history(self) -> list[ViewHistoryEntry]:
        """Return which versions were current, and since when, the oldest first."""
        entries = ((one.get("timestamp-ms"), one.get("version-id")) for one in self.metadata["version-log"])
        return [ViewHistoryEntry(at, one) for at, one in entries if at is not None and one is not None]

    def schemas(self) -> dict[int, Schema]:
        """Return the columns of all versions, by the ids of the schemas."""
        listed = ((one.get("schema-id"), one) for one in self.metadata["schemas"])
        return {schema_id: Schema.from_json(json.dumps(one)) for schema_id, one in listed if schema_id is not None}

    def schema(self) -> Schema:
        """Return the columns of the current version."""
        return self.schemas()[self.current_version().schema_id]

    @property
    def queries(self) -> dict[str, str]:
        """The query of the current version by its dialect of SQL, such as ``spark``."""
        return dict(self.current_version().queries)

    def sql(self, dialect: str) -> str:
        """Return the query in a dialect, whatever the case of its name.

        Raises
        ------
        NoSuchViewError
            If the view has no query in this dialect; the message names those that it has.

        """
        queries = {name.lower(): text for name, text in self.queries.items()}
        if (found := queries.get(dialect.lower())) is None:
            known = ", ".join(sorted(self.queries)) or "none"
            raise NoSuchViewError(f"view {self} has no query in the dialect {dialect}; it has: {known}")
        return found

    def sql_for(self, dialect: str) -> SQLViewRepresentation | None:
        """Return the query in a dialect, whatever the case of its name; ``None`` if the view has none in it."""
        found = self.current_version().representations
        return next((one for one in found if one.dialect.casefold() == dialect.casefold()), None)

    # Changes

    def refresh(self) -> View:
        """Return the view as it is now.

        Raises
        ------
        NoSuchViewError
            If it was dropped, or another view has its name now.

        """
        found = self.catalog.load_view(self._identifier)
        if found.uuid() != self.uuid():
            raise NoSuchViewError(f"view {self} was dropped: another view has its name now")
        return found

    def replace(
        self,
        schema: SchemaLike,
        queries: Mapping[str, str] | ViewVersion,
        *,
        default_namespace: IdentifierLike | None = None,
        default_catalog: str | None = None,
    ) -> View:
        """Replace the query, as `icefield.catalog.Catalog.replace_view` does, and return the new state."""
        return self.catalog.replace_view(
            self._identifier,
            schema,
            queries,
            default_namespace=default_namespace,
            default_catalog=default_catalog,
        )

    def set_current_version(self, version_id: int) -> View:
        """Make a former version the current one, and return the new state.

        Raises
        ------
        InvalidArgumentError
            If the view has no such version.
        ValidationException
            If it lacks a dialect that the current one has, as in `icefield.catalog.Catalog.replace_view`.

        """
        if self.version(version_id) is None:
            known = ", ".join(str(one.version_id) for one in self.versions)
            raise InvalidArgumentError(f"view {self} has no version {version_id}; it has: {known}")
        if version_id == self.metadata["current-version-id"]:
            return self
        current = self._version_json(self.current_version().version_id)
        check_dialects(current, self._version_json(version_id), self.properties)
        return self._commit([{"action": "set-current-view-version", "view-version-id": version_id}])

    def update_properties(self, updates: Mapping[str, str] | None = None, removals: Iterable[str] | str = ()) -> View:
        """Set and remove properties, and return the new state; a single str is one name."""
        wanted, gone = property_texts(updates), sorted(set(property_names(removals)))
        if both := [name for name in gone if name in wanted]:
            raise InvalidArgumentError(f"properties cannot be both removed and set: {', '.join(both)}")
        changes: list[Mapping[str, object]] = []
        if wanted:
            changes.append({"action": "set-properties", "updates": wanted})
        if gone := [name for name in gone if name in self.properties]:
            changes.append({"action": "remove-properties", "removals": gone})
        return self._commit(changes) if changes else self

    def set_location(self, location: str) -> View:
        """Set the base location of metadata files to come, and return the new state."""
        if not location:
            raise InvalidArgumentError("the location of a view is empty")
        return self._commit([{"action": "set-location", "location": location}])

    def _commit(self, updates: Iterable[Mapping[str, object]]) -> View:
        requirements = [{"type": "assert-view-uuid", "uuid": self.uuid()}]
        return self.catalog.commit_view(self._identifier, requirements, updates)

    # Rows

    def to_spark(self, spark: SparkSession) -> DataFrame:
        """Return the rows of the query in the dialect ``spark``, run by this session.

        Names in it are those of the view's catalog and namespaces; what they name may be views too. Columns are cast to
        the types of the view's schema where no value is lost by that.

        Raises
        ------
        NoSuchViewError
            If the view has no query in this dialect.
        InvalidArgumentError
            If the query names itself, or its columns are not those of the view's schema any more.

        """
        # `icefield.spark` imports this module, so it is loaded by name, as any package that may be missing.
        rows: DataFrame = require("icefield.spark.sql.statements.viewing").of_view(spark, self)
        return rows

    def to_duckdb(self, table_name: str, connection: Any = None) -> duckdb.DuckDBPyConnection:
        """Register the rows of the query in the dialect ``duckdb`` under a name, in a new connection or that passed.

        The tables and views that the query names are those of the view's catalog. Each query of the registered view
        reads the columns, files and row groups that it needs.

        Raises
        ------
        NoSuchViewError
            If the view has no query in this dialect.
        UnsupportedFeatureError
            If the query names a table of another catalog.

        """
        return registered(self, table_name, connection)

    def __str__(self) -> str:
        return ".".join(self._identifier)

    def __repr__(self) -> str:
        return f"View({self}: {', '.join(sorted(self.queries))})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, View) and (self._identifier, self.metadata) == (other._identifier, other.metadata)

    __hash__ = None  # type: ignore[assignment]

    def _repr_html_(self) -> str:
        rows = {**{f"query ({name})": text for name, text in self.queries.items()}, **self.properties}
        return html_of(f"View {self}", rows)
