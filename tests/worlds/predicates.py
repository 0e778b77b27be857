"""Random predicates, their JSON as the REST protocol has it, and their meaning row by row."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

import icefield as ice

from .tables import NAN, Column
from .values import NANOS, POOLS, from_array, is_nan, order, to_array, to_json

NEGATED = {
    "is-null": "not-null",
    "is-nan": "not-nan",
    "lt": "gt-eq",
    "gt": "lt-eq",
    "eq": "not-eq",
    "in": "not-in",
    "starts-with": "not-starts-with",
}
NEGATED |= {negative: positive for positive, negative in NEGATED.items()}
ORDERED = ("lt", "lt-eq", "gt", "gt-eq")
UNARY = ("is-null", "not-null", "is-nan", "not-nan")
SETS = ("in", "not-in")
RESULTS = {"bucket": "int", "year": "int", "month": "int", "hour": "int", "day": "date"}


@dataclass(frozen=True)
class Test:
    """One test of a column or of a transform of it."""

    __test__ = False  # not one of pytest's

    op: str
    column: Column
    values: tuple[Any, ...] = ()
    transform: str | None = None
    typed: bool = True
    raw: tuple[Any, ...] = ()

    def json(self) -> Any:
        term: Any = self.column.name
        if self.transform is not None:
            term = {"type": "transform", "transform": self.transform, "term": self.column.name}
        out: dict[str, Any] = {"type": self.op, "term": term}
        values = list(self.raw) if not self.typed else [to_json(value, self.type) for value in self.values]
        if self.op in SETS:
            out["values"] = values
        elif values:
            out["value"] = values[0]
        return out

    @property
    def type(self) -> str:
        """The type of the term."""
        if self.transform is None:
            return self.column.type
        return RESULTS.get(self.transform.split("[")[0], self.column.type)

    def matches(self, row: dict[int, Any]) -> bool:
        value = row.get(self.column.id)
        if self.transform is not None and value is not None:
            value = apply(self.transform, self.column.type, value)
        if self.op in ORDERED and (side := beyond(self.values[0], self.column.type)):
            # Such a test is no test any more, as in the Java library: it holds for every row, null or not, or for none.
            return (side > 0) == self.op.startswith("lt")
        return _matches(self.op, value, self.values)


def beyond(value: Any, kind: str) -> int:
    """Say on which side of a type's range a literal without a type lies; 0 within."""
    most = {"int": 2**31 - 1, "float": (2 - 2**-23) * 2.0**127}.get(kind)
    if most is None or not isinstance(value, int | float) or is_nan(value) or value in (math.inf, -math.inf):
        return 0
    least = -most - 1 if kind == "int" else -most
    return (value > most) - (value < least)


def _matches(op: str, value: Any, literals: tuple[Any, ...]) -> bool:
    if op in ("not-null", "not-eq", "not-in", "not-starts-with", "not-nan"):
        return not _matches(NEGATED[op], value, literals)
    if op == "is-null":
        return value is None
    if value is None:
        return False
    if op == "is-nan":
        return is_nan(value)
    if op == "starts-with":
        return str(value).startswith(literals[0])
    if is_nan(value):
        return False
    if op in ("eq", "in"):
        return any(order(value) == order(literal) for literal in literals)
    left, right = order(value), order(literals[0])
    return {"lt": left < right, "lt-eq": left <= right, "gt": left > right, "gt-eq": left >= right}[op]


@functools.cache
def _transform(text: str) -> Any:
    return ice.transforms.parse(text)


@functools.cache
def _arrow(kind: str) -> pa.DataType:
    return ice.Schema(ice.NestedField(1, "v", kind)).to_arrow().field("v").type


@functools.cache
def apply(transform: str, kind: str, value: Any) -> Any:
    """Apply a transform to a value that is not null."""
    array = _transform(transform)(to_array([value], _arrow(kind)))
    return from_array(array if isinstance(array, pa.Array) else pa.array(array))[0]


@dataclass(frozen=True)
class Predicate:
    """A tree of tests: ``and``, ``or``, ``not``, or one test."""

    op: str
    children: tuple[Predicate, ...] = ()
    test: Test | None = None
    typed: bool = field(default=True)

    def json(self) -> Any:
        if self.test is not None:
            return self.test.json()
        children = [child.json() for child in self.children]
        if self.op == "not":
            return {"type": "not", "child": children[0]}
        return {"type": self.op, "left": children[0], "right": children[1]}

    def tests(self) -> list[Test]:
        if self.test is not None:
            return [self.test]
        return [test for child in self.children for test in child.tests()]

    def matches(self, row: dict[int, Any], *, negated: bool = False) -> bool:
        """Say whether a row matches; NOT is pushed down to the tests: null matches neither ``x < 2`` nor its NOT."""
        if self.test is not None:
            test = self.test
            if negated:
                test = Test(NEGATED[test.op], test.column, test.values, test.transform) if test.op in NEGATED else test
            return test.matches(row)
        if self.op == "not":
            return self.children[0].matches(row, negated=not negated)
        results = [child.matches(row, negated=negated) for child in self.children]
        return all(results) if (self.op == "and") is not negated else any(results)


NEGATED |= {"lt-eq": "gt", "gt-eq": "lt"}


Held = Mapping[int, list[Any]]


def random_predicate(
    rng: Random, columns: list[Column], transforms: dict[str, tuple[str, ...]], held: Held | None = None
) -> Predicate:
    """Make a predicate with up to five tests; all its literals are typed or none is.

    ``held`` has values by column: half of the literals are among them.
    """
    typed = rng.random() < 0.75
    leaves = rng.choice([1, 1, 1, 2, 2, 3, 5])

    def tree(leaves: int) -> Predicate:
        if leaves == 1:
            made = Predicate("test", test=_test(rng, columns, transforms, held or {}, typed=typed), typed=typed)
        else:
            split = rng.randint(1, leaves - 1)
            made = Predicate(rng.choice(["and", "or"]), (tree(split), tree(leaves - split)), typed=typed)
        return Predicate("not", (made,), typed=typed) if rng.random() < 0.15 else made

    return tree(leaves)


def _test(
    rng: Random, columns: list[Column], transforms: dict[str, tuple[str, ...]], held: Held, *, typed: bool
) -> Test:
    column = rng.choice(columns)
    if typed and column.type in NANOS:
        # The reference multiplies such literals by a thousand (docs/differences.md, "Typed nanosecond literals").
        return Test(rng.choice(UNARY[:2]), column)
    transform = None
    if typed and rng.random() < 0.2:
        choices = [name for name in transforms.get(column.type, ()) if name not in ("identity", "void")]
        transform = rng.choice(choices) if choices else None
    kind = Test("eq", column, transform=transform).type
    op = rng.choice(_operations(kind))
    if op in SETS and column.type == "long" and transform is None and rng.random() < 0.2:
        many = tuple(rng.sample(range(-500, 2000), 250))
        return Test(op, column, many, typed=typed, raw=many)
    own = held.get(column.id)
    pool = own if own and rng.random() < 0.5 else pool_of(column.type)
    values = _literals(rng, op, column, transform, kind, pool)
    if typed:
        return Test(op, column, tuple(values), transform)
    raw = [_untyped(rng, value, column.type, op) for value in values]
    return Test(op, column, tuple(value for value, _ in raw), None, typed=False, raw=tuple(text for _, text in raw))


def _operations(kind: str) -> list[str]:
    found = [*UNARY[:2], "eq", "not-eq", *ORDERED, *ORDERED, *SETS, "in"]
    if kind in NAN:
        found += [*UNARY[2:], "not-nan"]
    if kind == "string":
        found += ["starts-with", "not-starts-with"] * 2
    return found


def _literals(rng: Random, op: str, column: Column, transform: str | None, kind: str, pool: list[Any]) -> list[Any]:
    """Choose values that the column may hold, or the transforms of such and their neighbours."""
    count = 0 if op in UNARY else rng.randint(1, 5) if op in SETS else 1
    # JSON has no infinities.
    pool = [value for value in pool if value not in (math.inf, -math.inf)]
    values = rng.choices(pool, k=count) if pool else []
    if transform is not None:
        values = [apply(transform, column.type, value) for value in values]
        if kind == "int":
            values = [value + rng.choice([0, 0, 0, 1, -1]) for value in values]
    if op.endswith("starts-with"):
        values = [value[: rng.randint(1, 3)] or "a" for value in values]
    return list(dict.fromkeys(values))


def pool_of(kind: str) -> list[Any]:
    """Give values of a type, which a column may have been promoted to."""
    if kind not in POOLS and kind.startswith("decimal") and kind.endswith(", 2)"):
        return POOLS["decimal(9, 2)"]
    return POOLS.get(kind, [])


def _untyped(rng: Random, value: Any, kind: str, op: str) -> tuple[Any, Any]:
    """Give what a plain literal means to a column of the type, and the literal: at times out of range."""
    single = op not in SETS
    if kind == "int" and single and rng.random() < 0.3:
        far = rng.choice([2**31, -(2**31) - 1, 2**40, -(2**62)])
        return far, far
    if kind in ("float", "double") and single and rng.random() < 0.2:
        far = rng.choice([1e200, -1e200])
        return far, far
    if kind.startswith("decimal"):
        return (Decimal(7), 7) if rng.random() < 0.2 else (value, to_json(value, kind))
    return value, to_json(value, kind)
