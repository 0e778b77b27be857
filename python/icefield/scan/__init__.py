"""Scans: reading some columns and rows of a table, at some snapshot."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, overload
from weakref import ref

from icefield._core import EngineRead, Plan, Scan, TableState
from icefield._inputs.secrets import redacted_url
from icefield._outputs.dataset import dataset_of
from icefield._outputs.html import html_of
from icefield._outputs.old_schemas import of_its_time
from icefield._outputs.plans import plan_text
from icefield._outputs.polars import lazy_frame
from icefield._outputs.printable import printable
from icefield._outputs.progress import Progress, is_shown, showing
from icefield._support.optional import require
from icefield.errors import ArgumentTypeError, InvalidArgumentError, ValidationError
from icefield.expressions import And
from icefield.scan.options import expression_of, fields_of, reading_of
from icefield.scan.plan import FileScanTask, ScanPlan

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import pyarrow.dataset as ds
    import ray.data
    from pyspark.sql import DataFrame, SparkSession
    from typing_extensions import Self

    from icefield._core import ArrowTable
    from icefield.arrow import ArrowSchemaExportable
    from icefield.distributed import ReadTask, Storage
    from icefield.expressions import RowFilter
    from icefield.metadata import Snapshot, TableMetadata
    from icefield.schema import Schema

__all__ = ["ColumnBounds", "DataScan", "FileScanTask", "ScanPlan", "TableScan"]


@dataclass(frozen=True, slots=True)
class ColumnBounds:
    """Minimum and maximum of a column; both ``None`` if all values are null, or where `reason` is set."""

    lower: Any
    upper: Any
    #: Why metadata do not determine the values; ``None`` if they do, exactly.
    reason: str | None = None

    @property
    def exact(self) -> bool:
        """Whether `lower` and `upper` are values of the column, as reading all rows would find them."""
        return self.reason is None


class PlanReporter(Protocol):
    """What takes the counts of a plan."""

    def __call__(self, scan: DataScan, counts: Mapping[str, int], nanoseconds: int, /) -> None:
        """Take them; it raises nothing."""


class Served(NamedTuple):
    """The files of a scan, and the storage that they are read from."""

    scan: Scan
    storage: Storage


class ScanPlanner(Protocol):
    """What plans the scans of a table in place of its manifests."""

    def __call__(self, scan: DataScan, core: Scan, stats: tuple[str, ...], /) -> Served:
        """Plan a scan, with the metrics of some columns."""


@dataclass(frozen=True, repr=False)
class TableScan(ABC):
    """A scan of a table; nothing is read before one of the ``to_`` methods is called.

    Any library that supports ``__arrow_c_stream__`` reads a scan directly: ``polars.DataFrame(scan)``.
    """

    _state: TableState
    row_filter: RowFilter | None = None
    selected_fields: tuple[str, ...] = ("*",)
    case_sensitive: bool = True
    limit: int | None = None
    #: Arguments of `plan_tasks` that go before the table's ``read.split.*`` properties.
    split: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        # Invalid columns, filters and snapshots raise here, not on first read.
        try:
            _ = self._scan
        except OverflowError as error:
            msg = "limit must not be negative, and limit, snapshot ids and times must fit into 64-bit signed integers"
            raise InvalidArgumentError(msg) from error

    @property
    @abstractmethod
    def _scan(self) -> Scan: ...

    def _read(self, stats: tuple[str, ...] = ()) -> Scan:  # noqa: ARG002 - of scans that a server plans
        """Return the core's scan of the files to read; those with metrics of these columns."""
        return self._scan

    @property
    @abstractmethod
    def _moment(self) -> str: ...

    # What is read

    def filter(self, expr: RowFilter) -> Self:
        """Also apply this filter, as text or as an expression."""
        # Each is parsed separately, so that no text can change the other.
        both = expr if self.row_filter is None else And(expression_of(self.row_filter), expression_of(expr))
        return replace(self, row_filter=both)

    def select(self, *field_names: str) -> Self:
        """Read only these columns, and of those that were selected before only these; ``"a.b"`` names a nested one."""
        if odd := [name for name in field_names if not isinstance(name, str)]:
            raise ArgumentTypeError(f"select: expected names, as in select('a', 'b'), got {odd[0]!r:.100}")
        if "*" not in self.selected_fields:
            field_names = tuple(name for name in field_names if name in self.selected_fields)
        return replace(self, selected_fields=field_names)

    def update(self, **overrides: Any) -> Self:
        """Return the scan with other values of its attributes, such as ``row_filter`` and ``limit``."""
        return replace(self, **overrides)

    def with_case_sensitive(self, case_sensitive: bool = True) -> Self:
        """Set whether column names are case-sensitive."""
        return replace(self, case_sensitive=case_sensitive)

    def projection(self) -> Schema:
        """Return the schema of the selected columns."""
        return self._scan.schema

    @property
    def metadata(self) -> TableMetadata:
        """The metadata of the table that is read."""
        return self._state.metadata

    @property
    def storage(self) -> Storage:
        """The files of the table."""
        return self._state.storage

    @property
    def is_planned_by_server(self) -> bool:
        """Whether the server of the catalog plans the scan, instead of this library by the manifests."""
        return False

    # Reading

    def to_arrow_batch_reader(
        self,
        dictionary_columns: Iterable[str] | str = (),
        *,
        batch_size: int | None = None,
        memory_limit: int | None = None,
        progress: bool = False,
        schema: ArrowSchemaExportable | None = None,
    ) -> pa.RecordBatchReader:
        """Read as a stream of batches, in bounded memory.

        Parameters
        ----------
        dictionary_columns
            Columns of text or bytes to return as Arrow dictionaries, which take little memory if values repeat.
        batch_size
            Maximum number of rows of a batch; otherwise 65,536.
        memory_limit
            Approximate number of bytes for batches that are decoded and wait, and for what they are decoded from:
            batches get smaller, and fewer files are read at a time.
        progress
            Whether to show progress on standard error, if it is a terminal or a notebook.
        schema
            The exact Arrow types to read the columns as; anything with ``__arrow_c_schema__``.

        """
        reading = reading_of(batch_size, memory_limit, dictionary_columns)
        if not (progress and is_shown()):
            return self._read().stream(**reading, schema=schema).to_pyarrow()
        counted = Progress()
        return showing(self._read().stream(**reading, schema=schema, progress=counted).to_pyarrow(), counted)

    def to_arrow(
        self,
        dictionary_columns: Iterable[str] | str = (),
        *,
        batch_size: int | None = None,
        memory_limit: int | None = None,
        progress: bool = False,
    ) -> pa.Table:
        """Read all rows; parameters are those of `to_arrow_batch_reader`."""
        reading = reading_of(batch_size, memory_limit, dictionary_columns)
        if progress and is_shown():
            return self.to_arrow_batch_reader(**reading, progress=True).read_all()
        return self._read().collect(**reading).to_pyarrow()

    def to_pandas(
        self,
        *,
        memory_limit: int | None = None,
        dictionary_columns: Iterable[str] | str = (),
        progress: bool = False,
        **options: Any,
    ) -> pd.DataFrame:
        """Read all rows.

        Parameters
        ----------
        memory_limit, dictionary_columns, progress
            As in `to_arrow_batch_reader`; dictionaries become categories.
        **options
            Those of ``pyarrow.Table.to_pandas``.

        """
        require("pandas")
        rows = self.to_arrow(memory_limit=memory_limit, dictionary_columns=dictionary_columns, progress=progress)
        frame: pd.DataFrame = rows.to_pandas(**options)
        return frame

    @overload
    def to_polars(self, *, lazy: Literal[False] = ...) -> pl.DataFrame: ...

    @overload
    def to_polars(self, *, lazy: Literal[True]) -> pl.LazyFrame: ...

    def to_polars(self, *, lazy: bool = False) -> pl.DataFrame | pl.LazyFrame:
        """Read all rows into a frame of Polars.

        Parameters
        ----------
        lazy
            Return a lazy frame instead: nothing is read before it is collected, and then no more columns, files and row
            groups than the query needs.

        """
        if lazy:
            return lazy_frame(lambda: self)
        frame: pl.DataFrame = require("polars").DataFrame(self._read().collect())
        return frame

    def to_duckdb(self, table_name: str, connection: Any = None) -> duckdb.DuckDBPyConnection:
        """Register the rows in DuckDB under this name, in a new connection unless one is passed.

        Each query of the table reads the columns, files and row groups that it needs.
        """
        if not table_name:
            msg = "table_name must not be empty"
            raise InvalidArgumentError(msg)
        opened: Any = require("duckdb").connect() if connection is None else connection
        opened.register(table_name, self.to_pyarrow_dataset())
        return opened  # type: ignore[no-any-return]

    def to_ray(self) -> ray.data.Dataset:
        """Read all rows into a dataset of Ray; workers read by `tasks` without this process."""
        return require("ray.data").from_arrow(self.to_arrow())

    def to_pyarrow_dataset(self) -> ds.Dataset:
        """Return the rows as a dataset of pyarrow, for libraries that push columns and filters into it.

        It has ``schema``, ``scanner``, ``to_table``, ``to_batches``, ``head`` and ``count_rows``, and no methods about
        files.
        """
        return dataset_of(self)

    def empty(self) -> ArrowTable:
        """Return an Arrow table of the columns that are read, without rows."""
        return self._scan.empty()

    def only(self, names: Iterable[str]) -> Self:
        """Read only those of the selected columns that have these names, in the same order."""
        wanted = set(names)
        columns = [field.name for field in self.projection().fields]
        # Parts of structs are read as they were asked for.
        if any(name != "*" and name not in columns for name in self.selected_fields) or any(
            "." in name for name in wanted
        ):
            return self
        return replace(self, selected_fields=tuple(name for name in columns if name in wanted))

    def at_most(self, rows: int) -> Self:
        """Read at most this many rows, and no more than the limit that the scan has."""
        return replace(self, limit=rows if self.limit is None else min(rows, self.limit))

    def to_spark(self, spark: SparkSession, *, native: bool = True, memory_limit: int | None = None) -> DataFrame:
        """Return the rows as a DataFrame of this session; the options are those of `icefield.spark.read`."""
        # `icefield.spark` imports this module, so it is loaded by name, as any package that may be missing.
        reading = require("icefield.spark.reads.reading")
        rows: DataFrame = reading.of_scan(spark, self, native=native, memory_limit=memory_limit)
        return rows

    def count(self) -> int:
        """Count the rows.

        Files are read only where metadata are not enough: where a residual filter is left, and where position or
        equality delete files apply. The counts of deletion vectors are known.
        """
        return self._read().count()

    def exists(self) -> bool:
        """Return whether there is any row, reading no more than needed to find one."""
        return replace(self, limit=1).count() > 0

    def bounds(self, column: str) -> ColumnBounds:
        """Return the minimum and the maximum of a column without reading a data file.

        Parameters
        ----------
        column
            A primitive column, with dots between the levels of structs.

        Returns
        -------
        ColumnBounds
            Exact values, or the reason why metadata do not determine them: a file without metrics, rows deleted, a
            filter that partitions do not decide, a type whose bounds writers truncate (``string``, ``binary``,
            ``fixed``), floats that may be NaN, timestamps in ORC files. Read the column instead.

        Raises
        ------
        ValueError
            If there is no such column, or it is not primitive.

        """
        pair, reason = self._read((column,)).bounds(column)
        lower, upper = pair.to_pyarrow().to_pylist()
        return ColumnBounds(lower, upper, reason)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Read as a stream of batches."""
        return self._read().stream().__arrow_c_stream__(requested_schema)

    # Planning

    @property
    def table_metadata(self) -> TableMetadata:
        """The metadata of the table that is read; the name that PyIceberg has for it."""
        return self.metadata

    def plan_files(self, *, metrics: bool | Iterable[str] = False) -> ScanPlan:
        """Plan which files contain matching rows.

        The plan has the files as columns, and is a sequence of `FileScanTask`, made when they are asked for.

        Parameters
        ----------
        metrics
            ``True`` adds the metrics of all columns to ``ScanPlan.to_arrow``, maps by field id as manifests have them
            (bounds in binary single-value form); names of columns add theirs alone.

        """
        wanted = metrics if isinstance(metrics, bool) else fields_of(metrics)
        names = None if isinstance(wanted, bool) else list(wanted)
        stats = tuple(self.metadata.schema().column_names) if wanted is True else tuple(names or ())
        plan = self._read(stats).plan(metrics=wanted is True, metrics_of=names)
        return ScanPlan(plan, (self, wanted))

    def plan_batches(self) -> pa.RecordBatchReader:
        """Plan which files contain matching rows: one batch per manifest, columns as in ``ScanPlan.to_arrow``.

        Memory is bounded, however many files the table has: delete files are read before the first batch, data files
        while batches are taken.
        """
        return self._read().plan_stream().to_pyarrow()

    def plan_tasks(
        self,
        split_size: int | None = None,
        *,
        lookback: int | None = None,
        open_file_cost: int | None = None,
        parallelism: int | None = None,
    ) -> pa.Table:
        """Split files at their split offsets and combine the pieces into tasks, as the Java library does.

        Parameters
        ----------
        split_size
            Bytes of a task; otherwise the table's ``read.split.target-size`` (128 MiB).
        lookback
            Number of tasks that can take more pieces at a time; otherwise ``read.split.planning-lookback`` (10).
        open_file_cost
            Minimum number of bytes that a piece counts for; otherwise ``read.split.open-file-cost`` (4 MiB).
        parallelism
            Number of tasks that run at a time. Where tasks of the table's size would be fewer, they become smaller,
            down to 16 MiB, as in Java's connector for Spark; not with ``split_size`` or
            ``read.split.adaptive-size.enabled=false``.

        Returns
        -------
        pyarrow.Table
            One row per piece: number of its task, position of its file in ``plan_files().to_arrow()``, path, start,
            length.

        """
        sizes = {
            "split_size": split_size,
            "lookback": lookback,
            "open_file_cost": open_file_cost,
            "parallelism": parallelism,
        }
        return self._read().plan().tasks(**self._split(sizes)).to_pyarrow()

    def tasks(
        self,
        split_size: int | None = None,
        *,
        lookback: int | None = None,
        open_file_cost: int | None = None,
        parallelism: int | None = None,
    ) -> list[ReadTask]:
        """Split the scan into tasks that workers read independently (`icefield.distributed`).

        Parameters are those of `plan_tasks`, which shows the same tasks as a table.

        Returns
        -------
        list of ReadTask
            Tasks that pickle. ``task.rows(table.storage)`` is an Arrow stream of the rows of one.

        Raises
        ------
        InvalidArgumentError
            If the scan has a limit: no task knows how many rows the others have.

        """
        plan = self.plan_files()
        return plan.tasks(split_size, lookback=lookback, open_file_cost=open_file_cost, parallelism=parallelism)

    def _tasks(self, plan: Plan, files: Iterable[int] | None, sizes: Mapping[str, int | None]) -> list[ReadTask]:
        if self.limit is not None:
            raise InvalidArgumentError("a scan with a limit cannot be split into tasks; apply the limit to their rows")
        return self._scan.tasks(plan, places=None if files is None else set(files), **self._split(sizes))

    def _split(self, sizes: Mapping[str, int | None]) -> dict[str, int]:
        return {**dict(self.split), **{name: value for name, value in sizes.items() if value is not None}}

    def engine_read(self) -> EngineRead:
        """Return how an engine's own Parquet reader reads the columns of this scan (`ScanPlan.obstacles`)."""
        return self._scan.engine_read()

    def explain(self) -> str:
        """Describe what is read and what is skipped."""
        report = plan_text(self._read().plan().report).replace("\n", "\n  ")
        return f"{self}\n  {report}"

    # How it looks

    @property
    def _title(self) -> str:
        return printable(f"Scan of {redacted_url(self._state.location)}, {self._moment}")

    def _parts(self) -> dict[str, str]:
        wanted = {
            "columns": ", ".join(field.name for field in self.projection().fields),
            "filter": "none" if self.row_filter is None else str(self.row_filter),
        }
        if self.limit is not None:
            wanted["limit"] = str(self.limit)
        return {name: printable(text) for name, text in wanted.items()}

    def __getstate__(self) -> dict[str, Any]:
        # The core's scan is rebuilt from the arguments.
        return {name: value for name, value in vars(self).items() if name not in ("_scan", "reporter", "whole")}

    def __repr__(self) -> str:
        return "\n".join([self._title, *(f"  {f'{name}:':<14}{text}" for name, text in self._parts().items())])

    def _repr_html_(self) -> str:
        return html_of(self._title, self._parts())


@dataclass(frozen=True, repr=False)
class DataScan(TableScan):
    """A scan of one snapshot of a table."""

    snapshot_id: int | None = None
    as_of_ms: int | None = None
    ref: str | None = None
    #: Called with this scan, the counts of its plan and the nanoseconds that planning took; it is not pickled.
    reporter: PlanReporter | None = field(default=None, repr=False, compare=False)
    #: Plans this scan in place of the manifests; such a scan is not pickled.
    planner: ScanPlanner | None = field(default=None, repr=False, compare=False)
    #: Loads the snapshots that the state does not have; None if it has all.
    whole: Callable[[], TableState] | None = field(default=None, repr=False, compare=False)

    def update(self, **overrides: Any) -> Self:
        """Return the scan with other values of its attributes, such as ``row_filter`` and ``limit``."""
        if self.whole is not None and {"snapshot_id", "as_of_ms"} & set(overrides):
            overrides = {"_state": self.whole(), "whole": None, **overrides}
        return replace(self, **overrides)

    @property
    def metadata(self) -> TableMetadata:
        """The metadata of the table that is read."""
        return (self._state if self.whole is None else self.whole()).metadata

    @cached_property
    def _scan(self) -> Scan:
        try:
            return Scan(
                self._state,
                row_filter=self.row_filter,
                selected_fields=list(self.selected_fields),
                case_sensitive=self.case_sensitive,
                snapshot_id=self.snapshot_id,
                as_of_ms=self.as_of_ms,
                reference=self.ref,
                limit=self.limit,
                **self._observed(),
            )
        except ValidationError as error:
            raise of_its_time(error, self.metadata, self._chosen()) from None

    @cached_property
    def _served(self) -> dict[tuple[str, ...], Served]:
        return {}

    def _planned(self, planner: ScanPlanner, stats: tuple[str, ...]) -> Served:
        if (found := self._served.get(stats)) is None:
            found = self._served[stats] = planner(self, self._scan, stats)
        return found

    def _read(self, stats: tuple[str, ...] = ()) -> Scan:
        return self._scan if self.planner is None else self._planned(self.planner, stats).scan

    @property
    def storage(self) -> Storage:
        """The files that are read; of a scan that the server plans, with the credentials of the plan."""
        if self.planner is None:
            return self._state.storage
        return (next(iter(self._served.values()), None) or self._planned(self.planner, ())).storage

    @property
    def is_planned_by_server(self) -> bool:
        """Whether the server of the catalog plans the scan, instead of this library by the manifests."""
        return self.planner is not None

    def __getstate__(self) -> dict[str, Any]:
        if self.planner is not None:
            raise InvalidArgumentError("a scan that the server plans cannot be pickled: pickle its tasks, scan.tasks()")
        return super().__getstate__()

    def _chosen(self) -> Snapshot | None:
        """Return the snapshot that was chosen in some way."""
        if self.snapshot_id is not None:
            return self.metadata.snapshot_by_id(self.snapshot_id)
        if self.as_of_ms is not None:
            return self.metadata.snapshot_as_of(self.as_of_ms)
        return None if self.ref is None else self.metadata.snapshot_by_name(self.ref)

    @property
    def _moment(self) -> str:
        return "current snapshot" if self._scan.snapshot_id is None else f"snapshot {self._scan.snapshot_id}"

    def _observed(self) -> dict[str, Any]:
        """Return the argument of the core's scan with the function that gets the counts of each plan."""
        if (reporter := self.reporter) is None:
            return {}
        # The core's scan has it, and this scan has that one: neither would ever be freed.
        known = ref(self)

        def observe(counts: Mapping[str, int], nanoseconds: int) -> None:
            if (scan := known()) is not None:
                reporter(scan, counts, nanoseconds)

        return {"observer": observe}

    def snapshot(self) -> Snapshot | None:
        """Return the snapshot that is read; ``None`` if the table has none."""
        snapshot_id = self._scan.snapshot_id
        return None if snapshot_id is None else self._state.metadata.snapshot_by_id(snapshot_id)

    def use_ref(self, name: str) -> DataScan:
        """Read the snapshot that a branch or tag names.

        Raises
        ------
        InvalidArgumentError
            If the scan is of a snapshot by its id or a time.

        """
        if self.snapshot_id is not None or self.as_of_ms is not None:
            chosen = f"snapshot {self.snapshot_id}" if self.as_of_ms is None else f"time {self.as_of_ms}"
            raise InvalidArgumentError(f"the scan is of {chosen}: it cannot be of the branch or tag {name!r} too")
        return replace(self, ref=name)
