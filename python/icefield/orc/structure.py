"""What the metadata of an ORC file says about itself, and whether it agrees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from icefield._support.optional import require

if TYPE_CHECKING:
    import pyarrow as pa

    from icefield.orc.reader import ORCFile

#: A message of the file as JSON, or what is wrong: the fields of a `Problem`.
Record: TypeAlias = "dict[str, Any]"

_INDEXES = frozenset({"ROW_INDEX", "BLOOM_FILTER", "BLOOM_FILTER_UTF8", "ENCRYPTED_INDEX"})
_TEXT = frozenset({"STRING", "CHAR", "VARCHAR"})
#: Streams of a kind of column besides PRESENT and those of indexes.
_STREAMS = {
    **dict.fromkeys(["BOOLEAN", "BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE", "DATE", "UNION"], ("DATA",)),
    **dict.fromkeys(["STRING", "CHAR", "VARCHAR"], ("DATA", "LENGTH", "DICTIONARY_DATA", "DICTIONARY_COUNT")),
    **dict.fromkeys(["BINARY", "GEOMETRY", "GEOGRAPHY"], ("DATA", "LENGTH")),
    **dict.fromkeys(["TIMESTAMP", "TIMESTAMP_INSTANT", "DECIMAL"], ("DATA", "SECONDARY")),
    **dict.fromkeys(["LIST", "MAP"], ("LENGTH",)),
    "STRUCT": (),
}
#: Bytes of the magic at the start of a file.
_HEADER = 3


class Structure:
    """The metadata of a file, as `ORCFile.inspect` gives it."""

    def __init__(self, document: Record, file: ORCFile) -> None:
        self.document, self.file = document, file
        self.footer: Record = document["footer"]
        self.types: list[Record] = self.footer.get("types", [])
        self.stripes: list[Record] = self.footer.get("stripes", [])
        self.stride: int = self.footer.get("row_index_stride", 0)
        self.encrypted = "encryption" in self.footer
        root: Record = self.types[0] if self.types else {"kind": "STRUCT"}
        #: Whether the rows are structs, whose fields are read one by one.
        self.named = root["kind"] == "STRUCT"
        self.children: list[int] = root.get("subtypes", [])
        self.tops = len(self.children) if self.named else 1
        unions = any(kind["kind"] == "UNION" for kind in self.types)
        self.unions = unions
        self.foreign = int(self.footer.get("writer", 0)) == 1
        #: Columns below unions of the C++ library, whose streams and statistics hold more values than there are.
        self.uncounted = _below_unions(self.types) if self.foreign else set()
        #: Whether positions are used: those of unions of the C++ library are not.
        self.seekable = not (self.foreign and unions)

    def slice(self, array: pa.Array, start: int, count: int) -> pa.Array:
        """Return some values of a column."""
        # pyarrow gives the parts of a union without the slice.
        return (
            array.take(require("pyarrow").array(range(start, start + count)))
            if self.unions
            else array.slice(start, count)
        )

    def column(self, top: int) -> int:
        """Return the id of a top-level column."""
        return self.children[top] if self.named else 0

    def rows(self, stripe: int) -> int:
        """Return the number of rows of a stripe."""
        return int(self.stripes[stripe].get("number_of_rows", 0))

    def first_row(self, stripe: int) -> int:
        """Return the number of the first row of a stripe in the file."""
        return sum(self.rows(before) for before in range(stripe))

    def streams(self, stripe: int) -> list[Record]:
        """Return the streams of a stripe."""
        streams: list[Record] = self.document["stripes"][stripe]["streams"]
        return streams

    def encodings(self, stripe: int) -> list[Record]:
        """Return the encodings of a stripe by column."""
        encodings: list[Record] = self.document["stripes"][stripe]["footer"].get("columns", [])
        return encodings

    def index(self, stripe: int, column: int) -> list[Record] | None:
        """Return the entries of the row index of a column, if it has one."""
        entries: list[Record] | None = self.document["stripes"][stripe]["rowIndex"].get(str(column))
        return entries

    def stripe_statistics(self, stripe: int) -> list[Record] | None:
        """Return the statistics of a stripe by column, if the file has them."""
        all_of_them = self.document["stripeStatistics"]
        return all_of_them[stripe].get("col_stats", []) if stripe < len(all_of_them) else None

    def byte(self, stripe: int, column: int, kind: str) -> int | None:
        """Return the first byte of a stream in the file."""
        of_column = [own for own in self.streams(stripe) if own["column"] == column and own["kind"] == kind]
        return int(of_column[-1]["offset"]) if of_column else None


def _below_unions(types: list[Record]) -> set[int]:
    found: set[int] = set()
    for column, kind in enumerate(types):
        if kind["kind"] == "UNION" or column in found:
            found.update(kind.get("subtypes", []))
    return found


def structure_problems(structure: Structure) -> Iterator[Record]:
    """Compare the numbers of the tail and of the stripes' footers with each other."""
    yield from _of_tail(structure)
    for stripe in range(len(structure.stripes)):
        yield from _of_stripe(structure, stripe)


def _of_tail(structure: Structure) -> Iterator[Record]:
    footer, file = structure.footer, structure.file
    if not file.file_length:
        return
    magic = structure.document["postscript"].get("magic", None if file.file_version == "0.11" else "nothing")
    if magic not in (None, "ORC"):
        yield {"place": "postscript", "message": f"the magic is {magic!r}, not 'ORC'"}
    rows = sum(structure.rows(stripe) for stripe in range(len(structure.stripes)))
    if int(footer.get("number_of_rows", 0)) != rows:
        message = f"{footer.get('number_of_rows', 0)} rows, but those of the stripes are {rows}"
        yield {"place": "footer", "message": message}
    end = _HEADER
    for number, stripe in enumerate(structure.stripes):
        start = int(stripe.get("offset", 0))
        if start < end:
            message = f"begins at byte {start}, before the end of what precedes it at {end}"
            yield {"place": f"footer, stripe {number}", "message": message, "stripe": number, "byte": start}
        end = start + sum(int(stripe.get(part, 0)) for part in ("index_length", "data_length", "footer_length"))
    # The C++ library does not count the header.
    content = int(footer.get("content_length", end)) + (_HEADER if structure.foreign else 0)
    if content < end:
        yield {"place": "footer", "message": f"the content has {content} bytes, but its stripes end at byte {end}"}
    encrypted = int(structure.document["postscript"].get("stripe_statistics_length", 0))
    tail = file.stripe_statistics_length + file.file_footer_length + file.file_postscript_length + 1 + encrypted
    if content + tail != file.file_length:
        message = (
            f"content of {content} bytes and a tail of {tail} bytes are not the {file.file_length} bytes of the file"
        )
        yield {"place": "footer", "message": message}
    if int(footer.get("header_length", _HEADER)) != _HEADER:
        yield {"place": "footer", "message": f"a header of {footer['header_length']} bytes, expected 3"}
    yield from _of_statistics(structure)


def _of_statistics(structure: Structure) -> Iterator[Record]:
    columns = len(structure.types)
    if len(structure.document["statistics"]) not in (0, columns):
        message = f"statistics of {len(structure.document['statistics'])} columns, but the file has {columns}"
        yield {"place": "file statistics", "message": message}
    stripes = structure.document["stripeStatistics"]
    if len(stripes) not in (0, len(structure.stripes)):
        message = f"statistics of {len(stripes)} stripes, but the file has {len(structure.stripes)}"
        yield {"place": "stripe statistics", "message": message}


def _of_stripe(structure: Structure, stripe: int) -> Iterator[Record]:
    encodings, place = structure.encodings(stripe), f"stripe {stripe}, footer"
    if len(encodings) != len(structure.types):
        message = f"{len(encodings)} encodings, but the file has {len(structure.types)} columns"
        yield {"place": place, "message": message, "stripe": stripe}
    for column, (encoding, kind) in enumerate(zip(encodings, structure.types, strict=False)):
        dictionary = encoding.get("kind", "DIRECT").startswith("DICTIONARY")
        if dictionary and kind["kind"] not in _TEXT:
            message = f"{encoding['kind']} of a column of kind {kind['kind']}"
            yield {"place": f"{place}, column {column}", "message": message, "stripe": stripe, "column": column}
    yield from _of_streams(structure, stripe)
    yield from _of_indexes(structure, stripe)


def _of_streams(structure: Structure, stripe: int) -> Iterator[Record]:
    known, seen, index = {"PRESENT", *_INDEXES}, set(), 0
    for stream in structure.streams(stripe):
        column, kind = stream["column"], stream["kind"]
        where = {"stripe": stripe, "column": column, "stream": kind, "byte": stream["offset"]}
        name = f"stripe {stripe}, column {column} {kind}"
        index += stream["length"] if kind in _INDEXES else 0
        if column >= len(structure.types):
            yield {"place": name, "message": f"there are only {len(structure.types)} columns", **where}
        elif kind not in known.union(_STREAMS.get(structure.types[column]["kind"], ())):
            message = f"a column of kind {structure.types[column]['kind']} has no such stream"
            yield {"place": name, "message": message, **where}
        if (column, kind, stream.get("variant")) in seen:
            yield {"place": name, "message": "is there twice", **where}
        seen.add((column, kind, stream.get("variant")))
    stored = int(structure.stripes[stripe].get("index_length", 0))
    if stored != index and not structure.encrypted:
        message = f"indexes of {stored} bytes, but their streams have {index}"
        yield {"place": f"footer, stripe {stripe}", "message": message, "stripe": stripe}


def _of_indexes(structure: Structure, stripe: int) -> Iterator[Record]:
    for column in range(len(structure.types)):
        entries = structure.index(stripe, column)
        groups = -(-structure.rows(stripe) // structure.stride) if structure.stride else 0
        sizes = {len(entry.get("positions", [])) for entry in entries or []}
        if len(sizes) > 1:
            where = {"stripe": stripe, "column": column, "stream": "ROW_INDEX"}
            message = f"row groups with {' and '.join(map(str, sorted(sizes)))} positions"
            byte = structure.byte(stripe, column, "ROW_INDEX")
            yield {"place": f"stripe {stripe}, column {column} ROW_INDEX", "message": message, "byte": byte, **where}
        if entries is not None and len(entries) != groups:
            where = {"stripe": stripe, "column": column, "stream": "ROW_INDEX"}
            message = f"{len(entries)} row groups, expected {groups}"
            byte = structure.byte(stripe, column, "ROW_INDEX")
            yield {"place": f"stripe {stripe}, column {column} ROW_INDEX", "message": message, "byte": byte, **where}
