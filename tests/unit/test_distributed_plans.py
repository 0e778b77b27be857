"""Plans and results of changes of rows that travel: they arrive as they were sent, stay small, and cannot be forged."""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from zlib import crc32

import pyarrow as pa
import pytest
from test_distributed_rows import SCHEMA, files, ids, make, read, remove, rows

import icefield as ice
from icefield.catalog.memory import InMemoryCatalog
from icefield.distributed import RowChangePlan, RowRemover, WrittenFiles
from icefield.errors import IcefieldError, InternalError, InvalidArgumentError, TableReplacedError


def test_plans_and_results_that_are_sent(tmp_path: Path) -> None:
    secret = "hunter2"
    catalog = InMemoryCatalog("local", warehouse=str(tmp_path), **{"s3.secret-access-key": secret})
    catalog.create_namespace("a")
    table = catalog.create_table("a.t", SCHEMA, properties={"format-version": "3"})
    table.append(rows(range(10))).delete("id = 1", mode="merge-on-read")
    other = catalog.create_table("a.other", SCHEMA).append(rows(range(10)))
    plan = table.new_row_change("delete", "id < 5", mode="merge-on-read")
    data = plan.to_bytes()
    assert secret.encode() not in data
    sent = RowChangePlan.from_bytes(data)
    assert (sent.write_id, sent.files, sent.snapshot_id, sent.to_bytes()) == (
        plan.write_id,
        1,
        plan.snapshot_id,
        sent.to_bytes(),
    )
    with pytest.raises(InvalidArgumentError, match="has no tasks: make them where it was planned"):
        sent.tasks()
    result = remove(sent, table.storage, read(plan.tasks([])[0], table.storage), 0)
    for of, message in [
        (b"", "not a plan of a change of rows"),
        (b"nothing", "it begins with other bytes"),
        (data[:-1], "cut or damaged"),
        (data[:100] + bytes([data[100] ^ 1]) + data[101:], "cut or damaged"),
        (data[:7] + b"\x09" + data[8:], "of another version of this library"),
        (result.data, "it begins with other bytes"),
    ]:
        with pytest.raises(InvalidArgumentError, match=message):
            RowChangePlan.from_bytes(of)
    broken = WrittenFiles(result.data[:-1], 0, 0, 0)
    with pytest.raises(InvalidArgumentError, match="cut or damaged"):
        table.commit_rows(plan, [broken])
    with pytest.raises(InvalidArgumentError, match="pass the results of this plan only"):
        table.commit_rows(table.new_row_change("delete"), [result])
    with pytest.raises(TableReplacedError):
        other.commit_rows(plan, [result])
    table.commit_rows(sent, [result])
    assert ids(table) == [5, 6, 7, 8, 9]


def test_a_plan_of_many_files_is_small(tmp_path: Path) -> None:
    table = make(tmp_path, 2)
    template = table.append(rows(range(3))).scan().plan_files().to_arrow()
    path = template["file_path"][0].as_py()
    described = [
        ice.DataFile(file_path=f"{path}-{at:06}", file_format="parquet", record_count=3, file_size_in_bytes=900)
        for at in range(5000)
    ]
    with table.update_snapshot().fast_append() as append:
        for file in described:
            append.append_data_file(file)
    plan = table.new_row_change("delete")
    assert plan.files == 5001
    assert len(pickle.dumps(plan)) < 5001 * 30
    sent = pickle.loads(pickle.dumps(plan))
    result = remove(
        sent,
        table.storage,
        pa.table({"_file": [f"{path}-{at:06}" for at in (7, 7, 7, 4321, 4321, 4321)], "_pos": [0, 1, 2] * 2}),
        0,
    )
    assert table.commit_rows(plan, [result]).files_removed == 2
    assert table.scan().plan_files().to_arrow().num_rows == 4999


def test_forged_plans_and_results_are_errors(tmp_path: Path) -> None:
    table = make(tmp_path, 3).append(rows(range(10))).append(rows(range(10, 20)))
    table.delete("id = 3", mode="merge-on-read")
    plan = table.new_row_change("delete", "id < 15", mode="merge-on-read")
    places = pa.concat_tables([read(task, table.storage) for task in plan.tasks([])])
    whole, result = plan.to_bytes(), remove(plan, table.storage, places, 0).data
    before = files(table)
    draw = random.Random(1)

    def forged(data: bytes) -> bytes:
        changed = bytearray(data[12:])
        for _ in range(draw.randint(1, 3)):
            changed[draw.randrange(len(changed))] = draw.getrandbits(8)
        del changed[draw.choice([len(changed), draw.randrange(len(changed))]) :]
        return data[:8] + crc32(bytes(changed)).to_bytes(4, "little") + bytes(changed)

    outcomes = set()
    for _ in range(150):
        try:
            sent = RowChangePlan.from_bytes(forged(whole))
            with RowRemover(sent, table.storage, task=9) as remover:
                remover.remove(places)
            outcomes.add("taken")
        except IcefieldError as error:
            assert not isinstance(error, InternalError), error
            outcomes.add("refused")
        try:
            plan.discard(table.storage, [WrittenFiles(forged(result), 0, 0, 0)])
        except IcefieldError as error:
            assert not isinstance(error, InternalError), error
    assert "refused" in outcomes
    # Whatever a forged result names, only files of the change are deleted.
    assert {path for path in before if plan.write_id not in path} <= files(table)
