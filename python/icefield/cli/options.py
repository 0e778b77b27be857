"""Options that every command has, under one name."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from typing import IO, Any

import click

from icefield.errors import InvalidArgumentError

__all__ = ["Command", "CommandGroup", "asks", "confirm", "given", "keyed", "limited", "pairs", "wants_json"]

#: What was passed of a catalog: its name, and properties.
Given = tuple[str | None, dict[str, str]]

_JSON = "icefield.json"


def wants_json() -> bool:
    """Return whether ``--json`` was given, before or after the command."""
    return bool(click.get_current_context().meta.get(_JSON))


def _json_option() -> click.Option:
    def remember(context: click.Context, _: click.Parameter, value: bool) -> None:
        # Shared by the contexts of a command and the groups around it.
        context.meta[_JSON] = context.meta.get(_JSON, False) or value

    return click.Option(["--json"], is_flag=True, expose_value=False, callback=remember, help="Print JSON.")


class Command(click.Command):
    """A command that takes ``--json``."""

    def __init__(self, *arguments: Any, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.params.append(_json_option())


class CommandGroup(click.Group):
    """A group that takes ``--json``, as all its commands do."""

    command_class = Command
    group_class = type

    def __init__(self, *arguments: Any, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.params.append(_json_option())

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is called; if there is none of this name, suggest one."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            meant = self._meant(ctx, str(args[0]))
            if meant:
                raise click.UsageError(f"{error.message.rstrip('.')}: {meant}", ctx) from error
            raise

    def _meant(self, ctx: click.Context, name: str) -> str | None:
        """Return what to call instead of a command that this group lacks."""
        if self.name in _ELSEWHERE and name in _ELSEWHERE[self.name]:
            return _ELSEWHERE[self.name][name]
        top = ctx.find_root().command
        groups = top.commands.values() if isinstance(top, click.Group) else ()
        paths = [
            f"{group.name} {name}" for group in groups if isinstance(group, click.Group) and name in group.commands
        ]
        if isinstance(top, click.Group) and top is not self and name in top.commands:
            paths.append(name)
        return f"did you mean {' or '.join(f'icefield {path}' for path in paths)}?" if paths else None


#: Commands that other tools have, by the group that people look in.
_ELSEWHERE: Mapping[str | None, Mapping[str, str]] = {
    "icefield": {"ls": "icefield catalog list lists tables", "tables": "icefield catalog list lists tables"},
    "table": {
        "list": "icefield catalog list lists tables",
        "ls": "icefield catalog list lists tables",
        "count": "icefield table show TABLE prints the number of rows",
        "scan": "icefield table head TABLE prints rows, icefield table plan TABLE the files that a filter reads",
        "select": "icefield table head TABLE prints rows",
        "describe": "icefield table show TABLE prints columns, partitioning and properties",
    },
}


def limited(what: str, default: int | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add ``--limit``."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        count = click.IntRange(min=0)
        shown = f"Print at most this many {what}." + ("" if default is None else f"  [default: {default}]")

        @click.option("--limit", "-n", type=count, help=shown)
        @functools.wraps(function)
        def with_limit(*arguments: object, limit: int | None, **others: object) -> None:
            function(*arguments, limit=default if limit is None else limit, **others)

        return with_limit

    return decorate


def keyed(function: Callable[..., None]) -> Callable[..., None]:
    """Add ``--idempotency-key``, which the function gets as ``key``."""
    text = "Make the change once: nothing is done if a snapshot in the history of the branch has this key."
    return click.option("--idempotency-key", "key", metavar="KEY", help=text)(function)


def given(parameters: dict[str, Any]) -> Given:
    """Return the name of the catalog and the properties that the options of ``icefield`` itself pass."""
    named = {"uri": parameters.get("uri"), "warehouse": parameters.get("warehouse")}
    named.update(pairs(parameters.get("more") or ()))
    return parameters.get("catalog_name"), {key: value for key, value in named.items() if value is not None}


def pairs(texts: tuple[str, ...]) -> dict[str, str]:
    """Return properties that were passed as ``KEY=VALUE``.

    Raises
    ------
    InvalidArgumentError
        If one has no key or no ``=``, or if a key is passed twice.

    """
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise InvalidArgumentError(f"expected a property as KEY=VALUE, got {text!r}")
        if key in found:
            raise InvalidArgumentError(f"property {key!r} was passed twice")
        found[key] = value
    return found


class _Unasked(click.ClickException):
    """There is no terminal to ask on."""

    exit_code = 2

    def show(self, file: IO[str] | None = None) -> None:
        """Print the message as the errors of icefield are printed."""
        click.echo(f"icefield: {self.message}", file=file, err=file is None)


class _Declined(_Unasked):
    """The answer was no."""

    exit_code = 1


def asks(function: Callable[..., None]) -> Callable[..., None]:
    """Add ``--yes``, which the function passes to `confirm`."""
    return click.option("--yes", "-y", is_flag=True, help="Do it without being asked.")(function)


def confirm(what: str, *, yes: bool) -> None:
    """Ask before something is destroyed.

    Parameters
    ----------
    what
        What is about to be done, as in "drop table a.t".
    yes
        Whether ``--yes`` was passed.

    Raises
    ------
    click.ClickException
        If the answer is no (exit code 1), or if there is no terminal to ask on (exit code 2).

    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise _Unasked(f"not confirmed: {what}; pass --yes where there is no terminal to ask on")
    click.echo(f"This will {what}.", err=True)
    if not click.confirm("Continue?", err=True):
        raise _Declined("nothing was done")
