"""Damages the delete files of golden tables at random and reads the tables, within a memory ceiling.

Run by ``test_delete_mutants.py``: a crash, a hang and memory are those of this process. Prints what was wrong as JSON.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from pathlib import Path

from mutants import in_fork, mutate, peak

import icefield as ice
from worlds.golden import GOLDEN, open_table, relocation

#: As of the fuzz targets.
MOST_MEMORY = 1 << 30


def moved(path: str, folder: Path) -> Path:
    """Return where a path of the table is now."""
    relocate = relocation(folder)
    old = max((old for old in relocate if path.startswith(f"{old}/")), key=len)
    return Path(relocate[old] + path[len(old) :])


def rows(table: ice.Table) -> Counter[str]:
    """Give the rows as texts, in which NaN equals NaN."""
    return Counter(map(repr, table.scan().to_arrow().to_pylist()))


def damage(table: ice.Table, what: str, place: Path, is_checked: bool, draws: range) -> tuple[Counter[str], list[str]]:
    """Damage a delete file once for each draw; give what became of it, and what was wrong."""
    data, whole = place.read_bytes(), rows(table)
    outcome, wrong = Counter({"read": 0, "other rows": 0, "refused": 0}), []
    for draw in draws:
        place.write_bytes(mutate(data, random.Random(f"{what} {draw}")))
        # Whoever finds this process dead finds the file that killed it.
        Path(sys.argv[1], "mutant.name").write_text(f"{what}, {draw}")
        try:
            is_same = rows(table) == whole
        except ice.errors.InternalError as error:
            wrong.append(f"{what}, {draw}: {error!r}")
        except ice.IcefieldError as error:
            outcome["refused"] += 1
            if not str(error):
                wrong.append(f"{what}, {draw}: an error without a message")
        else:
            outcome["read" if is_same else "other rows"] += 1
            if is_checked and not is_same:
                wrong.append(f"{what}, {draw}: other rows")
    place.write_bytes(data)
    if rows(table) != whole:
        wrong.append(f"{what}: other rows of a file that is whole again")
    return outcome, wrong


def main() -> None:
    """Damage every delete file as often as asked for."""
    folder, count, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    wrong: list[str] = []
    outcomes: dict[str, Counter[str]] = {}
    for name in sorted(path.name.removesuffix(".tar.gz") for path in (GOLDEN / "tables").glob("d[ev][l_]*")):
        table = open_table(name, folder)
        files = {file["file_path"]: file["file_format"].upper() for file in table.inspect.delete_files().to_pylist()}
        for number, (path, kind) in enumerate(sorted(files.items())):
            what = f"{name}, delete file {number} ({kind})"
            # A deletion vector has a checksum, and its manifest says where it is and how many rows it has.
            draws = range(seed, seed + count)
            outcome, errors = damage(table, what, moved(path, folder), kind == "PUFFIN", draws)
            outcomes.setdefault(kind, Counter()).update(outcome)
            wrong += errors
    if peak() > MOST_MEMORY:
        wrong.append(f"{peak() >> 20} MiB")
    sys.stdout.write(json.dumps({"wrong": wrong, "outcomes": outcomes}))


if __name__ == "__main__":
    in_fork(main)
