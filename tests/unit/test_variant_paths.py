"""Values inside of variants as columns: ``selected_fields=("id", "v:a.b[0]::long")``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pytest

import icefield as ice
from icefield import errors, variant
from icefield.distributed import ReadTask
from icefield.variant import Variant

if TYPE_CHECKING:
    from pathlib import Path


def event(number: int) -> Any:
    """Give an event; some are no objects."""
    if number % 7 == 3:
        return f"text {number}"
    third = {"third": number / 2} if number % 3 == 0 else {}
    return {
        "kind": "even" if number % 2 == 0 else "odd",
        "at": {"tags": [number, f"t{number}"]},
        "b c": number,
        **third,
    }


def number_of(number: int) -> int | None:
    """Give what is at ``v:at.tags[0]``."""
    return None if number % 5 == 4 or number % 7 == 3 else number


@pytest.fixture(params=["parquet", "orc", "avro"])
def events(request: pytest.FixtureRequest, tmp_path: Path) -> ice.Table:
    """Give a table of 30 events in two files; every fifth is null, and one column holds the same in a struct."""
    catalog = ice.load_catalog("local", uri="sqlite:///:memory:", warehouse=str(tmp_path))
    catalog.create_namespace("ns")
    inside = ice.types.StructType(ice.NestedField(4, "w", "variant"), ice.NestedField(5, "n", "int"))
    fields = [ice.NestedField(1, "id", "long"), ice.NestedField(2, "v", "variant"), ice.NestedField(3, "s", inside)]
    schema = ice.Schema(*fields)
    properties = {"format-version": "3", "write.format.default": request.param}
    table = catalog.create_table("ns.events", schema=schema, properties=properties)
    arrow = table.schema().to_arrow()
    for start in (0, 15):
        numbers = range(start, start + 15)
        made = [Variant.from_python(event(number)) for number in numbers]
        parts = [{"metadata": one.metadata, "value": one.value} for one in made]
        alone = [None if number % 5 == 4 else part for number, part in zip(numbers, parts, strict=True)]
        inner = [None if number % 5 == 4 else {"w": part, "n": 1} for number, part in zip(numbers, parts, strict=True)]
        rows = [pa.array(numbers), pa.array(alone, arrow.field("v").type), pa.array(inner, arrow.field("s").type)]
        table.append(pa.table(rows, schema=arrow))
    return table


PATHS = {
    "v:at.tags[0]::long": (pa.int64(), number_of),
    "v:at.tags[1]::string": (pa.string(), lambda n: None if number_of(n) is None else f"t{n}"),
    "v:third::double": (pa.float64(), lambda n: None if n % 3 or number_of(n) is None else n / 2),
    'v:"b c"::int': (pa.int32(), number_of),
    "v:kind::long": (pa.int64(), lambda _: None),
    "v::string": (pa.string(), lambda n: f"text {n}" if n % 7 == 3 and n % 5 != 4 else None),
    "s.w:at.tags[0]::long": (pa.int64(), number_of),
}


@pytest.mark.parametrize("path", PATHS)
def test_values_are_typed_columns(events: ice.Table, path: str) -> None:
    ty, wanted = PATHS[path]
    rows = events.scan(selected_fields=("id", path)).to_arrow()
    assert rows.column_names == ["id", path]
    assert rows.schema.field(path).type == ty
    assert rows.schema.field(path).nullable
    assert rows.column(path).to_pylist() == [wanted(number) for number in rows.column("id").to_pylist()]


def test_order_and_company(events: ice.Table) -> None:
    """Paths stand where they are named, beside all columns, metadata columns and the variant itself."""
    path = "v:at.tags[0]::long"
    scan = events.scan("id >= 12 AND v:at.tags[0]::long < 20", (path, "v", "_pos", "id", path, "v:kind :: STRING"))
    rows = scan.to_arrow()
    assert rows.column_names == [path, "v", "_pos", "id", "v:kind::string"]
    numbers = [number for number in range(12, 20) if number_of(number) is not None]
    found = rows.column("id").to_pylist()
    assert sorted(found) == numbers
    assert rows.column(path).to_pylist() == found
    assert variant.to_python(rows.column("v")) == [event(number) for number in found]
    assert scan.count() == len(numbers)
    everything = events.scan(selected_fields=("*", path), limit=4).to_arrow()
    assert everything.column_names == ["id", "v", "s", path]
    assert everything.num_rows == 4
    assert events.scan(selected_fields=("V:kind::string",), case_sensitive=False).to_arrow().column_names == [
        "v:kind::string"
    ]


def test_exits(events: ice.Table) -> None:
    path = "v:at.tags[0]::long"
    scan = events.scan("id < 20", ("id", path))
    wanted = {"id": list(range(20)), path: [number_of(number) for number in range(20)]}
    assert scan.to_arrow_batch_reader(batch_size=3).read_all().sort_by("id").to_pydict() == wanted
    frame = scan.to_pandas().sort_values("id")
    assert frame[path].dropna().tolist() == [number for number in wanted[path] if number is not None]
    assert scan.to_polars().sort("id").to_dict(as_series=False) == wanted
    lazy = scan.to_polars(lazy=True)
    found = lazy.filter(pl.col(path) > 10).select(path).collect().sort(path)
    assert found[path].to_list() == [number for number in wanted[path] if number is not None and number > 10]
    sql = f'SELECT id FROM t WHERE "{path}" > 10 ORDER BY id'
    assert scan.to_duckdb("t").sql(sql).fetchall() == [(n,) for n in found[path].to_list()]
    assert scan.to_pyarrow_dataset().to_table(columns=["id", path]).sort_by("id").to_pydict() == wanted
    tasks = [ReadTask.from_bytes(task.to_bytes()) for task in scan.tasks()]
    rows = pa.concat_tables([pa.table(task.rows(scan.storage)) for task in tasks])
    assert rows.sort_by("id").to_pydict() == wanted
    kinds = set(scan.plan_files().obstacles(scan.engine_read())["obstacle"].to_pylist())
    assert kinds == {f"variant path: {path}"}


@pytest.mark.parametrize("options", [{}, {"net_changes": True}])
def test_changes(events: ice.Table, options: dict[str, Any]) -> None:
    path = "s.w:at.tags[0]::long"
    events.delete("id = 2 OR id = 20")
    changes = events.incremental_changelog_scan(
        from_snapshot_id_exclusive=events.snapshots()[0].snapshot_id,
        selected_fields=("id", path, "_change_type"),
        **options,
    )
    rows = sorted(changes.to_arrow().to_pylist(), key=lambda row: (row["_change_type"], row["id"]))
    gone = [2] if options else [2, 20]
    wanted = [("DELETE", n) for n in gone] + [("INSERT", n) for n in range(15, 30) if not options or n != 20]
    assert [(row["_change_type"], row["id"]) for row in rows] == wanted
    assert [row[path] for row in rows] == [number_of(number) for _, number in wanted]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("v:a", ":: and the type of the value are expected here"),
        ("v:a::geometry", "no value of a variant has the type geometry"),
        ("v:a::struct", "struct"),
        ("id:a::long", "id has the type long, expected variant"),
        ("w:a::long", 'there is no column "w"'),
        ("v:a[x]::long", "the number of an element or a name in quotes is expected"),
        ("v:a::long b", "the end"),
    ],
)
def test_refused_paths(events: ice.Table, name: str, message: str) -> None:
    with pytest.raises(errors.IcefieldError, match=message.replace("(", r"\(")):
        events.scan(selected_fields=("id", name))


def test_columns_with_such_names_go_first(tmp_path: Path) -> None:
    catalog = ice.load_catalog("local", uri="sqlite:///:memory:", warehouse=str(tmp_path))
    catalog.create_namespace("ns")
    rows = pa.table({"v:a::long": [1, 2], "b:c": ["x", "y"]})
    table = catalog.create_table("ns.t", schema=rows.schema)
    table.append(rows)
    assert table.scan(selected_fields=("b:c", "v:a::long")).to_arrow().to_pydict() == {
        "b:c": ["x", "y"],
        "v:a::long": [1, 2],
    }


def test_rows_with_values_make_a_table(events: ice.Table) -> None:
    """The ids of such columns are those that a new column would get."""
    rows = events.scan(selected_fields=("id", "v:kind::string")).to_arrow()
    copy = events.catalog.create_table("ns.copy", schema=rows.schema, properties={"format-version": "3"})
    copy.append(rows)
    with copy.update_schema() as update:
        update.add_column("later", "int")
    assert copy.scan().to_arrow().num_rows == 30
