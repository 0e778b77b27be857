"""Tables of folders with data files in Hive's layout."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from icefield._core import look_at_folder
from icefield.table.catalog import Migration

if TYPE_CHECKING:
    from icefield._core import Storage
    from icefield.table import CreateTableTransaction, Table
    from icefield.types import Type

__all__ = ["MigrationRequest", "migrate_folder"]


@dataclass(frozen=True)
class MigrationRequest:
    """What is migrated, and to which table."""

    folder: str
    format: Literal["parquet", "orc", "avro"] | None
    partitioning: Mapping[str, Type | str]
    location: str | None
    properties: dict[str, str]


def migrate_folder(
    storage: Storage,
    request: MigrationRequest,
    create: Callable[..., CreateTableTransaction],
    snapshot_properties: Mapping[str, str] | None,
    *,
    validate: Literal["footer", "data"],
    dry_run: bool,
) -> Migration[Table]:
    """Look at a folder, and create a table with its files; `Catalog.migrate` calls it."""
    found = look_at_folder(storage, request.folder, request.format, dict(request.partitioning), request.properties)
    own = request.location is None
    kind = {"migrated": "true"} if own else {"snapshot": "true", "gc.enabled": "false"}
    changes = create(
        found.schema,
        location=request.folder if own else request.location,
        partition_spec=found.partition_spec,
        properties={**kind, **request.properties},
    )
    columns = tuple(field.name for field in found.partition_spec.fields)
    if dry_run:
        rows = changes.add_files(found.paths, snapshot_properties, validate=validate, dry_run=True).rows_added
        return Migration(None, changes.metadata.schema(), columns, len(found.paths), rows, found.bytes)
    with changes:
        changes.add_files(found.paths, snapshot_properties, validate=validate)
        table = changes.commit_transaction()
    snapshot = table.current_snapshot()
    summary = snapshot.summary if snapshot is not None else None
    rows = int(summary.get("added-records", 0)) if summary is not None else 0
    return Migration(table, table.schema(), columns, len(found.paths), rows, found.bytes)
