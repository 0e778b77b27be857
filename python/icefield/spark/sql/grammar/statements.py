"""Statements as they were parsed: names and literals as values, what Spark evaluates as pieces of the text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from icefield.spark.sql.grammar.text import Name, Piece

__all__ = [
    "AddColumns",
    "AddPartitionField",
    "Alter",
    "AlterColumn",
    "AlterColumns",
    "AlterNamespace",
    "AlterView",
    "Assignment",
    "Call",
    "ColumnDefinition",
    "CommentOn",
    "CreateNamespace",
    "CreateTable",
    "CreateView",
    "Delete",
    "Describe",
    "DescribeNamespace",
    "DropColumns",
    "DropNamespace",
    "DropPartitionField",
    "DropReference",
    "DropTable",
    "DropView",
    "IdentifierFields",
    "Insert",
    "Merge",
    "MergeClause",
    "Other",
    "PartitionTerm",
    "Query",
    "Refresh",
    "RenameColumn",
    "RenameTable",
    "ReplacePartitionField",
    "SetProperties",
    "SetReference",
    "Show",
    "SortTerm",
    "Truncate",
    "UnsetProperties",
    "Update",
    "Use",
    "ViewQuery",
    "WriteOrder",
]

Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Query:
    """A query, or a statement that contains one whose result goes elsewhere than into a table of icefield."""

    piece: Piece


@dataclass(frozen=True)
class Other:
    """A statement of Spark that says nothing about tables of icefield, and must not name one."""

    what: str
    names: tuple[Name, ...] = ()


@dataclass(frozen=True)
class CreateView:
    """CREATE [OR REPLACE] [TEMPORARY] VIEW."""

    name: Name
    columns: tuple[str, ...]
    query: Piece
    replace: bool
    temporary: bool
    if_not_exists: bool = False
    #: One for each of the columns.
    comments: tuple[str | None, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    #: Where what only views in catalogs have begins.
    extras_at: int | None = None


@dataclass(frozen=True)
class Use:
    """USE of a catalog or namespace."""

    name: Name
    #: None where the statement does not say what it names.
    kind: Literal["namespace", "catalog"] | None


@dataclass(frozen=True)
class PartitionTerm:
    """A transform of a column, in a partition spec or a sort order."""

    column: Name
    transform: str
    name: str | None = None


@dataclass(frozen=True)
class SortTerm:
    """A field of a sort order."""

    term: PartitionTerm
    direction: Literal["asc", "desc"]
    nulls: Literal["nulls-first", "nulls-last"]


@dataclass(frozen=True)
class ColumnDefinition:
    """A column of a new table, or a new column."""

    path: Name
    type: Piece
    required: bool = False
    comment: str | None = None
    default: Piece | None = None
    #: ``("first",)``, ``("after", "x")``, or nothing.
    position: tuple[str, ...] = ()


@dataclass(frozen=True)
class CreateTable:
    """CREATE TABLE, CREATE OR REPLACE TABLE, REPLACE TABLE."""

    name: Name
    how: Literal["create", "create if not exists", "create or replace", "replace"]
    columns: tuple[ColumnDefinition, ...] = ()
    provider: str | None = None
    partitioning: tuple[PartitionTerm, ...] = ()
    comment: str | None = None
    location: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    query: Piece | None = None
    order: WriteOrder | None = None


@dataclass(frozen=True)
class DropTable:
    """DROP TABLE."""

    name: Name
    if_exists: bool
    purge: bool


@dataclass(frozen=True)
class DropView:
    """DROP VIEW."""

    name: Name
    if_exists: bool


@dataclass(frozen=True)
class Truncate:
    """TRUNCATE TABLE."""

    name: Name


@dataclass(frozen=True)
class Refresh:
    """REFRESH TABLE, which tables of icefield do not need."""

    name: Name


@dataclass(frozen=True)
class CommentOn:
    """COMMENT ON TABLE or NAMESPACE."""

    kind: Literal["table", "namespace"]
    name: Name
    comment: str | None


@dataclass(frozen=True)
class CreateNamespace:
    """CREATE NAMESPACE."""

    name: Name
    if_not_exists: bool
    properties: Mapping[str, str]


@dataclass(frozen=True)
class DropNamespace:
    """DROP NAMESPACE."""

    name: Name
    if_exists: bool
    cascade: bool


@dataclass(frozen=True)
class AlterNamespace:
    """ALTER NAMESPACE … SET or UNSET PROPERTIES."""

    name: Name
    updates: Mapping[str, str]
    removals: tuple[str, ...] = ()


@dataclass(frozen=True)
class DescribeNamespace:
    """DESCRIBE NAMESPACE."""

    name: Name
    extended: bool


@dataclass(frozen=True)
class Describe:
    """DESCRIBE TABLE, or one column of it."""

    name: Name
    extended: bool
    column: Name | None


@dataclass(frozen=True)
class Show:
    """SHOW TABLES, NAMESPACES, CATALOGS, CREATE TABLE, TBLPROPERTIES, PARTITIONS, COLUMNS, CURRENT NAMESPACE."""

    what: Literal[
        "tables",
        "namespaces",
        "catalogs",
        "create table",
        "properties",
        "partitions",
        "columns",
        "views",
        "current namespace",
    ]
    name: Name | None
    pattern: str | None = None
    key: str | None = None


@dataclass(frozen=True)
class Call:
    """CALL catalog.system.procedure(…)."""

    procedure: Name
    positional: tuple[Piece, ...]
    named: tuple[tuple[Name, Piece], ...]


# Changes of tables by ALTER TABLE


@dataclass(frozen=True)
class AddColumns:
    """ADD COLUMNS."""

    columns: tuple[ColumnDefinition, ...]


@dataclass(frozen=True)
class DropColumns:
    """DROP COLUMNS."""

    columns: tuple[Name, ...]
    if_exists: bool


@dataclass(frozen=True)
class RenameColumn:
    """RENAME COLUMN."""

    column: Name
    new_name: str


@dataclass(frozen=True)
class AlterColumn:
    """A change of a column: one of these, or a type with a comment and a position."""

    column: Name
    type: Piece | None = None
    comment: str | None = None
    required: bool | None = None
    position: tuple[str, ...] = ()
    default: Piece | None = None
    drops_default: bool = False


@dataclass(frozen=True)
class AlterColumns:
    """ALTER COLUMN or CHANGE COLUMN, of one column or several."""

    columns: tuple[AlterColumn, ...]


@dataclass(frozen=True)
class AddPartitionField:
    """ADD PARTITION FIELD."""

    term: PartitionTerm


@dataclass(frozen=True)
class DropPartitionField:
    """DROP PARTITION FIELD, by its name or its transform."""

    term: PartitionTerm


@dataclass(frozen=True)
class ReplacePartitionField:
    """REPLACE PARTITION FIELD."""

    old: PartitionTerm
    new: PartitionTerm


@dataclass(frozen=True)
class WriteOrder:
    """WRITE [LOCALLY] ORDERED BY, DISTRIBUTED BY PARTITION, UNORDERED."""

    #: None where the mode stays as it is.
    distribution: Literal["none", "hash", "range"] | None
    order: tuple[SortTerm, ...] | None


@dataclass(frozen=True)
class SetReference:
    """CREATE, CREATE OR REPLACE, REPLACE a branch or tag."""

    kind: Literal["branch", "tag"]
    name: str
    create: bool
    replace: bool
    if_not_exists: bool
    snapshot_id: int | None = None
    max_ref_age_ms: int | None = None
    max_snapshot_age_ms: int | None = None
    min_snapshots_to_keep: int | None = None


@dataclass(frozen=True)
class DropReference:
    """DROP BRANCH or TAG."""

    kind: Literal["branch", "tag"]
    name: str
    if_exists: bool


@dataclass(frozen=True)
class IdentifierFields:
    """SET or DROP IDENTIFIER FIELDS."""

    columns: tuple[Name, ...]
    drop: bool


@dataclass(frozen=True)
class SetProperties:
    """SET TBLPROPERTIES."""

    properties: Mapping[str, str]


@dataclass(frozen=True)
class UnsetProperties:
    """UNSET TBLPROPERTIES."""

    keys: tuple[str, ...]
    if_exists: bool


@dataclass(frozen=True)
class RenameTable:
    """RENAME TO."""

    name: Name


AlterAction: TypeAlias = (
    AddColumns
    | DropColumns
    | RenameColumn
    | AlterColumns
    | AddPartitionField
    | DropPartitionField
    | ReplacePartitionField
    | WriteOrder
    | SetReference
    | DropReference
    | IdentifierFields
    | SetProperties
    | UnsetProperties
    | RenameTable
)


@dataclass(frozen=True)
class Alter:
    """ALTER TABLE."""

    name: Name
    action: AlterAction


@dataclass(frozen=True)
class ViewQuery:
    """AS, with another query of a view."""

    query: Piece


@dataclass(frozen=True)
class AlterView:
    """ALTER VIEW."""

    name: Name
    action: SetProperties | UnsetProperties | RenameTable | ViewQuery


# Changes of rows


@dataclass(frozen=True)
class Insert:
    """INSERT INTO, INSERT OVERWRITE, INSERT INTO … REPLACE WHERE."""

    name: Name
    overwrite: bool
    query: Piece
    columns: tuple[Name, ...] = ()
    by_name: bool = False
    #: Values of partition columns; None for those that the query has.
    partition: tuple[tuple[Name, Piece | None], ...] = ()
    replace_where: Piece | None = None


@dataclass(frozen=True)
class Delete:
    """DELETE FROM."""

    name: Name
    alias: str | None
    condition: Piece | None


@dataclass(frozen=True)
class Assignment:
    """A column and its new value; None is DEFAULT."""

    column: Name
    value: Piece | None


@dataclass(frozen=True)
class Update:
    """UPDATE."""

    name: Name
    alias: str | None
    assignments: tuple[Assignment, ...]
    condition: Piece | None


@dataclass(frozen=True)
class MergeClause:
    """A WHEN clause of MERGE."""

    match: Literal["matched", "not matched", "not matched by source"]
    condition: Piece | None
    action: Literal["update", "delete", "insert"]
    #: None for ``*``.
    assignments: tuple[Assignment, ...] | None = None


@dataclass(frozen=True)
class Merge:
    """MERGE INTO."""

    name: Name
    alias: str | None
    source: Piece
    source_alias: str | None
    on: Piece
    clauses: tuple[MergeClause, ...]
    evolve: bool
    start: int = 0
