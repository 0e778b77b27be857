"""The table of a case of ``golden/commits``: its clients, its clock, and the names of its snapshots and files."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

import icefield as ice
from icefield._core import Storage, set_clock
from icefield._inputs.identifiers import Identifier, IdentifierLike
from icefield.catalog.pointer import PointerCatalog
from icefield.metadata import Snapshot
from worlds.commits.cases import Json

HOUR_MS = 3_600_000
#: Hour 0 of every case.
START_MS = 1_700_000_000_000
#: Reserved columns of position delete files, which have bounds too.
DELETE_COLUMNS = {2147483546: "string", 2147483545: "long"}
#: An id that no snapshot has, and the number that cases have for it.
UNKNOWN, UNKNOWN_ID = 99, 4711


class OneTable(PointerCatalog):
    """A catalog of one table, in which another client may commit just before a commit."""

    def __init__(self) -> None:
        super().__init__("commits")
        self._storage = Storage()
        self._location: str | None = None
        #: What another client does before the next commit.
        self.race: Callable[[], None] | None = None

    @property
    def storage(self) -> Storage:
        return self._storage

    def load_pointer(self, identifier: IdentifierLike) -> str:
        if self._location is None:
            raise ice.NoSuchTableError(str(identifier))
        return self._location

    def add_pointer(self, identifier: IdentifierLike, metadata_location: str) -> None:
        if self._location is not None:
            raise ice.TableAlreadyExistsError(str(identifier))
        self._location = metadata_location

    def swap_pointer(self, identifier: IdentifierLike, base: str, new: str) -> None:
        if race := self.race:
            self.race = None
            race()
        if self._location != base:
            raise ice.CommitFailedException("another commit was first")
        self._location = new

    def remove_pointer(self, identifier: IdentifierLike) -> None:
        self._location = None

    def rename_pointer(self, old: IdentifierLike, new: IdentifierLike) -> None:
        raise AssertionError("no golden commit does this")

    def namespace_exists(self, namespace: IdentifierLike) -> bool:
        return True

    def list_namespaces(self, namespace: IdentifierLike = ()) -> list[Identifier]:
        return [("w",)]

    def list_tables(self, namespace: IdentifierLike) -> list[Identifier]:
        return [("w", "t")]

    def create_namespace(self, namespace: IdentifierLike, properties: Mapping[str, str] | None = None) -> None:
        raise AssertionError("no golden commit does this")

    def drop_namespace(self, namespace: IdentifierLike) -> None:
        raise AssertionError("no golden commit does this")

    def load_namespace_properties(self, namespace: IdentifierLike) -> dict[str, str]:
        return {}

    def update_namespace_properties(
        self, namespace: IdentifierLike, removals: Iterable[str] | None = None, updates: Mapping[str, str] | None = None
    ) -> Any:
        raise AssertionError("no golden commit does this")


class World:
    """One table, as the clients of a case see it."""

    def __init__(self, case: Json) -> None:
        self.case = case
        # As long as in the case: lengths of manifests decide which are merged.
        self.root = f"memory://{uuid.uuid4().hex[:8]}"
        self.catalog = OneTable()
        self.hour(-1)
        self.catalog.create_table(
            "w.t",
            ice.Schema.from_json(json.dumps(case["schema"])),
            location=f"{self.root}/w/t",
            partition_spec=case["specs"][0],
            properties={
                "format-version": str(case["format_version"]),
                # Nobody else is waiting.
                "commit.retry.min-wait-ms": "1",
                "commit.retry.max-wait-ms": "2",
                **case["properties"],
            },
        )
        #: Ids of all snapshots that were ever committed: their places are the names that the case has for them.
        self.snapshots: list[int] = []
        #: The manifest lists of the snapshots, and the manifests in them.
        self.lists: dict[str, int] = {}
        self.manifests: dict[str, str] = {}
        #: Snapshots that were the first of a branch that did not exist.
        self.branched: set[int] = set()
        self.last_noted: set[int] = set()

    @staticmethod
    def hour(hour: int) -> None:
        """Set the clock."""
        set_clock(START_MS + hour * HOUR_MS)

    def table(self) -> ice.Table:
        """Open the table as another client."""
        return self.catalog.load_table("w.t")

    def location(self, path: str) -> str:
        """Return where a file of the case lies here."""
        return path.replace("mem://", self.root, 1)

    def path(self, name: str) -> str:
        """Return where a file of the case lies here; a name that no file has is a path of none."""
        given = self.case["files"].get(name)
        return self.location(given["path"] if given else name)

    def snapshot_id(self, number: int) -> int:
        """Return the id of a snapshot of the case."""
        return UNKNOWN_ID if number == UNKNOWN else self.snapshots[number]

    def number(self, snapshot_id: int | None) -> int | None:
        """Return the number that the case has for a snapshot."""
        return None if snapshot_id is None else self.snapshots.index(snapshot_id)

    def note(self) -> None:
        """Number the snapshots that were added since, and their manifests."""
        metadata = self.table().metadata
        self.last_noted = set()
        for snapshot in metadata.snapshots:
            if snapshot.snapshot_id in self.snapshots:
                continue
            self.last_noted.add(snapshot.snapshot_id)
            number = len(self.snapshots)
            self.snapshots.append(snapshot.snapshot_id)
            assert snapshot.manifest_list is not None
            self.lists[snapshot.manifest_list] = number
            for place, manifest in enumerate(self.manifest_list(snapshot)):
                self.manifests.setdefault(manifest["manifest_path"], f"{number}/{place}")

    def note_branches(self, before: Iterable[str]) -> None:
        """Remember the snapshots with which branches began that were not there before."""
        metadata = self.table().metadata
        for name, ref in metadata.refs.items():
            if name not in before and self.last_noted & {ref.snapshot_id}:
                line = [snapshot.snapshot_id for snapshot in metadata.ancestors(ref.snapshot_id)]
                self.branched |= {self.snapshots.index(own) for own in line if own in self.last_noted}

    def manifest_list(self, snapshot: Snapshot | None) -> list[Json]:
        """Read the manifest list of a snapshot."""
        assert snapshot is not None
        assert snapshot.manifest_list is not None
        found: list[Json] = ice.manifests.read_list(self.read(snapshot.manifest_list)).to_pylist()
        return found

    def left(self) -> list[str]:
        """List all files in the folder of metadata."""
        return sorted(path for path, _ in self.catalog.storage.list(f"{self.root}/w/t/metadata"))

    def read(self, location: str) -> bytes:
        """Read a file."""
        return bytes(self.catalog.storage.read(location))

    def manifest(self, given: Json, *, existing: bool = False) -> ice.manifests.ManifestFile:
        """Write a manifest of files of the case: of new ones, or of those of the current snapshot as they are."""
        table = self.table()
        location = f"{self.root}/w/t/given/{uuid.uuid4()}.avro"
        entries = self.live_entries() if existing else {}
        with table.new_manifest_writer(given["spec_id"], location=location) as writer:
            for name in given["files"]:
                file = self.file(name, table)
                if not existing:
                    writer.add(file)
                    continue
                entry = entries[file.file_path]
                fields = {"first_row_id": entry["data_file"].get("first_row_id")}
                numbers = entry["sequence_number"], entry["file_sequence_number"]
                writer.existing(self.file(name, table, **fields), entry["snapshot_id"], *numbers)
        return writer.to_manifest_file()

    def live_entries(self) -> dict[str, Json]:
        """Read the live entries of the current snapshot, by the locations of the files."""
        found = {}
        for row in self.manifest_list(self.table().current_snapshot()):
            entries = ice.manifests.read(self.read(row["manifest_path"]), manifest=row, live_only=True).to_pylist()
            found |= {entry["data_file"]["file_path"]: entry for entry in entries}
        return found

    @cached_property
    def names(self) -> dict[tuple[str, int | None], str]:
        """Names of the case's files by location, and offset of deletion vectors."""
        files = self.case["files"].items()
        return {(self.location(file["path"]), file.get("content_offset")): name for name, file in files}

    def file(self, name: str, table: Any, **more: Any) -> ice.DataFile | ice.DeleteFile:
        """Describe a file of the case, with more of its fields."""
        given = self.case["files"][name]
        schemas = table.metadata.schemas

        def bound(field_id: str, value: object) -> bytes:
            found = (schema.find_field(int(field_id)) for schema in reversed(schemas))
            kind = DELETE_COLUMNS.get(int(field_id)) or next(field.field_type for field in found if field is not None)
            if kind == "string" and isinstance(value, str):
                value = self.location(value)
            return ice.values.to_bytes(ice.values.from_json(json.dumps(value), kind), kind)

        fields = {key: value for key, value in given.items() if key not in {"path", "format", "unknown_spec"}}
        for key in ("value_counts", "null_value_counts"):
            if key in given:
                fields[key] = {int(field_id): count for field_id, count in given[key].items()}
        for key in ("lower_bounds", "upper_bounds"):
            if key in given:
                fields[key] = {int(field_id): bound(field_id, value) for field_id, value in given[key].items()}
        if referenced := given.get("referenced_data_file"):
            fields["referenced_data_file"] = self.location(referenced)
        kind = ice.DataFile if given["content"] == "data" else ice.DeleteFile
        return kind(file_path=self.location(given["path"]), file_format=given["format"], **fields | more)
