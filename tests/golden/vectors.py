"""The vector files of a golden set, and the typed values in them ("Common encodings" in their README)."""

import ctypes
import json
import uuid
from decimal import Context, Decimal

from worlds.golden import folder


def cases(name):
    """Pairs of case number and case of ``vectors/NAME``; none where the set lacks the file."""
    path = folder() / "vectors" / name
    if not path.exists():
        return []
    return list(enumerate(json.loads(path.read_text())))


def typed(value, type_):
    """The Python value that a typed JSON value stands for, in the form in which icefield gives values."""
    if value is None:
        return None
    if isinstance(type_, dict):
        return _nested(value, type_)
    kind = type_.split("(")[0].split("[")[0]
    read = READERS.get(kind, lambda value, _: value)
    return read(value, type_)


def _decimal(value, type_):
    scale = int(type_.rstrip(")").split(",")[1])
    return Decimal(value).quantize(Decimal(1).scaleb(-scale), context=Context(prec=60))


def rounded(number):
    """A double as the 32-bit float nearest to it."""
    return ctypes.c_float(number).value


READERS = {
    **dict.fromkeys(("int", "long", "date", "time"), lambda value, _: int(value)),
    **dict.fromkeys(("timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"), lambda value, _: int(value)),
    "float": lambda value, _: rounded(float(value)),
    "double": lambda value, _: float(value),
    **dict.fromkeys(("fixed", "binary", "geometry", "geography"), lambda value, _: bytes.fromhex(value)),
    "decimal": _decimal,
    "uuid": lambda value, _: uuid.UUID(value),
}


def _nested(value, type_):
    if type_["type"] == "struct":
        return {field["name"]: typed(value.get(field["name"]), field["type"]) for field in type_["fields"]}
    if type_["type"] == "list":
        return [typed(item, type_["element"]) for item in value]
    return {typed(key, type_["key"]): typed(item, type_["value"]) for key, item in value}


def same(got, expected):
    """Equal, where NaN equals NaN and the zeros differ."""
    if isinstance(got, float) and isinstance(expected, float):
        return repr(got) == repr(expected)
    return type(got) is type(expected) and got == expected
