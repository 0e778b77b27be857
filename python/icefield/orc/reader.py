"""Reading ORC files as Arrow."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias, cast

from icefield._core import OrcFile, Storage
from icefield._inputs.locations import has_scheme
from icefield._support.optional import require
from icefield.errors import InvalidArgumentError

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Buffer

    from icefield.expressions import Expression

__all__ = ["ORCFile", "read_schema", "read_table"]

Source: TypeAlias = "str | os.PathLike[str] | Buffer | IO[bytes]"
Columns: TypeAlias = "Sequence[str | int] | None"
Filter: TypeAlias = "str | Expression | None"
Rows: TypeAlias = "range | tuple[int, int] | None"
Keys: TypeAlias = "Mapping[str, bytes] | Callable[[str, int, str, bytes], bytes | None] | None"


class ORCFile:
    """An ORC file, open for reading.

    Parameters
    ----------
    source
        A path, a URL, the bytes of the file in anything that is a buffer, or a binary file, which is read whole.
    storage
        Properties of the storage that a path or URL is read from, named as those of a catalog.
    timestamp_unit
        The unit of timestamps. Microseconds hold all of the years 1 to 9999, nanoseconds 1677 to 2262.
    out_of_range
        What becomes of timestamps beyond that unit: an error, null, or the nearest one that fits (``"saturate"``).
    strings
        How strings are returned: as strings, as an Arrow dictionary, or as unchecked bytes.
    trim_char
        Cut the trailing spaces of ``char`` columns, which only pad them.
    keys
        Master keys of encrypted columns by name; or a function that is given name and version of the master key,
        the cipher and the wrapped local key, and gives the local key, or ``None`` where it may not be used. Columns
        without a key are read as their mask shows them.
    schema
        Another schema to read the file with: the text of ORC, as ``"struct<id:bigint,name:string>"``, or Arrow's.
        Fields are found by name, as are those of structs; fields that the file lacks are null, and values of another
        type are converted by the rules of Java's ``orc-core``. The unit of timestamps is ``timestamp_unit``.
    positional
        Find the top-level fields of ``schema`` by their positions instead.
    case_sensitive
        Whether names of fields differ if only their case does.
    overflow
        What becomes of a value that the type in ``schema`` cannot hold: null, as in Java (text is cut), or an error.

    Raises
    ------
    CorruptDataError
        If the file is not what the specification says; it names file, place and offset.
    UnsupportedFeatureError
        If it is of a later version, or larger than the limits.
    MissingFileError
        If there is no such file.
    InvalidArgumentError
        If ``schema`` is not understood, or asks for a type that a column is not converted to.

    """

    def __init__(
        self,
        source: Source,
        *,
        storage: Mapping[str, str] | None = None,
        timestamp_unit: Literal["s", "ms", "us", "ns"] = "us",
        out_of_range: Literal["null", "saturate", "error"] = "error",
        strings: Literal["utf8", "dictionary", "binary"] = "utf8",
        trim_char: bool = True,
        keys: Keys = None,
        schema: str | pa.Schema | None = None,
        positional: bool = False,
        case_sensitive: bool = True,
        overflow: Literal["null", "error"] = "null",
    ) -> None:
        self._file = OrcFile(
            _opened(source),
            storage=Storage(storage or {}),
            keys=keys,
            timestamp_unit=timestamp_unit,
            out_of_range=out_of_range,
            strings=strings,
            trim_char=trim_char,
            schema=schema,
            positional=positional,
            case_sensitive=case_sensitive,
            overflow=overflow,
        )

    @property
    def schema(self) -> pa.Schema:
        """The columns as they are read: those of the file, or of the schema that it is read with."""
        return self._file.schema().to_pyarrow()

    @property
    def type_description(self) -> str:
        """The type of the rows in the file as ORC writes it, for example ``struct<id:bigint,name:string>``."""
        return self._file.type_description

    @property
    def metadata(self) -> dict[str, bytes]:
        """The user's metadata."""
        return self._file.metadata

    @property
    def nrows(self) -> int:
        """The number of rows."""
        return self._file.nrows

    @property
    def nstripes(self) -> int:
        """The number of stripes."""
        return self._file.nstripes

    @property
    def nstripe_statistics(self) -> int:
        """The number of stripes that have statistics."""
        return self._file.nstripe_statistics

    @property
    def file_statistics(self) -> list[dict[str, Any]]:
        """Statistics of the file by column id, with the field names of the specification."""
        return _list(self._file.file_statistics())

    @property
    def stripe_statistics(self) -> list[dict[str, Any]]:
        """Statistics of each stripe; below ``col_stats`` by column id."""
        return _list(self._file.stripe_statistics())

    @property
    def file_version(self) -> str:
        """The version of the format: ``0.11``, ``0.12`` or ``UNSTABLE-PRE-2.0``."""
        return self._file.file_version

    @property
    def software_version(self) -> str:
        """The software that wrote the file, and its version where it says so."""
        return self._file.software_version

    @property
    def writer(self) -> str:
        """The implementation that wrote the file, for example ``ORC_JAVA``; a number for unknown ones."""
        return self._file.writer

    @property
    def writer_version(self) -> str:
        """The version of the writer: the last fix it has, for example ``ORC_135``; a number for newer ones."""
        return self._file.writer_version

    @property
    def compression(self) -> str:
        """The codec, for example ``ZSTD``; ``UNCOMPRESSED`` without one."""
        compression = self._file.compression
        return "UNCOMPRESSED" if compression == "NONE" else compression

    @property
    def compression_size(self) -> int:
        """The largest number of bytes that are compressed as one."""
        return self._file.compression_size

    @property
    def row_index_stride(self) -> int:
        """Rows of an entry of the row index; 0 without one."""
        return self._file.row_index_stride

    @property
    def file_length(self) -> int:
        """Bytes of the file."""
        return self._file.lengths[0]

    @property
    def content_length(self) -> int:
        """Bytes of the stripes, with the header before them."""
        return self._file.lengths[1]

    @property
    def stripe_statistics_length(self) -> int:
        """Compressed size of the stripe statistics."""
        return self._file.lengths[2]

    @property
    def file_footer_length(self) -> int:
        """Compressed size of the footer."""
        return self._file.lengths[3]

    @property
    def file_postscript_length(self) -> int:
        """Bytes of the postscript."""
        return self._file.lengths[4]

    def read(
        self, columns: Columns = None, *, predicate: Filter = None, rows: Rows = None, use_threads: bool = True
    ) -> pa.Table:
        """Read the whole file, or the rows of it that match.

        Parameters
        ----------
        columns
            The columns wanted, all without it: numbers of top-level columns, or dotted names (below lists, maps and
            unions ``element``, ``key``, ``value`` and the variant's number). They come in the order of the file.
        predicate
            Rows that are wanted: an expression, or its text, as ``"id > 5 AND name IS NOT NULL"``. What statistics and
            bloom filters rule out is not read, and other columns are decoded for the rows that match.
        rows
            The first row wanted and the one after the last, counted from 0, as ``range(1000, 2000)``. Reading starts at
            the row group of the first one (`row_index_stride`); nothing before it is fetched or decoded.
        use_threads
            Decode several columns, stripes, or parts of one, at a time.

        Returns
        -------
        pyarrow.Table
            The rows.

        """
        threads = _threads(use_threads)
        return self._file.read(_listed(columns), predicate=predicate, rows=_span(rows), threads=threads).to_pyarrow()

    def to_reader(
        self,
        columns: Columns = None,
        *,
        predicate: Filter = None,
        rows: Rows = None,
        batch_size: int = 8192,
        use_threads: bool = True,
    ) -> pa.RecordBatchReader:
        """Read in a stream, in the order of the file.

        Parameters
        ----------
        columns
            The columns wanted, as in `read`.
        predicate
            Rows that are wanted, as in `read`.
        rows
            The first row wanted and the one after the last, as in `read`.
        batch_size
            Maximum number of rows in a batch.
        use_threads
            Decode several columns, stripes, or parts of one, at a time, and a few batches ahead.

        Returns
        -------
        pyarrow.RecordBatchReader
            The rows.

        """
        threads = _threads(use_threads)
        stream = self._file.stream(
            _listed(columns), predicate=predicate, rows=_span(rows), batch_size=batch_size, threads=threads
        )
        reader: pa.RecordBatchReader = require("pyarrow").RecordBatchReader.from_stream(stream)
        return reader

    def read_stripe(self, n: int, columns: Columns = None, *, predicate: Filter = None) -> pa.RecordBatch:
        """Read one stripe.

        Parameters
        ----------
        n
            Its number, from 0.
        columns
            The columns wanted, as in `read`.
        predicate
            Rows that are wanted, as in `read`.

        Returns
        -------
        pyarrow.RecordBatch
            The rows of the stripe.

        """
        read = self._file.read_stripe(n, _listed(columns), predicate=predicate)
        batch: pa.RecordBatch = require("pyarrow").record_batch(read)
        return batch

    def iter_batches(
        self, batch_size: int = 8192, columns: Columns = None, *, predicate: Filter = None, rows: Rows = None
    ) -> Iterator[pa.RecordBatch]:
        """Read batch after batch; one stripe's bytes are in memory at a time.

        Parameters
        ----------
        batch_size
            Maximum number of rows in a batch; a batch ends with its stripe.
        columns
            The columns wanted, as in `read`.
        predicate
            Rows that are wanted, as in `read`.
        rows
            The first row wanted and the one after the last, as in `read`.

        Yields
        ------
        pyarrow.RecordBatch
            The next rows.

        """
        pyarrow = require("pyarrow")
        batches = self._file.batches(_listed(columns), predicate=predicate, rows=_span(rows), batch_size=batch_size)
        while (batch := batches.next_batch()) is not None:
            yield pyarrow.record_batch(batch)

    def inspect(self, *, runs: bool = False) -> dict[str, Any]:
        """Return all metadata of the file.

        Parameters
        ----------
        runs
            Also read every stream, and count its compression chunks and runs.

        Returns
        -------
        dict
            The messages of the file with the field names of the specification; bytes as hex, numbers beyond 2**53
            as text.

        """
        described: dict[str, Any] = json.loads(self._file.inspect(runs=runs))
        return described

    def __arrow_c_schema__(self) -> object:
        """Export the schema by Arrow's C interface."""
        return self._file.schema().__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the rows as a stream by Arrow's C interface."""
        return self._file.stream().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        """Describe the file."""
        return f"<ORCFile {self.nrows} rows in {self.nstripes} stripes: {self.type_description}>"


def read_table(
    source: Source,
    columns: Columns = None,
    filesystem: object = None,
    *,
    predicate: Filter = None,
    use_threads: bool = True,
    **options: Any,
) -> pa.Table:
    """Read a whole ORC file.

    Parameters
    ----------
    source
        A path, a URL, the bytes of the file, or a binary file.
    columns
        The columns wanted, as in `ORCFile.read`.
    filesystem
        A filesystem of pyarrow or fsspec that ``source`` is a path of. The file is then read whole; ``storage``, an
        option of `ORCFile`, fetches what is needed.
    predicate
        Rows that are wanted, as in `ORCFile.read`.
    use_threads
        Decode several columns, stripes, or parts of one, at a time.
    **options
        The options of `ORCFile`.

    Returns
    -------
    pyarrow.Table
        The rows.

    """
    if filesystem is not None:
        with _open_in(filesystem, str(source)) as file:
            source = file.read()
    return ORCFile(source, **options).read(columns, predicate=predicate, use_threads=use_threads)


def read_schema(source: Source, **options: Any) -> pa.Schema:
    """Read the schema of an ORC file.

    Parameters
    ----------
    source
        A path, a URL, the bytes of the file, or a binary file.
    **options
        The options of `ORCFile`.

    Returns
    -------
    pyarrow.Schema
        The columns as `read_table` returns them with the same options.

    """
    return ORCFile(source, **options).schema


def _opened(source: Source) -> str | bytes:
    from pathlib import Path

    if isinstance(source, bytes):
        return source
    if isinstance(source, str) and (not source or has_scheme(source)):  # "" is refused, and not the working directory
        return source
    if isinstance(source, str | os.PathLike):
        return str(Path(source).absolute())
    read = getattr(source, "read", None)
    return bytes(memoryview(cast("Buffer", source)) if read is None else read())


def _open_in(filesystem: Any, path: str) -> IO[bytes]:
    """Open a file as pyarrow's filesystems do, or fsspec's."""
    opened: IO[bytes] = (
        filesystem.open_input_file(path) if hasattr(filesystem, "open_input_file") else filesystem.open(path, "rb")
    )
    return opened


def _threads(use_threads: bool) -> int:
    return (os.cpu_count() or 1) if use_threads else 1


def _listed(columns: Columns) -> list[str | int] | None:
    return None if columns is None else list(columns)


def _span(rows: Rows) -> tuple[int, int] | None:
    if rows is None:
        return None
    if isinstance(rows, range) and rows.step != 1:
        raise InvalidArgumentError(f"rows: expected a range of step 1, got {rows}: filter what was read")
    start, stop = (rows.start, rows.stop) if isinstance(rows, range) else rows
    if min(start, stop) < 0:
        raise InvalidArgumentError(
            f"rows: expected numbers from 0, got {start} and {stop}: add the number of rows (nrows)"
        )
    return start, stop


def _list(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(text)
    return found
