"""Tables whose older snapshots a server sends only when they are needed (``snapshot-loading-mode=refs``)."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable

import pyarrow as pa
import pytest

import icefield as ice
from icefield.catalog.rest import RestCatalog
from icefield.catalog.rest.snapshots import completed
from icefield.errors import InvalidArgumentError, TableReplacedError
from icefield.metadata import TableMetadata
from worlds.servers.rest import Server

ROWS = pa.table({"id": [1]})


@pytest.fixture
def ids(server: Server) -> list[int]:
    """The snapshots of the table ``n.t``: the third is current, the second has a tag."""
    table = ice.load_catalog("c", uri=server.uri).create_table("n.t", ROWS.schema)
    for number in range(3):
        table.append(ROWS)
        if number == 1:
            table.manage_snapshots().create_tag(table.metadata.current_snapshot_id or 0, "kept").commit()
    return [snapshot.snapshot_id for snapshot in table.snapshots()]


def opened(server: Server) -> ice.Table:
    return RestCatalog("c", uri=server.uri, **{"snapshot-loading-mode": "refs"}).load_table("n.t")


@pytest.mark.parametrize(
    ("use", "loads"),
    [
        (lambda table, _: table.scan().count() == 3, False),
        (lambda table, _: table.scan(ref="kept").count() == 2, False),
        (lambda table, _: table.scan().use_ref("kept").count() == 2, False),
        (lambda table, _: (table.schema(), table.properties, table.refs(), repr(table)), False),
        (lambda table, ids: table.current_snapshot().snapshot_id == ids[2], False),
        (lambda table, ids: table.snapshot_by_id(ids[1]) is not None, False),
        (lambda table, _: pickle.loads(pickle.dumps(table.scan())).count() == 3, False),
        (lambda table, ids: table.snapshot_by_id(ids[0]) is not None, True),
        (lambda table, ids: [one.snapshot_id for one in table.snapshots()] == ids, True),
        (lambda table, ids: [entry.snapshot_id for entry in table.history()] == ids, True),
        (lambda table, ids: [one.snapshot_id for one in table.metadata.snapshots] == ids, True),
        (lambda table, ids: table.scan(snapshot_id=ids[0]).count() == 1, True),
        (lambda table, ids: table.scan().update(snapshot_id=ids[0]).count() == 1, True),
        (lambda table, _: len(table.scan().metadata.snapshots) == 3, True),
        (lambda table, _: table.inspect.snapshots().num_rows == 3, True),
        (lambda table, _: len(table.append(ROWS).snapshots()) == 4, True),
        (lambda table, ids: table.incremental_append_scan(from_snapshot_id_exclusive=ids[0]).count() == 2, True),
        (lambda table, _: pickle.loads(pickle.dumps(table)).scan().count() == 3, True),
    ],
)
def test_what_needs_the_older_snapshots(
    server: Server, ids: list[int], use: Callable[[ice.Table, list[int]], object], loads: bool
) -> None:
    table = opened(server)
    before = len(server.asked)
    assert use(table, ids)
    loaded = [one.query for one in server.asked[before:] if one.method == "GET" and one.names[-1] == "t"]
    assert loaded[:1] == [{}] * loads
    use(table, ids)
    assert len([one for one in server.asked if one.query == {"snapshots": "refs"}]) == 1


def test_snapshots_made_meanwhile_are_left_out(server: Server, ids: list[int]) -> None:
    table = opened(server)
    where = table.metadata_location
    ice.load_catalog("c", uri=server.uri).load_table("n.t").append(ROWS)
    assert [one.snapshot_id for one in table.snapshots()] == ids
    assert [entry.snapshot_id for entry in table.history()] == ids
    assert (table.metadata_location, table.scan().count()) == (where, 3)
    assert table.refresh().scan().count() == 4
    assert len(table.snapshots()) == 4


def test_another_table_of_the_name_is_an_error(server: Server, ids: list[int]) -> None:
    table = opened(server)
    other = ice.load_catalog("c", uri=server.uri)
    other.drop_table("n.t")
    other.create_table("n.t", ROWS.schema)
    with pytest.raises(TableReplacedError, match="another table now"):
        table.snapshots()


def test_the_rest_of_metadata_is_that_of_the_table(server: Server, ids: list[int]) -> None:
    whole = json.loads(ice.load_catalog("c", uri=server.uri).load_table("n.t").metadata_json())
    part = {**whole, "snapshots": whole["snapshots"][1:], "snapshot-log": whole["snapshot-log"][2:]}
    assert json.loads(completed(*map(TableMetadata.from_json, (part, whole))).to_json()) == whole
    with pytest.raises(InvalidArgumentError, match="snapshot-loading-mode=some: expected all or refs"):
        ice.load_catalog("c", uri=server.uri, **{"snapshot-loading-mode": "some"}).load_table("n.t")
