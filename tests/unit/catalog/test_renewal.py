"""A table whose credentials are renewed while other threads change it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import icefield as ice
from icefield._core import Storage, TableState

ROWS = pa.table({"id": [1]})


def used(table: ice.Table) -> str:
    """The key that the storage of a table has."""
    return str(table.storage.__reduce__()[1][0]["s3.access-key-id"])


class Meanwhile:
    """Renews once, and does something while it does."""

    def __init__(self) -> None:
        self.work: Callable[[], object] | None = None
        self.storage = Storage({"s3.access-key-id": "new"})
        self.is_renewed = False

    def due(self, state: TableState) -> TableState:
        if self.work is None:
            return state
        work, self.work = self.work, None
        work()
        self.is_renewed = True
        return self.newest(state)

    def newest(self, state: TableState) -> TableState:
        return TableState.of(self.storage, state.metadata_location, state.metadata) if self.is_renewed else state


@pytest.mark.parametrize("changes", [0, 1, 2])
def test_a_renewal_takes_nothing_back(tmp_path: Path, changes: int) -> None:
    catalog = ice.load_catalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path))
    catalog.create_namespace("n")
    made, renewal = catalog.create_table("n.t", ROWS.schema), Meanwhile()
    table = ice.Table(made.name(), made._state, catalog, renewal)

    def work() -> None:
        for _ in range(changes):
            table.append(ROWS)

    renewal.work = work
    assert used(table) == "new"
    assert len(table.snapshots()) == changes
    assert used(table.append(ROWS)) == "new"
    assert table.scan().count() == changes + 1
