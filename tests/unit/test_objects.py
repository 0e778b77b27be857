"""Public objects as Python users treat them: pickled, copied, printed, shared among threads."""

import copy
import inspect
import pickle
from datetime import datetime, timezone

import pyarrow as pa
import pytest

import icefield as ice
from icefield.catalog.memory import InMemoryCatalog
from icefield.errors import InvalidArgumentError
from icefield.metadata import Snapshot, SnapshotRef
from icefield.name_mapping import NameMapping
from icefield.table import StaticTable

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["a", "b", None]})


@pytest.fixture
def table(tmp_path):
    catalog = ice.load_catalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh"))
    catalog.create_namespace("n")
    return catalog.create_table("n.t", ROWS, partition_by="bucket(4, id)", sort_by="name").append(ROWS)


def objects(table):
    schema, spec, order = table.schema(), table.spec(), table.sort_order()
    mapping = NameMapping.from_schema(schema)
    term = ice.expressions.transform("bucket[4]", "id")
    return [
        *(ice.types.DecimalType(9, 2), schema, schema.fields[0], spec, spec.fields[0], order, order.fields[0]),
        *(mapping, mapping.fields[0], ice.transforms.bucket(4), ice.expressions.parse("id > 1 AND name LIKE 'a%'")),
        *(term, ice.expressions.Reference("a.b"), ice.puffin.DeletionVector([1, 5, 2**40]), ice.Secret("s")),
        *(table.metadata, table.current_snapshot(), table.metadata.snapshots[0], table.refs()["main"], table),
        *table.history(),
    ]


def test_equal_after_pickling_and_copying(table):
    for given in objects(table):
        for again in (pickle.loads(pickle.dumps(given)), copy.copy(given), copy.deepcopy(given)):
            assert again == given, given
            assert type(again) is type(given)


def test_a_pickled_table_and_its_scan_read_the_same_rows(table):
    scan = table.scan("id > 1", selected_fields="id")
    assert pickle.loads(pickle.dumps(scan)).to_arrow() == scan.to_arrow()
    again = pickle.loads(pickle.dumps(table))
    assert again.scan().to_arrow() == table.scan().to_arrow()
    assert again.append(ROWS).scan().count() == 6
    assert table.scan().count() == 3
    assert table.refresh().scan().count() == 6


def test_snapshots_of_a_table_are_those_of_its_metadata(table):
    current = table.current_snapshot()
    assert isinstance(current, Snapshot)
    assert isinstance(table.refs()["main"], SnapshotRef)
    assert {current: 1}[table.metadata.current_snapshot()] == 1
    assert table.snapshot_by_name("main") == table.snapshot_by_id(current.snapshot_id) == current
    assert table.snapshot_by_name("none") is table.snapshot_by_id(5) is None


def test_a_table_is_found_again_in_a_set_after_changes(table):
    found = {table: 1}
    begun = hash(table)
    catalog = table.catalog
    with table.branch("work") as work:
        works, of_branch = {work}, hash(work)
        for change in (
            lambda: table.append(ROWS),
            lambda: table.update_properties({"k": "v"}),
            lambda: table.update_schema().add_column("more", "int").commit(),
            lambda: table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "t").commit(),
            lambda: catalog.load_table("n.t").delete("id = 1"),
            table.refresh,
        ):
            change()
            assert (hash(table), found.get(table), len({table, *found})) == (begun, 1, 1)
            assert (hash(work), work in works) == (of_branch, True)
        work.delete("id = 2")
        assert (hash(work), work in works) == (of_branch, True)
        assert table not in works
        table.manage_snapshots().set_current_snapshot(table.refs()["work"].snapshot_id).commit()
    assert (hash(table), found[table]) == (begun, 1)


def test_tables_are_equal_in_the_same_state_and_have_one_hash_in_all(table):
    one, other = (table.catalog.load_table("n.t") for _ in range(2))
    assert (one == other, len({one, other, table})) == (True, 1)
    one.append(ROWS)
    assert (one == other, hash(one) == hash(other), len({one, other})) == (False, True, 2)
    assert other.refresh() == one
    assert table.catalog.create_table("n.other", ROWS) != one
    assert one != table.metadata_location
    static = [StaticTable.from_metadata(one.metadata_location) for _ in range(2)]
    assert (static[0] == static[1], len(set(static))) == (True, 1)


class Meddling(InMemoryCatalog):
    """Another thread appends by the same table, after the commit of the first and before that one knows of it."""

    meddle = None

    def swap_pointer(self, identifier, base, new):
        super().swap_pointer(identifier, base, new)
        if self.meddle is not None:
            meddle, self.meddle = self.meddle, None
            meddle()


def test_a_table_shared_by_threads_does_not_fall_back():
    catalog = Meddling("m")
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", ROWS)
    for operation in (lambda: table.append(ROWS), lambda: table.update_properties({"k": "v"})):
        before = len(table.snapshots())
        catalog.meddle = lambda: table.append(ROWS)
        operation()
        assert table.metadata_location == catalog.load_table("n.t").metadata_location
        assert len(table.snapshots()) > before
    assert len(table.snapshots()) == 3
    assert table.properties["k"] == "v"
    assert table.scan().count() == 9


def test_scans_print_what_they_read(table):
    scan = table.scan("name = '<b>'", selected_fields=("id", "name"), limit=5)
    assert repr(scan) == (
        f"Scan of {table.location()}, snapshot {table.current_snapshot().snapshot_id}\n"
        "  columns:      id, name\n"
        "  filter:       name = '<b>'\n"
        "  limit:        5"
    )
    assert ">name = &#x27;&lt;b&gt;&#x27;</td>" in scan._repr_html_()
    assert scan.explain().startswith(repr(scan))
    appends = table.incremental_append_scan()
    assert repr(appends).startswith(f"Scan of {table.location()}, appends of 1 snapshots")
    assert "<table>" in appends._repr_html_()


def test_names_from_outside_are_escaped(tmp_path):
    catalog = ice.load_catalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh"))
    catalog.create_namespace("n")
    table = catalog.create_table(("n", "<i>t"), pa.table({"<u>": [1]})).append(pa.table({"<u>": [1]}))
    document = table.metadata_json().replace('"operation":"append"', '"operation":"<script>"')
    table.storage.write(f"{table.location()}/odd.metadata.json", document.encode())
    for shown in (table, ice.Table.from_metadata(f"{table.location()}/odd.metadata.json"), table.scan()):
        html = shown._repr_html_()
        assert not {"<i>", "<u>", "<script>"} & {html[at : html.find(">", at) + 1] for at in range(len(html))}


def test_defaults_of_fields():
    field = ice.NestedField(1, "d", "decimal(9, 2)", initial_default="1.5", write_default="2.50")
    assert (str(field.initial_default), str(field.write_default)) == ("1.50", "2.50")
    assert ice.NestedField.from_json(field.to_json()) == field
    plain = ice.NestedField(1, "d", "int")
    assert plain.initial_default is plain.write_default is None
    with pytest.raises(InvalidArgumentError, match="'x' is not a value of type int"):
        ice.NestedField(1, "d", "int", initial_default="x")


@pytest.mark.parametrize(
    "call",
    [
        lambda: ice.transforms.bucket(0),
        lambda: ice.transforms.bucket("16"),
        lambda: ice.transforms.truncate(1.5),
        lambda: ice.expressions.And(1, 2),
        lambda: ice.expressions.Not(None),
        lambda: ice.Schema().find_field("a"),
        lambda: ice.Schema().find_field(7),
        lambda: ice.Schema().select("a"),
        lambda: ice.Schema.from_arrow(pa.schema([]), format_version=0),
        lambda: ice.Schema.from_arrow(pa.schema([]), format_version=4),
    ],
)
def test_wrong_arguments_are_errors_of_ours(call):
    with pytest.raises(ice.IcefieldError):
        call()


def test_objects_say_what_they_hold():
    """What is printed of a table and its snapshots; and no public property lacks its sentence."""
    catalog = ice.load_catalog("m", type="in-memory")
    catalog.create_namespace("a")
    rows = pa.table({"id": [1, 2], "s": ["x", "y"]})
    table = catalog.create_table("a.t", rows, partition_by=["bucket(4, id)", "s"], sort_by="id desc")
    assert "snapshot:       none" in repr(table)
    table.append(rows)
    facts = [
        "partitioned by: bucket(4, id), s",
        "sorted by:      id desc nulls last",
        "rows:           2",
        table.location(),
    ]
    for fact in facts:
        assert fact in repr(table)
        assert fact.rpartition("  ")[2].rpartition(": ")[2] in table._repr_html_()
    year = f"{datetime.now(timezone.utc).year}-"
    assert f"committed={year}" in repr(table.current_snapshot())
    assert f", {year}" in repr(table)
    for kind in (ice.Table, Snapshot, SnapshotRef, ice.TableMetadata, type(table.scan()), ice.Schema):
        members = {name: value for name, value in vars(kind).items() if not name.startswith("_")}
        described = {
            name: value for name, value in members.items() if callable(value) or inspect.isdatadescriptor(value)
        }
        assert described
        assert [name for name, value in described.items() if not value.__doc__] == []
    assert "Ellipsis" not in str(inspect.signature(ice.Schema))
