"""Whatever the package imports is installed with it, or by the extra that errors name (`pyproject.toml`)."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from icefield._support.optional import _EXTRAS, package_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def names(requirements: list[str]) -> set[str]:
    """Names of the modules that requirements install."""
    modules = {
        "azure-identity": "azure.identity",
        "azure-keyvault-keys": "azure.keyvault.keys",
        "google-auth": "google.auth",
        "google-cloud-kms": "google.cloud.kms",
        "pyyaml": "yaml",
    }
    found = {re.split(r"[\[<>=;! ]", requirement)[0].lower() for requirement in requirements}
    return {modules.get(name, name) for name in found}


DEPENDENCIES = names(PROJECT["dependencies"])
EXTRAS = {extra: names(requirements) for extra, requirements in PROJECT["optional-dependencies"].items()}
#: Modules of another package's own requirements.
BROUGHT = {"pyspark": {"py4j"}}
#: In no extra: Ray, as there are platforms without it, where `icefield[all]` would not install, and what is only used
#: where it is installed, such as what the packages of Azure and Google stand on.
IN_NO_EXTRA = {"azure", "botocore", "google", "ray"}


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
    return ({package_of(name) for name in each} - known for each in (imported, required))


def undeclared(source: str, *, spark: bool = False) -> set[str]:
    """Packages that a module imports and nothing installs. One that is in an extra is imported by `require`."""
    imported, required = imports(source)
    declared = DEPENDENCIES | (EXTRAS["spark"] if spark else set())
    declared |= {brought for name in declared for brought in BROUGHT.get(name, ())}
    return (imported | required) - declared - (required & (_EXTRAS.keys() | IN_NO_EXTRA))


MODULES = sorted((ROOT / "python").rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT / "python").as_posix())
def test_whatever_a_module_imports_is_declared(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    spark = any("spark" in folder.name for folder in path.relative_to(ROOT / "python").parents)
    assert undeclared(source, spark=spark) == set()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import requests", {"requests"}),
        ("def f():\n    import polars", {"polars"}),
        ("def f():\n    require('polars')", set()),
        ("def f():\n    require('ray.data')", set()),
        ("def f():\n    import ray.data", {"ray"}),
        ("def f():\n    require('google.cloud.kms')", set()),
        ("import google.cloud.kms", {"google.cloud.kms"}),
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


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def package(folder: Path, name: str, kind: str = "lib", **others: object) -> dict[str, object]:
    manifest = folder / name / "Cargo.toml"
    manifest.parent.mkdir()
    described = {"license": "MIT", "license_file": None, "authors": [], "repository": None, "version": "1.0.0"}
    target = {"kind": [kind]}
    return {"id": name, "name": name, "source": "registry", "targets": [target], "manifest_path": str(manifest),
            **described, **others}  # fmt: skip


def test_licences_are_those_of_what_is_linked(tmp_path: Path) -> None:
    names = {"linked": "lib", "below": "lib", "macro": "proc-macro", "for-building": "lib", "unused": "lib"}
    packages = [package(tmp_path, "root", source=None)]
    packages += [package(tmp_path, name, kind, repository="r") for name, kind in names.items()]
    kinds = {"linked": None, "macro": None, "for-building": "build"}
    edges = {"root": kinds, "linked": {"below": None, "root": "dev"}}
    nodes = [
        {"id": name, "deps": [{"pkg": to, "dep_kinds": [{"kind": kind}]} for to, kind in edges.get(name, {}).items()]}
        for name in ["root", *names]
    ]
    licences = script("third_party_licences")
    found = licences.linked({"packages": packages, "resolve": {"nodes": nodes}}, "root")
    assert [each["name"] for each in found] == ["below", "linked"]
    with pytest.raises(SystemExit, match="below, linked"):
        licences.written(found)
    folder = tmp_path / "linked" / "vendored"
    folder.mkdir()
    (folder / "COPYING").write_text("Copyright of Somebody")
    (folder / "licence.rs").write_text("not this")
    text = licences.written(found)
    # What lacks a text has that of its repository.
    assert text.count("Copyright of Somebody") == 1
    assert re.search(r"^below 1\.0\.0, linked 1\.0\.0\n-+\n\nCopyright", text, re.MULTILINE)
    assert "not this" not in text


@pytest.mark.skipif(shutil.which("cargo") is None, reason="no cargo")
def test_every_linked_package_has_a_text() -> None:
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    done = subprocess.run([*command, "--offline"], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:  # what other platforms need may not be here yet
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        pytest.skip("the sources of other platforms cannot be downloaded")
    licences = script("third_party_licences")
    packages = licences.linked(json.loads(done.stdout), "icefield-python")
    text = licences.written(packages)
    assert len(packages) > 100
    for name in ("arrow-array", "parquet", "object_store", "zstd-sys", "pyo3"):
        assert re.search(rf"^{name} \d", text, re.MULTILINE), name
    assert not re.search(r"^(syn|icefield-format) \d", text, re.MULTILINE)


def test_links_of_the_package_index_are_absolute() -> None:
    text = script("absolute_links").absolute(
        "[a](docs/a.md#b) ![p](docs/p.svg) [s](#s) [w](https://x.org/y) `[not](this)`", "v1.0.0"
    )
    repository = "https://github.com/icefield/icefield/blob/v1.0.0"
    assert f"[a]({repository}/docs/a.md#b)" in text
    assert "![p](https://raw.githubusercontent.com/icefield/icefield/v1.0.0/docs/p.svg)" in text
    assert "[s](#s) [w](https://x.org/y)" in text
    readme = script("absolute_links").absolute((ROOT / "README.md").read_text(encoding="utf-8"), "v1.0.0")
    targets = re.findall(r"\]\(([^)\s]+)\)", readme)
    assert len(targets) > 10
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []


def test_what_runs_only_while_compiling_is_not_optimised() -> None:
    profile = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["profile"]["dev"]
    # "*" means macros and build scripts too, which took a fifth of all compiling.
    assert profile["package"]["*"].keys() == {"debug"}
    locked = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))["package"]
    # Cargo only warns of names that it does not know.
    assert profile["package"].keys() - {"*"} <= {package["name"] for package in locked}


def test_fuzz_targets_use_the_versions_of_dependencies_that_are_tested() -> None:
    def versions(lock: Path) -> set[tuple[str, str]]:
        packages = tomllib.loads(lock.read_text(encoding="utf-8"))["package"]
        return {(package["name"], package["version"]) for package in packages}

    here, fuzzed = versions(ROOT / "Cargo.lock"), versions(ROOT / "fuzz" / "Cargo.lock")
    known = {name for name, _ in here}
    assert sorted(package for package in fuzzed - here if package[0] in known) == []
