"""Which table a column of a condition is of: names in front of columns become those that changes of rows have."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from sqlglot import expressions as exp

from icefield.spark.sql.grammar.text import Name, Piece, Statement, Token
from icefield.spark.sql.queries import Edit, column_tokens, parsed

__all__ = ["Side", "requalified"]


@dataclass(frozen=True)
class Side:
    """One of the tables that a condition is about."""

    #: What it is called in the text: its alias, or the last parts of its name.
    names: frozenset[tuple[str, ...]]
    #: What it is called in the changed text.
    called: str
    #: Its columns in lower case, for columns without a name in front; none where those stay as they are.
    columns: frozenset[str] = frozenset()
    #: All its columns in lower case: one of them may be called as a side is in the changed text.
    known: frozenset[str] = frozenset()

    @classmethod
    def of(cls, name: Name | None, alias: str | None, called: str, known: Collection[str] = ()) -> Side:
        """Return the side of a table with a name or an alias, and columns."""
        parts = () if name is None else tuple(part.lower() for part in name.parts)
        names = [(alias.lower(),)] if alias is not None else [parts[-width:] for width in range(1, len(parts) + 1)]
        return cls(frozenset(names), called, known=frozenset(one.lower() for one in known))


def requalified(statement: Statement, piece: Piece, sides: Sequence[Side]) -> list[Edit]:
    """Return the edits by which the columns of an expression are called after their sides.

    Columns of the tables of its subqueries stay as they are.

    Raises
    ------
    InvalidArgumentError
        If it cannot be parsed; with line and column.
    UnsupportedFeatureError
        If a subquery has a table that is called as a side will be; with line and column.

    """
    tree = parsed(statement, piece)
    return [] if tree is None else list(_edits(statement, piece, tree, sides))


def _edits(statement: Statement, piece: Piece, tree: exp.Expr, sides: Sequence[Side]) -> Iterator[Edit]:
    taken = {side.called for side in sides}
    for select in tree.find_all(exp.Select):
        if both := taken & set(_sources(select)):
            name = min(both)
            raise statement.refusal(
                piece.start, f"a subquery has a table that is called {name!r}: give it another alias"
            )
    for column in list(tree.find_all(exp.Column, exp.Dot)):
        if isinstance(column.parent, exp.Dot):
            continue
        tokens = column_tokens(statement, piece, column)
        if not tokens or _is_variable(column, tokens[0].text):
            continue
        texts = tuple(token.text.lower() for token in tokens)
        inner = [name for select in _selects(column) for name in _sources(select)]
        side, width = _side(texts, sides)
        if side is not None and texts[0] not in inner:
            yield Edit(tokens[0].start, tokens[width - 1].end, side.called)
        elif side is None and len(texts) > 1 and texts[0] in taken and texts[0] not in inner:
            yield from _called_as_a_side(statement, tokens[0], sides, in_query=bool(list(_selects(column))))
        elif side is None and not list(_selects(column)):
            own = next((one for one in sides if texts[0] in one.columns), None)
            if own is not None:
                yield Edit(tokens[0].start, tokens[0].start, f"{own.called}.")


def _called_as_a_side(statement: Statement, first: Token, sides: Sequence[Side], *, in_query: bool) -> Iterator[Edit]:
    """Return the edit of a field of a struct whose name is that of a side in the changed text.

    Raises
    ------
    InvalidArgumentError
        If no table or column is called so, or several are; with line and column.

    """
    name = first.text.lower()
    owners = [one for one in sides if name in (one.columns or one.known)]
    if in_query and not owners:
        return  # of a table of the query, whose columns are not known here
    if len(owners) == 1 and not in_query:
        yield Edit(first.start, first.start, f"{owners[0].called}.")
        return
    what = "may be a column of several tables: write the table in front" if owners else "is no table, alias or column"
    raise statement.error(first.start, f"{first.text!r} {what}")


def _side(texts: tuple[str, ...], sides: Sequence[Side]) -> tuple[Side | None, int]:
    """Return the side that the first parts of a name are of, and how many these are."""
    for width in range(len(texts) - 1, 0, -1):
        for side in sides:
            if texts[:width] in side.names:
                return side, width
    return None, 0


def _selects(node: exp.Expr) -> Iterator[exp.Select]:
    """Return the queries around a node."""
    above = node.parent
    while above is not None:
        if isinstance(above, exp.Select):
            yield above
        above = above.parent


def _sources(select: exp.Select) -> Iterator[str]:
    """Return what the tables of a query are called."""
    from_ = select.args.get("from_") or select.args.get("from")
    nodes = [from_, *(select.args.get("joins") or []), *(select.args.get("laterals") or [])]
    for node in nodes:
        source = node if isinstance(node, exp.Lateral) else node.this if isinstance(node, exp.From | exp.Join) else None
        if source is not None and (name := source.alias_or_name):
            yield str(name).lower()


def _is_variable(column: exp.Expr, name: str) -> bool:
    """Return whether a name is that of a lambda around it."""
    above = column.parent
    while above is not None:
        if isinstance(above, exp.Lambda) and any(str(one.name).lower() == name.lower() for one in above.expressions):
            return True
        above = above.parent
    return False
