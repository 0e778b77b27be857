"""Filters beside what used to lose rows: projections, promotions, orders of uuids, numbers that wrap around, zeros."""

import datetime as dt
import operator
import uuid
from itertools import product
from math import isnan
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefield as ice

FORMATS = ["parquet", "orc", "avro"]


@pytest.fixture
def catalog():
    opened = ice.load_catalog("m", type="in-memory")
    opened.create_namespace("a")
    return opened


def ids(scan):
    return sorted(scan.to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("file_format", FORMATS)
def test_projections_beside_tests_of_other_columns(catalog, file_format):
    rows = pa.table({"a": [1, 2, 3], "b": [10, 20, 30], "st": [{"o": 4, "p": 7}, None, {"o": 5, "p": 8}]})
    table = catalog.create_table("a.t", rows, properties={"write.format.default": file_format})
    table.append(rows)
    with table.update_schema() as update:
        update.add_column("n", "long")
        update.add_column(("st", "q"), "long")
        update.move_first("n")
    columns = ["n", "a", "b", "st", "st.o", "st.p", "st.q"]
    filters = {
        "a > 0 AND st.p > 7": [2],
        "n IS NULL AND a < 3": [0, 1],
        "st.q IS NULL": [0, 1, 2],
        "st.o = 4 OR b = 30": [0, 2],
        "n IS NULL": [0, 1, 2],
    }
    whole = table.scan().to_arrow()
    for (expr, kept), first, second in product(filters.items(), columns, columns):
        chosen = {first, second}
        if any(column.startswith("st.") for column in chosen) and "st" in chosen:
            continue
        found = table.scan(expr, selected_fields=tuple(chosen)).to_arrow()
        for name in found.column_names:
            expected = [whole[name][row].as_py() for row in kept]
            if name == "st":
                parts = {column.partition(".")[2] for column in chosen if column.startswith("st.")}
                asked = [key for key in ("o", "p", "q") if not parts or key in parts]
                expected = [row and {key: row[key] for key in asked} for row in expected]
            assert found[name].to_pylist() == expected, (expr, chosen)


@pytest.mark.parametrize("file_format", FORMATS)
def test_nulls_of_lists_and_maps(catalog, file_format):
    kinds = {"l": pa.list_(pa.int64()), "m": pa.map_(pa.string(), pa.struct([("x", pa.int64()), ("y", pa.int64())]))}
    kinds["st"] = pa.struct([("l", kinds["l"]), ("m", kinds["m"])])
    map_ = [("k", {"x": 1, "y": 2})]
    columns = {"l": [[1], None, []], "m": [None, map_, []], "st": [{"l": [2], "m": None}, None, {"l": None, "m": map_}]}
    rows = pa.table({"id": range(3)} | {name: pa.array(columns[name], kinds[name]) for name in kinds})
    table = catalog.create_table("a.t", rows, properties={"write.format.default": file_format})
    table.append(rows)
    nulls = {"l": [1], "m": [0], "st": [1], "st.l": [1, 2], "st.m": [0, 1]}
    for name, found in nulls.items():
        for selected in [("id",), ("id", name), ("id", "l.element"), ("id", "m.value.y")]:
            scan = table.scan(f"{name} IS NULL", selected_fields=selected)
            assert ids(scan) == found, (name, selected)
            assert ids(table.scan(f"{name} IS NOT NULL AND id >= 0", selected_fields=selected)) == sorted(
                {0, 1, 2} - {*found}
            )
    found = table.scan("m IS NOT NULL", selected_fields=("m.value.y",)).to_arrow()
    assert found["m"].to_pylist() == [[("k", {"y": 2})], []]


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("promoted", ["timestamp", "timestamp_ns"])
@pytest.mark.parametrize("partition", [None, 'month("d")'])
def test_dates_that_became_timestamps(catalog, file_format, promoted, partition):
    days = [dt.date(1969, 12, 31), dt.date(2024, 1, 2), dt.date(2024, 5, 2), None]
    schema = pa.schema([("id", pa.int64()), ("d", pa.date32()), ("s", pa.struct([("d", pa.date32())]))])
    rows = pa.table({"id": range(4), "d": days, "s": [{"d": day} for day in days]}, schema=schema)
    properties = {"format-version": "3", "write.format.default": file_format}
    table = catalog.create_table("a.t", schema, partition_by=[partition] if partition else None, properties=properties)
    table.append(rows)
    with table.update_schema() as update:
        update.update_column("d", promoted)
        update.update_column(("s", "d"), promoted)
    for name in ["d", "s.d"]:
        assert ids(table.scan(f"{name} > '2000-01-01T00:00:00'")) == [1, 2]
        assert ids(table.scan(f"{name} = '2024-01-02T00:00:00'")) == [1]
        assert ids(table.scan(f"{name} < '2024-01-02T00:00:00'")) == [0]
        assert ids(table.scan(f"{name} <= '1969-12-31T23:59:59'")) == [0]
        assert ids(table.scan(f"{name} IN ('2024-05-02T00:00:00', '1969-12-31T00:00:00')")) == [0, 2]
        assert ids(table.scan(f"day({name}) = '2024-05-02'")) == [2]
        assert ids(table.scan(f"{name} != '2024-05-02T00:00:00'")) == [0, 1]
    metrics = table.inspect.files().to_pylist()
    bounds = [file["readable_metrics"]["d"] for file in metrics]
    if file_format == "avro":
        assert all(bound["lower_bound"] is None for bound in bounds)
        return
    least = min(bound["lower_bound"] for bound in bounds if bound["lower_bound"] is not None)
    most = max(bound["upper_bound"] for bound in bounds if bound["upper_bound"] is not None)
    assert (str(least), str(most)) == ("1969-12-31 00:00:00", "2024-05-02 00:00:00")


def test_bounds_of_dates_that_became_timestamps(catalog):
    rows = pa.table({"d": [dt.date(2024, 1, 2), dt.date(2024, 5, 2)]})
    table = catalog.create_table("a.t", rows, properties={"format-version": "3"})
    table.append(rows)
    with table.update_schema() as update:
        update.update_column("d", "timestamp")
    bounds = table.scan().bounds("d")
    assert (bounds.lower, bounds.upper) == tuple(map(dt.datetime.fromisoformat, ("2024-01-02", "2024-05-02")))


def test_dates_beyond_timestamps_in_nanoseconds_are_unknown_bounds(catalog):
    rows = pa.table({"id": [0, 1], "d": [dt.date(2024, 1, 2), dt.date(9999, 12, 31)]})
    table = catalog.create_table("a.t", rows, properties={"format-version": "3"})
    table.append(rows)
    with table.update_schema() as update:
        update.update_column("d", "timestamp_ns")
    metrics = table.inspect.files()["readable_metrics"].to_pylist()[0]["d"]
    assert (str(metrics["lower_bound"]), metrics["upper_bound"]) == ("2024-01-02 00:00:00", None)
    assert table.scan("d > '2025-01-01T00:00:00'").plan_files()


HALVES = (0, 5, 2**63 - 1, 2**63, 2**64 - 1)
UUIDS = [uuid.UUID(int=(first << 64) | second) for first in HALVES for second in (1, 2**63 + 1)]


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("partition", [None, "u", 'bucket(3, "u")'])
def test_uuids_of_both_halves(catalog, file_format, partition):
    schema = pa.schema([("id", pa.int64()), ("u", pa.uuid())])
    properties = {"write.format.default": file_format}
    table = catalog.create_table("a.t", schema, partition_by=[partition] if partition else None, properties=properties)
    rng = Random(7)
    for _ in range(3):
        some = rng.sample(range(len(UUIDS)), 5)
        data = pa.array([UUIDS[place].bytes for place in some], pa.binary(16))
        table.append(pa.table({"id": pa.array(some), "u": data}))
    written = ids(table.scan())
    tests = {"=": operator.eq, "<": operator.lt, ">=": operator.ge}
    for place, value in enumerate(UUIDS):
        for sign, holds in tests.items():
            expected = sorted(found for found in written if holds(UUIDS[found], value))
            assert ids(table.scan(f"u {sign} '{value}'")) == expected, (sign, value)
        pair = (value, UUIDS[place - 1])
        expected = sorted(found for found in written if UUIDS[found] in pair)
        assert ids(table.scan(f"u IN ('{pair[0]}', '{pair[1]}')")) == expected


def test_statistics_of_uuids_hold_in_both_orders(catalog, tmp_path):
    """Java skips row groups, files and manifests by its signed order of uuids, others by the unsigned one."""
    schema = pa.schema([("u", pa.uuid())])
    opened = ice.load_catalog("f", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path))
    opened.create_namespace("a")

    def written(name, values, **options):
        table = opened.create_table(f"a.{name}", schema, **options)
        table.append(pa.table({"u": pa.array([value and value.bytes for value in values], pa.binary(16))}))
        file = table.inspect.files().to_pylist()[0]
        statistics = (
            pq.ParquetFile(file["file_path"].removeprefix("file://")).metadata.row_group(0).column(0).statistics
        )
        return file, statistics, table.inspect.manifests().to_pylist()

    low, high = uuid.UUID("10000000-0000-4000-8000-000000000001"), uuid.UUID("90000000-0000-4000-8000-000000000001")
    near = uuid.UUID("10000000-0000-4000-9000-000000000001")
    file, statistics, _ = written("mixed", [low, high, None])
    assert not file["lower_bounds"]
    assert not file["upper_bounds"]
    assert not statistics.has_min_max
    assert statistics.null_count == 1
    assert dict(file["null_value_counts"]) == {1: 1}
    file, statistics, _ = written("alike", [low, near])
    assert dict(file["lower_bounds"]) == {1: low.bytes}
    assert dict(file["upper_bounds"]) == {1: near.bytes}
    assert statistics.has_min_max
    _, _, manifests = written("partitions", [low, high], partition_by=["u"])
    assert len(manifests[0]["partition_summaries"]) == 1
    table = opened.load_table("a.partitions")
    assert table.scan(f"u = '{low}'").count() == table.scan(f"u = '{high}'").count() == 1


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize(("type_", "bits"), [(pa.int32(), 31), (pa.int64(), 63)])
@pytest.mark.parametrize("width", [7, 8, 2**31 - 1])
def test_truncate_near_the_smallest_number(catalog, file_format, type_, bits, width):
    least, most = -(2**bits), 2**bits - 1
    numbers = [least, least + 1, least + 6, least + 1000, -8, -1, 0, 1, 7, 700, most - 1000, most - 1, most]
    rows = pa.table({"id": pa.array(range(len(numbers)), pa.int64()), "i": pa.array(numbers, type_)})
    properties = {"write.format.default": file_format}
    partitioned = catalog.create_table("a.p", rows, partition_by=[f'truncate({width}, "i")'], properties=properties)
    plain = catalog.create_table("a.q", rows, properties=properties)
    partitioned.append(rows)
    for start in range(0, len(numbers), 3):
        plain.append(rows.slice(start, 3))
    tests = {"<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__, "=": int.__eq__, "!=": int.__ne__}

    def truncated(number):
        return (number - number % width - least) % 2 ** (bits + 1) + least

    for literal in (least, least + 5, 0, 700, most - 5, most):
        for sign, holds in tests.items():
            found = [place for place, number in enumerate(numbers) if holds(number, literal)]
            for table in (partitioned, plain):
                assert ids(table.scan(f"i {sign} {literal}")) == found, (sign, literal)
                either = ids(table.scan(f"i {sign} {literal} OR id = 2"))
                assert either == sorted({*found, 2}), (sign, literal)
                of_term = [place for place, number in enumerate(numbers) if holds(truncated(number), literal)]
                assert ids(table.scan(f"truncate({width}, i) {sign} {literal}")) == of_term, (sign, literal)


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("width", [7, 10])
def test_ints_that_wrapped_around_and_became_longs(catalog, file_format, width):
    """Partitions keep what `truncate` made of an int, which is not what it makes of the same long."""
    least = -(2**31)
    numbers = [least, least + 1, -8, 0, 700, 2**31 - 1]
    rows = pa.table({"id": pa.array(range(6), pa.int64()), "i": pa.array(numbers, pa.int32())})
    properties = {"write.format.default": file_format}
    table = catalog.create_table("a.t", rows, partition_by=[f'truncate({width}, "i")'], properties=properties)
    table.append(rows)
    with table.update_schema() as update:
        update.update_column("i", "long")
    tests = {"<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__, "=": int.__eq__, "!=": int.__ne__}
    truncated = least - least % width
    wrapped = truncated + 2**32
    for literal in (-(2**40), truncated, least, least + 5, 0, 700, wrapped, 2**40):
        for sign, holds in tests.items():
            found = [place for place, number in enumerate(numbers) if holds(number, literal)]
            assert ids(table.scan(f"i {sign} {literal}")) == found, (sign, literal)
            assert ids(table.scan(f"i {sign} {literal} OR id = 2")) == sorted({*found, 2}), (sign, literal)
            of_term = [place for place, number in enumerate(numbers) if holds(number - number % width, literal)]
            assert ids(table.scan(f"truncate({width}, i) {sign} {literal}")) == of_term, (sign, literal)
        for inside in (True, False):
            found = [place for place, number in enumerate(numbers) if (number in (literal, 700)) == inside]
            assert ids(table.scan(f"i {'IN' if inside else 'NOT IN'} ({literal}, 700)")) == found, literal


@pytest.mark.parametrize("file_format", FORMATS)
def test_decimals_truncated_near_their_ends(catalog, file_format):
    from decimal import Decimal

    numbers = [Decimal(text) for text in ("-9999999.99", "-9999999.90", "-0.01", "0.00", "0.01", "9999999.99")]
    rows = pa.table({"id": range(6), "x": pa.array(numbers, pa.decimal128(9, 2))})
    table = catalog.create_table(
        "a.t", rows, partition_by=['truncate(50, "x")'], properties={"write.format.default": file_format}
    )
    table.append(rows)
    for literal in numbers:
        assert ids(table.scan(f"x < {literal}")) == [place for place, number in enumerate(numbers) if number < literal]
        assert ids(table.scan(f"x >= {literal}")) == [
            place for place, number in enumerate(numbers) if number >= literal
        ]


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("transform", ["year", "month", "day", "hour"])
def test_moments_at_the_ends_of_time(catalog, file_format, transform):
    hour = 3_600_000_000
    ends = [-(2**31) * hour, -(2**31) * hour + 1, -1, 0, 1, 2**31 * hour - 1]
    if file_format == "orc":
        ends = [-62_135_596_800_000_000, -hour, 0, 1, 253_402_300_799_999_999]
    rows = pa.table({"id": pa.array(range(len(ends)), pa.int64()), "t": pa.array(ends, pa.timestamp("us"))})
    properties = {"write.format.default": file_format}
    table = catalog.create_table("a.t", rows, partition_by=[f'{transform}("t")'], properties=properties)
    table.append(rows)
    schema = table.schema()
    for place, moment in enumerate(ends):
        for kind, found in [("lt", ends[:place]), ("gt-eq", ends[place:]), ("eq", [moment])]:
            if not -62_135_596_800_000_000 <= moment <= 253_402_300_799_999_999:
                continue
            literal = (dt.datetime.fromisoformat("1970-01-01") + dt.timedelta(microseconds=moment)).isoformat()
            expr = f'{{"type": "{kind}", "term": "t", "value": "{literal}"}}'
            assert ids(table.scan(ice.expressions.from_json(expr, schema))) == [ends.index(one) for one in found]


@pytest.mark.parametrize("file_format", FORMATS)
def test_zeros_are_two_values(catalog, file_format):
    nan = float("nan")
    worlds = [[-0.0], [0.0], [-0.0, 0.0], [0.0, -0.0], [nan, 0.0], [0.0, nan], [-0.0, None], [nan], [5.0, nan]]
    for number, world in enumerate(worlds):
        data = {"id": range(len(world)), "f": pa.array(world, pa.float32()), "d": pa.array(world, pa.float64())}
        table = catalog.create_table(f"a.t{number}", pa.table(data), properties={"write.format.default": file_format})
        table.append(pa.table(data))

        def order(value):
            return (value, str(value) != "-0.0") if value == 0 else (value, True)

        tests = {
            "!=": lambda one, other: one is not None and (isnan(one) or order(one) != order(other)),
            "=": lambda one, other: one is not None and not isnan(one) and order(one) == order(other),
            "<": lambda one, other: one is not None and not isnan(one) and order(one) < order(other),
            ">=": lambda one, other: one is not None and not isnan(one) and order(one) >= order(other),
        }
        for column, literal, (sign, holds) in product("fd", ["0.0", "-0.0", "5.0"], tests.items()):
            expected = [place for place, value in enumerate(world) if holds(value, float(literal))]
            assert ids(table.scan(f"{column} {sign} {literal}")) == expected, (world, column, sign, literal)
            if sign == "!=":
                assert ids(table.scan(f"{column} NOT IN ({literal})")) == expected, (world, column, literal)
        for column in "fd":
            nans = [place for place, value in enumerate(world) if value is not None and isnan(value)]
            assert ids(table.scan(f"{column} IS NAN")) == nans
            assert ids(table.scan(f"{column} IS NOT NAN")) == [at for at in range(len(world)) if at not in nans]


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_nested_column_of_which_no_stored_field_is_left(catalog, file_format):
    """What tells the nulls of a parent may be a map, which is read whole or not at all."""
    maps = pa.map_(pa.string(), pa.struct([("k", pa.map_(pa.string(), pa.int32()))]))
    kinds = {
        "m": pa.map_(pa.string(), pa.int32()),
        "l": pa.list_(maps),
        "s": pa.struct([("m", maps)]),
    }
    values = {"m": [("k", 1)], "l": [[("k", {"k": [("x", 1)]})]], "s": {"m": [("k", {"k": [("x", 1)]})]}}
    for name, type_ in kinds.items():
        schema = pa.schema([("id", pa.int64()), ("st", pa.struct([(name, type_)]))])
        rows = pa.table({"id": [0, 1, 2], "st": [{name: values[name]}, None, {name: None}]}, schema=schema)
        table = catalog.create_table(f"a.{name}", rows, properties={"write.format.default": file_format})
        table.append(rows)
        with table.update_schema() as update:
            update.add_column(("st", "n"), "int")
        assert ids(table.scan("st.n IS NULL")) == [0, 1, 2]
        found = table.scan("st.n IS NULL", selected_fields=("id", "st.n")).to_arrow()
        assert found["st"].to_pylist() == [{"n": None}, None, {"n": None}]
        assert table.scan("st IS NULL", selected_fields=("id",)).to_arrow()["id"].to_pylist() == [1]


@pytest.mark.parametrize("file_format", FORMATS)
def test_infinities_of_programs_are_those_of_columns(catalog, file_format):
    """A number of Python is a double, and infinity is the one that is beyond no float."""
    inf, nan = float("inf"), float("nan")
    values = [1.0, inf, -inf, nan, None]
    data = {"id": range(5), "f": pa.array(values, pa.float32()), "d": pa.array(values, pa.float64())}
    table = catalog.create_table("a.t", pa.table(data), properties={"write.format.default": file_format})
    table.append(pa.table(data))
    exp = ice.expressions
    for column in "fd":
        assert ids(table.scan(exp.EqualTo(column, inf))) == [1]
        assert ids(table.scan(exp.GreaterThanOrEqual(column, inf))) == ids(table.scan(f"{column} >= 'Infinity'"))
        assert ids(table.scan(exp.LessThan(column, inf))) == [0, 2]
        assert ids(table.scan(exp.GreaterThan(column, -inf))) == ids(table.scan(f"{column} > '-Infinity'"))
        assert ids(table.scan(exp.In(column, [inf, 1.0]))) == [0, 1]
        assert ids(table.scan(exp.NotEqualTo(column, inf))) == [0, 2, 3, 4]
    table.delete(exp.LessThan("f", inf))
    assert ids(table.scan()) == [1, 3, 4]
