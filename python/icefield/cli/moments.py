"""Times and durations as they are typed, and the snapshot that an option chooses."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone

import click

from icefield.cli.names import complete_refs
from icefield.errors import InvalidArgumentError
from icefield.scan.moments import Moment, age_in_milliseconds
from icefield.table import Snapshot, Table

__all__ = ["AGE", "PAST", "at_snapshot", "snapshot_at"]


class _Time(click.ParamType):  # type: ignore[type-arg]
    """A time, in ISO 8601 or milliseconds."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime | int:
        if isinstance(value, datetime | int):
            return value
        text = str(value).strip()
        if text.isascii() and text.isdigit():
            return int(text)
        # As times are printed, and as Python 3.10 reads them.
        iso_text = re.sub(r"\s*(Z|UTC)$", "+00:00", text, flags=re.IGNORECASE)
        try:
            moment = datetime.fromisoformat(iso_text)
        except ValueError:
            self.fail(f"expected {self._forms()}, got {text!r}", param, ctx)
        return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)

    def _forms(self) -> str:
        return "a time such as 2026-01-31T12:00:00+00:00, 2026-01-31 or milliseconds"


class _Past(_Time):
    """A time, or how long ago it was."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime | int:
        ago = age_in_milliseconds(value) if isinstance(value, str) else None
        if ago is None:
            return super().convert(value, param, ctx)
        try:
            return datetime.now(timezone.utc) - timedelta(milliseconds=ago)
        except OverflowError:
            self.fail(f"{value!r} is too long ago", param, ctx)

    def _forms(self) -> str:
        return "an age such as 7d or 12h, or a time such as 2026-01-31T12:00:00+00:00, 2026-01-31 or milliseconds"


class _Age(click.ParamType):  # type: ignore[type-arg]
    """A duration, in milliseconds."""

    name = "age"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        found = age_in_milliseconds(str(value))
        if found is None:
            self.fail(f"expected an age such as 30d, 12h or 90000ms, got {value!r}", param, ctx)
        return found


#: A time that may also be passed as an age, such as ``7d``.
PAST = _Past()
#: An age in milliseconds.
AGE = _Age()


def at_snapshot(function: Callable[..., None]) -> Callable[..., None]:
    """Add ``--snapshot-id``, ``--ref`` and ``--as-of``; the function gets those that are given as ``moment``."""

    @click.option("--snapshot-id", type=int, help="The snapshot of this id.")
    @click.option("--ref", shell_complete=complete_refs, help="The snapshot of this branch or tag.")
    @click.option("--as-of", type=_Time(), help="The snapshot of this time: ISO 8601 (UTC without an offset) or ms.")
    @functools.wraps(function)
    def with_moment(
        *arguments: object,
        snapshot_id: int | None,
        ref: str | None,
        as_of: datetime | int | None,
        **others: object,
    ) -> None:
        given: Mapping[str, object] = {"snapshot_id": snapshot_id, "ref": ref, "as_of": as_of}
        moment = {name: value for name, value in given.items() if value is not None}
        if len(moment) > 1:
            raise click.UsageError("pass only one of --snapshot-id, --ref and --as-of")
        function(*arguments, moment=moment, **others)

    return with_moment


def snapshot_at(table: Table, moment: Moment) -> Snapshot:
    """Return the snapshot that was chosen, by default the current one.

    Raises
    ------
    InvalidArgumentError
        If there is no such snapshot.

    """
    found = table.scan(**moment).snapshot()
    if found is None:
        raise InvalidArgumentError("the table has no snapshot yet")
    return found
