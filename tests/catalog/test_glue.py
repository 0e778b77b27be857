"""The Glue catalog on moto's Glue: what it stores, what PyIceberg reads of it and we of PyIceberg's, and errors."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield.catalog.aws import RefusedError
from icefield.catalog.glue import GlueCatalog

ROWS = pa.table({"id": [1, 2], "name": ["a", "b"]})
QUICKLY = {
    "commit.status-check.num-retries": "1",
    "commit.status-check.min-wait-ms": "1",
    "commit.retry.num-retries": "1",
    "commit.retry.min-wait-ms": "1",
}


@pytest.fixture(scope="module")
def opened(aws: dict[str, str]) -> GlueCatalog:
    catalog = ice.load_catalog("g", type="glue", **aws)
    assert isinstance(catalog, GlueCatalog)
    return catalog


@pytest.fixture
def catalog(opened: GlueCatalog, tmp_path: Path) -> Iterator[GlueCatalog]:
    catalog = opened
    catalog.properties["warehouse"] = str(tmp_path)
    catalog.create_namespace("db", {"comment": "rows", "owner": "me"})
    yield catalog
    catalog._ask("delete_database", Name="db")


def stored(catalog: GlueCatalog, name: str) -> dict[str, Any]:
    return catalog._ask("get_table", DatabaseName="db", Name=name)["Table"]


def test_what_glue_has_of_a_table(catalog: GlueCatalog, tmp_path: Path) -> None:
    point = pa.struct([("x", pa.decimal128(9, 2)), ("l", pa.list_(pa.int32()))])
    columns = [pa.field("id", pa.int64(), nullable=False), ("at", pa.timestamp("us", "UTC")), ("p", point)]
    schema = pa.schema(columns)
    table = catalog.create_table("db.t", schema, properties={"comment": "of rows"})
    assert table.location() == f"file://{tmp_path}/db.db/t"
    first = table.metadata_location
    with table.update_schema() as change:
        change.delete_column("at")
        change.add_column("m", "uuid", doc="more")
    found = stored(catalog, "t")
    assert found["Parameters"] == {
        "table_type": "ICEBERG",
        "metadata_location": table.metadata_location,
        "previous_metadata_location": first,
    }
    assert (found["TableType"], found["Description"]) == ("EXTERNAL_TABLE", "of rows")
    assert found["StorageDescriptor"]["Location"] == table.location()
    shown = {each["Name"]: each for each in found["StorageDescriptor"]["Columns"]}
    assert {name: each["Type"] for name, each in shown.items()} == {
        "id": "bigint",
        "p": "struct<x:decimal(9,2),l:array<int>>",
        "m": "string",
        "at": "timestamp",
    }
    assert shown["m"]["Comment"] == "more"
    assert [each["Parameters"]["iceberg.field.current"] for each in shown.values()] == ["true"] * 3 + ["false"]
    assert shown["id"]["Parameters"]["iceberg.field.optional"] == "false"
    assert catalog.load_namespace_properties("db") == {"comment": "rows", "owner": "me"}


def test_what_others_set_in_glue_stays(catalog: GlueCatalog) -> None:
    table = catalog.create_table("db.t", ROWS.schema)
    found = stored(catalog, "t")
    changed = {
        "Name": "t",
        "Owner": "them",
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {**found["Parameters"], "classification": "x"},
        "StorageDescriptor": {**found["StorageDescriptor"], "InputFormat": "theirs"},
    }
    changed["StorageDescriptor"]["Columns"][0]["Comment"] = "described in Glue"
    catalog._ask("update_table", DatabaseName="db", TableInput=changed)
    table.append(ROWS)
    again = stored(catalog, "t")
    assert (again["Owner"], again["Parameters"]["classification"]) == ("them", "x")
    assert again["StorageDescriptor"]["InputFormat"] == "theirs"
    assert again["StorageDescriptor"]["Columns"][0]["Comment"] == "described in Glue"
    catalog.rename_table("db.t", "db.u")
    assert stored(catalog, "u")["Parameters"] == again["Parameters"]


def test_pyiceberg_reads_ours_and_we_its(catalog: GlueCatalog, aws: dict[str, str], tmp_path: Path) -> None:
    glue = pytest.importorskip("pyiceberg.catalog.glue")
    theirs = glue.GlueCatalog("g", warehouse=f"file://{tmp_path}", **aws)
    catalog.create_table("db.ours", ROWS.schema).append(ROWS)
    read = theirs.load_table("db.ours")
    assert read.scan().to_arrow().to_pylist() == ROWS.to_pylist()
    theirs.create_table("db.theirs", schema=ROWS.schema).append(ROWS)
    table = catalog.load_table("db.theirs")
    assert table.scan().to_arrow().to_pylist() == ROWS.to_pylist()
    for _ in range(2):
        read = theirs.load_table("db.ours")
        read.append(ROWS)
        table.append(ROWS)
        catalog.load_table("db.ours").append(ROWS)
        theirs.load_table("db.theirs").append(ROWS)
    assert catalog.load_table("db.ours").scan().count() == 10
    assert theirs.load_table("db.theirs").scan().to_arrow().num_rows == 10
    assert sorted(theirs.list_tables("db")) == catalog.list_tables("db") == [("db", "ours"), ("db", "theirs")]


def test_pages_of_lists(catalog: GlueCatalog) -> None:
    location = catalog.create_table("db.t", ROWS.schema).metadata_location
    for number in range(110):
        catalog.register_table(f"db.t{number}", location)
    catalog._ask("create_table", DatabaseName="db", TableInput={"Name": "csv", "Parameters": {}})
    assert len(catalog.list_tables("db")) == 111
    catalog._ask("delete_table", DatabaseName="db", Name="csv")


REFUSED: list[tuple[Callable[[ice.Catalog], object], type[Exception], str]] = [
    (lambda c: c.load_table("db.csv"), ice.NoSuchTableError, "db.csv of catalog g is not an Iceberg table"),
    (lambda c: c.drop_table("db.csv"), ice.NoSuchTableError, "not an Iceberg table"),
    (lambda c: c.rename_table("db.csv", "db.u"), ice.NoSuchTableError, "not an Iceberg table"),
    (lambda c: c.drop_namespace("db"), ice.NamespaceNotEmptyError, "it contains csv, which is not an Iceberg"),
    (lambda c: c.create_table("db.csv", ROWS.schema), ice.TableAlreadyExistsError, "already exists"),
    (lambda c: c.create_table("db.A", ROWS.schema), ice.InvalidArgumentError, "glue.skip-name-validation=true"),
    (lambda c: c.create_namespace("a-b"), ice.InvalidArgumentError, "glue.skip-name-validation=true"),
    (lambda c: c.create_namespace("a.b"), ice.InvalidArgumentError, "have one level"),
    (lambda c: c.load_table("a.b.c"), ice.NoSuchTableError, "have one level"),
    (lambda c: c.list_tables("nowhere"), ice.NoSuchNamespaceError, "nowhere does not exist"),
    (lambda c: c.create_table("nowhere.t", ROWS.schema), ice.NoSuchNamespaceError, "nowhere does not exist"),
    (lambda c: c.load_table("db.t"), ice.NoSuchTableError, "db.t does not exist"),
]


@pytest.mark.parametrize(("call", "kind", "message"), REFUSED)
def test_refusals(
    catalog: GlueCatalog, call: Callable[[ice.Catalog], object], kind: type[Exception], message: str
) -> None:
    catalog._ask("create_table", DatabaseName="db", TableInput={"Name": "csv", "Parameters": {}})
    try:
        with pytest.raises(kind, match=message):
            call(catalog)
    finally:
        catalog._ask("delete_table", DatabaseName="db", Name="csv")


class Answers:
    """Lets requests through, and changes what comes back."""

    def __init__(self, catalog: GlueCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
        self.real, self.errors = catalog._service.ask, dict[str, Exception]()
        self.always: dict[str, Exception] = {}
        monkeypatch.setattr(catalog._service, "ask", self)

    def __call__(self, operation: str, /, **arguments: object) -> dict[str, Any]:
        error = self.errors.pop(operation, None) or self.always.get(operation)
        if isinstance(error, RefusedError) and not error.repeated:
            raise error
        answer = self.real(operation, **arguments)
        if error is not None:
            raise error
        return answer


def test_answers_that_are_lost_or_come_twice(catalog: GlueCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Answers(catalog, monkeypatch)
    lost = ice.CommitStateUnknownException("no reply")
    twice = {
        "create_table": RefusedError("x", "AlreadyExistsException", repeated=True),
        "create_database": RefusedError("x", "AlreadyExistsException", repeated=True),
        "delete_table": RefusedError("x", "EntityNotFoundException", repeated=True),
        "delete_database": RefusedError("x", "EntityNotFoundException", repeated=True),
        "update_table": RefusedError("x", "ConcurrentModificationException", repeated=True),
    }
    answers.errors = dict(twice)
    catalog.create_namespace("other")
    table = catalog.create_table("other.t", ROWS.schema, properties=QUICKLY)
    table.append(ROWS)
    assert catalog.load_table("other.t").scan().count() == 2
    answers.errors["update_table"] = lost
    table.append(ROWS)
    assert catalog.load_table("other.t").scan().count() == 4
    answers.errors["create_table"] = lost
    assert catalog.create_table("other.u", ROWS.schema).scan().count() == 0
    # A failed removal of the old name takes the copy back.
    answers.errors["delete_table"] = RefusedError("denied", "AccessDeniedException")
    with pytest.raises(ice.StorageError, match=r"other.u was not renamed: denied"):
        catalog.rename_table("other.u", "other.v")
    assert [name for _, name in catalog.list_tables("other")] == ["t", "u"]
    answers.always = {"update_table": RefusedError("denied", "AccessDeniedException")}
    with pytest.raises(ice.CommitFailedException, match="denied"):
        catalog.commit_table("other.t", [], [{"action": "set-properties", "updates": {"a": "b"}}])
    answers.errors = dict(twice)
    for name in ("t", "u"):
        catalog.drop_table(f"other.{name}")
    answers.errors["delete_database"] = twice["delete_database"]
    catalog.drop_namespace("other")
    assert ("other",) not in catalog.list_namespaces()


@pytest.mark.parametrize("code", ["ConcurrentModificationException", "ThrottlingException"])
def test_no_file_is_deleted_where_a_repeated_request_cannot_be_looked_up(
    catalog: GlueCatalog, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    answers = Answers(catalog, monkeypatch)
    table = catalog.create_table("db.repeated", ROWS.schema, properties=QUICKLY)
    answers.errors["update_table"] = RefusedError("x", code, repeated=True)
    read = answers.real

    def after_the_change(operation: str, /, **arguments: object) -> dict[str, Any]:
        answers.always["get_table"] = RefusedError("throttled", "ThrottlingException", repeated=True)
        return read(operation, **arguments)

    monkeypatch.setattr(
        answers, "real", lambda name, **more: (after_the_change if name == "update_table" else read)(name, **more)
    )
    with pytest.raises(ice.CommitStateUnknownException, match="cannot be found out"):
        table.append(ROWS)
    answers.always = {}
    assert catalog.load_table("db.repeated").scan().to_arrow().num_rows == 2


#: Whether the removal of the old name is carried out, its answer, and what is there at the end.
RENAMED: list[tuple[bool, Exception, list[str]]] = [
    (True, ice.CommitStateUnknownException("no reply"), ["new"]),
    (False, ice.CommitStateUnknownException("no reply"), ["new"]),
    (True, RefusedError("x", "EntityNotFoundException", repeated=True), ["new"]),
    (False, RefusedError("x", "ThrottlingException", repeated=True), ["new"]),
    (False, RefusedError("denied", "AccessDeniedException"), ["old"]),
]


@pytest.mark.parametrize(("done", "answer", "left"), RENAMED)
def test_a_rename_never_leaves_a_table_without_a_name(
    catalog: GlueCatalog, monkeypatch: pytest.MonkeyPatch, done: bool, answer: Exception, left: list[str]
) -> None:
    catalog.create_table("db.old", ROWS.schema, properties=QUICKLY).append(ROWS)
    real = catalog._service.ask

    def ask(operation: str, /, **arguments: object) -> dict[str, Any]:
        if operation == "delete_table" and arguments["Name"] == "old":
            if done:
                real(operation, **arguments)
            raise answer
        return real(operation, **arguments)

    monkeypatch.setattr(catalog._service, "ask", ask)
    if done:
        catalog.rename_table("db.old", "db.new")
    else:
        with pytest.raises(ice.IcefieldError):
            catalog.rename_table("db.old", "db.new")
    assert [name for _, name in catalog.list_tables("db")] == left
    catalog.load_table(f"db.{left[0]}").append(ROWS)
    assert catalog.load_table(f"db.{left[0]}").scan().count() == 4


@pytest.mark.parametrize("when", ["create_table", "delete_table"])
def test_a_commit_during_a_rename_is_kept_or_refused(
    catalog: GlueCatalog, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    table = catalog.create_table("db.old", ROWS.schema, properties=QUICKLY)
    real, rows = catalog._service.ask, [0]

    def ask(operation: str, /, **arguments: object) -> dict[str, Any]:
        if operation == when:
            monkeypatch.setattr(catalog._service, "ask", real)
            try:
                table.append(ROWS)
                rows[0] = 2
            except ice.IcefieldError:
                pass
        return real(operation, **arguments)

    monkeypatch.setattr(catalog._service, "ask", ask)
    try:
        catalog.rename_table("db.old", "db.new")
    except ice.CommitFailedException as error:
        assert "changed while it was renamed" in str(error)
    [name] = catalog.list_tables("db")
    assert catalog.load_table(name).scan().count() == rows[0]


def test_a_namespace_whose_first_page_of_tables_is_empty_is_not_dropped(
    catalog: GlueCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = [{"TableList": [], "NextToken": "more"}, {"TableList": [{"Name": "hidden", "Parameters": {}}]}]
    with monkeypatch.context() as patched:
        patched.setattr(catalog._service, "pages", lambda *_, **__: iter(pages))
        patched.setattr(
            catalog._service, "read", lambda operation, **__: {"TableList": [], "Database": {"Name": operation}}
        )
        with pytest.raises(ice.NamespaceNotEmptyError, match="hidden"):
            catalog.drop_namespace("db")


def test_services_that_cannot_be_reached(tmp_path: Path) -> None:
    nowhere = {"glue.endpoint": "http://127.0.0.1:1", "glue.max-retries": "0", "client.region": "us-east-1"}
    keys = {"glue.access-key-id": "a", "glue.secret-access-key": "hush"}
    catalog = ice.load_catalog("g", type="glue", warehouse=str(tmp_path), **nowhere, **keys)
    assert "hush" not in repr(catalog)
    with pytest.raises(ice.StorageError, match=r"catalog g: glue get_table: Could not connect .*127.0.0.1:1"):
        catalog.load_table("db.t")
    with pytest.raises(ice.StorageError, match=r"glue get_databases: Could not connect"):
        catalog.list_namespaces()
    with pytest.raises(ice.StorageError, match=r"glue session: The config profile \(nobody\)"):
        ice.load_catalog("g", type="glue", **nowhere, **{"glue.profile-name": "nobody"}).list_namespaces()
    with pytest.raises(ice.InvalidArgumentError, match=r"glue\.max-retries must be a number"):
        ice.load_catalog("g", type="glue", **{"glue.max-retries": "many"}).list_namespaces()
    with pytest.raises(ice.InvalidArgumentError, match=r"glue\.regoin; did you mean glue\.region"):
        ice.load_catalog("g", type="glue", **{"glue.regoin": "x"})


def test_a_role_is_assumed(aws: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", aws["glue.endpoint"])
    role = {"glue.role-arn": "arn:aws:iam::123456789012:role/reader", "glue.role-session-name": "tests"}
    catalog = ice.load_catalog("g", type="glue", **aws, **role)
    assert catalog.list_namespaces() == []
    assert isinstance(catalog, GlueCatalog)
    client = catalog._service._client()
    assert client._request_signer._credentials.get_frozen_credentials().token


def test_a_catalog_travels_and_survives_forks(catalog: GlueCatalog) -> None:
    catalog.create_table("db.t", ROWS.schema)
    assert pickle.loads(pickle.dumps(catalog)).list_tables("db") == [("db", "t")]
    before = catalog._service._client()
    assert catalog._service._client() is before
    catalog._service._made = (os.getpid() + 1, before)
    assert catalog._service._client() is not before


def test_boto3_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = ice.load_catalog("g", type="glue")
    for name in [name for name in sys.modules if name.partition(".")[0] in {"boto3", "botocore"}]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(ice.errors.NotInstalledError, match=r"pip install 'icefield\[glue\]'"):
        catalog.list_namespaces()
