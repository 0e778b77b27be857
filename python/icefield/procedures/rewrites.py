"""Procedures that rewrite files: data files, position delete files, and all paths in metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, cast

from icefield.procedures.declared import LETTER_CASE, Arguments, Column, Parameter, Procedure
from icefield.procedures.snapshots import named_table

if TYPE_CHECKING:
    from icefield.catalog import Catalog
    from icefield.expressions import RowFilter
    from icefield.table.maintenance.compacting import CompactedFiles

__all__ = ["PROCEDURES", "CompactionArguments", "compaction_arguments", "compaction_row"]

_TABLE = Parameter("table", "table", required=True)
_OPTIONS = Parameter("options", "map<string,string>")
_WHERE = Parameter("where", "string")


class CompactionArguments(TypedDict):
    """Arguments of a compaction, `icefield.table.maintenance.Maintenance.compact`."""

    where: RowFilter | None
    strategy: str | None
    sort_order: str | None
    options: dict[str, str] | None
    branch: str
    case_sensitive: bool


def compaction_arguments(arguments: Arguments) -> CompactionArguments:
    """Return the arguments of ``rewrite_data_files`` as those of a compaction."""
    return CompactionArguments(
        where=cast("RowFilter | None", arguments.get("where")),
        strategy=cast("str | None", arguments.get("strategy")),
        sort_order=cast("str | None", arguments.get("sort_order")),
        options=cast("dict[str, str] | None", arguments.get("options")),
        branch=cast("str", arguments.get("branch", "main")),
        case_sensitive=bool(arguments.get(LETTER_CASE, True)),
    )


def compaction_row(done: CompactedFiles) -> tuple[object, ...]:
    """Return the row of ``rewrite_data_files``."""
    return (
        done.rewritten_data_files_count,
        done.added_data_files_count,
        done.rewritten_bytes_count,
        done.failed_data_files_count,
        done.removed_delete_files_count,
    )


def _rewrite_data_files(catalog: Catalog, arguments: Arguments) -> list[tuple[object, ...]]:
    return [compaction_row(named_table(catalog, arguments).maintenance.compact(**compaction_arguments(arguments)))]


def _rewrite_position_delete_files(catalog: Catalog, arguments: Arguments) -> list[tuple[object, ...]]:
    done = named_table(catalog, arguments).maintenance.rewrite_position_deletes(
        cast("RowFilter | None", arguments.get("where")),
        options=cast("dict[str, str] | None", arguments.get("options")),
        case_sensitive=bool(arguments.get(LETTER_CASE, True)),
    )
    return [
        (
            done.rewritten_delete_files_count,
            done.added_delete_files_count,
            done.rewritten_bytes_count,
            done.added_bytes_count,
        )
    ]


def _rewrite_table_path(catalog: Catalog, arguments: Arguments) -> list[tuple[object, ...]]:
    done = named_table(catalog, arguments).rewrite_table_path(
        cast("str", arguments["source_prefix"]),
        cast("str", arguments["target_prefix"]),
        start_version=cast("str | None", arguments.get("start_version")),
        end_version=cast("str | None", arguments.get("end_version")),
        staging_location=cast("str | None", arguments.get("staging_location")),
        create_file_list=bool(arguments.get("create_file_list", True)),
    )
    return [
        (
            done.latest_version,
            done.file_list_location or "N/A",
            done.rewritten_manifest_file_paths_count,
            done.rewritten_delete_file_paths_count,
        )
    ]


PROCEDURES = (
    Procedure(
        "rewrite_data_files",
        (
            _TABLE,
            Parameter("strategy", "string"),
            Parameter("sort_order", "string"),
            _OPTIONS,
            _WHERE,
            Parameter("branch", "string"),
        ),
        (
            Column("rewritten_data_files_count", "int"),
            Column("added_data_files_count", "int"),
            Column("rewritten_bytes_count", "long"),
            Column("failed_data_files_count", "int"),
            Column("removed_delete_files_count", "int"),
        ),
        _rewrite_data_files,
    ),
    Procedure(
        "rewrite_position_delete_files",
        (_TABLE, _OPTIONS, _WHERE),
        (
            Column("rewritten_delete_files_count", "int"),
            Column("added_delete_files_count", "int"),
            Column("rewritten_bytes_count", "long"),
            Column("added_bytes_count", "long"),
        ),
        _rewrite_position_delete_files,
    ),
    Procedure(
        "rewrite_table_path",
        (
            _TABLE,
            Parameter("source_prefix", "string", required=True),
            Parameter("target_prefix", "string", required=True),
            Parameter("start_version", "string"),
            Parameter("end_version", "string"),
            Parameter("staging_location", "string"),
            Parameter("create_file_list", "boolean"),
        ),
        (
            Column("latest_version", "string", nullable=True),
            Column("file_list_location", "string", nullable=True),
            Column("rewritten_manifest_file_paths_count", "int", nullable=True),
            Column("rewritten_delete_file_paths_count", "int", nullable=True),
        ),
        _rewrite_table_path,
    ),
)
