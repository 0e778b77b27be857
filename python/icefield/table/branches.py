"""Changes that are made on a branch of their own and published together."""

from __future__ import annotations

from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from icefield.errors import InvalidArgumentError

if TYPE_CHECKING:
    from typing_extensions import Self

    from icefield.table.changes import TableChanges
    from icefield.table.handle import TableHandle
    from icefield.table.transaction import TableTransaction

__all__ = ["BranchTransaction", "BranchWork"]

#: Methods of tables that write to a branch, or read the snapshots of one.
_ON_A_BRANCH = frozenset(
    {
        "add_files",
        "append",
        "append_files",
        "commit_files",
        "delete",
        "dynamic_partition_overwrite",
        "incremental_append_scan",
        "incremental_changelog_scan",
        "merge",
        "micro_batches",
        "overwrite",
        "overwrite_files",
        "replace_partitions",
        "rewrite_files",
        "rewrite_manifests",
        "row_delta",
        "update",
        "update_snapshot",
        "upsert",
        "upsert_stream",
    }
)


class BranchWork:
    """A table whose changes go to a new branch, and whose scans read it.

    At the end of the ``with`` block ``main`` is moved to the branch, and the branch is removed, in one commit. If the
    block raises, the branch is removed and ``main`` stays. If ``main`` was changed meanwhile it cannot be moved: the
    block raises, and the branch stays. Changes of metadata (`Table.update_schema`, …) are not part of a branch.
    """

    def __init__(self, table: TableChanges, name: str) -> None:
        self._table = table
        self._name = name

    @property
    def name(self) -> str:
        """The name of the branch."""
        return self._name

    def __enter__(self) -> Self:
        table, name = self._table.refresh(), self._name
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
        table, name = self._table.refresh(), self._name
        if name not in table.refs():
            return
        change = table.manage_snapshots()
        if kind is None:
            change.fast_forward_branch("main", name)
        change.remove_branch(name).commit()

    def transaction(self, *, idempotency_key: str | None = None) -> BranchTransaction:
        """Start a transaction whose changes of data go to the branch."""
        return BranchTransaction(self._table.transaction(idempotency_key=idempotency_key), self._name)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._table, name)
        if name == "scan":
            return partial(found, ref=self._name)
        return partial(found, branch=self._name) if name in _ON_A_BRANCH else found


class BranchTransaction:
    """A transaction whose changes of data go to a branch."""

    def __init__(self, transaction: TableTransaction[TableHandle], name: str) -> None:
        self._transaction = transaction
        self._name = name

    def __enter__(self) -> Self:
        self._transaction.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._transaction.__exit__(kind, error, trace)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._transaction, name)
        return partial(found, branch=self._name) if name in _ON_A_BRANCH else found
