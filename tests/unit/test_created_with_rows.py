"""Tables that are created or replaced with their rows, in one commit."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import icefield as ice
from icefield.catalog.sql import SqlCatalog

ROWS = pa.table({"id": [1, 2], "region": ["eu", "us"]})
OTHERS = pa.table({"id": [7], "name": ["a"]})


@pytest.fixture
def catalog(tmp_path: Path) -> SqlCatalog:
    made = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    made.create_namespace("n")
    return made


def files(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file() and not path.name.startswith("catalog.db")]


def test_a_table_is_created_with_its_rows(catalog: SqlCatalog, tmp_path: Path) -> None:
    with catalog.create_table_transaction("n.t", ROWS.schema, partition_by="region", properties={"a": "b"}) as tx:
        tx.append(ROWS)
        with tx.update_schema() as schema:
            schema.add_column("extra", "int")
        assert not catalog.table_exists("n.t")
    table = catalog.load_table("n.t")
    assert table.scan().count() == 2
    assert (table.properties["a"], table.schema().column_names) == ("b", ["id", "region", "extra"])
    assert (len(table.snapshots()), len(table.metadata.metadata_log)) == (1, 0)
    assert sum(name.endswith(".metadata.json") for name in files(tmp_path)) == 1
    with pytest.raises(ice.TableAlreadyExistsError):
        catalog.create_table_transaction("n.t", ROWS.schema)
    with pytest.raises(ice.NoSuchNamespaceError):
        catalog.create_table_transaction("m.t", ROWS.schema)


def test_a_table_that_another_created_meanwhile_leaves_nothing(catalog: SqlCatalog, tmp_path: Path) -> None:
    tx = catalog.create_table_transaction("n.t", ROWS.schema, location=str(tmp_path / "mine"))
    tx.append(ROWS)
    assert files(tmp_path / "mine")
    catalog.create_table("n.t", OTHERS.schema)
    with pytest.raises(ice.TableAlreadyExistsError):
        tx.commit_transaction()
    assert files(tmp_path / "mine") == []
    assert catalog.load_table("n.t").schema().column_names == ["id", "name"]


def test_a_block_that_raises_creates_nothing(catalog: SqlCatalog, tmp_path: Path) -> None:
    tx = catalog.create_table_transaction("n.t", ROWS.schema)
    tx.append(ROWS)
    with pytest.raises(KeyError), tx:
        raise KeyError
    assert not catalog.table_exists("n.t")
    assert files(tmp_path) == []


def test_a_table_is_replaced_with_its_rows(catalog: SqlCatalog) -> None:
    table = catalog.create_table("n.t", ROWS.schema, partition_by="region", properties={"a": "b"})
    table.append(ROWS)
    first = table.metadata.current_snapshot_id
    assert first is not None
    table.manage_snapshots().create_tag(first, "before").commit()
    with catalog.replace_table_transaction("n.t", OTHERS.schema, properties={"c": "d"}) as tx:
        tx.append(OTHERS)
        assert table.refresh().scan().count() == 2
    table.refresh()
    assert table.scan().to_arrow().to_pydict() == {"id": [7], "name": ["a"]}
    assert table.scan(snapshot_id=first).count() == table.scan(ref="before").count() == 2
    assert {"a": "b", "c": "d"}.items() <= table.properties.items()
    assert table.spec().is_unpartitioned()
    current = table.current_snapshot()
    assert current is not None
    assert current.parent_snapshot_id is None
    # Columns of the same name keep their ids.
    assert [field.field_id for field in table.schema().fields] == [1, 3]


def test_a_replacement_keeps_what_others_committed_in_the_history(catalog: SqlCatalog) -> None:
    table = catalog.create_table("n.t", ROWS.schema)
    tx = catalog.replace_table_transaction("n.t", OTHERS.schema)
    tx.append(OTHERS)
    table.append(ROWS)
    tx.commit_transaction()
    table.refresh()
    assert table.scan().count() == 1
    assert len(table.snapshots()) == 2


def test_create_or_replace(catalog: SqlCatalog) -> None:
    for rows in (ROWS, OTHERS):
        with catalog.create_or_replace_table_transaction("n.t", rows.schema) as tx:
            tx.append(rows)
    assert catalog.load_table("n.t").scan().to_arrow().equals(OTHERS, check_metadata=False)
    with pytest.raises(ice.NoSuchTableError):
        catalog.replace_table_transaction("n.u", ROWS.schema)
    with pytest.raises(ice.InvalidArgumentError, match="downgraded"):
        catalog.replace_table_transaction("n.t", ROWS.schema, properties={"format-version": "1"})
    with pytest.raises(ice.InvalidArgumentError, match="commit"):
        catalog.replace_table_transaction("n.t", ROWS.schema, properties={"commit.retry.num-retries": "many"})
