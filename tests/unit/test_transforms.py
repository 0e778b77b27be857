"""Transforms of arrays of every library, and of single values."""

import ctypes
import datetime as dt
import os
import pickle
import struct
import subprocess
import sys
import threading
import time

import polars as pl
import pyarrow as pa
import pytest

import icefield as ice
from icefield import errors
from icefield.transforms import Transform, bucket, day, hour, identity, month, parse, truncate, void, year

INSTANT = dt.datetime(2017, 11, 16, 22, 31, 8, tzinfo=dt.timezone.utc)
TEXTS = ["iceberg", None, "", "Straße", "a text that is longer than twelve bytes"]


def test_the_values_of_the_specification():
    assert ice.murmur3_32(b"iceberg") == 1210000089
    assert ice.murmur3_32(b"\0\1\2\3") == -188683207
    assert bucket(16).scalar(34, type="long") == bucket(16).scalar(34, type="int") == (2017239379 & 0x7FFFFFFF) % 16
    assert truncate(50).scalar("10.65", type="decimal(9, 2)") == ice.values.from_json('"10.50"', "decimal(9, 2)")
    assert [truncate(10).scalar(value, type="int") for value in (1, -1)] == [0, -10]


@pytest.mark.parametrize(
    ("array", "transform", "expected"),
    [
        (pa.array([34, None, -1]), truncate(10), pa.array([30, None, -10])),
        (pa.array([INSTANT, None]), year, pa.array([47, None], pa.int32())),
        (pa.array([INSTANT, None]), month, pa.array([574, None], pa.int32())),
        (pa.array([INSTANT, None]), day, pa.array([INSTANT.date(), None])),
        (pa.array([INSTANT, None]), hour, pa.array([419686, None], pa.int32())),
        (pa.array(TEXTS), truncate(5), pa.array(["icebe", None, "", "Straß", "a tex"])),
        (
            pa.array(TEXTS, pa.string_view()),
            truncate(5),
            pa.array(["icebe", None, "", "Straß", "a tex"], pa.string_view()),
        ),
        (pa.array(TEXTS), identity, pa.array(TEXTS)),
        (pa.array(TEXTS), void, pa.nulls(5, pa.string())),
        (pa.array([], pa.date32()), year, pa.array([], pa.int32())),
    ],
)
def test_arrays(array, transform, expected):
    result = transform(array)
    result.validate(full=True)
    assert result.equals(expected)
    assert transform(array.slice(1)).equals(expected.slice(1))


@pytest.mark.parametrize(
    "type_", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_buckets_do_not_depend_on_the_layout(type_):
    array = pa.array(TEXTS, pa.string()).cast(type_)
    expected = [None if text is None else bucket(7).scalar(text, type="string") for text in TEXTS]
    assert bucket(7)(array).to_pylist() == expected
    assert bucket(7)(array).type == pa.int32()


def test_other_libraries_and_chunks():
    expected = bucket(16)(pa.array(TEXTS))
    assert bucket(16)(pa.chunked_array([TEXTS[:2], TEXTS[2:]])).equals(expected)
    assert bucket(16)(pl.Series(TEXTS)).equals(expected)
    assert pl.Series(bucket(16).array(pl.Series(TEXTS))).to_list() == expected.to_pylist()


def test_texts_objects_and_copies():
    assert parse("bucket[16]") == bucket(16) == Transform("BUCKET[16]") == pickle.loads(pickle.dumps(bucket(16)))
    assert len({bucket(16), parse("bucket[16]"), bucket(17)}) == 2
    assert [str(t) for t in (identity, void, year, truncate(4))] == ["identity", "void", "year", "truncate[4]"]
    assert repr(year) == "Transform('year')".replace("'", '"')
    assert bucket(4) != "bucket[4]"


def test_result_types():
    assert str(bucket(16).result_type("long")) == "int"
    assert str(day.result_type("timestamptz_ns")) == "date"
    assert (hour.result_type("date"), bucket(4).result_type("double")) == (None, None)


def test_human_strings():
    assert month.to_human_string("date", 574) == "2017-11"
    assert identity.to_human_string("timestamptz", INSTANT) == "2017-11-16T22:31:08+00:00"
    assert identity.to_human_string("binary", b"\0\1") == "AAE="
    assert bucket(4).to_human_string("string", None) == "null"
    with pytest.warns(DeprecationWarning, match="pass the type first") as warned:
        assert month.to_human_string(574, "date") == "2017-11"
    assert [warning.filename for warning in warned] == [__file__]


def test_unknown_transforms_are_kept_and_refused():
    transform = parse("zorder[2]")
    assert (str(transform), transform.is_known, transform.preserves_order) == ("zorder[2]", False, False)
    with pytest.raises(errors.UnsupportedFeatureError, match=r"zorder\[2\]"):
        transform(pa.array([1]))
    with pytest.raises(errors.UnsupportedFeatureError):
        transform.scalar(1, type="int")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bucket(16)(pa.array([1.5])), r"bucket\[16\] does not take Arrow type Float64"),
        (lambda: hour(pa.array([dt.date(2020, 1, 1)])), "hour does not take Arrow type Date32"),
        (lambda: bucket(16).scalar(1.5, type="double"), "does not take type double"),
        (lambda: hour(pa.array([2**63 - 1]).view(pa.timestamp("us"))), r"does not fit 32 bits \(row 0\)"),
        (
            lambda: hour(pa.array([0, 0, 2**63 - 1, 0]).view(pa.timestamp("us")).dictionary_encode()),
            r"does not fit 32 bits \(row 2\)",
        ),
        (lambda: parse("bucket[0]"), "must be between 1 and 2147483647"),
        (lambda: bucket(0), "must be a positive integer"),
        (lambda: truncate(2**31), "must be between"),
        (lambda: bucket(16, pa.array([1])), r"bucket takes its number alone.*: bucket\(16\)\(values\)"),
        (lambda: bucket(pa.array([1]), 16), r"bucket takes its number alone.*: bucket\(16\)\(values\)"),
        (lambda: truncate(pa.array([1])), r"truncate takes its number alone"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_apply_is_a_call():
    values = pa.array([34, None])
    assert ice.transforms.BucketTransform(16).apply(values) == bucket(16)(values)


def test_arrays_only():
    with pytest.raises(TypeError, match="__arrow_c_array__"):
        year([1, 2])


def turns_during(call):
    """Count the turns that this thread takes while another one is inside of one call."""
    turns, state = 0, "before"

    def work():
        nonlocal state
        state = "inside"
        call()
        state = "after"

    # With such an interval threads change only where one lets the lock go: never between two steps of bytecode.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(100)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        while state != "after":
            turns += state == "inside"
            time.sleep(0)
        thread.join()
    finally:
        sys.setswitchinterval(interval)
    return turns


def test_the_interpreter_is_free_meanwhile():
    array = pa.array(range(3_000_000))
    assert turns_during(lambda: bucket(16)(array)) > 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_held_lock_lets_no_other_thread_run():
    """The measure of the test above: C's ``usleep``, called with the lock held."""
    usleep = ctypes.PyDLL(None).usleep
    assert turns_during(lambda: usleep(100_000)) == 0


def test_no_pyarrow_on_import():
    code = "import sys, icefield.transforms, icefield.values; sys.exit('pyarrow' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_text_that_is_not_utf8():
    """Buckets hash the bytes; what a transform returns of a text is checked, and only that."""
    offsets = pa.py_buffer(struct.pack("<3i", 0, 2, 6))
    texts = pa.py_buffer(bytes([97, 254, 97, 98, 254, 100]))
    texts = pa.Array.from_buffers(pa.string(), 2, [None, offsets, texts])
    assert ice.transforms.bucket(4)(texts).equals(ice.transforms.bucket(4)(texts.cast(pa.binary())))
    assert ice.transforms.truncate(1)(texts).to_pylist() == ["a", "a"]
    for transform in ("truncate[2]", "identity"):
        with pytest.raises(ice.errors.InvalidArgumentError, match="row 0 is no UTF-8"):
            ice.transforms.parse(transform)(texts)
