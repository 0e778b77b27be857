"""Every public name has an entry in the reference, with a text; `make docs` looks for each in its pages."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import pkgutil
import re
import runpy
from pathlib import Path
from types import ModuleType
from typing import is_typeddict

import pytest

import icefield
from icefield import _core

pytest.importorskip("pyspark")  # names of `icefield.spark` are among them

ROOT = Path(__file__).parents[2]
STUB = ast.parse((ROOT / "python" / "icefield" / "_core.pyi").read_text())

#: Compiled classes that the package stands on; users meet none of them.
INTERNAL = {
    "ArrowArray", "ArrowSchema", "ArrowTable", "FolderTable", "FoundRows", "Inspect", "JoinCondition", "KeyedBatch",
    "RowDiff",
    "MicroBatches", "OrcBatches", "OrcFile", "OrcWriter", "Plan", "Progress", "RowChanges", "Scan", "SchemaChange",
    "SpecChange", "TableState", "Traffic", "Transaction",
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


def classes_of_the_package() -> dict[str, type]:
    """Classes by their names, wherever they are."""
    modules = [module.name for module in pkgutil.walk_packages(icefield.__path__, "icefield.")]
    loaded = [importlib.import_module(name) for name in modules if not name.endswith("__main__")]
    values = [value for module in loaded for value in vars(module).values() if inspect.isclass(value)]
    return {value.__name__: value for value in values if value.__module__.startswith("icefield")}


def test_what_documented_calls_return_is_documented() -> None:
    classes = classes_of_the_package()
    known = {value.__name__ for value in ENTRIES.values() if inspect.isclass(value)} | INTERNAL
    known |= {"TableCatalog", "Column"}  # the base of catalogs, and PySpark's class, which has a namesake here
    missing = set()
    for path, value in ENTRIES.items():
        found = [inspect.getattr_static(value, name) for name in REFERENCE.members(value)]
        for member in [value, *found]:
            function = getattr(getattr(member, "__func__", member), "fget", None) or getattr(member, "__func__", member)
            returned = str(getattr(function, "__annotations__", {}).get("return"))
            names = {name for name in re.findall(r"[A-Za-z_]\w*", returned) if name in classes}
            missing |= {(path, name) for name in names - known if not name.startswith("_")}
    assert missing == set()


def test_public_classes_name_public_modules() -> None:
    """Pickles, tracebacks and pages name the module of a class."""
    classes = {path: value.__module__ for path, value in ENTRIES.items() if inspect.isclass(value)}
    assert {path: module for path, module in classes.items() if "._" in module} == {}


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


def test_the_public_names_are_those_that_are_listed() -> None:
    """A change of them is seen in a review: ``make public-api`` writes the list."""
    script = runpy.run_path(str(ROOT / ".ci" / "public_names.py"))
    listed = (ROOT / "tests" / "unit" / "public_api.txt").read_text().splitlines()
    assert script["outline"]().splitlines() == listed
    assert {"icefield.table", "  load_catalog(name=None, **properties)"} <= set(listed)
    assert [line for line in listed if re.search(r" at 0x|<|\(self", line)] == []


def test_names_for_the_users_of_pyiceberg_are_names_of_pyiceberg() -> None:
    """Other names have one address, and a short one in ``icefield`` if they are used often."""
    listed = (ROOT / "tests" / "unit" / "public_api.txt").read_text()
    addresses = [line.split()[0] for line in listed.partition("\nother addresses\n")[2].splitlines()]
    longer = [address.removeprefix("icefield.").rpartition(".")[::2] for address in addresses]
    # Of our own module for ORC, the short name of a class.
    theirs = [(module, name) for module, name in longer if module and (module, name) != ("orc", "Writer")]
    for module, names in re.findall(r"^icefield\.(\S+), for PyIceberg's users\n((?:  .+\n)+)", listed, re.MULTILINE):
        theirs += [(module, name) for name in re.findall(r"^  (?:class )?(\w+)", names, re.MULTILINE)]
    assert len(theirs) > 80
    unknown = [path for path in theirs if not hasattr(importlib.import_module(f"pyiceberg.{path[0]}"), path[1])]
    assert unknown == []
