"""Makes documents that are short and would become large, reads each in a fork, and says what came of it.

Run by ``test_bombs.py``. A fork has the memory of its own peak counted by the system, whatever allocated it.
"""

from __future__ import annotations

import gzip
import json
import os
import struct
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

import icefield as ice

MIB = 1 << 20


def metadata(body: str) -> bytes:
    """Compress a metadata document of which this is one member."""
    return gzip.compress(('{"format-version": 2, "location": "s3://b/t", ' + body + "}").encode(), 9)


def repeated(head: str, item: str, tail: str, length: int) -> bytes:
    """Compress a metadata document with one item again and again: a member of the gzip file for each MiB."""
    begin = '{"format-version": 2, "location": "s3://b/t", ' + head
    piece = (item + ",") * (MIB // (len(item) + 1))
    members = gzip.compress(piece.encode(), 9) * (length // MIB)
    return gzip.compress(begin.encode()) + members + gzip.compress((item + tail + "}").encode())


def puffin(blobs: list[dict[str, object]], body: bytes, payload: bytes | None = None, flags: int = 0) -> bytes:
    """Make a Puffin file."""
    payload = json.dumps({"blobs": blobs}).encode() if payload is None else payload
    tail = struct.pack("<I4B", len(payload), flags, 0, 0, 0) + b"PFA1"
    return b"PFA1" + body + b"PFA1" + payload + tail


def blob(length: int, codec: str | None) -> dict[str, object]:
    """Describe a blob that begins with the file."""
    return {
        "type": "x",
        "fields": [],
        "snapshot-id": 1,
        "sequence-number": 1,
        "offset": 4,
        "length": length,
        **({} if codec is None else {"compression-codec": codec}),
    }


def blob_in_zstd() -> bytes:
    """Make a Puffin file of one blob."""
    data = compressed("zstd", bytes(1600 * MIB))
    return puffin([blob(len(data), "zstd")], data)


def compressed(codec: str, data: bytes) -> bytes:
    """Compress bytes as one frame."""
    made: bytes = pa.compress(data, codec=codec, asbytes=True)
    return made


def unsigned(number: int) -> bytes:
    """Write a number in groups of seven bits, as Protobuf does."""
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def varint(number: int) -> bytes:
    """Write a number as Avro's ``long``."""
    return unsigned((number << 1) ^ (number >> 63))


def avro(schema: dict[str, object], codec: str, count: int, block: bytes) -> bytes:
    """Make an Avro file of one block, compressed already."""
    pairs = {"avro.schema": json.dumps(schema), "avro.codec": codec, "format-version": "2", "content": "data"}
    header = b"".join(
        varint(len(name)) + name.encode() + varint(len(text)) + text.encode() for name, text in pairs.items()
    )
    head = b"Obj\x01" + varint(len(pairs)) + header + b"\0" + bytes(16)
    return head + varint(count) + varint(len(block)) + block + bytes(16)


def record(name: str, *fields: tuple[str, int, object]) -> dict[str, object]:
    """Describe a record."""
    return {"type": "record", "name": name, "fields": [{"name": n, "field-id": i, "type": t} for n, i, t in fields]}


def manifest_list(entries: int) -> bytes:
    """Make a list of many manifests without a name."""
    schema = record(
        "manifest_file",
        ("manifest_path", 500, "string"),
        ("manifest_length", 501, "long"),
        ("partition_spec_id", 502, "int"),
        ("content", 517, "int"),
        ("sequence_number", 515, "long"),
        ("min_sequence_number", 516, "long"),
        ("added_snapshot_id", 503, "long"),
        ("added_files_count", 504, "int"),
        ("existing_files_count", 505, "int"),
        ("deleted_files_count", 506, "int"),
        ("added_rows_count", 512, "long"),
        ("existing_rows_count", 513, "long"),
        ("deleted_rows_count", 514, "long"),
    )
    return avro(schema, "zstandard", entries, compressed("zstd", bytes(13 * entries)))


def manifest_schema(*more: tuple[str, int, object]) -> dict[str, object]:
    """Describe the entries of a manifest; ``more`` are fields of their files."""
    data_file = record(
        "r2",
        ("content", 134, "int"),
        ("file_path", 100, "string"),
        ("file_format", 101, "string"),
        ("partition", 102, record("r102")),
        ("record_count", 103, "long"),
        ("file_size_in_bytes", 104, "long"),
        *more,
    )
    return record("manifest_entry", ("status", 0, "int"), ("data_file", 2, data_file))


def manifest(entries: int) -> bytes:
    """Make a manifest of many files without a name."""
    schema = manifest_schema()
    return avro(schema, "zstandard", entries, compressed("zstd", bytes(6 * entries)))


def manifest_with_pairs(pairs: int) -> bytes:
    """Make a manifest of one file with many column sizes."""
    sizes = {
        "type": "array",
        "logicalType": "map",
        "items": record("k117_v118", ("key", 117, "int"), ("value", 118, "long")),
    }
    schema = manifest_schema(("column_sizes", 108, sizes))
    return avro(schema, "zstandard", 1, compressed("zstd", bytes(6) + varint(pairs) + bytes(2 * pairs) + b"\0"))


def orc(section: bytes) -> bytes:
    """Make an ORC file with this footer, deflated in chunks."""
    chunks = b""
    for start in range(0, len(section), 256 << 10):
        deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
        chunk = deflate.compress(section[start : start + (256 << 10)]) + deflate.flush()
        chunks += struct.pack("<I", len(chunk) << 1)[:3] + chunk

    # footerLength, compression ZLIB, compressionBlockSize, version 0.12, metadataLength, magic
    postscript = b"\x08" + unsigned(len(chunks)) + b"\x10\x01\x18" + unsigned(256 << 10)
    postscript += b"\x22\x02\x00\x0c\x28\x00\x82\xf4\x03\x03ORC"
    return b"ORC" + chunks + postscript + bytes([len(postscript)])


def read_orc(folder: Path) -> Callable[[bytes], object]:
    """Give what opens such a file."""

    def read(data: bytes) -> object:
        path = folder / "bomb.orc"
        path.write_bytes(data)
        return ice.orc.ORCFile(str(path)).schema

    return read


def cases(folder: Path) -> dict[str, tuple[Callable[[], bytes], Callable[[bytes], object], int]]:
    """List the documents: how each is made, who reads it, and how long it may be at the most."""
    load, read_puffin = ice.TableMetadata.from_json, ice.puffin.read
    log = '{"timestamp-ms":1,"metadata-file":""}'
    snapshot = '{"snapshot-id":1,"timestamp-ms":1,"manifest-list":"","summary":{"operation":"append"}}'
    statistics = (
        '{"snapshot-id":1,"statistics-path":"","file-size-in-bytes":1,"file-footer-size-in-bytes":1,"blob-metadata":[]}'
    )
    schema = '{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"a","required":true,"type":"long"}]}'
    zeros = compressed("zstd", bytes(16 * MIB))
    return {
        "numbers of 2 MB": (lambda: repeated('"x": [', "1", "]", 2 * MIB), load, 5_000),
        "numbers of 16 MB": (lambda: repeated('"x": [', "1", "]", 16 * MIB), load, 20_000),
        "numbers of 240 MB": (lambda: repeated('"x": [', "1", "]", 240 * MIB), load, 300_000),
        "objects": (lambda: repeated('"x": [', "{}", "]", 60 * MIB), load, 100_000),
        "texts": (lambda: repeated('"x": [', '""', "]", 60 * MIB), load, 100_000),
        "members": (lambda: metadata(",".join(f'"{n}": 0' for n in range(200_000))), load, 600_000),
        "one text": (lambda: repeated('"x": "', "x" * 1000, '"', 240 * MIB), load, 600_000),
        "metadata log": (lambda: repeated('"metadata-log": [', log, "]", 200 * MIB), load, 800_000),
        "snapshot log": (
            lambda: repeated('"snapshot-log": [', '{"timestamp-ms":1,"snapshot-id":1}', "]", 200 * MIB),
            load,
            800_000,
        ),
        "snapshots": (lambda: repeated('"snapshots": [', snapshot, "]", 200 * MIB), load, 1_000_000),
        "schemas": (lambda: repeated('"schemas": [', schema, "]", 200 * MIB), load, 1_000_000),
        "statistics": (lambda: repeated('"statistics": [', statistics, "]", 100 * MIB), load, 1_000_000),
        "properties": (lambda: repeated('"properties": {', '"a":""', "}", 100 * MIB), load, 1_000_000),
        "spaces": (lambda: repeated("", " " * 1000 + '"x": 1', "", 240 * MIB), load, 600_000),
        "footer in LZ4": (
            lambda: puffin([], b"", compressed("lz4", b'{"blobs":[' + b"1," * (50 * MIB) + b"1]}"), 1),
            read_puffin,
            450_000,
        ),
        "footer": (lambda: puffin([], b"", b'{"blobs":[' + b"1," * (MIB // 2) + b"1]}"), read_puffin, 1_100_000),
        "blob in zstd": (blob_in_zstd, read_puffin, 60_000),
        "many blobs of one place": (lambda: puffin([blob(len(zeros), "zstd")] * 500, zeros), read_puffin, 80_000),
        "many blobs of one place, not compressed": (
            lambda: puffin([blob(MIB // 4, None)] * 2000, bytes(MIB // 4)),
            read_puffin,
            1_400_000,
        ),
        "manifest list": (lambda: manifest_list(8_000_000), ice.manifests.read_list, 20_000),
        "manifest": (lambda: manifest(20_000_000), ice.manifests.read, 20_000),
        "manifest with pairs": (lambda: manifest_with_pairs(100_000_000), ice.manifests.read, 20_000),
        "schema of a manifest": (
            lambda: avro({"type": "record", "name": "r", "fields": [], "x": [0] * 300_000}, "null", 0, b""),
            ice.manifests.read,
            4_000_000,
        ),
        # Footer.statistics and Footer.types, each a message of no bytes
        "statistics in an ORC footer": (lambda: orc(b"\x3a\x00" * (30 * MIB)), read_orc(folder), 300_000),
        "types in an ORC footer": (lambda: orc(b"\x22\x00" * (30 * MIB)), read_orc(folder), 300_000),
        "metadata in an ORC footer": (lambda: orc(b"\x2a\x00" * (30 * MIB)), read_orc(folder), 300_000),
    }


def in_a_fork(read: Callable[[bytes], object], data: bytes) -> dict[str, object]:
    """Read a document, and say which exception came, what memory it took and how long it kept a processor busy."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        started = time.process_time()
        try:
            read(data)
            said = ["", ""]
        except BaseException as error:  # noqa: BLE001
            said = [type(error).__name__, str(error)]
        os.write(writing, json.dumps([*said, time.process_time() - started]).encode()[:60_000])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        said = answer.read()
    _, status, usage = os.wait4(child, 0)
    kind, message, seconds = json.loads(said) if said else ("", "", 0)
    return {"ended": status, "kind": kind, "message": message, "seconds": seconds, "peak": usage.ru_maxrss * 1024}


def main() -> None:
    """Make each document, in a fork of its own, and read it."""
    folder, answers = Path(sys.argv[1]), {}
    wanted = sys.argv[2:]
    for name, (make, read, most) in cases(folder).items():
        if wanted and name not in wanted:
            continue
        path = folder / "bomb"
        child = os.fork()
        if child == 0:
            path.write_bytes(make())
            os._exit(0)
        os.waitpid(child, 0)
        data = path.read_bytes()
        answers[name] = {**in_a_fork(read, data), "length": len(data), "most": most}
    sys.stdout.write(json.dumps(answers))


if __name__ == "__main__":
    main()
