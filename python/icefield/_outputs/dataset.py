"""Scans as datasets of pyarrow: DuckDB and other libraries read only what a query needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from icefield._outputs.pushed import Columns, PushableScan
from icefield._support.optional import require
from icefield.errors import UnsupportedFeatureError
from icefield.expressions import And, Expression, NotNull, Or

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

__all__ = ["dataset_of"]

_Literal: TypeAlias = "str | bool | float | date"


def dataset_of(scan: PushableScan) -> ds.Dataset:
    """Return a dataset of a scan."""
    require("pyarrow")
    made: ds.Dataset = _scan_dataset()(scan)
    return made


class _Reads:
    """A scan; of the methods of a dataset it has those that read."""

    def __init__(self, scan: PushableScan) -> None:
        # Nothing of pyarrow's own is made: what follows is all that a reader calls.
        self._of = scan
        self._schema = scan.empty().to_pyarrow().schema

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._schema

    def scanner(
        self,
        columns: Sequence[str] | Mapping[str, pc.Expression] | None = None,
        filter: pc.Expression | None = None,
        batch_size: int | None = None,
        **options: Any,
    ) -> ds.Scanner:
        """Read some columns of the rows that match; other options are about files of pyarrow's."""
        del options
        scan, names = self._of, self._schema.names
        if not isinstance(columns, Mapping) and columns is not None and all(name in names for name in columns):
            # Whatever looks like a name in the filter may be one.
            text = "" if filter is None else str(filter)
            scan = scan.only(dict.fromkeys([*columns, *(name for name in names if name in text)]))
        if filter is not None and scan.limit is None:
            pushed = translated(filter, self._schema, Columns(scan.projection(), scan.case_sensitive))
            scan = scan if pushed is None else scan.filter(pushed)
        reader = scan.to_arrow_batch_reader(batch_size=batch_size)
        listed = columns if columns is None or isinstance(columns, Mapping) else list(columns)
        made: ds.Scanner = require("pyarrow.dataset").Scanner.from_batches(reader, columns=listed, filter=filter)
        return made

    def to_table(self, *args: Any, **options: Any) -> pa.Table:
        """Read rows; arguments are those of `scanner`."""
        return self.scanner(*args, **options).to_table()

    def to_batches(self, *args: Any, **options: Any) -> Iterator[pa.RecordBatch]:
        """Read rows as they come; arguments are those of `scanner`."""
        return iter(self.scanner(*args, **options).to_reader())

    def head(self, num_rows: int, *args: Any, **options: Any) -> pa.Table:
        """Read the first rows; further arguments are those of `scanner`."""
        if self._of.limit is None and options.get("filter") is None and not args[1:]:
            return dataset_of(self._of.at_most(num_rows)).to_table(*args, **options)
        return self.scanner(*args, **options).head(num_rows)

    def count_rows(self, filter: pc.Expression | None = None, **options: Any) -> int:
        """Count the rows that match."""
        return self._of.count() if filter is None else int(self.scanner(filter=filter, **options).count_rows())

    def __reduce__(self) -> tuple[Callable[[PushableScan], ds.Dataset], tuple[PushableScan]]:
        return dataset_of, (self._of,)

    def __repr__(self) -> str:
        return f"<icefield dataset: {self._of!r}>"


@cache
def _scan_dataset() -> type[_Reads]:
    """Return the class. Libraries accept only subclasses of pyarrow's."""
    base = require("pyarrow.dataset").Dataset
    absent = set(dir(base)) - set(dir(object)) - set(vars(_Reads))
    return type("ScanDataset", (_Reads, base), {name: property(_refusal(name)) for name in absent})


def _refusal(name: str) -> Callable[[object], None]:
    """Return a property that raises: pyarrow would read it from a C++ object, which a scan does not have."""

    def refuse(_: object) -> None:
        raise UnsupportedFeatureError(
            f"a dataset of a scan has no {name}: it has scanner, to_table, to_batches and head"
        )

    return refuse


_NAME = r"[A-Za-z_]\w*"
_TEXT = r'"[^"\\\\]*"'
_COMPARED = re.compile(rf"\(({_NAME}) (==|!=|<=|>=|<|>) ({_TEXT}|[^\s()\"{{}}]+(?: \d\d:\d\d:[\d.]+Z?)?)\)")
_VALID = re.compile(rf"is_valid\(({_NAME})\)")


def translated(condition: pc.Expression, schema: pa.Schema, columns: Columns) -> Expression | None:
    """Return a filter that keeps all rows that a condition of pyarrow keeps; None if it is not known.

    The text of a condition is all that pyarrow shows of it. So the text is parsed, a condition is made of the result,
    and the filter is used only if that condition equals the original.
    """
    text = str(condition)
    for as_stored in (False, True):
        reader = _Reader(text, columns, schema if as_stored else None)
        try:
            found, again = reader.whole()
        except (ValueError, KeyError, TypeError, RecursionError, require("pyarrow").ArrowException):
            continue
        if condition.equals(again):
            return found
    return None


class _Reader:
    """Reads the text of a condition."""

    def __init__(self, text: str, columns: Columns, schema: pa.Schema | None) -> None:
        self._text = text
        self._at = 0
        self._columns = columns
        #: Where literals have the types of their columns.
        self._schema = schema
        self._compute = require("pyarrow.compute")

    def whole(self) -> tuple[Expression | None, pc.Expression]:
        """Parse the text: the filter, and the condition made of it."""
        found = self._one()
        if self._at != len(self._text):
            raise ValueError("there is more")
        return found

    def _one(self) -> tuple[Expression | None, pc.Expression]:
        if match := _COMPARED.match(self._text, self._at):
            self._at = match.end()
            name, operation, literal = match.groups()
            value = _literal(literal)
            field = self._compute.field(name)
            compared = {
                "==": field.__eq__,
                "!=": field.__ne__,
                "<": field.__lt__,
                "<=": field.__le__,
                ">": field.__gt__,
                ">=": field.__ge__,
            }[operation](self._scalar(name, value))
            return self._columns.compared(name, operation, value), compared
        if match := _VALID.match(self._text, self._at):
            self._at = match.end()
            term = self._columns.term(match[1])
            return None if term is None else self._columns.bound(NotNull(term)), self._compute.field(
                match[1]
            ).is_valid()
        self._take("(")
        left, left_again = self._one()
        joined = " and " if self._text.startswith(" and ", self._at) else " or "
        self._take(joined)
        right, right_again = self._one()
        self._take(")")
        if joined == " and ":
            both = And(left, right) if left is not None and right is not None else right if left is None else left
            return both, left_again & right_again
        return None if left is None or right is None else Or(left, right), left_again | right_again

    def _take(self, token: str) -> None:
        if not self._text.startswith(token, self._at):
            raise ValueError(f"no {token!r} at {self._at}")
        self._at += len(token)

    def _scalar(self, name: str, value: _Literal) -> object:
        """Return the value with the type of its column, where literals have these."""
        return value if self._schema is None else require("pyarrow").scalar(value, self._schema.field(name).type)


def _literal(text: str) -> _Literal:
    """Read a literal.

    Raises
    ------
    ValueError
        If it is none that is known.

    """
    if text.startswith('"'):
        return text[1:-1]
    if text in {"true", "false"}:
        return text == "true"
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        return date.fromisoformat(text)
    if re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:[\d.]+Z?", text):
        return datetime.fromisoformat(text.replace("Z", "+00:00"))
    return float(text)
