"""Arguments of scans in the forms that the core expects: columns, filters, sizes of tasks, options of reading."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypedDict

from icefield._core import filter_expression, nearest_name
from icefield.errors import InvalidArgumentError

if TYPE_CHECKING:
    from icefield.expressions import Expression, RowFilter

#: Options of scans, by the names of Java's connector, and the arguments of `TableScan.plan_tasks` that they are.
_SPLIT = {"split-size": "split_size", "lookback": "lookback", "file-open-cost": "open_file_cost"}


class Reading(TypedDict):
    """Options of reading that do not change the rows."""

    batch_size: int | None
    memory_limit: int | None
    dictionary_columns: tuple[str, ...]


def reading_of(batch_size: int | None, memory_limit: int | None, dictionary_columns: Iterable[str] | str) -> Reading:
    """Return the options of reading as the core takes them."""
    names = fields_of(dictionary_columns)
    return {"batch_size": batch_size, "memory_limit": memory_limit, "dictionary_columns": names}


def split_of(options: Mapping[str, str] | None) -> tuple[tuple[str, int], ...]:
    """Return the options of a scan: those of Java's connector that split it into tasks.

    Raises
    ------
    InvalidArgumentError
        If there is no such option, or its value is not an integer.

    """
    split = []
    for name, value in (options or {}).items():
        if (argument := _SPLIT.get(name)) is None:
            nearest = nearest_name(name, list(_SPLIT))
            hint = f"did you mean {nearest}?" if nearest else f"options are {', '.join(_SPLIT)}"
            raise InvalidArgumentError(f"unknown scan option {name!r}: {hint}")
        try:
            split.append((argument, int(value)))
        except (TypeError, ValueError):
            raise InvalidArgumentError(f"option {name}: expected an integer, got {value!r}") from None
    return tuple(split)


def expression_of(row_filter: RowFilter) -> Expression:
    """Return the expression of a filter of rows: text means what SQL means."""
    return filter_expression(row_filter)


def fields_of(selected: Iterable[str] | str) -> tuple[str, ...]:
    """Return selected columns as a tuple; a single str is one name."""
    return (selected,) if isinstance(selected, str) else tuple(selected)
