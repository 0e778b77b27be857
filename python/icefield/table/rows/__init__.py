"""Changes of rows: appends, deletes, overwrites, updates and upserts, of a table or in a transaction."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, overload

from icefield._core import AlwaysTrue
from icefield._core import Transaction as CoreTransaction
from icefield._inputs.arguments import other_names
from icefield._inputs.frames import rows_of
from icefield._inputs.shredding import Shredding
from icefield.errors import InvalidArgumentError
from icefield.table.description.handle import TableHandle
from icefield.table.rows.assignments import changed_rows
from icefield.table.rows.change import Isolation, RowChange, RowMode
from icefield.table.rows.merging import Merge, SchemaMode, written_columns
from icefield.table.rows.upsert_stream import UpsertStream
from icefield.table.update.outcomes import NOTHING_CHANGED, RowsChanged
from icefield.table.update.target import OWN_BRANCH, ChangesData

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Self

    from icefield._core import RowChanges as CoreRowChanges
    from icefield._core import TableState
    from icefield.arrow import Rows
    from icefield.expressions import RowFilter

__all__ = ["ChangesRows", "CommitsRows", "Isolation", "RowMode", "RowsChanged", "TableRows", "UpsertResult"]

#: The filter of changes that are about all rows.
EVERY_ROW: Final = AlwaysTrue()


@dataclass(frozen=True)
class UpsertResult:
    """What an upsert did, or would do with ``dry_run=True``. Results are equal if their numbers of rows are."""

    #: Rows of the table that were changed.
    rows_updated: int = 0
    #: Rows that were added.
    rows_inserted: int = 0
    #: Numbers and bytes of data files, as in `MergeResult`.
    files_removed: int = field(default=0, repr=False, compare=False)
    files_rewritten: int = field(default=0, repr=False, compare=False)
    files_marked: int = field(default=0, repr=False, compare=False)
    bytes_rewritten: int = field(default=0, repr=False, compare=False)
    files_added: int = field(default=0, repr=False, compare=False)
    bytes_added: int = field(default=0, repr=False, compare=False)
    bytes_removed: int = field(default=0, repr=False, compare=False)


class ChangesRows(ChangesData):
    """Changes of rows, the same for `icefield.Table` and for its transactions."""

    @overload
    def append(
        self,
        df: Rows,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = OWN_BRANCH,
        *,
        schema_mode: Literal["strict", "subset", "evolve"] = "subset",
        shred: Shredding | None = None,
        idempotency_key: str | None = None,
        dry_run: Literal[False] = False,
        progress: bool = False,
    ) -> Self: ...
    @overload
    def append(
        self,
        df: Rows,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = OWN_BRANCH,
        *,
        schema_mode: Literal["strict", "subset", "evolve"] = "subset",
        shred: Shredding | None = None,
        idempotency_key: str | None = None,
        dry_run: Literal[True],
        progress: bool = False,
    ) -> RowsChanged: ...
    def append(
        self,
        df: Rows,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = OWN_BRANCH,
        *,
        schema_mode: Literal["strict", "subset", "evolve"] = "subset",
        shred: Shredding | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
        progress: bool = False,
    ) -> Self | RowsChanged:
        """Append rows, in one snapshot.

        Parameters
        ----------
        df
            Anything with ``__arrow_c_stream__``: a pyarrow Table or RecordBatchReader, a pandas or Polars frame, a
            DuckDB relation; or one Arrow batch. Columns are found by name, in any order. A stream is written
            as it arrives, in bounded memory. A DataFrame of PySpark is collected into this process first; where it is
            large, use `icefield.spark.append`, which writes in the executors.
        snapshot_properties
            Entries of the snapshot's summary.
        branch
            The branch to which the snapshot is added; one that does not exist is created, as a branch of ``main``.
        schema_mode
            ``"strict"``: the rows have exactly the table's columns. ``"subset"``: optional columns may be missing, and
            get their write default or null. ``"evolve"``: in addition, columns that the table lacks, at any
            depth, are added as optional ones, and types are widened where needed, in the same commit.
        shred
            How variants are stored in Parquet files, instead of by the table's properties: True shreds them by types
            inferred from the first rows of each file, False stores them whole, and
            ``{"v": "struct<a: long, b: string>"}`` gives the type of the column ``v``. Values of other types, and other
            fields, are stored beside.
        idempotency_key
            Makes the append once: if a snapshot in the history of the branch was made with this key, nothing is done.
            The key is kept in the snapshot's summary, and forgotten when that expires.
        dry_run
            Only look at the rows, and return what would be done, as `RowsChanged`.
        progress
            Whether to show what is read and written on standard error, if that is a terminal or a notebook.

        Raises
        ------
        ValidationError
            If a column does not fit; it names the column and what to do.
        CommitFailedException
            If every attempt lost to another commit; the written files were deleted.
        CommitStateUnknownException
            If the outcome is unknown; nothing was deleted.

        """
        columns = written_columns(schema_mode)
        change = RowChange(self, self._on(branch), snapshot_properties, idempotency_key, dry_run, progress, shred=shred)
        counts = change.once(
            lambda changes: RowsChanged(
                *changes.append(
                    rows_of(df),
                    branch=change.branch,
                    snapshot_properties=change.summary,
                    dry_run=dry_run,
                    properties=change.written,
                    **columns,
                )
            ),
            NOTHING_CHANGED,
        )
        return counts if dry_run else self

    def delete(
        self,
        delete_filter: RowFilter = EVERY_ROW,
        snapshot_properties: Mapping[str, str] | None = None,
        case_sensitive: bool = True,
        branch: str = OWN_BRANCH,
        *,
        mode: RowMode | None = None,
        isolation: Isolation | None = None,
        memory_limit: int | None = None,
        dry_run: bool = False,
        idempotency_key: str | None = None,
        progress: bool = False,
    ) -> RowsChanged:
        """Delete the rows that a scan with the filter returns; all rows without a filter.

        Parameters
        ----------
        delete_filter
            Which rows, as for `Table.scan`; None is refused, as it is a filter that was forgotten. A row is kept if the
            filter is not true for it: in text, as in SQL, ``x = 1``, ``x != 1`` and ``NOT x = 1`` all keep rows where
            ``x`` is null. Text may compare two columns too, ``sent > received``; null compares with nothing.
        snapshot_properties
            Entries of the snapshot's summary.
        case_sensitive
            Whether column names are case-sensitive.
        branch
            The branch that is changed.
        mode
            ``"copy-on-write"`` writes data files again without the rows; ``"merge-on-read"`` writes position delete
            files (version 2) or deletion vectors (version 3); ``"auto"`` decides for each file by the share of its rows
            that are deleted. By default ``write.delete.mode``, or ``"auto"`` if the table does not set it. Files with
            no row left are removed in every mode.
        isolation
            ``"serializable"`` fails if another commit added rows that the filter may match; ``"snapshot"`` allows that.
            By default ``write.delete.isolation-level``.
        memory_limit
            Bytes that reading may take, about, both of the rows that are looked for and of files that are written
            again; by default 512 MiB for the latter. Less memory means fewer threads.
        dry_run
            Only return what would be done.
        idempotency_key
            Makes the change once: if a snapshot in the history of the branch was made with this key, nothing is done,
            and all counts are zero. The key is kept in the snapshot's summary, and forgotten when that expires; a
            change that finds no rows makes no snapshot, and is done again.
        progress
            As for `append`.

        Raises
        ------
        ValidationException
            If the change conflicts with another commit; the error names it.
        CommitFailedException
            If every attempt lost to another commit; the written files were deleted.
        CommitStateUnknownException
            If the outcome is unknown; nothing was deleted.

        """
        _require_filter("delete", "delete_filter", delete_filter)
        change = RowChange(
            self,
            self._on(branch),
            snapshot_properties,
            idempotency_key,
            dry_run=dry_run,
            progress=progress,
            mode=mode,
            isolation=isolation,
            memory_limit=memory_limit,
        )
        return change.rows_once(
            lambda rows: RowsChanged(*rows.delete(delete_filter, case_sensitive=case_sensitive)), NOTHING_CHANGED
        )

    def overwrite(
        self,
        df: Rows,
        overwrite_filter: RowFilter = EVERY_ROW,
        snapshot_properties: Mapping[str, str] | None = None,
        case_sensitive: bool = True,
        branch: str = OWN_BRANCH,
        *,
        mode: RowMode | None = None,
        isolation: Isolation | None = None,
        schema_mode: SchemaMode = "subset",
        check_rows: bool = False,
        shred: Shredding | None = None,
        memory_limit: int | None = None,
        dry_run: bool = False,
        idempotency_key: str | None = None,
        progress: bool = False,
    ) -> RowsChanged:
        """Delete the rows that a filter matches, all rows without one, and append others, in one snapshot.

        Parameters
        ----------
        df
            The rows to append, as for `Table.append`.
        overwrite_filter
            Which rows to delete, as for `delete`.
        snapshot_properties, case_sensitive, branch, mode, isolation, memory_limit, dry_run, idempotency_key, progress
            As for `delete`.
        schema_mode, shred
            As for `Table.append`.
        check_rows
            Whether rows that the filter does not match are an error, so that a row of another day than the one that is
            replaced is not written beside those that stay. By default they are written, as PyIceberg does.

        """
        _require_filter("overwrite", "overwrite_filter", overwrite_filter)
        columns = written_columns(schema_mode)
        change = RowChange(
            self,
            self._on(branch),
            snapshot_properties,
            idempotency_key,
            dry_run=dry_run,
            progress=progress,
            mode=mode,
            isolation=isolation,
            memory_limit=memory_limit,
            shred=shred,
        )
        return change.rows_once(
            lambda rows: RowsChanged(
                *rows.overwrite(
                    rows_of(df), overwrite_filter, case_sensitive=case_sensitive, check_rows=check_rows, **columns
                )
            ),
            NOTHING_CHANGED,
        )

    def dynamic_partition_overwrite(
        self,
        df: Rows,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = OWN_BRANCH,
        *,
        on_old_specs: Literal["error", "rewrite"] = "error",
        isolation: Isolation | None = None,
        schema_mode: SchemaMode = "subset",
        shred: Shredding | None = None,
        dry_run: bool = False,
        idempotency_key: str | None = None,
        progress: bool = False,
    ) -> RowsChanged:
        """Replace the partitions of some rows by these rows, in one snapshot.

        Parameters
        ----------
        df
            The rows, as for `Table.append`.
        on_old_specs
            What to do if files of older partition specs may have rows of these partitions: fail, or delete the rows
            from those files, as `delete` does.
        snapshot_properties, branch, isolation, dry_run, idempotency_key, progress
            As for `delete`.
        schema_mode, shred
            As for `Table.append`.

        Raises
        ------
        InvalidArgumentError
            If the table has no partitions.
        ValidationException
            If there are files of older partition specs, or a conflict with another commit.

        """
        columns = written_columns(schema_mode)
        change = RowChange(
            self,
            self._on(branch),
            snapshot_properties,
            idempotency_key,
            dry_run=dry_run,
            progress=progress,
            isolation=isolation,
            shred=shred,
        )
        rewrite = on_old_specs == "rewrite"
        return change.rows_once(
            lambda rows: RowsChanged(*rows.overwrite_partitions(rows_of(df), rewrite=rewrite, **columns)),
            NOTHING_CHANGED,
        )

    def update(
        self,
        assignments: Mapping[str, object] | Callable[[pa.RecordBatch], pa.RecordBatch],
        where: RowFilter | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        case_sensitive: bool = True,
        branch: str = OWN_BRANCH,
        *,
        mode: RowMode | None = None,
        isolation: Isolation | None = None,
        memory_limit: int | None = None,
        dry_run: bool = False,
        idempotency_key: str | None = None,
        progress: bool = False,
    ) -> RowsChanged:
        """Change values of rows.

        Parameters
        ----------
        assignments
            New values by column: a value, an expression of ``pyarrow.compute`` over the columns of the table
            (``pc.field("price") * 2``), or a function that takes a record batch and returns an array. Or one function
            that takes a record batch and returns one with the same columns and number of rows.
        where
            Which rows, as for `delete`; all rows without it.
        snapshot_properties, case_sensitive, branch, memory_limit, dry_run, idempotency_key, progress
            As for `delete`.
        mode, isolation
            As for `delete`; by default ``write.update.mode`` and ``write.update.isolation-level``.

        """
        change = RowChange(
            self,
            self._on(branch),
            snapshot_properties,
            idempotency_key,
            dry_run=dry_run,
            progress=progress,
            mode=mode,
            isolation=isolation,
            memory_limit=memory_limit,
        )

        def make(rows: CoreRowChanges) -> RowsChanged:
            found = rows.find(where, case_sensitive=case_sensitive)
            return RowsChanged(*rows.update(found, changed_rows(found.rows(), assignments)))

        return change.rows_once(make, NOTHING_CHANGED)

    @other_names(on="join_cols=", key="join_cols=")
    def upsert(
        self,
        df: Rows,
        join_cols: Iterable[str] | str | None = None,
        when_matched_update_all: bool = True,
        when_not_matched_insert_all: bool = True,
        case_sensitive: bool = True,
        branch: str = OWN_BRANCH,
        snapshot_properties: Mapping[str, str] | None = None,
        *,
        mode: RowMode | None = None,
        isolation: Isolation | None = None,
        schema_mode: SchemaMode = "subset",
        memory_limit: int | None = None,
        dry_run: bool = False,
        idempotency_key: str | None = None,
        progress: bool = False,
    ) -> UpsertResult:
        """Update the rows whose key the table has, where they differ, and append the others, in one snapshot.

        Columns that the rows lack keep their values in updated rows. In a key, null equals null and NaN equals NaN.

        Parameters
        ----------
        df
            The rows, as for `Table.append`. A key must not occur twice.
        join_cols
            The columns of the key; by default the identifier fields of the schema.
        when_matched_update_all, when_not_matched_insert_all
            Whether to update rows, and whether to append rows.
        case_sensitive, branch, snapshot_properties, idempotency_key, progress
            As for `delete`.
        mode, isolation
            As for `delete`; by default ``write.merge.mode`` and ``write.merge.isolation-level``.
        schema_mode
            As for `Table.append`.
        memory_limit
            Bytes that the change may take, about; 512 MiB by default. Rows that do not fit into half of it are joined
            with the table's in parts, by temporary files.
        dry_run
            Only return what would be done.

        Raises
        ------
        InvalidArgumentError
            If there is no key, or a key occurs twice in the rows.

        """
        key = [join_cols] if isinstance(join_cols, str) else list(join_cols or ())
        columns = written_columns(schema_mode)
        change = RowChange(
            self, self._on(branch), snapshot_properties, idempotency_key, dry_run, progress, mode, isolation
        )

        def make(rows: CoreRowChanges) -> UpsertResult:
            updated, inserted, counts = rows.upsert(
                rows_of(df),
                key,
                update_matched=when_matched_update_all,
                insert_others=when_not_matched_insert_all,
                case_sensitive=case_sensitive,
                memory_limit=memory_limit,
                **columns,
            )
            return UpsertResult(updated, inserted, *counts[2:])

        return change.rows_once(make, UpsertResult())

    @other_names(join_cols="on=", df="source=")
    def merge(
        self,
        source: Rows,
        on: str | Iterable[str] | Mapping[str, str],
        snapshot_properties: Mapping[str, str] | None = None,
        case_sensitive: bool = True,
        branch: str = OWN_BRANCH,
        *,
        mode: RowMode | None = None,
        isolation: Isolation | None = None,
        schema_mode: SchemaMode = "subset",
        extra_columns: Literal["error", "ignore"] = "error",
        memory_limit: int | None = None,
        dry_run: bool = False,
        idempotency_key: str | None = None,
        progress: bool = False,
    ) -> Merge:
        """Change, delete and add rows by those of a source, in one snapshot: SQL's ``MERGE INTO``.

        Return a builder, whose clauses say what is done; its `execute` does it. In the key, null equals nothing, as in
        SQL; in `upsert` it equals null.

        Parameters
        ----------
        source
            The rows, as for `Table.append`.
        on
            The columns of the key: a name, several, or those of the source by those of the table. Fields of structs are
            named with dots.
        snapshot_properties, branch, dry_run, idempotency_key, progress
            As for `delete`.
        case_sensitive
            Whether the case of names in ``on`` and in conditions matters.
        mode, isolation
            As for `delete`; by default ``write.merge.mode`` and ``write.merge.isolation-level``.
        schema_mode
            What the clauses ``..._all`` do with columns of which only one side has some. ``"subset"``: columns that the
            source lacks keep their values, or get their default in new rows. ``"strict"``: they are errors.
            ``"evolve"``: as ``"subset"``, and columns that the table lacks are added to it, in the same commit.
        extra_columns
            What the clauses ``..._all`` do with columns of the source that the table lacks and that neither the key nor
            a condition or value names: ``"error"``, as such a column may have another name in the table by now, or
            ``"ignore"``. Functions may use columns that nothing names.
        memory_limit
            As for `upsert`.

        """
        change = RowChange(
            self, self._on(branch), snapshot_properties, idempotency_key, dry_run, progress, mode, isolation
        )
        return Merge(
            change.rows_once,
            source,
            on,
            case_sensitive=case_sensitive,
            schema_mode=schema_mode,
            extra_columns=extra_columns,
            memory_limit=memory_limit,
        )


class CommitsRows(ChangesRows):
    """Changes of rows that are each committed by itself, the same for `icefield.Table` and for a branch of one."""

    @property
    @abstractmethod
    def _now(self) -> TableState:
        """The state of the table that is changed."""

    @abstractmethod
    def commit_changes(self, changes: CoreTransaction) -> None:
        """Commit the changes of a transaction."""

    @abstractmethod
    def _require_catalog(self) -> object:
        """Raise if there is no catalog to commit to."""

    def upsert_stream(
        self,
        key: str | Iterable[str] | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        case_sensitive: bool = True,
        branch: str = OWN_BRANCH,
        *,
        memory_limit: int | None = None,
        idempotency_key: str | None = None,
        progress: bool = False,
    ) -> UpsertStream:
        """Open a writer of upserts and deletes by key, which are committed a micro-batch at a time.

        `upsert` and `merge` read the table and compare; a stream reads nothing of it, and leaves that to its readers.

        Parameters
        ----------
        key
            The columns of the key; by default the identifier fields of the schema.
        snapshot_properties, case_sensitive, branch
            As for `delete`; the properties are those of each snapshot.
        memory_limit
            Bytes that a micro-batch may take in memory, about; 512 MiB by default. More is held in temporary files.
        idempotency_key
            Makes each commit once, as for `append`: the first has this key, those that follow ``key/2``, ``key/3`` and
            so on. `UpsertStream.commit` takes one of its own, for engines that number their batches.
        progress
            As for `append`: a line for each commit.

        Raises
        ------
        InvalidArgumentError
            If there is no key, or it lacks a source column of the partition spec.
        UnsupportedFeatureError
            If the table is of format version 1, which has no delete files.

        """
        self._require_catalog()
        return UpsertStream(
            lambda: CoreTransaction(self._now),
            self.commit_changes,
            key,
            snapshot_properties,
            self._on(branch),
            case_sensitive=case_sensitive,
            memory_limit=memory_limit,
            progress=progress,
            idempotency_key=idempotency_key,
            made_before=self._made_before,
        )


class TableRows(TableHandle, CommitsRows):
    """Changes of rows of a table."""


def _require_filter(verb: str, name: str, given: object) -> None:
    if given is None:
        msg = f"{verb}: {name} is None: leave it out, or pass AlwaysTrue(), for all rows of the table"
        raise InvalidArgumentError(msg)
