"""What makes a table slow or large: each finding, its cost, and that its repair makes it go."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

import icefield as ice
from icefield.cli.commands import icefield
from icefield.table.maintenance.diagnosis import Advice

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "part": ["a", "b", "c"], "value": [1.0, 2.0, None]})


@pytest.fixture
def catalog(tmp_path: Path) -> ice.Catalog:
    made = ice.load_catalog("own", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    made.create_namespace("db")
    return made


def names(table: ice.Table) -> set[str]:
    return {one.name for one in table.doctor()}


def advice(table: ice.Table, name: str, subject: str = "") -> Advice:
    found = [one for one in table.doctor() if (one.name, one.subject) == (name, subject)]
    assert len(found) == 1, table.doctor()
    return found[0]


def follow(table: ice.Table, one: Advice) -> None:
    """Make the calls that a finding names."""
    exec(one.repair, {"table": table})


def test_a_healthy_table_has_no_findings(catalog: ice.Catalog) -> None:
    table = catalog.create_table("db.t", ROWS.schema, partition_spec=["part"], sort_order=["id"])
    assert table.doctor() == []
    table.append(ROWS)
    assert table.doctor() == [], table.doctor()
    assert repr(table.doctor()) == "Diagnosis of 0 findings"


def test_old_snapshots_expire(catalog: ice.Catalog) -> None:
    table = catalog.create_table("db.t", ROWS.schema, properties={"history.expire.max-snapshot-age-ms": "1"})
    table.append(ROWS)
    size = table.inspect.files()["file_size_in_bytes"][0].as_py()
    table.overwrite(ROWS)
    found = advice(table, "old-snapshots")
    assert found.requests == len(table.snapshots()) - 1
    assert found.bytes == size
    follow(table, found)
    assert "old-snapshots" not in names(table)


def test_manifests_are_merged(catalog: ice.Catalog) -> None:
    table = catalog.create_table(
        "db.t",
        ROWS.schema,
        properties={"commit.manifest.min-count-to-merge": "5", "commit.manifest-merge.enabled": "false"},
    )
    for _ in range(5):
        table.append(ROWS)
    found = advice(table, "many-manifests")
    assert (found.requests, found.bytes) == (4, sum(table.inspect.manifests()["length"].to_pylist()))
    follow(table, found)
    assert "many-manifests" not in names(table)
    follow(table, advice(table, "properties", "commit.manifest-merge.enabled"))
    assert "properties" not in names(table)


def test_metadata_files_are_deleted(catalog: ice.Catalog) -> None:
    table = catalog.create_table("db.t", ROWS.schema, properties={"write.metadata.previous-versions-max": "2"})
    for _ in range(3):
        table.append(ROWS)
    found = advice(table, "metadata-files", "write.metadata.delete-after-commit.enabled")
    assert found.bytes == 2 * Path(table.metadata_location.removeprefix("file://")).stat().st_size
    follow(table, found)
    assert "metadata-files" not in names(table)


PROPERTIES: list[tuple[dict[str, str], str]] = [
    (
        {"write.parquet.row-group-size-bytes": "2000000", "write.target-file-size-bytes": "1500000"},
        "write.parquet.row-group-size-bytes",
    ),
    ({"write.parquet.page-size-bytes": "999999999"}, "write.parquet.page-size-bytes"),
    ({"commit.retry.min-wait-ms": "900", "commit.retry.max-wait-ms": "800"}, "commit.retry.min-wait-ms"),
    ({"gc.enabled": "false", "history.expire.max-snapshot-age-ms": "1"}, "history.expire.max-snapshot-age-ms"),
    ({"history.expire.min-snapshots-to-keep": "5000"}, "history.expire.min-snapshots-to-keep"),
    ({"write.metadata.metrics.column.gone": "full"}, "write.metadata.metrics.column.gone"),
    ({"write.metadata.metrics.column.id": "none"}, "write.metadata.metrics.column.id"),
    ({"write.metadata.metrics.column.part": "counts"}, "write.metadata.metrics.column.part"),
    ({"write.parquet.bloom-filter-enabled.column.gone": "true"}, "write.parquet.bloom-filter-enabled.column.gone"),
]


@pytest.mark.parametrize(("properties", "named"), PROPERTIES)
def test_properties_that_work_against_each_other(catalog: ice.Catalog, properties: dict[str, str], named: str) -> None:
    table = catalog.create_table("db.t", ROWS.schema, partition_spec=["part"], sort_order=["id"], properties=properties)
    follow(table, advice(table, "properties", named))
    assert "properties" not in names(table)


@pytest.mark.parametrize(
    ("name", "value", "says", "after"),
    [
        ("write.target-file-size-bytes", "big", 'expected an integer of at least 1, got "big"', None),
        ("write.target-file-size-bytes", "0", 'expected an integer of at least 1, got "0"', None),
        ("commit.manifest.min-count-to-merge", "lots", "expected an integer", None),
        ("history.expire.max-snapshot-age-ms", "x", "expected an integer", None),
        ("write.delete.mode", "sometimes", "expected copy-on-write or merge-on-read", None),
        ("write.metadata.metrics.default", "some", "expected none, counts, truncate(LENGTH) or full", None),
        ("gc.enabled", "maybe", "expected true or false", ("gc.enabled", "false")),
        ("write.format.defualt", "orc", "did you mean write.format.default?", ("write.format.default", "orc")),
    ],
)
def test_properties_that_other_tools_set_wrongly(
    catalog: ice.Catalog, tmp_path: Path, name: str, value: str, says: str, after: tuple[str, str] | None
) -> None:
    """They are findings, and do not keep the others from being found."""
    made = catalog.create_table("db.made", ROWS.schema)
    for _ in range(6):
        made.append(ROWS)
    document = json.loads(made.metadata_json())
    document["properties"][name] = value
    (tmp_path / "odd.metadata.json").write_text(json.dumps(document))
    catalog.drop_table("db.made")
    table = catalog.register_table("db.t", str(tmp_path / "odd.metadata.json"))
    found = advice(table, "properties", name)
    assert says in found.message
    assert "small-files" in names(table)
    follow(table, found)
    assert "properties" not in names(table)
    assert after is None or table.properties[after[0]] == after[1]
    assert name not in table.properties or after == (name, table.properties[name])


def test_keys_are_not_taken_away(catalog: ice.Catalog, tmp_path: Path) -> None:
    made = catalog.create_table("db.made", ROWS.schema, properties={"format-version": "3"})
    document = json.loads(made.metadata_json())
    document["properties"]["encryption.data-key-length"] = "20"
    (tmp_path / "odd.metadata.json").write_text(json.dumps(document))
    table = catalog.register_table("db.t", str(tmp_path / "odd.metadata.json"))
    found = advice(table, "properties", "encryption.data-key-length")
    assert (found.repair, "20" in found.message) == ("", True)


def test_modes_of_version_1(catalog: ice.Catalog) -> None:
    table = catalog.create_table("db.t", ROWS.schema, properties={"format-version": "1"})
    table.update_properties({"write.delete.mode": "merge-on-read"})
    follow(table, advice(table, "properties", "write.delete.mode"))
    assert table.doctor() == []


def small_files(table: ice.Table) -> None:
    for _ in range(5):
        table.append(ROWS)


def deleted_rows(table: ice.Table) -> None:
    table.append(ROWS)
    table.delete("id = 2")


def unsorted(table: ice.Table) -> None:
    table.append(ROWS)
    with table.update_sort_order() as order:
        order.desc("id")


def unbounded(table: ice.Table) -> None:
    table.update_properties({"write.metadata.metrics.column.id": "none"})
    table.append(ROWS)
    with table.update_sort_order() as order:
        order.asc("id")


def deleted_by_key(table: ice.Table) -> None:
    table.append(ROWS)
    with table.upsert_stream(["id"]) as stream:
        stream.delete(ROWS.slice(0, 1))


def many_summaries(table: ice.Table) -> None:
    table.update_properties({"history.expire.max-snapshot-age-ms": "1"})
    for _ in range(3):
        table.append(ROWS, {"note": "x" * (3 << 20)})
    table.append(ROWS)


#: What is done to a table, the finding, its subject, requests.
OF_FILES: list[tuple[Callable[[ice.Table], None], str, str, int]] = [
    (small_files, "small-files", "", 4),
    (deleted_rows, "delete-debt", "", 1),
    (unsorted, "unsorted-files", "", 0),
    (unbounded, "missing-bounds", "id", 1),
    (deleted_by_key, "equality-deletes", "", 1),
    (many_summaries, "metadata-growth", "", 0),
]


@pytest.mark.parametrize(("change", "name", "subject", "requests"), OF_FILES)
def test_files(
    catalog: ice.Catalog, change: Callable[[ice.Table], None], name: str, subject: str, requests: int
) -> None:
    table = catalog.create_table(
        "db.t", ROWS.schema, properties={"format-version": "3", "write.delete.mode": "merge-on-read"}
    )
    change(table)
    found = advice(table, name, subject)
    assert found.requests == requests
    assert found.bytes > 0
    follow(table, found)
    assert name not in names(table)


@pytest.mark.parametrize("granularity", ["partition", "file"])
def test_position_deletes(catalog: ice.Catalog, granularity: str) -> None:
    properties = {"format-version": "2", "write.delete.mode": "merge-on-read", "write.delete.granularity": "partition"}
    table = catalog.create_table("db.t", ROWS.schema, properties=properties)
    count = 8
    for first in (0, count):
        ids = pa.array(range(first, first + count), pa.int64())
        table.append(pa.table([ids, ["a"] * count, [0.5] * count], ROWS.schema))
    for number in (1, 2, 3, 9, 10):
        table.delete(f"id = {number}")
    table.update_properties({"write.delete.granularity": granularity})
    found = advice(table, "position-delete-files")
    assert found.requests == (4 if granularity == "partition" else 3)
    assert found.bytes == sum(table.inspect.delete_files()["file_size_in_bytes"].to_pylist())
    follow(table, found)
    assert "position-delete-files" not in names(table)


def test_one_delete_file_for_each_data_file_is_no_finding(catalog: ice.Catalog) -> None:
    """The rewrite leaves them as they are, so the finding came back."""
    properties = {"format-version": "2", "write.delete.mode": "merge-on-read"}
    table = catalog.create_table("db.t", ROWS.schema, properties=properties)
    for _ in range(6):
        table.append(ROWS)
    table.delete("id = 2")
    assert table.inspect.delete_files().num_rows == 6
    assert "position-delete-files" not in names(table)


def test_small_partitions(catalog: ice.Catalog) -> None:
    table = catalog.create_table("db.t", ROWS.schema, partition_spec=["id"])
    count = 120
    table.append(pa.table([pa.array(range(count), pa.int64()), ["a"] * count, [0.5] * count], ROWS.schema))
    found = advice(table, "small-partitions")
    assert (found.requests, found.repair) == (count - 1, "")
    # Which coarser transform it is, is for the user to say.
    with table.update_spec() as spec:
        spec.remove_field("id").add_field("id", "truncate[100]")
    table.maintenance.compact(options={"rewrite-all": True})
    assert "small-partitions" not in names(table)


def test_a_few_unsorted_files_are_not_worth_a_rewrite_of_the_table(catalog: ice.Catalog) -> None:
    """The repair writes every file again, and one append of another writer made the finding come back."""
    table = catalog.create_table("db.t", ROWS.schema)
    count = 5000
    large = pa.table({"id": range(count), "part": [f"text {n * n}" for n in range(count)], "value": [0.5] * count})
    table.append(ROWS)
    with table.update_sort_order() as order:
        order.asc("id")
    table.append(large.cast(ROWS.schema))
    assert "unsorted-files" not in names(table)
    with table.update_sort_order() as order:
        order.desc("id")
    found = advice(table, "unsorted-files")
    written = sum(table.inspect.data_files()["file_size_in_bytes"].to_pylist())
    assert (found.bytes, f"the repair writes {written} bytes" in found.message) == (written, True)


def test_repairs_quote_names(catalog: ice.Catalog) -> None:
    name = 'a "b"'
    table = catalog.create_table("db.t", pa.schema({name: pa.int64()}))
    with table.update_sort_order() as order:
        order.asc(name)
    table.update_properties({f"write.metadata.metrics.column.{name}": "none"})
    table.append(pa.table({name: [1, 2]}))
    found = advice(table, "missing-bounds", name)
    follow(table, found)
    assert "missing-bounds" not in names(table)


def test_skewed_partitions(catalog: ice.Catalog) -> None:
    table = catalog.create_table(
        "db.t", ROWS.schema, partition_spec=["part"], properties={"write.target-file-size-bytes": "10000"}
    )
    table.append(pa.table({"id": pa.array(range(4), pa.int64()), "part": list("abcd"), "value": [1.0] * 4}))
    rows = 20_000
    table.append(pa.table({"id": pa.array(range(rows), pa.int64()), "part": ["d"] * rows, "value": [0.5] * rows}))
    found = advice(table, "skewed-partitions", "part=d")
    assert found.bytes > 10_000
    # Which field divides it is for the user to say.
    assert (found.repair, "repair" in str(found)) == ("", False)
    with table.update_spec() as spec:
        spec.add_field("id", "bucket[16]")
    table.maintenance.compact(options={"rewrite-all": True})
    assert "skewed-partitions" not in names(table)


def test_damage_and_orphans(catalog: ice.Catalog, tmp_path: Path) -> None:
    table = catalog.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    orphan = Path(table.location().removeprefix("file://")) / "data" / "orphan"
    orphan.write_bytes(b"12345")
    import os

    os.utime(orphan, (0, 0))
    assert table.doctor() == []
    [found] = table.doctor(orphans=True)
    assert (found.name, found.bytes) == ("orphan-files", 5)
    follow(table, found)
    assert table.doctor(orphans=True) == []
    catalog.create_table("db.other", ROWS.schema, properties={"write.parquet.page-size-bytes": "999999999"})
    common = ["--uri", f"sqlite:///{tmp_path}/catalog.db", "--warehouse", str(tmp_path), "table", "doctor"]

    def run(*words: str, code: int = 0) -> str:
        done = CliRunner().invoke(icefield, [*common, *words])
        assert done.exit_code == code, done.output
        return done.output

    assert "nothing found" in run("db.t")
    [row] = json.loads(run("--json"))
    assert (row["table"], row["finding"]) == ("db.other", "properties")
    manifest = Path(table.inspect.manifests()["path"][0].as_py().removeprefix("file://"))
    manifest.write_bytes(manifest.read_bytes()[:-20])
    (damage,) = [row for row in json.loads(run("--json", code=1)) if row["table"] == "db.t"]
    assert damage["finding"] == "damage"


def test_a_folder_that_is_not_searched_is_one_finding(catalog: ice.Catalog) -> None:
    """It hid the other findings about the table."""
    properties = {"gc.enabled": "false", "write.parquet.page-size-bytes": "999999999"}
    table = catalog.create_table("db.t", ROWS.schema, properties=properties)
    found = {one.name: one.message for one in table.doctor(orphans=True)}
    assert set(found) == {"properties", "orphan-files"}
    assert "gc.enabled=false" in found["orphan-files"]


def test_files_that_a_rewrite_would_not_give_bounds_are_not_named(catalog: ice.Catalog) -> None:
    nan = pa.table({"id": pa.array([1, 2], pa.int64()), "part": ["a", "b"], "value": [float("nan"), None]})
    for number, (properties, rows) in enumerate([({"write.format.default": "avro"}, ROWS), ({}, nan)]):
        table = catalog.create_table(f"db.t{number}", ROWS.schema, sort_order=["value"], properties=properties)
        table.append(rows)
        assert "missing-bounds" not in names(table)
