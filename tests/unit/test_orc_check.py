"""``icefield.orc.check``: every kind of damage is found where it is, and nothing in sound files."""

import datetime as dt
import json
import re
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

from icefield import orc
from icefield.cli.commands import icefield
from icefield.errors import MissingFileError
from worlds.wire.protobuf import message, written

ROWS = 2500
SET = Path(__file__).parents[1] / "data" / "orc"
#: Columns of the file that is damaged, by their names.
ID = {
    name: number
    for number, name in enumerate(["id", "word", "text", "real", "exact", "at", "yes", "list", "item", "day", "raw"], 1)
}
KINDS = {
    "PRESENT": 0,
    "DATA": 1,
    "LENGTH": 2,
    "DICTIONARY_DATA": 3,
    "SECONDARY": 5,
    "ROW_INDEX": 6,
    "BLOOM_FILTER_UTF8": 8,
}


def table():
    numbers = range(ROWS)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "word": [None if number % 7 == 0 else f"word {number % 9}" for number in numbers],
            "text": [f"text of {number * 7919 % 10007}" for number in numbers],
            "real": [number * 0.5 for number in numbers],
            "exact": [Decimal(number * 101).scaleb(-2) for number in numbers],
            "at": pa.array([number * 1_000_003 for number in numbers], pa.timestamp("us")),
            "yes": [number % 3 == 0 for number in numbers],
            "list": [list(range(number % 3)) for number in numbers],
            "day": [dt.date(2020, 1, 1) + dt.timedelta(days=number % 400) for number in numbers],
            "raw": [bytes([number % 251]) * (number % 4) for number in numbers],
        }
    )


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("check") / "sound.orc"
    orc.write_table(
        table(),
        path,
        compression="uncompressed",
        row_index_stride=1000,
        stripe_rows=1500,
        bloom_filter_columns=["id", "text"],
    )
    return path.read_bytes()


class Damage:
    """The bytes of a file, and where everything in them is."""

    def __init__(self, data):
        self.data = bytearray(data)
        self.stripes = orc.ORCFile(bytes(data)).inspect()["stripes"]

    def stream(self, stripe, name, kind):
        column = ID[name]
        found = [own for own in self.stripes[stripe]["streams"] if (own["column"], own["kind"]) == (column, kind)]
        return found[0]["offset"], found[0]["length"]

    def flip(self, stripe, name, kind, at, mask):
        offset, length = self.stream(stripe, name, kind)
        self.data[offset + at % length] ^= mask

    def splice(self, start, length, new):
        assert len(new) == length, "a message in place keeps its length"
        self.data[start : start + length] = new

    def in_index(self, stripe, name, group, change):
        """Change an entry of a row index."""
        offset, length = self.stream(stripe, name, "ROW_INDEX")
        entries = message(bytes(self.data[offset : offset + length]))
        entries[group] = (1, written(change(message(entries[group][1]))))
        self.splice(offset, length, written(entries))

    def in_footer_of(self, stripe, change):
        """Change the footer of a stripe."""
        _, footer, _, _ = self.tail()
        place = dict(message([own for number, own in footer if number == 3][stripe]))
        start = place[1] + place[2] + place[3]
        self.splice(start, place[4], written(change(message(bytes(self.data[start : start + place[4]])))))

    def tail(self):
        length = self.data[-1]
        postscript = message(bytes(self.data[-1 - length : -1]))
        sizes = dict(postscript)
        end = len(self.data) - 1 - length
        footer = message(bytes(self.data[end - sizes[1] : end]))
        start = end - sizes[1] - sizes[5]
        return postscript, footer, message(bytes(self.data[start : end - sizes[1]])), start

    def retail(self, footer=None, metadata=None, postscript=None):
        """Write the tail again with changed messages; the lengths in the postscript follow."""
        own, own_footer, own_metadata, start = self.tail()
        body, section = written(footer or own_footer), written(metadata or own_metadata)
        lengths = {1: len(body), 5: len(section)}
        last = written(postscript or [(number, lengths.get(number, value)) for number, value in own])
        self.data[start:] = section + body + last + bytes([len(last)])


def put(number, value, fields):
    """Set a field."""
    assert any(own == number for own, _ in fields)
    return [(own, value if own == number else old) for own, old in fields]


def inside(path, change, fields):
    """Change a message at a path of (number, place among those of this number)."""
    if not path:
        return change(fields)
    (number, place), rest = path[0], path[1:]
    at = [index for index, (own, _) in enumerate(fields) if own == number][place]
    fields = list(fields)
    fields[at] = (number, written(inside(rest, change, message(fields[at][1]))))
    return fields


def footer(path, change):
    return lambda damage: damage.retail(footer=inside(path, change, damage.tail()[1]))


def metadata(path, change):
    return lambda damage: damage.retail(metadata=inside(path, change, damage.tail()[2]))


def flip(stripe, name, kind, at, mask=0xFF):
    return lambda damage: damage.flip(stripe, name, kind, at, mask)


def in_index(stripe, name, group, path, change):
    return lambda damage: damage.in_index(stripe, name, group, lambda entry: inside(path, change, entry))


def in_stripe(stripe, path, change):
    return lambda damage: damage.in_footer_of(stripe, lambda own: inside(path, change, own))


def of_stream(damage_or_data, stripe, name, kind):
    """Give the place of a stream among those of its stripe."""
    streams = orc.ORCFile(bytes(damage_or_data.data)).inspect()["stripes"][stripe]["streams"]
    return [(own["column"], own["kind"]) for own in streams].index((ID[name], kind))


def moved(stripe, name, kind, field, value):
    """Change a stream in the footer of a stripe."""

    def damage(of):
        place = of_stream(of, stripe, name, kind)
        of.in_footer_of(stripe, lambda own: inside([(1, place)], lambda stream: put(field, value, stream), own))

    return damage


def cut(data, count):
    def damage(of):
        del of.data[len(of.data) - count :]

    return damage


def more(number, by=1):
    """Add to a number."""
    return lambda fields: [(own, value + by if own == number else value) for own, value in fields]


#: What is done, and what the first problem says.
DAMAGES = {
    # The tail.
    "the file is cut": (cut(None, 40), "postscript"),
    "the length of the postscript": (lambda of: of.data.__setitem__(-1, 3), "postscript"),
    "the magic": (lambda of: of.data.__setitem__(slice(-4, -1), b"CRO"), "version|magic|postscript|footer"),
    "an unknown codec": (lambda of: of.retail(postscript=put(2, 77, of.tail()[0])), "compression|77"),
    "the length of the footer": (lambda of: of.retail(postscript=more(1, 3)(of.tail()[0])), "metadata|footer"),
    "rows of the footer": (footer([], more(6)), r"^footer: 2501 rows, but those of the stripes are 2500"),
    "content of the footer": (footer([], more(2, 5)), r"^footer: content of \d+ bytes and a tail"),
    "header of the footer": (footer([], more(1)), r"^footer: a header of 4 bytes"),
    "rows of a stripe": (footer([(3, 1)], more(5)), r"stripe 1|^footer: 2500 rows"),
    "offset of a stripe": (footer([(3, 1)], more(1, -9)), "stripe 1"),
    "index of a stripe": (footer([(3, 0)], more(2)), "stripe 0"),
    "data of a stripe": (footer([(3, 0)], more(3)), "stripe 0"),
    "a type": (footer([(4, 1)], lambda _: [(1, 1)]), "column 1"),
    "a missing type": (
        footer([], lambda own: [field for field in own if field[0] != 4]),
        "type",
    ),
    # Statistics.
    "values of the file": (footer([(7, 1)], more(1)), r"file statistics, column 1: number_of_values is 2501"),
    "the maximum of the file": (footer([(7, 1), (2, 0)], more(2, 2)), r"file statistics, column 1: maximum is 2500"),
    "the sum of the file": (footer([(7, 1), (2, 0)], more(3, 2)), r"file statistics, column 1: sum is"),
    "the text of the file": (
        footer([(7, 3), (4, 0)], lambda own: put(1, b"text of 1", own)),
        r"file statistics, column 3: minimum is text of 1,",
    ),
    "true values of the file": (
        footer([(7, 7), (5, 0)], lambda _: [(1, b"\x05")]),
        r"file statistics, column 7: count is 5",
    ),
    "nulls of the file": (
        footer([(7, 2)], lambda own: put(10, 0, own)),
        r"file statistics, column 2: has_null is false",
    ),
    "lengths of the file": (footer([(7, 8), (12, 0)], more(2)), r"file statistics, column 8: max_children is 3"),
    "values of a stripe": (
        metadata([(1, 0), (1, 4)], more(1)),
        r"stripe 0 statistics, column 4: number_of_values is 1501",
    ),
    "a decimal of a stripe": (
        metadata([(1, 1), (1, 5), (6, 0)], lambda own: put(2, b"9999", own)),
        r"stripe 1 statistics, column 5: maximum is 9999",
    ),
    "a day of a stripe": (
        metadata([(1, 0), (1, 10), (7, 0)], more(1, 2)),
        r"stripe 0 statistics, column 10: minimum is",
    ),
    "bytes of a stripe": (metadata([(1, 0), (1, 11), (8, 0)], more(1, 2)), r"stripe 0 statistics, column 11: sum is"),
    "a time of a stripe": (
        metadata([(1, 0), (1, 6), (9, 0)], more(4, 2)),
        r"stripe 0 statistics, column 6: maximum_utc is",
    ),
    "statistics of a stripe": (metadata([], lambda own: own[:1]), r"^stripe statistics: statistics of 1 stripes"),
    # The row index.
    "values of a row group": (
        in_index(0, "id", 1, [(2, 0)], more(1, -1)),
        r"stripe 0, column 1 ROW_INDEX, row group 1, statistics",
    ),
    "the minimum of a row group": (
        in_index(1, "id", 0, [(2, 0), (2, 0)], more(1, 2)),
        r"stripe 1, column 1 ROW_INDEX, row group 0, statistics",
    ),
    "first positions": (
        in_index(0, "id", 0, [], lambda own: put(1, b"\x01\x00", own)),
        r"stripe 0, column 1 ROW_INDEX, row group 0 .*not zeros",
    ),
    "a position": (
        in_index(0, "real", 1, [], lambda own: put(1, b"\xc8\x3e", own)),
        r"stripe 0, column 4 ROW_INDEX, row group 1",
    ),
    "a position of runs": (flip(0, "word", "ROW_INDEX", -1, 0x01), r"column 2"),
    "a row group": (in_index(0, "yes", 0, [], lambda own: [(3, own[0][1]), *own[1:]]), r"column 7 ROW_INDEX"),
    # Bloom filters.
    "a Bloom filter": (flip(0, "id", "BLOOM_FILTER_UTF8", 40), r"stripe 0, column 1 BLOOM_FILTER_UTF8, row group 0"),
    "a Bloom filter of text": (
        flip(1, "text", "BLOOM_FILTER_UTF8", 40),
        r"stripe 1, column 3 BLOOM_FILTER_UTF8, row group 0",
    ),
    # The footers of stripes.
    "the encoding of a number": (in_stripe(0, [(2, 1)], lambda own: put(1, 3, own)), r"column 1|footer"),
    "the size of a dictionary": (in_stripe(0, [(2, 2)], more(2)), r"column 2"),
    "the column of a stream": (moved(0, "real", "DATA", 2, 9), r"column 4|column 9"),
    "the kind of a stream": (moved(0, "raw", "LENGTH", 1, 5), r"column 11"),
    "a stream without a column": (moved(0, "raw", "DATA", 2, 99), r"column 99|column 11"),
    # Streams.
    "values": (flip(0, "id", "DATA", 0), r"stripe 0, column 1"),
    "doubles": (flip(1, "real", "DATA", 806, 0x40), r"stripe 1, column 4"),
    "presence": (flip(0, "word", "PRESENT", 3), r"stripe 0, column 2"),
    "ids of a dictionary": (flip(0, "word", "DATA", 40), r"stripe 0, column 2"),
    "a dictionary": (flip(1, "word", "DICTIONARY_DATA", 2), r"stripe 1, column 2"),
    "lengths of a dictionary": (flip(1, "word", "LENGTH", -1, 0x04), r"stripe 1, column 2"),
    "text": (flip(0, "text", "DATA", 5, 0x80), r"stripe 0, column 3.*UTF-8"),
    "lengths of text": (flip(0, "text", "LENGTH", 0, 0x02), r"stripe 0, column 3"),
    "decimals": (flip(0, "exact", "DATA", 500, 0x02), r"stripe 0, column 5"),
    "decimals that merge": (flip(0, "exact", "DATA", -1, 0x80), r"stripe 0, column 5"),
    "scales": (flip(0, "exact", "SECONDARY", 1, 0x02), r"stripe 0, column 5"),
    "seconds": (flip(0, "at", "DATA", 4, 0x02), r"stripe 0, column 6"),
    "nanoseconds": (flip(1, "at", "SECONDARY", 0, 0xFF), r"stripe 1, column 6"),
    "booleans": (flip(0, "yes", "DATA", 9, 0x10), r"stripe 0, column 7"),
    "lengths of lists": (flip(0, "list", "LENGTH", 8, 0x08), r"stripe 0, column [89]"),
    "elements": (flip(0, "item", "DATA", 8, 0x01), r"stripe 0, column 9"),
    "days": (flip(1, "day", "DATA", 0, 0x81), r"stripe 1, column 10"),
    "lengths of bytes": (flip(1, "raw", "LENGTH", 6, 0x08), r"stripe 1, column 11"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_each_damage_is_found_where_it_is(name, sound):
    damage = Damage(sound)
    make, expected = DAMAGES[name]
    make(damage)
    assert bytes(damage.data) != sound
    problems = orc.check(bytes(damage.data))
    assert problems, "nothing was found"
    assert re.search(expected, str(problems[0])), str(problems[0])


def test_there_are_enough_damages():
    assert len(DAMAGES) >= 40


def test_a_problem_says_where_it_is(sound):
    damage = Damage(sound)
    damage.flip(1, "text", "BLOOM_FILTER_UTF8", 40, 0xFF)
    [problem] = orc.check(bytes(damage.data))
    offset, _ = damage.stream(1, "text", "BLOOM_FILTER_UTF8")
    assert (problem.stripe, problem.column, problem.stream, problem.row_group, problem.byte) == (
        1,
        3,
        "BLOOM_FILTER_UTF8",
        0,
        offset,
    )


def test_the_command(sound, tmp_path):
    (tmp_path / "sound.orc").write_bytes(sound)
    damage = Damage(sound)
    damage.flip(0, "id", "DATA", 0, 0xFF)
    (tmp_path / "bad.orc").write_bytes(damage.data)
    good = CliRunner().invoke(icefield, ["orc", "check", str(tmp_path / "sound.orc")])
    assert (good.exit_code, good.output) == (0, f"{tmp_path / 'sound.orc'}: nothing is wrong\n")
    bad = CliRunner().invoke(icefield, ["orc", "check", str(tmp_path / "bad.orc")])
    assert bad.exit_code == 1
    assert bad.output.startswith("stripe 0, column 1")
    document = json.loads(CliRunner().invoke(icefield, ["--json", "orc", "check", str(tmp_path / "bad.orc")]).output)
    assert document[0]["column"] == 1
    with pytest.raises(MissingFileError):
        orc.check(tmp_path / "none.orc")


def golden():
    """Give a part of the set: all files take 40 seconds."""
    slow = {"bloom_original", "bloom_utf8", "shape_wide", "prune_sorted"}
    files = [path for path in sorted((SET / "files").glob("*.orc")) if path.stem not in slow]
    return files[::4]


@pytest.mark.parametrize("path", golden(), ids=lambda path: path.stem)
def test_nothing_is_found_in_sound_files(path):
    found = [str(problem) for problem in orc.check(path) if "is not UTF-8" not in problem.message]
    assert found == []


def test_text_that_is_not_utf8_is_found():
    problems = orc.check(SET / "files" / "string_not_utf8.orc")
    assert {(problem.column, problem.message) for problem in problems} == {
        (1, "a text is not UTF-8"),
        (2, "a text is not UTF-8"),
    }


def test_damaged_files_of_the_set_are_found():
    # A filter without bits excludes nothing, as it may.
    files = [path for path in sorted((SET / "corrupt").glob("*.orc")) if path.stem != "bloom_empty"]
    assert len(files) > 50
    assert [path.stem for path in files if not orc.check(path)] == []
