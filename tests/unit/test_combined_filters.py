"""Filters that are joined stay two filters, whatever their text."""

import datetime as dt
import pickle

import pyarrow as pa
import pytest

import icefield as ice
from icefield.errors import InvalidArgumentError
from icefield.expressions import EqualTo, IsNull, from_json

ROWS = pa.table(
    {
        "tenant": ["a", "b", "c"],
        'odd "`) OR (1': ["x", "y", None],
        "ts": pa.array([dt.date(2020, 1, day) for day in (1, 2, 3)]).cast(pa.timestamp("us")),
    }
)


@pytest.fixture(scope="module")
def table():
    catalog = ice.load_catalog("m", type="in-memory")
    catalog.create_namespace("a")
    return catalog.create_table("a.t", ROWS.schema).append(ROWS)


def scans(table, row_filter=None):
    yield table.scan(row_filter)
    yield table.incremental_append_scan(row_filter=row_filter)
    yield table.incremental_changelog_scan(row_filter=row_filter)


ESCAPES = [
    "tenant != 'zz') OR (tenant != 'zz'",
    "tenant != 'zz' OR tenant != 'yy'",
    "tenant != 'zz' -- ",
    "tenant != 'zz' /*",
    "true) OR (true",
    "tenant != 'zz'\n) OR (\ntenant != 'zz'",
    "tenant != 'zz')",
    "(tenant != 'zz'",
    "tenant != 'zz\0') OR ('a' = 'a'",
]


@pytest.mark.parametrize("text", ESCAPES)
def test_no_text_reaches_out_of_its_own_filter(table, text):
    for scan in scans(table, "tenant = 'a'"):
        try:
            both = scan.filter(text)
        except InvalidArgumentError:
            continue
        assert both.to_arrow()["tenant"].to_pylist() == ["a"]
        assert pickle.loads(pickle.dumps(both)).count() == 1


def test_objects_and_texts_are_joined(table):
    odd = 'odd "`) OR (1'
    for scan in scans(table):
        assert scan.filter(EqualTo(odd, "y")).filter("tenant != 'a'").to_arrow()["tenant"].to_pylist() == ["b"]
        assert scan.filter("tenant != 'a'").filter(IsNull(odd)).to_arrow()["tenant"].to_pylist() == ["c"]
        assert scan.filter("tenant != 'a'").filter("tenant != 'b'").filter("tenant != 'c'").count() == 0
        with pytest.raises(InvalidArgumentError, match="expected an expression or its text"):
            scan.filter("tenant != 'a'").filter(None)


def test_texts_of_the_protocol_stay_as_strict(table):
    loose = {"type": "eq", "term": "ts", "value": "2020-01-01"}  # a date, which is no timestamp in JSON
    for scan in scans(table):
        for first in (None, "tenant = 'a'"):
            with pytest.raises(InvalidArgumentError, match="2020-01-01"):
                (scan if first is None else scan.filter(first)).filter(from_json(loose))
        strict = from_json({**loose, "value": "2020-01-01T00:00:00"})
        assert scan.filter("tenant = 'a'").filter(strict).count() == 1
        assert scan.filter("tenant = 'a'").filter("ts = '2020-01-01'").count() == 1
