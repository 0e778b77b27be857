"""``import icefield`` loads next to nothing; what is used is loaded then."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

import icefield as ice


def _after(code: str) -> set[str]:
    """Return the modules that a new process has loaded after some code."""
    command = [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"]
    return set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())


def test_the_import_loads_neither_the_core_nor_a_library() -> None:
    loaded = _after("import icefield")
    assert "icefield" in loaded
    assert (
        not {"icefield._core", "icefield.table", "logging", "dataclasses", "pyarrow", "sqlalchemy", "httpx", "boto3"}
        & loaded
    )


def test_a_name_loads_its_module_and_no_library() -> None:
    loaded = _after("import icefield; icefield.load_catalog, icefield.Table, icefield.errors")
    assert {"icefield._core", "icefield.table"} <= loaded
    assert not {"pyarrow", "pyspark", "sqlalchemy", "yaml", "click", "rich", "httpx", "boto3"} & loaded


@pytest.mark.parametrize("name", [name for name in ice.__all__ if name != "__version__"])
def test_every_name_is_there_and_is_that_of_its_module(name: str) -> None:
    found = getattr(ice, name)
    home = getattr(found, "__module__", None) or found.__name__
    assert home.split(".")[0] == "icefield"
    assert getattr(ice, name) is found
    assert found is (import_module(home) if home == f"icefield.{name}" else getattr(import_module(home), name))


def test_modules_are_attributes_without_an_import_of_their_own() -> None:
    _after("import icefield; icefield.table.Table, icefield.scan.TableScan, icefield.metadata.Snapshot")


def test_an_unknown_name_is_an_attribute_error_that_names_it() -> None:
    with pytest.raises(AttributeError, match="module 'icefield' has no attribute 'tabel'"):
        ice.tabel  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'tabel'"):
        exec("from icefield import tabel")
