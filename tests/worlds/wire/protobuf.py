"""Footers of ORC files, taken apart and put together again."""

from __future__ import annotations

from pathlib import Path

from worlds.wire.by_hand import unsigned

#: A field of a message: its number and its value, bytes or a number.
Field = tuple[int, int | bytes]


def message(data: bytes) -> list[Field]:
    """Read the fields of a message of numbers, texts and messages."""
    fields: list[Field] = []
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        head = number()
        if head & 7 == 0:
            fields.append((head >> 3, number()))
        else:
            assert head & 7 == 2, head
            length = number()
            fields.append((head >> 3, data[at : at + length]))
            at += length
    return fields


def written(fields: list[Field]) -> bytes:
    """Write a message."""
    parts = [
        unsigned(number << 3) + unsigned(value)
        if isinstance(value, int)
        else unsigned(number << 3 | 2) + unsigned(len(value)) + value
        for number, value in fields
    ]
    return b"".join(parts)


def numbers(data: int | bytes) -> dict[int, int]:
    """Give the numbers of a message."""
    assert isinstance(data, bytes)
    return {number: value for number, value in message(data) if isinstance(value, int)}


def without_stream(path: Path, column: int, place: int) -> bool:
    """Leave out a stream of a column from the footer of the first stripe, not compressed; tell whether there is one."""
    data = path.read_bytes()
    end = len(data) - 1 - data[-1]
    postscript = message(data[end:-1])
    length = dict(postscript)[1]
    assert isinstance(length, int)
    footer = message(data[end - length : end])
    at = next(at for at, (number, _) in enumerate(footer) if number == 3)
    stripe = numbers(footer[at][1])
    first = stripe.get(1, 0) + stripe.get(2, 0) + stripe.get(3, 0)
    streams = message(data[first : first + stripe[4]])
    of_column = [one for one in streams if one[0] == 1 and numbers(one[1]).get(2, 0) == column]
    if place >= len(of_column):
        return False
    streams.remove(of_column[place])
    new = written(streams)
    footer[at] = (3, written(sorted({**stripe, 4: len(new)}.items())))
    ends = written(footer)
    tail = written([(number, len(ends) if number == 1 else value) for number, value in postscript])
    between = data[first + stripe[4] : end - length]
    path.write_bytes(data[:first] + new + between + ends + tail + bytes([len(tail)]))
    return True
