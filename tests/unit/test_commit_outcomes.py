"""Commits whose outcome is unknown, and what is found out of them later."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

import icefield as ice
from icefield._inputs.identifiers import IdentifierLike
from icefield.catalog.memory import InMemoryCatalog

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
FAST = {"commit.status-check.num-retries": "0"}


class Unreliable(InMemoryCatalog):
    """A catalog whose answers are lost."""

    #: Whether the next swap is made before its answer is lost; ``None`` for a swap that is answered.
    lands: bool | None = None
    #: The swap that did not take place, to come late.
    late: tuple[IdentifierLike, str, str] | None = None

    def swap_pointer(self, identifier: IdentifierLike, base: str, new: str) -> None:
        lands, self.lands = self.lands, None
        if lands is None:
            super().swap_pointer(identifier, base, new)
            return
        if lands:
            super().swap_pointer(identifier, base, new)
        else:
            self.late = (identifier, base, new)
        self.deaf = True
        raise TimeoutError("no answer")

    deaf = False

    def load_pointer(self, identifier: IdentifierLike) -> str:
        if self.deaf:
            self.deaf = False
            raise ConnectionError("still nothing")
        return super().load_pointer(identifier)


@pytest.fixture
def catalog() -> Unreliable:
    """Make a catalog with a table of three rows."""
    made = Unreliable("unreliable")
    made.create_namespace("a")
    made.create_table("a.t", schema=ROWS.schema, properties=FAST).append(ROWS)
    return made


def unknown(catalog: Unreliable, *, lands: bool) -> ice.CommitStateUnknownException:
    table = catalog.load_table("a.t")
    catalog.lands = lands
    with pytest.raises(ice.CommitStateUnknownException) as raised:
        table.append(ROWS)
    return raised.value


def files(table: ice.Table) -> set[str]:
    return {path for path, _ in table.storage.list(table.location())}


def test_a_commit_that_landed(catalog: Unreliable) -> None:
    error = unknown(catalog, lands=True)
    table = catalog.load_table("a.t")
    assert error.snapshot_id == table.current_snapshot().snapshot_id
    assert error.location == table.metadata_location
    assert set(error.files) <= files(table)
    assert {path.rpartition(".")[2] for path in error.files} == {"avro", "parquet"}
    for what in (error, error.snapshot_id, pickle.loads(pickle.dumps(error))):
        resolution = table.resolve_commit(what, clean_up=True)
        assert (resolution.state, resolution.deleted_files) == ("committed", ())
    assert table.scan().count() == 6
    # Even if its snapshot is gone, its metadata file was the table's.
    table.append(ROWS)
    table.expire_snapshots(snapshot_ids=[error.snapshot_id])
    assert table.resolve_commit(error, clean_up=True).state == "committed"
    assert table.scan().count() == 9


def test_a_commit_that_may_still_land(catalog: Unreliable) -> None:
    error = unknown(catalog, lands=False)
    table = catalog.load_table("a.t")
    before = files(table)
    assert table.resolve_commit(error, clean_up=True).state == "unknown"
    assert files(table) == before
    assert catalog.late is not None
    catalog.swap_pointer(*catalog.late)
    assert table.resolve_commit(error, clean_up=True).state == "committed"
    assert table.scan().count() == 6


def test_a_commit_that_never_will(catalog: Unreliable) -> None:
    error = unknown(catalog, lands=False)
    table = catalog.load_table("a.t").append(ROWS)
    assert catalog.late is not None
    with pytest.raises(ice.CommitFailedException):
        catalog.swap_pointer(*catalog.late)
    assert table.resolve_commit(error.snapshot_id, clean_up=True).state == "unknown"
    resolution = table.resolve_commit(error)
    assert (resolution.state, resolution.snapshot_id, resolution.deleted_files) == (
        "not committed", error.snapshot_id, (),
    )  # fmt: skip
    assert set(error.files) <= files(table)
    resolution = table.resolve_commit(error, clean_up=True)
    assert set(resolution.deleted_files) == {*error.files, error.location}
    assert not files(table) & {*error.files, error.location}
    assert table.scan().count() == 6


def test_what_the_table_does_not_remember(catalog: Unreliable) -> None:
    error = unknown(catalog, lands=False)
    table = catalog.load_table("a.t")
    table.update_properties({"write.metadata.previous-versions-max": "1"})
    for _ in range(3):
        table.append(ROWS)
    assert table.resolve_commit(error, clean_up=True).state == "unknown"
    assert set(error.files) <= files(table)
