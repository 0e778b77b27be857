"""A filter that is written as text means what SQL means, whichever way it comes: DuckDB tells which rows these are."""

import datetime as dt
import random
import re

import duckdb
import pyarrow as pa
import pytest

import icefield as ice
from icefield import orc
from icefield.errors import InvalidArgumentError
from icefield.expressions import And, EqualTo, Not, NotEqualTo, NotIn, Or, from_json, parse, transform

ROWS = pa.table(
    {
        "id": pa.array(range(12), pa.int64()),
        "c": pa.array(["UA", "AA", None, "UB", "", None, "AA", "x", None, "UA", "B6", None]),
        "n": pa.array([5, None, 5, 7, None, -1, 0, 5, None, 7, 2**31 - 1, -(2**31)], pa.int32()),
        "s": pa.array([{"x": 1}, {"x": None}, None, {"x": 2}, {"x": 1}, None, {"x": 3}, {"x": None}] + [{"x": 1}] * 4),
        "d": pa.array([None if i % 3 == 0 else dt.date(2013, 1, 1 + i) for i in range(12)]),
    }
)
#: What is asked of one column; SQL's answer is null where the column is.
TESTS = [
    "c != 'UA'",
    "'UA' <> c",
    "c NOT IN ('UA')",
    "c NOT IN ('UA', 'AA')",
    "c NOT LIKE 'U%'",
    "c NOT LIKE 'UA'",
    "NOT (c = 'UA')",
    "NOT c IN ('UA', 'x')",
    "NOT (c LIKE 'U%')",
    "NOT (NOT (c != 'UA'))",
    "c IS NULL",
    "c >= 'UA'",
    "n != 5",
    "NOT (n = 5)",
    "n NOT BETWEEN 0 AND 6",
    "n <= 7",
    "n < 1099511627776",
    "n > -1099511627776",
    "n != 1099511627776",
    "NOT (n >= 1099511627776)",
    "s.x != 1",
    "NOT (s.x IN (1, 2))",
    "d != '2013-01-02'",
    "NOT (d < '2013-01-05')",
]


def drawn(seed: int) -> list[str]:
    """All tests, and some of their combinations."""
    chance = random.Random(seed)
    found = list(TESTS)
    for _ in range(12):
        one, other, third = chance.sample(TESTS, 3)
        found.append(
            chance.choice([f"NOT ({one} AND ({other}))", f"({one}) OR NOT ({other} OR {third})", f"{one} AND {other}"])
        )
    return found


def matching(condition: str) -> list[int]:
    """The ids that SQL finds."""
    rows = ROWS  # noqa: F841 - DuckDB sees it
    return sorted(row[0] for row in duckdb.sql(f"SELECT id FROM rows WHERE {condition}").fetchall())


@pytest.fixture
def catalog():
    catalog = ice.load_catalog("sql", type="in-memory")
    catalog.create_namespace("a")
    return catalog


FORMATS = ["parquet", "orc", "avro"]


def made(catalog, name, file_format="parquet", partition_by=None):
    properties = {"write.format.default": file_format}
    table = catalog.create_table(f"a.{name}", ROWS, partition_by=partition_by, properties=properties)
    return table.append(ROWS.slice(0, 7)).append(ROWS.slice(7))


def ids(rows) -> list[int]:
    return sorted(rows["id"].to_pylist())


@pytest.mark.parametrize("file_format", FORMATS)
def test_reads(catalog, file_format):
    tables = [made(catalog, f"t{n}", file_format, by) for n, by in enumerate((None, "c", "truncate(2, n)", "year(d)"))]
    for number, condition in enumerate(drawn(1)):
        expected = matching(condition)
        table = tables[number % len(tables)]
        scan = table.scan(condition)
        assert ids(scan.to_arrow()) == expected, condition
        assert scan.count() == len(expected), condition
        assert ids(table.scan("id >= 0").filter(condition).filter("id < 12").to_arrow()) == expected, condition
        assert ids(scan.filter("id >= 6").to_arrow()) == [one for one in expected if one >= 6], condition
        found = sum(task.rows(table.storage).to_pyarrow().read_all().num_rows for task in scan.tasks())
        assert found == len(expected), condition


def _deleted(table, condition):
    table.delete(condition)


def _overwritten(table, condition):
    table.overwrite(ROWS.slice(0, 0), condition)


def _updated(table, condition):
    table.update({"c": "gone"}, condition)
    table.delete("c = 'gone'")


def _merged(table, condition):
    table.merge(ROWS, on="id").when_matched_delete(_of(condition, "target")).execute()


def _merged_by_source(table, condition):
    table.merge(ROWS, on="id").when_matched_delete(_of(condition, "source")).execute()


def _merged_alone(table, condition):
    table.merge(ROWS.slice(0, 0), on="id").when_not_matched_by_source_delete(_of(condition, "target")).execute()


def _of(condition: str, side: str) -> str:
    """Name the columns of a condition as those of a side of a merge."""
    return re.sub(r"(?<![\w.'])([cnsd])\b(?!')", rf"{side}.\1", condition)


@pytest.mark.parametrize("change", [_deleted, _overwritten, _updated, _merged, _merged_by_source, _merged_alone])
def test_changes(catalog, change):
    modes = ["copy-on-write", "merge-on-read"]
    for number, condition in enumerate(drawn(2)[:: 2 if change is _updated else 1]):
        table = made(catalog, f"t{number}", FORMATS[number % 3], [None, "c", "bucket(4, id)"][number % 3])
        with table.transaction() as change_of_properties:
            change_of_properties.set_properties(
                {"write.delete.mode": modes[number % 2], "write.merge.mode": modes[number % 2]}
            )
        change(table, condition)
        assert ids(table.scan().to_arrow()) == sorted(set(range(12)) - set(matching(condition))), condition


def test_rows_that_a_merge_adds(catalog):
    for number, condition in enumerate(drawn(3)):
        table = catalog.create_table(f"a.t{number}", ROWS)
        table.merge(ROWS, on="id").when_not_matched_insert_all(_of(condition, "source")).execute()
        assert ids(table.scan().to_arrow()) == matching(condition), condition


def test_one_rule_for_literals_and_columns(catalog):
    table = made(catalog, "t")
    source = ROWS.set_column(1, "c", pa.array(["UA"] * 12))
    for condition in ("target.c != 'UA'", "target.c != source.c", "NOT (target.c = source.c)", "NOT target.c = 'UA'"):
        merge = table.merge(source, on="id", dry_run=True)
        assert merge.when_matched_delete(condition).execute().rows_deleted == len(matching("c != 'UA'")), condition
    for condition in ("c != 'UA' OR id < id", "NOT (c = 'UA' OR id > id)"):
        assert table.delete(condition, dry_run=True).rows_removed == len(matching("c != 'UA'")), condition


def test_metadata_tables_and_files(catalog, tmp_path):
    table = made(catalog, "t")
    for condition in ("equality_ids != 1", "NOT (sort_order_id = 7)", "referenced_data_file != 'x'"):
        try:
            found = table.inspect.stream("files", row_filter=condition).read_all()
        except ice.errors.IcefieldError:
            continue
        column = condition.removeprefix("NOT (").split()[0]
        assert found[column].null_count == 0, condition
    orc.write_table(ROWS.select(["id", "c"]), str(tmp_path / "rows.orc"))
    assert ids(orc.read_table(str(tmp_path / "rows.orc"), predicate="c != 'UA'")) == matching("c != 'UA'")


def test_expressions_mean_what_iceberg_means(catalog):
    """Null is not equal to a value there, as for the library; `parse` returns such an expression."""
    table = made(catalog, "t")
    unlike = sorted({*matching("c != 'UA'"), *matching("c IS NULL")})
    for expression in (
        NotEqualTo("c", "UA"),
        ~EqualTo("c", "UA"),
        Not(EqualTo("c", "UA")),
        NotIn("c", ["UA"]),
        parse("c != 'UA'"),
        from_json('{"type": "not-eq", "term": "c", "value": "UA"}'),
    ):
        assert ids(table.scan(expression).to_arrow()) == unlike, expression
        assert table.delete(expression, dry_run=True).rows_removed == len(unlike), expression
    assert str(parse("c != 'UA'")) == "c != 'UA'"
    either = Or(And("c != 'UA'", "c IS NOT NULL"), "c IS NULL")
    assert ids(table.scan(either).to_arrow()) == unlike


#: Periods as people write them, and what they are told to write.
PERIODS = {
    "year(d) = 2013": "d >= '2013-01-01' AND d < '2014-01-01'",
    "year(d) >= 2013": "year(d) = '2013'",
    "2000 > years(d)": "d >= '2000-01-01'",
    "year(d) != 2013": "year(d) = '2013'",
    "year(d) IN (2012, 2013)": "year(d) = '2012'",
    "NOT year(d) BETWEEN 2012 AND 2014": "year(d) = '2012'",
    "year(d) = 43": "a number of years from 1970 is INT '43'",
    "year(d) = 2013.0": "year(d) = '2013'",
    "year(d) = '13'": "'13' is no year",
    "month(d) = 2": "month(d) = '2013-02'",
    "month(d) = '02'": "month(d) = '2013-02'",
    "day(d) = 5": "day(d) = '2013-02-05'",
    "hour(t) < 12": "hour(t) = '2013-02-05-10'",
}


def test_plain_numbers_are_no_periods(catalog):
    times = ROWS.select(["id", "d"]).append_column("t", ROWS["d"].cast(pa.timestamp("us")))
    table = catalog.create_table("a.t", times, partition_by="year(d)")
    table.append(times)
    before = table.metadata_location
    for text, advice in PERIODS.items():
        sides = text.replace("(d)", "(target.d)").replace("(t)", "(target.t)")
        for road in (
            parse,
            table.scan,
            table.scan().filter,
            lambda text: table.scan().update(row_filter=text),
            table.delete,
            lambda text: table.overwrite(times, text),
            lambda text: table.update({"id": 1}, text),
            table.new_delete().delete_by_predicate if hasattr(table, "new_delete") else parse,
        ):
            with pytest.raises(InvalidArgumentError) as error:
                road(text)
            assert advice in str(error.value), (text, str(error.value))
        with pytest.raises(InvalidArgumentError):
            table.merge(times, on="id").when_matched_delete(sides)
    assert table.refresh().metadata_location == before


def test_periods_of_the_calendar(catalog):
    days = [
        dt.date(1969, 12, 31),
        dt.date(2012, 6, 1),
        dt.date(2013, 2, 5),
        dt.date(2013, 3, 1),
        dt.date(2020, 1, 1),
        None,
    ]
    rows = pa.table({"id": range(6), "d": days, "t": pa.array(days).cast(pa.timestamp("us"))})
    for number, by in enumerate((None, "year(d)", "month(t)", "day(d)", "hour(t)")):
        table = catalog.create_table(f"a.t{number}", rows, partition_by=by)
        table.append(rows)
        for text, expected in {
            "year(d) = '2013'": [2, 3],
            "year(t) >= '2013'": [2, 3, 4],
            "year(d) != '2013'": [0, 1, 4],
            "year(d) IN ('1969', '2020')": [0, 4],
            "year(d) BETWEEN '1969' AND '2012'": [0, 1],
            "year(d) = INT '43'": [2, 3],
            "month(d) = '2013-02'": [2],
            "month(t) < '1970-01'": [0],
            "day(d) = '2013-02-05'": [2],
            "day(t) = DATE '2013-02-05'": [2],
            "hour(t) = '2013-02-05-00'": [2],
            "hour(t) < '1970-01-01-00'": [0],
            "year(d) IS NULL": [5],
        }.items():
            assert ids(table.scan(text).to_arrow()) == expected, (by, text)
            assert parse(str(parse(text))) == parse(text)
        # A program counts as Iceberg does.
        assert ids(table.scan(EqualTo(transform("year", "d"), 43)).to_arrow()) == [2, 3]
        document = '{"type": "eq", "term": {"type": "transform", "transform": "year", "term": "d"}, "value": 43}'
        counted = from_json(document)
        assert ids(table.scan(counted).to_arrow()) == [2, 3]
        assert parse(str(counted)) == counted
        assert str(counted) == "year(d) = '2013'"
