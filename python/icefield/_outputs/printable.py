"""Text that came from a table, made safe to print for people."""

from __future__ import annotations

import unicodedata

__all__ = ["printable"]

# Control characters, formats (marks of direction, which reorder a line), surrogates, line and paragraph separators.
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# Formats that belong to words: joiners of scripts and of emoji, the soft hyphen.
_HARMLESS = frozenset("\u200c\u200d\u00ad")


def printable(text: str, *, keep: str = "") -> str:
    r"""Write control characters as escapes, so that names and values cannot steer a terminal.

    Parameters
    ----------
    text
        Any text.
    keep
        Characters that stay as they are, such as ``"\n"``.

    Examples
    --------
    >>> printable("a\x1b[2Jb")
    'a\\x1b[2Jb'

    """
    if text.isprintable():
        return text
    return "".join(char if char in keep else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    if char in _HARMLESS or unicodedata.category(char) not in _UNSAFE:
        return char
    return ascii(char)[1:-1]
