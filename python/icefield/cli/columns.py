"""Columns as they are typed: ``id long not null, name string, place struct<lat: double, lon: double>``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count

from icefield.errors import InvalidArgumentError
from icefield.schema import Schema
from icefield.types import ListType, MapType, NestedField, StructType, Type

__all__ = ["schema_of_text"]

_TOKEN = re.compile(
    r"""(?P<quoted>`(?:[^`]|``)*`|"(?:[^"]|"")*")|(?P<text>'(?:[^']|'')*')|(?P<word>[^\s,<>():'`"\[\]]+)"""
    r"""|(?P<sign>[,<>():\[\]])"""
)
#: SQL has other names for lists and structs.
_NESTED = {"array": "list", "list": "list", "map": "map", "row": "struct", "struct": "struct"}
_CLOSING = {"(": ")", "[": "]"}
_MOST_LEVELS = 100


def schema_of_text(text: str) -> Schema:
    """Return the schema that a list of columns describes.

    Each is a name, a type, and then ``not null`` (or ``required``) and ``comment 'text'`` where wanted. Types are those
    of the specification, and ``list<...>``, ``map<..., ...>``, ``struct<name type, ...>``. Names with signs are quoted
    with backticks or double quotes.

    Raises
    ------
    InvalidArgumentError
        If the text is not valid; the error says where.

    """
    return _Columns(text).schema()


class _Columns:
    """The text, and how much of it was read."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._level = 0
        self._ids: Iterator[int] = count(1)

    def schema(self) -> Schema:
        fields = self._fields("")
        return Schema(*fields)

    def _fields(self, end: str) -> list[NestedField]:
        fields = [self._field()]
        while self._takes(","):
            fields.append(self._field())
        if end:
            self._expect(end)
        elif self._rest():
            raise self._wrong("expected ',', 'not null' or 'comment'")
        return fields

    def _field(self) -> NestedField:
        field_id = next(self._ids)
        name = self._name()
        self._takes(":")
        kind = self._type()
        required = self._is_required()
        doc = self._string() if self._takes("comment") or self._takes("doc") else None
        return NestedField(field_id, name, kind, required, doc)

    def _name(self) -> str:
        kind, token = self._peek()
        if kind == "quoted":
            self._next()
            name = token[1:-1].replace(token[0] * 2, token[0])
            if name:
                return name
        elif kind == "word":
            self._next()
            return token
        raise self._wrong("expected the name of a column")

    def _type(self) -> Type:
        kind, token = self._peek()
        if kind != "word":
            raise self._wrong("expected a type")
        start = self._at
        self._next()
        nested = _NESTED.get(token.lower())
        if nested and self._takes("<"):
            self._level += 1
            if self._level > _MOST_LEVELS:
                raise self._wrong(f"types are nested more than {_MOST_LEVELS} levels deep")
            made = self._nested(nested)
            self._level -= 1
            return made
        text = token + self._arguments()
        try:
            return Type(text)
        except InvalidArgumentError as error:
            self._at = start
            raise self._wrong(str(error)) from None

    def _nested(self, kind: str) -> Type:
        if kind == "struct":
            return StructType(*self._fields(">"))
        if kind == "list":
            element_id = next(self._ids)
            element = self._type()
            made: Type = ListType(element_id, element, self._is_required())
        else:
            key_id, value_id = next(self._ids), next(self._ids)
            key = self._type()
            self._is_required()  # keys always are
            self._expect(",")
            value = self._type()
            made = MapType(key_id, key, value_id, value, self._is_required())
        self._expect(">")
        return made

    def _arguments(self) -> str:
        """Return what stands in brackets behind the name of a type, as in ``decimal(9, 2)``."""
        _, opening = self._peek()
        closing = _CLOSING.get(opening)
        if closing is None:
            return ""
        end = self._text.find(closing, self._at)
        if end < 0:
            raise self._wrong(f"'{closing}' is missing")
        start = self._text.index(opening, self._at)
        self._at = end + 1
        return self._text[start : self._at]

    def _is_required(self) -> bool:
        if self._takes("required"):
            return True
        if self._takes("not"):
            self._expect("null")
            return True
        _ = self._takes("optional") or self._takes("null")
        return False

    def _string(self) -> str:
        kind, token = self._peek()
        if kind != "text":
            raise self._wrong("expected a text in single quotes")
        self._next()
        return token[1:-1].replace("''", "'")

    # Tokens

    def _rest(self) -> str:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1
        return self._text[self._at :]

    def _peek(self) -> tuple[str, str]:
        found = _TOKEN.match(self._rest())
        return (str(found.lastgroup), found[0]) if found else ("", "")

    def _next(self) -> None:
        self._at += len(self._peek()[1])

    def _takes(self, word: str) -> bool:
        kind, token = self._peek()
        if kind in {"word", "sign"} and token.lower() == word:
            self._next()
            return True
        return False

    def _expect(self, word: str) -> None:
        if not self._takes(word):
            raise self._wrong(f"expected {word!r}")

    def _wrong(self, problem: str) -> InvalidArgumentError:
        rest = self._rest()
        here = f"at character {self._at + 1} ({rest[:20]!r})" if rest else "at the end"
        return InvalidArgumentError(f"columns, {here}: {problem}")
