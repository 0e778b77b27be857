"""Table metadata: the state of a table in its metadata file ("Table Metadata").

A `TableMetadata` is read from the text or the bytes (gzipped or not) of a metadata file of any format version, and is
always valid. It is immutable: updates, in the JSON forms of the REST catalog protocol, return new metadata, and
requirements are checked::

    metadata = ice.TableMetadata.from_json(Path("v3.metadata.json").read_bytes())
    metadata.check([{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 42}])
    changed = metadata.apply([{"action": "set-properties", "updates": {"owner": "me"}}])
    Path("v4.metadata.json").write_text(changed.to_json())

Times come from the machine's clock unless ``now_ms`` is passed (milliseconds from the epoch).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from icefield._core import Snapshot, SnapshotRef, TableMetadata

__all__ = [
    "BlobMetadata",
    "MetadataLogEntry",
    "Operation",
    "PartitionStatisticsFile",
    "Snapshot",
    "SnapshotLogEntry",
    "SnapshotRef",
    "SnapshotRefType",
    "StatisticsFile",
    "Summary",
    "TableMetadata",
]

#: The branch that readers see by default.
MAIN_BRANCH = "main"


class Operation(str, Enum):
    """What a snapshot did; members equal their text."""

    APPEND = "append"
    REPLACE = "replace"
    OVERWRITE = "overwrite"
    DELETE = "delete"

    def __str__(self) -> str:
        return self.value


class SnapshotRefType(str, Enum):
    """Whether a reference is a branch or a tag; members equal their text."""

    BRANCH = "branch"
    TAG = "tag"

    def __str__(self) -> str:
        return self.value


class IsolationLevel(str, Enum):
    """Which concurrent commits conflict with a change of rows; members equal their text."""

    SERIALIZABLE = "serializable"
    SNAPSHOT = "snapshot"

    def __str__(self) -> str:
        return self.value


class SnapshotLogEntry(NamedTuple):
    """When a snapshot became current."""

    timestamp_ms: int
    snapshot_id: int


class MetadataLogEntry(NamedTuple):
    """A previous metadata file of the table."""

    timestamp_ms: int
    metadata_file: str


class BlobMetadata(NamedTuple):
    """What one blob of a statistics file is about."""

    #: Its type (Puffin, "Blob types"), such as ``apache-datasketches-theta-v1``.
    type: str
    #: The snapshot that it was computed from, and the sequence number of that.
    snapshot_id: int
    sequence_number: int
    #: Ids of the columns that it describes.
    fields: Sequence[int]
    #: More about it, such as ``ndv``.
    properties: Mapping[str, str] | None = None

    def to_dict(self) -> dict[str, object]:
        """Return it as metadata files have it."""
        found: dict[str, object] = {
            "type": self.type,
            "snapshot-id": self.snapshot_id,
            "sequence-number": self.sequence_number,
            "fields": list(self.fields),
        }
        return {**found, "properties": dict(self.properties)} if self.properties else found


class StatisticsFile(NamedTuple):
    """A Puffin file with statistics of a snapshot ("Table Statistics")."""

    snapshot_id: int
    statistics_path: str
    #: Bytes of the file, and of its footer.
    file_size_in_bytes: int
    file_footer_size_in_bytes: int
    blob_metadata: Sequence[BlobMetadata] = ()
    #: Base64 text about the key of an encrypted file.
    key_metadata: str | None = None

    def to_dict(self) -> dict[str, object]:
        """Return it as metadata files have it."""
        found: dict[str, object] = {
            "snapshot-id": self.snapshot_id,
            "statistics-path": self.statistics_path,
            "file-size-in-bytes": self.file_size_in_bytes,
            "file-footer-size-in-bytes": self.file_footer_size_in_bytes,
            "blob-metadata": [blob.to_dict() for blob in self.blob_metadata],
        }
        return found if self.key_metadata is None else {**found, "key-metadata": self.key_metadata}


class PartitionStatisticsFile(NamedTuple):
    """A file with statistics of the partitions of a snapshot ("Partition Statistics")."""

    snapshot_id: int
    statistics_path: str
    #: Bytes of the file.
    file_size_in_bytes: int

    def to_dict(self) -> dict[str, object]:
        """Return it as metadata files have it."""
        return {
            "snapshot-id": self.snapshot_id,
            "statistics-path": self.statistics_path,
            "file-size-in-bytes": self.file_size_in_bytes,
        }


class Summary(dict[str, str]):
    """What a snapshot did and how much: its operation and counts, as text; an entry that is missing is ``None``."""

    def __init__(self, /, operation: Operation | str, **additional_properties: str) -> None:
        super().__init__(additional_properties, operation=str(operation))

    def __missing__(self, key: str) -> None:
        return None

    def __reduce__(self) -> tuple[object, ...]:
        return _summary, (dict(self),)

    @property
    def operation(self) -> Operation:
        """What the snapshot did."""
        return Operation(self["operation"])

    @property
    def additional_properties(self) -> dict[str, str]:
        """All entries but the operation."""
        return {name: value for name, value in self.items() if name != "operation"}


def _summary(entries: dict[str, str]) -> Summary:
    return Summary(**entries)
