"""Columns come in the order in which they are selected."""

import pyarrow as pa
import pytest

import icefield as ice
from icefield.errors import InvalidArgumentError

ROWS = pa.table(
    {
        "a": [1, 2],
        "st": [{"x": 3, "y": 4, "z": 5}] * 2,
        "l": [[{"p": 6, "q": 7}]] * 2,
        "c": ["s", "t"],
    }
)
CHANGE = ("_change_type", "_change_ordinal", "_commit_snapshot_id")


@pytest.fixture(params=["parquet", "orc", "avro"])
def table(request):
    catalog = ice.load_catalog("m", type="in-memory")
    catalog.create_namespace("a")
    made = catalog.create_table("a.t", ROWS, partition_by="a", properties={"write.format.default": request.param})
    return made.append(ROWS)


@pytest.mark.parametrize("row_filter", [None, "a > 1", "st.y = 4 AND a > 1", "c = 't'", "a = 2 AND c IS NOT NULL"])
def test_every_reader_keeps_the_order(table, row_filter):
    wanted = ["c", "l", "a"]
    rows = 2 if row_filter is None else 1
    for scan in (
        table.scan(row_filter, selected_fields=wanted),
        table.scan(row_filter).select(*wanted),
        table.scan(row_filter, selected_fields=("C", "L", "A"), case_sensitive=False),
        table.incremental_append_scan(row_filter=row_filter, selected_fields=wanted),
    ):
        assert scan.projection().as_arrow().names == scan.to_arrow().column_names == wanted
        assert scan.to_arrow_batch_reader().schema.names == wanted
        assert list(scan.to_pandas().columns) == scan.to_polars().columns == wanted
        assert scan.to_duckdb("t").sql("SELECT * FROM t").columns == wanted
        assert pa.table(scan).column_names == wanted
        assert (scan.count(), scan.to_arrow()["c"].to_pylist()[-1]) == (rows, "t")
        expected = ROWS.select(wanted).to_pylist()[-rows:]
        assert sorted(scan.to_arrow().to_pylist(), key=lambda row: row["a"]) == expected


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (["st.z", "c", "st.x"], {"st": {"z": 5, "x": 3}, "c": "t"}),
        (["c", "st.y", "st"], {"c": "t", "st": {"y": 4, "x": 3, "z": 5}}),
        (["l.element.q", "a", "l.element.p"], {"l": [{"q": 7, "p": 6}], "a": 2}),
        (["c", "a", "c"], {"c": "t", "a": 2}),
        (["*"], ROWS.to_pylist()[1]),
        (["c", "*"], {"c": "t", "a": 2, "st": {"x": 3, "y": 4, "z": 5}, "l": [{"p": 6, "q": 7}]}),
        (["*", "c"], ROWS.to_pylist()[1]),
    ],
)
def test_nested_columns_and_all(table, wanted, found):
    def in_order(value):
        if isinstance(value, dict):
            return [(name, in_order(inner)) for name, inner in value.items()]
        return [in_order(inner) for inner in value] if isinstance(value, list) else value

    for row_filter in ("a = 2", "c = 't'", "st.x = 3 AND c = 't'"):
        (row,) = table.scan(row_filter, selected_fields=wanted).to_arrow().to_pylist()
        assert in_order(row) == in_order(found)


def test_changelogs(table):
    table.append(ROWS.slice(0, 1))
    for wanted in (["_change_type", "c", "_commit_snapshot_id", "a"], ["c", "_change_ordinal"], [*CHANGE, "st.z"]):
        scan = table.incremental_changelog_scan(selected_fields=wanted)
        columns = [name.partition(".")[0] for name in wanted]
        assert scan.to_arrow().column_names == scan.projection().as_arrow().names == columns
        assert all(row.get("_change_type", "INSERT") == "INSERT" for row in scan.to_arrow().to_pylist())
    every = table.incremental_changelog_scan(selected_fields=["_change_type", "*"]).to_arrow().column_names
    assert every == ["_change_type", *ROWS.column_names, *CHANGE[1:]]
    assert table.incremental_changelog_scan().to_arrow().column_names == [*ROWS.column_names, *CHANGE]


def test_metadata_tables(table):
    wanted = ["record_count", "file_path", "content"]
    found = table.inspect.stream("files", selected_fields=wanted, row_filter="spec_id = 0").read_all()
    assert found.column_names == wanted
    assert found["record_count"].to_pylist() == [1, 1]


def test_wrong_columns_beside_all(table):
    with pytest.raises(InvalidArgumentError, match="nope"):
        table.scan(selected_fields=("*", "nope"))
