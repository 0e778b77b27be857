"""Compaction and rewrites of deletes beside Java, on the same table: the same files chosen, the same rows after.

Histories are drawn (`java_story`), with equality deletes by Java's writers. Java's procedure runs first; the table is
rolled back, and ours runs. Counts, rows and summaries must be Java's.
"""

from __future__ import annotations

import os
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

import icefield as ice
from icefield.procedures import call
from worlds.encoding import encoded_table
from worlds.java_story import Story

if TYPE_CHECKING:
    from conftest import Java

pytestmark = pytest.mark.interop

CATALOG = "compacted"
TABLES = max(6, int(os.environ.get("ICEFIELD_RANDOM_CASES", "200")) // 25)
SEED = int(os.environ.get("ICEFIELD_RANDOM_SEED", "20201121"))
DONE: Counter[str] = Counter()
REFUSED = ("Cannot", "incompatible", "already exists", "MERGE_CARDINALITY_VIOLATION")
#: Calls: the procedure, a sort order, and options.
CALLS: list[tuple[str, str | None, dict[str, str]]] = [
    ("rewrite_data_files", None, {"rewrite-all": "true"}),
    ("rewrite_data_files", None, {"min-input-files": "2"}),
    ("rewrite_data_files", None, {"delete-file-threshold": "1", "remove-dangling-deletes": "true"}),
    ("rewrite_data_files", None, {"delete-ratio-threshold": "0.1", "rewrite-job-order": "bytes-desc"}),
    ("rewrite_data_files", None, {"rewrite-all": "true", "use-starting-sequence-number": "false"}),
    ("rewrite_data_files", "id DESC NULLS LAST", {"rewrite-all": "true"}),
    ("rewrite_data_files", "zorder(id)", {"min-input-files": "1"}),
    ("rewrite_position_delete_files", None, {"rewrite-all": "true"}),
    ("rewrite_position_delete_files", None, {"min-input-files": "2"}),
]
#: Entries of summaries: all counts, but those of bytes, which depend on the writer, and of old delete files that each
#: commit drops, which depend on the last sequence number: it is greater for the second of both.
COUNTS = ("added-", "changed-", "deleted-", "removed-dvs", "total-records", "total-data-files")


def statement(procedure: str, table: str, order: str | None, options: dict[str, str]) -> str:
    listed = ", ".join(f"'{key}', '{value}'" for key, value in options.items())
    sort = f", sort_order => '{order}'" if order else ""
    return f"CALL {CATALOG}.system.{procedure}(table => '{table}'{sort}, options => map({listed}))"


@pytest.mark.parametrize("number", range(TABLES))
def test_both_do_the_same(catalog: ice.catalog.Catalog, java: Java, number: int) -> None:
    rng = Random(SEED * 1000 + number)
    name = f"db.t{number}"
    story = Story(rng, f"{CATALOG}.{name}")
    tell(java, story, story.create())
    table = catalog.load_table(name)
    for _ in range(2):
        tell(java, story, story.insert())
    for _ in range(rng.randint(2, 5)):
        tell(java, story, rng.choice([story.insert, story.delete, story.update, story.merge])())
        if rng.random() < 0.3:
            equality_deletes(rng, java, story, table.refresh())
    for procedure, order, options in rng.sample(CALLS, 3):
        both(catalog, java, story, name, (procedure, order, options))


def both(
    catalog: ice.catalog.Catalog,
    java: Java,
    story: Story,
    name: str,
    procedure: tuple[str, str | None, dict[str, str]],
) -> None:
    """Call a procedure of Java's and ours, from the same state."""
    table = catalog.load_table(name)
    before, rows = table.current_snapshot(), sorted(map(repr, encoded_table(table.scan().to_arrow())))
    assert before is not None
    theirs = java.rows(statement(procedure[0], name, procedure[1], procedure[2])).to_pylist()
    table.refresh()
    of_java = summaries(table, before.snapshot_id)
    assert sorted(map(repr, encoded_table(table.scan().to_arrow()))) == rows, story.log
    table.manage_snapshots().rollback_to_snapshot(before.snapshot_id).commit()
    sort = {} if procedure[1] is None else {"sort_order": procedure[1]}
    ours = call(catalog, procedure[0], table=name, options=procedure[2], **sort).to_pylist()
    table.refresh()
    told = "\n".join([*map(str, story.log), str(procedure)])
    left_out = ["added_bytes_count"]
    if "remove-dangling-deletes" in procedure[2]:
        # Java's count is then without the deletion vectors of the replaced files.
        left_out.append("removed_delete_files_count")
    assert without(ours, left_out) == without(theirs, left_out), told
    # A second snapshot removes dangling deletes that the first has not dropped: which it drops is left out above.
    compared = 1 if "remove-dangling-deletes" in procedure[2] else None
    assert summaries(table, before.snapshot_id)[:compared] == of_java[:compared], told
    java.sql(f"REFRESH TABLE {story.name}")
    assert sorted(map(repr, encoded_table(table.scan().to_arrow()))) == rows, told
    assert sorted(map(repr, encoded_table(java.rows(f"SELECT * FROM {story.name}")))) == rows, told
    table.manage_snapshots().rollback_to_snapshot(before.snapshot_id).commit()
    DONE[procedure[0]] += 1
    DONE["changed"] += bool(of_java)


def without(rows: list[dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    """Leave out columns: the bytes of new files depend on the writer."""
    return [{name: value for name, value in row.items() if name not in names} for row in rows]


def summaries(table: ice.Table, since: int) -> list[tuple[str | None, dict[str, str]]]:
    """Give the operations and summaries of the snapshots after one."""
    found, at = [], table.current_snapshot()
    while at is not None and at.snapshot_id != since:
        entries = {} if at.summary is None else dict(at.summary.additional_properties)
        kept = {key: value for key, value in entries.items() if key.startswith(COUNTS) and "size" not in key}
        found.append((at.operation, kept))
        at = None if at.parent_snapshot_id is None else table.snapshot_by_id(at.parent_snapshot_id)
    return found[::-1]


def tell(java: Java, story: Story, statements: list[str]) -> None:
    for text in statements:
        before = dict(story.columns), list(story.fields)
        try:
            java.sql(text)
            story.log.append(text)
        except RuntimeError as error:
            assert any(known in str(error) for known in REFUSED), (story.log, text, str(error))
            story.columns, story.fields = before


def equality_deletes(rng: Random, java: Java, story: Story, table: ice.Table) -> None:
    ids = [rng.randrange(story.rows + 1) for _ in range(rng.randint(1, 6))]
    java.do("write", table=story.name, how="delete_equal", ids=ids, columns=["id"], everywhere=False)
    story.log.append(f"equality deletes of ids {ids}; {table.name()}")


def test_both_procedures_were_called_and_found_something() -> None:
    assert DONE["rewrite_data_files"] > TABLES, DONE
    assert DONE["rewrite_position_delete_files"] > 0, DONE
    assert DONE["changed"] > TABLES, DONE
