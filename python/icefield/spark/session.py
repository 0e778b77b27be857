"""The private session in which Spark's own Parquet reader matches columns by field id.

The reader looks at ``spark.sql.parquet.fieldId.read.enabled`` when a frame runs, in the session that made the frame, so
the setting cannot be turned on and off around a read. A session of our own has it always; frames born there go over to
the user's session, where temporary views and ``spark.sql`` see them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["adopted", "is_classic", "reader_session", "reads_scheme"]

_SETTINGS = {
    "spark.sql.parquet.fieldId.read.enabled": "true",
    # More paths than this are listed by a Spark job of up to 10,000 tasks; the paths are files already.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.caseSensitive": "true",
    # Days before 1582 are Iceberg's own calendar, whoever wrote the file.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    # Of texts that are read as bytes, Spark reckons that a row of the files is 100 bytes a column and one of the frame
    # 20, and would broadcast tables five times as large as it is told to.
    "spark.sql.sources.fileCompressionFactor": "5.0",
}
#: What of the user's session decides about the meaning of a filter.
_COPIED = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled", "spark.sql.files.maxPartitionBytes")

_sessions: WeakKeyDictionary[SparkSession, SparkSession] = WeakKeyDictionary()


def is_classic(spark: SparkSession) -> bool:
    """Say whether the session runs in this process and not behind Spark Connect."""
    return hasattr(spark, "_jsparkSession")


def reader_session(spark: SparkSession) -> SparkSession:
    """Give the private session beside a user's session."""
    session = _sessions.get(spark)
    if session is None:
        session = spark.newSession()
        for name, value in _SETTINGS.items():
            session.conf.set(name, value)
        _sessions[spark] = session
    for name in _COPIED:
        session.conf.set(name, str(spark.conf.get(name)))
    return session


def reads_scheme(spark: SparkSession, scheme: str) -> bool:
    """Say whether this Spark's Hadoop has a file system for a scheme of URLs."""
    from py4j.protocol import Py4JError

    context = spark.sparkContext
    try:
        found = context._jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(  # type: ignore[union-attr]  # noqa: SLF001
            scheme,
            context._jsc.hadoopConfiguration(),  # noqa: SLF001
        )
    except Py4JError:
        return False
    return found is not None


def adopted(spark: SparkSession, frame: DataFrame) -> DataFrame:
    """Give a frame of the private session to the user's session: its plan as it is, with the private reader within."""
    from py4j.java_gateway import JavaClass
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

    # By name, without a call for each package on the way.
    dataset = JavaClass("org.apache.spark.sql.classic.Dataset", spark.sparkContext._gateway._gateway_client)  # type: ignore[union-attr]  # noqa: SLF001
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001
    return ClassicDataFrame(dataset.ofRows(spark._jsparkSession, plan), spark)  # noqa: SLF001
