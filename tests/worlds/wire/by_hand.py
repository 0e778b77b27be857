"""Tables as another program may have written them: their manifests, lists and documents, field by field."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import icefield as ice

Record = dict[str, Any]

NOW = 1_700_000_000_000


def unsigned(number: int) -> bytes:
    """Write a number in groups of seven bits."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def zigzag(number: int) -> bytes:
    """Write a number as Avro and Thrift do."""
    return unsigned((number << 1) ^ (number >> 63))


def encoded(schema: Any, value: Any) -> bytes:
    """Encode a value as Avro does."""
    if isinstance(schema, list):
        return zigzag(0) if value is None else zigzag(1) + encoded(schema[1], value)
    kind = schema if isinstance(schema, str) else schema["type"]
    match kind:
        case "record":
            return b"".join(encoded(field["type"], value.get(field["name"])) for field in schema["fields"])
        case "array":
            return (
                zigzag(len(value)) + b"".join(encoded(schema["items"], item) for item in value) if value else b""
            ) + b"\0"
        case "int" | "long":
            return zigzag(value)
        case "boolean":
            return bytes([value])
        case "double":
            return struct.pack("<d", value)
        case _:
            data = value.encode() if kind == "string" else value
            return zigzag(len(data)) + data


def write_avro(path: Path, schema: Record, rows: Sequence[Record], header: Mapping[str, str], blocks: int = 1) -> int:
    """Write an Avro file, and return its length."""
    texts = {"avro.schema": json.dumps(schema), "avro.codec": "null", **header}
    pairs = [zigzag(len(part.encode())) + part.encode() for pair in texts.items() for part in pair]
    data = b"Obj\x01" + zigzag(len(texts)) + b"".join(pairs) + b"\0" + bytes(range(16))
    each = -(-len(rows) // blocks)
    for first in range(0, len(rows), max(each, 1)):
        some = rows[first : first + each]
        body = b"".join(encoded(schema, row) for row in some)
        data += zigzag(len(some)) + zigzag(len(body)) + body + bytes(range(16))
    path.write_bytes(data)
    return len(data)


def field(name: str, id_: int, kind: Any) -> Record:
    return {"name": name, "field-id": id_, "type": kind}


def optional(kind: Any) -> list[Any]:
    return ["null", kind]


def pairs(key: int, value: int, kind: str) -> list[Any]:
    items = {
        "type": "record",
        "name": f"k{key}_v{value}",
        "fields": [field("key", key, "int"), field("value", value, kind)],
    }
    return optional({"type": "array", "logicalType": "map", "items": items})


ENTRY: Record = {
    "type": "record",
    "name": "manifest_entry",
    "fields": [
        field("status", 0, "int"),
        field("snapshot_id", 1, optional("long")),
        field("sequence_number", 3, optional("long")),
        field("file_sequence_number", 4, optional("long")),
        field(
            "data_file",
            2,
            {
                "type": "record",
                "name": "r2",
                "fields": [
                    field("content", 134, "int"),
                    field("file_path", 100, "string"),
                    field("file_format", 101, "string"),
                    field("partition", 102, {"type": "record", "name": "r102", "fields": []}),
                    field("record_count", 103, "long"),
                    field("file_size_in_bytes", 104, "long"),
                    field("value_counts", 109, pairs(119, 120, "long")),
                    field("null_value_counts", 110, pairs(121, 122, "long")),
                    field("lower_bounds", 125, pairs(126, 127, "bytes")),
                    field("upper_bounds", 128, pairs(129, 130, "bytes")),
                    field("equality_ids", 135, optional({"type": "array", "items": "int", "element-id": 136})),
                    field("first_row_id", 142, optional("long")),
                    field("referenced_data_file", 143, optional("string")),
                    field("content_offset", 144, optional("long")),
                    field("content_size_in_bytes", 145, optional("long")),
                ],
            },
        ),
    ],
}

LIST: Record = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        field("manifest_path", 500, "string"),
        field("manifest_length", 501, "long"),
        field("partition_spec_id", 502, "int"),
        field("content", 517, "int"),
        field("sequence_number", 515, "long"),
        field("min_sequence_number", 516, "long"),
        field("added_snapshot_id", 503, "long"),
        field("added_files_count", 504, "int"),
        field("existing_files_count", 505, "int"),
        field("deleted_files_count", 506, "int"),
        field("added_rows_count", 512, "long"),
        field("existing_rows_count", 513, "long"),
        field("deleted_rows_count", 514, "long"),
        field("first_row_id", 520, optional("long")),
    ],
}


def long_bounds(id_: int, first: int, last: int, rows: int) -> Record:
    """Give the metrics of a column of whole numbers without nulls."""
    lower, upper = ([{"key": id_, "value": struct.pack("<q", number)}] for number in (first, last))
    counts = {"value_counts": [{"key": id_, "value": rows}], "null_value_counts": [{"key": id_, "value": 0}]}
    return {**counts, "lower_bounds": lower, "upper_bounds": upper}


def entry(path: Path, rows: int, content: int = 0, **more: Any) -> Record:
    """Describe a file; ``entry_`` fields are those of its entry."""
    own = {name.removeprefix("entry_"): value for name, value in more.items() if name.startswith("entry_")}
    file = {name: value for name, value in more.items() if not name.startswith("entry_")}
    form = path.suffix[1:].upper()
    described = {"content": content, "file_path": str(path), "file_format": form, "partition": {}, "record_count": rows}
    return {"status": 1, **own, "data_file": {**described, "file_size_in_bytes": path.stat().st_size, **file}}


def manifest(
    folder: Path, name: str, entries: Sequence[Record], content: int = 0, version: int = 2, **more: Any
) -> Record:
    """Write a manifest, and return its row of the list."""
    header = {"schema": "{}", "partition-spec": "[]", "partition-spec-id": "0", "format-version": str(version)}
    path = folder / "metadata" / f"{name}.avro"
    path.parent.mkdir(exist_ok=True)
    length = write_avro(path, ENTRY, entries, header | {"content": "deletes" if content else "data"})
    rows = sum(one["data_file"]["record_count"] for one in entries)
    counts = {"added_files_count": len(entries), "existing_files_count": 0, "deleted_files_count": 0}
    counts |= {"added_rows_count": rows, "existing_rows_count": 0, "deleted_rows_count": 0}
    place = {"manifest_path": str(path), "manifest_length": length, "partition_spec_id": 0, "content": content}
    numbers = {"sequence_number": 1, "min_sequence_number": 1, "added_snapshot_id": 1001}
    return {**place, **numbers, **counts, **more}


def table(
    folder: Path, fields: Sequence[Record], manifests: Sequence[Record], version: int = 2, **more: Any
) -> ice.Table:
    """Write a manifest list and a document, and register the table."""
    (folder / "metadata").mkdir(exist_ok=True)
    listed = folder / "metadata" / "snap-1.avro"
    write_avro(listed, LIST, manifests, {"format-version": str(version)})
    last = more.get("last-sequence-number", max((one["sequence_number"] for one in manifests), default=1))
    snapshot = {"snapshot-id": 1001, "timestamp-ms": NOW, "manifest-list": str(listed), "schema-id": 0}
    snapshot |= {"sequence-number": last, "summary": {"operation": "append"}}
    document = {
        "format-version": version,
        "table-uuid": "0f1e2d3c-0000-4000-8000-000000000001",
        "location": str(folder),
        "last-updated-ms": NOW,
        "last-sequence-number": last,
        "last-column-id": 1000,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": list(fields)}],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": {},
        "snapshots": [snapshot],
        "current-snapshot-id": 1001,
        "snapshot-log": [{"snapshot-id": 1001, "timestamp-ms": NOW}],
        "metadata-log": [],
    }
    if version > 2:
        document["next-row-id"] = 1000
        snapshot |= {"first-row-id": 0, "added-rows": 0}
    path = folder / "metadata" / "v1.metadata.json"
    path.write_text(json.dumps({**document, **more}))
    catalog = ice.load_catalog("c", uri=f"sqlite:///{folder}/c.db", warehouse=str(folder / "warehouse"))
    catalog.create_namespace("n")
    return catalog.register_table("n.t", str(path))


def column(id_: int, name: str, kind: Any, **more: Any) -> Record:
    return {"id": id_, "name": name, "required": False, "type": kind, **more}


def with_ids(rows: pa.Table, ids: Mapping[str, int], key: str = "PARQUET:field_id") -> pa.Table:
    """Give the columns of a table their field ids."""
    numbered = [one.with_metadata({key: str(ids[one.name])}) if one.name in ids else one for one in rows.schema]
    return rows.cast(pa.schema(numbered))


def write_rows(path: Path, rows: pa.Table, ids: Mapping[str, int], **more: Any) -> Path:
    """Write a file of flat columns of whole numbers and texts, in the format that its name says."""
    match path.suffix:
        case ".parquet":
            pq.write_table(with_ids(rows, ids), path, **more)
        case ".orc":
            ice.orc.write_table(with_ids(rows, ids, "iceberg.id"), path)
        case _:
            kinds = {"int64": "long", "string": "string"}
            fields = [
                {"name": one.name, "type": optional(kinds[str(one.type)]), "default": None}
                | ({"field-id": ids[one.name]} if one.name in ids else {})
                for one in rows.schema
            ]
            schema = {"type": "record", "name": "table", "fields": fields}
            write_avro(path, schema, rows.to_pylist(), {}, blocks=3)
    return path
