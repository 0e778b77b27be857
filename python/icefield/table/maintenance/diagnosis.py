"""What makes a table slow or large, what that costs, and which call repairs it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from icefield._core import doctor as core_doctor
from icefield._outputs.layout import counted, size_of
from icefield._outputs.printable import printable
from icefield.errors import IcefieldError

if TYPE_CHECKING:
    from collections.abc import Callable

    from icefield._core import TableState

__all__ = ["Advice", "Diagnosis"]


@dataclass(frozen=True, slots=True)
class Advice:
    """Something that costs time or storage, and what to do about it."""

    #: Name of the finding, such as ``small-files``.
    name: str
    #: What it is about: a partition, a column, a property; empty for the table.
    subject: str
    #: What was found.
    message: str
    #: Its cost in bytes: stored for nothing, or read by scans for nothing.
    bytes: int
    #: Its cost in requests: files that a scan or a commit reads in addition.
    requests: int
    #: The call that repairs it, in Python, or several with semicolons; empty if it needs a decision, which the message
    #: says.
    repair: str

    def __str__(self) -> str:
        subject = f" ({self.subject})" if self.subject else ""
        cost = f"{size_of(self.bytes)}, {counted(self.requests, 'request')}"
        repair = f"; repair: {self.repair}" if self.repair else ""
        return printable(f"{self.name}{subject}: {self.message}; {cost}{repair}")


class Diagnosis(list[Advice]):
    """Findings about a table, those that cost most first."""

    def to_json(self) -> str:
        """Return the findings as JSON, a list of objects."""
        return json.dumps([asdict(one) for one in self])

    def __repr__(self) -> str:
        return "\n".join([f"Diagnosis of {counted(len(self), 'finding')}", *(f"  {one}" for one in self)])


def diagnosed(state: TableState) -> list[Advice]:
    """Return the findings about a table; `icefield.Table.doctor` says which."""
    return [Advice(*values) for values in core_doctor(state)]


def orphans_of(search: Callable[[], Any]) -> list[Advice]:
    """Return the finding about files that nothing references, or why the folder cannot be searched for them."""
    try:
        left = search()
    except IcefieldError as error:
        repair = "table.maintenance.remove_orphans()"
        return [Advice("orphan-files", "", f"the folder was not searched: {error}", 0, 0, repair)]
    if not left.files:
        return []
    message = f"{counted(len(left.files), 'file')} that nothing in the table references"
    return [Advice("orphan-files", "", message, left.bytes, 0, "table.maintenance.remove_orphans(dry_run=False)")]
