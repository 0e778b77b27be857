"""Files of other writers taken into tables: how columns are found, what says the partition, and what is refused."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest

import icefield as ice
from icefield.errors import CorruptDataError

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "s": ["a", "b", None],
        "d": pa.array([date(2024, 5, 1), date(2024, 5, 9), date(2024, 5, 31)]),
        "x": pa.array([1.5, float("nan"), None], pa.float64()),
    }
)


@pytest.fixture
def catalog(tmp_path: Path) -> ice.Catalog:
    catalog = ice.load_catalog("files", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "warehouse"))
    catalog.create_namespace("n")
    return catalog


def written(folder: Path, name: str, rows: pa.Table, **options: Any) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    (po if name.endswith("orc") else pq).write_table(rows, path, **options)
    return str(path)


def same(table: ice.Table, expected: pa.Table) -> None:
    found = table.scan().to_arrow().sort_by("id").select(expected.column_names)
    # NaN equals nothing, so texts are compared.
    assert str(found.to_pylist()) == str(expected.sort_by("id").to_pylist())


def files(table: ice.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pa.table(table.inspect.files()).to_pylist()
    return found


@pytest.mark.parametrize("ending", ["parquet", "orc"])
@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_columns_are_found_by_name(catalog: ice.Catalog, tmp_path: Path, ending: str, version: str) -> None:
    table = catalog.create_table("n.t", schema=ROWS, properties={"format-version": version})
    path = written(tmp_path, f"a.{ending}", ROWS.select(["x", "s", "d", "id"]))
    assert table.add_files([path], {"who": "test"}) is table
    same(table, ROWS)
    assert '"names"' in table.properties["schema.name-mapping.default"]
    summary = table.current_snapshot().summary  # type: ignore[union-attr]
    assert summary is not None
    assert (summary["operation"], summary["added-records"], summary["who"]) == ("append", "3", "test")
    [file] = files(table)
    assert (file["file_path"], file["file_format"].lower(), file["record_count"]) == (path, ending, 3)
    counts = dict(file["null_value_counts"])
    assert counts == {1: 0, 2: 1, 3: 0, 4: 1}
    # The bounds serve: nothing is read for a filter that no row passes.
    assert table.scan("id > 3").plan_files().to_arrow().num_rows == 0
    assert table.scan("d < '2024-05-01'").plan_files().to_arrow().num_rows == 0
    assert table.scan("x > 1.0").to_arrow().num_rows == 1
    # A column renamed later is still found, and rows that are appended have the names of today.
    with table.update_schema() as update:
        update.rename_column("s", "text")
    table.append(ROWS.rename_columns(["id", "text", "d", "x"]))
    assert sorted(str(value) for value in table.scan().to_arrow()["text"].to_pylist()) == [
        "None",
        "None",
        "a",
        "a",
        "b",
        "b",
    ]


def test_ids_in_files_are_kept(catalog: ice.Catalog, tmp_path: Path) -> None:
    """Files of a table can be taken into another one whose columns have the same ids; then no mapping is needed."""
    source = catalog.create_table("n.source", schema=ROWS, properties={"write.format.default": "avro"})
    source.append(ROWS)
    [path] = [file["file_path"] for file in files(source)]
    table = catalog.create_table("n.t", schema=ROWS)
    table.add_files([path])
    same(table, ROWS)
    assert "schema.name-mapping.default" not in table.properties
    other = catalog.create_table("n.other", schema=ROWS.select(["s", "id", "d", "x"]))
    with pytest.raises(ice.InvalidArgumentError, match="column id has the field id 1, which is column s of the table"):
        other.add_files([path])
    assert other.current_snapshot() is None


def test_an_existing_mapping_is_kept(catalog: ice.Catalog, tmp_path: Path) -> None:
    mapping = '[{"field-id": 1, "names": ["number"]}, {"field-id": 2, "names": ["s"]}]'
    table = catalog.create_table("n.t", schema=ROWS, properties={"schema.name-mapping.default": mapping})
    table.add_files([written(tmp_path, "a.parquet", ROWS.rename_columns(["number", "s", "day", "x"]))])
    assert table.scan().to_arrow().select(["id", "s", "d"]).to_pylist() == [
        {"id": 1, "s": "a", "d": None},
        {"id": 2, "s": "b", "d": None},
        {"id": 3, "s": None, "d": None},
    ]


PARTITIONS = [
    ("id", "id=7/a.parquet", {}, 7),
    ("s", "s=a%20b/a.parquet", {}, "a b"),
    ("s", "s=__HIVE_DEFAULT_PARTITION__/a.parquet", {}, None),
    ("d", "d=2024-05-01/a.parquet", {}, date(2024, 5, 1)),
    ("month(d)", "d_month=2024-05/a.parquet", {}, 652),
    ("year(d)", "d_year=2024/a.parquet", {}, 54),
    ("bucket(16, id)", "id_bucket=3/a.parquet", {}, 3),
    ("truncate(1, s)", "s_trunc=a/a.parquet", {}, "a"),
    ("s", "a.parquet", {"s": "given"}, "given"),
    ("s", "s=path/a.parquet", {"s": None}, None),
    ("d", "a.parquet", {"d": date(2024, 5, 1)}, date(2024, 5, 1)),
]


@pytest.mark.parametrize(("field", "name", "given", "expected"), PARTITIONS)
def test_a_partition_comes_from_the_caller_or_the_path(
    catalog: ice.Catalog, tmp_path: Path, field: str, name: str, given: dict[str, object], expected: object
) -> None:
    """The file lacks the source column, as files of Hive do; rows have the value of an identity field then."""
    column = field.rstrip(")").replace("(", " ").rpartition(" ")[2]
    table = catalog.create_table("n.t", schema=ROWS, partition_by=[field])
    rows = ROWS.drop_columns([column])
    path = written(tmp_path, name, rows)
    table.add_files([path], partitions={path: given} if given else None)
    [file] = files(table)
    assert list(file["partition"].values()) == [expected]
    found = table.scan().to_arrow()[column].to_pylist()
    assert found == [expected if field == column else None] * 3


@pytest.mark.parametrize(
    ("field", "column", "values", "expected"),
    [
        ("month(d)", "d", [date(2024, 5, 1), date(2024, 5, 31)], 652),
        ("day(t)", "t", [datetime(2024, 5, 1, 3, tzinfo=UTC), datetime(2024, 5, 1, 23, tzinfo=UTC)], date(2024, 5, 1)),
        ("id", "id", [5, 5], 5),
        ("s", "s", ["x", "x"], "x"),
        ("s", "s", [None, None], None),
        ("truncate(10, id)", "id", [21, 29], 20),
        # The footer does not tell: bounds differ, and the hashes are the same.
        ("bucket(1, id)", "id", [1, 99], 0),
        ("truncate(2, s)", "s", ["ab1", "ab2"], "ab"),
        ("x", "x", [0.5, 0.5], 0.5),
    ],
)
@pytest.mark.parametrize("ending", ["parquet", "orc"])
def test_a_partition_comes_from_the_rows(
    catalog: ice.Catalog, tmp_path: Path, field: str, column: str, values: list[object], expected: object, ending: str
) -> None:
    wide = ROWS.append_column("t", pa.array([datetime(2024, 5, 1, tzinfo=UTC)] * 3, pa.timestamp("us", "UTC")))
    table = catalog.create_table("n.t", schema=wide, partition_by=[field])
    kind = wide.schema.field(column).type
    rows = pa.table({"id": pa.array([1] * len(values), pa.int64()), column: pa.array(values, kind)})
    table.add_files([written(tmp_path, f"a.{ending}", rows)])
    [file] = files(table)
    assert list(file["partition"].values()) == [expected]
    assert table.scan().to_arrow()[column].to_pylist() == values


def test_rows_of_several_partitions_are_refused(catalog: ice.Catalog, tmp_path: Path) -> None:
    path = written(tmp_path, "a.parquet", ROWS)
    for number, field in enumerate(["id", "s", "day(d)", "bucket(16, id)", "truncate(1, s)", "x"]):
        table = catalog.create_table(f"n.t{number}", schema=ROWS, partition_by=[field])
        with pytest.raises(ice.InvalidArgumentError, match=r"a\.parquet: partition field .* several partitions"):
            table.add_files([path])
        assert table.current_snapshot() is None


def test_partition_values_that_contradict_the_rows_are_refused(catalog: ice.Catalog, tmp_path: Path) -> None:
    table = catalog.create_table("n.t", schema=ROWS, partition_by=["id"])
    path = written(tmp_path, "id=8/a.parquet", ROWS.slice(0, 1))
    with pytest.raises(ice.InvalidArgumentError, match="partition field id: it is said to be 8, and its rows have 1"):
        table.add_files([path])
    with pytest.raises(ice.InvalidArgumentError, match="'seven'|\"seven\""):
        table.add_files([written(tmp_path, "id=seven/a.parquet", ROWS.slice(0, 1))])
    with pytest.raises(ice.InvalidArgumentError, match="the partition spec has no field d"):
        table.add_files([path], partitions={path: {"d": 1}})
    with pytest.raises(ice.InvalidArgumentError, match="which is not added"):
        table.add_files([path], partitions={"elsewhere": {"id": 1}})
    # A hash is not proven by a footer: it is believed unless the rows are read.
    hashed = catalog.create_table("n.h", schema=ROWS, partition_by=["bucket(16, id)"])
    wrong = written(tmp_path, "id_bucket=3/a.parquet", ROWS)
    with pytest.raises(ice.InvalidArgumentError, match="several partitions"):
        hashed.add_files([wrong], validate="data")
    hashed.add_files([wrong])
    assert hashed.scan().count() == 3


def test_files_are_added_once(catalog: ice.Catalog, tmp_path: Path) -> None:
    table = catalog.create_table("n.t", schema=ROWS)
    first, second = (written(tmp_path, f"{name}.parquet", ROWS) for name in "ab")
    with pytest.raises(ice.InvalidArgumentError, match=r"named more than once: .*a\.parquet"):
        table.add_files([first, first])
    table.add_files([first])
    snapshot = table.current_snapshot()
    with pytest.raises(ice.InvalidArgumentError, match=r"in the table already: .*a\.parquet$"):
        table.add_files([second, first])
    assert table.current_snapshot() == snapshot
    table.add_files([second])
    assert table.scan().count() == 6
    table.add_files([first], check_duplicate_files=False)
    assert table.scan().count() == 9
    table.add_files([])
    assert len(table.snapshots()) == 3


def test_what_does_not_fit_is_refused(catalog: ice.Catalog, tmp_path: Path) -> None:
    required = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("s", pa.string())])
    table = catalog.create_table("n.t", schema=required)
    cases: list[tuple[str, type[Exception], str]] = [
        (
            written(tmp_path, "nulls.parquet", pa.table({"id": pa.array([1, None], pa.int64())})),
            ice.InvalidArgumentError,
            r"nulls\.parquet: column id is required, and has 1 nulls",
        ),
        (
            written(tmp_path, "less.parquet", ROWS.select(["s"])),
            ice.CorruptDataError,
            r"less\.parquet: column id \(id 1\) is required and has no default",
        ),
        (written(tmp_path, "text.parquet", pa.table({"id": ["1"]})), ice.CorruptDataError, r"text\.parquet: column id"),
        (written(tmp_path, "other.parquet", pa.table({"z": [1]})), ice.InvalidArgumentError, "none of its columns"),
    ]
    (tmp_path / "a.csv").write_text("id\n1\n")
    cases.append((str(tmp_path / "a.csv"), ice.CorruptDataError, r"a\.csv: it is no Parquet, ORC or Avro file"))
    (tmp_path / "cut.parquet").write_bytes(Path(written(tmp_path, "whole.parquet", ROWS)).read_bytes()[:200])
    cases.append((str(tmp_path / "cut.parquet"), ice.CorruptDataError, r"cut\.parquet"))
    cases.append((str(tmp_path / "none.parquet"), FileNotFoundError, r"none\.parquet"))
    good = written(tmp_path, "good.parquet", pa.table({"id": [1]}))
    for path, error, message in cases:
        with pytest.raises(error, match=message):
            table.add_files([good, path])
        assert table.refresh().current_snapshot() is None
        assert "schema.name-mapping.default" not in table.properties
    with pytest.raises(ice.errors.ArgumentTypeError, match="expected a list of paths"):
        table.add_files(good)
    with pytest.raises(ice.InvalidArgumentError, match="'footer' or 'data', got 'all'"):
        table.add_files([good], validate="all")  # type: ignore[arg-type]


def test_files_are_added_beside_other_changes(catalog: ice.Catalog, tmp_path: Path) -> None:
    """In one commit with a new column, a branch is written, and a transaction that fails leaves the files alone."""
    table = catalog.create_table("n.t", schema=ROWS)
    table.append(ROWS)
    path = written(tmp_path, "a.parquet", ROWS.append_column("more", pa.array([1, 2, 3], pa.int64())))

    def stopped() -> None:
        with table.transaction() as changes:
            changes.add_files([path])
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        stopped()
    assert Path(path).exists()
    with table.transaction() as changes:
        with changes.update_schema() as update:
            update.add_column("more", "long")
        changes.add_files([path])
    assert sorted(table.scan().to_arrow()["more"].to_pylist(), key=str) == [1, 2, 3, None, None, None]
    table.add_files([written(tmp_path, "b.parquet", ROWS)], branch="audit")
    assert table.scan().count() == 6
    assert table.scan(ref="audit").count() == 9


def test_promoted_types_are_read(catalog: ice.Catalog, tmp_path: Path) -> None:
    """Narrower columns than the table's are found, and their bounds are those of the table's type."""
    table = catalog.create_table("n.t", schema=ROWS)
    narrow = pa.table({"id": pa.array([1, 300], pa.int32()), "x": pa.array([0.5, -2.0], pa.float32())})
    table.add_files([written(tmp_path, "a.parquet", narrow)])
    assert table.scan("id = 300 AND x = -2.0").to_arrow()["id"].to_pylist() == [300]
    assert table.scan("id > 300").plan_files().to_arrow().num_rows == 0


def test_an_old_writers_bounds_are_not_believed(catalog: ice.Catalog, tmp_path: Path) -> None:
    """Files without statistics have rows, and nothing that skips them."""
    table = catalog.create_table("n.t", schema=ROWS)
    table.add_files([written(tmp_path, "a.parquet", ROWS, write_statistics=False)])
    same(table, ROWS)
    assert table.scan("id > 3").plan_files().to_arrow().num_rows == 1
    assert table.scan("id > 3").count() == 0


def test_paths_are_whole_and_one_file_is_one_however_it_is_spelled(
    catalog: ice.Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who reads the table later is in another working directory, and may find a file of the same name there."""
    table = catalog.create_table("n.t", schema=ROWS)
    path = written(tmp_path, "a.parquet", ROWS)
    monkeypatch.chdir(tmp_path)
    for twice in (["a.parquet", path], ["a.parquet", "./a.parquet"], [path, f"file://{path}"]):
        with pytest.raises(ValueError, match="named more than once"):
            table.add_files(twice)
    table.add_files(["a.parquet"])
    assert [file["file_path"] for file in files(table)] == [path]
    for again in ("a.parquet", "./a.parquet", path, f"file://{path}", f"file:{path}", f"{tmp_path}//a.parquet"):
        with pytest.raises(ValueError, match="in the table already"):
            table.add_files([again])
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    written(tmp_path / "other", "a.parquet", ROWS.slice(1))
    same(table, ROWS)


@pytest.mark.parametrize(
    ("wanted", "stored", "message"),
    [
        (
            pa.list_(pa.field("element", pa.int32(), nullable=False)),
            pa.array([[1], [2, None]], pa.list_(pa.int32())),
            'column x: .*"element" cannot contain nulls',
        ),
        (
            pa.struct([pa.field("y", pa.int32(), nullable=False)]),
            pa.array([{"y": 1}, {"y": None}], pa.struct([pa.field("y", pa.int32())])),
            'column x: .*nulls for non-nullable .* "y"',
        ),
        (pa.string(), pa.array([b"good", b"\xff"], pa.binary()), "column x: .*UTF-8"),
    ],
)
def test_rows_that_do_not_fit_are_an_error_that_names_the_column(
    catalog: ice.Catalog, tmp_path: Path, wanted: pa.DataType, stored: pa.Array, message: str
) -> None:
    """What footers do not tell shows when the file is read."""
    path = written(tmp_path, "one.parquet", pa.table({"x": stored}))
    table = catalog.create_table("n.t", schema=pa.schema([("x", wanted)])).add_files([path])
    with pytest.raises(CorruptDataError, match=f"one.parquet: {message}"):
        table.scan().to_arrow()
