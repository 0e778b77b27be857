"""Changes of the files of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from icefield._inputs.arguments import summary_entries
from icefield.table.update.changes import DeleteFiles, OverwriteFiles, ReplacePartitions, RewriteFiles, RowDelta
from icefield.table.update.manifests import RewriteManifests
from icefield.table.update.producing import SnapshotChange, SnapshotOptions

if TYPE_CHECKING:
    from typing_extensions import Self

    from icefield._core import Transaction as CoreTransaction
    from icefield.manifests import DataFile, ManifestFile
    from icefield.table.update.change import Staging

__all__ = ["AppendFiles", "UpdateSnapshot"]


class UpdateSnapshot:
    """Changes of files that are written already, each in one snapshot of the same branch."""

    def __init__(
        self,
        transaction: Staging,
        *,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = "main",
        stage_only: bool = False,
        idempotency_key: str | None = None,
        standalone: bool = False,
    ) -> None:
        self._transaction = transaction
        self._options = SnapshotOptions(branch, summary_entries(snapshot_properties, idempotency_key), stage_only)
        self._standalone = standalone

    def fast_append(self) -> AppendFiles:
        """Append data files, in manifests of their own: the commit is fast, and manifests become many."""
        return AppendFiles(self._transaction, self._options, standalone=self._standalone, merge=False)

    def merge_append(self) -> AppendFiles:
        """Append data files, and merge small manifests (``commit.manifest.*``)."""
        return AppendFiles(self._transaction, self._options, standalone=self._standalone)

    def overwrite(self) -> OverwriteFiles:
        """Replace data files by others."""
        return OverwriteFiles(self._transaction, self._options, standalone=self._standalone)

    def delete(self) -> DeleteFiles:
        """Remove data files."""
        return DeleteFiles(self._transaction, self._options, standalone=self._standalone)

    def row_delta(self) -> RowDelta:
        """Add delete files, and data files beside them."""
        return RowDelta(self._transaction, self._options, standalone=self._standalone)

    def rewrite_files(self) -> RewriteFiles:
        """Replace files by others with the same rows."""
        return RewriteFiles(self._transaction, self._options, standalone=self._standalone)

    def replace_partitions(self) -> ReplacePartitions:
        """Replace whole partitions by data files."""
        return ReplacePartitions(self._transaction, self._options, standalone=self._standalone)

    def rewrite_manifests(self) -> RewriteManifests:
        """Write manifests again: the same files in other manifests."""
        return RewriteManifests(self._transaction, self._options, standalone=self._standalone)


class AppendFiles(SnapshotChange):
    """An append of data files, made by `commit` or at the end of the ``with`` block.

    If it fails, the files and manifests stay where they are. One that is added twice is taken once.
    """

    def __init__(self, transaction: Staging, options: SnapshotOptions, *, standalone: bool, merge: bool = True) -> None:
        super().__init__(transaction, options, standalone=standalone, merge=merge)
        self._files: list[DataFile] = []
        self._manifests: list[ManifestFile] = []

    def append_data_file(self, data_file: DataFile) -> Self:
        """Append a data file. It is not opened: what is said of it must be true."""
        self._files.append(data_file)
        return self

    def append_manifest(self, manifest: ManifestFile) -> Self:
        """Append the data files of a manifest, written with `Table.new_manifest_writer`.

        It lists added files only and has no snapshot id. It is not opened, and becomes the table's when the commit
        succeeds; in version 1 it is copied, and stays the caller's.
        """
        self._manifests.append(manifest)
        return self

    def _add_to(self, changes: CoreTransaction) -> None:
        changes.append_files(self._files, self._manifests, self._kind)

    def _holds_changes(self) -> bool:
        return bool(self._files or self._manifests)

    def _effects(self) -> Iterable[str]:
        yield from (f"+ {file.file_path}" for file in self._files)
        yield from (f"+ {manifest.manifest_path}" for manifest in self._manifests)
