"""Types, transforms, expressions and terms are instances of the classes of their kinds, whichever way they are made."""

from __future__ import annotations

import json
import pickle
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

import icefield as ice
from icefield import expressions as ex
from icefield import transforms as tr
from icefield import types
from icefield.errors import InvalidArgumentError
from icefield.expressions.literals import Literal, literal
from icefield.schema import prune_columns
from icefield.sorting import NullOrder, SortDirection

A_FIELD = ice.NestedField(1, "a", "int")

#: A type, its class, its text, and the first version of the format that has it.
TYPES: list[tuple[types.Type, type, str, int]] = [
    (types.UnknownType(), types.UnknownType, "unknown", 3),
    (types.BooleanType(), types.BooleanType, "boolean", 1),
    (types.IntegerType(), types.IntegerType, "int", 1),
    (types.LongType(), types.LongType, "long", 1),
    (types.FloatType(), types.FloatType, "float", 1),
    (types.DoubleType(), types.DoubleType, "double", 1),
    (types.DecimalType(9, 2), types.DecimalType, "decimal(9, 2)", 1),
    (types.DateType(), types.DateType, "date", 1),
    (types.TimeType(), types.TimeType, "time", 1),
    (types.TimestampType(), types.TimestampType, "timestamp", 1),
    (types.TimestamptzType(), types.TimestamptzType, "timestamptz", 1),
    (types.TimestampNanoType(), types.TimestampNanoType, "timestamp_ns", 3),
    (types.TimestamptzNanoType(), types.TimestamptzNanoType, "timestamptz_ns", 3),
    (types.StringType(), types.StringType, "string", 1),
    (types.UUIDType(), types.UUIDType, "uuid", 1),
    (types.FixedType(8), types.FixedType, "fixed[8]", 1),
    (types.BinaryType(), types.BinaryType, "binary", 1),
    (types.GeometryType("EPSG:3857"), types.GeometryType, "geometry(EPSG:3857)", 3),
    (types.GeographyType(algorithm="karney"), types.GeographyType, "geography(OGC:CRS84, karney)", 3),
    (types.VariantType(), types.VariantType, "variant", 3),
    (types.StructType(A_FIELD), types.StructType, "struct<1: a: optional int>", 1),
    (types.ListType(1, types.LongType()), types.ListType, "list<long>", 1),
    (types.MapType(1, "string", 2, "int"), types.MapType, "map<string, int>", 1),
]


@pytest.mark.parametrize(("type_", "kind", "text", "version"), TYPES, ids=str)
def test_types_are_of_the_class_of_their_kind(type_: types.Type, kind: type, text: str, version: int) -> None:
    nested = kind in (types.StructType, types.ListType, types.MapType, types.VariantType)
    field = ice.NestedField(7, "x", type_)
    for made in (
        type_,
        field.field_type,
        types.Type(type_.to_json()),
        pickle.loads(pickle.dumps(type_)),
        types.Type(type_),
    ):
        assert type(made) is kind
        assert (made == type_, hash(made) == hash(type_), str(made)) == (True, True, text)
        assert isinstance(made, types.IcebergType)
        assert isinstance(made, types.PrimitiveType) is not nested
    assert (type_.minimum_format_version(), kind.__module__) == (version, "icefield.types")


def test_there_is_a_class_for_each_kind_of_type() -> None:
    kinds = {value for name in types.__all__ if isinstance(value := getattr(types, name), type)}
    assert kinds - {kind for _, kind, _, _ in TYPES} == {types.Type, types.PrimitiveType, types.NestedField}


def test_parts_of_types() -> None:
    assert (types.GeometryType().crs, types.GeographyType().algorithm) == ("OGC:CRS84", "spherical")
    assert (len(types.FixedType(3)), len(types.StructType(A_FIELD)), len(types.StructType())) == (3, 1, 0)
    struct = types.StructType(A_FIELD, ice.NestedField(2, "B", "int"))
    assert (struct.field(2), struct.field(3), struct.field(1 << 40)) == (struct.fields[1], None, None)
    assert (struct.field_by_name("b"), struct.field_by_name("b", case_sensitive=False)) == (None, struct.fields[1])
    assert types.ListType(element_id=1, element_type="int") == types.ListType(1, "int")


@pytest.mark.parametrize(
    "make",
    [
        lambda: types.DecimalType(39, 0),
        lambda: types.FixedType(-1),
        lambda: types.ListType(1),
        lambda: types.ListType(1, "int", element_type="int"),
        lambda: types.GeographyType(None, "straight"),
        lambda: types.PrimitiveType("variant"),
        lambda: tr.BucketTransform(0),
        lambda: tr.TruncateTransform(1 << 31),
        lambda: tr.UnknownTransform("year"),
        lambda: tr.DayTransform().transform("string"),
        lambda: tr.BucketTransform(2).pyarrow_transform("double"),
        lambda: ex.And("a = 1", 5),
        lambda: ex.EqualTo("a", None),
        lambda: ex.StIntersects("g", (1, 2, 3)),
        lambda: literal([1]),
        lambda: literal(1 << 40).to("int"),
    ],
)
def test_wrong_parts_are_refused(make: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        make()


def test_types_of_later_specifications_are_primitive() -> None:
    catalog = ice.load_catalog("m", type="in-memory")
    catalog.create_namespace("a")
    metadata = json.loads(catalog.create_table("a.t", ice.Schema(A_FIELD)).metadata.to_json())
    metadata["schemas"][0]["fields"][0]["type"] = "interval"
    (field,) = ice.TableMetadata.from_json(json.dumps(metadata)).schema().fields
    assert type(field.field_type) is types.PrimitiveType
    assert (str(field.field_type), field.field_type.minimum_format_version()) == ("interval", None)


TRANSFORMS: list[tuple[ice.transforms.Transform, type]] = [
    (tr.identity, tr.IdentityTransform),
    (tr.void, tr.VoidTransform),
    (tr.year, tr.YearTransform),
    (tr.month, tr.MonthTransform),
    (tr.day, tr.DayTransform),
    (tr.hour, tr.HourTransform),
    (tr.bucket(16), tr.BucketTransform),
    (tr.truncate(3), tr.TruncateTransform),
    (tr.parse("zorder"), tr.UnknownTransform),
]


@pytest.mark.parametrize(("transform", "kind"), TRANSFORMS, ids=str)
def test_transforms_are_of_the_class_of_their_kind(transform: tr.Transform, kind: type) -> None:
    field = ice.PartitionField(1, 1000, transform, "x")
    for made in (
        transform,
        field.transform,
        pickle.loads(pickle.dumps(transform)),
        ice.SortField(1, transform).transform,
    ):
        assert (type(made) is kind, made == transform) == (True, True)
    time = kind in (tr.YearTransform, tr.MonthTransform, tr.DayTransform, tr.HourTransform)
    assert isinstance(transform, tr.TimeTransform) is time


def test_functions_of_transforms() -> None:
    assert tr.TruncateTransform(10).transform("int")(-1) == -10
    assert tr.YearTransform().transform(types.DateType())(None) is None
    assert tr.MonthTransform().transform("date")(date(1970, 3, 1)) == 2
    assert tr.IdentityTransform().pyarrow_transform("long")(pa.array([1, None])).to_pylist() == [1, None]


#: Text and class.
EXPRESSIONS = {
    "TRUE": ex.AlwaysTrue,
    "FALSE": ex.AlwaysFalse,
    "a = 1 AND b = 2": ex.And,
    "a = 1 OR b = 2": ex.Or,
    "NOT (a = 1)": ex.Not,
    "a IS NULL": ex.IsNull,
    "a IS NOT NULL": ex.NotNull,
    "a IS NAN": ex.IsNaN,
    "a IS NOT NAN": ex.NotNaN,
    "a = 1": ex.EqualTo,
    "a != 1": ex.NotEqualTo,
    "a < 1": ex.LessThan,
    "a <= 1": ex.LessThanOrEqual,
    "a > 1": ex.GreaterThan,
    "a >= 1": ex.GreaterThanOrEqual,
    "a LIKE 'x%'": ex.StartsWith,
    "a NOT LIKE 'x%'": ex.NotStartsWith,
    "a IN (1, 2)": ex.In,
    "a NOT IN (1, 2)": ex.NotIn,
}


@pytest.mark.parametrize(("text", "kind"), EXPRESSIONS.items())
def test_expressions_are_of_the_class_of_their_kind(text: str, kind: type) -> None:
    parsed = ex.parse(text)
    for made in (parsed, ex.from_json(parsed.to_json()), pickle.loads(pickle.dumps(parsed))):
        assert (type(made) is kind, made == parsed, hash(made) == hash(parsed)) == (True, True, True)
    assert kind.__module__ == "icefield.expressions"


def test_boxes_are_of_the_class_of_their_kind() -> None:
    for kind in (ex.StIntersects, ex.StDisjoint):
        made = kind("g", (0, 0, 1, 2.5))
        assert (type(made), made.term.name, made.envelope) == (kind, "g", (0.0, 0.0, 1.0, 2.5))
        assert type(pickle.loads(pickle.dumps(made))) is kind


def test_parts_of_expressions() -> None:
    both = ex.And("a = 1", ex.Or("b < 'x'", "c IS NULL"), "d IN (1, 2, 2)")
    assert (str(both.left), str(both.right)) == ("a = 1 AND (b < 'x' OR c IS NULL)", "d IN (1, 2, 2)")
    assert {one.value for one in both.right.literals} == {1, 2}
    assert (both.left.left.literal, both.left.left.value) == (literal(1), literal(1))
    assert type(ex.EqualTo(ex.transform("bucket[4]", "id"), 3).term) is ex.Term
    assert ex.EqualTo(ex.transform("bucket[4]", "id"), 3).term.transform == tr.bucket(4)
    assert (type(ex.EqualTo("id", 3).term), ex.EqualTo("id", 3).term) == (ex.Reference, ex.Reference("id"))
    assert ex.Reference("id").transform is None


def test_constants_fold() -> None:
    assert type(ex.And(ex.AlwaysTrue(), ex.AlwaysFalse())) is ex.AlwaysFalse
    assert type(ex.Or("a = 1", ex.AlwaysTrue())) is ex.AlwaysTrue
    assert ex.Not(ex.Not("a = 1")) == ex.EqualTo("a", 1)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (True, True),
        (5, 5),
        (2.5, 2.5),
        ("x", "x"),
        (b"\0", b"\0"),
        (date(2024, 1, 2), 19724),
        (datetime(1970, 1, 1, 0, 0, 1, tzinfo=timezone.utc), 1_000_000),
        (UUID(int=5), UUID(int=5)),
        (Decimal("1.50"), Decimal("1.50")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_literals(value: object, shown: object) -> None:
    made = literal(value)
    assert (made.value, made, hash(made)) == (shown, Literal(value), hash(Literal(value)))
    assert (pickle.loads(pickle.dumps(made)), made == value) == (made, False)
    assert pickle.loads(pickle.dumps(made)).type == made.type
    assert ex.EqualTo("a", made) == ex.EqualTo("a", value)


def test_literals_become_values_of_other_types() -> None:
    assert (literal("2024-01-02").to("date"), literal("x") == literal(b"x")) == (literal(date(2024, 1, 2)), False)
    assert str(literal(5).to(types.IntegerType()).type) == "int"


def test_enums_equal_their_text() -> None:
    field = ice.SortField(1, direction=SortDirection.DESC, null_order=NullOrder.NULLS_FIRST)
    assert (field.direction, field.null_order) == ("desc", "nulls-first")
    assert (field.direction is SortDirection.DESC, f"{field.direction} {field.null_order}") == (
        True,
        "desc nulls-first",
    )
    assert ice.SortField(1) == ice.SortField(1, "identity", "asc", "nulls-first")


def test_summaries_have_every_property() -> None:
    catalog = ice.load_catalog("m", type="in-memory")
    catalog.create_namespace("a")
    table = catalog.create_table("a.t", pa.schema([("id", pa.int64())]))
    assert table.metadata.snapshot_log == []
    table.append(pa.table({"id": [1]}), snapshot_properties={"self": "x", "key": "y"})
    summary = table.current_snapshot().summary
    assert (summary["self"], summary["key"], summary["none"], summary.get("none", 1)) == ("x", "y", None, 1)
    assert ("none" in summary, summary.operation.value, summary["operation"]) == (False, "append", "append")
    assert "operation" not in summary.additional_properties
    again = pickle.loads(pickle.dumps(summary))
    assert (again, type(again)) == (summary, type(summary))


def test_paths_of_partitions() -> None:
    schema = ice.Schema(ice.NestedField(1, "day", "date"), ice.NestedField(2, "city", "string"))
    spec = ice.PartitionSpec(
        ice.PartitionField(1, 1000, "month", "day_month"), ice.PartitionField(2, 1001, "identity", "a/b")
    )
    assert spec.partition_to_path((600, "São=Paulo"), schema) == "day_month=2020-01/a%2Fb=S%C3%A3o%3DPaulo"
    assert spec.partition_to_path({"day_month": None, "a/b": "x"}, schema) == "day_month=null/a%2Fb=x"
    assert spec.source_id_to_fields_map == {1: [spec.fields[0]], 2: [spec.fields[1]]}
    with pytest.raises(InvalidArgumentError):
        spec.partition_to_path((1,), schema)
    without = ice.Schema(ice.NestedField(1, "day", "date"))
    spec.check_compatible(without, allow_missing_fields=True)
    with pytest.raises(InvalidArgumentError):
        spec.check_compatible(without)


def test_pruned_schemas() -> None:
    inner = types.StructType(ice.NestedField(3, "x", "int"), ice.NestedField(4, "y", "int"))
    schema = ice.Schema(ice.NestedField(1, "id", "long"), ice.NestedField(2, "at", inner))
    assert prune_columns(schema, {2}).column_names == ["at", "at.x", "at.y"]
    assert prune_columns(schema, {2, 4}, select_full_types=False).column_names == ["at", "at.y"]


def test_a_pruned_schema_keeps_its_id_and_the_identifier_fields_that_it_has() -> None:
    inner = types.StructType(ice.NestedField(3, "x", "int", required=True), ice.NestedField(4, "y", "int"))
    fields = [ice.NestedField(1, "id", "long", required=True), ice.NestedField(2, "at", inner, required=True)]
    schema = ice.Schema(*fields, schema_id=7, identifier_field_ids=[1, 3])
    for selected, full, identifiers in (
        ({1, 2}, True, [1, 3]),
        ({1}, True, [1]),
        ({2}, True, [3]),
        ({4}, True, []),
        ({2}, False, []),
    ):
        pruned = prune_columns(schema, selected, select_full_types=full)
        assert (pruned.schema_id, pruned.identifier_field_ids) == (7, identifiers), selected


def test_tasks_say_what_the_columns_of_a_plan_say(tmp_path: Path) -> None:
    """Files with deletes and without, of several residuals, more than are made at a time."""
    catalog = ice.load_catalog("tasks", type="in-memory", warehouse=str(tmp_path))
    catalog.create_namespace("a")
    properties = {"format-version": "2", "write.delete.mode": "merge-on-read"}
    schema = pa.schema([("id", pa.int64()), ("p", pa.int32())])
    table = catalog.create_table("a.t", schema, partition_by="p", properties=properties)
    rows = [pa.table({"id": [1, 2, 3], "p": [p] * 3}, schema=schema) for p in range(3)]
    table.append(pa.concat_tables(rows))
    table.delete("id = 2 AND p = 1")
    with table.new_manifest_writer(spec_id=0) as writer:
        for number in range(2100):
            path = f"memory://elsewhere/{number}.parquet"
            writer.add(
                ice.DataFile(
                    file_path=path,
                    file_format="parquet",
                    partition={"p": number % 7 or None},
                    record_count=number + 1,
                    file_size_in_bytes=number + 4,
                )
            )
    table.update_snapshot().fast_append().append_manifest(writer.to_manifest_file()).commit()
    plan = table.scan("p = 1 OR id > 1 OR p = 2 AND id = 0").plan_files()
    tasks = list(plan)
    assert len(tasks) == len(plan) == 2103
    seen: set[str] = set()
    for task, row in zip(tasks, plan.files, strict=True):
        assert task.file.file_path == row["file_path"]
        assert (task.file.record_count, task.file.file_size_in_bytes) == (
            row["record_count"],
            row["file_size_in_bytes"],
        )
        assert task.file.partition == (row["partition"]["p"],)
        assert task.residual == ex.from_json(row["residual"])
        assert {one.file_path for one in task.delete_files} == {one["file_path"] for one in row["deletes"]}
        seen.add(str(task.residual))
    assert len(seen) == 3
    assert sum(len(task.delete_files) for task in tasks) == 1
    for place in (0, 1023, 1024, -1):
        assert plan[place].file.file_path == tasks[place].file.file_path
    assert [task.file.file_path for task in plan[5:8]] == [task.file.file_path for task in tasks[5:8]]
