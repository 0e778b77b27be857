"""Mistakes that readers of Iceberg tables are known to have made with rows, and the tests that prevent them here.

`KNOWN` says which test prevents which mistake; those without a better place are in this file. A test that is renamed or
dropped shows here.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest

import icefield as ice
from icefield.catalog.memory import InMemoryCatalog

ROOT = Path(__file__).parents[2]
DELETES = "crates/table/tests/it/deletes"
PLANNING = "crates/table/tests/it/planning"
PRUNING = "crates/table/tests/it/pruning"
HERE = "tests/unit/test_known_mistakes.py"
GOLDEN = "tests/golden/test_golden_tables.py::test_rows"
DELETE_LAW = f"{DELETES}/laws.rs::what_is_read_is_what_no_delete_meets"
PRUNING_LAW = f"{PRUNING}/laws.rs::plans_lose_no_row_and_residuals_say_what_the_filter_says"
ROWS_LAW = f"{PRUNING}/rows.rs::rows_of_files_are_those_that_match"

#: Mistakes with deletes and single rows, in planning and projection, and in Spark; each with its tests.
KNOWN: dict[str, tuple[str, ...]] = {
    # Deletes, and which row is which.
    "equality deletes are refused, or not applied in some way of reading": (
        DELETE_LAW,
        "tests/unit/test_deletes.py::test_all_ways_to_read_agree",
        "tests/unit/test_deletes.py::test_frames_of_other_libraries_have_the_rows_that_are_left",
    ),
    "an equality delete reaches data of its own commit, or a position delete does not": (
        f"{PLANNING}/links.rs::links_are_exactly_those_of_the_rules",
        GOLDEN,
    ),
    "an equality delete of one partition deletes rows of another": (
        f"{PLANNING}/links.rs::links_are_exactly_those_of_the_rules",
        "crates/table/tests/it/writing/write_deletes.rs::equality_deletes_are_of_the_partition_of_their_values",
    ),
    "null in a key matches nothing, or rows with null are deleted by other keys": (
        DELETE_LAW,
        "tests/unit/test_upsert_stream.py::test_keys_of_several_columns_nested_and_null",
    ),
    "a key that is not selected is not read, and its rows stay": (
        f"{HERE}::test_deleted_rows_stay_deleted_whatever_is_selected",
        DELETE_LAW,
    ),
    "a key that was dropped from the schema ends every scan": (
        f"{HERE}::test_keys_that_were_dropped_still_delete",
        GOLDEN,
    ),
    "a delete file with the key alone lacks required columns, or a key that is a partition value is null": (
        DELETE_LAW,
    ),
    "thousands of deleted keys become an expression, or delete rows of others": (
        f"{HERE}::test_nearly_all_rows_are_deleted_by_key",
    ),
    "all of a wide delete file is held in memory": (f"{DELETES}/damage.rs::deletes_are_bounded_in_memory",),
    "positions count the rows that come out, not those of the file": (
        f"{DELETES}/places.rs::rows_are_where_counting_says",
        "crates/table/tests/it/reading/read_parquet.rs::rows_are_selected_by_position_and_have_their_numbers",
        "crates/table/tests/it/reading/read_parquet.rs::page_indexes_that_are_wrong_give_no_wrong_rows",
        "crates/table/tests/it/reading/read_orc.rs::rows_are_selected_by_position",
        "crates/table/tests/it/reading/avro_files.rs::any_leaves_rows_and_cuts",
    ),
    "positions of one data file are sought as if a delete file had no others": (
        f"{DELETES}/damage.rs::the_positions_of_one_data_file_are_found_among_many",
        DELETE_LAW,
    ),
    "deletion vectors are found by their file alone, and believed": (
        f"{DELETES}/damage.rs::a_vector_is_what_the_manifest_says",
        f"{DELETES}/damage.rs::no_change_of_a_vector_reads_as_another",
        f"{DELETES}/damage.rs::a_vector_has_no_position_beyond_its_file",
        "tests/hostile/test_delete_mutants.py::test_damaged_delete_files_are_read_or_refused",
    ),
    "vectors that stand in no Puffin file are refused, and one is taken for another of its file": (
        f"{DELETES}/damage.rs::vectors_are_read_without_a_puffin_file_around_them",
    ),
    "position deletes count beside the deletion vector that replaced them": (
        f"{PLANNING}/links.rs::links_are_exactly_those_of_the_rules",
        "tests/laws/test_random_row_changes.py::test_upgraded_tables_keep_their_deletes",
    ),
    "a delete by floating-point numbers or nested values becomes an equality delete": (
        "crates/table/tests/it/writing/write_deletes.rs::columns_that_cannot_be_compared_are_refused",
    ),
    "a manifest of deletes is read as one of data": (
        f"{PLANNING}/damaged/damage.rs::a_manifest_that_is_not_as_listed_is_told",
    ),
    "manifests of deletes are skipped by another spec than their own": (
        PRUNING_LAW,
        "tests/interop/test_random_plans.py::test_plans_are_those_of_java",
        "tests/laws/test_partition_evolution.py::test_specs_whose_source_was_dropped_still_plan",
    ),
    "sequence numbers that version 1 lacks hide deletes": (
        f"{PLANNING}/damaged/tolerant.rs::manifests_of_version_1_in_a_table_of_version_2",
        "tests/laws/test_partition_evolution.py::test_manifests_of_version_1_live_on_in_upgraded_tables",
    ),
    "totals drift": ("tests/unit/test_written_tables.py::test_totals_are_a_recount_after_every_change",),
    "a count from metadata takes a row off twice": (
        f"{PLANNING}/counts.rs::counts_and_bounds_are_exact_or_not_given",
        "tests/unit/test_planning.py::test_counts_bounds_and_existence_without_reading",
    ),
    "a file that cannot be read is left out": (
        "tests/unit/test_append_and_scan.py::test_a_file_that_vanished",
        "tests/hostile/test_damaged_tables.py::test_gone",
        "tests/hostile/test_places.py::test_a_data_file_that_is_cut_while_it_is_read",
        "crates/table/tests/it/reading/read_orc.rs::what_fails_ends_the_stream_after_the_rows_before_it",
    ),
    "rows do not tell where they lie": (
        "tests/unit/test_metadata_columns.py::test_rows_know_where_they_lie",
        "tests/golden/test_golden_tables.py::test_metadata_columns",
        "crates/table/tests/golden/metadata_columns.rs::check",
    ),
    "columns called pos or file_path are taken for reserved ones": (
        "tests/unit/test_reserved_names.py::test_own_columns_are_read_past_deletes",
        "tests/unit/test_metadata_columns.py::test_columns_of_users_go_first",
    ),
    "rows get other ids by a rewrite, or lose them": (
        "tests/golden/test_golden_tables.py::test_row_lineage",
        "crates/table/tests/golden/metadata_columns.rs::check",
        "tests/laws/test_random_row_changes.py::test_rows_are_those_of_the_model",
    ),
    # Projection, filters, snapshots.
    "nested columns can be selected and not filtered by, or names with dots not at all": (
        "tests/unit/test_evolution.py::test_names_with_dots",
        "tests/spark/test_hostile_names.py::test_names_of_columns_and_values",
        ROWS_LAW,
    ),
    "null tests of structs, lists and maps end the plan": (
        "tests/unit/test_filters_lose_no_rows.py::test_nulls_of_lists_and_maps",
    ),
    "statistics that are missing are taken for none, and zero and the empty text for missing": (PRUNING_LAW,),
    "NaN is lost by bounds that leave it out": (PRUNING_LAW, ROWS_LAW, GOLDEN),
    "prefixes and their negation lose rows of truncated partitions": (
        PRUNING_LAW,
        "tests/interop/test_random_plans.py::test_plans_are_those_of_java",
    ),
    "upper bounds are cut inside a character": (
        "tests/golden/test_golden_values.py::test_truncated_bounds",
        PRUNING_LAW,
    ),
    "not equal and not in disagree about null from plan to row": (
        "tests/unit/test_append_and_scan.py::test_filters_are_exact",
        "tests/interop/test_filters_beside_java.py::test_rows_are_those_of_java",
    ),
    "a long list of values skips nothing": (f"{HERE}::test_long_lists_skip_as_short_ones_do",),
    "a list of values reads more row groups than each of them": (
        f"{PRUNING}/parquet.rs::pages_dictionaries_and_bloom_filters_leave_what_may_match",
    ),
    "filters of many terms overflow the stack": (
        "tests/unit/test_deep_inputs.py::test_long_chains_stay_flat",
        "tests/unit/test_deep_inputs.py::test_what_alternates_is_usable_or_refused",
    ),
    "literals are cast down to the type of an old file": (
        f"{HERE}::test_literals_beyond_the_type_of_an_old_file",
        ROWS_LAW,
    ),
    "bounds of an old width are errors, or wrong": (
        "tests/unit/test_filters_lose_no_rows.py::test_bounds_of_dates_that_became_timestamps",
        "tests/unit/test_filters_lose_no_rows.py::test_ints_that_wrapped_around_and_became_longs",
        PRUNING_LAW,
    ),
    "days are read as microseconds": ("tests/unit/test_filters_lose_no_rows.py::test_dates_that_became_timestamps",),
    "case: names that differ by it alone are mixed up": (f"{HERE}::test_names_that_differ_by_case",),
    "columns of files without ids are found by the names of today, or are null": (
        "tests/unit/test_name_mapping.py::test_a_name_that_is_used_again_belongs_to_the_new_column",
        "crates/table/tests/it/reading/column_projection.rs::columns_without_ids_are_found_by_name",
        "crates/table/tests/it/reading/projection_laws.rs::columns_are_what_the_rules_say",
        "tests/unit/test_odd_parquet_files.py::test_names_stand_for_ids_at_any_depth",
    ),
    "values of partitions that the files lack are null": (
        "crates/table/tests/it/reading/column_projection.rs::absent_columns_follow_the_rules_in_order",
        GOLDEN,
    ),
    "the name of Hive's null partition is a value": (
        "tests/unit/test_add_files.py::test_a_partition_comes_from_the_caller_or_the_path",
    ),
    "a filter loses rows that have a default": (
        "tests/unit/test_evolution.py::test_defaults",
        PRUNING_LAW,
        GOLDEN,
    ),
    "a tag is read with the schema of now, or a branch with one of old": (
        "tests/unit/test_mistakes.py::test_snapshots_have_the_schema_of_their_time",
        "tests/unit/test_evolution.py::test_old_schemas_come_back",
        GOLDEN,
    ),
    "changes of overwrites are passed over, and an expired start is not named": (
        "tests/unit/test_incremental.py::test_wrong_ranges_are_told_at_once",
        "crates/table/tests/it/changelog/laws.rs::state_before_and_changes_are_the_state_after",
        "tests/interop/test_incremental_beside_java.py::test_ranges_are_read_as_java_reads_them",
    ),
    "a scan that is kept moves to another snapshot": (
        f"{HERE}::test_a_scan_keeps_its_snapshot",
        "tests/unit/test_frames_out.py::test_a_lazy_frame_of_a_table_sees_what_the_table_has_when_it_is_collected",
    ),
    "a count of no columns reads one of another schema": (f"{HERE}::test_counts_of_old_snapshots_need_no_column",),
    "a limit gives other numbers of rows in each run, and a count ignores it": (
        f"{HERE}::test_limits_are_exact_in_every_run",
    ),
    # Reading in Spark.
    "a jar has to fit the versions of all others": ("tests/spark/test_tasks.py::test_no_jar_is_needed",),
    "rows go through tuples of Python": ("tests/spark/test_tasks.py::test_tasks_give_batches_of_some_bytes",),
    "filters of Spark are not pushed, or change the rows": (
        "tests/spark/test_filters.py::test_rows_are_the_same_with_and_without",
        "tests/spark/test_filters.py::test_files_without_such_rows_are_not_read",
        "tests/spark/test_filters.py::test_every_filter_of_spark_is_translated_or_left",
    ),
    "a query reads two snapshots, or filters of an earlier one": (
        "tests/spark/test_reading.py::test_a_frame_keeps_its_snapshot",
        "tests/spark/test_filters.py::test_a_frame_of_many_queries_keeps_no_filter",
        "tests/spark/test_failures.py::test_a_loaded_frame_stays_with_its_table",
    ),
    "a query loads its table again and again": (
        "tests/spark/test_loads.py::test_the_metadata_of_a_table_is_read_by_what_plans",
    ),
    "batches are too large for Spark's buffers": ("tests/spark/test_tasks.py::test_tasks_give_batches_of_some_bytes",),
    "a stream without new rows reads on or grows": (
        "tests/spark/test_streams.py::test_an_empty_table_is_waited_for",
        "tests/spark/test_streams.py::test_idle_triggers_cost_no_memory",
        f"{PLANNING}/micro_batches.rs::batches_hold_every_appended_file_once",
    ),
    "a stream stops at a compaction": (
        "tests/spark/test_streams.py::test_compactions_are_passed_over",
        "tests/spark/test_streams.py::test_other_snapshots_are_refused_or_skipped",
    ),
    "times move with the zone of the session, and types that Spark lacks are lost": (
        "tests/spark/test_round_trip.py::test_every_type",
        "tests/spark/test_round_trip.py::test_types_that_spark_lacks",
        "tests/spark/test_golden_in_spark.py::test_rows_by_both_readers",
    ),
    "changes cannot be read with the options of the library's procedure": (
        "tests/spark/test_changes.py::test_compared_changes",
    ),
    "metadata tables and transforms cannot be reached": (
        "tests/spark/test_inspecting.py::test_every_metadata_table",
        "tests/spark/test_functions.py::test_sql_functions_equal_the_transforms",
    ),
    "a task is planned for each small file": (
        "tests/spark/test_explain.py::test_files_of_ours_are_packed_by_themselves",
    ),
    "a worker of another Python fails without a reason": (
        "tests/spark/test_workers.py::test_workers_run_in_the_driver_s_python",
    ),
}


@cache
def functions(path: str) -> set[str]:
    """Return the names of the functions of a test file."""
    return set(re.findall(r"^\s*(?:def|fn) (\w+)", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE))


@pytest.mark.parametrize("mistake", KNOWN)
def test_each_mistake_has_its_tests(mistake: str) -> None:
    for test in KNOWN[mistake]:
        path, _, name = test.partition("::")
        assert name in functions(path), f"{mistake}: {test} is not there"


SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])


def make(schema: pa.Schema = SCHEMA, form: str = "parquet") -> ice.Table:
    catalog = InMemoryCatalog("local", warehouse=f"memory://known-mistakes/{uuid4()}")
    catalog.create_namespace("a")
    return catalog.create_table("a.t", schema, properties={"write.format.default": form})


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "s": [f"s{at}" for at in ids]})


def by_key(table: ice.Table, *keys: int) -> None:
    with table.upsert_stream("id") as stream:
        stream.delete(pa.table({"id": pa.array(keys, pa.int64())}))


@pytest.mark.parametrize("form", ["parquet", "orc", "avro"])
def test_deleted_rows_stay_deleted_whatever_is_selected(form: str) -> None:
    """A reader that reads the selected columns alone has no key to compare, and gives deleted rows."""
    table = make(form=form).append(rows(*range(10)))
    by_key(table, 3, 4)
    assert table.scan(selected_fields=("s",)).to_arrow()["s"].to_pylist() == [
        f"s{n}" for n in range(10) if n not in (3, 4)
    ]
    assert table.scan(selected_fields=("_file",)).to_arrow().num_rows == 8
    assert table.scan(selected_fields=("_pos",)).to_arrow()["_pos"].to_pylist() == [0, 1, 2, 5, 6, 7, 8, 9]
    assert table.scan(selected_fields=()).to_arrow().num_rows == table.scan().count() == 8
    assert table.scan("s > 's3'", selected_fields=("s",)).count() == 5


def test_keys_that_were_dropped_still_delete() -> None:
    """A delete file names its columns by ids of schemas that were; the scan of today and that of then agree."""
    table = make().append(rows(*range(5)))
    by_key(table, 1, 2)
    before = table.current_snapshot()
    assert before is not None
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("id")
    assert table.scan().to_arrow().to_pylist() == [{"s": "s0"}, {"s": "s3"}, {"s": "s4"}]
    assert table.scan(snapshot_id=before.snapshot_id).to_arrow()["id"].to_pylist() == [0, 3, 4]


def test_nearly_all_rows_are_deleted_by_key() -> None:
    """50,000 rows, 49,995 deleted keys: valid rows vanished elsewhere, or the filter grew too deep."""
    table = make().append(pa.table({"id": range(50_000), "s": ["x"] * 50_000}))
    by_key(table, *range(5, 50_000))
    assert table.inspect.delete_files().to_pylist()[0]["record_count"] == 49_995
    assert table.scan().to_arrow()["id"].to_pylist() == [0, 1, 2, 3, 4]
    assert table.scan().count() == 5
    assert table.scan("id > 2").count() == 2


def test_long_lists_skip_as_short_ones_do() -> None:
    """Elsewhere 200 values skip files and 201 do not."""
    table = make()
    with table.transaction() as changes:
        for first in range(0, 20_000, 1_000):
            changes.append(pa.table({"id": range(first, first + 1_000), "s": ["x"] * 1_000}))
    for number in (1, 200, 201, 1_000):
        wanted = ice.expressions.In("id", list(range(5_000, 5_000 + number)))
        scan = table.scan(wanted)
        assert (len(scan.plan_files()), scan.count()) == (1, number)


@pytest.mark.parametrize("form", ["parquet", "orc", "avro"])
def test_literals_beyond_the_type_of_an_old_file(form: str) -> None:
    """Cast down to int, such literals were null, and no row compared with them."""
    schema = pa.schema([("n", pa.int32())])
    table = make(schema, form)
    smallest, largest = -(2**31), 2**31 - 1
    table.append(pa.table({"n": pa.array([smallest, -1, 0, largest, None], pa.int32())}))
    with table.update_schema() as update:
        update.update_column("n", "long")
    table.append(pa.table({"n": pa.array([2**40], pa.int64())}))
    for condition, expected in (
        (f"n < {2**31}", [smallest, -1, 0, largest]),
        (f"n > {smallest - 1}", [smallest, -1, 0, largest, 2**40]),
        (f"n != {2**31}", [smallest, -1, 0, largest, 2**40]),
        (f"n = {2**31}", []),
        (f"n IN ({2**31}, 0)", [0]),
        (f"n NOT IN ({2**31}, 0)", [smallest, -1, largest, 2**40]),
        (f"n >= {2**40}", [2**40]),
    ):
        assert Counter(table.scan(condition).to_arrow()["n"].to_pylist()) == Counter(expected), condition


def test_names_that_differ_by_case() -> None:
    """Names keep their case; where it is not told apart, a name of two columns is an error."""
    columns = {"a": [1, 2], "A": [3, 4], "camelCase": [5, 6]}
    table = make(pa.schema([(name, pa.int64()) for name in columns])).append(pa.table(columns))
    assert table.scan("a = 1 AND A = 3", selected_fields=("camelCase",)).to_arrow().to_pydict() == {"camelCase": [5]}
    with pytest.raises(ValueError, match="camelcase"):
        table.scan("camelcase = 5").to_arrow()
    with pytest.raises(ValueError, match="differ only in case"):
        table.scan("a = 1", case_sensitive=False).to_arrow()
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("A")
    loose = table.scan("CAMELCASE > 5", selected_fields=("CamelCase",), case_sensitive=False)
    assert loose.to_arrow().to_pydict() == {"camelCase": [6]}


def test_a_scan_keeps_its_snapshot() -> None:
    """What is committed between two reads of one scan does not show; a new scan sees it."""
    table = make().append(rows(1))
    scan = table.scan()
    assert scan.count() == 1
    table.append(rows(2))
    assert (scan.count(), scan.to_arrow().num_rows, table.scan().count()) == (1, 1, 2)


def test_counts_of_old_snapshots_need_no_column() -> None:
    """No column stands for rows: none of the schema of now has to be in an old file."""
    table = make().append(rows(1, 2, 3))
    old = table.current_snapshot()
    assert old is not None
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.add_column("new", "string")
        update.delete_column("id")
        update.delete_column("s")
    table.append(pa.table({"new": ["n"]}))
    for scan, number in ((table.scan(), 4), (table.scan(snapshot_id=old.snapshot_id), 3)):
        assert scan.count() == number
        assert scan.select().to_arrow().num_rows == number
    assert table.scan("new = 'n'", selected_fields=()).to_arrow().num_rows == 1


def test_limits_are_exact_in_every_run() -> None:
    """Each thread once counted for itself, and how many rows came was a race."""
    table = make()
    with table.transaction() as changes:
        for number in range(12):
            changes.append(rows(*range(number * 7, number * 7 + 7)))
    for limit in (0, 1, 6, 7, 8, 40, 83, 84, 1_000):
        for filtered, most in (("id >= 0", 84), ("s != 's3'", 83)):
            scan = table.scan(filtered, limit=limit)
            first = scan.to_arrow()["id"].to_pylist()
            assert len(first) == scan.count() == min(limit, most)
            assert all(scan.to_arrow()["id"].to_pylist() == first for _ in range(10))
