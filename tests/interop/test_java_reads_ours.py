"""Java opens what we wrote, in each of our four ways, returns the same rows, appends, and we read the result.

Every partition transform and every primitive type that Spark has, in each format version; the tables lie in one SQLite
catalog that Java, PyIceberg and we open.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import icefield as ice

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from conftest import Java

pytestmark = pytest.mark.interop

UTC = dt.timezone.utc
CATALOG = "shared"

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("b", pa.bool_()),
        pa.field("i", pa.int32()),
        pa.field("f", pa.float32()),
        pa.field("d", pa.float64()),
        pa.field("dec", pa.decimal128(20, 3)),
        pa.field("day", pa.date32()),
        pa.field("ts", pa.timestamp("us")),
        pa.field("tz", pa.timestamp("us", "UTC")),
        pa.field("s", pa.string()),
        pa.field("bin", pa.binary()),
    ]
)

SPECS = {
    "unpartitioned": [],
    "identity": ["s"],
    "bucket": ["bucket(4, id)", "bucket(3, s)", "bucket(5, dec)", "bucket(2, tz)", "bucket(2, bin)", "bucket(2, day)"],
    "truncate": ["truncate(10, i)", "truncate(2, s)", "truncate(50, dec)", "truncate(1, bin)", "truncate(7, id)"],
    "years": ["year(day)", "year(ts)", "year(tz)"],
    "months": ["month(day)", "month(ts)"],
    "days": ["day(day)", "day(tz)"],
    "hours": ["hour(ts)", "hour(tz)"],
}


def rows(first: int, count: int) -> pa.Table:
    """Make rows with extremes, with nulls in every third, and times on both sides of 1970."""
    values: list[dict[str, Any]] = []
    for n in range(first, first + count):
        moment = dt.datetime(1969, 12, 30, 23, 59, 59, 999999) + dt.timedelta(days=n, hours=n % 5)  # noqa: DTZ001
        row = {
            "id": n,
            "b": n % 2 == 0,
            "i": (n - 5) * 1_000_003 % 2**31,
            "f": n / 3,
            "d": float("nan") if n % 7 == 0 else -n / 7,
            "dec": Decimal(n - 4).scaleb(-3),
            "day": moment.date(),
            "ts": moment,
            "tz": moment.replace(tzinfo=UTC),
            "s": f"ä {n % 3}/ß=%",
            "bin": bytes([n % 256, 255]),
        }
        values.append({"id": n} if n % 3 == 2 else row)
    return pa.Table.from_pylist(values, schema=SCHEMA)


def same(left: pa.Table, right: pa.Table) -> None:
    """Assert equal rows, by id; NaN equals NaN."""

    def plain(table: pa.Table) -> list[dict[str, str]]:
        ordered = table.select(SCHEMA.names).cast(SCHEMA).sort_by("id").to_pylist()
        return [{name: repr(value) for name, value in row.items()} for row in ordered]

    assert plain(left) == plain(right)


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """Start the Spark of our own environment, without a jar."""
    pytest.importorskip("pyspark")
    from pyspark.sql import SparkSession

    import icefield.spark as ice_spark

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    ice_spark.register(session)
    yield session
    session.stop()


Way = Callable[[ice.Table, pa.Table], None]


@pytest.fixture(params=["python", "spark api", "spark data source", "spark sql"])
def way(request: pytest.FixtureRequest, catalog: ice.catalog.Catalog) -> Way:
    """Give one of our ways to append an Arrow table to a table."""
    if request.param == "python":
        return lambda table, data: table.append(data)
    session = request.getfixturevalue("spark")
    import icefield.spark as ice_spark

    options = {"catalog": CATALOG, "uri": catalog.properties["uri"], "warehouse": catalog.properties["warehouse"]}

    def frame(data: pa.Table) -> DataFrame:
        # With the types given: Spark takes timestamps without a zone for local ones.
        return session.createDataFrame(data, ice_spark.spark_schema(ice.Schema.from_arrow(SCHEMA)))

    def api(table: ice.Table, data: pa.Table) -> None:
        ice_spark.append(frame(data), table)

    def source(table: ice.Table, data: pa.Table) -> None:
        writer = frame(data).write.format("icefield").mode("append")
        writer.options(**options).save(".".join(table.name()[-2:]))

    def sql(table: ice.Table, data: pa.Table) -> None:
        frame(data).createOrReplaceTempView("incoming")
        given = ", ".join(f"{key} '{value}'" for key, value in {**options, "path": ".".join(table.name()[-2:])}.items())
        session.sql(f"CREATE OR REPLACE TEMPORARY VIEW target USING icefield OPTIONS ({given})")
        session.sql("INSERT INTO target SELECT * FROM incoming")

    return {"spark api": api, "spark data source": source, "spark sql": sql}[request.param]


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("spec", SPECS)
def test_java_reads_appends_and_we_read(
    catalog: ice.catalog.Catalog, java: Java, way: Way, spec: str, version: int, request: pytest.FixtureRequest
) -> None:
    label = request.node.callspec.params["way"].replace(" ", "_")
    if spec != "unpartitioned" and version != 2 and label not in ("python", "spark_api"):
        pytest.skip("the data source and SQL are the same writer: every spec once is enough")
    name = f"{label}_{spec}_v{version}"
    table = catalog.create_table(
        f"db.{name}", schema=SCHEMA, partition_by=SPECS[spec], properties={"format-version": str(version)}
    )
    way(table, rows(0, 12))

    same(java.rows(f"SELECT * FROM {CATALOG}.db.{name}"), rows(0, 12))
    counted = java.rows(f"SELECT sum(record_count) AS n FROM {CATALOG}.db.{name}.files")
    assert counted.column("n").to_pylist() == [12]
    one = java.rows(f"SELECT id FROM {CATALOG}.db.{name} WHERE id = 4 AND s LIKE 'ä 1%'")
    assert one.column("id").to_pylist() == [4]

    java.insert(f"{CATALOG}.db.{name}", rows(12, 6))
    same(table.refresh().scan().to_arrow(), rows(0, 18))
    assert table.scan(row_filter="id >= 12").to_arrow().num_rows == 6


@pytest.mark.parametrize("form", ["orc", "avro"])
def test_java_reads_orc_and_avro_by_every_way(
    catalog: ice.catalog.Catalog, java: Java, way: Way, form: str, request: pytest.FixtureRequest
) -> None:
    name = f"{form}_" + request.node.callspec.params["way"].replace(" ", "_")
    properties = {"write.format.default": form}
    table = catalog.create_table(f"db.{name}", SCHEMA, partition_by=["bucket(3, id)"], properties=properties)
    way(table, rows(0, 12))
    assert set(table.refresh().inspect.files()["file_format"].to_pylist()) == {form.upper()}
    same(java.rows(f"SELECT * FROM {CATALOG}.db.{name}"), rows(0, 12))
    same(table.scan().to_arrow(), rows(0, 12))
    java.insert(f"{CATALOG}.db.{name}", rows(12, 6))
    same(table.refresh().scan().to_arrow(), rows(0, 18))


@pytest.mark.parametrize("codec", ["gzip", "zstd", "snappy", "uncompressed"])
def test_java_reads_nested_avro(catalog: ice.catalog.Catalog, java: Java, codec: str) -> None:
    """Maps of text are Avro's own, others are arrays of pairs; names that Avro does not allow are made anew."""
    struct = pa.struct([("x y", pa.int32()), ("items", pa.list_(pa.struct([("q", pa.string())])))])
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            pa.field("1st.name", struct),
            pa.field("texts", pa.map_(pa.string(), pa.list_(pa.float64()))),
            pa.field("numbers", pa.map_(pa.int32(), pa.string())),
        ]
    )
    values = [
        {"id": 0, "1st.name": {"x y": 1, "items": [{"q": "a"}, None, {"q": None}]}, "texts": [("k", [0.5, None])]},
        {"id": 1, "1st.name": {"x y": None, "items": []}, "texts": [("k", None), ("l", [])], "numbers": [(-1, "n")]},
        {"id": 2, "texts": [], "numbers": [(5, None), (6, "ß")]},
    ]
    data = pa.Table.from_pylist(values, schema=schema)
    properties = {"write.format.default": "avro", "write.avro.compression-codec": codec}
    table = catalog.create_table(f"db.nested_avro_{codec}", schema, properties=properties).append(data)
    theirs = java.rows(f"SELECT * FROM {CATALOG}.db.nested_avro_{codec} ORDER BY id")
    assert theirs.to_pylist() == data.to_pylist()
    assert table.scan().to_arrow().sort_by("id").to_pylist() == data.to_pylist()


@pytest.mark.parametrize("version", [1, 2])
def test_pyiceberg_and_duckdb_read_it(catalog: ice.catalog.Catalog, version: int, tmp_path: Path) -> None:
    sql = pytest.importorskip("pyiceberg.catalog.sql")
    duckdb = pytest.importorskip("duckdb")
    name = f"peers_v{version}"
    table = catalog.create_table(
        f"db.{name}",
        schema=SCHEMA,
        partition_by=["bucket(4, id)", "month(ts)"],
        properties={"format-version": str(version)},
    )
    table.append(rows(0, 9))
    table.append(rows(9, 9))

    theirs = sql.SqlCatalog(CATALOG, uri=catalog.properties["uri"], warehouse=catalog.properties["warehouse"])
    same(theirs.load_table(f"db.{name}").scan().to_arrow(), rows(0, 18))
    theirs.load_table(f"db.{name}").append(rows(18, 3))
    same(table.refresh().scan().to_arrow(), rows(0, 21))

    connection = duckdb.connect()
    same(connection.from_arrow(table.scan().to_arrow_batch_reader()).arrow().read_all(), rows(0, 21))
    try:
        connection.execute("LOAD iceberg")
    except duckdb.Error:
        return  # DuckDB's extension is a download of its own; where it is installed it reads the files itself
    found = connection.sql(f"SELECT * FROM iceberg_scan('{table.metadata_location}')").arrow().read_all()
    same(found, rows(0, 21))
