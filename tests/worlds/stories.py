"""What happens to a random table before it is scanned: appends, changes of schema and spec, deletes, branches."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from random import Random
from typing import Any

import icefield as ice

from .tables import TRANSFORMS, primitives, random_partition, random_rows, random_schema

WIDER = {"int": "long", "float": "double", "decimal(9, 2)": "decimal(20, 2)"}
NEW_COLUMNS = {"int": 7, "string": "new", "date": None, "double": 1.5, "boolean": True}

# How another writer adds files to the table: a verb and its arguments.
Peer = Callable[..., int]


@dataclass
class Story:
    """A table with its past."""

    table: ice.Table
    version: int
    rows: int = 0
    log: list[str] = field(default_factory=list)

    def scans(self) -> list[dict[str, Any]]:
        """List the ways to scan it: now, at any snapshot, on any branch or tag."""
        found: list[dict[str, Any]] = [{}, {}, {}]
        found += [{"snapshot_id": snapshot.snapshot_id} for snapshot in self.table.snapshots()]
        return found + [{"ref": name} for name in self.table.refs()]


def properties(rng: Random, version: int) -> dict[str, str]:
    """Choose what decides about metrics, row groups, manifests and splits."""
    metrics = rng.choice(["truncate(16)", "truncate(1)", "truncate(3)", "counts", "none", "full"])
    return {
        "format-version": str(version),
        "write.metadata.metrics.default": metrics,
        "write.metadata.metrics.column.id": rng.choice(["full", metrics]),
        "write.parquet.row-group-size-bytes": rng.choice(["1024", "134217728"]),
        "commit.manifest.min-count-to-merge": rng.choice(["2", "100"]),
        "read.split.planning-lookback": rng.choice(["1", "3", "10"]),
        "read.split.open-file-cost": rng.choice(["0", "1000", "4194304"]),
        "write.delete.mode": "merge-on-read",
        "write.update.mode": "merge-on-read",
    }


def tell(
    rng: Random, catalog: Any, name: str, *, peer: Peer | None = None, events: int = 6, without: Collection[str] = ()
) -> Story:
    """Make a table and let some events happen to it; those of other writers only where there is a peer.

    ``without`` names types that no column has.
    """
    version = rng.choice([1, 2, 2, 3, 3])
    schema = random_schema(rng, version, without)
    partition = [_text(*part) for part in random_partition(rng, schema)]
    table = catalog.create_table(name, schema=schema, partition_by=partition, properties=properties(rng, version))
    story = Story(table, version, log=[f"v{version} {partition}"])
    _append(rng, story)
    happenings = [_append, _append, _evolve_schema, _evolve_spec, _branch]
    for _ in range(events):
        happening = rng.choice(happenings)
        if peer is not None and rng.random() < 0.5:
            _peer(rng, story, peer)
        else:
            happening(rng, story)
    _append(rng, story)
    return story


def _text(column: str, transform: str) -> str:
    name = f'"{column}"'
    if transform == "identity":
        return name
    kind, _, parameter = transform.partition("[")
    return f"{kind}({parameter[:-1]}, {name})" if parameter else f"{kind}({name})"


def _append(rng: Random, story: Story, branch: str = "main") -> None:
    count = rng.choice([1, 3, 8, 20])
    story.table.append(random_rows(rng, story.table.schema(), story.rows, count), branch=branch)
    story.rows += count
    story.log.append(f"append {count} to {branch}")


def _branch(rng: Random, story: Story) -> None:
    current = story.table.current_snapshot()
    assert current is not None
    name = f"b{len(story.log)}"
    if rng.random() < 0.4:
        story.table.manage_snapshots().create_tag(current.snapshot_id, name).commit()
    else:
        story.table.manage_snapshots().create_branch(current.snapshot_id, name).commit()
        _append(rng, story, name)
    story.log.append(f"reference {name}")


def _evolve_schema(rng: Random, story: Story) -> None:
    table = story.table
    sources = {column for spec in table.specs().values() for column in _sources(spec)}
    columns = [column for column in primitives(table.schema()) if column.name != "id"]
    column = rng.choice(columns)
    kind = rng.choice(["add", "rename", "widen", "drop"])
    with table.update_schema() as update:
        name = f"n{len(story.log)}"
        wider = WIDER.get(column.type)
        if kind == "rename":
            update.rename_column(column.name, name)
        elif kind == "widen" and wider is not None and column.id not in sources:
            update.update_column(column.name, wider)
        elif kind == "drop" and column.id not in sources and not column.nested:
            update.delete_column(column.name)
        else:
            new = rng.choice(list(NEW_COLUMNS))
            default = NEW_COLUMNS[new] if story.version > 2 and rng.random() < 0.5 else None
            update.add_column(name, new, default_value=default)
    story.log.append(f"schema {kind} {column.name}")


def _sources(spec: Any) -> set[int]:
    found = json.loads(spec.to_json())["fields"]
    return {source for field in found for source in field.get("source-ids", [field.get("source-id")])}


def _evolve_spec(rng: Random, story: Story) -> None:
    table = story.table
    fields = [part for part in json.loads(table.spec().to_json())["fields"] if part["transform"] != "void"]
    taken = {(part.get("source-id"), part["transform"].split("[")[0]) for part in fields}
    column = rng.choice([column for column in primitives(table.schema()) if column.type in TRANSFORMS])
    transform = rng.choice(TRANSFORMS[column.type])
    with table.update_spec() as update:
        if fields and rng.random() < 0.5:
            update.remove_field(rng.choice(fields)["name"])
        elif (column.id, transform.split("[")[0]) not in taken and transform != "void":
            update.add_field(column.name, transform, f"p{len(story.log)}")
    story.log.append(f"spec {column.name} {transform}")


def _peer(rng: Random, story: Story, peer: Peer) -> None:
    table = story.table
    ids = rng.sample(range(story.rows), min(story.rows, rng.randint(1, 6)))
    verbs = ["copy", "copy"]
    if story.version > 1:
        verbs += ["sql", "delete_equal", "delete_equal", "positions", "positions"]
    verb = rng.choice(verbs)
    if verb == "copy":
        file_format = rng.choice(["parquet", "parquet", "parquet", "avro", "orc"])
        peer(verb, ids=ids, file_format=file_format, fast=rng.random() < 0.5)
    elif verb == "sql":
        peer(verb, ids=ids)
    elif verb == "delete_equal":
        plain = [column for column in primitives(table.schema()) if not column.nested]
        keys = [column.name for column in rng.sample(plain, rng.choice([1, 1, 2]))]
        peer(verb, ids=ids, columns=rng.choice([["id"], keys]), everywhere=rng.random() < 0.4)
    elif story.version > 2:
        peer("delete_vectors", places=rng.choices(range(50), k=rng.randint(1, 3)))
    else:
        peer("delete_positions", places=rng.choices(range(50), k=rng.randint(1, 3)), together=rng.random() < 0.5)
    table.refresh()
    story.log.append(f"Java {verb}")
