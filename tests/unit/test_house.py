"""The house itself: arrows between the rooms run one way, rooms are no larger than one sees into, data stay small."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from worlds.rust_modules import Crate, circles, grouped, shown, without_tests

ROOT = Path(__file__).parents[2]
MOST_LINES = 600
#: Files of a folder of a crate, of the Python package or of helpers of tests.
MOST_FILES = 14
#: Phrases that readers had to look at twice, in Python.
NOT_PLAIN = re.compile(
    r"\b(told|tells of|apart|anew|whoever|at the most|in the place of|in silence|takes? away|of ours|given out)\b"
    r'|"""(Give|Say|Tell) |\bgive (a|an|the|one) |is no (text|number|whole)|\bno whole number'
)
#: The same in documents, which have more readers, and in the comments of Rust.
NOT_PLAIN_PROSE = re.compile(
    r"\b(told|tells (of|how)|anew|whoever|nobody|at the (most|least)|in the place of|in silence|takes? away|of ours"
    r"|given out|is none|so many|of which|whatever is no|one door|the border|lies? in the clear|inside of)\b"
    r"|^(///|//!)? *Whatever is"
)
#: Rust whose comments are free of them.
PLAIN_RUST = [
    "crates/format/src",
    "crates/format/tests",
    "crates/orc/src",
    "crates/orc/tests",
    "crates/python/src",
    "crates/table/src",
    "crates/table/tests",
]
#: Of a thousand lines of Python.
MOST_ANY = 7
MOST_BYTES = 1_000_000
MOST_DATA = 25_000_000

#: What a crate may stand on, of our own crates.
ARROWS = {
    "icefield-format": set(),
    "icefield-orc": set(),
    "icefield-table": {"icefield-format", "icefield-orc"},
    "icefield-python": {"icefield-format", "icefield-orc", "icefield-table"},
}

#: What everything in a crate may stand on, and what stands on nothing else of it.
GROUND = {
    "format": {"error", "json", "limits", "nearest", "primitive", "secret", "version"},
    "orc": {"calendar", "error", "limits", "pool", "proto", "utf8", "zone"},
    "table": {"clock", "error", "interrupt", "limits", "memory", "orc_pool", "runtime", "spill"},
    "python": {"callback", "entry", "errors", "held", "logging"},
}

#: What a room of a crate may stand on, of its rooms. A room that is missing here stands on the ground alone.
ROOMS = {
    "format": {
        "types": {"value"},
        "transform": {"types", "value"},
        "spec": {"transform", "types", "value"},
        "evolution": {"spec", "transform", "types", "value"},
        "expr": {"spec", "transform", "types", "value"},
        "avro": {"types"},
        "puffin": {"types"},
        "manifest": {"avro", "encryption", "spec", "types", "value"},
        "metadata": {"evolution", "spec", "transform", "types"},
        "rest": {"manifest", "metadata", "spec", "types", "value"},
        "encryption": {"avro", "metadata"},
    },
    "orc": {
        "tail": {"compress", "encrypt", "origin", "source", "types"},
        "stream": {"compress", "tail"},
        "stripe": {"tail", "types"},
        "rle": {"stream"},
        "column": {"rle", "stream", "types"},
        "predicate": {"column", "origin", "tail", "types"},
        "mask": {"predicate", "types"},
        "read": {"column", "compress", "encrypt", "origin", "predicate", "source", "stream", "stripe", "tail", "types"},
        "write": {
            "column", "compress", "encrypt", "mask", "origin", "predicate", "read", "rle", "source", "tail", "types"
        },
        "evolve": {"column", "predicate", "read", "types"},
        "inspect": {"compress", "predicate", "read", "rle", "source", "stream", "stripe", "tail", "types"},
    },
    "table": {
        "stream": {"arrow"},
        "transform": {"arrow"},
        "snapshot": {"storage"},
        "file": {"arrow", "storage", "stream"},
        "plan": {"arrow", "snapshot", "storage"},
        "read": {"arrow", "file", "plan", "storage", "stream"},
        "write": {"arrow", "file", "storage"},
        "commit": {"plan", "snapshot", "storage", "write"},
        "operation": {"arrow", "commit", "file", "plan", "read", "snapshot", "storage", "stream", "write"},
        "table": {"commit", "operation", "plan", "read", "snapshot", "storage", "stream", "write"},
        "maintain": {
            "arrow", "commit", "file", "inspect", "operation", "plan", "read", "snapshot", "storage", "stream", "table",
            "write",
        },
        "inspect": {"arrow", "file", "plan", "read", "snapshot", "storage", "stream"},
    },
    "python": {
        "format": {"arguments", "capsule"},
        "table": {"arguments", "capsule", "format", "storage"},
        "orc": {"arguments", "capsule", "format", "storage"},
    },
}  # fmt: skip

#: What does I/O, runs threads or knows Python: none of it enters the cores.
NOT_IN_CORES = {"arrow-cast", "futures", "object_store", "parquet", "pyo3", "rayon", "reqwest", "tokio"}


def tracked(*suffixes: str) -> list[Path]:
    """List the files of the repository, where it is one."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    paths = [ROOT / name for name in listing.stdout.split("\0") if name.endswith(suffixes)]
    return [path for path in paths if path.is_file()]


def test_crates_depend_downwards_and_the_cores_do_no_io() -> None:
    if shutil.which("cargo") is None:
        pytest.skip("no cargo")
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1", "--offline"]
    packages = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)["packages"]
    found = {
        package["name"]: {item["name"] for item in package["dependencies"] if item["kind"] is None}
        for package in packages
    }
    assert set(found) == set(ARROWS)
    for name, dependencies in found.items():
        assert dependencies & set(ARROWS) == ARROWS[name], name
    for core in ("icefield-format", "icefield-orc"):
        assert not found[core] & NOT_IN_CORES, core


def crate_of(name: str) -> Crate:
    return Crate(ROOT / "crates" / name / "src")


@pytest.mark.parametrize("name", list(ROOMS))
def test_rooms_of_a_crate_stand_on_those_below(name: str) -> None:
    ground, rooms = GROUND[name], ROOMS[name]
    found = grouped(crate_of(name).arrows(), 1)
    between = {room: {item for (item,) in below} for (room,), below in found.items()}
    wrong = {room: below - rooms.get(room, set()) - ground for room, below in between.items() if room not in ground}
    assert {room: below for room, below in wrong.items() if below} == {}
    assert {room: below - ground for room, below in between.items() if room in ground and below - ground} == {}
    allowed = {(room,): {(item,) for item in below} for room, below in rooms.items()}
    assert circles(allowed) == []


@pytest.mark.parametrize("name", list(ROOMS))
def test_no_modules_stand_on_each_other(name: str) -> None:
    """Neither files, nor folders with all that is in them, by whatever way round."""
    arrows = crate_of(name).arrows()
    found = circles(arrows)
    for depth in range(1, max(map(len, arrows)) + 1):
        found += circles(grouped(arrows, depth))
    assert [shown(circle) for circle in found] == []


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"lib": "mod a; mod b;", "a": "use crate::b::B;", "b": "pub struct B;"}, []),
        ({"lib": "mod a; mod b;", "a": "use crate::b::B;", "b": "fn f() { crate::a::g() }"}, [["a", "b"]]),
        (
            {"lib": "mod a; mod b; mod c;", "a": "use crate::{b::{B, D}};", "b": "use super::c;\nfn f() { c::g() }",
             "c": "use crate::a;\nfn g(x: a::A) {}"},
            [["a", "b", "c"]],
        ),
        # What a module passes on is no arrow of its own, and an arrow to it goes to where the name is declared.
        (
            {"lib": "mod a;", "a/mod": "mod b; mod c; pub use b::B; pub use c::C;", "a/b": "use super::C;",
             "a/c": "pub struct C;"},
            [],
        ),
        (
            {"lib": "mod a;", "a/mod": "mod b; pub use b::B; fn f(b: B) {} fn g() {}", "a/b": "use super::g;"},
            [["a", "a::b"]],
        ),
        (
            {"lib": "mod a;", "a/mod": "mod b; fn f() { b::f() } fn g() {}", "a/b": "fn f() { super::g() }"},
            [["a", "a::b"]],
        ),
        # Neither tests nor comments nor texts draw arrows.
        (
            {"lib": "mod a; mod b;", "a": "use crate::b::B;",
             "b": '// crate::a::A\nconst T: &str = "crate::a::A";\n#[cfg(test)]\nmod tests { use crate::a::A; }'},
            [],
        ),
    ],
)  # fmt: skip
def test_circles_are_found(tmp_path: Path, files: dict[str, str], expected: list[list[str]]) -> None:
    for name, text in files.items():
        path = tmp_path / f"{name}.rs"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert [shown(circle) for circle in circles(Crate(tmp_path).arrows())] == expected


#: Small helpers of the package, about texts for people and optional packages; they are of no use to others.
INTERNAL_HELPERS = {
    "icefield._support.hints",
    "icefield._outputs.html",
    "icefield._outputs.layout",
    "icefield._support.optional",
    "icefield._outputs.printable",
    "icefield._inputs.secrets",
}

#: Of PySpark, which has no public way to its virtual machine.
PRIVATE_IN_PYSPARK = {
    "_active_spark_context", "_gateway", "_gateway_client", "_jdf", "_jsc", "_jsparkSession", "_jvm"
}  # fmt: skip


def imported(tree: ast.AST) -> set[str]:
    """Names of what is imported, at any depth: modules, and what is taken from them."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            names |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def private_names(source: str) -> set[str]:
    """Private names of others that a module imports or takes of an object."""
    tree = ast.parse(source)
    found = set()
    for name in imported(tree):
        parts = name.split(".")
        within = {".".join(parts[:end]) for end in range(1, len(parts) + 1)}
        if any(map(is_private, parts)) and not within & INTERNAL_HELPERS:
            found.add(name)
    own = {"self", "cls"} | {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            is_own = isinstance(node.value, ast.Name) and node.value.id in own
            if not is_own and node.attr not in PRIVATE_IN_PYSPARK:
                found.add(node.attr)
    return found


@pytest.mark.parametrize("room", ["spark", "cli"])
def test_spark_and_the_command_line_use_public_names(room: str) -> None:
    paths = list((ROOT / "python" / "icefield" / room).rglob("*.py"))
    assert paths
    assert {str(path): names for path in paths if (names := private_names(path.read_text()))} == {}


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n    from icefield._core import Scan",
        "import icefield._core as c",
        "from icefield import _core",
        "def f(scan):\n    return scan._scan.tasks()",
        "from icefield.scan import _planned",
        "class A:\n    def f(self, scan):\n        self._scan = scan._scan",
    ],
)
def test_private_names_are_found(source: str) -> None:
    assert private_names(source)


def test_no_function_imports_a_module_of_the_package() -> None:
    """An import in a function hides a circle. Which module may import which stands in pyproject.toml."""
    package = ROOT / "python" / "icefield"
    late = {
        (path.relative_to(package).as_posix(), scope.name, name)
        for path in package.rglob("*.py")
        for scope in ast.walk(ast.parse(path.read_text()))
        if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef)
        for name in imported(scope)
        if name.partition(".")[0] == "icefield"
    }
    assert not late
    named = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if re.search(r"require\(\"icefield\.|import_module\(\"", path.read_text())
    }
    # `to_spark`: Spark may be missing, and what is written for it with it. `session`: so may sqlglot.
    assert named == {"_inputs/frames.py", "scan/__init__.py", "spark/__init__.py", "view/handle.py"}


def test_private_modules_of_the_package_are_in_packages_of_their_own() -> None:
    assert {path.name for path in (ROOT / "python" / "icefield").glob("_*.py")} == {"__init__.py"}


def test_spark_asks_schemas_and_transforms_for_their_parts() -> None:
    """It reads no JSON but that of expressions and its own, and takes no text of a transform to pieces."""
    package = ROOT / "python" / "icefield" / "spark"
    sources = {path.relative_to(package).as_posix(): path.read_text() for path in package.rglob("*.py")}
    reading_json = {name: source.count("json.loads(") for name, source in sources.items() if "json" in source}
    assert {name: count for name, count in reading_json.items() if count} == {
        "reads/reading.py": 1,
        "sessions/failures.py": 1,
        "tables/handover.py": 1,
    }
    assert "json.loads(bound.to_json())" in sources["reads/reading.py"]
    assert [name for name, source in sources.items() if re.search(r"str\(\w*\.?transform\)\.", source)] == []


def test_any_is_rare() -> None:
    """It stands for values of columns, for JSON, and for options that go to other libraries as they are."""
    paths = [*(ROOT / "python").rglob("*.py"), *(ROOT / "python").rglob("*.pyi")]
    trees = [ast.walk(ast.parse(path.read_text())) for path in paths]
    count = sum(isinstance(node, ast.Name) and node.id == "Any" for tree in trees for node in tree)
    lines = sum(bool(line.strip()) for path in paths for line in path.read_text().splitlines())
    assert 1000 * count / lines < MOST_ANY


def test_english_is_plain() -> None:
    """What to write instead is in CONTRIBUTING.md, "Words"."""
    paths = [path for path in tracked(".py", ".pyi") if ROOT / "python" in path.parents]
    lines = [(path.name, line.strip()) for path in paths for line in path.read_text().splitlines()]
    assert NOT_PLAIN.search('    """Give the schema."""')
    assert [(name, line) for name, line in lines if NOT_PLAIN.search(line)] == []
    documents = [path for path in tracked(".md") if path.parent in {ROOT, ROOT / "docs"}]
    documents.remove(ROOT / "docs" / "properties.md")  # made of texts in Rust
    prose = [(path.name, line) for path in documents for line in path.read_text().splitlines()]
    rust = [path for path in tracked(".rs") if path.relative_to(ROOT).as_posix().startswith(tuple(PLAIN_RUST))]
    prose += [(path.name, line.strip()) for path in rust for line in path.read_text().splitlines() if "//" in line]
    assert len(prose) > 2_000
    assert NOT_PLAIN_PROSE.search("/// Whatever is left, of which there are so many")
    assert [(name, line) for name, line in prose if NOT_PLAIN_PROSE.search(line)] == []


def test_everything_compiled_has_a_docstring() -> None:
    """Editors and the reference show those of the stub; magic methods say what they do by their name."""
    body = ast.parse((ROOT / "python" / "icefield" / "_core.pyi").read_text()).body
    classes = [node for node in body if isinstance(node, ast.ClassDef)]
    named = [(node.name, node) for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    methods = [(owner, node) for owner in classes for node in owner.body if isinstance(node, ast.FunctionDef)]
    named += [(f"{owner.name}.{node.name}", node) for owner, node in methods if not node.name.startswith("_")]
    assert len(named) > 300
    assert [name for name, node in named if not ast.get_docstring(node)] == []


def test_whatever_leaves_the_lock_of_python_catches_panics() -> None:
    border = ROOT / "crates" / "python" / "src"
    assert [path.name for path in border.rglob("*.rs") if ".detach(" in path.read_text()] == ["entry.rs"]


#: Where `unsafe` stands: the capsule interface, kernels, buffers that are filled in place, texts that were checked as
#: bytes, values that outlive a fork, and calls into the system.
UNSAFE = {
    "format/src/transform/kernel/truncate.rs",
    "format/src/transform/kernel/vectorized.rs",
    "orc/src/column/text.rs",
    "python/src/allocator.rs",
    "python/src/callback.rs",
    "python/src/capsule/",
    "table/src/arrow/filter.rs",
    "table/src/file/parquet/flat/byte_arrays.rs",
    "table/src/memory.rs",
    "table/src/runtime.rs",
    "table/src/storage/store/calls.rs",
    "table/src/storage/store/read_at.rs",
    "table/src/transform.rs",
}


def test_unsafe_code_stands_in_few_files() -> None:
    """That each block has its `SAFETY` line is held by clippy."""
    found = set()
    for path in (ROOT / "crates").glob("*/src/**/*.rs"):
        if re.search(r"\bunsafe\b", without_tests(path.read_text())):
            name = path.relative_to(ROOT / "crates").as_posix()
            found.add(next((known for known in UNSAFE if name.startswith(known)), name))
    assert found == UNSAFE


def test_files_are_no_larger_than_one_sees_into() -> None:
    sources = [path for path in tracked(".rs", ".py", ".pyi") if path.name != "_core.pyi"]
    lengths = {path.relative_to(ROOT): len(path.read_text().splitlines()) for path in sources}
    assert len(lengths) > 700
    assert {path: lines for path, lines in lengths.items() if lines > MOST_LINES} == {}


def test_folders_are_no_larger_than_one_sees_into() -> None:
    """Files of a larger folder that belong together get their own; `icefield` itself has a module for each term."""
    counts = Counter(path.parent.relative_to(ROOT).as_posix() for path in tracked(".rs", ".py"))
    limited = ("crates/", "python/icefield/", "tests/worlds")
    folders = {folder: count for folder, count in counts.items() if folder.startswith(limited)}
    assert min(folders[name] for name in ("crates/table/src/operation/rows", "python/icefield/table")) > 1
    assert {folder: count for folder, count in folders.items() if count > MOST_FILES} == {}


def test_miri_is_given_modules_that_exist() -> None:
    """A filter that matches no test passes."""
    rules = re.search(r"^test-miri:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert rules
    runs = re.findall(r"-p icefield-(\w+) --lib -- (.+)", rules[1].replace("\\\n", ""))
    modules = [(crate, tuple(name.split("::"))) for crate, names in runs for name in names.split()]
    assert len(modules) > 5
    for crate, path in modules:
        code = ROOT.joinpath("crates", crate, "src", *[name for name in path if name != "tests"])
        files = [file for file in (code.with_suffix(".rs"), code / "mod.rs") if file.is_file()]
        assert files, path
        assert path[-1] != "tests" or "mod tests" in files[0].read_text(), path


def test_orc_pitfalls_that_are_cited_exist() -> None:
    page = ROOT / "docs" / "orc-pitfalls.md"
    text = page.read_text()
    sections = set(re.findall(r"^## (.+)$", text, re.MULTILINE))
    cited = set()
    for path in tracked(".rs", ".py", "orc/README.md"):
        source = re.sub(r"\n\s*//[/!]?\s*", " ", path.read_text())
        assert "PITFALLS" not in source or path == Path(__file__), path
        found = re.findall(r"orc-pitfalls\.md, ((?:\"[^\"]+\"(?:, | and )?)+)", source)
        names = {name for names in found for name in re.findall(r"\"([^\"]+)\"", names)}
        assert names <= sections, f"{path}: {names - sections}"
        cited |= names
    assert cited == sections
    for place in re.findall(r"`(crates/\S+)`", text):
        assert (ROOT / place).is_file(), place


def test_names_say_what_is_inside() -> None:
    empty = {"utils", "util", "helpers", "misc", "common"}
    assert [path for path in tracked(".rs", ".py") if path.stem in empty] == []


def test_the_map_of_the_house_is_right() -> None:
    """What ARCHITECTURE.md names is there.

    In a table, a name without a path is that of a file beside, around or inside of one with a path on the same line.
    """
    missing = []
    for line in (ROOT / "ARCHITECTURE.md").read_text().splitlines():
        names = re.findall(r"`(\.?[\w./]+(?:/|\.rs|\.py|\.pyi|\.md|\.yml))`", line)
        whole = [name for name in names if (ROOT / name.split("/")[0]).exists()]
        missing += [name for name in whole if not (ROOT / name).exists() and "NAME" not in name]
        if line.startswith("| "):
            named = [ROOT / name if name.endswith("/") else (ROOT / name).parent for name in whole]
            within = {folder for path in named for folder in (path, *path.parents) if ROOT in folder.parents}
            within |= {folder for path in named for folder in path.glob("**/")}
            bare = set(names) - set(whole) - {"VariantEncoding.md", "VariantShredding.md"}
            missing += [name for name in sorted(bare) if not any((folder / name).exists() for folder in within)]
    assert missing == []


def test_names_of_tests_are_unique() -> None:
    """pytest imports them by their names alone."""
    names = [path.name for path in tracked(".py") if path.name.startswith("test_")]
    assert sorted(names) == sorted(set(names))


def test_data_stay_small() -> None:
    sizes = {path: path.stat().st_size for path in tracked("")}
    assert {path: size for path, size in sizes.items() if size > MOST_BYTES} == {}
    assert sum(size for path, size in sizes.items() if (ROOT / "tests/data") in path.parents) < MOST_DATA
