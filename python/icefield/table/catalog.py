"""What a table's catalog does."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from icefield._inputs.arguments import field_texts, other_names, property_texts
from icefield._inputs.frames import schema_of
from icefield._inputs.identifiers import Identifier, IdentifierLike
from icefield._inputs.secrets import guarded
from icefield._outputs.html import html_of
from icefield.errors import (
    IcefieldError,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from icefield.view.catalog import ViewCatalog

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Self

    from icefield._core import TableState
    from icefield.arrow import SchemaLike
    from icefield.metadata import TableMetadata
    from icefield.partitioning import PartitionSpec
    from icefield.scan import PlanReporter, ScanPlanner
    from icefield.schema import Schema
    from icefield.sorting import SortOrder
    from icefield.types import Type

__all__ = ["CommitTableResponse", "Migration", "PropertiesUpdateSummary", "TableCatalog", "TableDefinition"]

TableClass_co = TypeVar("TableClass_co", covariant=True)
TransactionClass_co = TypeVar("TransactionClass_co", covariant=True)
CreationClass_co = TypeVar("CreationClass_co", covariant=True)


@dataclass(frozen=True)
class CommitTableResponse:
    """The metadata of a table, and where they are."""

    metadata: TableMetadata
    #: Location of the file that holds the metadata.
    metadata_location: str


@dataclass(frozen=True)
class TableDefinition:
    """The definition of a table to create, made of the arguments of `icefield.catalog.Catalog.create_table`."""

    #: An `icefield.Schema`, its JSON form, or an object with an Arrow schema; new field ids are assigned.
    schema: object
    #: The folder of the table; ``None`` for the default.
    location: str | None
    #: The partition spec, as the text of each field or in its JSON form.
    partition_spec: list[str] | dict[str, object]
    #: The sort order, as the text of each field or in its JSON form.
    sort_order: list[str] | dict[str, object]
    #: Table properties, without the defaults of the catalog.
    properties: dict[str, str]


@dataclass(frozen=True)
class PropertiesUpdateSummary:
    """The result of a change of namespace properties."""

    removed: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Migration(Generic[TableClass_co]):
    """What a migration created, or would create with ``dry_run=True``."""

    #: The table; ``None`` if nothing was created.
    table: TableClass_co | None
    #: The schema; the table has these columns, in this order.
    schema: Schema
    #: Names of the partition columns, the outermost folder first.
    partition_columns: tuple[str, ...]
    #: Number of data files.
    files: int
    #: Rows in these files.
    rows: int
    #: Size of these files.
    bytes: int


class TableCatalog(ViewCatalog, Generic[TableClass_co, TransactionClass_co, CreationClass_co]):
    """What a `icefield.catalog.Catalog` does, for tables and transactions of any class."""

    def __init__(self, name: str, **properties: str) -> None:
        self.name = name
        self.properties = guarded(properties)

    # Namespaces

    @abstractmethod
    def list_namespaces(self, namespace: IdentifierLike = ()) -> list[Identifier]:
        """List the namespaces directly under one; by default, under the root."""

    @abstractmethod
    def create_namespace(self, namespace: IdentifierLike, properties: Mapping[str, str] | None = None) -> None:
        """Create a namespace.

        Raises
        ------
        NamespaceAlreadyExistsError
            If it already exists.

        """

    @abstractmethod
    def drop_namespace(self, namespace: IdentifierLike) -> None:
        """Drop an empty namespace.

        Raises
        ------
        NoSuchNamespaceError
            If it does not exist.
        NamespaceNotEmptyError
            If it contains tables, views or namespaces.

        """

    @abstractmethod
    def load_namespace_properties(self, namespace: IdentifierLike) -> dict[str, str]:
        """Return the properties of a namespace."""

    @abstractmethod
    def update_namespace_properties(
        self, namespace: IdentifierLike, removals: Iterable[str] | str = (), updates: Mapping[str, str] | None = None
    ) -> PropertiesUpdateSummary:
        """Remove and set properties of a namespace, all or none; a single str is one name."""

    def namespace_exists(self, namespace: IdentifierLike) -> bool:
        """Return whether there is a namespace of this name."""
        try:
            self.load_namespace_properties(namespace)
        except NoSuchNamespaceError:
            return False
        return True

    def create_namespace_if_not_exists(
        self, namespace: IdentifierLike, properties: Mapping[str, str] | None = None
    ) -> None:
        """Create a namespace unless it already exists."""
        with suppress(NamespaceAlreadyExistsError):
            self.create_namespace(namespace, properties)

    # Tables

    @abstractmethod
    def list_tables(self, namespace: IdentifierLike) -> list[Identifier]:
        """List the tables directly in a namespace."""

    @abstractmethod
    def load_table(self, identifier: IdentifierLike) -> TableClass_co:
        """Load the current state of a table.

        Raises
        ------
        NoSuchTableError
            If it does not exist.

        """

    def _attached(self, identifier: Identifier, state: TableState) -> TableState:  # noqa: ARG002
        """Return the state of a table that came from another process, with the credentials and keys of this catalog."""
        return state

    @abstractmethod
    def load_table_metadata(self, identifier: IdentifierLike) -> CommitTableResponse:
        """Return the current metadata of a table.

        Raises
        ------
        NoSuchTableError
            If the table does not exist.

        """

    @abstractmethod
    def commit_table(
        self,
        identifier: IdentifierLike,
        requirements: Iterable[Mapping[str, object]],
        updates: Iterable[Mapping[str, object]],
    ) -> CommitTableResponse:
        """Apply updates to a table if it meets the requirements, all or none.

        Appends and transactions of tables call it. Your own catalog implements it as one atomic step;
        `icefield.catalog.pointer.PointerCatalog` does so by swapping a pointer.

        Parameters
        ----------
        identifier
            The table.
        requirements
            ``TableRequirement`` objects of the REST protocol, checked against the current table. ``assert-create`` is
            met only if there is no table of this name, which the updates then create.
        updates
            ``TableUpdate`` objects of the REST protocol, applied in their order.

        Returns
        -------
        CommitTableResponse
            The table with the updates.

        Raises
        ------
        CommitFailedException
            If the table does not meet a requirement, and the commit has certainly not been made: the caller can apply
            its change to the new state and try again.
        TableAlreadyExistsError, NoSuchNamespaceError
            If a table was to be created and certainly was not.
        CommitStateUnknownException
            If the outcome is unknown. Any other exception is treated like this one.

        """

    def _plan_reporter(self, identifier: Identifier) -> PlanReporter | None:  # noqa: ARG002
        """Return what the plans of scans of a table are reported to."""
        return None

    def _report_commit(
        self, identifier: Identifier, metadata: TableMetadata, snapshot_ids: list[int], attempts: int, nanoseconds: int
    ) -> None:
        """Report new snapshots of a table; the core calls it after each commit, and it raises nothing."""

    def _scan_planner(self, identifier: Identifier) -> ScanPlanner | None:  # noqa: ARG002
        """Return what plans the scans of a table; a catalog whose server plans them has one."""
        return None

    @other_names(format_version='properties={"format-version": "3"}')
    def create_table(
        self,
        identifier: IdentifierLike,
        schema: SchemaLike,
        location: str | None = None,
        partition_spec: PartitionSpec | Mapping[str, object] | Iterable[str] | str | None = None,
        sort_order: SortOrder | Mapping[str, object] | Iterable[str] | str | None = None,
        properties: Mapping[str, str] | None = None,
        *,
        partition_by: Iterable[str] | str | None = None,
        sort_by: Iterable[str] | str | None = None,
    ) -> TableClass_co:
        """Create a table.

        Parameters
        ----------
        identifier
            Namespace and name.
        schema
            An `icefield.Schema`, or anything with an Arrow schema (a pyarrow schema or table, a frame). New field
            ids are assigned, as in every implementation of Iceberg.
        location
            Folder of the table; by default under the namespace's ``location`` property or the warehouse.
        partition_spec, partition_by
            The partitioning, as an object or as text: ``["month(time)", "bucket(8, carrier)"]``.
        sort_order, sort_by
            The order of rows in files, as an object or as text: ``["time asc nulls first"]``.
        properties
            Table properties; ``format-version`` chooses 1, 2 (default) or 3.

        Raises
        ------
        NoSuchNamespaceError
            If the namespace does not exist.
        TableAlreadyExistsError
            If a table or view of this name already exists.

        """
        definition = _definition(schema, location, partition_spec, sort_order, properties, partition_by, sort_by)
        return self.create_defined_table(identifier, definition)

    @abstractmethod
    def create_defined_table(self, identifier: IdentifierLike, definition: TableDefinition) -> TableClass_co:
        """Create a table by its definition; `create_table` calls it."""

    def create_table_transaction(
        self,
        identifier: IdentifierLike,
        schema: SchemaLike,
        location: str | None = None,
        partition_spec: PartitionSpec | Mapping[str, object] | Iterable[str] | str | None = None,
        sort_order: SortOrder | Mapping[str, object] | Iterable[str] | str | None = None,
        properties: Mapping[str, str] | None = None,
        *,
        partition_by: Iterable[str] | str | None = None,
        sort_by: Iterable[str] | str | None = None,
    ) -> CreationClass_co:
        """Create a table at the end of a transaction, with all that was done in it; the arguments of `create_table`.

        The commit calls `commit_table` with all updates and the requirement ``assert-create``.

        Raises
        ------
        TableAlreadyExistsError
            If there is a table of this name.

        """
        definition = _definition(schema, location, partition_spec, sort_order, properties, partition_by, sort_by)
        return self._creation(identifier, definition)

    def create_or_replace_table_transaction(
        self,
        identifier: IdentifierLike,
        schema: SchemaLike,
        location: str | None = None,
        partition_spec: PartitionSpec | Mapping[str, object] | Iterable[str] | str | None = None,
        sort_order: SortOrder | Mapping[str, object] | Iterable[str] | str | None = None,
        properties: Mapping[str, str] | None = None,
        *,
        partition_by: Iterable[str] | str | None = None,
        sort_by: Iterable[str] | str | None = None,
    ) -> TransactionClass_co | CreationClass_co:
        """Create a table, or replace the table of this name, at the end of a transaction."""
        definition = _definition(schema, location, partition_spec, sort_order, properties, partition_by, sort_by)
        if self.table_exists(identifier):
            return self._replacement(identifier, definition)
        return self._creation(identifier, definition)

    def replace_table_transaction(
        self,
        identifier: IdentifierLike,
        schema: SchemaLike,
        location: str | None = None,
        partition_spec: PartitionSpec | Mapping[str, object] | Iterable[str] | str | None = None,
        sort_order: SortOrder | Mapping[str, object] | Iterable[str] | str | None = None,
        properties: Mapping[str, str] | None = None,
        *,
        partition_by: Iterable[str] | str | None = None,
        sort_by: Iterable[str] | str | None = None,
    ) -> TransactionClass_co:
        """Replace a table: other columns, partitioning, order and properties, and no rows in ``main``.

        Its history, branches and tags stay, and so do properties that are not passed. Rows that are appended in the
        transaction become visible with the rest. Whatever others commit before, it is replaced.

        Parameters
        ----------
        identifier, schema, location, partition_spec, sort_order, properties, partition_by, sort_by
            As in `create_table`; without a location, the table stays where it is.

        Raises
        ------
        NoSuchTableError
            If there is no such table.

        """
        definition = _definition(schema, location, partition_spec, sort_order, properties, partition_by, sort_by)
        return self._replacement(identifier, definition)

    @abstractmethod
    def _creation(self, identifier: IdentifierLike, definition: TableDefinition) -> CreationClass_co:
        """Start the transaction at whose end a table is created."""

    @abstractmethod
    def _replacement(self, identifier: IdentifierLike, definition: TableDefinition) -> TransactionClass_co:
        """Start the transaction at whose end a table is replaced."""

    @abstractmethod
    def migrate(
        self,
        identifier: IdentifierLike,
        folder: str | Path,
        *,
        format: Literal["parquet", "orc", "avro"] | None = None,
        partitioning: Mapping[str, Type | str] | None = None,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        validate: Literal["footer", "data"] = "footer",
        dry_run: bool = False,
    ) -> Migration[TableClass_co]:
        """Create a table of a folder with data files in Hive's layout; no file is moved or written again."""

    @abstractmethod
    def register_table(
        self, identifier: IdentifierLike, metadata_location: str, overwrite: bool = False
    ) -> TableClass_co:
        """Register a table that exists in storage, by the location of its metadata file.

        Raises
        ------
        TableAlreadyExistsError
            If there is a table of this name, unless ``overwrite`` is set: then the name is given to the other table,
            and the files of the former one stay.
        CommitFailedException
            If the table that was to be replaced was changed meanwhile.

        """

    @abstractmethod
    def drop_table(self, identifier: IdentifierLike, purge_requested: bool = False) -> None:
        """Drop a table; its files stay unless a purge is requested.

        A purge deletes the files of all snapshots that are under the table's location (or ``write.data.path``,
        ``write.metadata.path``); data files stay if ``gc.enabled`` is ``false``. It goes on past a file that cannot be
        read or deleted; a ``RuntimeWarning`` at the end names what may be left.

        Raises
        ------
        NoSuchTableError
            If it does not exist.

        """

    @abstractmethod
    def rename_table(self, from_identifier: IdentifierLike, to_identifier: IdentifierLike) -> TableClass_co:
        """Rename a table, within its namespace or into another; its files stay where they are."""

    def purge_table(self, identifier: IdentifierLike) -> None:
        """Drop a table and delete its files."""
        self.drop_table(identifier, purge_requested=True)

    def table_exists(self, identifier: IdentifierLike) -> bool:
        """Return whether there is a table of this name."""
        try:
            self.load_table(identifier)
        except NoSuchTableError:
            return False
        return True

    def _missing_table(self, namespace: Identifier, table: str, hint: str = "") -> NoSuchTableError:
        """Return the error for a missing table, with the most similar name."""
        name = ".".join((*namespace, table))
        return NoSuchTableError(
            f"table {name} does not exist in catalog {self.name}{hint or self._meant(namespace, table)}"
        )

    def _meant(self, namespace: Identifier, table: str) -> str:
        if len(namespace) > 1 and namespace[0] == self.name:
            return f"; leave out the name of the catalog: {'.'.join((*namespace[1:], table))}"
        from difflib import get_close_matches

        tables: list[Identifier] = []
        with suppress(IcefieldError):
            if not self.namespace_exists(namespace):
                known = [".".join(name) for name in self.list_namespaces(namespace[:-1])]
                close = get_close_matches(".".join(namespace), known, 1, 0.5)
                meant = f", did you mean {close[0]}?" if close else ""
                return f"; there is no namespace {'.'.join(namespace)}{meant}"
            tables = self.list_tables(namespace)
        close = get_close_matches(table, [name[-1] for name in tables], 1)
        return f"; did you mean {'.'.join((*namespace, close[0]))}?" if close else ""

    def create_table_if_not_exists(
        self,
        identifier: IdentifierLike,
        schema: SchemaLike,
        location: str | None = None,
        partition_spec: PartitionSpec | Mapping[str, object] | Iterable[str] | str | None = None,
        sort_order: SortOrder | Mapping[str, object] | Iterable[str] | str | None = None,
        properties: Mapping[str, str] | None = None,
        *,
        partition_by: Iterable[str] | str | None = None,
        sort_by: Iterable[str] | str | None = None,
    ) -> TableClass_co:
        """Create a table as `create_table` does, or load the existing table of this name."""
        try:
            return self.create_table(
                identifier,
                schema,
                location,
                partition_spec,
                sort_order,
                properties,
                partition_by=partition_by,
                sort_by=sort_by,
            )
        except TableAlreadyExistsError:
            return self.load_table(identifier)

    def close(self) -> None:
        """Close connections; the catalog opens new ones if it is used again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.properties})"

    def _repr_html_(self) -> str:
        return html_of(f"Catalog {self.name} ({type(self).__name__})", dict(sorted(self.properties.items())))

    def __reduce__(self) -> tuple[object, ...]:
        return _reopen, (type(self), self.name, self.properties)


def _reopen(
    kind: type[TableCatalog[TableClass_co, TransactionClass_co, CreationClass_co]],
    name: str,
    properties: dict[str, str],
) -> TableCatalog[TableClass_co, TransactionClass_co, CreationClass_co]:
    return kind(name, **properties)


def _definition(
    schema: SchemaLike,
    location: str | None,
    partition_spec: PartitionSpec | Mapping[str, object] | Iterable[str] | str | None,
    sort_order: SortOrder | Mapping[str, object] | Iterable[str] | str | None,
    properties: Mapping[str, str] | None,
    partition_by: Iterable[str] | str | None,
    sort_by: Iterable[str] | str | None,
) -> TableDefinition:
    return TableDefinition(
        schema_of(schema),
        location,
        field_texts(partition_spec, partition_by, "partitioning"),
        field_texts(sort_order, sort_by, "sort order"),
        property_texts(properties),
    )
