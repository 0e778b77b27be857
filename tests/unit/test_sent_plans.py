"""Plans of changes of rows in other processes: whatever filter they have, it arrives, and tells what conflicts."""

from __future__ import annotations

import datetime as dt
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield.catalog.memory import InMemoryCatalog
from icefield.errors import IcefieldError, ValidationException

#: Literals of filters, of which each is one for some types, and columns of all types with an order.
LITERALS = [
    "5", "5.5", "-0.5", "3000000000", "5e300", "true", "'x'", "'5'", "'5.55'", "'2026-01-01'", "'2026-01-01T00:00:00'",
    "'2026-01-01T00:00:00+00:00'", "'2026-01-01T00:00:00.000000001'", "'01:02:03'", "'6162'",
    "'01234567-89ab-cdef-0123-456789abcdef'",
]  # fmt: skip
TYPES = [
    "boolean", "int", "long", "float", "double", "decimal(9, 2)", "date", "time", "timestamp", "timestamptz",
    "timestamp_ns", "timestamptz_ns", "string", "uuid", "binary", "fixed[2]",
]  # fmt: skip


def test_filters_of_plans_that_are_sent(tmp_path: Path) -> None:
    """Whatever literal a scan takes for a column, the filter of a plan goes to other processes with it."""
    catalog = InMemoryCatalog("local", warehouse=str(tmp_path))
    catalog.create_namespace("a")
    fields = [ice.NestedField(number, f"c{number}", kind) for number, kind in enumerate(TYPES, 1)]
    table = catalog.create_table("a.t", ice.Schema(*fields), properties={"format-version": "3"})
    sent = 0
    for field in fields:
        for literal in LITERALS:
            for text in (f"{field.name} < {literal}", f"{field.name} != {literal}", f"{field.name} in ({literal}, 1)"):
                try:
                    table.scan(text).count()
                except IcefieldError:
                    continue
                for row_filter in (text, f"not ({text}) and c1 is not null"):
                    plan = table.new_row_change("delete", row_filter, exact=True)
                    assert pickle.loads(pickle.dumps(plan)).write_id == plan.write_id, row_filter
                sent += 1
    assert sent > 150


@pytest.mark.parametrize(
    ("kind", "row_filter", "inside", "outside"),
    [
        ("timestamp", "c >= '2026-01-01'", "2026-05-01", "2025-05-01"),
        ("decimal(9, 2)", "c > 5.5", Decimal("5.51"), Decimal("5.50")),
        ("int", "c > -3000000000", 5, None),
        ("date", "c in ('2026-01-01')", dt.date(2026, 1, 1), dt.date(2026, 1, 2)),
    ],
)
def test_conflicts_with_plans_that_were_sent(
    tmp_path: Path, kind: str, row_filter: str, inside: Any, outside: Any
) -> None:
    catalog = InMemoryCatalog("local", warehouse=str(tmp_path))
    catalog.create_namespace("a")
    table = catalog.create_table("a.t", ice.Schema(ice.NestedField(1, "c", kind)))
    types = table.schema().to_arrow()

    def one(value: Any) -> pa.Table:
        column = pa.array([value]) if isinstance(value, str) else pa.array([value], types.field("c").type)
        return pa.table([column.cast(types.field("c").type)], schema=types)

    for other, fits in ((outside, True), (inside, False)):
        table.append(one(inside))
        plan = table.new_row_change("delete", row_filter, exact=True)
        catalog.load_table("a.t").append(one(other))
        sent = pickle.loads(pickle.dumps(plan))
        if fits:
            assert table.commit_rows(sent).rows_removed == 1
            continue
        with pytest.raises(ValidationException, match="may have rows that match"):
            table.commit_rows(sent)
