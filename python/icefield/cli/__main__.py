"""``python -m icefield.cli``."""

from icefield.cli import main

main()
