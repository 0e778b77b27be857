"""The Java peer, started once for all interop tests in the environment that ``ICEFIELD_JAVA_PYTHON`` names."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice
from worlds.orc.java import OrcJava, started


def linked(folder: Path) -> Path:
    """Link icefield, and what its SQL needs, into a folder: the peer's environment has nothing of ours."""
    folder.mkdir()
    for name in ("icefield", "pyspark_icefield", "sqlglot", "sqlalchemy", "typing_extensions"):
        found = importlib.util.find_spec(name)
        assert found is not None, name
        assert found.origin is not None, name
        source = Path(found.origin)
        source = source.parent if source.name == "__init__.py" else source
        (folder / source.name).symlink_to(source)
    return folder


class Java:
    """Talks to ``java_peer.py``."""

    def __init__(self, python: str, scratch: Path) -> None:
        self.scratch = scratch
        self._files = 0
        answers, theirs = os.pipe()
        self._log = (scratch / "java.log").open("w")
        self._process = subprocess.Popen(
            [python, str(Path(__file__).with_name("java_peer.py")), str(theirs), str(scratch)],
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=self._log,
            pass_fds=(theirs,),
            env={**os.environ, "PYTHONPATH": str(linked(scratch / "packages")), "PYSPARK_PYTHON": python},
            cwd=scratch,
            text=True,
        )
        os.close(theirs)
        self._answers = os.fdopen(answers)
        self._answer("start")

    def _answer(self, what: str) -> Any:
        line = self._answers.readline()
        if not line:
            tail = (self.scratch / "java.log").read_text()[-3000:]
            pytest.fail(f"the Java peer ended during {what}:\n{tail}", pytrace=False)
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["ok"]

    def do(self, verb: str, /, **arguments: Any) -> Any:
        """Send one request and wait for its answer; an error there is a ``RuntimeError`` here."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": verb, **arguments}) + "\n")
        self._process.stdin.flush()
        return self._answer(verb)

    def catalog(self, name: str, database: Path, warehouse: Path) -> None:
        """Open a SQLite catalog file under a name; use the name that wrote it: it is part of the key."""
        self.do("sqlite_catalog", name=name, uri=str(database), warehouse=str(warehouse))

    def sql(self, text: str) -> None:
        """Run a statement."""
        self.do("sql", text=text)

    def rows(self, text: str) -> pa.Table:
        """Run a query."""
        self._files += 1
        path = self.scratch / f"rows-{self._files}.arrow"
        self.do("query", text=text, path=str(path))
        with pa.memory_map(str(path)) as source:
            return pa.ipc.open_file(source).read_all()

    def read(self, table: str, /, **options: str) -> pa.Table:
        """Read a table by name, with read options."""
        self._files += 1
        path = self.scratch / f"rows-{self._files}.arrow"
        self.do("read", table=table, options=options, path=str(path))
        with pa.memory_map(str(path)) as source:
            return pa.ipc.open_file(source).read_all()

    def duckdb(self, location: str) -> pa.Table:
        """Read a table by its metadata file with DuckDB's extension, which the environment of Java has as well."""
        self._files += 1
        path = self.scratch / f"rows-{self._files}.arrow"
        self.do("duckdb", location=location, path=str(path))
        with pa.memory_map(str(path)) as source:
            return pa.ipc.open_file(source).read_all()

    def insert(self, table: str, rows: pa.Table) -> None:
        """Append rows to a table."""
        self._files += 1
        path = self.scratch / f"rows-{self._files}.arrow"
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
            writer.write_table(rows)
        self.do("insert", table=table, path=str(path))

    def close(self) -> None:
        """End the session."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._answers.close()
        self._log.close()


@pytest.fixture(scope="session")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Java]:
    """Give the Java peer; skipped where ``make test`` has not made its environment."""
    python = os.environ.get("ICEFIELD_JAVA_PYTHON")
    if not python:
        pytest.skip("ICEFIELD_JAVA_PYTHON names no environment with PySpark 4.1 (make test sets it)")
    peer = Java(python, tmp_path_factory.mktemp("java"))
    yield peer
    peer.close()


@pytest.fixture(scope="module")
def catalog(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, java: Java
) -> ice.catalog.Catalog:
    """Open one SQLite catalog with us and with Java, under the name that the test file has as ``CATALOG``."""
    name: str = request.module.CATALOG
    folder = tmp_path_factory.mktemp(name)
    ours = ice.load_catalog(name, uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    ours.create_namespace("db")
    java.catalog(name, folder / "catalog.db", folder)
    return ours


@pytest.fixture(scope="session")
def orc_peer() -> Iterator[OrcJava]:
    """Give orc-core, on the jars of PySpark."""
    yield from started()
