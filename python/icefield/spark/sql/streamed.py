"""The rows of a DataFrame one partition after the other in the driver, as Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from icefield.spark.columns.types import arrow_schema
from icefield.spark.sessions.failures import sentence
from icefield.spark.sessions.workers import drivers_python

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["rows_of"]


def rows_of(frame: DataFrame) -> pa.RecordBatchReader:
    """Return the rows of a DataFrame as a reader, which holds those of one partition at a time."""
    schema = arrow_schema(frame.schema)
    names = frame.columns
    # PySpark parses the names of columns: as paths, and ``*`` as all of them.
    sent = frame.toDF(*(f"c{n}" for n in range(len(names))))
    wanted = pa.schema([field.with_name(f"c{n}") for n, field in enumerate(schema)])

    @sentence
    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            yield pa.record_batch({"batch": pa.array([sink.getvalue().to_pybytes()], pa.binary())})

    with drivers_python():
        packed = sent.mapInArrow(pack, "batch binary")

    def batches() -> Iterator[pa.RecordBatch]:
        for row in packed.toLocalIterator():
            for batch in pa.ipc.open_stream(bytes(row[0])):
                plain = pa.Table.from_batches([batch]).cast(wanted)
                yield from plain.rename_columns(names).cast(schema).to_batches()

    return pa.RecordBatchReader.from_batches(schema, batches())
