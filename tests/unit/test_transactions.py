"""Transactions of data and metadata, over a catalog of pointers and over one that takes requirements and updates."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

import icefield as ice
from icefield.catalog.base import CommitTableResponse
from icefield.catalog.memory import InMemoryCatalog
from icefield.errors import CommitFailedException, CommitStateUnknownException, InvalidArgumentError
from icefield.table import Table

IDS = pa.schema({"id": pa.int64()})


class Service:
    """A catalog of one table that holds its metadata, checks requirements and applies updates."""

    def __init__(self, table):
        self.location = table.metadata_location
        self.metadata = table.metadata
        self.lock = threading.Lock()
        self.raises = []
        self.asked = []

    def load_table_metadata(self, identifier):
        assert identifier == ("a", "t")
        return CommitTableResponse(self.metadata, self.location)

    def commit_table(self, identifier, requirements, updates):
        assert identifier == ("a", "t")
        with self.lock:
            self.asked.append([requirement["type"] for requirement in requirements])
            self.metadata.check(requirements)
            if self.raises:
                raise self.raises.pop()
            self.metadata = self.metadata.apply(updates)
        return CommitTableResponse(self.metadata, self.location)


@pytest.fixture
def pointers(tmp_path):
    with InMemoryCatalog("local", warehouse=str(tmp_path / "wh")) as catalog:
        catalog.create_namespace("a")
        catalog.create_table("a.t", schema=IDS, properties={"commit.retry.min-wait-ms": "1"})
        yield catalog


@pytest.fixture(params=["pointers", "service"])
def table(request, pointers):
    table = pointers.load_table("a.t")
    if request.param == "pointers":
        return table
    return Table(("a", "t"), table._state, Service(table))


def rows(table):
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def ids(*values):
    return pa.table({"id": pa.array(values, pa.int64())})


def data_files(table):
    folder = Path(urlsplit(table.location()).path) / "data"
    return sorted(file.name for file in folder.glob("**/*") if file.is_file())


def again(table):
    """Return another handle of the same table."""
    return Table(table.name(), table._state, table.catalog)


def test_rows_and_columns_in_one_commit(table):
    table.append(ids(1))
    with table.transaction() as tx:
        with tx.update_schema() as update:
            update.add_column("place", "string")
        tx.append(pa.table({"id": [2], "place": ["here"]}))
        tx.set_properties(owner="me").append(ids(3), {"by": "test"})
        assert rows(table) == [1]
    assert rows(table) == [1, 2, 3]
    assert table.scan("place = 'here'").count() == 1
    assert table.properties["owner"] == "me"
    assert len(table.snapshots()) == 3
    assert table.current_snapshot().summary["by"] == "test"


def test_an_append_survives_one_of_others(table):
    table.append(ids(1))
    others = again(table)
    with table.transaction() as tx:
        tx.append(ids(2))
        tx.set_properties(owner="me")
        others.append(ids(3))
    assert rows(table) == [1, 2, 3]
    assert rows(others.refresh()) == [1, 2, 3]
    assert len(table.snapshots()) == 3


def test_a_tag_of_rows_that_are_appended_with_it(table):
    others = again(table)
    with table.transaction() as tx:
        tx.append(ids(1))
        tx.manage_snapshots().create_tag(tx.metadata.current_snapshot_id, "first").commit()
        others.append(ids(2))
    assert rows(table) == [1, 2]
    # The snapshot was made anew on top of the other one, under its id.
    assert sorted(table.scan(ref="first").to_arrow()["id"].to_pylist()) == [1, 2]


def test_a_schema_that_others_changed(table):
    others = again(table)
    tx = table.transaction()
    tx.update_schema().add_column("a", "int").commit()
    tx.append(pa.table({"id": [1], "a": pa.array([1], pa.int32())}))
    others.update_schema().add_column("b", "int").commit()
    with pytest.raises(CommitFailedException, match="last assigned field id has changed"):
        tx.commit_transaction()
    assert rows(table.refresh()) == []
    assert data_files(table) == []


@pytest.mark.parametrize("end", ["raise", "drop", "retype"])
def test_what_is_given_up_leaves_no_file(table, end):
    if end == "raise":
        with contextlib.suppress(ZeroDivisionError), table.transaction() as tx:
            tx.append(ids(1))
            assert len(data_files(table)) == 1
            _ = 1 / 0
    elif end == "drop":
        tx = table.transaction()
        tx.append(ids(1))
        with pytest.warns(ResourceWarning, match="never committed"):
            del tx
    else:
        tx = table.transaction()
        with pytest.raises(ice.errors.ValidationError, match="id"):
            tx.append(pa.table({"id": ["x"]}))
        tx.append(ids(1)).commit_transaction()
        assert rows(table) == [1]
        return
    assert data_files(table) == []
    assert table.refresh().current_snapshot() is None


def test_a_transaction_is_used_once(table):
    tx = table.transaction()
    tx.append(ids(1)).commit_transaction()
    for use in (lambda: tx.append(ids(2)), tx.commit_transaction, lambda: tx.set_properties(a="b")):
        with pytest.raises(InvalidArgumentError, match="already finished"):
            use()
    assert rows(table) == [1]


def test_unknown_modes_of_the_schema(table):
    for appender in (table, table.transaction()):
        with pytest.raises(InvalidArgumentError, match="schema_mode"):
            appender.append(ids(1), schema_mode="any")


def test_a_service_is_asked_for_the_table_and_its_branch(pointers):
    table = pointers.load_table("a.t")
    service = Service(table)
    table = Table(("a", "t"), table._state, service)
    table.append(ids(1))
    table.update_properties({"a": "b"})
    assert service.asked == [["assert-table-uuid", "assert-ref-snapshot-id"], ["assert-table-uuid"]]


def test_what_a_service_raises(pointers):
    table = pointers.load_table("a.t")
    service = Service(table)
    table = Table(("a", "t"), table._state, service)
    service.raises = [CommitFailedException("busy")]
    assert rows(table.append(ids(1))) == [1]
    for raised in (CommitStateUnknownException("no reply"), OSError("no route")):
        service.raises = [raised]
        before = data_files(table)
        with pytest.raises(CommitStateUnknownException, match=str(raised)):
            table.append(ids(2))
        # It may be in the table: nothing is deleted.
        assert len(data_files(table)) == len(before) + 1
    assert rows(table.refresh()) == [1]


def test_commit_table_of_a_catalog_of_pointers(pointers):
    table = pointers.load_table("a.t")
    update = {"action": "set-properties", "updates": {"owner": "me"}}
    uuid = {"type": "assert-table-uuid", "uuid": str(table.metadata.table_uuid)}
    response = pointers.commit_table("a.t", [uuid], [update])
    assert response.metadata.properties["owner"] == "me"
    assert response.metadata_location == pointers.load_table_metadata("a.t").metadata_location
    with pytest.raises(CommitFailedException, match="table uuid has changed"):
        pointers.commit_table("a.t", [{**uuid, "uuid": "00000000-0000-0000-0000-000000000000"}], [update])
    with pytest.raises(ice.errors.NoSuchTableError):
        pointers.commit_table("a.none", [], [update])
