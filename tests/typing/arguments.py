"""What a type checker tells users. Each `type: ignore` is a mistake that it finds; strict mypy fails where it does not.

Nothing here runs: `make lint` checks it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import icefield as ice
from icefield.arrow import ArrowStreamExportable
from icefield.catalog.base import Catalog

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class Stream:
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return requested_schema


def rows(table: ice.Table, frame: pd.DataFrame, polars: pl.DataFrame, other: ArrowStreamExportable) -> None:
    table.append(frame).append(polars).append(other).append(Stream())
    table.append(table.scan())
    table.append(42)  # type: ignore[call-overload]
    table.append([{"id": 1}])  # type: ignore[call-overload]
    with table.transaction() as tx:
        tx.append(Stream())
        tx.append("file.parquet")  # type: ignore[call-overload]


def scans(table: ice.Table) -> None:
    table.scan("id > 5").filter(ice.expressions.EqualTo("id", 5))
    table.scan(42)  # type: ignore[arg-type]
    table.scan(snapshot="main")  # type: ignore[call-arg]
    table.incremental_append_scan(row_filter=lambda row: row)  # type: ignore[arg-type]


def tables(catalog: Catalog, schema: ice.Schema) -> None:
    catalog.create_table("a.b", schema, partition_by=["month(time)"], sort_by="time desc")
    catalog.create_table("a.b", Stream(), partition_spec=ice.PartitionSpec())
    catalog.create_table("a.b", {"id": "long"})  # type: ignore[arg-type]
    catalog.create_table_if_not_exists("a.b", schema, partition_by="bucket(16, id)")
    catalog.create_table_if_not_exists("a.b", schema, partitions="bucket(16, id)")  # type: ignore[call-arg]
    catalog.create_table("a.b", schema, sort_order=7)  # type: ignore[arg-type]


def missing_verbs(table: ice.Table) -> None:
    table.to_daft()  # type: ignore[attr-defined]
    table.apend(Stream())  # type: ignore[attr-defined]
    with table.branch("audit") as audit:
        audit.append(Stream()).append(Stream()).scan("id > 5").count()
        audit.history()  # type: ignore[attr-defined]
        audit.scna()  # type: ignore[attr-defined]


def changes(table: ice.Table) -> None:
    with table.update_schema() as update:
        update.add_column("place.country", "string", default_value="FR").union_by_name(Stream())
        update.add_column("n", 5)  # type: ignore[arg-type]


def kinds(table: ice.Table) -> list[object]:
    found: list[object] = []
    for field in table.schema().fields:
        if isinstance(field.field_type, ice.types.ListType):
            found.append(field.field_type.element_type.to_json())
        if isinstance(field.field_type, ice.types.DecimalType):
            found.append(field.field_type.precision + field.field_type.scale)
    found += [ice.expressions.And("a = 1", "b = 2").left, ice.transforms.BucketTransform(16).num_buckets + 1]
    for task in table.scan().plan_files():
        found += [task.file.record_count + 1, *(deletes.file_path for deletes in task.delete_files)]
    found += [table.scan().plan_files()[0].residual & "a = 1", table.last_sequence_number + 1]
    ice.expressions.EqualTo("a")  # type: ignore[call-arg]
    ice.types.DecimalType("9, 2")  # type: ignore[call-arg, arg-type]
    return found


def catalogs_of(table: ice.Table, schema: ice.Schema) -> None:
    if (catalog := table.catalog) is None:
        return
    with catalog.create_table_transaction("a.b", schema) as tx:
        tx.append(Stream())
    with catalog.create_or_replace_table_transaction("a.b", schema) as tx:
        tx.update_schema().add_column("n", "long").commit()
    catalog.replace_table_transaction("a.b", schema, sort_by="id").commit_transaction().append(Stream())
    if (made := catalog.migrate("a.c", "folder").table) is not None:
        made.append(Stream()).scan("id > 5")
    catalog.load_table("a.d").scan()
    catalog.migrate("a.c", format="csv")  # type: ignore[call-arg, arg-type]
