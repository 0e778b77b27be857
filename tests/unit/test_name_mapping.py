"""Name mappings as Python objects, and as what a table says."""

import pickle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefield as ice
from icefield.name_mapping import MappedField, NameMapping

MAPPING = NameMapping(
    MappedField(1, ["id", "record_id"]),
    MappedField(2, ["point"], [MappedField(3, ["x"]), MappedField(None, ["hidden"])]),
)


def test_found_by_any_name():
    assert MAPPING.find("record_id") == MAPPING.find("id") == MappedField(1, ["id", "record_id"])
    assert MAPPING.find("point", "x") == MAPPING.find("point.x") == MAPPING.fields[1].fields[0]
    assert MAPPING.find("point", "hidden").field_id is None
    assert MAPPING.find("nobody") is None
    assert len(MAPPING) == 2


def test_copies_are_equal():
    for copy in (pickle.loads(pickle.dumps(MAPPING)), NameMapping.from_json(MAPPING.to_json()), eval(repr(MAPPING))):
        assert copy == MAPPING
        assert hash(copy) == hash(MAPPING)
    assert pickle.loads(pickle.dumps(MAPPING.fields[1])) == MAPPING.fields[1]


def test_ids_and_names_are_unique():
    with pytest.raises(ice.IcefieldError, match="id 1 appears twice"):
        NameMapping(MappedField(1, ["a"]), MappedField(1, ["b"]))
    with pytest.raises(ice.IcefieldError, match='"a" appears twice'):
        NameMapping(MappedField(1, ["a"]), MappedField(2, ["a"]))
    with pytest.raises(ice.CorruptDataError, match="/0/names"):
        NameMapping.from_json('[{"field-id": 1, "names": [5]}]')


def test_a_table_tells_its_mapping(tmp_path):
    catalog = ice.load_catalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path))
    catalog.create_namespace("a")
    schema = pa.schema([("id", pa.int64()), ("s", pa.struct([("x", pa.int32())]))])
    table = catalog.create_table("a.t", schema)
    assert table.name_mapping() is None
    mapping = NameMapping.from_schema(table.schema())
    with table.transaction() as change:
        change.set_properties({"schema.name-mapping.default": mapping.to_json()})
    assert table.name_mapping() == mapping
    with table.update_schema() as update:
        update.rename_column("s.x", "y")
    assert table.name_mapping().find("s", "x") == table.name_mapping().find("s", "y")


def test_a_name_that_is_used_again_belongs_to_the_new_column(tmp_path):
    """As in Java's ``MappingUtil``: files without field ids give their values to the column that has the name now."""
    catalog = ice.load_catalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path))
    catalog.create_namespace("a")
    schema = pa.schema([("id", pa.int64()), ("v", pa.int64())])
    table = catalog.create_table("a.t", schema)
    pq.write_table(pa.table({"id": [1, 2], "v": [10, 20]}, schema), tmp_path / "without_ids.parquet")
    table.add_files([str(tmp_path / "without_ids.parquet")])
    table.append(pa.table({"id": [3], "v": [30]}, schema))
    dropped = table.schema().find_field("v").field_id
    with table.update_schema() as update:
        update.delete_column("v")
    with table.update_schema() as update:
        update.add_column("v", "long")
    assert table.schema().find_field("v").field_id != dropped
    assert table.name_mapping().find("v").field_id == table.schema().find_field("v").field_id
    rows = table.scan().to_arrow().sort_by("id").to_pydict()
    # The file that has field ids gives the new column nothing.
    assert rows == {"id": [1, 2, 3], "v": [10, 20, None]}
    assert table.scan("v = 20").to_arrow()["id"].to_pylist() == [2]
