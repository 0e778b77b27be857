"""Print how many lines of the crates and of the Python package the tests run, by folder.

Needs rustup's component llvm-tools and Python's package coverage. `make coverage` runs it. The tests of Spark and those
beside other implementations are left out: they repeat the roads of the others, and Spark's workers leave no counts.
"""

import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
COUNTS = TARGET / "coverage"
WRAPPER = {"RUSTC_WORKSPACE_WRAPPER": str(ROOT / ".ci/coverage-rustc")}
# One file a program, to which its processes add; those that are killed leave nothing.
COUNTED = {**os.environ, **WRAPPER, "LLVM_PROFILE_FILE": str(COUNTS / "%4m.profraw")}


def tool(name: str) -> str:
    """Return the path of a tool of the compiler's own LLVM."""
    sysroot = subprocess.check_output(["rustc", "--print", "sysroot"], text=True).strip()
    found = next(pathlib.Path(sysroot).glob(f"lib/rustlib/*/bin/{name}"), None)
    if found is None:
        sys.exit(f"{name} is missing: rustup component add llvm-tools")
    return str(found)


def built(*arguments: str, **environment: str) -> list[str]:
    """Build with counters and return the programs and libraries that were built."""
    command = ["cargo", *arguments, "--message-format=json"]
    variables = {**COUNTED, **environment}
    output = subprocess.run(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True, check=True).stdout
    messages = [json.loads(line) for line in output.splitlines()]
    of_ours = [one for one in messages if one["reason"] == "compiler-artifact" and str(ROOT) in one["manifest_path"]]
    programs = [one["executable"] for one in of_ours if one["executable"]]
    return programs + [name for one in of_ours for name in one["filenames"] if name.endswith((".so", ".dylib"))]


def tests_of_rust() -> list[str]:
    """Run the tests of the crates and return their programs."""
    tests = built("test", "--workspace", "--quiet", "--no-run")
    subprocess.run(["cargo", "test", "--workspace", "--quiet", "--no-fail-fast"], cwd=ROOT, env=COUNTED, check=True)
    return tests


def tests_of_python() -> list[str]:
    """Run the tests of the package on an extension with counters, and return the extension."""
    settings = {"PYO3_BUILD_EXTENSION_MODULE": "1", "PYO3_PYTHON": sys.executable}
    libraries = built("build", "--quiet", "-p", "icefield-python", "--lib", **settings)
    extension = next(name for name in libraries if "lib_core." in name)
    library = ROOT / "python/icefield/_core.abi3.so"
    library.unlink(missing_ok=True)
    shutil.copy(extension, library)
    pytest = ["-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", "-m", "not spark and not interop"]
    # Coverage itself imports modules that an import of the package must not.
    pytest.append("--ignore=tests/unit/test_lazy_import.py")
    of_run = {
        "source": ROOT / "python/icefield",
        "data_file": COUNTS / "python",
        "parallel": "true",
        "patch": "subprocess",
    }
    rules = COUNTS / "coveragerc"
    rules.write_text("[run]\n" + "".join(f"{name} = {value}\n" for name, value in of_run.items()))
    coverage = [sys.executable, "-m", "coverage"]
    subprocess.run([*coverage, "run", f"--rcfile={rules}", *pytest], cwd=ROOT, env=COUNTED, check=True)
    subprocess.run([*coverage, "combine", "-q", f"--rcfile={rules}"], cwd=ROOT, check=True)
    return [extension]


def lines_of_rust(programs: list[str]) -> dict[str, tuple[int, int]]:
    """Return the lines of each source file that can run, and of them those that ran."""
    merged = str(COUNTS / "all.profdata")
    raw = [str(path) for path in COUNTS.glob("*.profraw")]
    subprocess.run([tool("llvm-profdata"), "merge", "--sparse", "--failure-mode=all", "-o", merged, *raw], check=True)
    ran: dict[str, dict[int, bool]] = collections.defaultdict(dict)
    # One program at a time: a function that two compile differently would count in one of them only.
    for program in programs:
        command = [tool("llvm-cov"), "export", "--format=lcov", f"--instr-profile={merged}", program]
        name = ""
        for line in subprocess.check_output(command, text=True).splitlines():
            kind, _, rest = line.partition(":")
            if kind == "SF":
                name = rest
            elif kind == "DA":
                number, count = map(int, rest.split(",")[:2])
                ran[name][number] = ran[name].get(number, False) or count > 0
    lines = {name: lines for name, lines in ran.items() if pathlib.Path(name).is_relative_to(ROOT / "crates")}
    missed = {name: [number for number, one in sorted(lines.items()) if not one] for name, lines in lines.items()}
    (COUNTS / "rust.json").write_text(json.dumps(missed))
    return {name: (len(lines), sum(lines.values())) for name, lines in lines.items()}


def lines_of_python() -> dict[str, tuple[int, int]]:
    """Return the same for the modules of the package."""
    report = COUNTS / "lines-of-python.json"
    command = [sys.executable, "-m", "coverage", "json", "-q", f"--rcfile={COUNTS}/coveragerc", "-o", str(report)]
    subprocess.run(command, cwd=ROOT, check=True)
    files = json.loads(report.read_text())["files"]
    return {
        str(ROOT / name): (one["summary"]["num_statements"], one["summary"]["covered_lines"])
        for name, one in files.items()
    }


def folder(path: pathlib.PurePath) -> str:
    """Return the folder under which a file is counted: the sources of a crate or the package, or a folder there."""
    top = 3 if path.parts[0] == "crates" else 2
    return "/".join(path.parts[: min(top + 1, len(path.parts) - 1)]).replace("/src", "").removeprefix("python/")


def table(lines: dict[str, tuple[int, int]]) -> str:
    """Return a table by folder, those with most lines not run first, and the sum."""
    folders: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0])
    total = [0, 0]
    for name, (count, covered) in lines.items():
        path = pathlib.Path(name)
        if "/tests/" in name or "/examples/" in name:
            continue
        for sum_ in (folders[folder(path.relative_to(ROOT))], total):
            sum_[0] += count
            sum_[1] += covered
    rows = sorted(folders.items(), key=lambda item: item[1][1] - item[1][0])
    text = ["| folder | lines | run |", "| --- | ---: | ---: |"]
    for name, (count, covered) in [*rows, ("all", total)]:
        text.append(f"| {name} | {count:,} | {100 * covered / max(count, 1):.1f} % |")
    return "\n".join(text)


def main() -> None:
    """Run the tests and print the tables."""
    shutil.rmtree(COUNTS, ignore_errors=True)
    COUNTS.mkdir(parents=True)
    programs = tests_of_rust() + tests_of_python()
    print(table(lines_of_rust(programs)))
    print(table(lines_of_python()))
    print(f"lines that no test runs: {COUNTS}/rust.json and {COUNTS}/lines-of-python.json")


if __name__ == "__main__":
    main()
