"""Changes that lose against others: each conflict is an error that names what is in the way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_bad_changes import Given, changing, described, rows, vector

import icefield as ice
from icefield.errors import ValidationException

#: What another writer commits, the change that was planned before it, and what the refusal says.
Race = tuple[Callable[[ice.Table], object], Callable[[Given, int], object], str]


def delta(given: Given, start: int) -> Any:
    return changing(given, "row_delta").validate_from_snapshot(start)


def overwriting(given: Given, start: int, at: int = 0) -> Any:
    change = changing(given, "overwrite").validate_from_snapshot(start)
    file = given.data_file(at)
    partition = given.files()[at]["partition"]["p"]
    return change.delete_data_file(file).append_data_file(described("memory://a/b.parquet", partition))


def replacing(given: Given, start: int) -> Any:
    return changing(given, "replace_partitions").validate_from_snapshot(start).append_data_file(described())


def rewriting(given: Given, start: int) -> Any:
    change = changing(given, "rewrite_files").validate_from_snapshot(start)
    return change.delete_data_file(file_x(given)).add_data_file(described("memory://a/b.parquet"))


CONFLICTS: dict[str, Race] = {
    "an append to what is deleted": (
        lambda other: other.append(rows(11)),
        lambda a, start: delta(a, start).add_rows(described()).validate_no_conflicting_data_files().commit(),
        "row delta: snapshot .*append.* added the data file .*parquet",
    ),
    "an append of rows of the filter": (
        lambda other: other.append(rows(11)),
        lambda a, start: (
            delta(a, start)
            .add_rows(described())
            .conflict_detection_filter("id = 11")
            .validate_no_conflicting_data_files()
            .commit()
        ),
        r"row delta: snapshot .* added the data file .* which may have rows that match id = 11",
    ),
    "a removed file that has new deletes": (
        lambda other: other.delete("p = 'x'"),
        lambda a, start: delta(a, start).add_deletes(vector(of_x(a))).validate_data_files_exist([of_x(a)]).commit(),
        "row delta: snapshot .* removed the data file .*, which new deletes are for",
    ),
    "new deletes beside an update": (
        lambda other: other.delete("id = 1"),
        lambda a, start: delta(a, start).add_rows(described()).validate_no_conflicting_delete_files().commit(),
        "row delta: snapshot .* added the delete file",
    ),
    "two vectors for a file": (
        lambda other: other.delete("id = 1"),
        lambda a, start: delta(a, start).add_deletes(vector(of_x(a))).commit(),
        "row delta: snapshot .* added a deletion vector for .*parquet",
    ),
    "an append to what is overwritten": (
        lambda other: other.append(rows(11)),
        lambda a, start: overwriting(a, start).validate_no_conflicting_data().commit(),
        "overwrite: snapshot .* added the data file",
    ),
    "deletes of what is overwritten": (
        lambda other: other.delete("id = 1"),
        lambda a, start: (
            changing(a, "overwrite")
            .validate_from_snapshot(start)
            .delete_data_file(file_x(a))
            .append_data_file(described("memory://a/b.parquet"))
            .validate_no_conflicting_deletes()
            .commit()
        ),
        "overwrite: snapshot .* added the delete file .*, which applies to .*parquet",
    ),
    "a removed file that is overwritten": (
        lambda other: other.delete("p = 'x'"),
        lambda a, start: (
            changing(a, "overwrite")
            .validate_from_snapshot(start)
            .delete_by_predicate("p = 'x'")
            .append_data_file(described("memory://a/b.parquet"))
            .validate_no_conflicting_deletes()
            .commit()
        ),
        "overwrite: snapshot .* removed the data file .* which may have rows that match",
    ),
    "an overwritten file that is gone": (
        lambda other: other.overwrite(rows(2, 4), "p = 'y' AND id < 5"),
        lambda a, start: (
            changing(a, "overwrite")
            .delete_data_file(file_y(a))
            .append_data_file(described("memory://a/b.parquet", "y"))
            .validate_no_conflicting_deletes()
            .commit()
        ),
        "parquet",
    ),
    "an append to a replaced partition": (
        lambda other: other.append(rows(11)),
        lambda a, start: replacing(a, start).validate_no_conflicting_data().commit(),
        "replacement of partitions: snapshot .* added the data file .*, which is in a partition that is replaced",
    ),
    "deletes in a replaced partition": (
        lambda other: other.delete("id = 1"),
        lambda a, start: replacing(a, start).validate_no_conflicting_deletes().commit(),
        "replacement of partitions: snapshot .* added the delete file",
    ),
    "a removed file of a replaced partition": (
        lambda other: other.delete("p = 'x'"),
        lambda a, start: replacing(a, start).validate_no_conflicting_deletes().commit(),
        "replacement of partitions: snapshot .* removed the data file",
    ),
    "deletes of what is rewritten": (
        lambda other: other.delete("id = 1"),
        lambda a, start: rewriting(a, start).commit(),
        "rewrite of files: snapshot .* added the delete file .*, which applies to",
    ),
    "a rewritten file that is gone": (
        lambda other: other.delete("p = 'x'"),
        lambda a, start: rewriting(a, start).commit(),
        "parquet",
    ),
    "a history that has expired": (
        lambda other: other.append(rows(11)).expire_snapshots(retain_last=1, older_than="2100-01-01T00:00:00Z"),
        lambda a, _: replacing(a, a.table.snapshots()[0].snapshot_id).validate_no_conflicting_data().commit(),
        "what was committed since snapshot .* is not known",
    ),
}


def file_x(given: Given) -> ice.DataFile:
    """The file of the partition x that has no deletes yet, with the row 5 alone, or the row 1 before it."""
    file = next(file for file in given.files() if file["file_path"] == of_x(given))
    return described(file["file_path"], "x", file["record_count"])


def file_y(given: Given) -> ice.DataFile:
    file = next(file for file in given.files() if file["partition"]["p"] == "y" and file["record_count"] == 2)
    return described(file["file_path"], "y", 2)


def of_x(given: Given) -> str:
    found = [file for file in given.files() if file["partition"]["p"] == "x" and file["record_count"] == 3]
    path: str = found[0]["file_path"]
    return path


@pytest.mark.parametrize("name", CONFLICTS)
def test_conflicts_name_what_is_in_the_way(tmp_path: Path, name: str) -> None:
    other, change, words = CONFLICTS[name]
    given = Given(tmp_path, 3)
    start = given.table.current_snapshot()
    assert start is not None
    other(given.other())
    before, location = given.on_disk(), given.other().metadata_location
    with pytest.raises(ValidationException, match=f"(?s){words}"):
        change(given, start.snapshot_id)
    assert given.on_disk() == before
    assert given.other().metadata_location == location
    given.table.refresh().append(rows(77))
