"""Changes of the files of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from icefield._arguments import property_texts
from icefield.table.update.producing import SnapshotChange, SnapshotOptions

if TYPE_CHECKING:
    from typing_extensions import Self

    from icefield._core import Transaction as CoreTransaction
    from icefield.manifests import DataFile
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
