"""Changes of the files of a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from icefield._arguments import property_texts
from icefield.errors import InvalidArgumentError
from icefield.table.update.changes import DeleteFiles, OverwriteFiles, ReplacePartitions, RewriteFiles, RowDelta
from icefield.table.update.producing import SnapshotChange, SnapshotOptions

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Self

    from icefield._core import Transaction as CoreTransaction
    from icefield.manifests import DataFile
    from icefield.table.update.change import Staging

__all__ = ["AppendFiles", "RewriteManifests", "UpdateSnapshot"]


class UpdateSnapshot:
    """Changes of files that are written already, each in one snapshot of the same branch."""

    def __init__(
        self,
        transaction: Staging,
        *,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = "main",
        stage_only: bool = False,
        standalone: bool = False,
    ) -> None:
        self._transaction = transaction
        self._options = SnapshotOptions(branch, property_texts(snapshot_properties), stage_only)
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


class AppendFiles(SnapshotChange):
    """An append of data files, made by `commit` or at the end of the ``with`` block.

    If it fails, the files stay where they are. A file that is added twice is taken once.
    """

    def __init__(self, transaction: Staging, options: SnapshotOptions, *, standalone: bool, merge: bool = True) -> None:
        super().__init__(transaction, options, standalone=standalone, merge=merge)
        self._files: list[DataFile] = []

    def append_data_file(self, data_file: DataFile) -> Self:
        """Append a data file. It is not opened: what is said of it must be true."""
        self._files.append(data_file)
        return self

    def _add_to(self, changes: CoreTransaction) -> None:
        changes.append_files(self._files, self._kind)

    def _holds_changes(self) -> bool:
        return bool(self._files)


class RewriteManifests(SnapshotChange):
    """Manifests of data files written again, so that entries that are read together stand together; files stay.

    Made by `commit` or at the end of the ``with`` block, of the manifests of ``main``.
    """

    def __init__(self, transaction: Staging, options: SnapshotOptions, *, standalone: bool) -> None:
        super().__init__(transaction, options, standalone=standalone)
        self._columns: list[str] | None = None
        self._function: Callable[[pa.Table], object] | None = None
        self._only: Callable[[pa.Table], object] | None = None

    def cluster_by(self, *by: str | Callable[[pa.Table], object]) -> Self:
        """Choose the entries that stand together, within each partition spec.

        Parameters
        ----------
        *by
            Partition fields, ``"partition"`` for all of them, or other fields of data files such as ``"file_path"``; or
            one function, which returns a value for each row of the entries of a manifest, as `icefield.manifests.read`
            returns them. Without any, all entries stand together.

        """
        names = [name for name in by if isinstance(name, str)]
        functions = [function for function in by if not isinstance(function, str)]
        if functions and len(by) > 1:
            raise InvalidArgumentError("cluster_by takes names or one function, not both")
        self._columns, self._function = names, functions[0] if functions else None
        return self

    def rewrite_if(self, choose: Callable[[pa.Table], object]) -> Self:
        """Choose the manifests that are written again.

        Parameters
        ----------
        choose
            A function that returns a boolean for each row of the manifests of data files, as
            `icefield.manifests.read_list` returns them.

        """
        self._only = choose
        return self

    def _add_to(self, changes: CoreTransaction) -> None:
        changes.rewrite_manifests(self._columns or [], self._function, self._only, self._kind)

    def _holds_changes(self) -> bool:
        return self._columns is not None or self._only is not None
