"""Metadata tables, with the schemas of the Java library."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, NoReturn

from icefield._core import Inspect, filter_expression
from icefield._core import TableState as _TableState
from icefield.distributed import InspectTask
from icefield.errors import InvalidArgumentError
from icefield.scan.moments import milliseconds_of
from icefield.scan.options import fields_of

if TYPE_CHECKING:
    import pyarrow as pa

    from icefield._core import ArrowStream
    from icefield.expressions import RowFilter
    from icefield.schema import Schema

__all__ = ["InspectTable"]

#: The metadata tables of one snapshot.
_OF_A_SNAPSHOT = frozenset(
    {"entries", "files", "data_files", "delete_files", "manifests", "partitions", "position_deletes"}
)


class InspectTable:
    """The metadata tables of a table, in the state it had when `Table.inspect` was called.

    Every method returns a ``pyarrow.Table``; `stream` reads any of them manifest by manifest, in bounded memory, and
    decodes only the columns that are selected. Tables of one snapshot are those of the current one, or of the one that
    is named by id (``snapshot_id``), by time (``as_of``) or by branch or tag (``ref``). Those of
    ``with table.branch(...)`` are of the branch.
    """

    #: Names of all metadata tables.
    names: tuple[str, ...] = tuple(Inspect.names())

    def __init__(self, state: _TableState, branch: str | None = None) -> None:
        self._state = state
        self._branch = branch
        self._core = Inspect(state)

    def __reduce__(self) -> tuple[object, ...]:
        return InspectTable, (self._state, self._branch)

    def __getattr__(self, name: str) -> NoReturn:
        from difflib import get_close_matches

        near = get_close_matches(name, self.names, 1)
        hint = f"; did you mean {near[0]!r}?" if near and not name.startswith("_") else ""
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}", name=name, obj=self)

    def stream(
        self,
        name: str,
        *,
        row_filter: RowFilter | None = None,
        selected_fields: Iterable[str] | str = ("*",),
        case_sensitive: bool = True,
        snapshot_id: int | None = None,
        as_of: datetime | str | int | None = None,
        ref: str | None = None,
    ) -> pa.RecordBatchReader:
        """Read a metadata table as a stream of batches.

        Parameters
        ----------
        name
            One of `names`, for example ``"files"``.
        row_filter
            Rows to read, as text (``"content = 0 AND readable_metrics.id.upper_bound > 5"``) or as an expression.
        selected_fields
            Columns to read; ``"readable_metrics.id.lower_bound"`` names a nested one.
        case_sensitive
            Whether column names are case-sensitive.
        snapshot_id, as_of, ref
            The snapshot: by id, by time (an aware datetime, ISO text with an offset, or milliseconds), or by branch or
            tag.

        Raises
        ------
        InvalidArgumentError
            If the table, column or snapshot does not exist, or if the metadata table is not of a single snapshot.

        """
        return self._rows(
            name, snapshot_id, as_of, ref, row_filter, fields_of(selected_fields), case_sensitive
        ).to_pyarrow()

    def schema(self, name: str, selected_fields: Iterable[str] | str = ("*",)) -> Schema:
        """Return the columns of a metadata table, all or those selected."""
        return self._core.schema(name, selected_fields=list(fields_of(selected_fields)))

    def tasks(
        self,
        name: str,
        *,
        row_filter: RowFilter | None = None,
        selected_fields: Iterable[str] | str = ("*",),
        snapshot_id: int | None = None,
        as_of: datetime | str | int | None = None,
        ref: str | None = None,
        manifests: int = 8,
    ) -> list[InspectTask]:
        """Split a metadata table into tasks that workers read (`icefield.distributed`).

        Parameters
        ----------
        name, row_filter, selected_fields, snapshot_id, as_of, ref
            As in `stream`.
        manifests
            Number of manifests per task.

        """
        if manifests < 1:
            raise InvalidArgumentError(f"manifests: expected a positive number, got {manifests}")
        selected = fields_of(selected_fields)
        moment_ms = milliseconds_of(as_of)
        ref = self._chosen(name, snapshot_id, as_of, ref)
        document = None
        if row_filter is not None:
            document = filter_expression(row_filter).bind(self.schema(name)).to_json()
        names = tuple(field.name for field in self.schema(name, selected).fields)
        most = self._core.most_parts(name, snapshot_id=snapshot_id, as_of_ms=moment_ms, reference=ref)
        count = -(-most // manifests)
        location = self._state.metadata_location
        keys = self._core.list_keys(name, snapshot_id=snapshot_id, as_of_ms=moment_ms, reference=ref)
        return [
            InspectTask(location, name, selected, names, document, snapshot_id, moment_ms, ref, (number, count), keys)
            for number in range(count)
        ]

    # From the metadata file

    def snapshots(self) -> pa.Table:
        """List all snapshots."""
        return self._table("snapshots")

    def history(self) -> pa.Table:
        """Return when each snapshot became current, and whether the current one descends from it."""
        return self._table("history")

    def metadata_log_entries(self) -> pa.Table:
        """List the metadata files, oldest first, and the snapshot that was current when each was written."""
        return self._table("metadata_log_entries")

    def refs(self) -> pa.Table:
        """List branches and tags."""
        return self._table("refs")

    # Of one snapshot

    def entries(
        self, snapshot_id: int | None = None, *, as_of: datetime | str | int | None = None, ref: str | None = None
    ) -> pa.Table:
        """List the entries of the manifests: files added, kept and deleted."""
        return self._table("entries", snapshot_id, as_of, ref)

    def files(
        self, snapshot_id: int | None = None, *, as_of: datetime | str | int | None = None, ref: str | None = None
    ) -> pa.Table:
        """List data and delete files."""
        return self._table("files", snapshot_id, as_of, ref)

    def data_files(
        self, snapshot_id: int | None = None, *, as_of: datetime | str | int | None = None, ref: str | None = None
    ) -> pa.Table:
        """List data files."""
        return self._table("data_files", snapshot_id, as_of, ref)

    def delete_files(
        self, snapshot_id: int | None = None, *, as_of: datetime | str | int | None = None, ref: str | None = None
    ) -> pa.Table:
        """List delete files."""
        return self._table("delete_files", snapshot_id, as_of, ref)

    def manifests(
        self, snapshot_id: int | None = None, *, as_of: datetime | str | int | None = None, ref: str | None = None
    ) -> pa.Table:
        """List the manifests."""
        return self._table("manifests", snapshot_id, as_of, ref)

    def partitions(
        self,
        snapshot_id: int | None = None,
        row_filter: RowFilter | None = None,
        case_sensitive: bool = True,
        *,
        as_of: datetime | str | int | None = None,
        ref: str | None = None,
    ) -> pa.Table:
        """Count records, files and deletes by partition; ``row_filter`` applies to these counts."""
        return self._table("partitions", snapshot_id, as_of, ref, row_filter, case_sensitive)

    def partition_statistics(
        self, snapshot_id: int | None = None, *, as_of: datetime | str | int | None = None, ref: str | None = None
    ) -> pa.Table | None:
        """Read the partition statistics file of a snapshot, which `Maintenance.compute_partition_stats` writes.

        Its rows are sorted by partition and have the columns of the specification ("Partition Statistics File"), such
        as ``partition``, ``data_record_count`` and ``total_record_count``. ``partitions`` counts the same from the
        manifests. The result is None if the snapshot has no such file.
        """
        if self._branch is not None and as_of is not None:
            raise InvalidArgumentError(f"as_of is that of main, and this is the branch {self._branch!r}")
        rows = self._core.partition_statistics(
            snapshot_id=snapshot_id,
            as_of_ms=milliseconds_of(as_of),
            reference=self._branch if ref is None and snapshot_id is None else ref,
        )
        return None if rows is None else rows.to_pyarrow().read_all()

    def position_deletes(
        self, snapshot_id: int | None = None, *, as_of: datetime | str | int | None = None, ref: str | None = None
    ) -> pa.Table:
        """List every deleted position, from position delete files and deletion vectors."""
        return self._table("position_deletes", snapshot_id, as_of, ref)

    # Of all snapshots

    def all_entries(self) -> pa.Table:
        """List the entries of the manifests of all snapshots."""
        return self._table("all_entries")

    def all_files(self) -> pa.Table:
        """List data and delete files of all snapshots; one row per manifest that references the file."""
        return self._table("all_files")

    def all_data_files(self) -> pa.Table:
        """List data files of all snapshots; one row per manifest that references the file."""
        return self._table("all_data_files")

    def all_delete_files(self) -> pa.Table:
        """List delete files of all snapshots; one row per manifest that references the file."""
        return self._table("all_delete_files")

    def all_manifests(self) -> pa.Table:
        """List the manifests of all snapshots; one row per snapshot that references the manifest."""
        return self._table("all_manifests")

    def _table(
        self,
        name: str,
        snapshot_id: int | None = None,
        as_of: datetime | str | int | None = None,
        ref: str | None = None,
        row_filter: RowFilter | None = None,
        case_sensitive: bool = True,
    ) -> pa.Table:
        rows = self._rows(name, snapshot_id, as_of, ref, row_filter, ("*",), case_sensitive)
        return rows.to_pyarrow().read_all()

    def _rows(
        self,
        name: str,
        snapshot_id: int | None,
        as_of: datetime | str | int | None,
        ref: str | None,
        row_filter: RowFilter | None,
        selected: tuple[str, ...],
        case_sensitive: bool,
    ) -> ArrowStream:
        return self._core.stream(
            name,
            row_filter=row_filter,
            selected_fields=list(selected),
            case_sensitive=case_sensitive,
            snapshot_id=snapshot_id,
            as_of_ms=milliseconds_of(as_of),
            reference=self._chosen(name, snapshot_id, as_of, ref),
        )

    def _chosen(
        self, name: str, snapshot_id: int | None, as_of: datetime | str | int | None, ref: str | None
    ) -> str | None:
        """Return the reference to read: the one that is named, or that of the branch which this is of."""
        if self._branch is None:
            return ref
        if name == "history" or as_of is not None:
            what = "the history" if name == "history" else "as_of"
            raise InvalidArgumentError(f"{what} is that of main, and this is the branch {self._branch!r}")
        if snapshot_id is not None or ref is not None or name not in _OF_A_SNAPSHOT:
            return ref
        return self._branch

    def __repr__(self) -> str:
        return f"InspectTable({', '.join(self.names)})"
