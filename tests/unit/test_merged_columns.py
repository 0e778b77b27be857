"""What a merge takes and what it would drop: columns that were renamed, values that look like columns, keys."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import icefield as ice
from icefield.errors import InvalidArgumentError, ValidationError

TABLE = pa.schema(
    {"id": pa.int64(), "remark": pa.string(), "v": pa.int64(), "place": pa.struct([("lat", pa.float64())])}
)
ROWS = pa.table({"id": [1], "remark": ["old"], "v": [1], "place": [{"lat": 1.0}]}, schema=TABLE)


@pytest.fixture
def table():
    catalog = ice.load_catalog("m", type="in-memory")
    catalog.create_namespace("a")
    return catalog.create_table("a.t", TABLE).append(ROWS)


def source(**columns):
    return pa.table({"id": pa.array([1, 2], pa.int64()), **columns})


UPDATE, INSERT = "when_matched_update_all", "when_not_matched_insert_all"


@pytest.mark.parametrize("clauses", [(UPDATE,), (INSERT,), (UPDATE, INSERT), ("when_matched_delete", INSERT)])
@pytest.mark.parametrize(
    "columns",
    [
        {"note": ["a", "b"]},
        {"note": ["a", "b"], "other": [1, 2]},
        {"Remark": ["a", "b"]},
        {"place": [{"latitude": 1.0}, {"latitude": 2.0}]},
        {"remark": ["a", "b"], "place_lat": [1.0, 2.0]},
    ],
)
@pytest.mark.parametrize("schema_mode", ["subset", "strict"])
def test_columns_that_the_table_lacks_are_refused(table, clauses, columns, schema_mode):
    before = table.metadata_location
    merge = table.merge(source(**columns), on="id", schema_mode=schema_mode)
    for clause in clauses:
        getattr(merge, clause)(*(["source.id = 1"] if clause == "when_matched_delete" else []))
    with pytest.raises(ValidationError) as error:
        merge.execute()
    strange = [name for name in columns if name not in TABLE.names] or ["place.latitude"]
    assert any(name in str(error.value) for name in strange), str(error.value)
    assert table.refresh().metadata_location == before


def test_columns_that_a_clause_or_the_key_uses_are_taken(table):
    rows = source(remark=["a", "b"], op=["u", "i"], late=[False, True], key=[1, 2])
    for merge in (
        table.merge(rows.select(["id", "remark", "op"]), on="id", dry_run=True).when_matched_update_all(
            "source.op = 'u'"
        ),
        table.merge(rows.select(["key", "remark"]), on={"id": "key"}, dry_run=True).when_matched_update_all(),
        table.merge(rows.select(["id", "remark", "op"]), on="id", dry_run=True)
        .when_matched_update({"remark": "source.op"}, "source.id = 7")
        .when_matched_update_all(),
        table.merge(rows.select(["id", "remark", "op"]), on="id", dry_run=True).when_matched_update_all(
            pc.field("source.op") == "u"
        ),
        table.merge(rows.select(["id", "remark", "op"]), on="id", dry_run=True)
        .when_matched_delete("source.op = 'd'")
        .when_matched_update_all(),
        table.merge(rows, on="id", dry_run=True, extra_columns="ignore").when_matched_update_all(),
        table.merge(rows, on="id", dry_run=True, schema_mode="evolve").when_matched_update_all(),
        table.merge(rows, on="id", dry_run=True).when_matched_update({"remark": "source.remark"}),
    ):
        assert merge.execute().rows_updated == 1
    # A longer name is another column.
    longer = rows.select(["id", "op", "late"]).rename_columns(["id", "op", "op_late"])
    with pytest.raises(ValidationError, match="column op:"):
        table.merge(longer, on="id").when_matched_update_all(pc.field("source.op_late")).execute()
    # A function may use a column, and does not say so.
    with pytest.raises(ValidationError, match="a function may use it"):
        table.merge(rows.select(["id", "op"]), on="id").when_matched_update_all(
            lambda batch: batch["source.op"]
        ).execute()
    with pytest.raises(InvalidArgumentError, match="extra_columns"):
        table.merge(rows, on="id", extra_columns="drop")


#: Texts that are values, and columns or calls in the eyes of who wrote them.
LIKE_COLUMNS = ["s.remark", "Source.remark", "SRC.remark", "t.remark", "place.lat", "upper(source.remark)", "s.v + 1"]
LIKE_COLUMNS += ["coalesce(s.remark, 'x')", "lower(remark)", "source.v || 'x'", " s.v "]
VALUES = ["remark", "a remark", "x.y", "www.example.com", "f(x)", "", "source", "1.5", "e-mail", "it's v.", "my-file.v"]


@pytest.mark.parametrize("text", LIKE_COLUMNS)
def test_texts_that_look_like_columns_are_refused(table, text):
    rows = source(remark=["a", "b"], v=[1, 2], place=[{"lat": 1.0}, None])
    for column in ("remark", "v"):
        for make in (
            lambda name: table.merge(rows, on="id").when_matched_update({name: text}),
            lambda name: table.merge(rows, on="id").when_not_matched_insert({"id": "source.id", name: text}),
            lambda name: table.merge(rows, on="id").when_not_matched_by_source_update({name: text}, "target.id = 9"),
        ):
            with pytest.raises(InvalidArgumentError) as error:
                make(column).execute()
            assert column in str(error.value), str(error.value)
        with pytest.raises(InvalidArgumentError) as error:
            table.update({column: text}, "id = 77")
        assert "pyarrow" in str(error.value), str(error.value)
    scalar = pa.scalar(text)
    assert table.merge(rows, on="id").when_matched_update({"remark": scalar}).execute().rows_updated == 1
    assert table.scan().to_arrow()["remark"].to_pylist() == [text]
    table.update({"remark": pa.scalar(text + "!")})
    assert table.scan().to_arrow()["remark"].to_pylist() == [text + "!"]


def test_the_column_that_is_meant_is_named(table):
    rows = source(remark=["a", "b"])
    with pytest.raises(ValidationError, match=r'write "source.remark" or "target.remark"'):
        table.merge(rows, on="id").when_matched_update({"remark": "s.remark"}).execute()
    with pytest.raises(ValidationError, match=r'write "source.remark" for the column'):
        table.merge(rows, on="id").when_not_matched_insert({"id": "source.id", "remark": "s.remark"}).execute()
    with pytest.raises(ValidationError, match=r'pyarrow.compute.field\("source.remark"\)'):
        table.merge(rows, on="id").when_matched_update({"remark": "upper(s.remark)"}).execute()
    with pytest.raises(InvalidArgumentError, match=r"pyarrow.compute.field\('v'\)"):
        table.update({"remark": "t.v"})


@pytest.mark.parametrize("text", VALUES)
def test_other_texts_are_values(table, text):
    rows = source(remark=["a", "b"])
    assert table.merge(rows, on="id").when_matched_update({"remark": text}).execute().rows_updated == 1
    assert table.scan().to_arrow()["remark"].to_pylist() == [text]
    table.update({"remark": f"{text} "})
    assert table.scan().to_arrow()["remark"].to_pylist() == [f"{text} "]


def test_values_of_other_types_are_refused_in_our_words(table):
    rows = source(remark=["a", "b"])
    for value in ("ten", [1], {"a": 1}, object(), 2**70):
        with pytest.raises(InvalidArgumentError, match="the column 'v'"):
            table.merge(rows, on="id").when_matched_update({"v": value}).execute()
        with pytest.raises(InvalidArgumentError, match="the column 'v'"):
            table.update({"v": value})
    with pytest.raises(InvalidArgumentError, match="the column 'v'"):
        table.merge(rows, on="id").when_matched_update({"v": lambda batch: batch["source.remark"]}).execute()
    with pytest.raises(InvalidArgumentError, match="the column 'v'"):
        table.update({"v": pc.field("remark")})


#: Types of keys, and pairs of values that are one key.
ONE_KEY = [
    (pa.float64(), 0.0, -0.0),
    (pa.float32(), -0.0, 0.0),
    (pa.float64(), float("nan"), float("-nan")),
    (pa.decimal128(9, 2), "1.50", "1.5"),
    (pa.timestamp("us"), 0, 0),
]


@pytest.mark.parametrize(("kind", "one", "other"), ONE_KEY)
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("memory_limit", [None, 1])
def test_one_key_is_one_row(kind, one, other, mode, nested, memory_limit):
    """Upserts and merges agree on what one key is."""
    from decimal import Decimal

    catalog = ice.load_catalog("m", type="in-memory")
    catalog.create_namespace("a")

    def rows(keys, values):
        narrow = pa.decimal128(9, 1) if pa.types.is_decimal(kind) and keys == [other] else kind
        keys = pa.array([Decimal(key) if isinstance(key, str) else key for key in keys], narrow)
        column = pa.StructArray.from_arrays([keys], ["k"]) if nested else keys
        return pa.table({"s" if nested else "k": column, "v": pa.array(values, pa.int32())})

    name = "s.k" if nested else "k"
    table = catalog.create_table("a.t", rows([one], [0]).schema)
    table.append(rows([one], [1]))
    done = table.upsert(rows([other], [10]), name, mode=mode, memory_limit=memory_limit)
    assert (done.rows_updated, done.rows_inserted) == (1, 0)
    merge = table.merge(rows([one], [20]), on=name, mode=mode, memory_limit=memory_limit)
    merged = merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert (merged.rows_updated, merged.rows_inserted) == (1, 0)
    assert table.scan().to_arrow()["v"].to_pylist() == [20]
    if not pa.types.is_decimal(kind):
        with pytest.raises(InvalidArgumentError, match="two rows of the source"):
            table.upsert(rows([one, other], [7, 8]), name, mode=mode, memory_limit=memory_limit)
