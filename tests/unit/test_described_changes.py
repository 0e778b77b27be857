"""Changes of files that are described: names in filters, transactions, and what a `with` block makes of them.

What they commit, and what they refuse, is compared with the Java library in `tests/golden/test_commits.py`.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

import icefield as ice
from icefield.catalog.memory import InMemoryCatalog

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string())])


@pytest.fixture
def table() -> ice.Table:
    catalog = InMemoryCatalog("described", warehouse="memory://described")
    catalog.create_namespace_if_not_exists("n")
    if catalog.table_exists("n.t"):
        catalog.drop_table("n.t")
    made = catalog.create_table("n.t", SCHEMA, partition_by=["p"])
    return made.append_files([described("a", "x"), described("b", "y")])


def described(name: str, partition: str) -> ice.DataFile:
    return ice.DataFile(
        file_path=f"memory://described/{name}.parquet",
        file_format="parquet",
        partition=[partition],
        record_count=3,
        file_size_in_bytes=30,
    )


def live(table: ice.Table) -> set[str]:
    return {path.rpartition("/")[2] for path in pa.table(table.inspect.files())["file_path"].to_pylist()}


@pytest.mark.parametrize("kind", ["overwrite", "delete"])
def test_the_case_of_names_is_as_it_was_set(table: ice.Table, kind: str) -> None:
    change = getattr(table.update_snapshot(), kind)()
    change.delete_by_predicate("P = 'x'")
    with pytest.raises(ice.errors.ValidationError, match="no column"):
        change.commit()
    change = getattr(table.refresh().update_snapshot(), kind)()
    if kind == "overwrite":
        # A filter that says nothing of case leaves what was set.
        change.case_sensitive(False).delete_by_predicate("P = 'x'").append_data_file(described("c", "x")).commit()
    else:
        change.delete_by_predicate("P = 'x'", case_sensitive=False).commit()
    assert live(table.refresh()) == ({"b.parquet", "c.parquet"} if kind == "overwrite" else {"b.parquet"})


def test_changes_of_a_transaction_are_one_commit(table: ice.Table) -> None:
    with table.transaction() as changes:
        changes.update_snapshot().delete().delete_data_file(described("a", "x")).validate_files_exist().commit()
        with changes.update_snapshot().replace_partitions() as replace:
            replace.append_data_file(described("c", "y"))
    assert live(table) == {"c.parquet"}
    assert [snapshot.summary["operation"] for snapshot in table.snapshots()] == ["append", "delete", "overwrite"]


def test_a_block_that_fails_changes_nothing(table: ice.Table) -> None:
    def failing() -> None:
        with table.update_snapshot().delete() as delete:
            delete.delete_path("memory://described/a.parquet")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        failing()
    assert live(table.refresh()) == {"a.parquet", "b.parquet"}
    missing = table.update_snapshot().delete().delete_path("memory://described/none.parquet").validate_files_exist()
    with pytest.raises(ice.ValidationException, match=r"none\.parquet"):
        missing.commit()
