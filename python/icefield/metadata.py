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

from enum import Enum
from typing import NamedTuple

from icefield._core import Snapshot, SnapshotRef, TableMetadata

__all__ = [
    "MAIN_BRANCH",
    "MetadataLogEntry",
    "Operation",
    "Snapshot",
    "SnapshotLogEntry",
    "SnapshotRef",
    "SnapshotRefType",
    "Summary",
    "TableMetadata",
]

MAIN_BRANCH = "main"
"""The branch that readers see by default."""


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


class SnapshotLogEntry(NamedTuple):
    """When a snapshot became current."""

    timestamp_ms: int
    snapshot_id: int


class MetadataLogEntry(NamedTuple):
    """A previous metadata file of the table."""

    timestamp_ms: int
    metadata_file: str


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
