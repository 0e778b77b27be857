"""Tables by name, moments of their history, and both as the options of a data source."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone, tzinfo
from difflib import get_close_matches
from inspect import signature
from time import monotonic
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from icefield.catalog import Catalog, load_catalog
from icefield.catalog.known import is_catalog_property
from icefield.errors import (
    ArgumentTypeError,
    IcefieldError,
    InvalidArgumentError,
    NotFoundError,
    UnsupportedFeatureError,
)
from icefield.expressions import AlwaysFalse
from icefield.inspect import InspectTable
from icefield.micro_batches import MicroBatches
from icefield.scan import TableScan
from icefield.scan.moments import Moment, instant_of
from icefield.scan.options import split_of
from icefield.spark.columns.names import selector
from icefield.spark.tables.options import check, find, write_properties
from icefield.table import Table
from icefield.table.branches import BranchWork

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icefield.expressions import RowFilter

__all__ = ["SourceOptions", "keywords_of", "moment_of", "opened", "session_zone"]


def keywords_of(function: Callable[..., object]) -> list[str]:
    """Return the names of the keyword arguments of a function."""
    parameters = signature(function).parameters.values()
    return [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]


def opened(
    table: Table | str, catalog: str | None, properties: Mapping[str, str], arguments: Sequence[str] = ()
) -> Table:
    """Return a table, opening it if given by name.

    Parameters
    ----------
    table
        A table, or ``"namespace.name"``.
    catalog, properties
        The catalog of a name, as `icefield.load_catalog` takes it.
    arguments
        Names of the keywords of the caller, for the error about a mistyped one.

    """
    for name in properties:
        # An option of the read or the write that is taken for a property of the catalog would have no effect.
        if not is_catalog_property(name):
            nearest = get_close_matches(name, arguments, 1)
            hint = f"; did you mean {nearest[0]}?" if nearest else ""
            raise InvalidArgumentError(f"{name} is neither an argument nor a catalog property{hint}")
    if isinstance(table, Table):
        if given := [*(["catalog"] if catalog is not None else []), *properties]:
            raise InvalidArgumentError(
                f"{', '.join(given)}: the catalog and its properties apply only when table is a name, not a Table"
            )
        return table
    if isinstance(table, BranchWork):
        # Taken for a table, main would be read or written, unnoticed.
        raise ArgumentTypeError(
            f"expected a table, got its branch {table.name!r}: pass the table, with as_of={table.name!r} to read the "
            f"branch, branch={table.name!r} to write to it"
        )
    return load_catalog(catalog, **properties).load_table(table)


def moment_of(spark: SparkSession, as_of: int | str | datetime | None) -> Moment:
    """Return the selected snapshot: an id, a time (without a zone: in the session's), or a branch or tag."""
    if as_of is None:
        return {}
    if isinstance(as_of, datetime):
        return {"as_of": as_of if as_of.tzinfo else as_of.replace(tzinfo=session_zone(spark))}
    return {"ref": as_of} if isinstance(as_of, str) else {"snapshot_id": as_of}


def session_zone(spark: SparkSession) -> tzinfo:
    """Return the time zone of the session (``spark.sql.session.timeZone``).

    Raises
    ------
    InvalidArgumentError
        If Python does not know the zone.

    """
    name = str(spark.conf.get("spark.sql.session.timeZone"))
    offset = re.fullmatch(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?", name)
    if offset is not None:
        sign, hours, minutes, seconds = offset.groups(default="0")
        length = timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds))
        return timezone(-length if sign == "-" else length)
    try:
        return timezone.utc if name in {"Z", "UTC"} else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        msg = f"unknown session time zone {name!r}: pass as_of with a time zone"
        raise InvalidArgumentError(msg) from None


#: Catalogs that are kept, with the time since when, by their names and properties; for how many seconds, and how many.
_KEPT: dict[tuple[object, ...], tuple[float, Catalog]] = {}
_KEPT_FOR, _MOST_KEPT = 300.0, 4
#: Prefix of options that become entries of the summary of the written snapshot, as in Java.
_SUMMARY = "snapshot-property."
#: Prefix that Spark adds to the options of a CREATE TABLE of its own catalog.
_IN_SPARK = "option."
#: The snapshots after which and up to which changes are read.
_RANGE = ("start-snapshot-id", "end-snapshot-id")
#: The same by times instead of snapshots.
_TIMES = ("start-timestamp", "end-timestamp")
#: Options that split a scan into tasks.
_SPLIT = ("split-size", "lookback", "file-open-cost")
#: Options of streams, of no effect on other reads.
_STREAM = (
    "stream-from-timestamp",
    "streaming-max-files-per-micro-batch",
    "streaming-max-rows-per-micro-batch",
    "streaming-skip-delete-snapshots",
    "streaming-skip-overwrite-snapshots",
)
#: Options by what the last part of a name selects.
_SELECTED = {"branch": "branch", "tag": "tag", "snapshot_id": "snapshot-id", "at_timestamp": "as-of-timestamp"}
#: Options that do not choose a snapshot.
_NO_MOMENT = frozenset({"path", "catalog", "push-filters", *_SPLIT, *_RANGE, *_TIMES, *_STREAM})
#: Options that select what is read.
_OWN = frozenset({*_NO_MOMENT, "snapshot-id", "versionasof", "as-of-timestamp", "timestampasof", "branch", "tag"})
#: Properties of catalogs that hold no credentials.
_OPEN = frozenset({"type", "warehouse"})
#: Suffix of the name of a table that selects its changelog, as in Java.
CHANGES = "changes"


@dataclass(frozen=True)
class SourceOptions:
    """The options of ``format("icefield")``.

    ``path`` (what ``load`` and ``save`` are given) names the table and ``catalog`` the catalog. ``snapshot-id`` or
    ``versionAsOf``, ``as-of-timestamp`` (milliseconds) or ``timestampAsOf`` (seconds, or text with a time
    zone: Spark does not say which one the session has), ``branch``, ``tag`` choose a snapshot, ``split-size`` the bytes
    of a task. ``start-snapshot-id`` reads what was appended after a snapshot, up to
    ``end-snapshot-id`` or the current one; of a changelog ``start-timestamp`` and ``end-timestamp`` (milliseconds) can
    stand in their place. ``push-filters=true`` skips files by the filters of a query, where
    ``spark.sql.python.filterPushdown.enabled`` is set too; see `pushes_filters`. ``snapshot-property.NAME`` is an entry
    of the summary of the snapshot that is written; Spark hands its name over in lower case. ``idempotency-key`` makes a
    write once: a snapshot of the branch that has it is not made again. ``memory-limit`` is for one task: bytes of what
    it decodes at a time, or of rows that wait to be written. Options of Java's connector
    are honoured or refused (`icefield.spark.tables.options`); what is left are properties of the catalog: ``uri``,
    ``warehouse``, ``s3.*``. Other names are refused.

    Behind the name of a table may stand that of a metadata table (``db.t.files``), ``changes`` for the changelog, or
    what selects a snapshot: ``branch_b``, ``tag_x``, ``snapshot_id_1``, ``at_timestamp_1`` (milliseconds). A table of
    that very name goes before.
    """

    table: str
    catalog: str | None
    own: Mapping[str, str]
    properties: Mapping[str, str] = field(repr=False)
    summary: Mapping[str, str] = field(default_factory=dict)
    #: All options that were given.
    given: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, options: Mapping[str, str]) -> SourceOptions:
        """Parse the options that Spark passes."""
        lowered = {name.lower(): value for name, value in options.items()}
        table = lowered.get("path")
        if not table or any(name.startswith(_IN_SPARK) for name in lowered):
            raise InvalidArgumentError(
                'format("icefield") requires the name of a table: load("namespace.name"), or CREATE TEMPORARY VIEW v '
                "USING icefield OPTIONS (path 'namespace.name'); CREATE TABLE ... USING icefield and saveAsTable are "
                "not supported, because Spark does not pass their options on: create tables with create_table of a "
                "catalog"
            )
        if "/" in table:
            raise UnsupportedFeatureError(
                f"the path of a table is not supported, got {table!r}: load it by its name, with the options "
                "type=hadoop and warehouse, the folder above its namespace"
            )
        catalog = {name: value for name, value in lowered.items() if find(name) is None}
        own = {name: value for name, value in lowered.items() if name in _OWN}
        summary = {name.removeprefix(_SUMMARY): lowered[name] for name in lowered if name.startswith(_SUMMARY)}
        # ``branch_b``, ``tag_x`` and so on after the name of the table are as the options of the same meaning.
        name, _, last = table.rpartition(".")
        chosen = selector(last) if "." in name else None
        found = cls(table, lowered.get("catalog"), own, catalog, summary, lowered)
        if chosen is None or found.exists():
            return found
        if others := sorted(set(own) - _NO_MOMENT):
            raise InvalidArgumentError(f"{table} selects a snapshot, and so does the option {others[0]}")
        return replace(found, table=name, own={**own, _SELECTED[chosen[0]]: chosen[1]})

    def exists(self) -> bool:
        """Return whether there is a table of exactly this name."""
        try:
            self.open()
        except NotFoundError:
            return False
        return True

    def reading(self) -> SourceOptions:
        """Return these options, checked for a read."""
        check(self.given, "read")
        return self

    def writing(self) -> SourceOptions:
        """Return these options, checked for a write."""
        check(self.given, "write")
        if set(self.own) & {*_SELECTED.values()} - {"branch"}:
            raise InvalidArgumentError(f"{self.given['path']} can only be read: write to a table or a branch of it")
        return self

    def streaming(self) -> SourceOptions:
        """Return these options, checked for the write of a stream."""
        check(self.given, "write", stream=True)
        return self

    def metadata_moment(self) -> Moment:
        """Return the snapshot of a metadata table; options that do not apply to it are refused."""
        if given := [name for name in (*_RANGE, *_TIMES, *_SPLIT) if name in self.own]:
            raise InvalidArgumentError(f"metadata tables have no option {', '.join(given)}")
        return self.moment()

    def write_properties(self, table: Table) -> dict[str, str]:
        """Return the table properties that these options set for a write."""
        return write_properties(self.given, table.properties.get("write.format.default", "parquet"))

    def open(self) -> Table:
        """Open the table."""
        return opened(self.table, self.catalog, self.properties)

    def open_again(self) -> Table:
        """Open the table by a catalog that this process keeps for some minutes.

        Spark asks for a writer twice with every batch of a stream, in processes that live for many batches. Without
        this each of them would log in to the catalog again.
        """
        key = (self.catalog, *sorted(self.properties.items()))
        if key in _KEPT and monotonic() < _KEPT[key][0] + _KEPT_FOR:
            # If its login is no longer valid, a new one may be, because the configuration file was changed.
            with suppress(IcefieldError):
                return _KEPT[key][1].load_table(self.table)
        table = self.open()
        if isinstance(table.catalog, Catalog):
            if len(_KEPT) >= _MOST_KEPT:
                _KEPT.clear()
            _KEPT[key] = monotonic(), table.catalog
        return table

    def target(self) -> tuple[Table, str | None]:
        """Open the table; also return the name of its metadata table, or `CHANGES`, if that is to be read."""
        try:
            return self.open(), None
        except NotFoundError:
            name, _, what = self.table.rpartition(".")
            if "." not in name or what.lower() not in (*InspectTable.names, CHANGES):
                raise
        return opened(name, self.catalog, self.properties), what.lower()

    def scan(
        self, table: Table, what: str | None, row_filter: RowFilter | None, columns: tuple[str, ...] = ("*",)
    ) -> TableScan:
        """Return the scan of a table, or of its changes."""
        given = [name for name in (*_RANGE, *_TIMES) if name in self.own]
        if what != CHANGES and not given:
            return table.scan(row_filter, columns, **self.moment())
        if what != CHANGES and not set(given).isdisjoint(_TIMES):
            raise InvalidArgumentError(f"{' and '.join(_TIMES)} apply only to changelogs: load the table's changes")
        if what != CHANGES and given == ["end-snapshot-id"]:
            raise InvalidArgumentError("end-snapshot-id requires start-snapshot-id")
        if set(self.own) - {*_NO_MOMENT, "branch"}:
            raise InvalidArgumentError(
                "pass either the option of one snapshot, or start-snapshot-id and end-snapshot-id"
            )
        for pair in zip(_RANGE, _TIMES, strict=True):
            if set(pair) <= set(given):
                raise InvalidArgumentError(f"cannot set both {pair[0]} and {pair[1]} for changelogs")
        branch = self.own.get("branch")
        start, end, start_ms, end_ms = (
            _number(name, self.own[name]) if name in given else None for name in (*_RANGE, *_TIMES)
        )
        between = table.metadata.snapshots_between(
            branch=branch,
            start_snapshot_id=start,
            start_timestamp_ms=start_ms,
            end_snapshot_id=end,
            end_timestamp_ms=end_ms,
        )
        read = table.incremental_changelog_scan if what == CHANGES else table.incremental_append_scan
        first, last = between or (None, None)
        return read(
            row_filter=AlwaysFalse() if between is None else row_filter,
            selected_fields=columns,
            from_snapshot_id_exclusive=first,
            to_snapshot_id_inclusive=last,
            branch=branch,
        )

    @property
    def idempotency_key(self) -> str | None:
        """The key by which a write is made once."""
        return self.given.get("idempotency-key")

    def number(self, name: str) -> int | None:
        """Return an option that is an integer, if it is given."""
        return _number(name, self.given[name]) if name in self.given else None

    def says(self, *names: str) -> bool:
        """Return whether one of these options is true."""
        for name in names:
            text = self.given.get(name, "false").lower()
            if text not in {"true", "false"}:
                raise InvalidArgumentError(f"option {name}: expected true or false, got {text!r}")
            if text == "true":
                return True
        return False

    @property
    def memory_limit(self) -> int | None:
        """The memory of a task, in bytes."""
        name = "memory-limit"
        limit = self.number(name)
        if limit is not None and limit <= 0:
            raise InvalidArgumentError(f"option {name}: expected a positive integer, got {limit}")
        return limit

    @property
    def may_have_secrets(self) -> bool:
        """Whether the properties of the catalog may hold what only the driver may know."""
        return any(
            name not in _OPEN and not (name == "uri" and value.startswith("sqlite:///"))
            for name, value in self.properties.items()
        )

    @property
    def pushes_filters(self) -> bool:
        """Whether filters of a query may skip files: only safe for a DataFrame that a single query reads once.

        Spark (4.1 to 4.3, ``PythonDataSourceV2.readInfo``) keeps what a Python source has planned with the filters of
        one query for all other queries on the same DataFrame, and for both sides of a join of it with itself: they
        would lose rows. So it must be enabled for each DataFrame; ``icefield.spark.read(filter=...)`` does not
        need it.
        """
        return self._flag("push-filters")

    def _flag(self, name: str) -> bool:
        text = self.own.get(name, "false").lower()
        if text not in ("true", "false"):
            raise InvalidArgumentError(f"option {name}: expected true or false, got {text!r}")
        return text == "true"

    def stream(self, table: Table) -> MicroBatches:
        """Return a table as a stream; options that choose a snapshot or a range are refused."""
        known = {"path", "catalog", "branch", *_SPLIT, *_STREAM}
        if given := sorted(set(self.own) - known):
            raise InvalidArgumentError(f"a stream has no option {', '.join(given)}: it begins by stream-from-timestamp")
        from_timestamp, skip_deletes, skip_overwrites = _STREAM[0], *_STREAM[3:]
        return table.micro_batches(
            from_timestamp=self._integer(from_timestamp),
            skip_delete_snapshots=self._flag(skip_deletes),
            skip_overwrite_snapshots=self._flag(skip_overwrites),
            branch=self.branch,
        )

    @property
    def stream_limits(self) -> tuple[int | None, int | None]:
        """The limits of files and rows of a micro-batch, if there are any."""
        limits = (self._integer(_STREAM[1]), self._integer(_STREAM[2]))
        for name, limit in zip(_STREAM[1:3], limits, strict=True):
            if limit is not None and limit <= 0:
                raise InvalidArgumentError(f"option {name}: expected a positive integer, got {limit}")
        return limits

    def _integer(self, name: str) -> int | None:
        return _number(name, self.own[name]) if name in self.own else None

    @property
    def branch(self) -> str | None:
        """The branch that is written to, if one is named."""
        return self.own.get("branch")

    @property
    def split(self) -> dict[str, int]:
        """How the scan is split into tasks, as the core takes it."""
        return dict(split_of({name: self.own[name] for name in _SPLIT if name in self.own}))

    def moment(self) -> Moment:
        """Return the snapshot that is to be read."""
        given = [name for name in self.own if name not in _NO_MOMENT]
        if len(given) > 1:
            raise InvalidArgumentError(f"pass only one option that selects a snapshot, got {', '.join(sorted(given))}")
        if not given:
            return {}
        name, text = given[0], self.own[given[0]]
        if name in {"branch", "tag"}:
            return {"ref": text}
        if name == "as-of-timestamp":
            return {"as_of": _number(name, text)}
        if name == "timestampasof":
            return {"as_of": _moment(text)}
        if name == "versionasof" and not text.lstrip("-").isdecimal():
            return {"ref": text}
        return {"snapshot_id": _number(name, text)}


def _number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidArgumentError(f"option {name}: expected an integer, got {text!r}") from None


def _moment(text: str) -> datetime:
    """Parse a time: text with an offset, or seconds from the epoch as Spark's ``TIMESTAMP AS OF`` has them.

    Spark reads text without an offset in the session's time zone, which a data source does not know: it is refused.
    """
    if text.isdecimal():
        return datetime.fromtimestamp(int(text), timezone.utc)
    return instant_of(text, "option timestampAsOf")
