"""Expressions: text, JSON, PyIceberg's names, binding, projection, residuals, rows."""

import datetime as dt
import decimal
import functools
import json
import math
import operator
import pickle
import uuid

import pyarrow as pa
import pytest

import icefield as ice
from icefield.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    NotEqualTo,
    NotIn,
    NotNaN,
    NotNull,
    NotStartsWith,
    Or,
    Reference,
    StartsWith,
    from_json,
    parse,
    transform,
)

SCHEMA = ice.Schema(
    ice.NestedField(1, "id", "long", required=True),
    ice.NestedField(2, "name", "string"),
    ice.NestedField(3, "ts", "timestamptz"),
    ice.NestedField(4, "x", "double"),
    ice.NestedField(5, "price", "decimal(9, 2)"),
    ice.NestedField(6, "local", "timestamp"),
)
SPEC = {
    "spec-id": 0,
    "fields": [
        {"name": "id_bucket", "transform": "bucket[16]", "source-id": 1, "field-id": 1000},
        {"name": "day", "transform": "day", "source-id": 3, "field-id": 1001},
    ],
}
UTC = dt.timezone.utc

BY_NAME = {
    "TRUE": AlwaysTrue(),
    "FALSE": AlwaysFalse(),
    "id = 5": EqualTo("id", 5),
    "id != 5": NotEqualTo(Reference("id"), 5),
    "id < 5": LessThan("id", 5),
    "id <= 5": LessThanOrEqual("id", 5),
    "id > 5": GreaterThan("id", 5),
    "id >= 5": GreaterThanOrEqual("id", 5),
    "id IN (1, 2)": In("id", {1, 2}),
    "id NOT IN (1, 2)": NotIn("id", (1, 2)),
    "name IS NULL": IsNull("name"),
    "name IS NOT NULL": NotNull("name"),
    "x IS NAN": IsNaN("x"),
    "x IS NOT NAN": NotNaN("x"),
    "name LIKE 'ab%'": StartsWith("name", "ab"),
    "name NOT LIKE 'ab%'": NotStartsWith("name", "ab"),
    "bucket(16, id) = 3": EqualTo(transform("bucket[16]", "id"), 3),
    "id > 5 AND x IS NAN AND name IS NULL": And(GreaterThan("id", 5), "x IS NAN", IsNull("name")),
    "id > 5 OR x IS NAN OR name IS NULL": Or("id > 5", IsNaN("x"), "name IS NULL"),
    "NOT (id > 5)": Not("id > 5"),
    "day(ts) = DATE '2020-01-02'": EqualTo(transform("day", "ts"), dt.date(2020, 1, 2)),
    "x = 1.5": EqualTo("x", 1.5),
    "price = DECIMAL '1.50'": EqualTo("price", decimal.Decimal("1.50")),
    "name = X'00ff'": EqualTo("name", b"\x00\xff"),
    "name = TRUE": EqualTo("name", True),
    "ts = TIMESTAMP '2020-01-02T03:04:05'": EqualTo("ts", dt.datetime(2020, 1, 2, 3, 4, 5)),  # noqa: DTZ001
    "ts = TIMESTAMPTZ '2020-01-02T03:04:05+00:00'": EqualTo("ts", dt.datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)),
    "u = UUID '00000000-0000-0000-0000-000000000001'": EqualTo("u", uuid.UUID(int=1)),
    "id = DECIMAL '18446744073709551616'": EqualTo("id", 1 << 64),
}


@pytest.mark.parametrize("text", BY_NAME)
def test_constructors_are_the_text(text):
    assert str(BY_NAME[text]) == text
    assert parse(text) == BY_NAME[text]
    assert hash(parse(text)) == hash(BY_NAME[text])
    assert pickle.loads(pickle.dumps(BY_NAME[text])) == BY_NAME[text]


def test_operators():
    assert parse("id = 1") & "x IS NAN" == parse("id = 1 AND x IS NAN")
    assert "id = 1" & parse("x IS NAN") == parse("id = 1 AND x IS NAN")
    assert "id = 1" | parse("x IS NAN") == parse("id = 1 OR x IS NAN")
    assert parse("id = 1") | parse("x IS NAN") == parse("id = 1 OR x IS NAN")
    assert ~parse("id = 1") == parse("NOT id = 1")
    assert ~~parse("id = 1") == parse("id = 1")
    with pytest.raises(TypeError, match="&"):
        bool(parse("id = 1") and parse("id = 2"))


def test_long_chains_do_not_grow_deep():
    terms = [EqualTo("id", n) for n in range(1200)]
    bound = functools.reduce(operator.or_, terms).bind(SCHEMA)
    assert bound.evaluate(pa.table({"id": [1199, 1200]})).to_pylist() == [True, False]


def test_json_both_ways():
    expr = {
        "type": "and",
        "left": {"type": "gt", "term": "id", "value": 5},
        "right": {"type": "is-null", "term": "name"},
    }
    assert json.loads(from_json(expr).to_json()) == expr
    assert from_json(json.dumps(expr)) == from_json(expr) == parse("id > 5 AND name IS NULL")
    assert from_json(True) == AlwaysTrue()
    typed = from_json({"type": "eq", "term": "price", "value": "1.50"}, SCHEMA)
    assert json.loads(typed.bind(SCHEMA).to_json()) == {"type": "eq", "term": "price", "value": "1.50"}
    with pytest.raises(ice.errors.CorruptDataError, match="/right"):
        from_json({**expr, "right": {"type": "like", "term": "name"}})


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("id > 5", '{"type":"gt","term":"id","value":5}'),
        ("id > 99999999999999999999", "false"),
        ("id IS NULL", "false"),
        ("price = 1.5", '{"type":"eq","term":"price","value":"1.50"}'),
        ("price < 1.505", '{"type":"lt","term":"price","value":"1.51"}'),
        ("price < DECIMAL '1.505'", '{"type":"lt-eq","term":"price","value":"1.50"}'),
        ("id IN (7, 7)", '{"type":"eq","term":"id","value":7}'),
        ("ts > TIMESTAMP '2020-01-01'", '{"type":"gt","term":"ts","value":"2020-01-01T00:00:00+00:00"}'),
        ("ts > '2020-01-01'", '{"type":"gt","term":"ts","value":"2020-01-01T00:00:00+00:00"}'),
        ("ts > DATE '2020-01-01'", '{"type":"gt","term":"ts","value":"2020-01-01T00:00:00+00:00"}'),
        ("ts > '2020-01-01 01:00:00+02:00'", '{"type":"gt","term":"ts","value":"2019-12-31T23:00:00+00:00"}'),
        ("local = '2020-01-01'", '{"type":"eq","term":"local","value":"2020-01-01T00:00:00"}'),
        ("local = '2020-01-01 10:00:00'", '{"type":"eq","term":"local","value":"2020-01-01T10:00:00"}'),
        ("local IN ('2020-01-01', '2020-01-01')", '{"type":"eq","term":"local","value":"2020-01-01T00:00:00"}'),
    ],
)
def test_binding(text, bound):
    assert json.loads(parse(text).bind(SCHEMA).to_json()) == json.loads(bound)


@pytest.mark.parametrize("expr", [EqualTo("ts", "2020-01-01"), EqualTo("ts", dt.date(2020, 1, 1))])
def test_dates_of_programs_are_midnights_in_utc(expr):
    bound = pickle.loads(pickle.dumps(expr)).bind(SCHEMA)
    assert json.loads(bound.to_json())["value"] == "2020-01-01T00:00:00+00:00"
    for moment in ("2020-01-01 10:00", "2020-01-01T10:00:00", dt.datetime(2020, 1, 1, 10)):  # noqa: DTZ001
        bound = EqualTo("ts", moment).bind(SCHEMA)
        assert json.loads(bound.to_json())["value"] == "2020-01-01T10:00:00+00:00"
    # The protocol's JSON has neither dates nor texts without a zone for a moment.
    for refused in ("2020-01-01", "2020-01-01T10:00:00"):
        with pytest.raises(ice.errors.ValidationError, match="timestamptz"):
            from_json({"type": "eq", "term": "ts", "value": refused}).bind(SCHEMA)


@pytest.mark.parametrize("text", ["nope = 1", "id = 'x'", "name IS NAN", "hour(name) = 1", "ID = 1"])
def test_binding_refuses(text):
    with pytest.raises(ice.errors.InvalidArgumentError):
        parse(text).bind(SCHEMA)


def test_case():
    assert parse("ID = 1").bind(SCHEMA, case_sensitive=False).field_ids == [1]


@pytest.mark.parametrize("text", ["id >", "id > 5 name", "name LIKE '%x'", "id = NULL", "'open"])
def test_errors_of_text_name_the_character(text):
    with pytest.raises(ice.errors.InvalidArgumentError, match=r"character \d+"):
        parse(text)


@pytest.mark.parametrize("literal", [None, [1], math.nan, object()])
def test_what_is_no_literal(literal):
    with pytest.raises(ice.errors.InvalidArgumentError):
        EqualTo("id", literal)


def test_projection_and_residual():
    expr = parse("id = 5 AND ts >= TIMESTAMP '2020-01-01 12:00:00 UTC'")
    assert str(expr.project(SPEC, SCHEMA)) == "id_bucket = 7 AND day >= DATE '2020-01-01'"
    assert str(expr.project(json.dumps(SPEC), SCHEMA, inclusive=False)) == "FALSE"
    later = expr.residual(SPEC, SCHEMA, {"id_bucket": 7, "day": dt.date(2020, 1, 2)})
    assert str(later) == "id = 5"
    assert str(expr.residual(SPEC, SCHEMA, [7, 18262])) == str(expr.bind(SCHEMA))
    assert str(expr.residual(SPEC, SCHEMA, (8, None))) == "FALSE"
    with pytest.raises(ice.errors.InvalidArgumentError, match="2 fields"):
        expr.residual(SPEC, SCHEMA, [7])


ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int64()),
        "name": pa.array(["ab", None, "abc", ""]).dictionary_encode(),
        "x": pa.array([math.nan, None, -0.0, 1.5]),
        "st": pa.array([{"a": 1}, None, {"a": None}, {"a": 4}]),
    }
)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("name LIKE 'ab%'", [1, 3]),
        ("name != 'ab'", [2, 3, 4]),
        ("NOT name < 'b'", []),
        ("x < 0.0", [3]),
        ("x > 0.0", [4]),
        ("x IS NAN", [1]),
        ("x IS NOT NAN", [2, 3, 4]),
        ("st.a IS NULL", [2, 3]),
        ("truncate(1, name) = 'a'", [1, 3]),
        ("id IN (1, 4, 9) AND st.a >= 4", [4]),
    ],
)
@pytest.mark.parametrize("of", [lambda rows: rows, lambda rows: rows.to_batches()[0], lambda rows: rows.to_reader(1)])
def test_rows(text, ids, of):
    mask = parse(text).evaluate(of(ROWS))
    assert isinstance(mask, pa.BooleanArray)
    assert mask.null_count == 0
    assert ROWS.filter(mask)["id"].to_pylist() == ids


def test_rows_by_field_id():
    schema = pa.schema([pa.field("renamed", pa.int64(), metadata={"PARQUET:field_id": "1"})])
    rows = pa.record_batch([pa.array([4, 5])], schema=schema)
    assert parse("id = 5").bind(SCHEMA).evaluate(rows).to_pylist() == [False, True]
    with pytest.raises(ice.errors.InvalidArgumentError, match="name"):
        parse("name = 'a'").bind(SCHEMA).evaluate(rows)
