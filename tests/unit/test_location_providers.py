"""Location providers by entry point: every kind of file lies where they say, and what they do wrong is an error."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import icefield as ice
from icefield.errors import InvalidArgumentError, UnsupportedFeatureError
from icefield.table.locations import LocationProvider, PartitionPath

ROWS = pa.table({"id": list(range(6)), "day": ["a", "b", "ü/x"] * 2})
IMPL = "write.location-provider.impl"


class ByYear(LocationProvider):
    """Files below a folder of their own, named by the table's properties."""

    asked: ClassVar[list[tuple[str, str]]] = []

    def __init__(self, table_location: str, table_properties: Mapping[str, str]) -> None:
        super().__init__(table_location, table_properties)
        assert not table_location.endswith("/")

    def new_data_location(self, data_file_name: str, partition_key: PartitionPath | None = None) -> str:
        path = "" if partition_key is None else partition_key.to_path()
        self.asked.append((data_file_name, path))
        folder = self.table_properties["my.folder"]
        return "/".join([self.table_location, folder, *([path] if path else []), data_file_name])


class OfPyIceberg:
    """As PyIceberg's providers: no class of ours beneath."""

    def __init__(self, table_location: str, table_properties: dict[str, str]) -> None:
        self.root = table_location

    def new_data_location(self, data_file_name: str, partition_key: Any = None) -> str:
        return f"{self.root}/flat-{data_file_name}"


class Wrong:
    def __init__(self, table_location: str, table_properties: dict[str, str]) -> None:
        self.root, self.way = table_location, table_properties["my.way"]

    def new_data_location(self, data_file_name: str, partition_key: Any = None) -> str | None:
        if self.way == "raise":
            raise LookupError("no folder is left")
        return {"none": None, "empty": "", "same": f"{self.root}/data/one.parquet"}[self.way]


class NoProvider:
    def __init__(self, *arguments: object) -> None:
        pass


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "site" / "theirs-1.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1\n")
    names = {"com.example.ByYear": "ByYear", "flat": "OfPyIceberg", "wrong": "Wrong", "none": "NoProvider"}
    lines = [f"{name} = {__name__}:{of}" for name, of in names.items()]
    (folder / "entry_points.txt").write_text("\n".join(["[icefield.location_providers]", *lines, ""]))
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *sys.path])


@pytest.fixture
def catalog(tmp_path: Path) -> ice.Catalog:
    made = ice.load_catalog("own", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "wh"))
    made.create_namespace("db")
    return made


def paths(table: ice.Table) -> list[str]:
    return [path.removeprefix(table.location()) for path in table.inspect.all_files()["file_path"].to_pylist()]


@pytest.mark.parametrize("version", ["2", "3"])
def test_every_file_lies_where_the_provider_says(catalog: ice.Catalog, version: str) -> None:
    properties = {IMPL: "com.example.ByYear", "my.folder": "2024", "format-version": version}
    table = catalog.create_table("db.t", ROWS.schema, partition_by="day", properties=properties)
    ByYear.asked.clear()
    table.append(ROWS)
    assert sorted(path for _, path in ByYear.asked) == ["day=%C3%BC%2Fx", "day=a", "day=b"]
    table.delete("id = 0", mode="merge-on-read")
    table.delete("id = 1", mode="copy-on-write")
    table.upsert(pa.table({"id": [2], "day": ["a"]}), join_cols=["id"])
    table.maintenance.compact(options={"rewrite-all": "true"})
    assert ByYear.asked[-1][1] != ""
    assert any(path == "" for _, path in ByYear.asked) == (version == "3")
    assert all(path.startswith("/2024/") for path in paths(table))
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [2, 3, 4, 5]
    table.update_properties({"write.py-location-provider.impl": "flat"})
    table.append(ROWS)
    assert len([path for path in paths(table) if path.startswith("/flat-")]) == 3
    assert table.fsck("files").findings == []


@pytest.mark.parametrize("name", ["com.example.Here", "os.path", "tests.unit.test_location_providers.ByYear", "flat "])
def test_a_provider_that_is_not_installed_is_refused(catalog: ice.Catalog, name: str, tmp_path: Path) -> None:
    """Also where the metadata of another tool names it; nothing is imported by its name."""
    with pytest.raises(UnsupportedFeatureError, match="no installed package"):
        catalog.create_table("db.t", ROWS.schema, properties={IMPL: name})
    assert not catalog.table_exists("db.t")
    table = catalog.create_table("db.t", ROWS.schema)
    with pytest.raises(UnsupportedFeatureError, match=name):
        table.update_properties({IMPL: name})
    metadata = json.loads(table.metadata_json())
    metadata["properties"]["write.py-location-provider.impl"] = name
    path = tmp_path / "other.metadata.json"
    path.write_text(json.dumps(metadata))
    other = catalog.register_table("db.other", str(path))
    with pytest.raises(UnsupportedFeatureError, match=f"py-location-provider.impl={name}"):
        other.append(ROWS)
    assert other.scan().to_arrow().num_rows == 0


@pytest.mark.parametrize(
    ("way", "kind", "says"),
    [
        ("raise", LookupError, "no folder is left"),
        ("none", InvalidArgumentError, "Wrong returned None"),
        ("empty", InvalidArgumentError, "Wrong returned ''"),
        ("same", InvalidArgumentError, "one.parquet': expected a location with 00000-0-"),
    ],
)
def test_mistakes_of_a_provider_leave_nothing_behind(
    catalog: ice.Catalog, way: str, kind: type[Exception], says: str
) -> None:
    properties = {IMPL: "wrong", "my.way": way}
    table = catalog.create_table("db.t", ROWS.schema, partition_by="day", properties=properties)
    with pytest.raises(kind, match=says):
        table.append(ROWS)
    folder = Path(table.location().removeprefix("file://"))
    assert [path for path in folder.rglob("*.parquet") if path.is_file()] == []
    assert table.refresh().current_snapshot() is None


def test_a_class_without_the_method_is_named(catalog: ice.Catalog) -> None:
    table = catalog.create_table("db.t", ROWS.schema, properties={IMPL: "none"})
    with pytest.raises(InvalidArgumentError, match="NoProvider.*no method new_data_location"):
        table.append(ROWS)
