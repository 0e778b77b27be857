"""How tables, snapshots, plans and catalogs look in terminals and notebooks."""

import pickle
import re
import xml.etree.ElementTree as ET
from datetime import datetime, timezone

import pyarrow as pa
import pytest

import icefield as ice
from icefield._outputs.layout import age_of, contents_of, counted, size_of, time_of
from icefield.metadata import Snapshot, SnapshotRef
from icefield.scan.moments import instant_of
from icefield.table import SnapshotLogEntry
from icefield.table.description.lanes import lanes_of
from icefield.table.description.timeline import COLOURS, svg_of, text_of

ROWS = pa.table({"id": [1, 2], "<b>": ["x", "y"]})
HOSTILE = '<script>alert("1")</script>&\x1b[2J'


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    catalog = ice.load_catalog(
        "shown", type="in-memory", warehouse=str(tmp_path_factory.mktemp("shown")), **{"s3.secret-access-key": "hush"}
    )
    catalog.create_namespace("a")
    table = catalog.create_table("a.t", ROWS, partition_by="bucket(2, id)", sort_by="id desc")
    table.append(ROWS)
    first = table.current_snapshot().snapshot_id
    table.manage_snapshots().create_tag(first, HOSTILE).create_branch(first, "audit").commit()
    table.append(ROWS).append(ROWS, branch="audit")
    table.manage_snapshots().rollback_to_snapshot(first).commit()
    table.append(ROWS)
    table.delete("id = 1", mode="merge-on-read")
    return table


def shown(thing):
    """Return the title of what a notebook shows, its facts, and its headings and rows, if it has them."""
    root = ET.fromstring(thing._repr_html_())
    facts, grid = {}, None
    for table in root.findall("table"):
        rows = [[cell.text for cell in row] for row in table.findall("tbody/tr")]
        if (head := table.find("thead/tr")) is None:
            facts = dict(rows)
        else:
            grid = [heading.text for heading in head], rows
    return root.findtext("b"), facts, grid


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (1024**2 - 1, "1.0 MiB"),
        (5 * 1024**2, "5.0 MiB"), (1024**3, "1.0 GiB"), (2**63 - 1, "8.0 EiB"),
    ],
)  # fmt: skip
def test_sizes(number, text):
    assert size_of(number) == text


def test_times_ages_and_counts():
    assert time_of(0) == "1970-01-01 00:00:00.000 UTC"
    assert time_of(1_795_465_431_881) == "2026-11-23 20:23:51.881 UTC"
    assert time_of(-1) == "1969-12-31 23:59:59.999 UTC"
    assert time_of(2**62) == f"{2**62} ms"
    assert [age_of(ms) for ms in (0, 1, 1500, 60_000, 5_400_000, 2_592_000_000)] == [
        "0 ms", "1 ms", "1,500 ms", "1 min", "90 min", "30 d"
    ]  # fmt: skip
    assert [counted(number, "file") for number in (0, 1, 1200)] == ["0 files", "1 file", "1,200 files"]


def test_tables(table):
    assert contents_of(None) == {"rows": "0", "files": "0 data files"}
    shown = repr(table)
    for text in (
        "bucket(2, id)",
        "id desc nulls last",
        "4 before 2 position deletes",
        "2 data files, 2 delete files, ",
        " UTC)",
    ):
        assert text in shown, shown
    html = table._repr_html_()
    ET.fromstring(html)
    for text in ("bucket(2, id)", "&lt;b&gt;", "<th", "presence", "optional", "KiB"):
        assert text in html, html
    assert "<b>a.t</b>" in html


def test_schemas(table):
    title, facts, (headings, rows) = shown(table.schema())
    assert (title, facts, headings) == ("Schema 0", {}, ["id", "column", "type", "presence", "doc"])
    assert rows == [["1", "id", "long", "optional", None], ["2", "<b>", "string", "optional", None]]
    key = ice.Schema(ice.NestedField(1, "k", "int", required=True, doc="<i>"), identifier_field_ids=[1])
    assert shown(key)[2][1] == [["1", "k", "int", "identifier", "<i>"]]


def test_partition_specs_and_sort_orders(table):
    assert shown(table.spec()) == (
        "Partition spec 0", {},
        (["id", "field", "transform", "column id"], [["1000", "id_bucket", "bucket[2]", "1"]]),
    )  # fmt: skip
    assert shown(table.sort_order()) == (
        "Sort order 1", {},
        (["transform", "column id", "direction", "nulls"], [["identity", "1", "desc", "nulls-last"]]),
    )  # fmt: skip
    assert shown(ice.PartitionSpec()) == ("Partition spec 0: not partitioned", {}, None)
    assert shown(ice.SortOrder()) == ("Sort order 0: not sorted", {}, None)
    hostile = ice.PartitionSpec(ice.PartitionField(1, 1000, "identity", HOSTILE))
    assert shown(hostile)[2][1][0][1] == HOSTILE.replace("\x1b", "\\x1b")


def test_snapshots(table):
    snapshot = table.current_snapshot()
    title, facts, (headings, rows) = shown(snapshot)
    assert title == f"Snapshot {snapshot.snapshot_id}"
    assert facts == {
        "committed": time_of(snapshot.timestamp_ms),
        "operation": snapshot.operation,
        **contents_of(snapshot),
        "parent": str(snapshot.parent_snapshot_id),
        "sequence number": str(snapshot.sequence_number),
        "schema": "0",
    }
    assert headings == ["summary", None]
    assert dict(rows) == snapshot.summary.additional_properties
    bare = {"snapshot-id": 1, "timestamp-ms": 0, "manifest-list": "m"}
    title, facts, grid = shown(Snapshot.from_json(bare))
    assert (title, facts["committed"], grid) == ("Snapshot 1", "1970-01-01 00:00:00.000 UTC", None)
    assert "operation" not in facts


def test_references(table):
    snapshot_id = str(table.refs()["audit"].snapshot_id)
    assert shown(table.refs()["audit"]) == ("Branch", {"snapshot": snapshot_id}, None)
    kept = {"snapshot-id": 5, "type": "branch", "max-ref-age-ms": 86_400_000, "max-snapshot-age-ms": 1500,
            "min-snapshots-to-keep": 3}  # fmt: skip
    assert shown(SnapshotRef.from_json(kept))[1] == {
        "snapshot": "5", "expires after": "1 d", "snapshots expire after": "1,500 ms", "snapshots kept at least": "3",
    }  # fmt: skip
    assert shown(SnapshotRef.from_json({"snapshot-id": 5, "type": "tag"}))[0] == "Tag"


def test_expiries_do_not_print_every_file(table):
    ids = [snapshot.snapshot_id for snapshot in table.snapshots()]
    planned = table.expire_snapshots(snapshot_ids=ids[1:2], dry_run=True)
    assert repr(planned).startswith("ExpiredSnapshots(1 snapshot, ")
    assert "avro" not in repr(planned)
    assert repr(table.expire_snapshots(dry_run=True)) == "ExpiredSnapshots(0 snapshots)"


def test_catalogs_show_no_secrets(table):
    html = table.catalog._repr_html_()
    ET.fromstring(html)
    assert "Catalog shown (InMemoryCatalog)" in html
    assert "s3.secret-access-key" in html
    assert "hush" not in html


def test_lists_of_snapshots_and_references(table):
    snapshots, refs = table.snapshots(), table.refs()
    assert snapshots == list(table.metadata.snapshots)
    assert refs == dict(table.metadata.refs)
    assert pickle.loads(pickle.dumps(snapshots)) == snapshots
    assert repr(pickle.loads(pickle.dumps(refs))) == repr(refs)
    for shown in (snapshots, refs):
        lines = repr(shown).splitlines()
        assert len(lines) == len(shown) + 2
        assert "\x1b" not in repr(shown)
        root = ET.fromstring(shown._repr_html_())
        assert len(root.findall(".//tbody/tr")) == len(shown)
        assert root.find(".//script") is None
    assert repr(snapshots).startswith("5 snapshots\n  snapshot")
    assert str(snapshots[0].snapshot_id) in repr(snapshots)


def test_plans(table):
    plan = table.scan("id = 2").plan_files()
    count = len(plan.to_arrow())
    assert re.fullmatch(rf"ScanPlan\(to read: {count} files?, [\d.]+ Ki?B; .*skipped: \d+ files?.*\)", repr(plan))
    root = ET.fromstring(plan._repr_html_())
    rows = root.findall(".//table")[1].findall("tbody/tr")
    assert len(rows) == len(plan.to_arrow())
    assert "data/id_bucket=" in (rows[0][0].text or "")
    assert not (rows[0][0].text or "").startswith("file:")


def test_explanations(table):
    report = table.scan().plan_files().report
    lines = table.scan().explain().splitlines()[-4:]
    assert lines[0].startswith("  manifests:    2 of 2 of data files, 1 of 1 of delete files; ")
    assert re.search(r" from the cache, [\d.]+ (B|KiB) read$", lines[0])
    assert lines[1:] == [
        "  data files:   2 to read, 0 skipped in the manifests that were read",
        "  delete files: 2 deletes of data files, from 0 deletion vectors, 2 files of positions, 0 of values",
        f"  bytes:        {size_of(report['total_file_size_in_bytes'])} in data files, at most",
    ]


def test_history_is_a_list(table):
    history = table.history()
    assert isinstance(history, list)
    assert history == [SnapshotLogEntry(at, snapshot_id) for at, snapshot_id in table.metadata.snapshot_log]
    copied = pickle.loads(pickle.dumps(history))
    assert (copied, repr(copied)) == (history, repr(history))
    assert history[0] in history
    assert type(history[:1]) is list


def test_history_in_terminals(table):
    first, second, audit, third, last = (snapshot.snapshot_id for snapshot in table.snapshots())
    lines = repr(table.history()).splitlines()
    assert lines[0] == "History of a.t: 5 snapshots, 2 branches, 1 tag"
    places = {number: line.partition(str(number))[0].rstrip() for number in (first, second, audit, third, last)
              for line in lines[1:] if str(number) in line and "became" not in line}  # fmt: skip
    assert places == {first: "●", second: "│ │ ○", audit: "│ ●", third: "●", last: "◉"}
    assert "├─╮" in lines
    assert "├─┼─╮" in lines
    assert f"snapshot {first} became current again" in lines[-1]
    assert next(line for line in lines if str(last) in line).endswith("[main]")
    assert "\x1b" not in repr(table.history())


def test_history_as_a_picture(table):
    html = table.history()._repr_html_()
    assert "<script>" not in html
    assert "\x1b" not in html
    svg = ET.fromstring(html).find("{http://www.w3.org/2000/svg}svg")
    width, height = float(svg.get("width")), float(svg.get("height"))
    titles = [title.text for title in svg.iter("{http://www.w3.org/2000/svg}title")]
    for snapshot in table.snapshots():
        (title,) = [title for title in titles if title.startswith(f"snapshot {snapshot.snapshot_id};")]
        assert time_of(snapshot.timestamp_ms) in title
    texts = [text.text for text in svg.iter("{http://www.w3.org/2000/svg}text")]
    for text in ("main", "audit", '<script>alert("1")</script>…', "append", "in no branch or tag"):
        assert any((found or "").startswith(text[:27]) for found in texts), texts
    for element in svg.iter():
        for name, most in (("x", width), ("cx", width), ("y", height), ("cy", height)):
            assert 0 <= float(element.get(name, 0)) <= most, ET.tostring(element)
    # The colour of texts is that of the page, on white pillows excepted.
    assert set(re.findall(r'<text [^>]*fill="([^"]*)"', html)) == {"#ffffff"}
    assert 'fill="currentColor"' in html


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colour", COLOURS)
def test_colours_are_seen_on_light_and_dark_pages(colour):
    """By the contrasts that WCAG 2 asks for: 4.5 of text, 3 of shapes."""
    assert contrast(colour, "#ffffff") >= 4.5
    assert contrast(colour, "#111111") >= 3


def metadata_of(parents, main=None, refs=None):
    """Make metadata of snapshots 1, 2, … with these parents."""
    snapshots = [
        {
            "snapshot-id": number,
            "sequence-number": number,
            "timestamp-ms": 1_700_000_000_000 + number,
            "manifest-list": f"file:///t/{number}.avro",
            "summary": {"operation": "append"},
            **({} if parent is None else {"parent-snapshot-id": parent}),
        }
        for number, parent in enumerate(parents, 1)
    ]
    named = {name: {"snapshot-id": number, "type": "branch"} for name, number in (refs or {}).items()}
    if main is not None:
        named["main"] = {"snapshot-id": main, "type": "branch"}
    return ice.TableMetadata.from_json(
        {
            "format-version": 2,
            "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
            "location": "file:///t",
            "last-sequence-number": len(snapshots),
            "last-updated-ms": 1_700_000_000_000 + len(snapshots),
            "last-column-id": 1,
            "current-schema-id": 0,
            "schemas": [
                {
                    "type": "struct",
                    "schema-id": 0,
                    "fields": [{"id": 1, "name": "id", "type": "long", "required": False}],
                }
            ],
            "default-spec-id": 0,
            "partition-specs": [{"spec-id": 0, "fields": []}],
            "last-partition-id": 999,
            "default-sort-order-id": 0,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "properties": {},
            "current-snapshot-id": -1 if main is None else main,
            "refs": named,
            "snapshots": snapshots,
            "snapshot-log": [],
            "metadata-log": [],
        }
    )


@pytest.mark.parametrize(
    ("parents", "main", "refs", "lanes"),
    [
        ([], None, {}, []),
        ([None, 1, 2], 3, {}, [0, 0, 0]),
        ([None, 1, 1], 2, {"b": 3}, [0, 0, 1]),
        ([None, 1, 1], 3, {}, [0, 1, 0]),  # rolled back
        ([None, 1, 1, 2, 3], 4, {"b": 5}, [0, 0, 1, 0, 1]),
        # A line that is free is used again.
        ([None, 1, 1, 2, 4, 4, 5], 7, {"b": 3, "c": 6}, [0, 0, 1, 0, 0, 1, 0]),
        ([None, 1, 1, 1], 4, {"b": 2, "c": 3}, [0, 2, 1, 0]),
        # Roots of their own: the parent has expired, or there never was one.
        ([99, None], 2, {"b": 1}, [1, 0]),
        ([None, 1], None, {"b": 2}, [0, 0]),
    ],
)  # fmt: skip
def test_lines_of_history(parents, main, refs, lanes):
    metadata = metadata_of(parents, main, refs)
    points = lanes_of(metadata, 100).points
    assert [point.lane for point in points] == lanes
    # No two lines of history share a lane at a time.
    for point in points:
        if point.parent is not None:
            between = points[point.parent.at + 1 : point.at]
            assert all(other.lane != point.lane for other in between)
    ET.fromstring(svg_of("t", metadata))
    assert len(text_of("t", metadata).splitlines()) >= 1 + len(parents)


def test_long_histories_show_their_end():
    metadata = metadata_of([None, *range(1, 200)], 200)
    lines = text_of("t", metadata).splitlines()
    assert lines[1] == "… 150 earlier snapshots"
    assert (len(lines), lines[-1].startswith("◉  200 ")) == (52, True)
    assert "140 earlier ones not shown" in svg_of("t", metadata)
    assert lanes_of(metadata, 10).points[0].parent is None


def test_times_that_are_printed_are_read_again(table):
    snapshot = table.snapshots()[0]
    shown = time_of(snapshot.timestamp_ms)
    assert table.scan(as_of=shown).snapshot() == snapshot
    assert instant_of(shown) == datetime.fromtimestamp(snapshot.timestamp_ms / 1000, timezone.utc)


def test_changes_of_rows_have_sizes(table):
    changed = table.delete("id = 2", dry_run=True, mode="copy-on-write")
    assert f"rewritten ({size_of(changed.bytes_rewritten)})" in str(changed)
    assert "0 added (0 B)" in str(changed)
