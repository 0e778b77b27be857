"""Puffin files and deletion vectors (Puffin specification).

::

    >>> from icefield.puffin import DeletionVector
    >>> vector = DeletionVector([1, 5, 5])
    >>> vector.cardinality, 5 in vector, DeletionVector.from_bytes(vector.to_bytes()) == vector
    (2, True, True)
    >>> vector.live_mask(first_row=4, row_count=3).to_pylist()
    [True, False, True]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from icefield._core import DeletionVector, read_puffin

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Blob", "DeletionVector", "PuffinFile", "read"]


@dataclass(frozen=True, slots=True)
class Blob:
    """A blob of a Puffin file and its description in the footer."""

    type: str
    fields: tuple[int, ...]
    snapshot_id: int
    sequence_number: int
    offset: int
    length: int
    compression_codec: str | None
    properties: Mapping[str, str]
    data: bytes

    def deletion_vector(self) -> DeletionVector:
        """Read the blob as a deletion vector.

        Returns
        -------
        DeletionVector
            The deleted rows of the data file that ``properties["referenced-data-file"]`` names.

        Raises
        ------
        CorruptDataError
            If length, magic, checksum or bitmap are invalid, or the number of rows differs from
            ``properties["cardinality"]``.

        """
        count = self.properties.get("cardinality")
        return DeletionVector.from_bytes(self.data, record_count=None if count is None else int(count))


@dataclass(frozen=True, slots=True)
class PuffinFile:
    """A Puffin file."""

    properties: Mapping[str, str]
    blobs: tuple[Blob, ...]


def read(data: bytes, /) -> PuffinFile:
    """Read a Puffin file.

    Parameters
    ----------
    data
        The whole file.

    Returns
    -------
    PuffinFile
        Properties and blobs, the blobs decompressed.

    Raises
    ------
    CorruptDataError
        If footer or blobs are invalid; it names the place and the offset.
    UnsupportedFeatureError
        If a blob has a codec that is not ``lz4`` or ``zstd``.

    """
    properties, blobs = read_puffin(data)
    return PuffinFile(properties, tuple(Blob(**{**blob, "fields": tuple(blob["fields"])}) for blob in blobs))
