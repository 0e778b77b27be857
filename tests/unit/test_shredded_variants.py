"""Variants that are shredded when they are written: by properties, by an argument, and again by rewrites."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefield as ice
from icefield import errors, variant
from icefield.variant import Variant

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SCHEMA = ice.Schema(ice.NestedField(1, "id", "long"), ice.NestedField(2, "v", "variant"))
SHRED, COLUMN = "write.parquet.shred-variants", "write.parquet.shred-variants.column.v"


def event(number: int) -> Any:
    """Give an event: objects with rare and mixed fields, nulls, and after the first hundred also texts."""
    if number % 10 == 9:
        return f"text {number}" if number > 100 else None
    rare = {"rare": 1} if number == 5 else {}
    mixed = {"m": number if number % 2 else "even"}
    return {"a": number, "b": f"b{number:03}", "o": {"d": dt.date(2024, 1, 1 + number % 28)}, **mixed, **rare}


def rows(numbers: Iterable[int]) -> pa.Table:
    """Give the rows of some events; every seventh has no variant."""
    numbers = list(numbers)
    made = [None if number % 7 == 6 else Variant.from_python(event(number)) for number in numbers]
    return pa.table({"id": pa.array(numbers, pa.int64()), "v": variant.from_python(made)})


@pytest.fixture
def catalog(tmp_path: Path) -> ice.Catalog:
    catalog = ice.load_catalog("local", uri="sqlite:///:memory:", warehouse=str(tmp_path))
    catalog.create_namespace("ns")
    return catalog


def made(catalog: ice.Catalog, properties: Mapping[str, str] | None = None) -> ice.Table:
    return catalog.create_table("ns.t", SCHEMA, properties={"format-version": "3", **(properties or {})})


def files(table: ice.Table) -> list[str]:
    return [task.file.file_path.removeprefix("file://") for task in table.scan().plan_files()]


def columns(path: str) -> list[str]:
    """List the columns of a file that hold shredded values, with their types."""
    schema = pq.ParquetFile(path).schema
    found = [schema.column(place) for place in range(len(schema.names))]
    typed = [one for one in found if one.path.endswith(".typed_value")]
    names = [".".join(part for part in one.path.split(".")[1:] if part != "typed_value") or "$" for one in typed]
    kinds = [one.physical_type if str(one.logical_type) == "None" else str(one.logical_type) for one in typed]
    short = [kind.replace("bitWidth=", "").replace(", isSigned=true", "") for kind in kinds]
    return [f"{name} {kind}" for name, kind in zip(names, short, strict=True)]


def found(table: ice.Table) -> dict[int, Any]:
    """Give the objects of all rows; other than a row without a variant is one that is null."""
    read = table.scan().to_arrow()
    parts = read.column("v").to_pylist()
    objects = variant.to_python(read.column("v"))
    return {
        number: "no variant" if part is None else one
        for number, part, one in zip(read.column("id").to_pylist(), parts, objects, strict=True)
    }


def expected(numbers: Iterable[int]) -> dict[int, Any]:
    return {number: "no variant" if number % 7 == 6 else event(number) for number in numbers}


INFERRED = ["a Int(8)", "b String", "o.d Date"]


@pytest.mark.parametrize(
    ("properties", "shred", "wanted"),
    [
        ({}, None, []),
        ({}, True, INFERRED),
        ({SHRED: "true"}, None, INFERRED),
        ({SHRED: "true"}, False, []),
        ({COLUMN: "struct<a: long>"}, None, ["a Int(64)"]),
        ({COLUMN: "struct<a: long>"}, False, []),
        (
            {COLUMN: "struct<a: long>", SHRED: "true"},
            {"v": "struct<m: string, x: list<uuid>>"},
            ["m String", "x.list.element UUID"],
        ),
        ({}, {"v": "string"}, ["$ String"]),
        # Only the first rows are looked at: in them the field m has one type.
        (
            {SHRED: "true", "write.parquet.variant-inference-buffer-size": "1"},
            None,
            ["a Int(8)", "b String", "m String", "o.d Date"],
        ),
    ],
)
def test_what_files_are_shredded_as(
    catalog: ice.Catalog, properties: dict[str, str], shred: Any, wanted: list[str]
) -> None:
    table = made(catalog, properties)
    numbers = range(130)
    table.append(rows(numbers), shred=shred)
    (path,) = files(table)
    assert columns(path) == wanted
    assert found(table) == expected(numbers)
    read = duckdb.sql(f"SELECT id, CAST(v AS JSON) FROM '{path}' WHERE v IS NOT NULL").fetchall()
    own = table.scan("v IS NOT NULL").to_arrow()
    texts = dict(zip(own.column("id").to_pylist(), variant.to_json(own.column("v")).to_pylist(), strict=True))
    for number, text in read:
        # DuckDB takes a variant that is null for no variant.
        assert text is None or json.loads(text) == json.loads(texts[number]), number


def test_rewrites_keep_variants_shredded(catalog: ice.Catalog) -> None:
    table = made(catalog, {SHRED: "true", "write.update.mode": "copy-on-write", "write.delete.mode": "copy-on-write"})
    for start in range(0, 100, 20):
        table.append(rows(range(start, start + 20)))
    table.maintenance.compact(options={"rewrite-all": True})
    table.refresh()
    (path,) = files(table)
    assert columns(path) == INFERRED
    table.delete("id = 3")
    table.update({"id": 1000}, where="id = 4")
    table.overwrite(rows([5]), "id = 5")
    assert all(columns(path)[:2] == INFERRED[:2] for path in files(table))
    wanted = expected(range(100))
    del wanted[3]
    wanted[1000] = wanted.pop(4)
    assert found(table) == wanted
    table.overwrite(rows(range(3)), shred={"v": "struct<a: int>"})
    assert [columns(path) for path in files(table)] == [["a Int(32)"]]


def test_files_are_left_out_by_bounds_of_paths(catalog: ice.Catalog) -> None:
    table = made(catalog, {SHRED: "true"})
    for start in (0, 50):
        table.append(rows(range(start, start + 50)))
    # The field m has two types, and so no bounds.
    for text, planned in [
        ("v:a::int < 49", 1),
        ("v:a::int >= 50", 1),
        ("v:a::int = 200", 0),
        ("v:b::string = 'b003'", 1),
        ("v:b::string LIKE 'c%'", 0),
        ("v:o.d::date < DATE '2024-01-01'", 0),
        ("v:m::string = 'odd'", 2),
        ("v:rare::int = 5", 2),
        ("v:missing::int = 5", 2),
    ]:
        assert len(list(table.scan(text).plan_files())) == planned, text
    kept = [number for number in range(50, 100) if number % 7 != 6 and number % 10 != 9 and number > 60]
    assert sorted(table.scan("v:a::int > 60").to_arrow().column("id").to_pylist()) == kept


def test_decimals_take_the_scale_of_their_column(catalog: ice.Catalog) -> None:
    table = made(catalog, {SHRED: "true"})
    given = [Decimal("1.5"), Decimal("12.25"), Decimal(7), Decimal("-0.001")]
    table.append(pa.table({"id": pa.array(range(4)), "v": variant.from_python(given)}))
    read = table.scan().to_arrow().column("v")
    assert variant.to_json(read).to_pylist() == ["1.500", "12.250", "7.000", "-0.001"]
    assert variant.to_python(read) == given


@pytest.mark.parametrize(
    ("shred", "error", "message"),
    [
        (
            {"v": "struct<a: map<string, int>>"},
            errors.InvalidArgumentError,
            "column v: a variant cannot be shredded as map",
        ),
        ({"v": "struct<a int"}, errors.InvalidArgumentError, "column v: the type of a shredded variant, at the end"),
        ({"id": "long"}, errors.InvalidArgumentError, "column id: its type is long, expected variant"),
        ({"w": "long"}, errors.InvalidArgumentError, "column w: the table has no such column"),
        ({"v": None}, errors.ArgumentTypeError, "got None for 'v'"),
        ("struct<a: long>", errors.ArgumentTypeError, "types by the names of columns"),
    ],
)
def test_what_cannot_be_shredded_is_refused(
    catalog: ice.Catalog, shred: Any, error: type[Exception], message: str
) -> None:
    table = made(catalog)
    for write in (table.append, table.overwrite):
        with pytest.raises(error, match=message):
            write(rows(range(2)), shred=shred)
    assert table.refresh().current_snapshot() is None
    assert not list(catalog_files(table))


def catalog_files(table: ice.Table) -> Iterable[Path]:
    return (Path(table.location().removeprefix("file://")) / "data").glob("**/*.parquet")


def test_only_parquet_shreds(catalog: ice.Catalog) -> None:
    table = made(catalog, {"write.format.default": "orc", SHRED: "true"})
    table.append(rows(range(20)))
    assert found(table) == expected(range(20))
    with pytest.raises(errors.InvalidArgumentError, match="only Parquet files shred variants"):
        table.append(rows(range(2)), shred={"v": "struct<a: long>"})
    with pytest.raises(errors.InvalidArgumentError, match=r"column\.v': expected a type such as struct"):
        table.update_properties({COLUMN: "struct<a>"})


@pytest.mark.parametrize("before", ["avro", "orc"])
def test_a_table_that_becomes_parquet_is_shredded_by_its_rewrites(catalog: ice.Catalog, before: str) -> None:
    table = made(catalog, {"write.format.default": before, SHRED: "true"})
    for start in (0, 50):
        table.append(rows(range(start, start + 50)))
    everything = {"rewrite-all": "true"}
    for format, wanted in (("parquet", INFERRED), (before, None), ("parquet", INFERRED)):
        table.update_properties({"write.format.default": format})
        # One file of each format, and shredded rows beside others.
        table.update({"id": 5}, "id = 5", mode="merge-on-read")
        assert found(table) == expected(range(100))
        assert table.scan("v:a::int >= 60").count() == len([n for n in range(60, 100) if n % 10 != 9 and n % 7 != 6])
        table.maintenance.compact(options=everything)
        (path,) = files(table.refresh())
        assert path.endswith(format)
        assert wanted is None or columns(path) == wanted
        assert found(table) == expected(range(100))


def test_the_property_follows_the_name_of_its_column(catalog: ice.Catalog) -> None:
    table = made(catalog, {COLUMN: "struct<a: long>"})
    with table.update_schema() as update:
        update.rename_column("v", "w")
    assert table.properties.get(COLUMN.removesuffix("v") + "w") == "struct<a: long>"
    table.append(rows(range(20)).rename_columns(["id", "w"]))
    assert columns(files(table)[0]) == ["a Int(64)"]
    with table.update_schema() as update:
        update.delete_column("w")
    assert not any(name.startswith(SHRED) for name in table.properties)


def test_a_variant_that_cannot_be_read_is_named(catalog: ice.Catalog) -> None:
    table = made(catalog)
    broken = pa.StructArray.from_arrays(
        [pa.array([b"\1\0\0", b"\1\0\0"], pa.binary()), pa.array([b"\x00", b"\x02\x01"], pa.binary())],
        names=["metadata", "value"],
    )
    with pytest.raises(errors.ValidationError, match="v.*variant 1 of a batch"):
        table.append(pa.table({"id": pa.array([1, 2]), "v": broken}), shred=True)
    assert not list(catalog_files(table))
