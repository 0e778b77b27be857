"""Random histories that Java writes through Spark's SQL: rows come, go and change, and so do schema, spec and version.

Statements are drawn from a seed. A `Story` knows the columns and fields of its table as they are, so that every
statement means something; what the reference refuses ends the step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

#: Columns at the start, and an expression over `id` for each type that a row is made with.
VALUES = {
    "int": "cast(id * 7 % 11 AS INT)",
    "bigint": "id * 1000003",
    "string": "CASE WHEN id % 4 = 0 THEN NULL ELSE concat('s', id % 6) END",
    "double": "CASE WHEN id % 9 = 0 THEN double('NaN') ELSE id / 4.0D END",
    "float": "cast(id / 2.0 AS FLOAT)",
    "decimal(9,2)": "cast(id % 100 + 0.25 AS DECIMAL(9,2))",
    "decimal(18,2)": "cast(id % 100 + 0.25 AS DECIMAL(18,2))",
    "date": "date_add(DATE'2024-01-30', cast(id % 5 AS INT))",
    "timestamp": "timestamp_seconds(1700000000 + id * 40000)",
    "boolean": "id % 3 = 0",
    "struct<x:int,y:string>": "named_struct('x', cast(id AS INT), 'y', concat('y', id % 3))",
    "array<int>": "CASE WHEN id % 5 = 0 THEN NULL ELSE array(cast(id AS INT), NULL) END",
    "map<string,int>": "map(concat('k', id % 2), cast(id AS INT))",
}
WIDER = {"int": "bigint", "float": "double", "decimal(9,2)": "decimal(18,2)"}
TRANSFORMS = {
    "int": ["{}", "bucket(3, {})", "truncate(4, {})"],
    "bigint": ["bucket(4, {})"],
    "string": ["{}", "truncate(1, {})", "bucket(2, {})"],
    "date": ["{}", "month({})", "day({})"],
    "timestamp": ["day({})", "hour({})"],
    "boolean": ["{}"],
}
MODES = ("copy-on-write", "merge-on-read")


@dataclass
class Story:
    """A table and what is known of it."""

    rng: Random
    name: str
    columns: dict[str, str] = field(default_factory=dict)
    fields: list[str] = field(default_factory=list)
    #: Columns that specs or equality deletes are of, or were: they stay as they are.
    fixed: set[str] = field(default_factory=lambda: {"id"})
    version: int = 2
    rows: int = 0
    log: list[str] = field(default_factory=list)

    def create(self) -> list[str]:
        """Give the statements that make the table."""
        rng = self.rng
        self.version = rng.choice([2, 2, 3])
        kinds = rng.sample(list(VALUES), rng.randint(2, 5))
        self.columns = {"id": "bigint", **{f"c{place}": kind for place, kind in enumerate(kinds)}}
        candidates = [name for name, kind in self.columns.items() if kind in TRANSFORMS]
        if candidates and rng.random() < 0.6:
            column = rng.choice(candidates)
            self.fields = [rng.choice(TRANSFORMS[self.columns[column]]).format(column)]
            self.fixed.add(column)
        columns = ", ".join(f"{name} {kind}" for name, kind in self.columns.items())
        partitions = f" PARTITIONED BY ({', '.join(self.fields)})" if self.fields else ""
        properties = {
            "format-version": str(self.version),
            "write.format.default": rng.choice(["parquet", "parquet", "parquet", "avro", "orc"]),
            "write.delete.granularity": rng.choice(["file", "partition"]),
            "write.distribution-mode": "none",
            "write.spark.fanout.enabled": "true",
            "commit.manifest.min-count-to-merge": rng.choice(["2", "100"]),
            **self._modes(),
        }
        listed = ", ".join(f"'{key}'='{value}'" for key, value in properties.items())
        return [f"CREATE TABLE {self.name} ({columns}) USING iceberg{partitions} TBLPROPERTIES ({listed})"]

    def _modes(self) -> dict[str, str]:
        return {f"write.{verb}.mode": self.rng.choice(MODES) for verb in ("delete", "update", "merge")}

    def step(self) -> list[str]:
        """Draw what happens next."""
        verbs = [self.insert, self.insert, self.delete, self.delete, self.update, self.merge, self.merge]
        verbs += [self.change_schema, self.change_spec, self.compact, self.change_properties]
        return self.rng.choice(verbs)()

    def _source(self, first: int, last: int) -> str:
        # In the table's order, as rows are inserted by it.
        columns = [name if name == "id" else f"{self._value(kind)} AS {name}" for name, kind in self.columns.items()]
        return f"SELECT {', '.join(columns)} FROM range({first}, {last})"

    def _value(self, kind: str) -> str:
        return VALUES[kind]

    def insert(self) -> list[str]:
        """Append rows with new ids."""
        first, self.rows = self.rows, self.rows + self.rng.choice([1, 5, 20])
        return [f"INSERT INTO {self.name} {self._source(first, self.rows)}"]

    def _some(self) -> str:
        rng = self.rng
        number = rng.randint(2, 5)
        conditions = [
            f"id % {number} = {rng.randrange(number)}",
            f"id BETWEEN {rng.randrange(self.rows + 1)} AND {rng.randrange(self.rows + 10)}",
            f"id IN ({', '.join(str(rng.randrange(self.rows + 1)) for _ in range(3))})",
        ]
        nullable = [name for name, kind in self.columns.items() if kind in ("string", "array<int>")]
        if nullable:
            conditions.append(f"{rng.choice(nullable)} IS NULL")
        return rng.choice(conditions)

    def delete(self) -> list[str]:
        """Delete some rows."""
        return [f"DELETE FROM {self.name} WHERE {self._some()}"]

    def update(self) -> list[str]:
        """Change a column of some rows."""
        names = [name for name in self.columns if name != "id"]
        if not names:
            return self.insert()
        name = self.rng.choice(names)
        value = self.rng.choice([VALUES[self.columns[name]], "NULL"])
        return [f"UPDATE {self.name} SET {name} = {value} WHERE {self._some()}"]

    def merge(self) -> list[str]:
        """Merge rows with old and new ids."""
        rng = self.rng
        first = rng.randrange(self.rows + 1)
        last = first + rng.randint(1, 15)
        names = [name for name in self.columns if name != "id"]
        matched = ["WHEN MATCHED AND s.id % 3 = 0 THEN DELETE"] if rng.random() < 0.5 else []
        if names:
            matched.append(f"WHEN MATCHED THEN UPDATE SET t.{names[0]} = s.{names[0]}")
        inserted = "WHEN NOT MATCHED THEN INSERT *" if rng.random() < 0.8 else ""
        if not matched and not inserted:
            return self.insert()
        self.rows = max(self.rows, last)
        source = self._source(first, last)
        return [f"MERGE INTO {self.name} t USING ({source}) s ON t.id = s.id {' '.join(matched)} {inserted}"]

    def change_schema(self) -> list[str]:
        """Add, drop, rename, widen or move a column."""
        rng = self.rng
        names = [name for name in self.columns if name not in self.fixed]
        kind = rng.choice(["add", "drop", "rename", "widen", "move"])
        new = f"n{len(self.log)}"
        if kind == "add" or not names:
            self.columns[new] = rng.choice(list(VALUES))
            return [f"ALTER TABLE {self.name} ADD COLUMN {new} {self.columns[new]}"]
        name = rng.choice(names)
        if kind == "drop":
            del self.columns[name]
            return [f"ALTER TABLE {self.name} DROP COLUMN {name}"]
        if kind == "rename":
            self.columns = {(new if old == name else old): of for old, of in self.columns.items()}
            return [f"ALTER TABLE {self.name} RENAME COLUMN {name} TO {new}"]
        if kind == "widen" and self.columns[name] in WIDER:
            self.columns[name] = WIDER[self.columns[name]]
            return [f"ALTER TABLE {self.name} ALTER COLUMN {name} TYPE {self.columns[name]}"]
        of = self.columns.pop(name)
        self.columns = {name: of, **self.columns}
        return [f"ALTER TABLE {self.name} ALTER COLUMN {name} FIRST"]

    def change_spec(self) -> list[str]:
        """Add or drop a partition field."""
        rng = self.rng
        if self.fields and rng.random() < 0.5:
            return [f"ALTER TABLE {self.name} DROP PARTITION FIELD {self.fields.pop()}"]
        names = [name for name, kind in self.columns.items() if kind in TRANSFORMS and name not in self.fixed]
        if not names:
            return self.insert()
        name = rng.choice(names)
        self.fixed.add(name)
        added = rng.choice(TRANSFORMS[self.columns[name]]).format(name)
        self.fields.append(added)
        return [f"ALTER TABLE {self.name} ADD PARTITION FIELD {added}"]

    def compact(self) -> list[str]:
        """Rewrite data files, files of positions or manifests."""
        catalog, _, table = self.name.partition(".")
        call = self.rng.choice(
            [
                f"rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))",
                f"rewrite_data_files(table => '{table}', options => map('min-input-files', '2'))",
                f"rewrite_position_delete_files(table => '{table}', options => map('rewrite-all', 'true'))",
                f"rewrite_manifests('{table}')",
            ]
        )
        return [f"CALL {catalog}.system.{call}"]

    def change_properties(self) -> list[str]:
        """Change how rows are deleted and files written, or upgrade the table."""
        properties = {**self._modes(), "write.format.default": self.rng.choice(["parquet", "avro", "orc"])}
        if self.version == 2 and self.rng.random() < 0.6:
            self.version = 3
            properties["format-version"] = "3"
        listed = ", ".join(f"'{key}'='{value}'" for key, value in properties.items())
        return [f"ALTER TABLE {self.name} SET TBLPROPERTIES ({listed})"]
