"""``hash.json`` and the ``transform*.json`` through ``icefield.transforms``."""

import json
import struct

import pyarrow as pa
import pytest
from vectors import cases, same, typed

import icefield as ice
from icefield import errors

pytestmark = pytest.mark.golden

LARGEST = 2**31 - 1


def parameters(name):
    return [pytest.param(case, id=f"{name}-{number}") for number, case in cases(name)]


def arrow_type(type_):
    """The Arrow type of a column of an Iceberg type."""
    kind, _, arguments = type_.rstrip(")]").replace("[", "(").partition("(")
    simple = {
        "boolean": pa.bool_(),
        "int": pa.int32(),
        "long": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "date": pa.date32(),
        "time": pa.time64("us"),
        "timestamp": pa.timestamp("us"),
        "timestamptz": pa.timestamp("us", "UTC"),
        "timestamp_ns": pa.timestamp("ns"),
        "timestamptz_ns": pa.timestamp("ns", "UTC"),
        "string": pa.string(),
        "binary": pa.binary(),
        "uuid": pa.binary(16),
    }
    if kind == "decimal":
        return pa.decimal128(*(int(argument) for argument in arguments.split(",")))
    return pa.binary(int(arguments)) if kind == "fixed" else simple[kind]


def column(value, type_):
    """One row, physical."""
    arrow = arrow_type(type_)
    if isinstance(value, int) and not pa.types.is_integer(arrow) and not pa.types.is_boolean(arrow):
        storage = pa.int32() if pa.types.is_date32(arrow) else pa.int64()
        return pa.array([value], storage).view(arrow)
    return pa.array([value.bytes if type_ == "uuid" and value else value], arrow)


def physical(array):
    """The row as a physical value."""
    if pa.types.is_temporal(array.type):
        array = array.view(pa.int32() if pa.types.is_date32(array.type) else pa.int64())
    return array[0].as_py()


def java_hash(case):
    value = typed(case["value"], case["type"])
    match case["input"]:
        case "int" | "long":
            return ice.murmur3_32(struct.pack("<q", int(value)))
        case "nanos_as_micros":
            return ice.murmur3_32(struct.pack("<q", value // 1000))
        case "float" | "double":
            return ice.murmur3_32(canonical(value))
        case "string":
            return ice.murmur3_32(value.encode())
        case "decimal":  # also of more digits than the type has
            sign, digits, _ = value.as_tuple()
            unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
            length = (unscaled + (unscaled < 0)).bit_length() // 8 + 1
            return ice.murmur3_32(unscaled.to_bytes(length, "big", signed=True))
        case "uuid" | "bytes":
            return ice.murmur3_32(ice.values.to_bytes(value, case["type"]))
        case other:
            return pytest.fail(f"no runner knows the input {other}")


def canonical(number):
    """Appendix B, note 5."""
    return struct.pack("<Q", 0x7FF8 << 48) if number != number else struct.pack("<d", number or 0.0)  # noqa: PLR0124


@pytest.mark.parametrize("case", parameters("hash.json"))
def test_hash(case):
    assert java_hash(case) == case["hash"]
    bucket = ice.transforms.bucket(LARGEST)
    # A value of 39 digits is none of its type here (docs/differences.md).
    is_value = case["input"] != "decimal" or len(typed(case["value"], case["type"]).as_tuple().digits) <= 38
    if bucket.result_type(case["type"]) is not None and is_value:
        expected = (case["hash"] & LARGEST) % LARGEST
        value = typed(case["value"], case["type"])
        assert bucket.scalar(value, type=case["type"]) == expected
        assert bucket(column(value, case["type"])).to_pylist() == [expected]


@pytest.mark.parametrize("case", parameters("transforms.json"))
def test_results(case):
    value = typed(case["value"], case["type"])
    for name, (result, human, *_) in case["results"].items():
        transform = ice.transforms.parse(name)
        result_type = str(transform.result_type(case["type"]))
        expected = typed(result, result_type)
        got = transform.scalar(value, type=case["type"])
        assert same(got, expected)
        human_text = transform.to_human_string(case["type"], got)
        if result_type in {"float", "double"} and len(human_text) < len(human):
            # The shortest text: docs/differences.md.
            assert typed(human_text, result_type) == typed(human, result_type) == got
        else:
            assert human_text == human
        if case["type"] != "unknown":
            array = physical(transform(column(value, case["type"])))
            assert array == (expected.bytes if hasattr(expected, "bytes") else expected) or array != array  # noqa: PLR0124


@pytest.mark.parametrize("case", parameters("transform_meta.json"))
def test_meta(case):
    transform = ice.transforms.parse(case["transform"])
    assert str(transform) == case["string"]
    for name in ("dedup_name", "preserves_order", "is_identity", "is_void"):
        assert getattr(transform, name) == case[name]
    for other, expected in case["satisfies_order_of"].items():
        assert transform.satisfies_order_of(other) == expected
    for source, expected in case["result_types"].items():
        result = transform.result_type(source)
        assert result == (None if expected is None else ice.types.Type(expected)), source
        assert json.loads(result.to_json()) if result else True


@pytest.mark.parametrize("case", parameters("transform_parse.json"))
def test_parse(case):
    if "error" in case:
        with pytest.raises(errors.InvalidArgumentError):
            ice.transforms.parse(case["string"])
        return
    transform = ice.transforms.parse(case["string"])
    assert (str(transform), transform.is_known) == (case["parsed"], case["known"])
