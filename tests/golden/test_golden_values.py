"""``single_binary.json``, ``single_json.json`` and ``bounds.json`` through ``icefield.values``."""

import json
from decimal import Decimal

import pytest
from vectors import cases, rounded, same, typed

from icefield import errors, values

pytestmark = pytest.mark.golden


#: Units of a day.
DAY = {"timestamp": 86_400_000_000, "timestamp_ns": 86_400_000_000_000}


def of_kind(name, *kinds):
    return [pytest.param(case, id=f"{name}-{number}") for number, case in cases(name) if case["kind"] in kinds]


@pytest.mark.parametrize("case", of_kind("single_binary.json", "value"))
def test_binary_both_ways(case):
    value = typed(case["value"], case["type"])
    assert values.to_bytes(value, case["type"]).hex() == case["bytes"]
    assert same(values.from_bytes(bytes.fromhex(case["bytes"]), case["type"]), value)


@pytest.mark.parametrize("case", of_kind("single_binary.json", "read"))
def test_binary_read(case):
    data = bytes.fromhex(case["bytes"])
    if "error" in case:
        with pytest.raises(errors.CorruptDataError):
            values.from_bytes(data, case["type"])
    else:
        expected = typed(case["value"], case["type"])
        if case["type"] in DAY and 4 <= len(data) < 8:
            # They were a date's, which the library does not promote (docs/differences.md).
            expected = typed(case["value"] * DAY[case["type"]], case["type"])
        assert same(values.from_bytes(data, case["type"]), expected)


def is_read_here(parsed, type_):
    """Whether a value is read that the library refuses (docs/differences.md)."""
    is_whole = isinstance(parsed, int) and not isinstance(parsed, bool)
    of_fractions = isinstance(type_, str) and type_.startswith(("float", "double", "decimal"))
    return has_null_in_map(parsed, type_) or (is_whole and of_fractions)


def has_null_in_map(parsed, type_):
    """Whether a map has a null value: the library fails on it (docs/differences.md)."""
    if not isinstance(type_, dict) or parsed is None:
        return False
    if type_["type"] == "map":
        found = parsed.get("values", []) if isinstance(parsed, dict) else []
        return None in found or any(has_null_in_map(value, type_["value"]) for value in found)
    if type_["type"] == "list":
        return isinstance(parsed, list) and any(has_null_in_map(item, type_["element"]) for item in parsed)
    fields = type_["fields"] if isinstance(parsed, dict) else []
    return any(has_null_in_map(parsed.get(str(field["id"])), field["type"]) for field in fields)


def same_json(written, expected, type_):
    """Compare two JSON texts of one value."""
    written, expected = json.loads(written), json.loads(expected)
    if type_ == "float" and isinstance(expected, float):
        # Java 17 gives some floats more digits than are needed (docs/differences.md).
        written, expected = rounded(written), rounded(expected)
    assert same(written, expected) or (not isinstance(expected, float) and written == expected)


@pytest.mark.parametrize("case", of_kind("single_json.json", "write"))
def test_json_written(case):
    value = typed(case["value"], case["type"])
    written = values.to_json(value, case["type"])
    same_json(written, case["json"], case["type"])
    if "read_error" in case:
        with pytest.raises(errors.CorruptDataError):
            values.from_json(written, case["type"])
    else:
        expected = typed(case["read_back"], case["type"]) if "read_back" in case else value
        assert same(values.from_json(written, case["type"]), expected)


def is_json(text):
    """Whether a text is one JSON value and no more; a number beyond all doubles is none (docs/differences.md)."""
    try:
        parsed = json.loads(text, parse_constant=float)
    except json.JSONDecodeError:
        return False
    return not isinstance(parsed, float) or abs(parsed) != float("inf")


@pytest.mark.parametrize("case", of_kind("single_json.json", "read"))
def test_json_read(case):
    if "error" in case and is_json(case["json"]) and is_read_here(json.loads(case["json"]), case["type"]):
        assert values.from_json(case["json"], case["type"]) is not None
        return
    if "error" in case or not is_json(case["json"]):
        with pytest.raises(errors.IcefieldError):
            values.from_json(case["json"], case["type"])
        return
    value = values.from_json(case["json"], case["type"])
    assert same(value, typed(case["value"], case["type"]))
    if isinstance(value, Decimal) and len(value.as_tuple().digits) > int(case["type"].partition("(")[2].split(",")[0]):
        with pytest.raises(errors.InvalidArgumentError):  # docs/differences.md
            values.to_json(value, case["type"])
    elif "written" in case:
        same_json(values.to_json(value, case["type"]), case["written"], case["type"])


@pytest.mark.parametrize("case", of_kind("bounds.json", "string", "binary"))
def test_truncated_bounds(case):
    given = case["value"]
    if case["kind"] == "binary":
        given = given[: len(given) // 2 * 2]  # a set may give half a byte at the end
    value, lower, upper = (typed(part, case["kind"]) for part in (given, case["lower"], case["upper"]))
    assert values.truncate_bound(value, case["kind"], case["length"]) == lower
    assert values.truncate_bound(value, case["kind"], case["length"], upper=True) == upper
