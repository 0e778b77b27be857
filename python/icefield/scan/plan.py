"""What a scan reads: files, as columns and as objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, overload

from icefield._outputs.plans import plan_facts, plan_html
from icefield.expressions import AlwaysTrue, Expression, from_json
from icefield.manifests import DataFile, DeleteFile

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from icefield._core import EngineRead, Plan
    from icefield.distributed import ReadTask, Storage
    from icefield.metadata import TableMetadata

__all__ = ["FileScanTask", "ScanPlan"]

#: Files that are turned into objects at a time.
_CHUNK = 1024

_METRICS = (
    "column_sizes",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
)


@dataclass(frozen=True)
class FileScanTask:
    """A data file that a scan reads, and what is left to do with its rows."""

    #: The data file; metrics are known where the plan has them (``plan_files(metrics=True)``).
    file: DataFile
    #: The files whose deletes apply to it.
    delete_files: frozenset[DeleteFile] = frozenset()
    #: What rows must match: the filter without what the partition of the file has decided.
    residual: Expression = field(default_factory=AlwaysTrue)


class _Planned(Protocol):
    """The scan that made a plan."""

    @property
    def metadata(self) -> TableMetadata: ...

    @property
    def storage(self) -> Storage: ...

    def plan_files(self, *, metrics: bool | Iterable[str] = ...) -> ScanPlan: ...

    def _tasks(self, plan: Plan, files: Iterable[int] | None, sizes: Mapping[str, int | None]) -> list[ReadTask]: ...


class ScanPlan(Sequence[FileScanTask]):
    """The files that a scan reads: columns by `to_arrow`, and a sequence of tasks, made when asked for.

    >>> [task.file.file_path for task in table.scan().plan_files()]  # doctest: +SKIP
    """

    def __init__(self, plan: Plan, of: tuple[_Planned, bool | tuple[str, ...]]) -> None:
        self._plan = plan
        self._of = of

    def __reduce__(self) -> tuple[object, ...]:
        # The scan is of one metadata file: it plans the same files wherever it is unpickled.
        return _planned, self._of

    @property
    def storage(self) -> Storage:
        """The storage that the tasks of the plan are read from."""
        return self._of[0].storage

    def to_arrow(self) -> pa.Table:
        """Return one row per data file: path, partition, counts, deletes, residual filter.

        ``deletes`` is a list of structs. Where hundreds of delete files apply to each of hundreds of data files, it is
        a list view of dictionary-encoded structs with the same values, which data files share.
        """
        return self._plan.files().to_pyarrow()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return one row per data file."""
        return self._plan.files().__arrow_c_stream__(requested_schema)

    def tasks(
        self,
        split_size: int | None = None,
        *,
        lookback: int | None = None,
        open_file_cost: int | None = None,
        parallelism: int | None = None,
        files: Iterable[int] | None = None,
    ) -> list[ReadTask]:
        """Split the files into tasks that workers read; like `TableScan.tasks`, without planning again.

        Parameters
        ----------
        split_size, lookback, open_file_cost, parallelism
            As in `TableScan.plan_tasks`.
        files
            Positions in `to_arrow` of the files to read; all by default.

        """
        sizes = {
            "split_size": split_size,
            "lookback": lookback,
            "open_file_cost": open_file_cost,
            "parallelism": parallelism,
        }
        return self._of[0]._tasks(self._plan, files, sizes)  # noqa: SLF001 - the scan that made this plan

    def obstacles(self, read: EngineRead) -> pa.Table:
        """Return why an engine does not read files with its own Parquet reader; a row a file of `to_arrow`.

        Parameters
        ----------
        read
            What `TableScan.engine_read` returned. The plan must have the metrics of its ``partition_columns``.

        Returns
        -------
        pyarrow.Table
            ``kind``, a word or two (``deletes``, ``format``, ``partition value``, ...), and ``obstacle``, the same in
            full; both null for a file that such a reader may read.

        """
        return self._plan.obstacles(read).to_pyarrow()

    def skippable_by(self, field_ids: Iterable[int]) -> list[int]:
        """Return the given string columns whose bounds differ between files, so that a filter could skip files.

        Parameters
        ----------
        field_ids
            Ids of string columns whose metrics the plan has (``plan_files(metrics=...)``).

        """
        return self._plan.skippable_by(list(field_ids))

    @property
    def report(self) -> dict[str, int]:
        """Counts of what was scanned and skipped, by the names of the Java library's scan metrics.

        Beside those: ``cached_manifests``, manifests that the cache had, and ``manifest_bytes_read``. As there,
        ``result_delete_files`` counts a delete file once for each data file that it applies to.
        """
        return self._plan.report

    @property
    def files(self) -> Sequence[dict[str, Any]]:
        """The files as dicts, to inspect a few: ``plan.files[:5]`` makes five."""
        return _Dicts(self._rows)

    def __len__(self) -> int:
        return len(self._plan)

    @overload
    def __getitem__(self, index: int) -> FileScanTask: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[FileScanTask]: ...
    def __getitem__(self, index: int | slice) -> FileScanTask | Sequence[FileScanTask]:
        """Return the task of a file, or those of some files, by their positions."""
        chosen = range(len(self))[index]
        if isinstance(chosen, range):
            return list(self._made(chosen))
        return next(self._made(range(chosen, chosen + 1)))

    def __iter__(self) -> Iterator[FileScanTask]:
        return self._made(range(len(self)))

    def _made(self, chosen: range) -> Iterator[FileScanTask]:
        """Make tasks, some rows at a time."""
        rows = self._rows
        partitions = self._partitions
        known = self._known_deletes
        places = iter(chosen)
        while chunk := list(islice(places, _CHUNK)):
            deletes = _deletes_of(rows["deletes"], chunk)
            for row, of_row in zip(_rows_of(rows.drop_columns(["deletes"]).take(chunk)), deletes, strict=True):
                yield _task(row, partitions[row["spec_id"]], of_row, known)

    @cached_property
    def _known_deletes(self) -> _KnownDeletes:
        return {}

    @cached_property
    def _rows(self) -> pa.Table:
        return self.to_arrow()

    @cached_property
    def _partitions(self) -> dict[int, list[str | None]]:
        """The names of the values of each spec in the partition column, which has those of all specs."""
        names = {int(one.metadata[b"PARQUET:field_id"]): one.name for one in self._rows.schema.field("partition").type}
        specs = self._of[0].metadata.partition_specs
        return {spec.spec_id: [names.get(one.field_id) for one in spec.fields] for spec in specs}

    def __repr__(self) -> str:
        return f"ScanPlan({'; '.join(f'{what}: {text}' for what, text in plan_facts(self.report).items())})"

    def _repr_html_(self) -> str:
        below = f"{self._of[0].metadata.location.rstrip('/')}/"
        return plan_html(self.report, self.to_arrow(), below)


def _planned(scan: _Planned, metrics: bool | tuple[str, ...]) -> ScanPlan:
    return scan.plan_files(metrics=metrics)


def _rows_of(files: pa.Table) -> Iterator[dict[str, Any]]:
    """Return files as dicts, with residuals as expressions: most files share one."""
    columns = {name: files[name] for name in files.column_names if name != "residual"}
    values = {name: column.to_pylist() for name, column in columns.items()}
    # Arrow makes an object of each value of a dictionary, and of each list, much slower than of texts.
    texts = files["residual"].cast("string").to_pylist()
    known = {text: from_json(text) for text in set(texts)}
    values["residual"] = [known[text] for text in texts]
    return (dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True))


#: Delete files that many files share, by what makes them: their place among all, and the partition.
_KnownDeletes: TypeAlias = "dict[tuple[int, int, tuple[object, ...]], DeleteFile]"


def _deletes_of(column: pa.ChunkedArray, places: list[int]) -> Iterator[tuple[list[int | None], list[dict[str, Any]]]]:
    """Return the deletes of some files as dicts, with their places among all where files share them."""
    if not hasattr(column.type.value_type, "value_type"):
        lists = column.take(places)
        # Most files have none.
        some = any(len(chunk.flatten()) for chunk in lists.chunks)
        for deletes in lists.to_pylist() if some else [[]] * len(places):
            yield [None] * len(deletes), deletes
        return
    dicts: list[dict[str, Any]] = []
    for place in places:
        shared = column[place].values
        if not dicts and len(shared):
            dicts = shared.dictionary.to_pylist()
        indices = shared.indices.to_pylist() if len(shared) else []
        yield indices, [dicts[index] for index in indices]


class _Dicts(Sequence[dict[str, Any]]):
    """The rows of a table as dicts, made when asked for."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return int(self._rows.num_rows)

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        chosen = range(len(self))[index]
        if not isinstance(chosen, range):
            return _dicts(self._rows.slice(chosen, 1))[0]
        if chosen.step == 1:
            return _dicts(self._rows.slice(chosen.start, len(chosen)))
        return _dicts(self._rows.take(list(chosen)))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for start in range(0, len(self), _CHUNK):
            yield from _dicts(self._rows.slice(start, _CHUNK))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (list, _Dicts)) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment] # as of a list

    def __repr__(self) -> str:
        return f"<{len(self)} files as dicts>"


def _dicts(rows: pa.Table) -> list[dict[str, Any]]:
    dicts: list[dict[str, Any]] = rows.to_pylist()
    return dicts


def _task(
    row: dict[str, Any],
    names: list[str | None],
    deletes: tuple[list[int | None], list[dict[str, Any]]],
    known: _KnownDeletes,
) -> FileScanTask:
    partition = tuple(row["partition"].get(name) for name in names)
    # Metrics are there where they were asked for.
    metrics: dict[str, Any] = {name: dict(row[name]) for name in _METRICS if row.get(name) is not None}
    file = DataFile(
        file_path=row["file_path"],
        file_format=row["file_format"],
        spec_id=row["spec_id"],
        partition=partition,
        record_count=row["record_count"],
        file_size_in_bytes=row["file_size_in_bytes"],
        first_row_id=row["first_row_id"],
        **metrics,
    )
    spec_id = row["spec_id"]
    delete_files: list[DeleteFile] = []
    for place, one in zip(*deletes, strict=True):
        key = None if place is None else (place, spec_id, partition)
        made = (known.get(key) if key else None) or _delete_file(one, spec_id, partition)
        if key:
            known[key] = made
        delete_files.append(made)
    return FileScanTask(file, frozenset(delete_files), row["residual"])


def _delete_file(deletes: dict[str, Any], spec_id: int, partition: tuple[object, ...]) -> DeleteFile:
    known = {name: value for name, value in deletes.items() if name != "data_sequence_number"}
    # Deletes of another spec are those of an unpartitioned one, which apply to all partitions.
    return DeleteFile(**known, partition=partition if deletes["spec_id"] == spec_id else ())
