"""Every section of the specifications has its file in ARCHITECTURE.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPECIFICATIONS = ROOT.parent / "shared" / "spec"

#: Headings of what is not implemented anywhere: what the sections are about, terms, examples.
INTRODUCTION = {
    "example", "evolving draft for orc specification v2", "format versioning", "goals", "iceberg table spec",
    "motivation", "notes", "overview", "row lineage example", "terms", "to do items",
    "version 1: analytic data tables", "version 2", "version 2: row-level deletes", "version 3",
    "version 3: extended types and capabilities",
}  # fmt: skip
#: Other names of a section, in the specification of another version.
SAME = {
    "mvcc and optimistic concurrency": "optimistic concurrency",
    "integer run length encoding, version 2": "integer run length encoding, version 1 and version 2",
    "other fields": "optional snapshot summary fields",
}


def sections() -> str:
    """Return the names of the sections in ARCHITECTURE.md, in lower case."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    part = text[text.index("## Where each section") : text.index("## Invariants")]
    return "\n".join(line.split("|")[1] for line in part.splitlines() if line.startswith("|")).lower()


@pytest.mark.skipif(not SPECIFICATIONS.is_dir(), reason="the specifications are not beside the repository")
@pytest.mark.parametrize("name", ["iceberg-v1.txt", "iceberg-v3.txt", "orc-v2-draft.txt"])
def test_every_heading_has_a_file(name: str) -> None:
    text = (SPECIFICATIONS / name).read_text(encoding="utf-8")
    headings = {line.lower().strip(": ") for line in re.findall(r"^#+ +(.+)$", text, re.MULTILINE)}
    assert len(headings) > 30
    known = sections()
    named = {heading for heading in headings if SAME.get(heading, heading) in known}
    assert headings - named - INTRODUCTION == set()


def test_nothing_of_the_specification_is_left_out() -> None:
    """The README's column "not yet" names what is outside of it: other systems, and files that Java refuses too."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    part = text[text.index("## What works") : text.index("Unsupported table features")]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line.startswith("| ")
    ]
    missing = {row[0]: row[2] for row in rows if len(row) > 2 and row[2] not in ("", "not yet", "---")}
    assert missing == {
        "Reading": "encrypted ORC files",
        "Catalogs": "Kerberos; views in Glue, Hive, DynamoDB and folders",
        "Storage": "HDFS",
    }
