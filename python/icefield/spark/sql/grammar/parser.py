"""Which statement a text is: those about tables and namespaces are parsed here, queries and the rest are Spark's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from icefield.spark.sql.grammar import rows
from icefield.spark.sql.grammar.altering import alter_table
from icefield.spark.sql.grammar.statements import (
    Alter,
    AlterNamespace,
    AlterView,
    Call,
    ColumnDefinition,
    CommentOn,
    CreateNamespace,
    CreateTable,
    CreateView,
    Delete,
    Describe,
    DescribeNamespace,
    DropNamespace,
    DropTable,
    DropView,
    Insert,
    Merge,
    Other,
    PartitionTerm,
    Query,
    Refresh,
    RenameTable,
    SetProperties,
    Show,
    Truncate,
    UnsetProperties,
    Update,
    Use,
    ViewQuery,
)
from icefield.spark.sql.grammar.terms import column_definition, partition_term, properties, property_key, property_keys
from icefield.spark.sql.grammar.text import Cursor, Name, Piece, Statement

__all__ = ["Parsed", "parse"]

Parsed: TypeAlias = (
    Alter
    | AlterNamespace
    | AlterView
    | Call
    | CommentOn
    | CreateNamespace
    | CreateTable
    | CreateView
    | Delete
    | Describe
    | DescribeNamespace
    | DropNamespace
    | DropTable
    | DropView
    | Insert
    | Merge
    | Other
    | Query
    | Refresh
    | Show
    | Truncate
    | Update
    | Use
)
_QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "(")
_CHANGES = frozenset({"INSERT", "DELETE", "UPDATE", "MERGE"})
_NAMESPACES = ("NAMESPACE", "DATABASE", "SCHEMA")


def parse(statement: Statement) -> Parsed:
    """Parse a statement.

    Raises
    ------
    InvalidArgumentError
        If it is not as the grammar of Spark or of Iceberg's extensions has it; with line and column.
    UnsupportedFeatureError
        If icefield does not support it; with line and column, and what to do.

    """
    cursor = Cursor(statement)
    if cursor.at_end():
        raise statement.error(0, "expected a statement, got an empty text")
    if any(map(cursor.ahead, _QUERIES)):
        return _query(cursor)
    for words, form in _FORMS:
        if cursor.take(*words):
            found = form(cursor)
            cursor.finish()
            return found
    return _other(cursor)


def _query(cursor: Cursor) -> Query:
    start, depth = cursor.place, 0
    end = start
    while not cursor.at_end():
        token = cursor.next()
        if token.kind == "symbol":
            depth += (token.text == "(") - (token.text == ")")
        elif (
            token.kind == "word"
            and depth == 0
            and token.text.upper() in _CHANGES
            and cursor.one_of("INTO", "FROM", "OVERWRITE")
        ):
            raise cursor.statement.refusal(
                token.start,
                f"{token.text.upper()} after WITH or FROM is not supported: begin with {token.text.upper()}",
            )
        end = token.end
    return Query(Piece(start, end))


def _other(cursor: Cursor) -> Other:
    first = cursor.next()
    if first.kind != "word":
        raise cursor.statement.error(
            first.start, f"expected a statement, got {cursor.statement.text[first.start : first.end]!r}"
        )
    return Other(first.text.upper())


def _explain(cursor: Cursor) -> Query:
    cursor.one_of("EXTENDED", "CODEGEN", "COST", "FORMATTED", "LOGICAL")
    if not any(map(cursor.ahead, _QUERIES)):
        raise cursor.statement.refusal(cursor.place, "EXPLAIN of anything but a query is not supported")
    return _query(cursor)


def _use(cursor: Cursor) -> Use:
    kind: Literal["namespace", "catalog"] | None = "namespace" if cursor.one_of(*_NAMESPACES) else None
    return Use(cursor.name("a catalog or namespace"), kind)


def _set_catalog(cursor: Cursor) -> Use:
    if cursor.token.kind == "string":
        start = cursor.place
        return Use(Name((cursor.string("a catalog"),), start, cursor.last_end), "catalog")
    return Use(cursor.name("a catalog"), "catalog")


# Tables


def _create_table(how: Literal["create", "create or replace", "replace"]) -> Callable[[Cursor], Parsed]:
    def parsed(cursor: Cursor) -> Parsed:
        missing = how == "create" and cursor.take("IF", "NOT", "EXISTS")
        name = cursor.name("a table")
        if cursor.ahead("LIKE"):
            raise cursor.statement.refusal(cursor.place, "CREATE TABLE … LIKE is not supported: name the columns")
        columns = _column_definitions(cursor) if cursor.ahead("(") and not cursor.ahead("(", "SELECT") else ()
        parts = _TableParts(columns)
        parts.read(cursor)
        return parts.table(name, "create if not exists" if missing else how)

    return parsed


def _column_definitions(cursor: Cursor) -> tuple[ColumnDefinition, ...]:
    cursor.expect("(")
    found = [column_definition(cursor)]
    while cursor.take(","):
        found.append(column_definition(cursor))
    cursor.expect(")")
    for column in found:
        if column.position:
            raise cursor.statement.error(
                column.path.start, "columns of a new table have the order that they are written in"
            )
        if len(column.path.parts) > 1:
            raise cursor.statement.error(column.path.start, f"expected the name of one column, got {column.path}")
    return tuple(found)


class _TableParts:
    """The clauses of CREATE TABLE, in any order."""

    def __init__(self, columns: tuple[ColumnDefinition, ...]) -> None:
        self.columns = list(columns)
        self.seen: set[str] = set()
        self.provider: str | None = None
        self.partitioning: tuple[PartitionTerm, ...] = ()
        self.comment: str | None = None
        self.location: str | None = None
        self.properties: dict[str, str] = {}
        self.query: Piece | None = None

    def read(self, cursor: Cursor) -> None:
        clauses: dict[str, Callable[[Cursor], None]] = {
            "USING": self._using,
            "PARTITIONED": self._partitioned,
            "COMMENT": self._comment,
            "LOCATION": self._location,
            "TBLPROPERTIES": self._properties,
        }
        while True:
            at = cursor.place
            word = cursor.one_of(*clauses)
            if word is None:
                break
            if word in self.seen:
                raise cursor.statement.error(at, f"{word} stands twice")
            self.seen.add(word)
            clauses[word](cursor)
        for unknown in ("OPTIONS", "CLUSTER", "CLUSTERED", "ROW", "STORED", "SKEWED"):
            if cursor.ahead(unknown):
                raise cursor.statement.refusal(
                    cursor.place, f"{unknown} of CREATE TABLE is not supported: use TBLPROPERTIES or PARTITIONED BY"
                )
        with_as = cursor.take("AS")
        if with_as or any(map(cursor.ahead, _QUERIES)):
            self.query = cursor.piece("a query")

    def _using(self, cursor: Cursor) -> None:
        self.provider = str(cursor.name("a format"))

    def _comment(self, cursor: Cursor) -> None:
        self.comment = cursor.string("a comment in quotes")

    def _location(self, cursor: Cursor) -> None:
        self.location = cursor.string("a location in quotes")

    def _properties(self, cursor: Cursor) -> None:
        self.properties = properties(cursor)

    def _partitioned(self, cursor: Cursor) -> None:
        cursor.expect("BY", "(")
        terms = [self._partition(cursor)]
        while cursor.take(","):
            terms.append(self._partition(cursor))
        cursor.expect(")")
        self.partitioning = tuple(terms)

    def _partition(self, cursor: Cursor) -> PartitionTerm:
        # Hive's form defines a column: (day string).
        is_column = cursor.token.kind in ("word", "quoted") and not any(
            cursor.ahead(sign, skip=1) for sign in ("(", ",", ")", ".")
        )
        if not is_column:
            return partition_term(cursor, named=False)
        column = column_definition(cursor)
        self.columns.append(column)
        return PartitionTerm(column.path, "identity")

    def table(
        self, name: Name, how: Literal["create", "create if not exists", "create or replace", "replace"]
    ) -> CreateTable:
        return CreateTable(
            name,
            how,
            tuple(self.columns),
            self.provider,
            self.partitioning,
            self.comment,
            self.location,
            self.properties,
            self.query,
        )


def _drop_table(cursor: Cursor) -> DropTable:
    if_exists = cursor.take("IF", "EXISTS")
    return DropTable(cursor.name("a table"), if_exists, cursor.take("PURGE"))


def _drop_view(cursor: Cursor) -> DropView:
    if_exists = cursor.take("IF", "EXISTS")
    return DropView(cursor.name("a view"), if_exists)


def _truncate(cursor: Cursor) -> Truncate:
    name = cursor.name("a table")
    if cursor.ahead("PARTITION"):
        raise cursor.statement.refusal(
            cursor.place, "TRUNCATE TABLE … PARTITION is not supported: use DELETE FROM … WHERE"
        )
    return Truncate(name)


def _comment_on(kind: Literal["table", "namespace"]) -> Callable[[Cursor], Parsed]:
    def parsed(cursor: Cursor) -> Parsed:
        name = cursor.name(f"a {kind}")
        cursor.expect("IS")
        return CommentOn(kind, name, None if cursor.take("NULL") else cursor.string("a comment in quotes, or NULL"))

    return parsed


def _create_view(*, replace: bool, temporary: bool) -> Callable[[Cursor], Parsed]:
    def parsed(cursor: Cursor) -> Parsed:
        missing = cursor.take("IF", "NOT", "EXISTS")
        name = cursor.name("a view")
        columns: list[tuple[str, str | None]] = []
        if cursor.take("("):
            columns.append(_view_column(cursor))
            while cursor.take(","):
                columns.append(_view_column(cursor))
            cursor.expect(")")
        if cursor.ahead("USING"):
            cursor.piece("a data source")
            return Other("CREATE TEMPORARY VIEW")
        found: dict[str, str] = {}
        extras = cursor.place
        while not cursor.take("AS"):
            if cursor.take("COMMENT"):
                found["comment"] = cursor.string("a comment in quotes")
            elif cursor.take("TBLPROPERTIES"):
                found.update(properties(cursor))
            elif cursor.ahead("WITH", "SCHEMA"):
                raise cursor.statement.refusal(cursor.place, "WITH SCHEMA is not supported: columns keep their types")
            else:
                cursor.expect("AS")
        query = cursor.piece("a query")
        names, comments = tuple(one for one, _ in columns), tuple(comment for _, comment in columns)
        at = extras if found or any(comments) else None
        return CreateView(name, names, query, replace, temporary, missing, comments, found, at)

    return parsed


def _view_column(cursor: Cursor) -> tuple[str, str | None]:
    name = cursor.part("a column")
    return name, cursor.string("a comment in quotes") if cursor.take("COMMENT") else None


def _alter_view(cursor: Cursor) -> AlterView:
    name = cursor.name("a view")
    if cursor.take("SET", "TBLPROPERTIES"):
        return AlterView(name, SetProperties(properties(cursor)))
    if cursor.take("UNSET", "TBLPROPERTIES"):
        if_exists = cursor.take("IF", "EXISTS")
        return AlterView(name, UnsetProperties(property_keys(cursor), if_exists))
    if cursor.take("RENAME", "TO"):
        return AlterView(name, RenameTable(cursor.name("a view")))
    if cursor.ahead("WITH", "SCHEMA"):
        raise cursor.statement.refusal(cursor.place, "WITH SCHEMA is not supported: columns keep their types")
    cursor.take("AS")
    return AlterView(name, ViewQuery(cursor.piece("a query")))


# Namespaces


def _create_namespace(cursor: Cursor) -> CreateNamespace:
    missing = cursor.take("IF", "NOT", "EXISTS")
    name = cursor.name("a namespace")
    found: dict[str, str] = {}
    while True:
        if cursor.take("COMMENT"):
            found["comment"] = cursor.string("a comment in quotes")
        elif cursor.take("LOCATION"):
            found["location"] = cursor.string("a location in quotes")
        elif cursor.take("WITH"):
            if cursor.one_of("DBPROPERTIES", "PROPERTIES") is None:
                raise cursor.error("expected PROPERTIES or DBPROPERTIES")
            found.update(properties(cursor))
        else:
            return CreateNamespace(name, missing, found)


def _drop_namespace(cursor: Cursor) -> DropNamespace:
    if_exists = cursor.take("IF", "EXISTS")
    return DropNamespace(cursor.name("a namespace"), if_exists, cursor.one_of("CASCADE", "RESTRICT") == "CASCADE")


def _alter_namespace(cursor: Cursor) -> AlterNamespace:
    name = cursor.name("a namespace")
    unset = cursor.one_of("SET", "UNSET")
    if unset is None:
        raise cursor.error("expected SET or UNSET")
    if unset == "SET" and cursor.take("LOCATION"):
        return AlterNamespace(name, {"location": cursor.string("a location in quotes")})
    if cursor.one_of("PROPERTIES", "DBPROPERTIES") is None:
        raise cursor.error("expected PROPERTIES or DBPROPERTIES")
    if unset == "SET":
        return AlterNamespace(name, properties(cursor))
    return AlterNamespace(name, {}, property_keys(cursor))


# What is shown


def _describe(cursor: Cursor) -> Parsed:
    if cursor.one_of(*_NAMESPACES):
        extended = cursor.take("EXTENDED")
        return DescribeNamespace(cursor.name("a namespace"), extended)
    if any(map(cursor.ahead, ("FUNCTION", "QUERY", *_QUERIES[:-3]))):
        cursor.piece("what is described")
        return Other("DESCRIBE")
    cursor.take("TABLE")
    extended = cursor.one_of("EXTENDED", "FORMATTED") is not None
    name = cursor.name("a table")
    if cursor.ahead("PARTITION"):
        raise cursor.statement.refusal(
            cursor.place, "DESCRIBE … PARTITION is not supported: read the metadata table partitions"
        )
    if cursor.ahead("AS", "JSON"):
        raise cursor.statement.refusal(cursor.place, "DESCRIBE … AS JSON is not supported: use table.metadata_json")
    return Describe(name, extended, None if cursor.at_end() else cursor.name("a column"))


def _show_listed(what: Literal["tables", "namespaces", "views"]) -> Callable[[Cursor], Parsed]:
    def parsed(cursor: Cursor) -> Parsed:
        name = cursor.name("a namespace") if cursor.one_of("FROM", "IN") else None
        like = cursor.take("LIKE") or cursor.token.kind == "string"
        return Show(what, name, cursor.string("a pattern in quotes") if like else None)

    return parsed


def _show_catalogs(cursor: Cursor) -> Show:
    like = cursor.take("LIKE") or cursor.token.kind == "string"
    return Show("catalogs", None, cursor.string("a pattern in quotes") if like else None)


def _show_create(cursor: Cursor) -> Show:
    name = cursor.name("a table")
    if cursor.ahead("AS", "SERDE"):
        raise cursor.statement.refusal(cursor.place, "SHOW CREATE TABLE … AS SERDE is of Hive's tables only")
    return Show("create table", name)


def _show_properties(cursor: Cursor) -> Show:
    name, key = cursor.name("a table"), None
    if cursor.take("("):
        key = property_key(cursor)
        cursor.expect(")")
    return Show("properties", name, key=key)


def _show_partitions(cursor: Cursor) -> Show:
    name = cursor.name("a table")
    if cursor.ahead("PARTITION"):
        raise cursor.statement.refusal(
            cursor.place, "SHOW PARTITIONS … PARTITION is not supported: query the metadata table partitions"
        )
    return Show("partitions", name)


def _show_columns(cursor: Cursor) -> Show:
    if cursor.one_of("FROM", "IN") is None:
        raise cursor.error("expected IN or FROM")
    name = cursor.name("a table")
    if cursor.one_of("FROM", "IN"):
        namespace = cursor.name("a namespace")
        name = Name((*namespace.parts, *name.parts), name.start, cursor.last_end)
    return Show("columns", name)


# Procedures


def _call(cursor: Cursor) -> Call:
    procedure = cursor.name("a procedure")
    positional: list[Piece] = []
    named: list[tuple[Name, Piece]] = []
    cursor.expect("(")
    while not cursor.take(")"):
        if positional or named:
            cursor.expect(",")
        if cursor.token.kind in ("word", "quoted") and cursor.ahead("=>", skip=1):
            name = cursor.name("a parameter")
            cursor.expect("=>")
            if any(str(one).lower() == str(name).lower() for one, _ in named):
                raise cursor.statement.error(name.start, f"parameter {name} is passed twice")
            named.append((name, cursor.piece("a value", ",", ")")))
        elif named:
            raise cursor.error("expected a name and =>, as the values before have names")
        else:
            positional.append(cursor.piece("a value", ",", ")"))
    return Call(procedure, tuple(positional), tuple(named))


def _each(verb: str, form: Callable[[Cursor], Parsed]) -> list[tuple[tuple[str, ...], Callable[[Cursor], Parsed]]]:
    return [((verb, word), form) for word in _NAMESPACES]


#: The words that statements begin with, longer ones before those that they begin with, and what follows.
_FORMS: list[tuple[tuple[str, ...], Callable[[Cursor], Parsed]]] = [
    (("EXPLAIN",), _explain),
    (("USE",), _use),
    (("SET", "CATALOG"), _set_catalog),
    (("CALL",), _call),
    (("CREATE", "TABLE"), _create_table("create")),
    (("CREATE", "OR", "REPLACE", "TABLE"), _create_table("create or replace")),
    (("REPLACE", "TABLE"), _create_table("replace")),
    (("ALTER", "TABLE"), alter_table),
    (("ALTER", "VIEW"), _alter_view),
    (("DROP", "TABLE"), _drop_table),
    (("DROP", "VIEW"), _drop_view),
    (("TRUNCATE", "TABLE"), _truncate),
    (("REFRESH", "TABLE"), lambda cursor: Refresh(cursor.name("a table"))),
    (("COMMENT", "ON", "TABLE"), _comment_on("table")),
    *[(("COMMENT", "ON", word), _comment_on("namespace")) for word in _NAMESPACES],
    (("CREATE", "OR", "REPLACE", "TEMPORARY", "VIEW"), _create_view(replace=True, temporary=True)),
    (("CREATE", "OR", "REPLACE", "TEMP", "VIEW"), _create_view(replace=True, temporary=True)),
    (("CREATE", "OR", "REPLACE", "VIEW"), _create_view(replace=True, temporary=False)),
    (("CREATE", "TEMPORARY", "VIEW"), _create_view(replace=False, temporary=True)),
    (("CREATE", "TEMP", "VIEW"), _create_view(replace=False, temporary=True)),
    (("CREATE", "VIEW"), _create_view(replace=False, temporary=False)),
    *_each("CREATE", _create_namespace),
    *_each("DROP", _drop_namespace),
    *_each("ALTER", _alter_namespace),
    (("DESCRIBE",), _describe),
    (("DESC",), _describe),
    (("SHOW", "TABLES"), _show_listed("tables")),
    (("SHOW", "VIEWS"), _show_listed("views")),
    (("SHOW", "NAMESPACES"), _show_listed("namespaces")),
    (("SHOW", "DATABASES"), _show_listed("namespaces")),
    (("SHOW", "SCHEMAS"), _show_listed("namespaces")),
    (("SHOW", "CATALOGS"), _show_catalogs),
    (("SHOW", "CURRENT", "NAMESPACE"), lambda _: Show("current namespace", None)),
    (("SHOW", "CREATE", "TABLE"), _show_create),
    (("SHOW", "TBLPROPERTIES"), _show_properties),
    (("SHOW", "PARTITIONS"), _show_partitions),
    (("SHOW", "COLUMNS"), _show_columns),
    (("INSERT",), rows.insert),
    (("DELETE",), rows.delete),
    (("UPDATE",), rows.update),
    (("MERGE",), rows.merge),
]
