"""Manifests that are written again, their entries grouped in another way."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import icefield as ice
from icefield.catalog.memory import InMemoryCatalog
from icefield.procedures import call


@pytest.fixture
def table() -> ice.Table:
    """Make a table of six appends to three partitions each."""
    catalog = InMemoryCatalog()
    catalog.create_namespace("n")
    made = catalog.create_table("n.t", pa.schema({"id": pa.int64(), "part": pa.int32()}), partition_by="part")
    for number in range(6):
        rows = {"id": [number] * 3, "part": pa.array([0, 1, 2], pa.int32())}
        made.append(pa.table(rows))
    return made


def manifests(table: ice.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.inspect.manifests().to_pylist()
    return found


def test_manifests_of_partitions_are_read_alone(table: ice.Table) -> None:
    before = table.scan().to_arrow().sort_by([("id", "ascending"), ("part", "ascending")])
    assert len(manifests(table)) == 6
    table.rewrite_manifests({"by": "me"}).cluster_by("part").commit()
    found = manifests(table)
    assert [(row["existing_data_files_count"], row["added_data_files_count"]) for row in found] == [(6, 0)] * 3
    assert all(
        row["partition_summaries"][0]["lower_bound"] == row["partition_summaries"][0]["upper_bound"] for row in found
    )
    assert table.scan().to_arrow().sort_by([("id", "ascending"), ("part", "ascending")]).equals(before)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.operation == "replace"
    assert snapshot.summary is not None
    expected = {"by": "me", "entries-processed": "18", "manifests-created": "3", "manifests-replaced": "6"}
    assert expected.items() <= snapshot.summary.items()


def test_without_a_key_all_stand_together(table: ice.Table) -> None:
    with table.rewrite_manifests() as rewrite:
        rewrite.cluster_by()
    assert [row["existing_data_files_count"] for row in manifests(table)] == [18]


def test_functions_choose_manifests_and_keys(table: ice.Table) -> None:
    first = table.snapshots()[0].snapshot_id

    def odd(entries: pa.Table) -> pa.Array:
        part = pc.struct_field(entries["data_file"].combine_chunks(), ["partition", "part"])
        return pc.bit_wise_and(part, 1)

    rewrite = table.rewrite_manifests().cluster_by(odd)
    rewrite.rewrite_if(lambda rows: pc.not_equal(rows["added_snapshot_id"], first)).commit()
    counts = [(row["existing_data_files_count"], row["added_data_files_count"]) for row in manifests(table)]
    assert sorted(counts) == [(0, 3), (5, 0), (10, 0)]


def test_it_is_made_again_on_top_of_another_commit(table: ice.Table) -> None:
    rewrite = table.rewrite_manifests().cluster_by("part")
    other = table.catalog.load_table("n.t") if table.catalog else table
    other.append(pa.table({"id": [9], "part": pa.array([5], pa.int32())}))
    rewrite.commit()
    assert len(manifests(table.refresh())) == 4
    assert table.scan().count() == 19


@pytest.mark.parametrize(
    ("by", "message"),
    [
        (("nope",), "nope"),
        (("part", lambda entries: entries), "not both"),
        ((lambda entries: pa.array([1]),), "expected a key for each of 3 entries, got 1"),
        ((lambda entries: 1 / 0,), "division"),
        ((lambda entries: "text",), "arrow"),
    ],
)
def test_wrong_keys_change_nothing(table: ice.Table, by: tuple[Any, ...], message: str) -> None:
    before = table.metadata_location
    with pytest.raises((ice.InvalidArgumentError, ZeroDivisionError, TypeError), match=f"(?i){message}"):
        table.rewrite_manifests().cluster_by(*by).commit()
    assert table.refresh().metadata_location == before


def test_answers_for_manifests_are_booleans(table: ice.Table) -> None:
    for answer, message in [(pa.array([1]), "booleans"), (pa.array([True]), "each of 6 manifests, got 1")]:
        rewrite = table.rewrite_manifests().cluster_by().rewrite_if(lambda rows, answer=answer: answer)
        with pytest.raises(ice.InvalidArgumentError, match=message):
            rewrite.commit()


def test_a_table_without_manifests_is_refused() -> None:
    catalog = InMemoryCatalog()
    catalog.create_namespace("n")
    empty = catalog.create_table("n.t", pa.schema({"id": pa.int64()}))
    with pytest.raises(ice.InvalidArgumentError, match="no manifests"):
        empty.rewrite_manifests().cluster_by().commit()


@pytest.mark.parametrize(("version", "name", "groups"), [
    # The specs have `part`; `part` and `id_bucket`; `shard` (once `part`) and `id_bucket`; `id_bucket`.
    ("2", "part", [3, 3, 3, 1]),
    ("2", "shard", [3, 3, 3, 1]),
    ("2", "id_bucket", [1, 2, 2, 2]),
    ("2", "partition", [3, 6, 6, 2]),
    ("2", "nothing", None),
    ("1", "id_bucket", [1, 2, 2, 2]),
])  # fmt: skip
def test_fields_of_other_specs(version: str, name: str, groups: list[int] | None) -> None:
    catalog = InMemoryCatalog()
    catalog.create_namespace("n")
    rows = pa.table({"id": list(range(12)), "part": pa.array([0, 1, 2] * 4, pa.int32())})
    table = catalog.create_table("n.t", rows.schema, partition_by="part", properties={"format-version": version})
    table.append(rows)
    with table.update_spec() as update:
        update.add_field("id", "bucket[2]", "id_bucket")
    table.append(rows)
    with table.update_spec() as update:
        update.rename_field("part", "shard")
    table.append(rows)
    with table.update_spec() as update:
        update.remove_field("shard")
    table.append(rows).append(rows)
    if groups is None:
        with pytest.raises(ice.InvalidArgumentError, match="neither a partition field"):
            table.rewrite_manifests().cluster_by(name).commit()
        return
    table.rewrite_manifests().cluster_by(name).commit()
    found = [row["partition_spec_id"] for row in manifests(table.refresh())]
    assert [found.count(spec_id) for spec_id in range(4)] == groups
    assert table.refresh().scan().count() == 60


@pytest.mark.parametrize("is_split", [False, True])
def test_manifests_of_delete_files(is_split: bool) -> None:
    """Apart from those of data files, and by the procedure too."""
    catalog = InMemoryCatalog()
    catalog.create_namespace("n")
    schema = pa.schema({"id": pa.int64(), "part": pa.int32()})
    properties = {
        "format-version": "3",
        "write.delete.mode": "merge-on-read",
        "commit.manifest-merge.enabled": "false",
    }
    for name in ("n.a", "n.b"):
        table = catalog.create_table(name, schema, partition_by="part", properties=properties)
        for number in range(3):
            rows = {"id": range(number * 10, number * 10 + 6), "part": pa.array([0, 0, 1, 1, 2, 2], pa.int32())}
            table.append(pa.table(rows))
            table.delete(f"id = {number * 10} OR id = {number * 10 + 2}")
        before = sorted(table.scan().to_arrow()["id"].to_pylist())
        files = sorted(file["file_path"] for file in table.inspect.files().to_pylist())
        assert [row["content"] for row in manifests(table)].count(1) == 3
        if name == "n.a":
            planned = table.rewrite_manifests().with_delete_manifests().cluster_by("part").dry_run()
            table.rewrite_manifests().with_delete_manifests().cluster_by("part").commit()
            assert (planned.replaced, planned.added, planned.entries) == (6, 5, 15)
            found = [(row["content"], row["existing_delete_files_count"]) for row in manifests(table)]
            assert sorted(found) == [(0, 0)] * 3 + [(1, 3)] * 2
        else:
            if is_split:
                lengths = [row["length"] for row in manifests(table) if row["content"] == 0]
                table.update_properties({"commit.manifest.target-size-bytes": str(int(sum(lengths) / 2.5))})
            (done,) = call(catalog, "rewrite_manifests", table=name).to_pylist()
            kept = [row["content"] for row in manifests(table.refresh())]
            assert (done["rewritten_manifests_count"], done["added_manifests_count"]) == (6, len(kept))
            assert (kept.count(0), kept.count(1)) == ((3, 2) if is_split else (1, 1))
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == before
        assert sorted(file["file_path"] for file in table.inspect.files().to_pylist()) == files
        assert table.fsck("rows").findings == []
