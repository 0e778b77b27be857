"""ORC files read with another schema, and from a row on."""

from pathlib import Path

import pyarrow as pa
import pytest

from icefield import orc
from icefield.errors import CorruptDataError, InvalidArgumentError
from worlds.orc import conversions as world
from worlds.orc import rows as orc_rows

VALUES, TARGETS = world.recorded()


@pytest.fixture(scope="module")
def every_type(tmp_path_factory):
    path = tmp_path_factory.mktemp("evolution") / "all.orc"
    orc.write_table(world.table(VALUES), path)
    return path


@pytest.mark.parametrize("target", TARGETS)
def test_values_become_what_orc_core_makes_of_them(target, every_type):
    sources, schema = world.schema_of(target)
    assert sources == list(TARGETS[target])
    found = zip(*orc_rows.rows(orc.ORCFile(every_type, schema=schema).read()), strict=True)
    for kind, column in zip(sources, found, strict=True):
        assert list(column) == TARGETS[target][kind], kind


@pytest.fixture
def file(tmp_path) -> Path:
    table = pa.table(
        {
            "id": pa.array(range(5000), pa.int32()),
            "text": [str(number * 7 % 5000) for number in range(5000)],
            "at": pa.array([number * 10**6 for number in range(5000)], pa.timestamp("us")),
            "deep": pa.array(
                [{"x": number, "y": None} for number in range(5000)], pa.struct({"x": pa.int64(), "y": pa.string()})
            ),
        }
    )
    orc.write_table(
        table, tmp_path / "file.orc", row_index_stride=1000, stripe_rows=3000, bloom_filter_columns=["id", "text"]
    )
    return tmp_path / "file.orc"


def test_what_does_not_fit_is_null_or_an_error(file):
    schema = "struct<id:tinyint,text:varchar(2)>"
    table = orc.read_table(file, schema=schema)
    assert table["id"].null_count == 5000 - 128
    assert table["text"][17].as_py() == "11"
    for narrow, message in [
        ("id:tinyint", "column id: 128 of type int cannot be read as tinyint"),
        ("text:varchar(2)", 'column text: "105" of type string cannot be read as varchar(2)'),
        ("text:boolean,deep:struct<x:smallint>", None),
    ]:
        opened = orc.ORCFile(file, schema=f"struct<{narrow}>", overflow="error")
        if message is None:
            assert opened.read().num_rows == 5000
            continue
        with pytest.raises(Exception, match="cannot be read as") as caught:
            opened.read(use_threads=False)
        assert message in str(caught.value)


def test_schemas_of_arrow_and_columns_of_the_other_schema(file):
    wanted = pa.schema(
        [("deep", pa.struct({"x": pa.string(), "new": pa.int8()})), ("new", pa.list_(pa.int8())), ("id", pa.int64())]
    )
    opened = orc.ORCFile(file, schema=wanted)
    assert opened.schema.names == ["deep", "new", "id"]
    assert opened.read(["deep.x", "new"]).slice(7, 1).to_pylist() == [{"deep": {"x": "7"}, "new": None}]
    assert opened.read([1]).schema.names == ["new"]
    assert opened.read_stripe(1, ["id"]).column(0)[0].as_py() == 3000
    assert sum(batch.num_rows for batch in opened.iter_batches(700)) == 5000
    assert opened.to_reader(["new"]).read_all()["new"].null_count == 5000
    by_position = orc.ORCFile(file, schema="struct<a:string,b:bigint>", positional=True).read()
    assert by_position.slice(2, 1).to_pylist() == [{"a": "2", "b": 14}]
    folded = orc.ORCFile(file, schema="struct<ID:bigint>", case_sensitive=False).read()
    assert folded["ID"][4].as_py() == 4


@pytest.mark.parametrize(
    ("schema", "predicate", "rows"),
    [
        # The statistics of text are not those of its numbers: "999" is above "4999".
        ("struct<text:int>", "text > 4990", 9),
        ("struct<id:string>", "id = '42'", 1),
        ("struct<id:bigint>", "id >= 4990", 10),
        # Cut text matches what the bounds and Bloom filters of the file exclude.
        ("struct<text:varchar(1)>", "text = '4'", 1111),
        ("struct<at:bigint>", "at < 10", 10),
        ("struct<deep:struct<x:string>>", "deep.x = '77'", 1),
        ("struct<new:int,id:int>", "new IS NULL AND id < 5", 5),
        ("struct<new:int,id:int>", "new = 1 OR id < 5", 5),
        ("struct<id:tinyint>", "id IS NULL", 5000 - 128),
        ("struct<id:tinyint>", "NOT (id IS NOT NULL)", 5000 - 128),
        ("struct<id:decimal(6,1)>", "id = 12.0", 1),
    ],
)
def test_predicates_on_converted_columns_lose_no_rows(file, schema, predicate, rows):
    opened = orc.ORCFile(file, schema=schema)
    assert opened.read(predicate=predicate).num_rows == rows
    assert sum(batch.num_rows for batch in opened.iter_batches(predicate=predicate)) == rows


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("struct<id:date>", "column id: cannot read int as date"),
        ("struct<deep:struct<x:binary>>", r"column deep.x: cannot read bigint as binary"),
        ("struct<deep:int>", "column deep: cannot read struct as int"),
        ("array<int>", "cannot read struct as array"),
        ("struct<id:integer>", "invalid ORC type"),
        ("struct<id:int", "expected ',' at character 13"),
    ],
)
def test_schemas_that_are_refused(file, schema, message):
    with pytest.raises(InvalidArgumentError, match=message):
        orc.ORCFile(file, schema=schema)


def test_rows_from_one_on(file):
    opened = orc.ORCFile(file)
    whole = opened.read()
    for rows in (range(5), range(1999, 2001), (2500, 3500), range(4999, 9000), (7000, 8000), (5, 5)):
        start, stop = (rows.start, rows.stop) if isinstance(rows, range) else rows
        expected = whole.slice(start, max(min(stop, 5000) - start, 0))
        assert opened.read(rows=rows).equals(expected)
        assert opened.to_reader(rows=rows, batch_size=300).read_all().equals(expected)
        assert pa.Table.from_batches(opened.iter_batches(rows=rows), whole.schema).equals(expected)
    assert opened.read(["id"], rows=(2500, 3500), predicate="id > 3490")["id"].to_pylist() == list(range(3491, 3500))
    for rows, message in [(range(0, 9, 2), "range of step 1"), ((-1, 5), "numbers from 0")]:
        with pytest.raises(InvalidArgumentError, match=message):
            opened.read(rows=rows)


def test_nothing_before_the_row_group_of_a_row_is_decoded(file, tmp_path):
    # The values of the first row group are damaged: what comes after it is still read.
    table = pa.table({"id": pa.array([number * 7919 % 4000 for number in range(4000)], pa.int32())})
    orc.write_table(table, tmp_path / "plain.orc", compression="uncompressed", row_index_stride=1000)
    stripe = orc.ORCFile(tmp_path / "plain.orc").inspect()["stripes"][0]
    data = next(stream for stream in stripe["streams"] if stream["kind"] == "DATA")
    damaged = bytearray((tmp_path / "plain.orc").read_bytes())
    damaged[data["offset"] : data["offset"] + 3] = b"\xff\xff\xff"
    opened = orc.ORCFile(bytes(damaged))
    with pytest.raises(CorruptDataError):
        opened.read()
    assert opened.read(rows=(2500, 4000)).equals(table.slice(2500))
