"""A table of ours with a file that is cut or gone: every step says which file, and the table stays as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pytest

import icefield as ice

ROWS = pa.table({"id": pa.array(range(200), pa.int64()), "name": [f"n{n}" for n in range(200)]})


@pytest.fixture
def table(tmp_path: Path) -> Iterator[ice.Table]:
    with ice.load_catalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh")) as catalog:
        catalog.create_namespace("a")
        table = catalog.create_table("a.t", ROWS, partition_by="bucket(2, id)")
        table.append(ROWS)
        yield table.append(ROWS)


def local(location: str) -> Path:
    return Path(unquote(urlparse(location).path))


def metadata_file(table: ice.Table) -> Path:
    return local(table.metadata_location)


def manifest_list(table: ice.Table) -> Path:
    return local(table.current_snapshot().manifest_list)


def manifest(table: ice.Table) -> Path:
    found = ice.manifests.read_list(manifest_list(table).read_bytes())
    return local(found["manifest_path"][0].as_py())


def data_file(table: ice.Table) -> Path:
    return local(table.scan().plan_files().files[0]["file_path"])


def load(table: ice.Table) -> None:
    table.catalog.load_table("a.t")


def plan(table: ice.Table) -> None:
    table.catalog.load_table("a.t").scan("id > 5").plan_files().to_arrow()


def read(table: ice.Table) -> None:
    table.catalog.load_table("a.t").scan().to_arrow()


def append(table: ice.Table) -> None:
    table.catalog.load_table("a.t").append(ROWS)


DAMAGE = [
    (metadata_file, (load, plan, read, append)),
    (manifest_list, (plan, read, append)),
    (manifest, (plan, read)),
    (data_file, (read,)),
]


@pytest.mark.parametrize(("part", "steps"), DAMAGE, ids=lambda value: getattr(value, "__name__", ""))
def test_cut_at_every_97th_byte(
    table: ice.Table, part: Callable[[ice.Table], Path], steps: tuple[Callable[[ice.Table], None], ...]
) -> None:
    path = part(table)
    whole, root = path.read_bytes(), local(table.location())
    rest = {other: other.read_bytes() for other in root.rglob("*") if other.is_file() and other != path}
    cuts = [*range(0, len(whole), 97), len(whole) - 1]
    for cut in cuts:
        path.write_bytes(whole[:cut])
        for step in steps:
            # What was read of a whole file before must not answer for the damaged one.
            with pytest.raises(ice.CorruptDataError) as raised:
                step(table)
            assert path.name in str(raised.value), f"{step.__name__}, cut at {cut}: {raised.value}"
            assert raised.value.file is not None
            assert path.name in raised.value.file
    assert {other: other.read_bytes() for other in root.rglob("*") if other.is_file() and other != path} == rest
    path.write_bytes(whole)
    assert table.catalog.load_table("a.t").scan().count() == 400


@pytest.mark.parametrize(("part", "steps"), DAMAGE, ids=lambda value: getattr(value, "__name__", ""))
def test_gone(
    table: ice.Table, part: Callable[[ice.Table], Path], steps: tuple[Callable[[ice.Table], None], ...]
) -> None:
    path = part(table)
    path.unlink()
    before = table.metadata_location
    for step in steps:
        with pytest.raises(ice.errors.MissingFileError, match=path.name):
            step(table)
    with table.catalog._read() as connection:
        pointers = connection.exec_driver_sql("SELECT metadata_location FROM iceberg_tables").scalars().all()
    assert pointers == [before]


def test_no_metadata_is_written_that_could_not_be_loaded(table: ice.Table) -> None:
    """40 MB of one letter are few bytes of gzip, which may not become so many again."""
    table.update_properties({"write.metadata.compression-codec": "gzip"})
    table = table.catalog.load_table("a.t")
    before = sorted(metadata_file(table).parent.iterdir())
    with pytest.raises(ice.errors.InvalidArgumentError, match=r"could not be loaded again: .*ICEFIELD_DOCUMENT_MEMORY"):
        table.update_properties({"comment": "x" * 40_000_000})
    assert sorted(metadata_file(table).parent.iterdir()) == before
    assert table.catalog.load_table("a.t").scan().count() == 400
