"""Rows that are given: frames that are collected through Arrow, and what is refused at once."""

from __future__ import annotations

import pyarrow as pa
import pytest

import icefield as ice

ROWS = pa.table({"id": pa.array([1, 2], pa.int64())})


class ConnectFrame:
    """What a DataFrame of Spark Connect looks like from outside: any other attribute would ask the server."""

    def toArrow(self) -> pa.Table:  # noqa: N802
        return ROWS

    def __getattr__(self, name: str) -> object:
        raise AssertionError(name)


ConnectFrame.__module__ = "pyspark.sql.connect.dataframe"


@pytest.fixture
def table() -> ice.Table:
    """Make a table without rows."""
    catalog = ice.load_catalog("m", type="in-memory")
    catalog.create_namespace("a")
    return catalog.create_table("a.t", ROWS.schema)


def test_a_frame_is_collected_without_pyspark(table: ice.Table) -> None:
    table.append(ConnectFrame())
    table.upsert(ConnectFrame(), "id")
    assert table.merge(ConnectFrame(), "id").when_matched_delete().execute().rows_deleted == 2


@pytest.mark.parametrize("source", [[{"id": 1}], "rows.parquet", 5, None, {"id": [1]}, pa.Table, iter([ROWS])])
def test_a_merge_refuses_what_is_no_source_before_its_clauses(table: ice.Table, source: object) -> None:
    with pytest.raises(ice.errors.ArgumentTypeError) as merging:
        table.merge(source, "id")
    with pytest.raises(ice.errors.ArgumentTypeError) as appending:
        table.append(source)
    assert str(merging.value) == str(appending.value)
