"""Changes that are made on a branch of their own and published together."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn

from icefield._outputs.printable import printable
from icefield.errors import InvalidArgumentError, MissingVerbError
from icefield.metadata import MAIN_BRANCH
from icefield.table.changes import ChangesAtOnce, TableChanges
from icefield.table.reads import ReadsRows
from icefield.table.rows import CommitsRows, TableRows
from icefield.table.transaction import TableTransaction
from icefield.table.update.target import OWN_BRANCH

if TYPE_CHECKING:
    from typing_extensions import Self

    from icefield._core import TableState
    from icefield._core import Transaction as CoreTransaction
    from icefield._inputs.identifiers import Identifier
    from icefield.arrow import ArrowSchemaExportable
    from icefield.distributed import Committed, RowChangePlan, WritePlan, WrittenFiles
    from icefield.errors import CommitStateUnknownException
    from icefield.expressions import RowFilter
    from icefield.metadata import TableMetadata
    from icefield.scan import PlanReporter, ScanPlanner
    from icefield.table.catalog import TableCatalog
    from icefield.table.rows import Isolation, RowMode
    from icefield.table.update import ManifestWriter
    from icefield.table.update.outcomes import CommitResolution

__all__ = ["BranchTransaction", "BranchWork"]

_WHOLE = "are those of the whole table, whose current snapshot is that of main"
_OTHER = "changes other branches than this one"

#: What tables have and a branch of one has not, and why: it would be about ``main``.
REFUSED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "branch": "the branch would start at main",
        "cherry_pick": "it changes main",
        "commit": _OTHER,
        "copy_to": "it copies the whole table",
        "create": _OTHER,
        "doctor": "it examines the whole table",
        "expire_snapshots": _OTHER,
        "export_metadata": "an export is of the whole table",
        "from_export": "an export has no current branch",
        "from_metadata": "a metadata file has no current branch",
        "fsck": "it checks the whole table",
        "history": "the history is that of main",
        "maintenance": _OTHER,
        "manage_snapshots": _OTHER,
        "metadata": f"metadata {_WHOLE}",
        "metadata_json": f"metadata {_WHOLE}",
        "metadata_location": f"metadata {_WHOLE}",
        "rewrite_table_path": "it is about the whole table",
        "snapshot_as_of_timestamp": "times are those of main",
    }
)


class BranchedTable(TableRows, TableChanges):
    """What a branch is of: an `icefield.Table`."""

    @abstractmethod
    def new_write(
        self, properties: Mapping[str, str] | None = None, *, widened_by: ArrowSchemaExportable | None = None
    ) -> WritePlan:
        """Plan a write by workers."""

    @abstractmethod
    def commit_files(
        self,
        plan: WritePlan,
        written: Iterable[WrittenFiles],
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = OWN_BRANCH,
        *,
        mode: Literal["append", "dynamic"] = "append",
        isolation: Isolation | None = None,
        idempotency_key: str | None = None,
    ) -> Committed:
        """Commit the files that the tasks of a write wrote."""

    @abstractmethod
    def new_row_change(
        self,
        command: Literal["delete", "update", "merge", "overwrite"],
        row_filter: RowFilter | None = None,
        *,
        exact: bool = False,
        mode: RowMode | None = None,
        isolation: Isolation | None = None,
        branch: str = OWN_BRANCH,
        case_sensitive: bool = True,
        properties: Mapping[str, str] | None = None,
        widened_by: ArrowSchemaExportable | None = None,
    ) -> RowChangePlan:
        """Plan a change of rows by workers."""

    @abstractmethod
    def commit_rows(
        self,
        plan: RowChangePlan,
        removed: Iterable[WrittenFiles] = (),
        added: Iterable[WrittenFiles] = (),
        snapshot_properties: Mapping[str, str] | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> Committed:
        """Commit a change of rows by workers."""


class BranchWork(ReadsRows, CommitsRows, ChangesAtOnce):
    """A new branch of a table: rows are read from it and written to it.

    At the end of the ``with`` block ``main`` is moved to the branch, and the branch is removed, in one commit. If the
    block raises, the branch is removed and ``main`` stays. If ``main`` was changed meanwhile it cannot be moved: the
    block raises, and the branch stays.

    It is read and changed as an `icefield.Table`; what would be about ``main`` raises, such as `icefield.Table.history`
    and ``as_of``. The schema, the partition spec, the sort order and the properties are the table's: changes of them
    are not part of the branch, but are made at once, and stay.
    """

    def __init__(self, table: BranchedTable, name: str) -> None:
        self._table = table
        self._branch = name

    @property
    def name(self) -> str:
        """The name of the branch."""
        return self._branch or MAIN_BRANCH

    @property
    def identifier(self) -> Identifier:
        """Namespace and name of the table."""
        return self._table.identifier

    @property
    def catalog(self) -> TableCatalog[Any, Any, Any] | None:
        """The catalog that loaded the table."""
        return self._table._catalog  # noqa: SLF001

    @property
    def _now(self) -> TableState:
        return self._table._now  # noqa: SLF001

    @property
    def _plan_reporter(self) -> PlanReporter | None:
        return self._table._plan_reporter  # noqa: SLF001

    @property
    def _scan_planner(self) -> ScanPlanner | None:
        return self._table._scan_planner  # noqa: SLF001

    @property
    def _changed_metadata(self) -> TableMetadata:
        return self._now.metadata

    def __enter__(self) -> Self:
        table, name = self._table.refresh(), self.name
        if name in table.refs():
            raise InvalidArgumentError(
                f"the table has a branch or tag {name!r} already; write to it with branch={name!r}"
            )
        # The first change of a table without snapshots creates the branch.
        if (head := table.metadata.current_snapshot_id) is not None:
            table.manage_snapshots().create_branch(head, name).commit()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        table, name = self._table.refresh(), self.name
        if name not in table.refs():
            return
        change = table.manage_snapshots()
        if kind is None:
            change.fast_forward_branch(MAIN_BRANCH, name)
        change.remove_branch(name).commit()

    # Changes of rows and files

    def _changing(self) -> AbstractContextManager[CoreTransaction]:
        return self._table._changing()  # noqa: SLF001

    def _require_catalog(self) -> object:
        return self._table._require_catalog()  # noqa: SLF001

    def transaction(self, *, idempotency_key: str | None = None) -> BranchTransaction:
        """Start a transaction whose changes of data go to the branch; see `Table.transaction`."""
        return BranchTransaction(self, idempotency_key=idempotency_key)

    def new_write(
        self, properties: Mapping[str, str] | None = None, *, widened_by: ArrowSchemaExportable | None = None
    ) -> WritePlan:
        """Plan a write by workers; see `Table.new_write`."""
        return self._table.new_write(properties, widened_by=widened_by)

    def commit_files(
        self,
        plan: WritePlan,
        written: Iterable[WrittenFiles],
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = OWN_BRANCH,
        *,
        mode: Literal["append", "dynamic"] = "append",
        isolation: Isolation | None = None,
        idempotency_key: str | None = None,
    ) -> Committed:
        """Commit the files that the tasks of a write wrote; see `Table.commit_files`."""
        return self._table.commit_files(
            plan,
            written,
            snapshot_properties,
            self._on(branch),
            mode=mode,
            isolation=isolation,
            idempotency_key=idempotency_key,
        )

    def new_row_change(
        self,
        command: Literal["delete", "update", "merge", "overwrite"],
        row_filter: RowFilter | None = None,
        *,
        exact: bool = False,
        mode: RowMode | None = None,
        isolation: Isolation | None = None,
        branch: str = OWN_BRANCH,
        case_sensitive: bool = True,
        properties: Mapping[str, str] | None = None,
        widened_by: ArrowSchemaExportable | None = None,
    ) -> RowChangePlan:
        """Plan a change of rows by workers; see `Table.new_row_change`."""
        return self._table.new_row_change(
            command,
            row_filter,
            exact=exact,
            mode=mode,
            isolation=isolation,
            branch=self._on(branch),
            case_sensitive=case_sensitive,
            properties=properties,
            widened_by=widened_by,
        )

    def commit_rows(
        self,
        plan: RowChangePlan,
        removed: Iterable[WrittenFiles] = (),
        added: Iterable[WrittenFiles] = (),
        snapshot_properties: Mapping[str, str] | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> Committed:
        """Commit a change of rows by workers; see `Table.commit_rows`."""
        self._on(plan.branch)
        return self._table.commit_rows(plan, removed, added, snapshot_properties, idempotency_key=idempotency_key)

    def new_manifest_writer(
        self,
        spec_id: int | None = None,
        content: Literal["data", "deletes"] = "data",
        *,
        location: str | None = None,
    ) -> ManifestWriter:
        """Write a manifest before the commit that takes it; see `Table.new_manifest_writer`."""
        return self._table.new_manifest_writer(spec_id, content, location=location)

    # Of the table, whatever the branch

    def refresh(self) -> Self:
        """Refresh the table to its newest metadata."""
        self._table.refresh()
        return self

    def commit_changes(self, changes: CoreTransaction) -> None:
        """Commit the changes of a transaction; `BranchTransaction.commit_transaction` calls it."""
        self._table.commit_changes(changes)

    def resolve_commit(self, commit: CommitStateUnknownException | int, *, clean_up: bool = False) -> CommitResolution:
        """Find out what became of a commit whose outcome was unknown; see `Table.resolve_commit`."""
        return self._table.resolve_commit(commit, clean_up=clean_up)

    def update_properties(self, updates: Mapping[str, str] | None = None, removals: Iterable[str] | str = ()) -> Self:
        """Set and remove properties of the table, at once; see `Table.update_properties`."""
        self._table.update_properties(updates, removals)
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._table, self._branch)

    @property
    def _title(self) -> str:
        return f"branch {printable(self.name)} of {self._table._title}"  # noqa: SLF001

    def __repr__(self) -> str:
        is_over = self.name not in self._now.metadata.refs and MAIN_BRANCH in self._now.metadata.refs
        return f"{self._title}, whose block has ended" if is_over else super().__repr__()

    if not TYPE_CHECKING:  # a type checker would take every misspelt name for one that this returns

        def __getattr__(self, name: str) -> NoReturn:
            if reason := REFUSED.get(name):
                raise MissingVerbError(f"a branch of a table has no {name}: {reason}; use the table itself")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)


class BranchTransaction(TableTransaction["BranchWork"]):
    """A transaction whose changes of data go to a branch; those of metadata are the table's."""

    def __init__(self, work: BranchWork, *, idempotency_key: str | None = None) -> None:
        self._branch = work.name
        super().__init__(work, idempotency_key=idempotency_key)

    def manage_snapshots(self) -> NoReturn:
        """Raise: it changes other branches."""
        raise MissingVerbError(
            "a transaction of a branch has no manage_snapshots, which changes main: use one of the table itself"
        )
