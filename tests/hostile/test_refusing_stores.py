"""Stores that cannot be written: each change says so by its type, and nothing changes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from every_change import KINDS

#: Root writes wherever it likes until it has given up its capabilities: this thread, and those that it starts.
AS_OTHERS = """
import ctypes, os
if os.geteuid() == 0:
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    assert ctypes.CDLL(None, use_errno=True).capset(header, (ctypes.c_uint32 * 6)()) == 0
"""

READ_ONLY = (
    """
import json, os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from every_change import KINDS, catalog_of, prepare, state
"""
    + AS_OTHERS
    + """
said = {}
for kind, chosen in KINDS.items():
    if chosen.commits != 1:
        continue
    folder = Path(sys.argv[2]) / kind
    folder.mkdir()
    prepare(folder, chosen.version, chosen.before)
    before = state(folder, chosen.table)
    roots = [folder / "warehouse", folder / "given"]
    folders = [*roots, *(path for root in roots for path in root.rglob("*") if path.is_dir())]
    for path in folders:
        path.chmod(0o555)
    table = catalog_of(folder).load_table("db.t")
    try:
        chosen.change(table, folder)
        said[kind] = "nothing"
    except Exception as error:
        said[kind] = f"{type(error).__name__}: {error}"
    if state(folder, chosen.table) != before:
        said[kind] += " and the table has changed"
    for path in folders:
        path.chmod(0o755)
    chosen.change(table.refresh(), folder)
sys.stdout.write(json.dumps(said))
"""
)

LIMITED = """
import json, os, resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import pyarrow as pa
from every_change import PLACES, SCHEMA, all_files, catalog_of, prepare, state
said = []
folder = Path(sys.argv[2])
prepare(folder, 3)
before = state(folder, "t")
table = catalog_of(folder).load_table("db.t")
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
count = 50_000
ids = pa.array(range(1000, 1000 + count))
rows = pa.table([ids, pa.array([3] * count, pa.int32()), pa.array(["a"] * count)], SCHEMA)
for limit in (0, 40_000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    for change in (lambda: table.append(rows), lambda: table.upsert(rows, ["id"]), lambda: table.overwrite(rows)):
        try:
            change()
            said.append("nothing")
        except Exception as error:
            said.append(f"{type(error).__name__}: {error}")
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    if state(folder, "t") != before:
        said.append("the table has changed")
table.append(rows)
sys.stdout.write(json.dumps(said))
"""


def run(program: str, folder: Path) -> str:
    arguments = [sys.executable, "-c", program, str(Path(__file__).parent), str(folder)]
    done = subprocess.run(arguments, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="gives up rights as Linux does")
def test_a_read_only_store_is_said_to_be_one(tmp_path: Path) -> None:
    said = json.loads(run(READ_ONLY, tmp_path))
    # A compaction in parts and a removal of orphans report what they could not do, and go on.
    assert said.keys() == {kind for kind in KINDS if KINDS[kind].commits == 1}
    for kind, text in said.items():
        assert text.startswith("StorageError: "), (kind, text)
        assert "Permission denied" in text, (kind, text)
        assert "the table has changed" not in text, kind


@pytest.mark.skipif(sys.platform == "win32", reason="limits files as Unix does")
def test_files_that_may_not_grow_are_given_up(tmp_path: Path) -> None:
    said = json.loads(run(LIMITED, tmp_path))
    assert len(said) == 6
    for text in said:
        assert text.startswith("StorageError: "), text
        assert "File too large" in text, text
