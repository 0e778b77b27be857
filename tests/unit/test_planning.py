"""Plans from Python: streams, metrics on request, tasks, counts and bounds without reading, the cache of manifests."""

import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import icefield as ice
from icefield.errors import InvalidArgumentError
from icefield.scan import plan as plan_module

ROWS = pa.table(
    {
        "id": pa.array(range(60), pa.int64()),
        "day": pa.array([18_000 + number // 10 for number in range(60)], pa.date32()),
        "name": [None if number % 7 == 0 else f"n{number:02}" for number in range(60)],
        "price": [float("nan") if number == 33 else number / 4 for number in range(60)],
        "nested": [{"x": number * 2} for number in range(60)],
    }
)
DAY = "2019-04-15"


@pytest.fixture
def table(tmp_path):
    catalog = ice.load_catalog("plans", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh"))
    catalog.create_namespace("a")
    with catalog:
        made = catalog.create_table("a.t", ROWS, partition_by="day", properties={"read.split.open-file-cost": "1"})
        for start in range(0, 60, 20):
            made = made.append(ROWS.slice(start, 20))
        yield made


@pytest.mark.parametrize("row_filter", [None, f"day = '{DAY}'", "id > 17 AND id < 24", "id > 100", "name = 'n55'"])
def test_a_stream_of_batches_is_the_plan(table, row_filter):
    scan = table.scan(row_filter)
    reader = scan.plan_batches()
    streamed = reader.read_all()
    assert streamed.schema == scan.plan_files().to_arrow().schema
    assert streamed.to_pylist() == scan.plan_files().files


def test_metrics_are_given_on_request(table):
    plain = table.scan("id >= 0").plan_files().to_arrow()
    assert "lower_bounds" not in plain.column_names
    every = table.scan().plan_files(metrics=True).to_arrow()
    names = ["column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"]
    assert every.column_names == [*plain.column_names, *names]
    ids = {field.name: field.field_id for field in table.schema().fields}
    # Whatever the filter and earlier plans have read, only what is asked for is shown.
    for row_filter in (None, "price > 3", "id < 1000"):
        some = table.scan(row_filter).plan_files(metrics=["id", "nested.x"]).to_arrow()
        for file in some.to_pylist():
            lower = dict(file["lower_bounds"])
            nested = set(lower) - {ids["id"]}
            assert set(dict(file["value_counts"])) == set(lower)
            assert len(nested) == 1
            assert int.from_bytes(lower[ids["id"]], "little") * 2 == int.from_bytes(lower[nested.pop()], "little")
            assert dict(file["null_value_counts"])[ids["id"]] == 0
    with pytest.raises(InvalidArgumentError, match="nobody"):
        table.scan().plan_files(metrics=["nobody"])


def test_counts_bounds_and_existence_without_reading(table):
    for path in table.scan().plan_files().to_arrow()["file_path"].to_pylist():
        # The data files are gone: what is answered is answered by metadata.
        Path(path.removeprefix("file://")).unlink()
    scan = table.scan()
    assert scan.count() == 60
    assert table.scan(limit=7).count() == 7
    assert scan.exists()
    assert table.scan(f"day = '{DAY}'").count() == 10
    assert table.scan(f"day = '{DAY}'").exists()
    assert not table.scan("id > 100").exists()
    assert table.scan("id > 100").count() == 0
    for column in ("id", "day", "nested.x"):
        found = scan.bounds(column)
        values = pa.array(range(0, 120, 2)) if "." in column else ROWS[column]
        assert found.exact
        assert (found.lower, found.upper) == (pc.min(values).as_py(), pc.max(values).as_py())
    assert table.scan(f"day = '{DAY}'").bounds("id") == ice.scan.ColumnBounds(10, 19)
    assert "NaN" in scan.bounds("price").reason
    assert "cut" in scan.bounds("name").reason
    assert "filter" in table.scan("id > 5").bounds("id").reason
    assert not scan.bounds("price").exact
    with pytest.raises(InvalidArgumentError, match="nobody"):
        scan.bounds("nobody")
    with pytest.raises(InvalidArgumentError, match="no order"):
        scan.bounds("nested")


def test_tasks_follow_the_split_properties(table):
    sizes = table.scan().plan_files().to_arrow()["file_size_in_bytes"].to_pylist()
    scan = table.scan()
    everything = scan.plan_tasks()
    assert set(everything["task"].to_pylist()) == {0}, "all fit into 128 MiB"
    # A piece ends where its file ends, and begins where the first row group does.
    assert sorted(pc.add(everything["start"], everything["length"]).to_pylist()) == sorted(sizes)
    alone = scan.plan_tasks(max(sizes), lookback=1)
    assert len(set(alone["task"].to_pylist())) == len(sizes)
    # A file that costs half a task to open goes in twos.
    pairs = scan.plan_tasks(1 << 20, open_file_cost=1 << 19)
    assert len(set(pairs["task"].to_pylist())) == len(sizes) // 2
    for wrong in ({"split_size": 0}, {"lookback": 0}, {"open_file_cost": -1}):
        with pytest.raises(InvalidArgumentError, match="split"):
            scan.plan_tasks(**wrong)


def test_tasks_are_as_many_as_run_at_a_time(table):
    files = len(table.scan().plan_files())

    def count(parallelism, **split):
        shown = table.scan().plan_tasks(parallelism=parallelism, **split)
        assert shown.num_rows == files
        tasks = table.scan().tasks(parallelism=parallelism, **split)
        assert len(tasks) == len(set(shown["task"].to_pylist()))
        return len(tasks)

    with table.transaction() as change:
        # Each file weighs 16 MiB: eight of them make a task of the size that the table asks for.
        change.set_properties({"read.split.open-file-cost": str(16 << 20)})
    assert (files, count(None), count(1), count(2), count(3), count(100)) == (6, 1, 1, 2, 3, 6)
    assert count(100, split_size=128 << 20) == 1
    with pytest.raises(InvalidArgumentError, match="parallelism"):
        count(0)
    with table.transaction() as change:
        change.set_properties({"read.split.adaptive-size.enabled": "false"})
    assert count(100) == 1


def test_tasks_travel_as_few_bytes(table):
    scan = table.scan("id > 17")
    tasks = scan.tasks(split_size=1)
    assert len(tasks) == len(scan.plan_files())
    for task in tasks:
        sent = pickle.dumps(task)
        assert len(sent) < 1000
        again = pickle.loads(sent)
        assert again.to_bytes() == task.to_bytes()
        assert again.column_names == ROWS.column_names
    with pytest.raises(InvalidArgumentError, match="packed"):
        type(tasks[0])(b"nothing of the kind")


def test_the_report_reads_well(table):
    scan = table.scan(f"day = '{DAY}' AND id = 13", selected_fields=("id", "name"))
    text = scan.explain()
    for part in ("Scan of ", "columns:      id, name", "filter:       ", "data files:   1 to read", "manifests:"):
        assert part in text
    report = scan.plan_files().report
    assert report["result_data_files"] == 1
    assert report["total_data_manifests"] == report["scanned_data_manifests"] + report["skipped_data_manifests"]


def test_the_cache_can_be_watched_and_bounded(table):
    before = ice.manifests.cache_info()
    try:
        ice.manifests.clear_cache()
        table.scan().plan_files()
        first = ice.manifests.cache_info()
        assert first.entries == 1 + table.scan().plan_files().report["scanned_data_manifests"]
        assert 0 < first.bytes <= first.max_bytes
        assert table.scan().plan_files().report["manifest_bytes_read"] == 0
        assert ice.manifests.cache_info().hits > first.hits
        ice.manifests.set_cache_bytes(0)
        assert ice.manifests.cache_info().entries == 0
        report = table.scan().plan_files().report
        assert report["cached_manifests"] == 0
        assert report["manifest_bytes_read"] > 0
    finally:
        ice.manifests.set_cache_bytes(before.max_bytes)


def test_deletes_of_many_files_are_shared_columns() -> None:
    """Where the lists would be long, files share them; the values are the same, in columns, dicts and objects."""
    count = 560
    catalog = ice.load_catalog("c", type="in-memory", warehouse="memory://shared-deletes")
    catalog.create_namespace("a")
    table = catalog.create_table("a.t", pa.schema([("id", pa.int64())]), properties={"format-version": "2"})
    for commit in range(2):
        change = table.row_delta()
        for place in range(commit, 2 * count, 2):
            known = {"file_format": "parquet", "record_count": 1, "file_size_in_bytes": 100}
            change.add_rows(ice.DataFile(file_path=f"memory://x/data-{place}.parquet", **known))
            known |= {"content": "equality_deletes", "equality_ids": [1]}
            change.add_deletes(ice.DeleteFile(file_path=f"memory://x/delete-{place}.parquet", **known))
        change.commit()
    plan = table.scan().plan_files()
    files = plan.to_arrow()
    assert plan.report["result_delete_files"] == count * count
    assert str(files["deletes"].type).startswith("list_view<element: dictionary<values=struct<file_path: string")
    newer = {f"memory://x/delete-{place}.parquet" for place in range(1, 2 * count, 2)}
    for place in (0, 1, 2 * count - 1):
        path, deletes = files["file_path"][place].as_py(), files["deletes"][place].as_py()
        expected = newer if int(path.rpartition("-")[2].partition(".")[0]) % 2 == 0 else set()
        assert {one["file_path"] for one in deletes} == expected
        assert plan.files[place] == files.slice(place, 1).to_pylist()[0]
        assert {one.file_path for one in plan[place].delete_files} == expected
    one, other = [task for task in plan[: 2 * count : count // 7] if task.delete_files][:2]
    assert {id(file) for file in one.delete_files} == {id(file) for file in other.delete_files}
    streamed = table.scan().plan_batches()
    assert sum(len(deletes) for batch in streamed for deletes in batch["deletes"]) == count * count


def test_dicts_of_files_are_made_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = ice.load_catalog("c", type="in-memory", warehouse="memory://dicts")
    catalog.create_namespace("a")
    table = catalog.create_table("a.t", pa.schema([("id", pa.int64())]))
    for place in range(7):
        table.append(pa.table({"id": [place]}))
    plan = table.scan().plan_files()
    everything = plan.to_arrow().to_pylist()
    made: list[int] = []
    monkeypatch.setattr(plan_module, "_dicts", lambda rows: made.append(rows.num_rows) or rows.to_pylist())
    assert plan.files[:3] == everything[:3]
    assert (plan.files[5], plan.files[-1], plan.files[::3]) == (everything[5], everything[-1], everything[::3])
    assert made == [3, 1, 1, 3]
    assert (len(plan.files), list(plan.files), plan.files == everything) == (7, everything, True)
    assert everything == plan.files
    with pytest.raises(IndexError):
        plan.files[7]
