"""The groups of commands, a file each; `icefield.cli.commands` registers them."""
