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

from icefield._core import Snapshot, SnapshotRef, TableMetadata

__all__ = ["Snapshot", "SnapshotRef", "TableMetadata"]
