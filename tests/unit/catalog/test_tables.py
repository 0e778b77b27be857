"""Tables in a catalog: created, loaded, registered, renamed, dropped, changed."""

import json
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import polars as pl
import pyarrow as pa
import pytest

import icefield as ice
from icefield.errors import (
    CommitFailedException,
    CorruptDataError,
    InvalidArgumentError,
    MissingFileError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
    UnsupportedFeatureError,
)

SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("time", pa.timestamp("us", "UTC")), ("name", pa.string())]
)


@pytest.fixture(params=["file", "memory"])
def catalog(request, tmp_path):
    if request.param == "memory":
        opened = ice.load_catalog("m", type="in-memory")
    else:
        opened = ice.load_catalog("f", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh"))
    opened.create_namespace("a.b")
    with opened:
        yield opened


def test_create_and_load(catalog):
    table = catalog.create_table(
        "a.b.t",
        SCHEMA,
        partition_by=["month(time)", "bucket(8, id)"],
        sort_by="time desc",
        properties={"format-version": 3, "owner": "me"},
    )
    assert table.name() == ("a", "b", "t")
    assert table.format_version == 3
    assert table.location().endswith("/a/b/t")
    assert table.metadata_location.startswith(f"{table.location()}/metadata/00000-")
    assert table.properties == {"owner": "me", "write.parquet.compression-codec": "zstd"}
    assert table.current_snapshot() is None
    assert table.schema().column_names == ["id", "time", "name"]
    assert table.schema().find_field("id").required
    document = json.loads(table.metadata_json())
    (spec,) = document["partition-specs"]
    assert [(field["name"], field["transform"], field["field-id"]) for field in spec["fields"]] == [
        ("time_month", "month", 1000),
        ("id_bucket", "bucket[8]", 1001),
    ]
    assert document["sort-orders"][0]["fields"][0]["direction"] == "desc"
    again = catalog.load_table("a.b.t")
    assert again == table
    assert again.schema() == table.schema()
    assert catalog.list_tables("a.b") == [("a", "b", "t")]


@pytest.mark.parametrize(
    "schema",
    [
        SCHEMA,
        SCHEMA.empty_table(),
        pl.DataFrame(schema={"id": pl.Int64, "name": pl.String}),
        ice.Schema(ice.NestedField(7, "id", "long", required=True), identifier_field_ids=[7]),
        '{"type": "struct", "fields": [{"id": 3, "name": "id", "type": "long", "required": false}]}',
    ],
    ids=["pyarrow schema", "pyarrow table", "polars", "icefield", "json"],
)
def test_schemas_of_every_kind_get_fresh_ids(catalog, schema):
    table = catalog.create_table("a.b.t", schema)
    assert table.schema().find_field("id").field_id == 1
    if isinstance(schema, ice.Schema):
        assert table.schema().identifier_field_ids == [1]


def test_what_cannot_be_created(catalog):
    catalog.create_table("a.b.t", SCHEMA)
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table("a.b.t", SCHEMA)
    assert catalog.create_table_if_not_exists("a.b.t", SCHEMA) == catalog.load_table("a.b.t")
    with pytest.raises(NoSuchNamespaceError):
        catalog.create_table("nowhere.t", SCHEMA)
    with pytest.raises(InvalidArgumentError, match=r'no column "tim" .* "time"\? \(columns: id, time, name\)'):
        catalog.create_table("a.b.u", SCHEMA, partition_by="month(tim)")
    with pytest.raises(UnsupportedFeatureError, match="format version 4"):
        catalog.create_table("a.b.u", SCHEMA, properties={"format-version": "4"})
    with pytest.raises(ValueError, match="NAMESPACE.TABLE"):
        catalog.create_table("t", SCHEMA)
    with pytest.raises(ice.IcefieldError, match="n"):
        catalog.create_table("a.b.u", pa.schema([("n", pa.duration("s"))]))
    with pytest.raises(TypeError, match="expected a schema"):
        catalog.create_table("a.b.u", {1: 2}.keys())
    assert not catalog.table_exists("a.b.u")


def test_drop_rename_register(catalog):
    table = catalog.create_table("a.b.t", SCHEMA)
    renamed = catalog.rename_table("a.b.t", "a.b.u")
    assert renamed.metadata_location == table.metadata_location
    with pytest.raises(NoSuchTableError):
        catalog.load_table("a.b.t")
    catalog.drop_table("a.b.u")
    with pytest.raises(NoSuchTableError):
        catalog.drop_table("a.b.u")
    back = catalog.register_table("a.b.v", table.metadata_location)
    assert back.table_uuid == table.table_uuid
    with pytest.raises(TableAlreadyExistsError):
        catalog.register_table("a.b.v", table.metadata_location)
    with pytest.raises(FileNotFoundError):
        catalog.register_table("a.b.w", table.location() + "/metadata/none.metadata.json")
    with pytest.raises(FileNotFoundError):
        catalog.register_table("a.b.v", table.location() + "/metadata/none.metadata.json", overwrite=True)
    other = catalog.create_table("a.b.w", SCHEMA)
    assert catalog.register_table("a.b.v", other.metadata_location, overwrite=True).table_uuid == other.table_uuid
    assert catalog.load_table("a.b.v").table_uuid == other.table_uuid
    assert back.storage.exists(table.metadata_location)
    assert catalog.register_table("a.b.x", table.metadata_location, True).table_uuid == table.table_uuid
    catalog.register_table("a.b.v", table.metadata_location, overwrite=True)
    catalog.purge_table("a.b.v")
    assert not back.storage.exists(table.metadata_location)


def test_a_purge_leaves_the_files_of_others(catalog):
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
    outer = catalog.create_table("a.b.t", rows)
    catalog.create_namespace("a.b.t")
    inner = catalog.create_table("a.b.t.u", rows)
    assert inner.location().startswith(f"{outer.location()}/")
    for table in (outer, inner):
        table.append(rows).append(rows)
        table.update_properties({"k": "v"})
    storage = outer.storage
    before = {path for path, _ in storage.list(outer.location())}
    kept = {path for path, _ in storage.list(inner.location())}
    catalog.purge_table("a.b.t")
    assert {path for path, _ in storage.list(outer.location())} == kept
    assert len(before - kept) == 4 + 2 + 2 + 2  # metadata files, manifest lists, manifests, data files
    assert catalog.load_table("a.b.t.u").scan().to_arrow().num_rows == 6


def test_a_purge_without_collection_of_garbage_leaves_data_files(catalog):
    table = catalog.create_table("a.b.t", SCHEMA, properties={"gc.enabled": "false"})
    table.append(pa.table({"id": pa.array([1], pa.int64())}))
    catalog.purge_table("a.b.t")
    left = [path for path, _ in table.storage.list(table.location())]
    assert [path.rpartition(".")[2] for path in left] == ["parquet"]


def test_properties_and_logs(catalog):
    table = catalog.create_table("a.b.t", SCHEMA)
    first = table.metadata_location
    other = catalog.load_table("a.b.t")
    table.update_properties({"k": 1}, removals=["write.parquet.compression-codec"])
    assert table.properties == {"k": "1"}
    assert [entry.metadata_file for entry in table.metadata_log()] == [first]
    assert "/00001-" in table.metadata_location
    assert other.properties != table.properties
    assert other.refresh() is other
    assert other.properties == table.properties
    table.update_properties({"owner": "me", "o": "x"}, removals="gone")
    table.update_properties(removals="owner")
    assert table.properties == {"k": "1", "o": "x"}
    table.update_properties(removals=["o"])
    with pytest.raises(InvalidArgumentError, match="name of a property, got 5"):
        table.update_properties(removals=[5])
    unchanged = table.metadata_location
    table.update_properties({"k": "1"})
    assert table.history() == []
    assert table.refs() == {}
    assert table.snapshots() == []
    assert table.metadata_location.rpartition("/")[0] == unchanged.rpartition("/")[0]


def test_requirements_stop_a_commit(catalog):
    table = catalog.create_table("a.b.t", SCHEMA)
    with pytest.raises(CommitFailedException):
        table.commit(
            [{"type": "assert-table-uuid", "uuid": "00000000-0000-0000-0000-000000000000"}],
            [{"action": "set-properties", "updates": {"k": "v"}}],
        )
    assert table.refresh().properties == {"write.parquet.compression-codec": "zstd"}
    with pytest.raises(ice.IcefieldError):
        table.commit([], [{"action": "no-such-action"}])


def test_concurrent_changes_all_arrive(catalog):
    catalog.create_table("a.b.t", SCHEMA, properties={"commit.retry.num-retries": 100, "commit.retry.min-wait-ms": 5})
    start = threading.Barrier(4)

    def work(thread):
        table = catalog.load_table("a.b.t")
        start.wait()
        for number in range(5):
            table.update_properties({f"{thread}.{number}": "x"})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    table = catalog.load_table("a.b.t")
    assert sum(value == "x" for value in table.properties.values()) == 20
    assert "/00020-" in table.metadata_location
    files = [path for path, _ in table.storage.list(table.location())]
    assert len(files) == 21  # the files of lost attempts are gone


def test_tables_without_a_catalog(catalog):
    table = catalog.create_table("a.b.t", SCHEMA)
    alone = ice.Table.from_metadata(table.metadata_location)
    assert alone.schema() == table.schema()
    with pytest.raises(UnsupportedFeatureError, match="read-only"):
        alone.update_properties({"k": "v"})


def test_broken_metadata_says_where(tmp_path):
    path = tmp_path / "m.metadata.json"
    with pytest.raises(MissingFileError, match="m.metadata.json"):
        ice.Table.from_metadata(str(path))
    path.write_text('{"format-version": 2, "table-uuid": ')
    with pytest.raises(CorruptDataError, match="m.metadata.json") as failure:
        ice.Table.from_metadata(str(path))
    assert failure.value.file == str(path)


def test_how_a_table_looks(catalog):
    table = catalog.create_table("a.b.t", pa.schema([("<x>", pa.int32())]))
    assert "1: <x>: optional int" in repr(table)
    assert "&lt;x&gt;" in table._repr_html_()


def test_pyiceberg_loads_what_we_create(tmp_path):
    from pyiceberg.catalog.sql import SqlCatalog

    uri = f"sqlite:///{tmp_path}/c.db"
    ours = ice.load_catalog("c", uri=uri, warehouse=str(tmp_path))
    ours.create_namespace("a")
    table = ours.create_table("a.t", SCHEMA, partition_by="day(time)")
    theirs = SqlCatalog("c", uri=uri, warehouse=f"file://{tmp_path}")
    loaded = theirs.load_table("a.t")
    assert loaded.metadata_location == table.metadata_location
    assert [field.name for field in loaded.spec().fields] == ["time_day"]
    with loaded.transaction() as transaction:
        transaction.set_properties(theirs="yes")
    assert table.refresh().properties["theirs"] == "yes"
    theirs.engine.dispose()
    assert pickle.loads(pickle.dumps(ours)).load_table("a.t") == table
