"""The pages of the reference, an entry for each public name: a hook of MkDocs (`mkdocs.yml`).

A name is documented once, where its path is shortest below ``icefield``; the first page lists what ``icefield`` has.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import icefield

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

#: Packages whose modules are for themselves: what they have for users is in the package, or in a module below.
PACKAGES = (
    "icefield.catalog",
    "icefield.cli",
    "icefield.distributed",
    "icefield.encryption",
    "icefield.maintenance",
    "icefield.orc",
    "icefield.procedures",
    "icefield.scan",
    "icefield.spark",
    "icefield.table",
    "icefield.view",
)
#: Of their modules those that users import, or whose classes their calls return.
PUBLIC = {
    "icefield.catalog.memory",
    "icefield.catalog.pointer",
    "icefield.catalog.rest",
    "icefield.catalog.sql",
    "icefield.spark.functions",
    "icefield.spark.sql",
    "icefield.table.branches",
    "icefield.table.description.history",
    "icefield.table.description.listings",
    "icefield.table.locations",
    "icefield.table.maintenance",
    "icefield.table.maintenance.checks",
    "icefield.table.maintenance.compacting",
    "icefield.table.maintenance.copies",
    "icefield.table.maintenance.diagnosis",
    "icefield.table.maintenance.exports",
    "icefield.table.maintenance.orphans",
    "icefield.table.maintenance.repairs",
    "icefield.table.rows.merging",
    "icefield.table.rows.upsert_stream",
    "icefield.table.update",
    "icefield.table.update.outcomes",
}
#: Modules that exist because PyIceberg's users import from them. A name that has another address is documented there.
OF_PYICEBERG = {
    "icefield.exceptions",
    "icefield.expressions.literals",
    "icefield.expressions.parser",
    "icefield.expressions.visitors",
    "icefield.table.inspect",
    "icefield.table.metadata",
    "icefield.table.name_mapping",
    "icefield.table.refs",
    "icefield.table.snapshots",
    "icefield.table.sorting",
    "icefield.table.statistics",
}
#: Names of other modules that exist because PyIceberg's users import them: `Schema` has methods for the same.
NAMES_OF_PYICEBERG = {
    "icefield.schema.PreOrderSchemaVisitor",
    "icefield.schema.SchemaVisitor",
    "icefield.schema.SchemaVisitorPerPrimitiveType",
    "icefield.schema.index_by_id",
    "icefield.schema.index_by_name",
    "icefield.schema.index_name_by_id",
    "icefield.schema.pre_order_visit",
    "icefield.schema.prune_columns",
    "icefield.schema.visit",
}
#: How deep the modules are that have a page of their own.
DEPTH = 2


class Entry(NamedTuple):
    """A public name and what it stands for."""

    module: str
    name: str
    value: object

    @property
    def path(self) -> str:
        """Return the full name."""
        return f"{self.module}.{self.name}"


def modules() -> list[str]:
    """Return the names of all public modules."""
    found = ["icefield"]
    for module in pkgutil.walk_packages(icefield.__path__, "icefield."):
        within = any(module.name.startswith(f"{package}.") for package in PACKAGES)
        public = module.name in PUBLIC | OF_PYICEBERG if within else module.name != "icefield.cli"
        if public and "._" not in module.name:
            found.append(module.name)
    return found


def names() -> Iterator[Entry]:
    """Return all public names of all public modules."""
    for module in modules():
        loaded = importlib.import_module(module)
        for name in getattr(loaded, "__all__", ()):
            entry = Entry(module, name, getattr(loaded, name))
            if not inspect.ismodule(entry.value) and not name.startswith("_"):
                yield entry


@cache
def entries() -> list[Entry]:
    """Return each public object once, under its shortest path."""
    best: dict[object, Entry] = {}
    for entry in names():
        # Values that are equal, such as two type aliases, are not the same.
        key = id(entry.value) if callable(entry.value) else entry.path
        if key not in best or _rank(entry) < _rank(best[key]):
            best[key] = entry
    return sorted(best.values(), key=lambda entry: (entry.module, entry.name))


def _rank(entry: Entry) -> tuple[bool, bool, int, bool, bool, str]:
    parts = entry.module.count(".")
    own_module = getattr(entry.value, "__module__", None) == entry.module
    own_name = getattr(entry.value, "__name__", None) == entry.name
    return entry.module in OF_PYICEBERG, parts == 0, parts, not own_module, not own_name, entry.path


def aliases() -> list[Entry]:
    """Return the other names that modules have for what they document, such as ``IcebergType`` for ``Type``."""
    homes = {id(entry.value): entry for entry in entries() if callable(entry.value)}
    found = [(entry, homes.get(id(entry.value))) for entry in names()]
    return [entry for entry, home in found if home and home.module == entry.module and home.name != entry.name]


def pages() -> dict[str, str]:
    """Return the Markdown of each page by the module that it is about."""
    found: dict[str, list[Entry]] = {}
    for entry in [*entries(), *aliases()]:
        page = ".".join(entry.module.split(".")[:DEPTH])
        if entry.module.startswith("icefield.table.update"):
            page = "icefield.table.update"
        found.setdefault(page, []).append(entry)
    return {module: _page(module, found[module]) for module in sorted(found)}


def _page(module: str, listed: list[Entry]) -> str:
    lines = [f"# `{module}`", "", f"::: {module}", "    options: {members: false, show_root_heading: false}", ""]
    if module == "icefield":
        homes = {id(entry.value): entry.path for entry in entries() if callable(entry.value)}
        lines += ["The package has these names of its modules, and the modules themselves:", ""]
        for name in icefield.__all__:
            value = getattr(icefield, name)
            home = value.__name__ if inspect.ismodule(value) else homes.get(id(value), "")
            if home.count(".") > 0 and home != f"icefield.{name}":
                lines.append(f"- `icefield.{name}`: [{home}][]")
            elif inspect.ismodule(value):
                lines.append(f"- [{home}][]")
        lines.append("")
    # What the module is named after comes first.
    first = module.rpartition(".")[2].replace("_", "").lower()
    for entry in sorted(listed, key=lambda entry: (entry.module, entry.name.lower() != first, entry.path)):
        lines += [f"::: {entry.path}", *_options(entry.value), ""]
    return "\n".join(lines)


def _options(value: object) -> list[str]:
    """Show what a class inherits, but not again what a class with an entry of its own has: it is named instead."""
    if not inspect.isclass(value) or not _documented_bases(value):
        return []
    inherited = sorted(set(members(value)) - vars(value).keys())
    return ["    options:", f"      inherited_members: {inherited or 'false'}", "      show_bases: true"]


def _documented_bases(value: type) -> set[type]:
    homes = {entry.value for entry in entries() if inspect.isclass(entry.value)}
    return {base for base in value.__mro__[1:] if base in homes}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the pages to the navigation."""
    listed: list[Any] = ["reference/index.md", *({module: f"reference/{module}.md"} for module in pages())]
    config.nav = [*(config.nav or ()), {"Reference": listed}]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    from mkdocs.structure.files import File

    made = pages()
    for module, text in made.items():
        files.append(File.generated(config, f"reference/{module}.md", content=text))
    index = ["# Reference", "", "Every public name, by the module that has it.", ""]
    index += ["| module | what it has |", "| --- | --- |"]
    for module in made:
        about = (importlib.import_module(module).__doc__ or "").split("\n", 1)[0]
        index.append(f"| [`{module}`]({module}.md) | {_markdown(about)} |")
    files.append(File.generated(config, "reference/index.md", content="\n".join(index) + "\n"))
    return files


def _markdown(text: str) -> str:
    return re.sub(r"``(.+?)``", r"`\1`", text).replace("|", "\\|")


def members(value: object) -> list[str]:
    """Return the public names of a class, and of those that it inherits from which have no entry."""
    if not inspect.isclass(value):
        return []
    elsewhere = _documented_bases(value)
    own = [owner for owner in value.__mro__ if owner.__module__.startswith("icefield") and owner not in elsewhere]
    return sorted({name for owner in own for name in vars(owner) if not name.startswith("_")})


def on_post_build(config: MkDocsConfig) -> None:
    """Refuse a site that lacks a public name or a member of one."""
    from mkdocs.exceptions import PluginError

    site = Path(config.site_dir, "reference")
    ids = {found for page in site.rglob("*.html") for found in re.findall(r'\bid="([^"]+)"', page.read_text("utf-8"))}
    wanted: list[str] = []
    for entry in entries():
        wanted += [entry.path, *(f"{entry.path}.{member}" for member in members(entry.value))]
    wanted += [entry.path for entry in aliases()]
    if missing := [name for name in wanted if name not in ids]:
        raise PluginError(f"{len(missing)} of {len(wanted)} public names have no entry: {', '.join(missing)}")


def documented() -> dict[str, Any]:
    """Return what each path of an entry stands for."""
    return {entry.path: entry.value for entry in entries()}
