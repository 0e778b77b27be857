"""Mistakes that people make, and what they are told: the class of the error, and the words that help."""

import datetime as dt
import json

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

import icefield as ice
from icefield.errors import (
    ArgumentTypeError,
    CorruptDataError,
    InvalidArgumentError,
    MissingVerbError,
    NoSuchTableError,
    UnsupportedFeatureError,
    ValidationError,
)
from icefield.name_mapping import NameMapping

ROWS = pa.table(
    {
        "id": pa.array([1, 2], pa.int64()),
        "name": ["a", "b"],
        "day": [dt.date(2024, 1, 1), dt.date(2024, 1, 2)],
        "tz": pa.array([1_704_067_200_000_000, 1_704_153_600_000_000], pa.timestamp("us", "UTC")),
        "place": [{"lat": 1.0}, {"lat": 2.0}],
    }
)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    catalog = ice.load_catalog(
        "mistakes", type="in-memory", warehouse=str(tmp_path_factory.mktemp("mistakes") / "warehouse")
    )
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", ROWS, partition_by="bucket(2, id)")
    table.append(ROWS)
    return table


def told(error, *words):
    """Hold an error to the words that it should have."""
    message = str(error.value)
    for word in words:
        assert word in message, f"{word!r} is missing in {message!r}"


def scanned(row_filter=None, **options):
    return lambda table: table.scan(row_filter, **options)


def changed(step):
    def change(table):
        with table.update_schema() as update:
            step(update)

    return change


MISTAKES = {
    "column in a filter": (scanned("nmae = 'a'"), ValidationError, 'no column "nmae"', 'did you mean "name"?', "id, n"),
    "nested column": (scanned("place.lta = 1"), ValidationError, '"place.lat"', 'fields of "place": lat'),
    "column selected": (scanned(None, selected_fields="nme"), ValidationError, 'did you mean "name"?'),
    "letter case": (scanned("Name = 'a'"), ValidationError, 'but "name": correct the case', "case_sensitive=False"),
    "double quotes": (scanned('name = "a"'), InvalidArgumentError, "single quotes: 'a'"),
    "double quotes first": (scanned('"a" = name'), InvalidArgumentError, "single quotes: 'a'"),
    "double quotes in a list": (scanned('name IN ("a")'), InvalidArgumentError, "single quotes: 'a'"),
    "double quotes in LIKE": (scanned('name LIKE "a%"'), InvalidArgumentError, "single quotes: 'a%'"),
    "American date": (scanned("day = '01/02/2024'"), ValidationError, "column day", "YYYY-MM-DD"),
    "text that is no instant": (scanned("tz > 'noon'"), ValidationError, "with an offset or Z"),
    "function as a filter": (scanned(lambda row: row), ArgumentTypeError, "as text"),
    "pyarrow expression": (scanned(pads.field("id") > 1), ArgumentTypeError, "expressions of pyarrow", "as text"),
    "naive datetime": (
        scanned(as_of=dt.datetime(2024, 1, 1)),  # noqa: DTZ001
        InvalidArgumentError,
        "as_of",
        "no time zone",
        "astimezone",
    ),
    "naive text": (
        scanned(as_of="2024-01-01 10:00:00"),
        InvalidArgumentError,
        "no time zone",
        "'2024-01-01 10:00:00Z'",
    ),
    "date text": (scanned(as_of="2024-01-01"), InvalidArgumentError, "'2024-01-01T00:00:00Z'"),
    "date": (scanned(as_of=dt.date(2024, 1, 1)), InvalidArgumentError, "'2024-01-01T00:00:00Z'"),
    "fraction": (scanned(as_of=1.5), InvalidArgumentError, "aware datetime", "1.5"),
    "words": (scanned(as_of="yesterday"), InvalidArgumentError, "ISO text with an offset", "'yesterday'"),
    "before the table": (
        scanned(as_of="2001-01-01T00:00:00Z"),
        InvalidArgumentError,
        "no snapshot at 2001-01-01T00:00:00Z",
        "its first snapshot is of 20",
    ),
    "snapshot": (scanned(snapshot_id=1), InvalidArgumentError, "no snapshot 1", "newest first: "),
    "branch": (scanned(ref="mian"), InvalidArgumentError, 'did you mean "main"?'),
    "metadata table filter": (
        lambda table: table.inspect.stream("files", row_filter="recordcount = 1"),
        ValidationError,
        'did you mean "record_count"?',
    ),
    "inspected moment": (lambda table: table.inspect.files(as_of="2024-01-01"), InvalidArgumentError, "no time zone"),
    "bounds": (lambda table: table.scan().bounds("nmae"), ValidationError, 'did you mean "name"?'),
    "metrics": (lambda table: table.scan().plan_files(metrics=["nmae"]), ValidationError, 'did you mean "name"?'),
    "find_field": (lambda table: table.schema().find_field("nmae"), ValidationError, 'did you mean "name"?'),
    "verb": (
        lambda table: table.to_daft(),
        MissingVerbError,
        "Table.to_daft is not supported yet",
        "to_arrow",
    ),
    "type change": (
        changed(lambda update: update.update_column("id", "int")),
        ValidationError,
        "from long to int",
        "no other type",
    ),
    "type change of a date": (
        changed(lambda update: update.update_column("day", "string")),
        ValidationError,
        "timestamp or timestamp_ns from format version 3 on",
    ),
    "column changed": (changed(lambda update: update.rename_column("nmae", "x")), ValidationError, '"name"?'),
    "column moved": (changed(lambda update: update.move_after("id", "nmae")), ValidationError, '"name"?'),
    "column deleted": (changed(lambda update: update.delete_column("nmae")), ValidationError, '"name"?'),
    "struct added to": (changed(lambda update: update.add_column("plaec.x", "int")), ValidationError, '"place"?'),
    "type of a column": (changed(lambda u: u.add_column("x", "bigint")), InvalidArgumentError, 'did you mean "long"?'),
    "tag turned round": (
        lambda table: table.manage_snapshots().create_tag("v1", 5),
        ArgumentTypeError,
        "the snapshot id first",
    ),
    "branch turned round": (
        lambda table: table.manage_snapshots().create_branch("v1", 5),
        ArgumentTypeError,
        "the snapshot id first",
    ),
    "ref made current": (
        lambda table: table.manage_snapshots().set_current_snapshot(ref_name="mian"),
        InvalidArgumentError,
        "known: main",
    ),
    "rollback": (
        lambda table: table.manage_snapshots().rollback_to_timestamp(dt.datetime(2024, 1, 1)),  # noqa: DTZ001
        InvalidArgumentError,
        "timestamp_ms",
        "no time zone",
    ),
    "partition field removed": (
        lambda table: table.update_spec().remove_field("id_bukcet"),
        ValidationError,
        'did you mean "id_bucket"?',
    ),
    "partition source": (lambda table: table.update_spec().add_field("day(dya)"), ValidationError, '"day"?'),
    "transform": (
        lambda table: table.update_spec().add_field("tz", "monhts"),
        InvalidArgumentError,
        "unknown transform 'monhts'",
        "expected identity, bucket[16]",
    ),
    "transform without its number": (
        lambda table: table.update_spec().add_field("id", "bucket"),
        InvalidArgumentError,
        "bucket[16]",
    ),
    "transform in a text": (
        lambda table: table.update_spec().add_field("monhts(tz)"),
        InvalidArgumentError,
        "unknown transform",
        "month",
    ),
    "method of a scan": (lambda table: table.to_pandas(), AttributeError, "use scan().to_pandas()"),
    "method of a catalog": (lambda table: table.drop(), AttributeError, "use catalog.drop_table(identifier)"),
    "fraction for an integer": (scanned("id = 1.5"), ValidationError, "column id"),
    "text without quotes": (scanned("name=UA"), InvalidArgumentError, "if UA is a text", "single quotes: 'UA'"),
    "date without quotes": (scanned("day = 2013-01-05"), InvalidArgumentError, "single quotes: '2013-01-05'"),
    "time without quotes": (scanned("tz > 2013-01-05T10:00:00Z"), InvalidArgumentError, "'2013-01-05T10:00:00Z'"),
    "boolean alone": (scanned("b"), InvalidArgumentError, "if b is a boolean, write b = true"),
    "boolean negated": (scanned("NOT b"), InvalidArgumentError, "write b = true"),
    "boolean among others": (scanned("b AND id = 1"), InvalidArgumentError, "write b = true"),
    "list of names": (
        lambda table: table.scan().select(["name"]),
        ArgumentTypeError,
        "expected names, as in select('a', 'b')",
    ),
    "columns of a scan": (scanned(columns=["name"]), ArgumentTypeError, "no argument 'columns'", "selected_fields="),
    "filter of a scan": (scanned(filter="id = 1"), ArgumentTypeError, "row_filter="),
    "branch as properties": (
        lambda table: table.append(ROWS, "audit"),
        ArgumentTypeError,
        "expected a mapping",
        "branch=...",
    ),
    "branch of a delete": (lambda table: table.delete("id = 9", "audit"), ArgumentTypeError, "branch=..."),
    "key of an upsert": (lambda table: table.upsert(ROWS, on="id"), ArgumentTypeError, "use join_cols="),
    "key of a merge": (lambda table: table.merge(ROWS, join_cols=["id"]), ArgumentTypeError, "use on="),
    "condition for a key": (
        lambda table: table.merge(ROWS, on="source.id = target.id"),
        InvalidArgumentError,
        "on names columns of the key",
        "on={'k': 'key'}",
    ),
    "condition of aliases for a key": (
        lambda table: table.merge(ROWS, on="t.id == s.id"),
        InvalidArgumentError,
        "looks like a condition",
    ),
    "age in words": (
        lambda table: table.expire_snapshots(older_than="last week"),
        InvalidArgumentError,
        "aware datetime",
    ),
    "no filter of a delete": (lambda table: table.delete(None), InvalidArgumentError, "delete_filter is None"),
    "no filter of an overwrite": (
        lambda table: table.overwrite(ROWS, None),
        InvalidArgumentError,
        "overwrite_filter is None",
        "AlwaysTrue()",
    ),
    "metadata table": (lambda table: table.inspect.file(), AttributeError, "did you mean 'files'?"),
    "expired start": (
        lambda table: table.incremental_append_scan(from_snapshot_id_exclusive=5).count(),
        InvalidArgumentError,
        "may have expired",
    ),
    "expired first": (
        lambda table: table.incremental_append_scan(from_snapshot_id_inclusive=5).count(),
        InvalidArgumentError,
        "may have expired",
    ),
    "text of columns": (
        lambda table: table.catalog.create_table("db.x", schema="a long, b string"),
        ArgumentTypeError,
        "expected a schema",
        "pyarrow.schema(",
    ),
    "format version": (
        lambda table: table.catalog.create_table("db.x", ROWS, format_version=3),
        ArgumentTypeError,
        'properties={"format-version": "3"}',
    ),
    "sort source": (lambda table: table.update_sort_order().asc("nmae"), ValidationError, 'did you mean "name"?'),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_scans_and_changes(table, mistake):
    make, kind, *words = MISTAKES[mistake]
    with pytest.raises(kind) as error:
        make(table)
    told(error, *words)


DATA = {
    "list of dicts": (lambda: [{"id": 1}], "pyarrow.Table.from_pylist(rows)"),
    "list of batches": (ROWS.to_batches, "pyarrow.Table.from_batches(batches)"),
    "generator": (lambda: iter(ROWS.to_batches()), "RecordBatchReader.from_batches(schema, batches)"),
    "dict": (lambda: {"id": [1]}, "pyarrow.table(...)"),
    "path": (lambda: "rows.parquet", "read_table(path)"),
    "dataset": (lambda: pads.dataset(ROWS), ".scanner().to_reader()"),
}


@pytest.mark.parametrize("data", DATA)
def test_what_holds_no_rows(table, data):
    make, words = DATA[data]
    with pytest.raises(ArgumentTypeError) as error:
        table.append(make())
    told(error, "expected rows", words)
    assert isinstance(error.value, TypeError)
    assert isinstance(error.value, InvalidArgumentError)


def test_files_and_lazy_frames(table, tmp_path):
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    with pq.ParquetFile(tmp_path / "rows.parquet") as file, pytest.raises(ArgumentTypeError, match=r"iter_batches\(\)"):
        table.append(file)
    polars = pytest.importorskip("polars")
    with pytest.raises(ArgumentTypeError, match=r"\.collect\(\)"):
        table.append(polars.LazyFrame({"id": [1]}))
    with pytest.raises(ArgumentTypeError, match="expressions of polars"):
        table.scan(polars.col("id") > 1)


COLUMNS = {
    "extra": ({"nmae": ["a"]}, 'schema_mode="evolve"', 'did you mean "name"?'),
    "letter case": ({"Name": ["a"]}, 'has "name"', "letter case only"),
    "pandas integers with NaN": ({"id": pa.array([1.0, None])}, "the table's type is long, the data's double", "Int64"),
    "type": ({"day": ["2024"]}, "the table's type is date, the data's string"),
    "nested": ({"place": [["x"]]}, "the data's list<string>"),
}


@pytest.mark.parametrize("columns", COLUMNS)
def test_columns_that_do_not_fit(table, columns):
    data, *words = COLUMNS[columns]
    with pytest.raises(ValidationError) as error:
        table.append(pa.table(data))
    told(error, *words)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("bigint", 'did you mean "long"?'),
        ("varchar(10)", 'did you mean "string"?'),
        ("text", 'did you mean "string"?'),
        ("timestmap", 'did you mean "timestamp"?'),
        ("list<int>", "nested types are made by icefield.types"),
        ("nonsense", "types: unknown, boolean, int, long"),
    ],
)
def test_types(text, meant):
    with pytest.raises(InvalidArgumentError) as error:
        ice.NestedField(1, "id", text)
    told(error, "not a type", meant)


@pytest.mark.parametrize(
    ("schema", "words"),
    [({"id": "long"}, "ice.Schema(ice.NestedField"), ([ice.NestedField(1, "id", "long")], "ice.Schema(*fields)")],
)
def test_schemas(table, schema, words):
    with pytest.raises(ArgumentTypeError) as error:
        table.catalog.create_table("db.other", schema)
    told(error, words)


def test_a_data_file_for_a_metadata_file(tmp_path):
    for head, what in ((b"PAR1", "a Parquet file"), (b"ORC\n", "an ORC file"), (b"Obj\x01", "an Avro file")):
        (tmp_path / "file").write_bytes(head + b"\x00" * 40)
        with pytest.raises(CorruptDataError) as error:
            ice.Table.from_metadata(str(tmp_path / "file"))
        told(error, what, "not a metadata file", "*.metadata.json")


def test_a_table_object_that_is_older_than_the_table(tmp_path):
    catalog = ice.load_catalog("old", type="in-memory", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", ROWS)
    old = catalog.load_table("db.t")
    wider = ROWS.append_column("new", [[1, 2]])
    with pytest.raises(ValidationError) as error:
        old.append(wider)
    assert "refresh" not in str(error.value)
    with table.update_schema() as update:
        update.add_column("new", "long")
    for change in (old.append, old.overwrite, lambda rows: old.upsert(rows, "id")):
        with pytest.raises(ValidationError) as error:
            change(wider)
        told(error, "column new", "this table object is older than the table", "refresh() it")
    old.refresh().append(wider)
    stale = catalog.load_table("db.t")
    old.append(wider)
    with pytest.raises(ice.errors.ValidationException) as conflict:
        stale.delete("id > 0")
    told(conflict, "nothing was changed", "refresh() the table")


def test_a_commit_that_loses_every_race(tmp_path, monkeypatch):
    catalog = ice.load_catalog("races", type="in-memory", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    properties = {"commit.retry.num-retries": "2", "commit.retry.min-wait-ms": "1", "commit.retry.max-wait-ms": "1"}
    table = catalog.create_table("db.t", ROWS, properties=properties)

    def lost(*_):
        raise ice.CommitFailedException("db.t was changed by another commit")

    monkeypatch.setattr(type(catalog), "swap_pointer", lost)
    with pytest.raises(ice.CommitFailedException) as error:
        table.append(ROWS)
    told(error, "changed by another commit", "attempts: 3", "commit.retry.num-retries", "allow more")


def test_times_without_a_zone_are_utc_in_every_form(table):
    naive = dt.datetime(2024, 1, 2)  # noqa: DTZ001
    for literal in (
        "'2024-01-02'",
        "'2024-01-02T00:00:00'",
        "'2024-01-02 00:00:00'",
        "TIMESTAMP '2024-01-02 00:00:00'",
    ):
        assert table.scan(f"tz >= {literal}").count() == 1, literal
    for moment in (naive, naive.replace(tzinfo=dt.timezone.utc), naive.date(), "2024-01-02T00:00:00"):
        assert table.scan(ice.expressions.GreaterThanOrEqual("tz", moment)).count() == 1, moment


def test_errors_of_streams_keep_their_class(tmp_path):
    catalog = ice.load_catalog("streams", type="in-memory", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", ROWS)
    table.append(ROWS)
    file = table.scan().plan_files().files[0]["file_path"]
    with open(file.removeprefix("file://"), "r+b") as opened:
        opened.write(b"\x00" * 64)
        opened.seek(-4, 2)
        opened.write(b"XXXX")
    for read in (
        lambda: table.scan().to_arrow(),
        lambda: table.scan().to_arrow_batch_reader().read_all(),
        lambda: list(table.scan().to_arrow_batch_reader()),
    ):
        with pytest.raises(CorruptDataError) as error:
            read()
        told(error, "parquet")
        assert "External error" not in str(error.value)
    with pytest.raises((pa.ArrowException, OSError), match="parquet"):
        pa.table(table.scan())


def test_renamed_identifier_fields(tmp_path):
    place = ice.types.StructType(ice.NestedField(3, "code", "string", required=True))
    schema = ice.Schema(
        ice.NestedField(1, "id", "long", required=True),
        ice.NestedField(2, "place", place, required=True),
        identifier_field_ids=[1, 3],
    )
    catalog = ice.load_catalog("identifiers", type="in-memory", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", schema)
    with table.update_schema(case_sensitive=False) as update:
        update.rename_column("ID", "key").rename_column("Place.Code", "abbreviation").rename_column("PLACE", "where")
    assert table.schema().column_names == ["key", "where", "where.abbreviation"]
    assert table.schema().identifier_field_ids == schema.identifier_field_ids


def test_name_mappings_without_fields():
    mapping = NameMapping.from_json('[{"field-id": 1, "names": ["a"], "fields": null}]')
    assert mapping == NameMapping.from_json('[{"field-id": 1, "names": ["a"]}]')


@pytest.mark.parametrize("check", ["spec", "sort"])
def test_columns_in_use(tmp_path, check):
    catalog = ice.load_catalog("used", type="in-memory", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    options = {"partition_by": "day(tz)"} if check == "spec" else {"sort_by": "tz"}
    table = catalog.create_table("db.t", ROWS, **options)
    with pytest.raises(ValidationError, match="cannot delete column tz"), table.update_schema() as update:
        update.delete_column("tz")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("db.tt", "table db.tt does not exist in catalog mistakes; did you mean db.t?"),
        ("mistakes.db.t", "leave out the name of the catalog: db.t"),
        ("bd.t", "there is no namespace bd, did you mean db?"),
        ("db.something_else", "table db.something_else does not exist in catalog mistakes"),
    ],
)
def test_tables(table, name, words):
    for use in (table.catalog.load_table, table.catalog.drop_table):
        with pytest.raises(NoSuchTableError) as error:
            use(name)
        assert str(error.value).endswith(words)


def test_main_where_the_document_leaves_it_out(table, tmp_path):
    document = json.loads(table.metadata_json())
    snapshot = document["current-snapshot-id"]
    document["refs"] = {"kept": {"snapshot-id": snapshot, "type": "tag"}}
    (tmp_path / "00009-main.metadata.json").write_text(json.dumps(document))
    opened = ice.Table.from_metadata(str(tmp_path / "00009-main.metadata.json"))
    assert {name: ref.snapshot_id for name, ref in opened.refs().items()} == {"kept": snapshot, "main": snapshot}
    assert opened.scan(ref="main").count() == 2


def test_columns_of_mixed_types(table):
    pd = pytest.importorskip("pandas")
    mixed = pd.DataFrame({"name": ["a", 1]})
    for use in (
        table.append,
        table.overwrite,
        lambda frame: table.upsert(frame, ["name"]),
        lambda frame: table.catalog.create_table("db.mixed", frame),
        lambda frame: table.update_schema().union_by_name(frame),
        ice.Schema.from_arrow,
        ice.expressions.parse("name = 'a'").evaluate,
    ):
        with pytest.raises(InvalidArgumentError) as error:
            use(mixed)
        told(error, "column name", "cannot be converted to Arrow", ".astype(str)")
        # What pandas and Arrow said themselves is shown with it.
        assert isinstance(error.value.__cause__, pa.ArrowInvalid | pa.ArrowTypeError)


def test_errors_of_a_producer_stay_its_own(table):
    class Broken:
        def __arrow_c_stream__(self, requested_schema=None):
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        table.append(Broken())


def test_snapshots_have_the_schema_of_their_time(tmp_path):
    catalog = ice.load_catalog("renamed", type="in-memory", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", ROWS).append(ROWS)
    first = table.current_snapshot()
    table.manage_snapshots().create_tag(first.snapshot_id, "v1").commit()
    with table.update_schema() as update:
        update.rename_column("name", "title").add_column("place.zip", "string").add_column("more", "int")
    table.append(ROWS.drop_columns(["name"]))
    for moment in ({"ref": "v1"}, {"snapshot_id": first.snapshot_id}, {"as_of": first.timestamp_ms}):
        for options in ({"selected_fields": "title"}, {"row_filter": "title = 'a'"}):
            with pytest.raises(ValidationError) as error:
                table.scan(**options, **moment)
            told(error, 'no column "title"', "the schema of its time", 'where "title" was "name"')
    for name in ("more", "place.zip"):
        with pytest.raises(ValidationError) as error:
            table.scan(ref="v1", selected_fields=name)
        told(error, f'which had no "{name}"')
    with pytest.raises(ValidationError) as error:
        table.scan(ref="v1", selected_fields="nmae")
    assert "of its time" not in str(error.value)
    assert table.scan(ref="main", selected_fields="title").count() == 4


def test_hints_do_not_make_methods(table):
    """A tab of a shell or a notebook asks for names that are not there: hints do not make them be."""
    assert not hasattr(table, "to_pandas")
    assert not hasattr(table, "_repr_svg_")


def test_a_mistyped_branch_is_read_by_no_name_and_written_to_as_a_branch_of_main(tmp_path):
    """Java's and PyIceberg's changes create branches too."""
    catalog = ice.load_catalog("typed", type="in-memory", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", ROWS).append(ROWS)
    with pytest.raises(InvalidArgumentError, match='did you mean "main"'):
        table.scan(ref="mian")
    before = table.current_snapshot()
    table.append(ROWS, branch="mian")
    assert (table.scan().count(), table.scan(ref="mian").count()) == (2, 4)
    assert table.current_snapshot() == before
    assert table.snapshot_by_name("mian").parent_snapshot_id == before.snapshot_id
    assert sorted(table.refs()) == ["main", "mian"]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("encryption.data-key-length", "20", ("16, 24 or 32", "'20'")),
        ("write.delete.mode", "x", ("write.delete.mode", "copy-on-write or merge-on-read", "'x'")),
        ("write.parquet.page-version", "v9", ("v1 or v2", "'v9'")),
        ("format_version", "3", ("no table property format_version", "did you mean format-version?")),
        ("write.parquet.compression-codec", "lzo", ("expected zstd, gzip", "'lzo'")),
    ],
)
def test_properties_of_tables(tmp_path, name, value, words):
    catalog = ice.load_catalog("properties", type="in-memory", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    with pytest.raises((UnsupportedFeatureError, InvalidArgumentError)) as error:
        catalog.create_table("db.t", ROWS, properties={name: value})
    told(error, *words)
    assert not catalog.table_exists("db.t")
