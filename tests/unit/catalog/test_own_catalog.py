"""A catalog of one's own: fifty lines on public names, and every operation of catalogs and tables works with it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Mapping
from pathlib import Path
from threading import Lock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefield as ice
from icefield.catalog import Identifier, IdentifierLike, PropertiesUpdateSummary
from icefield.catalog.pointer import PointerCatalog

ROWS = pa.table({"id": [1, 2], "region": ["eu", "us"]})


class DictCatalog(PointerCatalog):
    def __init__(self, name: str, **properties: str) -> None:
        super().__init__(name, **properties)
        self.namespaces: dict[Identifier, dict[str, str]] = {}
        self.pointers: dict[Identifier, str] = {}
        self.lock = Lock()

    def list_namespaces(self, namespace: IdentifierLike = ()) -> list[Identifier]:
        return [name for name in self.namespaces if name[:-1] == self.identifier_to_tuple(namespace)]

    def create_namespace(self, namespace: IdentifierLike, properties: Mapping[str, str] | None = None) -> None:
        if self.namespaces.setdefault(self.identifier_to_tuple(namespace), own := dict(properties or {})) is not own:
            raise ice.errors.NamespaceAlreadyExistsError(f"namespace {namespace} already exists")

    def drop_namespace(self, namespace: IdentifierLike) -> None:
        if self.list_tables(namespace) or self.list_namespaces(namespace):
            raise ice.NamespaceNotEmptyError(f"namespace {namespace} is not empty")
        del self.namespaces[self.identifier_to_tuple(namespace)]

    def load_namespace_properties(self, namespace: IdentifierLike) -> dict[str, str]:
        if (found := self.namespaces.get(self.identifier_to_tuple(namespace))) is None:
            raise ice.NoSuchNamespaceError(f"namespace {namespace} does not exist")
        return dict(found)

    def update_namespace_properties(
        self, namespace: IdentifierLike, removals: Iterable[str] | str = (), updates: Mapping[str, str] | None = None
    ) -> PropertiesUpdateSummary:
        known, old = self.load_namespace_properties(namespace), {removals} if isinstance(removals, str) else {*removals}
        kept = {key: value for key, value in known.items() if key not in old}
        self.namespaces[self.identifier_to_tuple(namespace)] = kept | dict(updates or {})
        return PropertiesUpdateSummary(sorted(old & {*known}), sorted(updates or {}), sorted(old - {*known}))

    def list_tables(self, namespace: IdentifierLike) -> list[Identifier]:
        self.load_namespace_properties(namespace)
        return [name for name in self.pointers if name[:-1] == self.identifier_to_tuple(namespace)]

    def load_pointer(self, identifier: IdentifierLike) -> str:
        if (found := self.pointers.get(self.identifier_to_tuple(identifier))) is None:
            raise ice.NoSuchTableError(f"table {identifier} does not exist")
        return found

    def add_pointer(self, identifier: IdentifierLike, metadata_location: str) -> None:
        self.load_namespace_properties(self.namespace_from(identifier))
        if self.pointers.setdefault(self.identifier_to_tuple(identifier), metadata_location) is not metadata_location:
            raise ice.TableAlreadyExistsError(f"table {identifier} already exists")

    def swap_pointer(self, identifier: IdentifierLike, base: str, new: str) -> None:
        with self.lock:
            if self.load_pointer(identifier) != base:
                raise ice.CommitFailedException(f"table {identifier} was changed meanwhile")
            self.pointers[self.identifier_to_tuple(identifier)] = new

    def remove_pointer(self, identifier: IdentifierLike) -> None:
        self.load_pointer(identifier)
        del self.pointers[self.identifier_to_tuple(identifier)]

    def rename_pointer(self, old: IdentifierLike, new: IdentifierLike) -> None:
        self.add_pointer(new, self.load_pointer(old))
        self.remove_pointer(old)


def test_it_has_fifty_lines_of_public_names() -> None:
    source = inspect.getsource(DictCatalog)
    assert len([line for line in source.splitlines() if line.strip()]) <= 50
    taken = {node.attr for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)}
    assert [name for name in taken if name.startswith("_")] == ["__init__"]
    imports = [node for node in ast.parse(Path(__file__).read_text()).body if isinstance(node, ast.ImportFrom)]
    assert [node.module for node in imports if "._" in str(node.module)] == []


@pytest.fixture
def catalog(tmp_path: Path) -> DictCatalog:
    catalog = DictCatalog("own", warehouse=str(tmp_path / "warehouse"))
    catalog.create_namespace("n", {"owner": "me", "old": "x"})
    return catalog


def test_namespaces(catalog: DictCatalog) -> None:
    catalog.create_namespace(("n", "below"))
    catalog.create_namespace_if_not_exists("n")
    assert (catalog.list_namespaces(), catalog.list_namespaces("n")) == ([("n",)], [("n", "below")])
    with pytest.raises(ice.errors.NamespaceAlreadyExistsError):
        catalog.create_namespace("n")
    changed = catalog.update_namespace_properties("n", ["old", "none"], {"owner": "you"})
    assert (changed.removed, changed.updated, changed.missing) == (["old"], ["owner"], ["none"])
    assert catalog.load_namespace_properties("n") == {"owner": "you"}
    with pytest.raises(ice.NamespaceNotEmptyError):
        catalog.drop_namespace("n")
    catalog.drop_namespace(("n", "below"))
    assert not catalog.namespace_exists(("n", "below"))
    assert (catalog.list_views("n"), catalog.view_exists("n.v")) == ([], False)


def test_tables(catalog: DictCatalog, tmp_path: Path) -> None:
    table = catalog.create_table("n.t", ROWS.schema, partition_by="region", sort_by="id", properties={"a": "b"})
    with pytest.raises(ice.TableAlreadyExistsError):
        catalog.create_table("n.t", ROWS.schema)
    with pytest.raises(ice.NoSuchNamespaceError):
        catalog.create_table("m.t", ROWS.schema)
    assert catalog.create_table_if_not_exists("n.t", ROWS.schema).metadata.table_uuid == table.metadata.table_uuid
    with catalog.create_table_transaction("n.u", ROWS.schema) as tx:
        tx.append(ROWS)
    with catalog.create_or_replace_table_transaction("n.u", ROWS.schema, properties={"c": "d"}) as again:
        again.append(ROWS)
    with catalog.replace_table_transaction("n.u", ROWS.select(["id"]).schema) as replaced:
        replaced.append(ROWS.select(["id"]))
    assert catalog.load_table("n.u").scan().to_arrow().column_names == ["id"]
    assert catalog.list_tables("n") == [("n", "t"), ("n", "u")]
    assert catalog.rename_table("n.u", "n.w").scan().count() == 2
    assert (catalog.table_exists("n.u"), catalog.table_exists("n.w")) == (False, True)
    location = catalog.load_table_metadata("n.w").metadata_location
    catalog.drop_table("n.w")
    registered = catalog.register_table("n.w", location)
    assert catalog.register_table("n.w", location, overwrite=True).metadata_location == registered.metadata_location
    catalog.purge_table("n.w")
    assert not Path(location.removeprefix("file://")).exists()
    pq.write_table(ROWS, tmp_path / "old.parquet")
    (tmp_path / "folder").mkdir()
    (tmp_path / "old.parquet").rename(tmp_path / "folder" / "old.parquet")
    migrated = catalog.migrate("n.old", tmp_path / "folder")
    assert migrated.table is not None
    assert migrated.table.scan().count() == 2


def test_changes(catalog: DictCatalog) -> None:
    table = catalog.create_table("n.t", ROWS.schema)
    other = catalog.load_table("n.t")
    table.append(ROWS)
    # It has lost the race, reads the pointer again, and wins the next one.
    other.append(ROWS, idempotency_key="once")
    other.append(ROWS, idempotency_key="once")
    assert table.refresh().scan().count() == 4
    table.overwrite(ROWS)
    table.delete("id = 1")
    table.upsert(pa.table({"id": [2, 3], "region": ["eu", "eu"]}), join_cols=["id"])
    with table.transaction() as tx:
        tx.append(pa.table({"id": [4], "region": ["us"]}))
        with tx.update_schema() as schema:
            schema.add_column("extra", "int")
        tx.set_properties({"k": "v"})
    with table.branch("audit") as audit:
        audit.append(pa.table({"id": [5], "region": ["us"]}))
    table.refresh()
    assert table.scan().select("id", "region").to_arrow().sort_by("id").to_pydict() == {
        "id": [2, 3, 4, 5],
        "region": ["eu", "eu", "us", "us"],
    }
    assert (table.properties["k"], table.schema().column_names) == ("v", ["id", "region", "extra"])
    table.manage_snapshots().create_tag(table.snapshots()[0].snapshot_id, "first").commit()
    assert catalog.load_table("n.t").scan(snapshot_id=table.refs()["first"].snapshot_id).count() == 2
    uuid = str(table.metadata.table_uuid)
    answer = catalog.commit_table(
        "n.t",
        [{"type": "assert-table-uuid", "uuid": uuid}],
        [{"action": "set-properties", "updates": {"by": "service"}}],
    )
    assert answer.metadata.properties["by"] == "service"
    with pytest.raises(ice.CommitFailedException):
        catalog.commit_table("n.t", [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 1}], [])
    for missing in (catalog.load_table, catalog.drop_table, catalog.load_table_metadata):
        with pytest.raises(ice.NoSuchTableError):
            missing("n.none")
