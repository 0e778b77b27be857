"""ORC files read with another schema, by orc-core and by us: every pair of types, with random values."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icefield import orc
from icefield.errors import InvalidArgumentError
from worlds.orc import conversions as world
from worlds.orc import rows as orc_rows
from worlds.orc.java import OrcJava

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def values() -> dict[str, list[Any]]:
    return world.drawn(seed=41, rows=400)


@pytest.fixture(scope="module")
def file(values: dict[str, list[Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("conversions") / "all.orc"
    # orc-core reads text as binary only where it has no dictionary.
    orc.write_table(world.table(values), path, dictionary_key_size_threshold=0.0)
    return path


def of_java(target: str, file: Path, values: dict[str, list[Any]], peer: OrcJava) -> dict[str, list[Any]]:
    """Give what orc-core reads, by source, with its defects put right."""
    sources, schema = world.schema_of(target)
    columns = zip(sources, zip(*peer.evolved(file, schema), strict=True), strict=True)
    return {
        kind: [world.agreed(kind, target, value, found) for value, found in zip(values[kind], column, strict=True)]
        for kind, column in columns
    }


@pytest.mark.parametrize("target", world.TARGETS)
def test_values_are_those_of_java(target: str, values: dict[str, list[Any]], file: Path, orc_peer: OrcJava) -> None:
    theirs = of_java(target, file, values, orc_peer)
    _, schema = world.schema_of(target)
    ours = zip(*orc_rows.rows(orc.ORCFile(file, schema=schema).read()), strict=True)
    differences = [
        (kind, values[kind][row], "ours", own, "java", other)
        for (kind, expected), column in zip(theirs.items(), ours, strict=True)
        for row, (own, other) in enumerate(zip(column, expected, strict=True))
        if own != other
    ]
    assert not differences, "\n".join(map(str, differences[:40]))


def test_the_recorded_values_are_those_of_java(orc_peer: OrcJava, tmp_path: Path) -> None:
    values = world.drawn(seed=6, rows=24)
    orc.write_table(world.table(values), tmp_path / "few.orc", dictionary_key_size_threshold=0.0)
    targets = {target: of_java(target, tmp_path / "few.orc", values, orc_peer) for target in world.TARGETS}
    document = {"values": world.as_json(values), "targets": targets}
    if "ICEFIELD_RECORD" in os.environ:
        world.RECORDED.write_text(json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n")
    assert json.loads(world.RECORDED.read_text()) == document


def test_pairs_that_are_refused(file: Path, orc_peer: OrcJava) -> None:
    refused = [
        (f"c{number}", kind, to)
        for number, kind in enumerate(world.SOURCES)
        for to in world.TARGETS
        if not world.converted(kind, to)
    ]
    assert len(refused) == 48
    nested = [("c0", "boolean", to) for to in ("struct<a:int>", "array<int>", "map<int,int>", "uniontype<int,string>")]
    for name, kind, target in [*refused, *nested]:
        schema = f"struct<{name}:{target}>"
        with pytest.raises(RuntimeError):
            orc_peer.evolved(file, schema)
        with pytest.raises(InvalidArgumentError, match=f"column {name}: cannot read {world.base(kind)}"):
            orc.ORCFile(file, schema=schema)


NESTED = pa.table(
    {
        "a": pa.array([1, 2, None, 4], pa.int32()),
        "B": pa.array(
            [{"x": 1, "y": "7"}, None, {"x": 300, "y": "z"}, {"x": None, "y": None}],
            pa.struct({"x": pa.int64(), "y": pa.string()}),
        ),
        "l": pa.array([[1, 400], [], None, [None]], pa.list_(pa.int32())),
        "m": pa.array([[("1", 1.5)], [], None, [("2", None)]], pa.map_(pa.string(), pa.float64())),
        "_col3": pa.array(["p", "q", "r", None]),
    }
)


@pytest.mark.parametrize(
    ("schema", "options"),
    [
        ("struct<l:array<tinyint>,m:map<bigint,string>,B:struct<y:int,x:tinyint,z:string>,new:array<int>>", {}),
        ("struct<b:struct<X:string>,A:string>", {}),
        ("struct<b:struct<X:string>,A:string>", {"case_sensitive": False}),
        ("struct<one:bigint,two:struct<y:string,x:string,more:date>,three:array<string>>", {"positional": True}),
        (
            "struct<one:bigint,two:struct<x:string>,l:array<int>,m:map<string,string>,s:string,more:string>",
            {"positional": True},
        ),
        ("struct<>", {}),
    ],
)
def test_fields_are_found_as_by_java(schema: str, options: dict[str, bool], orc_peer: OrcJava, tmp_path: Path) -> None:
    file = tmp_path / "nested.orc"
    orc.write_table(NESTED, file)
    ours = orc.ORCFile(file, schema=schema, **options).read()
    found = orc_rows.rows(ours) if ours.num_columns else [[]] * ours.num_rows
    assert found == orc_peer.evolved(file, schema, **options)


def test_files_without_names_are_read_by_position(orc_peer: OrcJava, tmp_path: Path) -> None:
    file = tmp_path / "unnamed.orc"
    orc.write_table(NESTED.select(["a", "l"]).rename_columns(["_col0", "_col1"]), file)
    schema = "struct<id:string,numbers:array<bigint>>"
    assert orc_rows.rows(orc.ORCFile(file, schema=schema).read()) == orc_peer.evolved(file, schema)
