"""Spark's own ORC reader and writer (``USING orc``, no table format) beside ours: days of both calendars.

Before 1582-10-15 a day has two numbers. orc-core gives Spark days of the hybrid calendar, whichever the file holds, and
Spark turns them into proleptic ones: right where the footer tells the calendar. Spark itself writes the hybrid one.
"""

from __future__ import annotations

from datetime import date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from icefield import orc

if TYPE_CHECKING:
    from conftest import Java

pytestmark = pytest.mark.interop

DAYS = [
    date(1, 1, 1),
    date(4, 2, 29),
    date(1000, 3, 1),
    # Days that only one of the calendars has are left out: 1500-02-29 is Julian's, 1582-10-05 to 14 Gregory's.
    date(1500, 2, 28),
    date(1500, 3, 1),
    date(1582, 10, 4),
    date(1582, 10, 15),
    date(1969, 12, 31),
    date(2020, 2, 29),
    date(9999, 12, 31),
]
ROWS = pa.table(
    {
        "id": pa.array(range(len(DAYS) + 1), pa.int32()),
        "d": pa.array([*DAYS, None], pa.date32()),
        "t": pa.array([*(datetime.combine(day, time(1, 2, 3, 456_789)) for day in DAYS), None], pa.timestamp("us")),
        "l": pa.array([*([day, None] for day in DAYS), None], pa.list_(pa.date32())),
    }
)


def same(table: pa.Table) -> None:
    """Assert that these are the rows, whatever zone their instants are shown in."""
    plain = table.sort_by("id").set_column(2, "t", table.sort_by("id")["t"].cast(pa.timestamp("us")))
    assert [repr(row) for row in plain.to_pylist()] == [repr(row) for row in ROWS.to_pylist()]


@pytest.mark.parametrize("stride", [4, 10_000])
def test_spark_reads_old_days(java: Java, tmp_path: Path, stride: int) -> None:
    path = tmp_path / "old.orc"
    orc.write_table(ROWS, str(path), row_index_stride=stride)
    same(java.rows(f"SELECT * FROM orc.`{path}`"))
    # Statistics and filters count in the same calendar.
    for number, day in enumerate(DAYS):
        found = java.rows(f"SELECT id FROM orc.`{path}` WHERE d = DATE'{day.isoformat()}'")
        assert found["id"].to_pylist() == [number], day


def test_we_read_old_days_of_spark(java: Java, tmp_path: Path) -> None:
    source, folder = tmp_path / "old.orc", tmp_path / "written"
    orc.write_table(ROWS, str(source))
    java.sql(f"INSERT OVERWRITE DIRECTORY '{folder}' USING orc SELECT /*+ COALESCE(1) */ * FROM orc.`{source}`")
    (path,) = folder.glob("*.orc")
    same(orc.read_table(str(path)))
    for number, day in enumerate(DAYS):
        found = orc.ORCFile(str(path)).read(predicate=f"d = '{day.isoformat()}'")
        assert found["id"].to_pylist() == [number], day
