"""Statements done by Java's connector and by icefield in one Spark session, each on its own twin of a table.

Runs in the process of ``java_peer.py``. The twins are in two SQLite catalogs, ``jtwin`` of Java and ``itwin`` of
icefield; after each statement both are looked at by icefield: what is in the metadata, and the rows.
"""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import icefield as ice
import icefield.spark as ice_spark

SIDES = ("jtwin", "itwin")
#: What a summary says about the engine, and sizes of files, which each writer has of its own.
_OF_ENGINES = re.compile(r"engine-.*|app-id|app-name|iceberg-version|spark\.app\.id|.*files-size|icefield\..*")


class Twins:
    """One Spark session, and the catalogs of both sides."""

    def __init__(self, spark: Any, folder: str) -> None:
        self.spark = spark
        self.folder = Path(folder)
        self.catalogs = {
            side: ice.load_catalog(side, uri=f"sqlite:///{folder}/{side}.db", warehouse=f"file://{folder}/{side}")
            for side in SIDES
        }
        for made in self.catalogs.values():
            made.create_namespace("db")
        self.session = ice_spark.session(spark, {"itwin": self.catalogs["itwin"], "shared": self.catalogs["jtwin"]})
        self._moments: dict[str, str] = {}
        self._snapshots: dict[tuple[str, str], dict[int, str]] = {}
        self._rows: dict[tuple[str, int, int | None], list[str]] = {}

    def story(self, name: str, table: str, steps: list[Any], conf: dict[str, str]) -> list[dict[str, Any]]:
        """Do the steps on both sides; give what each answered and left."""
        try:
            for key, value in conf.items():
                self.spark.conf.set(key, value)
            return [self._step(name, table, step) for step in steps]
        finally:
            for key in conf:
                self.spark.conf.unset(key)

    def turns(self, table: str, steps: list[tuple[str, str, dict[str, str]]], lineage: bool) -> dict[str, Any]:
        """Run statements on one table, each on the side that it names, with settings of the session.

        Gives what each reader finds after each statement, `SqlSession` after the last, and the error that ended them.
        """
        names = {"jtwin": f"jtwin.db.{table}", "itwin": f"shared.db.{table}"}
        after: list[dict[str, Any]] = []
        found: dict[str, Any] = {"after": after}
        for number, (side, text, conf) in enumerate(steps):
            try:
                for key, value in conf.items():
                    self.spark.conf.set(key, value)
                self._run(side, text.format(t=names[side])).collect()
            except Exception as error:  # noqa: BLE001 - the test says in which story
                return {**found, "error": f"{type(error).__name__}: {error}"[:3000]}
            finally:
                for key in conf:
                    self.spark.conf.unset(key)
            loaded = self.own(names["jtwin"])
            more = ["_row_id", "_last_updated_sequence_number"] if lineage else []
            own = loaded.scan(selected_fields=("*", *more)).to_arrow()
            answer = {"own": [tuple(row.values()) for row in own.to_pylist()]}
            # An empty table is read by us alone.
            readers = () if number == 0 else SIDES if number == len(steps) - 1 else SIDES[:1]
            for reader in readers:
                query = f"SELECT {', '.join(own.column_names)} FROM {names[reader]}"
                answer[reader] = [tuple(row) for row in self._run(reader, query).collect()]
            after.append({reader: _parted(rows, lineage) for reader, rows in answer.items()})
        return found

    def _run(self, side: str, text: str) -> Any:
        return self.spark.sql(text) if side == "jtwin" else self.session.sql(text)

    def _step(self, name: str, table: str, step: Any) -> dict[str, Any]:
        found: dict[str, Any] = {"story": name, "step": step if isinstance(step, str) else f"{step[0]} {step[1]}"}
        for side in SIDES:
            start = time.perf_counter()
            try:
                answer = self._answer(side, table, step)
            except Exception as error:  # noqa: BLE001 - the test compares what both refuse
                answer = {"error": f"{type(error).__name__}: {error}"[:600]}
            found[side] = {"seconds": round(time.perf_counter() - start, 2), "state": self.state(side, table)}
            # What is of one side only: its name, ids and times of its snapshots.
            known = json.dumps(answer)
            for written, meant in [*self._moments.items(), (side, "cat")]:
                known = known.replace(written, meant)
            answer = json.loads(known)
            if isinstance(answer, dict) and "rows" in answer:
                answer["rows"].sort(key=json.dumps)
            found[side]["answer"] = answer
        return found

    def _answer(self, side: str, table: str, step: Any) -> Any:
        if not isinstance(step, str):
            import frames

            kind, arguments = step
            done = getattr(frames, kind)(self, side, f"{side}.db.{table}", **arguments)
            return None if done is None else self._result(done)
        text = self._text(side, table, step)
        return self._result(self._run(side, text))

    def _text(self, side: str, table: str, step: str) -> str:
        named = re.sub(r"\bdb\.T\b", f"db.{table}", re.sub(r"\bcat\b", side, step))
        return self.filled(side, f"{side}.db.{table}", named)

    def filled(self, side: str, name: str, text: str) -> str:
        """Replace what stands in braces: ``{0}`` by the id of the first snapshot, ``{ts0}`` by its time, and so on."""
        if "{" in text:
            loaded = self.own(name)
            shots = sorted(loaded.snapshots(), key=lambda one: (one.sequence_number or 0, one.timestamp_ms))
            text = re.sub(r"\{(\d+)\}", lambda hit: str(shots[int(hit[1])].snapshot_id), text)
            text = re.sub(r"\{ts(\d+)\}", lambda hit: str(shots[int(hit[1])].timestamp_ms), text)
            text = text.replace("{metadata}", loaded.metadata_location).replace("{folder}", str(self.folder / side))
        return text

    def own(self, name: str) -> ice.Table:
        """Open a table of either side with icefield."""
        side, _, rest = name.partition(".")
        return self.catalogs[side].load_table(rest)

    def options(self, side: str) -> dict[str, str]:
        """Return the options by which the data source of icefield opens its catalog; Java's needs none."""
        known = self.catalogs[side].properties
        return {} if side == "jtwin" else {"catalog": side, "uri": known["uri"], "warehouse": known["warehouse"]}

    def _result(self, frame: Any) -> dict[str, Any]:
        return {
            "columns": [[field.name, field.dataType.simpleString()] for field in frame.schema.fields],
            "rows": [[_plain(value) for value in row] for row in frame.collect()],
        }

    def state(self, side: str, table: str) -> dict[str, Any] | None:
        """Describe a table by its metadata and rows; none if there is no such table."""
        try:
            loaded = self.catalogs[side].load_table(f"db.{table}")
        except ice.errors.NotFoundError:
            return None
        metadata = json.loads(loaded.metadata_json())
        # Snapshots are called by when they were first seen, also those that expire later.
        known = self._snapshots.setdefault((side, table), {})
        for one in metadata.get("snapshots", ()):
            name = known.setdefault(one["snapshot-id"], f"snapshot {len(known)}")
            self._moments.setdefault(str(one["snapshot-id"]), name)
            self._moments.setdefault(str(one["timestamp-ms"]), f"time of {name}")
        current = {key: metadata.get(key) for key in ("format-version", "last-column-id", "last-partition-id")}
        return {
            **current,
            "next-row-id": metadata.get("next-row-id"),
            "schema": _one(metadata, "schemas", "current-schema-id", "schema-id"),
            "spec": _one(metadata, "partition-specs", "default-spec-id", "spec-id"),
            "order": _one(metadata, "sort-orders", "default-sort-order-id", "order-id"),
            "schemas": len(metadata["schemas"]),
            "properties": {
                key: json.loads(value) if key.endswith("name-mapping.default") else value
                for key, value in metadata.get("properties", {}).items()
            },
            "refs": {
                name: {**ref, "snapshot-id": known.get(ref["snapshot-id"])}
                for name, ref in metadata.get("refs", {}).items()
            },
            "log": [known.get(one["snapshot-id"], "expired") for one in metadata.get("snapshot-log", ())],
            "snapshots": [
                {
                    "parent": one.get("parent-snapshot-id") and known.get(one["parent-snapshot-id"], "expired"),
                    "schema": one.get("schema-id"),
                    "first-row-id": one.get("first-row-id"),
                    "added-rows": one.get("added-rows"),
                    **{
                        key: known.get(int(value), value) if key.endswith("snapshot-id") else value
                        for key, value in one["summary"].items()
                        if not _OF_ENGINES.fullmatch(key)
                    },
                }
                for one in metadata.get("snapshots", ())
            ],
            "rows": {
                name: self._read(side, loaded, ref["snapshot-id"]) for name, ref in metadata.get("refs", {}).items()
            },
        }

    def _read(self, side: str, table: Any, snapshot_id: int) -> list[str]:
        key = (side, snapshot_id, table.metadata.current_schema_id)
        if key not in self._rows:
            rows = table.scan(snapshot_id=snapshot_id).to_arrow().to_pylist()
            self._rows[key] = sorted(repr(sorted(row.items())) for row in rows)
        return self._rows[key]


def _one(metadata: dict[str, Any], many: str, chosen: str, key: str) -> Any:
    found: Any = next(one for one in metadata[many] if one[key] == metadata[chosen])
    return found


def _parted(rows: list[tuple[Any, ...]], lineage: bool) -> dict[str, Any]:
    """Return rows as texts, and apart from them sorted what stands in their last two columns."""
    end = -2 if lineage else None
    return {
        "rows": [[str(value) for value in row[:end]] for row in rows],
        "lineage": sorted([str(value) for value in row[end:]] for row in rows) if lineage else [],
    }


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; ids and times as texts, in which they are replaced."""
    if isinstance(value, int) and abs(value) >= 1 << 31:
        return str(value)
    return value if isinstance(value, str | int | float | bool | None) else repr(value)
