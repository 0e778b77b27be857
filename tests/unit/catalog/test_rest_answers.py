"""What the answers of a REST catalog mean, however odd: one sentence, and what is repeated."""

from __future__ import annotations

import logging
import pickle
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield import errors
from worlds.servers.rest import After, Answer, Breaks, Server, error

ROWS = pa.table({"id": [1]})


@pytest.fixture
def catalog(server: Server) -> Iterator[ice.Catalog]:
    with ice.load_catalog("c", uri=server.uri, **{"rest.client.max-retries": "0"}) as made:
        yield made


PAGE = b"<html><head><title>x</title></head><body><h1>502 Bad &amp; Gateway</h1><script>z()</script></body></html>"

#: What is asked, the answer, the exception and a part of its message.
ANSWERS: list[tuple[str, Answer, type[Exception], str]] = [
    ("load", error(400, "BadRequestException", "bad name"), errors.BadRequestError, "bad name"),
    ("load", error(401, "NotAuthorizedException"), errors.UnauthorizedError, "does not accept the credentials"),
    ("load", error(403, "ForbiddenException", "hands off"), errors.ForbiddenError, "hands off"),
    ("load", error(404, "NoSuchTableException"), errors.NoSuchTableError, "n.t does not exist in catalog c"),
    ("load", error(404, "NoSuchNamespaceException", "no n"), errors.NoSuchNamespaceError, "no n"),
    ("load", error(404, "SomethingElse"), errors.NoSuchTableError, "n.t does not exist"),
    ("load", error(406, "UnsupportedOperationException"), errors.UnsupportedFeatureError, "does not support"),
    ("load", error(405, ""), errors.UnsupportedFeatureError, "does not support"),
    ("load", error(409, "x", "locked"), errors.BadRequestError, "locked"),
    ("load", error(418, "Teapot", "short"), errors.RESTError, "short"),
    ("load", error(419, "AuthenticationTimeoutException"), errors.AuthorizationExpiredError, "have expired"),
    ("load", error(422, "UnprocessableEntityException", "twice"), errors.BadRequestError, "twice"),
    ("load", error(429, "TooManyRequests"), errors.TooManyRequestsError, "429"),
    ("load", error(500, "InternalServerError", "oh"), errors.ServerError, "oh"),
    ("load", error(501, "x"), errors.UnsupportedFeatureError, "does not support"),
    ("load", (502, PAGE, {}), errors.ServerError, r"502 Bad & Gateway \("),
    ("load", error(503, "SlowDownException", "slow"), errors.ServiceUnavailableError, "slow"),
    ("load", error(504, "x"), errors.ServerError, "504"),
    ("load", (500, None, {}), errors.ServerError, "the server gave no reason"),
    ("load", (500, b"\xff\xfe\x00", {}), errors.ServerError, "500"),
    ("load", (500, {"message": "flat", "type": "X"}, {}), errors.ServerError, "flat (.*, X)"),
    ("load", (500, {"error": {"message": None}}, {}), errors.ServerError, "500"),
    ("load", (500, {"error": []}, {}), errors.ServerError, "500"),
    ("load", (400, {"Message": "amazon", "__type": "V"}, {}), errors.BadRequestError, "amazon (.*, V)"),
    ("load", (400, {"error": {"message": "see https://u:hush@h/p?sig=hush"}}, {}), errors.BadRequestError, "see"),
    ("load", (400, {"error": {"message": "x" * 100_000}}, {}), errors.BadRequestError, "x…"),
    (
        "load",
        (200, PAGE, {"content-type": "text/html; charset=x"}),
        errors.RESTError,
        r"text/html, \d+ bytes\) is not JSON",
    ),
    ("load", (200, b'{"metadata": {"form', {}), errors.RESTError, "is not JSON"),
    ("load", (200, b"", {}), errors.RESTError, "is not JSON"),
    ("load", (200, b"[1]", {}), errors.RESTError, "is not a JSON object"),
    ("load", (200, b"[" * 100_000, {}), errors.RESTError, "is not JSON"),
    (
        "load",
        (200, b"not gzip", {"content-encoding": "gzip"}),
        errors.ServiceUnavailableError,
        "cannot be decompressed",
    ),
    (
        "load",
        (307, None, {"location": "https://u:hush@else/v1"}),
        errors.RESTError,
        "redirects to https://.*@else/v1; set",
    ),
    ("load", (302, None, {}), errors.RESTError, "redirects to nowhere"),
    ("list", error(404, ""), errors.NoSuchNamespaceError, "namespace n does not exist"),
    ("list", (200, {"identifiers": "x"}, {}), errors.RESTError, "identifiers is not a list"),
    ("create", error(404, ""), errors.NoSuchNamespaceError, "namespace n does not exist"),
    ("create", error(409, ""), errors.TableAlreadyExistsError, "already exists"),
    *(
        ("create", error(status, ""), errors.CommitStateUnknownException, str(status))
        for status in (408, 500, 502, 504, 505, 507, 520, 524, 599)
    ),
    ("create", error(400, "", "bad"), errors.BadRequestError, "bad"),
    ("create", error(403, "", "bad"), errors.ForbiddenError, "credentials do not permit"),
    ("create", error(419, ""), errors.AuthorizationExpiredError, "have expired"),
    ("register", error(400, "", "no file"), errors.BadRequestError, "no file"),
    ("register", error(409, ""), errors.TableAlreadyExistsError, "already exists"),
    ("drop", error(404, ""), errors.NoSuchTableError, "does not exist"),
    ("rename", error(409, ""), errors.TableAlreadyExistsError, "n.u already exists"),
    ("rename", error(404, "NoSuchNamespaceException", "no m"), errors.NoSuchNamespaceError, "no m"),
    ("make", error(409, ""), errors.NamespaceAlreadyExistsError, "already exists"),
    ("make", error(404, "", "no parent"), errors.NoSuchNamespaceError, "no parent"),
    ("unmake", error(409, ""), errors.NamespaceNotEmptyError, "not empty"),
    ("unmake", error(400, "NamespaceNotEmptyException"), errors.NamespaceNotEmptyError, "no"),
    ("unmake", error(404, ""), errors.NoSuchNamespaceError, "n does not exist"),
]
DO: dict[str, Callable[[ice.Catalog], object]] = {
    "load": lambda catalog: catalog.load_table("n.t"),
    "list": lambda catalog: catalog.list_tables("n"),
    "create": lambda catalog: catalog.create_table("n.t", ROWS.schema),
    "register": lambda catalog: catalog.register_table("n.t", "file:///x.metadata.json"),
    "drop": lambda catalog: catalog.drop_table("n.t"),
    "rename": lambda catalog: catalog.rename_table("n.t", "n.u"),
    "make": lambda catalog: catalog.create_namespace("n.m"),
    "unmake": lambda catalog: catalog.drop_namespace("n"),
}


def test_every_answer_is_one_sentence_and_one_exception(server: Server, catalog: ice.Catalog) -> None:
    catalog.list_namespaces()
    for do, answer, kind, says in ANSWERS:
        server.instead = [lambda _, answer=answer: answer]  # type: ignore[misc]
        with pytest.raises(errors.IcefieldError, match=says) as raised:
            DO[do](catalog)
        text = str(raised.value)
        case = (do, answer[0], text)
        assert type(raised.value) is kind or (
            kind is errors.ServiceUnavailableError and isinstance(raised.value, kind)
        ), case
        assert "\n" not in text, case
        assert len(text) < 800, case
        assert "hush" not in text, case
        if isinstance(raised.value, errors.RESTError):
            copy = pickle.loads(pickle.dumps(raised.value))
            assert (str(copy), getattr(copy, "status", None)) == (text, raised.value.status), case
            assert raised.value.status in {answer[0], None}, case


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (error(404, "NoSuchWarehouseException", "no such warehouse"), errors.NoSuchCatalogError, "no such warehouse"),
        (error(404, ""), errors.RESTError, "is there a REST catalog at the property 'uri'"),
        ((200, PAGE, {}), errors.RESTError, "is not JSON"),
        ((200, {"defaults": []}, {}), None, ""),
        ((200, {"overrides": [1]}, {}), errors.RESTError, "overrides is not a JSON object"),
        ((200, {"defaults": None, "overrides": None, "endpoints": None, "x": 1}, {}), None, ""),
        ((200, {"endpoints": "all"}, {}), None, ""),
        ((200, {}, {}), None, ""),
    ],
)
def test_configurations(server: Server, answer: Answer, kind: type[Exception] | None, says: str) -> None:
    catalog = ice.load_catalog("c", uri=server.uri)
    server.script(answer)
    if kind is None:
        assert catalog.list_namespaces() == [("n",)]
        return
    with pytest.raises(kind, match=says):
        catalog.list_namespaces()
    assert catalog.list_namespaces() == [("n",)], "it is asked again after a failure"


LATER = {"Retry-After": "0"}
PAST = {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}


@pytest.mark.parametrize(
    ("do", "answers", "sent"),
    [
        ("list", [(503, None, LATER), (429, None, PAST), (502, None, LATER)], 4),
        ("list", [Breaks(), (504, None, LATER)], 3),
        ("make", [(503, None, LATER), (429, None, LATER)], 3),
        # These may have been carried out, and are not sent again.
        ("make", [(502, None, LATER)], None),
        ("make", [(503, None, {})], None),
        ("make", [Breaks()], None),
        ("list", [(500, None, LATER)], None),
        # Nobody waits that long.
        ("list", [(503, None, {"Retry-After": "3600"})], None),
        ("list", [(503, None, LATER)] * 6, None),
    ],
)
def test_what_is_repeated(server: Server, do: str, answers: list[Any], sent: int | None) -> None:
    catalog = ice.load_catalog("c", uri=server.uri)
    catalog.list_namespaces()
    before = len(server.asked)
    server.script(*answers)
    if sent is None:
        with pytest.raises(errors.ServerError):
            DO[do](catalog)
    else:
        DO[do](catalog)
        assert len(server.asked) - before == sent


#: What is asked, whether the first attempt made it, the answer to the second if not the server's, and the exception.
REPEATED: list[tuple[str, bool, Answer | None, type[Exception] | None]] = [
    ("drop", True, None, None),
    ("drop", True, error(404, "NoSuchTableException"), None),
    ("drop", True, error(404, "NoSuchWarehouseException"), errors.NoSuchCatalogError),
    ("drop", True, error(403, ""), errors.ForbiddenError),
    ("rename", True, None, None),
    ("rename", True, error(409, "AlreadyExistsException"), None),
    ("rename", False, error(409, "AlreadyExistsException"), errors.TableAlreadyExistsError),
    ("rename", False, error(404, "NoSuchTableException"), errors.NoSuchTableError),
    ("rename", True, error(403, ""), errors.ForbiddenError),
    ("make", True, None, None),
    ("make", False, error(409, ""), errors.NamespaceAlreadyExistsError),
    ("make", True, error(404, ""), errors.NoSuchNamespaceError),
    ("unmake", True, None, None),
    ("unmake", True, error(409, ""), errors.NamespaceNotEmptyError),
]


@pytest.mark.parametrize(("do", "is_made", "second", "kind"), REPEATED)
def test_the_second_answer_to_a_change(
    server: Server, do: str, is_made: bool, second: Answer | None, kind: type[Exception] | None
) -> None:
    catalog = ice.load_catalog("c", uri=server.uri)
    if do in {"drop", "rename"}:
        catalog.create_table("n.t", ROWS.schema)
    method = "DELETE" if do in {"drop", "unmake"} else "POST"
    first: Answer = (503, None, LATER)
    server.script(After(first) if is_made else first, *([] if second is None else [second]), method=method)
    before = len(server.of(method))
    if kind is None:
        DO[do](catalog)
        made = [*server.namespaces, *server.tables]
        assert (
            made
            == {
                "drop": [("n",)],
                "rename": [("n",), (("n",), "u")],
                "make": [("n",), ("n", "m")],
                "unmake": [],
            }[do]
        )
    else:
        with pytest.raises(kind):
            DO[do](catalog)
    assert len(server.of(method)) - before == 2


@pytest.mark.parametrize(("properties", "is_ours"), [({}, True), ({"a": "1"}, True), ({"a": "2"}, False)])
def test_a_namespace_that_another_created_meanwhile(server: Server, properties: dict[str, str], is_ours: bool) -> None:
    server.namespaces["n", "m"] = {"a": "1", "of": "the server"}
    catalog = ice.load_catalog("c", uri=server.uri)
    with pytest.raises(errors.NamespaceAlreadyExistsError):
        catalog.create_namespace("n.m", properties)
    server.script((503, None, LATER), method="POST")
    if is_ours:
        catalog.create_namespace("n.m", properties)
    else:
        with pytest.raises(errors.NamespaceAlreadyExistsError):
            catalog.create_namespace("n.m", properties)


@pytest.mark.parametrize("do", ["drop", "rename", "make", "unmake"])
def test_with_a_key_the_second_answer_counts(server: Server, do: str) -> None:
    server.config["idempotency-key-lifetime"] = "PT30M"
    catalog = ice.load_catalog("c", uri=server.uri)
    catalog.create_table("n.t", ROWS.schema)
    says = error(*((409, "AlreadyExistsException") if do == "make" else (404, "")))
    server.script(Breaks(), says, method="DELETE" if do in {"drop", "unmake"} else "POST")
    with pytest.raises(errors.IcefieldError):
        DO[do](catalog)


def test_a_retry_is_logged(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "icefield")
    server.script((503, None, LATER))
    ice.load_catalog("c", uri=server.uri, warehouse="w").list_namespaces()
    [line] = [record.getMessage() for record in caplog.records if record.name == "icefield"]
    assert line == f"GET {server.uri}/v1/config: HTTP 503; trying again in 0.0 s"


def test_a_server_that_turns_in_a_circle(server: Server, catalog: ice.Catalog) -> None:
    server.instead = [
        lambda asked: (
            (200, {"namespaces": [], "next-page-token": "again"}, {}) if asked.names[-1] == "namespaces" else None
        )
    ]
    with pytest.raises(errors.RESTError, match="the same page again and again"):
        catalog.list_namespaces()
    # An empty page with a token is followed.
    server.instead = []
    server.script((200, {"namespaces": [], "next-page-token": "0"}, {}), ends="/namespaces")
    assert catalog.list_namespaces() == [("n",)]


def test_a_server_that_says_nothing() -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        uri = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        quick = {"rest.client.socket-timeout-ms": "50"}
        with pytest.raises(errors.ServiceUnavailableError, match=r"no answer within 0\.05 s"):
            ice.load_catalog("c", uri=uri, **quick).list_namespaces()

        def trickle() -> None:
            connection, _ = deaf.accept()
            connection, _ = deaf.accept()  # the first one was given up
            connection.recv(10_000)
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
            try:
                while True:
                    connection.sendall(b" " * 10)
                    threading.Event().wait(0.01)
            except OSError:
                pass

        threading.Thread(target=trickle, daemon=True).start()
        with pytest.raises(errors.ServiceUnavailableError, match=r"took longer than 0\.5 s"):
            ice.load_catalog("c", uri=uri, **quick).list_namespaces()
    with pytest.raises(errors.ServiceUnavailableError, match="cannot connect") as raised:
        ice.load_catalog("c", uri=uri).list_namespaces()
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


def test_an_unknown_creation(server: Server, catalog: ice.Catalog) -> None:
    server.script(After(Breaks()), method="POST")
    with pytest.raises(errors.CommitStateUnknownException, match="the connection broke"):
        catalog.create_table("n.t", ROWS.schema)
    assert catalog.table_exists("n.t")
    with pytest.raises(errors.TableAlreadyExistsError):
        catalog.create_table("n.t", ROWS.schema)


@pytest.mark.parametrize(("status", "times"), [(400, 1), (403, 1), (422, 1), (409, 3)])
def test_a_commit_that_is_refused_is_not_sent_again(
    server: Server, catalog: ice.Catalog, status: int, times: int
) -> None:
    retries = {"commit.retry.num-retries": "2", "commit.retry.min-wait-ms": "1"}
    table = catalog.create_table("n.refused", ROWS.schema, properties=retries)
    server.script(*[error(status, "x", "because")] * 5, method="POST", ends="/refused")
    before = len(server.asked)
    with pytest.raises(ice.CommitFailedException, match="because"):
        table.append(ROWS)
    assert [one.method for one in server.asked[before:]].count("POST") == times
    assert not list(Path(table.location().removeprefix("file://")).rglob("*.parquet"))
