"""Manifest lists, manifests, Puffin files and deletion vectors from their bytes."""

import os
import tarfile
from pathlib import Path

import pyarrow as pa
import pytest

import icefield as ice
from icefield import errors
from icefield.puffin import DeletionVector

GOLDEN = Path(os.environ.get("ICEFIELD_GOLDEN", Path(__file__).parents[1] / "data/golden"))


def files(name, suffix):
    """The files of a golden table whose names end so, by name."""
    folder = GOLDEN / "tables" / name
    if folder.is_dir():
        return {path.name: path.read_bytes() for path in sorted(folder.rglob(f"*{suffix}"))}
    with tarfile.open(f"{folder}.tar.gz") as tar:
        members = [member for member in tar.getmembers() if member.name.endswith(suffix)]
        return {Path(member.name).name: tar.extractfile(member).read() for member in members}


@pytest.fixture(scope="module")
def table():
    found = files("dv_basic", ".avro")
    lists = [ice.manifests.read_list(data) for name, data in found.items() if name.startswith("snap-")]
    return found, max(lists, key=lambda rows: max(rows["sequence_number"].to_pylist(), default=0))


def test_a_manifest_list_has_the_fields_of_the_specification(table):
    _, manifests = table
    assert manifests.num_rows > 0
    assert set(manifests["content"].to_pylist()) <= {0, 1}
    assert manifests.schema.field("manifest_path").type == pa.string()
    assert manifests.schema.field("partitions").type.value_field.type.field("contains_null").type == pa.bool_()


def test_entries_inherit_from_their_row_of_the_list(table):
    found, manifests = table
    for row in manifests.to_pylist():
        data = found[Path(row["manifest_path"]).name]
        raw, whole = ice.manifests.read(data), ice.manifests.read(data, manifest=row)
        assert (
            raw.num_rows
            == whole.num_rows
            == sum(row[f"{kind}_files_count"] for kind in ("added", "existing", "deleted"))
        )
        assert whole["sequence_number"].null_count == 0
        live = ice.manifests.read(data, manifest=row, live_only=True)
        assert live.num_rows == row["added_files_count"] + row["existing_files_count"]
        if row["content"] == 0:
            starts = [file["first_row_id"] for file in live["data_file"].to_pylist()]
            assert min(starts) >= 0
            assert len(set(starts)) == len(starts)


def test_metrics_are_read_for_whom_they_are_wanted(table):
    found, manifests = table
    row = next(row for row in manifests.to_pylist() if row["content"] == 0)
    data = found[Path(row["manifest_path"]).name]
    names = ice.manifests.read(data, metrics=False).schema.field("data_file").type
    assert names.get_field_index("lower_bounds") == -1
    for file in ice.manifests.read(data, metrics=[1])["data_file"].to_pylist():
        assert {key for key, _ in file["lower_bounds"]} <= {1}
    with pytest.raises(errors.InvalidArgumentError, match="struct"):
        ice.manifests.read(data, partition_type="long")


@pytest.mark.parametrize(
    "read", [ice.manifests.read, ice.manifests.read_list, ice.puffin.read, DeletionVector.from_bytes]
)
@pytest.mark.parametrize("data", [b"", b"Obj\x01", b"PFA1", b"x" * 100])
def test_what_is_none_of_it_names_the_place(read, data):
    with pytest.raises(errors.CorruptDataError) as caught:
        read(data)
    assert caught.value.place
    assert caught.value.offset is not None


def test_puffin_files_hold_the_deletion_vectors_of_the_manifests():
    puffins = files("dv_basic", ".puffin")
    assert puffins
    for data in puffins.values():
        for blob in ice.puffin.read(data).blobs:
            vector = blob.deletion_vector()
            assert blob.type == "deletion-vector-v1"
            assert vector.cardinality == len(vector) == int(blob.properties["cardinality"])
            assert DeletionVector.from_bytes(vector.to_bytes()) == vector
            assert vector == DeletionVector(vector.positions().to_pylist())
            with pytest.raises(errors.CorruptDataError, match="manifest says"):
                DeletionVector.from_bytes(blob.data, record_count=vector.cardinality + 1)


def test_a_deletion_vector_is_a_set_of_positions():
    vector = DeletionVector([7, 3, 3, 1 << 40])
    assert vector.positions().to_pylist() == [3, 7, 1 << 40]
    assert (3 in vector, 4 in vector, len(vector)) == (True, False, 3)
    assert vector.live_mask(first_row=2, row_count=3).to_pylist() == [True, False, True]
    assert vector.union(DeletionVector([4])) == DeletionVector([3, 4, 7, 1 << 40])
    assert vector != DeletionVector()
    assert DeletionVector().to_bytes() != vector.to_bytes()
    with pytest.raises(errors.InvalidArgumentError, match="position"):
        DeletionVector([1 << 63])
