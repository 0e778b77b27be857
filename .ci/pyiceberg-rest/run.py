"""Run PyIceberg's own tests of its REST client with the import changed, and compare with what is expected.

    python .ci/pyiceberg-rest/run.py

The sources of PyIceberg, of the version in requirements/test.txt, and two packages that its tests import are downloaded
by pip into a temporary folder. In the tests each name is imported from icefield where it has one. Words of messages are
not compared, of whole tables the name, the location of the metadata and the uuid are, and answers that `requests-mock`
has registered are given to our client. `expected.txt` lists the tests that fail, each with the reason; a test that
fails without being listed, or passes although it is listed, is an error.
"""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from xml.etree import ElementTree as ET

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
#: What the tests of PyIceberg import and ours do not.
PACKAGES = ("requests-mock==1.12.1", "pytest-lazy-fixtures==1.4.1")
#: Reasons in `expected.txt` begin with one of these.
KINDS = ("private:", "difference:", "missing:", "either:")


def main() -> int:
    """Run the tests; the status is 0 if exactly the listed ones fail, or if nothing can be downloaded."""
    version = re.search(r"^pyiceberg\S*==(\S+)", (ROOT / "requirements" / "test.txt").read_text(), re.MULTILINE)
    assert version is not None
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--retries", "0"]
        source = ["download", "--no-deps", "--no-binary", "pyiceberg", "--dest", folder, f"pyiceberg=={version[1]}"]
        others = ["install", "--no-deps", "--target", str(work / "packages"), *PACKAGES]
        for arguments in (source, others):
            if subprocess.run([*pip, *arguments], check=False, timeout=300).returncode:
                print("skipped: the tests of PyIceberg cannot be downloaded")
                return 0
        with tarfile.open(work / f"pyiceberg-{version[1]}.tar.gz") as archive:
            archive.extractall(work, filter="data")
        tests = work / f"pyiceberg-{version[1]}" / "tests"
        ours = work / "tests"
        ours.mkdir()
        (ours / "pytest.ini").write_text("[pytest]\n")
        adapter = (HERE / "adapter.py").read_text()
        (ours / "conftest.py").write_text(changed((tests / "conftest.py").read_text()) + "\n\n" + adapter)
        (ours / "test_rest.py").write_text(changed((tests / "catalog" / "test_rest.py").read_text()))
        return compared(outcomes(ours, work), version[1])


def changed(text: str) -> str:
    """Return a file of tests with the import changed."""
    return ast.unparse(ast.fix_missing_locations(_Change().visit(ast.parse(text))))


class _Change(ast.NodeTransformer):
    def visit_ImportFrom(self, node: ast.ImportFrom) -> list[ast.stmt]:
        """Import each name from icefield, if it has it."""
        if not node.module or not node.module.startswith("pyiceberg."):
            return [node]
        made: list[ast.stmt] = []
        for alias in node.names:
            where = "icefield" + node.module.removeprefix("pyiceberg")
            try:
                has = hasattr(importlib.import_module(where), alias.name)
            except ImportError:
                has = False
            made.append(ast.ImportFrom(module=where if has else node.module, names=[alias], level=0))
        return made

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        """Leave out the words of messages, and models of pydantic."""
        if re.search(r"str\((e|exc|exc_info)\.value\)|model_dump\(", ast.unparse(node)):
            return ast.Pass()
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_Call(self, node: ast.Call) -> ast.Call:
        """Leave out the words of messages, and let whole tables be expected ones."""
        self.generic_visit(node)
        if ast.unparse(node.func) == "pytest.raises":
            node.keywords = [keyword for keyword in node.keywords if keyword.arg != "match"]
        if ast.unparse(node.func) == "Table":
            node.func = ast.parse("__import__('conftest').ExpectedTable", mode="eval").body
        return node


def outcomes(tests: Path, work: Path) -> dict[str, bool]:
    """Return whether each test passes."""
    path = os.pathsep.join([str(ROOT / "python"), str(work / "packages"), str(tests)])
    report = work / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", "test_rest.py"]
    # A region or a proxy of the machine would change what they find.
    kept = {name: value for name, value in os.environ.items() if not re.match("AWS_|PYICEBERG_|ICEFIELD_", name)}
    ran = subprocess.run(
        command, cwd=tests, env={**kept, "PYTHONPATH": path}, capture_output=True, text=True, check=False, timeout=300
    )
    if not report.exists():
        sys.exit(ran.stdout[-3000:] + ran.stderr[-3000:])
    cases = ET.parse(report).iter("testcase")
    return {str(case.get("name")): case.find("failure") is None and case.find("error") is None for case in cases}


def compared(found: dict[str, bool], version: str) -> int:
    """Say what differs from the list, and count."""
    lines = (line for line in (HERE / "expected.txt").read_text().splitlines() if line and not line.startswith("#"))
    listed: dict[str, str] = {}
    reason = ""
    for line in lines:
        if line.startswith(KINDS):
            reason = line
        else:
            listed[line.strip()] = reason
    failed = {name for name, passes in found.items() if not passes}
    either = {name for name, why in listed.items() if why.startswith("either:")}
    problems = [f"{name}: fails, and is not in expected.txt" for name in sorted(failed - set(listed))]
    problems += [
        f"{name}: is in expected.txt ({listed[name]}), and passes" for name in sorted(set(listed) - failed - either)
    ]
    print(*problems, sep="\n", end="\n" if problems else "")
    print(f"PyIceberg {version}: of {len(found)} tests of the REST client {len(found) - len(failed)} pass")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
