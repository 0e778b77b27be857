"""What is public and holds no open file pickles, and is of the same table afterwards."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest

import icefield as ice
from icefield import expressions as ex


@pytest.fixture
def table(tmp_path: Path) -> ice.Table:
    catalog = ice.load_catalog("pickles", type="in-memory", warehouse=str(tmp_path))
    catalog.create_namespace("a")
    table = catalog.create_table("a.t", pa.schema([("n", pa.int64())]))
    table.append(pa.table({"n": [1, 2]}))
    table.append(pa.table({"n": [30]}))
    return table


@pytest.mark.parametrize("metrics", [False, True, ["n"]])
def test_plans(table: ice.Table, metrics: bool | list[str]) -> None:
    plan = table.scan("n > 5").plan_files(metrics=metrics)
    pickled = pickle.dumps(plan)
    table.append(pa.table({"n": [40]}))
    again = pickle.loads(pickled)
    assert len(again) == len(plan) == 1
    assert again.to_arrow() == plan.to_arrow()


def test_metadata_tables(table: ice.Table) -> None:
    inspect = table.inspect
    pickled = pickle.dumps(inspect)
    table.append(pa.table({"n": [40]}))
    assert pickle.loads(pickled).files() == inspect.files()


def test_everything_else(table: ice.Table) -> None:
    expr = ex.parse("n > 1 AND NOT (n = 2 OR n IS NULL)")
    for one in (
        table, table.schema(), table.spec(), table.sort_order(), table.current_snapshot(), table.metadata, expr,
        ex.Reference("n"), ice.transforms.bucket(3), table.scan().plan_tasks(),
    ):  # fmt: skip
        assert pickle.loads(pickle.dumps(one)) == one
    first = table.snapshots()[0].snapshot_id
    for scan in (
        table.scan("n > 1"),
        table.incremental_append_scan(from_snapshot_id_inclusive=first),
        table.incremental_changelog_scan(from_snapshot_id_inclusive=first),
    ):
        assert pickle.loads(pickle.dumps(scan)).to_arrow() == scan.to_arrow()


def test_readers_and_bound_expressions_say_that_they_cannot(table: ice.Table) -> None:
    for one in (table.scan().to_arrow_batch_reader(), ex.parse("n > 1").bind(table.schema())):
        with pytest.raises(TypeError, match="pickl"):
            pickle.dumps(one)
