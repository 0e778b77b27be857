"""What a REST catalog sends and gets, beside the OpenAPI document of the protocol; every server of tests checks it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield.catalog.rest import RestCatalog
from worlds.servers import protocol as rest_protocol
from worlds.servers.rest import Server, error, served

ROWS = pa.table({"id": [1, 2], "region": ["eu", "us"]})
#: Operations that no test asks for, because the client does not know them.
UNKNOWN = {
    "GET /v1/{prefix}/namespaces/{namespace}/functions",
    "GET /v1/{prefix}/namespaces/{namespace}/functions/{function}",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/unregister",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/sign",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan",
    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan/{plan-id}",
    "DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan/{plan-id}",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/tasks",
}


def story(server: Server) -> None:
    """Everything that a catalog does, once."""
    server.config["endpoints"] = [str(one) for _, one in rest_protocol.operations()]
    catalog = RestCatalog("c", uri=server.uri)
    catalog.create_namespace("a", {"k": "v"})
    catalog.update_namespace_properties("a", ["k"], {"l": "m"})
    assert catalog.namespace_exists("a")
    catalog.list_namespaces("a")
    for version in ("1", "2", "3"):
        given = {"format-version": version}
        table = catalog.create_table(
            f"a.t{version}", ROWS.schema, partition_by="region", sort_by="id", properties=given
        )
        table.append(ROWS)
        table.delete("id = 1")
        with table.update_schema() as schema:
            schema.add_column("extra", "int", doc="more")
            schema.rename_column("region", "place")
        with table.update_spec() as spec:
            spec.add_field("id", "bucket[4]")
        table.update_properties({"k": "v"}, ["none"])
        table.manage_snapshots().create_tag(table.snapshots()[0].snapshot_id, "first", 1).create_branch(
            table.snapshots()[0].snapshot_id, "side"
        ).commit()
        table.manage_snapshots().remove_tag("first").commit()
        table.refresh().expire_snapshots()
    with catalog.create_table_transaction("a.staged", ROWS.schema) as tx:
        tx.append(ROWS)
    with catalog.replace_table_transaction("a.staged", pa.schema({"x": pa.int64()})) as tx:
        tx.append(pa.table({"x": [1]}))
    with catalog.transaction() as several:
        several.table("a.t2").append(pa.table({"id": [3]}))
        several.table("a.staged").append(pa.table({"x": [2]}))
    moved = catalog.rename_table("a.staged", "a.moved")
    assert catalog.table_exists("a.moved")
    catalog.list_tables("a")
    catalog.drop_table("a.moved")
    catalog.register_table("a.again", moved.metadata_location)
    catalog.purge_table("a.again")
    view = catalog.create_view("a.v", ROWS.schema, {"spark": "SELECT 1"}, properties={"k": "v"})
    view.replace(pa.schema({"x": pa.int64()}), {"spark": "SELECT 2"}, default_catalog="c").set_current_version(1)
    view.refresh().update_properties({"l": "m"}, ["k"]).set_location("file:///elsewhere")
    catalog.rename_view("a.v", "a.w")
    assert catalog.view_exists("a.w")
    catalog.list_views("a")
    catalog.drop_view("a.w")
    catalog.load_namespace_properties("a")
    table.scan("id > 1").plan_files()
    catalog.close()
    catalog.drop_table("a.t1")
    catalog.drop_table("a.t2")
    catalog.drop_table("a.t3")
    catalog.drop_namespace("a")


def test_the_whole_of_the_protocol_is_asked_for(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        story(server)
    asked = {str(rest_protocol.operation(one.method, one.path)) for one in server.asked}
    known = {str(one) for _, one in rest_protocol.operations()}
    assert known - asked - UNKNOWN - LATER == set()


#: Asked for by the tests of other files, which are checked as these are.
LATER = {
    "POST /v1/oauth/tokens",
    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials",
    "POST /v1/{prefix}/namespaces/{namespace}/register-view",
}


WRONG: list[tuple[str, str, dict[str, str], object, str]] = [
    ("GET", "/v1/nothing", {}, "", "no route of the protocol"),
    ("DELETE", "/v1/config", {}, "", "no route of the protocol"),
    ("GET", "/v1/namespaces", {"nosuch": "1"}, "", "query parameter nosuch"),
    ("GET", "/v1/namespaces/n/tables/t", {"snapshots": "some"}, "", "query parameter snapshots=some: not one of"),
    ("GET", "/v1/p/namespaces/n", {}, {"a": 1}, "a body"),
    ("POST", "/v1/namespaces", {}, "", "no body"),
    ("POST", "/v1/namespaces", {}, {"namespace": ["a"], "extra": 1}, "/extra: unknown"),
    ("POST", "/v1/namespaces", {}, {"namespace": "a"}, "/namespace: str, expected array"),
    ("POST", "/v1/namespaces", {}, {}, "/namespace: missing"),
    ("POST", "/v1/namespaces", {}, {"namespace": ["a"], "properties": {"k": 1}}, "/properties/k: int, expected string"),
    ("POST", "/v1/namespaces/n/tables/t", {}, {"requirements": [{"type": "x"}], "updates": []}, "/requirements/0"),
    ("POST", "/v1/namespaces/n/tables/t", {}, {"requirements": [], "updates": [{"action": "assign-uuid"}]}, "/uuid"),
    ("POST", "/v1/n/views/rename", {}, {"source": {"namespace": [], "name": "v"}}, "/destination: missing"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "query", "body", "problem"), WRONG)
def test_what_the_protocol_does_not_allow_is_found(
    method: str, path: str, query: dict[str, str], body: Any, problem: str
) -> None:
    found = rest_protocol.problems(method, path, query, {}, body)
    assert any(problem in one for one in found), found


#: What is asked of the server, by the operation of the protocol.
ASKED: list[tuple[str, str, Callable[[RestCatalog], object]]] = [
    ("GET", "/v1/config", lambda c: c.list_namespaces()),
    ("GET", "/v1/{prefix}/namespaces", lambda c: c.list_namespaces()),
    ("POST", "/v1/{prefix}/namespaces", lambda c: c.create_namespace("z")),
    ("GET", "/v1/{prefix}/namespaces/{namespace}", lambda c: c.load_namespace_properties("n")),
    ("HEAD", "/v1/{prefix}/namespaces/{namespace}", lambda c: c.namespace_exists("n")),
    ("DELETE", "/v1/{prefix}/namespaces/{namespace}", lambda c: c.drop_namespace("n")),
    ("POST", "/v1/{prefix}/namespaces/{namespace}/properties", lambda c: c.update_namespace_properties("n", ["k"])),
    ("GET", "/v1/{prefix}/namespaces/{namespace}/tables", lambda c: c.list_tables("n")),
    ("POST", "/v1/{prefix}/namespaces/{namespace}/tables", lambda c: c.create_table("n.x", ROWS.schema)),
    ("POST", "/v1/{prefix}/namespaces/{namespace}/register", lambda c: c.register_table("n.x", "file:///m")),
    ("GET", "/v1/{prefix}/namespaces/{namespace}/tables/{table}", lambda c: c.load_table("n.t")),
    ("POST", "/v1/{prefix}/namespaces/{namespace}/tables/{table}", lambda c: c.commit_table("n.t", [], [])),
    ("DELETE", "/v1/{prefix}/namespaces/{namespace}/tables/{table}", lambda c: c.drop_table("n.t")),
    ("POST", "/v1/{prefix}/tables/rename", lambda c: c.rename_table("n.t", "n.x")),
    ("POST", "/v1/{prefix}/transactions/commit", lambda c: c.commit_tables([])),
    ("GET", "/v1/{prefix}/namespaces/{namespace}/views", lambda c: c.list_views("n")),
    ("POST", "/v1/{prefix}/namespaces/{namespace}/views", lambda c: c.create_view("n.x", ROWS.schema, {"spark": "1"})),
    ("POST", "/v1/{prefix}/namespaces/{namespace}/register-view", lambda c: c.register_view("n.x", "file:///m")),
    ("GET", "/v1/{prefix}/namespaces/{namespace}/views/{view}", lambda c: c.load_view("n.v")),
    ("POST", "/v1/{prefix}/namespaces/{namespace}/views/{view}", lambda c: c.commit_view("n.v", [], [])),
    ("DELETE", "/v1/{prefix}/namespaces/{namespace}/views/{view}", lambda c: c.drop_view("n.v")),
    ("POST", "/v1/{prefix}/views/rename", lambda c: c.rename_view("n.v", "n.x")),
]  # fmt: skip
TABLE = "/v1/{prefix}/namespaces/{namespace}/tables/{table}"
VIEW = "/v1/{prefix}/namespaces/{namespace}/views/{view}"
COMMITS = {
    f"POST {path}"
    for path in (
        TABLE,
        VIEW,
        *(one for method, one, _ in ASKED if method == "POST" and one.endswith(("/tables", "/views", "/register"))),
        "/v1/{prefix}/namespaces/{namespace}/register-view",
        "/v1/{prefix}/transactions/commit",
    )
}
#: The exception for each status and type of error of the document; None where the operation decides.
MEANT: dict[tuple[int, str], str | None] = {
    (400, "BadRequestException"): "BadRequestError",
    (400, "NamespaceNotEmptyException"): "NamespaceNotEmptyError",
    (401, "NotAuthorizedException"): "UnauthorizedError",
    (403, "NotAuthorizedException"): "ForbiddenError",
    (404, "NoSuchNamespaceException"): "NoSuchNamespaceError",
    (404, "NoSuchTableException"): "NoSuchTableError",
    (404, "NoSuchViewException"): "NoSuchViewError",
    (406, "UnsupportedOperationException"): "UnsupportedFeatureError",
    (409, "AlreadyExistsException"): None,
    (419, "AuthenticationTimeoutException"): "AuthorizationExpiredError",
    (422, "UnprocessableEntityException"): "BadRequestError",
    (500, "InternalServerError"): "ServerError",
    (503, "SlowDownException"): "ServiceUnavailableError",
}
#: What 409 means.
CONFLICTS = {
    "create_namespace": "NamespaceAlreadyExistsError",
    "drop_namespace": "NamespaceNotEmptyError",
    "commit": "CommitFailedException",
    "view": "ViewAlreadyExistsError",
    "other": "TableAlreadyExistsError",
}


def conflict(operation: str) -> str | None:
    if operation in ("POST /v1/{prefix}/namespaces", "DELETE /v1/{prefix}/namespaces/{namespace}"):
        return CONFLICTS["create_namespace" if operation.startswith("POST") else "drop_namespace"]
    if operation.endswith(("/transactions/commit", "{table}", "{view}")) and operation.startswith("POST"):
        return CONFLICTS["commit"]
    if operation.startswith("POST") and "view" in operation:
        return CONFLICTS["view"]
    return CONFLICTS["other"] if operation.startswith("POST") and "properties" not in operation else None


def test_each_status_of_each_operation_is_one_exception(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Statuses that the document lists for an operation, with the types of error that it names for them."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    wrong = []
    with served(tmp_path) as server:
        server.namespaces["n",] = {}
        server.config["endpoints"] = [str(one) for _, one in rest_protocol.operations()]
        setup = RestCatalog("c", uri=server.uri)
        setup.create_table("n.t", ROWS.schema)
        setup.create_view("n.v", ROWS.schema, {"spark": "SELECT 1"})
        for method, path, do in ASKED:
            operation = f"{method} {path}"
            listed = rest_protocol.document()["paths"][path][method.lower()]["responses"]
            for (status, kind), meant in MEANT.items():
                expected = meant or conflict(operation)
                if str(status) not in listed and not (status == 500 and "5XX" in listed):
                    continue
                catalog = RestCatalog("c", uri=server.uri, **{"rest.client.max-retries": "0"})
                answer = (status, {"error": {"message": "because", "type": kind, "code": status}}, {})
                before = list(server.instead)
                # What HEAD does not say, GET is asked for.
                asked = "" if method == "HEAD" else method
                server.script(answer, answer, method=asked, ends=path.rpartition("}")[2] or _end(path))
                try:
                    got = repr(do(catalog))
                except ice.IcefieldError as error:
                    got = type(error).__name__
                    if isinstance(error, ice.CommitFailedException) and error.__cause__ is not None:
                        got = f"CommitFailedException of {type(error.__cause__).__name__}"
                server.instead[:] = before
                if expected is not None and got != _expected(operation, status, expected):
                    wrong.append(
                        f"{operation} {status} {kind}: {got}, expected {_expected(operation, status, expected)}"
                    )
    assert not wrong, "\n".join(wrong)


def _end(path: str) -> str:
    return {"{table}": "/t", "{view}": "/v", "{namespace}": "/n"}[path.rpartition("/")[2]]


def _expected(operation: str, status: int, meant: str) -> str:
    if operation.startswith("HEAD"):
        return "False" if status == 404 else meant
    if operation in COMMITS and status in (500, 503):
        return "CommitStateUnknownException"
    is_tried_again = operation.endswith(("{table}", "{view}", "/transactions/commit"))
    by_operation = meant.startswith("NoSuch") and operation.endswith("{view}")
    if operation in COMMITS and is_tried_again and not by_operation and meant != "CommitFailedException":
        return f"CommitFailedException of {meant}"
    return meant


def test_the_document_is_as_large_as_it_must_be() -> None:
    assert os.path.getsize(rest_protocol.DOCUMENT) < 150_000
    assert json.loads(rest_protocol.DOCUMENT.read_text())["openapi"].startswith("3.")


@pytest.mark.parametrize(("life", "again"), [("PT1H", True), ("P1DT2H", True), ("PT0.1S", False), ("soon", True)])
def test_a_request_is_not_sent_again_after_its_key_is_forgotten(server: Server, life: str, again: bool) -> None:
    """The server would carry it out a second time."""
    server.config["idempotency-key-lifetime"] = life
    catalog = RestCatalog("c", uri=server.uri)
    server.script(error(503, "x"), method="POST", ends="/namespaces")
    if again:
        catalog.create_namespace("m")
    else:
        with pytest.raises(ice.IcefieldError, match="503"):
            catalog.create_namespace("m")
    assert len(server.of("POST", "/namespaces")) == 1 + again
