"""What a name in a query reads: a table, a metadata table or changes, all of it or what the query needs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import AtomicType, DecimalType, NullType, StringType

from icefield.errors import InvalidArgumentError, NotFoundError, UnsupportedFeatureError
from icefield.spark.columns.names import quoted
from icefield.spark.columns.types import spark_schema
from icefield.spark.reads.changes import changes
from icefield.spark.reads.inspecting import read_inspect
from icefield.spark.reads.reading import chosen as chosen_scan
from icefield.spark.reads.reading import of_scan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

    from icefield.expressions import Expression
    from icefield.scan import TableScan
    from icefield.spark.sql.catalogs import Selected, Target
    from icefield.spark.sql.pruning import Needed
    from icefield.table import Table
    from icefield.view import View

__all__ = ["PLACES", "Source", "metadata_columns", "view_of", "with_columns"]

#: Columns that tell the place of a row; of tables of version 3 there are `_IDS` too.
PLACES = ("_spec_id", "_partition", "_file", "_pos", "_deleted")
_IDS = ("_row_id", "_last_updated_sequence_number")
_WITH_IDS = 3


def metadata_columns(table: Table) -> tuple[str, ...]:
    """Return the metadata columns that a query of a table may name, but those that are columns of the table."""
    own = {field.name.lower() for field in table.schema().fields}
    there = (*PLACES[:-1], *(_IDS if table.format_version >= _WITH_IDS else ()))
    return tuple(name for name in there if name not in own)


#: Types of Spark whose values fit into each of the wider ones that follow.
_WIDER = (
    ("tinyint", "smallint", "int", "bigint", "float", "double"),
    ("date", "timestamp"),
    ("date", "timestamp_ntz"),
)
#: Digits before the point of integers, as decimals.
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}


def view_of(target: Target) -> View | None:
    """Load the view of this name; None if there is no such view."""
    try:
        return target.catalog.load_view(target.identifier)
    except (NotFoundError, UnsupportedFeatureError):
        return None


def with_columns(found: DataFrame, view: View) -> DataFrame:
    """Return the rows of a view's query with the names and types of the view's columns.

    Raises
    ------
    InvalidArgumentError
        If there are more or fewer of them, or a type does not fit.

    """
    wanted = spark_schema(view.schema()).fields
    if len(wanted) != len(found.columns):
        raise InvalidArgumentError(f"view {view}: its query has {len(found.columns)} columns, expected {len(wanted)}")
    # Names may be there twice.
    numbered = found.toDF(*[f"c{place}" for place in range(len(wanted))])
    columns = []
    for place, (had, one) in enumerate(zip(found.schema.fields, wanted, strict=True)):
        column = F.col(f"c{place}")
        if had.dataType.simpleString() != one.dataType.simpleString():
            if not _fits(had.dataType, one.dataType):
                raise InvalidArgumentError(
                    f"view {view}: its query has {had.dataType.simpleString()} for column {one.name}, which was "
                    f"{one.dataType.simpleString()} when the view was created: replace the view"
                )
            column = column.cast(one.dataType)
        comment = one.metadata.get("comment")
        columns.append(column.alias(one.name, metadata={"comment": comment}) if comment else column.alias(one.name))
    return numbered.select(*columns)


def _fits(found: DataType, wanted: DataType) -> bool:
    """Return whether all values of a type are of another: what Spark casts in the queries of views."""
    one, other = found.simpleString(), wanted.simpleString()
    if isinstance(found, NullType) or (isinstance(wanted, StringType) and isinstance(found, AtomicType)):
        return True
    if isinstance(wanted, DecimalType):
        whole = wanted.precision - wanted.scale
        if isinstance(found, DecimalType):
            return found.scale <= wanted.scale and found.precision - found.scale <= whole
        return one in _DIGITS and _DIGITS[one] <= whole
    return any(one in row and other in row and row.index(one) < row.index(other) for row in _WIDER)


@dataclass(frozen=True)
class Source:
    """A table or a part of it at a moment."""

    spark: SparkSession
    chosen: Selected
    as_of: int | str | datetime | None
    #: Metadata columns that the rows have after their own.
    places: tuple[str, ...] = ()

    @cached_property
    def scan(self) -> TableScan | None:
        """The scan of all rows; None for metadata tables and changes."""
        return None if self.chosen.metadata else self._scan()

    def _scan(self, row_filter: Expression | None = None, columns: list[str] | None = None) -> TableScan:
        taken = ["*", *self.places] if columns is None and self.places else columns
        return chosen_scan(self.spark, self.chosen.table, row_filter, taken, self.as_of, catalog=None, properties={})

    def star(self, qualifier: str) -> str:
        """Return the columns that ``*`` stands for, without metadata columns, all but the first qualified."""
        fields = [] if self.scan is None else self.scan.projection().fields
        return f", {qualifier}".join(quoted(field.name) for field in fields if field.name not in self.places)

    def read(self, need: Needed | None = None) -> DataFrame:
        """Read it; columns that are not needed are null in all rows."""
        if self.chosen.metadata == "changes":
            return changes(self.spark, self.chosen.table)
        if self.chosen.metadata is not None:
            return read_inspect(self.spark, self.chosen.table, self.chosen.metadata, as_of=self.as_of)
        whole = self._scan() if self.scan is None else self.scan
        if need is None:
            return of_scan(self.spark, whole)
        fields = spark_schema(whole.projection()).fields
        names = [one.name for one in fields]
        taken = names if need.columns is None else [name for name in names if name in need.columns] or names[:1]
        if len({name.lower() for name in names}) < len(names) or any("." in name for name in names):
            taken = names  # what a name means is not sure
        found = of_scan(self.spark, self._scan(need.filter, None if taken == names else taken))
        if taken == names:
            return found
        columns = [
            F.col(quoted(one.name)) if one.name in taken else F.lit(None).cast(one.dataType).alias(one.name)
            for one in fields
        ]
        return found.select(*columns)
