"""Options of ``format("icefield")``: those of Java's connector and our own, and how each is treated.

An option is honoured, ignored if that does no harm, or refused. ``docs/properties.md`` is generated from this list.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from icefield._support.hints import nearest_name
from icefield.catalog.known import is_catalog_property
from icefield.errors import InvalidArgumentError, UnsupportedFeatureError

__all__ = ["OPTIONS", "Option", "check", "write_properties"]

Use = Literal["read", "write", "both"]


@dataclass(frozen=True)
class Option:
    """An option, what it applies to, and how it is treated."""

    name: str
    use: Use
    effect: Literal["honoured", "harmless", "refused"]
    why: str = ""
    #: Accepted values of an otherwise refused option: they request the only supported behaviour.
    allowed: tuple[str, ...] = ()


def _options(use: Use, effect: Literal["honoured", "harmless", "refused"], why: str, *names: str) -> list[Option]:
    return [Option(name, use, effect, why) for name in names]


_PLANNED = "A micro-batch is planned when Spark asks for it."
_DELETES = "Of the delete files of mode('overwrite') with overwrite-filter."

#: All known options.
OPTIONS: tuple[Option, ...] = (
    *_options("both", "honoured", "", "path", "catalog", "branch", "memory-limit"),
    *_options("read", "honoured", "", "snapshot-id", "versionAsOf", "as-of-timestamp", "timestampAsOf", "tag"),
    *_options("read", "honoured", "", "start-snapshot-id", "end-snapshot-id", "start-timestamp", "end-timestamp"),
    *_options("read", "honoured", "", "split-size", "lookback", "file-open-cost", "push-filters"),
    *_options("read", "harmless", "Reading is always in batches, of a size that it chooses.", "vectorization-enabled"),
    *_options("read", "harmless", "Reading is always in batches, of a size that it chooses.", "batch-size"),
    *_options("read", "harmless", "Spark places the tasks of Python data sources itself.", "locality"),
    *_options(
        "read", "harmless", "Spark aggregates the rows of Python data sources itself.", "aggregate-push-down-enabled"
    ),
    *_options("read", "honoured", "", "stream-from-timestamp", "streaming-max-files-per-micro-batch"),
    *_options("read", "honoured", "", "streaming-max-rows-per-micro-batch", "streaming-skip-delete-snapshots"),
    *_options("read", "honoured", "", "streaming-skip-overwrite-snapshots"),
    *_options("read", "harmless", _PLANNED, "streaming-snapshot-polling-interval-ms"),
    *_options("read", "harmless", _PLANNED, "async-micro-batch-planning-enabled", "async-queue-preload-file-limit"),
    *_options("read", "harmless", _PLANNED, "async-queue-preload-row-limit"),
    *_options("write", "honoured", "", "snapshot-property.", "target-file-size-bytes", "write-format"),
    *_options("write", "honoured", "", "idempotency-key", "mergeSchema", "merge-schema"),
    *_options("write", "honoured", "Of mode('overwrite') and INSERT OVERWRITE.", "overwrite-mode", "overwrite-filter"),
    *_options("write", "honoured", "Of mode('overwrite') and INSERT OVERWRITE.", "isolation-level"),
    *_options("write", "honoured", "With isolation-level only, as in Java.", "validate-from-snapshot-id"),
    *_options("write", "honoured", "", "compression-codec", "compression-level", "compression-strategy"),
    Option(
        "distribution-mode",
        "write",
        "refused",
        "rows stay where Spark has them; icefield.spark.append brings the rows of a partition together",
        ("none",),
    ),
    Option(
        "use-table-distribution-and-ordering",
        "write",
        "refused",
        "files are always in the table's sort order",
        ("true",),
    ),
    Option("output-spec-id", "write", "refused", "files have the table's current partition spec"),
    Option("output-sort-order-id", "write", "refused", "files have the table's current sort order"),
    *_options(
        "write",
        "harmless",
        "Appends of streams merge manifests as all do: by commit.manifest-merge.enabled.",
        "use-merge-append-for-streaming",
    ),
    *_options("write", "harmless", "Spark's own: where it keeps the progress of a stream.", "checkpointLocation"),
    *_options("write", "honoured", "Of Parquet files.", "shred-variants", "variant-inference-buffer-size"),
    *_options("write", "honoured", _DELETES, "delete-format", "delete-granularity", "target-delete-file-size-bytes"),
    *_options("write", "harmless", "A null in a required column is refused where it is met.", "check-nullability"),
    *_options("write", "harmless", "Columns are found by name, in any order.", "check-ordering"),
    *_options("write", "harmless", "A task keeps files of many partitions open, in bounded memory.", "fanout-enabled"),
    *_options("write", "harmless", "Rows are not shuffled by the data source.", "advisory-partition-size"),
)

_KNOWN = {option.name.lower(): option for option in OPTIONS}
_SUMMARY = "snapshot-property."
#: Options of a write, and the table properties that they set for it.
_PROPERTIES = {
    "target-file-size-bytes": "write.target-file-size-bytes",
    "write-format": "write.format.default",
    "delete-format": "write.delete.format.default",
    "delete-granularity": "write.delete.granularity",
    "target-delete-file-size-bytes": "write.delete.target-file-size-bytes",
    "compression-codec": "write.{}.compression-codec",
    "compression-level": "write.{}.compression-level",
    "compression-strategy": "write.{}.compression-strategy",
    "shred-variants": "write.parquet.shred-variants",
    "variant-inference-buffer-size": "write.parquet.variant-inference-buffer-size",
}


#: Options of writes that a stream cannot have, and why.
_NOT_OF_STREAMS = {
    "idempotency-key": "the batches of a stream have keys of their own, of the query and the batch",
    **dict.fromkeys(
        ("overwrite-mode", "overwrite-filter", "isolation-level", "validate-from-snapshot-id"),
        "a stream appends rows, or replaces all rows in complete mode",
    ),
}


def find(name: str) -> Option | None:
    """Return the option of this name, case-insensitively; ``None`` for a catalog property.

    Raises
    ------
    InvalidArgumentError
        If it is neither.

    """
    if (found := _KNOWN.get(name.lower())) is not None:
        return found
    if name.startswith(_SUMMARY) and len(name) > len(_SUMMARY):
        return _KNOWN[_SUMMARY]
    spelt = re.sub(r"[-_.]", "", name.lower())
    for option in OPTIONS:
        # Before properties of the catalog: as one of those, it would silently read another snapshot.
        if re.sub(r"[-_.]", "", option.name.lower()) == spelt:
            raise InvalidArgumentError(f"unknown option {name}; did you mean {option.name}?")
    if is_catalog_property(name):
        return None
    nearest = nearest_name(name, [option.name for option in OPTIONS])
    hint = f"; did you mean {nearest}?" if nearest else ": options are those of docs/properties.md"
    raise InvalidArgumentError(f'unknown option {name} of format("icefield"){hint}')


def check(given: Mapping[str, str], use: Literal["read", "write"], *, stream: bool = False) -> None:
    """Refuse options that do not apply to a read or a write, or that cannot be honoured.

    Parameters
    ----------
    given
        Options and their values.
    use
        What they are given for.
    stream
        Whether it is a stream that is written.

    Raises
    ------
    InvalidArgumentError, UnsupportedFeatureError
        It names the option, its value, and why.

    """
    if stream and (one := next((name for name in _NOT_OF_STREAMS if name in given), None)) is not None:
        raise InvalidArgumentError(f"option {one}={given[one]}: {_NOT_OF_STREAMS[one]}")
    for name, value in given.items():
        option = find(name)
        if option is None:
            continue
        if option.use not in ("both", use):
            other = "writes" if option.use == "write" else "reads"
            raise InvalidArgumentError(f"option {option.name}={value} applies to {other}, not to a {use}")
        if option.effect == "refused" and value.lower() not in option.allowed:
            raise UnsupportedFeatureError(f"option {option.name}={value}: {option.why}")


def write_properties(given: Mapping[str, str], file_format: str) -> dict[str, str]:
    """Return the table properties that the options of a write set for it; ``file_format`` is the table's."""
    kind = given.get("write-format", file_format).lower()
    return {_PROPERTIES[name].format(kind): value for name, value in given.items() if name in _PROPERTIES}
