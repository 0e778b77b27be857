"""Moments: points in time by which a snapshot is chosen."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone
from operator import index
from typing import SupportsIndex, TypedDict

from icefield.errors import InvalidArgumentError

__all__ = ["Moment", "age_in_milliseconds", "instant_of", "milliseconds_of"]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MILLISECOND = timedelta(milliseconds=1)
_AGE = re.compile(r"(\d+) ?(ms|[smhdw])", re.ASCII)
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_UTC = re.compile(r"\s*(Z|UTC)$", re.IGNORECASE)
_FORMS = "an aware datetime, ISO text with an offset ('2024-01-01T00:00:00Z'), or milliseconds from the epoch"


class Moment(TypedDict, total=False):
    """The argument of a scan that chooses a snapshot; none of them means the current one."""

    snapshot_id: int
    as_of: datetime | str | int
    ref: str


def milliseconds_of(moment: datetime | str | int | None, what: str = "as_of", *, round_up: bool = False) -> int | None:
    """Return a moment in whole milliseconds from the epoch, as snapshots have them.

    A snapshot is of a moment or earlier where it is of these milliseconds or earlier; it is before a moment where it is
    before the milliseconds that are rounded up.

    Parameters
    ----------
    moment
        An aware datetime, ISO text with an offset, or milliseconds.
    what
        The name of the argument, for errors.
    round_up
        Whether a part of a millisecond makes it the next one.

    Raises
    ------
    InvalidArgumentError
        If it is anything else, or has no time zone.

    """
    given: object = instant_of(moment, what) if isinstance(moment, str) else moment
    if given is None:
        return None
    if isinstance(given, datetime):
        if given.utcoffset() is None:
            msg = (
                f"{what}: {given!r} has no time zone: use datetime.now(timezone.utc) for now, "
                f"or add one with .astimezone() (local time) or .replace(tzinfo=timezone.utc) (UTC)"
            )
            raise InvalidArgumentError(msg)
        since = given - _EPOCH
        return -(-since // _MILLISECOND) if round_up else since // _MILLISECOND
    if isinstance(given, date):
        msg = f"{what}: the date {given} has no time of day: add it and a time zone, as in '{given}T00:00:00Z'"
        raise InvalidArgumentError(msg)
    if isinstance(given, bool) or not isinstance(given, SupportsIndex):
        raise InvalidArgumentError(f"{what}: expected {_FORMS}, got {given!r}")
    return index(given)


def age_in_milliseconds(text: str) -> int | None:
    """Return a duration such as ``7d``, ``12h`` or ``90000ms`` in milliseconds; None for other texts."""
    found = _AGE.fullmatch(text)
    return int(found[1]) * _UNITS[found[2]] if found else None


def instant_of(text: str, what: str = "as_of") -> datetime:
    """Return the aware datetime of ISO text.

    Raises
    ------
    InvalidArgumentError
        If it is not valid, or has no time zone.

    """
    stripped = text.strip()
    # Python 3.10 supports neither "Z" nor a blank before the offset; displays write "UTC".
    iso_text = _UTC.sub("+00:00", stripped)
    try:
        moment = datetime.fromisoformat(iso_text)
    except ValueError:
        raise InvalidArgumentError(f"{what}: expected {_FORMS}, got {text!r}") from None
    if moment.tzinfo is None:
        with_time = stripped if len(stripped) > len("2024-01-01") else f"{stripped}T00:00:00"
        msg = f"{what}: {text!r} has no time zone: write '{with_time}Z' for UTC, or add an offset such as +01:00"
        raise InvalidArgumentError(msg)
    return moment
