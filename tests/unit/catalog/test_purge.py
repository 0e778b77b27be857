"""A table is purged: what its metadata names goes, and what cannot be read or deleted stops nothing else."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

import icefield as ice
from icefield.errors import NoSuchTableError

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


@pytest.fixture
def catalog(tmp_path):
    with ice.load_catalog("f", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh")) as opened:
        opened.create_namespace("a")
        yield opened


def local(path):
    return Path(path.removeprefix("file://"))


def left(table):
    return sorted(Path(path).name for path, _ in table.storage.list(table.location()))


def manifests(table):
    return [local(path) for path in table.inspect.all_manifests().column("path").unique().to_pylist()]


def grown(catalog, appends=3, **properties):
    table = catalog.create_table("a.t", ROWS.schema, properties=properties)
    for _ in range(appends):
        table.append(ROWS)
    return table


def data_files(manifest):
    entries = ice.manifests.read(manifest.read_bytes()).column("data_file").to_pylist()
    return [local(entry["file_path"]) for entry in entries]


def listed(snapshot):
    paths = ice.manifests.read_list(local(snapshot.manifest_list).read_bytes()).column("manifest_path")
    return {local(path) for path in paths.to_pylist()}


DAMAGES = {
    "missing": lambda file: file.unlink(),
    "empty": lambda file: file.write_bytes(b""),
    "no-avro": lambda file: file.write_bytes(b"neither avro nor anything"),
    "cut": lambda file: file.write_bytes(file.read_bytes()[:-20]),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_manifest_that_cannot_be_read_leaves_its_own_files_only(catalog, damage):
    table = grown(catalog)
    first, *_ = manifests(table)
    (orphan,) = data_files(first)
    DAMAGES[damage](first)
    with pytest.warns(RuntimeWarning, match=first.name) as warned:
        catalog.purge_table("a.t")
    assert len(warned) == 1
    assert left(table) == [orphan.name]
    with pytest.raises(NoSuchTableError):
        catalog.load_table("a.t")


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_manifest_list_that_cannot_be_read_leaves_what_it_alone_names(catalog, damage):
    table = grown(catalog)
    *before, last = table.snapshots()
    (manifest,) = listed(last).difference(*map(listed, before))
    (data,) = data_files(manifest)
    DAMAGES[damage](local(last.manifest_list))
    with pytest.warns(RuntimeWarning, match=local(last.manifest_list).name):
        catalog.purge_table("a.t")
    assert left(table) == sorted([manifest.name, data.name])


def test_files_that_are_gone_are_no_failure(catalog):
    table = grown(catalog, **{"write.metadata.previous-versions-max": "2"})
    snapshot, *_ = table.snapshots()
    gone = [*data_files(manifests(table)[0]), local(table.metadata_log()[0].metadata_file)]
    for file in gone:
        file.unlink()
    catalog.purge_table("a.t")
    # Metadata files that have left the log are named by nothing.
    assert all(name.endswith(".metadata.json") for name in left(table))
    assert len(left(table)) == 1
    assert snapshot.manifest_list


def test_a_table_whose_metadata_file_is_gone_is_dropped(catalog):
    table = grown(catalog, appends=1)
    local(table.metadata_location).unlink()
    with pytest.warns(RuntimeWarning, match="metadata.json: not found"):
        catalog.purge_table("a.t")
    assert not catalog.table_exists("a.t")
    assert len(left(table)) == 4  # the first metadata file, a manifest list, a manifest, a data file


def test_a_table_that_is_not_there_is_an_error(catalog):
    with pytest.raises(NoSuchTableError):
        catalog.purge_table("a.t")


def test_what_cannot_be_deleted_is_named_once_and_counted(catalog):
    table = grown(catalog, appends=9)
    files = [local(path) for path in table.inspect.all_files().column("file_path").to_pylist()]
    for file in files:
        file.unlink()
        file.mkdir()  # no file can be deleted where a folder is
        (file / "in-the-way").touch()
    with pytest.warns(RuntimeWarning, match="cannot delete") as warned:
        catalog.purge_table("a.t")
    (message,) = [str(warning.message) for warning in warned]
    assert message.count("cannot delete") == 5
    assert message.endswith("; and 4 more")
    assert left(table) == ["in-the-way"] * 9


def test_paths_that_leave_the_folder_by_dots_are_those_of_others(catalog):
    table = grown(catalog, appends=1)
    other = local(catalog.create_table("a.other", ROWS).metadata_location)
    statistics = [
        {
            "snapshot-id": table.current_snapshot().snapshot_id,
            "statistics-path": f"{table.location()}/../other/metadata/{other.name}",
            "file-size-in-bytes": 1,
            "file-footer-size-in-bytes": 1,
            "blob-metadata": [],
        }
    ]
    table.commit([], [{"action": "set-statistics", "statistics": entry} for entry in statistics])
    catalog.purge_table("a.t")
    assert left(table) == []
    assert other.exists()


def test_statistics_go_with_the_table(catalog):
    table = grown(catalog, appends=1)
    snapshot = table.current_snapshot().snapshot_id
    paths = [f"{table.location()}/metadata/{name}" for name in ("s.stats", "p.parquet")]
    for path in paths:
        table.storage.write(path, b"statistics")
    common = {"snapshot-id": snapshot, "file-size-in-bytes": 10}
    full = {**common, "statistics-path": paths[0], "file-footer-size-in-bytes": 1, "blob-metadata": []}
    table.commit(
        [],
        [
            {"action": "set-statistics", "statistics": full},
            {"action": "set-partition-statistics", "partition-statistics": {**common, "statistics-path": paths[1]}},
        ],
    )
    catalog.purge_table("a.t")
    assert left(table) == []


def test_thousands_of_small_files_of_many_partitions(catalog):
    count = 2000
    rows = pa.table({"id": pa.array(range(count), pa.int64())})
    table = catalog.create_table("a.t", rows.schema, partition_by=["id"])
    table.append(rows)
    assert len(table.storage.list(table.location())) == count + 4
    catalog.purge_table("a.t")
    assert left(table) == []


def victim(folder):
    """Make a file of somebody else, as a data file of its own folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "precious.parquet").write_bytes(b"of somebody else")
    return folder / "precious.parquet"


def named_by(catalog, table, file, **properties):
    """Let the metadata name a file, as statistics, and a folder as the table's own."""
    entry = {
        "snapshot-id": table.current_snapshot().snapshot_id,
        "statistics-path": str(file),
        "file-size-in-bytes": 1,
        "file-footer-size-in-bytes": 1,
        "blob-metadata": [],
    }
    table.commit([], [{"action": "set-statistics", "statistics": entry}])
    # By hand: a commit would write into the folder.
    document = json.loads(table.metadata_json())
    document["properties"] |= properties
    crafted = local(table.metadata_location).with_name("00099-crafted.metadata.json")
    crafted.write_text(json.dumps(document))
    catalog.drop_table("a.t")
    catalog.register_table("a.t", str(crafted))
    local(table.metadata_location).unlink()


@pytest.mark.parametrize("name", ["write.data.path", "write.metadata.path"])
@pytest.mark.parametrize(
    ("folder", "why"),
    [
        ("/", "is the root of a store or drive"),
        ("file:///", "is the root of a store or drive"),
        ("//", "is the root of a store or drive"),
        ("/.//", "is the root of a store or drive"),
        ("{root}", "is the warehouse or above it"),
        ("{root}/wh", "is the warehouse or above it"),
        ("{root}/wh/", "is the warehouse or above it"),
        ("{root}/wh/a", "is above the table's location"),
        ("{root}/wh/a/t/../..", "has '..' in it"),
        ("{root}/wh/a/link", "is a link"),
    ],
)
def test_a_folder_that_is_not_the_tables_alone_is_refused(catalog, tmp_path, name, folder, why):
    table = grown(catalog, appends=1)
    precious = victim(tmp_path / "wh" / "a")
    (tmp_path / "wh" / "a" / "link").symlink_to(tmp_path / "wh" / "a")
    file = precious if "link" not in folder else tmp_path / "wh" / "a" / "link" / precious.name
    named_by(catalog, table, file, **{name: folder.format(root=tmp_path)})
    own = [local(path) for path in table.inspect.files()["file_path"].to_pylist()]
    with pytest.warns(RuntimeWarning, match=f"the folder .* of the table {why}: nothing in it was deleted"):
        catalog.purge_table("a.t")
    assert precious.exists()
    assert not any(path.exists() for path in own)  # what lies in the table's own location goes


def test_a_table_whose_location_is_a_root_keeps_all_its_files(tmp_path):
    catalog = ice.load_catalog("m", type="in-memory")
    catalog.create_namespace("a")
    for location in ("memory://bucket", "memory://bucket/", "memory://bucket//"):
        table = catalog.create_table("a.t", ROWS, location=location)
        table.append(ROWS)
        before = left(table)
        with pytest.warns(RuntimeWarning, match="is the root of a store or drive: nothing in it was deleted"):
            catalog.purge_table("a.t")
        assert left(table) == before
    catalog.close()


@pytest.mark.parametrize("place", ["data", "data/part=1"])
def test_nothing_is_deleted_by_way_of_a_link(catalog, tmp_path, place):
    table = grown(catalog, appends=1)
    outside = victim(tmp_path / "elsewhere")
    link = local(table.location()) / place
    if place == "data":
        link.rename(link.with_name("moved"))
    link.symlink_to(outside.parent)
    named_by(catalog, table, link / outside.name)
    with pytest.warns(RuntimeWarning, match="this is a link: what it leads to stays") as warned:
        catalog.purge_table("a.t")
    assert str(warned[0].message).count("this is a link") == 1
    assert outside.exists()
    assert not any(name.endswith((".avro", ".metadata.json")) for name in left(table))


def test_a_link_under_a_data_path_in_the_table_is_no_way_out(catalog, tmp_path):
    outside = victim(tmp_path / "elsewhere" / "deep")
    table = grown(catalog, appends=1)
    (local(table.location()) / "link").symlink_to(tmp_path / "elsewhere")
    folder = f"{table.location()}/link/deep"
    named_by(catalog, table, f"{folder}/{outside.name}", **{"write.data.path": folder})
    with pytest.warns(RuntimeWarning, match="this is a link"):
        catalog.purge_table("a.t")
    assert outside.exists()


def test_a_file_that_is_a_link_goes_without_what_it_leads_to(catalog, tmp_path):
    outside = victim(tmp_path / "elsewhere")
    table = grown(catalog, appends=1)
    link = local(table.location()) / "data" / "link.parquet"
    link.symlink_to(outside)
    named_by(catalog, table, link)
    catalog.purge_table("a.t")
    assert outside.exists()
    assert left(table) == []


def test_a_table_whose_folder_is_a_link_is_left(catalog, tmp_path):
    table = grown(catalog, appends=1)
    folder = local(table.location())
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    before = left(table)
    with pytest.warns(RuntimeWarning, match="is a link: nothing in it was deleted"):
        catalog.purge_table("a.t")
    assert left(table) == before


def test_a_warehouse_that_is_reached_by_a_link_is_purged(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "wh").symlink_to(tmp_path / "real")
    with ice.load_catalog("f", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh")) as catalog:
        catalog.create_namespace("a")
        table = grown(catalog, **{"write.data.path": str(tmp_path / "data")})
        catalog.purge_table("a.t")
    assert left(table) == []
    assert not any(path.is_file() for path in (tmp_path / "data").rglob("*"))
