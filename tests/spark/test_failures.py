"""What fails in a worker comes back as one sentence, of the class that it was raised as."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import icefield as ice
import icefield.spark as ice_spark
from icefield.spark.sessions.failures import raised_in_task, sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("s", pa.string())])


@pytest.fixture
def table(catalog: ice.Catalog) -> ice.Table:
    """Make a table with two rows."""
    made = catalog.create_table("db.t", SCHEMA)
    made.append(pa.table({"id": [1, 2], "s": ["a", "b"]}, schema=SCHEMA))
    return made


@pytest.fixture
def load(spark: SparkSession, options: dict[str, str]) -> Callable[..., DataFrame]:
    """Give the way to load a table by the format."""

    def load(name: str = "db.t", **more: str) -> DataFrame:
        return spark.read.format("icefield").options(**options, **more).load(name)

    return load


def text_of(call: Callable[[], Any]) -> str:
    with pytest.raises(Exception, match=r"icefield\.errors\.") as raised:
        call()
    return str(raised.value)


def nulls(spark: SparkSession) -> DataFrame:
    """Give rows of which one has a null where the table takes none."""
    return spark.createDataFrame([(1, "x"), (None, "y")], "id BIGINT, s STRING")


def damage(table: ice.Table) -> None:
    for file in table.scan().plan_files().files:
        Path(file["file_path"].removeprefix("file://")).write_bytes(b"PAR1 no Parquet PAR1")


def test_a_worker_sends_no_frames_of_ours(
    spark: SparkSession, table: ice.Table, load: Callable[..., DataFrame], options: dict[str, str]
) -> None:
    loaded, read = load(), ice_spark.read(spark, table, native=False)
    write = nulls(spark).write.format("icefield").options(**options).mode("append")
    truncated = spark.sql("SELECT icefield_truncate(10, 27)")
    damage(table)
    calls: list[tuple[str, Callable[[], Any]]] = [
        ("NoSuchTableError: table db.none does not exist in catalog local", lambda: load("db.none")),
        ("InvalidArgumentError: unknown option snapshot_id; did you mean snapshot-id?", lambda: load(snapshot_id="1")),
        ("ValidationError: column id: required, but row", lambda: write.save("db.t")),
        ("CorruptDataError: ", loaded.collect),
        ("CorruptDataError: ", read.collect),
        ("InvalidArgumentError: icefield_truncate is for values of type string", truncated.collect),
    ]
    for message, call in calls:
        before, found, _ = text_of(call).partition(f"icefield.errors.{message}")
        assert found, before
        assert len(re.findall(r'^  File ".*icefield', before, re.MULTILINE)) == 1, before


def test_an_append_raises_what_its_task_raised(spark: SparkSession, table: ice.Table) -> None:
    with pytest.raises(
        ice.errors.ValidationError, match=r"^column id: required, but row 0 of task \d+ is null$"
    ) as raised:
        ice_spark.append(nulls(spark), table)
    assert raised.value.__suppress_context__  # Spark's own error is there, but is not printed

    def fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        raise KeyError("of the user")

    rows = spark.range(3).selectExpr("id", "'x' AS s").mapInArrow(fail, "id BIGINT, s STRING")
    with pytest.raises(Exception, match="KeyError: 'of the user'") as other:
        ice_spark.append(rows, table)
    assert not isinstance(other.value, ice.errors.IcefieldError)


def test_what_cannot_be_planned_is_no_empty_table(
    catalog: ice.Catalog, load: Callable[..., DataFrame], spark: SparkSession
) -> None:
    """Spark reads no rows where a source's plan raises a NotImplementedError."""
    table = catalog.create_table("db.e", SCHEMA, properties={"format-version": "3"})
    table.append(pa.table({"id": [1], "s": ["a"]}, schema=SCHEMA))
    file = Path(table.metadata_location.removeprefix("file://"))
    document = json.loads(file.read_text())
    document["snapshots"][0]["key-id"] = "k1"
    file.write_text(json.dumps(document))
    for name in ("db.e", "db.e.files", "db.e.changes"):
        with pytest.raises(Exception, match=r"icefield\.errors\.UnsupportedFeatureError: .* is encrypted"):
            load(name).collect()
    with pytest.raises(ice.errors.UnsupportedFeatureError, match="is encrypted"):
        ice_spark.read(spark, catalog.load_table("db.e"))


def test_tables_of_sparks_own_catalog_say_what_to_do(
    spark: SparkSession, table: ice.Table, options: dict[str, str]
) -> None:
    del table
    given = ", ".join(f"{name} '{value}'" for name, value in {**options, "path": "db.t"}.items())
    rows = spark.range(3).selectExpr("id", "'x' AS s")
    message = (
        r"CREATE TEMPORARY VIEW v USING icefield OPTIONS .*CREATE TABLE \.\.\. USING icefield and saveAsTable are not"
    )
    try:
        for call in (
            lambda: spark.sql(f"CREATE TABLE made USING icefield OPTIONS ({given})"),
            lambda: spark.sql("CREATE TABLE made USING icefield"),
            lambda: spark.sql("CREATE TABLE made USING icefield AS SELECT 1L AS id"),
            lambda: rows.write.format("icefield").options(**options).mode("append").saveAsTable("made"),
            # Spark asks no source for a table whose columns are given, but for its rows.
            lambda: (
                spark.sql(f"CREATE OR REPLACE TABLE made (id BIGINT) USING icefield OPTIONS ({given})")
                and spark.table("made").collect()
            ),
        ):
            assert re.search(message, text_of(call)), call
    finally:
        spark.sql("DROP TABLE IF EXISTS made")


def test_modes_that_spark_refuses(spark: SparkSession, table: ice.Table, options: dict[str, str]) -> None:
    write = spark.range(3).selectExpr("id", "'x' AS s").write.format("icefield").options(**options)
    # Spark refuses these two itself; `test_overwrites` has what overwriting does.
    for mode in ("error", "ignore"):
        with pytest.raises(Exception, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
            write.mode(mode).save("db.t")
    assert table.refresh().scan().count() == 2


def test_a_loaded_frame_stays_with_its_table(
    catalog: ice.Catalog, table: ice.Table, load: Callable[..., DataFrame], spark: SparkSession, options: dict[str, str]
) -> None:
    # Spark plans a frame once, when it is read for the first time.
    newest, evolved, replaced = load(), load(), load()
    replaced.createOrReplaceTempView("loaded")
    spark.sql("INSERT INTO loaded VALUES (3, 'c')")
    assert sorted(row.id for row in newest.collect()) == [1, 2, 3]
    with table.refresh().update_schema() as change:
        change.add_column("more", "int")
    assert evolved.columns == ["id", "s"]
    assert evolved.where("id > 0").count() == 3
    catalog.drop_table("db.t")
    other = catalog.create_table("db.t", SCHEMA)
    message = rf"TableReplacedError: the table was replaced: .*{table.table_uuid}.*{other.table_uuid}"
    assert re.search(message, text_of(lambda: replaced.where("id > 1").collect()))
    assert load().count() == other.refresh().scan().count() == 0
    spark.catalog.dropTempView("loaded")


def test_columns_that_changed_after_a_frame_was_loaded(catalog: ice.Catalog, load: Callable[..., DataFrame]) -> None:
    schema = pa.schema(
        [("a", pa.int64()), ("b", pa.int32()), pa.field("c", pa.int64(), nullable=False), ("d", pa.int64())]
    )
    table = catalog.create_table("db.t", schema)
    table.append(pa.table({"a": [1], "b": [2], "c": [3], "d": [4]}, schema=schema))
    changes: list[tuple[str, list[Callable[[Any], Any]]]] = [
        (
            "a became another column after",
            [lambda to: to.rename_column("a", "x"), lambda to: to.add_column("a", "long")],
        ),
        ("b became bigint, from int, after", [lambda to: to.update_column("b", "long")]),
        ("c became optional after", [lambda to: to.make_column_optional("c")]),
        ('"d" in the schema (columns: x, b, c, a)', [lambda to: to.delete_column("d")]),
    ]
    for message, steps in changes:
        frame = load()
        for step in steps:
            with table.update_schema() as update:
                step(update)
        assert f"column {message}" in text_of(frame.collect)
    assert load().count() == 1


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Traceback:\n  x\nicefield.errors.ValidationError: column id: bad\n", ("ValidationError", "column id: bad")),
        ("icefield.errors.CorruptDataError: a\nb\n\n\tat org.x.Y(Z.java:1)\n", ("CorruptDataError", "a\nb")),
        ("icefield.errors.StorageError: a\n\nDriver stacktrace:\n", ("StorageError", "a")),
        ("icefield.errors.StorageError: a\n\nDuring handling of the above exception, another\nValueError: b", None),
        ("ValueError: icefield.errors.StorageError: a", None),
        ("icefield.errors.annotations: a", None),
    ],
)
def test_the_error_of_a_task(text: str, found: tuple[str, str] | None) -> None:
    error = raised_in_task(RuntimeError(text))
    assert (error and (type(error).__name__, str(error))) == found


def test_where_the_damage_is_comes_back() -> None:
    """The error of a task has the file and the place, and its message is as it was."""

    @sentence
    def read(*where: Any) -> None:
        raise ice.errors.CorruptDataError("a.parquet: page 3 is too short", *where)

    for where in (("a.parquet", "page 3", 77), ("a.parquet", None, None), (None, None, None)):
        with pytest.raises(ice.errors.CorruptDataError) as raised:
            read(*where)
        kind = type(raised.value)
        text = f"Traceback:\n{kind.__module__}.{kind.__qualname__}: {raised.value}\n\n\tat org.x.Y(Z.java:1)\n"
        error = raised_in_task(RuntimeError(text))
        assert isinstance(error, ice.errors.CorruptDataError)
        assert str(error) == "a.parquet: page 3 is too short"
        assert (error.file, error.place, error.offset) == where


def test_defects_of_ours_keep_their_frames() -> None:
    @sentence
    def defect() -> None:
        raise ice.errors.InternalError("a defect")

    with pytest.raises(ice.errors.InternalError) as raised:
        defect()
    assert [entry.name for entry in raised.traceback][-1] == "defect"
