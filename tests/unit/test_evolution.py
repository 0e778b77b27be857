"""Tables that change: schema, partition spec, sort order, references, alone and in transactions."""

# ruff: noqa: F811 - fixtures are parameters

import threading

import pyarrow as pa
import pytest
from places import ROW, SCHEMA, catalog, read, rows, table, version  # noqa: F401 - fixtures

import icefield as ice
from icefield.errors import CommitFailedException, IcefieldError, InvalidArgumentError, UnsupportedFeatureError


def names(table):
    return [field.name for field in table.schema().fields]


def test_old_files_are_read_by_ids(table):
    with table.update_schema() as update:
        update.rename_column("name", "title").rename_column("place.city", "town")
        update.update_column("id", "long").update_column("score", "double", doc="points")
        update.add_column("place.country", "string", doc="ISO 3166").add_column("tags.value", "long")
        update.delete_column("place.zip")
    # The name is free now: it is another column, with an id of its own.
    table.update_schema().add_column("name", "date").commit()
    assert table.scan().to_arrow().schema.field("id").type == pa.int64()
    assert table.schema().find_field("score").doc == "points"
    assert table.schema().find_field("place.country").doc == "ISO 3166"
    assert table.schema().find_field("title").field_id == 2
    old = {
        "id": 1,
        "title": "a",
        "score": 0.5,
        "place": {"town": "Bonn", "country": None},
        "tags": [{"key": "k", "value": None}, None],
        "name": None,
    }
    assert read(table) == [old]
    new = {**old, "id": 2**40, "place": {"town": "Rom", "country": "IT"}, "tags": [{"key": None, "value": 7}]}
    table.append(rows(table, new))
    assert sorted(read(table), key=lambda row: row["id"]) == [old, new]
    assert read(table, row_filter="place.country = 'IT'") == [new]
    # The first snapshot is read with the schema that it was written with.
    assert read(table, snapshot_id=table.snapshots()[0].snapshot_id) == [ROW]
    # A column that is added again is another one.
    with table.update_schema() as update:
        update.delete_column("title")
    table.update_schema().add_column("title", "string").commit()
    assert {row["title"] for row in read(table)} == {None}


def test_old_schemas_come_back(table):
    table.update_schema().rename_column("name", "title").commit()
    table.update_schema().rename_column("title", "name").commit()
    assert table.schema().schema_id == 0
    assert sorted(table.schemas()) == [0, 1]
    location = table.metadata_location
    table.update_schema().commit()
    table.update_schema().rename_column("name", "name").commit()
    assert table.metadata_location == location


def test_defaults(catalog):
    table = catalog.create_table("a.t", SCHEMA, properties={"format-version": "3"})
    table.append(rows(table, ROW))
    with table.update_schema() as update:
        update.add_column("level", "int", required=True, default_value=3)
    table.update_schema().set_default_value("level", 4).set_default_value("name", "none").commit()
    table.append(pa.table({"id": pa.array([2], pa.int32())}))
    found = {row["id"]: (row["level"], row["name"]) for row in read(table)}
    assert found == {1: (3, "a"), 2: (4, "none")}


@pytest.mark.parametrize("version", [1, 2], indirect=True)
def test_defaults_need_version_3(table):
    change = table.update_schema().add_column("level", "int", default_value=3)
    with pytest.raises(IcefieldError, match="level.*default|default.*level"):
        change.commit()
    with table.transaction() as tx:
        tx.upgrade_table_version(3)
        tx.update_schema().add_column("level", "int", default_value=3).commit()
    assert [row["level"] for row in read(table)] == [3]


@pytest.mark.parametrize(
    ("move", "expected"),
    [
        (lambda u: u.move_first("score"), ["score", "id", "name", "place", "tags"]),
        (lambda u: u.move_before("tags", "name"), ["id", "tags", "name", "score", "place"]),
        (lambda u: u.move_after("id", "score"), ["name", "score", "id", "place", "tags"]),
        (lambda u: u.add_column("new", "int").move_after("new", "id"), ["id", "new", "name", "score", "place", "tags"]),
    ],
)
def test_moves(catalog, move, expected):
    table = catalog.create_table("a.t", SCHEMA)
    table.append(rows(table, ROW))
    with table.update_schema() as update:
        move(update)
        update.move_first("place.zip")
    assert names(table) == expected
    assert [field.name for field in table.schema().find_type("place").fields] == ["zip", "city"]
    assert {key: value for key, value in read(table)[0].items() if key != "new"} == ROW


def test_identifier_fields(catalog):
    table = catalog.create_table("a.t", SCHEMA)
    table.update_schema().rename_column("id", "key").commit()
    assert table.schema().identifier_field_ids == [1]
    with pytest.raises(InvalidArgumentError, match="key"):
        table.update_schema().delete_column("key").commit()
    with pytest.raises(InvalidArgumentError, match="name"):
        table.update_schema().set_identifier_fields("name").commit()
    table.update_schema().set_identifier_fields().commit()
    assert table.schema().identifier_field_ids == []


def test_union_by_name(table):
    other = pa.schema([("name", pa.string()), ("score", pa.float64()), ("place", pa.struct([("lat", pa.float64())]))])
    table.update_schema().union_by_name(other).commit()
    assert str(table.schema().find_type("score")) == "double"
    assert str(table.schema().find_type("place.lat")) == "double"
    assert table.schema().find_field("id").required
    table.update_schema().union_by_name(SCHEMA).commit()
    assert str(table.schema().find_type("score")) == "double"


def test_properties_follow_columns(catalog):
    prefix = "write.metadata.metrics.column."
    properties = {prefix + "name": "counts", prefix + "score": "none", prefix + "id": "full"}
    table = catalog.create_table("a.t", SCHEMA, properties=properties)
    table.update_schema().rename_column("name", "title").delete_column("score").commit()
    found = {key: value for key, value in table.properties.items() if key.startswith(prefix)}
    assert found == {prefix + "title": "counts", prefix + "id": "full"}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda u: u.add_column("name", "int"), "name"),
        (lambda u: u.add_column("place.city", "int"), "place.city"),
        (lambda u: u.add_column("none.city", "int"), "none"),
        (lambda u: u.add_column("more", "int", required=True), "more"),
        (lambda u: u.add_column("more", "int", default_value="x"), "'x'.* int"),
        (lambda u: u.add_column("more", "integers"), "integers"),
        (lambda u: u.add_column((), "int"), "empty"),
        (lambda u: u.delete_column("none"), "none"),
        (lambda u: u.rename_column("none", "x"), "none"),
        (lambda u: u.update_column("name", "int"), "name.* string .*int"),
        (lambda u: u.update_column("id", "string"), "id"),
        (lambda u: u.update_column("place", "int"), "place"),
        (lambda u: u.update_column("name", required=True), "name"),
        (lambda u: u.update_column("name"), "name"),
        (lambda u: u.set_default_value("none", 1), "none"),
        (lambda u: u.set_default_value("id", "x"), "'x'.* int"),
        (lambda u: u.move_before("name", "place.city"), "name"),
        (lambda u: u.move_first("none"), "none"),
        (lambda u: u.union_by_name(pa.schema([("name", pa.int32())])), "name"),
    ],
)
def test_what_cannot_be_done_is_refused_at_once(catalog, change, problem):
    table = catalog.create_table("a.t", SCHEMA)
    update = table.update_schema().add_column("fine", "int")
    with pytest.raises(InvalidArgumentError, match=problem):
        change(update)
    # What was right before stays.
    update.commit()
    assert names(table) == [*[field.name for field in SCHEMA.fields], "fine"]


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        ("name", r"cannot delete column name: partition field name_bucket \(bucket\[8\]\) has it as its source"),
        ("place", r"cannot delete column place.zip: partition field place.zip \(identity\) has it as its source"),
        ("score", r"cannot delete column score: the sort order contains"),
    ],
)
def test_columns_that_new_files_are_laid_out_by_stay(catalog, version, column, problem):
    table = catalog.create_table(
        "a.laid",
        SCHEMA,
        partition_by=["bucket(8, name)", "place.zip"],
        sort_by=["score"],
        properties={"format-version": str(version)},
    )
    with pytest.raises(InvalidArgumentError, match=problem), table.update_schema() as change:
        change.delete_column(column)
    with table.transaction() as transaction:
        with transaction.update_spec() as change:
            change.remove_field("name_bucket").remove_field("place.zip")
        transaction.update_sort_order().commit()
        with transaction.update_schema() as change:
            change.delete_column(column)
    assert column not in table.schema().column_names
    # The old spec stays for the files that are there, and the table loads.
    assert table.refresh().schema().find_field("id").required


@pytest.mark.parametrize(
    ("update", "problem"),
    [
        ({"action": "set-default-spec", "spec-id": 77}, "no partition spec with id 77"),
        ({"action": "set-default-sort-order", "sort-order-id": 77}, "no sort order with id 77"),
        ({"action": "set-location", "location": "///"}, "must not be empty"),
    ],
)
def test_updates_after_which_the_table_does_not_hold_together(catalog, update, problem):
    table = catalog.create_table("a.held", SCHEMA)
    with pytest.raises(InvalidArgumentError, match=problem):
        table.commit([], [update])


def test_a_column_does_not_take_the_name_of_a_partition_field(catalog):
    table = catalog.create_table("a.named", SCHEMA, partition_by=["bucket(8, name)"])
    with pytest.raises(InvalidArgumentError, match=r"\"name_bucket\" has the name of column"):
        table.update_schema().rename_column("score", "name_bucket").commit()


def test_incompatible_changes_are_for_those_who_ask(catalog):
    table = catalog.create_table("a.t", SCHEMA)
    with table.update_schema(allow_incompatible_changes=True, case_sensitive=False) as update:
        update.require_column("NAME").add_column("more", "int", required=True)
    assert table.schema().find_field("name").required
    assert table.schema().find_field("more").required
    table.update_schema().make_column_optional("name").update_column("more", required=False).commit()
    assert table.schema().find_field("name").optional
    assert table.schema().find_field("more").optional


def test_the_case_of_names_is_set_before_the_first_change(catalog):
    table = catalog.create_table("a.t", SCHEMA)
    update = table.update_schema(allow_incompatible_changes=True)
    with pytest.raises(InvalidArgumentError, match="NAME"):
        update.rename_column("NAME", "title")
    update.case_sensitive(case_sensitive=False).rename_column("NAME", "title")
    with pytest.raises(InvalidArgumentError, match="before the first change"):
        update.case_sensitive(case_sensitive=True)
    # What is allowed stays so.
    update.require_column("SCORE").commit()
    assert table.schema().find_field("score").required
    assert "title" in names(table)
    with pytest.raises(InvalidArgumentError, match="TITLE"):
        table.update_schema(case_sensitive=False).case_sensitive(case_sensitive=True).delete_column("TITLE")


def test_names_with_dots(catalog):
    table = catalog.create_table("a.t", SCHEMA)
    table.update_schema().add_column(("a.b",), "int").add_column(("place", "area"), "double").commit()
    assert "a.b" in names(table)
    assert str(table.schema().find_type("place.area")) == "double"


def test_partition_specs(table, version):
    with table.update_spec() as update:
        update.add_field("bucket(16, id)").add_field("name", "truncate[2]", "start").add_identity("score")
    assert [field.name for field in table.spec().fields] == ["id_bucket_16", "start", "score"]
    assert [field.field_id for field in table.spec().fields] == [1000, 1001, 1002]
    table.append(rows(table, {**ROW, "id": 2}))
    table.update_spec().remove_field("bucket(16, id)").rename_field("start", "begin").commit()
    fields = [(field.name, str(field.transform)) for field in table.spec().fields]
    kept = [("begin", "truncate[2]"), ("score", "identity")]
    if version == 1:
        kept = [(fields[0][0], "void"), *kept]
    assert fields == kept
    table.append(rows(table, {**ROW, "id": 3, "name": None}))
    table.update_schema().rename_column("name", "title").commit()
    assert sorted(row["id"] for row in read(table)) == [1, 2, 3]
    assert [row["id"] for row in read(table, row_filter="id = 2")] == [2]
    assert [row["id"] for row in read(table, row_filter="title is null")] == [3]
    assert len(table.specs()) == 3
    # The same fields again are the spec that was there.
    table.update_spec().add_field("bucket(16, id)").commit()
    # Versions above 1 find the field of old and its id; version 1 keeps that as a void field and adds another.
    assert {field.field_id for field in table.spec().fields} == {1000, 1001, 1002} | ({1003} if version == 1 else set())


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda u: u.add_field("none", "bucket[4]"), "none"),
        (lambda u: u.add_field("bucket(4, none)"), "none"),
        (lambda u: u.add_field("id"), "id"),
        (lambda u: u.add_field("hash(id)"), "hash"),
        (lambda u: u.add_field("bucket(4, id) of"), "not a partition field"),
        (lambda u: u.add_field("name", "day").apply(), "name"),
        (lambda u: u.remove_field("none"), "none"),
        (lambda u: u.remove_field("bucket(9, id)"), "bucket"),
        (lambda u: u.rename_field("none", "x"), "none"),
        (lambda u: u.remove_field("id").rename_field("id", "x"), "id"),
    ],
)
def test_specs_that_cannot_be(catalog, change, problem):
    table = catalog.create_table("a.t", SCHEMA, partition_by="id")
    with pytest.raises(InvalidArgumentError, match=problem), table.update_spec() as update:
        change(update)
    assert len(table.refresh().specs()) == 1


def test_sort_orders(catalog):
    table = catalog.create_table("a.t", SCHEMA)
    table.update_sort_order().asc("name").desc("id", "bucket[4]", "nulls-first").by("score desc").commit()
    fields = [(str(field.transform), field.source_id) for field in table.sort_order().fields]
    assert fields == [("identity", 2), ("bucket[4]", 1), ("identity", 3)]
    table.update_sort_order().commit()
    assert table.sort_order().order_id == 0
    assert sorted(table.sort_orders()) == [0, 1]
    with pytest.raises(InvalidArgumentError, match="none"):
        table.update_sort_order().asc("none")
    for wrong in ("upwards", "nulls-middle", 'nulls-last") desc ("id'):
        with pytest.raises(InvalidArgumentError, match="nulls first or nulls last"):
            table.update_sort_order().asc("id", null_order=wrong)
    with pytest.raises(InvalidArgumentError, match="unknown transform"):
        table.update_sort_order().asc("id", "bucket[4](id) desc, identity")


ODD_NAMES = [
    'both " and `',
    "a b",
    'a" desc',
    "a) , (b",
    "bucket(4, id)",
    "a.b",
    "nulls first",
    "-- x",
    "a\nb",
    "'",
    "é",
]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_any_name_can_be_partitioned_and_sorted_by(catalog, name):
    table = catalog.create_table("a.t", pa.schema([("id", pa.int64()), (name, pa.int64())]))
    table.update_sort_order().desc(name, "bucket[4]").asc(name, "truncate[3]", "nulls-last").commit()
    found = [(str(field.transform), field.source_id, field.direction) for field in table.sort_order().fields]
    assert found == [("bucket[4]", 2, "desc"), ("truncate[3]", 2, "asc")]
    table.update_spec().add_field(name, "bucket[4]", "shard").add_identity(name).commit()
    assert [(str(field.transform), field.source_id) for field in table.spec().fields] == [
        ("bucket[4]", 2),
        ("identity", 2),
    ]
    table.append(pa.table({"id": [1, 2], name: [10, 20]}))
    assert table.scan(ice.expressions.EqualTo(name, 20)).to_arrow()["id"].to_pylist() == [2]
    assert table.scan(selected_fields=(name,)).to_arrow().column_names == [name]


def test_references(table):
    first = table.current_snapshot().snapshot_id
    second = table.append(rows(table, {**ROW, "id": 2})).current_snapshot().snapshot_id
    table.manage_snapshots().create_tag(first, "start", 1000).create_branch(second, "b", 1, 2, 3).commit()
    assert (table.refs()["start"].snapshot_ref_type, table.refs()["start"].max_ref_age_ms) == ("tag", 1000)
    branch = table.refs()["b"]
    assert (branch.max_ref_age_ms, branch.max_snapshot_age_ms, branch.min_snapshots_to_keep) == (1, 2, 3)
    assert len(read(table, ref="start")) == 1
    table.append(rows(table, {**ROW, "id": 3}), branch="b")
    assert (len(read(table)), len(read(table, ref="b"))) == (2, 3)

    with table.manage_snapshots() as snapshots:
        snapshots.rollback_to_snapshot(first)
    assert table.current_snapshot().snapshot_id == first
    with pytest.raises(InvalidArgumentError, match=f"{second}.*ancestor"):
        table.manage_snapshots().rollback_to_snapshot(second)
    table.manage_snapshots().set_current_snapshot(ref_name="b").commit()
    assert len(read(table)) == 3
    time = table.snapshot_by_id(second).timestamp_ms
    table.manage_snapshots().rollback_to_timestamp(time + 1).commit()
    assert table.snapshot_by_id(first) is not None
    assert table.current_snapshot().timestamp_ms <= time

    table.manage_snapshots().remove_tag("start").remove_branch("b").commit()
    assert list(table.refs()) == ["main"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda m, _: m.create_tag(1, "x"), "no snapshot 1"),
        (lambda m, now: m.create_tag(now, "t"), '"t".*tag'),
        (lambda m, now: m.create_tag(now, ""), "must not be empty"),
        (lambda m, now: m.create_branch(now, ""), "must not be empty"),
        (lambda m, now: m.create_branch(now, "main"), '"main".*branch'),
        (lambda m, now: m.create_tag(now, "x", max_ref_age_ms=0), "positive"),
        (lambda m, _: m.remove_tag("main"), '"main".*branch'),
        (lambda m, _: m.remove_branch("main"), "main"),
        (lambda m, _: m.remove_branch("t"), '"t".*tag'),
        (lambda m, _: m.remove_tag("none"), "none"),
        (lambda m, _: m.set_current_snapshot(2), "no snapshot 2"),
        (lambda m, _: m.set_current_snapshot(ref_name="none"), "none"),
        (lambda m, _: m.set_current_snapshot(), "pass either snapshot_id or ref_name"),
        (lambda m, _: m.rollback_to_snapshot(3), "no snapshot 3"),
        (lambda m, _: m.rollback_to_timestamp(1), "older than 1"),
    ],
)
def test_references_that_cannot_be(catalog, change, problem):
    table = catalog.create_table("a.t", SCHEMA)
    now = table.append(rows(table, ROW)).current_snapshot().snapshot_id
    table.manage_snapshots().create_tag(now, "t").commit()
    with pytest.raises(IcefieldError, match=problem):
        change(table.manage_snapshots(), now)
    assert sorted(table.refresh().refs()) == ["main", "t"]


def test_transactions_are_one_commit(table):
    before = len(table.metadata_log())
    with table.transaction() as tx:
        with tx.update_schema() as schema:
            schema.add_column("region", "string")
        # Each change sees those before it.
        with tx.update_spec() as spec:
            spec.add_field("region", "identity")
        tx.update_sort_order().asc("region").commit()
        tx.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "before").commit()
        tx.set_properties({"owner": "me"}, size=1).remove_properties("gone")
        assert len(table.refresh().metadata_log()) == before, "nothing is committed before the end"
        assert "region" not in names(table)
    assert len(table.metadata_log()) == before + 1
    assert [field.name for field in table.spec().fields] == ["region"]
    assert len(table.sort_order().fields) == 1
    assert (table.properties["owner"], table.properties["size"]) == ("me", "1")
    assert "before" in table.refs()
    table.append(rows(table, {**ROW, "region": "north"}))
    assert [row["region"] for row in read(table, row_filter="region = 'north'")] == ["north"]


def raise_after(_):
    raise KeyError


def test_a_block_that_raises_commits_nothing(table, monkeypatch):
    def refused(*_):
        raise AssertionError

    monkeypatch.setattr(type(table.catalog), "swap_pointer", refused)
    before = table.metadata_location
    builders = {
        "update_schema": lambda change: change.add_column("x", "int"),
        "update_spec": lambda change: change.add_field("id", "identity"),
        "update_sort_order": lambda change: change.asc("id"),
        "manage_snapshots": lambda change: change.create_tag(table.current_snapshot().snapshot_id, "x"),
        "transaction": lambda change: change.set_properties(x=1),
    }
    for name, use in builders.items():
        change = getattr(table, name)()
        with pytest.raises(KeyError), change:
            raise_after(use(change))
        again = change.commit_transaction if name == "transaction" else change.commit
        with pytest.raises(InvalidArgumentError, match="start a new one"):
            again()
    with pytest.raises(KeyError), table.transaction() as tx:
        raise_after(tx.update_schema().add_column("x", "int").commit())
    assert table.refresh().metadata_location == before


def test_changes_are_used_once(table):
    change = table.update_schema().add_column("x", "int")
    change.commit()
    with pytest.raises(InvalidArgumentError, match="start a new one"):
        change.commit()
    with table.transaction() as tx:
        one, other = tx.update_schema(), tx.update_schema()
        one.add_column("y", "int").commit()
        other.add_column("z", "int")
        with pytest.raises(InvalidArgumentError, match="create the update again"):
            other.commit()
    assert names(table)[-2:] == ["x", "y"]
    with pytest.raises(InvalidArgumentError, match="start a new one"):
        tx.set_properties(a=1)


def test_tables_without_a_catalog_do_not_change(table):
    static = ice.Table.from_metadata(table.metadata_location)
    for name in ("update_schema", "update_spec", "update_sort_order", "manage_snapshots", "transaction"):
        with pytest.raises(UnsupportedFeatureError, match="read-only"):
            getattr(static, name)()


def test_others_may_change_what_a_change_does_not_build_on(catalog, table):
    other = catalog.load_table("a.t")
    update = table.update_schema().add_column("x", "int")
    other.append(rows(other, {**ROW, "id": 2}))
    other.update_properties({"who": "other"})
    update.commit()
    assert table.properties["who"] == "other"
    assert [(row["id"], row["x"]) for row in sorted(read(table), key=lambda row: row["id"])] == [(1, None), (2, None)]
    # Two changes of one schema are not both right.
    with pytest.raises(CommitFailedException, match="changed"):
        other.update_schema().add_column("y", "int").commit()
    other.refresh().update_schema().add_column("y", "int").commit()
    assert names(other)[-2:] == ["x", "y"]


def test_a_lost_race_is_run_again(table, catalog, monkeypatch):
    swap = type(catalog).swap_pointer
    lost = []

    def late(self, *arguments):
        if not lost:
            lost.append(arguments)
            # Another writer is first.
            other = self.load_table("a.t")
            other.update_properties({"who": "other"})
        return swap(self, *arguments)

    monkeypatch.setattr(type(catalog), "swap_pointer", late)
    table.update_schema().add_column("x", "int").commit()
    assert lost
    assert table.properties["who"] == "other"
    assert names(table)[-1] == "x"


def test_writers_and_a_changing_schema(catalog):
    properties = {"commit.retry.num-retries": "30", "commit.retry.min-wait-ms": "5"}
    table = catalog.create_table("a.t", SCHEMA, properties=properties)
    data = rows(table, ROW)
    errors = []

    def write():
        try:
            mine = catalog.load_table("a.t")
            for _ in range(4):
                mine.append(data)
        except IcefieldError as error:
            errors.append(error)

    threads = [threading.Thread(target=write) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(4):
        table.update_schema().add_column(f"c{number}", "int").commit()
    for thread in threads:
        thread.join()
    assert errors == []
    assert table.refresh().scan().count() == 8
    assert names(table)[-4:] == ["c0", "c1", "c2", "c3"]
