"""What nested types and transforms are made of, without their texts and their JSON."""

from __future__ import annotations

import pytest

from icefield import transforms, types

PARTS = (
    *("element_field", "element_id", "element_type", "element_required", "key_field", "key_id", "key_type"),
    *("value_field", "value_id", "value_type", "value_required", "precision", "scale", "length"),
)
ELEMENT = types.StructType(types.NestedField(5, "x", "int", required=True))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (
            types.ListType(4, ELEMENT, element_required=False),
            {
                "element_field": types.NestedField(4, "element", ELEMENT),
                "element_id": 4,
                "element_type": ELEMENT,
                "element_required": False,
            },
        ),
        (
            types.MapType(1, "string", 2, ELEMENT),
            {
                "key_field": types.NestedField(1, "key", "string", required=True),
                "key_id": 1,
                "key_type": types.StringType(),
                "value_field": types.NestedField(2, "value", ELEMENT, required=True),
                "value_id": 2,
                "value_type": ELEMENT,
                "value_required": True,
            },
        ),
        (types.DecimalType(9, 2), {"precision": 9, "scale": 2}),
        (types.FixedType(7), {"length": 7}),
        (ELEMENT, {}),
        (types.VariantType(), {}),
        (types.UUIDType(), {}),
    ],
    ids=str,
)
def test_types(kind: types.Type, expected: dict[str, object]) -> None:
    found = {part: getattr(kind, part) for part in PARTS}
    assert {part: value for part, value in found.items() if value is not None} == expected


def test_kinds_of_types() -> None:
    def kinds(kind: types.Type) -> tuple[bool, ...]:
        return kind.is_primitive, kind.is_struct, kind.is_list, kind.is_map

    assert kinds(types.LongType()) == (True, False, False, False)
    assert kinds(ELEMENT) == (False, True, False, False)
    assert kinds(types.ListType(1, ELEMENT)) == (False, False, True, False)
    assert kinds(types.MapType(1, "int", 2, ELEMENT)) == (False, False, False, True)
    assert kinds(types.VariantType()) == (False, False, False, False)


@pytest.mark.parametrize(
    ("text", "name", "num_buckets", "width"),
    [
        ("identity", "identity", None, None),
        ("Bucket[16]", "bucket", 16, None),
        ("bucket[2147483647]", "bucket", 2_147_483_647, None),
        ("truncate[3]", "truncate", None, 3),
        ("year", "year", None, None),
        ("month", "month", None, None),
        ("day", "day", None, None),
        ("hour", "hour", None, None),
        ("void", "void", None, None),
        ("zorder[2]", "zorder[2]", None, None),
    ],
)
def test_transforms(text: str, name: str, num_buckets: int | None, width: int | None) -> None:
    transform = transforms.parse(text)
    assert (transform.name, transform.num_buckets, transform.width) == (name, num_buckets, width)
