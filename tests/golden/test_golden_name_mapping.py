"""``name_mapping.json`` through ``icefield.name_mapping.NameMapping``; what needs a data file is tested in Rust."""

import json

import pytest
from vectors import cases

import icefield as ice
from icefield.name_mapping import NameMapping

pytestmark = pytest.mark.golden


def of_kind(kind):
    return [
        pytest.param(case, id=f"name_mapping.json-{number}")
        for number, case in cases("name_mapping.json")
        if case["kind"] == kind
    ]


def sets(fields):
    """Entries whose names have no order, and whose id may be null."""
    return [
        {
            "field-id": field.get("field-id"),
            "names": sorted(field.get("names", [])),
            "fields": None if field.get("fields") is None else sets(field["fields"]),
        }
        for field in fields
    ]


def nameless(fields):
    """Whether an entry has no id: the specification allows it, the Java library fails (docs/differences.md)."""
    listed = fields if isinstance(fields, list) else []
    return any(
        isinstance(field, dict) and (field.get("field-id") is None or nameless(field.get("fields"))) for field in listed
    )


def without_nested(fields):
    """Whether an entry has `"fields": null`: PyIceberg writes it, the Java library refuses it (docs/differences.md)."""
    listed = fields if isinstance(fields, list) else []
    return any(
        isinstance(field, dict)
        and (("fields" in field and field["fields"] is None) or without_nested(field.get("fields")))
        for field in listed
    )


def entry(field):
    """What an entry says, but of those below it."""
    return None if field is None else (field.field_id, sorted(field.names))


def below(fields):
    """All entries, those below others included."""
    return [entry for field in fields for entry in (field, *below(field.fields))]


@pytest.mark.parametrize("case", of_kind("parse"))
def test_parse(case):
    text = case["json"] if isinstance(case["json"], str) else json.dumps(case["json"])
    if "error" in case and not nameless(json.loads(text)) and not without_nested(json.loads(text)):
        with pytest.raises(ice.IcefieldError):
            NameMapping.from_json(text)
        return
    mapping = NameMapping.from_json(text)
    written = case.get("written", case["json"])
    written = json.loads(written) if isinstance(written, str) else written
    assert sets(json.loads(mapping.to_json())) == sets(written)
    assert NameMapping.from_json(mapping.to_json()) == mapping
    for path, expected in case.get("by_name", {}).items():
        found = mapping.find(*path.split("."))
        assert entry(found) == (None if expected is None else (expected.get("field-id"), sorted(expected["names"])))
    for field_id, expected in case.get("by_id", {}).items():
        found = [field for field in below(mapping.fields) if field.field_id == int(field_id)]
        assert [entry(field) for field in found] == [(expected.get("field-id"), sorted(expected["names"]))]


@pytest.mark.parametrize("case", of_kind("create"))
def test_create(case):
    schema = ice.Schema.from_json(case["schema"])
    assert sets(json.loads(NameMapping.from_schema(schema).to_json())) == sets(case["mapping"])
