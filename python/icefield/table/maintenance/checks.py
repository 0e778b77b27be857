"""What a check of a table finds: differences between metadata, manifests and files."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from icefield._core import fsck as core_fsck
from icefield._outputs.layout import counted
from icefield._outputs.printable import printable
from icefield.errors import InvalidArgumentError

if TYPE_CHECKING:
    from icefield._core import TableState

__all__ = ["CheckReport", "Finding"]

CheckLevel: TypeAlias = Literal["metadata", "manifests", "files", "footers", "rows"]

#: A display shows this many findings.
_MOST_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """A difference between two parts of a table."""

    #: With an error, reads may fail or return wrong rows; with a warning, figures are wrong, or something is unused.
    severity: Literal["error", "warning"]
    #: Name of the check, such as ``file-size``.
    check: str
    #: The file that is wrong, or whose description is.
    file: str
    #: The field of the metadata, the manifest list or the manifest; empty if the file itself is wrong.
    field: str
    #: What it should be; empty if that has no value.
    expected: str
    #: What it is.
    found: str
    #: The file that describes it: a metadata file, a manifest list or a manifest.
    described_by: str

    def __str__(self) -> str:
        where = f"{self.file}: {self.field}" if self.field else self.file
        values = f"expected {self.expected}, found {self.found}" if self.expected else self.found
        return printable(f"{self.severity} {self.check}: {where}: {values}")


@dataclass(frozen=True, slots=True, repr=False)
class CheckReport:
    """What a check of a table has found."""

    #: The findings, errors first; at most as many as were asked for.
    findings: list[Finding]
    #: Numbers of all errors and warnings.
    errors: int
    warnings: int
    #: What was checked: numbers of snapshots, manifests, data and delete files, and rows.
    snapshots: int
    manifests: int
    files: int
    rows: int

    @property
    def ok(self) -> bool:
        """Whether there are no errors; there may be warnings."""
        return not self.errors

    def to_json(self) -> str:
        """Return the report as JSON."""
        return json.dumps(asdict(self))

    def __repr__(self) -> str:
        found = f"{counted(self.errors, 'error')}, {counted(self.warnings, 'warning')}"
        checked = ", ".join(
            counted(number, what)
            for number, what in (
                (self.snapshots, "snapshot"),
                (self.manifests, "manifest"),
                (self.files, "file"),
                (self.rows, "row"),
            )
            if number or what == "snapshot"
        )
        lines = [f"CheckReport({found} in {checked})", *(f"  {one}" for one in self.findings[:_MOST_SHOWN])]
        more = self.errors + self.warnings - len(lines) + 1
        return "\n".join([*lines, *([f"  and {more} more"] if more > 0 else [])])


def checked(state: TableState, level: CheckLevel, max_findings: int) -> CheckReport:
    """Check a table; `icefield.Table.fsck` says how."""
    if max_findings < 0:
        raise InvalidArgumentError(f"max_findings: expected at least 0, got {max_findings}")
    found, counts = core_fsck(state, level=level, most=max_findings)
    findings = [Finding("error" if is_error else "warning", *texts) for is_error, *texts in found]
    return CheckReport(findings, **counts)
