"""What a REST catalog gives to reach the files of its tables: which of it is used, and how long."""

from __future__ import annotations

import json
import logging
import os
import pickle
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield._core import set_clock, shown_property
from icefield.catalog.rest import RestCatalog
from icefield.catalog.rest.protocol.locks import ProcessLock
from icefield.catalog.rest.storage import credentials
from icefield.catalog.rest.storage.credentials import Vended, again, replaced, vended
from icefield.catalog.rest.storage.renewal import transport_of
from icefield.encryption import MemoryKeys
from icefield.errors import RESTError, UnsupportedFeatureError
from worlds.servers.rest import Server, error

ROWS = pa.table({"id": [1]})
LOCATION = "s3://bucket/wh/n/t"


def of(prefix: str, **config: object) -> dict[str, Any]:
    """Credentials of a prefix."""
    return {
        "prefix": prefix,
        "config": {name.replace("_", "-").replace("--", "."): text for name, text in config.items()},
    }


@pytest.mark.parametrize(
    ("answer", "location", "expected"),
    [
        ({}, LOCATION, {}),
        ({"config": None, "storage-credentials": None}, LOCATION, {}),
        ({"config": {"s3.endpoint": "http://h", "token": "t", "other": "x"}}, LOCATION, {"s3.endpoint": "http://h"}),
        # The longest prefix wins, and no part of a shorter one is left.
        (
            {
                "config": {"s3.access-key-id": "c", "s3.session-token": "c", "s3.region": "r"},
                "storage-credentials": [
                    of("s3://bucket/wh/n", s3__access_key_id="long", s3__secret_access_key="l"),
                    of("s3://bucket", s3__access_key_id="short", s3__session_token="s"),
                    of("s3://other", s3__access_key_id="other"),
                    of("s3://bucket/wh/n/t/deeper", s3__access_key_id="deeper"),
                ],
            },
            LOCATION,
            {"s3.access-key-id": "long", "s3.secret-access-key": "l", "s3.region": "r"},
        ),
        ({"storage-credentials": [of("s3", s3__region="r")]}, LOCATION, {"s3.region": "r"}),
        ({"storage-credentials": [of("s3://bucket/", s3__region="r")]}, "s3a://bucket/t", {"s3.region": "r"}),
        # The prefix may be the folder of the table, with its last slash.
        ({"storage-credentials": [of(f"{LOCATION}/", s3__region="r")]}, LOCATION, {"s3.region": "r"}),
        ({"storage-credentials": [of("s3://bucket/wh/n/t2", s3__region="r")]}, LOCATION, {}),
        ({"storage-credentials": [of("gs", gcs__oauth2__token="t")]}, "gs://b/t", {"gcs.oauth2.token": "t"}),
        (
            {"storage-credentials": [of("abfss://c@a.dfs.core.windows.net/", adls__sas_token__a="t")]},
            "abfss://c@a.dfs.core.windows.net/t",
            {"adls.sas-token.a": "t"},
        ),
        ({"storage-credentials": ["x", None, {"prefix": 5}, {"prefix": "s3", "config": None}]}, LOCATION, {}),
        (
            {"config": {"s3.region": 5, "s3.endpoint": None, "s3.path-style-access": True}},
            LOCATION,
            {"s3.region": "5", "s3.path-style-access": "true"},
        ),
        # What only the user decides.
        (
            {"config": {"io.allowed-locations": "file:///", "tls.verify": "false", "s3.proxy-uri": "http://p"}},
            LOCATION,
            {},
        ),
    ],
)
def test_which_credentials_are_used(answer: dict[str, Any], location: str, expected: dict[str, str]) -> None:
    assert vended(answer, location, {}).properties == expected


@pytest.mark.parametrize(
    ("below", "above", "left"),
    [
        (["s3.access-key-id", "s3.session-token", "s3.sse.key"], ["client.access-key-id"], ["s3.sse.key"]),
        (["client.session-token", "client.region"], ["s3.access-key-id"], ["client.region"]),
        (["s3.anonymous", "s3.role-arn", "s3.endpoint"], ["s3.session-token"], ["s3.endpoint"]),
        (["s3.access-key-id", "s3.sse-kms-key-id"], ["s3.region"], ["s3.access-key-id", "s3.sse-kms-key-id"]),
        (["s3.access-key-id"], ["gcs.oauth2.token", "adls.token"], ["s3.access-key-id"]),
        (["s3.access-key-id"], ["s3.session-token-expires-at-ms"], ["s3.access-key-id"]),
        (["gcs.credentials-json", "gcs.no-auth", "gcs.endpoint"], ["gcs.oauth2.token"], ["gcs.endpoint"]),
        (["adls.account-key", "adls.sas-token.b", "adls.account-name"], ["adls.sas-token.a"], ["adls.account-name"]),
    ],
)
def test_credentials_of_a_store_are_replaced_whole(below: list[str], above: list[str], left: list[str]) -> None:
    found = replaced(dict.fromkeys(below, "below"), dict.fromkeys(above, "above"))
    assert found == {**dict.fromkeys(left, "below"), **dict.fromkeys(above, "above")}


def test_every_secret_of_the_documentation_is_replaced() -> None:
    text = (Path(__file__).parents[3] / "docs" / "catalogs.md").read_text()
    names = {name.replace("*", "a") for name in re.findall(r"`((?:s3|client|gcs|adls)\.[\w.*-]+)`", text)}
    secret = {name for name in names if shown_property(name, "x" * 9) != "x" * 9} - {
        "s3.sse.key",
        "adls.auth.shared-key.account.name",
    }
    assert len(secret) > 10
    above = {"s3.access-key-id": "a", "gcs.oauth2.token": "a", "adls.token": "a"}
    assert not secret & {name for name, value in replaced(dict.fromkeys(names, "b"), above).items() if value == "b"}


KEYS = {"storage-credentials": [of("s3://bucket", s3__access_key_id="k", s3__secret_access_key="s")]}


def test_when_credentials_are_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time() * 1000
    monkeypatch.setattr(credentials, "now_ms", lambda: now)
    names = ("s3.session-token-expires-at-ms", "gcs.oauth2.token-expires-at", "adls.sas-token-expires-at-ms.acc")
    for life, due in [(3_600_000, 3_300_000), (60_000, 30_000), (-5000, -2500)]:
        found = vended({"config": dict.fromkeys(names, str(int(now + life)))}, LOCATION, {})
        assert found.expires_ms == int(now + life)
        assert found.due_ms is not None
        assert abs(found.due_ms - now - due) <= 1
    assert vended({"config": {names[0]: "soon"}}, LOCATION, {}).expires_ms is None


def keys(server: Server, name: str, life: float) -> dict[str, Any]:
    """Credentials for the folder of the server, which expire after some seconds."""
    end = str(int((time.time() + life) * 1000))
    return of(f"file://{server.folder}", s3__access_key_id=name, s3__session_token_expires_at_ms=end)


def used(table: ice.Table) -> str:
    """The key that the storage of a table has."""
    properties = table.storage.__reduce__()[1][0]
    return str(properties["s3.access-key-id"])


def offer_credentials(server: Server, offered: bool) -> None:
    listed = ["GET", "POST", "DELETE"]
    path = "/v1/{prefix}/namespaces/{namespace}/tables"
    if offered:
        server.config["endpoints"] = [
            *(f"{method} {path}/{{table}}" for method in listed),
            f"POST {path}",
            f"GET {path}/{{table}}/credentials",
        ]


@pytest.mark.parametrize("route", ["credentials", "table"])
def test_credentials_are_renewed(server: Server, route: str, caplog: pytest.LogCaptureFixture) -> None:
    offer_credentials(server, route == "credentials")
    catalog = ice.load_catalog("c", uri=server.uri, **{"s3.region": "r"})
    server.with_table = {"storage-credentials": [keys(server, "first", 3600)]}
    table = catalog.create_table("n.t", ROWS.schema)
    assert used(table) == used(catalog.load_table("n.t")) == "first"
    before = len(server.asked)
    assert used(table.append(ROWS)) == "first"
    assert not [one for one in server.asked[before:] if one.names[-1] == "credentials"]

    # They are about to expire.
    server.with_table = {"storage-credentials": [keys(server, "second", -1)]}
    table = ice.load_catalog("c", uri=server.uri).load_table("n.t")
    third = [keys(server, "third", 3600)]
    if route == "credentials":
        server.script((200, {"storage-credentials": third}, {}), ends="/credentials")
    else:
        server.with_table = {"storage-credentials": third}
    assert used(table) == "third"
    # What was begun with the old ones does not bring them back.
    server.with_table = {}
    assert used(table.append(ROWS)) == used(table.refresh()) == "third"
    assert table.scan().count() == 2
    assert used(pickle.loads(pickle.dumps(table))) == "third"

    # A server that cannot give others is asked again later, and the old ones are used.
    server.with_table = {"storage-credentials": [keys(server, "fourth", -1)]}
    table = ice.load_catalog("c", uri=server.uri).load_table("n.t")
    server.script(*[error(400, "x", "no more")] * 9, method="GET")
    caplog.set_level(logging.WARNING, "icefield")
    before = len(server.asked)
    assert used(table) == used(table) == "fourth"
    assert len(server.asked) == before + 1
    assert "cannot be renewed: BadRequestError: no more" in caplog.text


def create(catalog: RestCatalog) -> None:
    catalog.create_table("n.t", ROWS.schema)


def stage(catalog: RestCatalog) -> None:
    with catalog.create_table_transaction("n.t", ROWS.schema) as changes:
        changes.append(ROWS)


def commit(catalog: RestCatalog) -> None:
    catalog.commit_table("n.t", [], [{"action": "set-properties", "updates": {"k": "v"}}])


def evict(catalog: RestCatalog) -> None:
    for number in range(2):
        catalog.create_table(f"n.u{number}", ROWS.schema)


def move(catalog: RestCatalog) -> None:
    table = catalog.load_table("n.t")
    catalog.commit_table("n.t", [], [{"action": "set-location", "location": f"{table.location()}/moved"}])


@pytest.mark.parametrize("with_commit", [{"config": {}}, {"config": {"s3.access-key-id": "wrong"}}])
@pytest.mark.parametrize(
    ("steps", "is_known"),
    [
        ([create], True),
        ([create, commit], True),
        ([create, commit, commit], True),
        ([stage], True),
        ([stage, commit], True),
        ([create, evict, commit], False),
        ([create, evict, commit, commit], False),
        ([stage, evict, commit], False),
        ([create, move], False),
        ([create, move, commit], False),
    ],
)
def test_a_loaded_table_has_its_credentials(
    server: Server, with_commit: dict[str, Any], steps: list[Callable[[RestCatalog], None]], is_known: bool
) -> None:
    server.with_table = {"storage-credentials": [keys(server, "first", 3600)]}
    server.with_commit = with_commit
    catalog = RestCatalog("c", uri=server.uri, **{"s3.region": "r", "rest-table-cache.max-entries": "2"})
    for step in steps:
        step(catalog)
    assert used(catalog.load_table("n.t")) == used(catalog.load_table("n.t")) == "first"
    sent = server.of("GET", "/tables/t")[-2:]
    assert [bool(one.headers.get("if-none-match")) for one in sent] == [is_known, True]


def test_vended_keys_go_without_the_session_of_the_user(server: Server) -> None:
    server.with_table = {"storage-credentials": [keys(server, "first", 3600)]}
    mine = {"s3.access-key-id": "mine", "s3.session-token": "mine", "s3.region": "r", "s3.sse.key": "mine"}
    table = RestCatalog("c", uri=server.uri, **mine).create_table("n.t", ROWS.schema)
    properties = table.storage.__reduce__()[1][0]
    assert properties == {"s3.access-key-id": "first", "s3.region": "r", "s3.sse.key": "mine"}


def test_a_client_of_keys_is_that_of_tables_loaded_afterwards(server: Server) -> None:
    server.with_table = {"storage-credentials": [keys(server, "first", 7200)]}
    catalog = RestCatalog("c", uri=server.uri, **{"s3.region": "r"})
    catalog.create_table("n.t", ROWS.schema)
    for client in (None, MemoryKeys({}), None):
        catalog.key_management = client
        assert catalog.load_table("n.t").storage.has_keys == (client is not None)


def test_a_server_that_drops_the_key_of_a_table_gets_no_rows(server: Server) -> None:
    catalog = RestCatalog("c", uri=server.uri, **{"s3.region": "r"})
    catalog.key_management = MemoryKeys({"a": b"0123456789012345"})
    encrypted = {"format-version": "3", "encryption.key-id": "a"}
    catalog.create_table("n.kept", ROWS.schema, properties=encrypted)
    plain = json.loads(catalog.create_table("n.plain", ROWS.schema).metadata.to_json())
    server.with_table = {"metadata": plain}
    for name, make in (("n.t", catalog.create_table), ("n.staged", catalog.create_table_transaction)):
        with pytest.raises(UnsupportedFeatureError, match=r"the server dropped the property encryption\.key-id"):
            make(name, ROWS.schema, properties=encrypted)


def copied(table: ice.Table) -> ice.Table:
    found = pickle.loads(pickle.dumps(table))
    assert isinstance(found, ice.Table)
    assert found.catalog is not table.catalog
    return found


def copied_again(table: ice.Table) -> ice.Table:
    return copied(copied(table))


def joined(table: ice.Table) -> ice.Table:
    assert isinstance(table.catalog, RestCatalog)
    several = table.catalog.transaction()
    several.table("n.t").append(ROWS)
    [found] = several.commit_transaction()
    return found


@pytest.mark.parametrize("made", [copied, copied_again, joined, lambda table: copied(joined(table))])
def test_copies_of_a_table_renew_its_credentials(
    server: Server, monkeypatch: pytest.MonkeyPatch, made: Callable[[ice.Table], ice.Table]
) -> None:
    server.with_table = {"storage-credentials": [keys(server, "first", 3600)]}
    table = made(RestCatalog("c", uri=server.uri).create_table("n.t", ROWS.schema))
    assert used(table) == "first"
    server.with_table = {"storage-credentials": [keys(server, "second", 7200)]}
    later(monkeypatch, 3500)
    assert used(table) == "second"
    assert used(copied(table)) == "second"


def later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr(credentials, "now_ms", lambda: (time.time() + seconds) * 1000)
    set_clock(int((time.time() + seconds) * 1000))


@pytest.fixture(autouse=True)
def _clock() -> Iterator[None]:
    yield
    set_clock(None)


BEARER = {"token": "canary-of-catalog"}
TRAVELS = {**BEARER, "rest.client.executors-get-token": "true"}
BASIC = {"auth.type": "basic", "auth.basic.username": "u", "auth.basic.password": "canary"}


@pytest.mark.parametrize("properties", [{}, BEARER, TRAVELS, BASIC])
@pytest.mark.parametrize("offered", [True, False])
def test_executors_renew_credentials(
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    properties: dict[str, str],
    offered: bool,
) -> None:
    offer_credentials(server, offered)
    server.with_table = {"storage-credentials": [keys(server, "first", 3600)]}
    table = (
        RestCatalog("c", uri=server.uri, **properties, **{"s3.region": "r"})
        .create_table("n.t", ROWS.schema)
        .append(ROWS)
    )
    sent = pickle.dumps((table.storage, table.scan().tasks()))
    # A token that never expires has all rights of the user for ever.
    assert (b"canary-of-catalog" in sent) == (offered and properties == TRAVELS)
    assert b"canary" not in sent.replace(b"canary-of-catalog", b"")
    storage, tasks = pickle.loads(sent)
    server.script((200, {"storage-credentials": [keys(server, "second", 7200)]}, {}), ends="/credentials")
    later(monkeypatch, 3500)
    before = len(server.asked)
    found = str(storage.__reduce__()[1][0]["s3.access-key-id"])
    # Reports of the driver come when they come.
    requests = [one for one in server.asked[before:] if not one.path.endswith("/metrics")]
    if offered and properties in ({}, TRAVELS):
        assert found == "second"
        [asked] = requests
        assert asked.headers.get("authorization") == (f"Bearer {properties['token']}" if properties else None)
    else:
        assert found == "first"
        assert not requests
        assert "UnsupportedFeatureError: outside of the process with the catalog" in caplog.text
        assert "rest.client.executors-get-token=true" in caplog.text
    assert storage.__reduce__()[1][0]["s3.region"] == "r"
    assert [task.rows(storage).to_pyarrow().read_all() for task in tasks] == [ROWS]


def test_an_operation_that_takes_longer_than_its_credentials_renews_them(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.with_table = {"storage-credentials": [keys(server, "first", 3600)]}
    table = RestCatalog("c", uri=server.uri).create_table("n.t", ROWS.schema).append(ROWS).append(ROWS)
    storage, (first, last) = table.storage, table.scan().tasks(split_size=1)
    first.rows(storage).to_pyarrow().read_all()
    server.with_table = {"storage-credentials": [keys(server, "second", 7200)]}
    later(monkeypatch, 3500)
    before = len(server.of("GET", "/tables/t"))
    last.rows(storage).to_pyarrow().read_all()
    assert storage.__reduce__()[1][0]["s3.access-key-id"] == used(table) == "second"
    assert len(server.of("GET", "/tables/t")) == before + 1


def test_a_transaction_of_several_tables_renews_credentials(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.with_table = {"storage-credentials": [keys(server, "first", 3600)]}
    catalog = RestCatalog("c", uri=server.uri)
    catalog.create_table("n.t", ROWS.schema)
    several = catalog.transaction()
    several.table("n.t").append(ROWS)
    server.with_table = {"storage-credentials": [keys(server, "second", 7200)]}
    later(monkeypatch, 3500)
    [table] = several.commit_transaction()
    assert (used(table), table.scan().count()) == ("second", 1)


@pytest.mark.parametrize("life", [-3600, -1, 0, 1])
def test_credentials_that_seem_to_have_expired_are_renewed_now_and_then(
    server: Server, monkeypatch: pytest.MonkeyPatch, life: float
) -> None:
    server.with_table = {"storage-credentials": [keys(server, "first", life)]}
    table = RestCatalog("c", uri=server.uri).create_table("n.t", ROWS.schema)
    for seconds, times in [(3, 1), (12, 1), (30, 2), (50, 3)]:
        later(monkeypatch, seconds)
        for _ in range(3):
            assert used(table) == "first"
        assert len(server.of("GET", "/tables/t")) == times


def test_an_answer_without_credentials_is_not_taken_for_one() -> None:
    given = Vended({"s3.access-key-id": "hush", "s3.session-token-expires-at-ms": "5"}, 5)
    assert "hush" not in repr(given)
    for answer in ({}, {"storage-credentials": []}, {"storage-credentials": [of("s3://other", s3__access_key_id="x")]}):
        with pytest.raises(RESTError, match="no credentials for the location"):
            again(answer, LOCATION, {}, given)
    assert again(KEYS, LOCATION, {}, given).properties["s3.access-key-id"] == "k"


def s3_key(server: Server, path: str) -> str:
    """The key that signed the last request to a path of the server, which plays S3."""
    [*_, asked] = [one for one in server.asked if one.path == path]
    return asked.headers["authorization"].partition("Credential=")[2].partition("/")[0]


@pytest.mark.parametrize("offered", [True, False])
def test_each_place_of_a_table_has_its_credentials(
    server: Server, monkeypatch: pytest.MonkeyPatch, offered: bool
) -> None:
    """Data of one table lie under several prefixes, each with a key; each is renewed when it expires, alone."""
    offer_credentials(server, offered)

    def of_all(first: str, first_life: float, second: str, second_life: float) -> dict[str, Any]:
        def key(prefix: str, name: str, life: float) -> dict[str, Any]:
            end = str(int((time.time() + life) * 1000))
            return of(prefix, s3__access_key_id=name, s3__secret_access_key="s", s3__session_token_expires_at_ms=end)

        return {
            "storage-credentials": [
                keys(server, "of-table", 90_000),
                key("s3://a", first, first_life),
                key("s3a://b/deep/", second, second_life),
                key("s3://b", "flat", 90_000),
            ]
        }

    server.instead.append(
        lambda asked: (200, b"bytes", {}) if asked.path.startswith(("/a/", "/b/")) else None  # S3, with paths
    )
    server.with_table = of_all("a1", 3600, "b1", 7200)
    own = {"s3.endpoint": server.uri, "s3.region": "r", "s3.path-style-access": "true"}
    catalog = RestCatalog("c", uri=server.uri, **own)
    table = catalog.create_table("n.t", ROWS.schema).append(ROWS)
    storages = [table.storage, catalog.load_table("n.t").storage]
    if offered:
        storages.append(pickle.loads(pickle.dumps(table.storage)))  # as on executors

    def used_by(storage: ice.distributed.Storage) -> list[str]:
        found = []
        for path in ("a/x", "b/x", "b/deep/x"):
            assert storage.read(f"s3://{path}") == b"bytes"
            found.append(s3_key(server, f"/{path}"))
        return found

    assert [used_by(storage) for storage in storages] == [["a1", "flat", "b1"]] * len(storages)
    assert used(table) == "of-table"
    renewed = of_all("a2", 90_000, "b2", 90_000)
    server.with_table = renewed
    server.instead.append(
        lambda asked: (200, renewed, {}) if asked.path.endswith("/credentials") else None  # the route
    )
    later(monkeypatch, 3500)
    assert [used_by(storage) for storage in storages] == [["a2", "flat", "b1"]] * len(storages)
    assert table.scan().count() == 1
    later(monkeypatch, 7100)
    assert [used_by(storage) for storage in storages] == [["a2", "flat", "b2"]] * len(storages)
    assert "b1" not in repr(table.storage)


def test_workers_renew_once_in_a_process(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each task has the credentials of the driver; those that one of them renewed are for all."""
    offer_credentials(server, True)
    server.with_table = {"storage-credentials": [keys(server, "first", 3600)]}
    table = RestCatalog("c", uri=server.uri).create_table("n.t", ROWS.schema)
    sent = [pickle.dumps(table.storage) for _ in range(20)]
    server.script(*[(200, {"storage-credentials": [keys(server, "next", 9000)]}, {})] * 9, ends="/credentials")
    later(monkeypatch, 3599)
    storages = [pickle.loads(one) for one in sent]
    assert len({storage.renewal.due_ms for storage in storages}) > 10, "not all at the same moment"
    assert {storage.__reduce__()[1][0]["s3.access-key-id"] for storage in storages} == {"next"}
    assert len(server.of("GET", "/credentials")) == 1


def test_how_workers_reach_the_server() -> None:
    given = {
        "tls.verify": "false",
        "rest.client.proxy.hostname": "p",
        "header.x-goog-user-project": "billed",
        "header.x-api-key": "canary",
        "header.cookie": "canary",
        "credential": "canary",
        "uri": "http://c",
    }
    assert transport_of(given) == {
        "tls.verify": "false",
        "rest.client.proxy.hostname": "p",
        "header.x-goog-user-project": "billed",
    }
    assert transport_of({**given, "rest.client.proxy.password": "canary"}) is None


def test_credentials_of_another_table_of_the_same_name_are_not_taken(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server.with_table = {"storage-credentials": [keys(server, "first", 3600)]}
    table = RestCatalog("c", uri=server.uri).create_table("n.t", ROWS.schema)
    other = RestCatalog("d", uri=server.uri)
    other.drop_table("n.t")
    server.with_table = {"storage-credentials": [keys(server, "of-another", 9000)]}
    other.create_table("n.t", ROWS.schema)
    later(monkeypatch, 3500)
    assert used(table) == "first"
    assert "n.t is another table now" in caplog.text


def test_a_fork_during_a_request_leaves_no_lock_held() -> None:
    lock = ProcessLock()
    with lock:
        child = os.fork()
        if child == 0:
            with lock:
                os._exit(7)
        deadline = time.monotonic() + 10
        while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
            time.sleep(0.01)
        if ended == (0, 0):
            os.kill(child, 9)
    assert os.waitstatus_to_exitcode(ended[1]) == 7
    assert isinstance(pickle.loads(pickle.dumps(lock)), ProcessLock)
