"""Properties with secrets print redacted; `crates/table/src/storage/secret.rs` decides which ones they are."""

from __future__ import annotations

from collections.abc import Mapping

from icefield._core import HIDDEN, shown_property
from icefield._core import redacted as redacted_url

__all__ = ["Secret", "guarded", "redacted", "redacted_url", "revealed"]


class Secret(str):
    """A password, key or token: a string that is redacted wherever it is printed, formatted, logged or put into JSON.

    Catalog properties with the name of a secret are kept as secrets, and so are URLs with a password. Equal
    secrets are equal and hash alike. Pickling keeps the value, because executors need the same storage: protect a
    pickle like the secret itself.

    Parameters
    ----------
    text
        The value to hide.
    shown
        The text to show instead.

    """

    # Where users import it from.
    __module__ = "icefield"

    __slots__ = ("_text",)

    _text: str

    def __new__(cls, text: str, shown: str = HIDDEN) -> Secret:  # noqa: PYI034 - final in spirit
        """Wrap a value; wrapping a secret again changes nothing."""
        if isinstance(text, Secret):
            return text
        made = super().__new__(cls, shown)
        made._text = text
        return made

    def reveal(self) -> str:
        """Return the secret text."""
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __reduce__(self) -> tuple[object, ...]:
        return Secret, (self._text, str.__str__(self))


def guarded(properties: Mapping[str, object]) -> dict[str, str]:
    """Return the properties as strings, sensitive ones as `Secret`.

    Those below a name are joined to it by dots, as in files, and lists are their words: PyIceberg takes
    ``{"auth": {"type": "basic", "basic": {"username": "me"}}}``.
    """
    made: dict[str, str] = {}
    for key, value in properties.items():
        if isinstance(value, Mapping):
            made.update(guarded({f"{key}.{name}": inner for name, inner in value.items()}))
        elif isinstance(value, (list, tuple)):
            made[key] = _guarded(key, " ".join(map(str, value)))
        else:
            made[key] = _guarded(key, value if isinstance(value, str) else str(value))
    return made


def revealed(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties with all secrets revealed, to open a connection."""
    return {key: value.reveal() if isinstance(value, Secret) else str(value) for key, value in properties.items()}


def redacted(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties with all secrets redacted."""
    return {key: str.__str__(value) for key, value in guarded(properties).items()}


def _guarded(key: str, value: str) -> str:
    if isinstance(value, Secret):
        return value
    shown = shown_property(key, value)
    return value if shown == value else Secret(value, shown)
