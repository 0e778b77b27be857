"""Random changes of ours to a table that Java has made (`java_story`), and the rows that each must leave."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

import icefield as ice
from worlds.encoding import encoded_table
from worlds.java_story import Story

Encoded = list[dict[str, Any]]
#: What a step did, and the rows that the table must have then; none where only Java says.
Done = tuple[str, Encoded | None]
MODES = ("copy-on-write", "merge-on-read", "auto")


class OurSteps:
    """Draws changes of a table, which mean something by the columns that it has."""

    def __init__(self, rng: Random, story: Story, table: ice.Table, folder: Path) -> None:
        self.rng = rng
        self.story = story
        self.table = table
        self.folder = folder

    def step(self) -> Done:
        """Make the next change."""
        self.table.refresh()
        before = self.table.scan().to_arrow()
        kinds: list[Callable[[pa.Table], Done]] = [
            *[self.append, self.delete, self.delete, self.update, self.update, self.upsert, self.upsert, self.merge],
            *[self.overwrite, self.transaction, self.add_file, self.pick, self.fast_forward],
            *[self.replace_partitions, self.rewrite_manifests, self.copy_file, self.row_delta, self.expire],
            *[self.compact, self.compact, self.rewrite_deletes, self.convert_deletes],
        ]
        kind = self.rng.choice(kinds)
        text, after = kind(before)
        return f"ours: {kind.__name__} {text}", after

    # Rows and filters

    def new_rows(self, before: pa.Table, count: int) -> pa.Table:
        """Make rows with new ids and values of others."""
        first, self.story.rows = self.story.rows, self.story.rows + count
        ids = pa.array(range(first, first + count), pa.int64())
        if before.num_rows:
            rows = before.take([self.rng.randrange(before.num_rows) for _ in range(count)])
        else:
            rows = pa.table([pa.nulls(count, field.type) for field in before.schema], before.schema)
        return rows.set_column(rows.column_names.index("id"), before.schema.field("id"), ids)

    def filter(self) -> tuple[str, Callable[[int], bool]]:
        """Draw a filter of ids."""
        rng, most = self.rng, self.story.rows + 2
        low = rng.randrange(most)
        some = sorted({rng.randrange(most) for _ in range(4)})
        high = low + rng.randrange(8)
        return rng.choice(
            [
                (f"id >= {low} AND id < {high}", lambda key: low <= key < high),
                (f"id IN ({', '.join(map(str, some))})", lambda key: key in some),
                (
                    f"id NOT IN ({', '.join(map(str, some))}) AND id < {high}",
                    lambda key: key not in some and key < high,
                ),
                (f"id > {low}", lambda key: key > low),
            ]
        )

    def mode(self) -> Any:
        return self.rng.choice(MODES)

    def plain(self) -> list[str]:
        """List the columns that hold no others, but for the key."""
        nested = ("struct", "array", "map")
        return [name for name, kind in self.story.columns.items() if name != "id" and not kind.startswith(nested)]

    # Changes

    def append(self, before: pa.Table) -> Done:
        rows = self.new_rows(before, self.rng.choice([1, 4, 9]))
        self.table.append(rows)
        return f"{rows.num_rows} rows", encoded_table(before) + encoded_table(rows)

    def delete(self, before: pa.Table) -> Done:
        text, is_gone = self.filter()
        mode = self.mode()
        self.table.delete(text, mode=mode)
        return f"{text} ({mode})", [row for row in encoded_table(before) if not is_gone(row["id"])]

    def overwrite(self, before: pa.Table) -> Done:
        text, is_gone = self.filter()
        rows, mode = self.new_rows(before, 3), self.mode()
        self.table.overwrite(rows, text, mode=mode)
        kept = [row for row in encoded_table(before) if not is_gone(row["id"])]
        return f"{text} ({mode})", kept + encoded_table(rows)

    def update(self, before: pa.Table) -> Done:
        names = [name for name in self.story.columns if name != "id"]
        if not names or not before.num_rows:
            return self.append(before)
        name = self.rng.choice(names)
        text, is_meant = self.filter()
        mode, at = self.mode(), self.rng.randrange(before.num_rows)
        value = before[name].slice(at, 1).combine_chunks()
        self.table.update({name: lambda batch: pa.concat_arrays([value] * batch.num_rows)}, text, mode=mode)
        (new,) = encoded_table(pa.table({name: value}))
        after = [{**row, **new} if is_meant(row["id"]) else row for row in encoded_table(before)]
        return f"{name} {text} ({mode})", after

    def upsert(self, before: pa.Table) -> Done:
        rows = self.new_rows(before, 2)
        known = list(dict.fromkeys(before["id"].to_pylist()))
        chosen = self.rng.sample(known, min(len(known), 4))
        if chosen:
            # Values of other rows under keys that the table has.
            others = before.take([self.rng.randrange(before.num_rows) for _ in chosen])
            place = others.column_names.index("id")
            others = others.set_column(place, before.schema.field("id"), pa.array(chosen, pa.int64()))
            rows = pa.concat_tables([rows, others])
        mode = self.mode()
        self.table.upsert(rows, ["id"], mode=mode)
        new = {row["id"]: row for row in encoded_table(rows)}
        # Java's copies of rows may have given a key to several; all of them are updated.
        after = [new.get(row["id"], row) for row in encoded_table(before)]
        there = {row["id"] for row in after}
        return f"{sorted(new)} ({mode})", after + [row for key, row in new.items() if key not in there]

    def merge(self, before: pa.Table) -> Done:
        """Delete some rows of a source, update others, and insert those that are new."""
        ids = before["id"].to_pylist()
        if len(set(ids)) < len(ids) or not ids:
            return self.upsert(before)
        new = self.new_rows(before, 2)
        chosen = self.rng.sample(ids, min(len(ids), 4))
        others = before.take([self.rng.randrange(before.num_rows) for _ in chosen])
        place = others.column_names.index("id")
        others = others.set_column(place, before.schema.field("id"), pa.array(chosen, pa.int64()))
        source, mode, limit = pa.concat_tables([new, others]), self.mode(), self.rng.choice(ids)
        merging = self.table.merge(source, ["id"], mode=mode).when_matched_delete(f"source.id < {limit}")
        merging.when_matched_update_all().when_not_matched_insert_all().execute()
        given = {row["id"]: row for row in encoded_table(source)}
        kept = [row for row in encoded_table(before) if row["id"] not in given or row["id"] >= limit]
        after = [given.get(row["id"], row) for row in kept]
        return f"{sorted(given)}, deletes below {limit} ({mode})", after + encoded_table(new)

    def transaction(self, before: pa.Table) -> Done:
        text, is_gone = self.filter()
        first, second = self.new_rows(before, 2), self.new_rows(before, 1)
        mode = self.mode()
        with self.table.transaction() as changes:
            changes.append(first)
            changes.delete(text, mode=mode)
            changes.set_properties({"step": str(len(self.story.log))})
            changes.append(second)
        kept = [row for row in encoded_table(before) + encoded_table(first) if not is_gone(row["id"])]
        return f"append, delete {text} ({mode}), append", kept + encoded_table(second)

    def add_file(self, before: pa.Table) -> Done:
        rows = self.new_rows(before, 1)
        path = self.folder / f"{uuid4().hex}.parquet"
        pq.write_table(rows, path)
        self.table.add_files([str(path)])
        return path.name, encoded_table(before) + encoded_table(rows)

    def pick(self, before: pa.Table) -> Done:
        if self.table.current_snapshot() is None:
            return self.append(before)
        branch, rows, more = f"b{len(self.story.log)}", self.new_rows(before, 2), self.new_rows(before, 1)
        self.table.append(rows, branch=branch)
        self.table.append(more)
        picked = self.table.metadata.refs[branch].snapshot_id
        self.table.manage_snapshots().cherry_pick(picked).commit()
        self.table.manage_snapshots().remove_branch(branch).commit()
        return branch, encoded_table(before) + encoded_table(rows) + encoded_table(more)

    def fast_forward(self, before: pa.Table) -> Done:
        if self.table.current_snapshot() is None:
            return self.append(before)
        branch, rows = f"b{len(self.story.log)}", self.new_rows(before, 2)
        text, is_gone = self.filter()
        self.table.append(rows, branch=branch)
        self.table.delete(text, branch=branch, mode=self.mode())
        self.table.manage_snapshots().fast_forward_branch("main", branch).commit()
        self.table.manage_snapshots().remove_branch(branch).commit()
        kept = [row for row in encoded_table(before) + encoded_table(rows) if not is_gone(row["id"])]
        return f"{branch} {text}", kept

    def replace_partitions(self, before: pa.Table) -> Done:
        if not self.table.spec().fields:
            return self.delete(before)
        rows = self.new_rows(before, 2)
        self.table.dynamic_partition_overwrite(rows, on_old_specs="rewrite")
        return f"by {encoded_table(rows)}", None

    def rewrite_manifests(self, before: pa.Table) -> Done:
        if self.table.current_snapshot() is None:
            return self.append(before)
        self.table.rewrite_manifests().cluster_by().commit()
        return "", encoded_table(before)

    def compact(self, before: pa.Table) -> Done:
        plain = ["id", *self.plain()]
        order = self.rng.choice(
            [None, "id desc", f"zorder({', '.join(plain[:2])})", f"hilbert({', '.join(plain[-2:])})"]
        )
        options = self.rng.choice([{"rewrite-all": True}, {"min-input-files": 2}, {"delete-file-threshold": 1}])
        options |= {"remove-dangling-deletes": self.rng.random() < 0.5}
        done = self.table.maintenance.compact(
            sort_order=order, strategy=None if order else "binpack", options=options, branch="main"
        )
        return f"{order} {options} {done}", encoded_table(before)

    def rewrite_deletes(self, before: pa.Table) -> Done:
        done = self.table.maintenance.rewrite_position_deletes(options={"rewrite-all": True})
        return f"{done}", encoded_table(before)

    def convert_deletes(self, before: pa.Table) -> Done:
        done = self.table.maintenance.convert_equality_deletes()
        removed = self.table.maintenance.remove_dangling_deletes()
        return f"{done} {removed}", encoded_table(before)

    def expire(self, before: pa.Table) -> Done:
        done = self.table.expire_snapshots(older_than="2100-01-01T00:00:00Z", retain_last=self.rng.randint(1, 3))
        return f"{len(done.snapshot_ids)} snapshots", encoded_table(before)

    def copy_file(self, before: pa.Table) -> Done:
        """Rewrite a data file that has no deletes, byte by byte."""
        listed = self.table.inspect.files().to_pylist()
        found = [file for file in listed if file["content"] == 0]
        if not found or len(found) < len(listed):
            return self.delete(before)
        old = self.rng.choice(sorted(found, key=lambda file: str(file["file_path"])))
        path = f"{old['file_path']}.{uuid4().hex}.{old['file_format'].lower()}"
        shutil.copy(_local(old["file_path"]), _local(path))
        current = self.table.current_snapshot()
        assert current is not None
        with self.table.update_snapshot().rewrite_files() as rewrite:
            # Without it, as in Java, all of the history is needed, and some of it may have expired.
            rewrite.validate_from_snapshot(current.snapshot_id)
            rewrite.delete_data_file(_described(old, old["file_path"]))
            rewrite.add_data_file(_described(old, path))
        return path, encoded_table(before)

    def row_delta(self, before: pa.Table) -> Done:
        """Delete a row by a file of positions, written by others and described."""
        if self.story.version != 2 or not before.num_rows:
            return self.delete(before)
        places = self.table.scan(selected_fields=("id", "_file", "_pos")).to_arrow().to_pylist()
        row = self.rng.choice(sorted(places, key=lambda row: (row["id"], row["_file"], row["_pos"])))
        of = next(file for file in self.table.inspect.files().to_pylist() if file["file_path"] == row["_file"])
        ids = {"file_path": b"2147483546", "pos": b"2147483545"}
        fields = [
            pa.field(name, kind, nullable=False, metadata={b"PARQUET:field_id": ids[name]})
            for name, kind in (("file_path", pa.string()), ("pos", pa.int64()))
        ]
        path = self.folder / f"{uuid4().hex}-deletes.parquet"
        pq.write_table(pa.table([[row["_file"]], [row["_pos"]]], pa.schema(fields)), path)
        with self.table.update_snapshot().row_delta() as delta:
            delta.add_deletes(
                ice.DeleteFile(
                    content="position_deletes",
                    file_path=str(path),
                    file_format="parquet",
                    spec_id=of["spec_id"],
                    partition=(of.get("partition") and _values(self.table, of)) or (),
                    record_count=1,
                    file_size_in_bytes=path.stat().st_size,
                )
            )
        after = encoded_table(before)
        by_place = self.table.scan().to_arrow()
        left = encoded_table(by_place)
        # Rows with equal ids cannot be told apart here: one of them has gone.
        assert len(left) == len(after) - 1
        gone = [one for one in after if one["id"] == row["id"]]
        kept = [one for one in left if one["id"] == row["id"]]
        assert len(kept) == len(gone) - 1
        return f"{row}", None


def _values(table: ice.Table, file: dict[str, Any]) -> dict[str, Any]:
    """The partition values of a file by the names of its own spec's fields."""
    names = [field.name for field in table.specs()[file["spec_id"]].fields]
    return {name: file["partition"][name] for name in names}


def _described(file: dict[str, Any], path: str) -> ice.DataFile:
    return ice.DataFile(
        file_path=path,
        file_format=file["file_format"].lower(),
        spec_id=file["spec_id"],
        partition=dict(file.get("partition") or {}),
        record_count=file["record_count"],
        file_size_in_bytes=file["file_size_in_bytes"],
    )


def _local(path: str) -> str:
    return path.removeprefix("file://").removeprefix("file:")
