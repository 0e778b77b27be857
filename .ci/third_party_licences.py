"""Write the licences of what is compiled into the extension to ``LICENSE-THIRD-PARTY.txt``: ``make licences``.

They are read from the sources of the crates, beside which their authors put them, and go into wheels by
``license-files`` of pyproject.toml. Crates that only run while compiling are no part of the extension and are left out.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
OUTPUT = ROOT / "LICENSE-THIRD-PARTY.txt"
FILE = re.compile(r"(licen[cs]e|copying|notice|copyright|unlicense)([-_.].*)?$", re.IGNORECASE)
#: Sources of other programs, which crates that wrap them bring along, have theirs in folders below.
DEEPEST = 3
NOT_TEXTS = {".rs", ".toml", ".json", ".py", ".html", ".c", ".h"}
HEAD = """Licences of third-party software in the extension module of icefield
====================================================================

icefield itself is under the Apache License 2.0: see LICENSE. Its extension module is compiled from the packages
below as well. Each text is printed once, below the names of all packages that have it.
"""


def linked(metadata: dict[str, Any], root: str) -> list[dict[str, Any]]:
    """Return the packages of others that are linked into a package, on any platform."""
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    seen: set[str] = set()
    waiting = [identifier for identifier, package in packages.items() if package["name"] == root]
    while waiting:
        identifier = waiting.pop()
        if identifier in seen or any("proc-macro" in target["kind"] for target in packages[identifier]["targets"]):
            continue
        seen.add(identifier)
        waiting += [
            dependency["pkg"]
            for dependency in nodes[identifier]["deps"]
            if any(kind["kind"] is None for kind in dependency["dep_kinds"])
        ]
    found = (packages[identifier] for identifier in seen if packages[identifier]["source"] is not None)
    return sorted(found, key=lambda package: (package["name"], package["version"]))


def texts(package: dict[str, Any]) -> list[str]:
    """Return what the files of a package's licences say."""
    folder = Path(package["manifest_path"]).parent
    files = [path for path in sorted(folder.rglob("*")) if len(path.relative_to(folder).parts) <= DEEPEST]
    named = [path for path in files if path.is_file() and FILE.match(path.name) and path.suffix not in NOT_TEXTS]
    if package["license_file"]:
        named.append(folder / package["license_file"])
    return [text for path in dict.fromkeys(named) if (text := path.read_text("utf-8", "replace").strip())]


def all_texts(packages: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Return the texts of each package; some leave theirs in the repository that they have in common with another."""
    found = {package["id"]: texts(package) for package in packages}
    of_repository = {package["repository"]: found[package["id"]] for package in packages if found[package["id"]]}
    apache = [(ROOT / "LICENSE").read_text(encoding="utf-8").strip()]
    for package in packages:
        if not found[package["id"]]:
            fits = apache if "Apache-2.0" in (package["license"] or "") else []
            found[package["id"]] = fits or of_repository.get(package["repository"], [])
    if without := [package["name"] for package in packages if not found[package["id"]]]:
        sys.exit(f"no licence text was found of {', '.join(without)}")
    return found


def written(packages: list[dict[str, Any]]) -> str:
    """Return the whole file."""
    users: dict[str, tuple[str, list[str]]] = {}
    found = all_texts(packages)
    lines = [HEAD]
    for package in packages:
        name = f"{package['name']} {package['version']}"
        authors = ", ".join(re.sub(r"\s*<.*?>", "", author) for author in package["authors"])
        lines.append(f"{name}: {package['license'] or 'see its file'}" + (f"; {authors}" if authors else ""))
        if package["repository"]:
            lines.append(f"    {package['repository']}")
        for text in found[package["id"]]:
            users.setdefault(" ".join(text.split()), (text, []))[1].append(name)
    for text, names in users.values():
        lines += ["", "-" * 100, ", ".join(dict.fromkeys(names)), "-" * 100, "", text]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the file, and say of how many packages."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    output = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout  # noqa: S603
    packages = linked(json.loads(output), "icefield-python")
    OUTPUT.write_text(written(packages), encoding="utf-8")
    sys.stdout.write(f"{OUTPUT.name}: {len(packages)} packages\n")


if __name__ == "__main__":
    main()
