"""Names of tables in queries: where they stand, which of them are names of WITH, and what moment is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import sqlglot
from sqlglot import expressions as exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError

from icefield.errors import InvalidArgumentError
from icefield.spark.sql.grammar.text import Cursor, Name, Piece, Statement, Token, Tokenizer

__all__ = ["Edit", "Moment", "Star", "TableUse", "column_tokens", "edited", "parsed", "stars_in", "tables_in"]

#: What queries begin with, and what does not follow there.
_QUERIES = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE", "("})
_OPERATORS = frozenset({"=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">=", ".", ",", ")", "[", "/", "%", "||", "::"})
_BEFORE_STAR = frozenset({"SELECT", "DISTINCT", "ALL", ",", "."})
_BEFORE_NAME = frozenset({".", "FROM", "JOIN", "USING", "INTO"})
_CLAUSES = ("VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME")


@dataclass(frozen=True)
class Moment:
    """FOR VERSION or TIMESTAMP AS OF: what is read, and where the clause ends."""

    is_time: bool
    value: Piece
    end: int


@dataclass(frozen=True)
class Star:
    """``*`` in a SELECT: where it stands, and the name before it, with its dot."""

    start: int
    end: int
    qualifier: str = ""


@dataclass(frozen=True)
class TableUse:
    """The name of a table in a query."""

    name: Name
    moment: Moment | None
    #: Whether the query gives it an alias.
    aliased: bool
    #: Where an alias goes: after TABLESAMPLE.
    alias_at: int = 0
    #: References to its columns with parts of the name before that of the table: where the latter begins.
    qualified: tuple[tuple[int, int], ...] = ()
    #: The only ``*`` of the statement, if it stands for the columns of this table alone.
    star: Star | None = None

    @property
    def end(self) -> int:
        """Where the name and its clause end."""
        return self.name.end if self.moment is None else self.moment.end


@dataclass(frozen=True)
class Edit:
    """A replacement for a part of a text."""

    start: int
    end: int
    text: str


def edited(text: str, edits: Sequence[Edit], piece: Piece | None = None) -> str:
    """Return a text, or a piece of it, with its edits."""
    at, stop = (0, len(text)) if piece is None else (piece.start, piece.end)
    parts = []
    for edit in sorted(set(edits), key=lambda edit: (edit.start, edit.end)):
        if at <= edit.start and edit.end <= stop:
            parts += [text[at : edit.start], edit.text]
            at = edit.end
    return "".join([*parts, text[at:stop]])


def tables_in(statement: Statement, piece: Piece) -> list[TableUse]:
    """Return the tables that a query or an expression names, without those of its WITH.

    Raises
    ------
    InvalidArgumentError
        If sqlglot cannot parse it; with line and column.

    """
    moments = dict(_moments(statement, piece))
    tree = parsed(statement, piece, moments)
    if tree is None:
        return []
    starts = {token.start: token for token in statement.tokens if piece.start <= token.start < piece.end}
    # TABLE t takes no alias.
    bare = {after.start for before, after in pairwise(statement.tokens) if before.text.upper() == "TABLE"}
    stars = stars_in(statement)
    found: dict[int, TableUse] = {}
    for table in tree.find_all(exp.Table):
        name = _name(table, starts)
        if name is None or (len(name.parts) == 1 and _is_cte(table, name.parts[0])):
            continue
        qualified = tuple(_qualified(table, name, starts)) if len(name.parts) > 1 else ()
        moment = moments.get(name.end)
        alias_at = _behind_sample(statement, name.end if moment is None else moment.end)
        aliased = bool(table.alias) or name.start in bare
        star = stars[0] if len(stars) == 1 and _is_of(table) else None
        found[name.start] = TableUse(name, moment, aliased, alias_at, qualified, star)
    return list(found.values())


def stars_in(statement: Statement) -> list[Star]:
    """Return where ``*`` stands for columns."""
    tokens = statement.tokens
    found = []
    for at, token in enumerate(tokens):
        before = tokens[at - 1] if at else None
        if token.text != "*" or before is None or before.text.upper() not in _BEFORE_STAR:
            continue
        named = before.text == "." and at > 1
        found.append(Star(token.start, token.end, statement.text[tokens[at - 2].start : before.end] if named else ""))
    return found


def _is_of(table: exp.Table) -> bool:
    """Return whether the SELECT of a table has a plain ``*``, and no other rows."""
    scope = table.find_ancestor(exp.Select)
    if scope is None or not isinstance(table.parent, exp.From) or table.parent.parent is not scope:
        return False
    if any(scope.args.get(more) or table.args.get(more) for more in ("joins", "laterals", "pivots")):
        return False
    stars = [one.this if isinstance(one, exp.Column) else one for one in scope.expressions]
    plain = [one for one in stars if isinstance(one, exp.Star)]
    # A name of several parts before it is that of a table, which has another name here.
    parts = [len(one.parts) for one in scope.expressions if isinstance(one, exp.Column) and one.is_star]
    return len(plain) == 1 and not any(plain[0].args.values()) and parts in ([], [2])


def parsed(statement: Statement, piece: Piece, moments: dict[int, Moment] | None = None) -> exp.Expr | None:
    """Parse a piece, with blanks for clauses that sqlglot does not know, so that places stay the same."""
    text = statement.text
    written = [" "] * piece.start + list(text[piece.start : piece.end])
    for at in range(min(piece.start, len(text))):
        if text[at] == "\n":
            written[at] = "\n"
    for start, moment in (dict(_moments(statement, piece)) if moments is None else moments).items():
        written[start : moment.end] = " " * (moment.end - start)
    inside = [token for token in statement.tokens if piece.start <= token.start < piece.end]
    before = ""
    for token, after in pairwise(inside):
        # TABLE t is a query, as FROM t is to sqlglot; both words have five letters with the blank after FROM. After
        # these words it is the name of a table.
        is_word = token.kind == "word" and token.text.upper() == "TABLE" and before not in _BEFORE_NAME
        if is_word and after.kind in ("word", "quoted"):
            written[token.start : token.end] = "FROM "
        before = token.text.upper()
    try:
        tree = _tree("".join(written), is_query=_is_query(inside))
    except RecursionError as error:
        raise statement.error(piece.start, "the query is nested too deeply") from error
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        line, column = first.get("line"), first.get("col")
        what = (
            str(first.get("description") or "")
            .rstrip(".")
            .replace("Invalid expression / Unexpected token", "unexpected")
        )
        what = "the query is not complete or not valid" if not what or "<" in what else what
        near = first.get("highlight")
        begin = (column or 1) - len(near or "") + 1
        place = statement.place(piece.start) if line is None else f"line {line}, column {max(begin, 1)}"
        raise InvalidArgumentError(f"{place}: {what}{f', got {near!r}' if near else ''}") from error
    if isinstance(tree, exp.Command):
        # sqlglot keeps the text of what it does not parse: the tables in it would be missed.
        raise statement.error(piece.start, f"expected a query or an expression, got {statement.of(piece)!r}")
    return tree


def _is_query(tokens: Sequence[Token]) -> bool:
    """Return whether a piece is a query: its first word may be the name of a column too."""
    if not tokens or tokens[0].kind not in ("word", "symbol") or tokens[0].text.upper() not in _QUERIES:
        return False
    after = tokens[1] if len(tokens) > 1 else None
    return after is not None and (after.kind != "symbol" or after.text not in _OPERATORS or tokens[0].text == "(")


def _tree(text: str, *, is_query: bool) -> exp.Expr | None:
    if is_query:
        return sqlglot.parse_one(text, read="spark")
    # To a parser of statements, a condition on a column that is called `comment` is a command.
    found = Spark().parser().parse_into(exp.Condition, Tokenizer(dialect="spark").tokenize(text), text)
    return found[0]


def _name(table: exp.Table, starts: dict[int, Token]) -> Name | None:
    """Return the name of a table as it is written; None for functions and what sqlglot itself adds."""
    parts = table.parts
    if table.find_ancestor(exp.Hint) or not parts or not all(isinstance(part, exp.Identifier) for part in parts):
        return None
    tokens = _tokens(parts, starts)
    if [token.text for token in tokens] != [part.name for part in parts]:
        return None
    return Name(tuple(part.name for part in parts), tokens[0].start, tokens[-1].end)


def column_tokens(statement: Statement, piece: Piece, column: exp.Expr) -> list[Token]:
    """Return the tokens of the name of a column; none where sqlglot does not say where all of them stand."""
    starts = {token.start: token for token in statement.tokens if piece.start <= token.start < piece.end}
    return _column_tokens(column, starts)


def _column_tokens(column: exp.Expr, starts: dict[int, Token]) -> list[Token]:
    first = column
    while isinstance(first, exp.Dot):
        first = first.this
    # A part of the value of a function, f(x).y, is no column.
    parts: list[exp.Expr] = column.parts if isinstance(first, exp.Column) else []  # type: ignore[attr-defined]
    found = _tokens(parts, starts)
    return found if len(found) == len(parts) else []


def _tokens(parts: Sequence[exp.Expr], starts: dict[int, Token]) -> list[Token]:
    """Return the tokens of the parts of a name; fewer where sqlglot does not say where they stand."""
    places = (part.meta.get("start") for part in parts)
    return [starts[place] for place in places if place in starts]


def _is_cte(table: exp.Expr, name: str) -> bool:
    """Return whether a name is one of a WITH around it; of those in the same WITH only the earlier ones count."""
    node: exp.Expr | None = table
    within: exp.Expr | None = None
    while node is not None:
        if isinstance(node, exp.CTE):
            within = node
        clause = node.args.get("with_") or node.args.get("with")
        if isinstance(clause, exp.With):
            for one in clause.expressions:
                if one is within and not clause.recursive:
                    break
                if one.alias.lower() == name.lower():
                    return True
                if one is within:
                    break
        node = node.parent
    return False


def _qualified(table: exp.Table, name: Name, starts: dict[int, Token]) -> Iterator[tuple[int, int]]:
    """Find the columns whose names have the name of the table in front: the parts that Spark would not find."""
    scope = table.find_ancestor(exp.Select)
    if scope is None:
        return
    for column in scope.find_all(exp.Column, exp.Dot):
        if isinstance(column.parent, exp.Dot):
            continue
        tokens = _column_tokens(column, starts)
        texts = tuple(token.text.lower() for token in tokens)
        for width in range(len(name.parts), 1, -1):
            prefix = tuple(part.lower() for part in name.parts[-width:])
            if len(texts) > width and texts[:width] == prefix:
                yield tokens[0].start, tokens[width - 1].start
                break


def _behind_sample(statement: Statement, at: int) -> int:
    """Return where TABLESAMPLE ends if it begins at a place, or else the place."""
    cursor = Cursor(statement)
    while not cursor.at_end() and cursor.place < at:
        cursor.next()
    for word in ("TABLESAMPLE", "REPEATABLE"):
        if cursor.take(word):
            cursor.group("a sample")
            at = cursor.last_end
    return at


def _moments(statement: Statement, piece: Piece) -> Iterator[tuple[int, Moment]]:
    """Find FOR VERSION AS OF and its likes after a name; they are found by where that name ends."""
    cursor = Cursor(statement)
    before: Token | None = None
    while not cursor.at_end():
        token = cursor.token
        if before is not None and before.kind in ("word", "quoted") and piece.start <= token.start < piece.end:
            end = before.end
            skip = 1 if cursor.ahead("FOR") else 0
            word = next((one for one in _CLAUSES if cursor.ahead(one, "AS", "OF", skip=skip)), None)
            if word is not None:
                if skip:
                    cursor.next()
                cursor.expect(word, "AS", "OF")
                start = cursor.place
                _operand(cursor)
                while cursor.one_of("+", "-", "*", "/", "||"):
                    _operand(cursor)
                value = Piece(start, cursor.last_end)
                yield end, Moment(word in ("TIMESTAMP", "SYSTEM_TIME"), value, value.end)
                before = None
                continue
        before = cursor.next()


def _operand(cursor: Cursor) -> None:
    """Skip one operand of the expression of a moment."""
    while cursor.one_of("-", "+"):
        pass
    if cursor.ahead("("):
        cursor.group("a value")
    elif cursor.take("INTERVAL"):
        while cursor.token.kind in ("string", "number"):
            cursor.next()
            cursor.part("a unit")
    elif cursor.take(":"):
        cursor.part("the name of a parameter")
    elif cursor.token.kind in ("string", "number"):
        cursor.next()
    elif not cursor.take("?"):
        _named_operand(cursor)


def _named_operand(cursor: Cursor) -> None:
    """Skip a function with its arguments, a typed literal, or a name."""
    name = cursor.name("a value")
    if cursor.token.kind == "string" and str(name).upper() in ("TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "DATE"):
        cursor.next()
    elif cursor.ahead("("):
        cursor.next()
        if not cursor.take(")"):
            cursor.piece("a value", ")")
            cursor.expect(")")
