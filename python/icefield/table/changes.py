"""Changes of a table's files, metadata and references; each is committed by itself, or with others in a transaction."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from icefield._core import compute_table_stats, expire_snapshots
from icefield._inputs.arguments import property_names, property_updates
from icefield.errors import InvalidArgumentError
from icefield.table.description.handle import TableHandle
from icefield.table.maintenance import ColumnStatistics, ExpiredSnapshots, Maintenance
from icefield.table.maintenance.orphans import RemovedOrphans, find_and_remove
from icefield.table.update import (
    ManageSnapshots,
    ManifestWriter,
    UpdateSchema,
    UpdateSnapshot,
    UpdateSortOrder,
    UpdateSpec,
    UpdateStatistics,
)
from icefield.table.update.operations import ChangesFiles
from icefield.table.update.target import OWN_BRANCH

if TYPE_CHECKING:
    from typing_extensions import Self

    from icefield._core import ExpiryRequest, TableState
    from icefield.manifests import DataFile
    from icefield.table.description.handle import TableHandle
    from icefield.table.maintenance import Expired
    from icefield.table.maintenance.compacting import Maintained
    from icefield.table.transaction import TableTransaction
    from icefield.table.update.change import Staging

__all__ = ["ChangesAtOnce", "TableChanges"]


class ChangesAtOnce(ChangesFiles):
    """Changes that are each committed by itself, the same for `icefield.Table` and for a branch of one."""

    @abstractmethod
    def transaction(self, *, idempotency_key: str | None = None) -> Staging:
        """Start a transaction: changes that are committed together."""

    def update_snapshot(
        self,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = OWN_BRANCH,
        *,
        stage_only: bool = False,
        idempotency_key: str | None = None,
    ) -> UpdateSnapshot:
        """Change the files of the table by their descriptions, in a ``with`` block or with `Change.commit`.

        Examples
        --------
        >>> with table.update_snapshot().fast_append() as append:  # doctest: +SKIP
        ...     append.append_data_file(ice.DataFile(file_path=path, file_format="parquet", record_count=3, ...))

        """
        return UpdateSnapshot(
            self.transaction(),
            snapshot_properties=snapshot_properties,
            branch=self._on(branch),
            stage_only=stage_only,
            idempotency_key=idempotency_key,
            standalone=True,
        )

    def append_files(
        self,
        files: Iterable[DataFile],
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = OWN_BRANCH,
        *,
        stage_only: bool = False,
        idempotency_key: str | None = None,
    ) -> Self:
        """Append data files that are written already, in one snapshot.

        The files are not opened: what is said of them must be true. If the append fails, they stay where they are.

        Parameters
        ----------
        files
            The files; their partition values are those of the partition spec that each names.
        snapshot_properties, branch
            As in `append`.
        stage_only
            Only add the snapshot to the table, without moving the branch.
        idempotency_key
            As in `append`. A staged snapshot is looked for in the whole table.

        Raises
        ------
        InvalidArgumentError
            If a file does not fit the table's partition specs.

        """
        update = self.update_snapshot(
            snapshot_properties, branch, stage_only=stage_only, idempotency_key=idempotency_key
        ).merge_append()
        for file in files:
            update.append_data_file(file)
        update.commit()
        return self

    def update_schema(self, allow_incompatible_changes: bool = False, case_sensitive: bool = True) -> UpdateSchema:
        """Change the schema, in a ``with`` block or with `Change.commit`.

        Parameters
        ----------
        allow_incompatible_changes
            Allow changes that existing rows may violate: required columns without a default, optional columns made
            required.
        case_sensitive
            Whether column names are case-sensitive.

        Examples
        --------
        >>> with table.update_schema() as update:  # doctest: +SKIP
        ...     update.add_column("place.country", "string", doc="ISO 3166")
        ...     update.rename_column("time", "departure").move_first("departure")

        """
        return UpdateSchema(
            self.transaction(),
            standalone=True,
            allow_incompatible_changes=allow_incompatible_changes,
            case_sensitive=case_sensitive,
        )

    def update_spec(self, case_sensitive: bool = True) -> UpdateSpec:
        """Change the partition spec, in a ``with`` block or with `Change.commit`.

        Parameters
        ----------
        case_sensitive
            Whether column names are case-sensitive.

        Examples
        --------
        >>> with table.update_spec() as update:  # doctest: +SKIP
        ...     update.add_field("bucket(16, id)").remove_field("day")

        """
        return UpdateSpec(self.transaction(), standalone=True, case_sensitive=case_sensitive)

    def update_sort_order(self, case_sensitive: bool = True) -> UpdateSortOrder:
        """Replace the sort order, in a ``with`` block or with `Change.commit`.

        Parameters
        ----------
        case_sensitive
            Whether column names are case-sensitive.

        """
        return UpdateSortOrder(self.transaction(), standalone=True, case_sensitive=case_sensitive)

    def update_statistics(self) -> UpdateStatistics:
        """Set and remove the statistics files of snapshots, in a ``with`` block or with `Change.commit`.

        Examples
        --------
        >>> with table.update_statistics() as update:  # doctest: +SKIP
        ...     update.set_statistics(statistics_file).remove_statistics(older_snapshot_id)

        """
        return UpdateStatistics(self.transaction(), standalone=True)


class TableChanges(TableHandle, ChangesAtOnce):
    """Changes of a table's files, metadata and references."""

    @abstractmethod
    def transaction(self, *, idempotency_key: str | None = None) -> TableTransaction[TableHandle]:
        """Start a transaction: changes that are committed together."""

    def update_properties(self, updates: Mapping[str, str] | None = None, removals: Iterable[str] | str = ()) -> Self:
        """Set and remove table properties; ``format-version`` upgrades the table, as in Java.

        A single str in ``removals`` is one name.
        """
        changes, names = property_updates(updates), property_names(removals)
        if both := sorted(set(names) & set(updates or {})):
            raise InvalidArgumentError(f"table property {both[0]!r} cannot be set and removed at once")
        if names:
            changes.append({"action": "remove-properties", "removals": names})
        return self.commit([], changes)

    def cherry_pick(self, snapshot_id: int) -> Self:
        """Make the changes of a snapshot again at the end of ``main``; see `ManageSnapshots.cherry_pick`."""
        self.manage_snapshots().cherry_pick(snapshot_id).commit()
        return self

    def new_manifest_writer(
        self,
        spec_id: int | None = None,
        content: Literal["data", "deletes"] = "data",
        *,
        location: str | None = None,
    ) -> ManifestWriter:
        """Write a manifest before the commit that takes it, in a ``with`` block.

        Parameters
        ----------
        spec_id
            The partition spec of its files; by default that of the table.
        content
            Data files or delete files.
        location
            Where it is written; by default in the table's folder of metadata.

        Examples
        --------
        >>> with table.new_manifest_writer() as writer:  # doctest: +SKIP
        ...     for file in files:
        ...         writer.add(file)
        >>> table.update_snapshot().fast_append().append_manifest(writer.to_manifest_file()).commit()  # doctest: +SKIP

        """
        spec_id = self.metadata.default_spec_id if spec_id is None else spec_id
        return ManifestWriter(self._state, spec_id, content, location)

    def manage_snapshots(self) -> ManageSnapshots:
        """Change branches, tags and the current snapshot, in a ``with`` block or with `Change.commit`.

        Examples
        --------
        >>> table.manage_snapshots().create_tag(snapshot_id, "audited").commit()  # doctest: +SKIP

        """
        return ManageSnapshots(self.transaction(), standalone=True)

    @property
    def maintenance(self) -> Maintenance:
        """What keeps the table in order: ``table.maintenance.compact()``, ``table.maintenance.expire_snapshots()``."""
        return Maintenance(self._expire, self._maintain, self._remove_orphans, self._compute_stats)

    def expire_snapshots(
        self,
        *,
        older_than: datetime | timedelta | str | int | None = None,
        retain_last: int | None = None,
        snapshot_ids: Iterable[int] = (),
        clean_expired_metadata: bool = False,
        cleanup: Literal["all", "metadata", "nothing"] = "all",
        external: Literal["keep", "delete"] = "keep",
        dry_run: bool = False,
    ) -> ExpiredSnapshots:
        """Expire snapshots, and delete the files that only they name; see `ExpireSnapshots`.

        Parameters
        ----------
        older_than, retain_last, snapshot_ids, clean_expired_metadata, cleanup, external
            As in `ExpireSnapshots`.
        dry_run
            Change nothing, and return what would be done.

        """
        change = self.maintenance.expire_snapshots().by_ids(snapshot_ids).cleanup(cleanup).external(external)
        change.clean_expired_metadata(clean_expired_metadata)
        if older_than is not None:
            change.older_than(older_than)
        if retain_last is not None:
            change.retain_last(retain_last)
        return change.dry_run() if dry_run else change.commit()

    def _expire(self, request: ExpiryRequest) -> Expired:
        base = self._state
        done = expire_snapshots(base, self._require_catalog(), self._identifier, request)
        if done[0] is not None:
            self._advance(done[0], base)
        return done

    def _maintain(self, run: Callable[[TableState, object, object], Maintained]) -> Maintained:
        base = self._state
        done = run(base, self._require_catalog(), self._identifier)
        if done[0] is not None:
            self._advance(done[0], base)
        return done

    def _compute_stats(self, columns: list[str] | None, snapshot_id: int | None) -> ColumnStatistics | None:
        base = self._state
        done = compute_table_stats(
            base, self._require_catalog(), self._identifier, columns=columns, snapshot_id=snapshot_id
        )
        if done is None:
            return None
        state, path, counts = done
        self._advance(state, base)
        schemas = [self.schema(), *self.schemas().values()]
        names = {field: next(filter(None, (one.find_column_name(field) for one in schemas))) for field, _ in counts}
        return ColumnStatistics(path, {str(names[field]): count for field, count in counts})

    def _remove_orphans(self, **arguments: Any) -> RemovedOrphans:
        return find_and_remove(self._state, self._require_catalog(), self._identifier, **arguments)
