"""Changes that are begun and never committed: they are lost, and a warning says so."""

import gc
import subprocess
import sys
import warnings
from contextlib import suppress

import pyarrow as pa
import pytest

import icefield as ice
from icefield.metadata import StatisticsFile
from icefield.table.update.change import Change


@pytest.fixture
def table():
    catalog = ice.load_catalog("m", type="in-memory")
    catalog.create_namespace("a")
    made = catalog.create_table("a.t", pa.schema([("id", pa.int64()), ("name", pa.string())]))
    return made.append(pa.table({"id": [1], "name": ["x"]}))


BEGUN = {
    "UpdateSchema": lambda table: table.update_schema().add_column("new", "int"),
    "UpdateSpec": lambda table: table.update_spec().add_field("bucket(4, id)"),
    "UpdateSortOrder": lambda table: table.update_sort_order().asc("name"),
    "UpdateStatistics": lambda table: table.update_statistics().set_statistics(
        StatisticsFile(table.current_snapshot().snapshot_id, "memory://stats.puffin", 40, 20)
    ),
    "ManageSnapshots": lambda table: table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "t"),
    "Transaction": lambda table: table.transaction().set_properties({"a": "b"}),
    "ExpireSnapshots": lambda table: table.maintenance.expire_snapshots().older_than("2024-01-01T00:00:00Z"),
    "Merge": lambda table: table.merge(pa.table({"id": [1]}), "id").when_matched_delete("target.name = 'y'"),
    "UpsertStream": lambda table: table.upsert_stream("id").upsert(pa.table({"id": [1]})),
    "AppendFiles": lambda table: table.update_snapshot().fast_append().append_data_file(file_of(table)),
    "OverwriteFiles": lambda table: table.overwrite_files().delete_data_file(file_of(table)),
    "DeleteFiles": lambda table: table.update_snapshot().delete().delete_data_file(file_of(table)),
    "RowDelta": lambda table: table.row_delta().add_rows(file_of(table)),
    "RewriteFiles": lambda table: table.rewrite_files().delete_data_file(file_of(table)),
    "ReplacePartitions": lambda table: table.replace_partitions().append_data_file(file_of(table)),
    "RewriteManifests": lambda table: table.rewrite_manifests().cluster_by("file_format"),
}

#: What each prints of itself.
SHOWN = {
    "UpdateSchema": "+ 3: new: optional int",
    "UpdateSpec": "+ id_bucket_4: bucket(4, id)",
    "UpdateSortOrder": "name identity asc nulls last",
    "UpdateStatistics": 'set-statistics {"statistics": {"snapshot-id": ',
    "ManageSnapshots": 'set-snapshot-ref {"ref-name": "t",',
    "Transaction": "set-properties",
    "ExpireSnapshots": "older_than_ms: 1704067200000",
    "Merge": "when_matched_delete if JoinCondition(",
    "UpsertStream": "UpsertStream by id on main, changes not committed",
    "AppendFiles": "+ memory://",
    "OverwriteFiles": "- memory://",
    "DeleteFiles": "- memory://",
    "RowDelta": "+ memory://",
    "RewriteFiles": "- memory://",
    "ReplacePartitions": "+ memory://",
    "RewriteManifests": "RewriteManifests, not committed",
}

VERBS = {"Transaction": "commit_transaction", "Merge": "execute"}


def file_of(table):
    (task,) = table.scan().plan_files()
    return task.file


def builders(of):
    """Return the classes of changes that are begun and committed later."""
    return {of.__name__} | {name for kind in of.__subclasses__() for name in builders(kind)}


def caught(run):
    """Give the warnings about lost changes of a call, and of what is collected after it."""
    # What other tests have left is not looked at: neither their changes, nor sockets that nobody closed.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        run()
        gc.collect()
    told = [f"{warning.category.__name__}: {warning.message}" for warning in found]
    return [text for text in told if "never committed" in text]


def test_every_builder_is_known():
    abstract = {"Change", "MetadataChange", "SnapshotChange"}
    found = {name for name in builders(Change) - abstract if not name.startswith("_")}
    assert found | {"Transaction", "ExpireSnapshots", "Merge", "UpsertStream"} == set(BEGUN) == set(SHOWN)


@pytest.mark.parametrize("kind", BEGUN)
def test_a_change_shows_what_it_would_do(table, kind):
    change = BEGUN[kind](table)
    text = repr(change)
    assert kind in text.splitlines()[0]
    assert "not committed" in text or "not executed" in text
    assert SHOWN[kind] in text
    getattr(change, VERBS.get(kind, "commit"))()
    assert "not " not in repr(change).splitlines()[0].replace("nothing to commit", "")


@pytest.mark.parametrize("kind", BEGUN)
def test_a_change_that_is_dropped_warns(table, kind):
    before = table.metadata_json()
    (warning,) = caught(lambda: BEGUN[kind](table))
    assert warning.startswith(f"ResourceWarning: {kind}: changes were never committed")
    assert table.refresh().metadata_json() == before


def test_within_a_transaction(table):
    def change():
        with table.transaction() as tx:
            tx.update_schema().add_column("lost", "int")
            tx.update_schema().add_column("kept", "int").commit()

    (warning,) = caught(change)
    assert "UpdateSchema" in warning
    assert table.refresh().schema().column_names == ["id", "name", "kept"]


def abandon(begin):
    with suppress(KeyError), begin():
        raise KeyError


def abandon_within(table):
    with suppress(KeyError), table.transaction() as tx:
        change = tx.update_schema().add_column("other", "int")
        raise KeyError(change)


def expire_wrongly(table):
    with pytest.raises(ice.InvalidArgumentError):
        table.expire_snapshots(older_than="tomorrow")


@pytest.mark.parametrize("kind", BEGUN)
def test_what_is_committed_or_abandoned_does_not(table, kind):
    begin = BEGUN[kind]
    verb = VERBS.get(kind, "commit")
    if kind != "Merge":  # which is no block
        assert caught(lambda: abandon(lambda: begin(table))) == []
    assert caught(getattr(begin(table), verb)) == []


@pytest.mark.parametrize(
    "begin",
    [
        ice.Table.update_schema,
        ice.Table.update_spec,
        ice.Table.update_sort_order,
        ice.Table.manage_snapshots,
        ice.Table.transaction,
        ice.Table.rewrite_manifests,
        ice.Table.overwrite_files,
        lambda table: table.upsert_stream("id"),
        lambda table: table.maintenance.expire_snapshots().older_than(0).dry_run(),
        lambda table: table.expire_snapshots(older_than=0),
        expire_wrongly,
        abandon_within,
    ],
)
def test_what_holds_no_change_does_not(table, begin):
    assert caught(lambda: begin(table)) == []


def test_an_interpreter_that_exits_is_quiet():
    script = """
import icefield as ice, pyarrow as pa
catalog = ice.load_catalog("m", type="in-memory")
catalog.create_namespace("a")
change = catalog.create_table("a.t", pa.schema([("id", pa.int64())])).update_schema().add_column("b", "int")
"""
    done = subprocess.run([sys.executable, "-W", "always", "-c", script], capture_output=True, text=True, check=True)
    assert "never committed" not in done.stderr


def test_python_shows_the_warning_by_default():
    script = """
import icefield as ice, pyarrow as pa
catalog = ice.load_catalog("m", type="in-memory")
catalog.create_namespace("a")
table = catalog.create_table("a.t", pa.schema([("id", pa.int64())]))
table.update_schema().add_column("b", "int")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "ResourceWarning: UpdateSchema: changes were never committed" in done.stderr
