"""What every catalog does, as one table of laws: `LAWS` has each by name, as a function of a `World`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield.catalog.pointer import PointerCatalog
from icefield.errors import MissingFileError, NoSuchViewError

ROWS = pa.table({"id": [1, 2], "region": ["eu", "us"]})
OTHERS = pa.table({"id": [7], "name": ["a"]})
QUICKLY = {"commit.status-check.num-retries": "1", "commit.status-check.min-wait-ms": "1"}
#: Names that not every catalog has: it refuses them, or it has them as they are.
NAMES = ("a.b", 'quo"te', "it's", "sp ace", "ß漢字😀", "UPPER", "percent%20", "semi;colon", "x" * 255, "é" * 127)


@dataclass
class World:
    """A catalog, and what it can do."""

    name: str
    #: Open it, as another program does.
    open: Callable[[], ice.Catalog]
    #: Whether namespaces have several levels, and properties; whether tables are renamed.
    levels: bool = True
    properties: bool = True
    renames: bool = True
    #: Whether the files of a dropped table stay.
    keeps_files: bool = True
    #: Whether it has views.
    views: bool = False
    #: The names that are tried, and whether all of them are names of tables.
    names: tuple[str, ...] = NAMES
    any_name: bool = True
    #: Threads and commits of each in the race.
    race: tuple[int, int] = (4, 25)
    made: list[str] = field(default_factory=list)

    def namespace(self, catalog: ice.Catalog) -> str:
        """Create a namespace of the law's own."""
        self.made.append(f"{self.name}{len(self.made)}")
        catalog.create_namespace(self.made[-1])
        return self.made[-1]


LAWS: dict[str, Callable[[World], None]] = {}


def law(function: Callable[[World], None]) -> Callable[[World], None]:
    LAWS[function.__name__] = function
    return function


def linear(table: ice.Table) -> list[int]:
    """Return the ids of the snapshots from the first to the current one; each has the one before as its parent."""
    by_id = {snapshot.snapshot_id: snapshot for snapshot in table.snapshots()}
    line: list[int] = []
    at = table.current_snapshot()
    while at is not None:
        line.insert(0, at.snapshot_id)
        at = None if at.parent_snapshot_id is None else by_id[at.parent_snapshot_id]
    assert len(line) == len(by_id)
    return line


@contextmanager
def lost(catalog: ice.Catalog, *, sent: bool) -> Iterator[None]:
    """Lose the answer to the next commit, or the commit itself."""
    method = "swap_pointer" if isinstance(catalog, PointerCatalog) else "commit_table"
    real = getattr(catalog, method)

    def broken(*arguments: Any) -> None:
        delattr(catalog, method)
        if sent:
            real(*arguments)
        raise ice.CommitStateUnknownException("the answer was lost")

    setattr(catalog, method, broken)
    yield
    assert method not in vars(catalog)


@law
def namespaces_are_created_listed_and_dropped(world: World) -> None:
    catalog = world.open()
    db = world.namespace(catalog)
    assert catalog.namespace_exists(db)
    assert (db,) in catalog.list_namespaces()
    assert catalog.list_namespaces(db) == []
    assert catalog.list_tables(db) == []
    with pytest.raises(ice.errors.NamespaceAlreadyExistsError):
        catalog.create_namespace(db)
    catalog.create_namespace_if_not_exists(db)
    if world.levels:
        catalog.create_namespace((db, "b"))
        assert world.open().list_namespaces(db) == [(db, "b")]
        with pytest.raises(ice.NamespaceNotEmptyError):
            catalog.drop_namespace(db)
        catalog.drop_namespace((db, "b"))
    catalog.create_table(f"{db}.t", ROWS.schema)
    with pytest.raises(ice.NamespaceNotEmptyError):
        catalog.drop_namespace(db)
    catalog.drop_table(f"{db}.t")
    catalog.drop_namespace(db)
    assert not catalog.namespace_exists(db)
    assert (db,) not in catalog.list_namespaces()
    for call in (catalog.drop_namespace, catalog.load_namespace_properties, catalog.list_tables):
        with pytest.raises(ice.NoSuchNamespaceError):
            call(db)
    with pytest.raises(ice.NoSuchNamespaceError):
        catalog.create_table(f"{db}.t", ROWS.schema)


@law
def properties_of_namespaces_are_set_and_removed(world: World) -> None:
    catalog = world.open()
    db = world.namespace(catalog)
    if not world.properties:
        with pytest.raises(ice.UnsupportedFeatureError):
            catalog.update_namespace_properties(db, (), {"a": "b"})
        return
    summary = catalog.update_namespace_properties(db, ["none"], {"a": "b", "c": "ß 'd'"})
    assert (summary.removed, sorted(summary.updated), summary.missing) == ([], ["a", "c"], ["none"])
    summary = catalog.update_namespace_properties(db, "a", {"e": "f"})
    assert (summary.removed, summary.updated, summary.missing) == (["a"], ["e"], [])
    found = world.open().load_namespace_properties(db)
    assert {key: found.get(key) for key in "ace"} == {"a": None, "c": "ß 'd'", "e": "f"}
    with pytest.raises(ice.InvalidArgumentError):
        catalog.update_namespace_properties(db, ["c"], {"c": "d"})


@law
def tables_are_created_loaded_and_dropped(world: World) -> None:
    catalog = world.open()
    db = world.namespace(catalog)
    table = catalog.create_table(f"{db}.t", ROWS.schema, partition_by="region", sort_by="id", properties={"a": "b"})
    with pytest.raises(ice.TableAlreadyExistsError):
        catalog.create_table(f"{db}.t", ROWS.schema)
    assert catalog.create_table_if_not_exists(f"{db}.t", OTHERS.schema).schema() == table.schema()
    table.append(ROWS)
    again = world.open().load_table(f"{db}.t")
    assert again.scan().to_arrow().sort_by("id") == ROWS
    assert (again.properties["a"], len(again.spec().fields), len(again.sort_order().fields)) == ("b", 1, 1)
    assert again.metadata.table_uuid == table.metadata.table_uuid
    assert again.metadata_location == table.metadata_location
    assert again.name() == (db, "t")
    catalog.create_table(f"{db}.u", OTHERS.schema)
    assert catalog.list_tables(db) == [(db, "t"), (db, "u")]
    assert catalog.table_exists(f"{db}.t")
    catalog.drop_table(f"{db}.t")
    catalog.purge_table(f"{db}.u")
    assert catalog.list_tables(db) == []
    assert not catalog.table_exists(f"{db}.t")
    for call in (catalog.load_table, catalog.drop_table):
        with pytest.raises(ice.NoSuchTableError):
            call(f"{db}.t")
    # Where a drop deletes the files, a writer may miss those first.
    with pytest.raises(ice.NoSuchTableError if world.keeps_files else (ice.NoSuchTableError, MissingFileError)):
        table.append(ROWS)


@law
def a_race_has_one_winner_and_the_other_goes_on_top(world: World) -> None:
    catalog = world.open()
    db = world.namespace(catalog)
    one = catalog.create_table(f"{db}.t", ROWS.schema)
    other = world.open().load_table(f"{db}.t")
    one.append(ROWS)
    other.append(ROWS)
    with one.update_schema() as change:
        change.add_column("extra", "int")
    other.transaction().set_properties({"a": "b"}).commit_transaction()
    table = world.open().load_table(f"{db}.t")
    assert (table.scan().count(), table.properties["a"], len(linear(table))) == (4, "b", 2)
    assert table.schema().column_names == ["id", "region", "extra"]
    # A requirement that is not met changes nothing.
    stale = [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": linear(table)[0]}]
    with pytest.raises(ice.CommitFailedException):
        catalog.commit_table(f"{db}.t", stale, [{"action": "set-properties", "updates": {"a": "c"}}])
    assert world.open().load_table(f"{db}.t").metadata_location == table.metadata_location


@law
def tables_are_renamed(world: World) -> None:
    catalog = world.open()
    db, to = world.namespace(catalog), world.namespace(catalog)
    table = catalog.create_table(f"{db}.t", ROWS.schema)
    table.append(ROWS)
    catalog.create_table(f"{db}.u", OTHERS.schema)
    if not world.renames:
        with pytest.raises(ice.UnsupportedFeatureError):
            catalog.rename_table(f"{db}.t", f"{to}.v")
        assert catalog.list_tables(db) == [(db, "t"), (db, "u")]
        return
    with pytest.raises(ice.TableAlreadyExistsError):
        catalog.rename_table(f"{db}.t", f"{db}.u")
    with pytest.raises(ice.NoSuchTableError):
        catalog.rename_table(f"{db}.none", f"{db}.w")
    with pytest.raises(ice.NoSuchNamespaceError):
        catalog.rename_table(f"{db}.t", "nowhere.w")
    assert catalog.list_tables(db) == [(db, "t"), (db, "u")]
    renamed = catalog.rename_table(f"{db}.t", f"{to}.v")
    assert renamed.metadata.table_uuid == table.metadata.table_uuid
    renamed.append(ROWS)
    assert (catalog.list_tables(db), catalog.list_tables(to)) == ([(db, "u")], [(to, "v")])
    assert world.open().load_table(f"{to}.v").scan().count() == 4
    with pytest.raises(ice.NoSuchTableError):
        catalog.load_table(f"{db}.t")


@law
def staged_tables_appear_with_their_rows(world: World) -> None:
    catalog = world.open()
    db = world.namespace(catalog)
    with catalog.create_table_transaction(f"{db}.t", ROWS.schema, properties={"a": "b"}) as tx:
        tx.append(ROWS)
        assert not world.open().table_exists(f"{db}.t")
    assert world.open().load_table(f"{db}.t").scan().count() == 2
    late = catalog.create_table_transaction(f"{db}.u", ROWS.schema)
    late.append(ROWS)
    catalog.create_table(f"{db}.u", OTHERS.schema)
    with pytest.raises(ice.TableAlreadyExistsError):
        late.commit_transaction()
    assert catalog.load_table(f"{db}.u").schema().column_names == ["id", "name"]
    # Another table in the place of the first: its history stays.
    with catalog.replace_table_transaction(f"{db}.t", OTHERS.schema) as replacement:
        replacement.append(OTHERS)
    table = world.open().load_table(f"{db}.t")
    assert table.scan().to_arrow() == OTHERS
    assert (len(table.snapshots()), table.properties["a"]) == (2, "b")
    for name in ("u", "w"):
        catalog.create_or_replace_table_transaction(f"{db}.{name}", ROWS.schema).commit_transaction()
        assert catalog.load_table(f"{db}.{name}").schema().column_names == ["id", "region"]
    with pytest.raises(ice.NoSuchTableError):
        catalog.replace_table_transaction(f"{db}.none", ROWS.schema)


@law
def views_are_created_replaced_renamed_and_dropped(world: World) -> None:
    catalog = world.open()
    db = world.namespace(catalog)
    if not world.views:
        with pytest.raises(ice.UnsupportedFeatureError, match=r"Catalog '\w+' has no views"):
            catalog.create_view(f"{db}.v", ROWS.schema, {"spark": "SELECT 1"})
        assert (list(catalog.list_views(db)), catalog.view_exists(f"{db}.v")) == ([], False)
        return
    made = catalog.create_view(f"{db}.v", ROWS.schema, {"spark": "SELECT 1", "trino": "2"}, properties={"a": "ß 'b'"})
    table = catalog.create_table(f"{db}.t", ROWS.schema)
    again = world.open().load_view(f"{db}.v")
    assert (again.name(), again.uuid(), again.schema()) == ((db, "v"), made.uuid(), made.schema())
    assert (again.queries, again.properties["a"]) == ({"spark": "SELECT 1", "trino": "2"}, "ß 'b'")
    assert (catalog.list_views(db), catalog.list_tables(db)) == ([(db, "v")], [(db, "t")])
    assert (catalog.view_exists(f"{db}.v"), catalog.view_exists(f"{db}.t")) == (True, False)
    # Tables and views share their names.
    for create in (
        lambda: catalog.create_view(f"{db}.t", ROWS.schema, {"spark": "SELECT 1"}),
        lambda: catalog.create_view(f"{db}.v", ROWS.schema, {"spark": "SELECT 1"}),
        lambda: catalog.create_table(f"{db}.v", ROWS.schema),
        lambda: catalog.rename_view(f"{db}.v", table.name()),
    ):
        with pytest.raises(ice.TableAlreadyExistsError):
            create()
    catalog.replace_view(f"{db}.v", OTHERS.schema, {"spark": "SELECT 3", "trino": "4"})
    again.refresh().update_properties({"c": "d"}, ["a"])
    found = world.open().load_view(f"{db}.v")
    assert (found.uuid(), found.queries) == (made.uuid(), {"spark": "SELECT 3", "trino": "4"})
    assert (found.schema().column_names, len(found.versions)) == (["id", "name"], 2)
    assert {key: found.properties.get(key) for key in "ac"} == {"a": None, "c": "d"}
    assert catalog.rename_view(f"{db}.v", f"{db}.w").uuid() == made.uuid()
    catalog.drop_view(f"{db}.w")
    for call in (catalog.load_view, catalog.drop_view):
        with pytest.raises(NoSuchViewError):
            call(f"{db}.w")
    catalog.drop_table(f"{db}.t")
    catalog.drop_namespace(db)


@law
def properties_of_tables_are_set_and_removed(world: World) -> None:
    catalog = world.open()
    table = catalog.create_table(f"{world.namespace(catalog)}.t", ROWS.schema, properties={"a": "b", "c": "d"})
    table.transaction().set_properties({"a": "ß 'x'", "e": "f" * 3000}).commit_transaction()
    table.transaction().remove_properties("c").commit_transaction()
    found = world.open().load_table(table.name()).properties
    assert {key: found.get(key) for key in "ace"} == {"a": "ß 'x'", "c": None, "e": "f" * 3000}


@law
def commits_without_an_answer_are_neither_lost_nor_doubled(world: World) -> None:
    catalog = world.open()
    table = catalog.create_table(f"{world.namespace(catalog)}.t", ROWS.schema, properties=QUICKLY)
    with lost(catalog, sent=True):
        table.append(ROWS)
    assert world.open().load_table(table.name()).scan().count() == 2
    with lost(catalog, sent=False), pytest.raises(ice.CommitStateUnknownException, match="the answer was lost"):
        table.append(ROWS)
    table = world.open().load_table(table.name())
    assert table.scan().count() == 2
    table.append(ROWS)
    assert (table.scan().count(), len(linear(table))) == (4, 2)


@law
def names_are_taken_as_they_are_or_refused(world: World) -> None:
    catalog = world.open()
    db = world.namespace(catalog)
    taken = []
    for name in world.names:
        try:
            catalog.create_table((db, name), ROWS.schema)
        except (ice.InvalidArgumentError, ice.StorageError):
            assert not world.any_name, name
            continue
        taken.append((db, name))
        assert catalog.table_exists((db, name))
        assert world.open().load_table((db, name)).name() == (db, name)
    assert sorted(catalog.list_tables(db)) == sorted(taken)
    for name in taken:
        catalog.load_table(name).append(ROWS)
        assert world.open().load_table(name).scan().count() == 2
        catalog.drop_table(name)
    assert catalog.list_tables(db) == []


@law
def commits_of_many_threads_make_one_line(world: World) -> None:
    catalog = world.open()
    # The waits are short: the loser of a race tries again at once.
    retries = {
        "commit.retry.num-retries": "1000",
        "commit.retry.min-wait-ms": "1",
        "commit.retry.max-wait-ms": "100",
    }
    name = catalog.create_table(f"{world.namespace(catalog)}.t", ROWS.schema, properties=retries).name()
    threads, commits = world.race
    failures: list[BaseException] = []

    def write(number: int) -> None:
        try:
            table = world.open().load_table(name)
            for commit in range(commits):
                table.append(pa.table({"id": [number * commits + commit], "region": ["eu"]}))
        except BaseException as error:  # noqa: BLE001 - told by the thread of the test
            failures.append(error)

    started = [threading.Thread(target=write, args=(number,)) for number in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    assert failures == []
    table = catalog.load_table(name)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(threads * commits))
    assert len(linear(table)) == threads * commits
    files = [entry.metadata_file for entry in table.metadata.metadata_log]
    assert len({*files, table.metadata_location}) == len(files) + 1 == threads * commits + 1
