"""Former forms of names: accepted for one more release, with a warning that names the present form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice

ROWS = pa.table({"id": [1, 2, 3], "at": ["a", "b", "c"]})


@pytest.fixture
def table() -> ice.Table:
    catalog = ice.load_catalog("former", type="in-memory")
    catalog.create_namespace("a")
    table = catalog.create_table("a.t", ROWS.schema)
    return table.append(ROWS)


def moved(table: ice.Table) -> object:
    with table.update_schema() as update:
        update.move_after("id", after_path="at")
    return table.schema().column_names


def in_transaction(table: ice.Table) -> object:
    with table.transaction() as changes:
        changes.append(data=ROWS)
    return table.scan().count()


def since(table: ice.Table) -> object:
    table.append(ROWS)
    scan = table.incremental_append_scan().from_snapshot_id_exclusive(snapshot_id=table.snapshots()[0].snapshot_id)
    return scan.count()


#: What was written, what it gives, and the form that the warning names.
FORMS: dict[str, tuple[Callable[[ice.Table], object], Any, str]] = {
    "append": (lambda table: table.append(data=ROWS).scan().count(), 6, "use df=..."),
    "append in a transaction": (in_transaction, 6, "use df=..."),
    "filter": (lambda table: table.scan().filter(row_filter="id > 1").count(), 2, "use expr=..."),
    "move_after": (moved, ["at", "id"], "use after_name=..."),
    "from_snapshot_id_exclusive": (since, 3, "use from_snapshot_id=..."),
    "last_sequence_number": (lambda table: table.last_sequence_number(), 1, "which is a property"),  # type: ignore[operator]
    "to_human_string": (lambda _: ice.transforms.month.to_human_string(574, "date"), "2017-11", "pass the type first"),
    "to_human_string, by keyword": (
        lambda _: ice.transforms.month.to_human_string(574, type="date"),  # type: ignore[call-arg]
        "2017-11",
        "pass the type first",
    ),
    "to_human_string of null": (
        lambda _: ice.transforms.bucket(4).to_human_string(None, "string"),
        "null",
        "pass the type first",
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_former_forms_are_accepted_and_warn(name: str, table: ice.Table) -> None:
    call, expected, present = FORMS[name]
    with pytest.warns(DeprecationWarning, match=present) as warned:
        assert call(table) == expected
    assert [warning.filename for warning in warned] == [__file__]


def test_present_forms_do_not_warn(table: ice.Table) -> None:
    # Warnings are errors here.
    assert table.append(df=ROWS).scan().filter(expr="id > 1").count() == 4
    assert table.last_sequence_number == 2
    assert ice.transforms.month.to_human_string("date", 574) == "2017-11"
    assert ice.transforms.identity.to_human_string("string", "date") == "date"
