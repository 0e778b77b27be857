"""Apache Iceberg tables in Python, on a Rust core.

Importing this package imports neither pyarrow nor pyspark nor SQLAlchemy: each is loaded by what needs it.
"""

from __future__ import annotations

from icefield import catalog, errors, expressions, inspect, manifests, orc, puffin, transforms, types, values, variant
from icefield._core import __version__, murmur3_32
from icefield._inputs.secrets import Secret
from icefield.catalog import Catalog, list_catalogs, load_catalog
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
    "errors",
    "expressions",
    "inspect",
    "list_catalogs",
    "load_catalog",
    "manifests",
    "murmur3_32",
    "orc",
    "puffin",
    "transforms",
    "types",
    "values",
    "variant",
]
