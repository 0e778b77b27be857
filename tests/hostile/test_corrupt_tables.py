"""Each damaged file of the golden data: a typed error that names the file, at the step that meets it; no panic."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import icefield as ice
from worlds.golden import GOLDEN, relocation, unpack

pytestmark = pytest.mark.golden


def cases() -> list[dict[str, Any]]:
    """List the damaged files, none where the set has no such part."""
    listing = GOLDEN / "corrupt/corrupt.json"
    if not listing.exists():
        return []
    found: list[dict[str, Any]] = json.loads(listing.read_text())
    return found


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["name"])
def test_damage_is_a_typed_error(case: dict[str, Any], tmp_path: Path) -> None:
    table_folder = unpack(case["table"], tmp_path)
    damaged = table_folder / case["replaces"]
    damaged.unlink()
    if case["with"] is not None:
        replacement = GOLDEN / "corrupt" / case["with"]
        if not replacement.exists():
            pytest.skip(f"the set lacks {case['with']}")
        shutil.copy(replacement, damaged)
    before = {path: path.read_bytes() for path in table_folder.rglob("*") if path.is_file()}

    met, refused = None, False
    try:
        table = ice.Table.from_metadata(str(table_folder / case["metadata_file"]), relocate=relocation(tmp_path))
        met = "load"
        table.scan().plan_files().to_arrow()
        met = "plan"
        table.scan().to_arrow()
        met = "scan"
        if case["noticed_by"] == "read statistics":
            ice.puffin.read(damaged.read_bytes())
            met = "read statistics"
    except ice.IcefieldError as error:
        assert str(error).strip(), "an error says something"
        refused = isinstance(error, ice.UnsupportedFeatureError)
        if isinstance(error, ice.CorruptDataError):
            # What is given as bytes has no name.
            named = met == "scan" or damaged.name in str(error)
            assert named, f"the error names the file: {error}"
    else:
        # Only damage that cannot be seen in the bytes may go unnoticed; the listing says which.
        assert "go on" in case["noticed_by"] or not is_noticed(case), f"{case['name']}: {case['what']}"
    if case["noticed_by"] == "plan":
        assert met in {None, "load"}, "damage that planning meets must not be planned over"
    if case["noticed_by"] == "load":
        # A name of a later specification is kept, and what it names refused (docs/differences.md).
        assert met is None or refused, "damaged metadata must not load"
    assert before == {path: path.read_bytes() for path in table_folder.rglob("*") if path.is_file()}


def is_noticed(case: dict[str, Any]) -> bool:
    """Whether the reference, too, met an error somewhere."""
    return any(answer != "ok" for answer in case.get("reference", {}).values())
