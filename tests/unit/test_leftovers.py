"""What changes leave behind that fail, are interrupted or killed, or whose outcome is unknown."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import icefield as ice
from icefield._inputs.identifiers import IdentifierLike
from icefield.catalog.memory import InMemoryCatalog
from icefield.errors import CommitStateUnknownException, InvalidArgumentError, ValidationException

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64())])


def rows(*ids: int, v: int = 0) -> pa.Table:
    return pa.table([list(ids), [v] * len(ids)], SCHEMA)


class Unreliable(InMemoryCatalog):
    """A catalog whose answers are lost after another commit was first, or for good."""

    #: What happens before the next swap.
    first: Callable[[], object] | None = None
    is_lost = False
    is_deaf = False

    def swap_pointer(self, identifier: IdentifierLike, base: str, new: str) -> None:
        first, self.first = self.first, None
        if first is not None:
            first()
        if self.is_lost:
            self.is_deaf = True
            raise TimeoutError("no answer")
        super().swap_pointer(identifier, base, new)

    def load_pointer(self, identifier: IdentifierLike) -> str:
        if self.is_deaf:
            raise ConnectionError("still nothing")
        return super().load_pointer(identifier)


@pytest.fixture
def catalog(tmp_path: Path) -> Unreliable:
    catalog = Unreliable("c", warehouse=str(tmp_path / "warehouse"))
    catalog.create_namespace("a")
    return catalog


def make(catalog: ice.Catalog, version: int) -> ice.Table:
    properties = {"format-version": str(version), "commit.status-check.num-retries": "0"}
    table = catalog.create_table("a.t", schema=SCHEMA, properties=properties)
    return table.append(rows(*range(10))).append(rows(*range(10, 20)))


def merge(table: Any) -> object:
    merging = table.merge(rows(3, 30, v=9), "id", mode="merge-on-read")
    return merging.when_matched_update_all().when_not_matched_insert_all().execute()


def stream(table: Any) -> None:
    with table.upsert_stream(["id"]) as changes:
        changes.upsert(rows(3, 30, v=9)).delete(rows(4))


def replace_partitions(table: Any) -> object:
    return table.overwrite(rows(1, 2), "id IN (1, 2)", mode="copy-on-write")


CHANGES: dict[str, Callable[[ice.Table], object]] = {
    "delete, copy-on-write": lambda table: table.delete("id = 3", mode="copy-on-write"),
    "delete, merge-on-read": lambda table: table.delete("id = 3", mode="merge-on-read"),
    "delete, columns": lambda table: table.delete("id > v AND id < 4", mode="merge-on-read"),
    "update": lambda table: table.update({"v": pc.field("v") + 1}, "id < 4", mode="copy-on-write"),
    "update, merge-on-read": lambda table: table.update({"v": 5}, "id < 4", mode="merge-on-read"),
    "upsert": lambda table: table.upsert(rows(3, 30, v=9), ["id"]),
    "merge": merge,
    "overwrite": replace_partitions,
}


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def named(table: ice.Table) -> set[Path]:
    """List the files that a table names."""
    paths = {table.metadata_location, *(entry.metadata_file for entry in table.metadata_log())}
    paths |= {snapshot.manifest_list for snapshot in table.snapshots() if snapshot.manifest_list}
    paths |= set(table.inspect.all_manifests()["path"].to_pylist())
    paths |= set(table.inspect.all_files()["file_path"].to_pylist())
    return {Path(path.removeprefix("file://")) for path in paths}


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_that_is_refused_leaves_nothing(catalog: Unreliable, tmp_path: Path, name: str, version: int) -> None:
    table = make(catalog, version)
    other = catalog.load_table("a.t")
    # The file that is changed goes before the commit.
    catalog.first = lambda: other.delete("id < 10")
    with pytest.raises(ValidationException):
        CHANGES[name](table)
    table.refresh()
    assert table.scan().count() == 10
    assert files(tmp_path) == named(table)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("name", [*CHANGES, "append", "stream"])
def test_of_an_unknown_outcome_everything_stays_and_is_named(
    catalog: Unreliable, tmp_path: Path, name: str, version: int
) -> None:
    table = make(catalog, version)
    before = files(tmp_path)
    catalog.is_lost = True
    with pytest.raises(CommitStateUnknownException) as raised:
        {"append": lambda table: table.append(rows(40)), "stream": stream, **CHANGES}[name](table)
    catalog.is_lost = catalog.is_deaf = False
    told = {Path(path.removeprefix("file://")) for path in [*raised.value.files, raised.value.location]}
    assert files(tmp_path) - before == told
    assert len(told) >= 4, "a data or delete file, a manifest, a list, a metadata file"


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, ZeroDivisionError])
@pytest.mark.parametrize("version", [2, 3])
def test_a_change_that_is_interrupted_leaves_nothing(
    catalog: Unreliable, tmp_path: Path, version: int, error: type[BaseException]
) -> None:
    table = make(catalog, version)
    before = files(tmp_path)
    calls = []

    def values(batch: pa.RecordBatch) -> pa.Array:
        calls.append(batch.num_rows)
        if len(calls) > 1:
            raise error("on the way")
        return batch["v"]

    def batches() -> Any:
        yield from rows(50, 51).to_batches()
        raise error("on the way")

    def given() -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(SCHEMA, batches())

    changes: list[Callable[[], object]] = [
        lambda: table.update({"v": values}),
        lambda: table.append(given()),
        lambda: table.overwrite(given(), "id = 3"),
        lambda: table.upsert(given(), ["id"]),
        lambda: table.merge(given(), "id").when_matched_update_all().when_not_matched_insert_all().execute(),
    ]
    for change in changes:
        # What a source of rows raises comes through Arrow's C interface, as text.
        with pytest.raises((error, InvalidArgumentError), match=None if error is KeyboardInterrupt else "on the way"):
            change()
        assert files(tmp_path) == before

    def transaction() -> None:
        with table.transaction() as changes:
            changes.append(rows(60))
            changes.delete("id IN (60, 3)", mode="merge-on-read")
            raise error("on the way")

    with pytest.raises(error):
        transaction()
    assert files(tmp_path) == before

    def micro_batch() -> None:
        with table.upsert_stream(["id"]) as changes:
            changes.upsert(rows(60)).delete(rows(3))
            raise error("on the way")

    with pytest.raises(error):
        micro_batch()
    assert files(tmp_path) == before
    assert table.refresh().scan().count() == 20


KILLED = """
import os, signal, sys
import pyarrow as pa
import icefield as ice

folder, moment = sys.argv[1:]
table = ice.load_catalog("c", uri=f"sqlite:///{folder}/c.db", warehouse=f"{folder}/warehouse").load_table("a.t")
schema = pa.schema([("id", pa.int64()), ("v", pa.int64())])

def die():
    os.kill(os.getpid(), signal.SIGKILL)

if moment == "writing":
    def batches():
        for start in range(0, 3_000_000, 100_000):
            yield pa.record_batch({"id": range(start, start + 100_000), "v": [0] * 100_000}, schema=schema)
        die()
    table.append(pa.RecordBatchReader.from_batches(schema, batches()))
else:
    with table.transaction() as changes:
        changes.append(pa.table({"id": [50], "v": [1]}))
        changes.delete("id = 3", mode=moment)
        die()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="kills")
@pytest.mark.parametrize("moment", ["writing", "merge-on-read", "copy-on-write"])
def test_what_a_killed_writer_left_is_what_no_snapshot_names(tmp_path: Path, moment: str) -> None:
    catalog = ice.load_catalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "warehouse"))
    catalog.create_namespace("a")
    table = make(catalog, 2)
    # Small files, of which some are closed by then.
    table.update_properties({"write.target-file-size-bytes": str(1 << 20)})
    before = files(tmp_path / "warehouse")
    assert before == named(table)
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), moment], check=False)
    assert done.returncode == -signal.SIGKILL
    left = files(tmp_path / "warehouse") - before
    assert left, "it had written something"
    # Others go on, and what they write is named.
    table.refresh().append(rows(70))
    listed = {Path(path.removeprefix("file://")) for path, _ in table.storage.list(table.location())}
    assert listed - named(table) == left
    for path in left:
        os.unlink(path)
    assert table.refresh().scan().count() == 21
    assert files(tmp_path / "warehouse") == named(table)
