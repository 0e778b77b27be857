"""How the plan of a scan looks: what is read and what is skipped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from icefield._outputs.html import html_of
from icefield._outputs.layout import counted, size_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["plan_facts", "plan_html", "plan_text"]

_MOST_FILES = 20


def plan_text(report: Mapping[str, int]) -> str:
    """Return what a plan reads and skips in full, a line for each kind of file."""

    def of(kind: str) -> str:
        return f"{report[f'scanned_{kind}_manifests']:,} of {report[f'total_{kind}_manifests']:,} of {kind} files"

    manifests = [of("data"), *([of("delete")] if report["total_delete_manifests"] else [])]
    lines = {
        "manifests": f"{', '.join(manifests)}; {report['cached_manifests']:,} from the cache, "
        f"{size_of(report['manifest_bytes_read'])} read",
        "data files": f"{report['result_data_files']:,} to read, {report['skipped_data_files']:,} skipped in the "
        f"manifests that were read",
    }
    if report["indexed_delete_files"] + report["skipped_delete_files"]:
        lines["delete files"] = (
            f"{report['result_delete_files']:,} deletes of data files, from {report['deletion_vectors']:,} deletion "
            f"vectors, {report['positional_delete_files']:,} files of positions, {report['equality_delete_files']:,} "
            f"of values"
        )
    lines["bytes"] = f"{size_of(report['total_file_size_in_bytes'])} in data files, at most"
    return "\n".join(f"{f'{what}:':<14}{text}" for what, text in lines.items())


def plan_facts(report: Mapping[str, int]) -> dict[str, str]:
    """Return what a plan reads and skips, by the counts of its report."""
    facts = {
        "to read": f"{counted(report['result_data_files'], 'file')}, {size_of(report['total_file_size_in_bytes'])}"
    }
    if report["result_delete_files"]:
        facts["with"] = counted(report["result_delete_files"], "delete file")
    manifests = report["skipped_data_manifests"]
    beside = f", {counted(manifests, 'manifest')} with all their files" if manifests else ""
    facts["skipped"] = f"{counted(report['skipped_data_files'], 'file')}{beside}"
    return facts


def plan_html(report: Mapping[str, int], files: pa.Table, below: str) -> str:
    """Return a plan as HTML, with its first files.

    Parameters
    ----------
    report
        The counts of the plan.
    files
        The files of the plan, as columns.
    below
        The folder of the table, which is left out of paths.

    """
    shown = files.slice(0, _MOST_FILES)
    deletes = [len(deletes) or None for chunk in shown["deletes"].chunks for deletes in chunk]
    columns = shown.select(["file_path", "record_count", "file_size_in_bytes"])
    rows = [
        (
            file["file_path"].removeprefix(below),
            f"{file['record_count']:,}" if file["record_count"] >= 0 else "not known",
            size_of(file["file_size_in_bytes"]),
            count,
        )
        for file, count in zip(columns.to_pylist(), deletes, strict=True)
    ]
    left_out = {"not shown": counted(files.num_rows - len(rows), "file")} if files.num_rows > len(rows) else {}
    headings = ("file", "rows", "size", "delete files")
    return html_of("Plan of a scan", {**plan_facts(report), **left_out}, (headings, rows))
