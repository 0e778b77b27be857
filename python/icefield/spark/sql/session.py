"""SQL about tables of icefield: `SqlSession`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from icefield.errors import InvalidArgumentError
from icefield.spark.sql import altered, calling, changing, defining, describing, inserting
from icefield.spark.sql.catalogs import CatalogNames, GivenCatalogs, Target
from icefield.spark.sql.grammar.parser import parse
from icefield.spark.sql.grammar.statements import (
    Alter,
    AlterNamespace,
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
    Insert,
    Merge,
    Other,
    Query,
    Refresh,
    Show,
    Truncate,
    Update,
    Use,
)
from icefield.spark.sql.grammar.text import Cursor, Name, Piece, Statement
from icefield.spark.sql.running import Args, Run, drop_views, with_identifiers

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
        if not self._concerns(text, args):
            return self._spark.sql(text, args) if args else self._spark.sql(text)  # type: ignore[arg-type]
        run = Run(self._spark, self._names, with_identifiers(Statement(text), args), args)
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
        return Run(self._spark, self._names, statement).named(parsed)

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

    def _concerns(self, text: object, args: Args) -> bool:
        """Return whether a statement may be about icefield: all others are Spark's alone, whatever their grammar."""
        if not isinstance(text, str):
            raise InvalidArgumentError(f"expected the text of a statement, got {text!r}")
        texts = [text, *(one for one in (args.values() if isinstance(args, Mapping) else ()) if isinstance(one, str))]
        own = self._names.current is not None or any(name in one for name in self._names.names() for one in texts)
        return own or [word.upper() for word in text.split()[:2]] == ["SHOW", "CATALOGS"]

    def _run(self, run: Run) -> DataFrame:
        parsed = parse(run.statement)
        forms: dict[type, Callable[..., DataFrame]] = {
            Alter: self._alter,
            AlterNamespace: self._namespace,
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
        tokens = run.statement.tokens
        for at, token in enumerate(tokens[:-1]):
            if token.kind in ("word", "quoted") and token.text in self._names and tokens[at + 1].text == ".":
                raise run.statement.refusal(token.start, f"{parsed.what} is not supported for tables of icefield")
        if self._names.current is not None and parsed.what not in _WITHOUT_TABLES:
            raise run.statement.refusal(
                0, f"{parsed.what} is not supported in catalog {self._names.current}: USE spark_catalog first"
            )
        return run.whole()

    def _create_view(self, run: Run, parsed: CreateView) -> DataFrame:
        if not run.edits(parsed.query):
            return run.whole()
        if not parsed.temporary:
            raise run.statement.refusal(
                parsed.name.start, "views of tables of icefield are temporary: use CREATE TEMPORARY VIEW"
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
        if parsed.comment is None:
            table.update_properties(removals=["comment"])
        else:
            table.update_properties({"comment": parsed.comment})
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


#: Statements of Spark that name no tables.
_WITHOUT_TABLES = frozenset({"SET", "RESET", "ADD", "LIST", "CLEAR", "DECLARE", "CREATE", "SHOW", "DROP"})


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
