"""What is set counts, or is refused: properties of tables and catalogs, options of scans and of the data source."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield.errors import InvalidArgumentError, UnsupportedFeatureError

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


@pytest.fixture
def catalog() -> ice.Catalog:
    """Make a catalog with the namespace ``db``."""
    made = ice.load_catalog("properties", type="in-memory")
    made.create_namespace("db")
    return made


def foreign(catalog: ice.Catalog, name: str, change: dict[str, Any]) -> ice.Table:
    """Make a table as another engine may have left it: its metadata are changed beside the catalog."""
    table = catalog.create_table(name, ROWS.schema, properties={"format-version": "3"})
    table.append(ROWS)
    document = json.loads(table.metadata.to_json())
    document["properties"].update(change.pop("properties", {}))
    document.update(change)
    where = f"{table.location()}/metadata/other.metadata.json"
    catalog.storage.write(where, json.dumps(document).encode())
    return catalog.register_table(f"{name}2", where)


@pytest.mark.parametrize(
    ("name", "value", "kind", "says"),
    [
        ("encryption.data-key-length", "20", InvalidArgumentError, "16, 24 or 32"),
        ("write.parquet.page-version", "v9", InvalidArgumentError, "expected v1 or v2"),
        ("write.target-file-size-bytes", "big", InvalidArgumentError, "an integer of at least 1"),
        ("write.format.default", "csv", InvalidArgumentError, "expected parquet, orc or avro"),
        ("write.location-provider.impl", "com.Me", UnsupportedFeatureError, "no installed package"),
        ("write.wap.enabled", "ja", InvalidArgumentError, "true or false"),
        ("format_version", "2", InvalidArgumentError, "did you mean format-version"),
        ("write.format.defualt", "orc", InvalidArgumentError, "did you mean write.format.default"),
    ],
)
def test_a_bad_property_is_refused_when_it_is_set(
    catalog: ice.Catalog, name: str, value: str, kind: type[Exception], says: str
) -> None:
    with pytest.raises(kind, match=name) as raised:
        catalog.create_table("db.t", ROWS.schema, properties={name: value})
    assert says in str(raised.value)
    assert not catalog.table_exists("db.t")
    table = catalog.create_table("db.t", ROWS.schema)
    with pytest.raises(kind, match=name):
        table.update_properties({name: value})
    with pytest.raises(kind, match=name), table.transaction() as transaction:
        transaction.set_properties({name: value})
    assert name not in table.refresh().properties


def test_names_of_ones_own_pass(catalog: ice.Catalog) -> None:
    own = {
        "owner": "me",
        "write.strange": "1",
        "my.write.format.default": "x",
        "comment": "c",
        "write.delete.mode": "merge-on-read",
    }
    table = catalog.create_table("db.t", ROWS.schema, properties=own)
    assert own.items() <= table.properties.items()


def test_tables_of_others_are_read_and_written_where_that_is_safe(catalog: ice.Catalog) -> None:
    table = foreign(catalog, "db.t", {"properties": {"write.format.defualt": "orc", "write.wap.enabled": "maybe"}})
    assert table.append(ROWS).scan().count() == 6
    table.update_properties({"owner": "me"})
    table = foreign(catalog, "db.v", {"properties": {"write.parquet.page-version": "v9"}})
    assert table.scan().count() == 3
    with pytest.raises(InvalidArgumentError, match="page-version"):
        table.append(ROWS)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("read.split.target-size", "many", "'read.split.target-size': expected an integer of at least 1, got 'many'"),
        (
            "read.split.planning-lookback",
            "",
            "'read.split.planning-lookback': expected an integer of at least 1, got ''",
        ),
        ("read.split.open-file-cost", "-1", "cannot split"),
    ],
)
def test_split_properties_that_java_refuses_fail_tasks_and_not_plans(
    catalog: ice.Catalog, name: str, value: str, message: str
) -> None:
    table = foreign(catalog, "db.t", {"properties": {name: value}})
    scan = table.scan()
    assert len(scan.plan_files()) == 1
    assert scan.count() == len(ROWS)
    with pytest.raises(InvalidArgumentError, match=message):
        scan.plan_tasks()


def test_nothing_is_written_in_the_clear_into_an_encrypted_table(catalog: ice.Catalog) -> None:
    table = foreign(catalog, "db.t", {"properties": {"encryption.key-id": "k1"}})
    before = sorted(catalog.storage.list(table.location()))
    with pytest.raises(InvalidArgumentError, match="encryption.kms-type"):
        table.append(ROWS)
    with pytest.raises(InvalidArgumentError, match="encryption.kms-type"):
        table.new_write()
    with pytest.raises(InvalidArgumentError, match="encryption.kms-type"):
        table.new_row_change("delete", "id = 1")
    assert sorted(catalog.storage.list(table.location())) == before
    # It can be taken back.
    table.update_properties(removals=["encryption.key-id"])
    assert table.append(ROWS).scan().count() == 6


def test_a_snapshot_of_an_encrypted_list_is_not_read(catalog: ice.Catalog) -> None:
    table = catalog.create_table("db.t", ROWS.schema, properties={"format-version": "3"})
    document = json.loads(table.append(ROWS).metadata.to_json())
    document["snapshots"][0]["key-id"] = "k1"
    where = f"{table.location()}/metadata/other.metadata.json"
    catalog.storage.write(where, json.dumps(document).encode())
    other = catalog.register_table("db.t2", where)
    with pytest.raises(UnsupportedFeatureError, match="encrypted"):
        other.scan().to_arrow()
    with pytest.raises(UnsupportedFeatureError, match="encrypted"):
        other.append(ROWS)


def test_a_staged_snapshot_waits_for_its_audit(catalog: ice.Catalog) -> None:
    table = catalog.create_table("db.t", ROWS.schema, properties={"write.wap.enabled": "true"})
    table.append(ROWS)
    first = table.current_snapshot()
    table.append(ROWS, snapshot_properties={"wap.id": "audit-1"})
    assert table.current_snapshot() == first
    assert table.scan().count() == 3
    staged = [snapshot for snapshot in table.snapshots() if snapshot.summary.get("wap.id") == "audit-1"]
    assert [snapshot.parent_snapshot_id for snapshot in staged] == [first.snapshot_id]
    assert table.scan(snapshot_id=staged[0].snapshot_id).count() == 6
    plain = catalog.create_table("db.p", ROWS.schema)
    with pytest.raises(InvalidArgumentError, match=r"write\.wap\.enabled=true"):
        plain.append(ROWS, snapshot_properties={"wap.id": "audit-1"})
    assert plain.refresh().current_snapshot() is None


def test_options_of_scans_count_or_are_refused(catalog: ice.Catalog) -> None:
    table = catalog.create_table("db.t", ROWS.schema)
    for _ in range(4):
        table.append(ROWS)

    def tasks(scan: Any, **given: int) -> int:
        return len(set(scan.plan_tasks(**given)["task"].to_pylist()))

    options = {"split-size": "1", "file-open-cost": "1"}
    assert tasks(table.scan()) == 1
    assert tasks(table.scan(options=options)) == 4
    assert tasks(table.scan(options=options), split_size=2**30) == 1
    assert tasks(table.incremental_append_scan(options=options)) == 4
    for options, says in (
        ({"splitsize": "1"}, "did you mean split-size"),
        ({"snapshot-id": "1"}, "unknown scan option 'snapshot-id'"),
        ({"split-size": "big"}, "expected an integer, got 'big'"),
    ):
        with pytest.raises(InvalidArgumentError, match=says):
            table.scan(options=options)


@pytest.mark.parametrize(
    ("name", "kind", "says"),
    [
        ("s3.sse.md5", UnsupportedFeatureError, "without the encryption"),
        ("s3.sse.type", None, ""),
        ("s3.signer", UnsupportedFeatureError, "whose servers sign requests"),
        ("catalog-impl", UnsupportedFeatureError, "Java class"),
        ("s3.secret-acces-key", InvalidArgumentError, r"did you mean s3\.secret-access-key"),
        *(
            (slip, InvalidArgumentError, f"did you mean {meant}")
            for slip, meant in {
                "warehous": "warehouse",
                "wharehouse": "warehouse",
                "warehosue": "warehouse",
                "warehouses": "warehouse",
                "Warehouse": "warehouse",
                "urii": "uri",
                "url": "uri",
                "typ": "type",
                "s3.endpont": r"s3\.endpoint",
                "s3.regoin": r"s3\.region",
                "s3.regio": r"s3\.region",
                "s3.acces-key-id": r"s3\.access-key-id",
                "s3_region": r"s3\.region",
                "gcs.oauth2.tokn": r"gcs\.oauth2\.token",
                "adls.tokn": r"adls\.token",
                "tls.verfy": r"tls\.verify",
                "table-defualt.owner": "table-default",
            }.items()
        ),
        *((own, None, "") for own in ("owner", "team", "note", "region", "endpoint", "io", "s3", "my.uri", "users")),
        ("warehose-location", None, ""),
        ("s3.retry.num-retries", None, ""),
        ("py-io-impl", None, ""),
    ],
)
def test_properties_of_catalogs(name: str, kind: type[Exception] | None, says: str) -> None:
    properties = {"type": "in-memory", name: "x"}
    if kind is None:
        assert ice.load_catalog("c", **properties).properties[name] == "x"
    else:
        with pytest.raises(kind, match=says):
            ice.load_catalog("c", **properties)


def test_the_data_source_takes_no_option_for_a_property_of_the_catalog() -> None:
    pytest.importorskip("pyspark")
    from icefield.spark.tables.opening import SourceOptions
    from icefield.spark.tables.options import OPTIONS

    mine = {"path": "db.t", "uri": "sqlite://", "s3.region": "x", "table-default.owner": "me"}
    catalog_ones = {name: value for name, value in mine.items() if name != "path"}
    for option in OPTIONS:
        name = f"{option.name}x" if option.name.endswith(".") else option.name
        value = {"path": "db.t", "push-filters": "true"}.get(name, "1")
        options = SourceOptions.of({**mine, name: value})
        assert options.properties == catalog_ones, name
        reading = option.use in ("read", "both") and option.effect != "refused"
        writing = option.use in ("write", "both") and option.effect != "refused"
        for allowed, use in ((reading, options.reading), (writing, options.writing)):
            if allowed:
                assert use() is options
                continue
            with pytest.raises((InvalidArgumentError, UnsupportedFeatureError), match=option.name):
                use()
    for name, says in (
        ("snapshotId", "did you mean snapshot-id"),
        ("target_file_size_bytes", "did you mean target-file-size-bytes"),
        ("target-file-size-byte", "did you mean target-file-size-bytes"),
        ("colour", "unknown option colour"),
    ):
        with pytest.raises(InvalidArgumentError, match=says):
            SourceOptions.of({**mine, name: "1"})
    assert SourceOptions.of({**mine, "mergeSchema": "false", "distribution-mode": "none"}).writing()


def test_metadata_tables_have_no_ranges() -> None:
    pytest.importorskip("pyspark")
    from icefield.spark.tables.opening import SourceOptions

    mine = {"path": "db.t.files"}
    for name in ("start-snapshot-id", "end-timestamp", "split-size"):
        with pytest.raises(InvalidArgumentError, match=f"metadata tables have no option {name}"):
            SourceOptions.of({**mine, name: "1"}).metadata_moment()
    assert SourceOptions.of({**mine, "snapshot-id": "1"}).metadata_moment() == {"snapshot_id": 1}


def test_arguments_of_spark_reads_are_none_of_the_catalog() -> None:
    pytest.importorskip("pyspark")
    from icefield.spark.tables.opening import opened

    for name in ("snapshot_id", "mergeSchema", "branch"):
        with pytest.raises(InvalidArgumentError, match=f"{name} is neither an argument nor a catalog property"):
            opened("db.t", None, {"type": "in-memory", name: "1"})


def test_options_of_a_write_set_the_properties_of_its_format() -> None:
    pytest.importorskip("pyspark")
    from icefield.spark.tables.options import write_properties

    given = {"compression-codec": "zstd", "compression-level": "3", "target-file-size-bytes": "9"}
    assert write_properties(given, "parquet") == {
        "write.parquet.compression-codec": "zstd",
        "write.parquet.compression-level": "3",
        "write.target-file-size-bytes": "9",
    }
    assert write_properties({**given, "write-format": "ORC"}, "parquet")["write.orc.compression-codec"] == "zstd"


def test_what_a_session_sets_for_audits(catalog: ice.Catalog) -> None:
    pytest.importorskip("pyspark")
    from icefield.spark.sessions.audit import read_branch, write_target

    both = {"spark.wap.id": "i", "spark.wap.branch": "b"}
    plain = catalog.create_table("db.p", ROWS.schema)
    assert write_target(plain, None, both) == ("main", {})
    assert read_branch(plain, both) is None
    table = catalog.create_table("db.t", ROWS.schema, properties={"write.wap.enabled": "true"})
    with pytest.raises(InvalidArgumentError, match=r"spark\.wap\.id=i and spark\.wap\.branch=b"):
        write_target(table, None, both)
    assert write_target(table, "own", both) == ("own", {"wap.id": "i"})
    assert write_target(table, None, {"spark.wap.id": "i"}) == ("main", {"wap.id": "i"})
    branch = {"spark.wap.branch": "b"}
    assert write_target(table, None, branch) == ("b", {})
    assert read_branch(table, branch) is None
    table.append(ROWS, branch="b")
    assert read_branch(table, branch) == "b"


@pytest.mark.parametrize("name", ["make_properties.py", "make_statements.py"])
def test_pages_made_from_the_code_are_up_to_date(name: str) -> None:
    pytest.importorskip("pyspark")
    script = Path(__file__).parents[2] / "docs" / name
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_lists_name_nothing_twice() -> None:
    from icefield.catalog.known import PROPERTIES

    names = [known.name for known in PROPERTIES]
    assert sorted(set(names)) == sorted(names)


def test_storage_properties_are_those_that_the_storage_reads() -> None:
    """Names in the code of the storage, beside those that the page calls honoured."""
    root = Path(__file__).parents[2]
    code = (root / "crates/table/src/storage/properties.rs").read_text().split("#[cfg(test)]")[0]
    prefixes = "s3|gcs|adls|http|client|tls"
    # `adls.sas-token.{account}` stands for every name that begins so.
    read = {
        name + (".*" if more else "")
        for name, more in re.findall(rf'"((?:{prefixes})\.[a-z0-9.-]*[a-z0-9])(\.\{{)?', code)
    }
    of_every_store = set(re.findall(r'"\{prefix\}(\.[a-z-]+)"', code))
    assert len(of_every_store) == 3
    read |= {
        f"{prefix}{name}" for prefix in re.findall(r'client\(properties, "(\w+)"\)', code) for name in of_every_store
    }
    page = (root / "docs/properties.md").read_text()
    listed = set(re.findall(rf"^\| `((?:{prefixes})\.[^`]+)` \| honoured \|", page, re.MULTILINE))
    assert len(listed) > 40
    # These are for requests to a REST catalog, and for the keys that a catalog gives its storage.
    listed -= {"client.profile-name", "s3.signer", "s3.signer.uri", "s3.signer.endpoint", "s3.profile-name"}
    assert read == listed
    # The storage keeps what it reads, and nothing else.
    given = dict.fromkeys((name.replace("*", "acc") for name in listed), "x")
    others = dict.fromkeys(("token", "uri", "s3.signer.uri", "client.token", "adls.sas-token.", "s3.region2"), "x")
    assert ice.distributed.Storage({**given, **others}).__reduce__()[1][0] == given
