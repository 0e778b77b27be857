"""Views of one SQL catalog, made and changed by us and by Java's engine in turn: the same documents, the same rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield.errors import NoSuchViewError
from icefield.view import View

if TYPE_CHECKING:
    from .conftest import Java

pytestmark = pytest.mark.interop

CATALOG = "views"
COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string())])


@pytest.fixture(scope="module", autouse=True)
def table(catalog: ice.Catalog, java: Java) -> ice.Table:
    java.sql(f"USE {CATALOG}.db")
    return catalog.create_table("db.t", COLUMNS).append(pa.table({"id": [1, 2], "name": ["a", "b"]}))


def plain(view: View) -> dict[str, Any]:
    """The document of a view, without what differs between any two views."""
    made: dict[str, Any] = {key: value for key, value in view.metadata.items() if key not in ("view-uuid", "location")}
    # Java's order of the versions depends on how many have been dropped.
    made["versions"] = [
        {key: value for key, value in one.items() if key not in ("timestamp-ms", "summary")}
        for one in sorted(made["versions"], key=lambda one: int(one["version-id"]))
    ]
    # Spark's columns begin at 0.
    made["schemas"] = [
        [(column["name"], column["type"], column["required"]) for column in one["fields"]] for one in made["schemas"]
    ]
    made["version-log"] = [one["version-id"] for one in made["version-log"]]
    made["properties"] = {
        key: value
        for key, value in made["properties"].items()
        if not key.startswith(("create_engine", "engine", "spark."))
    }
    return made


def test_ours_are_read_and_changed_by_java(catalog: ice.Catalog, java: Java) -> None:
    view = catalog.create_view(
        "db.ours",
        pa.schema([("number", pa.int64()), ("letter", pa.string())]),
        {"spark": "SELECT * FROM t", "duckdb": "FROM t"},
        properties={"comment": "of ours", "replace.drop-dialect.allowed": "true"},
    )
    assert java.rows("SELECT number, letter FROM ours ORDER BY 1").to_pydict() == {
        "number": [1, 2],
        "letter": ["a", "b"],
    }
    assert java.rows("SHOW VIEWS").column("viewName").to_pylist() == ["ours"]
    java.sql("ALTER VIEW ours SET TBLPROPERTIES ('by' = 'java')")
    java.sql("CREATE OR REPLACE VIEW ours AS SELECT id + 1 AS n FROM t")
    changed = view.refresh()
    assert (changed.properties["by"], changed.properties["comment"]) == ("java", "of ours")
    assert (changed.queries, changed.schema().column_names) == ({"spark": "SELECT id + 1 AS n FROM t"}, ["n"])
    assert [one.version_id for one in changed.history()] == [1, 2]
    changed.set_current_version(1)
    assert java.rows("SELECT count(number) AS n FROM ours").to_pydict() == {"n": [2]}
    renamed = catalog.rename_view("db.ours", "db.renamed")
    assert java.rows("SELECT count(*) AS n FROM renamed").to_pydict() == {"n": [2]}
    java.sql("DROP VIEW renamed")
    with pytest.raises(NoSuchViewError):
        renamed.refresh()


def test_javas_are_read_and_changed_by_us(catalog: ice.Catalog, java: Java) -> None:
    java.sql("CREATE VIEW theirs (n COMMENT 'a number') TBLPROPERTIES ('k' = 'v') AS SELECT id FROM t WHERE id > 1")
    view = catalog.load_view("db.theirs")
    assert (view.queries, view.properties["k"]) == ({"spark": "SELECT id FROM t WHERE id > 1"}, "v")
    assert (view.schema().fields[0].name, view.schema().fields[0].doc) == ("n", "a number")
    assert view.current_version().default_namespace == ("db",)
    both = {"spark": "SELECT name FROM t", "duckdb": "SELECT name FROM t"}
    replaced = view.replace(pa.schema([("name", pa.string())]), both).update_properties({"k": "w"})
    assert java.rows("SELECT max(name) AS m FROM theirs").to_pydict() == {"m": ["b"]}
    assert replaced.to_duckdb("v").execute("SELECT max(name) FROM v").fetchall() == [("b",)]
    described = java.rows("SHOW TBLPROPERTIES theirs").to_pydict()
    assert dict(zip(described["key"], described["value"], strict=True))["k"] == "w"
    with pytest.raises(ice.TableAlreadyExistsError):
        catalog.create_table("db.theirs", COLUMNS)
    with pytest.raises(RuntimeError, match="already exists"):
        java.sql("CREATE VIEW t AS SELECT 1 AS one")
    catalog.drop_view("db.theirs")
    assert java.rows("SHOW VIEWS").num_rows == 0


def test_the_documents_are_the_same(catalog: ice.Catalog, java: Java) -> None:
    texts = ["SELECT id, name FROM t", "SELECT id, 1 AS one FROM t", "SELECT name FROM t", "SELECT id, name FROM t"]
    schemas = [COLUMNS, pa.schema([("id", pa.int64()), pa.field("one", pa.int32(), nullable=False)])]
    schemas += [pa.schema([("name", pa.string())]), COLUMNS]
    small = {"version.history.num-entries": "2"}
    catalog.create_view("db.ours", schemas[0], {"spark": texts[0]}, properties=small)
    java.sql(f"CREATE VIEW theirs TBLPROPERTIES ('version.history.num-entries' = '2') AS {texts[0]}")
    assert plain(catalog.load_view("db.ours")) == plain(catalog.load_view("db.theirs"))
    for schema, text in zip(schemas[1:], texts[1:], strict=True):
        catalog.replace_view("db.ours", schema, {"spark": text})
        java.sql(f"CREATE OR REPLACE VIEW theirs AS {text}")
        assert plain(catalog.load_view("db.ours")) == plain(catalog.load_view("db.theirs"))
    for name in ("ours", "theirs"):
        catalog.drop_view(("db", name))
