"""Tables with row-level deletes for ``scan.py``: our own rows, and delete files that PyIceberg's Avro writer lists.

Nothing here is timed. Position and equality delete files are Parquet; deletion vectors lie in one Puffin file.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import icefield as ice

#: Field ids of position delete files (specification, "Reserved Field IDs").
FILE_PATH_ID, POS_ID = 2147483546, 2147483545

#: A delete file: the fields of its manifest entry that PyIceberg does not fill.
DeleteFile = dict[str, Any]


def local(path: str) -> Path:
    """Give the place of a path of metadata."""
    return Path(urlparse(path).path)


def with_id(name: str, kind: pa.DataType, field_id: int) -> pa.Field:
    """Give a required column of a Parquet file with its field id."""
    return pa.field(name, kind, nullable=False, metadata={"PARQUET:field_id": str(field_id)})


def parquet(folder: Path, name: str, columns: pa.Table, **entry: Any) -> DeleteFile:
    """Write a Parquet delete file."""
    path = folder / f"{name}.parquet"
    pq.write_table(columns, path, compression="zstd")
    size = path.stat().st_size
    return {
        "file_path": str(path),
        "file_format": "PARQUET",
        "record_count": columns.num_rows,
        "file_size_in_bytes": size,
        **entry,
    }


def tenth(rows: int) -> np.ndarray[Any, Any]:
    """Give every tenth position of a file, not on a beat."""
    return np.sort(np.random.default_rng(rows).permutation(rows)[: rows // 10])


def position_deletes(folder: Path, files: Sequence[dict[str, Any]]) -> list[DeleteFile]:
    """Delete every tenth row of every file; one delete file each."""
    schema = pa.schema([with_id("file_path", pa.string(), FILE_PATH_ID), with_id("pos", pa.int64(), POS_ID)])
    made = []
    for number, file in enumerate(files):
        rows = tenth(file["record_count"])
        columns = pa.table([[file["file_path"]] * len(rows), rows], schema=schema)
        path = file["file_path"].encode()
        bounds = {"lower_bounds": {FILE_PATH_ID: path}, "upper_bounds": {FILE_PATH_ID: path}}
        made.append(parquet(folder, f"positions-{number}", columns, content=1, **bounds))
    return made


def vectors(folder: Path, files: Sequence[dict[str, Any]]) -> list[DeleteFile]:
    """Delete every tenth row of every file by a deletion vector."""
    path = folder / "vectors.puffin"
    body, blobs, made = bytearray(b"PFA1"), [], []
    for file in files:
        rows = tenth(file["record_count"])
        blob = ice.puffin.DeletionVector(rows.tolist()).to_bytes()
        about = {"offset": len(body), "length": len(blob)}
        properties = {"referenced-data-file": file["file_path"], "cardinality": str(len(rows))}
        kind = {"type": "deletion-vector-v1", "fields": [], "snapshot-id": -1, "sequence-number": -1}
        blobs.append({**kind, **about, "properties": properties})
        body += blob
        made.append(
            {
                "content": 1,
                "file_path": str(path),
                "file_format": "PUFFIN",
                "record_count": len(rows),
                "referenced_data_file": file["file_path"],
                "content_offset": about["offset"],
                "content_size_in_bytes": about["length"],
            }
        )
    footer = json.dumps({"blobs": blobs, "properties": {}}).encode()
    body += b"PFA1" + footer + struct.pack("<iI", len(footer), 0) + b"PFA1"
    path.write_bytes(body)
    return [{**entry, "file_size_in_bytes": len(body)} for entry in made]


def equality_deletes(folder: Path, ids: Sequence[int]) -> list[DeleteFile]:
    """Delete the rows of some values of the column with field id 1."""
    columns = pa.table([pa.array(ids, pa.int64())], schema=pa.schema([with_id("id", pa.int64(), 1)]))
    lengths = {"value_counts": {1: len(ids)}, "null_value_counts": {1: 0}}
    bounds = {bound: {1: struct.pack("<q", at(ids))} for bound, at in (("lower_bounds", min), ("upper_bounds", max))}
    return [parquet(folder, "equality", columns, content=2, equality_ids=[1], **lengths, **bounds)]


def with_deletes(
    table: ice.Table, version: int, name: str, make: Callable[[Path, Sequence[dict[str, Any]]], list[DeleteFile]]
) -> str:
    """Commit delete files on top of an unpartitioned table of version 2; give the metadata file that has them.

    It lies beside those of the table, which stays as it was. For version 3 row ids begin at 0.
    """
    location = local(table.location())
    folder = location / "deletes" / name
    folder.mkdir(parents=True)
    entries = make(folder, table.scan().plan_files().files)
    metadata = json.loads(table.metadata.to_json())
    parent = metadata["current-snapshot-id"]
    old = next(one for one in metadata["snapshots"] if one["snapshot-id"] == parent)
    added = parent % (1 << 62) + 1
    sequence = metadata["last-sequence-number"] + 1
    listed = manifest_list(folder, metadata, version, old["manifest-list"], entries, added, sequence)
    rows = sum(file["record_count"] for file in table.scan().plan_files().files)
    snapshot = {
        "snapshot-id": added,
        "parent-snapshot-id": parent,
        "sequence-number": sequence,
        "timestamp-ms": metadata["last-updated-ms"] + 1,
        "manifest-list": listed,
        "summary": {"operation": "delete"},
        "schema-id": metadata["current-schema-id"],
    }
    metadata.update({"format-version": version, "last-sequence-number": sequence, "current-snapshot-id": added})
    metadata["last-updated-ms"] += 1
    if version > 2:
        snapshot.update({"first-row-id": 0, "added-rows": rows})
        metadata["next-row-id"] = rows
    metadata["snapshots"].append(snapshot)
    metadata["snapshot-log"].append({"snapshot-id": added, "timestamp-ms": snapshot["timestamp-ms"]})
    metadata["refs"] = {"main": {"snapshot-id": added, "type": "branch"}}
    path = folder / f"00000-{name}.metadata.json"
    path.write_text(json.dumps(metadata))
    return str(path)


def manifest_list(
    folder: Path,
    metadata: dict[str, Any],
    version: int,
    before: str,
    entries: Sequence[DeleteFile],
    snapshot: int,
    sequence: int,
) -> str:
    """Write a manifest of delete files, and a list of it and of all manifests of the snapshot before."""
    from pyiceberg import manifest as m
    from pyiceberg.avro.file import AvroOutputFile
    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.typedef import Record

    io = PyArrowFileIO()
    schema = next(one for one in metadata["schemas"] if one["schema-id"] == metadata["current-schema-id"])
    spec = PartitionSpec(spec_id=metadata["default-spec-id"])
    about = {
        "schema": json.dumps(schema),
        "partition-spec": "[]",
        "partition-spec-id": str(spec.spec_id),
        "format-version": str(version),
        "content": "deletes",
        "avro.codec": "deflate",
    }
    file_type = m.data_file_with_partition(spec.partition_type(Schema.model_validate(schema)), version)
    entry_schema = m.manifest_entry_schema_with_data_file(version, file_type)
    output = io.new_output(str(folder / "deletes.avro"))
    written = AvroOutputFile(output, entry_schema, "manifest_entry", entry_schema, about)
    with written as file:
        for entry in entries:
            data_file = m.DataFile.from_args(_table_format_version=version, partition=Record(), **entry)
            fields = {"status": m.ManifestEntryStatus.ADDED, "snapshot_id": snapshot, "data_file": data_file}
            file.write_block([m.ManifestEntry.from_args(_table_format_version=version, **fields)])
    rows = sum(entry["record_count"] for entry in entries)
    deletes = {
        "manifest_path": output.location,
        "manifest_length": len(output),
        "partition_spec_id": spec.spec_id,
        "content": 1,
        "sequence_number": sequence,
        "min_sequence_number": sequence,
        "added_snapshot_id": snapshot,
        **dict.fromkeys(
            ("existing_files_count", "deleted_files_count", "existing_rows_count", "deleted_rows_count"), 0
        ),
        "added_files_count": len(entries),
        "added_rows_count": rows,
    }
    manifests, first_row = [], 0
    for old in m.read_manifest_list(io.new_input(before)):
        fields = {name: getattr(old, name) for name in deletes}
        if version > 2:
            fields["first_row_id"] = first_row
            first_row += old.added_rows_count + old.existing_rows_count
        manifests.append(fields)
    manifests.append(deletes)
    list_schema = m.MANIFEST_LIST_FILE_SCHEMAS[version]
    path = folder / f"snap-{snapshot}.avro"
    about = {"snapshot-id": str(snapshot), "sequence-number": str(sequence), "format-version": str(version)}
    with AvroOutputFile(io.new_output(str(path)), list_schema, "manifest_file", list_schema, about) as file:
        file.write_block([m.ManifestFile.from_args(_table_format_version=version, **fields) for fields in manifests])
    return str(path)
