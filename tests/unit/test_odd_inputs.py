"""What a first user may hand over, and nobody expected: it fits, or the error says what to do, and nothing is left."""

from __future__ import annotations

import decimal
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import icefield as ice
from icefield.distributed import TaskWriter
from icefield.errors import InvalidArgumentError, UnsupportedFeatureError, ValidationError


@pytest.fixture
def catalog() -> Iterator[ice.Catalog]:
    with ice.load_catalog("m", type="in-memory") as opened:
        opened.create_namespace("a")
        yield opened


def trip(catalog: ice.Catalog, rows: Any, **options: Any) -> list[dict[str, Any]]:
    table = catalog.create_table("a.t", rows, **options).append(rows)
    assert table.scan().count() == table.scan().to_arrow().num_rows
    return table.scan().to_arrow().to_pylist()


LAYOUTS = {
    "list of a fixed size": pa.array([[1, 2], None, [3, None]], pa.list_(pa.int32(), 2)),
    "fixed size 0": pa.array([[], None, []], pa.list_(pa.int32(), 0)),
    "list view": pa.array([[1], None, []], pa.list_view(pa.int32())),
    "large list view": pa.array([[1], None, []], pa.large_list_view(pa.int32())),
    "run ends": pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["a", None])),
    "run ends of numbers": pa.RunEndEncodedArray.from_arrays(pa.array([1, 3], pa.int32()), pa.array([None, 2**40])),
    "nested": pa.array([{"x": [[1]]}, {"x": None}, None], pa.struct([("x", pa.list_(pa.list_(pa.int8(), 1)))])),
    "dictionary": pa.array(["a", None, "b"]).dictionary_encode(),
    "view": pa.array(["a", None, "longer than twelve bytes"], pa.string_view()),
    "large": pa.array([b"a", None, b""], pa.large_binary()),
    "small decimal": pa.array([decimal.Decimal("1.5"), None, decimal.Decimal("-9.9")], pa.decimal32(2, 1)),
    "wide decimal": pa.array([decimal.Decimal(10) ** 37, None, decimal.Decimal(0)], pa.decimal256(38, 0)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_arrow(catalog: ice.Catalog, layout: str) -> None:
    rows = pa.table({"k": [1, 2, 3], "v": LAYOUTS[layout]})
    assert trip(catalog, rows) == rows.to_pylist()
    (file,) = catalog.load_table("a.t").scan().plan_files().files
    assert file["record_count"] == 3


def extended(kind: Any, storage: pa.Array) -> pa.Array:
    return pa.ExtensionArray.from_storage(kind, storage)


BYTES = pa.array([0, None, 1, -1, 127], pa.int8())
EXTENSIONS = {
    "bool8": (extended(pa.bool8(), BYTES), "boolean", [False, None, True, True, True]),
    "list of bool8": (
        pa.ListArray.from_arrays([0, 2, 5], extended(pa.bool8(), BYTES)),
        "list<boolean>",
        [[False, None], [True, True, True]],
    ),
    "bool8 in runs": (
        pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), extended(pa.bool8(), BYTES.slice(3))),
        "boolean",
        [True] * 3,
    ),
    "uuid": (extended(pa.uuid(), pa.array([b"\1" * 16, None], pa.binary(16))), "uuid", [UUID(bytes=b"\1" * 16), None]),
    "json": (extended(pa.json_(), pa.array(['{"a": 1}', None])), "string", ['{"a": 1}', None]),
    "tensor": (
        extended(pa.fixed_shape_tensor(pa.int32(), (1, 2)), pa.array([[1, 2], None], pa.list_(pa.int32(), 2))),
        "list<int>",
        [[1, 2], None],
    ),
}


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("name", EXTENSIONS)
def test_extension_types_of_arrow(catalog: ice.Catalog, name: str, file_format: str) -> None:
    values, kind, expected = EXTENSIONS[name]
    rows = pa.table({"v": values})
    table = catalog.create_table("a.t", rows, properties={"write.format.default": file_format})
    assert str(table.schema().find_type("v")) == kind
    for mode in ("strict", "subset", "evolve"):
        table.append(rows, schema_mode=mode)  # type: ignore[arg-type]
    assert table.scan().to_arrow()["v"].to_pylist() == expected * 3
    assert str(table.schema().find_type("v")) == kind


def test_booleans_of_a_byte_are_no_numbers(catalog: ice.Catalog) -> None:
    rows = pa.table({"v": extended(pa.bool8(), BYTES)})
    for kind in ("int", "string"):
        table = catalog.create_table(f"a.{kind}", ice.Schema(ice.NestedField(1, "v", kind)))
        with pytest.raises(ValidationError, match=f"column v: the table's type is {kind}, the data's arrow.bool8"):
            table.append(rows)
    table = catalog.create_table("a.t", ice.Schema(ice.NestedField(1, "v", "boolean")))
    with pytest.raises(ValidationError, match="column v: the table's type is boolean, the data's 8-bit integer"):
        table.append(pa.table({"v": BYTES}))
    table.append(rows).append(pa.table({"v": [True]}))
    assert table.scan("v = true").count() == 4


def test_columns_of_nothing(catalog: ice.Catalog) -> None:
    table = catalog.create_table("a.t", pa.schema([("id", pa.int64()), ("s", pa.list_(pa.string()))]))
    # Polars gives arrays of nulls a buffer, which the C data interface does not provide for.
    table.append(pl.DataFrame({"id": [None, None], "s": [[None], []]}))
    table.append(pa.table({"id": pa.nulls(1), "s": pa.nulls(1)}))
    table.append(pa.table({"id": pa.array([], pa.int64())}))
    table.append(pa.Table.from_batches([], pa.schema([("id", pa.int64())])))
    assert [row["id"] for row in table.scan().to_arrow().to_pylist()] == [None] * 3
    assert sorted(table.scan().to_arrow()["s"].to_pylist(), key=str) == [None, [None], []]


def texts(kind: pa.DataType, *values: bytes | None) -> pa.Array:
    """Make an array of texts that nobody has looked at."""
    plain = {pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}.get(kind, pa.binary())
    made = pa.array(values, plain)
    return pa.Array.from_buffers(kind, len(made), made.buffers())


TEXTS = {
    "string": (lambda *values: texts(pa.string(), *values), "v"),
    "large string": (lambda *values: texts(pa.large_string(), *values), "v"),
    "view": (lambda *values: texts(pa.string_view(), *values), "v"),
    "dictionary": (
        lambda *values: pa.DictionaryArray.from_arrays(pa.array(range(len(values))), texts(pa.string(), *values)),
        "v",
    ),
    "struct": (lambda *values: pa.StructArray.from_arrays([texts(pa.string(), *values)], ["x"]), "v.x"),
    "list": (
        lambda *values: pa.ListArray.from_arrays(range(len(values) + 1), texts(pa.string(), *values)),
        "v.element",
    ),
    "keys": (
        lambda *values: pa.MapArray.from_arrays(
            range(len(values) + 1), texts(pa.string(), *values), pa.array(range(len(values)))
        ),
        "v.key",
    ),
    "values": (
        lambda *values: pa.MapArray.from_arrays(
            range(len(values) + 1), pa.array(range(len(values))), texts(pa.large_string(), *values)
        ),
        "v.value",
    ),
}


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("layout", TEXTS)
def test_texts_that_are_no_utf8_are_refused(catalog: ice.Catalog, layout: str, file_format: str) -> None:
    make, column = TEXTS[layout]
    sound = make("é".encode(), b"a text that is longer than twelve bytes", b"")
    table = catalog.create_table("a.t", pa.table({"v": sound}), properties={"write.format.default": file_format})
    table.append(pa.table({"v": sound}))
    kept = table.storage.list(table.location())
    for wrong in (b"\xff", b"caf\xc3", b"a text that is longer than twelve bytes, but for \xe9"):
        rows = pa.table({"v": make("é".encode(), wrong, b"a")})
        with pytest.raises(ValidationError, match=rf"column {column}: .*row 1 is no UTF-8"):
            table.append(rows)
    assert table.storage.list(table.location()) == kept
    assert table.scan().to_arrow().num_rows == 3


def test_letters_cut_in_two_and_bytes_that_no_row_has(catalog: ice.Catalog) -> None:
    table = catalog.create_table("a.t", pa.schema([("v", pa.string())]))
    with pytest.raises(ValidationError, match="row 0 is no UTF-8"):
        table.append(pa.table({"v": texts(pa.string(), b"caf\xc3", b"\xa9")}))
    wrong = texts(pa.string(), b"\xff", b"right", b"\xff")
    table.append(pa.table({"v": wrong.slice(1, 1)}))
    with pytest.raises(ValidationError, match="row 1 is no UTF-8"):
        table.append(pa.table({"v": wrong.slice(1)}))
    # What a column calls text may also stand where a table has UUIDs.
    uuids = catalog.create_table("a.u", ice.Schema(ice.NestedField(1, "u", "uuid")))
    with pytest.raises(ValidationError, match="column u: row 0 is no UTF-8"):
        uuids.append(pa.table({"u": wrong}))
    assert table.scan().to_arrow().to_pylist() == [{"v": "right"}]


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_errors_name_the_row_of_all_that_is_appended(catalog: ice.Catalog, file_format: str) -> None:
    values = [[0], [], [1, 2], None, [3], [4, 2**31], [5]]
    whole = pa.table({"id": range(7), "v": values, "s": [f"{n % 3}" for n in range(7)]})
    whole = whole.set_column(2, "s", whole["s"].dictionary_encode())
    schema = ice.Schema(
        ice.NestedField(1, "id", "long"),
        ice.NestedField(2, "v", ice.types.ListType(3, "int", element_required=False)),
        ice.NestedField(4, "s", "string"),
    )
    properties = {"write.format.default": file_format}
    table = catalog.create_table("a.t", schema, partition_by=["bucket(2, id)"], properties=properties)
    cuts = {
        "one": [whole],
        "slices": [whole.slice(0, 2), whole.slice(2, 1), whole.slice(3)],
        "a row each": [whole.slice(row, 1) for row in range(7)],
    }
    for parts in cuts.values():
        batches = [batch for part in parts for batch in part.to_batches()]
        for rows in (pa.Table.from_batches(batches), pa.RecordBatchReader.from_batches(whole.schema, batches)):
            with pytest.raises(ValidationError, match="^column v.element: row 5 is 2147483648, which does not fit"):
                table.append(rows)
        # What a task of a distributed write is given is all that it knows.
        plan = table.new_write()
        writer = TaskWriter(plan, table.storage, whole.schema, task=3)
        with pytest.raises(ValidationError, match="^column v.element: row 5 of task 3 is 2147483648"):  # noqa: PT012
            for part in parts:
                writer.write(part)
            writer.close()
        writer.abort()
    assert table.refresh().current_snapshot() is None


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_values_of_lists_that_are_null_are_nobodys(catalog: ice.Catalog, file_format: str) -> None:
    schema = ice.Schema(ice.NestedField(1, "v", ice.types.ListType(3, "int", element_required=True)))
    table = catalog.create_table("a.t", schema, properties={"write.format.default": file_format})
    offsets, nulls = pa.array([0, 2, 4, 5], pa.int32()), pa.array([False, True, False])
    fixed = pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int32(), 2))
    lists = pa.ListArray.from_arrays(offsets, pa.array([1, 2, 2**40, None, 3]), mask=nulls)
    table.append(pa.table({"v": fixed})).append(pa.table({"v": fixed.slice(1)})).append(pa.table({"v": lists}))
    rows = table.scan().to_arrow()["v"].to_pylist()
    assert sorted(rows, key=str) == [None, None, None, [1, 2], [1, 2], [3, 4], [3, 4], [3]]
    wrong = pa.ListArray.from_arrays(offsets, pa.array([1, 2, None, 4, None]), mask=nulls)
    with pytest.raises(ValidationError, match="column v.element: required, but row 2 of the data is null"):
        table.append(pa.table({"v": wrong}))


def test_texts_of_a_dictionary_that_no_row_has_are_nobodys(catalog: ice.Catalog) -> None:
    wrong = pa.DictionaryArray.from_arrays(pa.array([0, None, 0, 1], pa.int8()), texts(pa.string(), b"right", b"\xff"))
    for file_format in ("parquet", "orc", "avro"):
        properties = {"write.format.default": file_format}
        table = catalog.create_table(f"a.{file_format}", pa.schema([("v", pa.string())]), properties=properties)
        table.append(pa.table({"v": wrong.slice(0, 3)}))
        assert table.scan().to_arrow()["v"].to_pylist() == ["right", None, "right"]
        assert table.scan("v = 'right'").count() == 2
        with pytest.raises(ValidationError, match="^column v: row 3 is no UTF-8"):
            table.append(pa.Table.from_batches([pa.record_batch({"v": wrong.slice(at, 2)}) for at in (0, 2)]))


def test_what_no_file_can_hold_is_refused(catalog: ice.Catalog) -> None:
    columns = {
        "no columns": pa.table({}),
        "no bytes": pa.table({"f": pa.array([b"", None], pa.binary(0))}),
    }
    for number, rows in enumerate(columns.values()):
        table = catalog.create_table(f"a.t{number}", rows)
        with pytest.raises(UnsupportedFeatureError, match="cannot hold"):
            table.append(rows)
        assert table.refresh().current_snapshot() is None
    with pytest.raises(InvalidArgumentError, match="a struct without fields"):
        catalog.create_table("a.s", pa.table({"s": pa.array([{}, None], pa.struct([]))}))
    with pytest.raises(InvalidArgumentError, match="pli128"):
        table.append(pl.DataFrame({"i": pl.Series([1], dtype=pl.Int128)}))


def test_a_table_that_could_not_be_loaded_is_not_created(catalog: ice.Catalog) -> None:
    def nested(depth: int) -> pa.Schema:
        kind: pa.DataType = pa.int32()
        for _ in range(depth):
            kind = pa.struct([("x", kind)])
        return pa.schema([("a", kind)])

    catalog.create_table("a.deep", nested(39), properties={"format-version": "3"})
    assert catalog.load_table("a.deep").schema().to_arrow() is not None
    with pytest.raises(InvalidArgumentError, match="at most 40 levels"):
        catalog.create_table("a.deeper", nested(50))
    assert not catalog.table_exists("a.deeper")


def test_indexes_of_pandas(catalog: ice.Catalog) -> None:
    frame = pd.DataFrame({"id": [1, 2, 3, 4], "name": ["a", "b", None, "d"]})
    some = frame[frame.id != 3]  # its index has no name, and is no range
    assert "__index_level_0__" in pa.RecordBatchReader.from_stream(some).schema.names
    table = catalog.create_table("a.t", some)
    assert table.schema().column_names == ["id", "name"]
    table.append(some)
    table.append(some, schema_mode="evolve")
    table.append(some.set_index("id"))  # an index with a name is a column
    assert table.scan().to_arrow()["id"].to_pylist() == [1, 2, 4] * 3
    assert table.schema().column_names == ["id", "name"]
    # A table that has such a column gets it.
    other = catalog.create_table("a.u", pa.schema([("id", pa.int64()), ("name", pa.string())]))
    with other.update_schema() as update:
        update.add_column("__index_level_0__", "long")
    assert other.append(some).scan().to_arrow()["__index_level_0__"].to_pylist() == [0, 1, 3]


NAMES = ["a.b", " ", '"', "`", 'a"b`c', "a,b;{}()\n\t=", "select", "a/b", "ü", "😀", "_file", "_pos", "1", "a'b"]


@pytest.mark.parametrize("name", NAMES)
def test_names_of_columns(catalog: ice.Catalog, name: str) -> None:
    rows = pa.table({name: [1, 2]})
    quoted = '"' + name.replace('"', '""') + '"'
    by = [f"{quoted} as p", f"bucket(4, {quoted})"]
    table = catalog.create_table("a.t", rows, partition_by=by, sort_by=f"{quoted} desc")
    table.append(rows)
    assert table.scan(f"{quoted} > 1", selected_fields=(name,)).to_arrow().to_pylist() == [{name: 2}]
    assert table.scan(f"{quoted} > 1").plan_files().report["skipped_data_files"] == 1


def test_new_columns_have_names(catalog: ice.Catalog) -> None:
    # Java takes such names into a schema, and then fails to write or read any data file ("Empty name").
    nested = pa.struct([("x", pa.list_(pa.struct([("", pa.int32())])))])
    for columns, place in [
        ([("id", pa.int64()), ("", pa.int64())], "column at position 1 has an empty name"),
        ([("s", nested)], 'field at position 0 of "s.x.element" has an empty name'),
    ]:
        with pytest.raises(InvalidArgumentError, match=place):
            catalog.create_table("a.t", pa.schema(columns))
    table = catalog.create_table("a.t", pa.schema([("id", pa.int64()), ("s", pa.struct([("x", pa.int32())]))]))
    for message, change in {
        "a column with an empty name": lambda update: update.add_column("", "int"),
        'a field with an empty name to "s"': lambda update: update.add_column(("s", ""), "int"),
        'position 0 of "t.element"': lambda update: update.add_column(
            "t", ice.Schema.from_arrow(pa.schema([("l", nested.field(0).type)])).fields[0].field_type
        ),
        'cannot rename "s.x": the new name is empty': lambda update: update.rename_column("s.x", ""),
        "cannot add a column with an empty": lambda update: update.union_by_name(pa.schema([("", pa.int32())])),
    }.items():
        with pytest.raises(InvalidArgumentError, match=message), table.update_schema() as update:
            change(update)
    with pytest.raises(InvalidArgumentError, match="with an empty name"):
        table.append(pa.table({"": [1]}), schema_mode="evolve")
    assert table.refresh().schema().column_names == ["id", "s", "s.x"]


def test_unnamed_columns_of_other_writers_are_read(catalog: ice.Catalog) -> None:
    table = catalog.create_table("a.t", pa.schema([("id", pa.int64())]))
    ours = json.loads(table.schema().to_json())
    unnamed = {"id": 2, "name": "", "required": False, "type": "string"}
    theirs = {**ours, "schema-id": 1, "fields": [*ours["fields"], unnamed]}
    updates = [{"action": "add-schema", "schema": theirs}, {"action": "set-current-schema", "schema-id": -1}]
    table.commit([], updates).append(pa.table({"id": [1], "": ["a"]}))
    with catalog.load_table("a.t").update_schema() as update:
        update.add_column("more", "int")
    table = catalog.load_table("a.t")
    assert table.scan("\"\" = 'a'").to_arrow().to_pylist() == [{"id": 1, "": "a", "more": None}]
    with table.update_schema() as update:
        update.rename_column("", "name")
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "name": "a", "more": None}]


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_a_table_may_lose_all_its_columns_and_get_new_ones(catalog: ice.Catalog, file_format: str) -> None:
    rows = pa.table({"id": [1, 2], "name": ["a", None]})
    table = catalog.create_table("a.t", rows, properties={"write.format.default": file_format}).append(rows)
    with table.update_schema() as update:
        update.delete_column("id").delete_column("name")
    table = catalog.load_table("a.t")
    assert (table.scan().to_arrow().shape, table.scan().count()) == ((2, 0), 2)
    assert [batch.num_rows for batch in table.scan().to_arrow_batch_reader()] == [2]
    with table.update_schema() as update:
        update.add_column("more", "int")
    assert table.scan().to_arrow().to_pylist() == [{"more": None}] * 2
    assert table.append(pa.table({"more": [1]})).scan("more = 1").count() == 1


PRIMITIVES = ["boolean", "int", "decimal(9, 2)", "uuid", "fixed[4]", "timestamptz", "string", "binary", "double"]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_void_takes_every_primitive(catalog: ice.Catalog, version: int) -> None:
    kinds = PRIMITIVES + (["unknown", "timestamp_ns", "geometry", "geography"] if version == 3 else [])
    fields = [ice.NestedField(at, f"c{at}", kind) for at, kind in enumerate(["long", *kinds], 1)]
    by = [f"void({field.name})" for field in fields]
    properties = {"format-version": version}
    table = catalog.create_table("a.t", ice.Schema(*fields), partition_by=by, properties=properties)
    table.append(pa.table({"c1": [1, 2]})).append(pa.table({"c1": [3]}))  # without the other columns
    assert table.scan("c1 >= 2").to_arrow()["c1"].to_pylist() == [3, 2]
    (partition,) = table.inspect.partitions()["partition"].to_pylist()
    assert partition == {f"{field.name}_null": None for field in fields}


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_void_of_nested_columns_is_for_tables_of_others(catalog: ice.Catalog, file_format: str) -> None:
    # Java makes such a spec, and then fails for manifests: "Multiple entries with same key: 4=...".
    pairs = pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64()))
    rows = pa.table({"id": [1, 2], "s": [{"x": 1}, None], "l": [[1], []], "m": pairs})
    for name in ("s", "l", "m"):
        with pytest.raises(InvalidArgumentError, match=f'column . "{name}" is not of a primitive type: '):
            catalog.create_table("a.t", rows, partition_by=f"void({name})")
    table = catalog.create_table("a.t", rows, properties={"write.format.default": file_format})
    with pytest.raises(InvalidArgumentError, match='"s" is not of a primitive type'), table.update_spec() as update:
        update.add_field("s", "void")
    ids = {field.name: field.field_id for field in table.schema().fields}
    voids = [{"source-id": ids[name], "name": f"{name}_null", "transform": "void"} for name in ("s", "l", "m")]
    theirs = {"spec-id": 1, "fields": [{**void, "field-id": at} for at, void in enumerate(voids, 1000)]}
    table.commit([], [{"action": "add-spec", "spec": theirs}, {"action": "set-default-spec", "spec-id": -1}])
    table = catalog.load_table("a.t").append(rows).append(rows.slice(1))
    assert table.scan("id = 2").to_arrow().to_pylist() == rows.slice(1).to_pylist() * 2
    (partition,) = table.inspect.partitions()["partition"].to_pylist()
    assert partition == {"s_null": None, "l_null": None, "m_null": None}


def test_variants_that_rows_do_not_have_are_null(catalog: ice.Catalog) -> None:
    schema = ice.Schema(ice.NestedField(1, "id", "long"), ice.NestedField(2, "v", "variant"))
    table = catalog.create_table("a.t", schema, properties={"format-version": 3})
    rows = pa.table({"id": [1, 2]})
    assert table.append(rows).scan().to_arrow().to_pylist() == [{"id": 1, "v": None}, {"id": 2, "v": None}]
    with pytest.raises(InvalidArgumentError, match='"v" is not of a primitive'), table.update_spec() as update:
        update.add_field("v", "void")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_partition_values_of_every_kind(catalog: ice.Catalog, version: int) -> None:
    texts = ["a/b", "ü n", "", None, "..", ".", "%2F", "a=b", "null", "x\ny", "\0", "😀" * 10, "a?b#c", "a:b\\c*"]
    rows = pa.table({"p": texts, "v": range(len(texts))})
    found = trip(catalog, rows, partition_by="p", properties={"format-version": version})
    assert sorted(found, key=lambda row: row["v"]) == rows.to_pylist()
    table = catalog.load_table("a.t")
    assert table.scan("p = 'a/b'").to_arrow()["v"].to_pylist() == [0]
    assert table.scan("p IS NULL").plan_files().report["skipped_data_files"] == len(texts) - 1


def test_partition_values_longer_than_names_of_folders(tmp_path: Path) -> None:
    # The first two differ only after what file systems allow.
    rows = pa.table({"p": ["x" * 300 + "y", "x" * 300 + "z", "ä" * 100, "short"], "v": [0, 1, 2, 3]})
    with ice.load_catalog("m", uri=f"sqlite:///{tmp_path}/m.db", warehouse=str(tmp_path / "w")) as catalog:
        catalog.create_namespace("a")
        assert sorted(trip(catalog, rows, partition_by="p"), key=lambda row: row["v"]) == rows.to_pylist()
        plan = catalog.load_table("a.t").scan(f"p = '{'x' * 300}z'").plan_files()
        (file,) = plan.files
        assert "/p=xxx" in file["file_path"]
        assert plan.report["skipped_data_files"] == 3


def test_floats_keep_their_signs_and_nan(catalog: ice.Catalog) -> None:
    rows = pa.table({"f": [math.nan, -0.0, 0.0, math.inf, -math.inf, None]})
    found = trip(catalog, rows, partition_by="f")
    assert sorted(repr(row["f"]) for row in found) == sorted(repr(row["f"]) for row in rows.to_pylist())


@pytest.mark.parametrize("unit", ["us", "ns"])
@pytest.mark.parametrize("by", [None, "t", "year(t)", "month(t)", "day(t)", "bucket(3, t)"])
def test_the_ends_of_time(catalog: ice.Catalog, unit: str, by: str | None) -> None:
    numbers = pa.array([-(2**63), 2**63 - 1, -1, 0, None], pa.int64())
    table = catalog.create_table(
        "a.t", pa.schema([("t", pa.timestamp(unit))]), partition_by=by, properties={"format-version": 3}
    )
    table.append(pa.table({"t": numbers.view(pa.timestamp(unit))}))
    found = table.scan().to_arrow()["t"].cast(pa.int64()).to_pylist()
    assert sorted(found, key=str) == sorted(numbers.to_pylist(), key=str)
    assert table.scan("t < '1970-01-01T00:00:00'").count() == 2


def test_arguments_out_of_range(catalog: ice.Catalog) -> None:
    table = catalog.create_table("a.t", pa.table({"id": [1]})).append(pa.table({"id": [1]}))
    for options in ({"limit": -1}, {"limit": 2**70}, {"snapshot_id": 2**70}, {"as_of": 2**70}):
        with pytest.raises(InvalidArgumentError, match="must fit into 64-bit signed integers"):
            table.scan(**options)
    for set_them in (
        lambda: catalog.create_table("a.u", pa.table({"id": [1]}), properties={"owner": None}),
        lambda: table.update_properties({"owner": None}),
        lambda: table.append(pa.table({"id": [1]}), snapshot_properties={"owner": None}),
    ):
        with pytest.raises(InvalidArgumentError, match="expected the name and the value of a property"):
            set_them()
    assert table.refresh().scan().count() == 1


@pytest.mark.parametrize("name", ["..", ".", "x/y", "..\\x"])
def test_names_that_are_no_folders_need_a_location(catalog: ice.Catalog, name: str) -> None:
    rows = pa.table({"id": [1]})
    with pytest.raises(InvalidArgumentError, match="pass a location"):
        catalog.create_table(("a", name), rows)
    assert catalog.create_table(("a", name), rows, location="memory://elsewhere").append(rows).scan().count() == 1
