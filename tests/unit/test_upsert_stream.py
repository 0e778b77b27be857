"""Streams of upserts and deletes: what is left of a batch, equality delete files, partitions, conflicts, errors."""

from __future__ import annotations

import gc
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield.catalog.memory import InMemoryCatalog
from icefield.errors import InvalidArgumentError, UnsupportedFeatureError, ValidationError, ValidationException
from icefield.table.rows.upsert_stream import MicroBatchResult

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("p", pa.int32()), ("s", pa.string())])


def rows(*pairs: tuple[int, str], p: int | None = 0) -> pa.Table:
    columns = [[at for at, _ in pairs], [p] * len(pairs), [text for _, text in pairs]]
    return pa.table([pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)], SCHEMA)


def keys(*ids: int, **others: Any) -> pa.Table:
    return pa.table({"id": list(ids), **others})


def make(folder: Path, version: int = 2, schema: pa.Schema = SCHEMA, **options: Any) -> ice.Table:
    catalog = InMemoryCatalog("local", warehouse=str(folder))
    catalog.create_namespace("a")
    properties = {"format-version": str(version), **options.pop("properties", {})}
    return catalog.create_table("a.t", schema=schema, properties=properties, **options)


def found(table: ice.Table, **options: Any) -> dict[int, str]:
    data = table.scan(**options).to_arrow()
    assert len(set(data["id"].to_pylist())) == data.num_rows
    return dict(sorted(zip(data["id"].to_pylist(), data["s"].to_pylist(), strict=True)))


def contents(table: ice.Table) -> list[int]:
    return sorted(file["content"] for file in table.inspect.files().to_pylist())


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file() and "metadata" not in path.parts}


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("form", ["parquet", "orc", "avro"])
def test_the_last_change_of_a_key_counts(tmp_path: Path, version: int, form: str) -> None:
    table = make(tmp_path, version, properties={"write.format.default": form}).append(
        rows((1, "a"), (2, "b"), (3, "c"))
    )
    with table.upsert_stream("id", {"engine": "test"}) as stream:
        stream.upsert(rows((1, "first"), (4, "new"), (1, "second")))
        stream.delete(keys(2, 9)).upsert(rows((4, "newer"), (5, "gone"))).delete(keys(5, s=["ignored"]))
        assert found(table) == {1: "a", 2: "b", 3: "c"}
        assert stream.commit() == MicroBatchResult(2, 5)
        assert found(table) == {1: "second", 3: "c", 4: "newer"}
        assert stream.commit() == MicroBatchResult(0, 0)
        stream.delete(keys(1)).upsert(rows((1, "back")))
    assert found(table) == {1: "back", 3: "c", 4: "newer"}
    assert len(table.snapshots()) == 3
    assert contents(table) == [0, 0, 0, 2, 2]
    summary = table.current_snapshot().summary
    assert (summary["operation"], summary["engine"], summary["added-equality-deletes"]) == ("overwrite", "test", "1")
    # Deletes alone, and changes of other kinds through the equality deletes.
    with table.upsert_stream("id") as stream:
        stream.delete(keys(4))
    assert found(table) == {1: "back", 3: "c"}
    assert table.current_snapshot().summary["operation"] == "delete"
    table.update({"s": "updated"}, "id = 1")
    table.merge(
        rows((3, "merged"), (4, "inserted")), "id"
    ).when_matched_update_all().when_not_matched_insert_all().execute()
    assert found(table) == {1: "updated", 3: "merged", 4: "inserted"}


@pytest.mark.parametrize("limit", [None, 1])
@pytest.mark.parametrize("parts", [[], ["bucket(2, id)"]])
def test_streams_are_those_of_a_dict(tmp_path: Path, limit: int | None, parts: list[str]) -> None:
    draw = random.Random(4)
    table, model = make(tmp_path, partition_by=parts), {}
    with table.upsert_stream("id", memory_limit=limit) as stream:
        for number in range(24):
            some = [(draw.randrange(20), f"{number}.{at}") for at in range(draw.randrange(8))]
            if draw.random() < 0.3:
                stream.delete(keys(*(at for at, _ in some)) if some else rows())
                model = {at: text for at, text in model.items() if at not in dict(some)}
            else:
                stream.upsert(rows(*some))
                model |= dict(some)
            if draw.random() < 0.4:
                stream.commit()
                assert found(table) == dict(sorted(model.items()))
    assert found(table) == dict(sorted(model.items()))


def test_keys_of_several_columns_nested_and_null(tmp_path: Path) -> None:
    inner = pa.struct([pa.field("k", pa.int32()), pa.field("more", pa.string(), nullable=False)])
    schema = pa.schema([("x", inner), ("t", pa.string()), ("v", pa.int64())])
    table = make(tmp_path, schema=schema)

    def given(*values: tuple[int | None, str | None, int]) -> pa.Table:
        columns = [[{"k": k, "more": "m"} for k, _, _ in values], [t for _, t, _ in values], [v for *_, v in values]]
        return pa.table([pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema)

    table.append(given((1, "a", 1), (None, "a", 2), (1, None, 3), (None, None, 4)))
    with table.upsert_stream(["x.k", "t"]) as stream:
        stream.upsert(given((None, "a", 20), (2, "b", 50)))
        only = pa.struct([("k", pa.int32())])
        stream.delete(pa.table({"x": pa.array([{"k": None}, None], only), "t": pa.array([None, "b"], pa.string())}))
    assert sorted(table.scan().to_arrow()["v"].to_pylist()) == [1, 3, 20, 50]


def test_deletes_are_written_for_every_spec_that_has_data(tmp_path: Path) -> None:
    table = make(tmp_path, partition_by=["id"]).append(rows((1, "a"), (2, "b")))
    with table.update_spec() as spec:
        spec.remove_field("id")
        spec.add_field("id", "bucket[4]", "b")
    table.append(rows((3, "c")))
    with table.upsert_stream("id") as stream:
        stream.upsert(rows((1, "new"), (3, "newer"))).delete(keys(2))
    assert found(table) == {1: "new", 3: "newer"}
    assert {file["spec_id"] for file in table.inspect.files().to_pylist() if file["content"] == 2} == {0, 1}
    with table.update_spec() as spec:
        spec.add_field("p", "identity", "p")
    with pytest.raises(InvalidArgumentError, match=r"partition field p \(spec 2\) is not in the key id"):
        table.upsert_stream("id")
    # An older spec that still has data, and does not fit.
    table.append(rows((7, "q")))
    with table.update_spec() as spec:
        spec.remove_field("p")
    stream = table.upsert_stream("id")
    before = files(tmp_path)
    with pytest.raises(InvalidArgumentError, match=r"partition field p \(spec 2\)"):
        stream.upsert(rows((7, "r"))).commit()
    assert (files(tmp_path), found(table)[7]) == (before, "q")


def test_other_commits_in_between(tmp_path: Path) -> None:
    table = make(tmp_path, properties={"commit.retry.min-wait-ms": "1"}).append(rows((1, "a")))
    other = table.catalog.load_table("a.t")
    stream = table.upsert_stream("id")
    stream.upsert(rows((1, "stream"), (2, "stream")))
    other.append(rows((2, "other"), (3, "other")))
    assert stream.commit() == MicroBatchResult(2, 2)
    assert found(table.refresh()) == {1: "stream", 2: "stream", 3: "other"}
    stream.upsert(rows((3, "stream")))
    with other.refresh().update_spec() as spec:
        spec.add_field("p", "identity")
    other.append(rows((3, "again")))
    before = files(tmp_path)
    with pytest.raises(ValidationException, match="data files of the partition spec 1"):
        stream.commit()
    assert files(tmp_path) == before
    stream.close()
    with pytest.raises(InvalidArgumentError, match="closed"):
        stream.upsert(rows((1, "late")))


def test_what_does_not_fit_changes_nothing(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFeatureError, match="format version 1"):
        make(tmp_path / "old", 1).upsert_stream("id")
    table = make(tmp_path / "table").append(rows((1, "a")))
    before, snapshot = files(tmp_path), table.current_snapshot().snapshot_id
    for key, message in [(None, "identifier"), ("nope", "nope")]:
        with pytest.raises(ice.IcefieldError, match=message):
            table.upsert_stream(key)
    for change, message in [
        (
            lambda stream: stream.upsert(keys(1, s=["x"]).drop(["id"])),
            "column of the key, and the data lack it|required",
        ),
        (lambda stream: stream.upsert(keys(1, w=["x"])), "w"),
        (lambda stream: stream.delete(pa.table({"s": ["a"]})), "column of the key, and the data lack it"),
        (lambda stream: stream.upsert(pa.table({"id": pa.array([None], pa.int64())})), "required"),
        (lambda stream: stream.delete(pa.table({"id": pa.array([None], pa.int64())})).commit(), "required"),
    ]:
        with table.upsert_stream("id") as stream:
            stream.upsert(rows((1, "dropped")))
            with pytest.raises(ValidationError, match=message):
                change(stream)
    with pytest.raises(ZeroDivisionError), table.upsert_stream("id") as stream:  # noqa: PT012
        stream.upsert(rows((1, "dropped")))
        assert 1 / 0
    table.manage_snapshots().create_tag(snapshot, "tag").commit()
    with pytest.raises(InvalidArgumentError, match="tag is a tag"), table.upsert_stream("id", branch="tag") as stream:
        stream.upsert(rows((1, "dropped")))
    stream = table.upsert_stream("id")
    stream.upsert(rows((1, "lost")))
    with pytest.warns(ResourceWarning, match=r"commit\(\)"):  # noqa: PT031
        del stream
        gc.collect()
    assert files(tmp_path) == before
    assert table.refresh().current_snapshot().snapshot_id == snapshot
    with table.upsert_stream("id", branch="audit") as stream:
        stream.upsert(rows((1, "audited")))
    assert (found(table), found(table, ref="audit")) == ({1: "a"}, {1: "audited"})
