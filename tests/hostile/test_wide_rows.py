"""Tables of very many columns: a row of one is written and changed in little memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).with_name("wide_rows.py")
MIB = 1 << 20


def taken(kind: str, columns: int, *verbs: str) -> dict[str, Any]:
    """Change a table in a process of its own."""
    command = [sys.executable, str(SCRIPT), kind, str(columns), *verbs]
    answer: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return answer


@pytest.mark.parametrize("kind", ["parquet", "orc", "avro"])
def test_a_row_of_15000_columns_is_appended_within_a_gibibyte(kind: str) -> None:
    answer = taken(kind, 15_000, "append")
    assert answer["taken"]["append"]["peak"] < 1024 * MIB, answer
    assert answer["rows"] == [{"id": 1, "column_1": "1", "column_14998": "14998"}]


def test_rows_of_many_columns_are_changed_as_those_of_few_are() -> None:
    """Beyond 1,000 columns of Parquet, rows wait for the end of their row group."""
    wide = taken("parquet", 1_100, "append", "update", "upsert", "merge", "overwrite", "delete")
    assert [row["id"] for row in wide["rows"]] == [1, 4, 5]
    assert {(row["column_1"], row["column_1098"]) for row in wide["rows"]} == {("1", 1098)}
