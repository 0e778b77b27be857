"""The commands that change catalogs and tables: what they do, what they ask, what they print."""

import json
import os
import pathlib
import subprocess
import sys
from datetime import datetime, timedelta, timezone

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import icefield as ice
from icefield.cli import entry, main
from icefield.cli.commands import icefield
from icefield.errors import CommitFailedException, CommitStateUnknownException

ROWS = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})


@pytest.fixture
def uri(tmp_path, monkeypatch):
    monkeypatch.setenv("ICEFIELD_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    uri = f"sqlite:///{tmp_path}/c.db"
    with ice.load_catalog("c", uri=uri, warehouse=str(tmp_path)) as catalog:
        catalog.create_namespace("a")
        catalog.create_table("a.t", ROWS, properties={"owner": "me"}).append(ROWS)
    return uri


@pytest.fixture
def run(uri):
    def run(*arguments, code=0):
        done = CliRunner().invoke(icefield, ["--uri", uri, "--warehouse", "wh", *arguments], catch_exceptions=False)
        assert done.exit_code == code, done.output
        return done.stdout if code == 0 else done.stderr

    return run


@pytest.fixture
def load(uri):
    def load(name="a.t"):
        return ice.load_catalog("c", uri=uri).load_table(name)

    return load


@pytest.mark.parametrize("command", ["compact", "rewrite-position-deletes"])
def test_groups_that_fail_are_an_exit_code(uri, command):
    properties = {
        "format-version": "2", "write.delete.mode": "merge-on-read", "write.delete.granularity": "partition"
    }  # fmt: skip
    catalog = ice.load_catalog("c", uri=uri, warehouse="wh")
    table = catalog.create_table("a.p", ROWS.schema, partition_by="name", properties=properties)
    for _ in range(3):
        table.append(pa.concat_tables([ROWS, ROWS]))
    files = table.inspect.files()
    for number in range(2):
        table.delete(f"_pos = 0 AND _file in {tuple(files['file_path'].to_pylist()[number * 3 : number * 3 + 3])}")
    files = (table.inspect.files() if command == "compact" else table.inspect.delete_files())["file_path"]
    damaged = pathlib.Path(files.to_pylist()[0].removeprefix("file://"))
    sound = damaged.read_bytes()
    options = [word for text in ("rewrite-all", "partial-progress.enabled") for word in ("-o", f"{text}=true")]
    arguments = ["--uri", uri, "--warehouse", "wh", "table", command, "a.p", *options, "--json"]
    for content, code in ((bytes(len(sound)), 1), (sound, 0)):
        damaged.write_bytes(content)
        done = CliRunner().invoke(icefield, arguments, catch_exceptions=False)
        assert done.exit_code == code, done.output
        failures = json.loads(done.stdout)["failures"]
        assert len(failures) == code
        assert all(damaged.name in failure for failure in failures)


def test_namespaces(run, uri):
    assert run("namespace", "create", "b.c", "--set", "owner=me") == "created namespace b.c\n"
    assert json.loads(run("namespace", "create", "b.c", "--if-not-exists", "--json"))["created"] is False
    with pytest.raises(ice.errors.NamespaceAlreadyExistsError):
        run("namespace", "create", "b.c")
    assert json.loads(run("namespace", "list", "--json")) == [
        {"namespace": "a", "tables": 1}, {"namespace": "b", "tables": 0}, {"namespace": "b.c", "tables": 0}
    ]  # fmt: skip
    assert [row["namespace"] for row in json.loads(run("namespace", "list", "b", "--json"))] == ["b.c"]
    assert "owner" in run("namespace", "show", "b.c")
    assert run("namespace", "set-properties", "b.c", "x=1=2", "y=") == "set x, y of namespace b.c\n"
    done = json.loads(run("namespace", "remove-properties", "b.c", "owner", "none", "--json"))
    assert done == {"namespace": "b.c", "removed": ["owner"], "missing": ["none"]}
    with ice.load_catalog("c", uri=uri) as catalog:
        assert catalog.load_namespace_properties("b.c") == {"x": "1=2", "y": ""}
    assert "not confirmed: drop namespace b.c; pass --yes" in run("namespace", "drop", "b.c", code=2)
    assert json.loads(run("namespace", "drop", "b.c", "--yes", "--json")) == {"namespace": "b.c", "dropped": True}
    with pytest.raises(ice.errors.NoSuchNamespaceError):
        run("namespace", "drop", "b.c")
    with pytest.raises(ice.errors.NamespaceNotEmptyError):
        run("namespace", "drop", "a", "--yes")


def test_rows_are_counted_and_deleted(run, load):
    assert run("table", "count", "a.t") == "3\n"
    assert json.loads(run("table", "count", "a.t", "id > 1", "--json")) == {"table": "a.t", "rows": 2}
    planned = run("table", "delete", "a.t", "id > 1", "--dry-run")
    assert planned.startswith(
        "would delete 2 rows of table a.t; data files: 0 added (0 B), 0 removed (0 B), 1 rewritten ("
    )
    document = json.loads(run("table", "delete", "a.t", "id > 1", "--dry-run", "--json"))
    assert (document["rows"], document["files-rewritten"], document["bytes-rewritten"] > 0) == (2, 1, True)
    assert "not confirmed: delete 2 rows of table a.t; pass --yes" in run("table", "delete", "a.t", "id > 1", code=2)
    assert load().scan().count() == 3
    done = json.loads(run("table", "delete", "a.t", "id > 2", "--branch", "work", "--yes", "--json"))
    assert done == {"table": "a.t", "branch": "work", "rows": 1, "deleted": True}
    assert run("table", "count", "a.t", "--ref", "work") == "2\n"
    assert run("table", "delete", "a.t", "true", "-y") == "deleted 3 rows of table a.t\n"
    assert load().scan().count() == 0


def test_a_change_with_a_key_is_made_once(run, load, tmp_path):
    keyed = ("--idempotency-key", "delete/1")
    assert run("table", "delete", "a.t", "id = 1", *keyed, "--dry-run").startswith("would delete 1 rows of table a.t; ")
    assert run("table", "delete", "a.t", "id = 1", *keyed, "--yes") == "deleted 1 rows of table a.t\n"
    snapshots = len(load().snapshots())
    # Nothing is left to confirm, whatever the filter is now.
    for options in ((), ("--yes",), ("--dry-run",)):
        again = run("table", "delete", "a.t", "true", *keyed, *options)
        assert again == "nothing was done: table a.t has a change with the key delete/1\n"
    document = json.loads(run("table", "delete", "a.t", "true", *keyed, "--json"))
    assert document == {"table": "a.t", "branch": "main", "rows": 0, "deleted": False}
    assert (load().scan().count(), len(load().snapshots())) == (2, snapshots)
    # The key is one of a branch, and of any kind of change.
    pq.write_table(ROWS, tmp_path / "more.parquet")
    added = ("table", "add-files", "a.t", str(tmp_path / "more.parquet"), "--idempotency-key")
    assert json.loads(run(*added, "delete/1", "--json")) == {"table": "a.t", "dry-run": False, "files": 0, "rows": 0}
    assert run(*added, "add/1") == "added 1 file with 3 rows to table a.t\n"
    assert run(*added, "add/1") == "nothing was done: table a.t has a change with the key add/1\n"
    assert load().scan().count() == 5


def test_a_table_is_created(run, load):
    text = "id long not null, \"odd name\" string comment 'it''s', at timestamptz, prices map<string, decimal(9, 2)>"
    created = json.loads(
        run(
            "table", "create", "a.new", "--schema", text, "--partition-by", "month(at)", "-b", "bucket(8, id)",
            "--sort-by", "at desc", "--set", "owner=me", "--format-version", "3", "--json",
        )
    )  # fmt: skip
    table = load("a.new")
    assert created == {
        "table": "a.new",
        "created": True,
        "location": table.location(),
        "metadata-location": table.metadata_location,
    }
    assert (table.format_version, table.properties["owner"]) == (3, "me")
    assert [str(field) for field in table.schema().fields] == [
        "1: id: required long",
        "2: odd name: optional string (it's)",
        "3: at: optional timestamptz",
        "4: prices: optional map<string, decimal(9, 2)>",
    ]
    assert [field.name for field in table.spec().fields] == ["at_month", "id_bucket"]
    assert "at desc nulls last" in repr(table)
    again = json.loads(run("table", "create", "a.new", "--schema", "x int", "--if-not-exists", "--json"))
    assert (again["created"], again["metadata-location"]) == (False, table.metadata_location)
    with pytest.raises(ice.errors.TableAlreadyExistsError):
        run("table", "create", "a.new", "--schema", "x int")
    assert "pass either --schema or --schema-from" in run("table", "create", "a.x", code=2)


def test_a_table_is_registered_renamed_and_dropped(run, load, uri, tmp_path):
    before = load()
    run("namespace", "create", "b")
    assert run("table", "rename", "a.t", "b.u") == "renamed table a.t to b.u\n"
    assert load("b.u").scan().count() == 3
    refused = run("table", "drop", "b.u", "--purge", code=2)
    assert refused.startswith("icefield: not confirmed: drop table b.u (3 rows; 1 data file, ")
    assert "and delete its files; pass --yes" in refused
    assert load("b.u").scan().count() == 3
    assert run("table", "drop", "b.u", "--yes") == "dropped table b.u, whose files stay\n"
    registered = json.loads(run("table", "register", "a.back", before.metadata_location, "--json"))
    assert registered["metadata-location"] == before.metadata_location
    assert load("a.back").scan().count() == 3
    done = json.loads(run("table", "drop", "a.back", "--purge", "--yes", "--json"))
    assert done == {"table": "a.back", "dropped": True, "purged": True}
    assert not list((tmp_path / "a" / "t").rglob("*.parquet"))
    with pytest.raises(ice.errors.NoSuchTableError):
        run("table", "drop", "a.back")


def test_a_table_whose_metadata_are_gone_is_dropped(run, load):
    os.remove(load().metadata_location.removeprefix("file://"))
    assert "drop table a.t, whose metadata cannot be read, whose files stay" in run("table", "drop", "a.t", code=2)
    run("table", "drop", "a.t", "--yes")
    assert json.loads(run("catalog", "list", "--json")) == []


def test_properties(run, load):
    assert run("table", "set-properties", "a.t", "x=1", "format-version=3") == "set x, format-version of table a.t\n"
    assert (load().format_version, load().properties["x"]) == (3, "1")
    assert run("table", "remove-properties", "a.t", "x", "none") == "table a.t: removed x; not set: none\n"
    done = json.loads(run("table", "remove-properties", "a.t", "owner", "--json"))
    assert ("owner" in done["properties"], done["missing"]) == (False, [])
    for wrong in ("novalue", "=x"):
        with pytest.raises(ice.errors.InvalidArgumentError, match="KEY=VALUE"):
            run("table", "set-properties", "a.t", wrong)
    with pytest.raises(ice.errors.InvalidArgumentError, match="'x' was passed twice"):
        run("table", "set-properties", "a.t", "x=1", "x=2")


def test_branches_and_tags(run, load):
    first = load().current_snapshot()
    load().append(ROWS)
    second = load().current_snapshot()
    done = json.loads(run("tag", "create", "a.t", "v1", "--snapshot-id", str(first.snapshot_id), "--json"))
    assert done == {"table": "a.t", "tag": "v1", "snapshot-id": first.snapshot_id}
    run("tag", "create", "a.t", "now", "--max-ref-age", "30d")
    run("branch", "create", "a.t", "work", "--ref", "v1", "--max-snapshot-age", "12h", "--min-snapshots-to-keep", "3")
    refs = load().refs()
    assert (refs["now"].snapshot_id, refs["now"].max_ref_age_ms) == (second.snapshot_id, 30 * 86_400_000)
    work = refs["work"]
    assert (work.snapshot_id, work.max_snapshot_age_ms, work.min_snapshots_to_keep) == (
        first.snapshot_id, 12 * 3_600_000, 3
    )  # fmt: skip
    tags = json.loads(run("tag", "list", "a.t", "--json"))
    assert [(tag["tag"], tag["expires after"]) for tag in tags] == [("now", "30 d"), ("v1", None)]
    branches = json.loads(run("branch", "list", "a.t", "--json"))
    assert [(one["branch"], one["keeps snapshots for"]) for one in branches] == [("main", None), ("work", "12 h")]
    moved = json.loads(run("branch", "fast-forward", "a.t", "work", "main", "--json"))
    assert moved == {"table": "a.t", "branch": "work", "snapshot-id": second.snapshot_id}
    run("branch", "rename", "a.t", "work", "done")
    assert "not confirmed: drop tag v1 of table a.t; pass --yes" in run("tag", "drop", "a.t", "v1", code=2)
    assert "drop branch done of table a.t" in run("branch", "drop", "a.t", "done", code=2)
    assert set(load().refs()) == {"main", "v1", "now", "done"}
    run("tag", "drop", "a.t", "v1", "-y")
    run("branch", "drop", "a.t", "done", "-y")
    assert set(load().refs()) == {"main", "now"}
    for wrong in (["tag", "drop", "a.t", "main"], ["branch", "drop", "a.t", "none"], ["tag", "create", "a.t", "now"]):
        with pytest.raises(ice.errors.InvalidArgumentError):
            run(*wrong, *(["--yes"] if "drop" in wrong else []))
    assert "expected an age such as 30d" in run("tag", "create", "a.t", "x", "--max-ref-age", "soon", code=2)


def test_files_are_taken_in(run, load, tmp_path):
    for month in (1, 2):
        folder = tmp_path / "hive" / f"month={month}"
        folder.mkdir(parents=True)
        pq.write_table(ROWS, folder / "rows.parquet")
    planned = run("table", "migrate", "a.hive", "hive", "--partition-type", "month=long", "--dry-run")
    assert planned.startswith("would create table a.hive of 2 files, 6 rows, ")
    assert planned.endswith("columns: id long, name string, month long; partitioned by month\n")
    done = json.loads(run("table", "migrate", "a.hive", "hive", "--set", "owner=me", "--json"))
    assert (done["files"], done["rows"], done["partition-columns"], done["dry-run"]) == (2, 6, ["month"], False)
    assert load("a.hive").scan("month = 2").count() == 3
    pq.write_table(ROWS, "more.parquet")
    assert (
        run("table", "add-files", "a.t", "more.parquet", "--dry-run") == "would add 1 file with 3 rows to table a.t\n"
    )
    assert load().scan().count() == 3
    done = json.loads(run("table", "add-files", "a.t", "more.parquet", "--branch", "work", "--json"))
    assert done == {"table": "a.t", "dry-run": False, "files": 1, "rows": 3}
    assert (load().scan().count(), load().scan(ref="work").count()) == (3, 6)
    with pytest.raises(ice.errors.IcefieldError):
        run("table", "add-files", "a.t", "none.parquet")


def test_rollback(run, load):
    first = load().current_snapshot().snapshot_id
    load().append(ROWS)
    second = load().current_snapshot().snapshot_id
    assert f"not confirmed: roll table a.t back to snapshot {first}" in run(
        "table", "rollback", "a.t", "--snapshot-id", str(first), code=2
    )
    assert load().scan().count() == 6
    done = json.loads(run("table", "rollback", "a.t", "--snapshot-id", str(first), "--yes", "--json"))
    assert done == {"table": "a.t", "snapshot-id": first, "before": second}
    assert load().scan().count() == 3
    assert "already" in run("table", "rollback", "a.t", "--ref", "main")
    assert "pass one of --snapshot-id, --ref and --as-of" in run("table", "rollback", "a.t", code=2)
    with pytest.raises(ice.errors.InvalidArgumentError, match=f"{second}"):
        run("table", "rollback", "a.t", "--snapshot-id", str(second), "--yes")
    history = run("table", "history", "a.t")
    assert f"snapshot {first} became current again" in history
    assert [entry["snapshot-id"] for entry in json.loads(run("table", "history", "a.t", "--json"))] == [
        first, second, first
    ]  # fmt: skip


def test_expiry_is_shown_before_it_is_done(run, load):
    load().append(ROWS).delete("id = 1", mode="copy-on-write")
    ids = [snapshot.snapshot_id for snapshot in load().snapshots()]
    later = (datetime.now(timezone.utc) + timedelta(days=1)).isoformat()
    shown = run("table", "expire", "a.t", "--older-than", later, "--dry-run")
    assert shown.startswith("table a.t: would expire 2 snapshots, would delete ")
    planned = json.loads(run("table", "expire", "a.t", "--older-than", later, "--dry-run", "--json"))
    assert (planned["dry-run"], planned["snapshot-ids"]) == (True, ids[:2])
    refused = CliRunner().invoke(icefield, ["--uri", load().catalog.properties["uri"], "table", "expire", "a.t",
                                            "--older-than", later])  # fmt: skip
    assert refused.exit_code == 2
    assert refused.stdout == shown
    assert refused.stderr.startswith("icefield: not confirmed: expire 2 snapshots of table a.t; pass --yes")
    assert len(load().snapshots()) == 3
    assert run("table", "expire", "a.t", "--older-than", "7d", "--yes") == "table a.t: nothing to expire\n"
    done = json.loads(run("table", "expire", "a.t", "--snapshot-id", str(ids[0]), "--yes", "--json"))
    assert (done["dry-run"], done["snapshot-ids"], done["failures"]) == (False, ids[:1], 0)
    done = run("table", "expire", "a.t", "--older-than", later, "--retain-last", "1", "--yes")
    assert done.startswith("table a.t: expired 1 snapshot, deleted ")
    assert [snapshot.snapshot_id for snapshot in load().snapshots()] == ids[2:]
    assert load().scan().count() == 4
    assert "expected an age such as 7d" in run("table", "expire", "a.t", "--older-than", "long", code=2)


def test_what_a_table_was(run, load):
    first = load().current_snapshot()
    with load().update_schema() as update:
        update.add_column("more", "int")
    load().append(ROWS)
    load().manage_snapshots().create_tag(first.snapshot_id, "v1").commit()
    for moment in (["--ref", "v1"], ["--snapshot-id", str(first.snapshot_id)]):
        schema = json.loads(run("table", "schema", "a.t", *moment, "--json"))
        assert [field["name"] for field in schema["fields"]] == ["id", "name"]
        assert "more" not in run("table", "show", "a.t", *moment)
        shown = json.loads(run("table", "show", "a.t", *moment, "--json"))
        assert shown["snapshot"]["snapshot-id"] == first.snapshot_id
    assert "more" in run("table", "schema", "a.t")


def test_a_table_without_a_catalog_is_not_changed(run, load):
    location = load().metadata_location
    for command in (["table", "set-properties", location, "a=b"], ["tag", "create", location, "x"]):
        with pytest.raises(ice.errors.IcefieldError, match="catalog"):
            run(*command)


def answer(uri, text, *arguments):
    """Run a command on a terminal, and answer what it asks."""
    pty = pytest.importorskip("pty")
    command = [sys.executable, "-m", "icefield.cli", "--uri", uri, *arguments]
    terminal, end = pty.openpty()
    try:
        os.write(terminal, text.encode())
        done = subprocess.run(command, stdin=end, capture_output=True, text=True, timeout=300, check=False)
    finally:
        os.close(terminal)
        os.close(end)
    return done.returncode, done.stdout, done.stderr


def test_questions_on_a_terminal(uri, load):
    load().manage_snapshots().create_tag(load().current_snapshot().snapshot_id, "v1").commit()
    code, out, err = answer(uri, "n\n", "tag", "drop", "a.t", "v1")
    assert (code, out) == (1, "")
    assert "This will drop tag v1 of table a.t." in err
    assert err.rstrip().endswith("icefield: nothing was done")
    code, out, err = answer(uri, "y\n", "tag", "drop", "a.t", "v1", "--json")
    assert (code, json.loads(out)["tag"]) == (0, "v1")
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (CommitFailedException("another was first"), 4, "icefield: another was first\n"),
        (ice.errors.ValidationException("conflict"), 4, "icefield: conflict\n"),
        (CommitStateUnknownException("no\nanswer"), 3, "icefield: no answer\n"),
        (ice.errors.NoSuchTableError("none"), 1, "icefield: none\n"),
        (PermissionError(13, "denied", "x"), 1, "icefield: [Errno 13] denied: 'x'\n"),
        (KeyError("k"), 1, "icefield: KeyError: 'k' (set ICEFIELD_TRACEBACK=1 to see where)\n"),
    ],
    ids=repr,
)
def test_exit_codes(error, code, line, monkeypatch, capsys):
    def fail():
        raise error

    monkeypatch.setattr(entry, "icefield", fail)
    monkeypatch.delenv("ICEFIELD_TRACEBACK", raising=False)
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, capsys.readouterr().err) == (code, line)
    monkeypatch.setenv("ICEFIELD_TRACEBACK", "1")
    with pytest.raises(SystemExit):
        main()
    assert "Traceback" in capsys.readouterr().err


def completed(uri, *words):
    """Return what a shell shows for the last of these words."""
    environment = {
        "_ICEFIELD_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(["icefield", "--uri", uri, *words]),
        "COMP_CWORD": str(len(words) + 2),
    }
    done = CliRunner().invoke(icefield, [], prog_name="icefield", env=environment)
    return [line.partition(",")[2] for line in done.output.splitlines() if line]


def test_shells_complete_names(uri, load):
    load().manage_snapshots().create_tag(load().current_snapshot().snapshot_id, "v1").commit()
    assert completed(uri, "tab") == ["table"]
    assert {"create", "drop", "expire", "rollback", "show"} <= set(completed(uri, "table", ""))
    assert completed(uri, "table", "show", "a") == ["a.t"]
    assert completed(uri, "table", "show", "x") == []
    assert completed(uri, "namespace", "drop", "") == ["a"]
    assert completed(uri, "catalog", "list", "") == ["a"]
    assert sorted(completed(uri, "table", "head", "a.t", "--ref", "")) == ["main", "v1"]
    assert completed(uri, "tag", "drop", "a.t", "v") == ["v1"]
    assert completed(uri, "table", "inspect", "a.t", "data") == ["data_files"]
    assert completed(uri, "table", "head", "a.none", "--ref", "") == []
    assert completed("nonsense://", "table", "show", "") == []
    assert "--older-than" in completed(uri, "table", "expire", "a.t", "--o")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_what_shells_load(run, shell):
    source = run("completion", shell)
    assert f"_ICEFIELD_COMPLETE={shell}_complete" in source
    assert json.loads(run("completion", shell, "--json")) == {"shell": shell, "source": source[:-1]}
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=source, text=True, check=True, timeout=300)


def commands(group, path=()):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


def test_every_command_has_a_help_and_takes_json(run):
    found = dict(commands(icefield))
    assert len(found) > 30
    for path, command in found.items():
        assert command.get_short_help_str(200), path
        assert any("--json" in parameter.opts for parameter in command.params), path
        assert "Usage: " in run(*path, "--help")
    # What changes or shows the rows of a snapshot takes every way to name one.
    for name in ("show", "schema", "snapshots", "inspect", "files", "plan", "head", "rollback"):
        options = {option for parameter in found["table", name].params for option in parameter.opts}
        assert {"--ref", "--as-of", "--snapshot-id"} <= options, name
