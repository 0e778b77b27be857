"""INSERT: the columns of a query as those of a table, appended or in place of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as st

from icefield.errors import ValidationError
from icefield.expressions import AlwaysTrue, And, EqualTo, IsNull
from icefield.spark.changing.overwriting import write
from icefield.spark.columns.types import spark_schema
from icefield.spark.sql.grammar.statements import Insert
from icefield.spark.writes.writing import append

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from icefield.expressions import Expression
    from icefield.spark.sql.catalogs import Target
    from icefield.spark.sql.grammar.text import Name
    from icefield.spark.sql.running import Run
    from icefield.table import Table

__all__ = ["insert", "written_branch"]

_NESTED = (st.StructType, st.ArrayType, st.MapType)
#: Numbers in the order in which each holds the values of those before.
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "decimal", "float", "double")


def insert(run: Run, parsed: Insert, target: Target) -> None:
    """Write the rows of a query into a table or a branch of it."""
    table, branch = written_branch(run, parsed.name, target)
    frame = aligned(run, parsed, table, run.query(parsed.query))
    if not parsed.overwrite:
        append(frame, table, branch=branch)
        return
    replaced = None if parsed.replace_where is not None or _is_dynamic(run) else _replaced(run, parsed, table)
    with run.as_read(table):
        if parsed.replace_where is not None:
            write(frame, table, "overwrite", filter=run.text(parsed.replace_where), branch=branch)
        elif replaced is not None:
            write(frame, table, "overwrite", filter=replaced, branch=branch)
        elif any(not field.transform.is_void for field in table.spec().fields):
            write(frame, table, "dynamic", branch=branch)
        elif not frame.isEmpty():
            # All rows are in one partition, which only rows replace.
            write(frame, table, "overwrite", branch=branch)


def _is_dynamic(run: Run) -> bool:
    """Return whether the partitions that the rows are in are replaced: as in Spark, that is so of every table then."""
    return str(run.spark.conf.get("spark.sql.sources.partitionOverwriteMode", "static")).lower() == "dynamic"


def _replaced(run: Run, parsed: Insert, table: Table) -> Expression:
    """Return the filter of the rows that INSERT OVERWRITE replaces: those of the given partition values, or all."""
    wanted = spark_schema(table.schema()).fields
    found: Expression = AlwaysTrue()
    for name, piece in parsed.partition:
        if piece is not None:
            column = _column(run, wanted, str(name), name.start)
            [value] = run.constants([piece], [column.dataType])
            one = IsNull(column.name) if value is None else EqualTo(column.name, value)
            found = one if isinstance(found, AlwaysTrue) else And(found, one)
    return found


def written_branch(run: Run, name: Name, target: Target) -> tuple[Table, str | None]:
    """Return the table that a statement changes, and the branch that its name selects.

    Raises
    ------
    InvalidArgumentError
        If the name is that of a metadata table, a tag or a snapshot, or there is no such branch; with line and column.

    """
    with run.at(name.start):
        chosen = run.selected(target)
    if chosen.metadata is not None or chosen.timestamp_ms is not None or isinstance(chosen.as_of, int):
        raise run.statement.error(name.start, f"{name} can only be read")
    if chosen.as_of is None:
        return chosen.table, None
    reference = chosen.table.refs().get(chosen.as_of)
    if chosen.is_tag or (reference is not None and reference.snapshot_ref_type == "tag"):
        raise run.statement.error(name.start, f"{chosen.as_of} is a tag, which cannot be written to")
    if reference is None and chosen.as_of != "main":
        raise run.statement.error(
            name.start, f"there is no branch {chosen.as_of}: create it by ALTER TABLE … CREATE BRANCH"
        )
    return chosen.table, chosen.as_of


def aligned(run: Run, parsed: Insert, table: Table, frame: DataFrame) -> DataFrame:
    """Rename and cast the columns of a query to those of the table, as Spark's store assignment does."""
    wanted = spark_schema(table.schema()).fields
    static = _static(run, parsed, table, wanted)
    if parsed.by_name:
        return _by_name(run, parsed, frame, wanted, static)
    names = _named_columns(run, parsed, wanted) or [one.name for one in wanted if one.name not in static]
    given = frame.columns
    if len(given) != len(names):
        raise run.statement.error(
            parsed.query.start,
            f"the query has {len(given)} columns ({', '.join(given)}), expected {len(names)}: {', '.join(names)}",
        )
    # With a list of columns, Spark finds the fields of structs by name too.
    return _assigned(run, frame, names, wanted, static, by_name=bool(parsed.columns))


def _assigned(
    run: Run,
    frame: DataFrame,
    names: Sequence[str],
    wanted: Sequence[st.StructField],
    static: dict[str, Column],
    *,
    by_name: bool,
) -> DataFrame:
    """Return rows whose columns become those of the table that have these names."""
    # PySpark parses the names of columns, and those of a query may be the same.
    rows = frame.toDF(*(f"c{n}" for n in range(len(names))))
    kinds = {one.name: one.dataType for one in wanted}
    columns, stored = [], []
    for given, name in zip(rows.schema.fields, names, strict=True):
        if isinstance(given.dataType, _NESTED) and isinstance(kinds[name], _NESTED):
            spelled = _spelled(given.dataType, kinds[name], name, by_name=by_name, case_sensitive=run.case_sensitive)
            columns.append(F.col(given.name).cast(spelled).alias(given.name))
            nullable = st.StructType([st.StructField("x", kinds[name])]).toNullable().fields[0].dataType
            stored.append(st.StructField(given.name, nullable))
        else:
            columns.append(assigned(F.col(given.name), given.dataType, kinds[name], name).alias(given.name))
            stored.append(st.StructField(given.name, kinds[name]))
    # What is in nested types becomes that of the table by Spark's own store assignment.
    found = rows.select(*columns).to(st.StructType(stored)).toDF(*names)
    return found.select("*", *(column.alias(name) for name, column in static.items()))


def _static(run: Run, parsed: Insert, table: Table, wanted: Sequence[st.StructField]) -> dict[str, Column]:
    """Return the values of PARTITION as columns of the table."""
    found: dict[str, Column] = {}
    identity = {field.source_id for field in table.spec().fields if field.transform.is_identity}
    for name, piece in parsed.partition:
        column = _column(run, wanted, name.parts[0] if len(name.parts) == 1 else str(name), name.start)
        if table.schema().find_field(column.name).field_id not in identity:
            raise run.statement.error(
                name.start, f"{column.name} is no partition column: only those of identity can be given"
            )
        if piece is not None:
            [value] = run.constants([piece], [column.dataType])
            found[column.name] = F.lit(value).cast(column.dataType)
    return found


def _column(run: Run, wanted: Sequence[st.StructField], name: str, at: int) -> st.StructField:
    for one in wanted:
        if one.name == name or (not run.case_sensitive and one.name.lower() == name.lower()):
            return one
    raise run.statement.error(at, f"the table has no column {name}; it has {', '.join(one.name for one in wanted)}")


def _named_columns(run: Run, parsed: Insert, wanted: Sequence[st.StructField]) -> list[str]:
    names: list[str] = []
    for column in parsed.columns:
        name = _column(run, wanted, str(column), column.start).name
        if name in names:
            raise run.statement.error(column.start, f"column {name} stands twice")
        names.append(name)
    return names


def _by_name(
    run: Run, parsed: Insert, frame: DataFrame, wanted: Sequence[st.StructField], static: dict[str, Column]
) -> DataFrame:
    names = [_column(run, wanted, name, parsed.query.start).name for name in frame.columns]
    if twice := [name for name in names if names.count(name) > 1 or name in static]:
        raise run.statement.error(parsed.query.start, f"column {twice[0]} stands twice")
    return _assigned(run, frame, names, wanted, static, by_name=True)


def _spelled(given: st.DataType, wanted: st.DataType, name: str, *, by_name: bool, case_sensitive: bool) -> st.DataType:
    """Return a given type with the fields of structs called after those of the wanted one that they are stored in.

    Raises
    ------
    ValidationError
        If values of the one type are not stored in columns of the other.

    """

    def inner(given: st.DataType, wanted: st.DataType, part: str) -> st.DataType:
        return _spelled(given, wanted, f"{name}.{part}", by_name=by_name, case_sensitive=case_sensitive)

    if isinstance(given, st.ArrayType) and isinstance(wanted, st.ArrayType):
        return st.ArrayType(inner(given.elementType, wanted.elementType, "element"), given.containsNull)
    if isinstance(given, st.MapType) and isinstance(wanted, st.MapType):
        key = inner(given.keyType, wanted.keyType, "key")
        return st.MapType(key, inner(given.valueType, wanted.valueType, "value"), given.valueContainsNull)
    if isinstance(given, st.StructType) and isinstance(wanted, st.StructType):
        own = wanted.fields
        if by_name:
            spell = str if case_sensitive else str.lower
            found = {spell(one.name): one for one in wanted.fields}
            own = [found[spell(one.name)] for one in given.fields if spell(one.name) in found]
        if not len(own) == len(given.fields) == len(wanted.fields) == len({one.name for one in own}):
            _misfit(given, wanted, name)
        return st.StructType(
            [
                st.StructField(field.name, inner(one.dataType, field.dataType, field.name), one.nullable)
                for one, field in zip(given.fields, own, strict=True)
            ]
        )
    _require_stored(given, wanted, name)
    return given


def assigned(column: Column, given: st.DataType, wanted: st.DataType, name: str) -> Column:
    """Return a column as the type of the table, as Spark's ANSI store assignment has it.

    Raises
    ------
    ValidationError
        If values of the one type are not stored in columns of the other.

    """
    if given == wanted or isinstance(given, st.NullType):
        return column.cast(wanted)
    _require_stored(given, wanted, name)
    if _family(given) == _family(wanted) == "number" and not _holds(given, wanted):
        return _checked(column, wanted, name)
    return column.cast(wanted)


def _require_stored(given: st.DataType, wanted: st.DataType, name: str) -> None:
    if given == wanted or isinstance(given, st.NullType):
        return
    if not isinstance(wanted, st.AtomicType) or not isinstance(given, st.AtomicType):
        _misfit(given, wanted, name)
    source, target = _family(given), _family(wanted)
    if target not in {"string", source} and {source, target} != {"date", "timestamp"}:
        _misfit(given, wanted, name)


def _misfit(given: st.DataType, wanted: st.DataType, name: str) -> NoReturn:
    raise ValidationError(
        f"column {name!r}: {given.simpleString()} is not stored as {wanted.simpleString()}; use CAST in the query"
    )


def _family(kind: st.DataType) -> str:
    if isinstance(kind, st.NumericType):
        return "number"
    if isinstance(kind, st.TimestampType | st.TimestampNTZType):
        return "timestamp"
    if isinstance(kind, st.StringType | st.CharType | st.VarcharType):
        return "string"
    return kind.typeName()


def _holds(given: st.DataType, wanted: st.DataType) -> bool:
    """Return whether a type of numbers holds all those of another, or loses digits only."""
    if isinstance(given, st.DecimalType) and isinstance(wanted, st.DecimalType):
        return wanted.precision - wanted.scale >= given.precision - given.scale and wanted.scale >= given.scale
    if isinstance(wanted, st.DecimalType) or isinstance(given, st.DecimalType):
        return isinstance(wanted, st.FloatType | st.DoubleType)
    return _NUMBERS.index(given.simpleString()) < _NUMBERS.index(wanted.simpleString())


def _checked(column: Column, wanted: st.DataType, name: str) -> Column:
    """Return a column as a type that may be too small for a value, which then fails the statement."""
    stored = column.try_cast(wanted)
    text = F.concat(
        F.lit(f"column {name}: the value "), column.cast("string"), F.lit(f" does not fit {wanted.simpleString()}")
    )
    return F.when(column.isNull() | stored.isNotNull(), stored).otherwise(F.raise_error(text).cast(wanted))
