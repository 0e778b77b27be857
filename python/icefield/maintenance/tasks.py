"""The tasks of a policy: whether each is due, and how it is done."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from icefield._outputs.layout import age_of, counted, size_of, time_of
from icefield.errors import InvalidArgumentError
from icefield.procedures import call

if TYPE_CHECKING:
    from icefield.catalog import Catalog
    from icefield.maintenance.policy import Settings
    from icefield.maintenance.report import TaskState
    from icefield.table import Table

__all__ = ["LAST_ORPHAN_REMOVAL", "RUNNERS", "Outcome"]

#: The table property with the time of the last removal of orphan files by a policy, in milliseconds from the epoch.
LAST_ORPHAN_REMOVAL: Final = "icefield.maintenance.last-orphan-removal-ms"

_WEEK_MS = 7 * 86_400_000
_MANIFEST_COUNT, _MANIFEST_BYTES = 100, 8 << 20


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a task."""

    state: TaskState
    message: str
    files: int = 0
    bytes: int = 0
    added_files: int = 0
    commits: int = 0


_Runner: TypeAlias = "Callable[[Catalog, Table, Settings, bool], Outcome]"


def _state(dry_run: bool) -> TaskState:
    return "planned" if dry_run else "done"


def _commits(before: int | None, table: Table) -> int:
    """Return the number of snapshots that were made since the one with a sequence number."""
    return sum(one.sequence_number > (before or 0) for one in table.snapshots())


def _convert(_: Catalog, table: Table, settings: Settings, dry_run: bool) -> Outcome:
    content = table.inspect.delete_files().select(["content", "file_size_in_bytes"]).to_pydict()
    sizes = [
        size
        for kind, size in zip(content["content"], content["file_size_in_bytes"], strict=True)
        if kind == 2  # noqa: PLR2004 - equality deletes
    ]
    least = cast("int", settings.get("min-files", 1))
    if len(sizes) < least:
        return Outcome("not due", f"{counted(len(sizes), 'equality delete file')}, due from {least:,} on")
    done = table.maintenance.convert_equality_deletes(dry_run=dry_run)
    files = done.converted_delete_files_count + done.replaced_delete_files_count
    message = (
        f"{counted(done.converted_delete_files_count, 'equality delete file')} with {done.deleted_rows_count:,} rows"
    )
    commits = int(done.snapshot_id is not None)
    return Outcome(_state(dry_run), message, files, sum(sizes), done.added_delete_files_count, commits)


def _compact(_: Catalog, table: Table, settings: Settings, dry_run: bool) -> Outcome:
    arguments: dict[str, Any] = {
        "strategy": settings.get("strategy"),
        "sort_order": settings.get("sort-order"),
        "options": settings.get("options"),
    }
    planned = table.maintenance.compact(**arguments, dry_run=True)
    files, of = planned.rewritten_data_files_count, _data_files(table)
    least, share = cast("int | None", settings.get("min-files")), cast("float | None", settings.get("min-share"))
    # Either suffices; without both, anything to rewrite does.
    due = (least is not None and files >= least) or (share is not None and files >= share * max(of, 1))
    if not files or not (due or (least is None and share is None)):
        return Outcome("not due", f"{files:,} of {counted(of, 'data file')} to rewrite")
    done = planned if dry_run else table.maintenance.compact(**arguments)
    message = f"{counted(done.rewritten_data_files_count, 'data file')} to {done.added_data_files_count:,}"
    if done.failures:
        return Outcome(
            "failed",
            f"{message}; {counted(done.failed_data_files_count, 'data file')} failed: {'; '.join(done.failures)}",
            done.rewritten_data_files_count,
            done.rewritten_bytes_count,
            done.added_data_files_count,
            len(done.snapshot_ids),
        )
    return Outcome(
        _state(dry_run),
        message,
        done.rewritten_data_files_count + done.removed_delete_files_count,
        done.rewritten_bytes_count,
        done.added_data_files_count,
        len(done.snapshot_ids),
    )


def _data_files(table: Table) -> int:
    snapshot = table.current_snapshot()
    total = None if snapshot is None or snapshot.summary is None else snapshot.summary.get("total-data-files")
    return int(total) if total and total.isdigit() else table.inspect.data_files().num_rows


def _rewrite_positions(_: Catalog, table: Table, settings: Settings, dry_run: bool) -> Outcome:
    options = cast("Mapping[str, object] | None", settings.get("options"))
    planned = table.maintenance.rewrite_position_deletes(options=options, dry_run=True)
    found, least = planned.rewritten_delete_files_count, cast("int", settings.get("min-files", 1))
    if found < least:
        return Outcome("not due", f"{counted(found, 'position delete file')} to rewrite")
    done = planned if dry_run else table.maintenance.rewrite_position_deletes(options=options)
    message = (
        f"{counted(done.rewritten_delete_files_count, 'position delete file')} to {done.added_delete_files_count:,}"
    )
    state: TaskState = _state(dry_run)
    if done.failures:
        state, message = "failed", f"{message}; {'; '.join(done.failures)}"
    return Outcome(
        state,
        message,
        done.rewritten_delete_files_count,
        done.rewritten_bytes_count,
        done.added_delete_files_count,
        len(done.snapshot_ids),
    )


def _dangling(_: Catalog, table: Table, __: Settings, dry_run: bool) -> Outcome:
    done = table.maintenance.remove_dangling_deletes(dry_run=True)
    if not done.delete_files:
        return Outcome("not due", "no delete file without a data file")
    content = table.inspect.delete_files().select(["file_path", "file_size_in_bytes"]).to_pydict()
    sizes = dict(zip(content["file_path"], content["file_size_in_bytes"], strict=True))
    if not dry_run:
        done = table.maintenance.remove_dangling_deletes()
    size = sum(sizes.get(path, 0) for path in done.delete_files)
    message = f"{counted(len(done.delete_files), 'delete file')} that applied to no data file"
    return Outcome(_state(dry_run), message, len(done.delete_files), size, 0, int(done.snapshot_id is not None))


def _manifests(catalog: Catalog, table: Table, settings: Settings, dry_run: bool) -> Outcome:
    found = table.inspect.manifests().select(["length", "partition_spec_id", "content"]).to_pydict()
    spec_id = table.metadata.default_spec_id
    each = zip(found["length"], found["partition_spec_id"], found["content"], strict=True)
    sizes = [size for size, spec, content in each if (spec, content) == (spec_id, 0)]
    least = cast("int", settings.get("min-count")) or _number(
        table, "commit.manifest.min-count-to-merge", _MANIFEST_COUNT
    )
    target = _number(table, "commit.manifest.target-size-bytes", _MANIFEST_BYTES)
    needed = max(1, -(-sum(sizes) // max(target, 1)))
    # Manifests that are as large as they should be stay many.
    if len(sizes) < max(least, 2) or needed * 2 > len(sizes):
        return Outcome("not due", f"{counted(len(sizes), 'manifest')} of data, due from {least:,} on")
    if dry_run:
        return Outcome("planned", f"{counted(len(sizes), 'manifest')} to {needed:,}", len(sizes), sum(sizes), needed)
    before = table.metadata.last_sequence_number
    row = call(catalog, "rewrite_manifests", table=table.name()).to_pylist()[0]
    table.refresh()
    rewritten, added = row["rewritten_manifests_count"], row["added_manifests_count"]
    message = f"{counted(rewritten, 'manifest')} to {added:,}"
    return Outcome("done", message, rewritten, sum(sizes), added, _commits(before, table))


def _number(table: Table, name: str, default: int) -> int:
    text = table.properties.get(name, str(default))
    try:
        return int(text)
    except ValueError:
        raise InvalidArgumentError(f"table property {name!r}: expected an integer, got {text!r:.40}") from None


def _statistics(_: Catalog, table: Table, settings: Settings, dry_run: bool) -> Outcome:
    snapshot = table.current_snapshot()
    if snapshot is None:
        return Outcome("not due", "the table has no rows")
    made = {one["snapshot-id"] for one in json.loads(table.metadata_json()).get("statistics", [])}
    every = cast("int", settings.get("every", _WEEK_MS))
    if snapshot.snapshot_id in made:
        return Outcome("not due", "the current snapshot has statistics")
    since = max((one.timestamp_ms for one in table.snapshots() if one.snapshot_id in made), default=None)
    if since is not None and snapshot.timestamp_ms - since < every:
        return Outcome("not due", f"the statistics of {time_of(since)} are recent")
    if dry_run:
        for column in cast("Sequence[str]", settings.get("columns", ())):
            table.schema().find_field(column)
        return Outcome("planned", "distinct values would be counted", added_files=1)
    columns = cast("tuple[str, ...] | None", settings.get("columns"))
    done = table.maintenance.compute_table_stats(columns)
    counts = "" if done is None else ", ".join(f"{name}: {number:,}" for name, number in done.distinct.items())
    return Outcome("done", f"distinct values: {counts}", added_files=1, commits=1)


def _expire(_: Catalog, table: Table, settings: Settings, dry_run: bool) -> Outcome:
    if not _may_delete(table):
        return _KEPT
    older = cast("int | None", settings.get("older-than"))
    arguments: dict[str, Any] = {
        "older_than": None if older is None else timedelta(milliseconds=older),
        "retain_last": settings.get("retain-last"),
        "clean_expired_metadata": bool(settings.get("clean-expired-metadata", False)),
    }
    done = table.expire_snapshots(**arguments, dry_run=True)
    if not (done.snapshot_ids or done.refs):
        return Outcome("not due", f"none of {counted(len(table.snapshots()), 'snapshot')} expires")
    if not dry_run:
        done = table.expire_snapshots(**arguments)
    message = counted(len(done.snapshot_ids), "snapshot")
    message += f", the branches and tags {', '.join(done.refs)}" if done.refs else ""
    state: TaskState = _state(dry_run)
    if done.failures:
        failed = f"{counted(done.failures, 'file')} could not be read or deleted: {'; '.join(done.first_failures)}"
        state, message = "failed", f"{message} expired; {failed}"
    return Outcome(state, message, len(done.deleted_files), done.bytes, 0, int(not dry_run))


def _orphans(_: Catalog, table: Table, settings: Settings, dry_run: bool) -> Outcome:
    if not _may_delete(table):
        return _KEPT
    now = datetime.now(timezone.utc)
    last, every = table.properties.get(LAST_ORPHAN_REMOVAL, ""), cast("int", settings.get("every", _WEEK_MS))
    now_ms = int(now.timestamp() * 1000)
    if last.isascii() and last.isdigit() and now_ms - every < int(last) <= now_ms:
        return Outcome("not due", f"done at {time_of(int(last))}, due every {age_of(every)}")
    older = cast("int | None", settings.get("older-than"))
    since = None if older is None else now - timedelta(milliseconds=older)
    done = table.maintenance.remove_orphans(since, dry_run=dry_run)
    message = f"{counted(len(done.files), 'orphan file')} of {size_of(done.bytes)} in {done.listed:,} listed"
    if done.failures:
        left = f"{counted(done.failures, 'file')} not deleted: {'; '.join(done.first_failures)}"
        return Outcome("failed", f"{message}; {left}", len(done.files), done.bytes)
    if not dry_run:
        table.update_properties({LAST_ORPHAN_REMOVAL: str(now_ms)})
    return Outcome(_state(dry_run), message, len(done.files), done.bytes, 0, int(not dry_run))


_KEPT = Outcome("skipped", "the table has gc.enabled=false: its files may belong to others")


def _may_delete(table: Table) -> bool:
    return table.properties.get("gc.enabled", "true").lower() != "false"


#: How each task is done.
RUNNERS: Final[Mapping[str, _Runner]] = {
    "convert-equality-deletes": _convert,
    "compact": _compact,
    "rewrite-position-deletes": _rewrite_positions,
    "remove-dangling-deletes": _dangling,
    "rewrite-manifests": _manifests,
    "statistics": _statistics,
    "expire-snapshots": _expire,
    "remove-orphans": _orphans,
}
