"""Golden tables as tests of several readers need them: unpacked, with the rows that are expected of each state."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice

ROOT = Path(__file__).parents[2]
PLACES = [ROOT / "tests/data/golden", ROOT.parent / "shared/golden"]


def folder() -> Path:
    """Return where the set lies: ``ICEFIELD_GOLDEN``, else the copy in ``tests/data``."""
    if named := os.environ.get("ICEFIELD_GOLDEN"):
        return Path(named)
    return next((place for place in PLACES if place.is_dir()), PLACES[0])


GOLDEN = folder()
BASE = "/tmp/icefield-golden"

# Rows that are deleted, and that the set has nevertheless (docs/differences.md): keys by table, and a column of the
# schemas in which they appear. The session that made the set still held deletes as it had read them before a column was
# promoted; and the reference leaves out equality deletes by their bounds of uuids.
DELETED = {"del_eq_evolution": ("kk", {2, 14, 29}), "del_eq_types": ("c10", {23})}


def names() -> list[str]:
    """List the tables that the set has and expects something of."""
    tables = GOLDEN / "tables"
    expected = sorted(path.parent.name for path in GOLDEN.glob("expected/*/table.json"))
    return [name for name in expected if (tables / name).is_dir() or (tables / f"{name}.tar.gz").is_file()]


@cache
def facts(name: str) -> dict[str, Any]:
    """Give what is expected of a table."""
    found: dict[str, Any] = json.loads((GOLDEN / "expected" / name / "table.json").read_text())
    return found


def unpack(name: str, scratch: Path) -> Path:
    """Copy a table below a folder, once; return its own folder."""
    folder = scratch / name
    if not folder.exists():
        source = GOLDEN / "tables" / name
        if source.is_dir():
            shutil.copytree(source, folder, copy_function=shutil.copyfile)
        elif not Path(f"{source}.tar.gz").exists():
            pytest.skip(f"the set lacks table {name}")
        else:
            with tarfile.open(f"{source}.tar.gz") as packed:
                # Patch releases of Python before 3.10.12 and 3.11.4 have no filters.
                packed.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
                packed.extractall(scratch)
    return folder


@contextmanager
def base() -> Iterator[Path]:
    """Have the folder that the paths in golden tables name alone on this machine, and empty."""
    import fcntl

    with Path(f"{BASE}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(BASE, ignore_errors=True)
        yield Path(BASE)
        shutil.rmtree(BASE, ignore_errors=True)


def relocation(scratch: Path) -> dict[str, str]:
    """Return where the paths in tables that were copied below a folder are now."""
    return {f"{scheme}{BASE}": str(scratch) for scheme in ("", "file:", "file://")}


def open_table(name: str, scratch: Path) -> ice.Table:
    """Unpack a table, once, and open it where it lies."""
    unpack(name, scratch)
    return ice.Table.from_metadata(f"{BASE}/{name}/{facts(name)['metadata_file']}", relocate=relocation(scratch))


def rows(name: str, item: dict[str, Any]) -> pa.Table | None:
    """Give the expected rows; None where the set has them in another form than Arrow."""
    path = GOLDEN / "expected" / name / item["rows_file"]
    if path.suffix != ".arrow":
        return None
    if not path.exists():
        pytest.skip(f"the set lacks {path.name}")
    with pa.memory_map(str(path)) as source:
        found = pa.Table.from_batches([pa.ipc.open_file(source).get_batch(item["rows_batch"])])
    assert found.num_rows == item["row_count"]
    column, keys = DELETED.get(name, ("", set()))
    if column in found.schema.names:
        found = found.filter(pa.array(key not in keys for key in found.column(facts(name)["key"]).to_pylist()))
    return found


def plain(table: pa.Table, names: list[str], emptied: set[str] = frozenset()) -> list[str]:
    """Give rows as sorted texts, columns in one order; NaN equals NaN; structs of nulls are null in `emptied` ones."""

    def value(row: dict[str, Any], name: str) -> Any:
        return None if name in emptied and is_empty(row[name]) else normal(row[name])

    return sorted(repr([value(row, name) for name in names]) for row in table.to_pylist(maps_as_pydicts="strict"))


def is_empty(value: Any) -> bool:
    """Whether a value is null, or a struct of nothing else."""
    return value is None or (isinstance(value, dict) and all(map(is_empty, value.values())))


def emptied(table: ice.Table, schema: ice.Schema) -> set[str]:
    """Name the structs of which a schema of the table has no field in common with `schema`.

    No field that is asked for says which structs of its files are null: the library's readers give
    structs of nulls (docs/differences.md, "Reading").
    """

    def children(field: Any) -> set[int]:
        return {child.field_id for child in field.field_type.fields}

    structs = [field for field in schema.fields if hasattr(field.field_type, "fields")]
    found = set()
    for field, other in itertools.product(structs, table.schemas().values()):
        older = next((column for column in other.fields if column.field_id == field.field_id), None)
        if older is not None and not children(older) & children(field):
            found.add(field.name)
    return found


def normal(value: Any) -> Any:
    """Give one form to what Arrow libraries write in several."""
    if isinstance(value, dict):
        return sorted((str(key), normal(item)) for key, item in value.items())
    if isinstance(value, list):
        return [normal(item) for item in value]
    if hasattr(value, "hex") and hasattr(value, "bytes"):
        return str(value)
    return value


def states(name: str) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """List every state of a table that rows are expected of: its name, how it is scanned, and what is expected."""
    table, found = facts(name), []
    if table.get("current") and "rows_file" in table["current"]:
        found.append(("current", {}, table["current"]))
    snapshots = [item for item in table.get("snapshots", []) if "rows_file" in item]
    found += [(str(item["snapshot_id"]), {"snapshot_id": item["snapshot_id"]}, item) for item in snapshots]
    refs = [(ref, item) for ref, item in table.get("refs", {}).items() if "rows_file" in item]
    return found + [(f"ref-{ref}", {"ref": ref}, item) for ref, item in refs]


def cast(expected: pa.Table, schema: pa.Schema) -> pa.Table:
    """Give the expected rows in our types where only the Arrow form differs (uuid as text, zones)."""
    columns = []
    for field in schema:
        column = expected.column(field.name)
        columns.append(column if column.type == field.type else try_cast(column, field.type))
    return pa.table(columns, names=schema.names)


def try_cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Cast where Arrow can without loss, else leave it to the comparison of values."""
    try:
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return column
