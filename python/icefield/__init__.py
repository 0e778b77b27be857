"""Apache Iceberg tables in Python, on a Rust core.

Importing this package loads next to nothing: each name is loaded when it is first used, and neither pyarrow nor
pyspark nor SQLAlchemy is loaded before something needs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from icefield import (
        catalog,
        errors,
        expressions,
        inspect,
        maintenance,
        manifests,
        orc,
        puffin,
        transforms,
        types,
        values,
        variant,
    )
    from icefield._core import __version__, murmur3_32
    from icefield._inputs.secrets import Secret
    from icefield.catalog import Catalog, list_catalogs, load_catalog
    from icefield.differences import diff
    from icefield.errors import (
        AlreadyExistsError,
        CommitFailedException,
        CommitStateUnknownException,
        CorruptDataError,
        IcefieldError,
        InvalidArgumentError,
        MissingFileError,
        NamespaceAlreadyExistsError,
        NamespaceNotEmptyError,
        NoSuchCatalogError,
        NoSuchIcebergTableError,
        NoSuchNamespaceError,
        NoSuchPropertyException,
        NoSuchTableError,
        NotFoundError,
        NotInstalledError,
        StorageError,
        TableAlreadyExistsError,
        UnsupportedFeatureError,
        ValidationError,
        ValidationException,
    )
    from icefield.manifests import DataFile, DeleteFile
    from icefield.metadata import Snapshot, SnapshotRef, TableMetadata
    from icefield.name_mapping import MappedField, NameMapping
    from icefield.partitioning import PartitionField, PartitionSpec
    from icefield.puffin import DeletionVector
    from icefield.schema import Schema
    from icefield.sorting import SortField, SortOrder
    from icefield.table import Table
    from icefield.types import NestedField
    from icefield.variant import Variant

__all__ = [
    "AlreadyExistsError",
    "Catalog",
    "CommitFailedException",
    "CommitStateUnknownException",
    "CorruptDataError",
    "DataFile",
    "DeleteFile",
    "DeletionVector",
    "IcefieldError",
    "InvalidArgumentError",
    "MappedField",
    "MissingFileError",
    "NameMapping",
    "NamespaceAlreadyExistsError",
    "NamespaceNotEmptyError",
    "NestedField",
    "NoSuchCatalogError",
    "NoSuchIcebergTableError",
    "NoSuchNamespaceError",
    "NoSuchPropertyException",
    "NoSuchTableError",
    "NotFoundError",
    "NotInstalledError",
    "PartitionField",
    "PartitionSpec",
    "Schema",
    "Secret",
    "Snapshot",
    "SnapshotRef",
    "SortField",
    "SortOrder",
    "StorageError",
    "Table",
    "TableAlreadyExistsError",
    "TableMetadata",
    "UnsupportedFeatureError",
    "ValidationError",
    "ValidationException",
    "Variant",
    "__version__",
    "catalog",
    "diff",
    "errors",
    "expressions",
    "inspect",
    "list_catalogs",
    "load_catalog",
    "maintenance",
    "manifests",
    "murmur3_32",
    "orc",
    "puffin",
    "transforms",
    "types",
    "values",
    "variant",
]

#: The module of each name that is not a module itself.
_HOMES = {
    "__version__": "icefield._core",
    "murmur3_32": "icefield._core",
    "Secret": "icefield._inputs.secrets",
    "Catalog": "icefield.catalog",
    "list_catalogs": "icefield.catalog",
    "load_catalog": "icefield.catalog",
    "diff": "icefield.differences",
    "AlreadyExistsError": "icefield.errors",
    "CommitFailedException": "icefield.errors",
    "CommitStateUnknownException": "icefield.errors",
    "CorruptDataError": "icefield.errors",
    "IcefieldError": "icefield.errors",
    "InvalidArgumentError": "icefield.errors",
    "MissingFileError": "icefield.errors",
    "NamespaceAlreadyExistsError": "icefield.errors",
    "NamespaceNotEmptyError": "icefield.errors",
    "NoSuchCatalogError": "icefield.errors",
    "NoSuchIcebergTableError": "icefield.errors",
    "NoSuchNamespaceError": "icefield.errors",
    "NoSuchPropertyException": "icefield.errors",
    "NoSuchTableError": "icefield.errors",
    "NotFoundError": "icefield.errors",
    "NotInstalledError": "icefield.errors",
    "StorageError": "icefield.errors",
    "TableAlreadyExistsError": "icefield.errors",
    "UnsupportedFeatureError": "icefield.errors",
    "ValidationError": "icefield.errors",
    "ValidationException": "icefield.errors",
    "DataFile": "icefield.manifests",
    "DeleteFile": "icefield.manifests",
    "Snapshot": "icefield.metadata",
    "SnapshotRef": "icefield.metadata",
    "TableMetadata": "icefield.metadata",
    "MappedField": "icefield.name_mapping",
    "NameMapping": "icefield.name_mapping",
    "PartitionField": "icefield.partitioning",
    "PartitionSpec": "icefield.partitioning",
    "DeletionVector": "icefield.puffin",
    "Schema": "icefield.schema",
    "SortField": "icefield.sorting",
    "SortOrder": "icefield.sorting",
    "Table": "icefield.table",
    "NestedField": "icefield.types",
    "Variant": "icefield.variant",
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        found: object = getattr(import_module(_HOMES[name]), name)
    elif name.startswith("_"):
        raise AttributeError(f"module 'icefield' has no attribute {name!r}", name=name)
    else:
        try:
            found = import_module(f"icefield.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"icefield.{name}":
                raise
            raise AttributeError(f"module 'icefield' has no attribute {name!r}", name=name) from None
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
