"""Answers of REST servers with a member that is missing, null or of another kind: an error of ours, or none."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from icefield import errors
from icefield.catalog.rest import RestCatalog
from worlds.servers import protocol as rest_protocol
from worlds.servers.rest import Answer, Asked, Server

ROWS = pa.table({"id": [1, 2], "region": ["eu", "us"]})
MISSING = object()
#: What may stand instead of a member.
OTHERS: list[object] = [MISSING, None, 5, -1, 1 << 70, 1.5, True, "x", "", [], {}, [None], [5], ["x"], {"a": 1}, [{}]]
#: Which part of a long document is changed often enough by the tests of its parser.
_TESTED = {"schemas", "partition-specs", "sort-orders", "snapshots", "metadata-log", "snapshot-log"}


def look(view: Any) -> object:
    return view.sql("spark"), repr(view), view.schema(), view.history(), view.properties


#: What is asked, and the end of the path of the answer that is changed.
ASKED: dict[str, tuple[str, Callable[[RestCatalog], object]]] = {
    "config": ("/config", lambda catalog: catalog.load_table("n.t")),
    "namespaces": ("/namespaces", lambda catalog: (catalog.list_namespaces(), catalog.list_namespaces("n"))),
    "properties": ("/namespaces/n", lambda catalog: catalog.load_namespace_properties("n")),
    "update": ("/properties", lambda catalog: catalog.update_namespace_properties("n", ["k"], {"a": "b"})),
    "tables": ("/tables", lambda catalog: catalog.list_tables("n")),
    "views": ("/views", lambda catalog: catalog.list_views("n")),
    "table": ("/tables/t", lambda catalog: catalog.load_table("n.t").scan().to_arrow()),
    "credentials": ("/credentials", lambda catalog: catalog.load_table("n.t").storage.__reduce__()),
    "creation": ("/tables", lambda catalog: catalog.create_table("n.new", ROWS.schema)),
    "commit": ("/tables/t", lambda catalog: catalog.load_table("n.t").append(ROWS)),
    "view": ("/views/v", lambda catalog: look(catalog.load_view("n.v"))),
    "new view": ("/views", lambda catalog: look(catalog.create_view("n.w", ROWS.schema, {"spark": "2"}))),
}


def places(node: object, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Each place of a document; of a list the first two."""
    yield at
    if isinstance(node, dict):
        for name, value in node.items():
            if name not in _TESTED or "view-uuid" in node:
                yield from places(value, (*at, name))
    elif isinstance(node, list):
        for number, value in enumerate(node[:2]):
            yield from places(value, (*at, number))


def changed(document: Any, place: tuple[Any, ...], other: object) -> object:
    if not place:
        return None if other is MISSING else other
    document = copy.deepcopy(document)
    node = document
    for part in place[:-1]:
        node = node[part]
    if other is MISSING:
        del node[place[-1]]
    else:
        node[place[-1]] = other
    return document


@pytest.mark.parametrize("name", ASKED)
def test_no_answer_is_an_error_of_python(server: Server, name: str) -> None:
    end, ask = ASKED[name]
    server.config["endpoints"] = [str(one) for _, one in rest_protocol.operations() if "/plan" not in str(one)]
    server.namespaces["n",] = {"k": "v"}
    once = {f"commit.{kind}.num-retries": "0" for kind in ("retry", "status-check")}
    quiet = {"rest.client.max-retries": "0", "rest-metrics-reporting-enabled": "false"}
    first = RestCatalog("c", uri=server.uri, **quiet)
    first.create_namespace("n.m")
    first.create_table("n.t", ROWS.schema, properties=once).append(ROWS)
    first.create_view("n.v", ROWS.schema, {"spark": "SELECT 1"}).update_properties({"k": "v"})
    given = {"s3.access-key-id": "k", "s3.session-token-expires-at-ms": "99999999999999"}
    credentials = {"storage-credentials": [{"prefix": "file", "config": given}]}
    server.with_table = {"config": {"s3.region": "r"}, **credentials}
    if name == "credentials":
        server.with_table["storage-credentials"] = [
            {"prefix": "file", "config": {**given, "s3.session-token-expires-at-ms": "5"}}
        ]
        server.instead.append(lambda asked: (200, credentials, {}) if asked.path.endswith(end) else None)
    before = dict(server.tables), dict(server.views), {key: dict(value) for key, value in server.namespaces.items()}
    draw = random.Random(name)

    def asked_of(number: int, change: Callable[[Any], object]) -> list[Any]:
        """Ask, with one of the answers changed; return them as they were."""
        usual: list[Any] = []

        def spoilt(asked: Asked) -> Answer | None:
            if not asked.path.endswith(end):
                return None
            status, body, headers = credentials_of(asked)
            usual.append(body)
            return status, change(body) if len(usual) == number + 1 else body, headers

        def credentials_of(asked: Asked) -> Answer:
            return (200, credentials, {}) if name == "credentials" else server.usual(asked)

        server.tables, server.views = dict(before[0]), dict(before[1])
        server.namespaces = {key: dict(value) for key, value in before[2].items()}
        server.instead.insert(0, spoilt)
        try:
            with RestCatalog("c", uri=server.uri, **quiet) as catalog:
                ask(catalog)
        finally:
            server.instead.remove(spoilt)
        return usual

    answers = asked_of(-1, lambda body: body)
    assert answers
    tried = 0
    for number, answer in enumerate(answers):
        for place in places(answer):
            for other in draw.sample(OTHERS, 2):
                tried += 1
                try:
                    asked_of(number, lambda body, place=place, other=other: changed(body, place, other))
                except errors.IcefieldError as error:
                    assert "\n" not in str(error), (place, other)
                    assert len(str(error)) < 900, (place, other)
    assert tried > 3
