"""The logger ``icefield``: retries, lost races, unknown outcomes, and files that are deleted."""

from __future__ import annotations

import logging
import subprocess
import sys

import pyarrow as pa
import pytest

from icefield.catalog.memory import InMemoryCatalog
from icefield.errors import CommitFailedException, CommitStateUnknownException

ROWS = pa.table({"id": pa.array([1], pa.int64())})


class Refusing(InMemoryCatalog):
    """Raises what it is told to, once each."""

    raises: tuple[Exception, ...] = ()

    def swap_pointer(self, identifier, base, new):
        if self.raises:
            first, *self.raises = self.raises
            raise first
        super().swap_pointer(identifier, base, new)


@pytest.fixture
def table(tmp_path):
    with Refusing("c", warehouse=str(tmp_path)) as catalog:
        catalog.create_namespace("a")
        properties = {
            "commit.retry.num-retries": "1",
            "commit.retry.min-wait-ms": "1",
            "commit.status-check.num-retries": "0",
        }
        yield catalog.create_table("a.t", schema=ROWS.schema, properties=properties)


def logged(caplog):
    return [(record.levelname, record.getMessage()) for record in caplog.records if record.name == "icefield"]


def test_a_race_that_is_lost_and_won(table, caplog):
    caplog.set_level(logging.INFO, "icefield")
    table.catalog.raises = [CommitFailedException("busy")]
    table.append(ROWS)
    [(level, retry)] = logged(caplog)
    assert level == "INFO"
    assert retry == f"{table.location()}: another commit was first (busy); trying again on top of it"


def test_a_race_that_is_lost(table, caplog):
    caplog.set_level(logging.INFO, "icefield")
    table.catalog.raises = [CommitFailedException("busy")] * 2
    with pytest.raises(CommitFailedException, match="busy"):
        table.append(ROWS)
    levels, texts = zip(*logged(caplog), strict=True)
    assert levels == ("INFO", "WARNING", "INFO", "INFO")
    assert texts[1] == f"{table.location()}: the commit lost to others (busy); no attempt is left"
    assert texts[3].startswith("deleted 1 of 1 files of a change that was not committed")


def test_an_unknown_outcome(table, caplog):
    table.catalog.raises = [CommitStateUnknownException("no reply")]
    with pytest.raises(CommitStateUnknownException):
        table.append(ROWS)
    [(level, text)] = logged(caplog)
    assert level == "WARNING"
    assert text.endswith("commit state unknown: no reply; nothing was deleted")


def test_a_handler_that_raises_fails_no_commit(table, monkeypatch):
    class Raising(logging.Handler):
        def emit(self, record):
            raise RuntimeError("no disk")

    handler = Raising()
    logger = logging.getLogger("icefield")
    logger.addHandler(handler)
    unraisable = []
    monkeypatch.setattr(sys, "unraisablehook", lambda hooked: unraisable.append(hooked.exc_value))
    try:
        table.catalog.raises = [CommitFailedException("busy")] * 2
        with pytest.raises(CommitFailedException, match="busy"):
            table.append(ROWS)
    finally:
        logger.removeHandler(handler)
    assert {str(error) for error in unraisable} == {"no disk"}
    assert table.append(ROWS).scan().count() == 1


def test_nothing_is_printed_where_nobody_listens(tmp_path):
    script = f"""
import sys; sys.path.insert(0, {str(sys.path[0])!r})
import pyarrow as pa
from icefield.catalog.memory import InMemoryCatalog
from icefield.errors import CommitFailedException
class Refusing(InMemoryCatalog):
    def swap_pointer(self, *arguments):
        raise CommitFailedException("busy")
catalog = Refusing("c", warehouse={str(tmp_path)!r})
catalog.create_namespace("a")
once = {{"commit.retry.num-retries": "0"}}
table = catalog.create_table("a.t", schema=pa.schema({{"n": pa.int64()}}), properties=once)
try:
    table.append(pa.table({{"n": [1]}}))
except CommitFailedException:
    print("lost")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("lost\n", "")
