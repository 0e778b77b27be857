"""Tables of format versions that do not exist yet: recognised, named, refused, and left as they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

import icefield as ice
from icefield.cli.commands import icefield
from icefield.errors import UnsupportedFeatureError

ROWS = pa.table({"id": [1, 2]})


@pytest.fixture
def catalog(tmp_path: Path) -> ice.Catalog:
    catalog = ice.load_catalog("local", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    return catalog


def written(table: ice.Table, version: int) -> str:
    """Write the metadata of a table as those of another version, with a field that nobody knows."""
    document = {**json.loads(table.metadata.to_json()), "format-version": version, "relative-paths": {"base": "."}}
    path = f"{table.location()}/metadata/99999-v{version}.metadata.json"
    table.storage.write(path, json.dumps(document).encode())
    return path


@pytest.mark.parametrize(
    ("version", "says"),
    [(4, "table format version 4, whose specification is not adopted yet"), (9, "table format version 9")],
)
def test_versions_are_named(catalog: ice.Catalog, tmp_path: Path, version: int, says: str) -> None:
    table = catalog.create_table("db.t", ROWS.schema, properties={"format-version": "3"}).append(ROWS)
    path = written(table, version)
    before = sorted(tmp_path.rglob("*"))
    works: list[Callable[[], object]] = [
        lambda: ice.Table.from_metadata(path),
        lambda: catalog.register_table("db.u", path),
        lambda: catalog.create_table("db.u", ROWS.schema, properties={"format-version": str(version)}),
        lambda: table.update_properties({"format-version": str(version)}),
        lambda: table.transaction().upgrade_table_version(version),
    ]
    for work in works:
        with pytest.raises(UnsupportedFeatureError, match=says) as raised:
            work()
        assert "supported: 1, 2 and 3" in str(raised.value)
    for place in (works[0], works[1]):
        with pytest.raises(UnsupportedFeatureError, match=Path(path).name):
            place()
    answer = CliRunner().invoke(icefield, ["table", "show", path])
    assert answer.exit_code != 0
    assert says in str(answer.exception)
    assert sorted(tmp_path.rglob("*")) == before
    assert table.refresh().format_version == 3
    assert table.scan().count() == 2


def test_fields_that_nobody_knows_are_kept(catalog: ice.Catalog) -> None:
    table = catalog.create_table("db.t", ROWS.schema, properties={"format-version": "3"}).append(ROWS)
    known = catalog.register_table("db.u", written(table, 3)).append(ROWS)
    assert json.loads(known.metadata.to_json())["relative-paths"] == {"base": "."}
    stored = json.loads(known.storage.read(known.metadata_location))
    assert stored["relative-paths"] == {"base": "."}
