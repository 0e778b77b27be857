"""The command ``icefield``."""

import json
import re
import subprocess
import sys

import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyarrow import orc as pyarrow_orc

import icefield as ice
from icefield._outputs.layout import size_of
from icefield.cli import main
from icefield.cli.commands import icefield


@pytest.fixture
def uri(tmp_path):
    uri = f"sqlite:///{tmp_path}/c.db"
    with ice.load_catalog("c", uri=uri, warehouse=str(tmp_path)) as catalog:
        catalog.create_namespace("a.b")
        schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("[red]", pa.string())])
        catalog.create_table("a.b.t", schema, partition_by="bucket(4, id)", sort_by="id desc", properties={"k": "v"})
    return uri


def run(uri, *arguments):
    done = CliRunner().invoke(icefield, ["--catalog", "c", "--uri", uri, *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_for_people(uri):
    assert "a.b" in run(uri, "catalog", "list")
    shown = run(uri, "table", "show", "a.b.t")
    for text in ("bucket(4, id)", "id desc nulls last", "[red]", "format version", "current snapshot"):
        assert text in shown
    assert "required" in run(uri, "table", "schema", "a.b.t")
    assert "committed" in run(uri, "table", "snapshots", "a.b.t")


def test_nothing_of_a_table_is_cut_off(uri, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    uuid = json.loads(run(uri, "--json", "table", "show", "a.b.t"))["table-uuid"]
    shown = "".join(
        line.split("│")[2].strip() for line in run(uri, "table", "show", "a.b.t").splitlines() if "│" in line
    )
    assert "…" not in shown
    assert ".metadata.json" in shown
    assert uuid in shown
    assert "TABLE [FILTER]" in run(uri, "table", "head", "--help")


@pytest.mark.parametrize("width", [None, "40", "80", "200"])
def test_numbers_are_never_cut_nor_folded(uri, width, monkeypatch):
    with ice.load_catalog("c", uri=uri) as catalog:
        table = catalog.load_table("a.b.t")
        table.append(pa.table({"id": [2**62], "[red]": ["a text of several words " * 4]}))
        table.manage_snapshots().create_tag(table.snapshots()[0].snapshot_id, "a-tag-of-some-length").commit()
    (file,) = table.scan().plan_files().files
    snapshot = table.snapshots()[0].snapshot_id
    if width is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", width)
    for command, shown in {
        "snapshots": [snapshot],
        "files": [size_of(file["file_size_in_bytes"])],
        "plan": [size_of(file["file_size_in_bytes"])],
        "head": [2**62],
        "inspect": [snapshot],
    }.items():
        printed = run(uri, "table", command, "a.b.t", *(["snapshots"] if command == "inspect" else []))
        assert all(str(number) in printed for number in shown), printed
        if width is None:  # into a pipe: nothing is cut or folded
            assert "…" not in printed
        elif command != "plan":
            assert max(map(len, printed.splitlines())) <= int(width)
    if width is None:
        assert "a text of several words " * 4 in run(uri, "table", "head", "a.b.t")
        assert file["file_path"].rpartition("/data/")[2] in run(uri, "table", "files", "a.b.t")


@pytest.mark.parametrize("width", ["10", "20", "40", "80", "200"])
@pytest.mark.parametrize("what", ["files", "snapshots", "refs", "entries"])
@pytest.mark.parametrize("filled", [False, True])
def test_every_column_of_a_metadata_table_is_named(uri, what, filled, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", width)
    with ice.load_catalog("c", uri=uri) as catalog:
        table = catalog.load_table("a.b.t")
        if filled:
            table.append(pa.table({"id": [1], "[red]": ["x"]}))
        expected = [field.name for field in table.inspect.schema(what).fields]
        places = [file["file_path"] for file in table.scan().plan_files().files]
    lines = run(uri, "table", "inspect", "a.b.t", what).splitlines()
    assert max(map(len, lines)) <= int(width)
    # What is folded is put together: of the columns of a grid, each by itself.
    grid = [[cell.strip() for cell in line.strip("│┃").replace("┃", "│").split("│")] for line in lines]
    cells = ["".join(row[at] for row in grid if len(row) > at) for at in range(max(map(len, grid)))]
    printed = "".join([*cells, *(line.strip() for line in lines)])
    assert [name for name in expected if name not in printed] == []
    assert what != "files" or all(place in printed for place in places)
    assert "…" not in printed


def test_for_machines(uri):
    assert json.loads(run(uri, "--json", "catalog", "list")) == [{"namespace": "a.b", "table": "t"}]
    shown = json.loads(run(uri, "--json", "table", "show", "a.b.t"))
    assert (shown["name"], shown["format-version"], shown["properties"]["k"]) == ("a.b.t", 2, "v")
    schema = json.loads(run(uri, "--json", "table", "schema", "a.b.t"))
    assert [field["name"] for field in schema["fields"]] == ["id", "[red]"]
    assert json.loads(run(uri, "--json", "table", "snapshots", "a.b.t")) == []
    location = shown["metadata-location"].removeprefix("file://")
    assert json.loads(run(uri, "metadata", "show", location))["table-uuid"] == shown["table-uuid"]
    assert json.loads(run(uri, "--json", "table", "schema", location)) == schema


def test_rows_and_files(uri):
    with ice.load_catalog("c", uri=uri) as catalog:
        catalog.load_table("a.b.t").append(pa.table({"id": [1, 2, 3], "[red]": ["x", "[bold]", None]}))
    rows = json.loads(run(uri, "--json", "table", "head", "a.b.t", "id > 1"))
    assert sorted(rows, key=lambda row: row["id"]) == [{"id": 2, "[red]": "[bold]"}, {"id": 3, "[red]": None}]
    assert "[bold]" in run(uri, "table", "head", "a.b.t", "-c", "[red]")
    files = json.loads(run(uri, "--json", "table", "files", "a.b.t"))
    assert sum(file["rows"] for file in files) == 3
    location, _, file = files[0]["file"].rpartition("/data/")
    printed = run(uri, "table", "files", "a.b.t").replace("\n", " ")
    assert f"{location}/ " in printed
    # Its name may stand on several lines, and nothing of it is missing.
    assert "…" not in printed
    assert file[:5] in printed
    plan = json.loads(run(uri, "--json", "table", "plan", "a.b.t", "id = 1"))
    assert plan["report"]["result_data_files"] == len(plan["files"]) == 1
    assert "to read" in run(uri, "table", "plan", "a.b.t", "id = 1")
    (snapshot,) = json.loads(run(uri, "--json", "table", "snapshots", "a.b.t"))
    assert (snapshot["operation"], snapshot["rows"], snapshot["refs"]) == ("append", "3", "main")


def test_metadata_tables(uri, monkeypatch):
    # pytest-xdist sets it in its workers, and a narrow table goes down the page.
    monkeypatch.delenv("COLUMNS", raising=False)
    with ice.load_catalog("c", uri=uri) as catalog:
        table = catalog.load_table("a.b.t")
        for first in (0, 10):
            table.append(pa.table({"id": list(range(first, first + 10)), "[red]": ["x"] * 10}))
        snapshots = [snapshot.snapshot_id for snapshot in table.snapshots()]
        names = table.inspect.names
        files = table.inspect.files().num_rows
    for name in names:
        shown = run(uri, "table", "inspect", "a.b.t", name)
        assert shown.startswith("┏"), shown
        assert isinstance(json.loads(run(uri, "table", "inspect", "a.b.t", name.upper(), "--json")), list)
    found = json.loads(run(uri, "table", "inspect", "a.b.t", "files", "--json"))
    assert len(found) == files
    assert sum(file["record_count"] for file in found) == 20
    assert found[0]["readable_metrics"]["id"]["null_value_count"] == 0
    assert len(json.loads(run(uri, "table", "inspect", "a.b.t", "files", "-n", "3", "--json"))) == 3
    assert json.loads(run(uri, "table", "inspect", "a.b.t", "files", "-n", "0", "--json")) == []
    at = run(uri, "--json", "table", "inspect", "a.b.t", "manifests", "--snapshot-id", str(snapshots[0]))
    assert [row["added_snapshot_id"] for row in json.loads(at)] == snapshots[:1]
    some = run(uri, "table", "inspect", "a.b.t", "snapshots", "-c", "operation", "-c", "snapshot_id", "--json")
    assert json.loads(some) == [{"snapshot_id": one, "operation": "append"} for one in snapshots]
    *grid, note = run(uri, "table", "inspect", "a.b.t", "files").splitlines()
    assert "readable_metrics" not in "".join(grid)
    assert "readable_metrics" in note.removeprefix("not shown: ")
    assert "not shown" not in run(uri, "table", "inspect", "a.b.t", "files", "-c", "file_path")


@pytest.mark.parametrize(
    "arguments",
    [
        ["table", "show", "a.b.none"],
        ["table", "show", "/no/such.metadata.json"],
        ["table", "show", ""],
        ["table", "show", "none"],
        ["table", "show", "no.such.namespace.none"],
        ["table", "schema", "a.b.none"],
        ["table", "snapshots", "a.b.none"],
        ["table", "files", "a.b.none"],
        ["table", "plan", "a.b.t", "none = 1"],
        ["table", "plan", "a.b.t", "id = = 1"],
        ["table", "plan", "a.b.t", "id = 'x'"],
        ["table", "plan", "a.b.t", "--snapshot-id", "1"],
        ["table", "head", "a.b.none"],
        ["table", "head", "a.b.t", "-c", "none"],
        ["table", "head", "a.b.t", "-n", "-1"],
        ["table", "inspect", "a.b.none", "files"],
        ["table", "inspect", "a.b.t", "none"],
        ["table", "inspect", "a.b.t", "files", "--snapshot-id", "1"],
        ["table", "inspect", "a.b.t", "history", "--snapshot-id", "1"],
        ["table", "inspect", "a.b.t", "files", "-c", "none"],
        ["catalog", "list", "none"],
        ["-p", "novalue", "catalog", "list"],
        ["-p", "type=none", "catalog", "list"],
        ["--uri", "none", "catalog", "list"],
        ["--uri", "sqlite:////dev/null/none/c.db", "catalog", "list"],
        ["--uri", "postgresql://u:secret@localhost:1/none", "catalog", "list"],
        ["-p", "type=sql", "--uri", "mysql://u:secret@localhost/none", "catalog", "list"],
        ["-p", "type=sql", "--uri", "none://u:secret@localhost/none", "catalog", "list"],
        ["metadata", "show", "/no/such.metadata.json"],
        ["metadata", "show", __file__],
        ["metadata", "show", "/"],
        ["metadata", "show", "none://x/y.json"],
        ["orc", "inspect", "/no/such.orc"],
        ["orc", "inspect", __file__],
        ["orc", "inspect", "/"],
    ],
    ids=" ".join,
)
def test_errors_are_one_line(uri, arguments, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["icefield", "--catalog", "c", "--uri", uri, *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    error = capsys.readouterr().err
    assert ended.value.code == (2 if error.startswith("Usage: ") else 1)
    if ended.value.code == 2:  # a wrong option: how it is used, then what is wrong
        assert "Error: " in error
        return
    assert "secret" not in error
    assert error.startswith("icefield: ")
    assert error.count("\n") == 1


def test_the_folder_of_a_table(uri, monkeypatch, capsys):
    location = ice.load_catalog("c", uri=uri).load_table("a.b.t").location()
    for folder in (location, location.removeprefix("file://")):
        monkeypatch.setattr("sys.argv", ["icefield", "table", "show", folder])
        with pytest.raises(SystemExit):
            main()
        error = capsys.readouterr().err
        assert "is a folder: pass a metadata file; the newest one is " in error
        assert error.count("\n") == 1


def test_who_wrote_an_orc_file(uri, tmp_path):
    rows = pa.table({"id": [1, 2]})
    ice.orc.write_table(rows, f"{tmp_path}/ours.orc")
    pyarrow_orc.write_table(rows, f"{tmp_path}/theirs.orc")
    ours, theirs = (run(uri, "orc", "inspect", f"{tmp_path}/{name}.orc") for name in ("ours", "theirs"))
    version = re.escape(ice.__version__)
    assert re.search(rf"written by +│ icefield {version}, ORC_14 ", ours), ours
    assert re.search(r"written by +│ ORC C\+\+ [0-9.]+, ORC_", theirs), theirs


def test_the_wrong_name_of_a_catalog_is_told(uri):
    command = [sys.executable, "-m", "icefield.cli", "--catalog", "wrong", "--uri", uri, "catalog", "list"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    held = "catalog wrong is empty; this database holds the catalog 'c': open it under that name"
    assert done.stderr == f"icefield: warning: {held}\n"
