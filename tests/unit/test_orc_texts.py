"""Texts in ORC files are UTF-8, whoever wrote them: what is none is neither written nor read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import icefield as ice
from icefield import orc
from icefield.errors import CorruptDataError, InvalidArgumentError

WRONG = [b"\xff", b"caf\xc3", b"a text that is longer than twelve bytes, but for \xe9"]


def texts(*values: bytes | None, kind: pa.DataType | None = None) -> pa.Array:
    """Make an array of texts that nobody has looked at."""
    kind = kind or pa.string()
    plain = {pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}.get(kind, pa.binary())
    made = pa.array(values, plain)
    return pa.Array.from_buffers(kind, len(made), made.buffers())


LAYOUTS: dict[str, tuple[Callable[..., pa.Array], str]] = {
    "string": (texts, "v"),
    "large string": (lambda *values: texts(*values, kind=pa.large_string()), "v"),
    "view": (lambda *values: texts(*values, kind=pa.string_view()), "v"),
    "dictionary": (lambda *values: pa.DictionaryArray.from_arrays(pa.array(range(len(values))), texts(*values)), "v"),
    "struct": (lambda *values: pa.StructArray.from_arrays([texts(*values)], ["x"]), "v.x"),
    "list": (lambda *values: pa.ListArray.from_arrays(range(len(values) + 1), texts(*values)), "v.item"),
    "keys": (
        lambda *values: pa.MapArray.from_arrays(range(len(values) + 1), texts(*values), pa.array(range(len(values)))),
        "v.key",
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_no_text_is_not_written(tmp_path: Path, layout: str) -> None:
    make, column = LAYOUTS[layout]
    sound = pa.table({"n": [1, 2, 3], "v": make("é".encode(), b"a text that is longer than twelve bytes", b"")})
    path = tmp_path / "t.orc"
    orc.write_table(sound, path)
    assert orc.read_table(path).num_rows == 3
    for wrong in WRONG:
        rows = pa.table({"n": [1, 2, 3], "v": make("é".encode(), wrong, b"a")})
        # Rows are those of the file, in however many pieces they come.
        writer = orc.ORCWriter(tmp_path / "wrong.orc", batch_size=2)
        writer.write(sound)
        with pytest.raises(InvalidArgumentError, match=f"column {column}: row 4 is not UTF-8"):
            writer.write(rows)
        with pytest.raises(InvalidArgumentError):
            writer.close()
    assert [file.name for file in tmp_path.iterdir()] == ["t.orc"]


def test_what_stands_under_nulls_or_outside_of_slices_is_nobodys_text(tmp_path: Path) -> None:
    wrong = texts(b"\xff", b"right", b"\xff")
    under = pa.StructArray.from_arrays([wrong], ["x"], mask=pa.array([True, False, True]))
    lists = pa.ListArray.from_arrays(pa.array([1, 2, 2], pa.int32()), wrong)
    cases = [
        (pa.table({"v": wrong.slice(1, 1)}), ["right"]),
        (pa.table({"v": under}), [None, {"x": "right"}, None]),
        (pa.table({"v": lists}), [["right"], []]),
        (
            pa.table({"v": pa.DictionaryArray.from_arrays(pa.array([1, 1, None], pa.int8()), wrong)}),
            ["right", "right", None],
        ),
    ]
    for rows, expected in cases:
        orc.write_table(rows, tmp_path / "t.orc")
        assert orc.read_table(tmp_path / "t.orc")["v"].to_pylist() == expected


@pytest.mark.parametrize("distinct", [True, False])
def test_what_is_no_text_is_not_read(tmp_path: Path, distinct: bool) -> None:
    path = tmp_path / "t.orc"
    rows = pa.table({"v": [f"text-{n if distinct else 0}-end" for n in range(1000)]})
    orc.write_table(rows, path, compression="uncompressed", row_index_stride=0)  # no bounds before the data
    whole = path.read_bytes()
    place = whole.index(b"text-0-end")
    path.write_bytes(whole[:place] + b"\xff" + whole[place + 1 :])
    with pytest.raises(InvalidArgumentError, match=f"{path}: stripe 0: column 1: text that is not UTF-8"):
        orc.read_table(path)


@pytest.mark.parametrize("columns", [1, 9])
@pytest.mark.parametrize("rows", [1000, 100_000])
def test_scans_name_the_file_of_what_is_no_text(tmp_path: Path, rows: int, columns: int) -> None:
    """Of few rows, of many that threads share, and of columns that they share."""
    values = pa.table({f"v{column}": [f"text-{column}-{n}-end" for n in range(rows)] for column in range(columns)})
    properties = {"write.format.default": "orc", "write.orc.compression-codec": "none"}
    with ice.load_catalog("t", type="in-memory", warehouse=str(tmp_path)) as catalog:
        catalog.create_namespace("a")
        table = catalog.create_table("a.t", values, properties=properties).append(values).append(values)
        path = Path(table.scan().plan_files().files[1]["file_path"].removeprefix("file://"))
        whole = path.read_bytes()
        place = whole.index(b"text-0-77-end")
        path.write_bytes(whole[:place] + b"\xff" + whole[place + 1 :])
        with pytest.raises(CorruptDataError, match=f"{path.name}: .*column 1: text that is not UTF-8") as caught:
            table.scan().to_arrow()
        assert caught.value.file is not None
        assert caught.value.file.endswith(path.name)
