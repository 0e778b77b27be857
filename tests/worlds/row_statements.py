"""Random statements that change rows of one table, and what they leave: a model in plain Python.

The table has ``id bigint, kind string, n int``; several rows may have one id. Conditions are true, false or unknown, as
in SQL: only what is true is changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

Row = tuple[int, str | None, int | None]
Condition = tuple[str, Callable[[Row], bool]]

KINDS = ("a", "b", "it's", None)
SPECS = ("", "kind", "bucket(2, id)", "truncate(1, kind), n")
NAME = "{t}"


def literal(value: str | int | None) -> str:
    """Return a value as SQL."""
    return "null" if value is None else str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


class RowStatements:
    """A table and its rows; each method changes them, and returns the statement that does so, with ``{t}`` as name."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.rows: list[Row] = []
        self.version = rng.choice((2, 2, 3))

    def create(self) -> str:
        """Return CREATE TABLE."""
        rng = self.rng
        spec = rng.choice(SPECS)
        modes = {
            f"write.{kind}.mode": rng.choice(("copy-on-write", "merge-on-read"))
            for kind in ("delete", "update", "merge")
        }
        properties = {
            "format-version": str(self.version),
            "write.format.default": rng.choice(("parquet", "orc")),
            **modes,
        }
        pairs = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        by = f" PARTITIONED BY ({spec})" if spec else ""
        return f"CREATE TABLE {NAME} (id bigint, kind string, n int) USING iceberg{by} TBLPROPERTIES ({pairs})"

    def step(self) -> str:
        """Return a statement of a random kind."""
        kinds = [
            self.insert,
            self.insert,
            self.delete,
            self.update,
            self.update,
            self.merge,
            self.merge,
            self.overwrite,
        ]
        return self.rng.choice(kinds)()

    def insert(self) -> str:
        """Add rows, by position or by name."""
        new = self._new(self.rng.randint(1, 6))
        self.rows += new
        if self.rng.random() < 0.3:
            return f"INSERT INTO {NAME} BY NAME SELECT n, id, kind FROM VALUES {_values(new)} AS v(id, kind, n)"
        return f"INSERT INTO {NAME} VALUES {_values(new)}"

    def overwrite(self) -> str:
        """Replace all rows."""
        self.rows = self._new(self.rng.randint(1, 4))
        return f"INSERT OVERWRITE {NAME} VALUES {_values(self.rows)}"

    def delete(self) -> str:
        """Delete some rows."""
        text, holds = self._condition()
        self.rows = [row for row in self.rows if not holds(row)]
        return f"DELETE FROM {NAME} WHERE {text}"

    def update(self) -> str:
        """Change some rows."""
        text, holds = self._condition()
        if self.rng.random() < 0.5:
            self.rows = [
                (i, k, None if n is None else n + 7) if holds((i, k, n)) else (i, k, n) for i, k, n in self.rows
            ]
            return f"UPDATE {NAME} SET n = n + 7 WHERE {text}"
        kind = self.rng.choice(KINDS)
        self.rows = [(i, kind, n) if holds((i, k, n)) else (i, k, n) for i, k, n in self.rows]
        return f"UPDATE {NAME} SET kind = {literal(kind)} WHERE {text}"

    def merge(self) -> str:
        """Merge rows by id, each of which the source has once."""
        rng = self.rng
        ids = rng.sample(range(20), rng.randint(1, 5))
        source = {i: (i, rng.choice(KINDS), rng.randint(0, 9)) for i in ids}
        deletes, inserts, by_source = rng.random() < 0.4, rng.random() < 0.7, rng.random() < 0.3
        given = f"SELECT * FROM VALUES {_values(list(source.values()))} AS v(id, kind, n)"
        text = f"MERGE INTO {NAME} t USING ({given}) s ON t.id = s.id"
        if deletes:
            text += " WHEN MATCHED AND s.n < 4 THEN DELETE"
        text += " WHEN MATCHED THEN UPDATE SET t.n = s.n, kind = concat(t.kind, s.kind)"
        if inserts:
            text += " WHEN NOT MATCHED AND s.n > 2 THEN INSERT *"
        if by_source:
            text += " WHEN NOT MATCHED BY SOURCE AND t.n > 40 THEN DELETE"
        known = {row[0] for row in self.rows}
        merged: list[Row] = []
        for i, kind, n in self.rows:
            if i not in source:
                if not (by_source and n is not None and n > 40):
                    merged.append((i, kind, n))
            elif not (deletes and source[i][2] < 4):
                other = source[i][1]
                merged.append((i, None if kind is None or other is None else kind + other, source[i][2]))
        if inserts:
            merged += [row for i, row in source.items() if i not in known and row[2] > 2]
        self.rows = merged
        return text

    def counted(self) -> Counter[Row]:
        """Return the rows."""
        return Counter(self.rows)

    def _new(self, count: int) -> list[Row]:
        rng = self.rng
        return [(rng.randint(0, 19), rng.choice(KINDS), rng.choice((None, *range(0, 60, 10)))) for _ in range(count)]

    def _condition(self) -> Condition:
        rng = self.rng
        low = rng.randint(0, 19)
        kind = rng.choice(KINDS[:-1])
        forms: list[Condition] = [
            (f"id = {low}", lambda row: row[0] == low),
            (f"id >= {low}", lambda row: row[0] >= low),
            (f"id BETWEEN {low} AND {low + 5}", lambda row: low <= row[0] <= low + 5),
            (f"kind = {literal(kind)}", lambda row: row[1] == kind),
            (f"kind <> {literal(kind)}", lambda row: row[1] is not None and row[1] != kind),
            ("n IS NULL", lambda row: row[2] is None),
            (f"n > {low} OR id = {low}", lambda row: row[0] == low or (row[2] is not None and row[2] > low)),
            (f"id % 3 = 0 AND kind IN ('a', {literal(kind)})", lambda row: row[0] % 3 == 0 and row[1] in ("a", kind)),
            (f"id IN (SELECT {low} UNION ALL SELECT 3)", lambda row: row[0] in (low, 3)),
        ]
        return rng.choice(forms)


def _values(rows: list[Row]) -> str:
    """Return rows as those of VALUES; the first has casts, so that nulls have types."""
    texts = [
        f"(CAST({literal(i)} AS bigint), CAST({literal(k)} AS string), CAST({literal(n)} AS int))" for i, k, n in rows
    ]
    return ", ".join(texts)
