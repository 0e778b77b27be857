"""Completion of commands, options and names by shells."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from icefield.cli.options import Command, wants_json
from icefield.cli.output import print_json

__all__ = ["completion"]

_PROGRAM = "icefield"
_VARIABLE = "_ICEFIELD_COMPLETE"


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    r"""Print what a shell needs to complete commands, options and the names of tables.

    \b
      bash: eval "$(icefield completion bash)"           in ~/.bashrc
      zsh:  eval "$(icefield completion zsh)"            in ~/.zshrc
      fish: icefield completion fish > ~/.config/fish/completions/icefield.fish
    """
    kind = get_completion_class(shell)
    if kind is None:  # all of the choice are there
        raise click.UsageError(f"no completion for {shell}")
    # Of bash, click asks its version first, which is another process; the text is the same for all.
    made = kind(context.find_root().command, {}, _PROGRAM, _VARIABLE)
    source = made.source_template % made.source_vars()
    if wants_json():
        print_json({"shell": shell, "source": source})
    else:
        click.echo(source)
