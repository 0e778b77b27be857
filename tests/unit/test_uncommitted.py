"""Changes that are begun and never committed: they are lost, and a warning says so."""

import gc
import subprocess
import sys
import warnings
from contextlib import suppress

import pyarrow as pa
import pytest

import icefield as ice


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
    "ManageSnapshots": lambda table: table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "t"),
    "Transaction": lambda table: table.transaction().set_properties({"a": "b"}),
}


def caught(run):
    """Give the warnings of a call, and of what is collected after it."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        run()
        gc.collect()
    return [f"{warning.category.__name__}: {warning.message}" for warning in found]


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


@pytest.mark.parametrize("kind", BEGUN)
def test_what_is_committed_or_abandoned_does_not(table, kind):
    begin = BEGUN[kind]
    verb = "commit_transaction" if kind == "Transaction" else "commit"
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
