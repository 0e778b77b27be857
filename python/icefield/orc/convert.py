"""CSV and JSON to ORC, and ORC to them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias

from icefield._core import OrcFile
from icefield._support.optional import require
from icefield.errors import InvalidArgumentError
from icefield.orc.reader import ORCFile
from icefield.orc.seen import Value
from icefield.orc.writer import ORCWriter

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["convert", "json_lines", "parse_schema"]

Format: TypeAlias = Literal["csv", "json", "orc"]
_FORMATS: dict[str, Format] = {
    ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".orc": "orc"
}  # fmt: skip


def parse_schema(text: str) -> pa.Schema:
    """Return the Arrow schema of a type in ORC's notation.

    Parameters
    ----------
    text
        A struct, for example ``"struct<id:bigint,name:varchar(20)>"``.

    Returns
    -------
    pyarrow.Schema
        Its fields. Types that Arrow lacks are in the metadata of their fields (``orc.type``), which `ORCWriter` reads.

    Raises
    ------
    InvalidArgumentError
        If the text is not such a type; it says where.

    """
    # A file without a byte has no columns: all of the schema are then missing ones.
    return OrcFile(b"", schema=text).schema().to_pyarrow()


def convert(
    source: str | os.PathLike[str],
    where: str | os.PathLike[str],
    *,
    schema: str | pa.Schema | None = None,
    source_format: Format | None = None,
    format: Format | None = None,
    delimiter: str = ",",
    header: bool = True,
    null_values: Iterable[str] = ("",),
    compression: str | None = None,
    storage: Mapping[str, str] | None = None,
) -> int:
    """Convert a file from CSV or JSON to ORC, or from ORC to them. pyarrow reads and writes CSV, and reads JSON.

    Parameters
    ----------
    source
        The file to read. JSON has one object a line; files that end with ``.gz`` and the like are decompressed.
    where
        The file to write.
    schema
        The columns: ORC's text, such as ``struct<id:bigint>``, or an Arrow schema. Without it the types are those that
        pyarrow finds in the first values: ``bigint``, ``double``, ``boolean``, ``timestamp``, ``string`` and, from
        JSON, lists and structs. For an ORC source it is the schema to read with.
    source_format
        The format of ``source``; found by its ending without this.
    format
        The format of ``where``; found by its ending without this.
    delimiter
        What separates the fields of CSV.
    header
        Whether the first line of CSV has the names of the columns. Without it they are those of ``schema`` in its
        order, or ``f0``, ``f1`` and so on.
    null_values
        Texts that mean null in CSV that is read.
    compression
        The codec of the ORC file (zstd by default).
    storage
        Properties of the storage of the ORC file, named as those of a catalog.

    Returns
    -------
    int
        The number of rows.

    Raises
    ------
    InvalidArgumentError
        If a format is not known, neither file is ORC, a value does not have the type of its column, or a column cannot
        be written as CSV.

    """
    source, where = os.fspath(source), os.fspath(where)
    first, second = _format(source, source_format), _format(where, format)
    if (first == "orc") == (second == "orc"):
        raise InvalidArgumentError(f"{source} and {where}: expected one ORC file and one of CSV or JSON")
    if first == "orc":
        return _written(ORCFile(source, storage=storage, schema=schema), where, second, delimiter, header)
    wanted = parse_schema(schema) if isinstance(schema, str) else schema
    pyarrow = require("pyarrow")
    rows = 0
    try:
        batches = _csv(source, wanted, delimiter, header, null_values) if first == "csv" else _json(source, wanted)
        exact = wanted if wanted is not None else batches.schema
        options: dict[str, Any] = {} if compression is None else {"compression": compression}
        with ORCWriter(where, schema=exact, storage=storage, **options) as writer:
            for batch in batches:
                writer.write(batch if batch.schema == exact else _shaped(batch, exact))
                rows += batch.num_rows
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError) as error:
        raise InvalidArgumentError(f"{source}: {error}") from error
    return rows


def json_lines(file: ORCFile, columns: list[str] | None = None, rows: range | None = None) -> Iterator[str]:
    """Write rows as JSON, one object a line, as ``orc-tools data`` does.

    Parameters
    ----------
    file
        The file.
    columns
        The columns wanted, all without it.
    rows
        The first row wanted and the one after the last.

    Yields
    ------
    str
        A row. Dates and times are text, decimals too; bytes are lists of numbers, maps lists of objects with ``key``
        and ``value``; floats that JSON lacks are ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``.

    """
    for batch in file.iter_batches(columns=columns, rows=rows):
        kinds = [field.type for field in batch.schema]
        values = [column.to_pylist() for column in batch.columns]
        for row in zip(*values, strict=True) if values else [()] * batch.num_rows:
            shown = {
                name: _json_of(value, kind) for name, value, kind in zip(batch.schema.names, row, kinds, strict=True)
            }
            yield json.dumps(shown, ensure_ascii=False, separators=(",", ":"))


def _format(path: str, given: Format | None) -> Format:
    name = path.removesuffix(".gz").removesuffix(".bz2").removesuffix(".zst")
    found = given or _FORMATS.get(Path(name).suffix.lower())
    if found is None or found not in _FORMATS.values():
        raise InvalidArgumentError(f"{path}: format {found!r} is not known: expected csv, json or orc")
    return found


def _csv(
    source: str, schema: pa.Schema | None, delimiter: str, header: bool, null_values: Iterable[str]
) -> pa.RecordBatchReader:
    require("pyarrow")
    from pyarrow import csv

    names = None if header else ([] if schema is None else schema.names)
    read = csv.ReadOptions(column_names=names or None, autogenerate_column_names=not header and not names)
    types = {} if schema is None else {field.name: field.type for field in schema}
    options = csv.ConvertOptions(
        column_types=types,
        include_columns=None if schema is None else schema.names,
        include_missing_columns=schema is not None,
        null_values=list(null_values),
        strings_can_be_null=True,
    )
    return csv.open_csv(
        source, read_options=read, parse_options=csv.ParseOptions(delimiter=delimiter), convert_options=options
    )


def _json(source: str, schema: pa.Schema | None) -> pa.RecordBatchReader:
    require("pyarrow")
    from pyarrow import json as arrow_json

    behaviour = "infer" if schema is None else "ignore"
    carried = None if schema is None else require("pyarrow").schema([_carried(field) for field in schema])
    options = arrow_json.ParseOptions(explicit_schema=carried, unexpected_field_behavior=behaviour)
    return arrow_json.open_json(source, parse_options=options)


def _carried(field: pa.Field) -> pa.Field:
    """Return the field that JSON is read with: what pyarrow does not parse, but casts: dates as text, maps as lists."""
    pyarrow = require("pyarrow")
    kind = field.type
    if pyarrow.types.is_date(kind):
        return field.with_type(pyarrow.string())
    if pyarrow.types.is_list(kind):
        return field.with_type(pyarrow.list_(_carried(kind.value_field)))
    if pyarrow.types.is_struct(kind):
        return field.with_type(pyarrow.struct([_carried(inner) for inner in kind]))
    if pyarrow.types.is_map(kind):
        pair = [_carried(kind.key_field.with_name("key")), _carried(kind.item_field.with_name("value"))]
        return field.with_type(pyarrow.list_(pyarrow.struct(pair)))
    return field


def _shaped(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Bring a batch to its schema from the one that JSON was read with."""
    columns = [_cast(batch.column(field.name), field.type) for field in schema]
    shaped: pa.RecordBatch = require("pyarrow").record_batch(columns, schema=schema)
    return shaped


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    pyarrow = require("pyarrow")
    if pyarrow.types.is_struct(kind):
        fields = [_cast(array.field(inner.name), inner.type) for inner in kind]
        return pyarrow.StructArray.from_arrays(fields, fields=list(kind), mask=array.is_null())
    if pyarrow.types.is_list(kind):
        values = _cast(array.values, kind.value_type)
        return pyarrow.ListArray.from_arrays(array.offsets, values, type=kind, mask=array.is_null())
    if pyarrow.types.is_map(kind):
        keys = _cast(array.values.field(0), kind.key_type)
        items = _cast(array.values.field(1), kind.item_type)
        return pyarrow.MapArray.from_arrays(array.offsets, keys, items, type=kind, mask=array.is_null())
    return array.cast(kind)


def _written(file: ORCFile, where: str, format_: Format, delimiter: str, header: bool) -> int:
    target = Path(where)
    part = target.with_name(f"{target.name}.part")
    try:
        with part.open("wb") as out:
            if format_ == "json":
                for line in json_lines(file):
                    out.write(line.encode() + b"\n")
            else:
                _write_csv(file, out, delimiter, header)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    return file.nrows


def _write_csv(file: ORCFile, out: IO[bytes], delimiter: str, header: bool) -> None:
    pyarrow = require("pyarrow")
    from pyarrow import csv

    for field in file.schema:
        if pyarrow.types.is_nested(field.type) or pyarrow.types.is_union(field.type):
            kind = field.metadata or field.type
            raise InvalidArgumentError(f"column {field.name} of type {kind} cannot be written as CSV: write JSON")
    options = csv.WriteOptions(include_header=header, delimiter=delimiter)
    with csv.CSVWriter(out, file.schema, write_options=options) as writer:
        for batch in file.iter_batches():
            writer.write_batch(batch)


def _json_of(value: Value, kind: pa.DataType) -> Value:
    """Bring a value to what JSON holds."""
    types = require("pyarrow").types
    if value is None:
        return None
    if types.is_map(kind):
        return [{"key": _json_of(key, kind.key_type), "value": _json_of(item, kind.item_type)} for key, item in value]
    if types.is_struct(kind):
        return {field.name: _json_of(value[field.name], field.type) for field in kind}
    if types.is_list(kind):
        return [_json_of(item, kind.value_type) for item in value]
    # The values of a union do not say which variant they are of.
    return _leaf(value)


def _leaf(value: Value) -> Value:
    if isinstance(value, float) and value - value != 0:
        return {"nan": "NaN", "inf": "Infinity"}.get(str(value), "-Infinity")
    if isinstance(value, bytes):
        return list(value)
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(sep=" ")
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [_leaf(item) for item in value]
    return {name: _leaf(item) for name, item in value.items()} if isinstance(value, dict) else value
