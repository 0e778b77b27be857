"""Random statements that change rows and schema of one table, and what they leave: a model in plain Python.

A table begins with ``id bigint, kind string, n int, day date, wall timestamp_ntz``; columns come, go, get other names,
places and types, and the partition spec changes. Several rows may have one id. Conditions are true, false or unknown,
as in SQL: only what is true is changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import date, datetime, timedelta
from random import Random
from typing import Any

Row = dict[str, Any]
#: A condition as SQL, and whether it is true for a row.
Condition = tuple[str, Callable[[Row], Any]]
Change = Callable[[Row], Row]
#: Of a row and that of the source: the row left, none, or ``{}`` where the clause does not apply.
Clause = Callable[[Row, Row], Row | None]

KINDS = ("a", "b", "it's", "é", None)
#: Partition fields by the column that they have, as SQL; and the value that rows have, where a model can say it.
FIELDS: dict[str, tuple[str, Callable[[Row], Any] | None]] = {
    "kind": ("kind", lambda row: row["kind"]),
    "n": ("n", lambda row: row["n"]),
    "truncate(1, kind)": ("kind", lambda row: row["kind"] and row["kind"][:1]),
    "truncate(20, n)": ("n", lambda row: None if row["n"] is None else row["n"] // 20),
    "bucket(2, id)": ("id", None),
    "bucket(3, wall)": ("wall", None),
    "years(day)": ("day", lambda row: row["day"] and row["day"].year),
    "months(day)": ("day", lambda row: row["day"] and (row["day"].year, row["day"].month)),
    "days(wall)": ("wall", lambda row: row["wall"] and row["wall"].date()),
    "hours(wall)": ("wall", lambda row: row["wall"] and (row["wall"].date(), row["wall"].hour)),
}
SPECS: tuple[list[str], ...] = (
    [],
    [],
    ["kind"],
    ["bucket(2, id)"],
    ["truncate(1, kind)", "n"],
    ["days(wall)"],
    ["months(day)", "kind"],
)
SPECS += (["hours(wall)"], ["years(day)", "bucket(3, wall)"], ["truncate(20, n)"])
MARCH = datetime.fromisoformat("2024-03-01T12:00:00")
MODES = ("copy-on-write", "merge-on-read")
NAME = "{t}"
#: The setting by which INSERT OVERWRITE replaces partitions, not the whole table.
DYNAMIC = "spark.sql.sources.partitionOverwriteMode"


def literal(value: Any) -> str:
    """Return a value as SQL."""
    if value is None:
        return "null"
    if isinstance(value, int):
        return str(value)
    quoted = "'" + str(value).replace("'", "''") + "'"
    return {datetime: "TIMESTAMP_NTZ ", date: "DATE "}.get(type(value), "") + quoted


class RowStatements:
    """A table and its rows; each method changes them, and returns the statement that does so, with ``{t}`` as name."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.rows: list[Row] = []
        self.types = {"id": "bigint", "kind": "string", "n": "int", "day": "date", "wall": "timestamp_ntz"}
        self.spec = list(rng.choice(SPECS))
        #: Whether all files are of the current spec.
        self.one_spec = True
        self.version = rng.choice((2, 3))
        #: How many rows the last statement left that had been there, changed or not.
        self.kept = 0
        #: Settings of the session for the last statement.
        self.conf: dict[str, str] = {}
        self._added = 0

    def create(self) -> str:
        """Return CREATE TABLE."""
        rng = self.rng
        properties = {
            "format-version": str(self.version),
            "write.format.default": rng.choice(("parquet", "parquet", "orc", "avro")),
            "write.distribution-mode": rng.choice(("hash", "none", "range")),
            **{f"write.{kind}.mode": rng.choice(MODES) for kind in ("delete", "update", "merge")},
            **{f"write.{kind}.isolation-level": "snapshot" for kind in ("delete", "merge") if rng.random() < 0.5},
        }
        columns = ", ".join(f"{name} {kind}" for name, kind in self.types.items())
        by = f" PARTITIONED BY ({', '.join(self.spec)})" if self.spec else ""
        return f"CREATE TABLE {NAME} ({columns}) USING iceberg{by} TBLPROPERTIES ({_pairs(properties)})"

    def step(self) -> str:
        """Return a statement of a random kind."""
        self.conf = {}
        changes = [self.insert, self.overwrite, self.delete, self.delete, self.update, self.update]
        changes += [self.merge, self.merge, self.merge, self.evolve, self.evolve]
        return self.rng.choice(changes)()

    def insert(self) -> str:
        """Add rows, by position, by name or with some of the columns."""
        new = self._new(self.rng.randint(1, 6))
        self.kept = len(self.rows)
        how = self.rng.random()
        if how < 0.3:
            names = self.rng.sample(list(self.types), len(self.types))
            self.rows += new
            return f"INSERT INTO {NAME} BY NAME SELECT {', '.join(names)} FROM {self._source(new)}"
        if how < 0.5:
            names = ["id", *self.rng.sample([name for name in self.types if name != "id"], 2)]
            new = [{name: row[name] if name in names else None for name in row} for row in new]
            self.rows += new
            return f"INSERT INTO {NAME} ({', '.join(names)}) SELECT {', '.join(names)} FROM {self._source(new)}"
        self.rows += new
        return f"INSERT INTO {NAME} SELECT * FROM {self._source(new)}"

    def overwrite(self) -> str:
        """Replace all rows, or those of some partitions."""
        new = self._new(self.rng.randint(1, 4))
        known = [FIELDS[field][1] for field in self.spec]
        if self.spec and self.one_spec and None not in known and self.rng.random() < 0.6:
            self.conf = {DYNAMIC: "dynamic"}
            replaced = {self._partition(row) for row in new}
            self.rows = [row for row in self.rows if self._partition(row) not in replaced]
        elif self.spec == ["kind"] and self.one_spec and self.rng.random() < 0.6:
            kind = self.rng.choice(KINDS[:-1])
            new = [{**row, "kind": kind} for row in new]
            others = ", ".join(name for name in self.types if name != "kind")
            self.rows = [row for row in self.rows if row["kind"] != kind]
            self.kept = len(self.rows)
            self.rows += new
            return (
                f"INSERT OVERWRITE {NAME} PARTITION (kind = {literal(kind)}) SELECT {others} FROM {self._source(new)}"
            )
        else:
            self.rows = []
        self.kept = len(self.rows)
        self.rows += new
        return f"INSERT OVERWRITE {NAME} SELECT * FROM {self._source(new)}"

    def delete(self) -> str:
        """Delete some rows."""
        text, holds = self._condition()
        self.rows = [row for row in self.rows if not holds(row)]
        self.kept = len(self.rows)
        if text.startswith("kind <>"):
            # Java's connector removes files whose other values all differ together with their nulls.
            text += " AND kind IS NOT NULL"
        return f"DELETE FROM {NAME} WHERE {text}"

    def update(self) -> str:
        """Change some rows."""
        text, holds = self._condition()
        self.kept = len(self.rows)
        forms: list[tuple[str, Change]] = [
            ("n = n + 7", lambda row: {"n": None if row["n"] is None else row["n"] + 7}),
            ("kind = 'a', day = null", lambda _: {"kind": "a", "day": None}),
            ("wall = DEFAULT", lambda _: {"wall": None}),
            ("kind = upper(kind), n = 1", lambda row: {"kind": row["kind"] and row["kind"].upper(), "n": 1}),
        ]
        sets, change = self.rng.choice(forms)
        self.rows = [{**row, **change(row)} if holds(row) else row for row in self.rows]
        return f"UPDATE {NAME} SET {sets} WHERE {text}"

    def merge(self) -> str:
        """Merge rows by id, each of which the source has once, by clauses of all kinds."""
        rng = self.rng
        source = {row["id"]: row for row in self._new(rng.randint(1, 6))}
        known = {row["id"] for row in self.rows}
        text = f"MERGE INTO {NAME} t USING (SELECT * FROM {self._source(list(source.values()))}) s ON t.id = s.id"
        clauses, matched = self._matched()
        text += clauses
        inserts = rng.choice((None, "all", "some")) if matched else rng.choice(("all", "some"))
        if inserts == "all":
            text += " WHEN NOT MATCHED THEN INSERT *"
        elif inserts == "some":
            text += " WHEN NOT MATCHED AND s.n > 10 THEN INSERT (id, n) VALUES (s.id, s.n + 1)"
        by_source = rng.choice((None, None, "delete", "update"))
        if by_source:
            then = "DELETE" if by_source == "delete" else "UPDATE SET n = 0"
            text += f" WHEN NOT MATCHED BY SOURCE AND t.n > 40 THEN {then}"
        merged: list[Row] = []
        for row in self.rows:
            if row["id"] in source:
                left = next((done for one in matched if (done := one(row, source[row["id"]])) != {}), row)
            elif by_source and row["n"] is not None and row["n"] > 40:
                left = None if by_source == "delete" else {**row, "n": 0}
            else:
                left = row
            merged += [] if left is None else [left]
        self.kept = len(merged)
        new = [row for row in source.values() if row["id"] not in known]
        if inserts == "all":
            merged += new
        elif inserts == "some":
            nulls = dict.fromkeys(self.types)
            merged += [{**nulls, "id": row["id"], "n": row["n"] + 1} for row in new if (row["n"] or 0) > 10]
        self.rows = merged
        return text

    def evolve(self) -> str:
        """Change schema, spec, order or properties; the rows stay."""
        rng = self.rng
        self.kept = len(self.rows)
        added = [name for name in self.types if name.startswith("c")]
        forms = ["add", "spec", "spec", "order", "modes", "place", *(["rename", "drop"] if added else [])]
        if self.types["n"] == "int" and not any(FIELDS[field][0] == "n" for field in self.spec):
            forms.append("widen")
        form = rng.choice(forms)
        if form == "add":
            name, kind = f"c{self._added}", rng.choice(("int", "string", "date"))
            self._added += 1
            first = rng.random() < 0.3
            self.types = {name: kind, **self.types} if first else {**self.types, name: kind}
            self.rows = [{**row, name: None} for row in self.rows]
            return f"ALTER TABLE {NAME} ADD COLUMN {name} {kind}{' FIRST' if first else ''}"
        if form == "rename":
            old, new = rng.choice(added), f"c{self._added}"
            self._added += 1
            self.types = {new if name == old else name: kind for name, kind in self.types.items()}
            self.rows = [{new if name == old else name: value for name, value in row.items()} for row in self.rows]
            return f"ALTER TABLE {NAME} RENAME COLUMN {old} TO {new}"
        if form == "drop":
            gone = rng.choice(added)
            del self.types[gone]
            self.rows = [{name: value for name, value in row.items() if name != gone} for row in self.rows]
            return f"ALTER TABLE {NAME} DROP COLUMN {gone}"
        if form == "widen":
            self.types["n"] = "bigint"
            return f"ALTER TABLE {NAME} ALTER COLUMN n TYPE bigint"
        if form == "place":
            moved, behind = rng.sample(list(self.types), 2)
            names = [name for name in self.types if name != moved]
            names.insert(names.index(behind) + 1, moved)
            self.types = {name: self.types[name] for name in names}
            return f"ALTER TABLE {NAME} ALTER COLUMN {moved} AFTER {behind}"
        if form == "spec":
            return self._respec()
        if form == "order":
            order = rng.choice(("ORDERED BY id DESC NULLS LAST", "DISTRIBUTED BY PARTITION", "UNORDERED"))
            order = rng.choice((order, "LOCALLY ORDERED BY kind, day", "ORDERED BY bucket(2, id), n"))
            return f"ALTER TABLE {NAME} WRITE {order}"
        properties = {f"write.{kind}.mode": rng.choice(MODES) for kind in ("delete", "update", "merge")}
        properties["write.delete.granularity"] = rng.choice(("file", "partition"))
        return f"ALTER TABLE {NAME} SET TBLPROPERTIES ({_pairs(properties)})"

    def counted(self) -> Counter[tuple[str, ...]]:
        """Return the rows as texts, in the order of columns."""
        return Counter(tuple(str(row[name]) for name in self.types) for row in self.rows)

    def _matched(self) -> tuple[str, list[Clause]]:
        """Return clauses for rows that match, as SQL and as functions."""
        rng = self.rng
        text = ""
        matched: list[Clause] = []
        if rng.random() < 0.4:
            text += " WHEN MATCHED AND s.n < 20 THEN DELETE"
            matched.append(_deleted)
        if rng.random() < 0.4:
            text += " WHEN MATCHED AND t.kind = 'a' THEN UPDATE SET t.n = s.n, kind = concat(t.kind, s.kind)"
            matched.append(_joined)
        if rng.random() < 0.6:
            text += " WHEN MATCHED THEN UPDATE SET *"
            matched.append(_replaced)
        return text, matched

    def _respec(self) -> str:
        """Add, drop or replace a partition field, of a column that no other field has."""
        rng = self.rng
        free = [field for field in FIELDS if FIELDS[field][0] not in {FIELDS[one][0] for one in self.spec}]
        self.one_spec = False
        how = rng.choice(("add", "drop", "replace")) if self.spec else "add"
        if how == "add":
            self.spec.append(rng.choice(free))
            return f"ALTER TABLE {NAME} ADD PARTITION FIELD {self.spec[-1]}"
        old = rng.choice(self.spec)
        self.spec.remove(old)
        if how == "drop":
            return f"ALTER TABLE {NAME} DROP PARTITION FIELD {old}"
        self.spec.append(rng.choice(free))
        return f"ALTER TABLE {NAME} REPLACE PARTITION FIELD {old} WITH {self.spec[-1]}"

    def _partition(self, row: Row) -> tuple[Any, ...]:
        return tuple(value(row) for field in self.spec if (value := FIELDS[field][1]) is not None)

    def _new(self, count: int) -> list[Row]:
        rng = self.rng
        drawn: dict[str, Callable[[], Any]] = {
            "bigint": lambda: rng.choice((None, *range(0, 60, 10))),
            "int": lambda: rng.choice((None, *range(0, 60, 10))),
            "string": lambda: rng.choice(KINDS),
            "date": lambda: rng.choice((None, date(1969, 12, 31), date(2024, 2, 29) + timedelta(rng.randint(0, 40)))),
            "timestamp_ntz": lambda: rng.choice(
                (None, datetime.fromisoformat("1969-12-31T23:59:59"), MARCH + timedelta(hours=rng.randint(0, 30)))
            ),
        }
        return [
            {name: rng.randint(0, 19) if name == "id" else drawn[kind]() for name, kind in self.types.items()}
            for _ in range(count)
        ]

    def _source(self, rows: list[Row]) -> str:
        """Return rows as a relation; values have casts, so that nulls have types."""
        texts = [
            "(" + ", ".join(f"CAST({literal(row[name])} AS {kind})" for name, kind in self.types.items()) + ")"
            for row in rows
        ]
        return f"VALUES {', '.join(texts)} AS v({', '.join(self.types)})"

    def _condition(self) -> Condition:
        rng = self.rng
        low, kind, day = rng.randint(0, 19), rng.choice(KINDS[:-1]), date(2024, 3, rng.randint(1, 31))
        forms: list[Condition] = [
            (f"id = {low}", lambda row: row["id"] == low),
            (f"id >= {low}", lambda row: row["id"] >= low),
            (f"id BETWEEN {low} AND {low + 5}", lambda row: low <= row["id"] <= low + 5),
            (f"kind = {literal(kind)}", lambda row: row["kind"] == kind),
            (f"kind <> {literal(kind)}", lambda row: row["kind"] is not None and row["kind"] != kind),
            (f"NOT (kind <=> {literal(kind)})", lambda row: row["kind"] != kind),
            ("n IS NULL", lambda row: row["n"] is None),
            (f"n > {low} OR id = {low}", lambda row: row["id"] == low or (row["n"] is not None and row["n"] > low)),
            (
                f"id % 3 = 0 AND kind IN ('a', {literal(kind)})",
                lambda row: row["id"] % 3 == 0 and row["kind"] in ("a", kind),
            ),
            (f"id IN (SELECT {low} UNION ALL SELECT 3)", lambda row: row["id"] in (low, 3)),
            # Java's connector takes null for less in a partition.
            (f"day < {literal(day)} AND day IS NOT NULL", lambda row: row["day"] is not None and row["day"] < day),
            (f"month(day) = 3 AND id > {low}", lambda row: row["day"] and row["day"].month == 3 and row["id"] > low),
            (f"wall >= {literal(MARCH)}", lambda row: row["wall"] is not None and row["wall"] >= MARCH),
        ]
        return rng.choice(forms)


def _deleted(_: Row, other: Row) -> Row | None:
    return None if other["n"] is not None and other["n"] < 20 else {}


def _joined(row: Row, other: Row) -> Row | None:
    return {**row, "n": other["n"], "kind": other["kind"] and "a" + other["kind"]} if row["kind"] == "a" else {}


def _replaced(_: Row, other: Row) -> Row | None:
    return other


def _pairs(properties: dict[str, str]) -> str:
    return ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
