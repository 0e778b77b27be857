"""What do reads of encrypted tables and appends to them cost beside plain ones?

The floor is the cipher alone: AES GCM by OpenSSL, in one thread, of as many bytes as the table's files have, in
blocks of 1 MiB.

    python benches/encrypted.py [--rows N] [--rounds N]
"""

from __future__ import annotations

import argparse
import itertools
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from append import data
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from side_by_side import Row, Target, measure, report

import icefield as ice
from icefield.encryption import MemoryKeys

BLOCK = 1 << 20
NONCE = bytes(12)


class Tables:
    """A catalog with the key of its encrypted tables; each append goes to a new table."""

    def __init__(self, folder: Path, rows: int) -> None:
        self.rows = data(rows)
        self.catalog = ice.load_catalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
        self.catalog.create_namespace("db")
        self.catalog.key_management = MemoryKeys({"key": os.urandom(16)})
        self.numbers = itertools.count()

    def append(self, format: str, encrypted: bool) -> ice.Table:
        """Append the rows to a new table."""
        own = {"encryption.key-id": "key"} if encrypted else {}
        properties = {"format-version": "3", "write.format.default": format, **own}
        name = f"db.t{next(self.numbers)}"
        return self.catalog.create_table(name, self.rows.schema, properties=properties).append(self.rows)


def cipher(table: ice.Table) -> tuple[Callable[[], object], Callable[[], object]]:
    """Make what encrypts and what decrypts as many bytes as the files of the table have."""
    size = sum(table.inspect.files()["file_size_in_bytes"].to_pylist())
    key = AESGCM(os.urandom(16))
    plain = [os.urandom(BLOCK)] * (size // BLOCK) + [os.urandom(size % BLOCK)]
    sealed = [key.encrypt(NONCE, block, None) for block in plain]
    return (
        lambda: [key.encrypt(NONCE, block, None) for block in plain],
        lambda: [key.decrypt(NONCE, block, None) for block in sealed],
    )


def answered(tables: Tables, format: str, rounds: int) -> list[Row]:
    """Ask for one format."""
    plain, own = tables.append(format, False), tables.append(format, True)
    assert own.scan().to_arrow() == plain.scan().to_arrow()
    encrypt, decrypt = cipher(own)
    questions: dict[str, dict[str, Callable[[], object]]] = {
        f"read of {format}": {
            "icefield": lambda: own.scan().to_arrow(),
            "plain": lambda: plain.scan().to_arrow(),
            "AES GCM": decrypt,
        },
        f"one column of {format}": {
            "icefield": lambda: own.scan(selected_fields=("price",)).to_arrow(),
            "plain": lambda: plain.scan(selected_fields=("price",)).to_arrow(),
        },
        f"append of {format}": {
            "icefield": lambda: tables.append(format, True),
            "plain": lambda: tables.append(format, False),
            "AES GCM": encrypt,
        },
    }
    target = [Target("plain", 1.3)]
    return [measure(title, runs, rounds=rounds, targets=target) for title, runs in questions.items()]


def main() -> None:
    """Ask for both formats that are encrypted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tables = Tables(Path(folder), options.rows)
        answers = [row for format in ("parquet", "avro") for row in answered(tables, format, options.rounds)]
    report(f"encrypted, {options.rows:,} rows × 8", answers, floor="AES GCM")


if __name__ == "__main__":
    main()
