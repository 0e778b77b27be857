"""Footers and page headers of Parquet files, taken apart and put together again."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from worlds.wire.by_hand import unsigned, zigzag

#: A field of a struct: its id, the code of its type, its value.
Field = list[Any]

TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, STRUCT = 1, 2, 3, 7, 8, 9, 10, 12


class Reader:
    """The compact protocol of Thrift."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def take(self, length: int) -> bytes:
        self.at += length
        return self.data[self.at - length : self.at]

    def unsigned(self) -> int:
        number = shift = 0
        while (byte := self.take(1)[0]) & 0x80:
            number |= (byte & 0x7F) << shift
            shift += 7
        return number | byte << shift

    def signed(self) -> int:
        number = self.unsigned()
        return number >> 1 ^ -(number & 1)

    def value(self, kind: int) -> Any:
        match kind:
            case 1 | 2:
                return kind == TRUE
            case 3 | 7:
                return self.take(1 if kind == BYTE else 8)
            case 8:
                return self.take(self.unsigned())
            case 9 | 10:
                head = self.take(1)[0]
                count = self.unsigned() if head >> 4 == 15 else head >> 4
                inner = head & 15
                values = [
                    self.take(1) == b"\x01" if inner in (TRUE, FALSE) else self.value(inner) for _ in range(count)
                ]
                return inner, values
            case 12:
                return self.struct()
            case _:
                return self.signed()

    def struct(self) -> list[Field]:
        fields: list[Field] = []
        last = 0
        while head := self.take(1)[0]:
            last = last + (head >> 4) if head >> 4 else self.signed()
            fields.append([last, head & 15, self.value(head & 15)])
        return fields


def written(kind: int, value: Any) -> bytes:
    """Write a value by the compact protocol."""
    match kind:
        case 1 | 2:
            return b""
        case 3 | 7:
            return bytes(value)
        case 8:
            return unsigned(len(value)) + bytes(value)
        case 9 | 10:
            inner, items = value
            count = len(items)
            head = bytes([count << 4 | inner]) if count < 15 else bytes([0xF0 | inner]) + unsigned(count)
            parts = [bytes([1 if one else 2]) if inner in (TRUE, FALSE) else written(inner, one) for one in items]
            return head + b"".join(parts)
        case 12:
            out, last = b"", 0
            for id_, code, inner in sorted(value, key=lambda field: field[0]):
                kind_ = (TRUE if inner else FALSE) if code in (TRUE, FALSE) else code
                step = id_ - last
                out += bytes([step << 4 | kind_]) if 0 < step < 16 else bytes([kind_]) + zigzag(id_)
                out += written(kind_, inner)
                last = id_
            return out + b"\0"
        case _:
            return zigzag(value)


def get(fields: list[Field], id_: int) -> Any:
    """Return the value of a field."""
    return next((value for known, _, value in fields if known == id_), None)


def put(fields: list[Field], id_: int, kind: int, value: Any) -> None:
    """Set a field; without a value it is removed."""
    fields[:] = [one for one in fields if one[0] != id_]
    if value is not None:
        fields.append([id_, kind, value])


def edit_footer(path: Path, change: Callable[[list[Any]], None]) -> None:
    """Change the row groups of a Parquet file."""
    data = path.read_bytes()
    (length,) = struct.unpack("<I", data[-8:-4])
    footer = Reader(data[-8 - length : -8]).struct()
    change(get(footer, 4)[1])
    new = written(STRUCT, footer)
    path.write_bytes(data[: -8 - length] + new + struct.pack("<I", len(new)) + b"PAR1")


def edit_first_page(path: Path, column: int, change: Callable[[list[Field]], None]) -> None:
    """Change the header of the first data page of a column, which keeps its length."""
    data = path.read_bytes()
    (length,) = struct.unpack("<I", data[-8:-4])
    groups = get(Reader(data[-8 - length : -8]).struct(), 4)[1]
    start = get(get(get(groups[0], 1)[1][column], 3), 9)
    reader = Reader(data, start)
    header = reader.struct()
    change(header)
    new = written(STRUCT, header)
    assert len(new) == reader.at - start, "a header of another length"
    path.write_bytes(data[:start] + new + data[reader.at :])
