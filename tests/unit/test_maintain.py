"""Maintenance by policies: what is due is done once, no failure stops the rest, and a dry run writes nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

import icefield as ice
from icefield import maintenance
from icefield.cli.commands import icefield
from icefield.maintenance import MaintenanceReport
from icefield.maintenance.tasks import LAST_ORPHAN_REMOVAL

ROWS = pa.table({"id": pa.array(range(10), pa.int64()), "part": ["a", "b"] * 5})


@pytest.fixture
def catalog(tmp_path: Path) -> ice.Catalog:
    made = ice.load_catalog("own", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "wh"))
    made.create_namespace("db")
    return made


def create(catalog: ice.Catalog, name: str = "db.t", *, appends: int = 6, **properties: str) -> ice.Table:
    settings = {"format-version": "2", "write.delete.mode": "merge-on-read", **properties}
    table = catalog.create_table(name, ROWS.schema, properties=settings)
    for _ in range(appends):
        table.append(ROWS)
    return table


def policy(tables: object = "db.*", **tasks: object) -> dict[str, object]:
    return {"policies": [{"tables": tables, **{name.replace("_", "-"): settings for name, settings in tasks.items()}}]}


def states(report: MaintenanceReport) -> dict[str, str]:
    return {one.task: one.state for one in report.tasks}


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    found = ((path, path.stat()) for path in folder.rglob("*") if path.is_file())
    return {str(path): (status.st_size, status.st_mtime_ns) for path, status in found}


def test_what_is_due_is_done_once(catalog: ice.Catalog, tmp_path: Path) -> None:
    table = create(catalog, **{"commit.manifest-merge.enabled": "false", "commit.manifest.min-count-to-merge": "4"})
    orphan = tmp_path / "wh" / "db" / "t" / "data" / "orphan.parquet"
    orphan.write_bytes(b"12345")
    os.utime(orphan, (0, 0))
    config = policy(
        convert_equality_deletes=None,
        compact={"options": {"min-input-files": 5}},
        rewrite_position_deletes={},
        remove_dangling_deletes=None,
        rewrite_manifests={},
        statistics={"columns": ["part"]},
        expire_snapshots={"older-than": "0ms", "retain-last": 1},
        remove_orphans={"every": "7d"},
    )
    # A dry run says the same as the run, as far as no task depends on one before it, and changes no file.
    before = tree(tmp_path / "wh")
    planned = maintenance.run(config, catalog=catalog, dry_run=True)
    assert tree(tmp_path / "wh") == before
    assert planned.dry_run
    expected = {
        "convert-equality-deletes": "not due",
        "compact": "planned",
        "rewrite-position-deletes": "not due",
        "remove-dangling-deletes": "not due",
        "rewrite-manifests": "planned",
        "statistics": "planned",
        "expire-snapshots": "planned",
        "remove-orphans": "planned",
    }
    assert states(planned) == expected
    done = maintenance.run(config, catalog=catalog)
    assert done.ok, done
    by_task = {one.task: one for one in done.tasks}
    before_of = {one.task: one for one in planned.tasks}
    for task in ("compact", "remove-orphans"):
        assert (by_task[task].files, by_task[task].bytes) == (before_of[task].files, before_of[task].bytes) != (0, 0)
    assert states(done) == {task: state.replace("planned", "done") for task, state in expected.items()}
    table.refresh()
    assert table.inspect.data_files().num_rows == 1
    assert len(table.snapshots()) == 1
    assert not orphan.exists()
    assert by_task["expire-snapshots"].bytes > 0
    assert LAST_ORPHAN_REMOVAL in table.properties
    again = maintenance.run(config, catalog=catalog)
    assert set(states(again).values()) == {"not due"}
    assert again.ok
    # The time of the last removal counts, and one in the future does not.
    for last, state in ((0, "done"), (1 << 60, "done")):
        table.refresh().update_properties({LAST_ORPHAN_REMOVAL: str(last)})
        assert states(maintenance.run(config, catalog=catalog))["remove-orphans"] == state


@pytest.mark.parametrize(
    ("settings", "due"),
    [
        ({}, True),
        ({"min-files": 6}, True),
        ({"min-files": 7}, False),
        ({"min-share": "1.0"}, True),
        ({"min-share": 1, "min-files": 100}, True),
        # Java's planner takes groups from 5 files on.
        ({"options": {"min-input-files": 7}}, False),
    ],
)
def test_when_a_compaction_is_due(catalog: ice.Catalog, settings: Mapping[str, object], due: bool) -> None:
    create(catalog)
    report = maintenance.run(policy(compact=settings), catalog=catalog, dry_run=True)
    assert states(report) == {"compact": "planned" if due else "not due"}


def test_manifests_and_deletes(catalog: ice.Catalog) -> None:
    merges = {"commit.manifest-merge.enabled": "false", "commit.manifest.min-count-to-merge": "4"}
    table = create(catalog, appends=5, **merges)
    for number in range(3):
        table.delete(f"id = {number}")
    small = maintenance.run(policy(rewrite_manifests={"min-count": 6}), catalog=catalog)
    assert states(small) == {"rewrite-manifests": "not due"}
    config = policy(rewrite_position_deletes={"options": {"rewrite-all": True}}, rewrite_manifests={})
    done = maintenance.run(config, catalog=catalog)
    assert states(done) == {"rewrite-position-deletes": "done", "rewrite-manifests": "done"}
    manifests = next(one for one in done.tasks if one.task == "rewrite-manifests")
    # Those of data, and those of deletes.
    assert (manifests.files, manifests.added_files, manifests.commits) == (7, 2, 1)
    assert table.refresh().scan().count() == 35


def test_equality_deletes(catalog: ice.Catalog) -> None:
    table = create(catalog, appends=1)
    with table.upsert_stream("id") as stream:
        stream.upsert(ROWS.slice(0, 2))
    few = maintenance.run(policy(convert_equality_deletes={"min-files": 2}), catalog=catalog)
    assert states(few) == {"convert-equality-deletes": "not due"}
    for dry_run, state in ((True, "planned"), (False, "done"), (False, "not due")):
        report = maintenance.run(policy(convert_equality_deletes=None), catalog=catalog, dry_run=dry_run)
        assert states(report) == {"convert-equality-deletes": state}
        assert (report.tasks[0].files, report.tasks[0].bytes > 0) == ((0, False) if state == "not due" else (1, True))
    assert table.refresh().scan().count() == 10


def test_a_table_that_fails_does_not_stop_the_others(catalog: ice.Catalog, tmp_path: Path) -> None:
    for name in ("db.a", "db.b", "db.c"):
        create(catalog, name)
    kept = create(catalog, "db.kept", appends=2, **{"gc.enabled": "false"})
    broken = catalog.load_table("db.b")
    for path in broken.inspect.manifests()["path"].to_pylist():
        Path(path.removeprefix("file://")).write_bytes(b"damaged")
    seen: list[str] = []
    report = maintenance.run(
        policy(["db.[a-z]*", "db.gone"], compact=None, expire_snapshots={"older-than": "0ms", "retain-last": 1}),
        catalog=catalog,
        on_task=lambda one: seen.append(one.table),
    )
    found = {(one.table, one.task): one.state for one in report.tasks}
    assert found["db.a", "compact"] == found["db.c", "compact"] == "done"
    assert found["db.b", "compact"] == "failed"
    assert found["db.gone", ""] == "failed"
    assert found["db.kept", "expire-snapshots"] == "skipped"
    assert len(kept.refresh().snapshots()) == 2
    assert not report.ok
    assert [one.table for one in report.tasks] == seen
    assert "failed db.b compact: " in repr(report)


def test_runs_at_the_same_time_do_no_harm(catalog: ice.Catalog, tmp_path: Path) -> None:
    table = create(catalog)
    config = policy(compact=None, expire_snapshots={"older-than": "0ms", "retain-last": 1})

    def once(_: int) -> MaintenanceReport:
        own = ice.load_catalog("own", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "wh"))
        return maintenance.run(config, catalog=own)

    with ThreadPoolExecutor(3) as pool:
        reports = list(pool.map(once, range(3)))
    assert any(one.ok for one in reports), reports
    assert maintenance.run(config, catalog=catalog).ok
    assert table.refresh().scan().to_arrow().num_rows == 60
    assert (table.inspect.data_files().num_rows, len(table.snapshots())) == (1, 1)
    assert table.fsck("rows").ok


def test_the_first_policy_of_a_table_counts(catalog: ice.Catalog) -> None:
    for name in ("db.a", "db.b", "db.c"):
        create(catalog, name, appends=1)
    config = {
        "policies": [
            {"tables": "db.a", "compact": None},
            {"tables": ["db.*"], "except": ["db.c"], "expire-snapshots": {"retain-last": 5}},
            {"tables": "other.*", "compact": None},
        ]
    }
    report = maintenance.run(config, catalog=catalog)
    assert [(one.table, one.task) for one in report.tasks] == [("db.a", "compact"), ("db.b", "expire-snapshots")]
    assert report.unmatched == ["other.*"]
    assert [one.table for one in maintenance.run(config, catalog=catalog, tables=["db.b"]).tasks] == ["db.b"]


WRONG: list[tuple[Any, str]] = [
    ({}, "policies must be a list"),
    ({"polices": []}, "unknown key 'polices'; did you mean policies?"),
    (policy(), "there is no task"),
    ({"policies": [{"compact": None}]}, "tables is missing"),
    (policy(expire_snapshot={}), "policies[0]: unknown key 'expire-snapshot'; did you mean expire-snapshots?"),
    (policy(compact={"min_files": 3}), "policies[0].compact: unknown key 'min_files'; did you mean min-files?"),
    (
        policy(compact={"min-files": 0}),
        "policies[0].compact.min-files: expected a whole number above 0, up to 2147483647, got 0",
    ),
    (policy(compact={"min-share": "20%"}), "expected a share above 0, up to 1, got '20%'"),
    (policy(compact="yes"), "policies[0].compact: expected settings, or nothing for the defaults; got 'yes'"),
    (policy(compact={"options": ["a"]}), "policies[0].compact.options: expected names with values"),
    (policy(expire_snapshots={"older-than": "a week"}), "expected an age such as 7d or 12h, got 'a week'"),
    (policy(expire_snapshots={"clean-expired-metadata": "on"}), "expected true or false, got 'on'"),
    (policy(remove_orphans={"older-than": "2d"}), "policies[0].remove-orphans.older-than: at least 3d, got '2d'"),
    (policy(compact={"strategy": "z-order"}), "policies[0].compact.strategy: expected binpack or sort, got 'z-order'"),
    (policy(compact={"strategy": "binpack", "sort-order": "id"}), "binpack keeps the order of rows"),
    (None, "expected a mapping or a YAML file, got None"),
    (policy(7, compact=None), "policies[0].tables: expected a list of texts, got 7"),
    (policy(["a", ""], compact=None), "policies[0].tables[1]: expected text, got ''"),
    (policy(expire_snapshots={"retain-last": 1 << 31}), "policies[0].expire-snapshots.retain-last: expected a whole"),
    (policy(rewrite_manifests={"min-count": "9" * 5000}), "policies[0].rewrite-manifests.min-count: expected a whole"),
    (
        policy(expire_snapshots={"older-than": "99999999999d"}),
        "policies[0].expire-snapshots.older-than: at most 365000d",
    ),
    (policy(remove_orphans={"every": "9" * 5000 + "d"}), "policies[0].remove-orphans.every: expected an age"),
    (policy(compact={"sort-order": "id sideways"}), "policies[0].compact.sort-order: expected asc or desc"),
    (policy(compact={"sort-order": "zorder()"}), "policies[0].compact.sort-order: compaction: a curve needs columns"),
    (
        policy(compact={"sort-order": "id, zorder(a)"}),
        "policies[0].compact.sort-order: compaction: a curve is the whole",
    ),
]

#: Options that are wrong for every table, and what is said about them.
WRONG_OPTIONS: list[tuple[str, object, str]] = [
    ("min-input-file", 2, "unknown option 'min-input-file'; did you mean \"min-input-files\"?"),
    ("min-input-files", 0, "option 'min-input-files': expected an integer of at least 1, got '0'"),
    ("min-input-files", "two", "expected an integer of at least 1, got 'two'"),
    ("target-file-size-bytes", "512MB", "option 'target-file-size-bytes': expected an integer"),
    ("min-file-size-bytes", None, "option 'min-file-size-bytes': expected an integer of at least 0, got 'None'"),
    ("max-file-size-bytes", 1, "leave no target size between them"),
    ("rewrite-all", "yes", "option 'rewrite-all': expected true or false, got 'yes'"),
    ("max-file-group-size-bytes", -1, "option 'max-file-group-size-bytes'"),
    ("max-file-group-input-files", 1.5, "option 'max-file-group-input-files'"),
    ("rewrite-job-order", "random", "option 'rewrite-job-order': expected none, bytes-asc"),
    ("partial-progress.enabled", 1, "option 'partial-progress.enabled': expected true or false, got '1'"),
    ("partial-progress.max-commits", 0, "option 'partial-progress.max-commits'"),
    ("max-concurrent-file-group-rewrites", "", "option 'max-concurrent-file-group-rewrites'"),
]
OF_COMPACTIONS: list[tuple[str, object, str]] = [
    ("delete-file-threshold", -1, "option 'delete-file-threshold'"),
    ("delete-ratio-threshold", 1.5, "option 'delete-ratio-threshold': expected a number above 0, up to 1"),
    ("max-files-to-rewrite", True, "option 'max-files-to-rewrite'"),
    ("output-spec-id", "first", "option 'output-spec-id'"),
    ("use-starting-sequence-number", "no", "option 'use-starting-sequence-number'"),
    ("remove-dangling-deletes", "y", "option 'remove-dangling-deletes'"),
    ("partial-progress.max-failed-commits", -1, "option 'partial-progress.max-failed-commits'"),
    # Without a sort order there is nothing that these are about.
    ("compression-factor", 1, "unknown option 'compression-factor'"),
    ("var-length-contribution", 8, "unknown option 'var-length-contribution'"),
]
OPTIONS = [
    *(("compact", {}, *one) for one in WRONG_OPTIONS + OF_COMPACTIONS),
    *(("rewrite-position-deletes", {}, *one) for one in WRONG_OPTIONS),
    ("rewrite-position-deletes", {}, "delete-ratio-threshold", 0.5, "unknown option 'delete-ratio-threshold'"),
    ("compact", {"strategy": "sort"}, "compression-factor", 0, "option 'compression-factor': expected a positive"),
    ("compact", {"sort-order": "zorder(id)"}, "var-length-contribution", 2000, "expected at most 1024 bytes"),
    ("compact", {"sort-order": "zorder(id)"}, "max-output-size", 0, "option 'max-output-size'"),
    ("compact", {"sort-order": "id"}, "max-output-size", 1, "unknown option 'max-output-size'"),
]


@pytest.mark.parametrize(("task", "settings", "name", "value", "says"), OPTIONS)
def test_wrong_options_are_refused_before_anything_is_done(
    catalog: ice.Catalog, task: str, settings: dict[str, object], name: str, value: object, says: str
) -> None:
    """They failed table after table, with the exit code of a task that failed."""
    table = create(catalog, appends=2)
    tasks = {"expire-snapshots": {"older-than": "0ms", "retain-last": 1}, task: {**settings, "options": {name: value}}}
    with pytest.raises(ice.InvalidArgumentError) as raised:
        maintenance.run(
            {"policies": [{"tables": "none", "compact": None}, {"tables": "db.*", **tasks}]}, catalog=catalog
        )
    assert f"policies[1].{task}.options: " in str(raised.value)
    assert says in str(raised.value)
    assert len(table.refresh().snapshots()) == 2


def test_options_that_only_some_tables_refuse_are_for_their_tasks(catalog: ice.Catalog) -> None:
    create(catalog)
    options = {"max-file-size-bytes": 1000, "min-file-size-bytes": 10, "output-spec-id": 3, "min-input-files": "2"}
    [report] = maintenance.run(policy(compact={"options": options}), catalog=catalog).tasks
    assert (report.state, "must be less than 'max-file-size-bytes'" in report.message) == ("failed", True)


@pytest.mark.parametrize(("config", "says"), WRONG)
def test_wrong_configurations(catalog: ice.Catalog, config: Mapping[str, object], says: str) -> None:
    with pytest.raises(ice.InvalidArgumentError) as raised:
        maintenance.run(config, catalog=catalog)
    assert says in str(raised.value)


def test_odd_properties_fail_their_task_only(catalog: ice.Catalog, tmp_path: Path) -> None:
    """What other tools have set is read when a task needs it."""
    table = create(catalog, "db.t", appends=3)
    document = json.loads(table.metadata_json())
    document["properties"]["commit.manifest.target-size-bytes"] = "8MB"
    (tmp_path / "odd.metadata.json").write_text(json.dumps(document))
    catalog.drop_table("db.t")
    catalog.register_table("db.t", str(tmp_path / "odd.metadata.json"))
    tasks = policy(rewrite_manifests={"min-count": 2}, statistics={"columns": ["nope"]}, remove_orphans=None)
    report = maintenance.run(tasks, catalog=catalog, dry_run=True)
    states = [(one.task, one.state) for one in report.tasks]
    assert states == [("rewrite-manifests", "failed"), ("statistics", "failed"), ("remove-orphans", "planned")]
    assert "'commit.manifest.target-size-bytes': expected an integer, got '8MB'" in report.tasks[0].message
    assert 'no column "nope"' in report.tasks[1].message


CONFIG = """
policies:
  - tables: [db.*]
    compact:
    expire-snapshots: {older-than: 0ms, retain-last: 1}
"""


def test_on_the_command_line(catalog: ice.Catalog, tmp_path: Path) -> None:
    create(catalog)
    config = tmp_path / "maintenance.yaml"
    config.write_text(CONFIG)

    def run(*arguments: str) -> Result:
        places = ["--uri", f"sqlite:///{tmp_path}/catalog.db", "--warehouse", str(tmp_path / "wh")]
        return CliRunner().invoke(icefield, [*places, "--catalog", "own", "maintain", str(config), *arguments])

    planned = run("--dry-run")
    assert (planned.exit_code, "1 table: 2 tasks planned with " in planned.output) == (0, True), planned.output
    document = json.loads(run("--json").output)
    assert (document["ok"], document["dry_run"]) == (True, False)
    assert {one["task"]: one["state"] for one in document["tasks"]} == {"compact": "done", "expire-snapshots": "done"}
    again = run()
    assert (again.exit_code, again.output) == (0, "1 table: 0 tasks done with 0 files of 0 B, 0 failed\n")
    assert "not due" in run("--verbose").output
    config.write_text(CONFIG.replace("db.*", "db.gone"))
    failed = run()
    assert (failed.exit_code, "db.gone" in failed.output) == (1, True)
    config.write_text(CONFIG.replace("compact", "kompact"))
    wrong = run()
    assert (wrong.exit_code, "did you mean compact?" in wrong.output) == (2, True)
    config.write_text(CONFIG.replace("compact:", "compact: {options: {min-input-file: 2}}"))
    wrong = run()
    place = "maintenance.yaml: policies[0].compact.options: "
    assert (wrong.exit_code, place in wrong.output, "did you mean" in wrong.output) == (2, True, True)
    config.write_text("policies: [")
    assert (run().exit_code, "maintenance.yaml, line 1" in run().output) == (2, True)
