"""Text is never pasted into text: whatever a name or a value holds, it works exactly or is refused by type."""

import os

import pyarrow as pa
import pytest

import icefield as ice
from icefield import expressions as ex
from icefield.errors import IcefieldError, InvalidArgumentError

TEXTS = [
    "a'b",
    'a"b',
    "a`b",
    "a'); DROP TABLE iceberg_tables; --",
    'a") OR (1 = 1',
    "a OR 1=1",
    "a--b",
    "a /* b */ c",
    "a;b",
    "a\nb\r\tc",
    "a\0b",
    "a.b",
    "*",
    "ü😀\u202e",
    "a%20b_",
    "a\\b",
    " a ",
    "null",
    "a{0}b{name}",
    "%s",
    ":x?$1",
    "a=b,c",
    "..",
    "a/b",
    "../../a",
    "",
    "a\u0301",
    "asc",
    "bucket(4, a)",
    "[red]a[/]",
]
#: What has a NUL or nothing in it is no name of a column.
COLUMNS = [text for text in TEXTS if text and "\0" not in text]


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def literal(text):
    return "'" + text.replace("'", "''") + "'"


def with_bystander(opened):
    """Give a catalog with a table; whatever is asked of it, that table must still stand at the end."""
    opened.create_namespace("a")
    opened.create_table("a.bystander", pa.schema([("x", pa.int64())])).append(pa.table({"x": [1]}))
    yield opened
    assert opened.load_table("a.bystander").scan().to_arrow().to_pylist() == [{"x": 1}]
    assert opened.list_namespaces() == [("a",)]
    opened.close()


@pytest.fixture
def catalog():
    yield from with_bystander(ice.load_catalog("c", type="in-memory"))


@pytest.fixture
def database(tmp_path):
    yield from with_bystander(ice.load_catalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh")))


def exactly_or_refused(run):
    """Run, or be refused by an error of ours; say which."""
    try:
        run()
    except IcefieldError:
        return False
    return True


@pytest.mark.parametrize("name", COLUMNS)
def test_columns(catalog, name):
    rows = pa.table({name: [1, 2, 3], "other": ["x", "y", "z"]})
    by = {"partition_by": f"bucket(4, {quoted(name)})", "sort_by": f"{quoted(name)} desc"}
    table = catalog.create_table("a.t", rows, **by).append(rows)
    assert table.schema().column_names == [name, "other"]
    assert table.spec().fields[0].source_id == table.sort_order().fields[0].source_id == 1
    scan = table.scan(f"{quoted(name)} > 1")
    assert scan.filter(ex.LessThan(name, 3)).to_arrow()[name].to_pylist() == [2]
    assert scan.filter(f"{quoted(name)} < 3").count() == 1
    assert table.scan(selected_fields=("other", name)).to_arrow().num_columns == 2
    assert (scan.to_pandas()[name].max(), scan.to_polars()[name].min()) == (3, 2)
    assert table.inspect.partitions().num_rows > 0
    assert table.scan().bounds(name).upper == 3

    table.update_spec().add_field(name, "truncate[10]", f"{name}_cut").remove_field(
        table.spec().fields[0].name
    ).commit()
    table.update_sort_order().asc(name).commit()
    table.append(rows.slice(0, 1))
    assert table.spec().fields[-1].name == f"{name}_cut"
    table.update_schema().rename_column((name,), f"{name}2").commit()
    table.update_schema().rename_column((f"{name}2",), name).commit()
    table.update_schema().add_column((f"{name}3",), "int").delete_column("other").commit()
    assert table.schema().column_names == [name, f"{name}3"]
    assert table.scan(ex.EqualTo(name, 1)).count() == 2


@pytest.mark.parametrize("name", COLUMNS)
def test_nested_columns(catalog, name):
    rows = pa.table({"st": [{name: 1, "b": 2}, {name: 3, "b": 4}]})
    table = catalog.create_table("a.t", rows).append(rows)
    found = table.scan(f"st.{quoted(name)} = 3", selected_fields=("st.b", f"st.{name}")).to_arrow()
    assert found.to_pylist() == [{"st": {"b": 4, name: 3}}]


@pytest.mark.parametrize("value", TEXTS)
def test_values(catalog, value):
    rows = pa.table({"s": [value, f"{value}x", "other"]})
    table = catalog.create_table("a.t", rows, partition_by=["s", "truncate(2, s)"]).append(rows)
    asked = [f"s = {literal(value)}", ex.EqualTo("s", value), f"s IN ({literal(value)}, 'none')"]
    for one in asked:
        assert table.scan(one).to_arrow()["s"].to_pylist() == [value]
        assert table.scan(asked[0]).filter(one).count() == 1
        assert table.scan(ex.Not(ex.EqualTo("s", value))).filter(one).count() == 0
    prefixed = {text for text in rows["s"].to_pylist() if text.startswith(value)}
    assert set(table.scan(ex.StartsWith("s", value)).to_arrow()["s"].to_pylist()) == prefixed


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_names_that_no_column_has(catalog, name):
    table = catalog.create_table("a.t", pa.schema([("id", pa.int64()), ("st", pa.struct([("x", pa.int32())]))]))
    calls = [
        lambda: catalog.create_table("a.u", pa.schema([(name, pa.int64())])),
        lambda: catalog.create_table("a.u", pa.schema([("s", pa.struct([(name, pa.int64())]))])),
        lambda: catalog.create_table("a.u", ice.Schema(ice.NestedField(1, name, "long", required=False))),
        lambda: table.update_schema().add_column((name,), "int"),
        lambda: table.update_schema().add_column(("st", name), "int"),
        lambda: table.update_schema().rename_column("id", name),
        lambda: table.append(pa.table({"id": [1], name: [1]}), schema_mode="evolve"),
        lambda: table.append(pa.table({"id": [1], name: [1]}).to_pandas(), schema_mode="evolve"),
    ]
    for call in calls:
        with pytest.raises(IcefieldError):
            call()
    assert table.refresh().schema().column_names == ["id", "st", "st.x"]


@pytest.mark.parametrize("name", TEXTS)
def test_namespaces(database, name, tmp_path):
    def use():
        database.create_namespace((name,), {name: name} if name else {})
        assert (name,) in database.list_namespaces()
        database.create_namespace((name, name))
        assert database.list_namespaces((name,)) == [(name, name)]
        table = database.create_table(
            (name, "t"), pa.schema([("x", pa.int64())]), location=str(database.properties["warehouse"]) + "/t"
        )
        assert database.list_tables((name,)) == [(name, "t")]
        assert database.load_table((name, "t")) == table
        database.drop_table((name, "t"))
        database.drop_namespace((name, name))
        database.update_namespace_properties((name,), updates={"k": name})
        assert database.load_namespace_properties((name,))["k"] == name
        database.drop_namespace((name,))

    # Levels are joined by dots in the database.
    assert exactly_or_refused(use) == (bool(name) and "." not in name and "\0" not in name)
    assert not exactly_or_refused(lambda: database.drop_namespace((name,) if name else ("none",)))


@pytest.mark.parametrize("name", TEXTS)
def test_tables(database, name, tmp_path):
    def use():
        table = database.create_table(("a", name), pa.schema([("x", pa.int64())])).append(pa.table({"x": [1]}))
        assert ("a", name) in database.list_tables("a")
        assert database.load_table(("a", name)).scan().count() == 1
        assert table.location().endswith(f"/a/{name}")
        database.rename_table(("a", name), ("a", f"{name}2"))
        assert not database.table_exists(("a", name))
        database.purge_table(("a", f"{name}2"))

    assert exactly_or_refused(use) == (bool(name) and not set(name) & set("/\\\0") and name != "..")
    assert database.list_tables("a") == [("a", "bystander")]
    assert {file.partition("-")[0] for file in os.listdir(tmp_path)} == {"c.db", "wh"}


@pytest.mark.parametrize("name", TEXTS)
def test_branches_and_tags(catalog, name):
    table = catalog.load_table("a.bystander")

    def use():
        table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, name).commit()
        assert table.scan(ref=name).count() == 1
        table.append(pa.table({"x": [2]}), branch=f"{name}b")
        assert catalog.load_table("a.bystander").scan(ref=f"{name}b").count() == 2
        assert table.incremental_append_scan(from_snapshot_id_exclusive=name, branch=f"{name}b").count() == 1
        table.manage_snapshots().remove_tag(name).remove_branch(f"{name}b").commit()

    assert exactly_or_refused(use) == bool(name)
    assert set(catalog.load_table("a.bystander").refs()) == {"main"}


@pytest.mark.parametrize("text", TEXTS)
def test_properties(catalog, text):
    table = catalog.load_table("a.bystander")
    table.update_properties({f"k{text}": text})
    assert catalog.load_table("a.bystander").properties[f"k{text}"] == text
    table.update_properties(removals=[f"k{text}"])
    assert f"k{text}" not in catalog.load_table("a.bystander").properties
    table.manage_snapshots().rollback_to_snapshot(table.current_snapshot().snapshot_id).commit()
    again = catalog.create_table("a.props", pa.schema([("x", pa.int64())]), properties={f"k{text}": text})
    again.append(pa.table({"x": [1]}), snapshot_properties={f"k{text}": text})
    assert catalog.load_table("a.props").current_snapshot().summary[f"k{text}"] == text


@pytest.mark.parametrize("name", TEXTS)
def test_names_of_catalogs(database, name, tmp_path):
    def use():
        with ice.load_catalog(name, uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh")) as other:
            with pytest.warns(UserWarning, match="holds the catalog 'c'"):
                assert other.list_namespaces() == []
            other.create_namespace("mine")
            assert other.list_namespaces() == [("mine",)]
            assert set(other.catalog_names()) == {"c", name}
            other.drop_namespace("mine")

    exactly_or_refused(use)
    assert database.catalog_names() == ["c"]


@pytest.mark.parametrize("name", TEXTS)
def test_names_in_duckdb(catalog, name):
    scan = catalog.load_table("a.bystander").scan()
    if not name:
        with pytest.raises(InvalidArgumentError, match="empty"):
            scan.to_duckdb(name)
        return
    assert scan.to_duckdb(name).sql(f"SELECT x FROM {quoted(name)}").fetchall() == [(1,)]


@pytest.mark.parametrize("name", COLUMNS)
def test_paths(catalog, name, tmp_path):
    folder = f"{tmp_path}/wh/{name}"

    def use():
        table = catalog.create_table("a.t", pa.schema([("x", pa.int64())]), location=folder)
        table.append(pa.table({"x": [1]}))
        assert catalog.load_table("a.t").scan().count() == 1
        assert os.path.isdir(os.path.normpath(f"{folder}/data"))
        assert ice.Table.from_metadata(table.metadata_location).scan().count() == 1

    exactly_or_refused(use)
    file = f"{tmp_path}/{name.replace('/', '')}.orc"

    def use_orc():
        ice.orc.write_table(pa.table({name: [1]}), file)
        assert ice.orc.read_table(file).to_pylist() == [{name: 1}]
        assert ice.orc.read_table(file, columns=[name]).to_pylist() == [{name: 1}]
        os.remove(file)

    use_orc()
    for odd in (f"{tmp_path}/a\0b.orc", ""):
        with pytest.raises((IcefieldError, OSError)):
            ice.orc.read_table(odd)
