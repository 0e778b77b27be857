"""CALL system.migrate: a table of Spark's own catalog becomes one of Iceberg, with the same files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from icefield.errors import (
    CommitStateUnknownException,
    InvalidArgumentError,
    NoSuchTableError,
    UnsupportedFeatureError,
)
from icefield.spark.changing.conditions import items_of
from icefield.spark.columns.types import iceberg_schema
from icefield.spark.sessions.session import is_classic
from icefield.spark.sql.literals import quoted_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icefield.catalog import Catalog
    from icefield.distributed import Storage

__all__ = ["migrate"]

_FORMATS = ("parquet", "orc", "avro")
_LOCAL = re.compile(r"^file:/+")


@dataclass(frozen=True)
class _Source:
    """A table of Spark's own catalog."""

    name: str
    location: str
    columns: tuple[str, ...]
    #: Folders of its partitions; of a table without partitions its own.
    folders: tuple[str, ...]


def migrate(spark: SparkSession, catalog: Catalog, name: tuple[str, ...], arguments: Mapping[str, object]) -> int:
    """Make a table of Iceberg of a table of Spark's catalog with the same name, and rename that one.

    Parameters
    ----------
    spark, catalog
        The session, and the catalog that gets the table.
    name
        The namespace and the name of both tables.
    arguments
        Those of the procedure.

    Returns
    -------
    int
        The number of files, which stay where they are.

    Raises
    ------
    NoSuchTableError, TableAlreadyExistsError
        If there is no such table in Spark's catalog, or there is one in the other.
    UnsupportedFeatureError
        If the files of the table are not its own alone, or are of another format; the message says what to do.

    """
    source = _source(spark, name)
    backup = cast("str", arguments.get("backup_table_name", f"{name[-1]}_BACKUP_"))
    kept = _of_spark(name[0], backup)
    if spark.catalog.tableExists(kept):
        raise InvalidArgumentError(f"migrate: the backup would be {kept}, which exists: pass another backup_table_name")
    paths = _files(catalog.storage, source)
    schema = iceberg_schema(spark.table(source.name).schema.toNullable())
    properties = cast("Mapping[str, str]", arguments.get("properties", {}))
    with catalog.create_table_transaction(
        name,
        schema,
        location=source.location,
        partition_by=list(source.columns),
        properties={"migrated": "true", **properties},
    ) as made:
        if paths:
            made.add_files(paths)
        spark.sql(f"ALTER TABLE {source.name} RENAME TO {quoted_name(name[0], backup)}")
        try:
            made.commit_transaction()
        except CommitStateUnknownException:
            raise
        except BaseException:
            spark.sql(f"ALTER TABLE {kept} RENAME TO {quoted_name(*name)}")
            raise
    if arguments.get("drop_backup"):
        spark.sql(f"DROP TABLE {kept}")
    return len(paths)


def _of_spark(*parts: str) -> str:
    return quoted_name("spark_catalog", *parts)


def _source(spark: SparkSession, name: tuple[str, ...]) -> _Source:
    """Find the table, and refuse what its files do not say."""
    if not is_classic(spark):
        raise UnsupportedFeatureError(
            "migrate is not supported through Spark Connect, which does not tell where tables lie: call it in a "
            "session of this process, or call snapshot with the folder"
        )
    own = _of_spark(*name)
    if len(name) != 2 or not spark.catalog.tableExists(own):  # noqa: PLR2004 - a namespace and a table
        raise NoSuchTableError(f"migrate: Spark's own catalog has no table {'.'.join(name)}")
    state = spark._jsparkSession.sessionState()  # noqa: SLF001
    tables, utils = state.catalog(), spark._jvm.org.apache.spark.sql.catalyst.catalog.CatalogUtils  # type: ignore[union-attr]  # noqa: SLF001
    identifier = state.sqlParser().parseTableIdentifier(quoted_name(*name))
    table = tables.getTableMetadata(identifier)
    kind, provider = str(table.tableType().name()), table.provider()
    form = str(provider.get()).lower() if provider.isDefined() else ""
    if form not in _FORMATS:
        raise UnsupportedFeatureError(
            f"migrate: {own} is a table of {form or kind}, not of {', '.join(_FORMATS)}: insert its rows into a new "
            "table"
        )
    if kind != "EXTERNAL":
        raise UnsupportedFeatureError(
            f"migrate: {own} is managed by Spark, which deletes its files with it: make an external table of the "
            "folder first, or insert its rows into a new table"
        )
    location = str(utils.URIToString(table.location()))
    columns = tuple(map(str, items_of(table.partitionColumnNames())))
    if not columns:
        return _Source(own, location, columns, (location,))
    if not table.tracksPartitionsInCatalog():
        raise UnsupportedFeatureError(
            f"migrate: Spark does not keep the partitions of {own}: run MSCK REPAIR TABLE {own} first"
        )
    parts = items_of(tables.listPartitions(identifier, spark._jvm.scala.Option.empty()))  # type: ignore[union-attr]  # noqa: SLF001
    return _Source(own, location, columns, tuple(str(utils.URIToString(one.location())) for one in parts))


def _files(storage: Storage, source: _Source) -> list[str]:
    """Return the data files of the table, and refuse those of its folder that it does not have, and others."""
    root, folders = _canonical_path(source.location), {_canonical_path(one) for one in source.folders}
    if outside := sorted(one for one in folders if one != root and not one.startswith(f"{root}/")):
        raise UnsupportedFeatureError(
            f"migrate: the partition in {outside[0]} is not below {source.location}, the folder of {source.name}: "
            "move it there, or insert the rows into a new table"
        )
    found = []
    for path, size in storage.list(source.location):
        below = _canonical_path(path).removeprefix(f"{root}/")
        if not size or any(part.startswith(("_", ".")) and "=" not in part for part in below.split("/")):
            continue
        if _canonical_path(path).rpartition("/")[0] not in folders:
            raise UnsupportedFeatureError(
                f"migrate: {path} is in no partition that {source.name} has: add it (MSCK REPAIR TABLE), or move it "
                "away"
            )
        found.append(path)
    return found


def _canonical_path(path: str) -> str:
    """Return a path in one of the spellings that the same file has."""
    return _LOCAL.sub("/", path).rstrip("/")
