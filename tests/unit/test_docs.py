"""What the pages of ``docs`` show is what happens: every ``>>>`` is run; and what a text names is there."""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

import icefield as ice
from icefield.catalog.known import PROPERTIES
from icefield.cli.commands import icefield

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(page for page in DOCS.glob("*.md") if ">>> " in page.read_text())


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ice.Table]:
    """Make the table that the pages read, in an empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    for variable in ("ICEFIELD_HOME", "PYICEBERG_HOME", "HOME"):
        monkeypatch.setenv(variable, str(tmp_path))
    _, section, _ = sections_of_reading()
    names: dict[str, ice.Table] = {}
    for example in doctest.DocTestParser().get_examples(section):
        exec(example.source, names)
    # Pages set variables.
    with mock.patch.dict(os.environ):
        yield names["table"]


def sections_of_reading() -> tuple[str, str, str]:
    """Return the page about reading: what is before the section that makes the table, the section, and the rest."""
    before, heading, rest = (DOCS / "reading.md").read_text().partition("## The table of the examples\n")
    section, next_heading, rest = rest.partition("## ")
    assert (heading != "", next_heading) == (True, "## ")
    return before, section, rest


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_pages_show_is_so(page: Path, table: ice.Table) -> None:
    text = "".join(sections_of_reading()[::2]) if page.stem == "reading" else page.read_text()
    examples = doctest.DocTestParser().get_doctest(text, {"table": table, "ice": ice}, page.name, str(page), 0)
    failed, attempted = doctest.DocTestRunner().run(examples)
    assert (failed, attempted > 0) == (0, True)
    if shutil.which("bash"):
        printed_by_commands(page)


def printed_by_commands(page: Path) -> str:
    """Run the commands of a page in the current folder."""
    blocks = re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    paths = os.pathsep.join(path for path in sys.path if path)
    command = f'icefield() {{ "{sys.executable}" -m icefield.cli "$@"; }}\n' + "".join(blocks)
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(["bash", "-euc", command], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def printed_in_process(page: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the commands of a page, and nothing but `icefield`, in this process: a shell reads their arguments."""
    blocks = re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    script = 'icefield() { printf "%s\\0" "$@" "" ; }\n' + "".join(blocks) + "\nprintf '\\0'; env -0"
    done = subprocess.run(["bash", "-euc", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    calls, _, environment = done.stdout.partition("\0\0\0")
    for name, _, value in (line.partition("=") for line in environment.split("\0")):
        if name.startswith("ICEFIELD_"):
            monkeypatch.setenv(name, value)
    called = calls.split("\0\0")
    assert len(called) == len(re.findall("^icefield ", "".join(blocks), re.MULTILINE)) > 0
    printed = ""
    for call in called:
        result = CliRunner().invoke(icefield, call.split("\0"), catch_exceptions=False)
        assert (result.exit_code, result.stderr) == (0, ""), call
        printed += result.stdout
    return printed


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_what_the_page_of_the_command_line_shows_runs(table: ice.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    ice.orc.write_table(table.scan().to_arrow(), "events.orc")
    page = DOCS / "cli.md"
    printed = printed_in_process(page, monkeypatch)
    assert "dropped table nyc.raw.events, and delete its files" in printed
    texts = ("nyc.flights", "distance", "append", "audited", "1 skipped", '"carrier": "AA"', "events.orc", "rolled")
    for text in texts:
        assert text in printed


def test_there_are_pages_to_test() -> None:
    assert DOCS / "reading.md" in PAGES


#: Prefixes of the properties that docs/catalogs.md has tables of.
STORAGE = ("s3.", "client.", "gcs.", "adls.", "http.", "tls.", "io.")


def test_the_page_of_catalogs_names_every_property_of_storage_that_counts() -> None:
    rows = re.findall(r"^\| (`.+?`) \|", (DOCS / "catalogs.md").read_text(), re.MULTILINE)
    named = {name.rstrip("*") for row in rows for name in re.findall(r"`([^`]+)`", row)}
    honoured = {known.name for known in PROPERTIES if known.effect == "honoured" and known.name.startswith(STORAGE)}
    assert {name for name in named if name.startswith(STORAGE)} == honoured


def test_the_picture_shows_what_the_readme_runs() -> None:
    """It is drawn by `make docs-picture`, of what the commands print; light and dark."""
    picture = (DOCS / "result.svg").read_text(encoding="utf-8")
    root = ET.fromstring(picture)
    names = "{http://www.w3.org/2000/svg}"
    shown = [text.text for text in root.iter(f"{names}text") if text.get("class") == "command"]
    block = re.findall(r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)[1]
    assert shown[1:] == [f"$ {line}" for line in block.splitlines() if not line.startswith("export ")]
    assert len(picture) < 100_000
    assert "prefers-color-scheme: dark" in picture


TEXTS = [*(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")), *sorted(DOCS.glob("*.md"))]


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.name)
def test_what_pages_name_is_there(page: Path) -> None:
    """Paths from the root, links, targets of make and environment variables that stand in a text."""
    text = page.read_text()
    paths = re.findall(r"`((?:crates|python|tests|docs|benches|fuzz|examples|requirements)/[\w./-]+)`", text)
    places = (ROOT, ROOT / "crates/table")  # NAME stands for any name
    missing = [path for path in paths if "NAME" not in path and not any((place / path).exists() for place in places)]
    links = re.findall(r"\]\(([\w./-]+)(?:#[\w-]+)?\)", text)
    # The pages of the reference are made by `make docs`, which refuses dead links.
    links = [link for link in links if not link.startswith("reference/")]
    missing += [link for link in links if not (page.parent / link).exists()]
    makefile = (ROOT / "Makefile").read_text()
    wanted = set(re.findall(r"`make ([a-z-]+)", text))
    missing += [f"make {target}" for target in wanted if not re.search(rf"^{target}:", makefile, re.MULTILINE)]
    sources = [path for kind in ("crates/**/*.rs", "python/**/*.py", "tests/**/*.py") for path in ROOT.glob(kind)]
    known = makefile + "".join(path.read_text() for path in sources)
    variables = set(re.findall(r"ICEFIELD_[A-Z]+(?:_[A-Z]+)*", text))
    missing += [name for name in variables if name not in known]
    assert missing == []
