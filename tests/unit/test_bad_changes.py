"""Changes that cannot be made: each is refused by a typed error that says what is wrong; nothing changes on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefield as ice
from icefield.catalog.memory import InMemoryCatalog
from icefield.errors import IcefieldError, InvalidArgumentError, ValidationError, ValidationException

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int32()), ("p", pa.string())])


def rows(*ids: int, v: int | None = 0) -> pa.Table:
    return pa.table([list(ids), [v] * len(ids), ["x" if at % 2 else "y" for at in ids]], SCHEMA)


def odd(**columns: Any) -> pa.Table:
    """Rows with columns of other types; `id` is there unless it is given."""
    return pa.table({"id": pa.array([1], pa.int64()), "v": pa.array([1], pa.int32()), "p": ["x"], **columns})


class Given:
    """A table with two appends and some deletes, a tag, a branch, and files beside it."""

    def __init__(self, folder: Path, version: int) -> None:
        self.folder = folder
        catalog = InMemoryCatalog("bad", warehouse=str(folder / "warehouse"))
        catalog.create_namespace("a")
        properties = {"format-version": str(version), "write.delete.mode": "merge-on-read"}
        self.catalog = catalog
        self.table = catalog.create_table("a.t", SCHEMA, partition_by=["p"], properties=properties)
        self.table.append(rows(1, 2, 3, 4, 13)).append(rows(5, 6))
        self.table.delete("id = 3")
        newest = self.table.current_snapshot()
        assert newest is not None
        self.newest = newest.snapshot_id
        self.table.manage_snapshots().create_tag(self.newest, "tag").create_branch(self.newest, "branch").commit()
        pq.write_table(rows(101), folder / "one.parquet")
        pq.write_table(odd(v=["text"]), folder / "texts.parquet")
        pq.write_table(rows(1, 2), folder / "two.parquet")
        (folder / "no.parquet").write_bytes(b"PAR1 and nothing else")

    def other(self) -> ice.Table:
        """The table as another writer has it."""
        return self.catalog.load_table("a.t")

    def files(self, content: int = 0) -> list[dict[str, Any]]:
        found = self.table.inspect.files().to_pylist()
        return sorted((file for file in found if file["content"] == content), key=lambda file: str(file["file_path"]))

    def data_file(self, at: int = 0) -> ice.DataFile:
        file = self.files()[at]
        return described(file["file_path"], file["partition"]["p"], file["record_count"])

    def delete_file(self) -> ice.DeleteFile:
        file = self.files(1)[0]
        names = ("referenced_data_file", "content_offset", "content_size_in_bytes")
        return ice.DeleteFile(
            content="position_deletes",
            file_path=file["file_path"],
            file_format=file["file_format"].lower(),
            partition=[file["partition"]["p"]],
            record_count=1,
            file_size_in_bytes=file["file_size_in_bytes"],
            **{name: file.get(name) for name in names},
        )

    def on_disk(self) -> dict[str, str]:
        found = [path for path in self.folder.rglob("*") if path.is_file()]
        return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def described(path: str = "memory://none/none.parquet", partition: str = "x", count: int = 1) -> ice.DataFile:
    return ice.DataFile(
        file_path=path, file_format="parquet", partition=[partition], record_count=count, file_size_in_bytes=100
    )


def position_deletes(count: int) -> ice.DeleteFile:
    return ice.DeleteFile(
        content="position_deletes",
        file_path="memory://none/none-deletes.parquet",
        file_format="parquet",
        partition=["x"],
        record_count=count,
        file_size_in_bytes=100,
    )


def vector(of: str, path: str = "memory://none/none.puffin") -> ice.DeleteFile:
    return ice.DeleteFile(
        content="position_deletes",
        file_path=path,
        file_format="puffin",
        partition=["x"],
        record_count=1,
        file_size_in_bytes=100,
        referenced_data_file=of,
        content_offset=4,
        content_size_in_bytes=40,
    )


def changing(given: Given, kind: str, **options: Any) -> Any:
    return getattr(given.table.update_snapshot(**options), kind)()


#: What is tried, the class of the error, and words of it in their order.
Case = tuple[Callable[[Given], object], type[IcefieldError], str]

KEYS: dict[str, Case] = {
    "a key twice": (
        lambda a: a.table.upsert(rows(1, 7, 1), ["id"]),
        InvalidArgumentError,
        "two rows of the source have the key id = 1",
    ),
    "a key of two columns twice": (
        lambda a: a.table.upsert(rows(1, 1), ["id", "p"]),
        InvalidArgumentError,
        "two rows of the source have the key id = 1, p = x",
    ),
    "a null key twice": (
        lambda a: a.table.upsert(rows(8, 9, v=None), ["v"]),
        InvalidArgumentError,
        "two rows of the source have the key v = null",
    ),
    "a null in a required key": (
        lambda a: a.table.upsert(odd(id=pa.array([None], pa.int64())), ["id"]),
        ValidationError,
        "id.*null",
    ),
    "no key": (lambda a: a.table.upsert(rows(1)), InvalidArgumentError, "key|identifier"),
    "a key that the table lacks": (lambda a: a.table.upsert(rows(1), ["other"]), ValidationError, "other"),
    "a key that the rows lack": (
        lambda a: a.table.upsert(rows(1).drop_columns(["id"]), ["id"]),
        InvalidArgumentError,
        "id",
    ),
    "a key of another type": (lambda a: a.table.upsert(odd(id=["one"]), ["id"]), ValidationError, "id.*long"),
}

TYPES: dict[str, Case] = {
    "append": (lambda a: a.table.append(odd(v=["text"])), ValidationError, "v.*int"),
    "overwrite": (lambda a: a.table.overwrite(odd(v=["text"]), "id = 1"), ValidationError, "v.*int"),
    "dynamic overwrite": (lambda a: a.table.dynamic_partition_overwrite(odd(v=[1.5])), ValidationError, "v.*int"),
    "upsert": (lambda a: a.table.upsert(odd(v=["text"]), ["id"]), ValidationError, "v.*int"),
    "update": (
        lambda a: a.table.update({"v": "text"}, "id = 1"),
        InvalidArgumentError,
        "a value of type int32 for the column 'v', got 'text'",
    ),
    "a value out of range": (
        lambda a: a.table.update({"v": 2**31}, "id = 1"),
        InvalidArgumentError,
        "a value of type int32 for the column 'v', got 2147483648",
    ),
    "a value beyond all integers": (
        lambda a: a.table.update({"v": 2**80}, "id = 1"),
        InvalidArgumentError,
        "int32.*'v'",
    ),
    "a null where one is required": (lambda a: a.table.update({"id": None}, "id = 1"), IcefieldError, "id"),
    "a literal": (lambda a: a.table.delete("v = 'text'"), ValidationError, "v.*int|int.*text"),
    "a file": (lambda a: a.table.add_files([str(a.folder / "texts.parquet")]), IcefieldError, "texts.parquet.*v"),
    "a file that is none": (lambda a: a.table.add_files([str(a.folder / "no.parquet")]), IcefieldError, "no.parquet"),
    "a file of two partitions": (
        lambda a: a.table.add_files([str(a.folder / "two.parquet")]),
        InvalidArgumentError,
        "two.parquet.*partition",
    ),
    "a partition value": (
        lambda a: a.table.append_files(
            [
                ice.DataFile(
                    file_path="a", file_format="parquet", partition=[["x"]], record_count=1, file_size_in_bytes=1
                )
            ]
        ),
        IcefieldError,
        "p",
    ),
    "too few partition values": (
        lambda a: a.table.append_files(
            [ice.DataFile(file_path="a", file_format="parquet", record_count=1, file_size_in_bytes=1)]
        ),
        InvalidArgumentError,
        "partition",
    ),
}

FILTERS: dict[str, Case] = {
    "delete": (lambda a: a.table.delete("w = 1"), ValidationError, "no column.*w"),
    "overwrite": (lambda a: a.table.overwrite(rows(1), "w = 1"), ValidationError, "no column.*w"),
    "update": (lambda a: a.table.update({"v": 1}, "w = 1"), ValidationError, "no column.*w"),
    "a column that is set": (lambda a: a.table.update({"w": 1}, "id = 1"), InvalidArgumentError, "w"),
    "files of an overwrite": (
        lambda a: changing(a, "overwrite").delete_by_predicate("w = 1").commit(),
        ValidationError,
        "no column.*w",
    ),
    "files of a delete": (
        lambda a: changing(a, "delete").delete_by_predicate("w = 1").commit(),
        ValidationError,
        "no column.*w",
    ),
    "files that match in part": (
        lambda a: changing(a, "delete").delete_by_predicate("id = 1").commit(),
        ValidationException,
        "parquet: cannot delete the file: some of its rows match id = 1, but not certainly all",
    ),
    "the case of a name": (lambda a: a.table.delete("ID = 1"), ValidationError, "no column.*ID"),
    "text that is no filter": (
        lambda a: a.table.delete("id = = 1"),
        InvalidArgumentError,
        "character 6: a column is expected",
    ),
    "conflicts": (
        lambda a: changing(a, "row_delta").add_rows(described()).conflict_detection_filter("w = 1").commit(),
        ValidationError,
        "no column.*w",
    ),
}

FILES: dict[str, Case] = {
    "one path twice": (
        lambda a: a.table.add_files([str(a.folder / "one.parquet")] * 2),
        InvalidArgumentError,
        "more than once: .*one.parquet",
    ),
    "one file described in two ways": (
        lambda a: a.table.append_files([described(), described(count=2)]),
        InvalidArgumentError,
        "none.parquet: this file is added twice, and described differently",
    ),
    "one file described with two partitions": (
        lambda a: (
            a.table.overwrite_files().append_data_file(described()).append_data_file(described(partition="y")).commit()
        ),
        InvalidArgumentError,
        "none.parquet: this file is added twice, and described differently",
    ),
    "one delete file described in two ways": (
        lambda a: a.table.row_delta().add_deletes(position_deletes(1)).add_deletes(position_deletes(2)).commit(),
        InvalidArgumentError,
        "none-deletes.parquet: this file is added twice, and described differently",
    ),
    "a path that the table has": (
        lambda a: a.table.add_files([a.data_file().file_path]),
        InvalidArgumentError,
        "in the table already: .*parquet",
    ),
    "a path that is not there": (
        lambda a: a.table.add_files([str(a.folder / "none.parquet")]),
        ice.errors.MissingFileError,
        "none.parquet",
    ),
    "a file to delete": (
        lambda a: changing(a, "delete").delete_data_file(described()).validate_files_exist().commit(),
        ValidationException,
        "none.parquet",
    ),
    "a path to delete": (
        lambda a: changing(a, "delete").delete_path("memory://none/no.parquet").validate_files_exist().commit(),
        ValidationException,
        "no.parquet",
    ),
    "a file to overwrite": (
        lambda a: (
            (changing(a, "overwrite").delete_data_file(described()).append_data_file(described("memory://a/b.parquet")))
            .validate_no_conflicting_data()
            .commit()
        ),
        ValidationException,
        "overwrite|missing.*none.parquet",
    ),
    "a file to rewrite": (
        lambda a: (
            changing(a, "rewrite_files")
            .delete_data_file(described())
            .add_data_file(described("memory://a/b.parquet"))
            .commit()
        ),
        ValidationException,
        "none.parquet",
    ),
    "a delete file to remove": (
        lambda a: (
            changing(a, "row_delta").remove_deletes(vector("memory://a/b.parquet")).validate_deleted_files().commit()
        ),
        ValidationException,
        "none.puffin",
    ),
    "two vectors of a file": (
        lambda a: (
            changing(a, "row_delta")
            .add_deletes(vector(a.data_file().file_path, "memory://none/1.puffin"))
            .add_deletes(vector(a.data_file().file_path, "memory://none/2.puffin"))
            .commit()
        ),
        InvalidArgumentError,
        "parquet: .* is a second deletion vector for it",
    ),
    "a delete file for a data file": (
        lambda a: changing(a, "overwrite").append_data_file(a.delete_file()).commit(),
        IcefieldError,
        "DataFile|data file",
    ),
    "more rows than were replaced": (
        lambda a: (
            changing(a, "rewrite_files")
            .validate_from_snapshot(a.newest)
            .delete_data_file(a.data_file())
            .add_data_file(described("memory://a/b.parquet", a.files()[0]["partition"]["p"], 100))
            .commit()
        ),
        InvalidArgumentError,
        "100 rows are added",
    ),
    "a rewrite of nothing": (
        lambda a: changing(a, "rewrite_files").commit(),
        InvalidArgumentError,
        "no file is removed",
    ),
    "partitions that have files": (
        lambda a: changing(a, "replace_partitions").append_data_file(described()).validate_append_only().commit(),
        ValidationException,
        "x",
    ),
    "rows that do not match": (
        lambda a: (
            changing(a, "overwrite")
            .delete_by_predicate("p = 'x'")
            .append_data_file(described(partition="y"))
            .validate_added_files_match_overwrite_filter()
            .commit()
        ),
        ValidationException,
        "none.parquet.*match",
    ),
    "a spec that is not there": (
        lambda a: a.table.append_files(
            [
                ice.DataFile(
                    file_path="a",
                    file_format="parquet",
                    spec_id=7,
                    partition=["x"],
                    record_count=1,
                    file_size_in_bytes=1,
                )
            ]
        ),
        InvalidArgumentError,
        "spec 7",
    ),
}

ON_THE_TAG: dict[str, Callable[[Given], object]] = {
    "append": lambda a: a.table.append(rows(9), branch="tag"),
    "delete": lambda a: a.table.delete("id = 1", branch="tag"),
    "overwrite": lambda a: a.table.overwrite(rows(9), "id = 1", branch="tag"),
    "dynamic overwrite": lambda a: a.table.dynamic_partition_overwrite(rows(9), branch="tag"),
    "update": lambda a: a.table.update({"v": 1}, "id = 1", branch="tag"),
    "upsert": lambda a: a.table.upsert(rows(1, v=5), ["id"], branch="tag"),
    "add files": lambda a: a.table.add_files([str(a.folder / "one.parquet")], branch="tag"),
    "described files": lambda a: a.table.append_files([described()], branch="tag"),
    "row delta": lambda a: changing(a, "row_delta", branch="tag").add_rows(described()).commit(),
    "delete of files": lambda a: changing(a, "delete", branch="tag").delete_by_predicate("p = 'x'").commit(),
    "fast-forward": lambda a: a.table.manage_snapshots().fast_forward_branch("tag", "main").commit(),
    "a branch of that name": lambda a: a.table.manage_snapshots().create_branch(a.newest, "tag").commit(),
    "its removal as a branch": lambda a: a.table.manage_snapshots().remove_branch("tag").commit(),
}
BRANCHES: dict[str, Case] = {
    **{name: (change, IcefieldError, "tag") for name, change in ON_THE_TAG.items()},
    "a snapshot that is not there": (
        lambda a: a.table.manage_snapshots().cherry_pick(12345).commit(),
        ValidationException,
        "12345.*no such snapshot",
    ),
    "a snapshot that is there already": (
        lambda a: a.table.manage_snapshots().cherry_pick(a.table.snapshots()[0].snapshot_id).commit(),
        ValidationException,
        "ancestor of main",
    ),
    "a rollback to another branch": (
        lambda a: a.table.manage_snapshots().rollback_to_snapshot(12345).commit(),
        IcefieldError,
        "12345",
    ),
    "a start that is not there": (
        lambda a: changing(a, "row_delta").add_rows(described()).validate_from_snapshot(12345).commit(),
        InvalidArgumentError,
        "row delta.*12345",
    ),
}

REFUSED = {
    f"{subject}: {name}": case
    for subject, cases in {
        "keys": KEYS, "types": TYPES, "filters": FILTERS, "files": FILES, "branches": BRANCHES
    }.items()
    for name, case in cases.items()
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_done_changes_nothing(tmp_path: Path, name: str) -> None:
    change, kind, words = REFUSED[name]
    given = Given(tmp_path, 3)
    before, location = given.on_disk(), given.table.metadata_location
    with pytest.raises(kind, match=f"(?s){words}") as raised:
        change(given)
    check_sentence(str(raised.value))
    assert given.on_disk() == before
    assert given.other().metadata_location == location
    # The same table can be written then.
    assert given.table.append(rows(77)).scan("id = 77").count() == 1


def check_sentence(text: str) -> None:
    """No trace of the inside, no bare name of a class, not only a code."""
    assert len(text.split()) >= 3, text
    assert not any(word in text for word in ("Traceback", "unwrap", "panicked", "Error(", "Some(")), text


def test_without_a_transaction_nothing_is_half_done(tmp_path: Path) -> None:
    """A change that is refused in a transaction ends none of the others, and all go where the block fails."""
    given = Given(tmp_path, 3)
    before = given.on_disk()
    with pytest.raises(ValidationError, match="no column"), given.table.transaction() as changes:  # noqa: PT012
        changes.append(rows(50))
        changes.delete("w = 1")
    assert given.on_disk() == before
    with given.table.transaction() as changes:
        changes.append(rows(50))
        with pytest.raises(InvalidArgumentError, match="two rows of the source have the key"):
            changes.upsert(rows(1, 1), ["id"])
        changes.delete("id = 1")
    assert sorted(given.table.scan().to_arrow()["id"].to_pylist()) == [2, 4, 5, 6, 13, 50]
