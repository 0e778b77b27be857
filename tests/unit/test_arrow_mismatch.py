"""Arrow data that are not what their schema says: refused before anything looks at them.

The cases run in a process of their own: a mismatch that is missed may end it, and then another one runs the rest.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PRELUDE = '''
import ctypes, os, sys
import pyarrow as pa
import icefield as ice
from icefield import orc
from icefield._core import ArrowTable
from icefield.errors import IcefieldError

folder = sys.argv[1]
catalog = ice.load_catalog("odd", type="in-memory", warehouse=folder)
catalog.create_namespace("a")

def reader(schema, *batches):
    return pa.RecordBatchReader.from_batches(schema, iter(batches))

def batch(**columns):
    return pa.record_batch({name: column for name, column in columns.items()})

class Foreign:
    """Rows that another library might hand over: one struct array under a type of ours."""
    def __init__(self, schema, array):
        self.schema, self.array = schema, array
    def __arrow_c_array__(self, requested_schema=None):
        return self.schema.__arrow_c_schema__(), self.array.__arrow_c_array__()[1]

def refused(name, rows, schema):
    table = catalog.create_table(f"a.{name}", schema)
    doings = [
        lambda rows: table.append(rows),
        lambda rows: ice.expressions.parse("s IS NULL").evaluate(rows),
        lambda rows: orc.write_table(rows, os.path.join(folder, name + ".orc")),
        lambda rows: ArrowTable(rows),
    ]
    for number, doing in enumerate(doings):
        try:
            doing(rows())
        except IcefieldError as error:
            assert type(error).__name__ != "InternalError", error
        except ValueError as error:
            pass
        else:
            raise SystemExit(f"{name}: taken by {number}")
    assert table.scan().count() == 0
    print(name)

def raw(array):
    """The struct ArrowArray of an array, to be changed in place; with the capsule that owns it."""
    class Array(ctypes.Structure):
        pass
    Array._fields_ = [(n, ctypes.c_int64) for n in ("length", "null_count", "offset", "n_buffers", "n_children")] + [
        ("buffers", ctypes.POINTER(ctypes.c_void_p)), ("children", ctypes.POINTER(ctypes.POINTER(Array))),
        ("dictionary", ctypes.POINTER(Array)), ("release", ctypes.c_void_p), ("private", ctypes.c_void_p)]
    schema, capsule = array.__arrow_c_array__()
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return schema, capsule, ctypes.cast(get(capsule, b"arrow_array"), ctypes.POINTER(Array)).contents

class Changed:
    def __init__(self, rows, change):
        self.rows, self.change = rows, change
    def __arrow_c_array__(self, requested_schema=None):
        schema, capsule, array = raw(self.rows)
        self.change(array)
        return schema, capsule

def offsets(*numbers):
    """Other offsets for the first column."""
    kept = (ctypes.c_int32 * len(numbers))(*numbers)
    def change(array):
        array.children[0].contents.buffers[1] = ctypes.addressof(kept)
    return change

text = pa.schema([("s", pa.string())])
lists = pa.schema([("s", pa.list_(pa.int64()))])
structs = pa.schema([("s", pa.struct([("d", pa.int64())]))])
two = pa.schema([("s", pa.string()), ("n", pa.int64())])
'''

CASES = {
    "columns": "refused('columns', lambda: reader(two, batch(s=['x'])), two)",
    "types": "refused('types', lambda: reader(text, batch(s=pa.array([1]))), text)",
    "wide": "refused('wide', lambda: reader(pa.schema([('s', pa.large_string())]), batch(s=['x', 'yy'])), text)",
    "narrow": "refused('narrow', lambda: reader(text, batch(s=pa.array(['x', 'yy'], pa.large_string()))), text)",
    "names": "refused('names', lambda: reader(pa.schema([('s', pa.string()), ('t', pa.string())]),"
    " batch(t=['x'], s=['y'])), pa.schema([('s', pa.string()), ('t', pa.string())]))",
    "foreign_wide": "refused('foreign_wide', lambda: Foreign(pa.schema([('s', pa.large_string())]),"
    " batch(s=['x' * 9] * 6)), text)",
    "foreign_narrow": "refused('foreign_narrow', lambda: Foreign(text,"
    " batch(s=pa.array(['x' * 9] * 50, pa.large_string()))), text)",
    "foreign_list": "refused('foreign_list', lambda: Foreign(lists,"
    " batch(s=pa.array([[1]] * 50, pa.large_list(pa.int64())))), lists)",
    "foreign_children": "refused('foreign_children', lambda: Foreign(two, batch(s=['x'])), two)",
    "foreign_buffers": "refused('foreign_buffers', lambda: Foreign(text, batch(s=pa.array([1, 2]))), text)",
    "backwards": "change = offsets(5, 5, 1)\nrefused('backwards', lambda: Changed(batch(s=['x', 'y']), change), text)",
    "negative": "change = offsets(-4, 0, 2)\nrefused('negative', lambda: Changed(batch(s=['x', 'y']), change), text)",
    "list_beyond": "change = offsets(0, 900)\nrefused('list_beyond', lambda: Changed(batch(s=[[1]]), change), lists)",
    "list_backwards": "change = offsets(0, 2, 1, 2)\n"
    "refused('list_backwards', lambda: Changed(batch(s=[[1], [2], []]), change), lists)",
    "struct_short": "def change(array): array.length = array.children[0].contents.length = 90\n"
    "refused('struct_short', lambda: Changed(batch(s=[{'d': 1}]), change), structs)",
    "zigzag": "import struct\noffsets = pa.py_buffer(struct.pack('<4i', 0, 5, 2, 8))\n"
    "bad = pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b'abcdefgh')])\n"
    "refused('zigzag', lambda: pa.record_batch([bad], names=['s']), text)",
    "not_text": "import struct\noffsets = pa.py_buffer(struct.pack('<2i', 0, 2))\n"
    "bad = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(bytes([255, 254]))])\n"
    "refused('not_text', lambda: pa.record_batch([bad], names=['s']), text)",
    "split_text": "import struct\noffsets = pa.py_buffer(struct.pack('<3i', 0, 1, 2))\n"
    "bad = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer('é'.encode())])\n"
    "refused('split_text', lambda: pa.record_batch([bad], names=['s']), text)",
    "nested_not_text": "import struct\noffsets = pa.py_buffer(struct.pack('<3i', 0, 1, 3))\n"
    "bad = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(bytes([97, 255, 254]))])\n"
    "nested = pa.ListArray.from_arrays([0, 1, 2], pa.StructArray.from_arrays([bad], ['d']))\n"
    "rows = lambda: pa.record_batch([nested], names=['s'])\n"
    "try:\n    ArrowTable(rows())\n"
    "except IcefieldError as error:\n    assert 'column s.item.d: row 1 is no UTF-8' in str(error), error\n"
    "refused('nested_not_text', rows, pa.schema([('s', nested.type)]))",
    "dictionary_not_text": "import struct\noffsets = pa.py_buffer(struct.pack('<2i', 0, 2))\n"
    "bad = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(bytes([255, 254]))])\n"
    "bad = pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), bad, safe=False)\n"
    "refused('dictionary_not_text', lambda: pa.record_batch([bad], names=['s']), text)",
    "view_not_text": "import struct\nviews = pa.py_buffer(struct.pack('<i12s', 2, bytes([255, 254])))\n"
    "bad = pa.Array.from_buffers(pa.string_view(), 1, [None, views])\n"
    "refused('view_not_text', lambda: pa.record_batch([bad], names=['s']), text)",
    "transform_not_text": "import struct\noffsets = pa.py_buffer(struct.pack('<2i', 0, 2))\n"
    "bad = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(bytes([255, 254]))])\n"
    "try:\n    ice.transforms.truncate(1)(bad)\n"
    "except IcefieldError as error:\n    print('transform_not_text', error)",
    "text_under_null": "import struct\noffsets = pa.py_buffer(struct.pack('<3i', 0, 2, 3))\n"
    "odd = pa.py_buffer(bytes([255, 254, 97]))\n"
    "odd = pa.Array.from_buffers(pa.string(), 2, [pa.py_buffer(bytes([2])), offsets, odd])\n"
    "rows = pa.record_batch([odd], names=['s'])\n"
    "assert ice.expressions.parse('s IS NULL').evaluate(rows).to_pylist() == [True, False]\n"
    "assert ArrowTable(rows).num_rows == 2\nprint('text_under_null')",
    "dictionary": "bad = pa.DictionaryArray.from_arrays(pa.array([0, 7], pa.int32()), ['x'], safe=False)\n"
    "refused('dictionary', lambda: pa.record_batch([bad], names=['s']), text)",
    "nested_dictionary": "bad = pa.DictionaryArray.from_arrays(pa.array([0, -7], pa.int8()), ['x'], safe=False)\n"
    "st = pa.StructArray.from_arrays([bad], ['d'])\n"
    "refused('nested_dictionary', lambda: pa.record_batch([st], names=['s']),"
    " pa.schema([('s', pa.struct([('d', pa.string())]))]))",
    "length": "def change(array): array.length = -1\nrefused('length', lambda: Changed(batch(s=['x']), change), text)",
    "huge": "def change(array): array.children[0].contents.length = 1 << 62\n"
    "refused('huge', lambda: Changed(batch(s=['x']), change), text)",
    "offset": "def change(array): array.children[0].contents.offset = -(1 << 40)\n"
    "refused('offset', lambda: Changed(batch(s=['x']), change), text)",
    "null_count": "def change(array): array.children[0].contents.null_count = 5\n"
    "refused('null_count', lambda: Changed(batch(s=['x', 'y']), change), text)",
    "nulls_unseen": "def change(array): array.children[0].contents.null_count = 1\n"
    "refused('nulls_unseen', lambda: Changed(batch(s=['x', 'y']), change), text)",
    "no_children": "def change(array): array.n_children = 0\n"
    "refused('no_children', lambda: Changed(batch(s=['x']), change), text)",
    "no_buffers": "def change(array): array.children[0].contents.n_buffers = 1\n"
    "refused('no_buffers', lambda: Changed(batch(s=['x']), change), text)",
    "buffer_missing": "def change(array): array.children[0].contents.buffers[1] = None\n"
    "refused('buffer_missing', lambda: Changed(batch(s=['x']), change), text)",
    "numbers_missing": "def change(array): array.children[0].contents.buffers[1] = None\n"
    "refused('numbers_missing', lambda: Changed(batch(s=pa.array([1, 2])), change), pa.schema([('s', pa.int64())]))",
    "view_beyond": "import struct\nviews = pa.py_buffer(struct.pack('<i4sii', 20, b'abcd', 3, 900))\n"
    "bad = pa.Array.from_buffers(pa.string_view(), 1, [None, views])\n"
    "refused('view_beyond', lambda: pa.record_batch([bad], names=['s']), text)",
    "transform": "bad = pa.DictionaryArray.from_arrays(pa.array([0, 7], pa.int32()), ['x'], safe=False)\n"
    "try:\n    ice.transforms.bucket(4)(bad)\n"
    "except (IcefieldError, ValueError):\n    print('transform')",
    **{
        f"transform_{name}": "import numpy as np\n"
        # Long enough for the threads, and short; the fault is in the last of the chunks.
        "for rows in (5, 200_000):\n"
        f"    bad = {bad}\n"
        "    for transform in ('bucket[4]', 'truncate[1]', 'truncate[50]', 'identity', 'void'):\n"
        "        try:\n            ice.transforms.parse(transform)(bad)\n"
        "        except ice.errors.InvalidArgumentError as error:\n            pass\n"
        "        else:\n            raise SystemExit(f'{transform} of {rows} rows was taken')\n"
        f"print('transform_{name}')"
        for name, bad in {
            "offsets": "pa.Array.from_buffers(pa.string(), rows, [None, pa.py_buffer(np.append(np.arange(rows,"
            " dtype=np.int32), np.int32(rows - 3))), pa.py_buffer(b'x' * rows)])",
            "binary_offsets": "pa.Array.from_buffers(pa.large_binary(), rows, [None, pa.py_buffer(np.append("
            "np.arange(rows), rows - 3)), pa.py_buffer(b'x' * rows)])",
            "views": "pa.Array.from_buffers(pa.string_view(), rows, [None, pa.py_buffer(np.array([20, 0, 0, 1 << 20] *"
            " rows, np.uint32)), pa.py_buffer(bytes(20))])",
            "binary_views": "pa.Array.from_buffers(pa.binary_view(), rows, [None, pa.py_buffer(np.array([0, 0, 0, 0] *"
            " (rows - 1) + [2, 0x616161, 0, 0], np.uint32))])",
        }.items()
    },
    "null_counts_counted": "def change(array): array.children[0].contents.null_count = 0\n"
    "table = catalog.create_table('a.counted', text)\n"
    "table.append(Changed(batch(s=['x', None]), change))\n"
    "assert table.scan().to_arrow()['s'].to_pylist() == ['x', None]\nprint('null_counts_counted')",
}


RUNNER = """
import contextlib, io, json, traceback

for name, code in json.load(sys.stdin).items():
    print("begin", json.dumps(name), flush=True)
    said, error = io.StringIO(), None
    try:
        with contextlib.redirect_stdout(said):
            exec(code, dict(globals()))
        if name not in said.getvalue():
            error = "not refused"
    except BaseException:
        error = traceback.format_exc()
    print("end", json.dumps(error), flush=True)
"""


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str | None]:
    """Run all cases and return what was wrong with each."""
    found: dict[str, str | None] = {}
    while len(found) < len(CASES):
        left = {name: code for name, code in CASES.items() if name not in found}
        run = subprocess.run(
            [sys.executable, "-c", PRELUDE + RUNNER, str(tmp_path_factory.mktemp("cases"))],
            input=json.dumps(left),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        name = next(iter(left))
        for line in run.stdout.splitlines():
            what, _, value = line.partition(" ")
            if what == "begin":
                name = json.loads(value)
                found[name] = f"the process ended with {run.returncode}: {run.stderr[-1000:]}"
            elif what == "end":
                found[name] = json.loads(value)
        if not run.stdout:
            found[name] = f"nothing ran: {run.stderr[-1000:]}"
    return found


@pytest.mark.parametrize("name", CASES)
def test_data_that_do_not_match_are_refused(name: str, errors: dict[str, str | None]) -> None:
    assert errors[name] is None, errors[name]


def test_sound_data_of_odd_layout_are_taken(tmp_path: Path) -> None:
    code = """
import datetime
columns = {
    "sliced": pa.array(["a", None, "ü", "dd"]).slice(1, 2),
    "empty": pa.array(["", ""]),
    "dictionary": pa.array(["x", None]).dictionary_encode(),
    "lists": pa.array([[1], None]),
    "maps": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
    "views": pa.array(["x" * 40, None], pa.string_view()),
    "structs": pa.array([{"a": 1}, None], pa.struct([("a", pa.int64())])),
    "fixed": pa.array([b"ab", None], pa.binary(2)),
}
rows = pa.table(columns)
assert ArrowTable(rows).to_pyarrow().to_pydict() == rows.to_pydict()
assert ArrowTable(rows.to_reader()).to_pyarrow().to_pydict() == rows.to_pydict()
assert ArrowTable(rows.slice(1)).to_pyarrow().to_pydict() == rows.slice(1).to_pydict()
assert ArrowTable(rows.slice(0, 0)).num_rows == 0
"""
    run = subprocess.run(
        [sys.executable, "-c", PRELUDE + code, str(tmp_path)], capture_output=True, text=True, timeout=300, check=False
    )
    assert run.returncode == 0, run.stderr[-2000:]
