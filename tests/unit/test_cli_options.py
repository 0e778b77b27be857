"""The options that all commands of ``icefield`` share, how a catalog is found, and what terminals are spared."""

import json
import re
from datetime import datetime, timezone

import pyarrow as pa
import pytest
from click.testing import CliRunner

import icefield as ice
from icefield._outputs.layout import time_of
from icefield._outputs.printable import printable
from icefield.cli import main
from icefield.cli.commands import icefield

TIMES = [datetime(2013, month, 5, 1, tzinfo=timezone.utc) for month in (1, 2, 3)]


@pytest.fixture
def uri(tmp_path, monkeypatch):
    monkeypatch.setenv("ICEFIELD_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    uri = f"sqlite:///{tmp_path}/c.db"
    with ice.load_catalog("c", uri=uri, warehouse=str(tmp_path)) as catalog:
        catalog.create_namespace("a")
        rows = pa.table({"time": TIMES, "id": [1, 2, 3]})
        table = catalog.create_table("a.t", rows, partition_by=["month(time)", "bucket(4, id)"])
        table.append(rows.slice(0, 1)).append(rows.slice(1))
        table.manage_snapshots().create_tag(table.snapshots()[0].snapshot_id, "first").commit()
    return uri


def run(*arguments, code=0):
    done = CliRunner().invoke(icefield, arguments, catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.output


COMMANDS = [
    ("catalog", "list"),
    ("catalog", "show"),
    ("table", "show", "a.t"),
    ("table", "schema", "a.t"),
    ("table", "snapshots", "a.t"),
    ("table", "files", "a.t"),
    ("table", "plan", "a.t"),
    ("table", "head", "a.t"),
    ("table", "inspect", "a.t", "refs"),
]


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        (("table", "list"), "icefield catalog list"),
        (("table", "scan", "a.t"), "icefield table head TABLE"),
        (("show", "a.t"), "icefield table show"),
        (("snapshots", "a.t"), "did you mean icefield table snapshots?"),
        (("list",), "icefield catalog list"),
        (("ls",), "icefield catalog list"),
        (("table", "snapshot", "a.t"), "Did you mean 'snapshots'?"),
        (("tabel", "show", "a.t"), "Did you mean 'table'?"),
    ],
)
def test_commands_that_are_elsewhere(uri, command, meant):
    assert meant in " ".join(run("--uri", uri, *command, code=2).split())


def test_columns_with_commas(uri):
    plain = run("--uri", uri, "--json", "table", "head", "a.t", "-c", "id", "-c", "time")
    for given in (["--columns", "id,time"], ["-c", "id, time"]):
        assert run("--uri", uri, "--json", "table", "head", "a.t", *given) == plain
    with ice.load_catalog("c", uri=uri, warehouse=uri.removeprefix("sqlite:///").removesuffix("/c.db")) as catalog:
        catalog.create_table("a.odd", pa.schema({"id,time": pa.int64(), "id": pa.int64()}))
    assert "id,time" in run("--uri", uri, "table", "head", "a.odd", "-c", "id,time")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_json_is_asked_for_anywhere(uri, command):
    given = ["--uri", uri, *command]
    places = [[*given[:at], "--json", *given[at:]] for at in (0, 2, 3, len(given))]
    found = [json.loads(run(*arguments)) for arguments in places]
    if "plan" in command:  # the report counts what a cache had
        found = [one["files"] for one in found]
    assert all(one == found[0] for one in found)


def test_one_name_for_each_option(uri):
    with ice.load_catalog("c", uri=uri) as catalog:
        first, second = catalog.load_table("a.t").snapshots()
    when = datetime.fromtimestamp(first.timestamp_ms / 1000, timezone.utc)
    moments = [
        ["--snapshot-id", str(first.snapshot_id)],
        ["--ref", "first"],
        ["--as-of", str(first.timestamp_ms)],
        ["--as-of", when.isoformat()],
        ["--as-of", when.replace(tzinfo=None).isoformat()],
        ["--as-of", time_of(first.timestamp_ms)],
    ]
    for moment in moments:
        for command in ("files", "head", "plan", "snapshots"):
            found = json.loads(run("--uri", uri, "table", command, "a.t", *moment, "--json"))
            assert len(found["files"] if command == "plan" else found) == 1
        found = json.loads(run("--uri", uri, "table", "inspect", "a.t", "files", *moment, "--json"))
        assert sum(file["record_count"] for file in found) == 1
    for limit in ("--limit", "-n"):
        for command in (["files", "a.t"], ["head", "a.t"], ["snapshots", "a.t"], ["inspect", "a.t", "files"]):
            assert len(json.loads(run("--uri", uri, "table", *command, limit, "1", "--json"))) == 1
        assert len(json.loads(run("--uri", uri, "table", "plan", "a.t", limit, "1", "--json"))["files"]) == 1
    (newest,) = json.loads(run("--uri", uri, "table", "snapshots", "a.t", "--limit", "1", "--json"))
    assert newest["snapshot"] == second.snapshot_id
    both = run("--uri", uri, "table", "head", "a.t", "--ref", "first", "--as-of", "0", code=2)
    assert "pass only one of --snapshot-id, --ref and --as-of" in both
    assert "got 'yesterday'" in run("--uri", uri, "table", "head", "a.t", "--as-of", "yesterday", code=2)


def test_partitions_are_printed_as_folders_are_named(uri, monkeypatch):
    monkeypatch.setenv("COLUMNS", "250")  # paths of temporary folders are long
    for command in (["files", "a.t"], ["plan", "a.t"], ["inspect", "a.t", "partitions"], ["inspect", "a.t", "files"]):
        printed = run("--uri", uri, "table", *command)
        assert "time_month=2013-01, id_bucket=" in printed
        # The month as a number, and not a part of a file's name.
        assert not re.search(r"(?<![-\w])516(?![-\w])", printed)
    only = run("--uri", uri, "table", "inspect", "a.t", "partitions", "-c", "partition")
    assert "time_month=2013-03" in only
    with ice.load_catalog("c", uri=uri) as catalog, catalog.load_table("a.t").update_spec() as update:
        update.remove_field("time_month").remove_field("id_bucket").add_field("year(time)")
    with ice.load_catalog("c", uri=uri) as catalog:
        catalog.load_table("a.t").append(
            pa.table({"time": [None], "id": [9]}, pa.schema([("time", pa.timestamp("us", "UTC")), ("id", pa.int64())]))
        )
    assert "time_year=null" in run("--uri", uri, "table", "files", "a.t")
    assert "time_month=2013-03, id_bucket=" in run("--uri", uri, "table", "files", "a.t")


def test_headings_say_what_they_hold(uri):
    schema = run("--uri", uri, "table", "schema", "a.t")
    assert "required" in schema.splitlines()[1]
    assert "optional" in schema


def test_a_database_of_one_catalog_needs_no_name(uri):
    assert json.loads(run("--uri", uri, "catalog", "list", "--json")) == [{"namespace": "a", "table": "t"}]
    assert json.loads(run("--uri", uri, "catalog", "show", "--json"))[0] == {
        "catalog": "c",
        "property": "uri",
        "value": uri,
    }
    with ice.load_catalog("other", uri=uri) as catalog:
        assert catalog.catalog_names() == ["c"]
        catalog.create_namespace("b")
        assert catalog.catalog_names() == ["c", "other"]
    assert json.loads(run("--catalog", "c", "--uri", uri, "catalog", "list", "--json"))
    with pytest.raises(
        ice.errors.InvalidArgumentError, match="contains the catalogs c, other: choose one with --catalog"
    ):
        run("--uri", uri, "catalog", "list")
    with ice.load_catalog("default", uri=uri) as catalog:
        catalog.create_namespace("mine")
    assert json.loads(run("--uri", uri, "catalog", "list", "--json")) == []


def test_the_only_configured_catalog_is_the_default(uri, monkeypatch):
    monkeypatch.setenv("ICEFIELD_CATALOG__C__URI", uri)
    assert json.loads(run("catalog", "list", "--json")) == [{"namespace": "a", "table": "t"}]
    assert json.loads(run("catalog", "show", "--json")) == [{"catalog": "c", "property": "uri", "value": uri}]
    monkeypatch.setenv("ICEFIELD_CATALOG__D__URI", uri)
    with pytest.raises(ice.errors.NoSuchCatalogError, match="configured: c, d"):
        run("catalog", "list")


HOSTILE = "\x1b]52;c;ZXZpbA==\x07\x1b[2J\x9b31m\u202e\r"


def test_control_characters_are_escaped(uri, monkeypatch, capsys):
    with ice.load_catalog("c", uri=uri, warehouse="wh") as catalog:
        made = catalog.create_table(
            "a.hostile", pa.schema([(f"x{HOSTILE}", pa.string())]), properties={f"k{HOSTILE}": f"v{HOSTILE}"}
        )
        made.append(pa.table({f"x{HOSTILE}": [f"value{HOSTILE}"]}), snapshot_properties={f"s{HOSTILE}": HOSTILE})
        made.manage_snapshots().create_tag(made.current_snapshot().snapshot_id, f"t{HOSTILE}").commit()
        shown = [repr(made), made.scan(f"\"x{HOSTILE}\" = '{HOSTILE}'").explain(), repr(made.scan())]
    name = ("a.hostile",)
    commands = [
        ("show", *name),
        ("schema", *name),
        ("snapshots", *name),
        ("head", *name),
        ("plan", *name, f"\"x{HOSTILE}\" = '{HOSTILE}'"),
        ("inspect", *name, "snapshots"),
        ("inspect", *name, "refs"),
    ]
    shown += [run("--uri", uri, "table", *command) for command in commands]
    monkeypatch.setattr("sys.argv", ["icefield", "--uri", uri, "table", "show", f"a.{HOSTILE}"])
    with pytest.raises(SystemExit):
        main()
    shown.append(capsys.readouterr().err)
    for text in shown:
        assert not set(HOSTILE) & set(text) & set("\x1b\x07\x9b\u202e\r"), text
    assert all("\\x1b" in text or "\\u001b" in text for text in shown)
    rows = json.loads(run("--uri", uri, "table", "head", *name, "--json"))
    assert rows == [{f"x{HOSTILE}": f"value{HOSTILE}"}]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain äöü 日本 🧊", "plain äöü 日本 🧊"),
        ("👩\u200d🚀", "👩\u200d🚀"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\x1b[0m\x07\x7f\x9b", "\\x1b[0m\\x07\\x7f\\x9b"),
        ("\u202e\u2028\udcff", "\\u202e\\u2028\\udcff"),
    ],
)
def test_printable(text, expected):
    assert printable(text) == expected
