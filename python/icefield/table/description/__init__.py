"""A table as its metadata describe it: schemas, partition specs, snapshots, properties; and its printed form."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from icefield._core import Storage, TableState
from icefield._inputs.secrets import redacted_url
from icefield._outputs.html import html_of
from icefield._outputs.layout import columns_of, contents_of, partition_texts, sort_texts, time_of
from icefield._outputs.printable import printable
from icefield.errors import InvalidArgumentError
from icefield.metadata import MAIN_BRANCH, MetadataLogEntry, Snapshot, SnapshotRef
from icefield.name_mapping import NAME_MAPPING_PROPERTY, NameMapping
from icefield.table.description.history import History
from icefield.table.description.listings import References, Snapshots

if TYPE_CHECKING:
    from collections.abc import Callable

    from icefield._inputs.identifiers import Identifier
    from icefield.metadata import TableMetadata
    from icefield.partitioning import PartitionSpec
    from icefield.scan import PlanReporter, ScanPlanner
    from icefield.schema import Schema
    from icefield.sorting import SortOrder

__all__ = ["DescribesTable", "TableDescription"]


class DescribesTable(ABC):
    """What metadata say of a table, and of a branch of one."""

    #: The branch that is described and read; None for a table, where that is ``main``.
    _branch: str | None = None

    @property
    @abstractmethod
    def _now(self) -> TableState:
        """The state of the table that is described."""

    @property
    def _seen(self) -> TableState:
        """The same state, maybe without the snapshots that no branch or tag names."""
        return self._now

    def _rest_of(self, seen: TableState) -> Callable[[], TableState] | None:  # noqa: ARG002 - of tables
        """Return what gives a state with all snapshots; None if it has all."""
        return None

    @property
    def _plan_reporter(self) -> PlanReporter | None:
        """What the plans of scans are reported to."""
        return None

    @property
    def _scan_planner(self) -> ScanPlanner | None:
        """What plans scans in place of the manifests."""
        return None

    @property
    @abstractmethod
    def identifier(self) -> Identifier:
        """Namespace and name."""

    @property
    def _ref(self) -> str | None:
        """The branch to read where nothing else is named; None for the current snapshot."""
        if self._branch is None:
            return None
        refs = self._seen.metadata.refs
        if self._branch in refs:
            return self._branch
        if MAIN_BRANCH in refs:
            raise InvalidArgumentError(f"the table has no branch {self._branch!r} any more: its block has ended")
        # The first change of a table without snapshots creates the branch: until then there is nothing to read.
        return None

    @property
    def storage(self) -> Storage:
        """The storage of the table."""
        return self._seen.storage

    def location(self) -> str:
        """Return the base location, under which new files are written."""
        return self._seen.location

    @property
    def format_version(self) -> int:
        """Version of the table format."""
        return self._seen.format_version

    @property
    def table_uuid(self) -> str | None:
        """The table's uuid; old tables of version 1 may have none."""
        return self._seen.table_uuid

    def schema(self) -> Schema:
        """Return the current schema."""
        return self._seen.schema()

    def schemas(self) -> dict[int, Schema]:
        """Return all schemas by their ids."""
        return {schema.schema_id: schema for schema in self._seen.metadata.schemas}

    def spec(self) -> PartitionSpec:
        """Return the partition spec of new files."""
        return self._seen.metadata.spec()

    def specs(self) -> dict[int, PartitionSpec]:
        """Return all partition specs by their ids."""
        return self._seen.metadata.specs()

    def name_mapping(self) -> NameMapping | None:
        """Return the name mapping of files without field ids (``schema.name-mapping.default``), if there is one."""
        text = self.properties.get(NAME_MAPPING_PROPERTY)
        return None if text is None else NameMapping.from_json(text)

    def sort_order(self) -> SortOrder:
        """Return the sort order of new files."""
        return self._seen.metadata.sort_order()

    def sort_orders(self) -> dict[int, SortOrder]:
        """Return all sort orders by their ids."""
        return {order.order_id: order for order in self._seen.metadata.sort_orders}

    @property
    def properties(self) -> dict[str, str]:
        """Table properties."""
        return self._seen.metadata.properties

    def current_snapshot(self) -> Snapshot | None:
        """Return the current snapshot, if there is one."""
        metadata, ref = self._seen.metadata, self._ref
        return metadata.current_snapshot() if ref is None else metadata.snapshot_by_name(ref)

    def snapshots(self) -> list[Snapshot]:
        """Return all snapshots, oldest first."""
        return Snapshots(self._now.metadata)

    def snapshot_by_id(self, snapshot_id: int) -> Snapshot | None:
        """Return the snapshot with this id, if there is one."""
        return self._seen.metadata.snapshot_by_id(snapshot_id) or self._now.metadata.snapshot_by_id(snapshot_id)

    def snapshot_by_name(self, name: str) -> Snapshot | None:
        """Return the snapshot that a branch or tag names, if there is one."""
        return self._seen.metadata.snapshot_by_name(name)

    def metadata_log(self) -> list[MetadataLogEntry]:
        """Return the previous metadata files, oldest first."""
        return self._now.metadata.metadata_log

    def refs(self) -> dict[str, SnapshotRef]:
        """Return all branches and tags by their names."""
        return References(self._seen.metadata)

    @property
    def last_sequence_number(self) -> int:
        """The highest sequence number of any snapshot; 0 in version 1."""
        return self._seen.metadata.last_sequence_number

    def last_partition_id(self) -> int:
        """Return the highest id that a partition field has had; 999 if there was none."""
        return self._seen.metadata.last_partition_id

    @property
    @abstractmethod
    def _title(self) -> str:
        """What this is, for people."""

    def _facts(self) -> dict[str, str]:
        """Return a summary of the table, for people."""
        snapshot = self.current_snapshot()
        state = "none"
        if snapshot is not None:
            operation = snapshot.operation or "unknown operation"
            state = f"{snapshot.snapshot_id} ({operation}, {time_of(snapshot.timestamp_ms)})"
        facts = {
            "partitioned by": ", ".join(partition_texts(self.spec(), self.schema())) or "nothing",
            "sorted by": ", ".join(sort_texts(self.sort_order(), self.schema())) or "nothing",
            **contents_of(snapshot),
            "snapshot": state,
            "format": f"version {self.format_version}",
            "location": redacted_url(self.location()),
        }
        return {name: printable(text) for name, text in facts.items()}

    def __repr__(self) -> str:
        columns = "\n".join(f"  {printable(str(field))}" for field in self.schema().fields)
        facts = "\n".join(f"{f'{name}:':<16}{text}" for name, text in self._facts().items())
        return f"{self._title}(\n{columns}\n)\n{facts}"

    def _repr_html_(self) -> str:
        return html_of(self._title, self._facts(), columns_of(self.schema()))


class TableDescription(DescribesTable):
    """A table as its metadata describe it; `Table` adds scans and changes."""

    def __init__(self, identifier: Identifier, state: TableState) -> None:
        self._identifier = identifier
        self._state = state

    @property
    def _state(self) -> TableState:
        """The state with all snapshots; a catalog may have left some out."""
        if (rest := self._rest) is not None:
            whole = rest()
            # Another thread may have refreshed the table meanwhile.
            if self._rest is rest:
                self._state = whole
        return self._held

    @_state.setter
    def _state(self, state: TableState) -> None:
        self._held = state
        #: What loads the snapshots that no branch or tag names; None if nothing was left out.
        self._rest: Callable[[], TableState] | None = None

    @property
    def _now(self) -> TableState:
        return self._state

    @property
    def _seen(self) -> TableState:
        return self._held

    def _rest_of(self, seen: TableState) -> Callable[[], TableState] | None:
        return None if self._rest is None or seen is not self._held else self._rest

    def name(self) -> Identifier:
        """Namespace and name; empty for a table loaded without a catalog."""
        return self._identifier

    @property
    def identifier(self) -> Identifier:
        """Namespace and name."""
        return self._identifier

    @property
    def metadata_location(self) -> str:
        """Location of the metadata file."""
        return self._held.metadata_location

    @property
    def metadata(self) -> TableMetadata:
        """The whole metadata."""
        return self._state.metadata

    def metadata_json(self) -> str:
        """Return the whole metadata as JSON (Appendix C)."""
        return self._state.metadata_json()

    def history(self) -> History:
        """Return which snapshot became current when, oldest first; notebooks show it as a picture of all snapshots."""
        return History(self.metadata.snapshot_log, self._title, self.metadata)

    def snapshot_as_of_timestamp(self, timestamp_ms: int, inclusive: bool = True) -> Snapshot | None:
        """Return the snapshot that was current at a time, if there was one.

        Parameters
        ----------
        timestamp_ms
            Milliseconds from the epoch.
        inclusive
            Whether a snapshot of this very millisecond counts.

        """
        return self.metadata.snapshot_as_of(timestamp_ms if inclusive else timestamp_ms - 1)

    @property
    def _title(self) -> str:
        return printable(".".join(self._identifier) or redacted_url(self.metadata_location))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TableDescription):
            return NotImplemented
        return (self._identifier, self.metadata_location) == (other._identifier, other.metadata_location)

    def __hash__(self) -> int:
        # The location changes with each commit; a table without an identifier has no catalog, and never changes.
        return hash(self._identifier or self.metadata_location)
