"""Errors about columns that the table has now, but not in the snapshot that is read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from icefield.errors import ValidationError

if TYPE_CHECKING:
    from icefield.metadata import Snapshot, TableMetadata

__all__ = ["of_its_time"]

_MISSING = re.compile(r'no column "((?:[^"\\]|\\.)*)"')


def of_its_time(error: ValidationError, metadata: TableMetadata, snapshot: Snapshot | None) -> ValidationError:
    """Return an error about a missing column that says so, if the table has the column now.

    Parameters
    ----------
    error
        What the core says of the scan.
    metadata
        The table.
    snapshot
        The snapshot that was chosen.

    """
    found = _MISSING.search(str(error))
    schema_id = None if snapshot is None else snapshot.schema_id
    then = None if schema_id is None else metadata.schema_by_id(schema_id)
    if found is None or then is None or snapshot is None:
        return error
    name = found[1]
    now = {metadata.schema().find_column_name(field_id): field_id for field_id in metadata.schema().field_ids}
    if name not in now:
        return error
    before = then.find_column_name(now[name])
    called = f'where "{name}" was "{before}"' if before else f'which had no "{name}"'
    return ValidationError(f"{error}; snapshot {snapshot.snapshot_id} is read with the schema of its time, {called}")
