"""Whatever the package imports is installed with it, or by the extra that errors name (`pyproject.toml`)."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

from icefield._optional import _EXTRAS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def names(requirements: list[str]) -> set[str]:
    """Names of the modules that requirements install."""
    modules = {"pyyaml": "yaml"}
    found = {re.split(r"[\[<>=;! ]", requirement)[0].lower() for requirement in requirements}
    return {modules.get(name, name) for name in found}


DEPENDENCIES = names(PROJECT["dependencies"])
EXTRAS = {extra: names(requirements) for extra, requirements in PROJECT["optional-dependencies"].items()}
#: Modules of another package's own requirements.
BROUGHT = {"pyspark": {"py4j"}}


def imports(source: str) -> tuple[set[str], set[str]]:
    """Packages of others that a module imports as it runs, and those that it imports by `require`."""
    tree = ast.parse(source)
    guards = [node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)]
    never = {id(node) for guard in guards for statement in guard.body for node in ast.walk(statement)}
    imported, required = set(), set()
    for node in ast.walk(tree):
        if id(node) in never:
            continue
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(str(node.module))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "require":
            required |= {str(argument.value) for argument in node.args if isinstance(argument, ast.Constant)}
    known = {*sys.stdlib_module_names, "icefield", "pyspark_icefield"}
    return ({name.partition(".")[0] for name in each} - known for each in (imported, required))


def undeclared(source: str, *, spark: bool = False) -> set[str]:
    """Packages that a module imports and nothing installs. One that is in an extra is imported by `require`."""
    imported, required = imports(source)
    declared = DEPENDENCIES | (EXTRAS["spark"] if spark else set())
    declared |= {brought for name in declared for brought in BROUGHT.get(name, ())}
    return {name for name in imported | required if name not in declared and not (name in required and name in _EXTRAS)}


MODULES = sorted((ROOT / "python").rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT / "python").as_posix())
def test_whatever_a_module_imports_is_declared(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert undeclared(source, spark="spark" in path.parent.name or path.parent.name == "pyspark_icefield") == set()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import requests", {"requests"}),
        ("def f():\n    import polars", {"polars"}),
        ("def f():\n    require('polars')", set()),
        ("def f():\n    return require('requests').get", {"requests"}),
        ("import pyarrow as pa\nfrom yaml import safe_load", set()),
        ("if TYPE_CHECKING:\n    import polars\nelse:\n    import pandas", {"pandas"}),
    ],
)
def test_undeclared_packages_are_found(source: str, expected: set[str]) -> None:
    assert undeclared(source) == expected


def test_errors_name_the_extra_that_installs_the_package() -> None:
    assert {package: extra for package, extra in _EXTRAS.items() if package not in EXTRAS[extra]} == {}
    assert not DEPENDENCIES & _EXTRAS.keys()


def test_all_names_every_other_extra() -> None:
    [listed] = PROJECT["optional-dependencies"]["all"]
    found = re.fullmatch(r"icefield\[(.+)\]", listed)
    assert found is not None
    assert sorted([*found[1].split(","), "all"]) == sorted(EXTRAS)
