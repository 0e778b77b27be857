"""How long does planning take, over tables of 100,000 and of 1,000,000 data files?

The tables are made once, by our writers, without data files (``crates/table/benches/plan``), and kept in a folder.
Peers: the Java library in a warm virtual machine, Polars with its planner plugin ``polars-iceberg``, PyIceberg and
iceberg-rust; one that is not there is named and left out. Below each table stand the targets, met or missed. The floor
is inflating the manifests of the answer, in memory, with libdeflate.

    python benches/plan.py                        # files, deletes, cold, million, one after the other
    python benches/plan.py files --rounds 3 --peers java,polars

Environment: ``ICEFIELD_BENCH_FOLDER`` (default ``~/.cache/icefield/bench``), ``ICEFIELD_BENCH_FILES`` (100000),
``ICEFIELD_BENCH_RUST`` and ``ICEFIELD_BENCH_RUST_PEER`` (binaries of ``crates/table/benches/plan`` and of
``benches/plan_rust_peer``; else cargo is asked for them), ``ICEFIELD_JAVA_PYTHON``. ``make bench WHAT=plan`` sets all
of it up.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from time import perf_counter
from typing import Any

import icefield as ice

HERE = Path(__file__).resolve().parent
FOLDER = Path(os.environ.get("ICEFIELD_BENCH_FOLDER", Path.home() / ".cache/icefield/bench"))
FILES = int(os.environ.get("ICEFIELD_BENCH_FILES", "100000"))
THREADS = int(os.environ.get("ICEFIELD_THREADS", str(os.cpu_count() or 1)))
#: The first day of the tables, and how many files each day has.
FIRST_DAY, FILES_OF_DAY = date(2020, 1, 1), 1000


@dataclass(frozen=True)
class Answer:
    """What a peer found, and in what time."""

    seconds: float
    files: int
    links: int = 0


@dataclass(frozen=True)
class Question:
    """A filter in the forms that the peers take."""

    name: str
    sql: str | None = None
    peer: dict[str, Any] | None = None


Peer = Callable[[str, Question], Answer]


def questions(files: int) -> list[Question]:
    """No filter, a day in the middle, a range that about one file in 870 meets, and 1,000 ids of one bucket."""
    day = FIRST_DAY + timedelta(days=files // FILES_OF_DAY // 2)
    after = day + timedelta(days=1)
    bucket = ice.transforms.bucket(16)
    ids = [n for n in range(1, 40_000) if bucket.scalar(n, type="long") == 5][:1000]
    return [
        Question("no filter"),
        Question("one day", f"ts >= '{day}T00:00:00' AND ts < '{after}T00:00:00'", {"day": str(day)}),
        Question("range of an unpartitioned column", "price >= 500.0 AND price < 500.15", {"range": [500.0, 500.15]}),
        Question("1,000 ids IN", f"id IN ({', '.join(map(str, ids))})", {"ids": ids}),
    ]


# Tables


def bench_binary() -> str:
    """Find or build the part that is written in Rust."""
    found = os.environ.get("ICEFIELD_BENCH_RUST")
    if found:
        return found
    command = ["cargo", "bench", "-q", "-p", "icefield-table", "--bench", "plan", "--no-run", "--message-format=json"]
    built = subprocess.run(command, cwd=HERE.parent, check=True, stdout=subprocess.PIPE, text=True)
    artifacts = [json.loads(line) for line in built.stdout.splitlines()]
    (binary,) = (a["executable"] for a in artifacts if a.get("executable") and a["target"]["name"] == "plan")
    return str(binary)


def rust_peer() -> str | None:
    """Find or build the peer that stands on iceberg-rust."""
    found = os.environ.get("ICEFIELD_BENCH_RUST_PEER")
    if found is not None:
        return found or None
    manifest = HERE / "plan_rust_peer/Cargo.toml"
    built = Path(os.environ.get("CARGO_TARGET_DIR", manifest.parent / "target")) / "release/plan-peer"
    command = ["cargo", "build", "--release", "--quiet", "--locked", "--manifest-path", str(manifest)]
    done = subprocess.run(command, check=False, stderr=subprocess.DEVNULL)
    return str(built) if done.returncode == 0 and built.exists() else None


def table(files: int, deletes: str = "none") -> str:
    """Make a table if it is not there, and give the location of its metadata."""
    folder = FOLDER / f"plan-2-{files}-{deletes}"
    ready = folder / "location"
    if not ready.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        print(f"    making a table of {files:,} files, deletes: {deletes}", flush=True)
        words = [bench_binary(), "make", str(folder), str(files), deletes]
        made = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
        ready.write_text(made.stdout.strip())
    return ready.read_text()


# Peers in this process


def ours(location: str, question: Question) -> ice.Table:
    """Open the table; what is timed begins after it."""
    return ice.Table.from_metadata(location).scan(row_filter=question.sql)


def icefield_first(location: str, question: Question) -> Answer:
    """Plan with an empty cache, which this fills."""
    ice.manifests.clear_cache()
    return icefield_again(location, question)


def icefield_again(location: str, question: Question) -> Answer:
    """Plan with whatever the cache has."""
    scan = ours(location, question)
    started = perf_counter()
    plan = scan.plan_files()
    seconds = perf_counter() - started
    return Answer(seconds, len(plan), plan.report["result_delete_files"])


def icefield_arrow(location: str, question: Question) -> Answer:
    """Plan with an empty cache, and give the plan as an Arrow table."""
    ice.manifests.clear_cache()
    scan = ours(location, question)
    started = perf_counter()
    plan = scan.plan_files()
    rows = plan.to_arrow().num_rows
    return Answer(perf_counter() - started, rows, plan.report["result_delete_files"])


def pyiceberg_filter(question: Question) -> Any:
    """Give the filter in PyIceberg's classes: parsing text is not asked here."""
    from pyiceberg import expressions as e

    asked = question.peer
    if asked is None:
        return e.AlwaysTrue()
    if "day" in asked:
        after = date.fromisoformat(asked["day"]) + timedelta(days=1)
        low, high = f"{asked['day']}T00:00:00", f"{after}T00:00:00"
        return e.And(e.GreaterThanOrEqual("ts", low), e.LessThan("ts", high))
    if "range" in asked:
        low, high = asked["range"]
        return e.And(e.GreaterThanOrEqual("price", low), e.LessThan("price", high))
    return e.In("id", asked["ids"])


def pyiceberg_plan(location: str, question: Question) -> Answer:
    """Plan with PyIceberg, whose own cache of manifest lists is cleared first."""
    from pyiceberg import manifest
    from pyiceberg.table import StaticTable

    for cache in (getattr(manifest, "_manifest_cache", None), getattr(manifest, "_manifests", None)):
        if hasattr(cache, "clear"):
            cache.clear()
    scan = StaticTable.from_metadata(location).scan(row_filter=pyiceberg_filter(question))
    started = perf_counter()
    tasks = list(scan.plan_files())
    return Answer(perf_counter() - started, len(tasks), sum(len(task.delete_files) for task in tasks))


def polars_plan(location: str, question: Question) -> Answer:
    """Plan with the plugin, as ``polars.scan_iceberg`` calls it; the links of its plan are not to be seen.

    It keeps the bytes of metadata files with a UUID in their name; those of these tables have none.
    """
    from polars.io.iceberg import _plugin
    from pyiceberg.table import StaticTable

    opened = StaticTable.from_metadata(location)
    started = perf_counter()
    frame = _plugin.plugin_scan(
        opened,
        snapshot_id=None,
        from_snapshot_id_exclusive=None,
        to_snapshot_id_inclusive=None,
        projection=None,
        filter_columns=None,
        statistics_columns=None,
        iceberg_table_filter=None if question.peer is None else pyiceberg_filter(question),
        limit=None,
        use_metadata_statistics=False,
        fast_deletion_count=False,
        user_storage_options=None,
    )
    seconds = perf_counter() - started
    more = re.search(r"(\d+) other (?:sources|files)", frame.explain(optimized=False))
    return Answer(seconds, int(more.group(1)) + 1 if more else 0)


# Peers behind a pipe


class Process:
    """A peer that answers a line of JSON with a line of JSON."""

    def __init__(self, command: list[str], *, own_answers: bool = False) -> None:
        read, write = os.pipe()
        words = [*command, str(write)] if own_answers else command
        self._log = (FOLDER / f"{Path(command[-1]).stem}.log").open("w")
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=self._log if own_answers else subprocess.PIPE,
            stderr=self._log,
            pass_fds=(write,) if own_answers else (),
            text=True,
        )
        os.close(write)
        self._answers = os.fdopen(read) if own_answers else self._process.stdout
        if own_answers:
            self._line()

    def _line(self) -> dict[str, Any]:
        assert self._answers is not None
        line = self._answers.readline()
        if not line:
            raise RuntimeError(f"the peer ended; see {self._log.name}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Send a line and wait for the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return self._line()

    def close(self) -> None:
        """End the peer, if it has not ended itself."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait(30)
        self._log.close()


def java_filter(question: Question) -> Any:
    """Give the filter as REST expression."""
    return None if question.sql is None else json.loads(ice.expressions.parse(question.sql).to_json())


@contextmanager
def peers(wanted: set[str]) -> Iterator[dict[str, Peer]]:
    """Start the peers that are wanted and there."""
    started: list[Process] = []
    found: dict[str, Peer] = {"icefield": icefield_first, "icefield, cached": icefield_again}

    def absent(name: str, why: str) -> None:
        print(f"    {name} is left out: {why}", flush=True)

    java = os.environ.get("ICEFIELD_JAVA_PYTHON")
    if "java" in wanted and java:
        process = Process([java, str(HERE / "plan_java_peer.py")], own_answers=True)
        started.append(process)
        found["Java"] = lambda location, question: Answer(
            **process.ask({"table": location, "filter": java_filter(question)})
        )
    elif "java" in wanted:
        absent("Java", "ICEFIELD_JAVA_PYTHON is not set")
    if "polars" in wanted:
        try:
            import polars_iceberg  # noqa: F401
        except ImportError:
            absent("Polars", "pip install polars-iceberg==0.1.0")
        else:
            found["Polars"] = polars_plan
    rust = rust_peer() if "rust" in wanted else None
    if rust:
        peer = Process([rust])
        started.append(peer)
        found["iceberg-rust"] = lambda location, question: Answer(
            **peer.ask({"table": location, "filter": question.peer})
        )
    elif "rust" in wanted:
        absent("iceberg-rust", "benches/plan_rust_peer does not build")
    if "pyiceberg" in wanted:
        try:
            import pyiceberg  # noqa: F401
        except ImportError:
            absent("PyIceberg", "pip install pyiceberg")
        else:
            found["PyIceberg"] = pyiceberg_plan
    try:
        yield found
    finally:
        for process in started:
            process.close()


# The floor


def manifests_of(location: str, question: Question) -> list[str]:
    """Give the manifests that hold the files of the answer."""
    metadata = json.loads(Path(location).read_text())
    listed = ice.manifests.read_list(Path(metadata["snapshots"][0]["manifest-list"]).read_bytes()).to_pylist()
    day = (question.peer or {}).get("day")
    if day is not None:
        wanted = (date.fromisoformat(day) - date(1970, 1, 1)).days.to_bytes(4, "little")
        number = int.from_bytes(wanted, "little")
        listed = [m for m in listed if m["partitions"] and holds(m["partitions"][0], number)]
    return [m["manifest_path"] for m in listed]


def holds(summary: dict[str, Any], number: int) -> bool:
    """Say whether a number lies between the bounds of a summary."""
    lower, upper = (int.from_bytes(summary[name], "little", signed=True) for name in ("lower_bound", "upper_bound"))
    return lower <= number <= upper


# Parts


def target(what: str, figure: float, bound: float, *, most: bool = True) -> None:
    """Say whether a figure is at most, or at least, what it should be."""
    met = figure <= bound if most else figure >= bound
    print(
        f"{'met   ' if met else 'MISSED'} {what}: {figure:.2f}, {'at most' if most else 'at least'} {bound:g}",
        flush=True,
    )


def judge(name: str, best: dict[str, Answer], floor: float, *, of_floor: float | None, of_peers: float | None) -> None:
    """Say which targets of one question are met: times of the floor, of the best peer, and of the cache."""
    mine = best["icefield"].seconds
    others = [answer.seconds for peer, answer in best.items() if not peer.startswith(("icefield", "floor"))]
    if of_floor is not None:
        target(f"{name}, times the floor", mine / floor, of_floor)
    if others and of_peers is not None:
        target(f"{name}, faster than the best peer", min(others) / mine, of_peers, most=False)
    target(f"{name}, faster with the cache", mine / best["icefield, cached"].seconds, 5, most=False)


def timed(
    asked: list[tuple[str, str, Question]], found: dict[str, Peer], rounds: int, refused: dict[str, str]
) -> dict[str, dict[str, Answer]]:
    """Give the best answers by question and peer, and put into ``refused`` what a peer could not answer.

    Questions and peers go in turns: what slows the machine down for a moment is not put down to one of them.
    """
    floor = Process([bench_binary()])
    paths = {name: manifests_of(location, question) for name, location, question in asked}
    answers: dict[str, dict[str, Answer]] = {name: {} for name in paths}

    def keep(name: str, peer: str, answer: Answer) -> None:
        known = answers[name].get(peer)
        answers[name][peer] = answer if known is None or answer.seconds < known.seconds else known

    for _ in range(rounds):
        for name, location, question in asked:
            for peer, plan in found.items():
                if peer in answers[name] and answers[name][peer].seconds > 3:
                    continue
                gc.collect()
                try:
                    keep(name, peer, plan(location, question))
                except Exception as error:  # a peer that cannot is shown so
                    if peer.startswith("icefield"):
                        raise
                    refused.setdefault(f"{peer}, {name}", str(error)[:100])
            for threads in (1, THREADS):
                seconds = floor.ask({"inflate": paths[name], "threads": threads})["seconds"]
                keep(name, f"floor, {threads} thread{'s' if threads > 1 else ''}", Answer(seconds, 0))
    floor.close()
    return answers


def ask(
    title: str, asked: list[tuple[str, str, Question]], found: dict[str, Peer], rounds: int
) -> dict[str, dict[str, Answer]]:
    """Time all peers and print a table: seconds, ratios, what each has found; give the best by question."""
    refused: dict[str, str] = {}
    answers = timed(asked, found, rounds, refused)
    names = [*found, "floor, 1 thread", f"floor, {THREADS} threads"]
    print("| " + " | ".join([title, *names, "times the floor", "best peer / icefield", "files", "links"]) + " |")
    print("| --- |" + " ---: |" * (len(names) + 4))
    for name, best in answers.items():
        mine = best["icefield"]
        others = [best[peer].seconds for peer in found if not peer.startswith("icefield") and peer in best]
        cells = [name, *(f"{best[peer].seconds:.4f}" if peer in best else "–" for peer in names)]
        cells.append(f"{mine.seconds / best[names[-1]].seconds:.2f}")
        cells.append(f"{min(others) / mine.seconds:.2f}" if others else "–")
        cells += [f"{mine.files:,}", f"{mine.links:,}"]
        print("| " + " | ".join(cells) + " |", flush=True)
        for peer, answer in best.items():
            if peer in found and (answer.files not in (0, mine.files) or answer.links not in (0, mine.links)):
                refused[f"{peer}, {name}"] = f"{answer.files:,} files, {answer.links:,} links"
    for who, what in refused.items():
        print(f"    {who}: {what}", flush=True)
    return answers


def judge_questions(answers: dict[str, dict[str, Answer]]) -> None:
    """Say which targets of the four questions are met."""
    for name, best in answers.items():
        of_floor, of_peers = {"one day": (None, 2), "1,000 ids IN": (None, None)}.get(name, (2, 2.5))
        judge(name, best, best[f"floor, {THREADS} threads"].seconds, of_floor=of_floor, of_peers=of_peers)
    if {"no filter", "1,000 ids IN"} <= answers.keys():
        pace = answers["1,000 ids IN"]["icefield"].seconds / answers["no filter"]["icefield"].seconds
        target("1,000 ids IN, times no filter", pace, 1.2)


def part_files(options: argparse.Namespace) -> None:
    """Ask the four questions of one table, warm."""
    location = table(options.files)
    with peers(options.peers) as found:
        all_found = dict(found)
        all_found["icefield, to Arrow"] = icefield_arrow
        asked = [(question.name, location, question) for question in questions(options.files)]
        answers = ask(f"{options.files:,} files, warm process", asked, all_found, options.rounds)
        for best in answers.values():
            # Another form of our own answer; not a peer.
            del best["icefield, to Arrow"]
        judge_questions(answers)


def part_deletes(options: argparse.Namespace) -> None:
    """Ask for everything of tables with deletes."""
    kinds = ("position", "vectors", "equality")
    asked = [(f"{kind} deletes", table(options.files, kind), Question(kind)) for kind in kinds]
    with peers(options.peers) as found:
        answers = ask(f"{options.files:,} files with deletes", asked, found, options.rounds)
    for name, best in answers.items():
        judge(name, best, best[f"floor, {THREADS} threads"].seconds, of_floor=2, of_peers=2.5)
        links = -(-options.files // 10)
        target(f"{name}, links that are not right", abs(best["icefield"].links - links), 0)


COLD = {
    "icefield": "import icefield as ice; print(len(ice.Table.from_metadata({0!r}).scan().plan_files()))",
    "Polars": "import plan; print(plan.polars_plan({0!r}, plan.Question('no filter')).files)",
    "PyIceberg": "from pyiceberg.table import StaticTable as T; "
    "print(len(list(T.from_metadata({0!r}).scan().plan_files())))",
}


def cold_java(location: str) -> float:
    """Give the time of the first plan of a virtual machine, without the time that Spark takes to start it."""
    process = Process([os.environ["ICEFIELD_JAVA_PYTHON"], str(HERE / "plan_java_peer.py")], own_answers=True)
    try:
        return float(process.ask({"table": location, "filter": None})["seconds"])
    finally:
        process.close()


def cold_process(command: list[str], asked: str, files: int) -> float:
    """Give the time of a process from its start to its end."""
    started = perf_counter()
    done = subprocess.run(command, input=asked, check=True, stdout=subprocess.PIPE, text=True, cwd=HERE)
    seconds = perf_counter() - started
    if str(files) not in done.stdout:
        raise RuntimeError(f"{files} files were wanted, not {done.stdout}")
    return seconds


def part_cold(options: argparse.Namespace) -> None:
    """Time processes from their start to their end: import, open, plan everything."""
    location = table(options.files)
    found: dict[str, Callable[[], float]] = {}

    def script(name: str) -> Callable[[], float]:
        command = [sys.executable, "-c", COLD[name].format(location)]
        return lambda: cold_process(command, "", options.files)

    found.update((name, script(name)) for name in COLD if name == "icefield" or name.lower() in options.peers)
    if "java" in options.peers and os.environ.get("ICEFIELD_JAVA_PYTHON"):
        found["Java, its first plan"] = lambda: cold_java(location)
    rust = rust_peer() if "rust" in options.peers else None
    if rust:
        asked = json.dumps({"table": location, "filter": None})
        found["iceberg-rust"] = lambda: cold_process([rust], asked, options.files)
    best: dict[str, float] = {}
    for _ in range(options.rounds):
        for name, run in found.items():
            if best.get(name, 0) > 3:
                continue
            try:
                best[name] = min(run(), best.get(name, float("inf")))
            except (subprocess.CalledProcessError, RuntimeError) as error:
                if name == "icefield":
                    raise
                print(f"    {name}: {error}", flush=True)
    for name, seconds in best.items():
        print(f"cold process, {options.files:,} files, no filter: {name} {seconds:.2f} s", flush=True)
    others = [seconds for name, seconds in best.items() if name != "icefield"]
    if others:
        target("cold process, faster than the best peer", min(others) / best["icefield"], 2.5, most=False)


STREAM = """
import resource, sys, time
import icefield as ice
started = time.perf_counter()
scan = ice.Table.from_metadata(sys.argv[1]).scan()
files = sum(batch.num_rows for batch in scan.plan_batches())
print(files, time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def part_million(options: argparse.Namespace) -> None:
    """Ask the four questions of a table ten times as large, and stream its plan in a process of its own."""
    files = options.files * 10
    location = table(files)
    small = table(options.files)
    found: dict[str, Peer] = {"icefield": icefield_first, "icefield, cached": icefield_again}
    none = Question("no filter")
    sizes = [(f"{n:,} files", t, none) for n, t in ((options.files, small), (files, location))]
    of_hundred, of_million = (
        best["icefield"].seconds for best in ask("scaling", sizes, found, options.rounds).values()
    )
    target("ten times the files, times the time", of_million / of_hundred, 12)
    done = subprocess.run([sys.executable, "-c", STREAM, location], check=True, stdout=subprocess.PIPE, text=True)
    count, seconds, peak = done.stdout.split()
    print(f"streamed to Arrow: {int(count):,} files in {float(seconds):.2f} s, peak memory {int(peak) >> 10} MiB")
    target("peak memory of the stream in MiB", int(peak) >> 10, 1023)
    with peers(options.peers - {"pyiceberg", "rust"}) as others:
        judge_questions(
            ask(f"{files:,} files", [(q.name, location, q) for q in questions(files)], others, options.rounds)
        )


PARTS = {"files": part_files, "deletes": part_deletes, "cold": part_cold, "million": part_million, "make": None}


def main() -> None:
    """Ask what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all without: files deletes cold million; make")
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--peers", type=lambda text: set(filter(None, text.split(","))), default="java,polars,rust,pyiceberg"
    )
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for part in options.parts or ["files", "deletes", "cold", "million"]:
        if part == "make":
            for files, deletes in [(options.files, kind) for kind in ("none", "position", "vectors", "equality")]:
                table(files, deletes)
            table(10 * options.files)
            continue
        PARTS[part](options)  # type: ignore[misc]


if __name__ == "__main__":
    main()
