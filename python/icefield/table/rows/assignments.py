"""New values of rows that are updated: literals, expressions of pyarrow, functions of record batches."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from icefield._core import ArrowStream, column_in_text
from icefield._support.optional import require
from icefield.errors import InvalidArgumentError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["changed_rows", "new_column", "one_batch"]

#: The column of row ids, which stays as it is.
ROW_ID = "_row_id"


def changed_rows(rows: ArrowStream, assignments: object) -> pa.RecordBatchReader:
    """Return the rows with new values, batch by batch.

    Raises
    ------
    InvalidArgumentError
        If a column does not exist, or the assignments are neither a mapping nor a function.

    """
    require("pyarrow")
    import pyarrow as pa

    reader = pa.RecordBatchReader.from_stream(rows)
    # What must not be null is checked, with the name of the column, where the rows are written.
    schema = pa.schema([field.with_nullable(nullable=True) for field in reader.schema])
    columns = pa.schema([field for field in schema if field.name != ROW_ID])
    change: Callable[[pa.RecordBatch], object]
    if isinstance(assignments, Mapping):
        if unknown := [name for name in assignments if name not in columns.names]:
            msg = f"update: the table has no column {unknown[0]!r} (there are: {', '.join(columns.names)})"
            raise InvalidArgumentError(msg)
        names = list(_nested_names(columns))
        change = partial(
            _assigned,
            {name: _converted(columns.field(name), value, names) for name, value in assignments.items()},
        )
    elif callable(assignments):
        change = assignments
    else:
        msg = f"update: expected new values by column, or a function, got {type(assignments).__name__}"
        raise InvalidArgumentError(msg)

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            own = pa.RecordBatch.from_arrays([batch.column(name) for name in columns.names], schema=columns)
            yield _checked(batch, change(own), schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _nested_names(fields: Iterable[pa.Field], parent: str = "") -> Iterator[str]:
    """Return the names of columns, and of those inside of structs."""
    import pyarrow as pa

    for field in fields:
        yield parent + field.name
        if pa.types.is_struct(field.type):
            yield from _nested_names(field.type, f"{parent}{field.name}.")


def _converted(field: pa.Field, value: object, columns: list[str]) -> object:
    """Return a value in the type of its column; what is computed from rows is converted with them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(value, (pc.Expression, pa.Scalar)) or callable(value):
        return value
    what = f"update: the column {field.name!r}"
    if isinstance(value, str) and (column := column_in_text(value, columns)):
        name = column.partition(".")[2] or column
        msg = (
            f"{what}: the value {value!r} looks like the column {name!r}, and is a text: pass "
            f"pyarrow.compute.field({name!r}) or an expression for the column, pyarrow.scalar({value!r}) for the text"
        )
        raise InvalidArgumentError(msg)
    refuse_loss(value, field.type, what)
    try:
        return pa.array([value], field.type)[0]
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        msg = f"update: expected a value of type {field.type} for the column {field.name!r}, got {value!r:.100}"
        raise InvalidArgumentError(msg) from error


def refuse_loss(value: object, wanted: pa.DataType, what: str) -> None:
    """Refuse a value of Python that pyarrow would cut off in a type.

    Raises
    ------
    InvalidArgumentError
        If a part of the value would be lost.

    """
    from decimal import Decimal
    from numbers import Real

    import pyarrow as pa

    zoned = isinstance(value, (dt.datetime, dt.time)) and value.tzinfo is not None
    lost = mend = ""
    if isinstance(value, dt.datetime) and pa.types.is_date(wanted) and (zoned or value.time() != dt.time()):
        lost, mend = "its time of day", "pass value.date()"
    elif isinstance(value, dt.datetime) and pa.types.is_time(wanted):
        lost, mend = "its date", "pass value.time()"
    elif isinstance(value, dt.datetime) and zoned and pa.types.is_timestamp(wanted) and wanted.tz is None:
        lost, mend = (
            "its time zone",
            "pass it without one, as .astimezone(timezone.utc).replace(tzinfo=None) is",
        )
    elif isinstance(value, dt.time) and zoned and pa.types.is_time(wanted):
        lost, mend = "its time zone", "pass value.replace(tzinfo=None)"
    elif isinstance(value, (Real, Decimal)) and pa.types.is_integer(wanted) and value % 1 != 0:
        lost, mend = "its fraction", "round it first"
    elif getattr(value, "nanosecond", 0) and pa.types.is_timestamp(wanted) and wanted.unit != "ns":
        lost, mend = "its nanoseconds", "pass value.floor('us')"
    if lost:
        raise InvalidArgumentError(f"{what}: {value!r} loses {lost} as {wanted}: {mend}")


def _assigned(assignments: Mapping[str, object], batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch with new values of some columns; all are computed from the old values."""
    new = batch
    for name, value in assignments.items():
        place = batch.schema.get_field_index(name)
        field = batch.schema.field(place)
        new = new.set_column(place, field, new_column(batch, field, value, what=f"update: the column {name!r}"))
    return new


def one_batch(rows: pa.Table) -> pa.RecordBatch:
    """Return the rows of a table as one record batch."""
    import pyarrow as pa

    arrays = [column.combine_chunks() for column in rows.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=rows.schema)


def new_column(batch: pa.RecordBatch, field: pa.Field, value: object, *, what: str) -> pa.Array:
    """Return the values of a column for all rows of a batch: of a literal, an expression or a function.

    Raises
    ------
    InvalidArgumentError
        If a function does not return an array of as many values; ``what`` names them.

    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(value, pc.Expression):
        from pyarrow import dataset

        scanner = dataset.Scanner.from_batches([batch], schema=batch.schema, columns={field.name: value})
        array = scanner.to_table().column(0).combine_chunks()
    elif callable(value):
        array = value(batch)
    else:
        array = _repeated(value, batch.num_rows, field, what)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if not isinstance(array, pa.Array) or len(array) != batch.num_rows:
        msg = f"{what}: expected an array of {batch.num_rows} values, got {array!r:.100}"
        raise InvalidArgumentError(msg)
    return _cast(array, field, what)


def _repeated(value: object, rows: int, field: pa.Field, what: str) -> pa.Array:
    """Return the same value for all rows."""
    import pyarrow as pa

    if isinstance(value, pa.Scalar):
        return pa.repeat(value, rows)
    refuse_loss(value, field.type, what)
    try:
        return pa.repeat(pa.array([value], field.type)[0], rows)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        pass
    try:
        # Numbers of another type, dates as timestamps.
        return pa.repeat(value, rows).cast(field.type)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise InvalidArgumentError(f"{what}: expected a value of type {field.type}, got {value!r:.100}") from error


def _checked(old: pa.RecordBatch, new: object, schema: pa.Schema) -> pa.RecordBatch:
    """Return new rows in the columns of old ones, with their row ids."""
    import pyarrow as pa

    if not isinstance(new, pa.RecordBatch) or new.num_rows != old.num_rows:
        msg = f"update: expected a record batch of {old.num_rows} rows from the function, got {new!r:.100}"
        raise InvalidArgumentError(msg)
    names = [name for name in schema.names if name != ROW_ID]
    if sorted(new.schema.names) != sorted(names):
        msg = f"update: expected the columns {', '.join(names)} from the function, got {', '.join(new.schema.names)}"
        raise InvalidArgumentError(msg)
    arrays = [old.column(field.name) if field.name == ROW_ID else new.column(field.name) for field in schema]
    arrays = [
        _cast(array, field, f"update: the column {field.name!r}") for array, field in zip(arrays, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _cast(array: pa.Array, field: pa.Field, what: str) -> pa.Array:
    """Return values in the type of their column."""
    import pyarrow as pa

    if array.type == field.type:
        return array
    try:
        values = array.cast(field.type)
    except pa.ArrowException as error:
        msg = f"{what}: expected values of type {field.type}, got {array.type}: {error}"
        raise InvalidArgumentError(msg) from error
    # The one cast of pyarrow's that is called safe and drops something.
    if pa.types.is_timestamp(array.type) and pa.types.is_date(field.type) and values.cast(array.type) != array:
        msg = f"{what}: values of {array.type} lose their times of day as {field.type}: cast them yourself"
        raise InvalidArgumentError(msg)
    return values
