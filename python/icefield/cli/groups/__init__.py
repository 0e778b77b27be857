"""The groups of commands, one file each; `icefield.cli.commands` registers them."""
