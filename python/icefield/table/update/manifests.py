"""Writers of manifests, and rewrites of the manifests of a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from icefield._core import ManifestWriter as CoreManifestWriter
from icefield._core import TableState
from icefield.errors import InvalidArgumentError
from icefield.table.update.producing import SnapshotChange, SnapshotOptions

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Self

    from icefield._core import Transaction as CoreTransaction
    from icefield.manifests import DataFile, DeleteFile, ManifestFile
    from icefield.table.update.change import Staging

__all__ = ["ManifestWriter", "ManifestsPreview", "RewriteManifests"]


class ManifestWriter:
    """A writer of one manifest, without snapshot id: the commit that takes it assigns that.

    The manifest is written at the end of the ``with`` block or by `to_manifest_file`; a block that raises writes
    nothing. Until it is committed, the file is the caller's.
    """

    def __init__(
        self, state: TableState, spec_id: int, content: Literal["data", "deletes"], location: str | None
    ) -> None:
        self._writer = CoreManifestWriter(state, spec_id, content, location)
        self._manifest: ManifestFile | None = None

    def add(self, file: DataFile | DeleteFile, data_sequence_number: int | None = None) -> Self:
        """Add a file that the commit adds, by default with the data sequence number of its snapshot."""
        self._writer.add(file, data_sequence_number)
        return self

    def existing(
        self,
        file: DataFile | DeleteFile,
        snapshot_id: int,
        sequence_number: int,
        file_sequence_number: int | None = None,
    ) -> Self:
        """Add a file of the table, with the values of its entry.

        Parameters
        ----------
        file
            The file; in version 3 with its ``first_row_id``.
        snapshot_id
            The snapshot that added it.
        sequence_number, file_sequence_number
            Its data sequence number and its file sequence number; 0 and ``None`` in version 1.

        """
        self._writer.existing(file, snapshot_id, sequence_number, file_sequence_number)
        return self

    def to_manifest_file(self) -> ManifestFile:
        """Write the manifest unless it is written already, and return its description."""
        if self._manifest is None:
            self._manifest = self._writer.finish()
        return self._manifest

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.to_manifest_file()


@dataclass(frozen=True, slots=True)
class ManifestsPreview:
    """What a rewrite of manifests would do. Rows and data files do not change."""

    #: Numbers and bytes of the manifests that would be replaced, and of those that would replace them.
    replaced: int
    replaced_bytes: int
    added: int
    added_bytes: int
    #: Number of manifests that would stay as they are.
    kept: int
    #: Number of entries, of data files, that would be written again.
    entries: int


class RewriteManifests(SnapshotChange):
    """A rewrite of manifests that groups entries that are read together; data files do not change.

    Made by `commit` or at the end of the ``with`` block. `cluster_by` writes manifests of data files again; without it,
    those of `delete_manifest` are replaced by those of `add_manifest`.
    """

    def __init__(self, transaction: Staging, options: SnapshotOptions, *, standalone: bool) -> None:
        super().__init__(transaction, options, standalone=standalone)
        self._columns: list[str] | None = None
        self._function: Callable[[pa.Table], object] | None = None
        self._only: Callable[[pa.Table], object] | None = None
        self._with_deletes = False
        self._deleted: list[str] = []
        self._added: list[ManifestFile] = []

    def cluster_by(self, *by: str | Callable[[pa.Table], object]) -> Self:
        """Choose by what entries are grouped, within each partition spec.

        Parameters
        ----------
        *by
            Partition fields, ``"partition"`` for all of them, or other fields of data files such as ``"file_path"``; or
            one function, which returns a value for each row of the entries of a manifest, as `icefield.manifests.read`
            returns them. Without any, all entries are one group.

        """
        names = [name for name in by if isinstance(name, str)]
        functions = [function for function in by if not isinstance(function, str)]
        if functions and len(by) > 1:
            raise InvalidArgumentError("cluster_by takes names or one function, not both")
        self._columns, self._function = names, functions[0] if functions else None
        return self

    def with_delete_manifests(self) -> Self:
        """Include manifests of delete files in `cluster_by`; they stay separate from those of data files."""
        self._with_deletes = True
        return self

    def rewrite_if(self, choose: Callable[[pa.Table], object]) -> Self:
        """Choose the manifests that `cluster_by` writes again.

        Parameters
        ----------
        choose
            A function that returns a boolean for each row of the manifests, as `icefield.manifests.read_list` returns
            them: those of data files, and with `with_delete_manifests` those of delete files too.

        """
        self._only = choose
        return self

    def delete_manifest(self, manifest: ManifestFile) -> Self:
        """Remove a manifest whose live files are in added ones; the table must still have it at the commit."""
        self._deleted.append(manifest.manifest_path)
        return self

    def add_manifest(self, manifest: ManifestFile) -> Self:
        """Add a manifest of existing files, written with `Table.new_manifest_writer`; it has no snapshot id.

        It is not opened, and becomes the table's when the commit succeeds; in version 1 it is copied, and stays the
        caller's. The added manifests have as many live files as those that they replace.
        """
        self._added.append(manifest)
        return self

    def dry_run(self) -> ManifestsPreview:
        """Return what `commit` would do, and write nothing."""
        self._tried = True
        found = self._transaction.preview(
            lambda changes: changes.rewrite_manifests(
                self._columns,
                self._function,
                self._only,
                self._deleted,
                self._added,
                self._kind,
                with_deletes=self._with_deletes,
                dry_run=True,
            )
        )
        # The core returns numbers of each dry run.
        return ManifestsPreview(*(found or (0, 0, 0, 0, 0, 0)))

    def _add_to(self, changes: CoreTransaction) -> None:
        changes.rewrite_manifests(
            self._columns,
            self._function,
            self._only,
            self._deleted,
            self._added,
            self._kind,
            with_deletes=self._with_deletes,
        )

    def _holds_changes(self) -> bool:
        return self._columns is not None or bool(self._deleted or self._added)
