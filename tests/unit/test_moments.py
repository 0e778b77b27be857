"""Moments that choose a snapshot: what is taken, and what is refused with how to write it."""

import datetime as dt

import pandas as pd
import pyarrow as pa
import pytest

import icefield as ice
from icefield.errors import ArgumentTypeError, InvalidArgumentError, MissingVerbError, UnsupportedFeatureError
from icefield.scan.moments import milliseconds_of

ROWS = pa.table({"id": [1, 2], "tz": pa.array([0, 1], pa.timestamp("us", "UTC"))})
NAIVE = dt.datetime(2024, 1, 1)  # noqa: DTZ001


@pytest.fixture
def table(tmp_path):
    catalog = ice.load_catalog("moments", type="in-memory", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", ROWS)
    table.append(ROWS)
    return table


def test_moments_that_are_taken(table):
    snapshot = table.current_snapshot()
    moment = dt.datetime.fromtimestamp(snapshot.timestamp_ms / 1000, dt.timezone.utc)
    east = moment.astimezone(dt.timezone(dt.timedelta(hours=9)))
    for as_of in (snapshot.timestamp_ms, moment, east, moment.isoformat(), "9999-01-01T00:00:00Z"):
        assert table.scan(as_of=as_of).count() == 2, as_of
        assert table.inspect.files(as_of=as_of).num_rows == 1, as_of


MICROSECOND = dt.timedelta(microseconds=1)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


def _cases(moment, before):
    """Moments a little before or after one: as datetimes in two zones, and as text."""
    near = moment - before * MICROSECOND
    east = near.astimezone(dt.timezone(dt.timedelta(hours=5, minutes=30)))
    return near, east, near.isoformat(), str(near), pd.Timestamp(near)


def _rolled_back(table, moment):
    """What a table would be rolled back to."""
    transaction = table.transaction()
    transaction.manage_snapshots().rollback_to_timestamp(moment).commit()
    return transaction.table_metadata.current_snapshot()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_moments_below_a_millisecond(table):
    """Snapshots are of whole milliseconds; a moment within one is neither before its snapshot nor beyond it."""
    table.append(ROWS)
    while (second := table.snapshots()[-1]).timestamp_ms == (first := table.snapshots()[0]).timestamp_ms:
        table.append(ROWS)  # of another millisecond
    at = EPOCH + dt.timedelta(milliseconds=second.timestamp_ms)
    # 2**53 microseconds are of the year 2255: floats do not tell all microseconds apart after that.
    for before in (1, 100, 499, 500, 501, 999):
        for moment in _cases(at, before):
            assert table.scan(as_of=moment).snapshot().timestamp_ms < second.timestamp_ms, moment
            assert table.inspect.files(as_of=moment).num_rows < table.inspect.files().num_rows, moment
            assert _rolled_back(table, moment).timestamp_ms < second.timestamp_ms
            expired = table.expire_snapshots(older_than=moment, retain_last=1, dry_run=True)
            assert second.snapshot_id not in expired.snapshot_ids
            assert first.snapshot_id in expired.snapshot_ids
    for after in (0, 1, 499, 500, 999):
        for moment in _cases(at, -after):
            assert table.scan(as_of=moment).snapshot().snapshot_id == second.snapshot_id, moment
    for moment in _cases(EPOCH + dt.timedelta(milliseconds=first.timestamp_ms), 1):
        with pytest.raises(InvalidArgumentError, match="no snapshot at"):
            table.scan(as_of=moment)
    # A snapshot is older than a moment that is a little after it.
    for after in (1, 400, 600, 999):
        for moment in _cases(at, -after):
            assert _rolled_back(table, moment).snapshot_id == second.snapshot_id, moment
    table.append(ROWS)
    for moment in _cases(at, -1):
        assert second.snapshot_id in table.expire_snapshots(older_than=moment, dry_run=True).snapshot_ids, moment


@pytest.mark.parametrize("milliseconds", [-1, 0, 1, 2**53 // 1000 + 1, 253_402_300_799_999])
def test_milliseconds_of_moments_are_exact(milliseconds):
    moment = EPOCH + dt.timedelta(milliseconds=milliseconds)
    assert milliseconds_of(moment) == milliseconds == milliseconds_of(moment, round_up=True)
    if milliseconds < 253_402_300_799_999:
        assert milliseconds_of(moment + MICROSECOND) == milliseconds
        assert milliseconds_of(moment + MICROSECOND, round_up=True) == milliseconds + 1
    assert milliseconds_of(moment - MICROSECOND) == milliseconds - 1
    assert milliseconds_of(moment - MICROSECOND, round_up=True) == milliseconds


def test_ages(table):
    assert table.expire_snapshots(older_than="7d", dry_run=True).snapshot_ids == []
    assert table.expire_snapshots(older_than=dt.timedelta(days=7), dry_run=True).snapshot_ids == []
    first = table.current_snapshot().snapshot_id
    table.append(ROWS)
    for age in ("0ms", dt.timedelta(0)):
        assert first in table.expire_snapshots(older_than=age, retain_last=1, dry_run=True).snapshot_ids
    for age in (dt.timedelta(days=-1), "99999999999999d", dt.timedelta.max):
        with pytest.raises(InvalidArgumentError, match="timestamp"):
            table.expire_snapshots(older_than=age)
    with pytest.raises(InvalidArgumentError, match="expected an aware datetime"):
        table.expire_snapshots(older_than="7 dogs")


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        (NAIVE, "no time zone.*astimezone"),
        ("2024-01-01 10:00:00", "'2024-01-01 10:00:00Z'"),
        ("2024-01-01", "'2024-01-01T00:00:00Z'"),
        (dt.date(2024, 1, 1), "'2024-01-01T00:00:00Z'"),
        (1.5, "aware datetime.*got 1.5"),
        (True, "got True"),
        ("yesterday", "ISO text with an offset.*'yesterday'"),
    ],
)
def test_moments_that_are_refused(table, moment, words):
    with pytest.raises(InvalidArgumentError, match=f"as_of: .*{words}"):
        table.scan(as_of=moment)
    with pytest.raises(InvalidArgumentError, match=f"as_of: .*{words}"):
        table.inspect.files(as_of=moment)
    with pytest.raises(InvalidArgumentError, match=f"timestamp_ms: .*{words}"):
        table.manage_snapshots().rollback_to_timestamp(timestamp_ms=moment)


def test_verbs_that_are_missing_are_missing(table):
    assert not hasattr(table, "to_daft")
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = table.nonsense
    with pytest.raises(UnsupportedFeatureError, match=r"to_daft is not supported yet.*to_arrow") as error:
        table.to_daft()
    assert isinstance(error.value, AttributeError)
    assert isinstance(error.value, MissingVerbError)


def test_the_folder_of_a_table(table):
    newest = table.metadata_location.rpartition("/")[2]
    for folder in (table.location(), table.location() + "/", table.location() + "/metadata"):
        with pytest.raises(InvalidArgumentError, match=f"is a folder.*{newest}"):
            ice.Table.from_metadata(folder)
    with pytest.raises(FileNotFoundError):
        ice.Table.from_metadata(table.location() + "/nowhere")


@pytest.mark.parametrize("what", ["create_tag", "create_branch"])
def test_snapshot_and_name_turned_round(table, what):
    with pytest.raises(ArgumentTypeError, match=f"{what} takes the snapshot id first.*got 'v1' and 5"):
        getattr(table.manage_snapshots(), what)("v1", 5)


def test_ranges_in_any_order(table):
    ids = [table.append(ROWS).current_snapshot().snapshot_id for _ in range(3)]
    table.manage_snapshots().create_tag(ids[2], "kept").set_current_snapshot(ids[0]).commit()
    scan = table.incremental_append_scan()
    assert scan.from_snapshot_id_exclusive(ids[1]).to_snapshot_id_inclusive(ids[2]).snapshot_ids == [ids[2]]
    assert scan.to_snapshot_id_inclusive(ids[2]).from_snapshot_id_exclusive(ids[1]).snapshot_ids == [ids[2]]
    with pytest.raises(InvalidArgumentError, match="ancestor"):
        _ = scan.from_snapshot_id_exclusive(ids[1]).to_arrow()
    with pytest.raises(InvalidArgumentError, match="ancestor"):
        table.incremental_append_scan(from_snapshot_id_exclusive=ids[1])


def test_transforms_in_the_plural(table):
    with table.update_spec() as update:
        update.add_field("tz", "months")
    assert str(table.spec().fields[0].transform) == "month"
