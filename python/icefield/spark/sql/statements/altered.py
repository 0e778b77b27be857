"""ALTER TABLE, on the changes that tables have."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.sql import types as st

from icefield.errors import InvalidArgumentError
from icefield.schema import Schema
from icefield.spark.columns.types import iceberg_schema, spark_schema
from icefield.spark.sql.grammar.statements import (
    AddColumns,
    AddPartitionField,
    Alter,
    AlterColumns,
    DropColumns,
    DropPartitionField,
    DropReference,
    IdentifierFields,
    PartitionTerm,
    RenameColumn,
    RenameTable,
    ReplacePartitionField,
    SetProperties,
    SetReference,
    UnsetProperties,
    WriteOrder,
)
from icefield.spark.sql.grammar.text import Name
from icefield.spark.sql.running import RESERVED
from icefield.types import NestedField

if TYPE_CHECKING:
    from icefield.spark.sql.catalogs import Target
    from icefield.spark.sql.running import Run
    from icefield.table import Table
    from icefield.table.update import UpdateSchema, UpdateSpec
    from icefield.types import Type

__all__ = ["alter"]


def alter(run: Run, parsed: Alter, target: Target) -> None:
    """Change a table."""
    action = parsed.action
    table = run.table(parsed.name, target)
    if isinstance(action, RenameTable):
        _rename(run, action, target)
    else:
        _CHANGES[type(action)](run, table, action)


def _rename(run: Run, action: RenameTable, target: Target) -> None:
    new = action.name.parts
    if len(new) > 1 and new[0] in run.names:
        if new[0] != target.catalog_name:
            raise run.statement.error(action.name.start, f"a table stays in its catalog {target.catalog_name}")
        new = new[1:]
    # A name alone is in the namespace of the table.
    target.catalog.rename_table(target.identifier, new if len(new) > 1 else (*target.identifier[:-1], *new))


# Columns


def _type(kind: st.DataType) -> Type:
    return iceberg_schema(st.StructType([st.StructField("c", kind)])).fields[0].field_type


def _path(run: Run, table: Table, name: Name) -> tuple[str, ...]:
    """Return the path of a column as the table spells it."""
    schema = table.schema()
    found = schema.find_field(".".join(name.parts), run.case_sensitive)
    full = schema.find_column_name(found.field_id)
    # A name with a dot is one part; other paths are those of the schema.
    return name.parts if full is None or full.count(".") != len(name.parts) - 1 else tuple(full.split("."))


def _add(run: Run, table: Table, action: AddColumns) -> None:
    types = [run.type_of(column.type) for column in action.columns]
    wanted = [place for place, column in enumerate(action.columns) if column.default]
    pieces = [piece for column in action.columns if (piece := column.default)]
    defaults = dict(zip(wanted, run.constants(pieces, [types[place] for place in wanted]), strict=True))
    with table.update_schema(case_sensitive=run.case_sensitive) as change:
        for place, (column, kind) in enumerate(zip(action.columns, types, strict=True)):
            path = column.path.parts
            change.add_column(path, _type(kind), column.comment, column.required, defaults.get(place))
            _move(change, path, column.position)


def _move(change: UpdateSchema, path: tuple[str, ...], position: tuple[str, ...]) -> None:
    if position[:1] == ("first",):
        change.move_first(path)
    elif position:
        change.move_after(path, (*path[:-1], position[1]))


def _drop(run: Run, table: Table, action: DropColumns) -> None:
    with table.update_schema(case_sensitive=run.case_sensitive) as change:
        for column in action.columns:
            if not action.if_exists or _has(run, table, column):
                change.delete_column(_path(run, table, column))


def _has(run: Run, table: Table, column: Name) -> bool:
    try:
        table.schema().find_field(".".join(column.parts), run.case_sensitive)
    except InvalidArgumentError:
        return False
    return True


def _rename_column(run: Run, table: Table, action: RenameColumn) -> None:
    with table.update_schema(case_sensitive=run.case_sensitive) as change:
        change.rename_column(_path(run, table, action.column), action.new_name)


def _alter_columns(run: Run, table: Table, action: AlterColumns) -> None:
    done = [(column, _path(run, table, column.column)) for column in action.columns]
    wanted = [(path, column.default) for column, path in done if column.default]
    kinds = [_spark_type(table.schema().find_field(".".join(path)).field_type) for path, _ in wanted]
    values = run.constants([piece for _, piece in wanted], kinds)
    defaults = {path: value for (path, _), value in zip(wanted, values, strict=True)}
    with table.update_schema(case_sensitive=run.case_sensitive) as change:
        for column, path in done:
            if path in defaults or column.drops_default:
                change.set_default_value(path, defaults.get(path))
                continue
            if column.type is not None or column.required is not None or column.comment is not None:
                kind = None if column.type is None else _type(run.type_of(column.type))
                change.update_column(path, kind, column.required, column.comment)
            if column.position:
                _move(change, path, column.position)


def _spark_type(kind: Type) -> st.DataType:
    return spark_schema(Schema(NestedField(1, "c", kind))).fields[0].dataType


def _identifier(run: Run, table: Table, action: IdentifierFields) -> None:
    named = [".".join(_path(run, table, column)) for column in action.columns]
    if action.drop:
        now = list(table.schema().identifier_field_names())
        for name, column in zip(named, action.columns, strict=True):
            if name not in now:
                raise run.statement.error(
                    column.start, f"column {name} is no identifier field; these are: {', '.join(now) or 'none'}"
                )
        named = [name for name in now if name not in named]
    with table.update_schema() as change:
        change.set_identifier_fields(*named)


# Partitioning and order


def _add_field(run: Run, table: Table, action: AddPartitionField) -> None:
    with table.update_spec(run.case_sensitive) as change:
        _added(run, table, change, action.term)


def _added(run: Run, table: Table, change: UpdateSpec, term: PartitionTerm) -> None:
    change.add_field(".".join(_path(run, table, term.column)), term.transform, term.name)


def _drop_field(run: Run, table: Table, action: DropPartitionField) -> None:
    with table.update_spec(run.case_sensitive) as change:
        change.remove_field(_field_name(run, table, action.term))


def _replace_field(run: Run, table: Table, action: ReplacePartitionField) -> None:
    with table.update_spec(run.case_sensitive) as change:
        change.remove_field(_field_name(run, table, action.old))
        _added(run, table, change, action.new)


def _field_name(run: Run, table: Table, term: PartitionTerm) -> str:
    """Return the name of the partition field that a statement names by its name or its transform."""
    spec = table.spec()
    if term.transform == "identity" and len(term.column.parts) == 1 and not _has(run, table, term.column):
        return term.column.parts[0]
    path = ".".join(_path(run, table, term.column))
    source = table.schema().find_field(path).field_id
    for field in spec.fields:
        if field.source_id == source and str(field.transform) == term.transform:
            return field.name
    if term.transform == "identity" and any(field.name == path for field in spec.fields):
        return path
    known = ", ".join(field.name for field in spec.fields if not field.transform.is_void) or "none"
    raise run.statement.error(
        term.column.start, f"the table is not partitioned by {term.transform} of {term.column}; its fields: {known}"
    )


def _write_order(run: Run, table: Table, action: WriteOrder) -> None:
    with table.transaction() as change:
        order = change.update_sort_order(run.case_sensitive)
        for field in action.order or ():
            column = ".".join(_path(run, table, field.term.column))
            add = order.asc if field.direction == "asc" else order.desc
            add(column, field.term.transform, field.nulls)
        order.commit()
        if action.distribution is not None:
            change.set_properties({"write.distribution-mode": action.distribution})


# Branches and tags


def _set_reference(_: Run, table: Table, action: SetReference) -> None:
    exists = action.name in table.refs()
    if exists and action.if_not_exists:
        return
    snapshot = table.current_snapshot()
    snapshot_id = action.snapshot_id if action.snapshot_id is not None or snapshot is None else snapshot.snapshot_id
    if snapshot_id is None:
        raise InvalidArgumentError(
            f"table {'.'.join(table.name())} has no snapshot yet for {action.kind} {action.name!r}: write rows first"
        )
    with table.manage_snapshots() as change:
        if action.replace and (exists or not action.create):
            if action.kind == "branch":
                change.replace_branch(action.name, snapshot_id)
            else:
                change.replace_tag(action.name, snapshot_id)
            if action.max_ref_age_ms is not None:
                change.set_max_ref_age_ms(action.name, action.max_ref_age_ms)
            if action.max_snapshot_age_ms is not None:
                change.set_max_snapshot_age_ms(action.name, action.max_snapshot_age_ms)
            if action.min_snapshots_to_keep is not None:
                change.set_min_snapshots_to_keep(action.name, action.min_snapshots_to_keep)
        elif action.kind == "branch":
            change.create_branch(
                snapshot_id,
                action.name,
                action.max_ref_age_ms,
                action.max_snapshot_age_ms,
                action.min_snapshots_to_keep,
            )
        else:
            change.create_tag(snapshot_id, action.name, action.max_ref_age_ms)


def _drop_reference(_: Run, table: Table, action: DropReference) -> None:
    if action.if_exists and action.name not in table.refs():
        return
    with table.manage_snapshots() as change:
        if action.kind == "branch":
            change.remove_branch(action.name)
        else:
            change.remove_tag(action.name)


# Properties


#: Properties that are no properties of the table, and what sets what they are about.
_RESERVED = {
    "sort-order": "ALTER TABLE … WRITE ORDERED BY",
    "default-sort-order": "ALTER TABLE … WRITE ORDERED BY",
    "identifier-fields": "ALTER TABLE … SET IDENTIFIER FIELDS",
    "default-partition-spec": "ALTER TABLE … ADD, DROP or REPLACE PARTITION FIELD",
    **{key: instead for key, instead in RESERVED.items() if key != "location"},
    "current-schema": "ALTER TABLE … ADD, DROP or ALTER COLUMN",
    "current-snapshot-summary": "'current-snapshot-id'",
    "current-snapshot-timestamp-ms": "'current-snapshot-id'",
    "snapshot-count": "CALL expire_snapshots",
    "uuid": "nothing: it stays as it is",
}
_LOCATION, _CURRENT, _PICKED = "location", "current-snapshot-id", "cherry-pick-snapshot-id"


def _set_properties(run: Run, table: Table, action: SetProperties) -> None:
    """Set properties; those that Java carries out instead of storing them move the table or its current snapshot."""
    own = {key: value for key, value in action.properties.items() if key.lower() not in (_LOCATION, _CURRENT, _PICKED)}
    for key in own:
        if (instead := _RESERVED.get(key.lower())) is not None:
            raise run.statement.error(0, f"{key!r} is no property that can be set: use {instead}")
    done = {key.lower(): value for key, value in action.properties.items() if key not in own}
    ids = {key: _snapshot_id(run, key, done[key]) for key in (_CURRENT, _PICKED) if key in done}
    if len(ids) > 1:
        raise run.statement.error(0, f"set either {_CURRENT!r} or {_PICKED!r}: their order would decide")
    if _CURRENT in ids:
        table.manage_snapshots().set_current_snapshot(ids[_CURRENT]).commit()
    if _PICKED in ids:
        table.cherry_pick(ids[_PICKED])
    if own or _LOCATION in done:
        with table.transaction() as change:
            if _LOCATION in done:
                change.update_location(done[_LOCATION])
            if own:
                change.set_properties(own)


def _snapshot_id(run: Run, key: str, value: str) -> int:
    if not value.isascii() or not value.isdigit():
        raise run.statement.error(0, f"{key!r}: expected the id of a snapshot, got {value!r}")
    return int(value)


def _unset_properties(_: Run, table: Table, action: UnsetProperties) -> None:
    table.update_properties(removals=list(action.keys))


_CHANGES: dict[type, Callable[..., None]] = {
    AddColumns: _add,
    DropColumns: _drop,
    RenameColumn: _rename_column,
    AlterColumns: _alter_columns,
    AddPartitionField: _add_field,
    DropPartitionField: _drop_field,
    ReplacePartitionField: _replace_field,
    WriteOrder: _write_order,
    SetReference: _set_reference,
    DropReference: _drop_reference,
    IdentifierFields: _identifier,
    SetProperties: _set_properties,
    UnsetProperties: _unset_properties,
}
