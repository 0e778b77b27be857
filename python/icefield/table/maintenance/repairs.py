"""What a repair of a table corrects, and what it leaves."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from icefield._core import repair as core_repair
from icefield._inputs.arguments import summary_entries
from icefield._outputs.layout import counted
from icefield._outputs.printable import printable
from icefield.errors import InvalidArgumentError
from icefield.metadata import MAIN_BRANCH
from icefield.table.maintenance.checks import Finding

if TYPE_CHECKING:
    from collections.abc import Mapping

    from icefield._core import RepairRequest
    from icefield.table.maintenance.compacting import RunOnTable

__all__ = ["Correction", "RepairReport", "Unrepaired"]

#: A display shows this many lines of each kind.
_MOST_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Correction:
    """A field that was corrected."""

    #: Name of the check that found it, as of a `Finding`.
    check: str
    #: The file that was described wrongly.
    file: str
    #: The field of the manifest list or the manifest.
    field: str
    #: The wrong value and the new one, as text.
    before: str
    after: str
    #: The file that had the wrong value.
    described_by: str

    def __str__(self) -> str:
        where = f"{self.file}: {self.field}" if self.field else self.file
        return printable(f"{self.check}: {where}: {self.before} -> {self.after}")


@dataclass(frozen=True, slots=True)
class Unrepaired:
    """A finding that was left as it is."""

    #: The finding.
    finding: Finding
    #: Why it was left.
    reason: str

    def __str__(self) -> str:
        return printable(f"{self.finding}: left, because {self.reason}")


@dataclass(frozen=True, slots=True, repr=False)
class RepairReport:
    """What a repair has done, or with ``dry_run`` would do."""

    #: Corrected fields; at most ``max_findings``.
    corrections: list[Correction]
    #: Findings that were left; at most ``max_findings``.
    left: list[Unrepaired]
    #: Numbers of all corrections, and of all findings that were left.
    corrected: int
    unrepaired: int
    #: Number of manifests that were written again.
    rewritten_manifests: int
    #: Numbers of data files and their rows, and of delete files, that were removed from the table.
    removed_files: int
    removed_rows: int
    removed_delete_files: int
    #: The new snapshot; None if there was nothing to correct, or with ``dry_run``.
    snapshot_id: int | None

    def to_json(self) -> str:
        """Return the report as JSON."""
        return json.dumps(asdict(self))

    def __repr__(self) -> str:
        done = [counted(self.corrected, "correction"), f"{counted(self.unrepaired, 'finding')} left"]
        done += [counted(self.rewritten_manifests, "manifest")] if self.rewritten_manifests else []
        if self.removed_files:
            done += [f"{counted(self.removed_files, 'file')} with {counted(self.removed_rows, 'row')} removed"]
        done += [f"{counted(self.removed_delete_files, 'delete file')} removed"] if self.removed_delete_files else []
        lines = [f"RepairReport({', '.join(done)})"]
        lines += [f"  {one}" for one in [*self.corrections[:_MOST_SHOWN], *self.left[:_MOST_SHOWN]]]
        more = self.corrected + self.unrepaired - len(lines) + 1
        return "\n".join([*lines, *([f"  and {more} more"] if more > 0 else [])])


class Repairs:
    """Repair of a table."""

    def __init__(self, run: RunOnTable) -> None:
        self._run = run

    def repair(
        self,
        level: Literal["footers", "rows"] = "footers",
        *,
        branch: str = MAIN_BRANCH,
        remove_missing_files: bool = False,
        remove_missing_deletes: bool = False,
        snapshot_properties: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
        max_findings: int = 10_000,
    ) -> RepairReport:
        """Correct what manifests and manifest lists say wrongly of files, by a new snapshot.

        Only what is certain is corrected: what a file says of itself (its size, footer and rows), and what follows from
        the manifests (counts and partition summaries of manifest lists, totals of the summary). The checks of `fsck`
        prove each correction; everything else is left, with a reason. Rows do not change, and entries keep their
        sequence numbers and row ids. Older snapshots keep the damage until they expire.

        Parameters
        ----------
        level
            How much is read, as for `fsck`: ``"footers"`` or ``"rows"``.
        branch
            The branch whose current snapshot is repaired.
        remove_missing_files
            Remove data files that do not exist from the table, and their rows with them.
        remove_missing_deletes
            Remove delete files that do not exist from the table: the rows that they delete come back.
        snapshot_properties
            Entries of the snapshot's summary.
        idempotency_key
            Makes the change once: a call that finds a snapshot with this key does nothing.
        dry_run
            Change nothing, and return what would be done.
        max_findings
            How many corrections, and how many findings that are left, to return; all are counted.

        Returns
        -------
        RepairReport
            The corrections, and the findings that were left.

        Raises
        ------
        InvalidArgumentError
            If the branch is unknown, or the table is an export.
        CommitStateUnknownException
            As for `compact`.

        Examples
        --------
        >>> table.maintenance.repair(dry_run=True)  # doctest: +SKIP
        RepairReport(1 correction, 0 findings left, 1 manifest)
          file-record-count: /data/t/data/00000.parquet: record_count: 3 -> 4

        """
        if max_findings < 0:
            raise InvalidArgumentError(f"max_findings: expected at least 0, got {max_findings}")
        request: RepairRequest = {
            "level": level,
            "branch": branch,
            "snapshot_properties": summary_entries(snapshot_properties, idempotency_key),
            "remove_missing_files": remove_missing_files,
            "remove_missing_deletes": remove_missing_deletes,
            "most": max_findings,
            "dry_run": dry_run,
        }
        _, snapshot_id, corrections, left, counts = self._run(
            lambda state, catalog, name: core_repair(state, catalog, name, request)
        )
        findings = [
            Unrepaired(Finding("error" if is_error else "warning", *texts), reason)
            for (is_error, *texts), reason in left
        ]
        return RepairReport([Correction(*texts) for texts in corrections], findings, **counts, snapshot_id=snapshot_id)
