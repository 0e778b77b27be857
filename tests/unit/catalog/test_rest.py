"""A REST catalog on a loopback port: namespaces, tables and commits, and what is sent for them."""

from __future__ import annotations

import json
import pickle
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield.catalog.rest import RestCatalog
from worlds.servers.rest import After, Answer, Asked, Breaks, Server, error, served

ROWS = pa.table({"id": [1, 2], "region": ["eu", "us"]})
#: Lookups of a lost answer come quickly.
QUICKLY = {"commit.status-check.num-retries": "1", "commit.status-check.min-wait-ms": "1"}


@pytest.fixture
def catalog(server: Server) -> Iterator[ice.Catalog]:
    with ice.load_catalog("c", uri=server.uri) as made:
        yield made


def test_namespaces(server: Server, catalog: ice.Catalog) -> None:
    assert isinstance(catalog, RestCatalog)
    catalog.create_namespace("a", {"owner": "me"})
    catalog.create_namespace("a.b")
    server.page = 1
    assert catalog.list_namespaces() == [("n",), ("a",)]
    assert catalog.list_namespaces("a") == [("a", "b")]
    assert [one.query["pageToken"] for one in server.of("GET", "/namespaces")] == ["", "1", ""]
    assert server.of("GET", "/namespaces")[-1].query["parent"] == "a"
    assert catalog.load_namespace_properties("a") == {"owner": "me"}
    summary = catalog.update_namespace_properties("a", ["owner", "no"], {"k": "v"})
    assert (summary.removed, summary.updated, summary.missing) == (["owner"], ["k"], ["no"])
    assert catalog.load_namespace_properties("a") == {"k": "v"}
    assert (catalog.namespace_exists("a.b"), catalog.namespace_exists("z")) == (True, False)
    assert not server.of("HEAD"), "a server that tells no endpoints has none for that"
    with pytest.raises(ice.errors.NamespaceAlreadyExistsError, match="create_namespace_if_not_exists"):
        catalog.create_namespace("a")
    catalog.create_namespace_if_not_exists("a")
    catalog.drop_namespace("a.b")
    catalog.create_table("n.t", ROWS.schema)
    with pytest.raises(ice.NamespaceNotEmptyError, match="n is not empty"):
        catalog.drop_namespace("n")
    for ask in (
        catalog.drop_namespace,
        catalog.load_namespace_properties,
        catalog.list_namespaces,
        catalog.list_tables,
    ):
        with pytest.raises(ice.NoSuchNamespaceError, match=r"z\.y does not exist"):
            ask("z.y")
    with pytest.raises(ice.InvalidArgumentError, match="both removed and set: k"):
        catalog.update_namespace_properties("a", "k", {"k": "v"})


def test_tables(server: Server, catalog: ice.Catalog) -> None:
    made = catalog.create_table("n.t", ROWS.schema, partition_by="region", sort_by="id", properties={"k": "v"})
    [sent] = server.of("POST", "/namespaces/n/tables")
    assert {"location", "stage-create"} & sent.body.keys() == {"stage-create"}
    assert [field["name"] for field in sent.body["partition-spec"]["fields"]] == ["region"]
    assert len(sent.body["write-order"]["fields"]) == 1
    assert (made.properties["k"], [field.name for field in made.spec().fields]) == ("v", ["region"])
    made.append(ROWS)
    assert catalog.load_table("n.t").scan().count() == made.scan().count() == 2
    assert pickle.loads(pickle.dumps(made)).scan().count() == 2
    server.page = 1
    placed = catalog.create_table("n.u", ROWS.schema, location=f"{server.folder}/elsewhere")
    assert placed.location() == f"file://{server.folder}/elsewhere"
    assert catalog.list_tables("n") == [("n", "t"), ("n", "u")]
    assert (catalog.table_exists("n.t"), catalog.table_exists("n.z"), catalog.table_exists("z.z")) == (
        True,
        False,
        False,
    )
    with pytest.raises(ice.TableAlreadyExistsError, match="load_table opens it"):
        catalog.create_table("n.t", ROWS.schema)
    assert catalog.create_table_if_not_exists("n.t", ROWS.schema).scan().count() == 2
    with pytest.raises(ice.TableAlreadyExistsError):
        catalog.create_table_transaction("n.t", ROWS.schema)
    with pytest.raises(ice.NoSuchNamespaceError, match="z does not exist"):
        catalog.create_table("z.t", ROWS.schema)
    assert catalog.rename_table("n.t", "n.v").append(ROWS).scan().count() == 4
    with pytest.raises(ice.NoSuchTableError, match=r"n\.t does not exist in catalog c"):
        catalog.load_table("n.t")
    with pytest.raises(ice.NoSuchTableError):
        made.append(ROWS)
    with pytest.raises(ice.TableAlreadyExistsError, match=r"n\.u already exists"):
        catalog.rename_table("n.v", "n.u")
    with pytest.raises(ice.NoSuchNamespaceError):
        catalog.rename_table("n.v", "z.v")
    where = catalog.load_table("n.v").metadata_location
    catalog.drop_table("n.v")
    catalog.purge_table("n.u")
    assert [one.query["purgeRequested"] for one in server.of("DELETE")] == ["false", "true"]
    with pytest.raises(ice.NoSuchTableError):
        catalog.drop_table("n.v")
    assert catalog.register_table("n.w", where).append(ROWS).scan().count() == 6
    with pytest.raises(ice.TableAlreadyExistsError):
        catalog.register_table("n.w", where)
    assert catalog.register_table("n.w", where, overwrite=True).scan().count() == 4


def test_a_table_is_sent_again_only_if_it_changed(server: Server, catalog: ice.Catalog) -> None:
    table = catalog.create_table("n.t", ROWS.schema)
    before = len(server.of("GET", "/tables/t"))
    assert table.refresh().metadata == catalog.load_table("n.t").metadata
    asked = server.of("GET", "/tables/t")[before:]
    assert [one.headers.get("if-none-match") for one in asked] == [f'"{table.metadata_location}"'] * 2
    ice.load_catalog("other", uri=server.uri).load_table("n.t").append(ROWS)
    assert table.refresh().scan().count() == 2


HOSTILE = ["a b", "a+b", "50%", "a/b", "a?b#c", "ü€🙂", "..", "q\"'", "a.b", "%2F", "a;b=c&d"]


@pytest.mark.parametrize("etag", ["", "ü", "\x7f", '"a b"', "W/"])
def test_odd_tags_of_versions(server: Server, etag: str) -> None:
    with ice.load_catalog("c", uri=server.uri) as catalog:
        catalog.create_table("n.t", ROWS.schema)

        def answer(asked: Asked) -> Answer | None:
            if asked.path.endswith("/tables/t"):
                status, body, headers = server.usual(asked)
                return status, body, {**headers, "etag": etag}
            return None

        server.instead.append(answer)
        for _ in range(3):
            assert catalog.load_table("n.t").scan().count() == 0


def test_names_arrive_as_they_are(server: Server) -> None:
    server.config["overrides"] = {"prefix": "ware"}
    catalog = ice.load_catalog("c", uri=f"{server.uri}/", warehouse="w h")
    assert catalog.list_namespaces() == [("n",)]
    assert server.asked[0].query == {"warehouse": "w h"}
    for part in HOSTILE:
        name = ("x", part)
        catalog.create_namespace(name)
        made = catalog.create_table((*name, part), ROWS.schema, location=f"{server.folder}/{len(server.asked)}")
        assert made.append(ROWS).scan().count() == 2
        assert catalog.list_tables(name) == [(*name, part)]
        assert catalog.load_table((*name, part)).name() == (*name, part)
    for bad in ("", "a..b", ("a", ""), ("a", "b\0"), "a"):
        with pytest.raises(ice.InvalidArgumentError):
            catalog.load_table(bad)


def test_the_separator_of_the_server(server: Server) -> None:
    server.config["overrides"] = {"namespace-separator": "%2E"}
    catalog = ice.load_catalog("c", uri=server.uri)
    server.script((204, None, {}), method="DELETE")
    catalog.drop_table(("x.y", "z", "t"))
    assert server.asked[-1].path == "/v1/namespaces/x.y%2Ez/tables/t"
    server.script((200, {"namespaces": []}, {}), ends="/namespaces")
    catalog.list_namespaces(("x", "y"))
    assert server.asked[-1].query["parent"] == "x.y"


def test_what_the_server_configures(server: Server) -> None:
    server.config = {
        "defaults": {"rest-page-size": "7", "header.X-A": "default", "table-default.k": "v", "n": None, "count": 4},
        "overrides": {"prefix": "p/q", "header.X-B": "over", "oauth2-server-uri": "http://127.0.0.1:1/steal"},
        "endpoints": ["GET /v1/{prefix}/namespaces", "head /v1/{prefix}/namespaces/{ns}", 5, ""],
        "idempotency-key-lifetime": None,
    }
    catalog = ice.load_catalog("c", uri=server.uri, **{"header.X-A": "mine", "credential": "id:hush", "token": "t"})
    server.script((200, {"namespaces": None}, {}), method="GET", ends="/namespaces")
    assert catalog.list_namespaces() == []
    asked = server.asked[-1]
    assert (asked.path, asked.query["pageSize"]) == ("/v1/p/q/namespaces", "7")
    assert (asked.headers["x-a"], asked.headers["x-b"]) == ("mine", "over")
    assert asked.headers["x-iceberg-access-delegation"] == "vended-credentials"
    server.script((204, None, {}), (404, None, {}), (405, None, {}), (200, {"properties": None}, {}))
    assert [catalog.namespace_exists("n") for _ in range(3)] == [True, False, True]
    assert [one.method for one in server.asked[-4:]] == ["HEAD", "HEAD", "HEAD", "GET"]
    for do in (
        lambda: catalog.rename_table("n.a", "n.b"),
        lambda: catalog.register_table("n.a", "file:///x"),
    ):
        with pytest.raises(ice.UnsupportedFeatureError, match="the server does not support this: re"):
            do()


def test_a_catalog_that_moves(server: Server, tmp_path: Path) -> None:
    with served(tmp_path) as other:
        server.config["overrides"] = {"uri": other.uri}
        catalog = ice.load_catalog("c", uri=server.uri)
        assert catalog.list_namespaces() == []
        assert [one.path for one in other.asked] == ["/v1/namespaces"]
    server.config["overrides"] = {"uri": "ftp://elsewhere"}
    with pytest.raises(ice.InvalidArgumentError, match="must be http://host/path"):
        ice.load_catalog("c", uri=server.uri).list_namespaces()


LOST: list[Any] = [
    error(500, "CommitStateUnknownException"),
    error(502, "x"),
    (504, b"<html>gateway</html>", {}),
    (200, b'{"metadata": {"format', {}),
    Breaks(),
]


@pytest.mark.parametrize("failure", LOST)
def test_a_commit_whose_answer_is_lost(server: Server, catalog: ice.Catalog, failure: Any) -> None:
    table = catalog.create_table("n.t", ROWS.schema, properties=QUICKLY)
    server.script(After(failure), failure, method="POST")
    table.append(ROWS)
    assert len(server.of("POST", "/tables/t")) == 1, "it is found, and not sent again"
    with pytest.raises(ice.CommitStateUnknownException) as raised:
        table.append(ROWS)
    assert len(server.of("POST", "/tables/t")) == 2
    assert table.resolve_commit(raised.value).state == "unknown"
    assert len(list(server.folder.rglob("*.parquet"))) == 2, "its files are kept"
    assert catalog.load_table("n.t").scan().count() == 2


def test_a_conflict_with_the_first_attempt_is_no_conflict(server: Server, catalog: ice.Catalog) -> None:
    table = catalog.create_table("n.t", ROWS.schema, properties=QUICKLY)
    server.script(After((503, b"busy", {"retry-after": "0"})), method="POST")
    table.append(ROWS)
    assert len(server.of("POST", "/tables/t")) == 2
    assert catalog.load_table("n.t").scan().count() == 2
    updates: list[dict[str, object]] = [{"action": "set-properties", "updates": {"k": "v"}}]
    server.script((503, b"busy", {"retry-after": "0"}), error(409, "CommitFailedException"), method="POST")
    with pytest.raises(ice.CommitStateUnknownException):
        catalog.commit_table("n.t", [], updates)
    # After 429 nothing was done.
    server.script((429, b"busy", {"retry-after": "0"}), error(409, "CommitFailedException"), method="POST")
    with pytest.raises(ice.CommitFailedException):
        catalog.commit_table("n.t", [], updates)


def test_a_commit_that_lost_is_made_again(server: Server, catalog: ice.Catalog) -> None:
    table = catalog.create_table("n.t", ROWS.schema, properties={"commit.retry.min-wait-ms": "1"})
    server.script(error(409, "CommitFailedException", "busy"), method="POST")
    assert table.append(ROWS).scan().count() == 2
    assert len(server.of("POST", "/tables/t")) == 2
    ice.load_catalog("other", uri=server.uri).load_table("n.t").append(ROWS)
    assert table.append(ROWS).scan().count() == 6


@pytest.mark.parametrize(("status", "kind"), [(400, "BadRequestException"), (403, "x"), (401, ""), (422, "")])
def test_a_commit_that_is_refused_leaves_no_files(server: Server, catalog: ice.Catalog, status: int, kind: str) -> None:
    table = catalog.create_table("n.t", ROWS.schema, properties={"commit.retry.num-retries": "0"})
    server.script(*[error(status, kind, "you may not")] * 9, method="POST")
    with pytest.raises(ice.CommitFailedException, match="you may not"):
        table.append(ROWS)
    assert list(server.folder.rglob("*.parquet")) == []


def test_thirty_appends_at_once_make_one_history(server: Server, catalog: ice.Catalog) -> None:
    patient = {"commit.retry.num-retries": "100", "commit.retry.min-wait-ms": "1", "commit.retry.max-wait-ms": "20"}
    catalog.create_table("n.t", ROWS.schema, properties=patient)
    failures: list[BaseException] = []

    def append() -> None:
        try:
            ice.load_catalog("c", uri=server.uri).load_table("n.t").append(ROWS)
        except BaseException as failure:  # noqa: BLE001
            failures.append(failure)

    threads = [threading.Thread(target=append) for _ in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    table = catalog.load_table("n.t")
    assert table.scan().count() == 60
    parents = [snapshot.parent_snapshot_id for snapshot in table.snapshots()]
    assert parents == [None, *(snapshot.snapshot_id for snapshot in table.snapshots()[:-1])]


def test_staged_tables(server: Server, catalog: ice.Catalog) -> None:
    with catalog.create_table_transaction("n.t", ROWS.schema, partition_by="region") as tx:
        tx.append(ROWS)
        assert not catalog.table_exists("n.t")
    [staged] = server.of("POST", "/namespaces/n/tables")
    assert staged.body["stage-create"]
    assert catalog.load_table("n.t").scan().count() == 2
    with catalog.create_or_replace_table_transaction("n.t", pa.schema({"x": pa.int64()})) as tx:
        tx.append(pa.table({"x": [1]}))
    assert catalog.load_table("n.t").scan().to_arrow()["x"].to_pylist() == [1]
    late = catalog.create_table_transaction("n.u", ROWS.schema)
    late.append(ROWS)
    catalog.create_table("n.u", ROWS.schema, location=f"{server.folder}/other")
    with pytest.raises(ice.TableAlreadyExistsError):
        late.commit_transaction()
    assert not list((server.folder / "n" / "u").rglob("*.parquet"))


def test_keys_of_requests(server: Server) -> None:
    server.config["idempotency-key-lifetime"] = "PT30M"
    catalog = ice.load_catalog("c", uri=server.uri)
    table = catalog.create_table("n.t", ROWS.schema)
    server.script((503, b"busy", {"Retry-After": "0"}), Breaks(), method="POST")
    table.append(ROWS)
    keys = [one.headers["idempotency-key"] for one in server.of("POST")]
    assert keys[1:] == [keys[1]] * 3, "a repeated request has the same key"
    assert keys[0] != keys[1]
    assert [keys[1][at] for at in (8, 14, 13, 18)] == ["-", "7", "-", "-"]
    assert not any("idempotency-key" in one.headers for one in server.of("GET"))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"metadata": {"format-version": 2}}, "/schemas: required"),
        ({"metadata": None, "metadata-location": None}, "the answer has no table metadata"),
        ({"metadata": []}, None),
        ({"metadata-location": 5}, "metadata-location is not a text"),
        ({"config": {"scan-planning-mode": "Server"}}, "scan-planning-mode=server"),
        ({"config": {"scan-planning-mode": "client"}}, None),
        ({"config": None, "storage-credentials": None, "more": {"x": 1}}, None),
    ],
)
def test_odd_tables(server: Server, catalog: ice.Catalog, change: dict[str, Any], says: str | None) -> None:
    catalog.create_table("n.t", ROWS.schema).append(ROWS)
    fresh = ice.load_catalog("c", uri=server.uri)
    server.with_table = change
    if says is None:
        # Metadata that are left out are read from their file.
        assert fresh.load_table("n.t").scan().count() == 2
        return
    with pytest.raises(ice.IcefieldError, match=says) as raised:
        fresh.load_table("n.t")
    assert "GET http" in str(raised.value) or "planning" in says


def test_every_one_of_these_is_refused_before_a_request(server: Server) -> None:
    refused: list[tuple[dict[str, str], str]] = [
        ({"uri": "http://me:hush@host"}, "auth.basic.username"),
        ({"uri": "http://host?x=1"}, "must be http://host/path"),
        ({"type": "rest", "uri": "host:8181"}, "must be http://host/path"),
        ({"type": "rest", "uri": "s3://bucket"}, "must be http://host/path"),
        ({"type": "rest"}, "require the property 'uri'"),
        ({"uri": server.uri, "rest-page-size": "many"}, "rest-page-size"),
        ({"uri": "https://127.0.0.1:1", "tls.verify": "maybe"}, "tls.verify"),
        ({"uri": "https://127.0.0.1:1", "ssl.cabundle": "/nowhere.pem"}, "ssl.cabundle"),
        ({"uri": server.uri, "tokn": "x"}, "did you mean token"),
        ({"uri": server.uri, "header.X": "a\r\nb: c"}, "header.x"),
        ({"uri": server.uri, "header.X": "ends with a space "}, "header.x: not the value"),
        ({"uri": server.uri, "header.a b": "c"}, "header.a b: not the name of an HTTP header"),
        ({"uri": server.uri, "header.": "c"}, "header.: not the name of an HTTP header"),
        # As read from a file, or from a variable that is not set.
        ({"uri": server.uri, "token": "hush-hush\n"}, "cannot be sent as the header authorization: .* a line break"),
        ({"uri": server.uri, "token": "hush hüsh"}, "cannot be sent as the header authorization: .* not ASCII"),
        ({"uri": server.uri, "token": ""}, "cannot be sent as the header authorization: they are empty"),
        ({"uri": server.uri, "s3.signer": "Mine"}, "s3.signer=Mine: only S3V4RestSigner of REST catalogs"),
        ({"type": "in-memory", "s3.signer": "S3V4RestSigner"}, "only S3V4RestSigner of REST catalogs"),
        ({"uri": server.uri, "rest.client.max-retries": "-1"}, "max-retries"),
    ]
    for properties, says in refused:
        with pytest.raises(ice.IcefieldError, match=says) as raised:
            ice.load_catalog("c", **properties).list_namespaces()
        assert "hush" not in str(raised.value)
    assert not server.of("GET", "/namespaces")


@pytest.mark.parametrize("where", ["environment", "file"])
def test_the_configured_forms(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ICEFIELD_HOME", str(tmp_path))
    if where == "file":
        (tmp_path / ".pyiceberg.yaml").write_text(
            f"catalog:\n  prod:\n    uri: {server.uri}\n    auth:\n      type: basic\n"
            "      basic:\n        username: me\n        password: '0123'\n    header.X-My: '1'\n"
        )
    else:
        for name, value in {"URI": server.uri, "AUTH__TYPE": "basic", "AUTH__BASIC__USERNAME": "me"}.items():
            monkeypatch.setenv(f"PYICEBERG_CATALOG__PROD__{name}", value)
        monkeypatch.setenv("ICEFIELD_CATALOG__PROD__AUTH__BASIC__PASSWORD", "0123")
        monkeypatch.setenv("ICEFIELD_CATALOG__PROD__HEADER__X_MY", "1")
    catalog = ice.load_catalog("prod")
    assert catalog.list_namespaces() == [("n",)]
    assert server.asked[-1].headers["authorization"] == "Basic bWU6MDEyMw=="
    assert server.asked[-1].headers["x-my"] == "1"
    assert "0123" not in repr(catalog)


def test_a_program_without_httpx_is_told_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(ice.errors.NotInstalledError, match=r"pip install 'icefield\[rest\]'"):
        ice.load_catalog("c", uri="http://127.0.0.1:1")


def test_what_pyiceberg_asks_of_a_catalog(server: Server) -> None:
    """Names that programs written for PyIceberg use: attributes, and the classes of errors."""
    from icefield import exceptions

    catalog = ice.load_catalog("c", uri=server.uri)
    assert isinstance(catalog, RestCatalog)
    assert (catalog.uri, server.asked) == (server.uri, [])
    assert not catalog.supports_server_side_planning()
    by_server = RestCatalog("c", uri=server.uri, **{"scan-planning-mode": "server"})
    assert not by_server.supports_server_side_planning(), "the server has no route for it"
    server.config = {**server.config, "endpoints": ["POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan"]}
    assert RestCatalog("c", uri=server.uri, **{"scan-planning-mode": "server"}).supports_server_side_planning()
    for do in (catalog.load_table, catalog.drop_table, catalog.purge_table, catalog.table_exists):
        for name in ("t", "n..t", ()):
            with pytest.raises(exceptions.NoSuchIdentifierError):
                do(name)  # type: ignore[arg-type]
    assert issubclass(exceptions.ViewAlreadyExistsError, ice.errors.AlreadyExistsError)


def test_a_commit_that_is_answered_with_another_table(server: Server, catalog: ice.Catalog) -> None:
    """The answer has another uuid, which the requirements of the commit exclude: what became of it is unknown."""
    table = catalog.create_table("n.t", ROWS.schema, properties=QUICKLY)
    other = catalog.create_table("n.u", ROWS.schema)
    answer = {"metadata": json.loads(other.metadata.to_json()), "metadata-location": other.metadata_location}
    server.script((200, answer, {}), method="POST", ends="/tables/t")
    with pytest.raises(ice.CommitStateUnknownException, match="is another table: its uuid is"):
        table.update_schema().add_column("more", "int").commit()
