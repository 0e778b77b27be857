"""Values beyond their types, literals and bound terms that are equal by what they mean, and paths of partitions of dropped columns."""

# ruff: noqa: DTZ001, E501

from __future__ import annotations

import datetime as dt
import itertools
import uuid
from decimal import Decimal
from typing import Any

import pytest

import icefield as ice
from icefield.expressions import Reference, parse
from icefield.expressions.literals import literal
from icefield.types import ListType, StructType

BEYOND: list[tuple[str, Any]] = [
    ("boolean", 1), ("int", 2**31), ("int", -(2**31) - 1), ("int", True), ("long", 2**63), ("long", -(2**63) - 1), ("long", 1.0),
    ("float", 3.5e38), ("float", -1e300), ("float", "1.5"), ("double", 10**400), ("double", True),
    ("decimal(6, 2)", Decimal("12345.67")), ("decimal(6, 2)", Decimal(-10000)), ("decimal(6, 2)", "10000.00"), ("decimal(6, 2)", 10_000),
    ("decimal(6, 2)", Decimal("1.234")), ("decimal(38, 0)", 10**38), ("decimal(38, 0)", -(10**38)), ("decimal(6, 2)", Decimal("NaN")),
    ("date", 2**31), ("date", "10000000-01-01"), ("time", -1), ("time", 86_400_000_000), ("time", "24:00:00"),
    ("timestamp", 2**63), ("timestamptz", dt.datetime(2024, 1, 1)), ("timestamp_ns", dt.datetime(2300, 1, 1)),
    ("timestamptz_ns", dt.datetime(1600, 1, 1, tzinfo=dt.timezone.utc)), ("string", 1), ("string", b"x"), ("uuid", b"short"), ("uuid", "0"),
    ("fixed[2]", b"x"), ("fixed[2]", b"xyz"), ("binary", 1), ("binary", [1]),
]  # fmt: skip

WITHIN: list[tuple[str, Any]] = [
    ("int", 2**31 - 1), ("long", -(2**63)), ("float", 3.4028234e38), ("double", 1e308), ("decimal(6, 2)", Decimal("-9999.99")),
    ("decimal(38, 0)", 10**38 - 1), ("time", 86_399_999_999), ("timestamp_ns", dt.datetime(2262, 1, 1)), ("fixed[2]", b"xy"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value"), BEYOND, ids=[f"{kind} {value!r:.30}" for kind, value in BEYOND])
def test_a_value_that_is_not_of_its_type_has_no_bytes_and_no_json(kind: str, value: Any) -> None:
    for write in (ice.values.to_bytes, ice.values.to_json):
        with pytest.raises(ice.InvalidArgumentError):
            write(value, kind)
    with pytest.raises(ice.InvalidArgumentError):
        ice.values.to_json([value], ListType(1, kind, False))


@pytest.mark.parametrize(("kind", "value"), WITHIN, ids=[kind for kind, _ in WITHIN])
def test_the_last_value_of_a_type_is_written_and_read(kind: str, value: Any) -> None:
    written = ice.values.from_bytes(ice.values.to_bytes(value, kind), kind)
    assert ice.values.from_json(ice.values.to_json(value, kind), kind) == written


SAME: list[tuple[Any, str]] = [
    (10, "int"), (10, "long"), (10, "float"), (10, "double"), (10, "decimal(9, 2)"), (1.5, "float"), (1.5, "double"), (1.5, "decimal(9, 2)"),
    (Decimal("1.50"), "decimal(9, 2)"), (Decimal(2), "long"), ("a", "string"), (True, "boolean"), (b"ab", "binary"), (b"ab", "fixed[2]"),
    (dt.date(2024, 1, 2), "date"), (dt.time(1, 2), "time"), (dt.datetime(2024, 1, 2), "timestamp"), (10, "date"), (10, "timestamp"),
    (dt.datetime(2024, 1, 2, tzinfo=dt.timezone.utc), "timestamptz"), (uuid.UUID(int=5), "uuid"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "kind"), SAME, ids=[f"{value!r:.20} {kind}" for value, kind in SAME])
def test_a_converted_literal_equals_the_plain_one_of_its_value(value: Any, kind: str) -> None:
    plain, typed = literal(value), literal(value).to(kind)
    assert plain == typed
    assert (plain != typed) is False
    assert hash(plain) == hash(typed)
    assert len({plain, typed}) == 1


def test_literals_are_equal_where_neither_is_less() -> None:
    numbers = [literal(value) for value in (1, 1.0, Decimal("1.0"), 2, 1.5)] + [
        literal(1).to("int"),
        literal(2).to("float"),
    ]
    for one, other in itertools.product(numbers, numbers):
        assert (one == other) == (not one < other and not other < one)
        assert one != other or hash(one) == hash(other)
    assert literal(1) != 1
    assert literal("1") != literal(1)


NESTED = ice.Schema(
    ice.NestedField(1, "foo", "long"),
    ice.NestedField(2, "day", "timestamp"),
    ice.NestedField(3, "s", StructType(ice.NestedField(4, "Inner", "string"))),
)


@pytest.mark.parametrize("names", [("foo", "FOO"), ("s.Inner", "S.inner"), ("day", "Day")])
def test_bound_references_are_equal_however_their_names_were_written(names: tuple[str, str]) -> None:
    one, other = (Reference(name).bind(NESTED, False) for name in names)
    assert one == other
    assert hash(one) == hash(other)
    assert one != Reference("foo" if names[0] != "foo" else "day").bind(NESTED, False)


@pytest.mark.parametrize(
    "text",
    [
        "{} IS NULL",
        "NOT ({0} = 1 OR {0} > 5)",
        "{} IN (1, 2)",
        "bucket(16, {}) = 3",
        "truncate(10, {}) < 30",
        "{} = 1 AND {} != 7",
    ],
)
def test_bound_predicates_are_equal_however_their_names_were_written(text: str) -> None:
    count = text.count("{}")
    one, other, third = (
        parse(text.format(*[name] * max(count, 1))).bind(NESTED, False) for name in ("foo", "FoO", "foo")
    )
    assert one == other == third
    assert hash(one) == hash(other) == hash(third)
    assert one != parse("foo = 2").bind(NESTED, False)
    assert bool({one} & {other})


PATHS: list[tuple[str, Any, str]] = [
    ("bucket[25]", 10, "10"), ("identity", "a b", "a+b"), ("identity", 7, "7"), ("identity", 2**40, "1099511627776"), ("identity", None, "null"),
    ("identity", True, "true"), ("identity", Decimal("1.50"), "1.50"), ("identity", dt.date(2024, 1, 2), "2024-01-02"), ("year", 54, "2024"),
    ("month", 648, "2024-01"), ("truncate[4]", "abcd", "abcd"), ("truncate[10]", 40, "40"), ("void", None, "null"), ("identity", 1.5, "1.5"),
    ("zorder", "x", "x"),
]  # fmt: skip


@pytest.mark.parametrize(("transform", "value", "text"), PATHS, ids=[f"{t} {v!r}" for t, v, _ in PATHS])
def test_the_path_of_a_field_whose_column_is_gone_has_the_value_itself(transform: str, value: Any, text: str) -> None:
    schema = ice.Schema(ice.NestedField(1, "kept", "string"))
    fields = ice.PartitionField(1, 1000, "identity", "kept"), ice.PartitionField(2, 1001, transform, "gone")
    assert ice.PartitionSpec(*fields).partition_to_path(("x", value), schema) == f"kept=x/gone={text}"
    assert ice.PartitionSpec(*fields).partition_to_path({"kept": "x", "gone": value}, schema) == f"kept=x/gone={text}"
