"""Scans that a REST server plans: the same rows as planned here, whatever way the plan comes; and bad plans."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield import errors
from icefield.table import Table
from worlds.servers.plans import Plans
from worlds.servers.rest import Server, error

ROWS = pa.table({"id": range(6), "region": ["eu", "us"] * 3, "size": [0.5 * n for n in range(6)]})


@pytest.fixture
def plans(server: Server) -> Plans:
    """What plans ``n.t``: two partitions, an older spec, deleted rows."""
    with ice.load_catalog("c", uri=server.uri) as catalog:
        table = catalog.create_table("n.t", ROWS.schema, properties={"format-version": "3"})
        table.append(ROWS)
        with table.update_spec() as update:
            update.add_identity("region")
        table.append(pa.table({"id": range(6, 10), "region": ["eu", "us"] * 2, "size": [9.0] * 4}))
        table.delete("id = 3 or id = 8")
    server.config["endpoints"] = [
        *(f"{method} /v1/{{prefix}}/namespaces/{{namespace}}{path}" for method, path in ROUTES),
    ]
    return Plans(server)


ROUTES = [
    ("GET", "/tables/{table}"),
    ("POST", "/tables/{table}"),
    ("POST", "/tables/{table}/plan"),
    ("GET", "/tables/{table}/plan/{plan-id}"),
    ("DELETE", "/tables/{table}/plan/{plan-id}"),
    ("POST", "/tables/{table}/tasks"),
]


def opened(server: Server, **properties: str) -> Table:
    return ice.load_catalog("c", uri=server.uri, **properties).load_table("n.t")


def in_order(rows: pa.Table) -> list[dict[str, Any]]:
    return sorted(rows.to_pylist(), key=lambda row: repr(sorted(row.items())))


FILTERS = [
    None,
    "id > 2",
    "region = 'eu' and id < 9",
    "size in (0.5, 9.0) or id is null",
    "not (region = 'us')",
    "id < 0",
]


@pytest.mark.parametrize("way", ["at once", "later", "by pages", "without residuals"])
def test_rows_are_those_planned_here(server: Server, plans: Plans, way: str) -> None:
    plans.submitted = 2 if way == "later" else 0
    plans.page = 1 if way == "by pages" else 0
    plans.sends_residuals = way != "without residuals"
    table = opened(server)
    server.with_table = {}
    here = opened(server)
    for row_filter in FILTERS:
        for columns in [("*",), ("region",)]:
            mine, theirs = (one.scan(row_filter, columns) for one in (here, table))
            expected = in_order(mine.to_arrow())
            case = (way, row_filter, columns)
            assert in_order(theirs.to_arrow()) == expected, case
            assert in_order(theirs.to_arrow_batch_reader().read_all()) == expected, case
            assert theirs.count() == len(expected), case
            paths = [sorted(task.file.file_path for task in one.plan_files()) for one in (mine, theirs)]
            assert paths[0] == paths[1], case
            assert sorted(theirs.plan_batches().read_all()["file_path"].to_pylist()) == paths[0], case
            tasks = pickle.loads(pickle.dumps(theirs.tasks()))
            read = [task.rows(theirs.storage).to_pyarrow().read_all() for task in tasks]
            assert in_order(pa.concat_tables(read) if read else theirs.to_arrow()) == expected, case
    assert plans.open == {}, "plans are cancelled when they are no longer needed"


@pytest.mark.parametrize("names_paths", [False, True])
def test_vectors_of_one_file_are_told_apart(server: Server, plans: Plans, names_paths: bool) -> None:
    """Java's server names each of them by the path of their file; but a vector is of one data file only."""
    plans.names_paths = names_paths
    with ice.load_catalog("c", uri=server.uri) as catalog:
        server.with_table = {}
        here = catalog.load_table("n.t")
        here.update_properties({"write.delete.mode": "merge-on-read"}).delete("id in (2, 7)")
    server.with_table = {"config": {"scan-planning-mode": "server"}}
    table = opened(server)
    vectors = [one for task in table.scan().plan_files() for one in task.delete_files]
    assert len({one.file_path for one in vectors}) < len({one.content_offset for one in vectors}) == len(vectors) == 2
    assert in_order(table.scan().to_arrow()) == in_order(here.scan().to_arrow())
    assert table.scan().count() == 6
    # A vector of none of the files that are read is an error as before.
    wrong = {**FILE, "content": "position-deletes", "file-format": "puffin", "content-offset": 4}
    wrong |= {"content-size-in-bytes": 5, "referenced-data-file": "file:///other.parquet"}
    task = {"data-file": FILE, "delete-file-references": [0]}
    answer = {"status": "completed", "delete-files": [wrong], "file-scan-tasks": [task]}
    server.script((200, answer, {}), method="POST", ends="/plan")
    with pytest.raises(errors.IcefieldError):
        table.scan().to_arrow()


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_does_not_have(server: Server, plans: Plans, text: str) -> None:
    """In partitions Java's server writes them as texts."""
    server.with_table = {}
    server.config["endpoints"].append("POST /v1/{prefix}/namespaces/{namespace}/tables")
    rows = pa.table({"x": [float(text), 1.0, None], "y": pa.array([float(text)] * 3, pa.float32())})
    with ice.load_catalog("c", uri=server.uri) as catalog:
        here = catalog.create_table("n.floats", rows.schema, partition_by=["x", "y"]).append(rows)
    server.with_table = {"config": {"scan-planning-mode": "server"}}
    with ice.load_catalog("c", uri=server.uri) as catalog:
        table = catalog.load_table("n.floats")
        assert table.scan().is_planned_by_server
        for row_filter in (None, "x = 1", "x is null", "x is nan", "y > 0"):
            mine, theirs = (sorted(map(repr, one.scan(row_filter).to_arrow().to_pylist())) for one in (here, table))
            assert theirs == mine, row_filter


def test_the_server_has_the_last_word(server: Server, plans: Plans) -> None:
    plans.policy = {"type": "eq", "term": "region", "value": "eu"}
    table = opened(server)
    assert in_order(table.scan("id > 2", ("id",)).to_arrow()) == [{"id": 4}, {"id": 6}]
    assert table.scan().count() == 4
    asked = server.of("POST", "/plan")[0].body
    assert asked["select"] == ["id"]
    assert asked["filter"] == {"type": "gt", "term": "id", "value": 2}
    assert asked["snapshot-id"] == table.current_snapshot().snapshot_id  # type: ignore[union-attr]
    # Bounds are not asked for here, so that they are unknown; nothing is guessed from manifests.
    assert table.scan().bounds("id").reason is not None
    assert server.of("POST", "/plan")[-1].body["stats-fields"] == ["id"]
    table.scan(limit=2).to_arrow()
    assert server.of("POST", "/plan")[-1].body["min-rows-requested"] == 2


def test_what_the_protocol_has_no_words_for_is_tested_here(server: Server, plans: Plans) -> None:
    table = opened(server)
    name = table.scan().plan_files()[0].file.file_path
    found = table.scan(ice.expressions.EqualTo("_file", name), ("id", "_file")).to_arrow()
    assert found.num_rows > 0
    assert set(found["_file"].to_pylist()) == {name}
    assert "filter" not in server.of("POST", "/plan")[-1].body


def test_old_snapshots_keep_their_names(server: Server, plans: Plans) -> None:
    with opened(server).update_schema() as update:
        update.rename_column("size", "weight")
    table = opened(server)
    first = table.snapshots()[0].snapshot_id
    assert table.scan("size > 1.0", ("size",), snapshot_id=first).count() == 3
    asked = server.of("POST", "/plan")[-1].body
    assert (asked["snapshot-id"], asked["use-snapshot-schema"]) == (first, True)
    assert table.scan("weight > 1.0").count() == 5
    assert server.of("POST", "/plan")[-1].body["use-snapshot-schema"] is False


@pytest.mark.parametrize("mode", ["", "client", "server", "Server"])
def test_either_side_may_ask_for_it(server: Server, plans: Plans, mode: str) -> None:
    server.with_table = {}
    table = opened(server, **({"scan-planning-mode": mode} if mode else {}))
    assert table.scan().count() == 8
    assert bool(server.of("POST", "/plan")) is (mode.lower() == "server")


def test_an_empty_table_needs_no_plan(server: Server, plans: Plans) -> None:
    server.config["endpoints"].append("POST /v1/{prefix}/namespaces/{namespace}/tables")
    with ice.load_catalog("c", uri=server.uri) as catalog:
        assert catalog.create_table("n.empty", ROWS.schema).scan().to_arrow().num_rows == 0
    assert not server.of("POST", "/plan")


def test_credentials_are_those_of_the_plan(server: Server, plans: Plans) -> None:
    table = opened(server)
    mine = {"prefix": "file", "config": {"s3.access-key-id": "of-plan", "s3.secret-access-key": "hush"}}
    plans.more = {"storage-credentials": [mine]}
    scan = table.scan()
    assert scan.count() == 8
    assert b"of-plan" in pickle.dumps(scan.storage)
    assert b"of-plan" not in pickle.dumps(table.storage)
    assert "hush" not in repr(scan)
    with pytest.raises(errors.InvalidArgumentError, match="pickle its tasks"):
        pickle.dumps(scan)


def test_a_server_that_cannot_plan(server: Server, plans: Plans) -> None:
    server.config["endpoints"] = [one for one in server.config["endpoints"] if not one.endswith("/plan")]
    with pytest.raises(errors.UnsupportedFeatureError, match="scan-planning-mode=server"):
        opened(server)
    server.with_table = {"config": {"scan-planning-mode": "sometimes"}}
    with pytest.raises(errors.RESTError, match="expected client or server"):
        opened(server)


FILE = {
    "content": "data",
    "file-path": "file:///x.parquet",
    "file-format": "parquet",
    "spec-id": 0,
    "partition": [],
    "file-size-in-bytes": 10,
    "record-count": 1,
}


def _file(**changed: object) -> dict[str, Any]:
    data = {**FILE, **{name.replace("_", "-"): value for name, value in changed.items()}}
    return {"status": "completed", "file-scan-tasks": [{"data-file": data}]}


#: The answer to a request for a plan, and what the error says.
BAD: list[tuple[object, type[Exception], str]] = [
    ({"status": "failed", "error": {"message": "too large", "type": "X", "code": 500}}, errors.RESTError, "too large"),
    ({"status": "failed"}, errors.RESTError, "it gave no reason"),
    ({"status": "cancelled"}, errors.RESTError, "was cancelled on the server"),
    ({"status": "submitted"}, errors.RESTError, "has no plan-id"),
    ({"status": "lost"}, errors.RESTError, "status is 'lost'"),
    ({}, errors.RESTError, "status is None"),
    ({"status": "completed", "plan-id": 5}, errors.RESTError, "plan-id is not a text"),
    ({"status": "completed", "plan-tasks": "x"}, errors.RESTError, "plan-tasks is not a list of texts"),
    ({"status": "completed", "plan-tasks": ["gone"]}, errors.RESTError, "no longer knows the plan"),
    ({"status": "submitted", "plan-id": "gone"}, errors.RESTError, "no longer knows the plan"),
    ({"status": "completed", "file-scan-tasks": [{}]}, errors.CorruptDataError, "/0/file-scan-tasks/0"),
    (_file(spec_id=9), errors.CorruptDataError, "/0/file-scan-tasks/0/data-file/spec-id: .* no partition spec 9"),
    (_file(partition=[1]), errors.CorruptDataError, "/data-file/partition: expected 0 values, found 1"),
    (_file(spec_id=1, partition=[5]), errors.CorruptDataError, "/data-file/partition"),
    (_file(content="position-deletes"), errors.CorruptDataError, "/data-file/content: expected a data file"),
    (_file(record_count=-1), errors.CorruptDataError, "/record-count: -1 is negative"),
    (_file(file_size_in_bytes=0), errors.IcefieldError, "has 0 bytes"),
    (_file(file_format="csv"), errors.CorruptDataError, "file-format"),
    (_file(key_metadata="xyz"), errors.CorruptDataError, "/data-file/key-metadata"),
    (_file(value_counts={"keys": [1], "values": []}), errors.CorruptDataError, "value-counts"),
    (
        {"status": "completed", "file-scan-tasks": [{"data-file": FILE}, {"data-file": FILE}]},
        errors.CorruptDataError,
        "/0/file-scan-tasks/1/data-file/file-path: .* has a task already",
    ),
    (
        {"status": "completed", "file-scan-tasks": [{"data-file": FILE, "delete-file-references": [0]}]},
        errors.CorruptDataError,
        "/delete-file-references: 0 is none of 0 delete files",
    ),
    (
        {"status": "completed", "delete-files": [FILE]},
        errors.CorruptDataError,
        "/0/delete-files/0/content: expected a delete file",
    ),
    (
        {
            "status": "completed",
            "file-scan-tasks": [{"data-file": FILE, "residual-filter": {"type": "eq", "term": "nope", "value": 1}}],
        },
        errors.CorruptDataError,
        "/0/file-scan-tasks/0/residual-filter.*nope",
    ),
    (error(404, "NoSuchTableException", "gone"), errors.NoSuchTableError, "gone"),
    (error(406, "UnsupportedOperationException", "no"), errors.UnsupportedFeatureError, "does not support"),
    ((200, b"<html>", {}), errors.RESTError, "is not JSON"),
]


def test_bad_plans_are_errors_that_name_their_place(server: Server, plans: Plans) -> None:
    scan = opened(server).scan
    for answer, kind, says in BAD:
        server.script(answer if isinstance(answer, tuple) else (200, answer, {}), method="POST", ends="/plan")
        with pytest.raises(errors.IcefieldError, match=says) as raised:
            scan().to_arrow()
        text = str(raised.value)
        assert isinstance(raised.value, kind), (answer, text)
        assert "\n" not in text, text
    # The same piece again and again would never end.
    again = {"status": "completed", "plan-tasks": ["a"]}
    server.script((200, again, {}), method="POST", ends="/plan")
    server.script((200, again, {}), method="POST", ends="/tasks")
    with pytest.raises(errors.RESTError, match="same plan task again"):
        scan().to_arrow()
    assert scan().count() == 8
