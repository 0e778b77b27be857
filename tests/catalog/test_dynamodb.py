"""The DynamoDB catalog on moto's DynamoDB: its items, what PyIceberg reads of ours and we of its, and errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import icefield as ice
from icefield.catalog.aws import RefusedError
from icefield.catalog.dynamodb import DynamoDbCatalog

ROWS = pa.table({"id": [1, 2], "name": ["a", "b"]})
LOST = ice.CommitStateUnknownException("no reply")


@pytest.fixture(scope="module")
def opened(aws: dict[str, str]) -> Iterator[DynamoDbCatalog]:
    properties = {**aws, "dynamodb.table-name": "tested"}
    with ice.load_catalog("d", type="dynamodb", **properties) as catalog:
        assert isinstance(catalog, DynamoDbCatalog)
        # Nothing is there before the first namespace, and nothing is made by looking.
        assert catalog.list_namespaces() == []
        assert not catalog.namespace_exists("db")
        assert not catalog.table_exists("db.t")
        with pytest.raises(ice.NoSuchNamespaceError):
            catalog.add_pointer("db.t", "file:///nowhere")
        assert catalog._service.ask("list_tables")["TableNames"].count("tested") == 0
        yield catalog


@pytest.fixture
def catalog(opened: DynamoDbCatalog, tmp_path: Path, request: pytest.FixtureRequest) -> DynamoDbCatalog:
    opened.properties["warehouse"] = str(tmp_path)
    opened.create_namespace(request.node.name, {"owner": "me"})
    return opened


@pytest.fixture
def db(catalog: DynamoDbCatalog, request: pytest.FixtureRequest) -> str:
    return request.node.name


def test_the_items(catalog: DynamoDbCatalog, db: str, tmp_path: Path) -> None:
    table = catalog.create_table(f"{db}.t", ROWS.schema)
    assert table.location() == f"file://{tmp_path}/{db}.db/t"
    first = table.metadata_location
    before = catalog._item(f"{db}.t", db)
    table.append(ROWS)
    item = catalog._item(f"{db}.t", db)
    assert item is not None
    assert before is not None
    assert item.keys() == before.keys()
    assert item["v"] != before["v"]
    assert {name: item[name] for name in item if name.startswith("p.")} == {
        "p.table_type": "ICEBERG",
        "p.metadata_location": table.metadata_location,
        "p.previous_metadata_location": first,
    }
    assert item.keys() - {name for name in item if name.startswith("p.")} == {
        "identifier",
        "namespace",
        "v",
        "created_at",
        "updated_at",
    }
    catalog.rename_table(f"{db}.t", f"{db}.u")
    renamed = catalog._item(f"{db}.u", db)
    assert renamed is not None
    assert (renamed["created_at"], renamed["p.metadata_location"]) == (item["created_at"], table.metadata_location)


def test_pyiceberg_reads_ours_and_we_its(
    catalog: DynamoDbCatalog, db: str, aws: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dynamodb = pytest.importorskip("pyiceberg.catalog.dynamodb")
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", aws["dynamodb.endpoint"])
    theirs = dynamodb.DynamoDbCatalog("d", warehouse=f"file://{tmp_path}", **aws, **{"table-name": "tested"})
    catalog.create_table(f"{db}.ours", ROWS.schema).append(ROWS)
    assert theirs.load_table(f"{db}.ours").scan().to_arrow().to_pylist() == ROWS.to_pylist()
    assert theirs.load_namespace_properties(db) == {"owner": "me"}
    theirs.create_table(f"{db}.theirs", schema=ROWS.schema)
    catalog.load_table(f"{db}.theirs").append(ROWS)
    assert theirs.load_table(f"{db}.theirs").scan().to_arrow().num_rows == 2
    assert sorted(theirs.list_tables(db)) == catalog.list_tables(db) == [(db, "ours"), (db, "theirs")]
    assert theirs.list_namespaces() == catalog.list_namespaces()


def test_answers_that_are_lost_or_refused(catalog: DynamoDbCatalog, db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = catalog._service.ask
    errors: dict[str, Exception] = {}

    def ask(operation: str, /, **arguments: object) -> dict[str, object]:
        error = errors.pop(operation, None)
        if isinstance(error, RefusedError) and not error.repeated:
            raise error
        answer = real(operation, **arguments)
        if error is not None:
            raise error
        return answer

    monkeypatch.setattr(catalog._service, "ask", ask)
    errors["transact_write_items"] = LOST
    table = catalog.create_table(f"{db}.t", ROWS.schema)
    errors["update_item"] = LOST
    table.append(ROWS)
    errors["update_item"] = RefusedError("x", "ConditionalCheckFailedException", repeated=True)
    table.append(ROWS)
    assert catalog.load_table(f"{db}.t").scan().count() == 4
    errors["transact_write_items"] = RefusedError("denied", "AccessDeniedException")
    with pytest.raises(ice.CommitFailedException, match="denied"):
        catalog.create_table(f"{db}.u", ROWS.schema)
    errors["get_item"] = LOST
    with pytest.raises(ice.StorageError, match="no reply"):
        catalog.load_table(f"{db}.t")
    # It was changed between the read and the rename.
    item = catalog._require_item((db, "t"))
    monkeypatch.setattr(catalog, "_require_item", lambda _: {**item, "v": "older"})
    with pytest.raises(ice.CommitFailedException, match="was changed while it was renamed"):
        catalog.rename_table(f"{db}.t", f"{db}.u")
    monkeypatch.undo()
    monkeypatch.setattr(catalog._service, "ask", ask)
    errors["delete_item"] = RefusedError("x", "ConditionalCheckFailedException", repeated=True)
    catalog.drop_table(f"{db}.t")
    assert catalog.list_tables(db) == []


def test_no_file_is_deleted_where_a_repeated_request_cannot_be_looked_up(
    catalog: DynamoDbCatalog, db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = catalog._service.ask
    changed: list[str] = []

    def ask(operation: str, /, **arguments: object) -> dict[str, object]:
        if changed and operation == "get_item":
            raise RefusedError("throttled", "ThrottlingException", repeated=True)
        answer = real(operation, **arguments)
        if operation in {"update_item", "transact_write_items"}:
            changed.append(operation)
            raise RefusedError("x", "ConditionalCheckFailedException", repeated=True)
        return answer

    table = catalog.create_table(f"{db}.t", ROWS.schema, properties={"commit.status-check.num-retries": "0"})
    monkeypatch.setattr(catalog._service, "ask", ask)
    with pytest.raises(ice.CommitStateUnknownException, match="cannot be found out"):
        table.append(ROWS)
    changed.clear()
    with pytest.raises(ice.CommitStateUnknownException, match="cannot be found out"):
        catalog.create_table(f"{db}.u", ROWS.schema)
    monkeypatch.undo()
    assert [catalog.load_table(f"{db}.{name}").scan().to_arrow().num_rows for name in "tu"] == [2, 0]


def test_what_is_above_a_namespace_is_descended_through(catalog: DynamoDbCatalog) -> None:
    catalog.create_namespace("above.below")
    catalog.create_table("above.below.t", ROWS.schema)
    assert ("above",) in catalog.list_namespaces()
    assert catalog.list_namespaces("above") == [("above", "below")]
    assert catalog.list_tables("above") == []
    with pytest.raises(ice.NoSuchNamespaceError):
        catalog.load_namespace_properties("above")
    with pytest.raises(ice.NoSuchNamespaceError):
        catalog.create_table("above.t", ROWS.schema)
    catalog.drop_table("above.below.t")
    catalog.drop_namespace("above.below")
    with pytest.raises(ice.NoSuchNamespaceError):
        catalog.list_tables("above")
