"""What notebooks show of schemas, partition specs, sort orders, snapshots and references; the core calls it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icefield._outputs.html import html_of
from icefield._outputs.layout import age_of, columns_of, contents_of, time_of

if TYPE_CHECKING:
    from icefield.metadata import Snapshot, SnapshotRef
    from icefield.partitioning import PartitionSpec
    from icefield.schema import Schema
    from icefield.sorting import SortOrder

__all__ = ["order_html", "reference_html", "schema_html", "snapshot_html", "spec_html"]


def schema_html(schema: Schema) -> str:
    """Show the columns of a schema."""
    return html_of(f"Schema {schema.schema_id}", None, columns_of(schema))


def spec_html(spec: PartitionSpec) -> str:
    """Show the fields of a partition spec; the columns are known by their ids only."""
    title = f"Partition spec {spec.spec_id}"
    if not spec.fields:
        return html_of(f"{title}: not partitioned")
    rows = [(field.field_id, field.name, field.transform, _id_list(field.source_ids)) for field in spec.fields]
    return html_of(title, None, (("id", "field", "transform", "column id"), rows))


def order_html(order: SortOrder) -> str:
    """Show the fields of a sort order; the columns are known by their ids only."""
    title = f"Sort order {order.order_id}"
    if not order.fields:
        return html_of(f"{title}: not sorted")
    rows = [(field.transform, _id_list(field.source_ids), field.direction, field.null_order) for field in order.fields]
    return html_of(title, None, (("transform", "column id", "direction", "nulls"), rows))


def snapshot_html(snapshot: Snapshot) -> str:
    """Show what a snapshot says of itself, and the properties of its summary."""
    facts = {
        "committed": time_of(snapshot.timestamp_ms),
        "operation": snapshot.operation,
        **contents_of(snapshot),
        "parent": snapshot.parent_snapshot_id,
        "sequence number": snapshot.sequence_number,
        "schema": snapshot.schema_id,
    }
    summary = snapshot.summary
    properties = sorted(summary.additional_properties.items()) if summary is not None else []
    grid = (("summary", ""), properties) if properties else None
    return html_of(f"Snapshot {snapshot.snapshot_id}", facts, grid)


def reference_html(reference: SnapshotRef) -> str:
    """Show a branch or tag, and when it expires."""
    ages = {
        "expires after": reference.max_ref_age_ms,
        "snapshots expire after": reference.max_snapshot_age_ms,
    }
    facts = {
        "snapshot": reference.snapshot_id,
        **{name: None if age is None else age_of(age) for name, age in ages.items()},
        "snapshots kept at least": reference.min_snapshots_to_keep,
    }
    return html_of(str(reference.snapshot_ref_type).capitalize(), facts)


def _id_list(ids: list[int]) -> str:
    return ", ".join(map(str, ids))
