"""Tables with row-level deletes, as Java wrote them, through the public API."""

from __future__ import annotations

import pickle
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from worlds.golden import open_table

NAMES = ["del_mixed", "del_pos_partition", "del_eq_basic", "del_eq_partitioned", "dv_basic", "dv_equality", "big_v2"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("deletes")


@pytest.mark.parametrize("name", NAMES)
def test_all_ways_to_read_agree(name: str, folder: Path) -> None:
    of = open_table(name, folder)
    scan = of.scan()
    everything = scan.to_arrow()
    files = scan.plan_files().files
    assert any(file["deletes"] for file in files)
    assert 0 < everything.num_rows < sum(file["record_count"] for file in files)
    assert scan.count() == everything.num_rows
    # As text, in which NaN equals NaN.
    assert repr(scan.to_arrow_batch_reader().read_all().to_pylist()) == repr(everything.to_pylist())
    for column in everything.schema.names:
        found = of.scan(selected_fields=(column,)).to_arrow()
        assert repr(found.to_pylist()) == repr(everything.select([column]).to_pylist())
    for limit in (0, 1, everything.num_rows - 1, everything.num_rows + 1):
        assert of.scan(limit=limit).to_arrow().num_rows == min(limit, everything.num_rows)
        assert of.scan(limit=limit).count() == min(limit, everything.num_rows)


@pytest.mark.parametrize("name", NAMES)
def test_frames_of_other_libraries_have_the_rows_that_are_left(name: str, folder: Path) -> None:
    of = open_table(name, folder)
    rows = of.scan().to_arrow()
    key = rows.schema.names[0]
    keys = rows.column(key).to_pylist()
    least = sorted(keys)[len(keys) // 2]
    assert of.to_polars().collect()[key].to_list() == of.scan().to_polars()[key].to_list() == keys
    some = [value for value in keys if value >= least]
    assert of.to_polars().filter(pl.col(key) >= least).select(key).collect()[key].to_list() == some
    connection = of.scan().to_duckdb("t")
    assert connection.sql(f'SELECT count(*), count("{key}") FROM t').fetchall() == [(len(keys), len(keys))]
    assert connection.execute(f'SELECT count(*) FROM t WHERE "{key}" >= ?', [least]).fetchall() == [(len(some),)]
    dataset = of.scan().to_pyarrow_dataset()
    assert dataset.to_table(columns=[key], filter=pc.field(key) >= least).column(key).to_pylist() == some
    assert dataset.count_rows() == pa.table(of).num_rows == len(keys)
    in_batches = of.scan().to_arrow_batch_reader(batch_size=3, memory_limit=1 << 20)
    assert repr(in_batches.read_all().to_pylist()) == repr(rows.to_pylist())


@pytest.mark.parametrize("name", NAMES)
def test_tasks_of_other_machines_have_the_same_rows(name: str, folder: Path) -> None:
    scan = open_table(name, folder).scan()
    everything = scan.to_arrow()
    for split_size in (300, 1 << 30):
        tasks = pickle.loads(pickle.dumps(scan.tasks(split_size=split_size, open_file_cost=1)))
        parts = [pa.table(task.rows(scan.storage)) for task in tasks]
        found = pa.concat_tables(parts)
        key = everything.schema.names[0]
        assert sorted(found.column(key).to_pylist(), key=repr) == sorted(everything.column(key).to_pylist(), key=repr)


def test_a_filter_sees_the_rows_that_are_left(folder: Path) -> None:
    of = open_table("del_mixed", folder)
    key = of.scan().to_arrow().schema.names[0]
    left = of.scan().to_arrow().column(key).to_pylist()
    found = of.scan(f"{key} >= 10 AND {key} < 40").to_arrow().column(key).to_pylist()
    assert found == [value for value in left if 10 <= value < 40]
