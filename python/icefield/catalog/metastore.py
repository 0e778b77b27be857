"""What catalogs of AWS and Hive have in common: databases of one level with tables, and columns beside the pointer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from icefield import types as iceberg
from icefield._core import TableState
from icefield._inputs.arguments import property_names, property_texts
from icefield._inputs.identifiers import Identifier, IdentifierLike, namespace_tuple, table_tuple
from icefield.catalog.base import PropertiesUpdateSummary
from icefield.catalog.pointer import PointerCatalog
from icefield.errors import (
    CommitFailedException,
    CommitStateUnknownException,
    IcefieldError,
    InvalidArgumentError,
    NoSuchIcebergTableError,
    NoSuchNamespaceError,
    NoSuchTableError,
)

if TYPE_CHECKING:
    from icefield._core import TableMetadata

__all__ = ["LOCATION", "PREVIOUS", "MetastoreCatalog", "changed", "column_type", "columns_of", "nothing_sent"]

#: Parameters of a table.
TABLE_TYPE = "table_type"
LOCATION = "metadata_location"
PREVIOUS = "previous_metadata_location"

_TYPES = {
    iceberg.BooleanType: "boolean",
    iceberg.IntegerType: "int",
    iceberg.LongType: "bigint",
    iceberg.FloatType: "float",
    iceberg.DoubleType: "double",
    iceberg.DateType: "date",
    iceberg.TimeType: "string",
    iceberg.StringType: "string",
    iceberg.UUIDType: "string",
    iceberg.TimestampType: "timestamp",
    iceberg.TimestamptzType: "timestamp",
    iceberg.TimestampNanoType: "timestamp",
    iceberg.TimestamptzNanoType: "timestamp",
    iceberg.FixedType: "binary",
    iceberg.BinaryType: "binary",
    iceberg.VariantType: "binary",
    iceberg.GeometryType: "binary",
    iceberg.GeographyType: "binary",
    iceberg.UnknownType: "void",
}


class MetastoreCatalog(PointerCatalog):
    """A catalog whose namespaces have one level, and whose tables are shown to other engines by their columns."""

    def _database(self, namespace: IdentifierLike) -> str:
        levels = namespace_tuple(namespace)
        if len(levels) != 1:
            name = ".".join(levels) or "the root"
            raise NoSuchNamespaceError(f"namespaces of catalog {self.name} have one level; {name} cannot exist")
        return levels[0]

    def _new_database(self, namespace: IdentifierLike) -> str:
        levels = namespace_tuple(namespace)
        if len(levels) != 1:
            name = repr(".".join(levels)) if levels else "the root"
            raise InvalidArgumentError(f"namespaces of catalog {self.name} have one level, so {name} cannot be created")
        return levels[0]

    def _is_at(self, identifier: IdentifierLike, location: str, error: Exception) -> bool:
        """Return whether a table points at this metadata file, after a change of it failed with an error.

        Raises
        ------
        CommitStateUnknownException
            If that cannot be determined: the change may have been made.

        """
        try:
            return self.load_pointer(identifier) == location
        except (NoSuchTableError, NoSuchNamespaceError):
            return False
        except IcefieldError as unread:
            msg = f"{error}; whether that changed the table cannot be found out: {unread}"
            raise CommitStateUnknownException(msg) from error

    def _names(self, identifier: IdentifierLike) -> tuple[str, str]:
        """Return the names of a database and a table in it."""
        namespace, name = table_tuple(identifier)
        if len(namespace) != 1:
            raise NoSuchTableError(
                f"table {'.'.join((*namespace, name))} cannot exist in catalog {self.name}: namespaces have one level"
            )
        return namespace[0], name

    def _metadata(self, location: str) -> TableMetadata:
        """Return the metadata that a commit has written, whose columns the catalog shows."""
        return TableState.load(self.storage, location).metadata

    def _is_iceberg(self, parameters: Mapping[str, str] | None) -> bool:
        return (parameters or {}).get(TABLE_TYPE, "").lower() == "iceberg"

    def _location_in(self, identifier: IdentifierLike, parameters: Mapping[str, str] | None) -> str:
        """Return the location of the metadata of a table by its parameters."""
        name = ".".join(self._names(identifier))
        parameters = parameters or {}
        if not self._is_iceberg(parameters):
            kind = parameters.get(TABLE_TYPE)
            found = f"its parameter {TABLE_TYPE} is {kind!r}" if kind else f"it has no parameter {TABLE_TYPE}"
            raise NoSuchIcebergTableError(f"{name} of catalog {self.name} is not an Iceberg table: {found}")
        if not (location := parameters.get(LOCATION)):
            raise NoSuchIcebergTableError(f"{name} of catalog {self.name} has no parameter {LOCATION}")
        return location

    def _require_base(self, identifier: IdentifierLike, parameters: Mapping[str, str] | None, base: str) -> None:
        if self._location_in(identifier, parameters) != base:
            raise CommitFailedException(f"{'.'.join(self._names(identifier))} was changed by another commit")

    def _folder_of(self, warehouse: str, namespace: Identifier) -> str:
        """Return the folder of a database, as Hive names it."""
        return f"{warehouse}/{self._database(namespace)}.db"


@contextmanager
def nothing_sent() -> Iterator[None]:
    """Turn errors into the error of a commit that was certainly not made."""
    try:
        yield
    except CommitFailedException:
        raise
    except IcefieldError as error:
        raise CommitFailedException(str(error)) from error


def changed(
    properties: Mapping[str, str], removals: Iterable[str] | str, updates: Mapping[str, str] | None
) -> tuple[dict[str, str], PropertiesUpdateSummary]:
    """Return the properties of a namespace after a change, and the summary of it.

    Raises
    ------
    InvalidArgumentError
        If a name is both removed and set.

    """
    removed, given = set(property_names(removals)), property_texts(updates)
    if both := sorted(removed & given.keys()):
        raise InvalidArgumentError(f"properties cannot be both removed and set: {', '.join(both)}")
    kept = {key: value for key, value in properties.items() if key not in removed}
    summary = PropertiesUpdateSummary(
        sorted(removed & properties.keys()), sorted(given), sorted(removed - properties.keys())
    )
    return {**kept, **given}, summary


def column_type(type: iceberg.Type, zoned: str = "timestamp") -> str:
    """Return the type that Hive has for a type; ``zoned`` is that of timestamps with a zone."""
    if isinstance(type, iceberg.StructType):
        return f"struct<{','.join(f'{each.name}:{column_type(each.field_type, zoned)}' for each in type.fields)}>"
    if isinstance(type, iceberg.ListType):
        return f"array<{column_type(type.element_type, zoned)}>"
    if isinstance(type, iceberg.MapType):
        return f"map<{column_type(type.key_type, zoned)},{column_type(type.value_type, zoned)}>"
    if isinstance(type, iceberg.DecimalType):
        return f"decimal({type.precision},{type.scale})"
    if isinstance(type, (iceberg.TimestamptzType, iceberg.TimestamptzNanoType)):
        return zoned
    return next((name for each, name in _TYPES.items() if isinstance(type, each)), "binary")


def columns_of(metadata: TableMetadata) -> list[tuple[iceberg.NestedField, bool]]:
    """Return the columns of all schemas by name, each with whether the current schema has it; those come first."""
    current = metadata.schema()
    found = {field.name: (field, True) for field in current.fields}
    for schema in metadata.schemas:
        for field in schema.fields:
            found.setdefault(field.name, (field, False))
    return list(found.values())
