"""Values that another library would hand over as something else, or that a type cuts off, are refused by name."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import icefield as ice
from icefield.errors import InvalidArgumentError

pl = pytest.importorskip("polars")

MONTHS = pd.period_range("2024-01", periods=2, freq="M")
SPANS = pd.interval_range(0, 2)

FRAMES = {
    "objects of Polars": lambda: pl.DataFrame({"a": [object(), object()]}),
    "objects of Polars among others": lambda: pl.DataFrame({"b": [1, 2], "a": [dt, object()]}),
    "a series of Polars' objects": lambda: pl.Series("a", [object()]).to_frame(),
    "periods": lambda: pd.DataFrame({"a": MONTHS}),
    "intervals": lambda: pd.DataFrame({"a": SPANS}),
    "categories that are periods": lambda: pd.DataFrame({"a": pd.Categorical(MONTHS)}),
    "categories that are intervals": lambda: pd.DataFrame({"a": pd.cut([1, 2], 2)}),
    "periods in a table of pyarrow": lambda: pa.Table.from_pandas(pd.DataFrame({"a": MONTHS})),
    "intervals in a table of pyarrow": lambda: pa.Table.from_pandas(pd.DataFrame({"a": SPANS})),
    "an index of periods": lambda: pd.DataFrame({"b": [1, 2]}, index=pd.PeriodIndex(MONTHS, name="a")),
    "what another system has": lambda: pa.table(
        {"a": pa.ExtensionArray.from_storage(pa.opaque(pa.int64(), "hugeint", "x"), pa.array([1, 2]))}
    ),
    "categories of tuples": lambda: pd.DataFrame({"a": pd.Categorical([("x", 1), ("y", 2)])}),
    "complex numbers": lambda: pd.DataFrame({"a": [1 + 2j]}),
    "sparse numbers": lambda: pd.DataFrame({"a": pd.arrays.SparseArray([1, 0])}),
    "mixed objects": lambda: pd.DataFrame({"a": [1, "x"]}),
    "numbers beyond 64 bits": lambda: pd.DataFrame({"a": [2**70]}),
    "columns of one name": lambda: pd.DataFrame([[1, 2]], columns=["a", "a"]),
    "durations": lambda: pd.DataFrame({"a": [pd.Timedelta("1s")]}),
}


@pytest.mark.parametrize("frame", FRAMES)
def test_frames(frame):
    catalog = ice.load_catalog("m", type="in-memory")
    catalog.create_namespace("n")
    rows = FRAMES[frame]()
    with pytest.raises(InvalidArgumentError) as created:
        catalog.create_table("n.t", rows)
    table = catalog.create_table("n.t", pa.schema({"a": pa.int64(), "b": pa.int64()}))
    with pytest.raises(InvalidArgumentError) as appended:
        table.append(rows)
    with pytest.raises(InvalidArgumentError):
        table.append(rows, schema_mode="evolve")
    for error in (created, appended):
        # What is wrong, not that a frame is none of the things that have a schema.
        assert "expected a schema" not in str(error.value)
        assert "a" in str(error.value).replace("the data", "").split(":")[0] or frame == "numbers beyond 64 bits"
    assert table.scan().count() == 0


def test_frames_that_lose_nothing_are_taken():
    catalog = ice.load_catalog("m", type="in-memory")
    catalog.create_namespace("n")
    for number, rows in enumerate(
        [
            pd.DataFrame({"a": pd.Categorical(["x", "y"])}),
            pd.DataFrame({"a": MONTHS.to_timestamp()}),
            pd.DataFrame({"a": MONTHS.astype(str)}),
            pl.DataFrame({"a": pl.Series(["x", "y"], dtype=pl.Categorical), "b": [[1], [2]], "c": [{"x": 1}, None]}),
        ]
    ):
        schema = pa.schema({"a": pa.timestamp("us")}) if number == 1 else rows
        assert catalog.create_table(f"n.t{number}", schema).append(rows).scan().count() == 2


NAIVE = dt.datetime(2026, 4, 1, 23, 30)  # noqa: DTZ001
AWARE = NAIVE.replace(tzinfo=dt.timezone(dt.timedelta(hours=2)))
LOSSES = {
    "a time of day": ("d", NAIVE),
    "a time of day in a zone": ("d", AWARE),
    "a time of day of pandas": ("d", pd.Timestamp("2026-04-01 01:00")),
    "a zone": ("ts", AWARE),
    "nanoseconds": ("ts", pd.Timestamp("2026-04-01 00:00:00.000000001")),
    "a zone of a time": ("t", dt.time(1, 2, tzinfo=dt.timezone.utc)),
    "a date": ("t", NAIVE),
    "an array's times of day": ("d", lambda batch: pa.array([NAIVE] * batch.num_rows)),
    "a scalar's time of day": ("d", pa.scalar(NAIVE)),
    "a part of a number": ("n", 1.5),
    "a part of a number of numpy": ("n", np.float32(1.5)),
    "a part of a decimal": ("n", Decimal("1.5")),
    "what is no number": ("n", float("nan")),
    "a part of an array's numbers": ("n", lambda batch: pa.array([1.5] * batch.num_rows)),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_values_of_updates_and_merges(loss):
    column, value = LOSSES[loss]
    catalog = ice.load_catalog("m", type="in-memory")
    catalog.create_namespace("n")
    schema = pa.schema({"n": pa.int64(), "d": pa.date32(), "ts": pa.timestamp("us"), "t": pa.time64("us")})
    rows = pa.table({"n": [1], "d": [dt.date(2026, 1, 1)], "ts": [NAIVE], "t": [dt.time(1)]}, schema=schema)
    table = catalog.create_table("n.t", schema).append(rows)
    with pytest.raises(InvalidArgumentError, match=f"the column '{column}'"):
        table.update({column: value})
    with pytest.raises(InvalidArgumentError, match=f"the column '{column}'"):
        table.merge(rows, on="n").when_matched_update({column: value}).execute()
    assert table.refresh().scan().to_arrow().equals(rows)
    for whole in (pd.Timestamp("2026-04-01"), dt.date(2026, 4, 1)):
        table.update({"d": whole})
        assert table.scan().to_arrow()["d"].to_pylist() == [dt.date(2026, 4, 1)]
        table.update({"d": dt.date(2026, 1, 1)})
