"""Changes of several tables of a REST catalog, in one commit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield.catalog.rest import RestCatalog
from worlds.servers.rest import After, Answer, Asked, Breaks, Server, error

ROWS = pa.table({"id": [1, 2]})
QUICKLY = {
    "commit.retry.min-wait-ms": "1",
    "commit.status-check.num-retries": "1",
    "commit.status-check.min-wait-ms": "1",
}


@pytest.fixture
def catalog(server: Server) -> Iterator[RestCatalog]:
    with RestCatalog("c", uri=server.uri) as made:
        for name in "abc":
            made.create_table(f"n.{name}", ROWS.schema, properties=QUICKLY).append(ROWS)
        yield made


def counts(catalog: RestCatalog) -> list[int]:
    return [catalog.load_table(f"n.{name}").scan().count() for name in "abc"]


def sent(server: Server) -> list[Any]:
    """The names of the tables of each commit."""
    return [
        sorted(change["identifier"]["name"] for change in one.body["table-changes"])
        for one in server.of("POST", "/transactions/commit")
    ]


def test_changes_of_several_tables_are_one_commit(server: Server, catalog: RestCatalog) -> None:
    with catalog.transaction() as several:
        several.table("n.a").append(ROWS)
        assert several.table("n.a") is several.table("n.a")
        several.table("n.b").delete("id = 1")
        several.table("n.a").set_properties({"k": "v"})
        several.table("n.c")  # nothing is changed there
        assert counts(catalog) == [2, 2, 2]
    assert counts(catalog) == [4, 1, 2]
    assert sent(server) == [["a", "b"]]
    assert catalog.load_table("n.a").properties["k"] == "v"
    with pytest.raises(ice.InvalidArgumentError, match="already finished"):
        several.table("n.a")
    several = catalog.transaction()
    several.table("n.a").append(ROWS)
    [table] = several.commit_transaction()
    assert (table.name(), table.append(ROWS).scan().count()) == (("n", "a"), 8)
    with catalog.transaction():
        pass
    assert len(sent(server)) == 2


def test_a_lost_race_is_run_again_by_all(server: Server, catalog: RestCatalog) -> None:
    with catalog.transaction() as several:
        several.table("n.a").append(ROWS)
        several.table("n.b").append(ROWS)
        catalog.load_table("n.a").append(ROWS)
        server.script(error(409, "CommitFailedException", "busy"), ends="/commit")
    assert counts(catalog) == [6, 4, 2]
    assert sent(server) == [["a", "b"]] * 2


def test_a_conflict_in_one_table_stops_all(server: Server, catalog: RestCatalog) -> None:
    several = catalog.transaction()
    several.table("n.a").append(ROWS)
    several.table("n.b").delete("id = 1")
    several.table("n.c").append(ROWS)
    catalog.load_table("n.b").delete("id = 1")
    before = {path.name for path in server.folder.rglob("*.parquet")}
    with pytest.raises((ice.ValidationException, ice.CommitFailedException)):
        several.commit_transaction()
    assert counts(catalog) == [2, 1, 2]
    assert sent(server) == []
    assert {path.name for path in server.folder.rglob("*.parquet")} < before, "what was written for it is deleted"


@pytest.mark.parametrize("status", [400, 403, 409])
def test_a_server_that_refuses(server: Server, catalog: RestCatalog, status: int) -> None:
    server.script(*[error(status, "x", "you may not")] * 99, ends="/commit")
    several = catalog.transaction()
    several.table("n.a").append(ROWS)
    several.table("n.b").append(ROWS)
    with pytest.raises(ice.CommitFailedException, match="you may not"):
        several.commit_transaction()
    assert counts(catalog) == [2, 2, 2]


@pytest.mark.parametrize("is_made", [True, False])
def test_an_answer_that_is_lost(server: Server, catalog: RestCatalog, is_made: bool) -> None:
    server.script(After(Breaks()) if is_made else Breaks(), ends="/commit")
    several = catalog.transaction()
    several.table("n.a").append(ROWS)
    several.table("n.b").append(ROWS)
    if is_made:
        several.commit_transaction()
    else:
        with pytest.raises(ice.CommitStateUnknownException):
            several.commit_transaction()
    assert counts(catalog) == ([4, 4, 2] if is_made else [2, 2, 2])
    assert len(sent(server)) == 1


@pytest.mark.parametrize("failure", [error(500, "x", "gone"), error(403, "x", "gone"), (200, b"{", {}), Breaks()])
def test_a_server_that_fails_after_the_commit(
    server: Server, catalog: RestCatalog, failure: Answer | Breaks, caplog: pytest.LogCaptureFixture
) -> None:
    several = catalog.transaction()
    several.table("n.a").append(ROWS)
    several.table("n.b").set_properties({"k": "v"})
    several.table("n.c")

    def fail(asked: Asked) -> Answer | None:
        if asked.method != "GET" or not sent(server):
            return None
        if isinstance(failure, Breaks):
            raise failure
        return failure

    server.instead.insert(0, fail)
    with RestCatalog("c", uri=server.uri, **{"rest.client.max-retries": "0"}) as impatient:
        several._catalog = impatient
        tables = several.commit_transaction()
    assert [table.name() for table in tables] == [("n", "a"), ("n", "b"), ("n", "c")]
    # The changes are there, and the next refresh finds where the server keeps them.
    server.instead.clear()
    assert (tables[0].scan().count(), tables[1].properties["k"], tables[2].scan().count()) == (4, "v", 2)
    assert "n.a: committed, but it cannot be loaded now" in caplog.text
    for table in tables:
        assert table.refresh().metadata == catalog.load_table(table.name()).metadata
        assert table.append(ROWS).metadata_location
    assert counts(catalog) == [6, 4, 4]
    assert len(sent(server)) == 1


def test_a_block_that_raises_leaves_nothing(server: Server, catalog: RestCatalog) -> None:
    before = {path.name for path in server.folder.rglob("*.parquet")}
    with pytest.raises(KeyError), catalog.transaction() as several:  # noqa: PT012
        several.table("n.a").append(ROWS)
        several.table("n.b").append(ROWS)
        raise KeyError
    assert {path.name for path in server.folder.rglob("*.parquet")} == before
    assert sent(server) == []
    with pytest.raises(ice.NoSuchTableError), catalog.transaction() as several:
        several.table("n.z")


def test_a_server_without_it(server: Server) -> None:
    server.config["endpoints"] = ["GET /v1/{prefix}/namespaces"]
    with pytest.raises(ice.UnsupportedFeatureError, match="several tables in one commit"):
        RestCatalog("c", uri=server.uri).transaction()
