"""ORC files, read as Arrow and written from it, in the manner of ``pyarrow.orc``.

::

    >>> from icefield import orc  # doctest: +SKIP
    >>> file = orc.ORCFile("s3://bucket/events.orc", storage={"s3.region": "eu-west-1"})  # doctest: +SKIP
    >>> file.nrows, file.schema.names  # doctest: +SKIP
    (450, ['id', 'name'])
    >>> file.read(columns=["id"])  # doctest: +SKIP
    >>> with orc.ORCWriter("copy.orc", bloom_filter_columns=["id"]) as writer:  # doctest: +SKIP
    ...     for batch in file.iter_batches():
    ...         writer.write(batch)
"""

from __future__ import annotations

from icefield.orc.check import Problem, check
from icefield.orc.convert import convert, json_lines
from icefield.orc.reader import ORCFile, read_schema, read_table
from icefield.orc.writer import ORCWriter, merge_files, write_table

__all__ = [
    "ORCFile",
    "ORCWriter",
    "Problem",
    "Writer",
    "check",
    "convert",
    "json_lines",
    "merge_files",
    "read_schema",
    "read_table",
    "write_table",
]

#: The shorter name of `ORCWriter`.
Writer = ORCWriter
