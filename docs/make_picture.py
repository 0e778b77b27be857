"""Draw what the first example and the commands of README.md print, as ``docs/result.svg``: ``make docs-picture``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
PICTURE = Path(__file__).with_name("result.svg")
#: Columns that commands print for, and the pixels of a character and a line.
COLUMNS, WIDTH, HEIGHT, MARGIN = 110, 7.8, 19, 16
#: The directions in which characters that draw boxes go.
ARMS = {
    **dict.fromkeys("━─", "lr"), **dict.fromkeys("┃│", "ud"), **dict.fromkeys("┏┌", "rd"), **dict.fromkeys("┓┐", "ld"),
    **dict.fromkeys("┗└", "ru"), **dict.fromkeys("┛┘", "lu"), **dict.fromkeys("┳┬", "lrd"),
    **dict.fromkeys("┻┴", "lru"),
    **dict.fromkeys("┣├┡", "rud"), **dict.fromkeys("┫┤┩", "lud"), **dict.fromkeys("╇┼╋", "lrud"),
}  # fmt: skip
ENDS = {"l": (0.0, 0.5), "r": (1.0, 0.5), "u": (0.5, 0.0), "d": (0.5, 1.0)}
STYLE = """
.ground { fill: #f6f8fa; stroke: #d0d7de }
.lines { stroke: #8c959f; fill: none }
text { fill: #1f2328; white-space: pre;
  font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace }
.command { fill: #0550ae }
@media (prefers-color-scheme: dark) {
  .ground { fill: #0d1117; stroke: #30363d }
  .lines { stroke: #6e7681 }
  text { fill: #e6edf3 }
  .command { fill: #79c0ff }
}"""


def blocks(language: str) -> list[str]:
    """Return the blocks of the README in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def printed() -> Iterator[tuple[str, bool]]:
    """Run the example and the commands in a new folder; yield their lines, and whether each is a command."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "COLUMNS": str(COLUMNS)}

        def run(*command: str) -> Iterator[tuple[str, bool]]:
            done = subprocess.run(  # noqa: S603  # what the README shows
                command, cwd=folder, env=environment, check=True, capture_output=True, text=True, encoding="utf-8"
            )
            for line in done.stdout.splitlines():
                yield line.replace(folder, "/…").rstrip(), False

        yield "$ python example.py", True
        yield from run(sys.executable, "-c", blocks("python")[0])
        for line in blocks("sh")[1].splitlines():
            command = line.partition(" #")[0].rstrip()
            if variable := re.fullmatch(r"export (\w+)=(.+)", command):
                environment[variable[1]] = variable[2]
                continue
            yield "", False
            yield f"$ {command}", True
            shell = f'icefield() {{ "{sys.executable}" -m icefield.cli "$@"; }}; {command}'
            yield from run("bash", "-euc", shell)


def drawn(lines: list[tuple[str, bool]]) -> str:
    """Return lines as a picture; boxes are drawn as lines, so that they close whatever the font."""
    width = MARGIN * 2 + WIDTH * max(len(line) for line, _ in lines)
    height = MARGIN * 2 + HEIGHT * len(lines)
    texts, path = [], []
    for row, (line, is_command) in enumerate(lines):
        top = MARGIN + row * HEIGHT
        for column, character in enumerate(line):
            left = MARGIN + column * WIDTH
            for arm in ARMS.get(character, ""):
                x, y = ENDS[arm]
                path.append(
                    f"M{left + WIDTH / 2:.1f} {top + HEIGHT / 2:.1f}L{left + x * WIDTH:.1f} {top + y * HEIGHT:.1f}"
                )
        boxes = "".join(ARMS)
        for found in re.finditer(rf"[^\s{boxes}](?:(?!\s\s)[^{boxes}])*(?<!\s)", line):
            text, name = found[0], ' class="command"' if is_command else ""
            texts.append(
                f'<text{name} x="{MARGIN + found.start() * WIDTH:.1f}" y="{top + HEIGHT * 0.72:.1f}" '
                f'textLength="{len(text) * WIDTH:.1f}">{escape(text, quote=False)}</text>'
            )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}">'
    ground = f'<rect class="ground" x="0.5" y="0.5" width="{width - 1:.0f}" height="{height - 1}" rx="8"/>'
    lines_drawn = f'<path class="lines" d="{"".join(path)}"/>'
    return "\n".join([head, f"<style>{STYLE}\n</style>", ground, lines_drawn, *texts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(drawn(list(printed())), encoding="utf-8")
