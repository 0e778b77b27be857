"""Changes of files that are described, with the checks against other commits that Java's operations have.

Every check looks at what was committed after the snapshot of ``validate_from_snapshot``; without it, at all of
history. It is made again where another commit was first. What it refuses is a `ValidationException`, which names the
file in the way.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from icefield.table.update.producing import SnapshotChange, SnapshotOptions

if TYPE_CHECKING:
    from typing_extensions import Self

    from icefield._core import FileChanges
    from icefield._core import Transaction as CoreTransaction
    from icefield.expressions import RowFilter
    from icefield.manifests import DataFile, DeleteFile
    from icefield.table.update.change import Staging

__all__ = ["DeleteFiles", "OverwriteFiles", "ReplacePartitions", "RewriteFiles", "RowDelta"]


class _FileChange(SnapshotChange):
    """What all changes of files collect."""

    _operation = ""

    def __init__(self, transaction: Staging, options: SnapshotOptions, *, standalone: bool) -> None:
        super().__init__(transaction, options, standalone=standalone)
        self._files: FileChanges = {
            "added": [],
            "added_deletes": [],
            "removed": [],
            "removed_deletes": [],
            "removed_paths": [],
            "filters": [],
            "case_sensitive": True,
            "from_snapshot": None,
            "conflict_filter": None,
            "data_sequence_number": None,
            "referenced": [],
            "checks": [],
        }

    def _add_to(self, changes: CoreTransaction) -> None:
        changes.change_files(self._operation, self._files, self._kind)

    def _holds_changes(self) -> bool:
        files = self._files
        named = files["removed_paths"] or files["filters"]
        return bool(files["added"] or files["added_deletes"] or files["removed"] or files["removed_deletes"] or named)

    def _effects(self) -> Iterable[str]:
        files = self._files
        yield from (f"- {file.file_path}" for file in [*files["removed"], *files["removed_deletes"]])
        yield from (f"- {path}" for path in files["removed_paths"])
        yield from (f"- files with all rows matching {predicate}" for predicate in files["filters"])
        added = [*files["added"], *(one[0] if isinstance(one, tuple) else one for one in files["added_deletes"])]
        yield from (f"+ {file.file_path}" for file in added)

    def _check(self, name: str) -> Self:
        self._files["checks"].append(name)
        return self


class _ValidatedChange(_FileChange):
    """A change that can say which snapshot it was made of."""

    def validate_from_snapshot(self, snapshot_id: int) -> Self:
        """Look for conflicts after this snapshot: the one that the change was made of."""
        self._files["from_snapshot"] = snapshot_id
        return self


class _FilteredChange(_ValidatedChange):
    """A change for which only some files are conflicts, and which can take delete files away."""

    def case_sensitive(self, case_sensitive: bool) -> Self:
        """Whether the case of names in filters matters."""
        self._files["case_sensitive"] = case_sensitive
        return self

    def conflict_detection_filter(self, conflict_filter: RowFilter) -> Self:
        """Take only files that may have rows of this filter for conflicts."""
        self._files["conflict_filter"] = conflict_filter
        return self

    def remove_deletes(self, delete_file: DeleteFile) -> Self:
        """Remove a delete file: added ones replace it, or it applied to removed data files only."""
        self._files["removed_deletes"].append(delete_file)
        return self


class _Deleting(_FileChange):
    """A change that removes data files, by filter or one by one."""

    def delete_data_file(self, data_file: DataFile) -> Self:
        """Remove a data file."""
        self._files["removed"].append(data_file)
        return self

    def delete_by_predicate(self, predicate: RowFilter, case_sensitive: bool | None = None) -> Self:
        """Remove the data files all of whose rows match; a file that has other rows as well is an error.

        The case of names matters unless it is set otherwise, for all filters of the change.
        """
        self._files["filters"].append(predicate)
        if case_sensitive is not None:
            self._files["case_sensitive"] = case_sensitive
        return self


class DeleteFiles(_Deleting):
    """Removes data files."""

    _operation = "delete"

    def delete_path(self, path: str) -> Self:
        """Remove the data file at this location; all manifests are read for it."""
        self._files["removed_paths"].append(path)
        return self

    def validate_files_exist(self) -> Self:
        """Refuse to remove a file that the table does not have."""
        return self._check("files_exist")


class OverwriteFiles(_Deleting, _FilteredChange):
    """Removes data files, by filter or one by one, and adds others."""

    _operation = "overwrite"

    def append_data_file(self, data_file: DataFile) -> Self:
        """Add a data file."""
        self._files["added"].append(data_file)
        return self

    def validate_added_files_match_overwrite_filter(self) -> Self:
        """Refuse added files that may have rows that the filter does not match."""
        return self._check("added_files_match_overwrite_filter")

    def validate_no_conflicting_data(self) -> Self:
        """Refuse to commit if data files were added."""
        return self._check("no_conflicting_data")

    def validate_no_conflicting_deletes(self) -> Self:
        """Refuse to commit if rows of what is overwritten were deleted."""
        return self._check("no_conflicting_deletes")


class RowDelta(_FilteredChange):
    """Adds delete files, and data files beside them (merge-on-read)."""

    _operation = "row_delta"

    def add_rows(self, data_file: DataFile) -> Self:
        """Add a data file."""
        self._files["added"].append(data_file)
        return self

    def add_deletes(self, delete_file: DeleteFile) -> Self:
        """Add a delete file."""
        self._files["added_deletes"].append((delete_file, None))
        return self

    def remove_rows(self, data_file: DataFile) -> Self:
        """Remove a data file."""
        self._files["removed"].append(data_file)
        return self

    def validate_data_files_exist(self, referenced_files: Iterable[str]) -> Self:
        """Refuse to commit if one of these data files, which the delete files are for, was removed."""
        self._files["referenced"].extend(referenced_files)
        return self

    def validate_deleted_files(self) -> Self:
        """Refuse to remove a file that the table does not have."""
        return self._check("deleted_files")

    def validate_no_conflicting_data_files(self) -> Self:
        """Refuse to commit if data files were added."""
        return self._check("no_conflicting_data_files")

    def validate_no_conflicting_delete_files(self) -> Self:
        """Refuse to commit if delete files were added."""
        return self._check("no_conflicting_delete_files")


class RewriteFiles(_ValidatedChange):
    """Replaces files by others with the same rows, as compaction does."""

    _operation = "rewrite_files"

    def delete_data_file(self, data_file: DataFile) -> Self:
        """Remove a data file."""
        self._files["removed"].append(data_file)
        return self

    def delete_delete_file(self, delete_file: DeleteFile) -> Self:
        """Remove a delete file."""
        self._files["removed_deletes"].append(delete_file)
        return self

    def add_data_file(self, data_file: DataFile) -> Self:
        """Add a data file."""
        self._files["added"].append(data_file)
        return self

    def add_delete_file(self, delete_file: DeleteFile, data_sequence_number: int | None = None) -> Self:
        """Add a delete file, with the sequence number of those that it replaces."""
        self._files["added_deletes"].append((delete_file, data_sequence_number))
        return self

    def data_sequence_number(self, sequence_number: int) -> Self:
        """Set the sequence number of the added data files, so that newer equality deletes apply to them."""
        self._files["data_sequence_number"] = sequence_number
        return self


class ReplacePartitions(_ValidatedChange):
    """Replaces the partitions of the files that it adds."""

    _operation = "replace_partitions"

    def append_data_file(self, data_file: DataFile) -> Self:
        """Add a data file; all others of its partition are removed."""
        self._files["added"].append(data_file)
        return self

    def validate_append_only(self) -> Self:
        """Refuse to commit if a file would be removed."""
        return self._check("append_only")

    def validate_no_conflicting_data(self) -> Self:
        """Refuse to commit if data files were added to these partitions."""
        return self._check("no_conflicting_data")

    def validate_no_conflicting_deletes(self) -> Self:
        """Refuse to commit if rows of these partitions were deleted."""
        return self._check("no_conflicting_deletes")
