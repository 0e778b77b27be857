"""Arguments that no caller means: each is refused as what it is, by one of our exceptions, and says what was meant."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield import expressions
from icefield.errors import InvalidArgumentError

BIG = 2**70
SCHEMA = ice.Schema(ice.NestedField(1, "id", "long"), ice.NestedField(2, "name", "string"))
VECTOR = ice.puffin.DeletionVector([1, 2])


@pytest.fixture
def catalog() -> Iterator[ice.Catalog]:
    with ice.load_catalog("m", type="in-memory") as opened:
        opened.create_namespace("a")
        yield opened


@pytest.fixture
def table(catalog: ice.Catalog) -> ice.Table:
    return catalog.create_table("a.t", SCHEMA).append(pa.table({"id": [1], "name": ["x"]}))


TOO_BIG: dict[str, Callable[[ice.Table], Any]] = {
    "moment": lambda table: table.metadata.snapshot_as_of(BIG),
    "ancestors": lambda table: table.metadata.ancestors(-BIG),
    "version": lambda table: table.metadata.upgrade(BIG),
    "tag": lambda table: table.manage_snapshots().create_tag(BIG, "tag"),
    "age": lambda table: table.manage_snapshots().create_tag(table.snapshots()[0].snapshot_id, "tag", BIG),
    "rollback": lambda table: table.manage_snapshots().rollback_to_snapshot(BIG),
    "tasks": lambda table: table.scan().plan_tasks(BIG),
    "source": lambda _: ice.PartitionField(BIG, 1000, "identity", "id"),
    "sources": lambda _: ice.SortField([1, BIG], "identity"),
    "partition field": lambda _: ice.PartitionField(1, BIG, "identity", "id"),
    "row": lambda _: VECTOR.live_mask(first_row=-1, row_count=3),
    "rows": lambda _: VECTOR.live_mask(first_row=0, row_count=2**62),
    "position": lambda _: ice.puffin.DeletionVector([-1]),
    "length": lambda _: ice.values.truncate_bound("abc", "string", -1),
    "longest": lambda _: ice.values.truncate_bound("abc", "string", BIG),
    "first snapshot": lambda table: table.incremental_append_scan(from_snapshot_id_exclusive=BIG),
    "last snapshot": lambda table: table.incremental_changelog_scan(to_snapshot_id_inclusive=-BIG),
    "limit of changes": lambda table: table.incremental_append_scan(limit=BIG),
    "inspected snapshot": lambda table: table.inspect.files(snapshot_id=BIG),
    "inspected moment": lambda table: table.inspect.entries(as_of=BIG),
    "cache": lambda _: ice.manifests.set_cache_bytes(BIG),
    "no cache": lambda _: ice.manifests.set_cache_bytes(-1),
    "now": lambda table: table.metadata.apply([], now_ms=BIG),
    "now of a new table": lambda _: ice.TableMetadata.create([], now_ms=BIG),
    "field": lambda _: ice.NestedField(BIG, "id", "long"),
    "found field": lambda table: table.schema().find_field(BIG),
    "schema id": lambda _: ice.Schema(schema_id=BIG),
    "identifiers": lambda _: ice.Schema(identifier_field_ids=[BIG]),
    "version of Arrow": lambda _: ice.Schema.from_arrow(pa.schema([]), format_version=BIG),
    "spec": lambda _: ice.PartitionSpec(spec_id=BIG),
    "spec's column": lambda table: table.spec().fields_by_source_id(BIG),
    "order": lambda _: ice.SortOrder(order_id=BIG),
    "lookback": lambda table: table.scan().plan_tasks(lookback=BIG),
    "deleted rows": lambda _: ice.puffin.DeletionVector.from_bytes(VECTOR.to_bytes(), record_count=BIG),
    "inherited": lambda _: ice.manifests.read(
        b"", manifest={"added_snapshot_id": BIG, "sequence_number": 1, "content": 0, "first_row_id": None}
    ),
    "wanted metrics": lambda _: ice.manifests.read(b"", metrics=[BIG]),
    "stripe of ORC": lambda _: ice.orc.ORCFile(orc_file()).read_stripe(BIG),
    "batches of ORC": lambda _: list(ice.orc.ORCFile(orc_file()).iter_batches(batch_size=BIG)),
    "size of ORC": lambda _: orc_file(stripe_size=BIG),
    "stride of ORC": lambda _: orc_file(row_index_stride=-1),
}


def orc_file(**options: Any) -> bytes:
    file = io.BytesIO()
    ice.orc.write_table(pa.table({"id": [1]}), file, **options)
    return file.getvalue()


@pytest.mark.parametrize("what", TOO_BIG)
def test_numbers_that_no_field_holds(table: ice.Table, what: str) -> None:
    with pytest.raises(InvalidArgumentError):
        TOO_BIG[what](table)


def test_a_number_among_options_is_named() -> None:
    with pytest.raises(
        InvalidArgumentError, match="^row_index_stride: an integer from 0 to 4294967295 is needed, not -1"
    ):
        orc_file(row_index_stride=-1)
    with pytest.raises(TypeError, match="stripe_size"):
        orc_file(stripe_size="many")


def test_nothing_has_an_id_that_is_none(table: ice.Table) -> None:
    assert table.snapshot_by_id(BIG) is None
    assert table.metadata.schema_by_id(-(2**31) - 1) is None
    assert table.schema().find_column_name(BIG) is None
    with pytest.raises(TypeError):
        table.snapshot_by_id("1")  # type: ignore[arg-type]


def test_no_row_has_a_number_that_is_none() -> None:
    assert 1 in VECTOR
    assert -1 not in VECTOR
    assert BIG not in VECTOR


COMBINED: dict[str, Callable[[], Any]] = {
    "And": lambda: expressions.And("id = 1", "id = "),
    "Or": lambda: expressions.Or("id = 1", "id = 2", "id = "),
    "Not": lambda: expressions.Not("id = "),
    "&": lambda: expressions.parse("id = 1") & "id = ",
    "|": lambda: "id = " | expressions.parse("id = 1"),
}


@pytest.mark.parametrize("how", COMBINED)
def test_what_is_wrong_with_a_text_is_told_where_texts_are_combined(how: str) -> None:
    with pytest.raises(InvalidArgumentError, match="character 6"):
        COMBINED[how]()
    with pytest.raises(TypeError, match="unsupported operand"):
        expressions.parse("id = 1") & 5  # type: ignore[operator]


@pytest.mark.parametrize("text", ["id = 'x'", "id > 1.5", "id IN (1, 'x')", "truncate(10, id) = 'x'"])
def test_a_literal_that_does_not_fit_names_the_column(table: ice.Table, text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="column id: .* is not a value of type long"):
        table.scan(text)


@pytest.mark.parametrize("name", [1, b"a.t", {"a"}, 1.5])
def test_names_are_text(catalog: ice.Catalog, name: Any) -> None:
    for call in (catalog.load_table, catalog.table_exists, catalog.drop_table, catalog.list_tables):
        with pytest.raises(InvalidArgumentError, match="identifier must be a str or a tuple of str"):
            call(name)
    with pytest.raises(InvalidArgumentError, match="catalog name must be a str"):
        ice.load_catalog(name)
    with pytest.raises(InvalidArgumentError, match="root namespace"):
        catalog.drop_namespace(())


EMPTY: dict[str, Callable[[ice.Catalog], Any]] = {
    "location of the table is empty": lambda catalog: catalog.create_table("a.u", SCHEMA, location=""),
    "property 'location' of the namespace a is empty": lambda catalog: (
        catalog.update_namespace_properties("a", updates={"location": ""}),
        catalog.create_table("a.u", SCHEMA),
    ),
    "property 'warehouse' of the catalog is empty": lambda _: (
        opened := ice.load_catalog("m", type="in-memory", warehouse=""),
        opened.create_namespace("b"),
        opened.create_table("b.u", SCHEMA),
    ),
    "property 'write.metadata.path': expected a non-empty string, got ''": lambda catalog: catalog.create_table(
        "a.u", SCHEMA, properties={"write.metadata.path": ""}
    ),
    "property 'write.data.path': expected a non-empty string, got ''": lambda catalog: catalog.create_table(
        "a.v", SCHEMA, properties={"write.data.path": ""}
    ).append(pa.table({"id": [1]})),
    "/location: must not be empty": lambda catalog: catalog.create_table("a.v", SCHEMA).commit(
        [], [{"action": "set-location", "location": ""}]
    ),
    "the old prefix is empty": lambda _: ice.Table.from_metadata("v1.json", relocate={"": "elsewhere"}),
}

#: Calls with an empty location, which all refuse with the same words.
NOWHERE = {
    "a table of a catalog": lambda catalog: catalog.register_table("a.u", ""),
    "what stands for another location": lambda _: ice.Table.from_metadata("v1.json", relocate={"v1.json": ""}),
    "a metadata file": lambda _: ice.Table.from_metadata(""),
    "an ORC file that is read": lambda _: ice.orc.read_table(""),
    "an ORC file that is written": lambda _: ice.orc.write_table(pa.table({"id": [1]}), ""),
}


@pytest.mark.parametrize("message", EMPTY)
def test_no_place_is_never_the_working_directory(
    catalog: ice.Catalog, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidArgumentError, match=message):
        EMPTY[message](catalog)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", NOWHERE)
def test_an_empty_location_is_refused(
    catalog: ice.Catalog, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidArgumentError, match="the location is empty"):
        NOWHERE[place](catalog)
    assert list(tmp_path.iterdir()) == []
    assert not catalog.table_exists("a.u")


def test_the_location_of_a_namespace_is_made_whole(catalog: ice.Catalog, tmp_path: Path) -> None:
    catalog.create_namespace("b", {"location": os.path.relpath(tmp_path)})
    assert catalog.create_table("b.t", SCHEMA).location() == f"file://{tmp_path}/t"


def test_fields_of_partitions_are_text_or_objects(catalog: ice.Catalog) -> None:
    for options in ({"partition_by": 1}, {"sort_by": 1}, {"partition_spec": 1}):
        with pytest.raises(InvalidArgumentError, match="expected an object or the text of each field, got 1"):
            catalog.create_table("a.t", SCHEMA, **options)
    with pytest.raises(TypeError, match="integer"):
        ice.PartitionField("id", 1000, "identity", "id")  # type: ignore[arg-type]


def test_limits_of_references_are_the_callers(table: ice.Table) -> None:
    snapshot = table.snapshots()[0].snapshot_id
    with pytest.raises(InvalidArgumentError, match='"tag".*max-ref-age-ms.*must be positive: -1'):
        table.manage_snapshots().create_tag(snapshot, "tag", -1)
    with pytest.raises(InvalidArgumentError, match="min-snapshots-to-keep.*must be positive: 0"):
        table.manage_snapshots().create_branch(snapshot, "branch", min_snapshots_to_keep=0)


def test_the_version_is_raised_by_its_property_as_in_java(table: ice.Table) -> None:
    assert table.update_properties({"format-version": 3, "owner": "me"}).format_version == 3
    assert "format-version" not in table.properties
    assert table.properties["owner"] == "me"
    for version in (2, "x", "", True, 4):
        with pytest.raises((InvalidArgumentError, ice.UnsupportedFeatureError)):
            table.update_properties({"format-version": version})
    with table.transaction() as tx:
        tx.set_properties({"format-version": "3"}, team="ice")
    assert (table.format_version, table.properties["team"]) == (3, "ice")


TOO_WIDE = {
    "int": (
        pa.array([1, None, 2**31]),
        "row 2 is 2147483648, which does not fit: the table's type is int, the data's long",
    ),
    "long": (
        pa.array([2**63], pa.uint64()),
        "row 0 is 9223372036854775808, .* is long, the data's unsigned 64-bit integer",
    ),
    "decimal(4, 2)": (
        pa.array([Decimal("99.9"), Decimal("100.0")]),
        r"row 1 is 100.0, which .* decimal\(4, 2\), the data's decimal\(4, 1\)",
    ),
    "timestamp": (
        pa.array([0, 2**62], pa.timestamp("s")),
        "row 1 is .*, which does not fit: the table's type is timestamp",
    ),
    "date": (
        pa.array([0, 86_400_000 * 2**31], pa.date64()),
        "row 1 is .*, which does not fit: .* date, the data's date in milliseconds",
    ),
    "dictionary": (pa.array([1, 2**40]).dictionary_encode(), "row 1 is 1099511627776, which does not fit"),
    "list": (pa.array([[1], [2, 2**31]]), "column v.element: row 1 is 2147483648, which does not fit"),
}


@pytest.mark.parametrize("what", TOO_WIDE)
def test_a_value_that_does_not_fit_is_named_with_its_row(catalog: ice.Catalog, what: str) -> None:
    values, message = TOO_WIDE[what]
    kinds = {"dictionary": "int", "list": ice.types.ListType(2, "int", element_required=False)}
    table = catalog.create_table("a.u", ice.Schema(ice.NestedField(1, "v", kinds.get(what, what))))
    with pytest.raises(ice.errors.ValidationError, match=message) as caught:
        table.append(pa.table({"v": values}))
    assert "column v" in str(caught.value)
    assert table.refresh().current_snapshot() is None


def test_all_that_does_not_fit_is_told_at_once(table: ice.Table) -> None:
    twice = pa.table([pa.array([1]), pa.array([2]), pa.array([True])], names=["id", "id", "name"])
    with pytest.raises(ice.errors.ValidationError) as caught:
        table.append(twice)
    lines = str(caught.value).splitlines()
    assert lines[0] == "2 columns do not fit:"
    assert [line.split(":")[0] for line in lines[1:]] == ["  column id", "  column name"]
