"""Visitors of schemas and expressions refuse what they cannot visit, by typed errors."""

from __future__ import annotations

from typing import Any

import pytest

import icefield as ice
from icefield import schema as schemas
from icefield import types
from icefield.errors import ArgumentTypeError, UnsupportedFeatureError
from icefield.expressions import visitors


class Names(schemas.SchemaVisitor[str]):
    """Writes a schema as text; it has no method for variants."""

    def schema(self, schema: ice.Schema, struct_result: str) -> str:
        return struct_result

    def struct(self, struct: Any, field_results: list[str]) -> str:
        return f"({', '.join(field_results)})"

    def field(self, field: ice.NestedField, field_result: str) -> str:
        return f"{field.name} {field_result}"

    def list(self, list_type: Any, element_result: str) -> str:
        return f"[{element_result}]"

    def map(self, map_type: Any, key_result: str, value_result: str) -> str:
        return f"{{{key_result}: {value_result}}}"

    def primitive(self, primitive: Any) -> str:
        return str(primitive)


def test_a_visitor_without_a_method_for_variants_refuses_them() -> None:
    struct = types.StructType(ice.NestedField(5, "b", "int"))
    nested = types.MapType(2, types.StringType(), 3, types.ListType(4, struct))
    plain = ice.Schema(ice.NestedField(1, "a", nested))
    assert schemas.visit(plain, Names()) == "(a {string: [(b int)]})"
    with_variant = ice.Schema(ice.NestedField(1, "a", "int"), ice.NestedField(2, "v", "variant"))
    with pytest.raises(UnsupportedFeatureError, match="Names has no method 'variant'"):
        schemas.visit(with_variant, Names())


@pytest.mark.parametrize("visit", [schemas.visit, schemas.pre_order_visit, visitors.visit])
def test_what_is_no_tree_is_refused(visit: Any) -> None:
    with pytest.raises(ArgumentTypeError, match="expected .*, got int"):
        visit(5, Names())
