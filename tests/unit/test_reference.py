"""Every public name has an entry in the reference, with a text; `make docs` looks for each in its pages."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import is_typeddict

import pytest

from icefield import _core

pytest.importorskip("pyspark")  # names of `icefield.spark` are among them

ROOT = Path(__file__).parents[2]
STUB = ast.parse((ROOT / "python" / "icefield" / "_core.pyi").read_text())

#: Compiled classes that no public function takes or returns: the package stands on them.
INTERNAL = {
    "ArrowArray", "ArrowSchema", "ArrowTable", "FoundRows", "Inspect", "KeyedBatch", "MicroBatches", "OrcBatches",
    "OrcFile", "OrcWriter", "Plan", "Progress", "RowChanges", "Scan", "SchemaChange", "SpecChange", "TableState",
    "Transaction",
}  # fmt: skip


def loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


REFERENCE = loaded()
ENTRIES = REFERENCE.documented()


def test_every_public_name_is_documented_once() -> None:
    named = {id(entry.value) for entry in REFERENCE.names() if callable(entry.value)}
    values = [id(value) for value in ENTRIES.values() if callable(value)]
    assert len(values) == len(set(values))
    assert set(values) == named
    pages = "\n".join(REFERENCE.pages().values())
    assert set(re.findall(r"^::: (\S+)$", pages, re.MULTILINE)) >= set(ENTRIES)
    assert {"icefield.table.Table", "icefield.schema.Schema", "icefield.catalog.load_catalog"} <= set(ENTRIES)


def test_every_compiled_class_of_users_is_documented() -> None:
    classes = {node.name for node in STUB.body if isinstance(node, ast.ClassDef)}
    values = {value.__name__ for value in ENTRIES.values() if inspect.isclass(value)}
    at_run_time = {name for name in classes if hasattr(_core, name) and not is_typeddict(getattr(_core, name))}
    assert at_run_time - values - INTERNAL == set()


def test_every_entry_has_a_text() -> None:
    """Types that stand for others, and numbers, have none at run time."""
    values = {path: value for path, value in ENTRIES.items() if inspect.isclass(value) or inspect.isroutine(value)}
    assert len(values) > 100
    missing = [path for path, value in values.items() if not inspect.getdoc(value)]
    for path, value in values.items():
        for name in REFERENCE.members(value):
            member = inspect.getattr_static(value, name)
            described = isinstance(member, property | classmethod | staticmethod) or inspect.isroutine(member)
            if described and not inspect.getdoc(getattr(value, name, member)):
                missing.append(f"{path}.{name}")
    assert missing == []
