"""Install a wheel in a fresh environment, as ``pip install icefield`` does, and run what README.md shows first.

``python .ci/test_wheel.py WHEEL``, a file or a folder that holds one; the example must run with what is installed then,
and nothing else.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
#: What is not installed with it: whoever wants these names the extra.
EXTRAS = ("duckdb", "pandas", "polars", "psycopg", "pyspark")
#: What the wheel must have, beside that the example runs.
CHECKS = f"""
import importlib.metadata as metadata, importlib.util as util, icefield
assert [name for name in {EXTRAS} if util.find_spec(name)] == []
distribution = metadata.distribution("icefield")
assert distribution.version == icefield.__version__, (distribution.version, icefield.__version__)
texts = {{path.name: path.read_text(encoding="utf-8") for path in distribution.files if "licenses" in path.parts}}
assert "Apache License" in texts["LICENSE"], list(texts)
assert "arrow-array" in texts["LICENSE-THIRD-PARTY.txt"], list(texts)
assert any(path.name == "py.typed" for path in distribution.files)
icefield.orc.write_table(table.scan().to_arrow(), "flights.orc")
assert icefield.orc.read_table("flights.orc").num_rows == table.scan().count() == 3
try:
    table.scan().to_pandas()
except icefield.errors.NotInstalledError as error:
    assert "icefield[pandas]" in str(error), error
"""


def blocks(language: str) -> list[str]:
    """Return the blocks of the README in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def main(wheel: Path) -> None:
    """Install the wheel and run the example and its commands."""
    if wheel.is_dir():
        [wheel] = wheel.glob("*.whl")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        venv.create(place / "venv", with_pip=True)
        scripts = place / "venv" / ("Scripts" if sys.platform == "win32" else "bin")

        def run(*command: str, shown: bool = True) -> str:
            done = subprocess.run(  # noqa: S603  # what the README shows
                [str(scripts / command[0]), *command[1:]], cwd=place, capture_output=True, encoding="utf-8", check=False
            )
            if shown or done.returncode:
                sys.stdout.write(f"$ {shlex.join(command)[:100]}\n{done.stdout}{done.stderr}")
            if done.returncode:
                sys.exit(done.returncode)
            return done.stdout

        # Python's own output, on Windows too.
        run("python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel.resolve()))
        printed = run("python", "-X", "utf8", "-c", blocks("python")[0] + CHECKS)
        uri = "sqlite:///warehouse/catalog.db"
        for line in blocks("sh")[1].splitlines():
            if line.startswith("icefield "):
                printed += run("icefield", "--catalog", "local", "--uri", uri, "--json", *shlex.split(line)[1:])
        for text in ("1 skipped", '"overwrite"', '"UA"', "1401"):
            if text not in printed:
                sys.exit(f"the README's example did not print {text}")


if __name__ == "__main__":
    if len(sys.argv) != 2:  # noqa: PLR2004
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
