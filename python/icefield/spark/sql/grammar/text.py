"""The text of a statement: its tokens, which sqlglot finds as Spark does, and places in it.

Parts of a statement that Spark itself evaluates stay text as they were written; names and literals become values here.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, TypeAlias

from icefield._support.optional import require
from icefield.errors import InvalidArgumentError, UnsupportedFeatureError

require("sqlglot")

from sqlglot.dialects.spark import Spark  # noqa: E402
from sqlglot.errors import SqlglotError  # noqa: E402
from sqlglot.tokens import Token as SqlglotToken  # type: ignore[attr-defined]  # noqa: E402
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]  # noqa: E402

__all__ = ["Cursor", "Name", "Piece", "Statement", "Token", "Tokenizer"]

Kind: TypeAlias = Literal["word", "quoted", "string", "number", "symbol", "end"]

_WORD = re.compile(r"[^\W]\w*")
#: White space and comments; of those in brackets `_without_comments` has removed the inner ones.
_GAP = re.compile(r"(\s|--[^\n]*(\n|$))*")
_STRINGS = frozenset({TokenType.STRING, TokenType.RAW_STRING})


class Tokenizer(Spark.Tokenizer):
    """Tokens of every statement: sqlglot takes those that begin with CALL or SHOW as one text."""

    COMMANDS = set()  # noqa: RUF012 - sqlglot's way


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a statement: a word, a quoted name, a string, a number, or a symbol."""

    kind: Kind
    #: What is written; of names and strings what they mean.
    text: str
    #: Where it begins and where the next character is.
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a statement as it was written, which Spark evaluates: a query, a condition, a type."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Name:
    """The name of a table, a namespace or a column: its parts, and where it stands."""

    parts: tuple[str, ...]
    start: int
    end: int

    def __str__(self) -> str:
        return ".".join(self.parts)


class Statement:
    """The text of one statement.

    Raises
    ------
    InvalidArgumentError
        If a string, name or comment has no end, or a second statement follows.

    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = self._tokens()

    def error(self, at: int, message: str) -> InvalidArgumentError:
        """Return the error about a place."""
        return InvalidArgumentError(f"{self.place(at)}: {message}")

    def refusal(self, at: int, message: str) -> UnsupportedFeatureError:
        """Return the error about something at a place that is known, and not supported."""
        return UnsupportedFeatureError(f"{self.place(at)}: {message}")

    def place(self, at: int) -> str:
        """Return the line and the column of a place, from 1 on."""
        before = self.text[:at]
        return f"line {before.count(chr(10)) + 1}, column {at - before.rfind(chr(10))}"

    def of(self, piece: Piece) -> str:
        """Return the text of a piece."""
        return self.text[piece.start : piece.end]

    def _tokens(self) -> list[Token]:
        try:
            found = Tokenizer(dialect="spark").tokenize(self.text)
        except SqlglotError as error:
            raise self.error(_open_at(self.text), "a string, a quoted name or a comment has no end") from error
        tokens: list[Token] = []
        for one in found:
            tokens += self._token(one, tokens)
        self._check_gaps(tokens)
        while tokens and tokens[-1].text == ";" and tokens[-1].kind == "symbol":
            tokens.pop()
        for at, token in enumerate(tokens):
            if token.kind == "symbol" and token.text == ";":
                after = tokens[at + 1]
                raise self.error(
                    after.start, f"one statement at a time: unexpected {self.text[after.start : after.end]!r} after ';'"
                )
        end = tokens[-1].end if tokens else len(self.text)
        return [*tokens, Token("end", "", end, end)]

    def _token(self, found: SqlglotToken, tokens: list[Token]) -> list[Token]:
        start, end = found.start, found.end + 1
        before = tokens[-1] if tokens else None
        if before is not None and before.end >= end:
            return []  # 10L is three tokens to sqlglot: a number, ::, a type
        written = self.text[start:end]
        if found.token_type in _STRINGS:
            if before is not None and before.kind == "string" and before.end == start:
                quote = written[0]
                if self.text[before.start] == quote:
                    # A doubled quote is one, from Spark 4.0 on.
                    tokens.pop()
                    return [Token("string", before.text + quote + found.text, before.start, end)]
            return [Token("string", found.text, start, end)]
        if written.startswith("`"):
            return [Token("quoted", found.text, start, end)]
        if found.token_type == TokenType.NUMBER:
            return [Token("number", written, start, end)]
        words = list(_WORD.finditer(written))
        if words and " ".join(one.group() for one in words) == " ".join(written.split()):
            # A keyword of several words, such as ORDER BY.
            return [Token("word", one.group(), start + one.start(), start + one.end()) for one in words]
        return [Token("symbol", written, start, end)]

    def _check_gaps(self, tokens: list[Token]) -> None:
        """Refuse what Spark would read otherwise than sqlglot between two tokens."""
        ends = [0, *(token.end for token in tokens)]
        starts = [*(token.start for token in tokens), len(self.text)]
        for end, start in zip(ends, starts, strict=True):
            gap = _without_comments(self.text[end:start])
            if _GAP.fullmatch(gap) is None:
                raise self.error(end, f"unexpected {self.text[end:start].strip()!r}")
            if re.search(r"--[^\n]*\\\n", gap):
                raise self.error(
                    end, "a comment that ends with a backslash goes on in the next line for Spark: remove it"
                )


def _without_comments(gap: str) -> str:
    """Return a gap between tokens without its comments in brackets, which may contain others."""
    kept: list[str] = []
    depth = at = 0
    while at < len(gap):
        two = gap[at : at + 2]
        if depth == 0 and two == "--":
            stop = gap.find("\n", at)
            stop = len(gap) if stop < 0 else stop
            kept.append(gap[at:stop])
            at = stop
        elif two == "/*":
            depth, at = depth + 1, at + 2
        elif two == "*/" and depth:
            depth, at = depth - 1, at + 2
        else:
            kept += gap[at] if depth == 0 else ""
            at += 1
    return "".join(kept)


def _open_at(text: str) -> int:
    """Return where the string, name or comment begins that has no end."""
    at = 0
    while at < len(text):
        two, one = text[at : at + 2], text[at]
        if two == "--":
            stop = text.find("\n", at)
            at = len(text) if stop < 0 else stop
        elif two == "/*":
            stop = _end_of_comment(text, at)
            if stop < 0:
                return at
            at = stop
        elif one in "'\"`":
            stop = _end_of_quoted(text, at)
            if stop < 0:
                return at
            at = stop
        else:
            at += 1
    return 0


def _end_of_comment(text: str, at: int) -> int:
    depth = 0
    for found in re.finditer(r"/\*|\*/", text[at:]):
        depth += 1 if found.group() == "/*" else -1
        if depth == 0:
            return at + found.end()
    return -1


def _end_of_quoted(text: str, at: int) -> int:
    quote, place = text[at], at + 1
    while place < len(text):
        if text[place] == "\\" and quote != "`":
            place += 1
        elif text[place] == quote:
            return place + 1
        place += 1
    return -1


class Cursor:
    """A reader of the tokens of a statement; what it does not expect is an error that names the place."""

    def __init__(self, statement: Statement) -> None:
        self.statement = statement
        self._at = 0

    @property
    def token(self) -> Token:
        """The next token."""
        return self.statement.tokens[self._at]

    @property
    def place(self) -> int:
        """Where the next token begins."""
        return self.token.start

    @property
    def last_end(self) -> int:
        """Where the token before the next one ends."""
        return self.statement.tokens[self._at - 1].end if self._at else 0

    def at_end(self) -> bool:
        """Return whether there are no more tokens."""
        return self.token.kind == "end"

    def ahead(self, *words: str, skip: int = 0) -> bool:
        """Return whether these keywords or symbols come next."""
        tokens = self.statement.tokens[self._at + skip : self._at + skip + len(words)]
        return len(tokens) == len(words) and all(map(_is, tokens, words))

    def take(self, *words: str) -> bool:
        """Skip these keywords or symbols if they come next; return whether they did."""
        if not self.ahead(*words):
            return False
        self._at += len(words)
        return True

    def one_of(self, *words: str) -> str | None:
        """Skip the one of these that comes next, and return it."""
        return next((word for word in words if self.take(word)), None)

    def expect(self, *words: str) -> None:
        """Skip these keywords or symbols."""
        for word in words:
            if not self.take(word):
                raise self.error(f"expected {' '.join(words)}")

    def error(self, message: str) -> InvalidArgumentError:
        """Return the error about the next token."""
        token = self.token
        found = "the end" if token.kind == "end" else repr(self.statement.text[token.start : token.end])
        return self.statement.error(token.start, f"{message}, got {found}")

    def finish(self) -> None:
        """Require the end of the statement."""
        if not self.at_end():
            raise self.error("expected the end of the statement")

    def next(self) -> Token:
        """Skip a token and return it."""
        token = self.token
        if token.kind != "end":
            self._at += 1
        return token

    def part(self, what: str = "a name") -> str:
        """Return one part of a name."""
        if self.token.kind not in ("word", "quoted") or not self.token.text:
            raise self.error(f"expected {what}")
        return self.next().text

    def name(self, what: str = "a name") -> Name:
        """Return a name: parts with dots between them."""
        start = self.place
        parts = [self.part(what)]
        while self.take("."):
            parts.append(self.part(what))
        return Name(tuple(parts), start, self.last_end)

    def string(self, what: str) -> str:
        """Return the value of a string; strings next to each other are one."""
        texts = []
        while self.token.kind == "string":
            texts.append(self.next().text)
        if not texts:
            raise self.error(f"expected {what}")
        return "".join(texts)

    def integer(self, what: str) -> int:
        """Return the value of an integer."""
        if self.token.kind != "number" or not self.token.text.isascii() or not self.token.text.isdigit():
            raise self.error(f"expected {what}")
        return int(self.next().text)

    def group(self, what: str) -> Piece:
        """Return what is in the parentheses that come next, without them."""
        self.expect("(")
        if self.ahead(")"):
            raise self.error(f"expected {what}")
        piece = self.piece(what, ")")
        self.expect(")")
        return piece

    def piece(self, what: str, *stops: str, words: Collection[tuple[str, ...]] = ()) -> Piece:
        """Return the text up to a symbol or keyword outside of parentheses, brackets and CASE … END, or the end."""
        start, end = self.place, self.place
        depth: list[str] = []
        while not self.at_end():
            if not depth and (any(map(self.ahead, stops)) or any(self.ahead(*some) for some in words)):
                break
            token = self.next()
            self._balance(token, depth)
            end = token.end
        if depth:
            raise self.error(f"expected {depth[-1]}")
        if end == start:
            raise self.error(f"expected {what}")
        return Piece(start, end)

    def _balance(self, token: Token, depth: list[str]) -> None:
        if token.kind == "symbol" and token.text in _CLOSED_BY:
            depth.append(_CLOSED_BY[token.text])
        elif _is(token, "CASE"):
            depth.append("END")
        elif (token.kind == "symbol" and token.text in (")", "]", "}")) or (_is(token, "END") and "END" in depth):
            closed = token.text.upper()
            if not depth or depth[-1] != closed:
                wanted = f"expected {depth[-1]}, got" if depth else "unexpected"
                raise self.statement.error(token.start, f"{wanted} {token.text!r}")
            depth.pop()


_CLOSED_BY = {"(": ")", "[": "]", "{": "}"}


def _is(token: Token, word: str) -> bool:
    return token.kind in ("word", "symbol") and token.text.upper() == word
