"""Files that change while they are read, and places that lie: errors of ours that name the file."""

from __future__ import annotations

import contextlib
import os
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefield as ice

ROWS = pa.table({"id": pa.array(range(2000), pa.int64()), "name": [f"name {n}" for n in range(2000)]})


def local(location: str) -> Path:
    return Path(unquote(urlparse(location).path))


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[ice.Catalog]:
    with ice.load_catalog("c", type="in-memory", warehouse=str(tmp_path / "wh")) as catalog:
        catalog.create_namespace("a")
        yield catalog


def data_file(table: ice.Table) -> Path:
    return local(table.scan().plan_files().files[0]["file_path"])


@pytest.mark.skipif(sys.platform != "linux", reason="files of /proc and /sys")
@pytest.mark.parametrize(
    ("target", "message"),
    [
        # A regular file of 0 bytes, by what is said of it, and of more when it is read.
        ("/proc/self/limits", "became longer than its 0 bytes while it was being read"),
        # One of a page, and of a few bytes when it is read.
        ("/sys/kernel/mm/transparent_hugepage/enabled", "became shorter while it was being read"),
    ],
)
def test_a_file_that_changes_its_size_while_it_is_read(catalog: ice.Catalog, target: str, message: str) -> None:
    if not os.access(target, os.R_OK):
        pytest.skip("a system without such files")
    table = catalog.create_table("a.t", ROWS).append(ROWS)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    path = local(str(snapshot.manifest_list))
    path.unlink()
    path.symlink_to(target)
    with pytest.raises(ice.CorruptDataError, match=message) as raised:
        ice.Table.from_metadata(table.metadata_location).scan().plan_files()
    assert path.name in str(raised.value)


@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_a_data_file_that_is_cut_while_it_is_read(catalog: ice.Catalog, format: str) -> None:
    properties = {
        "write.format.default": format,
        "write.parquet.row-group-size-bytes": "100000",
        "write.orc.stripe-size-bytes": "100000",
    }
    rows = pa.table({"id": np.random.default_rng(1).integers(0, 1 << 62, 1_000_000)})
    table = catalog.create_table("a.t", rows, properties=properties).append(rows)
    path = data_file(table)
    reader = table.scan().to_arrow_batch_reader()
    assert reader.read_next_batch().num_rows > 0
    os.truncate(path, 1000)
    with pytest.raises((ice.CorruptDataError, ice.errors.StorageError)) as raised:
        reader.read_all()
    assert path.name in str(raised.value)


def test_column_chunks_beyond_the_end_of_the_file(catalog: ice.Catalog, tmp_path: Path) -> None:
    """The footer of a large file in a small one."""
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"}),
            pa.field("name", pa.string(), metadata={"PARQUET:field_id": "2"}),
        ]
    )
    count = ROWS.num_rows
    large = [np.random.default_rng(1).integers(0, 1 << 62, count), [f"name {n}" for n in range(count)]]
    pq.write_table(pa.table(large, schema=schema), tmp_path / "large.parquet")
    footer = (tmp_path / "large.parquet").read_bytes()
    length = struct.unpack("<I", footer[-8:-4])[0] + 8
    table = catalog.create_table("a.t", ROWS).append(ROWS)
    path = data_file(table)
    size = path.stat().st_size
    path.write_bytes(b"PAR1" + bytes(size - length - 4) + footer[-length:])
    expected = rf"row group 0, column id: its \d+ bytes from byte 4 on are not in the file, which has {size} bytes"
    for scan in (table.scan(), table.scan("name > 'name 1'", selected_fields=("id",))):
        with pytest.raises(ice.CorruptDataError, match=expected) as raised:
            scan.to_arrow()
        assert path.name in str(raised.value)


def test_inspection_of_a_damaged_manifest(catalog: ice.Catalog) -> None:
    table = catalog.create_table("a.t", ROWS).append(ROWS)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    listed = ice.manifests.read_list(local(str(snapshot.manifest_list)).read_bytes())
    path = local(listed["manifest_path"][0].as_py())
    whole = path.read_bytes()
    path.write_bytes(whole[:-40] + bytes(24) + whole[-16:])
    inspect = ice.Table.from_metadata(table.metadata_location).inspect
    for name in ("files", "entries", "partitions", "all_data_files"):
        with pytest.raises(ice.CorruptDataError, match=path.name):
            getattr(inspect, name)()
        with pytest.raises(ice.CorruptDataError, match=path.name):
            inspect.stream(name).read_all()


def reading_threads() -> int:
    count = 0
    for folder in Path("/proc/self/task").iterdir():
        # A thread may end while it is looked at.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            count += (folder / "comm").read_text().startswith("icefield-read")
    return count


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads by /proc")
@pytest.mark.parametrize("ended", ["dropped", "closed"])
def test_the_threads_of_a_reader_end_with_it(catalog: ice.Catalog, ended: str) -> None:
    rows = pa.table({"id": np.arange(1_000_000)})
    table = catalog.create_table("a.t", rows, properties={"write.parquet.row-group-size-bytes": "100000"})
    table = table.append(rows).append(rows)
    # Closing a reader of the C interface ends its stream; one of to_arrow_batch_reader() ends when it is dropped.
    scan = table.scan()
    reader = scan.to_arrow_batch_reader() if ended == "dropped" else pa.RecordBatchReader.from_stream(scan)
    reader.read_next_batch()
    assert reading_threads() > 0
    if ended == "closed":
        reader.close()
    else:
        del reader
    until = time.monotonic() + 60
    while reading_threads() and time.monotonic() < until:
        time.sleep(0.02)
    assert reading_threads() == 0
