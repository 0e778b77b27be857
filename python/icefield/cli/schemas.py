"""The schema of a new table: from text, JSON, or a file that has one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from icefield._optional import require
from icefield.cli.avro import schema_of_avro
from icefield.cli.columns import schema_of_text
from icefield.cli.opening import location_of
from icefield.distributed import Storage
from icefield.errors import CorruptDataError, InvalidArgumentError
from icefield.orc import ORCFile
from icefield.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["schema_of", "schema_of_file"]


def schema_of(text: str) -> Schema:
    """Return the schema of a list of columns, or of the JSON form of the specification."""
    return Schema.from_json(text) if text.lstrip().startswith("{") else schema_of_text(text)


def schema_of_file(path: str, properties: Mapping[str, str]) -> Schema | pa.Schema:
    """Return the schema of a Parquet, ORC or Avro file, of JSON, or of a list of columns in a file.

    Parameters
    ----------
    path
        A path, or a URL that the storage reads.
    properties
        Properties of the storage.

    Raises
    ------
    InvalidArgumentError
        If the file is none of these.
    MissingFileError
        If it does not exist.
    CorruptDataError
        If it cannot be read.

    """
    location = location_of(path)
    if path.endswith(".orc"):
        return ORCFile(location, storage=properties).schema
    data = Storage(dict(properties)).read(location)
    if data[:4] == b"PAR1":
        return _schema_of_parquet(data, path)
    if data[:3] == b"ORC":
        return ORCFile(location, storage=properties).schema
    if data[:4] == b"Obj\x01":
        return schema_of_avro(data, path)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise InvalidArgumentError(f"{path} is not a Parquet, ORC or Avro file, and not a schema as text") from None
    return schema_of(text)


def _schema_of_parquet(data: bytes, path: str) -> pa.Schema:
    arrow = require("pyarrow")
    try:
        schema: pa.Schema = require("pyarrow.parquet").read_schema(arrow.BufferReader(data))
    except (arrow.ArrowException, OSError) as error:
        raise CorruptDataError(f"{path}: {error}") from error
    return schema
