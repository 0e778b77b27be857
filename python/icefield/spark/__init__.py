"""Iceberg tables in PySpark, without a jar.

::

    import icefield as ice, icefield.spark as ice_spark

    catalog = ice.load_catalog("local", uri="sqlite:///wh/catalog.db", warehouse="wh")
    table = catalog.load_table("nyc.flights")
    df = ice_spark.read(spark, table, filter="distance > 500", columns=["carrier", "distance"])
    ice_spark.append(df, table)

`read` and `append` plan and commit in the driver: they know the filter and the columns, and use Spark's own Parquet
reader where it is right. `write`, `delete`, `update`, `merge` and `upsert` change rows in the executors, and `compact`
rewrites files there. The data source ``spark.read.format("icefield")`` is the same code behind Spark's own interface
(`icefield.spark.source`). `register` makes it and the transforms (``icefield_bucket(16, id)``) known to a
session.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from icefield._support.optional import require

require("pyspark")
require("pyarrow")

from icefield.spark.sessions.workers import name_drivers_python  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from icefield.catalog import Catalog
    from icefield.spark import functions
    from icefield.spark.changing.compacting import compact
    from icefield.spark.changing.deleting import delete, update
    from icefield.spark.changing.merging import Merge, merge
    from icefield.spark.changing.overwriting import write
    from icefield.spark.changing.upserting import upsert
    from icefield.spark.columns.types import schema_of, spark_schema
    from icefield.spark.reads.changes import changes
    from icefield.spark.reads.explaining import Explanation, explain
    from icefield.spark.reads.inspecting import read_inspect
    from icefield.spark.reads.reading import read
    from icefield.spark.sinks.epochs import once
    from icefield.spark.source import register
    from icefield.spark.sql import SqlSession
    from icefield.spark.writes.writing import append

__all__ = [
    "Explanation",
    "Merge",
    "append",
    "changes",
    "compact",
    "delete",
    "explain",
    "functions",
    "merge",
    "once",
    "read",
    "read_inspect",
    "register",
    "schema_of",
    "session",
    "spark_schema",
    "update",
    "upsert",
    "write",
]


#: Where the names are: each of Spark's workers imports this package, and needs few of them.
_HOMES = {
    "Explanation": "reads.explaining",
    "Merge": "changing.merging",
    "append": "writes.writing",
    "changes": "reads.changes",
    "compact": "changing.compacting",
    "delete": "changing.deleting",
    "explain": "reads.explaining",
    "merge": "changing.merging",
    "once": "sinks.epochs",
    "read": "reads.reading",
    "read_inspect": "reads.inspecting",
    "register": "source",
    "schema_of": "columns.types",
    "spark_schema": "columns.types",
    "update": "changing.deleting",
    "upsert": "changing.upserting",
    "write": "changing.overwriting",
}

name_drivers_python()


def __getattr__(name: str) -> object:
    if name == "functions":
        return import_module("icefield.spark.functions")
    if name not in _HOMES:
        raise AttributeError(f"module 'icefield.spark' has no attribute {name!r}", name=name)
    found: object = getattr(import_module(f"icefield.spark.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def session(spark: SparkSession, catalogs: Mapping[str, Catalog | Mapping[str, str]] | None = None) -> SqlSession:
    """Return a session for SQL about tables of icefield: ``session.sql("SELECT * FROM local.nyc.flights")``.

    Parameters
    ----------
    spark
        The session of Spark.
    catalogs
        Catalogs by the names that they have in SQL: open ones, or properties as `icefield.load_catalog` takes them.
        Those of the settings ``spark.sql.catalog.NAME`` are there too, where that is ``icefield`` or the class
        ``org.apache.iceberg.spark.SparkCatalog`` that Spark does not have.

    """
    made: SqlSession = require("icefield.spark.sql").SqlSession(spark, catalogs)
    return made
