"""The command ``icefield``."""

import json

import pyarrow as pa
import pytest
from click.testing import CliRunner

import icefield as ice
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
    plan = json.loads(run(uri, "--json", "table", "plan", "a.b.t", "id = 1"))
    assert plan["report"]["result_data_files"] == len(plan["files"]) == 1
    assert "to read" in run(uri, "table", "plan", "a.b.t", "id = 1")
    (snapshot,) = json.loads(run(uri, "--json", "table", "snapshots", "a.b.t"))
    assert (snapshot["operation"], snapshot["rows"], snapshot["refs"]) == ("append", "3", "main")


@pytest.mark.parametrize(
    "arguments",
    [["table", "show", "a.b.none"], ["table", "show", "/no/such.metadata.json"], ["-p", "novalue", "catalog", "list"]],
)
def test_errors_are_one_line(uri, arguments, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["icefield", "--catalog", "c", "--uri", uri, *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    error = capsys.readouterr().err
    assert error.startswith("icefield: ")
    assert error.count("\n") == 1
