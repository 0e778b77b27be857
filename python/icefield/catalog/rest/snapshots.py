"""Tables that are loaded with the snapshots of branches and tags only, and with the others when they are needed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from icefield._core import TableMetadata
from icefield.errors import InvalidArgumentError

__all__ = ["completed", "loads_refs"]


def loads_refs(properties: Mapping[str, str]) -> bool:
    """Return whether tables are loaded with the snapshots of branches and tags only.

    Raises
    ------
    InvalidArgumentError
        If ``snapshot-loading-mode`` is neither ``all`` nor ``refs``.

    """
    mode = properties.get("snapshot-loading-mode", "all")
    if mode.lower() not in {"all", "refs"}:
        raise InvalidArgumentError(f"catalog property snapshot-loading-mode={mode}: expected all or refs")
    return mode.lower() == "refs"


def completed(known: TableMetadata, newest: TableMetadata) -> TableMetadata:
    """Return the metadata of a table with the snapshots that it had then, from newer metadata that have all."""
    made, whole = (json.loads(one.to_json()) for one in (known, newest))
    snapshots = {one["snapshot-id"]: one for one in whole.get("snapshots") or [] if _is_older(one, made)}
    snapshots |= {one["snapshot-id"]: one for one in made.get("snapshots") or []}
    made["snapshots"] = sorted(snapshots.values(), key=lambda one: (one.get("sequence-number", 0), one["timestamp-ms"]))
    logs = (document.get("snapshot-log") or [] for document in (whole, made))
    entries = {(entry["timestamp-ms"], entry["snapshot-id"]) for log in logs for entry in log}
    last = made["last-updated-ms"]
    made["snapshot-log"] = [{"timestamp-ms": at, "snapshot-id": one} for at, one in sorted(entries) if at <= last]
    return TableMetadata.from_json(made)


def _is_older(snapshot: Mapping[str, Any], table: Mapping[str, Any]) -> bool:
    """Return whether a table had a snapshot when it was loaded; those of version 1 have no sequence number."""
    is_newer = snapshot.get("sequence-number", 0) > table.get("last-sequence-number", 0)
    return not is_newer and snapshot["timestamp-ms"] <= table["last-updated-ms"]
