"""Settings of a session that Java's connector reads, ``spark.sql.iceberg.*``: what each means here.

Every setting is honoured, has no effect that could be missed, or is refused by the write that it is about.
``docs/from-the-connector.md`` lists them, from `SETTINGS`. `icefield.spark.sessions.audit` has ``spark.wap.*``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal
from weakref import WeakKeyDictionary

from icefield._support.hints import nearest_name
from icefield.errors import InvalidArgumentError, UnsupportedFeatureError
from icefield.spark.sessions.session import is_classic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icefield.table import Table

__all__ = ["SETTINGS", "Setting", "WriteDefaults", "write_defaults"]

PREFIX = "spark.sql.iceberg."


@dataclass(frozen=True)
class Setting:
    """A setting, and how it is treated."""

    name: str
    effect: Literal["honoured", "harmless", "refused"]
    why: str
    #: Values of a refused setting that ask for what is done anyway.
    allowed: tuple[str, ...] = ()


def _settings(effect: Literal["honoured", "harmless", "refused"], why: str, *names: str) -> list[Setting]:
    return [Setting(name, effect, why) for name in names]


#: The settings of the connector, without ``spark.sql.iceberg.`` in front.
SETTINGS: tuple[Setting, ...] = (
    *_settings("honoured", "How writes bring rows together: none, hash or range.", "distribution-mode"),
    *_settings(
        "honoured", "Of the files that writes make.", "compression-codec", "compression-level", "compression-strategy"
    ),
    *_settings("honoured", "Entries of the summary of each snapshot.", "snapshot-property."),
    Setting("merge-schema", "refused", 'pass schema_mode="evolve", or the option mergeSchema', ("false",)),
    *_settings("honoured", "Of the Parquet files that writes make.", "shred-variants", "variant-inference-buffer-size"),
    *_settings("harmless", "Reading is always in batches.", "vectorization.enabled"),
    *_settings("harmless", "A null in a required column is refused where it is met.", "check-nullability"),
    *_settings("harmless", "Columns are found by name, in any order.", "check-ordering"),
    *_settings("harmless", "The driver plans every scan.", "data-planning-mode", "delete-planning-mode"),
    *_settings("harmless", "Spark joins small partitions of a write itself.", "advisory-partition-size"),
    *_settings(
        "harmless",
        "Tasks are packed by the table's properties read.split.*.",
        "read.split-size",
        "read.adaptive-split-size.enabled",
        "read.adaptive-split-size.parallelism",
    ),
    *_settings("harmless", "Spark does not hear of identifier fields.", "identifier-fields-rely"),
    *_settings("harmless", "Of views in catalogs.", "view.schema-binding-mode"),
    *_settings("harmless", "Spark places the tasks itself.", "locality.enabled"),
    *_settings("harmless", "Joins by partition are shuffles.", "planning.preserve-data-grouping"),
    *_settings("harmless", "Spark aggregates the rows itself.", "aggregate-push-down.enabled"),
    *_settings("harmless", "Spark sees the sizes of files, not statistics of columns.", "report-column-stats"),
    *_settings("harmless", "A micro-batch is planned when Spark asks for it.", "async-micro-batch-planning-enabled"),
    *_settings("harmless", "Each task reads the delete files of its own rows.", "executor-cache."),
)
_EXACT = {one.name: one for one in SETTINGS if not one.name.endswith(".")}
_PREFIXES = tuple(one for one in SETTINGS if one.name.endswith("."))
_SUMMARY = "snapshot-property."
_COMPRESSION = ("compression-codec", "compression-level", "compression-strategy")
_SHREDDING = ("shred-variants", "variant-inference-buffer-size")


@dataclass(frozen=True)
class WriteDefaults:
    """What the settings of a session say of its writes."""

    distribution: str | None = None
    #: Values of ``compression-*`` by their names.
    compression: Mapping[str, str] = field(default_factory=dict)
    #: Values of how Parquet files shred variants, by their names.
    shredding: Mapping[str, str] = field(default_factory=dict)
    #: Entries of the snapshot's summary.
    summary: Mapping[str, str] = field(default_factory=dict)

    def properties(self, table: Table) -> dict[str, str]:
        """Return the table properties that the settings replace in a write."""
        kind = table.properties.get("write.format.default", "parquet").lower()
        has = ("compression-codec", "compression-strategy" if kind == "orc" else "compression-level")
        compression = {f"write.{kind}.{name}": value for name, value in self.compression.items() if name in has}
        return {**compression, **{f"write.parquet.{name}": value for name, value in self.shredding.items()}}


def write_defaults(spark: SparkSession) -> WriteDefaults:
    """Return what the settings of a session say of its writes.

    Raises
    ------
    UnsupportedFeatureError
        If a setting asks for what writes do not do; the message says what to do.
    InvalidArgumentError
        If a name is nearly that of a setting.

    """
    return defaults_of(_found(spark))


def defaults_of(found: Mapping[str, str]) -> WriteDefaults:
    """Return what settings say of writes; ``found`` has them by their names without ``spark.sql.iceberg.``."""
    for name, value in found.items():
        setting = _EXACT.get(name)
        if setting is None:
            if not any(name.startswith(one.name) for one in _PREFIXES):
                _refuse_alike(name)
        elif setting.effect == "refused" and value.strip().lower() not in setting.allowed:
            raise UnsupportedFeatureError(f"{PREFIX}{name}={value} is not supported: {setting.why}")
    return WriteDefaults(
        found.get("distribution-mode"),
        {name: found[name] for name in _COMPRESSION if name in found},
        {name: found[name] for name in _SHREDDING if name in found},
        {name.removeprefix(_SUMMARY): value for name, value in found.items() if name.startswith(_SUMMARY)},
    )


def _refuse_alike(name: str) -> None:
    """Refuse a name close to a known one: others are of newer connectors, or of other programs."""
    nearest = nearest_name(name, list(_EXACT))
    if nearest is not None:
        raise InvalidArgumentError(f"unknown setting {PREFIX}{name}; did you mean {PREFIX}{nearest}?")


_KNOWN: WeakKeyDictionary[SparkSession, tuple[int, dict[str, str]]] = WeakKeyDictionary()


def _found(spark: SparkSession) -> dict[str, str]:
    """Return the settings that begin with the prefix, asking for all of them only after a change."""
    if not is_classic(spark):
        return _own(spark.conf.getAll.items())
    settings = spark._jsparkSession.sessionState().conf().settings()  # noqa: SLF001
    version = int(settings.hashCode())
    known = _KNOWN.get(spark)
    if known is None or known[0] != version:
        known = _KNOWN[spark] = version, _own(dict(settings).items())
    return known[1]


def _own(settings: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {key.removeprefix(PREFIX): value for key, value in settings if key.startswith(PREFIX)}
