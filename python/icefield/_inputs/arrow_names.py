"""Column names of incoming data, checked before they pass Arrow's C data interface."""

from __future__ import annotations

from typing import Any, TypeVar

from icefield.errors import InvalidArgumentError

__all__ = ["without_nul"]

_Data = TypeVar("_Data")


def without_nul(data: _Data) -> _Data:
    """Return the data if no column name contains NUL, at which the interface would silently end the name.

    Raises
    ------
    InvalidArgumentError
        If one has; it is named.

    """
    if not any(hasattr(type(data), f"__arrow_c_{kind}__") for kind in ("stream", "array", "schema")):
        return data  # refused, or read as JSON, by who takes it: the attributes of others may cost or warn
    schema = getattr(data, "schema", data)
    names: Any = getattr(schema, "names", None)
    if names is None:
        names = getattr(data, "columns", ())
    if type(schema).__module__.partition(".")[0] == "pyarrow" and hasattr(schema, "to_string"):
        # Nested names are part of the text, and nothing else in it can contain NUL.
        names = [schema.to_string(show_field_metadata=False, show_schema_metadata=False)]
    try:
        odd = next((name for name in names if isinstance(name, str) and "\0" in name), None)
    except TypeError:
        return data
    if odd is not None:
        msg = f"column name contains NUL, which Arrow does not support: {odd!r}"
        raise InvalidArgumentError(msg)
    return data
