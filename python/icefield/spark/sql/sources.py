"""What a name in a query reads: a table, a metadata table or changes, all of it or what the query needs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from icefield.spark.columns.names import quoted
from icefield.spark.columns.types import spark_schema
from icefield.spark.reads.changes import changes
from icefield.spark.reads.inspecting import read_inspect
from icefield.spark.reads.reading import chosen as chosen_scan
from icefield.spark.reads.reading import of_scan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from icefield.expressions import Expression
    from icefield.scan import TableScan
    from icefield.spark.sql.catalogs import Selected
    from icefield.spark.sql.pruning import Needed

__all__ = ["Source"]


@dataclass(frozen=True)
class Source:
    """A table or a part of it at a moment."""

    spark: SparkSession
    chosen: Selected
    as_of: int | str | datetime | None

    @cached_property
    def scan(self) -> TableScan | None:
        """The scan of all rows; None for metadata tables and changes."""
        return None if self.chosen.metadata else self._scan()

    def _scan(self, row_filter: Expression | None = None, columns: list[str] | None = None) -> TableScan:
        return chosen_scan(self.spark, self.chosen.table, row_filter, columns, self.as_of, catalog=None, properties={})

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
