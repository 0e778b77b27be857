"""Damages files of every format at random and reads them through the public API, within a memory ceiling.

Run by ``test_mutants.py``: a crash, a hang and memory are those of this process. Prints what was wrong as JSON.
"""

from __future__ import annotations

import json
import os
import random
import resource
import struct
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow as pa

import icefield as ice

CEILING = 512 << 20
NUMBERS = [0, 1, 0x7F, 0x80, 0xFF, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, 1 << 62, (1 << 64) - 1]
TEXTS = [b"-1", b"9223372036854775807", b"1e999", b"null", b"{}", b"[]", b'"', b"{", b"\\ud800", b"\xff"]


def mutate(data: bytes, draw: random.Random) -> bytes:
    """Damage a file in one to four places."""
    out = bytearray(data)
    for _ in range(draw.choice([1, 1, 1, 2, 4])):
        # Lengths and offsets stand at both ends.
        end = draw.choice([0, 0, 1, 2])
        at = [
            draw.randrange(len(out)),
            draw.randrange(min(64, len(out))),
            len(out) - 1 - draw.randrange(min(64, len(out))),
        ][end]
        kind = draw.randrange(7)
        if kind == 0:
            out[at] ^= 1 << draw.randrange(8)
        elif kind == 1:
            out[at] = draw.randrange(256)
        elif kind == 2:
            number = draw.choice(NUMBERS)
            width = draw.choice([4, 8])
            out[at : at + width] = struct.pack("<Q", number)[:width]
        elif kind == 3:
            out[at : at + draw.randrange(1, 9)] = draw.choice(TEXTS)
        elif kind == 4:
            del out[at : at + draw.choice([1, 2, 4, 64])]
        elif kind == 5:
            piece = draw.randrange(len(out))
            out[at:at] = out[piece : piece + draw.randrange(1, 64)]
        else:
            out[at : at + 16] = b"\xff" * 16
        if not out:
            return bytes(out)
    return bytes(out)


def local(location: str) -> Path:
    """Give the path of a location."""
    return Path(unquote(urlparse(location).path))


def rows() -> pa.Table:
    """Make rows of many types."""
    count = 300
    return pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "name": [f"name {n % 17}" for n in range(count)],
            "price": [n / 7 if n % 5 else None for n in range(count)],
            "tags": [[f"{n}", "x"][: n % 3] for n in range(count)],
            "place": [{"x": n, "y": f"{n}"} if n % 4 else None for n in range(count)],
            "pairs": pa.array([[("k", n)] for n in range(count)], pa.map_(pa.string(), pa.int32())),
        }
    )


def opened(table: ice.Table) -> ice.Table:
    """Open a table anew."""
    return ice.Table.from_metadata(table.metadata_location)


def puffin() -> bytes:
    """Make a Puffin file of a plain blob and a compressed one."""
    data = pa.compress(b"some blob" * 100, codec="zstd", asbytes=True)
    head = {"type": "x", "fields": [1], "snapshot-id": 1, "sequence-number": 1}
    blobs = [
        {**head, "offset": 4, "length": len(data), "compression-codec": "zstd"},
        {**head, "offset": 4, "length": 9, "properties": {"ndv": "9"}},
    ]
    payload = json.dumps({"blobs": blobs, "properties": {"created-by": "tests"}}).encode()
    return b"PFA1" + data + b"PFA1" + payload + struct.pack("<I4B", len(payload), 0, 0, 0, 0) + b"PFA1"


def subjects(folder: Path) -> Iterator[tuple[str, bytes, Callable[[bytes], object]]]:
    """Give each kind of file and what reads it."""
    catalog = ice.load_catalog("c", type="in-memory", warehouse=str(folder / "wh"))
    catalog.create_namespace("a")

    def made(name: str, **properties: str) -> ice.Table:
        table = catalog.create_table(
            f"a.{name.replace(' ', '_')}", rows(), properties={k.replace("_", "."): v for k, v in properties.items()}
        )
        return table.append(rows()).append(rows())

    def replaced(path: Path, read: Callable[[], object]) -> Callable[[bytes], object]:
        def with_bytes(data: bytes) -> object:
            path.write_bytes(data)
            # Files that are written within a tick of the clock look alike.
            ice.manifests.clear_cache()
            return read()

        return with_bytes

    for name, properties in {
        "parquet": {},
        "plain": {"write.avro.compression-codec": "uncompressed", "write.parquet.compression-codec": "uncompressed"},
        "orc": {"write.format.default": "orc", "write.orc.compression-codec": "none"},
        "avro": {"write.format.default": "avro", "write.avro.compression-codec": "uncompressed"},
        "packed avro": {"write.format.default": "avro", "write.avro.compression-codec": "zstd"},
    }.items():
        table = made(name, **properties)
        snapshot = table.current_snapshot()
        assert snapshot is not None
        assert snapshot.manifest_list is not None
        listed = local(snapshot.manifest_list)
        manifest = local(ice.manifests.read_list(listed.read_bytes())["manifest_path"][0].as_py())
        file = local(table.scan().plan_files().files[0]["file_path"])

        def scan(table: ice.Table = table) -> object:
            found = opened(table).scan("id > 30 AND name != 'name 3'", selected_fields=("price", "id", "pairs"))
            return found.to_arrow(), opened(table).scan().to_arrow()

        yield f"data of {name}", file.read_bytes(), replaced(file, scan)
        if name.endswith("avro"):
            continue
        if name == "orc":
            single = folder / "single.orc"
            yield "ORC file", file.read_bytes(), replaced(single, lambda path=single: ice.orc.ORCFile(str(path)).read())
            continue

        def plan(table: ice.Table = table) -> object:
            found = opened(table)
            return found.scan("id > 30").plan_files().to_arrow(), found.inspect.all_files(), found.inspect.partitions()

        yield f"manifest of {name}", manifest.read_bytes(), replaced(manifest, plan)
        yield f"manifest list of {name}", listed.read_bytes(), replaced(listed, plan)
        yield f"manifest bytes of {name}", manifest.read_bytes(), ice.manifests.read
        yield f"manifest list bytes of {name}", listed.read_bytes(), ice.manifests.read_list
        path = local(table.metadata_location)

        def load(table: ice.Table = table) -> object:
            found = opened(table)
            return found.schema(), found.snapshots(), found.inspect.snapshots(), found.scan("id > 30").plan_files()

        yield f"metadata of {name}", path.read_bytes(), replaced(path, load)
    yield "Puffin", puffin(), ice.puffin.read


def peak() -> int:
    """Most bytes that this process had."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def in_fork(work: Callable[[], None]) -> None:
    """Work in a fork, and exit as it does: a program that is run inherits a peak, a fork has its own."""
    child = os.fork()
    if child:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        sys.exit(f"ended by signal {-code}" if code < 0 else code)
    try:
        work()
        sys.stdout.flush()
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def damage() -> None:
    """Damage every file, and print what was wrong."""
    folder, count, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    wrong: list[str] = []
    outcomes: dict[str, dict[str, int]] = {}
    for name, whole, read in subjects(folder):
        read(whole)
        outcome = outcomes.setdefault(name, {"read": 0, "refused": 0})
        for number in range(count):
            data = mutate(whole, random.Random(f"{seed} {name} {number}"))
            # Whoever finds this process dead finds the file that killed it.
            (folder / "mutant").write_bytes(data)
            (folder / "mutant.name").write_text(f"{name}, {number}")
            try:
                read(data)
                outcome["read"] += 1
            except ice.errors.InternalError as error:
                wrong.append(f"{name}, {number}: {error!r}")
            except ice.IcefieldError as error:
                outcome["refused"] += 1
                if not str(error).strip():
                    wrong.append(f"{name}, {number}: {type(error).__name__} without a message")
            except BaseException as error:  # noqa: BLE001
                wrong.append(f"{name}, {number}: {error!r}")
            if peak() > CEILING:
                wrong.append(f"{name}, {number}: {peak()} bytes of memory")
                break
        read(whole)
        if peak() > CEILING:
            break
    sys.stdout.write(json.dumps({"wrong": wrong, "outcomes": outcomes, "peak": peak()}))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    in_fork(damage)
