"""How the schema, the partition spec, the sort order and the references of a table change."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from icefield import _core
from icefield._arrow_names import without_nul
from icefield.errors import ArgumentTypeError, InvalidArgumentError
from icefield.moments import milliseconds_of
from icefield.transaction import Change

if TYPE_CHECKING:
    from typing_extensions import Self

    from icefield.partitioning import PartitionSpec
    from icefield.schema import Schema
    from icefield.transaction import Transaction
    from icefield.transforms import Transform
    from icefield.types import Type

__all__ = ["ManageSnapshots", "UpdateSchema", "UpdateSortOrder", "UpdateSpec"]


class UpdateSchema(Change):
    """A change of the schema ("Schema Evolution").

    Columns are named as they were before the change, nested ones with dots (``"a.b"``; the element of a list is
    ``"a.element"``) or as a tuple of names. Columns keep their ids, so files that are there are read as before.
    Operations that cannot be made raise at once, and leave those before them.
    """

    def __init__(
        self,
        transaction: Transaction,
        *,
        alone: bool = False,
        allow_incompatible_changes: bool = False,
        case_sensitive: bool = True,
    ) -> None:
        super().__init__(transaction, alone=alone)
        self._change = _core.SchemaChange(
            self._base, case_sensitive=case_sensitive, allow_incompatible=allow_incompatible_changes
        )

    def add_column(
        self,
        path: str | Sequence[str],
        field_type: Type | str,
        doc: str | None = None,
        required: bool = False,
        default_value: Any = None,
    ) -> Self:
        """Add a column, behind those that are there.

        Parameters
        ----------
        path
            Its name. With dots it becomes a field of the struct before the last one, which may be the element of a list
            or the value of a map; a tuple of one name with dots is a column on top.
        field_type
            A type or its text. Ids in it are replaced by new ones.
        doc
            Comment.
        required
            Whether it is never null: that needs a default.
        default_value
            The value in rows that are there, and in rows to come that have none (from version 3 on).

        """
        parent, name = _split(path)
        self._change.add_column(parent, name, field_type, doc=doc, required=required, default_value=default_value)
        return self

    def delete_column(self, path: str | Sequence[str]) -> Self:
        """Delete a column with all that is inside."""
        self._change.delete_column(_joined(path))
        return self

    def rename_column(self, path_from: str | Sequence[str], new_name: str) -> Self:
        """Give a column another name: of the column itself, without those around it."""
        self._change.rename_column(_joined(path_from), new_name)
        return self

    def update_column(
        self,
        path: str | Sequence[str],
        field_type: Type | str | None = None,
        required: bool | None = None,
        doc: str | None = None,
    ) -> Self:
        """Change what is given of a column, and leave the rest.

        Parameters
        ----------
        path
            The column.
        field_type
            A type that every value of the old one has a place in.
        required
            False makes it optional; True is an incompatible change, as rows may have nulls.
        doc
            Comment; an empty text takes it away.

        """
        if field_type is None and required is None and doc is None:
            raise InvalidArgumentError(f"nothing to change of column {_joined(path)!r}: give a type, required or doc")
        if field_type is not None:
            self._change.update_type(_joined(path), field_type)
        if required is not None:
            _ = self.require_column(path) if required else self.make_column_optional(path)
        if doc is not None:
            self._change.update_doc(_joined(path), doc or None)
        return self

    def set_default_value(self, path: str | Sequence[str], default_value: Any) -> Self:
        """Set the value of a column in rows to come that have none; ``None`` takes it away."""
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
        """Move a column before another one of its struct."""
        self._change.move_before(_joined(path), _joined(before_path))
        return self

    def move_after(self, path: str | Sequence[str], after_path: str | Sequence[str]) -> Self:
        """Move a column behind another one of its struct."""
        self._change.move_after(_joined(path), _joined(after_path))
        return self

    def union_by_name(self, new_schema: Any) -> Self:
        """Add what another schema has more, at any depth, and take over what it has wider.

        Parameters
        ----------
        new_schema
            A `Schema`, its JSON form, or anything with ``__arrow_c_schema__`` or ``__arrow_c_stream__``. Columns that
            are optional in it become optional.

        """
        self._change.union_by_name(without_nul(new_schema))
        return self

    def set_identifier_fields(self, *fields: str) -> Self:
        """Say which columns identify a row: required ones of primitive types; none to take that away."""
        self._change.set_identifier_fields(list(fields))
        return self

    def apply(self) -> Schema:
        """Give the schema with the changes so far."""
        return self._change.apply()

    def updates(self) -> list[str]:
        """Give the updates of the REST protocol, as JSON texts."""
        return self._change.updates()


class UpdateSpec(Change):
    """A change of the partition spec ("Partition Evolution"), for files to come; those that are there stay."""

    def __init__(self, transaction: Transaction, *, alone: bool = False, case_sensitive: bool = True) -> None:
        super().__init__(transaction, alone=alone)
        self._change = _core.SpecChange(self._base, case_sensitive=case_sensitive)

    def add_field(
        self,
        source_column_name: str,
        transform: Transform | str | None = None,
        partition_field_name: str | None = None,
    ) -> Self:
        """Add a field.

        Parameters
        ----------
        source_column_name
            A column; or without ``transform`` the text of the whole field: ``"bucket(16, id)"``, ``"day(time) as d"``.
        transform
            A transform or its text.
        partition_field_name
            A name like ``id_bucket_16`` where none is given.

        """
        if transform is None:
            self._change.add_text(source_column_name, partition_field_name)
        elif isinstance(transform, str) and transform.lower() in _PLURALS:
            self._change.add_field(source_column_name, transform.lower()[:-1], partition_field_name)
        else:
            self._change.add_field(source_column_name, transform, partition_field_name)
        return self

    def add_identity(self, source_column_name: str) -> Self:
        """Add a column's values as they are."""
        self._change.add_field(source_column_name, "identity", None)
        return self

    def remove_field(self, name: str) -> Self:
        """Remove the field of this name, or of this text (``"bucket(16, id)"``)."""
        if "(" in name and all(field.name != name for field in self._base.spec().fields):
            self._change.remove_text(name)
        else:
            self._change.remove_field(name)
        return self

    def rename_field(self, name: str, new_name: str) -> Self:
        """Give a field another name."""
        self._change.rename_field(name, new_name)
        return self

    def apply(self) -> PartitionSpec:
        """Give the spec with the changes so far; its id is assigned by the commit."""
        return self._change.apply()

    def updates(self) -> list[str]:
        """Give the updates of the REST protocol, as JSON texts."""
        return self._change.updates()

    def _holds_changes(self) -> bool:
        return str(self.apply()) != str(self._base.spec())


class UpdateSortOrder(Change):
    """A new sort order, for files to come; without fields they are not sorted."""

    def __init__(self, transaction: Transaction, *, alone: bool = False) -> None:
        super().__init__(transaction, alone=alone)
        self._fields: list[str | tuple[str, str, str]] = []

    def asc(
        self,
        source_column_name: str,
        transform: Transform | str = "identity",
        null_order: Literal["nulls-first", "nulls-last"] = "nulls-first",
    ) -> Self:
        """Sort by a column, or a transform of it, the smallest first."""
        return self._add(source_column_name, transform, "asc", null_order)

    def desc(
        self,
        source_column_name: str,
        transform: Transform | str = "identity",
        null_order: Literal["nulls-first", "nulls-last"] = "nulls-last",
    ) -> Self:
        """Sort by a column, or a transform of it, the greatest first."""
        return self._add(source_column_name, transform, "desc", null_order)

    def by(self, *fields: str) -> Self:
        """Sort by fields as text: ``"time desc nulls last"``, ``"bucket(16, id)"``."""
        return self._extend(*fields)

    def updates(self) -> list[str]:
        """Give the updates of the REST protocol, as JSON texts."""
        return _core.sort_order_updates(self._base, self._fields)

    def _holds_changes(self) -> bool:
        # Without fields it would be a change too, but not one that was asked for yet.
        return bool(self._fields)

    def _add(self, column: str, transform: Transform | str, direction: str, null_order: str) -> Self:
        # The name as it is: in a text it would be parsed.
        return self._extend((column, str(transform), f"{direction} {str(null_order).replace('-', ' ')}"))

    def _extend(self, *fields: str | tuple[str, str, str]) -> Self:
        # Made once to be checked: an operation that cannot be made raises at once.
        _core.sort_order_updates(self._base, [*self._fields, *fields])
        self._fields += fields
        return self


class ManageSnapshots(Change):
    """A change of branches, tags and the current snapshot ("Snapshot References")."""

    def __init__(self, transaction: Transaction, *, alone: bool = False) -> None:
        super().__init__(transaction, alone=alone)
        self._staged = self._base
        self._updates: list[str] = []

    def create_tag(self, snapshot_id: int, tag_name: str, max_ref_age_ms: int | None = None) -> Self:
        """Name a snapshot.

        Parameters
        ----------
        snapshot_id
            The snapshot.
        tag_name
            A name that no branch or tag has.
        max_ref_age_ms
            Age at which expiry removes the tag.

        """
        _snapshot_first("create_tag", snapshot_id, tag_name)
        update = _core.create_ref(self._staged, tag_name, snapshot_id, is_branch=False, max_ref_age_ms=max_ref_age_ms)
        return self._stage(update)

    def create_branch(
        self,
        snapshot_id: int,
        branch_name: str,
        max_ref_age_ms: int | None = None,
        max_snapshot_age_ms: int | None = None,
        min_snapshots_to_keep: int | None = None,
    ) -> Self:
        """Begin a branch at a snapshot.

        Parameters
        ----------
        snapshot_id
            The snapshot.
        branch_name
            A name that no branch or tag has.
        max_ref_age_ms
            Age at which expiry removes the branch.
        max_snapshot_age_ms, min_snapshots_to_keep
            Age up to which, and number to which, expiry leaves its snapshots.

        """
        _snapshot_first("create_branch", snapshot_id, branch_name)
        update = _core.create_ref(
            self._staged,
            branch_name,
            snapshot_id,
            is_branch=True,
            max_ref_age_ms=max_ref_age_ms,
            max_snapshot_age_ms=max_snapshot_age_ms,
            min_snapshots_to_keep=min_snapshots_to_keep,
        )
        return self._stage(update)

    def remove_tag(self, tag_name: str) -> Self:
        """Remove a tag; its snapshot stays."""
        return self._stage(_core.remove_ref(self._staged, tag_name, is_branch=False))

    def remove_branch(self, branch_name: str) -> Self:
        """Remove a branch other than ``main``; its snapshots stay until they expire."""
        return self._stage(_core.remove_ref(self._staged, branch_name, is_branch=True))

    def set_current_snapshot(self, snapshot_id: int | None = None, ref_name: str | None = None) -> Self:
        """Make any snapshot the current one, by its id or by a branch or tag."""
        if snapshot_id is not None and ref_name is None:
            return self._stage(_core.set_current_snapshot(self._staged, snapshot_id))
        if snapshot_id is not None or ref_name is None:
            raise InvalidArgumentError("give the snapshot's id or the name of a branch or tag")
        reference = self._staged.refs.get(ref_name)
        if reference is None:
            known = ", ".join(sorted(self._staged.refs)) or "none"
            raise InvalidArgumentError(f"there is no branch or tag {ref_name!r} (there are: {known})")
        return self._stage(_core.set_current_snapshot(self._staged, reference.snapshot_id))

    def rollback_to_snapshot(self, snapshot_id: int) -> Self:
        """Take the table back to an ancestor of its current snapshot."""
        return self._stage(_core.rollback_to_snapshot(self._staged, snapshot_id))

    def rollback_to_timestamp(self, timestamp_ms: datetime | str | int) -> Self:
        """Take the table back to its newest ancestor older than a time.

        Parameters
        ----------
        timestamp_ms
            Milliseconds from the epoch, an aware datetime, or ISO text with an offset.

        """
        moment = milliseconds_of(timestamp_ms, "timestamp_ms")
        if moment is None:
            raise InvalidArgumentError("timestamp_ms: give the time to go back to, not None")
        return self._stage(_core.rollback_to_timestamp(self._staged, moment))

    def updates(self) -> list[str]:
        """Give the updates of the REST protocol, as JSON texts."""
        return list(self._updates)

    def _stage(self, update: str) -> Self:
        self._staged = self._staged.apply([update])
        self._updates.append(update)
        return self


#: Transforms as Spark and Java's expressions call them.
_PLURALS = frozenset({"years", "months", "days", "hours"})


def _snapshot_first(what: str, snapshot_id: object, name: object) -> None:
    """Refuse arguments in the wrong order.

    Raises
    ------
    ArgumentTypeError
        If the id is text, or the name is not.

    """
    if isinstance(snapshot_id, str) or not isinstance(name, str):
        msg = f"{what} takes the snapshot's id first and then the name, got {snapshot_id!r} and {name!r}"
        raise ArgumentTypeError(msg)


def _joined(path: str | Sequence[str]) -> str:
    return path if isinstance(path, str) else ".".join(path)


def _split(path: str | Sequence[str]) -> tuple[str | None, str]:
    """Give the parent of a column, if it has one, and its own name."""
    if isinstance(path, str):
        parent, dot, name = path.rpartition(".")
        return (parent, name) if dot else (None, path)
    if not path:
        raise InvalidArgumentError("a column has a name: the path is empty")
    *parents, name = path
    return ".".join(parents) if parents else None, name
