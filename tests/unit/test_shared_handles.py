"""Handles that two threads share, or that the code which feeds them uses again: calls end, and nothing is lost.

The cases run in processes of their own, as a lock that is waited for with the interpreter's lock stops every thread.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import json, sys, threading
import pyarrow as pa
import icefield as ice
from icefield import orc
from icefield.distributed import TaskWriter

way, kind, calls, place = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), sys.argv[4]
rows = pa.table({"n": pa.array([1], pa.int64())})
old = pa.table({"n": pa.array(range(5), pa.int64())})
feeds = {"transaction": "append", "create": "append", "stream": "upsert", "writer": "write", "orc": "write"}

def opened(number):
    catalog = ice.load_catalog("m", type="in-memory", warehouse=f"{place}/{number}")
    catalog.create_namespace("a")
    table = catalog.create_table("a.t", rows, properties={"format-version": "2"}).append(old)
    if kind == "transaction":
        return table.transaction(), lambda tx: ids(tx.commit_transaction())
    if kind == "create":
        return catalog.create_table_transaction("a.new", rows), lambda tx: ids(tx.commit_transaction())
    if kind == "stream":
        return table.upsert_stream("n"), lambda stream: (stream.commit(), ids(table))[1]
    if kind == "writer":
        return TaskWriter(table.new_write(), table.storage, rows.schema), lambda writer: writer.close().row_count
    path = f"{place}/{number}.orc"
    return orc.ORCWriter(path), lambda writer: (writer.close(), orc.read_table(path).num_rows)[1]

def ids(table):
    return sorted(table.scan().to_arrow()["n"].to_pylist())

def tried(call, tx):
    said = []
    begun, go_on = threading.Event(), threading.Event()

    def attempt():
        try:
            exec(call, {"tx": tx, "rows": rows})
            said.append("done")
        except Exception as error:
            said.append(f"{type(error).__name__}: {error}")

    def beside():
        begun.set()
        go_on.wait(60)

    def feed(meanwhile):
        def source():
            for number in range(3):
                if number == 1:
                    meanwhile()
                yield pa.record_batch({"n": pa.array([10 + number], pa.int64())})

        getattr(tx, feeds[kind])(pa.RecordBatchReader.from_batches(rows.schema, source()))

    def asked(batch):
        attempt()
        return pa.array([True] * batch.num_rows)

    if way == "within":
        feed(attempt)
    elif way == "merge":
        tx.merge(rows, "n").when_matched_delete(asked).execute()
    else:
        threads = [threading.Thread(target=feed, args=[beside]), threading.Thread(target=attempt)]
        threads[0].start()
        begun.wait(60)
        threads[1].start()
        # The other call waits by then, or is done; if it waits with the interpreter's lock, this never returns.
        threads[1].join(0.1)
        go_on.set()
        for thread in threads:
            thread.join()
    return said

for number, call in enumerate(calls):
    print(f"begun: {call}", file=sys.stderr, flush=True)
    tx, end = opened(number)
    said = tried(call, tx)
    print(json.dumps([said, end(tx) if way != "beside" else None]))
"""

#: Calls of a handle while rows are taken: each must raise from within the source, and end from another thread.
CALLS = {
    "transaction": [
        "tx.append(rows)", "tx.delete('n = 1')", "tx.update({'n': 2})", "tx.overwrite(rows)", "tx.upsert(rows, 'n')",
        "tx.merge(rows, 'n').when_matched_delete().execute()", "tx.set_properties({'a': 'b'})",
        "tx.remove_properties('a')", "tx.update_schema().add_column('m', 'int').commit()",
        "tx.rewrite_manifests().cluster_by('file_format').commit()", "tx.commit_transaction()",
        "tx.__exit__(ValueError, ValueError(), None)", "tx.__exit__(None, None, None)",
    ],
    "create": ["tx.append(rows)", "tx.commit_transaction()"],
    "stream": [
        "tx.upsert(rows)", "tx.delete(rows)", "tx.commit()", "tx.close()", "tx.__exit__(None, None, None)",
        "tx.__exit__(ValueError, ValueError(), None)",
    ],
    "writer": ["tx.write(rows)", "tx.close()", "tx.abort()", "tx.__exit__(ValueError, ValueError(), None)"],
    "orc": ["tx.write(rows)", "tx.close()", "tx._writer.flush()", "tx._writer.abort()", "tx._writer.memory"],
}  # fmt: skip

#: What the rows are if only those of the source were taken.
TAKEN = {
    "transaction": [0, 1, 2, 3, 4, 10, 11, 12],
    "create": [10, 11, 12],
    "stream": [0, 1, 2, 3, 4, 10, 11, 12],
    "writer": 3,
    "orc": 3,
}


def run(way: str, kind: str, calls: list[str], place: Path) -> list[tuple[str, list[str], object]]:
    command = [sys.executable, "-c", SCRIPT, way, kind, json.dumps(calls), str(place)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [(call, said, result) for call, (said, result) in zip(calls, lines, strict=True)]


@pytest.mark.parametrize("kind", CALLS)
def test_a_source_that_uses_what_it_feeds_is_refused(kind: str, tmp_path: Path) -> None:
    for call, said, result in run("within", kind, CALLS[kind], tmp_path):
        assert len(said) == 1, call
        assert said[0].startswith("InvalidArgumentError: the "), (call, said)
        assert " is in use: it is waiting for the code that called it here" in said[0], call
        assert result == TAKEN[kind], call


@pytest.mark.parametrize("kind", CALLS)
def test_two_threads_take_turns(kind: str, tmp_path: Path) -> None:
    for call, said, _ in run("beside", kind, CALLS[kind], tmp_path):
        assert len(said) == 1, call
        assert " is in use" not in said[0], call


def test_functions_of_a_merge_are_refused_too(tmp_path: Path) -> None:
    # They are called by threads of the core.
    for call, said, result in run("merge", "transaction", CALLS["transaction"][:4], tmp_path):
        assert said, call
        assert all(" is in use" in text for text in said), call
        assert result == [0, 2, 3, 4], call


BORDER = Path(__file__).parents[2] / "crates" / "python" / "src"
#: Locks that are held for a moment, in which nothing else is called.
BRIEF = {"evolution.rs", "output.rs"}


def without_calls(of: str, text: str) -> str:
    """Take calls of a function out of Rust code, with their arguments."""
    while (begin := text.find(f"{of}(")) >= 0:
        depth, end = 0, begin + len(of)
        while True:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
            if depth == 0:
                break
        text = text[:begin] + text[end:]
    return text


def functions(text: str) -> dict[str, str]:
    """Return the functions of Rust code by name; where several have one name, their bodies together."""
    parts = re.split(r"^ *(?:pub(?:\([a-z]+\))? )?fn (\w+)", text, flags=re.MULTILINE)
    found: dict[str, str] = {}
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        found[name] = found.get(name, "") + body
    return found


def takes_locks(text: str) -> set[str]:
    """Return the functions that wait for a lock without leaving Python's, directly or by others of the file."""
    bodies = {name: without_calls("detached", body) for name, body in functions(text).items()}
    found = {name for name, body in bodies.items() if re.search(r"\.(lock|hold)\(\)", body)}
    while True:
        callers = "|".join(map(re.escape, found)) or "-"
        more = {name for name, body in bodies.items() if re.search(rf"\b(?:self|own)\.({callers})\(", body)}
        if more <= found:
            return found
        found |= more


def test_no_call_from_python_waits_with_pythons_lock() -> None:
    """Who holds a lock may wait for Python's: rows are pulled from generators meanwhile."""
    wrong = []
    for path in BORDER.rglob("*.rs"):
        text = path.read_text().split("#[cfg(test)]")[0]
        if path.name in BRIEF or "#[pymethods]" not in text:
            continue
        blocks = re.findall(r"^#\[pymethods\]\nimpl .*?^}", text, flags=re.MULTILINE | re.DOTALL)
        names = {name for block in blocks for name in functions(block)}
        wrong += [f"{path.name}: {name}" for name in sorted(takes_locks(text) & names)]
    assert wrong == []


def test_waits_with_pythons_lock_are_found() -> None:
    code = """
    fn changes(&self) -> Guard { self.changes.lock() }
    fn bad(&self) -> bool { self.changes().is_empty() }
    fn good(&self, py: Python<'_>) -> bool { detached(py, || self.changes().is_empty()) }
    """
    assert takes_locks(code) == {"changes", "bad"}
