"""Merges through the public API: clauses and their order, conditions, values, keys, modes, errors, files."""

from __future__ import annotations

import decimal
import gc
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import icefield as ice
from icefield.catalog.memory import InMemoryCatalog
from icefield.errors import (
    ArgumentTypeError,
    InvalidArgumentError,
    UnsupportedFeatureError,
    ValidationError,
    ValidationException,
)
from icefield.table.rows.merging import MergeResult

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int32()), ("s", pa.string())])


def rows(*ids: int | None, v: int | None = 0, s: str = "s") -> pa.Table:
    schema = pa.schema([field.with_nullable(nullable=True) for field in SCHEMA])
    columns = [list(ids), [v if v is None else v + at for at in range(len(ids))], [f"{s}{at}" for at in ids]]
    return pa.table([pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)], schema)


def make(folder: Path, version: int = 2, schema: pa.Schema = SCHEMA, **options: Any) -> ice.Table:
    catalog = InMemoryCatalog("local", warehouse=str(folder))
    catalog.create_namespace("a")
    properties = {"format-version": str(version), **options.pop("properties", {})}
    return catalog.create_table("a.t", schema=schema, properties=properties, **options)


def found(table: ice.Table, *columns: str) -> list[tuple[Any, ...]]:
    data = table.scan(selected_fields=columns or ("id", "v", "s")).to_arrow()
    return sorted(zip(*(column.to_pylist() for column in data.columns), strict=True), key=str)


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file() and "metadata" not in path.parts}


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read", "auto", None])
def test_updates_inserts_and_deletes_in_one_snapshot(tmp_path: Path, version: int, mode: Any) -> None:
    if version == 1 and mode == "merge-on-read":
        with pytest.raises(UnsupportedFeatureError, match="format version 1"):
            make(tmp_path, 1).append(rows(1)).merge(rows(1), "id", mode=mode).when_matched_delete().execute()
        return
    table = make(tmp_path, version).append(rows(1, 2, 3)).append(rows(4, 5, 6, v=10))
    before = dict(found(table, "id", "_row_id")) if version == 3 else {}
    source = rows(2, 4, 6, 8, v=90, s="n")
    done = (
        table.merge(source, "id", snapshot_properties={"why": "test"}, mode=mode)
        .when_matched_delete("source.v = 92")
        .when_matched_update_all("target.v < 10")
        .when_matched_update({"s": "only", "v": pc.field("target.v") + pc.field("source.v")})
        .when_not_matched_insert_all()
        .execute()
    )
    assert (done.rows_updated, done.rows_inserted, done.rows_deleted) == (2, 1, 1)
    assert found(table) == [(1, 0, "s1"), (2, 90, "n2"), (3, 2, "s3"), (4, 101, "only"), (5, 11, "s5"), (8, 93, "n8")]
    summary = table.current_snapshot().summary
    assert (summary["operation"], summary["why"], len(table.snapshots())) == ("overwrite", "test", 3)
    marked = [file for file in table.inspect.files().to_pylist() if file["content"]]
    assert bool(marked) == (mode == "merge-on-read")
    if version == 3:
        after = dict(found(table, "id", "_row_id"))
        assert {at: after[at] for at in (1, 2, 3, 4, 5)} == {at: before[at] for at in (1, 2, 3, 4, 5)}
        assert after[8] > 5


def test_the_first_clause_whose_condition_holds_applies(tmp_path: Path) -> None:
    table = make(tmp_path).append(rows(*range(8)))
    source = rows(*range(12), v=100)
    done = (
        table.merge(source, ["id"])
        .when_matched_update({"s": "a"}, "target.id < 2")
        .when_matched_delete("target.id < 4")
        .when_matched_update({"s": "b"}, pc.field("source.v") < 105)
        .when_matched_update({"s": "c"}, lambda batch: pc.equal(batch["target.id"], 6))
        .when_not_matched_insert({"id": "source.id", "s": "d"}, "source.id = 8")
        .when_not_matched_insert({"id": pc.field("source.id"), "v": lambda batch: batch["source.v"]}, "source.id > 9")
        .execute()
    )
    assert (done.rows_updated, done.rows_inserted, done.rows_deleted) == (4, 3, 2)
    assert found(table) == sorted([
        (0, 0, "a"), (1, 1, "a"), (4, 4, "b"), (5, 5, "s5"), (6, 6, "c"), (7, 7, "s7"), (8, None, "d"), (10, 110, None),
        (11, 111, None),
    ], key=str)  # fmt: skip


def test_rows_that_the_source_does_not_have(tmp_path: Path) -> None:
    table = make(tmp_path, partition_by=["v"]).append(rows(1, 2, 3)).append(rows(11, 12, 13, v=None))
    done = (
        table.merge(rows(2), "id")
        .when_not_matched_by_source_delete("target.v IS NULL AND target.id != 12")
        .when_not_matched_by_source_update({"s": pc.binary_join_element_wise(pc.field("target.s"), pc.scalar("!"), "")})
        .execute()
    )
    assert (done.rows_updated, done.rows_inserted, done.rows_deleted) == (3, 0, 2)
    assert found(table) == [(1, 0, "s1!"), (12, None, "s12!"), (2, 1, "s2"), (3, 2, "s3!")]
    # Files that neither a key nor the condition can be about are not read.
    assert len(files(tmp_path)) >= 3
    for file in table.inspect.files().to_pylist():
        if file["partition"]["v"] == 2:
            Path(file["file_path"].removeprefix("file://")).write_bytes(b"unreadable")
    merge = table.merge(rows(2), "id").when_matched_delete().when_not_matched_by_source_delete("target.v = 0")
    assert merge.execute().rows_deleted == 2
    # A source without rows still has rows that it does not have.
    table = make(tmp_path / "other").append(rows(1, 2))
    assert table.merge(rows(), "id").when_not_matched_by_source_delete("target.id = 1").execute().rows_deleted == 1
    assert table.merge(rows(), "id").when_not_matched_by_source_delete().execute().rows_deleted == 1
    assert table.scan().count() == 0


def test_several_rows_for_one_are_an_error_only_where_they_change_it(tmp_path: Path) -> None:
    table = make(tmp_path).append(rows(1, 2, 3))
    twice = pa.concat_tables([rows(2, 2, v=50), rows(9, 9)])
    before, snapshot = files(tmp_path), table.current_snapshot().snapshot_id
    for merge in [
        table.merge(twice, "id").when_matched_update_all(),
        table.merge(twice, "id").when_matched_delete("source.v > 0"),
        table.merge(twice, "id").when_matched_update({"v": 1}, "source.v = 50").when_matched_delete(),
    ]:
        with pytest.raises(
            InvalidArgumentError, match="several rows of the source .* the key id = 2, and when_matched"
        ):
            merge.execute()
    assert (files(tmp_path), table.refresh().current_snapshot().snapshot_id) == (before, snapshot)
    # Neither where one of them applies, nor where all of them do the same, nor for new rows.
    assert table.merge(twice, "id").when_matched_update_all("source.v = 51").execute().rows_updated == 1
    assert table.merge(twice, "id").when_not_matched_insert_all().execute().rows_inserted == 2
    assert found(table, "id", "v") == [(1, 0), (2, 51), (3, 2), (9, 0), (9, 1)]
    # Several rows of the table for one of the source are not ambiguous.
    assert table.merge(rows(9, v=70), "id").when_matched_update_all().execute().rows_updated == 2
    assert table.merge(twice, "id").when_matched_delete().execute().rows_deleted == 3
    assert found(table, "id", "v") == [(1, 0), (3, 2)]


def test_null_is_equal_to_nothing(tmp_path: Path) -> None:
    table = make(tmp_path).append(rows(1, v=None)).append(rows(2, v=7))
    source = pa.table({"id": [5, 6], "v": pa.array([None, 7], pa.int32()), "s": ["new", "new"]})
    done = table.merge(source, "v").when_matched_update({"s": "found"}).when_not_matched_insert_all().execute()
    assert (done.rows_updated, done.rows_inserted) == (1, 1)
    assert found(table) == [(1, None, "s1"), (2, 7, "found"), (5, None, "new")]
    # A key is null where a part of it is, and the row of the table has no partner.
    merge = table.merge(source, ["id", "v"]).when_not_matched_by_source_delete("target.v IS NULL")
    assert merge.execute().rows_deleted == 2
    # All keys are null: nothing is read.
    source = pa.table({"id": [1], "v": pa.nulls(1, pa.int32()), "s": ["x"]})
    assert table.merge(source, "v").when_matched_delete().when_not_matched_insert_all().execute().rows_inserted == 1


KEYS = [
    (pa.bool_(), [False, True]),
    (pa.int32(), [1, 2]),
    (pa.float32(), [0.0, 1.5]),
    (pa.float64(), [float("nan"), -0.0]),
    (pa.decimal128(9, 2), [decimal.Decimal("1.50"), decimal.Decimal("-2.25")]),
    (pa.date32(), [0, 19000]),
    (pa.time64("us"), [0, 5]),
    (pa.timestamp("us"), [0, 1_700_000_000_000_000]),
    (pa.timestamp("us", "UTC"), [0, 1_700_000_000_000_000]),
    (pa.string(), ["", "é"]),
    (pa.binary(), [b"", b"\xff"]),
    (pa.binary(3), [b"abc", b"xyz"]),
    (pa.uuid(), [uuid.UUID(int=1).bytes, uuid.UUID(int=2).bytes]),
]


@pytest.mark.parametrize(("kind", "keys"), KEYS, ids=lambda value: str(value) if isinstance(value, pa.DataType) else "")
def test_keys_of_every_type(tmp_path: Path, kind: pa.DataType, keys: list[Any]) -> None:
    schema = pa.schema([("k", kind), ("v", pa.int64())])
    table = make(tmp_path, schema=schema).append(pa.table([pa.array([*keys, None], kind), pa.array([1, 2, 3])], schema))
    source = pa.table([pa.array([keys[1], None], kind), pa.array([20, 30])], schema)
    done = table.merge(source, "k").when_matched_update_all().when_not_matched_insert_all().execute()
    assert (done.rows_updated, done.rows_inserted) == (1, 1)
    assert sorted(table.scan().to_arrow()["v"].to_pylist()) == [1, 3, 20, 30]


def test_numbers_that_are_equal_in_sql_are_one_key(tmp_path: Path) -> None:
    table = make(tmp_path, schema=pa.schema([("k", pa.float64()), ("v", pa.int64())]))
    table.append(pa.table({"k": [0.0, float("nan")], "v": [1, 2]}))
    source = pa.table({"k": [-0.0, -float("nan")], "v": [10, 20]})
    assert table.merge(source, "k").when_matched_update({"v": "source.v"}).execute().rows_updated == 2
    done = table.upsert(pa.table({"k": [-0.0], "v": [11]}), "k")
    assert (done.rows_updated, done.rows_inserted) == (1, 0)


def test_keys_that_are_nested_renamed_and_promoted(tmp_path: Path) -> None:
    inner = pa.struct([("a", pa.int32()), ("b", pa.string())])
    schema = pa.schema([("x", inner), ("v", pa.int32())])
    data = pa.table(
        [pa.array([{"a": 1, "b": "q"}, {"a": 2, "b": None}, None], inner), pa.array([1, 2, 3], pa.int32())], schema
    )
    table = make(tmp_path, schema=schema).append(data)
    source = pa.table({"key": pa.array([2, 3], pa.int16()), "w": [20, 30]})
    done = table.merge(source, {"x.a": "key"}).when_matched_update({"v": "source.w"}).execute()
    assert (done.rows_updated, sorted(table.scan().to_arrow()["v"].to_pylist())) == (1, [1, 3, 20])
    with table.update_schema() as update:
        update.update_column(("x", "a"), "long")
    table.append(pa.table([pa.array([{"a": 2**40, "b": "z"}], pa.struct([("a", pa.int64()), ("b", pa.string())])),
                           pa.array([4], pa.int32())], ["x", "v"]))  # fmt: skip
    source = pa.table({"y": pa.array([{"z": 2**40}, {"z": 1}, None], pa.struct([("z", pa.int64())])), "w": [40, 10, 0]})
    merge = table.merge(source, {"X.A": "Y.Z"}, case_sensitive=False)
    assert merge.when_matched_update({"v": "source.w"}, "SOURCE.W > 0").execute().rows_updated == 2
    assert sorted(table.scan().to_arrow()["v"].to_pylist()) == [3, 10, 20, 40]
    with pytest.raises(ValidationError, match="x: cannot be a column of the key"):
        table.merge(source, {"x": "y"}).when_matched_delete().execute()


def test_columns_that_only_one_side_has(tmp_path: Path) -> None:
    table = make(tmp_path).append(rows(1, 2))
    source = pa.table({"id": [2, 3], "v": pa.array([20, 30], pa.int32()), "op": ["u", "i"], "more": [0.5, None]})

    def merge(**options: Any) -> Any:
        return table.merge(source, "id", **options).when_matched_update_all().when_not_matched_insert_all()

    with pytest.raises(ValidationError, match="(?s)op: .*more: .*s: missing|op|more"):
        merge(schema_mode="strict").execute()
    with pytest.raises(InvalidArgumentError, match="schema_mode must be"):
        merge(schema_mode="loose")
    with pytest.raises(ValidationError, match='(?s)column op: .*extra_columns="ignore".*column more: '):
        merge(branch="audit").execute()
    assert merge(branch="audit", extra_columns="ignore").execute().rows_inserted == 1
    assert sorted(table.scan(ref="audit").to_arrow()["s"].to_pylist(), key=str) == [None, "s1", "s2"]
    # Only what a merge writes is added to the schema.
    table.merge(source, "id", schema_mode="evolve").when_matched_update({"v": "source.v"}).execute()
    assert table.schema().column_names == ["id", "v", "s"]
    before = len(table.metadata.schemas)
    assert merge(schema_mode="evolve", dry_run=True).execute().rows_inserted == 1
    assert len(table.refresh().metadata.schemas) == before
    merge(schema_mode="evolve").execute()
    assert found(table, "id", "v", "s", "op", "more") == [
        (1, 0, "s1", None, None), (2, 20, "s2", "u", 0.5), (3, 30, None, "i", None),
    ]  # fmt: skip
    assert len(table.snapshots()) == 4


def test_new_rows_get_defaults(tmp_path: Path) -> None:
    table = make(tmp_path, 3).append(rows(1))
    with table.update_schema() as update:
        update.add_column("d", "int", default_value=7)
    source = pa.table({"id": [1, 2]})
    table.merge(source, "id").when_matched_update({"v": 5}).when_not_matched_insert({"id": "source.id"}).execute()
    assert found(table, "id", "v", "s", "d") == [(1, 5, "s1", 7), (2, None, None, 7)]


def test_what_cannot_be_changes_nothing(tmp_path: Path) -> None:
    table = make(tmp_path).append(rows(1, 2))
    before, snapshot = files(tmp_path), table.current_snapshot().snapshot_id
    source = rows(2, 3, v=5)

    def merge(given: pa.Table = source, on: Any = "id", **options: Any) -> Any:
        return table.merge(given, on, **options)

    for case, error, message in [
        (merge, InvalidArgumentError, "there are no clauses"),
        (lambda: merge(on=[]), InvalidArgumentError, "name the columns of the key"),
        (lambda: merge(on="nope").when_matched_delete(), ice.IcefieldError, "nope"),
        (lambda: merge(on={"id": "nope"}).when_matched_delete(), ValidationError, "joined with the column nope"),
        (lambda: merge(source.select(["v"])).when_matched_delete(), ValidationError, "the data lack it"),
        (lambda: merge(on={"id": "s"}).when_matched_delete(), ValidationError, "id"),
        (lambda: merge().when_matched_update({"w": 1}), ice.IcefieldError, "when_matched_update.*w"),
        (lambda: merge().when_matched_update({}), InvalidArgumentError, "at least one column"),
        (lambda: merge().when_matched_update("v = 1"), ArgumentTypeError, "expected new values by column"),
        (lambda: merge().when_matched_update({"v": "source.w"}), InvalidArgumentError, "no column source.w"),
        (lambda: merge().when_not_matched_insert({"id": "target.id"}), InvalidArgumentError, "no column target.id"),
        (lambda: merge().when_not_matched_insert({"v": 1}), ValidationError, "id.*required"),
        (lambda: merge().when_matched_update({"id": None}), ValidationError, "id.*required"),
        (lambda: merge().when_matched_update({"v": lambda batch: pa.array([1, 2])}), InvalidArgumentError, "expected"),
        (lambda: merge().when_matched_update({"v": lambda batch: 1 / 0}), ZeroDivisionError, "division by zero"),
        (lambda: merge().when_matched_delete("v > 1"), InvalidArgumentError, "are named target.NAME and source"),
        (lambda: merge().when_matched_delete("source.w > 1"), InvalidArgumentError, "when_matched_delete.*w"),
        (lambda: merge().when_not_matched_insert_all("target.v = 1"), InvalidArgumentError, "no row of the target"),
        (lambda: merge().when_not_matched_by_source_delete("source.v=1"), InvalidArgumentError, "no row of the"),
        (lambda: merge().when_matched_delete("target.v ="), ice.IcefieldError, "expected"),
        (lambda: merge().when_matched_delete(lambda batch: pa.array(["x"])), Exception, "x"),
        (lambda: merge().when_matched_delete().when_matched_update_all(), InvalidArgumentError,
         "when_matched_update_all can never apply: when_matched_delete"),
        (lambda: merge(rows(None)).when_not_matched_insert_all(), ValidationError, "id.*required"),
        (lambda: merge(mode="fast").when_matched_delete(), InvalidArgumentError, "mode"),
        (lambda: merge(isolation="none").when_matched_delete(), InvalidArgumentError, "isolation"),
        (lambda: merge(source.append_column("id", source["id"])).when_matched_delete(), ValidationError, "one"),
    ]:  # fmt: skip
        with pytest.raises(error, match=message):
            case().execute()
    table.manage_snapshots().create_tag(snapshot, "tag").commit()
    with pytest.raises(InvalidArgumentError, match="tag is a tag"):
        merge(branch="tag").when_matched_delete().execute()
    assert files(tmp_path) == before
    assert table.refresh().current_snapshot().snapshot_id == snapshot


def test_conditions_keep_what_they_are_not_about_from_functions(tmp_path: Path) -> None:
    """A function that fails for some rows is not asked about rows of clauses before it."""
    table = make(tmp_path).append(rows(1, 2, 3))

    def strict(batch: pa.RecordBatch) -> pa.Array:
        assert 1 not in batch["target.id"].to_pylist()
        return pa.array([None, True])

    done = table.merge(rows(1, 2, 3), "id").when_matched_delete("target.id = 1").when_matched_delete(strict).execute()
    assert (done.rows_deleted, found(table, "id")) == (2, [(2,)])


def test_a_builder_is_used_once_and_not_forgotten(tmp_path: Path) -> None:
    table = make(tmp_path).append(rows(1))
    merge = table.merge(rows(1), "id").when_matched_delete()
    with pytest.warns(ResourceWarning, match=r"execute\(\)"):  # noqa: PT031
        del merge
        gc.collect()
    merge = table.merge(rows(1), "id", dry_run=True).when_matched_delete()
    done = merge.execute()
    assert done == MergeResult(0, 0, 1, 1, 0, 0, 0, bytes_removed=done.bytes_removed)
    assert str(done) == (
        "0 rows updated, 0 inserted, 1 deleted; data files: 1 removed, 0 rewritten, 0 marked (0 bytes rewritten)"
    )
    assert table.refresh().scan().count() == 1
    with pytest.raises(InvalidArgumentError, match="carried out already"):
        merge.execute()


def test_merges_in_a_transaction_and_beside_others(tmp_path: Path) -> None:
    table = make(tmp_path, 3, properties={"commit.retry.min-wait-ms": "1"}).append(rows(1, 2))
    with table.transaction() as tx:
        tx.append(rows(3))
        merge = tx.merge(rows(3, 4, v=9), "id").when_matched_update_all().when_not_matched_insert_all()
        assert merge.execute().rows_updated == 1
        tx.set_properties({"owner": "me"})
    assert found(table, "id", "v") == [(1, 0), (2, 1), (3, 9), (4, 10)]
    for isolation, fails in [("serializable", True), ("snapshot", False)]:
        mine, theirs = table.catalog.load_table("a.t"), table.catalog.load_table("a.t")
        tx = mine.transaction()
        tx.merge(rows(2, 7), "id", isolation=isolation).when_matched_delete().when_not_matched_insert_all().execute()
        theirs.append(rows(7))
        if fails:
            with pytest.raises(ValidationException):
                tx.commit_transaction()
        else:
            tx.commit_transaction()
    assert sorted(row[0] for row in found(table.refresh(), "id")) == [1, 3, 4, 7]


def test_text_values_are_text(tmp_path: Path) -> None:
    table = make(tmp_path).append(rows(1))
    table.merge(rows(1), "id").when_matched_update({"s": pa.scalar("source.s"), "v": pa.scalar(4)}).execute()
    assert found(table) == [(1, 4, "source.s")]
    table.merge(rows(1, s="n"), "id").when_matched_update({"s": "source.s"}).execute()
    assert found(table) == [(1, 4, "n1")]


@pytest.mark.parametrize("version", [2, 3])
def test_sources_that_do_not_fit_into_memory(tmp_path: Path, version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are joined in parts, by temporary files, with the same result, and without a trace."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    count, half = 12_000, 6_000
    table = make(tmp_path / "table", version).append(rows(*range(0, count, 3)))
    # So long that parts are divided once more.
    long = "n" * 200
    source = rows(*range(0, count, 2), v=7, s=long)
    source = pa.concat_tables([source, rows(None, None, v=3)])
    keyed = {row[0]: row for row in found(table)}
    for limit in (1, 100_000, 1 << 30):
        done = (
            table.merge(source, "id", memory_limit=limit, branch=f"b{limit}")
            .when_matched_update_all("source.id < 6000")
            .when_matched_delete()
            .when_not_matched_insert_all("source.id IS NOT NULL")
            .when_not_matched_by_source_update({"s": "alone"}, "target.id > 11000")
            .execute()
        )
        expected = {at: row for at, row in keyed.items() if at % 2 or at < half}
        expected |= {at: (at, 7 + at // 2, f"{long}{at}") for at in range(0, count, 2) if at % 3 or at < half}
        alone = [at for at in expected if at % 2 and at > 11_000]
        expected |= {at: (*expected[at][:2], "alone") for at in alone}
        data = table.scan(ref=f"b{limit}").to_arrow().to_pydict()
        got = {row[0]: row for row in zip(*data.values(), strict=True)}
        assert got == expected
        assert len(data["id"]) == len(expected)
        assert (done.rows_updated, done.rows_deleted) == (half // 6 + len(alone), half // 6)
        assert table.upsert(source.slice(0, half), "id", memory_limit=limit, dry_run=True).rows_inserted == count // 3
    with pytest.raises(InvalidArgumentError, match="two rows of the source have the key id = 8"):
        table.upsert(pa.concat_tables([rows(*range(9)), rows(8)]), "id", memory_limit=1)
    with pytest.raises(InvalidArgumentError, match="the key id = 3"):
        table.merge(pa.concat_tables([rows(3), rows(3)]), "id", memory_limit=1).when_matched_delete(
            "source.id > 0"
        ).execute()
    assert list(folder.iterdir()) == []
    # Only where there is need for it.
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    assert table.upsert(rows(1, s="x"), "id").rows_inserted == 1
    before = files(tmp_path / "table")
    with pytest.raises(ice.errors.StorageError, match="missing.*cannot create"):
        table.upsert(rows(1, s="y"), "id", memory_limit=1)
    assert files(tmp_path / "table") == before
