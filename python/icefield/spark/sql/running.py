"""One statement while it runs: what its names, values and queries are in the session."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, TypeAlias, cast

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as st

from icefield.errors import IcefieldError, InvalidArgumentError, NotFoundError, UnsupportedFeatureError
from icefield.spark import functions
from icefield.spark.changing.planned import held
from icefield.spark.columns.types import arrow_schema
from icefield.spark.sessions.session import is_classic
from icefield.spark.sql.catalogs import CatalogNames, Home, Selected, Target
from icefield.spark.sql.grammar.text import Cursor, Name, Piece, Statement
from icefield.spark.sql.literals import literal, quoted_name, quoted_text
from icefield.spark.sql.pruning import needed, stand_in
from icefield.spark.sql.queries import Edit, Moment, Star, TableUse, edited, stars_in, tables_in
from icefield.spark.sql.sources import Source, metadata_columns, view_of, with_columns
from icefield.spark.sql.transforms import transforms_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from icefield.catalog import Catalog
    from icefield.table import Table
    from icefield.view import View

__all__ = ["CURRENT", "RESERVED", "Args", "Run", "drop_views", "with_identifiers"]

Args: TypeAlias = Mapping[str, object] | Sequence[object] | None

#: How many rows stand for those of the first table of a query, of the next one more: which distinguishes them.
_FIRST_NUMBER = 7_000_000_000
#: The refusal of the time of a view.
_NO_VERSIONS = "views have no versions to read AS OF"
#: Functions that return the current catalog or namespace.
CURRENT = ("current_catalog", "current_database", "current_schema")
#: Properties that Spark reserves, and what sets what they are about.
RESERVED = {
    "external": "nothing: it is about tables of Hive",
    "is_managed_location": "nothing: it is about tables of Hive",
    "location": "LOCATION",
    "owner": "nothing: it is the current user",
    "provider": "USING",
}
_OPERANDS = frozenset({"word", "quoted", "string", "number"})


@dataclass
class Private:
    """The views of Spark that stand for what a statement names."""

    #: By the catalog and the name of a table, and the moment.
    tables: dict[tuple[tuple[str, ...], str], tuple[str, Source]] = field(default_factory=dict)
    #: Views by their catalog and name; in the order in which they stand on each other, with the texts of their queries.
    known: dict[tuple[str, ...], str] = field(default_factory=dict)
    stacked: list[tuple[str, str, View]] = field(default_factory=list)


@dataclass
class Run:
    """A statement, its arguments, and the session that it runs in."""

    spark: SparkSession
    names: CatalogNames
    statement: Statement
    args: Args = None
    #: Names of the views that were made for it.
    views: list[str] = field(default_factory=list)
    #: The tables that it has loaded: all uses of a table are of the same state.
    loaded: dict[tuple[Catalog, tuple[str, ...]], Table] = field(default_factory=dict)
    #: Those of which it reads rows.
    read: list[Table] = field(default_factory=list)
    #: Where names are found in the query of a view; None in statements.
    home: Home | None = None
    #: The views whose queries this is in, the outermost first: their catalogs and names.
    within: tuple[tuple[str, ...], ...] = ()

    # Names

    def target(self, name: Name) -> Target | None:
        """Return what the name of a table means; None if it is one of Spark's."""
        if self.home is not None:
            return self.names.target_of_view(name.parts, self.home)
        return self.names.target(name.parts)

    def table(self, name: Name, target: Target) -> Table:
        """Load a table, which must not be a part of one.

        Raises
        ------
        NotFoundError
            If there is no such table; with line and column.

        """
        with self.at(name.start):
            return target.table()

    def selected(self, target: Target) -> Selected:
        """Load what a name selects, once in a statement."""
        return self.names.selected(target, self._load)

    def _load(self, catalog: Catalog, identifier: tuple[str, ...]) -> Table:
        key = (catalog, identifier)
        if key not in self.loaded:
            self.loaded[key] = catalog.load_table(identifier)
        return self.loaded[key]

    @contextmanager
    def as_read(self, table: Table) -> Iterator[None]:
        """Change a table on the state whose rows the statement has read, if it reads the table that it changes.

        Rows that others add in between are in the newest state, and not among those that were read.
        """
        reads = any(one is table or one.table_uuid == table.table_uuid for one in self.read)
        with held(table if reads else None):
            yield

    @contextmanager
    def at(self, start: int) -> Iterator[None]:
        """Add the place of a name to the error about what does not exist."""
        try:
            yield
        except NotFoundError as error:
            raise type(error)(f"{self.statement.place(start)}: {error}") from error

    @property
    def case_sensitive(self) -> bool:
        """Whether names of columns are case-sensitive in the session."""
        return str(self.spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"

    def user(self) -> str:
        """Return the name of Spark's user, who owns the tables and namespaces that are made."""
        return str(self.spark.sql("SELECT current_user()").collect()[0][0])

    # Arguments

    def markers(self, piece: Piece) -> list[Edit]:
        """Return the values of parameters in a piece as edits of the text."""
        if not self.args:
            return []
        return [Edit(start, end, literal(value)) for start, end, value in self._arguments(piece)]

    def _arguments(self, piece: Piece) -> Iterator[tuple[int, int, object]]:
        tokens, count = self.statement.tokens, 0
        for at, token in enumerate(tokens):
            inside = piece.start <= token.start < piece.end
            if token.kind == "symbol" and token.text == "?" and not isinstance(self.args, Mapping):
                count += 1
                if inside:
                    if count > len(self.args or ()):
                        raise self.statement.error(token.start, f"there is no argument for parameter {count}")
                    yield token.start, token.end, (self.args or ())[count - 1]
            elif inside and token.kind == "symbol" and token.text == ":" and isinstance(self.args, Mapping):
                name, before = tokens[at + 1], tokens[at - 1] if at else None
                operand = before is not None and before.end == token.start and before.kind in _OPERANDS
                if name.kind == "word" and name.start == token.end and not operand and name.text in self.args:
                    yield token.start, name.end, self.args[name.text]

    def text(self, piece: Piece, edits: Sequence[Edit] = ()) -> str:
        """Return the text of a piece with its arguments and other edits."""
        return edited(self.statement.text, [*self.markers(piece), *edits], piece)

    # What Spark evaluates

    def constants(self, pieces: Sequence[Piece], types: Sequence[st.DataType | None] = ()) -> list[object]:
        """Return the values of expressions without columns; times as aware datetimes."""
        if not pieces:
            return []
        texts = [self.text(piece) for piece in pieces]
        kinds = types or [None] * len(texts)
        casts = [
            f"({text})" if kind is None else f"CAST(({text}) AS {kind.simpleString()})"
            for text, kind in zip(texts, kinds, strict=True)
        ]
        frame = self.spark.sql("SELECT " + ", ".join(f"{text} AS c{at}" for at, text in enumerate(casts)))
        columns = []
        for column in frame.schema.fields:
            is_time = isinstance(column.dataType, st.TimestampType)
            columns.append(F.unix_micros(column.name).alias(column.name) if is_time else F.col(column.name))
        row = frame.select(*columns).collect()[0]
        return [
            _moment(value) if isinstance(column.dataType, st.TimestampType) and value is not None else value
            for value, column in zip(row, frame.schema.fields, strict=True)
        ]

    def type_of(self, piece: Piece) -> st.DataType:
        """Return a type of Spark."""
        from pyspark.errors import ParseException

        text = self.statement.of(piece)
        try:
            return st.DataType.fromDDL(text)
        except ParseException as error:
            raise self.statement.error(piece.start, f"unknown type {text!r}") from error

    def query(self, piece: Piece) -> DataFrame:
        """Return the rows of a query."""
        return self.spark.sql(self.text(piece, self.edits(piece, prune=True)))

    def whole(self, *pieces: Piece, prune: bool = False) -> DataFrame:
        """Run a statement of Spark, with the tables of icefield in its queries."""
        text, args = self.statement.text, self.args
        edits = [edit for piece in pieces for edit in self.edits(piece, prune=prune)]
        end = self.statement.tokens[-1].end
        markers = self.markers(Piece(0, end))
        if any(edit.start < marker.start < edit.end for edit in edits for marker in markers):
            # Arguments of what was taken out would be left over.
            return self.spark.sql(self.text(Piece(0, end), edits))
        changed = edited(text, edits, Piece(0, end))
        return self.spark.sql(changed, args) if args else self.spark.sql(changed)  # type: ignore[arg-type]

    def edits(self, piece: Piece, *, prune: bool = False) -> list[Edit]:
        """Replace the tables and views of icefield that a piece names by private views of Spark.

        With ``prune`` the piece is a query, and those of tables have only the rows and values that it needs.
        """
        private = Private()
        edits = self.private_edits(piece, private)
        self._made(private, (lambda: self.spark.sql(self.text(piece, edits))) if prune else None)
        return edits

    def _made(self, private: Private, query: Callable[[], DataFrame] | None) -> None:
        """Create private views; with a query, of what it needs."""

        def stack() -> None:
            for name, text, view in private.stacked:
                with_columns(self.spark.sql(text), view).createOrReplaceTempView(name)

        def whole(query: Callable[[], DataFrame]) -> DataFrame:
            stack()
            return query()

        if query is None or not is_classic(self.spark):
            for name, source in private.tables.values():
                source.read().createOrReplaceTempView(name)
        else:
            self._pruned(list(private.tables.values()), lambda: whole(query))
        stack()

    def private_edits(self, piece: Piece, private: Private) -> list[Edit]:
        """Replace the tables and views of icefield that a piece names by names of private views to be created."""
        edits = list(transforms_in(self.statement, piece, self.has_catalog))
        if edits:
            functions.register(self.spark)
        edits += [] if self.home is not None else self._current(piece)
        for use in tables_in(self.statement, piece):
            target = self.target(use.name)
            if target is None:
                if self.home is not None:
                    full = self.names.full(use.name.parts, self.home)
                    edits.append(Edit(use.name.start, use.name.end, quoted_name(*full)))
                continue
            view = self._private(use, target, private)
            edits.append(Edit(use.name.start, use.end, quoted_name(view)))
            if not use.aliased:
                edits.append(Edit(use.alias_at, use.alias_at, f" AS {quoted_name(use.name.parts[-1])}"))
            edits += [Edit(start, end, "") for start, end in use.qualified]
            source = next((source for name, source in private.tables.values() if name == view), None)
            if use.star is not None and source is not None and source.places:
                edits.append(Edit(use.star.start, use.star.end, source.star(use.star.qualifier)))
        return edits

    def has_catalog(self, name: str | None) -> bool:
        """Return whether a catalog is one of icefield; without a name that of the view, or the current one."""
        if name is None:
            return self.home is not None or self.names.current is not None
        return name in self.names

    def _current(self, piece: Piece) -> Iterator[Edit]:
        """Return the values of functions that say where statements run, which Spark takes for its own catalog."""
        if self.names.current is None:
            return
        tokens = self.statement.tokens
        for at, token in enumerate(tokens[:-2]):
            called = [one.text for one in tokens[at + 1 : at + 3]] == ["(", ")"]
            if called and token.kind == "word" and token.text.lower() in CURRENT and tokens[at - 1].text != ".":
                is_catalog = token.text.lower() == "current_catalog"
                value = self.names.current if is_catalog else ".".join(self.names.namespace)
                if piece.start <= token.start < piece.end:
                    yield Edit(token.start, tokens[at + 2].end, quoted_text(value))

    def _private(self, use: TableUse, target: Target, private: Private) -> str:
        """Return the name of the private view of a table or view."""
        key = (target.catalog_name, *target.identifier)
        if (stacked := private.known.get(key)) is not None:
            if use.moment is not None:
                raise self.statement.refusal(use.name.end, _NO_VERSIONS)
            return stacked
        moment = self.text(use.moment.value) if use.moment else ""
        if (table := private.tables.get((key, moment))) is not None:
            return table[0]
        with self.at(use.name.start):
            try:
                chosen = self.selected(target)
            except NotFoundError:
                if (view := view_of(target)) is None:
                    raise
                if use.moment is not None:
                    raise self.statement.refusal(use.name.end, _NO_VERSIONS) from None
                return self._stacked(target, view, private)
        source = self.source(chosen, use.moment, use.name, use.star)
        name = self._name()
        private.tables[key, moment] = name, source
        return name

    def _name(self) -> str:
        name = f"icefield_{uuid.uuid4().hex}"
        self.views.append(name)
        return name

    def _stacked(self, target: Target, view: View, private: Private) -> str:
        """Return the name of the private view of a view, with all that its query names before it."""
        key = (target.catalog_name, *target.identifier)
        within = (*self.within, key)
        if key in self.within:
            raise InvalidArgumentError(f"view {target} names itself: {' -> '.join(map('.'.join, within))}")
        version = view.current_version()
        home = Home(version.default_catalog or target.catalog_name, version.default_namespace)
        try:
            statement = Statement(view.sql("spark"))
            inner = replace(self, statement=statement, args=None, home=home, within=within)
            whole = Piece(0, statement.tokens[-1].end)
            text = inner.text(whole, inner.private_edits(whole, private))
        except (NotFoundError, InvalidArgumentError, UnsupportedFeatureError) as error:
            # In views of views, the innermost says it.
            if str(error).startswith("view "):
                raise
            raise type(error)(f"view {target}: {error}") from error
        name = self._name()
        private.stacked.append((name, text, view))
        private.known[key] = name
        return name

    def of_view(self, target: Target, view: View) -> DataFrame:
        """Return the rows of a view."""
        private = Private()
        name = self._stacked(target, view, private)
        self._made(private, lambda: self.spark.table(name))
        return self.spark.table(name)

    def _pruned(self, known: list[tuple[str, Source]], query: Callable[[], DataFrame]) -> None:
        """Create views of what a query needs, once the optimizer has seen it over rows that stand for theirs."""
        schemas = {}
        for number, (name, source) in enumerate(known, _FIRST_NUMBER):
            if source.scan is None:
                source.read().createOrReplaceTempView(name)
            else:
                schemas[number] = source.scan.projection()
                stand_in(self.spark, schemas[number], number).createOrReplaceTempView(name)
        needs = needed(query(), schemas) if schemas else {}
        for number in schemas:
            name, source = known[number - _FIRST_NUMBER]
            source.read(needs.get(number)).createOrReplaceTempView(name)

    def named(self, name: Name) -> DataFrame:
        """Return the rows of what a name means, of Spark or of icefield."""
        target = self.target(name)
        if target is None:
            return self.spark.table(quoted_name(*name.parts))
        with self.at(name.start):
            try:
                chosen = self.selected(target)
            except NotFoundError:
                if (view := view_of(target)) is None:
                    raise
                return self.of_view(target, view)
        return self.source(chosen, name=name).read()

    def source(
        self, chosen: Selected, moment: Moment | None = None, name: Name | None = None, star: Star | None = None
    ) -> Source:
        """Return what a name reads, at the moment that the statement says.

        With ``star`` the ``*`` of the statement is replaced by the table's own columns.

        Raises
        ------
        InvalidArgumentError
            If there is no such snapshot; with line and column.

        """
        self.read.append(chosen.table)
        as_of: int | str | datetime | None = chosen.as_of
        if chosen.timestamp_ms is not None:
            as_of = datetime.fromtimestamp(chosen.timestamp_ms / 1000, timezone.utc)
        places = () if chosen.metadata else self._places(chosen.table, star)
        if moment is None:
            return Source(self.spark, chosen, as_of, places)
        at = moment.value.start
        if as_of is not None:
            raise self.statement.error(at, f"{name} names a snapshot already")
        if chosen.metadata == "changes":
            raise self.statement.refusal(at, "changes AS OF a moment are not supported: use create_changelog_view")
        found = Source(self.spark, chosen, self._as_of(moment), places)
        try:
            _ = found.scan
        except InvalidArgumentError as error:
            raise self.statement.error(at, str(error)) from error
        return found

    def _places(self, table: Table, star: Star | None) -> tuple[str, ...]:
        """Return the metadata columns of a table that the statement names, which ``*`` does not stand for."""
        tokens = self.statement.tokens
        words = {one.text.lower(): one for one in tokens if one.kind in ("word", "quoted")}
        named = tuple(name for name in metadata_columns(table) if name in words)
        if named and star is None and stars_in(self.statement):
            raise self.statement.refusal(
                words[named[0]].start, f"{named[0]} beside this * is not supported: name the columns"
            )
        return named

    def _as_of(self, moment: Moment) -> int | str | datetime:
        """Return the snapshot id, the name or the time that AS OF says."""
        [value] = self.constants([moment.value], [st.TimestampType()] if moment.is_time else [None])
        if moment.is_time and not isinstance(value, datetime):
            raise self.statement.error(moment.value.start, "expected a time, got null")
        if isinstance(value, datetime | str) or (isinstance(value, int) and not isinstance(value, bool)):
            return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value
        raise self.statement.error(
            moment.value.start, f"expected the id of a snapshot, or the name of a branch or tag, got {value!r}"
        )

    # Results

    def result(self, schema: st.StructType | str, rows: Iterable[Sequence[object]]) -> DataFrame:
        """Return rows as a DataFrame."""
        kind = schema if isinstance(schema, st.StructType) else cast("st.StructType", st.DataType.fromDDL(schema))
        wanted = arrow_schema(kind)
        columns = list(zip(*rows, strict=True)) or [()] * len(wanted)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, wanted, strict=True)]
        # Arrow is a local relation to Spark: showing it takes no job.
        return self.spark.createDataFrame(pa.Table.from_arrays(arrays, schema=wanted), kind)

    def nothing(self) -> DataFrame:
        """Return the result of a statement that has none: no rows, no columns."""
        return self.spark.createDataFrame([], st.StructType([]))

    def drop_views(self) -> None:
        """Drop the views of this statement, which Spark has read."""
        if is_classic(self.spark):
            drop_views(self.spark, self.views)
            self.views.clear()


def with_identifiers(statement: Statement, args: Args) -> Statement:
    """Replace ``IDENTIFIER('a.b')`` and ``IDENTIFIER(:name)`` by the names."""
    edits: list[Edit] = []
    cursor = Cursor(statement)
    while not cursor.at_end():
        start = cursor.place
        if not cursor.take("IDENTIFIER", "("):
            cursor.next()
            continue
        at = cursor.place
        value: object = None
        if cursor.token.kind == "string":
            value = cursor.string("a name")
        elif cursor.take(":") and isinstance(args, Mapping) and cursor.token.kind == "word":
            value = args.get(cursor.next().text)
        if isinstance(value, str) and cursor.take(")"):
            edits.append(Edit(start, cursor.last_end, quoted_name(*_name_of(statement, at, value).parts)))
    return Statement(edited(statement.text, edits)) if edits else statement


def _name_of(statement: Statement, at: int, value: str) -> Name:
    try:
        cursor = Cursor(Statement(value))
        name = cursor.name()
        cursor.finish()
    except InvalidArgumentError as error:
        raise statement.error(at, f"expected a name in IDENTIFIER, got {value!r}") from error
    return name


def drop_views(spark: SparkSession, views: Iterable[str]) -> None:
    """Drop temporary views."""
    for view in views:
        spark.catalog.dropTempView(view)


def _moment(micros: object) -> datetime:
    if not isinstance(micros, int):
        raise IcefieldError(f"expected microseconds, got {micros!r}")
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=micros)
