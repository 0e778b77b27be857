"""Bound expressions and literals are instances of the classes of their kinds, and visitors walk over them."""

from __future__ import annotations

import copy
import pickle
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

import icefield as ice
from icefield import expressions as ex
from icefield import types
from icefield.errors import ArgumentTypeError, IcefieldError, InvalidArgumentError, UnsupportedFeatureError
from icefield.expressions import literals as li
from icefield.expressions import visitors

SCHEMA = ice.Schema(
    ice.NestedField(1, "id", "long", required=True),
    ice.NestedField(2, "name", "string"),
    ice.NestedField(3, "day", "date"),
    ice.NestedField(4, "x", "double"),
    ice.NestedField(5, "at", types.StructType(ice.NestedField(6, "lat", "float", required=True))),
    ice.NestedField(7, "price", "decimal(9, 2)"),
    ice.NestedField(8, "shape", "geometry"),
    ice.NestedField(9, "data", "variant"),
)

TESTS = [
    ("name IS NULL", "IsNull", None),
    ("name IS NOT NULL", "NotNull", None),
    ("x IS NAN", "IsNaN", None),
    ("x IS NOT NAN", "NotNaN", None),
    ("id = 5", "EqualTo", 5),
    ("day != '1970-01-11'", "NotEqualTo", 10),
    ("id < 5", "LessThan", 5),
    ("at.lat <= 1.5", "LessThanOrEqual", 1.5),
    ("price > 1.5", "GreaterThan", Decimal("1.50")),
    ("id >= 5", "GreaterThanOrEqual", 5),
    ("name LIKE 'a%'", "StartsWith", "a"),
    ("name NOT LIKE 'a%'", "NotStartsWith", "a"),
    ("id IN (1, 2, 3)", "In", {1, 2, 3}),
    ("day NOT IN ('1970-01-02', '1970-01-03')", "NotIn", {1, 2}),
]


@pytest.mark.parametrize(("text", "kind", "value"), TESTS, ids=[kind for _, kind, _ in TESTS])
def test_tests_of_terms(text: str, kind: str, value: object) -> None:
    unbound = ex.parse(text)
    bound = unbound.bind(SCHEMA)
    assert type(bound) is getattr(ex, f"Bound{kind}")
    assert type(bound).__module__ == "icefield.expressions"
    assert isinstance(bound, ex.BoundPredicate)
    assert isinstance(bound, ex.BoundExpression)
    assert not isinstance(bound, ex.Expression)
    for several in ("Unary", "Literal", "Set"):
        of_it = isinstance(bound, getattr(ex, f"Bound{several}Predicate"))
        assert of_it == isinstance(unbound, getattr(ex, f"{several}Predicate"))
    field = SCHEMA.find_field(unbound.term.name)
    assert isinstance(bound.term, ex.BoundReference)
    assert (bound.term.ref(), bound.term.transform, bound.term.type) == (bound.term, None, field.field_type)
    shown = bound.term.field
    assert (shown.field_id, shown.name, shown.field_type) == (field.field_id, field.name, field.field_type)
    assert bound.term == unbound.term.bind(SCHEMA)
    assert hash(bound.term) == hash(unbound.term.bind(SCHEMA))
    if isinstance(bound, ex.BoundLiteralPredicate):
        assert (bound.literal.value, bound.literal.type) == (value, field.field_type)
    if isinstance(bound, ex.BoundSetPredicate):
        assert (bound.value_set, {one.value for one in bound.literals}) == (value, value)
    assert bound == ex.parse(text).bind(SCHEMA)


def test_terms() -> None:
    with pytest.raises(IcefieldError, match="nmae"):
        ex.Reference("nmae").bind(SCHEMA)
    assert ex.Reference("NAME").bind(SCHEMA, False).ref().field.name == "name"
    year = ex.Term("day", "year").bind(SCHEMA)
    assert (type(year), str(year.transform), year.type) == (ex.BoundTerm, "year", types.IntegerType())
    assert year != year.ref()
    assert year.ref() == ex.Reference("day").bind(SCHEMA)
    assert [ex.Reference(name).bind(SCHEMA).ref().field.required for name in ("id", "name", "at.lat")] == [
        True, False, False,
    ]  # fmt: skip
    inside = ex.Term("data", None, ("$.a", "long")).bind(SCHEMA)
    assert (type(inside), inside.ref().field.name, inside.type) == (ex.BoundTerm, "data", types.LongType())
    assert repr(year) == 'BoundTerm("day", field_id=3, year)'
    assert repr(year.ref()) == 'BoundReference("day", field_id=3)'


def test_joined_tests() -> None:
    both = ex.parse("NOT (id = 1 AND name = 'a') OR x IS NULL").bind(SCHEMA)
    assert (type(both), type(both.left), type(both.right)) == (ex.BoundOr, ex.BoundNot, ex.BoundIsNull)
    assert (type(both.left.child), type(both.left.child.right)) == (ex.BoundAnd, ex.BoundEqualTo)
    assert type(both.rewrite_not().left) is ex.BoundOr
    assert type(ex.parse("id IS NULL").bind(SCHEMA)) is ex.BoundAlwaysFalse
    assert type(ex.parse("id IS NOT NULL").bind(SCHEMA)) is ex.BoundAlwaysTrue
    spec = ice.PartitionSpec(ice.PartitionField(1, 1000, "bucket[4]", "b"))
    assert type(ex.parse("id = 1").project(spec, SCHEMA)) is ex.BoundEqualTo
    assert visitors.inclusive_projection(SCHEMA, spec)(ex.parse("id = 1")).field_ids == [1000]
    assert type(visitors.strict_projection(SCHEMA, spec)(ex.parse("id = 1"))) is ex.BoundAlwaysFalse
    assert type(ex.parse("id = 1").residual(spec, SCHEMA, [0])) in (ex.BoundEqualTo, ex.BoundAlwaysFalse)
    box = ex.StIntersects("shape", (0, 0, 1, 2)).bind(SCHEMA)
    assert (type(box), box.envelope) == (ex.BoundStIntersects, (0.0, 0.0, 1.0, 2.0))


class Sql(visitors.BoundBooleanExpressionVisitor[str]):
    """Writes an expression for another engine, as users of PyIceberg do."""

    def visit_true(self) -> str:
        return "TRUE"

    def visit_false(self) -> str:
        return "FALSE"

    def visit_not(self, child_result: str) -> str:
        return f"NOT {child_result}"

    def visit_and(self, left_result: str, right_result: str) -> str:
        return f"({left_result} AND {right_result})"

    def visit_or(self, left_result: str, right_result: str) -> str:
        return f"({left_result} OR {right_result})"

    def visit_in(self, term: ex.BoundTerm, literals: set[Any]) -> str:
        return f"{term.ref().field.name} IN {sorted(literals)}"

    def visit_not_in(self, term: ex.BoundTerm, literals: set[Any]) -> str:
        return f"{term.ref().field.name} NOT IN {sorted(literals)}"

    def visit_is_nan(self, term: ex.BoundTerm) -> str:
        return f"isnan({term.ref().field.name})"

    def visit_not_nan(self, term: ex.BoundTerm) -> str:
        return f"not isnan({term.ref().field.name})"

    def visit_is_null(self, term: ex.BoundTerm) -> str:
        return f"{term.ref().field.name} IS NULL"

    def visit_not_null(self, term: ex.BoundTerm) -> str:
        return f"{term.ref().field.name} IS NOT NULL"

    def visit_equal(self, term: ex.BoundTerm, literal: li.Literal) -> str:
        return f"{term.ref().field.name} = {literal.value!r}"

    def visit_not_equal(self, term: ex.BoundTerm, literal: li.Literal) -> str:
        return f"{term.ref().field.name} <> {literal.value!r}"

    def visit_greater_than_or_equal(self, term: ex.BoundTerm, literal: li.Literal) -> str:
        return f"{term.ref().field.name} >= {literal.value!r}"

    def visit_greater_than(self, term: ex.BoundTerm, literal: li.Literal) -> str:
        return f"{term.ref().field.name} > {literal.value!r}"

    def visit_less_than(self, term: ex.BoundTerm, literal: li.Literal) -> str:
        return f"{term.ref().field.name} < {literal.value!r}"

    def visit_less_than_or_equal(self, term: ex.BoundTerm, literal: li.Literal) -> str:
        return f"{term.ref().field.name} <= {literal.value!r}"

    def visit_starts_with(self, term: ex.BoundTerm, literal: li.Literal) -> str:
        return f"starts({term.ref().field.name}, {literal.value!r})"

    def visit_not_starts_with(self, term: ex.BoundTerm, literal: li.Literal) -> str:
        return f"not starts({term.ref().field.name}, {literal.value!r})"


WRITTEN = {
    "name IS NULL": "name IS NULL",
    "name IS NOT NULL": "name IS NOT NULL",
    "x IS NAN": "isnan(x)",
    "x IS NOT NAN": "not isnan(x)",
    "id = 5": "id = 5",
    "day != '1970-01-11'": "day <> 10",
    "id < 5": "id < 5",
    "at.lat <= 1.5": "lat <= 1.5",
    "price > 1.5": "price > Decimal('1.50')",
    "id >= 5": "id >= 5",
    "name LIKE 'a%'": "starts(name, 'a')",
    "name NOT LIKE 'a%'": "not starts(name, 'a')",
    "id IN (1, 2, 3)": "id IN [1, 2, 3]",
    "day NOT IN ('1970-01-02', '1970-01-03')": "day NOT IN [1, 2]",
    "id IS NULL": "FALSE",
    "id IS NOT NULL": "TRUE",
    "NOT (id = 1 AND name = 'a') OR x IS NULL": "(NOT (id = 1 AND name = 'a') OR x IS NULL)",
}


@pytest.mark.parametrize(("text", "written"), WRITTEN.items(), ids=list(WRITTEN))
def test_visitors_of_bound_expressions(text: str, written: str) -> None:
    assert visitors.visit(visitors.bind(SCHEMA, ex.parse(text), case_sensitive=True), Sql()) == written


def test_visitors_of_the_other_kind_refuse() -> None:
    with pytest.raises(ArgumentTypeError, match="Sql visits bound expressions, got the unbound one id = 1: bind it"):
        visitors.visit(ex.parse("id = 1"), Sql())
    box = ex.StDisjoint("shape", (0, 0, 1, 2)).bind(SCHEMA)
    with pytest.raises(UnsupportedFeatureError, match="Sql has no method 'visit_st_disjoint'"):
        visitors.visit(box, Sql())


class Unbound(visitors.BooleanExpressionVisitor[str]):
    def visit_true(self) -> str:
        return ""

    visit_false = visit_true

    def visit_not(self, child_result: str) -> str:
        return child_result

    def visit_and(self, left_result: str, right_result: str) -> str:
        return left_result + right_result

    visit_or = visit_and

    def visit_unbound_predicate(self, predicate: ex.UnboundPredicate) -> str:
        return str(predicate)


def test_visitors_of_unbound_expressions_refuse_bound_ones() -> None:
    with pytest.raises(ArgumentTypeError, match="Unbound visits unbound expressions, got the bound one"):
        visitors.visit(ex.parse("id = 1").bind(SCHEMA), Unbound())


LITERALS: list[tuple[type[li.Literal], object, str, object]] = [
    (li.BooleanLiteral, True, "boolean", True),
    (li.LongLiteral, 5, "long", 5),
    (li.FloatLiteral, 1.5, "float", 1.5),
    (li.DoubleLiteral, 1.5, "double", 1.5),
    (li.DecimalLiteral, Decimal("1.50"), "decimal(3, 2)", Decimal("1.50")),
    (li.DateLiteral, 19724, "date", 19724),
    (li.DateLiteral, date(2024, 1, 2), "date", 19724),
    (li.TimeLiteral, time(0, 0, 1), "time", 1_000_000),
    (li.TimestampLiteral, 1_000_000, "timestamp", 1_000_000),
    (li.TimestampLiteral, datetime(1970, 1, 1, 0, 0, 1), "timestamp", 1_000_000),  # noqa: DTZ001
    (li.StringLiteral, "a", "string", "a"),
    (li.UUIDLiteral, UUID(int=5), "uuid", UUID(int=5)),
    (li.FixedLiteral, b"ab", "fixed[2]", b"ab"),
    (li.BinaryLiteral, b"ab", "binary", b"ab"),
]


@pytest.mark.parametrize(("kind", "value", "ty", "shown"), LITERALS)
def test_classes_of_literals(kind: type[li.Literal], value: object, ty: str, shown: object) -> None:
    made = kind(value)  # type: ignore[arg-type]
    assert (type(made), made.value) == (kind, shown)
    assert str(made.type).startswith(ty.partition("(")[0])
    for again in (li.Literal(value, made.type) if kind is not li.DecimalLiteral else made, copy.deepcopy(made)):
        assert (type(again), again, hash(again)) == (kind, made, hash(made))
    assert type(pickle.loads(pickle.dumps(made))) is kind
    assert repr(made).startswith(f"{kind.__name__}(")


def test_what_literals_are_made_of() -> None:
    kinds = {
        True: li.BooleanLiteral, 5: li.LongLiteral, 2.5: li.DoubleLiteral, "x": li.StringLiteral,
        date(2024, 1, 2): li.DateLiteral, time(1): li.TimeLiteral, UUID(int=1): li.UUIDLiteral,
        Decimal("1.5"): li.DecimalLiteral, b"x": li.BinaryLiteral,
    }  # fmt: skip
    assert {value: type(li.literal(value)) for value in kinds} == kinds
    assert type(ex.EqualTo("a", 5).literal) is li.LongLiteral
    assert {type(one) for one in ex.In("a", [1, 2]).literals} == {li.LongLiteral}
    assert type(li.literal(5).to("int")) is li.LongLiteral
    assert type(li.literal("2024-01-02").to(types.DateType())) is li.DateLiteral
    assert ex.parse("id = 1").bind(SCHEMA).literal == li.LongLiteral(1)


def test_literals_are_ordered_by_their_values() -> None:
    assert sorted([li.literal(3), li.literal(1), li.literal(2)]) == [li.literal(number) for number in (1, 2, 3)]
    assert (li.literal(1) < li.literal(2), li.literal(1) >= li.literal(2)) == (True, False)
    assert li.literal(1) != li.literal(2)
    assert li.literal(1) != 1
    with pytest.raises(TypeError):
        _ = li.literal(1) < 2  # type: ignore[operator]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (li.LongLiteral, 2**63), (li.LongLiteral, "x"), (li.UUIDLiteral, b"short"), (li.DecimalLiteral, "x"),
        (li.DoubleLiteral, float("nan")), (li.BooleanLiteral, 3), (li.StringLiteral, 3), (li.FixedLiteral, "text"),
    ],
)  # fmt: skip
def test_values_that_are_no_literals(kind: type[li.Literal], value: object) -> None:
    with pytest.raises((IcefieldError, TypeError)):
        kind(value)  # type: ignore[arg-type]


def test_values_out_of_the_range() -> None:
    with pytest.raises(InvalidArgumentError, match="out of the range of int"):
        li.literal(2**40).to("int")
    assert (types.IntegerType.min, types.IntegerType.max) == (-(2**31), 2**31 - 1)
    assert (types.LongType.min, types.LongType.max) == (-(2**63), 2**63 - 1)
    assert (types.FloatType.min, types.FloatType.max) == (-3.4028234663852886e38, 3.4028234663852886e38)
