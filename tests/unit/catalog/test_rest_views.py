"""Views of a REST catalog: what is sent for them, and odd servers; `tests/interop` has them on Java's server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield.catalog.rest import RestCatalog
from icefield.errors import NoSuchViewError
from worlds.servers.rest import After, Answer, Breaks, Server, error, served

COLUMNS = pa.schema({"id": pa.int64()})
VERSION: dict[str, Any] = {
    "version-id": 7,
    "timestamp-ms": 1,
    "schema-id": 0,
    "summary": {},
    "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}, {"type": "other"}, 5],
    "default-namespace": ["n"],
}
METADATA: dict[str, Any] = {
    "view-uuid": "u",
    "format-version": 1,
    "location": "file:///v",
    "current-version-id": 7,
    "versions": [VERSION],
    "version-log": [],
    "schemas": [
        {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}
    ],
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with served(tmp_path) as made:
        made.namespaces["n",] = {}
        made.config["overrides"] = {"view-endpoints-supported": "true"}
        yield made


@pytest.fixture
def catalog(server: Server) -> RestCatalog:
    return RestCatalog("c", uri=server.uri)


def loaded(**change: object) -> Answer:
    return 200, {"metadata-location": "file:///v.json", "metadata": {**METADATA, **change}}, {}


def test_a_view_is_loaded(server: Server, catalog: RestCatalog) -> None:
    server.script(loaded(), ends="/views/v")
    view = catalog.load_view("n.v")
    assert (view.name(), view.uuid(), view.location(), view.properties) == (("n", "v"), "u", "file:///v", {})
    assert (view.queries, view.schema().column_names) == ({"spark": "SELECT 1"}, ["id"])
    broken = [
        (loaded(**{"current-version-id": 8}), "there is no version 8"),
        ((200, {"metadata": None}, {}), "the answer has no view metadata"),
        (loaded(versions=None), "versions: expected a list of objects"),
    ]
    for answer, message in broken:
        server.script(answer, ends="/views/v")
        with pytest.raises(ice.errors.RESTError, match=message):
            catalog.load_view("n.v")
    server.script(loaded(**{"version-log": None, "properties": None}), ends="/views/v")
    view = catalog.load_view("n.v")
    assert (view.history(), view.properties) == ([], {})
    server.script(error(404, ""), (200, {}, {}), error(500, "x", "oh"), ends="/views/v")
    assert [catalog.view_exists("n.v") for _ in range(2)] == [False, True]
    with pytest.raises(ice.IcefieldError, match="oh"):
        catalog.view_exists("n.v")


def test_what_is_sent_to_replace_a_view(server: Server, catalog: RestCatalog) -> None:
    server.script(loaded(), error(409, "CommitFailedException"), loaded(), loaded(), ends="/views/v")
    others = pa.schema({"other": pa.int64()})
    sent_queries = {"duckdb": "FROM t", "spark": "TABLE t"}
    catalog.replace_view("n.v", others, sent_queries, default_namespace="n.m", default_catalog="k")
    sent = server.of("POST", "/views/v")
    assert len(sent) == 2, "a lost race is run again"
    assert sent[0].body["requirements"] == [{"type": "assert-view-uuid", "uuid": "u"}]
    schema, version, current = sent[1].body["updates"]
    assert (schema["action"], schema["schema"]["fields"][0]["name"]) == ("add-schema", "other")
    assert (
        version["view-version"].items()
        >= {
            "version-id": 8,
            "schema-id": -1,
            "representations": [{"type": "sql", "sql": sent_queries[name], "dialect": name} for name in sent_queries],
            "default-namespace": ["n", "m"],
            "default-catalog": "k",
        }.items()
    )
    assert current == {"action": "set-current-view-version", "view-version-id": -1}
    server.script(*[loaded(), error(409, "x", "busy")] * 9, ends="/views/v")
    with pytest.raises(ice.CommitFailedException, match="busy"):
        catalog.replace_view("n.v", COLUMNS, {"spark": "SELECT 2"})
    server.script(loaded(), error(500, "x"), loaded(), ends="/views/v")
    before = len(server.of("POST", "/views/v"))
    with pytest.raises(ice.CommitStateUnknownException):
        catalog.replace_view("n.v", COLUMNS, {"spark": "SELECT 2"})
    assert len(server.of("POST", "/views/v")) == before + 1
    for queries in ({}, "SELECT 1", {"spark": 1}):
        with pytest.raises(ice.InvalidArgumentError, match="the query by its dialect"):
            catalog.create_view("n.v", COLUMNS, queries)  # type: ignore[arg-type]


def test_a_server_without_views(server: Server) -> None:
    server.config["overrides"] = {}
    catalog = RestCatalog("c", uri=server.uri)
    assert catalog.list_views("n") == []
    assert not catalog.view_exists("n.v")
    with pytest.raises(ice.NoSuchNamespaceError):
        catalog.list_views("z")
    refused: list[Callable[[], object]] = [
        lambda: catalog.load_view("n.v"),
        lambda: catalog.create_view("n.v", COLUMNS, {"spark": "SELECT 1"}),
        lambda: catalog.drop_view("n.v"),
        lambda: catalog.rename_view("n.v", "n.w"),
    ]
    for do in refused:
        with pytest.raises(ice.UnsupportedFeatureError, match="does not support this: views"):
            do()


@pytest.mark.parametrize(
    "broken", [error(500, "InternalServerError"), error(504, "x"), Breaks()], ids=["500", "504", "no answer"]
)
@pytest.mark.parametrize("is_made", [True, False])
def test_a_replacement_whose_answer_is_lost_is_looked_up(
    server: Server, catalog: RestCatalog, broken: Answer | Breaks, is_made: bool
) -> None:
    catalog.create_view("n.v", COLUMNS, {"spark": "SELECT 1"})
    server.script(After(broken) if is_made else broken, ends="/views/v", method="POST")
    if is_made:
        assert catalog.replace_view("n.v", COLUMNS, {"spark": "SELECT 2"}).queries == {"spark": "SELECT 2"}
    else:
        with pytest.raises(ice.CommitStateUnknownException):
            catalog.replace_view("n.v", COLUMNS, {"spark": "SELECT 2"})
    assert len(server.of("POST", "/views/v")) == 1
    assert len(catalog.load_view("n.v").versions) == 1 + is_made


@pytest.mark.parametrize(("do", "is_made"), [("drop", True), ("rename", True), ("rename", False)])
def test_the_second_answer_to_a_change(server: Server, catalog: RestCatalog, do: str, is_made: bool) -> None:
    """The server answers that there is no such view, and has the renamed one if the first request made it."""
    server.script((503, None, {"retry-after": "0"}), error(404, "NoSuchViewException"), method="DELETE")
    server.script((503, None, {"retry-after": "0"}), error(404, "NoSuchViewException"), ends="/rename")
    server.script(*[loaded() if is_made else error(404, "NoSuchViewException")] * 2, method="GET", ends="/views/w")
    server.script(error(404, "NoSuchViewException"), method="GET", ends="/views/v")
    if do == "drop":
        catalog.drop_view("n.v")
        assert len(server.of("DELETE")) == 2
    elif is_made:
        assert catalog.rename_view("n.v", "n.w").name() == ("n", "w")
    else:
        with pytest.raises(NoSuchViewError):
            catalog.rename_view("n.v", "n.w")
