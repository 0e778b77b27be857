"""What manifests, lists and footers say of rows, where it is not so: an error with its place, or the right rows."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefield as ice
from icefield.distributed import ReadTask
from worlds.wire import by_hand
from worlds.wire.by_hand import Record, column, entry, manifest
from worlds.wire.protobuf import without_stream
from worlds.wire.thrift import edit_first_page, edit_footer, get, put

FIELDS = [column(1, "id", "long"), column(2, "s", "string")]
IDS = {"id": 1, "s": 2}
ROWS = pa.table({"id": pa.array(range(100), pa.int64()), "s": [f"v{n}" for n in range(100)]})
FORMATS = ["parquet", "orc", "avro"]
EVERY_ID = set(range(100))

Change = Callable[[ice.Table], object]


def ids(table: ice.Table) -> set[int]:
    found = table.scan().to_arrow()["id"].to_pylist()
    assert len(found) == len(set(found)), "rows twice"
    return set(found)


def read_task(table: ice.Table, task: ReadTask) -> pa.Table:
    return pa.RecordBatchReader.from_stream(task.rows(table.storage)).read_all()


def task_raises(table: ice.Table) -> None:
    """Read a task; pyarrow has its own class for errors of a stream."""
    try:
        read_task(table, table.scan().tasks()[0])
    except OSError as error:
        raise ice.CorruptDataError(str(error)) from error


def one_file(folder: Path, form: str, told: int, version: int = 2, **more: Any) -> ice.Table:
    """Give a table of one file of 100 rows whose entry says something of their number."""
    path = by_hand.write_rows(folder / f"a.{form}", ROWS, IDS)
    listed = {"first_row_id": 0} if version > 2 else {}
    rows = manifest(folder, "m1", [entry(path, told, **more)], version=version, **listed)
    return by_hand.table(folder, FIELDS, [rows], version)


# --- numbers of rows that are not known ------------------------------------------------------------------------------

SOURCE = pa.table({"id": pa.array([3, 700], pa.int64()), "s": ["new", "new"]})


def keyed(table: ice.Table) -> None:
    with table.upsert_stream(["id"]) as stream:
        stream.delete(pa.table({"id": pa.array([5], pa.int64())}))
        stream.upsert(SOURCE)


CHANGES: dict[str, tuple[Change, set[int]]] = {
    "delete": (lambda t: t.delete("id = 1"), EVERY_ID - {1}),
    "delete, rewritten": (lambda t: t.delete("id = 1", mode="copy-on-write"), EVERY_ID - {1}),
    "delete, marked": (lambda t: t.delete("id < 30", mode="merge-on-read"), EVERY_ID - set(range(30))),
    "delete twice": (lambda t: (t.delete("id = 1", mode="merge-on-read"), t.delete("id = 2")), EVERY_ID - {1, 2}),
    "delete all by their values": (lambda t: t.delete("id < 100"), set()),
    "delete all": (lambda t: t.delete("true"), set()),
    "update": (lambda t: t.update({"s": "u"}, "id = 1"), EVERY_ID),
    "update all": (lambda t: t.update({"s": "u"}, "true"), EVERY_ID),
    "upsert": (lambda t: t.upsert(SOURCE, join_cols=["id"]), EVERY_ID | {700}),
    "overwrite": (lambda t: t.overwrite(SOURCE, overwrite_filter="id = 3"), EVERY_ID | {700}),
    "keyed batch": (keyed, (EVERY_ID - {5}) | {700}),
    "append": (lambda t: t.append(SOURCE.slice(1)), EVERY_ID | {700}),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("form", FORMATS)
def test_changes_of_files_that_nobody_has_counted(tmp_path: Path, form: str, change: str) -> None:
    run, expected = CHANGES[change]
    bounds = by_hand.long_bounds(1, 0, 99, 100) if change == "delete all by their values" else {}
    table = one_file(tmp_path, form, -1, **bounds)
    run(table)
    table.refresh()
    assert ids(table) == expected
    assert table.scan().count() == len(expected)
    summary = table.current_snapshot().summary
    assert "total-records" not in summary or int(summary["total-records"]) == len(expected)
    assert all(int(count) >= 0 for name, count in summary.additional_properties.items() if name.endswith("-records"))


@pytest.mark.parametrize("form", FORMATS)
def test_reading_of_files_that_nobody_has_counted(tmp_path: Path, form: str) -> None:
    table = one_file(tmp_path, form, -1)
    assert ids(table) == EVERY_ID
    assert (table.scan().count(), table.scan("id >= 90").count(), table.scan("id > 100").count()) == (100, 10, 0)
    assert table.scan(limit=7).to_arrow().num_rows == 7
    assert sum(read_task(table, task).num_rows for task in table.scan().tasks()) == 100
    assert table.scan().to_arrow_batch_reader(memory_limit=1 << 20).read_all().num_rows == 100
    assert table.inspect.files()["record_count"].to_pylist() == [-1]
    assert table.inspect.partitions()["record_count"].to_pylist() == [0]
    assert table.delete("id < 10", dry_run=True).rows_removed == 10
    assert table.delete("true", dry_run=True).rows_removed == 100


def test_row_ids_behind_a_file_that_nobody_has_counted(tmp_path: Path) -> None:
    table = one_file(tmp_path, "parquet", -1, version=3)
    assert table.scan(selected_fields=("_row_id",)).to_arrow()["_row_id"].to_pylist() == list(range(100))
    folder = tmp_path / "two"
    folder.mkdir()
    paths = [by_hand.write_rows(folder / f"{name}.parquet", ROWS, IDS) for name in "ab"]
    rows = manifest(folder, "m1", [entry(paths[0], -1), entry(paths[1], 100)], version=3, first_row_id=0)
    with pytest.raises(ice.CorruptDataError, match=r"entry 1, first_row_id.*record_count of the files before it"):
        by_hand.table(folder, FIELDS, [rows], 3).scan().to_arrow()


# --- numbers of rows that are wrong ----------------------------------------------------------------------------------


@pytest.mark.parametrize("told", [0, 1, 99, 101, 1 << 40])
@pytest.mark.parametrize("form", FORMATS)
def test_a_number_of_rows_that_is_not_that_of_the_file(tmp_path: Path, form: str, told: int) -> None:
    table = one_file(tmp_path, form, told)
    wrong = rf"a\.{form}.*it has 100 rows, but the manifest says {told}"
    # This is answered by the manifest alone, whose number is then held against the file when that is read.
    assert table.scan().count() == told
    reads: list[Change] = [
        lambda t: t.scan().to_arrow(),
        lambda t: t.scan(selected_fields=("s",)).to_arrow(),
        task_raises,
    ]
    if told:
        reads += [
            lambda t: t.scan("id >= 0").to_arrow(),
            lambda t: t.scan("id >= 0").count(),
            *(run for name, (run, _) in CHANGES.items() if name.startswith(("delete", "up")) and "all" not in name),
        ]
    before = table.metadata_location
    for read in reads:
        with pytest.raises(ice.CorruptDataError, match=wrong):
            read(table)
    assert table.refresh().metadata_location == before


@pytest.mark.parametrize("told", [-1, 2, 4, 100])
def test_position_deletes_beyond_the_number_of_rows(tmp_path: Path, told: int) -> None:
    """The file has four rows. None that is deleted may come back, and a position that no row has deletes nothing."""
    data = by_hand.write_rows(tmp_path / "a.parquet", ROWS.slice(0, 4), IDS)
    positions = pa.table({"file_path": [str(data)] * 3, "pos": pa.array([1, 3, 7], pa.int64())})
    deletes = by_hand.write_rows(tmp_path / "d.parquet", positions, {"file_path": 2147483546, "pos": 2147483545})
    manifests = [
        manifest(tmp_path, "m1", [entry(data, told)]),
        manifest(tmp_path, "m2", [entry(deletes, 3, 1)], 1, sequence_number=2),
    ]
    table = by_hand.table(tmp_path, FIELDS, manifests)
    if told in (2, 100):
        with pytest.raises(ice.CorruptDataError, match=rf"it has 4 rows, but the manifest says {told}"):
            table.scan().to_arrow()
        return
    assert ids(table) == {0, 2}
    assert table.scan().count() == 2
    table.delete("id = 0", mode="merge-on-read")
    assert ids(table.refresh()) == {2}
    table.delete("id = 2")
    assert ids(table.refresh()) == set()


# --- row groups that say another number of their own -----------------------------------------------------------------

ORDINALS = {
    "all 0": lambda place: 0,
    "missing": lambda place: None,
    "of another order": lambda place: 3 - place,
    "some missing": lambda place: None if place == 1 else place,
    "negative": lambda place: -place,
    "large": lambda place: 32767 - place,
}


def grouped(
    folder: Path, ordinal: Callable[[int], int | None], *, turned: bool, rows: int = 4000
) -> tuple[Path, list[int]]:
    """Write a file of four row groups, and give its ids in the order of the footer."""
    path = folder / "a.parquet"
    table = pa.table({"id": pa.array(range(rows), pa.int64()), "s": [f"v{n}" for n in range(rows)]})
    by_hand.write_rows(path, table, IDS, row_group_size=rows // 4, compression="none", write_page_index=True)
    order = [2, 0, 3, 1] if turned else [0, 1, 2, 3]

    def change(groups: list[Any]) -> None:
        groups[:] = [groups[place] for place in order]
        for place, group in enumerate(groups):
            put(group, 7, 4, ordinal(place))

    edit_footer(path, change)
    each = rows // 4
    return path, [number for place in order for number in range(place * each, (place + 1) * each)]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("ordinals", ORDINALS)
def test_positions_count_row_groups_in_the_order_of_the_footer(tmp_path: Path, ordinals: str, turned: bool) -> None:
    path, order = grouped(tmp_path, ORDINALS[ordinals], turned=turned)
    rows = manifest(tmp_path, "m1", [entry(path, 4000)], version=3, first_row_id=0)
    table = by_hand.table(tmp_path, FIELDS, [rows], 3, **{"next-row-id": 4000})
    places = {number: place for place, number in enumerate(order)}

    def check(found: pa.Table, expected: set[int]) -> None:
        numbers = found["id"].to_pylist()
        assert sorted(numbers) == sorted(expected)
        for name in ("_pos", "_row_id"):
            assert found[name].to_pylist() == [places[number] for number in numbers], name

    read = ("id", "_pos", "_row_id")
    every = set(range(4000))
    check(table.scan(selected_fields=read).to_arrow(), every)
    check(table.scan("id > 2997 AND id < 3002", selected_fields=read).to_arrow(), set(range(2998, 3002)))
    check(table.scan("_pos >= 990 AND _pos < 1010", selected_fields=read).to_arrow(), set(order[990:1010]))
    tasks = table.scan(selected_fields=read).tasks(split_size=1000)
    check(pa.concat_tables([read_task(table, task) for task in tasks]), every)
    table.delete("id = 2500 OR id = 17", mode="merge-on-read")
    left = every - {2500, 17}
    check(table.refresh().scan(selected_fields=read).to_arrow(), left)
    check(table.scan("id >= 2400 AND id < 2600", selected_fields=read).to_arrow(), left & set(range(2400, 2600)))
    assert set(table.scan(selected_fields=("id",)).to_arrow()["id"].to_pylist()) == left
    assert table.delete("id = 1501", mode="copy-on-write") is not None
    assert ids(table.refresh()) == left - {1501}


# --- equality deletes without their column ---------------------------------------------------------------------------


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("deleted_by", [[2], [1, 2], [3], [1, 3]])
def test_equality_deletes_that_lack_a_column_of_theirs(
    tmp_path: Path, form: str, mapped: bool, deleted_by: list[int]
) -> None:
    stored = {} if mapped else {"id": 1, "s": 2}
    data = by_hand.write_rows(tmp_path / f"a.{form}", ROWS, stored)
    deletes = by_hand.write_rows(tmp_path / f"d.{form}", ROWS.slice(3, 1).select(["id"]), stored)
    names = [{"field-id": id_, "names": [name]} for id_, name in ((1, "id"), (2, "s"), (3, "later"))]
    properties = {"properties": {"schema.name-mapping.default": json.dumps(names)}} if mapped else {}
    # Data files that lack the third column have its default; a delete file must have what it deletes by.
    fields = [*FIELDS, column(3, "later", "long", **{"initial-default": 5})]

    def made(name: str, ids_: list[int]) -> ice.Table:
        folder = tmp_path / name
        folder.mkdir()
        manifests = [
            manifest(folder, "m1", [entry(data, 100)], version=3),
            manifest(folder, "m2", [entry(deletes, 1, 2, equality_ids=ids_)], 1, 3, sequence_number=2),
        ]
        return by_hand.table(folder, fields, manifests, 3, **properties)

    assert ids(made("right", [1])) == EVERY_ID - {3}
    lacking = {2: "s", 3: "later"}[deleted_by[-1]]
    table = made("wrong", deleted_by)
    for read in (ids, lambda t: t.scan().count(), lambda t: t.delete("id = 7")):
        with pytest.raises(
            ice.CorruptDataError, match=rf"d\.{form}.*deletes by column {lacking}, which it does not have"
        ):
            read(table)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(("value", "left"), [(5, 0), (6, 100)])
def test_data_files_that_lack_what_is_deleted_by_have_its_default(
    tmp_path: Path, form: str, value: int, left: int
) -> None:
    data = by_hand.write_rows(tmp_path / f"a.{form}", ROWS, IDS)
    later = pa.table({"later": pa.array([value], pa.int64())})
    deletes = by_hand.write_rows(tmp_path / f"d.{form}", later, {"later": 3})
    manifests = [
        manifest(tmp_path, "m1", [entry(data, 100)], version=3),
        manifest(tmp_path, "m2", [entry(deletes, 1, 2, equality_ids=[3])], 1, 3, sequence_number=2),
    ]
    fields = [*FIELDS, column(3, "later", "long", **{"initial-default": 5})]
    assert by_hand.table(tmp_path, fields, manifests, 3).scan().to_arrow().num_rows == left


POSITIONS = {
    "no position": pa.table({"file_path": ["x"]}),
    "no path": pa.table({"pos": pa.array([1], pa.int64())}),
    "a path that is null": pa.table({"file_path": pa.array([None], pa.string()), "pos": pa.array([1], pa.int64())}),
    "a position that is null": pa.table({"file_path": ["x"], "pos": pa.array([None], pa.int64())}),
    "a position that is a text": pa.table({"file_path": ["x"], "pos": ["1"]}),
    "a path that is a number": pa.table({"file_path": pa.array([1], pa.int64()), "pos": pa.array([1], pa.int64())}),
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("what", POSITIONS)
def test_position_deletes_without_a_place(tmp_path: Path, what: str, form: str) -> None:
    data = by_hand.write_rows(tmp_path / "a.parquet", ROWS, IDS)
    reserved = {"file_path": 2147483546, "pos": 2147483545}
    deletes = by_hand.write_rows(tmp_path / f"d.{form}", POSITIONS[what], reserved)
    manifests = [
        manifest(tmp_path, "m1", [entry(data, 100)]),
        manifest(tmp_path, "m2", [entry(deletes, 1, 1)], 1, sequence_number=2),
    ]
    with pytest.raises(ice.CorruptDataError, match=rf"d\.{form}"):
        by_hand.table(tmp_path, FIELDS, manifests).scan().to_arrow()


def test_very_many_equality_ids(tmp_path: Path) -> None:
    """Whoever plans them looks each up once."""
    data = by_hand.write_rows(tmp_path / "a.parquet", ROWS, IDS)
    deletes = by_hand.write_rows(tmp_path / "d.parquet", ROWS.slice(3, 1).select(["id"]), IDS)
    entries = [entry(deletes, 1, 2, equality_ids=list(range(1, 90_000))) for _ in range(2)]
    manifests = [
        manifest(tmp_path, "m1", [entry(data, 100)]),
        manifest(tmp_path, "m2", entries, 1, sequence_number=2),
    ]
    table = by_hand.table(tmp_path, FIELDS, manifests)
    assert len(table.scan().plan_files()) == 1
    with pytest.raises(ice.CorruptDataError, match=r"column with id 3, which no schema of the table has"):
        table.scan().to_arrow()


# --- entries and lists -----------------------------------------------------------------------------------------------


def lies() -> dict[str, tuple[Callable[[Path, list[Record]], list[Record]], str]]:
    """Return what changes the manifests of a table with two files, and what is said then."""

    def entries(
        *, content: int = 0, version: int = 2, first: Record | None = None, second: Record | None = None, **more: Any
    ):
        def made(folder: Path, paths: list[Record]) -> list[Record]:
            one, other = (
                entry(Path(path["path"]), 50, **change)
                for path, change in zip(paths, (first or {}, second or {}), strict=True)
            )
            return [manifest(folder, "m1", [one, other], content, version, **more)]

        return made

    def twice(folder: Path, paths: list[Record]) -> list[Record]:
        made = manifest(folder, "m1", [entry(Path(path["path"]), 50) for path in paths])
        return [made, made]

    def copied(folder: Path, paths: list[Record]) -> list[Record]:
        some = [entry(Path(path["path"]), 50) for path in paths]
        return [manifest(folder, name, some) for name in ("m1", "m2")]

    def same(folder: Path, paths: list[Record]) -> list[Record]:
        return [manifest(folder, "m1", [entry(Path(paths[0]["path"]), 50)] * 2)]

    long_ago = {"sequence_number": 5}
    return {
        "a delete file among data": (
            entries(second={"content": 1}),
            r"entry 1, content.*a delete file in a manifest of data",
        ),
        "a data file among deletes": (entries(content=1), r"entry 0, content.*a data file in a manifest of deletes"),
        "a manifest twice": (twice, r"snap-1\.avro.*names the manifest .*m1\.avro twice"),
        "a manifest copied": (copied, r"a\.parquet.*is there twice"),
        "an entry twice": (same, r"a\.parquet.*is there twice"),
        "a sequence number below 0": (
            entries(first={"entry_sequence_number": -1}),
            r"entry 0, sequence_number.*-1 is not among 0 to 1",
        ),
        "one above that of its manifest": (
            entries(second={"entry_sequence_number": 2}),
            r"entry 1, sequence_number.*2 is not among 0 to 1",
        ),
        "a file sequence number": (
            entries(first={"entry_file_sequence_number": 9}),
            r"file_sequence_number.*9 is not among",
        ),
        "a manifest below 0": (entries(sequence_number=-7), r"snap-1\.avro.*sequence_number.*-7 is below 0"),
        "a row id below 0": (
            entries(version=3, first_row_id=0, first={"first_row_id": -5}),
            r"entry 0, first_row_id.*-5 is below 0",
        ),
        "a list's row id below 0": (entries(version=3, first_row_id=-1), r"first_row_id.*-1 is below 0"),
        "a row id twice": (
            entries(version=3, first_row_id=0, first={"first_row_id": 7}, second={"first_row_id": 7}),
            r"rows have the ids from 7 on",
        ),
        "row ids that overlap": (
            entries(version=3, first_row_id=0, second={"first_row_id": 49}),
            r"rows have the ids from 49 on",
        ),
        "row ids that are still to come": (
            entries(version=3, first_row_id=960),
            r"ids 960 to 1010, but the next one of the table is 1000",
        ),
        "newer than the table": (
            entries(**long_ago),
            r"m1\.avro has the sequence number 5, the last one of the table is 1",
        ),
    }


@pytest.mark.parametrize("what", lies())
def test_lies_of_manifests_and_their_lists(tmp_path: Path, what: str) -> None:
    change, message = lies()[what]
    halves = ROWS.slice(0, 50), ROWS.slice(50)
    paths = [
        {"path": str(by_hand.write_rows(tmp_path / f"{name}.parquet", half, IDS))}
        for name, half in zip("ab", halves, strict=True)
    ]
    manifests = change(tmp_path, paths)
    version = 3 if "first_row_id" in manifests[0] else 2
    table = by_hand.table(tmp_path, FIELDS, manifests, version, **{"last-sequence-number": 1})
    reads: list[Change] = [lambda t: t.scan().to_arrow(), lambda t: t.scan().count(), lambda t: t.delete("id = 7")]
    for read in reads:
        with pytest.raises(ice.CorruptDataError, match=message):
            read(table)


@pytest.mark.parametrize("counts", [(0, 0, 0, 0), (0, 0, 0, 100), (0, 0, 2, 100)])
def test_lists_that_count_no_files(tmp_path: Path, counts: tuple[int, ...]) -> None:
    """A manifest is passed over where its list says that no file of it is live. Where that cannot be, it is read."""
    path = by_hand.write_rows(tmp_path / "a.parquet", ROWS, IDS)
    names = ("added_files_count", "existing_files_count", "deleted_files_count", "added_rows_count")
    rows = manifest(tmp_path, "m1", [entry(path, 100)] * 1, **dict(zip(names, counts, strict=True)))
    table = by_hand.table(tmp_path, FIELDS, [rows])
    if counts[2]:
        with pytest.raises(ice.CorruptDataError, match="has 1 entries, but its manifest list says 2"):
            table.scan().to_arrow()
        return
    assert ids(table) == EVERY_ID
    table.delete("id = 1")
    assert ids(table.refresh()) == EVERY_ID - {1}


def test_a_file_that_was_added_in_two_commits_is_read_twice(tmp_path: Path) -> None:
    """So the Java library reads it: the entries are not one that was copied."""
    path = by_hand.write_rows(tmp_path / "a.parquet", ROWS, IDS)
    manifests = [manifest(tmp_path, f"m{n}", [entry(path, 100)], sequence_number=n) for n in (1, 2)]
    assert by_hand.table(tmp_path, FIELDS, manifests).scan().to_arrow().num_rows == 200


# --- pages, stripes and vectors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("filtered", [False, True])
@pytest.mark.parametrize("compression", ["none", "zstd"])
@pytest.mark.parametrize("rows", [10, 40_000])
def test_a_page_that_lacks_the_last_element_of_a_list(
    tmp_path: Path, rows: int, compression: str, filtered: bool
) -> None:
    listed = {"type": "list", "element-id": 3, "element": "long", "element-required": False}
    fields = [column(1, "id", "long"), column(2, "l", listed)]
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"}),
            pa.field(
                "l",
                pa.list_(pa.field("element", pa.int64(), metadata={"PARQUET:field_id": "3"})),
                metadata={"PARQUET:field_id": "2"},
            ),
        ]
    )
    table = pa.table([list(range(rows)), [[n, n + 1, n + 2] for n in range(rows)]], schema=schema)
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, compression=compression, use_dictionary=False, data_page_size=1 << 16)

    def shorter(header: list[Any]) -> None:
        page = get(header, 5)
        put(page, 1, 5, get(page, 1) - 1)

    made = by_hand.table(tmp_path, fields, [manifest(tmp_path, "m1", [entry(path, rows)])])
    scan = lambda: made.scan(*(["id >= 0 AND id < 1000000"] if filtered else [])).to_arrow()  # noqa: E731
    assert scan().num_rows == rows
    edit_first_page(path, 1, shorter)
    with pytest.raises(ice.CorruptDataError, match=r"a\.parquet.*column l\.list\.element: its pages have \d+ values"):
        scan()


@pytest.mark.parametrize("filtered", [False, True])
def test_a_stripe_that_does_not_name_one_of_its_streams(tmp_path: Path, filtered: bool) -> None:
    kind = "decimal(10, 2)"
    fields = [column(1, "id", "long"), column(2, "d", kind), column(3, "s", "string")]
    numbers = [Decimal(n) / 4 if n % 3 else None for n in range(100)]
    rows = ROWS.append_column("d", pa.array(numbers, pa.decimal128(10, 2))).select(["id", "d", "s"])
    whole = by_hand.with_ids(rows, {"id": 1, "d": 2, "s": 3}, "iceberg.id")
    path = tmp_path / "a.orc"
    ice.orc.write_table(whole, path, compression="uncompressed")
    left_out = 0
    for id_ in range(4):
        for place in range(5):
            ice.orc.write_table(whole, path, compression="uncompressed")
            if not without_stream(path, id_, place):
                break
            left_out += 1
            folder = tmp_path / f"{id_}-{place}"
            folder.mkdir()
            table = by_hand.table(folder, fields, [manifest(folder, "m1", [entry(path, 100)])])
            scan = table.scan(*(["id >= 0 AND d > 0"] if filtered else []))
            with pytest.raises(
                ice.CorruptDataError, match=r"a\.orc.*its streams have \d+ bytes, but the stripe has \d+"
            ):
                scan.to_arrow()
    assert left_out >= 9


def test_a_vector_of_another_data_file(tmp_path: Path) -> None:
    halves = ROWS.slice(0, 50), ROWS.slice(50)
    paths = [
        by_hand.write_rows(tmp_path / f"{name}.parquet", half, IDS) for name, half in zip("ab", halves, strict=True)
    ]
    blob = ice.puffin.DeletionVector([3, 4]).to_bytes()
    named = {"referenced-data-file": str(paths[0]), "cardinality": "2"}
    described = {"type": "deletion-vector-v1", "fields": [], "snapshot-id": -1, "sequence-number": -1}
    described |= {"offset": 4, "length": len(blob), "properties": named}
    payload = json.dumps({"blobs": [described]}).encode()
    puffin = tmp_path / "v.puffin"
    puffin.write_bytes(b"PFA1" + blob + b"PFA1" + payload + struct.pack("<II", len(payload), 0) + b"PFA1")
    for path, is_right in zip(paths, (True, False), strict=True):
        folder = tmp_path / path.stem
        folder.mkdir()
        vector = entry(puffin, 2, 1, referenced_data_file=str(path), content_offset=4, content_size_in_bytes=len(blob))
        manifests = [
            manifest(folder, "m1", [entry(path, 50) for path in paths], version=3, first_row_id=0),
            manifest(folder, "m2", [vector], 1, 3, sequence_number=2),
        ]
        table = by_hand.table(folder, FIELDS, manifests, 3)
        if is_right:
            assert ids(table) == EVERY_ID - {3, 4}
        else:
            with pytest.raises(ice.CorruptDataError, match=r"v\.puffin.*its deletion vector is that of .*a\.parquet"):
                table.scan().to_arrow()
