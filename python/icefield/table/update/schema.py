"""How the schema of a table changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icefield._core import Schema, SchemaChange
from icefield._inputs.frames import schema_of
from icefield.errors import InvalidArgumentError
from icefield.table.update.change import MetadataChange, Staging, changed_lines

if TYPE_CHECKING:
    from typing_extensions import Self

    from icefield.arrow import SchemaLike
    from icefield.types import Type

__all__ = ["UpdateSchema"]


class UpdateSchema(MetadataChange):
    """A change of the schema ("Schema Evolution").

    Columns are named as they were before the change, nested ones with dots (``"a.b"``; the element of a list is
    ``"a.element"``) or as a tuple of names. Columns keep their ids, so existing files remain readable.
    Invalid operations raise at once and leave earlier ones in place.
    """

    def __init__(
        self,
        transaction: Staging,
        *,
        standalone: bool = False,
        allow_incompatible_changes: bool = False,
        case_sensitive: bool = True,
    ) -> None:
        super().__init__(transaction, standalone=standalone)
        self._allow_incompatible = allow_incompatible_changes
        self._change = self._begun(case_sensitive)

    def case_sensitive(self, case_sensitive: bool) -> Self:
        """Set whether column names are case-sensitive; call it before other methods.

        Raises
        ------
        InvalidArgumentError
            If there are changes already, which were found by the former rule.

        """
        if self._holds_changes():
            raise InvalidArgumentError("case_sensitive: call it before the first change of the schema")
        self._change = self._begun(case_sensitive)
        return self

    def _begun(self, case_sensitive: bool) -> SchemaChange:
        return SchemaChange(self._base, case_sensitive=case_sensitive, allow_incompatible=self._allow_incompatible)

    def add_column(
        self,
        path: str | Sequence[str],
        field_type: Type | str,
        doc: str | None = None,
        required: bool = False,
        default_value: object = None,
    ) -> Self:
        """Add a column after the existing ones.

        Parameters
        ----------
        path
            Its name. With dots it becomes a field of the struct before the last one, which may be the element of a list
            or the value of a map; a tuple of one name with dots is a column on top.
        field_type
            A type or its text. New field ids are assigned.
        doc
            Comment.
        required
            Whether values are required, which needs a default.
        default_value
            The value in existing rows, and in new rows without one (from version 3 on).

        """
        parent, name = _split(path)
        self._change.add_column(parent, name, field_type, doc=doc, required=required, default_value=default_value)
        return self

    def delete_column(self, path: str | Sequence[str]) -> Self:
        """Delete a column, including any nested fields."""
        self._change.delete_column(_joined(path))
        return self

    def rename_column(self, path_from: str | Sequence[str], new_name: str) -> Self:
        """Rename a column; ``new_name`` is the last part of its path only."""
        self._change.rename_column(_joined(path_from), new_name)
        return self

    def update_column(
        self,
        path: str | Sequence[str],
        field_type: Type | str | None = None,
        required: bool | None = None,
        doc: str | None = None,
    ) -> Self:
        """Change the given attributes of a column.

        Parameters
        ----------
        path
            The column.
        field_type
            A type that can hold every value of the old one.
        required
            False makes it optional; True is an incompatible change, as rows may have nulls.
        doc
            Comment; an empty string removes it.

        """
        if field_type is None and required is None and doc is None:
            raise InvalidArgumentError(
                f"nothing to change for column {_joined(path)!r}: pass field_type, required or doc"
            )
        if field_type is not None:
            self._change.update_type(_joined(path), field_type)
        if required is not None:
            _ = self.require_column(path) if required else self.make_column_optional(path)
        if doc is not None:
            self._change.update_doc(_joined(path), doc or None)
        return self

    def set_default_value(self, path: str | Sequence[str], default_value: object) -> Self:
        """Set the write default of a column; ``None`` removes it."""
        self._change.update_default(_joined(path), default_value)
        return self

    def require_column(self, path: str | Sequence[str]) -> Self:
        """Make a column required; unless it is new and has a default, this is an incompatible change."""
        self._change.require_column(_joined(path))
        return self

    def make_column_optional(self, path: str | Sequence[str]) -> Self:
        """Make a column optional."""
        self._change.make_column_optional(_joined(path))
        return self

    def move_first(self, path: str | Sequence[str]) -> Self:
        """Move a column to the beginning of its struct."""
        self._change.move_first(_joined(path))
        return self

    def move_before(self, path: str | Sequence[str], before_path: str | Sequence[str]) -> Self:
        """Move a column before another field of its struct."""
        self._change.move_before(_joined(path), _joined(before_path))
        return self

    def move_after(self, path: str | Sequence[str], after_name: str | Sequence[str]) -> Self:
        """Move a column after another field of its struct."""
        self._change.move_after(_joined(path), _joined(after_name))
        return self

    def union_by_name(self, new_schema: SchemaLike, format_version: int | None = None) -> Self:
        """Add the columns of another schema that are missing, at any depth, and widen types to its types.

        Parameters
        ----------
        new_schema
            A `Schema`, its JSON form, or anything with ``__arrow_c_schema__`` or ``__arrow_c_stream__``. Columns that
            are optional in it become optional.
        format_version
            The version of the table format whose types Arrow columns get; by default that of the table.

        """
        new_schema = schema_of(new_schema)
        if format_version is not None and not isinstance(new_schema, Schema | str | bytes | dict):
            new_schema = Schema.from_arrow(new_schema, format_version=format_version)
        self._change.union_by_name(new_schema)
        return self

    def set_identifier_fields(self, *fields: str) -> Self:
        """Set the identifier fields: required columns of primitive types; none to unset them."""
        self._change.set_identifier_fields(list(fields))
        return self

    def apply(self) -> Schema:
        """Return the schema with the changes so far."""
        return self._change.apply()

    def updates(self) -> list[str]:
        """Return the updates of the REST protocol, as JSON."""
        return self._change.updates()

    def _effects(self) -> list[str]:
        before, after = self._base.schema(), self.apply()
        found = changed_lines(map(str, before.fields), map(str, after.fields))
        # The same columns in another order, or other identifier fields.
        return found or [str(field) for field in after.fields if self._holds_changes()]


def _joined(path: str | Sequence[str]) -> str:
    return path if isinstance(path, str) else ".".join(path)


def _split(path: str | Sequence[str]) -> tuple[str | None, str]:
    """Return the parent of a column, if it has one, and its own name."""
    if isinstance(path, str):
        parent, dot, name = path.rpartition(".")
        return (parent, name) if dot else (None, path)
    if not path:
        raise InvalidArgumentError("column path must not be empty")
    *parents, name = path
    return ".".join(parents) if parents else None, name
