"""How long does it take to write 2 million rows as ORC, with row index, statistics, dictionaries and zstd?

Peers: pyarrow (the C++ library) and orc-core in a warm JVM, each with dictionaries and indexes of the same kind;
pyarrow's Parquet writer for comparison. The floor is zstd over the same bytes: what pyarrow writes without compression,
in blocks of 256 KiB. Sizes are printed below the times.

    python benches/orc_write.py [--rows N] [--rounds N]
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orc_tables
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc as pyarrow_orc
from side_by_side import Row, measure, report

from icefield import orc

BLOCK = 256 << 10


class Java:
    """``OrcCore.java``, warm; its batches are loaded before its clock starts."""

    def __init__(self) -> None:
        found = find_spec("pyspark")
        assert found is not None
        assert found.origin is not None
        jars = str(Path(found.origin).parent / "jars" / "*")
        peer = str(Path(__file__).with_name("OrcCore.java"))
        self._process = subprocess.Popen(
            ["java", "-Xmx4g", "-cp", jars, peer],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def write(self, source: Path, out: Path, rows: int) -> float:
        """Write the rows of an ORC file again; seconds by its own clock."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"write {source} {out} {rows}\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            words = line.split()
            if len(words) == 2 and words[1] == str(rows):
                return float(words[0])
        raise RuntimeError("orc-core did not write")

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def question(name: str, table: pa.Table, folder: Path, java: Java, rounds: int) -> tuple[Row, dict[str, int]]:
    """Time the writers on one table; the sizes of their files, too."""
    files = {peer: folder / f"{name}.{peer}" for peer in ("icefield", "pyarrow", "orc-core", "parquet", "source")}
    orc.write_table(table, files["source"])
    codec = pa.Codec("zstd", compression_level=3)
    plain = pa.BufferOutputStream()
    pyarrow_orc.write_table(table, plain, compression="uncompressed", dictionary_key_size_threshold=0.8)
    whole = plain.getvalue()

    def compress() -> None:
        for start in range(0, whole.size, BLOCK):
            codec.compress(whole.slice(start, min(BLOCK, whole.size - start)))

    peers: dict[str, Callable[[], Any]] = {
        "icefield": lambda: orc.write_table(table, files["icefield"]),
        "pyarrow": lambda: pyarrow_orc.write_table(
            table, str(files["pyarrow"]), compression="zstd", dictionary_key_size_threshold=0.8
        ),
        "pyarrow.parquet": lambda: pq.write_table(table, files["parquet"], compression="zstd"),
        "zstd alone": compress,
    }
    for run in peers.values():
        run()
    assert orc.read_table(files["icefield"]).equals(table), "other rows: nothing to time"
    assert pyarrow_orc.read_table(files["pyarrow"]).num_rows == table.num_rows
    row = measure(name, peers, rounds=rounds, amount=table.num_rows)
    times = [java.write(files["source"], files["orc-core"], table.num_rows) for _ in range(rounds + 1)]
    row.seconds["orc-core"] = min(times)
    return row, {peer: file.stat().st_size for peer, file in files.items() if peer != "source"}


def main() -> None:
    """Write lineitem and the wide table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tables", nargs="*", default=["lineitem", "wide"])
    arguments = parser.parse_args()
    java = Java()
    rows, sizes = [], {}
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.tables:
            count = arguments.rows if name == "lineitem" else arguments.rows // 8
            table = getattr(orc_tables, name)(count)
            row, sizes[name] = question(name, table, Path(folder), java, arguments.rounds)
            rows.append(row)
    java.close()
    report("write", rows, floor="zstd alone")
    for name, of in sizes.items():
        print(f"{name}: " + ", ".join(f"{peer} {size / 1e6:.1f} MB" for peer, size in of.items()))
        ours = ", ".join(f"{of['icefield'] / of[peer]:.3f} of that of {peer}" for peer in ("orc-core", "pyarrow"))
        print(f"  our size is {ours}")


if __name__ == "__main__":
    main()
