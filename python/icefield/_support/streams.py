"""Streams of batches for pyarrow that raise the exceptions of `icefield.errors`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from icefield._core import ArrowStream

__all__ = ["reader_of"]


class _Batches:
    """Batches of a stream. Not a generator, because several threads may request the next one."""

    def __init__(self, stream: ArrowStream, reader: pa.RecordBatchReader) -> None:
        self._stream = stream
        self._reader = reader

    def __iter__(self) -> _Batches:
        return self

    def __next__(self) -> pa.RecordBatch:
        try:
            return self._reader.read_next_batch()
        except (pa.ArrowException, OSError):
            # The C interface passes only a message; the stream has the error itself.
            self._stream.raise_failure()
            raise


def reader_of(stream: ArrowStream) -> pa.RecordBatchReader:
    """Return a reader that raises the errors of the stream."""
    reader = pa.RecordBatchReader.from_stream(stream)
    return pa.RecordBatchReader.from_batches(reader.schema, _Batches(stream, reader))
