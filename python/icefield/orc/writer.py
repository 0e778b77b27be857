"""Writing ORC files from Arrow."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias

from icefield._core import OrcWriter, Storage, orc_merge
from icefield._inputs.frames import rows_of
from icefield._inputs.locations import has_scheme

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from icefield.arrow import Rows, SchemaLike

__all__ = ["ORCWriter", "merge_files", "write_table"]

Where: TypeAlias = "str | os.PathLike[str] | IO[bytes]"
NewKeys: TypeAlias = "Mapping[str, bytes] | Callable[[str], tuple[int, bytes, bytes]] | None"
Compression: TypeAlias = Literal["uncompressed", "zlib", "snappy", "lzo", "lz4", "zstd", "brotli"]


class ORCWriter:
    """Write an ORC file, piece by piece.

    Rows go to the file stripe by stripe, so that a file of any length needs the memory of one stripe. A path gets its
    file when the writer is closed, and none if something fails before that.

    Parameters
    ----------
    where
        A path, a URL, or a binary file that is open for writing; such a file stays open.
    schema
        The columns, as anything with ``__arrow_c_schema__``; without it those of the first rows. Metadata of fields
        becomes attributes of the types (``iceberg.id`` and others), except ``orc.type``, which names an exact type:
        ``char(7)``, ``varchar(20)``, ``geometry(OGC:CRS84)``.
    storage
        Properties of the storage that a path or URL is written to, named as those of a catalog.
    file_version
        The version of the format: ``0.12``, which all readers know, ``0.11``, or ``UNSTABLE-PRE-2.0`` of the draft.
    batch_size
        Maximum number of rows encoded at a time.
    stripe_size
        Bytes that are held, as compressed as they are, before a stripe is written.
    stripe_rows
        Maximum number of rows in a stripe.
    compression
        The codec of all streams.
    compression_level
        The codec's own level: zlib 0 to 12 (6), zstd -7 to 22 (3), brotli 0 to 11 (5); in brackets what ``None``
        means. The other codecs have none.
    compression_block_size
        Bytes that are compressed as one, below 2**23; ``None`` means 256 KiB, and less for tables of many columns.
    compression_strategy
        ``speed`` packs integers to widths that are read fast, ``compression`` to the bit.
    row_index_stride
        Rows of a row group; 0 means no row index.
    padding_tolerance
        The share of a stripe that may be padding, where ``block_size`` is given.
    block_size
        Stripes do not cross multiples of so many bytes where padding can prevent it.
    dictionary_key_size_threshold
        Text is written through a dictionary where its distinct values are at most this share of all values of a
        stripe: 0 never, 1 always.
    sorted_dictionaries
        Sort the dictionaries, as old readers may expect.
    bloom_filter_columns
        Columns with bloom filters: numbers of top-level columns or dotted names. A nested column includes all columns
        below it.
    bloom_filter_fpp
        The share of values that a filter wrongly says are there.
    bloom_filter_version
        ``original`` writes filters for readers older than ORC 1.4, too.
    timezone
        The zone whose wall clocks timestamps without a zone are. Files of ``UTC`` read alike everywhere.
    last_second
        What becomes of timestamps from 1969-12-31 23:59:59.001 to 23:59:59.999999999, which ORC cannot hold: seconds
        are cut toward zero, so half a second before 1970 and half a second after it are the same bytes. ``refuse``
        raises, ``round`` stores the nearer full second.
    metadata
        The user's metadata.
    keys
        Master keys for column encryption by name: up to 16 bytes for AES-128, 32 for AES-256. Or a function, as a
        key server stands behind: it is given the name of a master key, once for each encrypted column, and gives
        the version of that key, a new local key of 16 or 32 bytes, and the same wrapped, as readers will be given it.
    encrypt
        For each name of a key the columns under it, by dotted name.
    masks
        What readers without the key see of encrypted columns: for each mask its columns. Masks are ``nullify`` (what
        others get), ``sha256`` and ``redact``, which takes parameters after commas as orc-core does.
    use_threads
        Encode columns side by side. The bytes of the file do not depend on the number of threads.

    Raises
    ------
    InvalidArgumentError
        If an option makes no file, a column is not there, or a value cannot be held by ORC.
    UnsupportedFeatureError
        If ORC has no type for a column.
    StorageError
        If the storage fails.

    """

    def __init__(
        self,
        where: Where,
        *,
        schema: SchemaLike | None = None,
        storage: Mapping[str, str] | None = None,
        file_version: Literal["0.11", "0.12", "UNSTABLE-PRE-2.0"] = "0.12",
        batch_size: int = 10_000,
        stripe_size: int = 64 << 20,
        stripe_rows: int | None = None,
        compression: Compression = "zstd",
        compression_level: int | None = None,
        compression_block_size: int | None = None,
        compression_strategy: Literal["speed", "compression"] = "speed",
        row_index_stride: int = 10_000,
        padding_tolerance: float = 0.05,
        block_size: int | None = None,
        dictionary_key_size_threshold: float = 0.8,
        sorted_dictionaries: bool = True,
        bloom_filter_columns: Sequence[str | int] | None = None,
        bloom_filter_fpp: float = 0.01,
        bloom_filter_version: Literal["utf8", "original"] = "utf8",
        timezone: str = "UTC",
        last_second: Literal["refuse", "round"] = "refuse",
        metadata: Mapping[str, bytes] | None = None,
        keys: NewKeys = None,
        encrypt: Mapping[str, Sequence[str]] | None = None,
        masks: Mapping[str, Sequence[str]] | None = None,
        use_threads: bool = True,
    ) -> None:
        options = {
            "file_version": file_version,
            "batch_size": batch_size,
            "stripe_size": stripe_size,
            "stripe_rows": stripe_rows,
            "compression": compression,
            "compression_level": compression_level,
            "compression_block_size": compression_block_size,
            "compression_strategy": compression_strategy,
            "row_index_stride": row_index_stride,
            "padding_tolerance": padding_tolerance,
            "block_size": block_size,
            "dictionary_key_size_threshold": dictionary_key_size_threshold,
            "sorted_dictionaries": sorted_dictionaries,
            "bloom_filter_columns": list(bloom_filter_columns or []),
            "bloom_filter_fpp": bloom_filter_fpp,
            "bloom_filter_version": bloom_filter_version,
            "timezone": timezone,
            "last_second": last_second,
            "metadata": list((metadata or {}).items()),
            "keys": keys if callable(keys) else dict(keys or {}),
            "encrypt": [(name, list(columns)) for name, columns in (encrypt or {}).items()],
            "masks": [(mask, list(columns)) for mask, columns in (masks or {}).items()],
            "use_threads": use_threads,
        }
        self._closed = False
        self._writer = OrcWriter(_path_or_file(where), options, schema=schema, storage=Storage(storage or {}))

    @property
    def is_open(self) -> bool:
        """Whether the writer is neither closed nor given up."""
        return not self._closed

    def write(self, table: Rows) -> None:
        """Append rows.

        Parameters
        ----------
        table
            Anything with ``__arrow_c_stream__`` or ``__arrow_c_array__``: a pyarrow table or batch, a
            RecordBatchReader, a Polars or DuckDB relation. Its columns are those of the file, in their order.

        Raises
        ------
        InvalidArgumentError
            If the columns differ from the file's, a value cannot be held, or the writer is closed. The file is then
            given up.

        """
        self._writer.write(rows_of(table))

    def flush(self) -> None:
        """Write the buffered rows as a stripe; later rows start a new one."""
        self._writer.flush()

    def close(self) -> None:
        """Write the rest, and make the file appear. A writer that is closed may be closed again."""
        if not self._closed:
            # Raises if this call comes from a write that is in progress, before anything changes.
            _ = self._writer.memory
            self._closed = True
            self._writer.close()

    def abort(self) -> None:
        """Discard the file. Bytes already written to a binary file object stay there."""
        self._writer.abort()
        self._closed = True

    def __enter__(self) -> Self:
        """Return the writer."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file, or give it up where something was raised."""
        if kind is None:
            self.close()
        else:
            self.abort()


def write_table(table: Rows, where: Where, **options: Any) -> None:
    """Write rows to an ORC file.

    Parameters
    ----------
    table
        Anything with ``__arrow_c_stream__`` or ``__arrow_c_array__``.
    where
        A path, a URL, or a binary file that is open for writing. A path gets its file when all is written, and none
        if something fails.
    **options
        The options of `ORCWriter`.

    """
    with ORCWriter(where, **options) as writer:
        writer.write(table)


def merge_files(
    inputs: Iterable[str | os.PathLike[str] | bytes], output: Where, *, storage: Mapping[str, str] | None = None
) -> None:
    """Concatenate ORC files without decoding them.

    Stripes move as they are; the statistics of the new file are those of all. The files must have one schema (with its
    attributes), compression, version, writer, row index stride and calendar, and no two values for one key of the
    user's metadata, which the new file gets.

    Parameters
    ----------
    inputs
        Paths, URLs or the bytes of files.
    output
        A path, a URL, or a binary file that is open for writing. A path gets its file when all is written, and none
        if something fails.
    storage
        Properties of the storage that paths and URLs belong to.

    Raises
    ------
    InvalidArgumentError
        If there is no file, or one is unlike the first one or encrypted; it names the file and the reason.
    CorruptDataError
        If one is not a complete ORC file.

    """
    files = [file if isinstance(file, bytes) else _path(file) for file in inputs]
    orc_merge(files, _path_or_file(output), storage=Storage(storage or {}))


def _path(where: str | os.PathLike[str]) -> str:
    from pathlib import Path

    if isinstance(where, str) and (not where or has_scheme(where)):  # "" is refused, and not the working directory
        return where
    return str(Path(where).absolute())


def _path_or_file(where: Where) -> str | IO[bytes]:
    return _path(where) if isinstance(where, str | os.PathLike) else where
