"""Which Python objects stand for values, and what is refused."""

import datetime as dt
from decimal import Decimal
from uuid import UUID

import pytest

from icefield import errors, types, values

EAST = dt.timezone(dt.timedelta(hours=5, minutes=30))
DAY = dt.date(2017, 11, 16)
NAIVE = dt.datetime(2017, 11, 16, 22, 31, 8, 1)  # noqa: DTZ001
AWARE = NAIVE.replace(tzinfo=dt.timezone.utc)
MICROS = 1510871468000001
ID = UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")


@pytest.mark.parametrize(
    ("type_", "forms", "given"),
    [
        ("boolean", [True], True),
        ("int", [34], 34),
        ("long", [-(2**63)], -(2**63)),
        ("double", [1.5], 1.5),
        ("double", [2], 2.0),
        ("decimal(9, 2)", [Decimal("14.2"), Decimal("1.42e1"), "14.20", Decimal("14.200")], Decimal("14.20")),
        ("decimal(38, 0)", [10**37, Decimal(10) ** 37], Decimal(10**37)),
        ("date", [DAY, 17486, "2017-11-16"], 17486),
        ("time", [dt.time(22, 31, 8, 1), 81068000001, "22:31:08.000001"], 81068000001),
        ("timestamp", [NAIVE, MICROS, "2017-11-16T22:31:08.000001"], MICROS),
        ("timestamptz", [AWARE, AWARE.astimezone(EAST), MICROS, "2017-11-16T22:31:08.000001+00:00"], MICROS),
        ("timestamp_ns", [NAIVE, MICROS * 1000, "2017-11-16T22:31:08.000001"], MICROS * 1000),
        ("timestamptz_ns", [AWARE, MICROS * 1000 + 0], MICROS * 1000),
        ("timestamp", [dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)], -1),  # noqa: DTZ001
        ("date", [dt.date(1, 1, 1)], -719162),
        ("string", ["é😀", ""], None),
        ("uuid", [ID, ID.bytes, str(ID)], ID),
        ("fixed[2]", [b"\0\1", bytearray(b"\0\1"), memoryview(b"\0\1")], b"\0\1"),
        ("binary", [b"", b"\xff"], None),
    ],
)
def test_forms_of_a_value(type_, forms, given):
    for form in forms:
        expected = form if given is None else given
        got = values.from_bytes(values.to_bytes(form, type_), type_)
        assert (got, type(got)) == (expected, type(expected))
        got = values.from_json(values.to_json(form, type_), types.Type(type_))
        assert (got, type(got)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("boolean", 1),
        ("int", 2**31),
        ("int", True),
        ("int", 1.0),
        ("int", "1"),
        ("long", 2**63),
        ("float", "1.5"),
        ("decimal(9, 2)", Decimal("0.001")),
        ("decimal(9, 2)", Decimal("NaN")),
        ("decimal(9, 2)", 1.5),
        ("decimal(38, 0)", 10**40),
        ("date", NAIVE),
        ("date", "2017-02-29"),
        ("time", dt.time(1, tzinfo=dt.timezone.utc)),
        ("timestamp", AWARE),
        ("timestamptz", NAIVE),
        ("timestamp", DAY),
        ("timestamp_ns", dt.datetime(2300, 1, 1)),  # noqa: DTZ001
        ("string", b"a"),
        ("uuid", b"short"),
        ("uuid", 5),
        ("fixed[2]", b"\0"),
        ("binary", "text"),
        ("binary", [1, 2]),
        ("binary", None),
    ],
)
def test_what_is_no_value_of_the_type(type_, value):
    with pytest.raises(errors.InvalidArgumentError, match=r"type|the"):
        values.to_bytes(value, type_)


def test_nested_values():
    element = types.NestedField(3, "t", "timestamptz", required=True)
    type_ = types.StructType(
        types.NestedField(1, "l", types.ListType(2, types.StructType(element), element_required=False)),
        types.NestedField(4, "m", types.MapType(5, "date", 6, "decimal(9, 2)", value_required=False)),
    )
    value = {"l": [{"t": AWARE}, None], "m": {DAY: Decimal("1.25"), 0: None}}
    text = values.to_json(value, type_)
    expected = '{"1":[{"3":"2017-11-16T22:31:08.000001+00:00"},null],'
    assert text == expected + '"4":{"keys":["2017-11-16","1970-01-01"],"values":["1.25",null]}}'
    assert values.from_json(text, type_) == {"l": [{"t": MICROS}, None], "m": {17486: Decimal("1.25"), 0: None}}
    with pytest.raises(errors.InvalidArgumentError, match="struct"):
        values.to_bytes(value, type_)


def test_null_is_no_value_but_in_json():
    assert (values.to_json(None, "int"), values.from_json("null", "int")) == ("null", None)


def test_corrupt_bytes_and_json_say_what_is_wrong():
    with pytest.raises(errors.CorruptDataError, match="expected 4 bytes for a value of type .*, got 3"):
        values.from_bytes(b"abc", "int")
    with pytest.raises(errors.CorruptDataError, match=r'"x" is not a value of type int'):
        values.from_json('"x"', "int")
    with pytest.raises(errors.UnsupportedFeatureError, match="geometry"):
        values.to_json(b"", "geometry")


def test_bounds():
    assert values.truncate_bound("a\ud7ff!", "string", 2, upper=True) == "a\ue000"
    assert values.truncate_bound("\U0010ffff\U0010ffff", "string", 1, upper=True) is None
    assert values.truncate_bound(b"\0\xff\1", "binary", 2, upper=True) == b"\1"
    assert values.truncate_bound(7, "int", 1, upper=True) == 7
