"""ORC files that we write, read by others: Java's orc-core, the C++ library through pyarrow and pyorc.

Every case is a table from a seed (`orc_rows`), written in one form; all peers must give the rows that were written.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import orc as pyarrow_orc

from icefield import orc
from worlds.orc import rows as orc_rows
from worlds.orc.java import OrcJava as Java

pytestmark = pytest.mark.interop

CODECS = ["uncompressed", "zlib", "snappy", "lzo", "lz4", "zstd"]
VERSIONS = ["0.12", "0.11", "UNSTABLE-PRE-2.0"]
#: Every codec with every version; the other options take turns.
CASES = [
    {
        "seed": number,
        "compression": codec,
        "file_version": version,
        "compression_strategy": ["speed", "compression"][number % 2],
        "compression_block_size": [None, 1 << 16, 900][number % 3],
        "row_index_stride": [10_000, 1000, 0][number % 3],
        "stripe_rows": [None, 1100][number % 2],
        "dictionary_key_size_threshold": [0.8, 0.0, 1.0][number // 2 % 3],
        "sorted_dictionaries": number % 4 > 0,
    }
    for number, (codec, version) in enumerate(itertools.product(CODECS, VERSIONS))
]
KEYS = {"pii": bytes(range(16)), "credit": bytes(range(32))}


@pytest.fixture
def java(orc_peer: Java) -> Java:
    return orc_peer


def same(got: list[Any], wanted: list[Any], schema: pa.Schema) -> None:
    assert len(got) == len(wanted)
    for number, (own, other) in enumerate(zip(got, wanted, strict=True)):
        for field, value, expected in zip(schema, own, other, strict=True):
            assert value == expected, f"row {number}, {field}"


def named(case: dict[str, Any]) -> str:
    return f"{case['compression']}-{case['file_version']}"


@pytest.mark.parametrize("case", CASES, ids=named)
def test_every_reader_gives_what_was_written(case: dict[str, Any], java: Java, tmp_path: Path) -> None:
    table = orc_rows.table(case["seed"])
    options = {name: value for name, value in case.items() if name != "seed"}
    blooms = table.schema.names[:12] if case["row_index_stride"] else []
    file = tmp_path / "case.orc"
    orc.write_table(table, file, bloom_filter_columns=blooms, **options)
    wanted = orc_rows.rows(table)
    same(orc_rows.rows(orc.read_table(file, timestamp_unit="ns"), table.schema), wanted, table.schema)
    same(java.rows(file), wanted, table.schema)

    # The C++ library has no null unions.
    table = table.select(table.schema.names[:-1])
    orc.write_table(table, file, bloom_filter_columns=blooms, **options)
    wanted = [row[:-1] for row in wanted]
    same(orc_rows.rows(pyarrow_orc.read_table(file), table.schema), wanted, table.schema)
    same(pyorc_rows(file, table.schema), in_microseconds(wanted, table.schema), table.schema)


def pyorc_rows(file: Path, schema: pa.Schema) -> list[Any]:
    """Give the rows that pyorc reads in the plain form."""
    import pyorc

    with file.open("rb") as opened:
        return [
            [from_pyorc(value, field) for value, field in zip(row, schema, strict=True)] for row in pyorc.Reader(opened)
        ]


def from_pyorc(value: Any, field: pa.Field) -> Any:
    kind = field.type
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return [from_pyorc(own, inner) for own, inner in zip(value, kind, strict=True)]
    if pa.types.is_list(kind):
        return [from_pyorc(own, kind.value_field) for own in value]
    if pa.types.is_map(kind):
        return [[from_pyorc(key, kind.key_field), from_pyorc(own, kind.item_field)] for key, own in value.items()]
    if (field.metadata or {}).get(b"orc.type", b"").startswith(b"char"):
        return value.rstrip(" ")
    return LEAVES.get(type(value), lambda same, _: same)(value, kind)


def microseconds(value: datetime, _: pa.DataType) -> list[int]:
    ticks = (value.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return [ticks // 10**6, ticks % 10**6 * 1000]


#: From the types of Python that pyorc gives.
LEAVES: dict[type, Callable[[Any, pa.DataType], Any]] = {
    datetime: microseconds,
    date: lambda value, _: (value - date(1970, 1, 1)).days,
    float: lambda value, kind: orc_rows.bits(value, kind.bit_width),
    Decimal: lambda value, kind: str(int(value.scaleb(kind.scale))),
    bytes: lambda value, _: value.hex(),
}


def in_microseconds(rows: list[Any], schema: pa.Schema) -> list[Any]:
    """Cut the nanoseconds, which Python's times do not hold."""

    def cut(value: Any, kind: pa.DataType) -> Any:
        if value is None:
            return None
        if pa.types.is_timestamp(kind):
            return [value[0], value[1] // 1000 * 1000]
        if pa.types.is_struct(kind):
            return [cut(own, inner.type) for own, inner in zip(value, kind, strict=True)]
        if pa.types.is_list(kind):
            return [cut(own, kind.value_type) for own in value]
        if pa.types.is_map(kind):
            return [[key, cut(own, kind.item_type)] for key, own in value]
        return value

    return [[cut(value, field.type) for value, field in zip(row, schema, strict=True)] for row in rows]


def test_the_cases_hold_every_kind_of_run(tmp_path: Path) -> None:
    kinds = Counter[str]()
    for case in CASES[:4]:
        table = orc_rows.table(case["seed"])
        orc.write_table(table, tmp_path / "runs.orc", file_version=case["file_version"], stripe_rows=1100)
        for stripe in orc.ORCFile(tmp_path / "runs.orc").inspect(runs=True)["stripes"]:
            for stream in stripe["streams"]:
                kinds.update({kind.partition(".")[0]: count for kind, count in stream.get("runs", {}).items()})
    assert set(kinds) == {
        *("shortRepeat", "direct", "patchedBase", "delta", "deltaFixed"),
        *("v1Run", "v1RunDelta", "v1Literal", "byteRun", "byteLiteral"),
    }


#: Columns of `orc_rows`, and how orc-core's predicates call their types.
PRUNED = {"leaf4": "LONG", "leaf3": "LONG", "leaf6": "FLOAT", "leaf7": "STRING", "leaf9": "DATE", "leaf14": "DECIMAL"}


@pytest.mark.parametrize("blooms", [False, True], ids=["bounds", "blooms"])
def test_javas_pruning_keeps_what_matches(blooms: bool, java: Java, tmp_path: Path) -> None:
    kept_rows = asked = 0
    for seed in (3, 9, 14):
        table = orc_rows.table(seed)
        table = table.append_column("row", pa.array(range(table.num_rows), pa.int64()))
        file = tmp_path / "pruned.orc"
        columns = [*PRUNED, "row"] if blooms else []
        orc.write_table(table, file, row_index_stride=1000, stripe_rows=2200, bloom_filter_columns=columns)
        for name, kind in PRUNED.items():
            for value in table[name].drop_null().unique().to_pylist()[:5]:
                if isinstance(value, float) and math.isnan(value):
                    continue
                shown = format(value, "f") if isinstance(value, Decimal) else str(value)
                java.ask("kept", file, tmp_path / "kept.jsonl", name, kind, shown)
                kept = {json.loads(line)[-1] for line in (tmp_path / "kept.jsonl").read_text().splitlines()}
                places = [row for row, own in enumerate(table[name].to_pylist()) if own == value]
                assert kept.issuperset(places), f"{name} = {value}"
                kept_rows, asked = kept_rows + len(kept), asked + table.num_rows
    assert 0 < kept_rows < asked


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "America/New_York", "GMT-03:00"])
def test_wall_clocks_of_a_zone(zone: str, java: Java, tmp_path: Path) -> None:
    # Whole winter days: no clock that a change of time skips.
    days = orc_rows.integers(np.random.default_rng(1), 500, 6)
    clocks = pa.array([np.datetime64(f"{1990 + abs(day) % 40}-01-15", "s") + np.timedelta64(day, "h") for day in days])
    table = pa.table({"clock": clocks.cast(pa.timestamp("ns")), "instant": clocks.cast(pa.timestamp("ns", "UTC"))})
    file = tmp_path / "zone.orc"
    orc.write_table(table, file, timezone=zone)
    wanted = orc_rows.rows(table)
    same(java.rows(file), wanted, table.schema)
    same(orc_rows.rows(orc.read_table(file, timestamp_unit="ns")), wanted, table.schema)


@pytest.mark.parametrize("seed", range(3))
def test_java_reads_encrypted_columns_with_keys_and_masked_without(seed: int, java: Java, tmp_path: Path) -> None:
    table = orc_rows.table(1000 + seed)
    names = table.schema.names
    masks = {"nullify": names[:3], "redact": names[4:6] + names[7:8], "sha256": ["leaf15", "leaf16"]}
    encrypt = {"pii": [*names[:6], "leaf15", "leaf16"], "credit": [*names[7:12], "any0"]}
    file = tmp_path / "secret.orc"
    orc.write_table(table, file, keys=KEYS, encrypt=encrypt, masks=masks, stripe_rows=1200)
    wanted = orc_rows.rows(table)
    same(java.rows(file, **KEYS), wanted, table.schema)
    # Java sees what we see, with one key and with none.
    for keys in ({"pii": KEYS["pii"]}, {}):
        ours = orc_rows.rows(orc.read_table(file, keys=keys, timestamp_unit="ns"), table.schema)
        same(java.rows(file, **keys), ours, table.schema)
    if table.num_rows > 1:
        assert ours != wanted


@pytest.mark.parametrize("make", ["lineitem", "wide"])
def test_files_are_as_small_as_javas(make: str, java: Java, tmp_path: Path) -> None:
    benches = Path(__file__).parents[2] / "benches"
    sys.path.insert(0, str(benches))
    try:
        import orc_tables
    finally:
        sys.path.remove(str(benches))
    table = getattr(orc_tables, make)({"lineitem": 60_000, "wide": 20_000}[make])
    for codec in ("ZSTD", "ZLIB", "NONE"):
        ours, theirs = tmp_path / "ours.orc", tmp_path / "theirs.orc"
        orc.write_table(table, ours, compression=codec.replace("NONE", "uncompressed").lower())
        java.ask("rewrite", ours, theirs, codec)
        ratio = ours.stat().st_size / theirs.stat().st_size
        assert ratio <= 1.02, f"{codec}: {ratio:.3f} of Java's size"


def test_merged_files(java: Java, tmp_path: Path) -> None:
    tables = [orc_rows.table(2000)] * 2 + [orc_rows.table(2000).slice(0, 10)]
    files = [tmp_path / f"part{number}.orc" for number in range(len(tables))]
    for table, file in zip(tables, files, strict=True):
        orc.write_table(table, file, row_index_stride=1000, stripe_rows=900)
    wanted = [row for table in tables for row in orc_rows.rows(table)]
    orc.merge_files(files, tmp_path / "ours.orc")
    same(java.rows(tmp_path / "ours.orc"), wanted, tables[0].schema)
