"""How a case of ``golden/commits`` is compared, and the rules of docs/differences.md for what differs on purpose."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import dataclass
from typing import Any

import icefield as ice
from worlds.commits.cases import Json, operations
from worlds.commits.world import World

#: Messages are cut here.
CUT = 180
#: What a refusal of the library is here: the classes of its causes.
CAUSES: dict[str, tuple[type[Exception], ...]] = {
    "validation": (ice.ValidationException,),
    "illegal": (ice.InvalidArgumentError,),
    "commit_failed": (ice.CommitFailedException,),
}
#: Exceptions of the library that stand for no rule: it fails on what it did not expect.
ACCIDENTS = {"null_pointer", "illegal_state", "other"}
#: Changes that the library never tries again, and we do where nothing that they build on has changed.
NEVER_AGAIN = {"update_schema", "update_spec", "manage_snapshots", "transaction"}
#: Arguments that are wrong whatever others do; the library has a `ValidationException` for some.
WRONG_ARGUMENTS = re.compile(
    r"Cannot roll back to|Cannot set \S+ to unknown snapshot|GC is disabled|Cannot find field|Cannot find source column"
)
#: The refusals of "Data files that deletes are for", "Deletes of rows that are written again" and "Two deletion vectors
#: for one data file".
REMOVED_DATA = re.compile(r"removed the data file (\S+), which new deletes are for")
DELETES_BESIDE = re.compile(r"added the delete file \S+, which applies to ([^\s;]+)")
SECOND_VECTOR = re.compile(r"(\S+): the snapshot adds a deletion vector for the file, which has one already")
#: Counts of delete files in summaries, and what they are part of.
OF_DELETES = re.compile(
    r".*-(delete-files|deletes|dvs)|(added|removed|total)-files-size|manifests-.*|changed-partition-count"
)


@dataclass(frozen=True)
class Outcome:
    """Whether an operation ended as the case says, and whether the table is then the one of the case."""

    is_expected: bool
    compares_state: bool
    why: str


def outcome_of(case: Json, refused: Exception | None, world: World) -> Outcome:
    """Judge how the operation under test ended."""
    expected = case["expected"]
    outcome, name = expected["outcome"], case["operation"]["op"]
    if _refused_by_rule(case, refused, world):
        return Outcome(outcome in {"ok", "validation"}, False, "refused by a rule that the library lacks")
    if outcome == "ok" and _is_for_an_audit(case):
        return Outcome(isinstance(refused, ice.InvalidArgumentError), False, "would be seen before its audit")
    if outcome == "ok":
        return Outcome(refused is None, True, "taken by the library")
    if outcome in ACCIDENTS:
        return Outcome(refused is None or isinstance(refused, ice.IcefieldError), False, "an accident of the library")
    if outcome == "commit_failed" and name in NEVER_AGAIN and refused is None:
        return Outcome(True, False, "tried again")
    message = expected.get("message") or ""
    causes = CAUSES[outcome]
    if name == "upgrade":
        causes = (*causes, ice.UnsupportedFeatureError)
    if outcome == "validation" and WRONG_ARGUMENTS.search(message):
        causes = (*causes, ice.InvalidArgumentError)
    if outcome == "commit_failed" and name in NEVER_AGAIN:
        # Tried again, and then refused for what was found.
        causes = (*causes, ice.InvalidArgumentError, ice.ValidationException)
    if not isinstance(refused, causes):
        return Outcome(False, False, f"{outcome}: {message}")
    missing = [] if outcome == "commit_failed" else [name for name in named(world, message) if name not in str(refused)]
    return Outcome(not missing, False, f"{outcome}: {message}; the message lacks {missing}")


def _refused_by_rule(case: Json, refused: Exception | None, world: World) -> bool:
    """Whether a change is refused for what the library does not see."""
    given = case["operation"]
    if isinstance(refused, ice.ValidationException) and (found := DELETES_BESIDE.search(str(refused))):
        beside = case["expected"]["outcome"] == "ok" and "conflict_filter" in given and bool(given.get("add"))
        return beside and found[1] in {world.path(name) for name in given.get("remove", [])}
    if isinstance(refused, ice.InvalidArgumentError) and "the data sequence number" in str(refused):
        return given["op"] == "rewrite_files" and case["expected"]["outcome"] == "ok"
    if given["op"] != "row_delta" or not isinstance(refused, ice.ValidationException):
        return False
    if found := REMOVED_DATA.search(str(refused)):
        listed = {world.path(name) for name in given.get("validate_data_files_exist", [])}
        return found[1] in listed and not given.get("validate_deleted_files")
    if found := SECOND_VECTOR.search(str(refused)):
        added = {case["files"][name].get("referenced_data_file") for name in given["add_deletes"]}
        removed = {world.path(name) for name in given.get("remove_deletes", [])}
        live = [path for path, entry in world.live_entries().items() if _vector_of(entry) == found[1]]
        return found[1] in {world.location(path) for path in added if path} and not removed & set(live) and bool(live)
    return False


def _vector_of(entry: Json) -> str | None:
    """Return the data file of a deletion vector."""
    file = entry["data_file"]
    return file.get("referenced_data_file") if file["file_format"].lower() == "puffin" else None


def asks_for_version_4(case: Json) -> bool:
    """Whether a step upgrades the table to version 4 ("Format version 4")."""
    return any(step["op"] == "upgrade" and step["format_version"] == 4 for step in case["steps"])


def _is_for_an_audit(case: Json) -> bool:
    """Whether a snapshot has a ``wap.id`` and is not staged, in a table without audits ("Audits")."""
    given = case["operation"]
    return "wap.id" in given.get("summary", {}) and not given.get("stage_only")


def named(world: World, message: str) -> list[str]:
    """List what a message of the library names: snapshots and files, as they are here."""
    if len(message) >= CUT:
        return []
    snapshots = [str(world.snapshots[int(number)]) for number in re.findall(r"<snapshot (\d+)>", message)]
    files = re.findall(r"mem:///w/t/data/[\w.-]+[\w]", message)
    return snapshots + [world.location(path) for path in files]


def same(world: World, expected: Json, found: Json) -> None:
    """Compare a table with that of the case."""
    expected, found = copy.deepcopy(expected), copy.deepcopy(found)
    _void_partitions(world.case, expected, found)
    if world.case["operation"]["op"] == "replace_table" and world.case["base"] < len(world.case["steps"]):
        _replaced(expected, found)
        return
    _totals_of_new_branches(world, expected, found)
    _after_a_lost_attempt(world.case, expected, found)
    _copied_in_version_1(world.case, expected, found)
    _deletes_of_other_partitions(world.case, expected, found)
    _deletes_of_replacing_files(world.case, expected, found)
    for state in (expected, found):
        state["manifests"] = {head: _arranged(world.case, rows) for head, rows in state["manifests"].items()}
    lines = differences(expected, found)
    assert not lines, "\n".join(lines)


def differences(expected: object, found: object, place: str = "") -> list[str]:
    """List where two JSON values differ."""
    if isinstance(expected, dict) and isinstance(found, dict):
        keys = sorted(set(expected) | set(found))
        return [line for key in keys for line in differences(expected.get(key), found.get(key), f"{place}/{key}")]
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = enumerate(zip(expected, found, strict=True))
        return [line for number, (one, other) in pairs for line in differences(one, other, f"{place}/{number}")]
    return [] if expected == found else [f"{place}: expected {expected!r}, found {found!r}"]


def _replaced(expected: Json, found: Json) -> None:
    """Keep the history that others have made meanwhile; the library forgets it ("Replaced tables")."""
    kept = {snapshot["snapshot"] for snapshot in found["snapshots"]}
    assert kept >= {snapshot["snapshot"] for snapshot in expected["snapshots"]}
    assert found["refs"].get("main") == expected["refs"].get("main")
    if "main" not in expected["refs"]:
        return
    head = str(expected["refs"]["main"]["snapshot"])
    theirs, own = expected["manifests"].get(head), found["manifests"].get(head)
    for manifest in [*(theirs or []), *(own or [])]:
        # Sequence numbers and row ids count what others have added.
        manifest["entries"] = [entry[:3] for entry in manifest["entries"]]
        for counted in ("seq", "min_seq", "first_row_id"):
            manifest.pop(counted, None)
    lines = differences(theirs, own)
    assert not lines, "\n".join(lines)


def _arranged(case: Json, manifests: list[Json]) -> list[Json]:
    """Bring manifests into one order where the library orders them by hash codes; row ids then follow that."""
    if not case.get("unordered_manifests"):
        return manifests
    for manifest in manifests:
        manifest.pop("first_row_id", None)
        manifest["entries"] = [entry[:5] for entry in manifest["entries"]]
    return sorted(manifests, key=lambda manifest: json.dumps(manifest, sort_keys=True))


def _totals_of_new_branches(world: World, expected: Json, found: Json) -> None:
    """Count what a branch holds; the library begins to count at zero ("Totals of a new branch")."""
    counted = set(world.branched)
    for snapshot in found["snapshots"]:
        if snapshot.get("parent") in counted:
            counted.add(snapshot["snapshot"])
    for number in counted & {int(head) for head in found["manifests"]}:
        files = [m["files"] for m in found["manifests"][str(number)] if m["content"] == "data"]
        summary = next(s["summary"] for s in found["snapshots"] if s["snapshot"] == number)
        assert int(summary["total-data-files"]) == sum(added + existing for added, existing, _ in files)
    for state in (expected, found):
        for snapshot in state["snapshots"]:
            if snapshot["snapshot"] in counted:
                snapshot["summary"] = {
                    key: value for key, value in snapshot["summary"].items() if not key.startswith("total-")
                }


def _copied_in_version_1(case: Json, expected: Json, found: Json) -> None:
    """Copy manifests that are appended in version 1; then their sizes are known ("Manifests that are appended")."""
    if case["properties"].get("compatibility.snapshot-id-inheritance.enabled") != "true":
        return
    for own, theirs in zip(found["snapshots"], expected["snapshots"], strict=True):
        for name in ("added-files-size", "changed-partition-count"):
            if name not in theirs["summary"]:
                own["summary"].pop(name, None)


def _live(state: Json) -> set[str]:
    rows = [row for rows in state["manifests"].values() for row in rows]
    return {entry[1] for row in rows for entry in row["entries"] if entry[0] != "deleted"}


def _void_partitions(case: Json, expected: Json, found: Json) -> None:
    """Remove files whose partition fields are all void; the library does not find them ("Void partitions")."""
    named = {name for given in operations(case) for name in given.get("remove", []) if name in case["files"]}
    void = {name for name in named if not any(value is not None for value in case["files"][name]["partition"])}
    left = _live(expected) - _live(found)
    if case["format_version"] != 1 or not left or not left <= void or not _live(found) <= _live(expected):
        return
    for state in (expected, found):
        state["manifests"] = {}
        for snapshot in state["snapshots"]:
            snapshot["summary"] = {}


def _deletes_of_other_partitions(case: Json, expected: Json, found: Json) -> None:
    """Remove delete files older than all data when that is seen; the library, later ("Delete files that are left")."""
    given = list(operations(case))
    if not any(one.get("remove") and one.get("remove_deletes") for one in given) or "manifests" not in found:
        return
    named = {name for one in given for name in one.get("remove_deletes", [])}

    def removed(state: Json) -> set[str]:
        rows = [row for rows in state["manifests"].values() for row in rows if row["content"] == "deletes"]
        return {entry[1] for row in rows for entry in row["entries"] if entry[0] == "deleted"}

    late = removed(expected) - removed(found) - named
    if not late or _live(expected) != _live(found):
        return
    for state in (expected, found):
        for head, rows in state["manifests"].items():
            state["manifests"][head] = [row for row in rows if {entry[1] for entry in row["entries"]} - late]
        for snapshot in state["snapshots"]:
            summary = snapshot["summary"].items()
            snapshot["summary"] = {name: value for name, value in summary if not OF_DELETES.fullmatch(name)}


def _deletes_of_replacing_files(case: Json, expected: Json, found: Json) -> None:
    """Keep deletes that files of a given number need; the library drops them ("Deletes of replacing files")."""
    number = case["operation"].get("data_sequence_number")
    if number is None or "manifests" not in found:
        return
    dropped = False
    for head, rows in expected["manifests"].items():
        for place, (theirs, own) in enumerate(zip(rows, found["manifests"].get(head, []), strict=False)):
            pairs = list(zip(theirs["entries"], own["entries"], strict=False))
            needed = [mine for one, mine in pairs if (one[0], mine[0], one[1]) == ("deleted", "existing", mine[1])]
            same = [one for one, mine in pairs if one == mine]
            if needed and theirs["content"] == own["content"] == "deletes" and len(needed) + len(same) == len(pairs):
                assert all(entry[3] >= number for entry in needed), needed
                rows[place], dropped = own, True
    for state in (expected, found):
        for snapshot in state["snapshots"] if dropped else ():
            summary = snapshot["summary"].items()
            snapshot["summary"] = {name: value for name, value in summary if not OF_DELETES.fullmatch(name)}


def _after_a_lost_attempt(case: Json, expected: Json, found: Json) -> None:
    """Count and number anew in each attempt; the library keeps what it had ("After a lost attempt")."""
    rebased = case["operation"]["op"] == "transaction" and case["base"] < len(case["steps"])
    if not rebased and not case.get("race"):
        return
    for own, theirs in zip(found["snapshots"], expected["snapshots"], strict=True):
        added = {name: value for name, value in theirs["summary"].items() if name.startswith("added-")}
        counted = own["summary"]
        # Delete files of each attempt are added up.
        if (
            rebased
            and "added-delete-files" in added
            and all(int(value) == 2 * int(counted.get(name, 0)) for name, value in added.items())
        ):
            theirs["summary"] |= {name: counted[name] for name in added}
    for state in (expected, found):
        for snapshot in state["snapshots"]:
            snapshot["summary"].pop("manifests-replaced", None)
        if rebased:
            for manifest in (manifest for rows in state["manifests"].values() for manifest in rows):
                manifest["entries"] = [entry[:3] for entry in manifest["entries"]]
                for number in ("seq", "min_seq", "first_row_id"):
                    manifest.pop(number, None)


def same_expiry(world: World, expected: Json, done: Any) -> None:
    """Compare what an expiry reports with what the library deleted ("Files of expired snapshots")."""
    assert [world.number(snapshot_id) for snapshot_id in done.snapshot_ids] == expected["expired"]
    given = {key: set(value) for key, value in expected["deleted_files"].items()}
    assert {world.lists[path] for path in done.manifest_lists} == given.pop("manifest_lists", set())
    assert {world.manifests[path] for path in done.manifests} == given.pop("manifests", set())
    statistics = {world.location(path) for path in given.pop("statistics", set())}
    assert set(done.statistics_files) == statistics
    live, removed = kept_files(world)
    for kind, found in (("data_files", done.data_files), ("delete_files", done.delete_files)):
        names = {path.rpartition("/")[2] for path in found}
        theirs = given.pop(kind, set())
        assert not names & live, "files of snapshots that are kept"
        # The library may delete what a kept snapshot has removed, and leave what was removed by one that is gone.
        assert theirs - names <= removed, kind
        assert not (names - theirs) & removed, kind
    assert given == {}


def kept_files(world: World) -> tuple[set[str], set[str]]:
    """List the files that snapshots of the table have, and those that they have removed."""
    live, removed = set(), set()
    snapshots = world.table().metadata.snapshots
    ids = {snapshot.snapshot_id for snapshot in snapshots}
    for snapshot in snapshots:
        for row in world.manifest_list(snapshot):
            for entry in ice.manifests.read(world.read(row["manifest_path"]), manifest=row, metrics=False).to_pylist():
                name = entry["data_file"]["file_path"].rpartition("/")[2]
                if entry["status"] != 2:
                    live.add(name)
                elif entry["snapshot_id"] in ids:
                    removed.add(name)
    return live, removed
