"""Changes on a branch of their own, published together."""

from __future__ import annotations

import pyarrow as pa
import pytest

import icefield as ice
from icefield.catalog.memory import InMemoryCatalog

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


@pytest.fixture
def table() -> ice.Table:
    """Make an empty table."""
    catalog = InMemoryCatalog("branches")
    catalog.create_namespace("a")
    return catalog.create_table("a.t", schema=ROWS.schema)


def test_a_branch_is_published_at_the_end(table: ice.Table) -> None:
    table.append(ROWS)
    with table.branch("audit") as audit:
        audit.append(ROWS)
        assert audit.delete("id = 1").rows_removed == 2
        with audit.transaction() as tx:
            tx.append(ROWS).set_properties({"owner": "me"})
        assert audit.update_snapshot().fast_append() is not None
        assert (audit.name, audit.scan().count(), table.scan().count()) == ("audit", 7, 3)
    assert table.scan().count() == 7
    assert list(table.refs()) == ["main"]


def test_a_block_that_raises_drops_the_branch(table: ice.Table) -> None:
    table.append(ROWS)

    def raising() -> None:
        with table.branch("audit") as audit:
            audit.append(ROWS)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        raising()
    assert table.scan().count() == 3
    assert list(table.refs()) == ["main"]


def test_a_table_without_snapshots_gets_its_first_by_a_branch(table: ice.Table) -> None:
    with table.branch("first") as first:
        first.append(ROWS)
        assert table.refresh().scan().count() == 0
    assert (table.scan().count(), list(table.refs())) == (3, ["main"])
    with table.branch("nothing"):
        pass
    assert list(table.refs()) == ["main"]


def test_main_that_was_changed_meanwhile_is_not_moved(table: ice.Table) -> None:
    table.append(ROWS)

    def both() -> None:
        with table.branch("audit") as audit:
            audit.append(ROWS)
            table.append(ROWS)
            table.append(ROWS)

    with pytest.raises(ice.InvalidArgumentError, match="ancestor"):
        both()
    assert (table.refresh().scan().count(), table.scan(ref="audit").count()) == (9, 6)
    with pytest.raises(ice.InvalidArgumentError, match="a branch or tag 'audit' already"), table.branch("audit"):
        pytest.fail("the block runs")
