"""How the sort order of a table changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from icefield._core import sort_order_updates
from icefield.sorting import NullOrder
from icefield.table.update.change import MetadataChange, Staging

if TYPE_CHECKING:
    from typing_extensions import Self

    from icefield.transforms import Transform

__all__ = ["UpdateSortOrder"]


class UpdateSortOrder(MetadataChange):
    """A new sort order, for new files; without fields they are not sorted."""

    def __init__(self, transaction: Staging, *, standalone: bool = False, case_sensitive: bool = True) -> None:
        super().__init__(transaction, standalone=standalone)
        self._case_sensitive = case_sensitive
        self._fields: list[str | tuple[str, str, str]] = []

    def asc(
        self,
        source_column_name: str,
        transform: Transform | str = "identity",
        null_order: NullOrder | Literal["nulls-first", "nulls-last"] = NullOrder.NULLS_LAST,
    ) -> Self:
        """Sort by a column, or a transform of it, in ascending order."""
        return self._add(source_column_name, transform, "asc", null_order)

    def desc(
        self,
        source_column_name: str,
        transform: Transform | str = "identity",
        null_order: NullOrder | Literal["nulls-first", "nulls-last"] = NullOrder.NULLS_LAST,
    ) -> Self:
        """Sort by a column, or a transform of it, in descending order."""
        return self._add(source_column_name, transform, "desc", null_order)

    def by(self, *fields: str) -> Self:
        """Sort by fields as text: ``"time desc nulls last"``, ``"bucket(16, id)"``."""
        return self._extend(*fields)

    def updates(self) -> list[str]:
        """Return the updates of the REST protocol, as JSON."""
        return sort_order_updates(self._base, self._fields)

    def _effects(self) -> list[str]:
        return [field if isinstance(field, str) else " ".join(field) for field in self._fields]

    def _holds_changes(self) -> bool:
        # An order without fields would be a change too, but none was requested yet.
        return bool(self._fields)

    def _add(self, column: str, transform: Transform | str, direction: str, null_order: str) -> Self:
        if not self._case_sensitive:
            schema = self._base.schema()
            column = schema.find_column_name(schema.find_field(column, case_sensitive=False).field_id) or column
        # The name unparsed: in a text it would be parsed.
        return self._extend((column, str(transform), f"{direction} {str(null_order).replace('-', ' ')}"))

    def _extend(self, *fields: str | tuple[str, str, str]) -> Self:
        # Checked at once, so that an invalid field raises here.
        sort_order_updates(self._base, [*self._fields, *fields])
        self._fields += fields
        return self
