"""Pages of Parquet files that others wrote: checksums are verified where they are, decimals fit their type."""

import struct
from decimal import Decimal
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefield as ice
from icefield.errors import CorruptDataError


def replaced(tmp_path, ours, theirs, **options):
    """Give a table with one file, now of pyarrow and as long as ours was, and the path of that file."""
    catalog = ice.load_catalog("f", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh"))
    catalog.create_namespace("a")
    table = catalog.create_table("a.t", ours.schema)
    table.append(ours)
    path = next((tmp_path / "wh").rglob("*.parquet"))
    size = path.stat().st_size
    fields = [field.with_metadata({"PARQUET:field_id": str(id_)}) for id_, field in enumerate(theirs.schema, 1)]
    pq.write_table(theirs.cast(pa.schema(fields)), path, compression="none", store_schema=False, **options)
    data = path.read_bytes()
    footer = len(data) - 8 - struct.unpack("<I", data[-8:-4])[0]
    # Bytes that belong to no page, so that the file is as long as its manifest says.
    path.write_bytes(data[:footer] + bytes(size - len(data)) + data[footer:])
    return table, path


def test_checksums_of_pages_are_verified(tmp_path):
    rng = Random(1)
    numbers = [rng.getrandbits(62) for _ in range(4000)]
    ours = pa.table({"id": numbers, "more": [f"{number:b}" for number in numbers]})
    theirs = pa.table({"id": numbers[::-1]})
    options = {"write_page_checksum": True, "use_dictionary": False}
    table, path = replaced(tmp_path, ours, theirs, **options)
    assert table.scan().to_arrow()["id"].to_pylist() == numbers[::-1]
    damaged = bytearray(path.read_bytes())
    damaged[2000] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(CorruptDataError, match="(?i)checksum"):
        table.scan().to_arrow()


def test_decimals_of_more_digits_than_their_type_are_corrupt(tmp_path):
    digits = pa.array([Decimal(n) / 100 for n in range(2000)], pa.decimal128(4, 2))
    ours = pa.table({"x": digits, "more": [f"{Random(n).getrandbits(200)}" for n in range(2000)]})
    unscaled = pa.array([12345, *[678] * 1999], pa.decimal128(38, 0)).buffers()
    theirs = pa.table({"x": pa.Array.from_buffers(pa.decimal128(4, 2), 2000, unscaled)})
    table, _ = replaced(tmp_path, ours, theirs, store_decimal_as_integer=True)
    with pytest.raises(CorruptDataError, match="12345 has more than the 4 digits"):
        table.scan().to_arrow()
