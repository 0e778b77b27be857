"""Progress lines of scans and changes, in terminals and notebooks only."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING

from icefield._core import Progress, Traffic
from icefield._outputs.layout import size_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Progress", "Steps", "changing", "is_shown", "showing"]

#: Seconds between two lines.
_EVERY = 0.1
#: Characters of the bar.
_WIDTH = 20


def is_shown() -> bool:
    """Whether standard error is a terminal, or this is a notebook."""
    return sys.stderr is not None and (sys.stderr.isatty() or _in_notebook())


def _in_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def _width() -> int:
    from shutil import get_terminal_size

    return get_terminal_size().columns


class _Line:
    """The progress line."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._began = monotonic()
        self._last = 0.0
        self._rows = 0
        self._bytes = 0
        self._length = 0

    def add(self, rows: int, size: int) -> None:
        """Count rows, and show the line unless it was shown a moment ago."""
        self._rows += rows
        self._bytes += size
        if monotonic() - self._last >= _EVERY:
            self._show(self._progress.opened - 1)
            self._last = monotonic()

    def end(self, *, is_whole: bool) -> None:
        """Show the line for the last time."""
        self._show(self._progress.files if is_whole else self._progress.opened - 1)
        sys.stderr.write("\n")
        sys.stderr.flush()

    def _show(self, done: int) -> None:
        files = self._progress.files
        done = max(done, 0)
        filled = _WIDTH * done // files if files else _WIDTH
        text = (
            f"[{'#' * filled:<{_WIDTH}}] {done:,} of {files:,} files, {self._rows:,} rows, "
            f"{size_of(self._bytes)}, {monotonic() - self._began:.1f} s"
        )[: _width() - 1]
        sys.stderr.write(f"\r{text:<{self._length}}")
        sys.stderr.flush()
        self._length = len(text)


class _Batches:
    """Batches of a reader, counted. Not a generator: several threads may ask for the next one."""

    def __init__(self, reader: pa.RecordBatchReader, progress: Progress) -> None:
        self._reader = reader
        self._line: _Line | None = _Line(progress)

    def __iter__(self) -> _Batches:
        return self

    def __next__(self) -> pa.RecordBatch:
        try:
            batch = self._reader.read_next_batch()
        except BaseException as error:
            line, self._line = self._line, None
            if line is not None:
                line.end(is_whole=isinstance(error, StopIteration))
            raise
        if self._line is not None:
            self._line.add(batch.num_rows, batch.nbytes)
        return batch


def showing(reader: pa.RecordBatchReader, progress: Progress) -> pa.RecordBatchReader:
    """Return a reader of the same batches that shows its progress."""
    batches = _Batches(reader, progress)
    return type(reader).from_batches(reader.schema, batches)


@dataclass
class Steps:
    """How far a change of several steps is; any thread may count."""

    #: What the steps are.
    name: str
    total: int = 0
    done: int = 0

    def __str__(self) -> str:
        filled = _WIDTH * self.done // self.total if self.total else 0
        return f"[{'#' * filled:<{_WIDTH}}] {self.done:,} of {self.total:,} {self.name}, "


class _Change:
    """The progress line of a change."""

    def __init__(self, traffic: Traffic, steps: Steps | None) -> None:
        self._traffic = traffic
        self._steps = "" if steps is None else steps
        self._began = monotonic()
        self._length = 0

    def show_until(self, ended: Event) -> None:
        """Show the line again and again."""
        while not ended.wait(_EVERY):
            self._show()

    def end(self) -> None:
        """Show the line for the last time."""
        self._show()
        sys.stderr.write("\n")
        sys.stderr.flush()

    def _show(self) -> None:
        counted = self._traffic
        text = (
            f"{self._steps}{size_of(counted.read)} read, "
            f"{counted.files:,} files and {size_of(counted.written)} written, "
            f"{monotonic() - self._began:.1f} s"
        )[: _width() - 1]
        sys.stderr.write(f"\r{text:<{self._length}}")
        sys.stderr.flush()
        self._length = len(text)


@contextmanager
def changing(progress: bool, steps: Steps | None = None) -> Iterator[Traffic | None]:
    """Show what a change reads and writes while it is made and committed, if that is asked for and can be seen."""
    if not (progress and is_shown()):
        yield None
        return
    traffic, ended = Traffic(), Event()
    line = _Change(traffic, steps)
    # The core does not hold the interpreter's lock while it works.
    thread = Thread(target=line.show_until, args=(ended,), name="icefield-progress", daemon=True)
    thread.start()
    try:
        yield traffic
    finally:
        ended.set()
        thread.join()
        line.end()
