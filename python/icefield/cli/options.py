"""Options that every command has, under one name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any

import click

__all__ = ["CommandGroup", "at_snapshot", "limited", "wants_json"]

_JSON = "icefield.json"


def wants_json() -> bool:
    """Return whether ``--json`` was given, before or after the command."""
    return bool(click.get_current_context().meta.get(_JSON))


def _json_option() -> click.Option:
    def remember(context: click.Context, _: click.Parameter, value: bool) -> None:
        # Shared by the contexts of a command and the groups around it.
        context.meta[_JSON] = context.meta.get(_JSON, False) or value

    return click.Option(["--json"], is_flag=True, expose_value=False, callback=remember, help="Print JSON.")


class _Command(click.Command):
    def __init__(self, *arguments: Any, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.params.append(_json_option())


class CommandGroup(click.Group):
    """A group that takes ``--json``, as all its commands do."""

    command_class = _Command
    group_class = type

    def __init__(self, *arguments: Any, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.params.append(_json_option())


class _Moment(click.ParamType):  # type: ignore[type-arg]
    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime | int:
        if isinstance(value, datetime | int):
            return value
        text = str(value)
        if text.isascii() and text.isdigit():
            return int(text)
        try:
            moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
        except ValueError:
            self.fail(
                f"expected a time such as 2026-01-31T12:00:00+00:00, 2026-01-31 or milliseconds, got {text!r}",
                param,
                ctx,
            )
        return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def at_snapshot(function: Callable[..., None]) -> Callable[..., None]:
    """Add ``--snapshot-id``, ``--ref`` and ``--as-of``; the function gets those that are given as ``moment``."""

    @click.option("--snapshot-id", type=int, help="The snapshot of this id.")
    @click.option("--ref", help="The snapshot of this branch or tag.")
    @click.option("--as-of", type=_Moment(), help="The snapshot of this time: ISO 8601 (UTC without an offset) or ms.")
    @click.option("--snapshot", "old_snapshot_id", type=int, hidden=True)
    @functools.wraps(function)
    def with_moment(
        *arguments: object,
        snapshot_id: int | None,
        ref: str | None,
        as_of: datetime | int | None,
        old_snapshot_id: int | None,
        **others: object,
    ) -> None:
        given: Mapping[str, object] = {
            "snapshot_id": old_snapshot_id if snapshot_id is None else snapshot_id,
            "ref": ref,
            "as_of": as_of,
        }
        moment = {name: value for name, value in given.items() if value is not None}
        if len(moment) > 1:
            raise click.UsageError("pass only one of --snapshot-id, --ref and --as-of")
        function(*arguments, moment=moment, **others)

    return with_moment


def limited(what: str, default: int | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add ``--limit``; ``--rows``, as it was called before, still works."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        count = click.IntRange(min=0)
        shown = f"Print at most this many {what}." + ("" if default is None else f"  [default: {default}]")

        @click.option("--limit", "-n", type=count, help=shown)
        @click.option("--rows", "old_limit", type=count, hidden=True)
        @functools.wraps(function)
        def with_limit(*arguments: object, limit: int | None, old_limit: int | None, **others: object) -> None:
            given = old_limit if limit is None else limit
            function(*arguments, limit=default if given is None else given, **others)

        return with_limit

    return decorate
