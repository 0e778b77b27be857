"""Golden variants: what scans give, plain or shredded, has the values that the library read, and their texts."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from test_golden_tables import scratch  # noqa: F401
from vectors import folder

import icefield as ice
from icefield import variant
from icefield.variant import Variant
from worlds.golden import facts, names, open_table

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.golden

TABLES = [name for name in names() if (folder() / "expected" / name / "rows-0.jsonl.gz").exists() and "variant" in name]


def expected(name: str) -> list[dict[str, Any]]:
    """Give the rows of the current snapshot."""
    current = facts(name)["current"]
    with gzip.open(folder() / "expected" / name / current["rows_file"], "rt") as lines:
        found = [json.loads(line) for line in lines]
    return [line["row"] for line in found if line["batch"] == current["rows_batch"]]


def made(parts: dict[str, str] | None) -> Variant | None:
    """Make a variant of the form that the set has."""
    return None if parts is None else Variant(bytes.fromhex(parts["metadata"]), bytes.fromhex(parts["value"]))


def variants(value: Any) -> list[dict[str, str]]:
    """Find the variants in a row, at any depth."""
    if isinstance(value, dict) and value.keys() == {"metadata", "value", "text"}:
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [found for item in inner for found in variants(item)]


@pytest.mark.parametrize("name", TABLES)
def test_texts(name: str) -> None:
    found = variants(expected(name))
    assert found
    for parts in found:
        own = made(parts)
        assert own is not None
        assert repr(own) == parts["text"]
        assert Variant.from_python(own) == own
        assert json.loads(own.to_json()) == json.loads(Variant.from_python(own.to_python()).to_json())


@pytest.mark.parametrize("name", TABLES)
def test_columns(name: str, scratch: Path) -> None:  # noqa: F811
    table = open_table(name, scratch)
    wanted = {row["id"]: row for row in expected(name)}
    columns = [field.name for field in table.schema().fields if str(field.field_type) == "variant"]
    for column in columns:
        rows = table.scan(selected_fields=("id", column)).to_arrow()
        ids = rows.column("id").to_pylist()
        parts = rows.column(column).to_pylist()
        own = {id_: made_of_bytes(part) for id_, part in zip(ids, parts, strict=True)}
        assert own == {id_: made(row[column]) for id_, row in wanted.items()}
        objects = variant.to_python(rows.column(column))
        assert objects == [None if own[id_] is None else own[id_].to_python() for id_ in ids]
        texts = variant.to_json(rows.column(column)).to_pylist()
        assert texts == [None if own[id_] is None else own[id_].to_json() for id_ in ids]


def places(value: Any, path: str) -> set[str]:
    """List the paths of the values inside of a variant, but for names that would have to be quoted."""
    found = {path} if path else set()
    if isinstance(value, dict):
        inner = [(f"{path}.{name}" if path else f":{name}", one) for name, one in value.items() if name.isidentifier()]
    elif isinstance(value, list):
        inner = [(f"{path or ':'}[{at}]", one) for at, one in enumerate(value[:3])]
    else:
        return found
    return found.union(*(places(one, where) for where, one in inner))


#: Types that values are read as, and how a value of them is written in a filter.
AS: dict[str, Callable[[Any], str]] = {
    "long": str,
    "double": lambda value: f"{value!r}",
    "string": lambda value: "'" + value.replace("'", "''") + "'",
    "boolean": str,
}


@pytest.mark.parametrize("name", TABLES)
def test_filters_of_paths(name: str, scratch: Path) -> None:  # noqa: F811
    """Filters, which read the columns of a path alone, find the rows that have the value when they are read whole."""
    table = open_table(name, scratch)
    columns = [field.name for field in table.schema().fields if str(field.field_type) == "variant"]
    tried = 0
    for column in columns:
        whole = table.scan(selected_fields=("id", column)).to_arrow()
        paths = set().union(
            *(places(value, "") for value in variant.to_python(whole.column(column)) if value is not None)
        )
        for path in sorted(paths)[:25]:
            for ty, text in AS.items():
                term = f"{column}{path}::{ty}"
                rows = table.scan(selected_fields=("id", term)).to_arrow().to_pylist()
                given = [(row["id"], row[term]) for row in rows]
                nulls = sorted(row for row, value in given if value is None)
                found = table.scan(f"{term} IS NULL", selected_fields=("id",)).to_arrow()["id"].to_pylist()
                assert sorted(found) == nulls, term
                values = [value for _, value in given if value is not None and value == value]  # noqa: PLR0124
                for value in values[:2]:
                    scan = table.scan(f"{term} = {text(value)}", selected_fields=("id", column))
                    wanted = sorted(row for row, other in given if other == value)
                    assert sorted(scan.to_arrow()["id"].to_pylist()) == wanted, (term, value)
                    assert scan.count() == len(wanted)
                    tried += 1
    assert tried > 10


def made_of_bytes(parts: dict[str, bytes] | None) -> Variant | None:
    """Make a variant of the form that Arrow has."""
    return None if parts is None else Variant(parts["metadata"], parts["value"])


@pytest.mark.parametrize("name", TABLES)
def test_variants_are_the_same_after_they_were_shredded(name: str, scratch: Path, tmp_path: Path) -> None:  # noqa: F811
    table = open_table(name, scratch)
    rows = table.scan().to_arrow()
    catalog = ice.load_catalog("again", uri="sqlite:///:memory:", warehouse=str(tmp_path))
    catalog.create_namespace("ns")
    again = catalog.create_table("ns.t", table.schema(), properties={"format-version": "3"})
    again.append(rows, shred=True)
    read = again.scan().to_arrow()
    columns = [field.name for field in table.schema().fields if str(field.field_type) == "variant"]
    assert columns
    for column in columns:
        # Decimals may have got zeros at their ends.
        texts = [
            [
                None if text is None else json.loads(text, parse_float=Decimal)
                for text in variant.to_json(of).to_pylist()
            ]
            for of in (rows.column(column), read.column(column))
        ]
        assert texts[0] == texts[1]
