"""Tables of a catalog that takes requirements and updates: created, replaced and changed, each in one commit."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield._core import TableState
from icefield.catalog import Identifier, IdentifierLike, PropertiesUpdateSummary
from icefield.catalog.base import CommitTableResponse
from icefield.distributed import Storage

ROWS = pa.table({"id": [1, 2], "region": ["eu", "us"]})
OTHERS = pa.table({"id": [7], "name": ["a"]})


class Service(ice.Catalog):
    """A catalog that has metadata, as a server has it, and no pointers."""

    def __init__(self, name: str, **properties: str) -> None:
        super().__init__(name, **properties)
        self.tables: dict[Identifier, CommitTableResponse] = {}
        #: The kinds of requirements and updates of each commit.
        self.asked: list[tuple[list[Any], list[Any]]] = []
        #: What is raised after the next commit.
        self.failure: Exception | None = None
        #: Whether nothing can be loaded after that.
        self.is_deaf = False
        #: What another writer does just before the next commit.
        self.meanwhile: Callable[[], object] | None = None

    def list_namespaces(self, namespace: IdentifierLike = ()) -> list[Identifier]:
        return [("n",)]

    def create_namespace(self, namespace: IdentifierLike, properties: Mapping[str, str] | None = None) -> None:
        raise ice.errors.NamespaceAlreadyExistsError("n")

    def drop_namespace(self, namespace: IdentifierLike) -> None:
        raise ice.NamespaceNotEmptyError("n")

    def load_namespace_properties(self, namespace: IdentifierLike) -> dict[str, str]:
        if tuple(namespace) != ("n",):
            raise ice.NoSuchNamespaceError(str(namespace))
        return {}

    def update_namespace_properties(
        self, namespace: IdentifierLike, removals: Iterable[str] | str = (), updates: Mapping[str, str] | None = None
    ) -> PropertiesUpdateSummary:
        return PropertiesUpdateSummary()

    def list_tables(self, namespace: IdentifierLike) -> list[Identifier]:
        return list(self.tables)

    def load_table_metadata(self, identifier: IdentifierLike) -> CommitTableResponse:
        if self.is_deaf and self.failure is None:
            raise OSError("no reply")
        if (found := self.tables.get(self.identifier_to_tuple(identifier))) is None:
            raise ice.NoSuchTableError(str(identifier))
        return found

    def commit_table(
        self,
        identifier: IdentifierLike,
        requirements: Iterable[Mapping[str, object]],
        updates: Iterable[Mapping[str, object]],
    ) -> CommitTableResponse:
        requirements, updates = list(requirements), list(updates)
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        self.asked.append(([each["type"] for each in requirements], [each["action"] for each in updates]))
        known = self.tables.get(self.identifier_to_tuple(identifier))
        if requirements == [{"type": "assert-create"}]:
            if known is not None:
                raise ice.TableAlreadyExistsError(str(identifier))
            # What a server makes of the updates.
            made = ice.load_catalog("server", type="in-memory", warehouse=str(self.properties["warehouse"]))
            made.create_namespace("n")
            answer = made.commit_table(identifier, requirements, updates)
        else:
            assert known is not None
            known.metadata.check(json.dumps(requirements))
            metadata = known.metadata.apply(json.dumps(updates), previous_file=known.metadata_location)
            location = f"{metadata.location}/metadata/{len(self.asked):05}-x.metadata.json"
            Path(location.removeprefix("file://")).write_text(metadata.to_json())
            answer = CommitTableResponse(metadata, location)
        self.tables[self.identifier_to_tuple(identifier)] = answer
        if failure := self.failure:
            self.failure = None
            raise failure
        return answer

    def register_table(self, identifier: IdentifierLike, metadata_location: str, overwrite: bool = False) -> ice.Table:
        full = self.identifier_to_tuple(identifier)
        if full in self.tables and not overwrite:
            raise ice.TableAlreadyExistsError(str(identifier))
        table = self.table_at(identifier, metadata_location)
        self.tables[full] = CommitTableResponse(table.metadata, metadata_location)
        return table

    def drop_table(self, identifier: IdentifierLike, purge_requested: bool = False) -> None:
        del self.tables[self.identifier_to_tuple(identifier)]

    def rename_table(self, from_identifier: IdentifierLike, to_identifier: IdentifierLike) -> ice.Table:
        self.tables[self.identifier_to_tuple(to_identifier)] = self.tables.pop(
            self.identifier_to_tuple(from_identifier)
        )
        return self.load_table(to_identifier)


@pytest.fixture
def catalog(tmp_path: Path) -> Service:
    return Service("s", warehouse=str(tmp_path / "w"))


def test_a_state_of_metadata_at_hand_reads_no_metadata_file(catalog: Service) -> None:
    catalog.create_table("n.t", ROWS.schema).append(ROWS)
    known = catalog.load_table_metadata("n.t")
    state = TableState.of(catalog.storage, known.metadata_location, known.metadata)
    assert state.metadata_location == known.metadata_location
    assert state.metadata == TableState.load(catalog.storage, known.metadata_location).metadata
    Path(known.metadata_location.removeprefix("file://")).unlink()
    assert catalog.load_table("n.t").scan().to_arrow().sort_by("id") == ROWS
    # With a metadata file it pickles as where that is, which is gone; without one it pickles whole.
    with pytest.raises(ice.IcefieldError):
        pickle.loads(pickle.dumps(state))
    unfiled = pickle.loads(pickle.dumps(TableState.of(catalog.storage, "", known.metadata)))
    assert (unfiled.metadata_location, unfiled.metadata) == ("", known.metadata)
    assert unfiled.metadata_json() == state.metadata_json()


def data_files(catalog: Service) -> list[Path]:
    return list(Path(catalog.properties["warehouse"]).rglob("*.parquet"))


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_a_table_is_created_with_its_rows_in_one_commit(catalog: Service, version: str) -> None:
    properties = {"a": "b", "format-version": version}
    with catalog.create_table_transaction(
        "n.t", ROWS.schema, partition_by="region", sort_by="id", properties=properties
    ) as tx:
        tx.append(ROWS)
        with tx.update_schema() as schema:
            schema.add_column("extra", "int")
        assert not catalog.table_exists("n.t")
    [(requirements, updates)] = catalog.asked
    assert requirements == ["assert-create"]
    assert updates[:2] == ["assign-uuid", "upgrade-format-version"]
    assert updates.count("add-schema") == 2
    assert updates.count("add-snapshot") == 1
    table = catalog.load_table("n.t")
    assert (table.scan().count(), table.properties["a"], table.format_version) == (2, "b", int(version))
    assert table.metadata.table_uuid == tx.metadata.table_uuid
    assert table.schema().column_names == ["id", "region", "extra"]
    assert [field.name for field in table.spec().fields] == ["region"]
    assert len(table.sort_order().fields) == 1
    with pytest.raises(ice.TableAlreadyExistsError):
        catalog.create_table_transaction("n.t", ROWS.schema)
    with pytest.raises(ice.NoSuchNamespaceError):
        catalog.create_table_transaction("m.t", ROWS.schema)


def test_a_table_that_another_created_meanwhile_leaves_nothing(catalog: Service) -> None:
    tx = catalog.create_table_transaction("n.t", ROWS.schema)
    tx.append(ROWS)
    assert len(data_files(catalog)) == 1
    catalog.create_table("n.t", OTHERS.schema, location=str(Path(catalog.properties["warehouse"]) / "other"))
    with pytest.raises(ice.TableAlreadyExistsError):
        tx.commit_transaction()
    assert data_files(catalog) == []
    assert catalog.load_table("n.t").schema().column_names == ["id", "name"]


NO_REPLY = [ice.CommitStateUnknownException("no reply"), OSError("no reply")]
QUICKLY = {"commit.status-check.num-retries": "1", "commit.status-check.min-wait-ms": "1"}


@pytest.mark.parametrize("failure", NO_REPLY)
def test_a_commit_whose_answer_is_lost_is_found(catalog: Service, failure: Exception) -> None:
    catalog.failure = failure
    table = catalog.create_table("n.t", ROWS.schema)

    def add_columns(table: ice.Table) -> None:
        with table.update_schema() as schema:
            schema.add_column("extra", "int")

    def several(table: ice.Table) -> None:
        with table.transaction() as tx:
            tx.append(ROWS)
            tx.delete("id = 1")

    changes: list[tuple[Callable[[ice.Table], object], int]] = [
        (lambda table: table.append(ROWS), 2),
        (lambda table: table.append(ROWS, idempotency_key="k"), 4),
        (lambda table: table.append(ROWS, idempotency_key="k"), 4),
        (lambda table: table.delete("id = 2"), 2),
        (lambda table: table.transaction().set_properties({"a": "b"}).commit_transaction(), 2),
        (lambda table: table.transaction().remove_properties("a").commit_transaction(), 2),
        (add_columns, 2),
        (several, 1),
    ]
    for change, rows in changes:
        catalog.failure = failure
        before = len(catalog.asked)
        change(table.refresh())
        assert len(catalog.asked) <= before + 1, "it is not sent again"
        catalog.failure = None
        assert table.refresh().scan().count() == rows
    assert table.schema().column_names == ["id", "region", "extra"]


def test_lists_and_manifests_are_made_once(catalog: Service) -> None:
    table = catalog.create_table("n.t", ROWS.schema)
    for _ in range(3):
        table = table.append(ROWS)
    with table.transaction() as tx:
        tx.append(ROWS)
        tx.append(ROWS)
    lists = sorted(path.name for path in Path(catalog.properties["warehouse"]).rglob("snap-*.avro"))
    assert lists == sorted(Path(one.manifest_list or "").name for one in table.refresh().snapshots())
    # The number after the snapshot's id counts the lists that were made for it.
    assert [name.split("-")[2] for name in lists] == ["1"] * 5
    assert len(list(Path(catalog.properties["warehouse"]).rglob("*-m*.avro"))) == 5


@pytest.mark.parametrize("failure", NO_REPLY)
def test_of_an_unknown_outcome_nothing_is_deleted(catalog: Service, failure: Exception) -> None:
    tx = catalog.create_table_transaction("n.t", ROWS.schema, properties=QUICKLY)
    tx.append(ROWS)
    catalog.failure, catalog.is_deaf = failure, True
    with pytest.raises(ice.CommitStateUnknownException) as raised:
        tx.commit_transaction()
    catalog.is_deaf = False
    table = catalog.load_table("n.t")
    assert table.scan().count() == 2
    assert raised.value.snapshot_id == table.metadata.current_snapshot_id
    assert any(name.endswith(".parquet") for name in raised.value.files)
    with pytest.raises(ice.InvalidArgumentError, match="finished"):
        tx.append(ROWS)
    catalog.failure, catalog.is_deaf = failure, True
    with pytest.raises(ice.CommitStateUnknownException) as raised:
        table.append(ROWS)
    catalog.is_deaf = False
    assert table.resolve_commit(raised.value).state == "committed"
    assert table.refresh().scan().count() == 4


def expiring(catalog: Service, **properties: str) -> tuple[ice.Table, int, int]:
    """A table with a snapshot that expires, whose file only that snapshot has, and the current snapshot."""
    table = catalog.create_table("n.t", ROWS.schema, properties=properties).append(ROWS)
    first = table.metadata.current_snapshot_id
    table.overwrite(ROWS)
    table = table.refresh()
    last = table.metadata.current_snapshot_id
    assert first is not None
    assert last is not None
    return table, first, last


FUTURE = "2100-01-01T00:00:00+00:00"


@pytest.mark.parametrize("kind", ["branch", "tag"])
@pytest.mark.parametrize("kept", ["100", "1"])
def test_files_stay_of_a_branch_or_tag_that_was_created_while_its_snapshot_expired(
    catalog: Service, kind: str, kept: str
) -> None:
    table, first, _ = expiring(catalog, **{"write.metadata.previous-versions-max": kept})
    files = data_files(catalog)
    other = catalog.load_table("n.t")

    def create() -> None:
        with other.manage_snapshots() as change:
            if kind == "branch":
                change.create_branch(first, "audit")
            else:
                change.create_tag(first, "audit")

    catalog.meanwhile = create
    with pytest.warns(RuntimeWarning, match=f"{kind} audit was created at snapshot {first}"):
        expired = table.expire_snapshots(older_than=FUTURE, retain_last=1)
    assert data_files(catalog) == files
    assert expired.deleted_files == []
    assert catalog.load_table("n.t").scan().count() == 2


def test_a_staged_snapshot_does_not_follow_one_that_expired_meanwhile(catalog: Service) -> None:
    """A service adds snapshots with any parent, and files of this one were deleted."""
    table, _, last = expiring(catalog, **{"write.wap.enabled": "true"})
    other = catalog.load_table("n.t")

    def expire() -> None:
        other.overwrite(ROWS)
        other.refresh().expire_snapshots(older_than=FUTURE, retain_last=1)

    catalog.meanwhile = expire
    with pytest.raises(ice.CommitStateUnknownException, match=f"there is no snapshot {last}"):
        table.append(ROWS, snapshot_properties={"wap.id": "w"})
    now = catalog.load_table("n.t")
    assert now.snapshot_by_id(last) is None
    assert [one.snapshot_id for one in now.snapshots()] == [now.metadata.current_snapshot_id]
    assert now.scan().count() == ROWS.num_rows


def test_a_branch_that_moved_to_an_expiring_snapshot_keeps_it(catalog: Service) -> None:
    table, first, _ = expiring(catalog)
    files = data_files(catalog)
    other = catalog.load_table("n.t")
    catalog.meanwhile = lambda: other.manage_snapshots().rollback_to_snapshot(first).commit()
    table.expire_snapshots(older_than=FUTURE, retain_last=1)
    now = catalog.load_table("n.t")
    assert now.metadata.current_snapshot_id == first
    assert now.scan().to_arrow().sort_by("id") == ROWS
    assert len(data_files(catalog)) == len(files) - 1


def test_an_append_during_an_expiry_changes_nothing_about_it(catalog: Service) -> None:
    table, first, _ = expiring(catalog)
    other = catalog.load_table("n.t")
    catalog.meanwhile = lambda: other.append(ROWS)
    expired = table.expire_snapshots(older_than=FUTURE, retain_last=1)
    assert first in expired.snapshot_ids
    assert len(expired.data_files) == 1
    assert catalog.load_table("n.t").scan().count() == 4


def test_a_commit_that_is_refused_leaves_nothing(catalog: Service) -> None:
    tx = catalog.create_table_transaction("n.t", ROWS.schema)
    tx.append(ROWS)
    catalog.failure = ice.CommitFailedException("you may not")
    with pytest.raises(ice.CommitFailedException, match="you may not"):
        tx.commit_transaction()
    assert data_files(catalog) == []


def test_create_or_replace(catalog: Service) -> None:
    for rows in (ROWS, OTHERS):
        with catalog.create_or_replace_table_transaction("n.t", rows.schema) as tx:
            tx.append(rows)
    table = catalog.load_table("n.t")
    assert table.scan().to_arrow().equals(OTHERS, check_metadata=False)
    assert len(table.snapshots()) == 2
    assert len(catalog.asked) == 2
    with pytest.raises(ice.NoSuchTableError):
        catalog.replace_table_transaction("n.u", ROWS.schema)


def test_a_renamed_or_registered_table_is_changed_under_its_new_name(catalog: Service) -> None:
    made = catalog.create_table("n.t", ROWS.schema).append(ROWS)
    renamed = catalog.rename_table("n.t", "n.u").append(ROWS)
    assert not catalog.table_exists("n.t")
    with pytest.raises(ice.NoSuchTableError):
        made.append(ROWS)
    catalog.drop_table("n.u")
    registered = catalog.register_table("n.v", renamed.metadata_location)
    assert registered.append(ROWS).scan().count() == catalog.load_table("n.v").scan().count() == 6
    with pytest.raises(ice.TableAlreadyExistsError):
        catalog.register_table("n.v", renamed.metadata_location)


def test_a_location_is_needed_without_a_warehouse(tmp_path: Path) -> None:
    catalog = Service("s")
    with pytest.raises(ice.InvalidArgumentError, match="location is missing"):
        catalog.create_table_transaction("n.t", ROWS.schema)
    assert isinstance(catalog.storage, Storage)


def test_pointer_catalogs_create_tables_by_updates(tmp_path: Path) -> None:
    catalog = ice.load_catalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path))
    catalog.create_namespace("n")
    service = Service("s", warehouse=str(tmp_path))
    service.create_table("n.t", ROWS.schema)
    definition = service.load_table_metadata("n.t").metadata
    updates: list[dict[str, object]] = [
        {"action": "assign-uuid", "uuid": definition.table_uuid},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": json.loads(definition.schema().to_json())},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": definition.location},
    ]
    answer = catalog.commit_table("n.t", [{"type": "assert-create"}], updates)
    assert answer.metadata.table_uuid == definition.table_uuid
    assert catalog.load_table("n.t").schema().column_names == ["id", "region"]
    files = sorted(path.name for path in tmp_path.rglob("*.json"))
    with pytest.raises(ice.TableAlreadyExistsError):
        catalog.commit_table("n.t", [{"type": "assert-create"}], updates)
    other: dict[str, object] = {"type": "assert-table-uuid", "uuid": definition.table_uuid}
    with pytest.raises(ice.CommitFailedException, match="does not exist"):
        catalog.commit_table("n.u", [{"type": "assert-create"}, other], updates)
    with pytest.raises(ice.IcefieldError):
        catalog.commit_table("n.u", [{"type": "assert-create"}], updates[:2])
    assert not catalog.table_exists("n.u")
    assert sorted(path.name for path in tmp_path.rglob("*.json")) == files
