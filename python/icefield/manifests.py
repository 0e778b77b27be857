"""Manifest lists and manifests as Arrow tables ("Manifests", "Manifest Lists" of the table specification).

The bytes of a file go in, a ``pyarrow.Table`` comes out; nothing is opened here::

    >>> import icefield as ice
    >>> manifests = ice.manifests.read_list(Path("snap-1.avro").read_bytes())  # doctest: +SKIP
    >>> ice.manifests.read(Path("m0.avro").read_bytes(), manifest=manifests.to_pylist()[0])  # doctest: +SKIP

The GIL is released while a file is decoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from icefield._core import (
    ContentFile,
    DataFile,
    DeleteFile,
    ManifestFile,
    clear_manifest_cache,
    manifest_cache_info,
    read_manifest,
    read_manifest_list,
    resize_manifest_cache,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

__all__ = [
    "CacheInfo",
    "ContentFile",
    "DataFile",
    "DeleteFile",
    "ManifestFile",
    "cache_info",
    "clear_cache",
    "read",
    "read_list",
    "set_cache_bytes",
]


class CacheInfo(NamedTuple):
    """Size and hit counts of the cache of decoded manifests."""

    #: Manifests and manifest lists.
    entries: int
    #: Their size in bytes.
    bytes: int
    #: The limit, in bytes; 0 is off.
    max_bytes: int
    #: Number of hits since the process started or :func:`clear_cache`.
    hits: int
    #: Number of misses, including hits without all columns.
    misses: int


def cache_info() -> CacheInfo:
    """Return the size and the hit counts of the cache of decoded manifests.

    Manifests never change, so plans of one process share what they decode: up to 256 MiB, or the number of bytes
    in the environment variable ``ICEFIELD_MANIFEST_CACHE_BYTES`` when the first table is planned. The least recently
    used manifests are dropped first. The storage property ``io.manifest.cache-enabled`` (``"false"``) excludes the
    tables of a catalog; tables in ``memory:`` are never cached.
    """
    return CacheInfo(*manifest_cache_info())


def clear_cache() -> None:
    """Clear the cache of decoded manifests."""
    clear_manifest_cache()


def set_cache_bytes(max_bytes: int) -> None:
    """Limit the cache of decoded manifests, in bytes; 0 turns it off."""
    resize_manifest_cache(max_bytes)


def read_list(data: bytes, /) -> pa.Table:
    """Read a manifest list of any format version.

    Parameters
    ----------
    data
        The whole file.

    Returns
    -------
    pyarrow.Table
        One row per manifest, with the field names of the specification. Counts that a list of version 1 lacks are null,
        its sequence numbers 0.

    Raises
    ------
    CorruptDataError
        If the bytes are not a valid manifest list; it names block, manifest, field and offset.
    UnsupportedFeatureError
        If the codec is not supported (``bzip2``, ``xz``).

    """
    return read_manifest_list(data).to_pyarrow()


def read(
    data: bytes,
    /,
    *,
    manifest: Mapping[str, object] | None = None,
    partition_type: object | None = None,
    metrics: bool | Iterable[int] = True,
    live_only: bool = False,
) -> pa.Table:
    """Read a manifest of any format version.

    Parameters
    ----------
    data
        The whole file.
    manifest
        The manifest's row of its list (:func:`read_list`). Null snapshot ids, sequence numbers and row ids are filled
        in from its ``added_snapshot_id``, ``sequence_number``, ``content`` and ``first_row_id``; without it they stay
        as written.
    partition_type
        Struct type of the partition tuple over the table's current schema; without it, the manifest's own.
    metrics
        ``True`` for sizes, counts and bounds of all columns, ``False`` for none (their columns are then left out), or
        the field ids of the columns to include.
    live_only
        Omit entries of deleted files.

    Returns
    -------
    pyarrow.Table
        One row per entry: ``status``, ``snapshot_id``, ``sequence_number``, ``file_sequence_number`` and the struct
        ``data_file``, as in the ``entries`` metadata table.

    Raises
    ------
    CorruptDataError
        If the bytes are not a valid manifest; it names block, entry, field and offset.
    UnsupportedFeatureError
        If the codec is not supported (``bzip2``, ``xz``).

    """
    ids = None if isinstance(metrics, bool) else list(metrics)
    table = read_manifest(
        data,
        manifest=None if manifest is None else dict(manifest),
        partition_type=partition_type,
        metrics=metrics is not False,
        metrics_of=ids,
        live_only=live_only,
    )
    return table.to_pyarrow()
