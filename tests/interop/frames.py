"""What steps of ``statements.py`` do with DataFrames: by Java's connector, and by icefield's functions of the kind.

Each takes the twins, the side, and the full name of the table.
"""

from __future__ import annotations

from typing import Any

import icefield.spark as ice_spark

_CLAUSE = {
    "update": "update",
    "update all": "updateAll",
    "delete": "delete",
    "insert": "insert",
    "insert all": "insertAll",
}


def append(twins: Any, side: str, name: str, rows: str) -> None:
    """``writeTo(…).append()``."""
    frame = twins.spark.sql(rows)
    if side == "jtwin":
        frame.writeTo(name).append()
    else:
        ice_spark.append(frame, twins.own(name))


def overwrite(twins: Any, side: str, name: str, rows: str, where: str) -> None:
    """``writeTo(…).overwrite(condition)``."""
    from pyspark.sql import functions as F  # noqa: N812

    frame = twins.spark.sql(rows)
    if side == "jtwin":
        frame.writeTo(name).overwrite(F.expr(where))
    else:
        ice_spark.write(frame, twins.own(name), "overwrite", filter=where)


def overwrite_partitions(twins: Any, side: str, name: str, rows: str) -> None:
    """``writeTo(…).overwritePartitions()``."""
    frame = twins.spark.sql(rows)
    if side == "jtwin":
        frame.writeTo(name).overwritePartitions()
    else:
        ice_spark.write(frame, twins.own(name), "dynamic")


def merge(twins: Any, side: str, name: str, rows: str, on: str, clauses: list[list[Any]]) -> None:
    """``mergeInto(…).whenMatched(…)…merge()``: each clause is what it matches, its condition, its action and values."""
    from pyspark.sql import functions as F  # noqa: N812

    frame = twins.spark.sql(rows)
    if side == "jtwin":
        source = frame.alias("source")
        writer = source.mergeInto(name, F.expr(on.replace("target.", f"{name}.")))
        for match, condition, action, values in clauses:
            when = {"matched": "whenMatched", "not matched": "whenNotMatched", "by source": "whenNotMatchedBySource"}
            begun = getattr(writer, when[match])
            begun = begun(F.expr(condition.replace("target.", f"{name}."))) if condition else begun()
            done = getattr(begun, _CLAUSE[action])
            named = {key: F.expr(value.replace("target.", f"{name}.")) for key, value in (values or {}).items()}
            writer = done(named) if values else done()
        writer.merge()
        return
    builder = ice_spark.merge(frame, twins.own(name), on)
    for match, condition, action, values in clauses:
        begun = {
            "matched": "when_matched",
            "not matched": "when_not_matched",
            "by source": "when_not_matched_by_source",
        }
        done = getattr(builder, f"{begun[match]}_{action.replace(' ', '_')}")
        done(values, condition) if values else done(condition)
    builder.execute()


def save(twins: Any, side: str, name: str, rows: str, mode: str = "append", **options: str) -> None:
    """``write.format(…).mode(…).save(…)``."""
    kind = "iceberg" if side == "jtwin" else "icefield"
    writer = twins.spark.sql(rows).write.format(kind).mode(mode).options(**twins.options(side), **options)
    writer.save(name if side == "jtwin" else name.partition(".")[2])


def load(twins: Any, side: str, name: str, part: str = "", select: str = "*", **options: str) -> Any:
    """``read.format(…).load(…)``; ``{0}`` in an option is the id of the first snapshot."""
    kind = "iceberg" if side == "jtwin" else "icefield"
    known = {key: twins.filled(side, name, value) for key, value in options.items()}
    reader = twins.spark.read.format(kind).options(**twins.options(side), **known)
    where = name if side == "jtwin" else name.partition(".")[2]
    return reader.load(where + twins.filled(side, name, part)).selectExpr(select)


def read(twins: Any, side: str, name: str, **options: Any) -> Any:
    """``spark.table``, and `icefield.spark.read`."""
    if side == "jtwin":
        frame = twins.spark.table(name)
        frame = frame.where(options["filter"]) if "filter" in options else frame
        return frame.select(*options["columns"]) if "columns" in options else frame
    return ice_spark.read(twins.spark, twins.own(name), **options)


def files(twins: Any, side: str, name: str, rows: str, folder: str) -> None:
    """Write rows as one Parquet file, without the column that the folder names."""
    frame = twins.spark.sql(rows).drop(folder.rpartition("/")[2].partition("=")[0])
    frame.coalesce(1).write.parquet(twins.filled(side, name, "{folder}/" + folder))
