"""A handle writes into the table that was opened, never into another one that has taken its name."""

import json
import pickle
import re
from pathlib import Path

import pyarrow as pa
import pytest

import icefield as ice
from icefield.distributed import TaskWriter
from icefield.errors import CommitFailedException, NoSuchTableError, TableReplacedError, ValidationException

OLD = pa.table({"name": ["a", "b"], "n": pa.array([1, 2], pa.int64())})
NEW = pa.schema([("note", pa.string()), ("price", pa.int64())])


@pytest.fixture
def catalog(tmp_path):
    with ice.load_catalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh")) as opened:
        opened.create_namespace("a")
        yield opened


@pytest.fixture
def stale(catalog):
    table = catalog.create_table("a.t", OLD.schema)
    table.append(OLD)
    return table


def made_anew(catalog):
    catalog.drop_table("a.t")
    return catalog.create_table("a.t", NEW)


def renamed_away(catalog):
    catalog.rename_table("a.t", "a.old")
    return catalog.create_table("a.t", NEW)


def registered_over(catalog):
    other = catalog.create_table("a.other", NEW)
    catalog.drop_table("a.t")
    return catalog.register_table("a.t", other.metadata_location)


def another_in_its_place(catalog):
    other = catalog.create_table("a.other", NEW)
    catalog.rename_table("a.t", "a.gone")
    catalog.rename_table("a.other", "a.t")
    return catalog.load_table("a.t") if other else other


REPLACED = [made_anew, renamed_away, registered_over, another_in_its_place]


def in_a_transaction(table):
    with table.transaction() as changes:
        changes.set_properties(k="v")


def distributed(table):
    """Write as a task of Spark does, by a plan that was made before."""
    rows = pa.record_batch({"name": ["c"], "n": pa.array([3], pa.int64())}, schema=OLD.schema)
    plan = table.new_write()
    writer = TaskWriter(plan, table.storage, rows.schema)
    writer.write(rows)
    written = [writer.close()]
    try:
        table.commit_files(plan, written)
    finally:
        assert plan.discard(table.storage, written) == (0, [])


WRITES = {
    "append": lambda table: table.append(OLD),
    "append-evolving": lambda table: table.append(OLD.append_column("x", OLD["n"]), schema_mode="evolve"),
    "append-to-a-branch": lambda table: table.append(OLD, branch="b"),
    "distributed": distributed,
    "properties": lambda table: table.update_properties({"k": "v"}),
    "commit": lambda table: table.commit([], [{"action": "set-properties", "updates": {"k": "v"}}]),
    "schema": lambda table: table.update_schema().add_column("x", "long").commit(),
    "spec": lambda table: table.update_spec().add_field("n", "bucket[4]").commit(),
    "order": lambda table: table.update_sort_order().asc("n").commit(),
    "snapshots": lambda table: table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "x").commit(),
    "transaction": in_a_transaction,
    "refresh": lambda table: table.refresh(),
}


def all_files(tmp_path):
    return sorted(path for path in (tmp_path / "wh").rglob("*") if path.is_file())


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("replaced", REPLACED)
def test_nothing_is_written_into_another_table(catalog, stale, tmp_path, replaced, write):
    new = replaced(catalog)
    before = all_files(tmp_path)
    for handle in (stale, pickle.loads(pickle.dumps(stale))):
        with pytest.raises(TableReplacedError) as failure:
            WRITES[write](handle)
        assert stale.table_uuid in str(failure.value)
        assert new.table_uuid in str(failure.value)
        assert isinstance(failure.value, ValueError)  # PyIceberg's class
        assert isinstance(failure.value, ValidationException)
        assert handle.table_uuid == stale.table_uuid
    assert all_files(tmp_path) == before
    assert catalog.load_table("a.t").metadata_location == new.metadata_location
    assert new.append(pa.table({"note": ["x"], "price": [1]}, schema=NEW)).scan().count() == 1


def test_a_table_that_is_replaced_while_rows_are_written(catalog, stale, tmp_path):
    other = []

    def rows():
        yield OLD.to_batches()[0]
        other.append(made_anew(catalog))
        yield OLD.to_batches()[0]

    before = all_files(tmp_path)
    with pytest.raises(TableReplacedError):
        stale.append(pa.RecordBatchReader.from_batches(OLD.schema, rows()))
    assert [path for path in all_files(tmp_path) if path.suffix == ".parquet"] == [
        path for path in before if path.suffix == ".parquet"
    ]
    assert catalog.load_table("a.t").metadata_location == other[0].metadata_location


def test_a_handle_still_reads_what_it_was_opened_on(catalog, stale):
    made_anew(catalog)
    assert stale.scan("n > 1").to_arrow()["name"].to_pylist() == ["b"]
    assert stale.inspect.files().num_rows == 1
    assert pickle.loads(pickle.dumps(stale)).scan().count() == 2


def test_a_dropped_table_is_missing_not_replaced(catalog, stale, tmp_path):
    catalog.drop_table("a.t")
    before = all_files(tmp_path)
    for write in WRITES.values():
        with pytest.raises(NoSuchTableError):
            write(stale)
    assert all_files(tmp_path) == before


def test_the_same_table_under_an_older_file_is_the_same(catalog, stale):
    first = stale.metadata_location
    stale.update_properties({"k": "v"})
    catalog.drop_table("a.t")
    catalog.register_table("a.t", first)
    assert "k" not in stale.refresh().properties
    assert stale.append(OLD).scan().count() == 4


def test_a_requirement_of_the_caller_is_checked_as_well(stale):
    requirement = {"type": "assert-table-uuid", "uuid": "00000000-0000-0000-0000-000000000000"}
    with pytest.raises(CommitFailedException, match="uuid"):
        stale.commit([requirement], [{"action": "set-properties", "updates": {"k": "v"}}])


def without_uuid(catalog, name):
    """Register a table of version 1 as old writers made it."""
    table = catalog.create_table(name, OLD.schema, properties={"format-version": "1"})
    document = json.loads(table.metadata_json())
    del document["table-uuid"]
    location = re.sub(r"/[^/]*$", "/00007-old.metadata.json", table.metadata_location)
    Path(location.removeprefix("file://")).write_text(json.dumps(document))
    catalog.drop_table(name)
    return catalog.register_table(name, location)


def test_tables_without_a_uuid_cannot_be_told_apart(catalog):
    old = without_uuid(catalog, "a.t")
    assert old.table_uuid is None
    other = catalog.load_table("a.t")
    old.append(OLD)
    assert old.table_uuid is not None
    assert other.append(OLD).table_uuid == old.table_uuid  # the uuid that the other handle's commit gave it
    assert other.scan().count() == 4

    known = catalog.create_table("a.u", OLD.schema)
    catalog.drop_table("a.u")
    without_uuid(catalog, "a.u")
    with pytest.raises(TableReplacedError, match="a table with uuid none"):
        known.refresh()
