"""Variants: Python objects to bytes and back, JSON, paths, and damage."""

from __future__ import annotations

import copy
import datetime as dt
import json
import os
import pickle
import struct
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import icefield as ice
from icefield import errors, variant
from icefield import expressions as ex
from icefield.variant import Variant

EAST = dt.timezone(dt.timedelta(hours=5, minutes=30))
UTC = dt.timezone.utc
NAIVE = dt.datetime(2017, 11, 16, 22, 31, 8, 1)  # noqa: DTZ001
ID = UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
EMPTY = b"\1\0\0"


@pytest.mark.parametrize(
    ("object_", "kind", "text"),
    [
        (None, "NULL", "null"),
        (True, "BOOLEAN_TRUE", "true"),
        (False, "BOOLEAN_FALSE", "false"),
        (-128, "INT8", "-128"),
        (128, "INT16", "128"),
        (-32769, "INT32", "-32769"),
        (2**31, "INT64", "2147483648"),
        (2**63, "DECIMAL16", "9223372036854775808"),
        (1.5, "DOUBLE", "1.5"),
        (float("inf"), "DOUBLE", '"Infinity"'),
        (Decimal("14.20"), "DECIMAL4", "14.20"),
        (Decimal("-1234567890.1"), "DECIMAL8", "-1234567890.1"),
        (Decimal("1E+3"), "DECIMAL4", "1000"),
        (Decimal(10) ** 37, "DECIMAL16", "1" + "0" * 37),
        ("é" * 40, "STRING", '"' + "é" * 40 + '"'),
        (b"\xca\xfe", "BINARY", '"yv4="'),
        (dt.date(1, 1, 1), "DATE", '"0001-01-01"'),
        (dt.time(22, 31, 8, 1), "TIME", '"22:31:08.000001"'),
        (NAIVE, "TIMESTAMPNTZ", '"2017-11-16T22:31:08.000001"'),
        (NAIVE.replace(tzinfo=UTC), "TIMESTAMPTZ", '"2017-11-16T22:31:08.000001+00:00"'),
        (NAIVE.replace(year=9999), "TIMESTAMPNTZ", '"9999-11-16T22:31:08.000001"'),
        (ID, "UUID", f'"{ID}"'),
        ({}, "VariantObject", "{}"),
        ([], "VariantArray", "[]"),
        ({"b": [1, {"ü": None}], "a": ""}, "VariantObject", '{"a":"","b":[1,{"ü":null}]}'),
    ],
    ids=repr,
)
def test_objects(object_: object, kind: str, text: str) -> None:
    made = Variant.from_python(object_)
    assert kind in repr(made)
    assert made.to_json() == text
    assert made.to_python() == object_
    assert type(made.to_python()) is type(object_) or isinstance(object_, (int, Decimal))
    for again in (Variant(made.metadata, made.value), pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        assert again == made
        assert hash(again) == hash(made)


@pytest.mark.parametrize(
    ("taken", "given_"),
    [
        ((1, 2), [1, 2]),
        (bytearray(b"x"), b"x"),
        (memoryview(b"x"), b"x"),
        (NAIVE.replace(tzinfo=EAST), NAIVE.replace(tzinfo=EAST)),
        ({"v": Variant.from_python([1])}, {"v": [1]}),
    ],
)
def test_other_forms(taken: object, given_: object) -> None:
    assert Variant.from_python(taken).to_python() == given_


@pytest.mark.parametrize(
    ("object_", "message"),
    [
        (10**38, "38 digits"),
        (Decimal("1E-39"), "38 digits"),
        (Decimal("NaN"), "not a value of a variant"),
        ({1: 2}, "names of fields are str"),
        pytest.param(object(), "not a value of a variant", id="object"),
        ({1, 2}, "not a value of a variant"),
        (dt.time(1, tzinfo=UTC), "not a value of a variant"),
    ],
    ids=str,
)
def test_refused_objects(object_: object, message: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        Variant.from_python(object_)


def test_depth() -> None:
    deep: Any = None
    for _ in range(1000):
        deep = [deep]
    assert Variant.from_python(deep).to_json() == "[" * 1000 + "null" + "]" * 1000
    with pytest.raises(errors.InvalidArgumentError, match="1000 levels"):
        Variant.from_python([deep])
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(errors.InvalidArgumentError, match="1000 levels"):
        Variant.from_python(endless)


@pytest.mark.parametrize(
    ("value", "object_"),
    [
        ("2cffffff7f", "+5881580-07-11"),
        ("34ffffffffffffff7f", "+294247-01-10T04:00:54.775807"),
        ("480100000000000000", "1970-01-01T00:00:00.000000001+00:00"),
        ("48e803000000000000", dt.datetime(1970, 1, 1, 0, 0, 0, 1, UTC)),
        ("44ffffffffffffffff", -1),
        ("380000003f", 0.5),
    ],
)
def test_what_python_lacks(value: str, object_: object) -> None:
    assert Variant(EMPTY, bytes.fromhex(value)).to_python() == object_


def test_equality_is_of_values() -> None:
    one = Variant.from_python({"a": 1, "b": [2]})
    # The same with its names the other way round, and its values too.
    other = Variant(b"\1\2\0\1\2ba", bytes.fromhex("02020100060008030100020c020c01"))
    assert other.to_python() == one.to_python()
    assert one == other
    assert hash(one) == hash(other)
    assert one != Variant.from_python({"a": 1.0, "b": [2]})
    assert one != {"a": 1, "b": [2]}


def test_paths() -> None:
    made = Variant.from_python({"a": {"b": [1, None]}, "user.name": "x"})
    found = {
        path: made.get(path) for path in ("$", "$.a.b[0]", "$.a['b'][1]", "$['user.name']", "$.a.b[2]", "$.A", "$[0]")
    }
    assert [None if one is None else one.to_python() for one in found.values()] == [
        made.to_python(),
        1,
        None,
        "x",
        None,
        None,
        None,
    ]
    assert found["$.a['b'][1]"] is not None
    assert found["$.A"] is None
    with pytest.raises(errors.InvalidArgumentError, match="character 3"):
        made.get("$.1")


@pytest.mark.parametrize(
    ("metadata", "value", "message"),
    [
        ("", "00", "metadata are empty"),
        ("010000", "", "value is empty"),
        ("010000", "0201000002000000", "field id 0"),
        ("01010001ff", "00", "not UTF-8"),
        ("010000", "03ff", "does not end"),
    ],
)
def test_damage(metadata: str, value: str, message: str) -> None:
    parts = (bytes.fromhex(metadata), bytes.fromhex(value))
    with pytest.raises(errors.CorruptDataError, match=message):
        Variant(*parts)
    ok = {"metadata": EMPTY, "value": b"\0"}
    array = pa.array([ok, None, dict(zip(("metadata", "value"), parts, strict=True))])
    for convert in (variant.to_json, variant.to_python):
        assert list(convert(array.slice(0, 2))) in ([pa.scalar("null"), pa.scalar(None, pa.string())], [None, None])
        with pytest.raises(errors.CorruptDataError, match=f"row 2: .*{message}"):
            convert(array)


def test_columns_of_any_binary_type() -> None:
    made = [Variant.from_python({"n": n}) for n in range(3)]
    rows = [{"value": one.value, "metadata": one.metadata} for one in made]
    for kind in (pa.binary(), pa.large_binary(), pa.binary_view()):
        array = pa.array(rows, pa.struct([("value", kind), ("metadata", kind)]))
        for column in (array, pa.chunked_array([array.slice(0, 1), array.slice(1)])):
            assert variant.to_python(column) == [{"n": 0}, {"n": 1}, {"n": 2}]
    for other in (pa.array([1]), pa.array([{"metadata": b""}]), pa.array([{"metadata": "", "value": ""}])):
        with pytest.raises(errors.InvalidArgumentError, match="expected variants"):
            variant.to_json(other)


leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**38) + 1, 10**38 - 1),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
    st.dates(),
    st.times(),
    st.datetimes(),
    st.datetimes(timezones=st.just(UTC)),
    st.uuids(),
    st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**20), max_value=10**20),
)
objects = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=300) | st.dictionaries(st.text(), inner, max_size=20),
    max_leaves=400,
)


#: `make test-random` draws more, and others; without a deadline, as a busy machine misses one.
DRAWS = settings(
    max_examples=int(os.environ.get("ICEFIELD_RANDOM_CASES", "50")),
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
SEED = int(os.environ.get("ICEFIELD_RANDOM_SEED", "20201121"))


@seed(SEED)
@DRAWS
@given(objects)
def test_round_trip(object_: object) -> None:
    made = Variant.from_python(object_)
    assert made.to_python() == object_
    assert Variant(made.metadata, made.value) == made
    json.loads(made.to_json())


@seed(SEED)
@DRAWS
@given(objects, st.data())
def test_no_damage_crashes(object_: object, data: st.DataObject) -> None:
    made = Variant.from_python(object_)
    value = bytearray(made.value)
    value[data.draw(st.integers(0, len(value) - 1))] = data.draw(st.integers(0, 255))
    try:
        damaged = Variant(made.metadata, bytes(value))
        damaged.to_python(), damaged.to_json(), repr(damaged)
    except (errors.CorruptDataError, errors.UnsupportedFeatureError):
        pass


@pytest.fixture
def events(tmp_path: Any) -> ice.Table:
    """Give a table of events, by number: a kind, a list of tags, a double for every third."""
    catalog = ice.load_catalog("local", uri="sqlite:///:memory:", warehouse=str(tmp_path))
    catalog.create_namespace("ns")
    schema = ice.Schema(ice.NestedField(1, "id", "long"), ice.NestedField(2, "v", "variant"))
    table = catalog.create_table("ns.events", schema=schema, properties={"format-version": "3"})
    made = [Variant.from_python(event(number)) for number in range(30)]
    parts = [None if number == 7 else {"metadata": one.metadata, "value": one.value} for number, one in enumerate(made)]
    arrow = table.schema().to_arrow()
    rows = {"id": pa.array(range(30)), "v": pa.array(parts, arrow.field("v").type)}
    table.append(pa.table(rows, schema=arrow))
    return table


def event(number: int) -> dict[str, Any]:
    """Give an event."""
    third = {"third": number / 2} if number % 3 == 0 else {}
    return {"kind": "even" if number % 2 == 0 else "odd", "at": {"tags": [number, f"t{number}"]}, **third}


@pytest.mark.parametrize(
    ("text", "term", "wanted"),
    [
        ("v:kind::string = 'even'", None, lambda n: n % 2 == 0),
        ("v:at.tags[0]::long > 20", ex.GreaterThan(ex.extract("v", "$.at.tags[0]", "long"), 20), lambda n: n > 20),
        ("v:at.tags[1]::string LIKE 't1%'", None, lambda n: str(n).startswith("1")),
        ("v:third::double IS NOT NULL", ex.NotNull(ex.extract("v", "$['third']", "double")), lambda n: n % 3 == 0),
        ("v:at.tags[0]::int IN (3, 7, 40) OR id = 8", None, lambda n: n in (3, 8)),
        ("v:kind::long = 1", None, lambda _: False),
        ("v IS NOT NULL", None, lambda _: True),
    ],
)
def test_filters(events: ice.Table, text: str, term: Any, wanted: Any) -> None:
    found = [number for number in range(30) if number != 7 and wanted(number)]
    for row_filter in [text, *([] if term is None else [term])]:
        rows = events.scan(row_filter=row_filter, selected_fields=("id", "v")).to_arrow()
        assert rows.column("id").to_pylist() == found
        assert variant.to_python(rows.column("v")) == [event(number) for number in found]
        assert events.scan(row_filter=row_filter).count() == len(found)
    if term is not None:
        assert str(term) == text
        assert ice.expressions.parse(text) == term
        assert ice.expressions.from_json(term.to_json()) == term


def test_columns_are_made_of_objects_and_texts() -> None:
    column = variant.from_python([{"a": [1, None]}, None, Variant.from_python(None), dt.date(2024, 1, 1)])
    assert column.null_count == 1
    assert [str(field.type) for field in column.type] == ["binary", "binary"]
    assert variant.to_json(column).to_pylist() == ['{"a":[1,null]}', None, "null", '"2024-01-01"']
    texts = ['{"b": 1.50, "a": [true, 1e2]}', None, "null", "12345678901234567890"]
    for type_ in (pa.string(), pa.large_string(), pa.string_view()):
        column = variant.from_json(pa.array(texts, type_))
        assert variant.to_python(column) == [
            {"a": [True, 100.0], "b": Decimal("1.50")},
            None,
            None,
            12345678901234567890,
        ]
        assert column.null_count == 1
    assert Variant.from_json("[1]") == Variant.from_python([1])
    assert variant.from_json(pa.array([], pa.string())).to_pylist() == variant.from_python([]).to_pylist() == []
    for make, wrong, message in [
        (variant.from_python, [1, {1: 2}], "row 1: .*names of fields are str"),
        (variant.from_json, pa.array(["1", '{"a": 1,}']), "row 1: JSON, at character 9: expected the name of a field"),
        (variant.from_json, pa.array(['{"a": 1, "a": 2}']), "row 0: .*two fields"),
        (variant.from_json, pa.array([1]), "expected JSON texts"),
    ]:
        with pytest.raises(errors.InvalidArgumentError, match=message):
            make(wrong)  # type: ignore[operator]


def test_terms_of_variants() -> None:
    term = ex.extract("a.v", "$['b c'][1]", "decimal(9, 2)")
    assert str(term) == 'a.v:"b c"[1]::decimal(9, 2)'
    assert pickle.loads(pickle.dumps(term)) == term
    for arguments in (("v", "b", "long"), ("v", "$.b", "unknown"), ("v", "$.b", "variant")):
        with pytest.raises(errors.InvalidArgumentError):
            ex.extract(*arguments)
    schema = ice.Schema(ice.NestedField(1, "id", "long"))
    with pytest.raises(errors.IcefieldError, match="expected variant"):
        ice.expressions.parse("id:a::long = 1").bind(schema)


def test_bounds_of_shapes(tmp_path: Any) -> None:
    def point(x: float, y: float) -> bytes:
        return struct.pack("<BIdd", 1, 1, x, y)

    fields = [ice.NestedField(1, "g", "geometry"), ice.NestedField(2, "e", "geography")]
    for kind in ("parquet", "orc"):
        catalog = ice.load_catalog("local", uri="sqlite:///:memory:", warehouse=str(tmp_path / kind))
        catalog.create_namespace("ns")
        properties = {"format-version": "3", "write.format.default": kind}
        table = catalog.create_table("ns.shapes", schema=ice.Schema(*fields), properties=properties)
        shapes = [point(1, 2), None, point(float("nan"), float("nan")), point(-3, 5)]
        arrow = table.schema().to_arrow()
        table.append(pa.table({"g": shapes, "e": shapes}, schema=arrow))
        file = table.inspect.files().to_pylist()[0]
        assert dict(file["lower_bounds"]) == {1: struct.pack("<dd", -3, 2)}
        assert dict(file["upper_bounds"]) == {1: struct.pack("<dd", 1, 5)}
        table.append(pa.table({"g": [b"no shape", point(1, 2)], "e": [None, None]}, schema=arrow))
        files = table.inspect.files().to_pylist()
        assert sorted(len(file["lower_bounds"] or ()) for file in files) == [0, 1]
