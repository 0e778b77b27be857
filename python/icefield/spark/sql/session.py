"""SQL about tables of icefield: `SqlSession`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from types import TracebackType
from typing import TYPE_CHECKING, Any

from icefield.errors import InvalidArgumentError
from icefield.spark.sql.catalogs import CatalogNames, GivenCatalogs, Target
from icefield.spark.sql.grammar.parser import parse
from icefield.spark.sql.grammar.statements import (
    Alter,
    AlterNamespace,
    AlterView,
    Call,
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
    Query,
    Refresh,
    Show,
    Truncate,
    Update,
    Use,
    ViewQuery,
)
from icefield.spark.sql.grammar.text import Cursor, Name, Piece, Statement, Token
from icefield.spark.sql.running import CURRENT, Args, Run, drop_views, with_identifiers
from icefield.spark.sql.statements import altered, calling, changing, defining, describing, inserting, viewing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from typing_extensions import Self

__all__ = ["SqlSession"]


class SqlSession:
    """SQL about the tables of icefield's catalogs, and about all that Spark has, in one Spark session.

    Made by `icefield.spark.session`. It has a current catalog and namespace of its own; that of the Spark session is
    current until ``USE`` names one of icefield's. It can be used in a ``with`` block, which closes it.
    """

    def __init__(self, spark: SparkSession, catalogs: GivenCatalogs | None = None) -> None:
        self._spark = spark
        self._names = CatalogNames(spark, catalogs)
        #: Views that frames of Spark Connect still need.
        self._views: list[str] = []
        self._closed = False

    @property
    def catalogs(self) -> list[str]:
        """Names of the catalogs of icefield."""
        return self._names.names()

    @property
    def current_catalog(self) -> str:
        """Name of the current catalog."""
        return self._names.current or str(self._spark.catalog.currentCatalog())

    @property
    def current_namespace(self) -> str:
        """Name of the current namespace."""
        if self._names.current is not None:
            return ".".join(self._names.namespace)
        return str(self._spark.catalog.currentDatabase())

    def sql(self, text: str, args: Args = None) -> DataFrame:
        """Run a statement.

        Parameters
        ----------
        text
            One statement. ``docs/spark-sql.md`` lists those about tables of icefield; all others go to Spark.
        args
            Values of the parameters ``:name`` (a dict) or ``?`` (a list), as `pyspark.sql.SparkSession.sql` takes them.

        Returns
        -------
        pyspark.sql.DataFrame
            The rows of a query, of SHOW, DESCRIBE and CALL. They are of the snapshots that are current now. Of other
            statements it has no rows and no columns.

        Raises
        ------
        InvalidArgumentError
            If the statement is not understood; with line and column.
        UnsupportedFeatureError
            If it is understood and not supported; with line and column, and what to do.
        NotFoundError
            If a table or namespace does not exist; with line and column.

        """
        if self._closed:
            raise InvalidArgumentError("this session is closed: make another one by icefield.spark.session")
        statement = self._own(text, args)
        if statement is None:
            return self._spark.sql(text, args) if args else self._spark.sql(text)  # type: ignore[arg-type]
        run = Run(self._spark, self._names, statement, args)
        try:
            return self._run(run)
        finally:
            run.drop_views()
            self._views += run.views

    def table(self, name: str) -> DataFrame:
        """Read a table by its name in SQL: ``"catalog.db.t"``, ``"db.t.files"``, ``"db.`odd name`"``."""
        statement = Statement(name)
        cursor = Cursor(statement)
        parsed = cursor.name("the name of a table")
        cursor.finish()
        run = Run(self._spark, self._names, statement)
        try:
            return run.named(parsed)
        finally:
            run.drop_views()
            self._views += run.views

    def close(self) -> None:
        """Drop what the session has left in Spark, and close the catalogs that it has opened."""
        if not self._closed:
            self._closed = True
            drop_views(self._spark, self._views)
            self._views.clear()
            self._names.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = ", closed" if self._closed else ""
        return f"SqlSession(catalogs={self.catalogs}{state})"

    def _own(self, text: object, args: Args) -> Statement | None:
        """Return a statement that may be about icefield; None of others: they are Spark's, whatever their grammar."""
        if not isinstance(text, str):
            raise InvalidArgumentError(f"expected the text of a statement, got {text!r}")
        if _SETTINGS.match(text):
            return None
        texts = [text, *(one for one in (args.values() if isinstance(args, Mapping) else ()) if isinstance(one, str))]
        always = self._names.current is not None or _SHOW_CATALOGS.match(text) is not None
        if not always and not any(name in one for name in self._names.names() for one in texts):
            return None
        statement = with_identifiers(Statement(text), args)
        return statement if always or any(_catalogs(statement, self._names)) else None

    def _run(self, run: Run) -> DataFrame:
        parsed = parse(run.statement)
        forms: dict[type, Callable[..., DataFrame]] = {
            Alter: self._alter,
            AlterNamespace: self._namespace,
            AlterView: self._alter_view,
            Call: self._call,
            CommentOn: self._comment,
            CreateNamespace: self._namespace,
            CreateTable: self._create_table,
            CreateView: self._create_view,
            Delete: self._delete,
            Describe: self._describe,
            DescribeNamespace: self._namespace,
            DropNamespace: self._namespace,
            DropTable: self._drop_table,
            DropView: self._drop_view,
            Insert: self._insert,
            Merge: self._merge,
            Other: self._other,
            Query: self._query,
            Refresh: self._refresh,
            Show: self._show,
            Truncate: self._truncate,
            Update: self._update,
            Use: self._use,
        }
        return forms[type(parsed)](run, parsed)

    # Each returns the result of a statement.

    def _query(self, run: Run, parsed: Query) -> DataFrame:
        return run.whole(_inner(run, parsed), prune=True)

    def _other(self, run: Run, parsed: Other) -> DataFrame:
        """Pass a statement on to Spark, unless it names a table of icefield."""
        for token in _catalogs(run.statement, self._names, alone=False):
            raise run.statement.refusal(token.start, f"{parsed.what} is not supported for tables of icefield")
        if self._names.current is not None and _may_name_tables(run.statement):
            raise run.statement.refusal(
                0, f"{parsed.what} is not supported in catalog {self._names.current}: USE spark_catalog first"
            )
        return run.whole()

    def _create_view(self, run: Run, parsed: CreateView) -> DataFrame:
        target = None if parsed.temporary else self._names.view_target(parsed.name.parts)
        if target is not None:
            viewing.create(run, parsed, _required(run, parsed.name, target))
            return run.nothing()
        if not run.edits(parsed.query):
            return run.whole()
        if not parsed.temporary:
            raise run.statement.refusal(
                parsed.name.start,
                "views of icefield's tables are in its catalogs, or temporary: name a catalog, or use CREATE TEMPORARY "
                "VIEW",
            )
        if parsed.extras_at is not None:
            raise run.statement.refusal(
                parsed.extras_at, "comments and properties of temporary views of icefield's tables are not supported"
            )
        if len(parsed.name.parts) != 1:
            raise run.statement.error(
                parsed.name.start, f"the name of a temporary view has one part, got {parsed.name}"
            )
        frame = run.query(parsed.query)
        if parsed.columns:
            if len(parsed.columns) != len(frame.columns):
                raise run.statement.error(
                    parsed.name.end, f"{len(parsed.columns)} names for {len(frame.columns)} columns"
                )
            frame = frame.toDF(*parsed.columns)
        create = frame.createOrReplaceTempView if parsed.replace else frame.createTempView
        create(parsed.name.parts[0])
        return run.nothing()

    def _drop_view(self, run: Run, parsed: DropView) -> DataFrame:
        target = run.target(parsed.name)
        if target is None:
            return run.whole()
        viewing.drop(run, parsed, _required(run, parsed.name, target))
        return run.nothing()

    def _alter_view(self, run: Run, parsed: AlterView) -> DataFrame:
        target = run.target(parsed.name)
        if target is not None:
            viewing.alter(run, parsed, _required(run, parsed.name, target))
            return run.nothing()
        if isinstance(parsed.action, ViewQuery) and run.edits(parsed.action.query):
            raise run.statement.refusal(
                parsed.action.query.start,
                "a view of Spark's cannot name tables of icefield: create one in its catalogs",
            )
        return run.whole()

    def _use(self, run: Run, parsed: Use) -> DataFrame:
        with run.at(parsed.name.start):
            if self._names.use(parsed.name.parts, is_namespace=parsed.kind == "namespace"):
                return run.nothing()
        found = run.whole()
        self._names.current, self._names.namespace = None, ()
        return found

    def _create_table(self, run: Run, parsed: CreateTable) -> DataFrame:
        return self._on_table(run, parsed, defining.create_table, parsed.query)

    def _drop_table(self, run: Run, parsed: DropTable) -> DataFrame:
        return self._on_table(run, parsed, defining.drop_table)

    def _truncate(self, run: Run, parsed: Truncate) -> DataFrame:
        return self._on_table(run, parsed, defining.truncate)

    def _alter(self, run: Run, parsed: Alter) -> DataFrame:
        return self._on_table(run, parsed, altered.alter)

    def _insert(self, run: Run, parsed: Insert) -> DataFrame:
        return self._on_table(run, parsed, inserting.insert, parsed.query)

    def _delete(self, run: Run, parsed: Delete) -> DataFrame:
        return self._on_table(run, parsed, changing.delete, parsed.condition)

    def _update(self, run: Run, parsed: Update) -> DataFrame:
        pieces = [one.value for one in parsed.assignments]
        return self._on_table(run, parsed, changing.update, parsed.condition, *pieces)

    def _merge(self, run: Run, parsed: Merge) -> DataFrame:
        pieces = [clause.condition for clause in parsed.clauses]
        pieces += [one.value for clause in parsed.clauses for one in clause.assignments or ()]
        return self._on_table(run, parsed, changing.merge, parsed.source, parsed.on, *pieces)

    def _refresh(self, run: Run, parsed: Refresh) -> DataFrame:
        return self._on_table(run, parsed, lambda run, parsed, target: run.table(parsed.name, target))

    def _on_table(self, run: Run, parsed: Any, change: Any, *pieces: Piece | None) -> DataFrame:
        """Change a table of icefield; one of Spark's is changed by Spark, with the tables that the pieces name."""
        target = run.target(parsed.name)
        if target is None:
            return run.whole(*(piece for piece in pieces if piece is not None))
        _required(run, parsed.name, target)
        change(run, parsed, target)
        return run.nothing()

    def _comment(self, run: Run, parsed: CommentOn) -> DataFrame:
        if parsed.kind == "namespace":
            return self._namespace(run, parsed)
        target = run.target(parsed.name)
        if target is None:
            return run.whole()
        table = run.table(parsed.name, _required(run, parsed.name, target))
        table.update_properties({"comment": parsed.comment or ""})
        return run.nothing()

    def _namespace(self, run: Run, parsed: Any) -> DataFrame:
        target = self._names.namespace_target(parsed.name.parts)
        if target is None:
            return run.whole()
        if not target.identifier:
            raise run.statement.error(
                parsed.name.start, f"expected the name of a namespace in catalog {target.catalog_name}"
            )
        if isinstance(parsed, DescribeNamespace):
            return describing.describe_namespace(run, parsed, target)
        return defining.namespaces(run, parsed, target)

    def _describe(self, run: Run, parsed: Describe) -> DataFrame:
        target = run.target(parsed.name)
        if target is None:
            return run.whole()
        return describing.describe(run, parsed, _required(run, parsed.name, target))

    def _show(self, run: Run, parsed: Show) -> DataFrame:
        if parsed.what == "catalogs":
            return describing.catalogs(run, parsed.pattern, self._names.names())
        if parsed.what == "current namespace":
            here = [(self.current_catalog, self.current_namespace)]
            return run.result("catalog string NOT NULL, namespace string NOT NULL", here)
        if parsed.what in ("tables", "views", "namespaces"):
            parts = parsed.name.parts if parsed.name else ()
            target = self._names.namespace_target(parts)
            if target is not None and parsed.what == "namespaces" and not parts:
                # Without a name, Spark lists those of the catalog.
                target = Target(target.catalog_name, target.catalog, ())
        else:
            target = run.target(parsed.name) if parsed.name else None
        return run.whole() if target is None else describing.show(run, parsed, target)

    def _call(self, run: Run, parsed: Call) -> DataFrame:
        return calling.call(run, parsed)


#: Statements about settings and resources, whose values are free text.
_SETTINGS = re.compile(r"\s*(SET\b(?!\s*(/\*|--)|\s+(VAR|VARIABLE|CATALOG)\b)|(RESET|ADD|LIST)\b)", re.IGNORECASE)
_SHOW_CATALOGS = re.compile(r"\s*SHOW\s+CATALOGS\b", re.IGNORECASE)
#: What statements begin with that name no tables unless they have a query.
_WITHOUT_TABLES = (
    ("CLEAR", "CACHE"),
    ("SHOW", "FUNCTIONS"),
    ("SET", "VAR"),
    ("SET", "VARIABLE"),
    ("DECLARE",),
    ("CREATE", "TEMPORARY", "FUNCTION"),
    ("CREATE", "OR", "REPLACE", "TEMPORARY", "FUNCTION"),
    ("CREATE", "TEMPORARY", "VIEW"),
    ("CREATE", "TEMP", "VIEW"),
    ("CREATE", "OR", "REPLACE", "TEMPORARY", "VIEW"),
    ("CREATE", "OR", "REPLACE", "TEMP", "VIEW"),
    ("DROP", "TEMPORARY", "FUNCTION"),
    ("DROP", "TEMPORARY", "VARIABLE"),
)
#: Words of queries, and of functions whose values are other ones to Spark.
_OF_QUERIES = frozenset({"SELECT", "FROM", "TABLE", "VALUES", "WITH", *(name.upper() for name in CURRENT)})


def _may_name_tables(statement: Statement) -> bool:
    """Return whether Spark would look for tables of a statement in its own current catalog."""
    cursor = Cursor(statement)
    known = any(cursor.ahead(*words) for words in _WITHOUT_TABLES)
    return not known or any(one.kind == "word" and one.text.upper() in _OF_QUERIES for one in statement.tokens)


def _catalogs(statement: Statement, names: CatalogNames, *, alone: bool = True) -> Iterator[Token]:
    """Return the tokens that are names of catalogs: in front of others, or alone in USE, SHOW and so on."""
    cursor = Cursor(statement)
    alone = alone and (cursor.ahead("SET", "CATALOG") or any(map(cursor.ahead, ("USE", "SHOW", "DESCRIBE", "DESC"))))
    before = None
    for token, after in pairwise(statement.tokens):
        in_front = after.kind == "symbol" and after.text == "."
        is_name = token.kind in ("word", "quoted") or (token.kind == "string" and cursor.ahead("SET", "CATALOG"))
        if is_name and token.text in names and (in_front or alone) and (before is None or before.text != "."):
            yield token
        before = token


def _required(run: Run, name: Name, target: Target) -> Target:
    """Return a target that can be a table.

    Raises
    ------
    InvalidArgumentError
        If its name has no namespace; with line and column.

    """
    if len(target.identifier) < 2:  # noqa: PLR2004 - a namespace and a table
        raise run.statement.error(name.start, f"expected the name of a table in a namespace, got {name}")
    return target


def _inner(run: Run, parsed: Query) -> Piece:
    """Return the query of a statement, without EXPLAIN."""
    cursor = Cursor(run.statement)
    if cursor.take("EXPLAIN"):
        cursor.one_of("EXTENDED", "CODEGEN", "COST", "FORMATTED", "LOGICAL")
        return Piece(cursor.place, parsed.piece.end)
    return parsed.piece
