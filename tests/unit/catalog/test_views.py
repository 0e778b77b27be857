"""Views of catalogs that keep pointers: their life, their metadata files, and what races and faults make of them."""

from __future__ import annotations

import gzip
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield import errors
from icefield.catalog.sql import SqlCatalog
from icefield.errors import NoSuchViewError
from icefield.view import SQLViewRepresentation, View, ViewVersion
from worlds.servers.rest import served

COLUMNS = pa.schema({"id": pa.int64(), "name": pa.string()})
FEWER = pa.schema({"id": pa.int64()})
SPARK = {"spark": "SELECT * FROM t"}


@pytest.fixture
def rest(tmp_path: Path) -> Iterator[ice.Catalog]:
    """A catalog of a server on a loopback port."""
    with served(tmp_path) as server:
        server.config["overrides"] = {"view-endpoints-supported": "true"}
        with ice.load_catalog("c", uri=server.uri) as made:
            yield made


@pytest.fixture(params=["sqlite", "memory"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> ice.Catalog:
    if request.param == "rest":
        made: ice.Catalog = request.getfixturevalue("rest")
    elif request.param == "sqlite":
        made = ice.load_catalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh"))
    else:
        made = ice.load_catalog("c", type="in-memory")
    made.create_namespace("n")
    made.create_namespace("m")
    return made


def document(view: View) -> Any:
    content = view.catalog.storage.read(view.metadata_location)  # type: ignore[attr-defined]
    return json.loads(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)


@pytest.mark.parametrize("catalog", ["sqlite", "memory", "rest"], indirect=True)
def test_the_life_of_a_view(catalog: ice.Catalog) -> None:
    catalog.create_table("n.t", COLUMNS)
    made = catalog.create_view("n.v", COLUMNS, SPARK, properties={"comment": "all"})
    assert (made.name(), made.queries, made.properties) == (("n", "v"), SPARK, {"comment": "all"})
    assert made.sql("SPARK") == "SELECT * FROM t"
    assert (made.schema().column_names, made.current_version().default_namespace) == (["id", "name"], ("n",))
    assert catalog.load_view("n.v") == made
    assert (catalog.list_views("n"), catalog.list_tables("n")) == ([("n", "v")], [("n", "t")])
    assert (catalog.view_exists("n.v"), catalog.view_exists("n.t"), catalog.table_exists("n.v")) == (True, False, False)

    replaced = catalog.replace_view("n.v", FEWER, {**SPARK, "duckdb": "FROM t"}, default_namespace="m")
    assert (replaced.uuid(), replaced.schema().column_names) == (made.uuid(), ["id"])
    assert (replaced.current_version().default_namespace, len(replaced.versions)) == (("m",), 2)
    assert [one.version_id for one in replaced.history()] == [1, 2]
    assert replaced.replace(FEWER, {**SPARK, "duckdb": "FROM t"}, default_namespace="m") == replaced
    with pytest.raises(ice.ValidationException, match="query in duckdb, which the new version has not"):
        replaced.replace(COLUMNS, SPARK)
    freed = replaced.update_properties({"replace.drop-dialect.allowed": "true", "k": "v"}, "comment")
    assert freed.properties == {"replace.drop-dialect.allowed": "true", "k": "v"}
    back = freed.set_current_version(1)
    assert (back.schema(), [one.version_id for one in back.history()]) == (made.schema(), [1, 2, 1])
    # The same version is not added again.
    assert [one.version_id for one in back.replace(COLUMNS, SPARK).versions] == [1, 2]
    with pytest.raises(ice.InvalidArgumentError, match="has no version 9; it has: 1, 2"):
        back.set_current_version(9)

    catalog.create_view("m.taken", COLUMNS, SPARK)
    for taken in ("n.t", "n.v"):
        with pytest.raises(errors.ViewAlreadyExistsError):
            catalog.create_view(taken, COLUMNS, SPARK)
        with pytest.raises(errors.ViewAlreadyExistsError):
            catalog.rename_view("m.taken", taken)
    with pytest.raises(ice.TableAlreadyExistsError):
        catalog.create_table("n.v", COLUMNS)
    moved = catalog.rename_view("n.v", "m.w")
    assert (moved.name(), moved.uuid(), moved.metadata) == (("m", "w"), made.uuid(), back.metadata)
    for name in ("n.v", "n.t", "n.none", "none.v"):
        for do in (
            catalog.load_view,
            catalog.drop_view,
            lambda name: catalog.replace_view(name, COLUMNS, SPARK),
            lambda name: catalog.rename_view(name, "m.x"),
        ):
            with pytest.raises((NoSuchViewError, ice.NoSuchNamespaceError)):
                do(name)
    with pytest.raises(NoSuchViewError):
        back.refresh()
    with pytest.raises(ice.NamespaceNotEmptyError):
        catalog.drop_namespace("m")
    catalog.drop_view("m.w")
    assert catalog.list_views("m") == [("m", "taken")]
    with pytest.raises(ice.NoSuchNamespaceError):
        catalog.create_view("none.v", COLUMNS, SPARK)
    assert catalog.create_or_replace_view("n.v", COLUMNS, SPARK).uuid() != made.uuid()
    assert len(catalog.create_or_replace_view("n.v", FEWER, SPARK).versions) == 2


def test_the_metadata_file_is_that_of_the_specification(catalog: ice.Catalog) -> None:
    view = catalog.create_view("n.v", COLUMNS, SPARK, default_catalog="other")
    assert view.metadata_location.startswith(f"{view.location()}/metadata/00000-")
    assert view.metadata_location.endswith(".gz.metadata.json")
    found = document(view)
    when = found["versions"][0]["timestamp-ms"]
    assert found == {
        "view-uuid": view.uuid(),
        "format-version": 1,
        "location": view.location(),
        "current-version-id": 1,
        "properties": {},
        "versions": [
            {
                "version-id": 1,
                "timestamp-ms": when,
                "schema-id": 0,
                "summary": {"engine-name": "icefield"},
                "default-catalog": "other",
                "default-namespace": ["n"],
                "representations": [{"type": "sql", "sql": "SELECT * FROM t", "dialect": "spark"}],
            }
        ],
        "schemas": [
            {
                "type": "struct",
                "schema-id": 0,
                "fields": [
                    {"id": 1, "name": "id", "required": False, "type": "long"},
                    {"id": 2, "name": "name", "required": False, "type": "string"},
                ],
            }
        ],
        "version-log": [{"timestamp-ms": when, "version-id": 1}],
    }
    plain = view.update_properties({"write.metadata.compression-codec": "none", "write.metadata.path": view.location()})
    assert plain.metadata_location.startswith(f"{view.location()}/00001-")
    assert json.loads(catalog.storage.read(plain.metadata_location)) == plain.metadata
    registered = catalog.register_view("m.again", plain.metadata_location)
    assert (registered.uuid(), catalog.load_view("m.again")) == (view.uuid(), registered)


def test_old_versions_are_given_up(catalog: ice.Catalog) -> None:
    view = catalog.create_view("n.v", COLUMNS, {"spark": "0"}, properties={"version.history.num-entries": "2"})
    for number in range(1, 4):
        view = view.replace(COLUMNS, {"spark": str(number)})
    assert [(one.version_id, one.queries["spark"]) for one in view.versions] == [(3, "2"), (4, "3")]
    assert [one.version_id for one in view.history()] == [3, 4]
    view = view.set_current_version(3).replace(COLUMNS, {"spark": "4"})
    assert [one.version_id for one in view.versions] == [4, 5]
    # Before it was version 3, which is not known any more.
    assert [one.version_id for one in view.history()] == [5]


MISTAKES: list[tuple[Callable[[ice.Catalog], object], str]] = [
    (lambda c: c.create_view("n.v", COLUMNS, {}), "expected the query by its dialect"),
    (lambda c: c.create_view("n.v", COLUMNS, "SELECT 1"), "expected the query by its dialect"),  # type: ignore[arg-type]
    (lambda c: c.create_view("n.v", COLUMNS, {"spark": "1", "Spark": "2"}), "one query in a dialect"),
    (lambda c: c.create_view("n.v", COLUMNS, SPARK, location=""), "the location of the view is empty"),
    (lambda c: c.create_view("n.v", COLUMNS, SPARK, None, {"version.history.num-entries": "0"}), "a positive integer"),
    (
        lambda c: c.create_view("n.v", COLUMNS, SPARK, None, {"write.metadata.compression-codec": "zstd"}),
        "expected gzip or none",
    ),
    (lambda c: c.create_view("v", COLUMNS, SPARK), "must be NAMESPACE.TABLE"),
    (lambda c: c.commit_view("n.old", [], [{"action": "x"}]), "unknown update of a view: 'x'"),
    (lambda c: c.commit_view("n.old", [], [{"action": "add-schema"}]), "add-schema of a view has no schema"),
    (lambda c: c.commit_view("n.old", [{"type": "x"}], []), "unknown requirement of a view: 'x'"),
    (
        lambda c: c.commit_view("n.old", [], [{"action": "set-current-view-version", "view-version-id": -1}]),
        "no version was added",
    ),
    (
        lambda c: c.commit_view("n.old", [], [{"action": "assign-uuid", "uuid": "u"}]),
        "the uuid of a view",
    ),
    (lambda c: c.load_view("n.old").update_properties({"k": "v"}, ["k"]), "both removed and set: k"),
    (lambda c: c.load_view("n.old").to_duckdb(""), "table_name must not be empty"),
]


@pytest.mark.parametrize(("do", "message"), MISTAKES, ids=[message for _, message in MISTAKES])
def test_mistakes_change_nothing(do: Callable[[ice.Catalog], object], message: str, tmp_path: Path) -> None:
    catalog = ice.load_catalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh"))
    catalog.create_namespace("n")
    old = catalog.create_view("n.old", COLUMNS, SPARK)
    files = sorted((tmp_path / "wh").rglob("*"))
    with pytest.raises(ice.InvalidArgumentError, match=message):
        do(catalog)
    assert catalog.list_views("n") == [("n", "old")]
    assert (catalog.load_view("n.old"), sorted((tmp_path / "wh").rglob("*"))) == (old, files)


DAMAGE: list[tuple[dict[str, object] | bytes, str]] = [
    ({"format-version": 2}, "version 2 of the format of views is not supported"),
    ({"format-version": "1"}, "format-version: expected 1"),
    ({"view-uuid": None}, "view-uuid: expected a text"),
    ({"versions": None}, "versions: expected a list of objects"),
    ({"current-version-id": 8}, "there is no version 8"),
    ({"current-version-id": None}, "there is no version None"),
    ({"current-version-id": "1"}, "/current-version-id: expected a number"),
    ({"properties": ["x"]}, "/properties: expected an object"),
    ({"versions": [{"version-id": 1, "summary": []}]}, "/versions/0/summary: expected an object"),
    ({"versions": [{"version-id": 1, "default-namespace": 5}]}, "/versions/0/default-namespace: expected a list"),
    ({"versions": [{"version-id": 1}]}, "there is no schema None"),
    ({"version-log": [{"timestamp-ms": "now"}]}, "/version-log/0/timestamp-ms: expected a number"),
    ({"schemas": []}, "there is no schema 0"),
    (b"{", "the metadata of a view cannot be read"),
    (b"[]", "expected the metadata of a view, got list"),
    (gzip.compress(b"{}")[:-9], "the compressed file is cut off"),
    (b"[" * 100_000, "the metadata of a view cannot be read"),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGE, ids=[message for _, message in DAMAGE])
def test_damaged_metadata_are_named(damage: dict[str, object] | bytes, message: str) -> None:
    catalog = ice.load_catalog("c", type="in-memory")
    catalog.create_namespace("n")
    view = catalog.create_view("n.v", COLUMNS, SPARK)
    content = damage if isinstance(damage, bytes) else json.dumps({**view.metadata, **damage}).encode()
    catalog.storage.write(view.metadata_location, content, overwrite=True)
    with pytest.raises((ice.CorruptDataError, ice.UnsupportedFeatureError), match=message) as caught:
        catalog.load_view("n.v")
    assert view.metadata_location in str(caught.value)
    catalog.drop_view("n.v")


def test_forty_replacements_at_once_make_one_history(tmp_path: Path) -> None:
    def opened() -> ice.Catalog:
        return ice.load_catalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh"))

    opened().create_namespace("n")
    keep = {"version.history.num-entries": "100"}
    first = opened().create_view("n.v", COLUMNS, {"spark": "first"}, properties=keep)
    lost: list[BaseException] = []

    def change(worker: int) -> None:
        with opened() as own:
            for number in range(5):
                try:
                    own.replace_view("n.v", COLUMNS, {"spark": f"{worker}.{number}"})
                except ice.CommitFailedException as failure:
                    lost.append(failure)

    threads = [threading.Thread(target=change, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = opened().load_view("n.v")
    assert [one.version_id for one in found.versions] == list(range(1, 42 - len(lost)))
    assert len({one.queries["spark"] for one in found.versions}) == len(found.versions)
    assert [one.version_id for one in found.history()] == [one.version_id for one in found.versions]
    # Only the files of states that there were.
    files = [path.name for path in Path(first.location().removeprefix("file://")).rglob("*.json")]
    assert sorted(name.partition("-")[0] for name in files) == [f"{number:05}" for number in range(len(found.versions))]


class Losing(SqlCatalog):
    """Its swaps are made, or not, and end with an error that does not say."""

    makes = True

    def swap_view_pointer(self, identifier: Any, base: str, new: str) -> None:
        if self.makes:
            super().swap_view_pointer(identifier, base, new)
        raise ice.CommitStateUnknownException("the answer was lost")


@pytest.mark.parametrize("makes", [True, False])
def test_a_replacement_with_an_unknown_outcome_is_looked_up(makes: bool, tmp_path: Path) -> None:
    catalog = Losing("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh"))
    catalog.makes = makes
    catalog.create_namespace("n")
    view = catalog.create_view("n.v", COLUMNS, SPARK)
    if makes:
        assert catalog.replace_view("n.v", FEWER, SPARK) == catalog.load_view("n.v") != view
        return
    with pytest.raises(ice.CommitStateUnknownException):
        catalog.replace_view("n.v", FEWER, SPARK)
    # The file may be the view's by now.
    assert len(list(Path(view.location().removeprefix("file://")).rglob("*.json"))) == 2


def test_the_layout_v0_has_no_views(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "c.db") as raw:
        raw.execute(
            "CREATE TABLE iceberg_tables (catalog_name VARCHAR(255), table_namespace VARCHAR(255), table_name "
            "VARCHAR(255), metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), "
            "PRIMARY KEY (catalog_name, table_namespace, table_name))"
        )
    old = ice.load_catalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh"))
    old.create_namespace("n")
    with pytest.raises(ice.UnsupportedFeatureError, match="layout V0, which has no views: .* schema_version=v1"):
        old.create_view("n.v", COLUMNS, SPARK)
    assert (old.list_views("n"), old.view_exists("n.v"), list((tmp_path / "wh").rglob("*.json"))) == ([], False, [])
    new = ice.load_catalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh"), schema_version="v1")
    assert new.create_view("n.v", COLUMNS, SPARK) == new.load_view("n.v")


def test_properties_of_the_catalog_are_those_of_its_views(tmp_path: Path) -> None:
    catalog = ice.load_catalog(
        "c", type="in-memory", **{"view-default.a": "1", "view-default.b": "1", "view-override.c": "1"}
    )
    catalog.create_namespace("n")
    given = {"b": "2", "c": "2"}
    assert catalog.create_view("n.v", COLUMNS, SPARK, None, given).properties == {"a": "1", "b": "2", "c": "1"}


def test_a_version_is_an_argument_too(catalog: ice.Catalog) -> None:
    version = ViewVersion(SPARK, ("m",), "other", {"engine-name": "mine"})
    found = catalog.create_view("n.v", COLUMNS, version).current_version()
    assert (found.queries, found.default_namespace, found.default_catalog) == (SPARK, ("m",), "other")
    assert found.summary == {"engine-name": "mine"}


def test_representations_may_be_dicts() -> None:
    given = {"type": "sql", "sql": "SELECT 1 AS id", "dialect": "spark"}
    assert ViewVersion(representations=[given]) == ViewVersion({"spark": "SELECT 1 AS id"})
    for wrong in [{"sql": "SELECT 1"}, {**given, "engine": "x"}]:
        with pytest.raises(errors.InvalidArgumentError, match="the fields type, sql and dialect, got "):
            ViewVersion(representations=[wrong])


def test_a_version_as_pyiceberg_writes_it(catalog: ice.Catalog) -> None:
    version = ViewVersion(
        schema_id=1,
        summary={"engine-name": "mine"},
        representations=[SQLViewRepresentation(type="sql", sql="SELECT 1 AS id", dialect="spark")],
        default_namespace=["m"],
    )
    schema = ice.Schema(ice.NestedField(field_id=1, name="id", field_type="int", required=False))
    view = catalog.create_view(identifier="n.v", schema=schema, view_version=version)
    found = catalog.load_view("n.v").sql_for("SPARK")
    assert found == SQLViewRepresentation("SELECT 1 AS id", "spark")
    assert view.sql_for("trino") is None
    assert view.current_version().representations == [found]
    assert view.current_version().default_namespace == ("m",)
    for given in [{}, {"queries": SPARK, "view_version": version}]:
        with pytest.raises(errors.ArgumentTypeError, match="either queries or view_version"):
            catalog.create_view("n.w", schema, **given)  # type: ignore[arg-type]
    twice = [SQLViewRepresentation("SELECT 1", "spark"), SQLViewRepresentation("SELECT 2", "spark")]
    for given in [{}, {"queries": SPARK, "representations": twice}, {"representations": twice}]:
        with pytest.raises(errors.InvalidArgumentError):
            ViewVersion(**given)  # type: ignore[arg-type]
    assert not catalog.view_exists("n.w")


def test_duckdb_runs_views(catalog: ice.Catalog) -> None:
    catalog.create_table("n.t", COLUMNS).append(pa.table({"id": [1, 2, 3], "name": ["a", "b", None]}))
    catalog.create_table("m.t", COLUMNS).append(pa.table({"id": [2], "name": ["m"]}))
    text = (
        "WITH w AS (SELECT id FROM t WHERE id > 1), t2 AS (FROM w) "
        "SELECT o.name, n.t.id FROM n.t JOIN c.m.t AS o USING (id) WHERE n.t.id IN (SELECT id FROM t2)"
    )
    inner = catalog.create_view("n.joined", pa.schema({"x": pa.string(), "y": pa.int64()}), {"duckdb": text})
    assert inner.to_duckdb("v").execute("SELECT y, x FROM v").fetchall() == [(2, "m")]
    outer = catalog.create_view(
        "m.outer", FEWER, {"duckdb": "SELECT y FROM joined UNION ALL SELECT id FROM t"}, default_namespace="n"
    )
    assert outer.to_duckdb("v").execute("SELECT sum(id) FROM v WHERE id > 1").fetchall() == [(7,)]
    # Columns of the view have its names; a query sees the state that was registered.
    connection = outer.to_duckdb("v")
    catalog.load_table("n.t").append(pa.table({"id": [9], "name": ["x"]}))
    assert connection.execute("SELECT max(id) FROM v").fetchall() == [(3,)]
    for queries, message in [
        ({"duckdb": "FROM none"}, "view n.bad: table n.none does not exist"),
        ({"duckdb": "FROM bad"}, "view n.bad is part of a cycle: n.bad -> n.bad"),
        ({"duckdb": "FROM other.m.t"}, "names m.t of catalog other, which is not its own"),
        ({"duckdb": "SELECT 1, 2"}, "the query has 2 columns, the view 1"),
        ({"duckdb": "DROP TABLE x"}, "DuckDB cannot read its query"),
        ({"duckdb": "SELECT 1; SELECT 2"}, "expected one query"),
        ({"duckdb": "FROM '/etc/passwd'"}, "does not exist"),
        (SPARK, "no query in the dialect duckdb; it has: spark"),
    ]:
        bad = catalog.create_view("n.bad", FEWER, queries)
        with pytest.raises(ice.IcefieldError, match=message):
            bad.to_duckdb("v")
        catalog.drop_view("n.bad")


def test_a_new_view_takes_no_folder_that_has_files(tmp_path: Path) -> None:
    catalog = ice.load_catalog("c", uri="sqlite://", warehouse=str(tmp_path))
    catalog.create_namespace("n")
    schema = pa.schema({"id": pa.int64()})
    table = catalog.create_table("n.a", schema)
    catalog.rename_table("n.a", "n.b")
    view = catalog.create_view("n.a", schema, {"spark": "SELECT 1"})
    assert view.location().startswith(f"{table.location()}-")
    assert catalog.create_view("n.v", schema, {"spark": "SELECT 1"}).location() == f"file://{tmp_path}/n/v"


def test_a_version_without_a_namespace_is_in_that_of_the_view(catalog: ice.Catalog) -> None:
    made = catalog.create_view("n.v", COLUMNS, ViewVersion(SPARK))
    assert made.current_version().default_namespace == ("n",)


def test_duckdb_finds_tables_of_nested_namespaces(catalog: ice.Catalog) -> None:
    duckdb = pytest.importorskip("duckdb")
    catalog.create_namespace("a")
    catalog.create_namespace("a.b")
    catalog.create_table("a.b.t", pa.schema([("id", pa.int64())])).append(pa.table({"id": [7]}))
    view = catalog.create_view("n.nested", FEWER, {"duckdb": "SELECT id FROM a.b.t"})
    found = view.to_duckdb("nested", duckdb.connect())
    assert found.sql("SELECT id FROM nested").fetchall() == [(7,)]
