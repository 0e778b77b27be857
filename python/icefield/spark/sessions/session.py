"""The private session in which Spark's own Parquet reader matches columns by field id.

The reader looks at ``spark.sql.parquet.fieldId.read.enabled`` when a frame runs, in the session that made the frame, so
the setting cannot be turned on and off around a read. The private session always has it; frames created there are moved
to the user's session, where temporary views and ``spark.sql`` see them. What the user sets in a session for file
systems, Parquet and files counts in the private one too.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import types as st

__all__ = ["ReaderSession", "adopted", "at_once", "estimated_bytes", "finds_source", "is_classic", "reads_scheme"]

#: Settings that rows depend on: both readers of a scan must return the same.
_SETTINGS = {
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.parquet.fieldId.read.ignoreMissing": "false",
    # A file that is missing or damaged is an error to icefield's reader; see `ReaderSession.parquet`.
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    # More paths than this are listed by a Spark job of up to 10,000 tasks; the paths are files already.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.caseSensitive": "true",
    # Days before 1582 are Iceberg's own calendar, no matter which engine wrote the file.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
}
#: Settings that the user may set otherwise.
_DEFAULTS = {
    # Vectors of ten columns that stay in the second-level cache: 1 to 3 % of a full read.
    "spark.sql.parquet.columnarReaderBatchSize": "2048",
    # For strings that are read as bytes, Spark estimates that a row of the files is 100 bytes a column and one of the
    # frame 20, and would broadcast tables five times as large as configured.
    "spark.sql.sources.fileCompressionFactor": "5.0",
}
#: Session settings that change how filters are evaluated.
_COPIED = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled")
#: Beginnings of settings of Spark that change how files are read; those of Hadoop do not begin with ``spark.``.
_OF_FILES = ("spark.sql.parquet.", "spark.sql.files.", "spark.sql.legacy.parquet.")

#: Relations that a private session keeps, and the most files of one that it keeps.
_KEPT, _KEPT_FILES = 16, 10_000


def is_classic(spark: SparkSession) -> bool:
    """Return whether the session runs in this process, not through Spark Connect."""
    return hasattr(spark, "_jsparkSession")


def at_once(spark: SparkSession) -> int | None:
    """Return how many tasks a session runs at a time; None where it is in another process."""
    return spark.sparkContext.defaultParallelism if is_classic(spark) else None


def estimated_bytes(frame: DataFrame) -> int | None:
    """Return about the bytes of rows, as Spark's optimizer estimates them; None where it is in another process."""
    if not is_classic(frame.sparkSession):
        return None
    return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))  # noqa: SLF001


class ReaderSession:
    """The private session beside a user's session."""

    _known: ClassVar[WeakKeyDictionary[SparkSession, ReaderSession]] = WeakKeyDictionary()

    def __init__(self, spark: SparkSession) -> None:
        self._session = spark.newSession()
        #: What the session has as Spark started it, and the settings that differ now.
        self._first = _settings(self._session)
        self._settings: dict[str, str] = {}
        #: The settings of the user's session when they were last copied, by their hash.
        self._copied: int | None = None
        self._relations: OrderedDict[tuple[str, ...], JavaObject] = OrderedDict()

    @classmethod
    def of(cls, spark: SparkSession) -> ReaderSession:
        """Return the reader session of ``spark``, with that session's current settings."""
        found = cls._known.get(spark)
        if found is None:
            found = cls._known[spark] = cls(spark)
        found.follow(spark)
        return found

    def follow(self, spark: SparkSession) -> None:
        """Take over the settings of the user's session that matter to the reader of files."""
        settings = _java_settings(spark)
        # One call instead of one for each setting: this is asked with every read.
        version = int(settings.hashCode())
        if version == self._copied:
            return
        own = dict(settings)
        wanted = {name: own[name] for name in own if _is_of_files(name) and own[name] != self._first.get(name)}
        wanted.update({name: str(spark.conf.get(name)) for name in _COPIED})
        self.set_conf({**_DEFAULTS, **wanted, **_SETTINGS})
        self._copied = version

    def set_conf(self, settings: dict[str, str]) -> None:
        """Change the settings of the session that differ, and those back that were set before."""
        conf = self._session._jsparkSession.sessionState().conf()  # noqa: SLF001
        for name in self._settings.keys() - settings.keys():
            if name in self._first:
                conf.setConfString(name, self._first[name])
            else:
                conf.unsetConf(name)
        for name, value in settings.items():
            if self._settings.get(name) != value:
                conf.setConfString(name, value)
        self._settings = settings

    def parquet(self, schema: st.StructType, urls: Sequence[str]) -> DataFrame:
        """Read Parquet files that never change, as Spark's reader does.

        Spark looks up its reader and lists the files for 10 ms each time. The relation of the same files and columns is
        kept, as Spark keeps those of its own catalog's tables; a frame has a new instance of it, so that frames of one
        table can be joined.
        """
        key = (schema.json(), *urls)
        relation = self._relations.pop(key, None)
        if relation is None:
            # Of these two Spark asks the session that runs the query, unless the reader has them.
            reader = self._session.read.schema(schema).options(ignoreMissingFiles="false", ignoreCorruptFiles="false")
            if all(url.startswith("file:") for url in urls):
                # Vectored reads have no benefit on a local disk, and cost 2 % of a full read.
                reader = reader.option("parquet.hadoop.vectored.io.enabled", "false")
            frame = reader.parquet(*urls)
            relation = frame._jdf.queryExecution().analyzed()  # noqa: SLF001
        else:
            frame = _frame(self._session, relation.newInstance())
        if len(urls) <= _KEPT_FILES:
            self._relations[key] = relation
            if len(self._relations) > _KEPT:
                self._relations.popitem(last=False)
        return frame


def _java_settings(spark: SparkSession) -> JavaObject:
    return spark._jsparkSession.sessionState().conf().settings()  # noqa: SLF001


def _settings(spark: SparkSession) -> dict[str, str]:
    return dict(_java_settings(spark))


def _is_of_files(name: str) -> bool:
    return name.startswith(_OF_FILES) or not name.startswith("spark.")


def finds_source(spark: SparkSession, name: str) -> bool:
    """Return whether a session has a data source of this name, discovered or registered; False if unknown."""
    from py4j.protocol import Py4JError

    if not is_classic(spark):
        return False
    try:
        sources = spark._jsparkSession.sessionState().dataSourceManager()  # noqa: SLF001
        return bool(sources.dataSourceExists(name))
    except Py4JError:
        return False


def reads_scheme(spark: SparkSession, scheme: str) -> bool:
    """Return whether this Spark's Hadoop has a file system for a scheme of URLs."""
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
    """Move a frame of the private session to the user's session, keeping its plan and the private reader."""
    return _frame(spark, frame._jdf.queryExecution().analyzed())  # noqa: SLF001


def _frame(spark: SparkSession, plan: JavaObject) -> DataFrame:
    from py4j.java_gateway import JavaClass
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

    # By name, which saves one call per package.
    dataset = JavaClass("org.apache.spark.sql.classic.Dataset", spark.sparkContext._gateway._gateway_client)  # type: ignore[union-attr]  # noqa: SLF001
    return ClassicDataFrame(dataset.ofRows(spark._jsparkSession, plan), spark)  # noqa: SLF001
