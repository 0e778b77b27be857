"""What stands behind the name of a table in ``load`` and ``save``: branches, tags and snapshots."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

import icefield as ice
from icefield.errors import IcefieldError, NotFoundError
from icefield.spark.tables.opening import SourceOptions

ROWS = pa.table({"id": [1, 2]})


@pytest.fixture
def named(tmp_path: Path) -> dict[str, str]:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    catalog = ice.load_catalog("own", uri=uri, warehouse=str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", ROWS)
    table.append(ROWS)
    first = table.current_snapshot()
    table.manage_snapshots().create_branch(first.snapshot_id, "b").create_tag(first.snapshot_id, "v.1").commit()
    table.append(ROWS)
    catalog.create_table("db.branch_own", ROWS)
    return {"catalog": "own", "uri": uri, "warehouse": str(tmp_path), "id": str(first.snapshot_id)}


@pytest.mark.parametrize(
    ("path", "rows"),
    [("db.t", 4), ("db.t.branch_b", 2), ("db.t.tag_v.1", None), ("db.t.snapshot_id_{id}", 2), ("db.branch_own", 0)],
)
def test_parts_are_read_by_name(named: dict[str, str], path: str, rows: int | None) -> None:
    path = path.format(id=named.pop("id"))
    if rows is None:
        # The name of a tag with a dot needs the option.
        with pytest.raises(NotFoundError):
            SourceOptions.of({**named, "path": path}).target()
        return
    options = SourceOptions.of({**named, "path": path})
    table, what = options.target()
    assert what is None
    assert options.scan(table, what, None).count() == rows


def test_branches_are_written_to_by_name(named: dict[str, str]) -> None:
    first = named.pop("id")
    assert SourceOptions.of({**named, "path": "db.t.branch_b"}).writing().branch == "b"
    for path, options, message in (
        (f"db.t.snapshot_id_{first}", {}, "can only be read"),
        ("db.t.branch_b", {"branch": "b"}, "selects a snapshot, and so does the option branch"),
        ("/wh/db/t", {}, "the path of a table is not supported"),
    ):
        with pytest.raises(IcefieldError, match=message):
            SourceOptions.of({**named, **options, "path": path}).writing()
