"""The AWS Glue catalog, as Java's and PyIceberg's: a table of Glue has the location of the metadata as a parameter."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from icefield._inputs.arguments import property_texts
from icefield._inputs.identifiers import Identifier, IdentifierLike
from icefield.catalog.aws import AwsService, RefusedError, is_repeated
from icefield.catalog.base import PropertiesUpdateSummary
from icefield.catalog.metastore import (
    LOCATION,
    PREVIOUS,
    TABLE_TYPE,
    MetastoreCatalog,
    changed,
    column_type,
    columns_of,
    nothing_sent,
)
from icefield.errors import (
    CommitFailedException,
    CommitStateUnknownException,
    IcefieldError,
    InvalidArgumentError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    StorageError,
    TableAlreadyExistsError,
)

if TYPE_CHECKING:
    from icefield._core import TableMetadata

__all__ = ["GlueCatalog"]

_MISSING = "EntityNotFoundException"
_TAKEN = "AlreadyExistsException"
#: The type of an entry whose table has another name now.
_RENAMED = "ICEBERG_RENAMED"
#: What Java's catalog allows, as Athena and other engines need it.
_NAME = re.compile(r"[a-z0-9_]{1,255}")
#: What a table keeps of what other programs have set.
_KEPT = ("Description", "Owner", "LastAccessTime", "LastAnalyzedTime", "Retention", "PartitionKeys", "TargetTable")


class GlueCatalog(MetastoreCatalog):
    """The catalog of AWS Glue of an account and region.

    Parameters
    ----------
    name
        Its name, which is stored nowhere.
    **properties
        ``glue.id`` (the account), ``glue.region``, ``glue.endpoint``, ``glue.skip-archive`` (default true) and others,
        and the properties of the storage.

    """

    def __init__(self, name: str, **properties: str) -> None:
        super().__init__(name, **properties)
        self._service = AwsService(name, "glue", self.properties)

    def _ask(self, operation: str, /, **arguments: object) -> dict[str, Any]:
        return self._service.ask(operation, **self._account(), **arguments)

    def _read(self, operation: str, /, **arguments: object) -> dict[str, Any]:
        return self._service.read(operation, **self._account(), **arguments)

    def _account(self) -> dict[str, str]:
        account = self.properties.get("glue.id")
        return {"CatalogId": account} if account else {}

    def _is_set(self, name: str, default: str) -> bool:
        return self.properties.get(name, default).lower() == "true"

    def _checked(self, name: str) -> str:
        if not _NAME.fullmatch(name) and not self._is_set("glue.skip-name-validation", "false"):
            raise InvalidArgumentError(
                f"{name!r} cannot be a name in Glue, which has lower-case letters, digits and underscores; other "
                "programs may not find it. glue.skip-name-validation=true lets Glue decide"
            )
        return name

    # Pointers

    def load_pointer(self, identifier: IdentifierLike) -> str:
        """Return the location of the metadata file of a table."""
        return self._location_in(identifier, self._table(identifier).get("Parameters"))

    def add_pointer(self, identifier: IdentifierLike, metadata_location: str) -> None:
        """Add a table, unless there is one of this name."""
        database, name = self._names(identifier)
        with nothing_sent():
            table = self._input(self._checked(name), {}, metadata_location, None)
        self._add_table(database, table)

    def _add_table(self, database: str, table: dict[str, Any]) -> None:
        name = table["Name"]
        try:
            self._ask("create_table", DatabaseName=database, TableInput=table)
        except RefusedError as error:
            if error.repeated and self._is_at((database, name), table["Parameters"][LOCATION], error):
                return
            if error.code == _TAKEN:
                raise TableAlreadyExistsError(f"{database}.{name} already exists") from None
            if error.code == _MISSING:
                raise self._missing_database(database) from None
            raise CommitFailedException(str(error)) from error
        except CommitStateUnknownException as error:
            if not self._is_at((database, name), table["Parameters"][LOCATION], error):
                raise

    def swap_pointer(self, identifier: IdentifierLike, base: str, new: str) -> None:
        """Point a table at new metadata if it still points at ``base``, by the version that Glue has of it."""
        database, name = self._names(identifier)
        with nothing_sent():
            table = self._table(identifier)
            self._require_base(identifier, table.get("Parameters"), base)
            changed_table = self._input(name, table, new, base)
        if not (version := table.get("VersionId")):
            raise CommitFailedException(f"{database}.{name}: Glue gave no version of it, which a commit needs")
        try:
            self._ask(
                "update_table",
                DatabaseName=database,
                TableInput=changed_table,
                SkipArchive=self._is_set("glue.skip-archive", "true"),
                VersionId=version,
            )
        except RefusedError as error:
            if error.repeated and self._is_at(identifier, new, error):
                return
            lost = error.code == "ConcurrentModificationException"
            message = f"{database}.{name} was changed by another commit" if lost else str(error)
            raise CommitFailedException(message) from error

    def _input(self, name: str, table: Mapping[str, Any], new: str, base: str | None) -> dict[str, Any]:
        """Return a table as Glue takes it; what others have set in it stays."""
        metadata = self._metadata(new)
        previous = {PREVIOUS: base} if base else {}
        given: dict[str, Any] = {key: table[key] for key in _KEPT if key in table}
        if comment := metadata.properties.get("comment"):
            given["Description"] = comment[:2048]
        return {
            **given,
            "Name": name,
            "TableType": "EXTERNAL_TABLE",
            "Parameters": {**table.get("Parameters", {}), TABLE_TYPE: "ICEBERG", LOCATION: new, **previous},
            "StorageDescriptor": {
                **table.get("StorageDescriptor", {}),
                "Columns": _glue_columns(metadata, table.get("StorageDescriptor", {}).get("Columns") or ()),
                "Location": metadata.location,
            },
        }

    def remove_pointer(self, identifier: IdentifierLike) -> None:
        """Remove a table; its files stay."""
        database, name = self._names(identifier)
        self.load_pointer(identifier)  # what is not an Iceberg table stays
        try:
            self._ask("delete_table", DatabaseName=database, Name=name)
        except RefusedError as error:
            if error.code != _MISSING:
                raise
            if not error.repeated:
                raise self._missing_table((database,), name) from None

    def rename_pointer(self, old: IdentifierLike, new: IdentifierLike) -> None:
        """Rename a table, which is not one step: copy the entry, close the old one to commits, and delete it."""
        database, name = self._names(old)
        to_database, to_name = self._names(new)
        table = self._table(old)
        location = self._location_in(old, table.get("Parameters"))
        keys = ("Name", *_KEPT, "TableType", "Parameters", "StorageDescriptor")
        entry = {key: table[key] for key in keys if key in table}
        self._add_table(to_database, {**entry, "Name": self._checked(to_name)})
        # A commit to the old name would be deleted with it: from here on that name is no Iceberg table.
        closed = {**entry, "Parameters": {**entry["Parameters"], TABLE_TYPE: _RENAMED}}
        try:
            self._ask(
                "update_table", DatabaseName=database, TableInput=closed, SkipArchive=True, VersionId=table["VersionId"]
            )
        except (RefusedError, CommitStateUnknownException) as error:
            refused = error if isinstance(error, RefusedError) and not error.repeated else None
            if refused or not self._is_closed(database, name, new, error):
                left = self._undo(new, location)
                if refused and not left and refused.code == "ConcurrentModificationException":
                    msg = f"{database}.{name} was changed while it was renamed; rename it again"
                    raise CommitFailedException(msg) from error
                if refused and not left and refused.code == _MISSING:
                    raise self._missing_table((database,), name) from None
                raise StorageError(f"{database}.{name} was not renamed: {error}{left}") from error
        try:
            self._ask("delete_table", DatabaseName=database, Name=name)
        except (RefusedError, CommitStateUnknownException) as error:
            if isinstance(error, RefusedError) and error.code == _MISSING:
                return
            if isinstance(error, RefusedError) and not error.repeated:
                left = self._undo(new, location)
                if not left:
                    self._ask("update_table", DatabaseName=database, TableInput=entry, SkipArchive=True)
                raise StorageError(f"{database}.{name} was not renamed: {error}{left}") from error
            if self._is_closed(database, name, new, error):
                msg = f"{self._both(database, name, new)}; the old one is closed to commits and can be deleted: {error}"
                raise CommitStateUnknownException(msg) from error

    def _is_closed(self, database: str, name: str, new: IdentifierLike, error: Exception) -> bool:
        """Return whether the entry of a table is there and closed, after a change of it has an unknown outcome."""
        try:
            parameters = self._table((database, name)).get("Parameters", {})
        except NoSuchTableError:
            return False
        except IcefieldError as unread:
            msg = f"{self._both(database, name, new)}: {error}; {unread}"
            raise CommitStateUnknownException(msg) from error
        return bool(parameters.get(TABLE_TYPE) == _RENAMED)

    def _both(self, database: str, name: str, new: IdentifierLike) -> str:
        return f"{database}.{name} was copied to {'.'.join(self._names(new))}, and both may be there"

    def _undo(self, new: IdentifierLike, location: str) -> str:
        """Remove the copy of a table; return what is wrong if it stays."""
        copy = ".".join(self._names(new))
        try:
            if self.load_pointer(new) != location:
                return f"; its copy {copy} stays: it was changed meanwhile"
            self.remove_pointer(new)
        except NoSuchTableError:
            return ""
        except IcefieldError as error:
            return f"; its copy {copy} could not be removed: {error}"
        return ""

    def list_tables(self, namespace: IdentifierLike) -> list[Identifier]:
        """List the Iceberg tables of a database."""
        database = self._database(namespace)
        try:
            pages = list(self._service.pages("get_tables", **self._account(), DatabaseName=database))
        except RefusedError as error:
            if error.code == _MISSING:
                raise self._missing_database(database) from None
            raise
        tables = (table for page in pages for table in page["TableList"])
        return sorted((database, table["Name"]) for table in tables if self._is_iceberg(table.get("Parameters")))

    def _check_absent(self, identifier: IdentifierLike) -> None:
        self._checked(self._names(identifier)[1])
        super()._check_absent(identifier)

    def _table(self, identifier: IdentifierLike) -> dict[str, Any]:
        database, name = self._names(identifier)
        try:
            table: dict[str, Any] = self._read("get_table", DatabaseName=database, Name=name)["Table"]
        except RefusedError as error:
            if error.code == _MISSING:
                raise self._missing_table((database,), name) from None
            raise
        return table

    # Databases

    def list_namespaces(self, namespace: IdentifierLike = ()) -> list[Identifier]:
        """List the databases; below them there are none."""
        if namespace:
            self._load_database(self._database(namespace))
            return []
        pages = self._service.pages("get_databases", **self._account())
        return sorted((database["Name"],) for page in pages for database in page["DatabaseList"])

    def create_namespace(self, namespace: IdentifierLike, properties: Mapping[str, str] | None = None) -> None:
        """Create a database; the properties ``location`` and ``comment`` are its own in Glue."""
        database = self._checked(self._new_database(namespace))
        try:
            self._ask("create_database", DatabaseInput=_database_input(database, property_texts(properties)))
        except RefusedError as error:
            if error.code == _TAKEN and not error.repeated:
                raise NamespaceAlreadyExistsError(f"namespace {database} already exists") from None
            if error.code != _TAKEN:
                raise

    def drop_namespace(self, namespace: IdentifierLike) -> None:
        """Drop a database without tables."""
        database = self._database(namespace)
        self._load_database(database)
        # Pages may be empty before the last one: Lake Formation leaves out tables after Glue has made the pages.
        pages = self._service.pages("get_tables", **self._account(), DatabaseName=database)
        if (table := next((table for page in pages for table in page["TableList"]), None)) is not None:
            kind = "" if self._is_iceberg(table.get("Parameters")) else ", which is not an Iceberg table"
            raise NamespaceNotEmptyError(f"namespace {database} is not empty: it contains {table['Name']}{kind}")
        try:
            self._ask("delete_database", Name=database)
        except RefusedError as error:
            if not is_repeated(error, _MISSING):
                raise

    def load_namespace_properties(self, namespace: IdentifierLike) -> dict[str, str]:
        """Return the properties of a database."""
        found = self._load_database(self._database(namespace))
        own = {"location": found.get("LocationUri"), "comment": found.get("Description")}
        return {**found.get("Parameters", {}), **{key: value for key, value in own.items() if value}}

    def update_namespace_properties(
        self, namespace: IdentifierLike, removals: Iterable[str] | str = (), updates: Mapping[str, str] | None = None
    ) -> PropertiesUpdateSummary:
        """Remove and set properties of a database."""
        properties, summary = changed(self.load_namespace_properties(namespace), removals, updates)
        database = self._database(namespace)
        known = self._load_database(database)
        # What is left out would be reset, such as the permissions of Lake Formation.
        kept = {key: known[key] for key in ("CreateTableDefaultPermissions", "TargetDatabase") if key in known}
        self._ask("update_database", Name=database, DatabaseInput=kept | _database_input(database, properties))
        return summary

    def _load_database(self, name: str) -> dict[str, Any]:
        try:
            found: dict[str, Any] = self._read("get_database", Name=name)["Database"]
        except RefusedError as error:
            if error.code == _MISSING:
                raise self._missing_database(name) from None
            raise
        return found

    def _missing_database(self, name: str) -> NoSuchNamespaceError:
        return NoSuchNamespaceError(f"namespace {name} does not exist in catalog {self.name}")

    def close(self) -> None:
        """Close connections."""
        self._service.close()


def _database_input(name: str, properties: Mapping[str, str]) -> dict[str, Any]:
    parameters = dict(properties)
    # PyIceberg's name for it is that of Glue.
    own = {
        "LocationUri": parameters.pop("location", None),
        "Description": parameters.pop("comment", None) or parameters.pop("Description", None),
    }
    return {"Name": name, "Parameters": parameters, **{key: value for key, value in own.items() if value}}


def _glue_columns(metadata: TableMetadata, known: Iterable[Mapping[str, Any]] = ()) -> list[dict[str, Any]]:
    columns = []
    # Others may have described columns in Glue.
    comments = {str(column.get("Name")): str(column["Comment"]) for column in known if column.get("Comment")}
    for field, is_current in columns_of(metadata):
        column: dict[str, Any] = {
            "Name": field.name[:255],
            "Type": column_type(field.field_type)[:131072],
            "Parameters": {
                "iceberg.field.id": str(field.field_id),
                "iceberg.field.optional": str(field.optional).lower(),
                "iceberg.field.current": str(is_current).lower(),
            },
        }
        if comment := field.doc or comments.get(field.name[:255]):
            column["Comment"] = comment[:255]
        columns.append(column)
    return columns
