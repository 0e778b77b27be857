"""Reads that an engine distributes: the tasks of metadata tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from icefield._core import ArrowStream, Inspect, Storage, TableState
from icefield.expressions import from_json

if TYPE_CHECKING:
    from icefield.arrow import ArrowSchemaExportable

__all__ = ["InspectTask"]


@dataclass(frozen=True, slots=True)
class InspectTask:
    """Some of the rows of a metadata table, made by `icefield.inspect.InspectTable.tasks`."""

    metadata_location: str
    name: str
    #: The columns to read; ``"readable_metrics.id"`` names a nested one.
    selected_fields: tuple[str, ...]
    #: The top-level columns of the rows, in their order.
    column_names: tuple[str, ...]
    #: Rows to read, as REST expression JSON.
    row_filter: str | None
    snapshot_id: int | None
    as_of_ms: int | None
    ref: str | None
    #: The number of this part, and the number of all parts.
    part: tuple[int, int]
    #: Keys of encrypted manifest lists by their ids, so that workers need no other key of the table.
    list_keys: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    def rows(self, storage: Storage, *, schema: ArrowSchemaExportable | None = None) -> ArrowStream:
        """Read the rows, on a worker.

        Parameters
        ----------
        storage
            The storage of the table, `icefield.table.Table.storage`.
        schema
            The exact Arrow types to read the columns as; anything with ``__arrow_c_schema__``.

        """
        if self.list_keys and not storage.has_keys:
            storage = storage.with_list_keys(dict(self.list_keys))
        inspect = Inspect(TableState.load(storage, self.metadata_location))
        matching = None if self.row_filter is None else from_json(self.row_filter, inspect.schema(self.name))
        return inspect.stream(
            self.name,
            row_filter=matching,
            selected_fields=list(self.selected_fields),
            snapshot_id=self.snapshot_id,
            as_of_ms=self.as_of_ms,
            reference=self.ref,
            part=self.part,
            schema=schema,
        )
