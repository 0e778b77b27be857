"""Catalogs of other packages: by entry points, and by the name of a class."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

import icefield as ice
from icefield.catalog import registry
from icefield.catalog.memory import InMemoryCatalog
from icefield.errors import InvalidArgumentError, NotInstalledError, UnsupportedFeatureError


class Ours(InMemoryCatalog):
    """A catalog as another package may have it, with a property of its own."""


@pytest.fixture
def package(monkeypatch):
    module = ModuleType("somebody")
    module.Ours = Ours
    module.Other = dict
    monkeypatch.setitem(sys.modules, "somebody", module)


@pytest.fixture
def installed(package, tmp_path, monkeypatch):
    """Install a package with an entry point."""
    folder = tmp_path / "somebody-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: somebody\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(
        f"[{registry.GROUP}]\nSomebody = somebody:Ours\nother = somebody:Other\nsql = somebody:Ours\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.parametrize("kind", ["somebody", "SOMEBODY"])
def test_a_kind_that_a_package_brings(installed, kind):
    with ice.load_catalog("c", type=kind, **{"its-own": "property"}) as catalog:
        assert type(catalog) is Ours
        assert (catalog.name, catalog.properties["its-own"]) == ("c", "property")


def test_our_own_kinds_stay_ours(installed, tmp_path):
    with ice.load_catalog("c", type="sql", uri=f"sqlite:///{tmp_path}/c.db") as catalog:
        assert type(catalog) is not Ours
    assert registry.kinds()[-5:] == ["in-memory", "rest", "sql", "other", "somebody"]


def test_a_class_by_its_name(package):
    with ice.load_catalog("c", **{"py-catalog-impl": "somebody.Ours", "its-own": "property"}) as catalog:
        assert type(catalog) is Ours
        catalog.create_namespace("a")
        assert catalog.list_namespaces() == [("a",)]


@pytest.mark.parametrize(
    ("properties", "error", "message"),
    [
        (
            {"type": "other"},
            InvalidArgumentError,
            "type 'other': .* is not a subclass of icefield",
        ),
        ({"type": "nobody"}, UnsupportedFeatureError, "supported types: .*in-memory, rest, sql, other, somebody"),
        ({"py-catalog-impl": "somebody.Other"}, InvalidArgumentError, "is not a subclass"),
        ({"py-catalog-impl": "somebody.Missing"}, InvalidArgumentError, "no attribute 'Missing'"),
        ({"py-catalog-impl": "nobody.Missing"}, NotInstalledError, "No module named 'nobody'"),
        ({"py-catalog-impl": "Missing"}, InvalidArgumentError, "expected the full name of a class"),
        ({"py-catalog-impl": ""}, InvalidArgumentError, "expected the full name of a class"),
        ({"py-catalog-impl": "somebody.Ours", "type": "sql"}, InvalidArgumentError, "not both"),
    ],
)
def test_what_is_no_catalog(installed, properties, error, message):
    with pytest.raises(error, match=message):
        ice.load_catalog("c", **properties)
