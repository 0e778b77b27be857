"""What the pages of ``docs`` show is what happens: every ``>>>`` is run."""

from __future__ import annotations

import doctest
from pathlib import Path

import pyarrow as pa
import pytest

import icefield as ice

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(page for page in DOCS.glob("*.md") if ">>> " in page.read_text())


@pytest.fixture
def table(tmp_path: Path) -> ice.Table:
    """Make the table that the pages read."""
    catalog = ice.load_catalog("docs", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    catalog.create_namespace("nyc")
    names = {"month": pa.int32(), "carrier": pa.string(), "distance": pa.int64()}
    schema = pa.schema(list(names.items()))
    made = catalog.create_table("nyc.flights", schema=schema, partition_by="month")
    for month in range(1, 5):
        distances = [100 * (6 * (month - 1) + number + 1) for number in range(6)]
        carriers = ["AA", "UA", "DL"] * 2
        made.append(pa.table({"month": [month] * 6, "carrier": carriers, "distance": distances}, schema=schema))
    made.manage_snapshots().create_tag(made.snapshots()[1].snapshot_id, "audited").commit()
    return made


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_pages_show_is_so(page: Path, table: ice.Table) -> None:
    failed, attempted = doctest.testfile(str(page), module_relative=False, globs={"table": table, "ice": ice})
    assert (failed, attempted > 0) == (0, True)


def test_there_are_pages_to_test() -> None:
    assert DOCS / "reading.md" in PAGES
