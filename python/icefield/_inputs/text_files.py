"""Configuration files in YAML, whose values are all texts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from icefield._support.optional import require
from icefield.errors import InvalidArgumentError

if TYPE_CHECKING:
    from pathlib import Path

    from yaml import MappingNode, Node, SafeLoader

__all__ = ["read_mapping"]


def read_mapping(path: Path) -> Mapping[str, object]:
    """Read a YAML file that is a mapping; every value is text, a list, or a mapping of such.

    Raises
    ------
    InvalidArgumentError
        If it is not that; the message names the place, and no value.

    """
    yaml = require("yaml")
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_loader())
    except yaml.YAMLError as error:
        # The parser may quote a secret: only the place is shown.
        mark = getattr(error, "problem_mark", None)
        place = "" if mark is None else f", line {mark.line + 1}, column {mark.column + 1}"
        raise InvalidArgumentError(f"{path}{place}: {getattr(error, 'problem', None) or 'invalid YAML'}") from None
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(f"{path}: not UTF-8 at byte {error.start}") from None
    if not content:
        return {}
    if not isinstance(content, Mapping):
        msg = f"{path}: must be a mapping"
        raise InvalidArgumentError(msg)
    return content


@cache
def _loader() -> type[SafeLoader]:
    """Return a loader that reads every scalar as text."""
    yaml = require("yaml")

    class Texts(yaml.SafeLoader):  # type: ignore[misc, name-defined]
        def construct_object(self, node: Node, deep: bool = False) -> object:
            return node.value if isinstance(node, yaml.ScalarNode) else super().construct_object(node, deep)

        def compose_mapping_node(self, anchor: object) -> MappingNode:
            node: MappingNode = super().compose_mapping_node(anchor)
            seen = set()
            for key, _ in node.value:
                name = key.value if isinstance(key, yaml.ScalarNode) else None
                if name is None or name in seen:
                    problem = "a key must be text" if name is None else f"the key {name!r} appears twice"
                    raise yaml.composer.ComposerError(None, None, problem, key.start_mark)
                seen.add(name)
            return node

    return Texts
