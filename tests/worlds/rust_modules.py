"""Which module of a crate stands on which, read off the `use` lines and paths of its sources.

A name that a module only passes on (`pub use part::Part`) counts for where it is declared: `crate::plan::Part` is an
arrow to `plan::part`. Code of tests draws no arrows.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

Module = tuple[str, ...]
Arrows = dict[Module, set[Module]]

SILENT = re.compile(
    r"""
    //[^\n]*                                  # comments
    | /\*.*?\*/
    | b?r(?P<hashes>\#*)".*?"(?P=hashes)      # texts
    | b?"(?:\\.|[^"\\])*"
    | b?'(?:\\.[^']*|[^'\\])'
    """,
    re.VERBOSE | re.DOTALL,
)
TEST_ITEM = re.compile(r"#\[cfg\((?:test|all\(test\b[^\]]*)\)?\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?")
USE = re.compile(r"(?:(?P<pub>pub)(?:\s*\([^)]*\))?\s+)?\buse\s+(?P<tree>[^;]+);")
NAMED_PATH = re.compile(r"(?<![\w:])(?:[a-z_]\w*)(?:::\w+)+")


@dataclass
class Source:
    """A module's code without its tests, and what its `use` lines bring in."""

    code: str
    #: Names in the module's scope that stand for something elsewhere in the crate: their paths.
    names: dict[str, Module] = field(default_factory=dict)
    #: Modules whose names are all in scope.
    globs: set[Module] = field(default_factory=set)
    #: Names that are used and not passed on alone.
    used: set[str] = field(default_factory=set)


def without_tests(text: str) -> str:
    """Blank out comments, texts, and items for tests alone."""
    text = SILENT.sub(" ", text)
    while found := TEST_ITEM.search(text):
        text = text[: found.start()] + text[end_of_item(text, found.end()) :]
    return text


def end_of_item(text: str, start: int) -> int:
    """Find where an item ends: at its semicolon, or at the brace that closes it."""
    depth = 0
    for at in range(start, len(text)):
        if text[at] in "{([":
            depth += 1
        elif text[at] in "})]":
            depth -= 1
            if depth == 0 and text[at] == "}" and not text.startswith("use ", start):
                return at + 1
        elif text[at] == ";" and depth == 0:
            return at + 1
    return len(text)


def leaves_of_tree(tree: str) -> Iterator[tuple[Module, str]]:
    """Paths of a `use` tree, each with the name that it has afterwards."""
    tree = tree.strip()
    brace = tree.find("{")
    if brace < 0:
        path, _, name = tree.partition(" as ")
        segments = tuple(part.strip() for part in path.split("::"))
        yield segments, name.strip() or segments[-1]
        return
    head = tuple(part for part in tree[:brace].strip().split("::") if part)
    depth, item = 0, ""
    for char in tree[brace + 1 : tree.rindex("}")] + ",":
        depth += (char == "{") - (char == "}")
        if char == "," and depth == 0:
            if item.strip():
                for path, name in leaves_of_tree(item):
                    is_self = path == ("self",)
                    yield (head, head[-1] if name == "self" else name) if is_self else (head + path, name)
            item = ""
        else:
            item += char


class Crate:
    """The modules of one crate."""

    def __init__(self, source: Path) -> None:
        texts: dict[Module, str] = {}
        for path in source.rglob("*.rs"):
            parts = path.relative_to(source).with_suffix("").parts
            texts[() if parts == ("lib",) else parts[:-1] if parts[-1] == "mod" else parts] = path.read_text()
        self.modules: dict[Module, Source] = {}
        self._add(texts, ())
        for module, text in texts.items():
            if module in self.modules:
                self._read_uses(module, without_tests(text))

    def _add(self, texts: dict[Module, str], module: Module) -> None:
        """Add a module and those that it declares outside its tests."""
        code = without_tests(texts[module])
        self.modules[module] = Source(code)
        for name in re.findall(r"\bmod\s+(\w+)\s*;", code):
            if (*module, name) in texts:
                self._add(texts, (*module, name))

    def _read_uses(self, module: Module, code: str) -> None:
        source = self.modules[module]
        rest = re.sub(r"\bmod\s+\w+\s*;", " ", USE.sub(" ", code))
        for use in USE.finditer(code):
            for path, name in leaves_of_tree(use["tree"]):
                whole = self.absolute(module, path)
                if whole is None:
                    continue
                if name == "*":
                    source.globs.add(whole[:-1])
                    continue
                source.names[name] = whole
                if not use["pub"] or re.search(rf"\b{name}\b", rest):
                    source.used.add(name)
        source.code = rest

    def absolute(self, module: Module, path: Module) -> Module | None:
        """Make a path begin at the crate; None for one that leads out of it."""
        head, *rest = path
        if head == "crate":
            return tuple(rest)
        if head == "self":
            return (*module, *rest)
        if head == "super":
            above = module[:-1]
            while rest and rest[0] == "super":
                above, rest = above[:-1], rest[1:]
            return (*above, *rest)
        if (*module, head) in self.modules:
            return (*module, *path)
        if head in self.modules[module].names:
            return (*self.modules[module].names[head], *rest)
        return None

    def declared_in(self, path: Module, seen: frozenset[Module] = frozenset()) -> Module | None:
        """Find the module that declares what a path names; None where the path names a module and nothing in it."""
        module = path
        while module not in self.modules:
            module = module[:-1]
        rest = path[len(module) :]
        if not rest or path in seen:
            return None if not rest else module
        source = self.modules[module]
        if rest[0] in source.names:
            passed_on = (*source.names[rest[0]], *rest[1:])
            if passed_on in self.modules:
                return None
            return self.declared_in(passed_on, seen | {path})
        declaration = re.compile(rf"\b(?:struct|enum|trait|fn|type|const|static|macro_rules!)\s+{rest[0]}\b")
        for glob in sorted(source.globs):
            if glob in self.modules and declaration.search(self.modules[glob].code):
                return glob
        return module

    def arrows(self) -> Arrows:
        """What each module stands on."""
        found: Arrows = {}
        for module, source in self.modules.items():
            paths = [source.names[name] for name in source.used]
            for text in NAMED_PATH.findall(source.code):
                path = self.absolute(module, tuple(text.split("::")))
                if path is not None:
                    paths.append(path)
            below = {self.declared_in(path) for path in paths} | source.globs
            found[module] = {item for item in below if item is not None and item != module}
        return found


def grouped(arrows: Arrows, depth: int) -> Arrows:
    """Arrows between the modules of one depth, each with all that lies within it; modules above do not count."""
    found: Arrows = defaultdict(set)
    for module, belows in arrows.items():
        for below in belows:
            if len(module) >= depth and len(below) >= depth and module[:depth] != below[:depth]:
                found[module[:depth]].add(below[:depth])
    return dict(found)


def circles(arrows: Arrows) -> list[list[Module]]:
    """Return the sets of modules that stand on each other, by whatever way (Tarjan's strongly connected components)."""
    order: dict[Module, int] = {}
    lowest: dict[Module, int] = {}
    stack: list[Module] = []
    found = []

    def visit(module: Module) -> None:
        order[module] = lowest[module] = len(order)
        stack.append(module)
        for below in arrows.get(module, ()):
            if below not in order:
                visit(below)
            if below in stack:
                lowest[module] = min(lowest[module], lowest[below])
        if lowest[module] == order[module]:
            circle = [stack.pop()]
            while circle[-1] != module:
                circle.append(stack.pop())
            if len(circle) > 1:
                found.append(sorted(circle))

    for module in sorted(arrows):
        if module not in order:
            visit(module)
    return found


def shown(modules: Iterable[Module]) -> list[str]:
    return ["::".join(module) or "lib" for module in modules]
