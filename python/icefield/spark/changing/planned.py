"""What all changes of rows have in common: the table, the branch, the plan, the rows of the plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypedDict

import pyarrow as pa
from pyspark.sql import types as st

from icefield.distributed import made_before
from icefield.errors import InvalidArgumentError, UnsupportedFeatureError
from icefield.schema import Schema
from icefield.spark.columns.letter_case import is_case_sensitive
from icefield.spark.columns.types import FIELD_ID, spark_schema
from icefield.spark.reads.reading import decoded
from icefield.spark.sessions.audit import session_audit, write_target
from icefield.spark.sessions.session import at_once
from icefield.spark.sessions.settings import write_defaults
from icefield.spark.tables.opening import opened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from icefield.distributed import RowChangePlan
    from icefield.expressions import Expression
    from icefield.spark.writes.distributing import Distribution
    from icefield.table import Table
    from icefield.table.rows import Isolation, RowMode
    from icefield.types import Type

__all__ = [
    "FILE",
    "POSITION",
    "ROW_ID",
    "ChangeOptions",
    "Target",
    "column_of",
    "held",
    "refuse_cut",
    "row_types",
    "target_rows",
]

Command = Literal["delete", "update", "merge", "overwrite"]

#: The first version of the format whose rows have ids.
_WITH_IDS = 3
#: The table whose changes are planned on the state that it has.
_HELD: ContextVar[Table | None] = ContextVar("held", default=None)
FILE, POSITION, ROW_ID = "_file", "_pos", "_row_id"


class ChangeOptions(TypedDict, total=False):
    """Keywords of all changes of rows."""

    branch: str | None
    snapshot_properties: Mapping[str, str] | None
    mode: RowMode | None
    isolation: Isolation | None
    distribution: Distribution | None
    memory_limit: int | None
    idempotency_key: str | None
    dry_run: bool


@dataclass(frozen=True)
class Target:
    """A table that is changed, and how."""

    spark: SparkSession
    table: Table
    branch: str
    #: Entries of the snapshot's summary.
    summary: Mapping[str, str]
    options: ChangeOptions
    #: Table properties that settings of the session replace.
    properties: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        spark: SparkSession,
        table: Table | str,
        options: ChangeOptions,
        catalog: str | None,
        properties: Mapping[str, str],
        arguments: Iterable[str],
    ) -> Target:
        """Open a table for a change, and refresh it unless it is `held`."""
        found = opened(table, catalog, properties, list(arguments))
        if found is not _HELD.get():
            found.refresh()
        branch, staged = write_target(found, options.get("branch"), session_audit(spark))
        session = write_defaults(spark)
        summary = {**session.summary, **(options.get("snapshot_properties") or {}), **staged}
        return cls(spark, found, branch, summary, options, session.properties(found))

    @property
    def made_before(self) -> bool:
        """Whether the change was made before, by its idempotency key."""
        return made_before(self.table.metadata, self.branch, self.options.get("idempotency_key"))

    @property
    def dry_run(self) -> bool:
        """Whether the change is only looked at."""
        return self.options.get("dry_run", False)

    @property
    def has_lineage(self) -> bool:
        """Whether rows keep their ids."""
        return self.table.metadata.format_version >= _WITH_IDS

    def plan(
        self, command: Command, row_filter: Expression | str | None, *, exact: bool, widened_by: pa.Schema | None = None
    ) -> RowChangePlan:
        """Plan the change."""
        isolation = self.options.get("isolation")
        return self.table.new_row_change(
            command,
            row_filter,
            exact=exact,
            mode=self.options.get("mode"),
            isolation=isolation,
            branch=self.branch,
            properties=self.properties,
            widened_by=widened_by,
        )


@contextmanager
def held(table: Table | None) -> Iterator[None]:
    """Plan the changes of a table on the state that it has, not on the newest one.

    So commits since then are conflicts: of a change by rows that were read from that state they may be part.
    """
    before = _HELD.set(table)
    try:
        yield
    finally:
        _HELD.reset(before)


def row_types(schema: Schema, *, lineage: bool, names: Iterable[str] | None = None) -> st.StructType:
    """Return the columns of the rows of a plan: all of the table or some, and the places of rows."""
    more = [(FILE, st.StringType()), (POSITION, st.LongType()), *([(ROW_ID, st.LongType())] if lineage else [])]
    if names is not None:
        wanted = set(names)
        schema = Schema(*(field for field in schema.fields if field.name in wanted))
    columns = spark_schema(schema).toNullable().fields
    return st.StructType([*columns, *(st.StructField(name, kind) for name, kind in more)])


def target_rows(target: Target, plan: RowChangePlan, columns: Iterable[str] | None = None) -> DataFrame:
    """Return the rows of a plan: some columns or all, the places of the rows, and their ids if they have any."""
    schema = row_types(target.table.schema(), lineage=target.has_lineage, names=columns)
    names = None if columns is None else [one.name for one in schema.fields if FIELD_ID in one.metadata]
    tasks = plan.tasks(names, parallelism=at_once(target.spark))
    return decoded(target.spark, tasks, target.table.storage, schema, target.options.get("memory_limit"))


def refuse_cut(schema: Schema, kept: Iterable[str]) -> None:
    """Refuse to write columns again whose values Spark cannot hold."""
    names = set(kept)
    for one in schema.fields:
        if one.name in names and _has_nanoseconds(one.field_type):
            raise UnsupportedFeatureError(
                f"column {one.name}: Spark has no nanoseconds, so rows that keep their values of {one.field_type} "
                "would lose some: change them by icefield.Table, in the driver"
            )


def _has_nanoseconds(kind: Type) -> bool:
    is_one = str(kind) in {"timestamp_ns", "timestamptz_ns"}
    return is_one or any(_has_nanoseconds(field.field_type) for field in kind.fields)


def column_of(name: str, names: Iterable[str], spark: SparkSession, what: str) -> str:
    """Return the column that a name means, in the session's way.

    Raises
    ------
    InvalidArgumentError
        If there is no such column; ``what`` names the change.

    """
    known = list(names)
    if name in known:
        return name
    if not is_case_sensitive(spark):
        alike = [one for one in known if one.lower() == name.lower()]
        if len(alike) == 1:
            return alike[0]
    raise InvalidArgumentError(f"{what}: the table has no column {name!r} (there are: {', '.join(known)})")
