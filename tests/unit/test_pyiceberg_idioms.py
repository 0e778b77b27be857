"""What PyIceberg's pages show is written the same here: each snippet runs with either import, and gives the same."""

from __future__ import annotations

import importlib
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

# PyIceberg's own warnings are not looked at; ours would fail the snippet.
pytestmark = pytest.mark.filterwarnings("ignore")

PACKAGES = ("icefield", "pyiceberg")

#: Begins each snippet.
HEAD = """
from datetime import date, datetime, timezone
import pandas as pd
import pyarrow as pa
from PACKAGE.catalog import load_catalog
from PACKAGE.expressions import (
    AlwaysTrue, And, EqualTo, GreaterThan, GreaterThanOrEqual, In, IsNull, LessThan, Not, NotEqualTo, NotIn, NotNull,
    Or, Reference, StartsWith,
)
from PACKAGE.partitioning import PartitionField, PartitionSpec
from PACKAGE.schema import Schema
from PACKAGE.table.sorting import NullOrder, SortDirection, SortField, SortOrder
from PACKAGE.transforms import BucketTransform, DayTransform, IdentityTransform, MonthTransform, TruncateTransform
from PACKAGE.types import (
    DateType, DecimalType, DoubleType, FixedType, IntegerType, ListType, LongType, MapType, NestedField, PrimitiveType,
    StringType, StructType, TimestampType,
)
"""

PLACES = """
schema = Schema(
    NestedField(field_id=1, name="city", field_type=StringType(), required=True),
    NestedField(2, "lat", DoubleType(), required=False, doc="degrees"),
    NestedField(3, "at", StructType(NestedField(4, "x", IntegerType()), NestedField(5, "y", IntegerType()))),
    NestedField(6, "tags", ListType(element_id=7, element_type=StringType(), element_required=False)),
    schema_id=1,
    identifier_field_ids=[1],
)
"""

#: What needs no table, by a name: the snippet leaves `result`.
VALUES = {
    "fields of a schema": PLACES + "result = [(one.field_id, one.name, one.required) for one in schema.fields]",
    "documentation of a field": PLACES + "result = schema.find_field('lat').doc",
    "a type by its class": PLACES + "result = isinstance(schema.find_type('city'), StringType)",
    "primitive or not": PLACES + "result = [isinstance(one.field_type, PrimitiveType) for one in schema.columns]",
    "a field whatever its case": PLACES + "result = schema.find_field('CITY', case_sensitive=False).field_id",
    "a nested field": PLACES + "result = (schema.find_field('at.x').field_id, schema.find_column_name(5))",
    "a field of a struct": PLACES + "result = schema.find_type('at').field_by_name('y').field_id",
    "a field of a struct by id": PLACES + "result = schema.as_struct().field(2).name",
    "the element of a list": PLACES
    + "t = schema.find_type('tags'); result = (str(t.element_type), t.element_id, t.element_required)",
    "some columns": PLACES + "result = schema.select('lat', 'city').column_names",
    "identifier fields": PLACES + "result = (list(schema.identifier_field_ids), schema.identifier_field_names())",
    "the highest id": PLACES + "result = schema.highest_field_id",
    "a schema of Arrow": PLACES + "result = schema.as_arrow().names",
    "equal schemas": PLACES + "result = schema == Schema(*schema.fields, schema_id=5, identifier_field_ids=[1])",
    "a decimal": "t = DecimalType(9, 2); result = (t.precision, t.scale, str(t), t == DecimalType(9, 2))",
    "bytes of one length": "t = FixedType(8); result = (len(t), str(t))",
    "a map": "t = MapType(key_id=1, key_type=StringType(), value_id=2, value_type=LongType(), value_required=False)\n"
    "result = (isinstance(t.key_type, StringType), t.value_id, t.value_field.required, str(t))",
    "types in a set": "result = len({LongType(), LongType(), IntegerType(), DecimalType(9, 2), DecimalType(9, 3)})",
    "a visitor": PLACES
    + """
from PACKAGE.schema import SchemaVisitor, visit
class Leaves(SchemaVisitor):
    def schema(self, schema, struct_result): return struct_result
    def struct(self, struct, field_results): return sum(field_results)
    def field(self, field, field_result): return field_result
    def list(self, list_type, element_result): return element_result
    def map(self, map_type, key_result, value_result): return key_result + value_result
    def primitive(self, primitive): return 1
result = visit(schema, Leaves())
""",
    "names on the way down": PLACES
    + """
from PACKAGE.schema import PreOrderSchemaVisitor, pre_order_visit
class Names(PreOrderSchemaVisitor):
    def schema(self, schema, struct_result): return struct_result()
    def struct(self, struct, field_results): return [name for of in field_results for name in of()]
    def field(self, field, field_result): return [field.name, *field_result()]
    def list(self, list_type, element_result): return ['element', *element_result()]
    def map(self, map_type, key_result, value_result): return []
    def primitive(self, primitive): return []
result = pre_order_visit(schema, Names())
""",
    "ids by name": PLACES + "from PACKAGE.schema import index_by_name\nresult = index_by_name(schema)['at.x']",
    "names by id": PLACES + "from PACKAGE.schema import index_name_by_id\nresult = index_name_by_id(schema)[5]",
    "fields by id": PLACES + "from PACKAGE.schema import index_by_id\nresult = sorted(index_by_id(schema))",
    "a pruned schema": PLACES
    + "from PACKAGE.schema import prune_columns\nresult = prune_columns(schema, {1, 4}).find_type('at').fields[0].name",
    "what a pruned schema keeps": PLACES + "from PACKAGE.schema import prune_columns\n"
    "made = [prune_columns(schema, ids) for ids in ({1, 4}, {2})]\n"
    "result = [(one.schema_id, list(one.identifier_field_ids)) for one in made]",
    "a spec": PLACES
    + """
spec = PartitionSpec(
    PartitionField(source_id=1, field_id=1000, transform=TruncateTransform(width=3), name="city_trunc"),
    PartitionField(source_id=4, field_id=1001, transform=BucketTransform(num_buckets=8), name="x_bucket"),
)
result = ([(one.name, one.field_id, str(one.transform)) for one in spec.fields],
    [str(one.field_type) for one in spec.partition_type(schema).fields],
    [one.name for one in spec.fields_by_source_id(4)], spec.is_unpartitioned(), spec.last_assigned_field_id)
""",
    "the path of a partition": PLACES + "spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), 'city'))\n"
    "result = spec.partition_to_path(('Oslo',), schema)",
    "buckets of a field": "field = PartitionField(1, 1000, BucketTransform(16), 'b')\n"
    "result = isinstance(field.transform, BucketTransform) and field.transform.num_buckets",
    "a sort order": "order = SortOrder(SortField(source_id=2, transform=IdentityTransform(), "
    "direction=SortDirection.DESC))\nfield = order.fields[0]\n"
    "result = (order.order_id, field.direction == SortDirection.DESC, field.null_order == NullOrder.NULLS_LAST, "
    "order.is_unsorted)",
    "the bucket of a value": "result = BucketTransform(16).transform(IntegerType())(34)",
    "the month of a day": "result = MonthTransform().to_human_string(DateType(), 600)",
    "the type of results": "result = str(BucketTransform(4).result_type(StringType()))",
    "what a transform takes": "result = (DayTransform().can_transform(StringType()), "
    "DayTransform().can_transform(TimestampType()), DayTransform().preserves_order)",
    "a transform of its text": "from PACKAGE.transforms import parse_transform\n"
    "result = (parse_transform('truncate[4]').width, parse_transform('void') == parse_transform('void'))",
    "months for days": "result = DayTransform().satisfies_order_of(MonthTransform())",
    "transformed arrays": "result = BucketTransform(4).pyarrow_transform(LongType())(pa.array([1, 2, 3])).to_pylist()",
    "sides of an and": "e = And(EqualTo('a', 1), GreaterThan('b', 2.5)); "
    "result = (e.left.term.name, e.left.literal.value, e.right.term.name, isinstance(e.right, GreaterThan))",
    "several sides": "e = Or(IsNull('a'), IsNull('b'), IsNull('c')); result = isinstance(e, Or)",
    "the child of a not": "e = Not(StartsWith('a', 'x')); result = (e.child.term.name, ~e == StartsWith('a', 'x'))",
    "the set of an in": "e = In(Reference('a'), [3, 1, 2]); result = sorted(one.value for one in e.literals)",
    "constants": "result = (And(AlwaysTrue(), EqualTo('a', 1)) == EqualTo('a', 1), AlwaysTrue() == AlwaysTrue())",
    "operators": "e = (EqualTo('a', 1) & LessThan('b', 2)) | NotNull('c')\n"
    "result = (type(e).__name__, type(e.left).__name__, type(e.right).__name__)",
    "a text": "from PACKAGE.expressions.parser import parse\ne = parse(\"a >= 5 and b = 'x'\")\n"
    "result = (isinstance(e.left, GreaterThanOrEqual), e.right.literal.value)",
    "a walk over an expression": """
from PACKAGE.expressions.visitors import BooleanExpressionVisitor, visit
class Names(BooleanExpressionVisitor):
    def visit_true(self): return set()
    def visit_false(self): return set()
    def visit_not(self, child_result): return child_result
    def visit_and(self, left_result, right_result): return left_result | right_result
    def visit_or(self, left_result, right_result): return left_result | right_result
    def visit_unbound_predicate(self, predicate): return {predicate.term.name}
    def visit_bound_predicate(self, predicate): return set()
result = visit(Or(EqualTo('a', 1), Not(And(IsNull('b'), In('c', [1, 2])))), Names())
""",
    "a literal": "from PACKAGE.expressions.literals import literal\nresult = (literal('x').value, literal(5).value)",
    "enums": "from PACKAGE.table.refs import SnapshotRefType\nfrom PACKAGE.table.snapshots import Operation\n"
    "result = (Operation.APPEND.value, SnapshotRefType('tag') == SnapshotRefType.TAG)",
    "a summary": "from PACKAGE.table.snapshots import Operation, Summary\n"
    "one = Summary(Operation.APPEND, **{'added-records': '3'})\n"
    "result = (one.operation == Operation.APPEND, one['added-records'], one['more'], one.additional_properties)",
}

#: What is read of a table of four rows, appended by two snapshots; `table` and `catalog` are there.
READS = {
    "rows of a filter": "result = table.scan(row_filter=GreaterThanOrEqual('id', 3)).to_arrow()['id'].to_pylist()",
    "rows of a text": "result = table.scan(row_filter=\"city = 'Oslo'\").to_arrow().num_rows",
    "some columns": "result = table.scan(selected_fields=('city',)).to_arrow().column_names",
    "a limit": "result = table.scan(limit=2).to_arrow().num_rows",
    "a scan step by step": "scan = table.scan().filter(LessThan('id', 3)).select('id')\n"
    "result = (scan.projection().column_names, sorted(scan.to_arrow()['id'].to_pylist()))",
    "a count": "result = table.scan(GreaterThan('id', 1)).count()",
    "a reader": "result = sum(batch.num_rows for batch in table.scan().to_arrow_batch_reader())",
    "dictionaries": "result = str(table.scan().to_arrow(('city',))['city'].type).startswith('dictionary')",
    "pandas": "result = sorted(table.scan(selected_fields=('id',)).to_pandas()['id'])",
    "polars": "result = table.scan().to_polars().shape",
    "duckdb": "con = table.scan().to_duckdb(table_name='places')\n"
    "result = con.execute('SELECT max(id) FROM places').fetchall()",
    "files": "result = len([task.file.file_path for task in table.scan().plan_files()])",
    "records of files": "result = sorted(task.file.record_count for task in table.scan().plan_files())",
    "deletes of files": "result = [len(task.delete_files) for task in table.scan().plan_files()]",
    "a residual": "result = {task.residual for task in table.scan().plan_files()} == {AlwaysTrue()}",
    "an earlier snapshot": "result = table.scan(snapshot_id=table.history()[0].snapshot_id).count()",
    "a tag": "result = table.scan().use_ref('first').count()",
    "snapshot of a time": "last = table.current_snapshot()\nfound = table.snapshot_as_of_timestamp(last.timestamp_ms)\n"
    "result = found.snapshot_id == last.snapshot_id",
    "snapshot before a time": "last = table.current_snapshot()\n"
    "found = table.snapshot_as_of_timestamp(table.snapshots()[0].timestamp_ms, inclusive=False)\nresult = found",
    "snapshot of a name": "result = table.snapshot_by_name('first').snapshot_id == table.snapshots()[0].snapshot_id",
    "what a snapshot did": "from PACKAGE.table.snapshots import Operation\n"
    "s = table.current_snapshot().summary\nresult = (s.operation == Operation.APPEND, s['added-records'], s['none'])",
    "logs": "result = ([one.snapshot_id for one in table.metadata.snapshot_log] == "
    "[one.snapshot_id for one in table.history()], len(table.metadata.metadata_log))",
    "references": "from PACKAGE.table.refs import SnapshotRefType\n"
    "result = {name: ref.snapshot_ref_type == SnapshotRefType.TAG for name, ref in table.refs().items()}",
    "the last sequence number": "result = (table.last_sequence_number, table.last_sequence_number > 1)",
    "numbers of the metadata": "m = table.metadata\n"
    "result = (table.format_version, m.last_column_id, table.last_partition_id())",
    "the schema of a table": "result = [(one.name, type(one.field_type).__name__) for one in table.schema().fields]",
    "schemas and specs by id": "result = (sorted(table.schemas()), sorted(table.specs()), sorted(table.sort_orders()))",
    "its name": "result = (table.name(), table.properties.get('owner'))",
    "snapshots as a table": "result = {'committed_at', 'snapshot_id', 'operation', 'summary'} <= "
    "set(table.inspect.snapshots().column_names)",
    "files as a table": "result = sorted(table.inspect.files()['record_count'].to_pylist())",
    "references as a table": "result = sorted(table.inspect.refs()['name'].to_pylist())",
    "history as a table": "result = table.inspect.history()['is_current_ancestor'].to_pylist()",
    "entries and partitions": "result = (table.inspect.entries().num_rows, table.inspect.partitions().num_rows, "
    "table.inspect.manifests().num_rows, table.inspect.metadata_log_entries().num_rows)",
    "a table by a tuple": "result = catalog.load_table(('docs', 'places')).name() == table.name()",
    "fresh metadata": "result = table.refresh().metadata_location == table.metadata_location",
    "schemas of scans": "result = table.scan(selected_fields=('id',)).projection().as_arrow().names",
    "other cases": "result = table.scan('ID > 2', case_sensitive=False).count()",
    "pandas with options": "result = str(table.scan(limit=1).to_pandas(types_mapper=pd.ArrowDtype)['id'].dtype)",
    "filters of sets": "found = [NotIn('id', [1, 2]), NotEqualTo('city', 'Oslo'), In('city', ['Rome', 'Lima']), "
    "StartsWith('city', 'O')]\nresult = [table.scan(one).count() for one in found]",
    "a table of its file": "from PACKAGE.table import StaticTable\n"
    "result = StaticTable.from_metadata(table.metadata_location).scan().count()",
    "appends since a snapshot": "scan = table.incremental_append_scan("
    "from_snapshot_id_exclusive=table.snapshots()[0].snapshot_id)\nresult = sorted(scan.to_arrow()['id'].to_pylist())",
    "names of tables": "result = (catalog.identifier_to_tuple('docs.places'), catalog.table_name_from('docs.places'), "
    "catalog.namespace_from(('docs', 'places')))",
    "what there is": "result = (catalog.table_exists('docs.places'), catalog.list_tables('docs'), "
    "catalog.list_namespaces())",
    "what there is not": "from PACKAGE.exceptions import NoSuchTableError\ntry:\n    catalog.load_table('docs.none')\n"
    "except NoSuchTableError:\n    result = 'missing'",
}

#: What changes a table of its own, of the same four rows.
WRITES = {
    "rows": "table.append(df=rows)\nresult = table.scan().count()",
    "rows with a summary": "table.append(rows, snapshot_properties={'job': '7'})\n"
    "result = table.current_snapshot().summary['job']",
    "all rows anew": "table.overwrite(rows)\nresult = table.scan().count()",
    "some rows anew": "table.overwrite(rows.slice(0, 1), overwrite_filter=EqualTo('city', 'Oslo'))\n"
    "result = sorted(table.scan().to_arrow()['id'].to_pylist())",
    "deleted rows": "table.delete(delete_filter=GreaterThan('id', 2))\n"
    "result = sorted(table.scan().to_arrow()['id'].to_pylist())",
    "rows by their key": "rows = pa.table({'id': pa.array([1, 9], pa.int64()), 'city': ['Bonn', 'Nice']})\n"
    "done = table.upsert(rows, join_cols=['id'])\nresult = (done.rows_updated, done.rows_inserted)",
    "a column": "with table.update_schema() as update:\n    update.add_column('size', IntegerType(), doc='people')\n"
    "result = (table.schema().find_field('size').doc, table.scan().to_arrow()['size'].null_count)",
    "columns of a struct": "with table.update_schema() as update:\n"
    "    update.add_column('at', StructType(NestedField(1, 'x', IntegerType())))\n"
    "with table.update_schema() as update:\n    update.add_column(('at', 'y'), LongType())\n"
    "result = [one.name for one in table.schema().find_type('at').fields]",
    "names of columns": "with table.update_schema() as update:\n    update.rename_column('city', 'town')\n"
    "result = table.scan().to_arrow().column_names",
    "order of columns": "with table.update_schema() as update:\n    update.move_after('id', after_name='city')\n"
    "result = table.schema().column_names",
    "no column": "with table.update_schema() as update:\n    update.delete_column('city')\n"
    "result = table.schema().column_names",
    "the columns of others": "with table.update_schema() as update:\n"
    "    update.union_by_name(pa.schema([('id', pa.int64()), ('new', pa.string())]))\n"
    "result = table.schema().column_names",
    "partitioning": "with table.update_spec() as update:\n    update.add_field('id', BucketTransform(4), 'id_bucket')\n"
    "result = [(one.name, str(one.transform)) for one in table.spec().fields]",
    "a sort order": "with table.update_sort_order() as update:\n    update.asc('city', IdentityTransform())\n"
    "field = table.sort_order().fields[0]\nresult = field.null_order == NullOrder.NULLS_LAST",
    "properties": "with table.transaction() as tx:\n    tx.set_properties({'owner': 'me'})\n"
    "result = table.properties['owner']",
    "several changes": "with table.transaction() as tx:\n    tx.append(rows)\n    tx.delete(EqualTo('id', 1))\n"
    "    tx.set_properties(done='yes')\nresult = (table.scan().count(), table.properties['done'])",
    "tags and branches": "s = table.current_snapshot().snapshot_id\n"
    "table.manage_snapshots().create_tag(s, 'v1').create_branch(s, 'dev').commit()\nresult = sorted(table.refs())",
    "rows of a branch": "table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, 'dev').commit()\n"
    "table.append(rows, branch='dev')\nresult = (table.scan().count(), table.scan().use_ref('dev').count())",
    "a roll back": "table.manage_snapshots().rollback_to_snapshot(table.snapshots()[0].snapshot_id).commit()\n"
    "result = table.scan().count()",
    "no old snapshots": "table.manage_snapshots().remove_tag('first').commit()\n"
    "table.maintenance.expire_snapshots().by_id(table.snapshots()[0].snapshot_id).commit()\n"
    "result = len(table.snapshots())",
    "another name": "catalog.rename_table(table.name(), 'docs.moved')\n"
    "result = catalog.load_table('docs.moved').scan().count()\ncatalog.drop_table('docs.moved')",
    "a table of an Iceberg schema": "made = catalog.create_table('docs.made', Schema("
    "NestedField(1, 'day', DateType()), NestedField(2, 'v', DecimalType(9, 2))), "
    "partition_spec=PartitionSpec(PartitionField(1, 1000, MonthTransform(), 'day_month')), "
    "sort_order=SortOrder(SortField(2, IdentityTransform())), properties={'a': 'b'})\n"
    "result = (made.spec().fields[0].name, str(made.sort_order().fields[0].transform), made.properties['a'])\n"
    "again = catalog.create_table_if_not_exists('docs.made', made.schema())\ncatalog.drop_table('docs.made')",
    "replaced partitions": "made = catalog.create_table('docs.made', Schema(NestedField(1, 'id', LongType()), "
    "NestedField(2, 'city', StringType())), "
    "partition_spec=PartitionSpec(PartitionField(2, 1000, IdentityTransform(), 'city')))\nmade.append(rows)\n"
    "made.dynamic_partition_overwrite(rows.slice(0, 1))\nresult = made.scan().count()\ncatalog.drop_table('docs.made')",
    "a table in a transaction": "with catalog.create_table_transaction('docs.made', Schema("
    "NestedField(1, 'id', LongType()), NestedField(2, 'city', StringType()))) as tx:\n"
    "    tx.set_properties(a='b')\n    tx.append(rows)\n"
    "made = catalog.load_table(('docs', 'made'))\nresult = (made.scan().count(), made.properties['a'])\n"
    "catalog.drop_table('docs.made')",
    "no properties": "with table.transaction() as tx:\n    tx.remove_properties('owner')\n"
    "result = table.properties.get('owner')",
    "columns that may be null": "with table.update_schema(allow_incompatible_changes=True) as update:\n"
    "    update.update_column('id', required=True)\nwith table.update_schema() as update:\n"
    "    update.set_identifier_fields('id')\nids = list(table.schema().identifier_field_ids)\n"
    "with table.update_schema() as update:\n    update.set_identifier_fields()\n"
    "with table.update_schema() as update:\n    update.make_column_optional('id')\n"
    "result = (ids, table.schema().find_field('id').required)",
    "wider types": "with table.update_schema() as update:\n    update.add_column('n', IntegerType())\n"
    "with table.update_schema() as update:\n    update.update_column('n', field_type=LongType(), doc='wide')\n"
    "result = (str(table.schema().find_type('n')), table.schema().find_field('n').doc)",
    "columns in transactions": "with table.transaction() as tx:\n    with tx.update_schema() as update:\n"
    "        update.add_column('n', IntegerType())\n        update.move_first('n')\n"
    "        update.move_before('city', 'id')\n    tx.set_properties(a='b')\nresult = table.schema().column_names",
    "names of partitions": "with table.update_spec() as update:\n    update.add_identity('city')\n"
    "with table.update_spec() as update:\n    update.rename_field('city', 'town')\n"
    "with table.update_spec() as update:\n    update.remove_field('town')\n    update.add_field('id', "
    "'bucket[2]', 'b')\n"
    "result = [(one.name, str(one.transform)) for one in table.spec().fields if str(one.transform) != 'void']",
    "the current snapshot": "first = table.snapshots()[0]\n"
    "table.manage_snapshots().set_current_snapshot(snapshot_id=first.snapshot_id).commit()\n"
    "result = table.scan().count()",
    "a roll back in time": "now = table.current_snapshot().timestamp_ms\n"
    "table.manage_snapshots().rollback_to_timestamp(timestamp_ms=now).commit()\nresult = table.scan().count()",
    "no branch": "with table.manage_snapshots() as refs:\n"
    "    refs.create_branch(table.current_snapshot().snapshot_id, 'dev', max_ref_age_ms=1000)\n"
    "kept = table.refs()['dev'].max_ref_age_ms\ntable.manage_snapshots().remove_branch('dev').commit()\n"
    "result = (kept, 'dev' in table.refs())",
    "snapshots of a time": "table.manage_snapshots().remove_tag('first').commit()\n"
    "end = datetime(2100, 1, 1, tzinfo=timezone.utc)\n"
    "table.maintenance.expire_snapshots().older_than(end).commit()\nresult = len(table.snapshots())",
    "files of others": "import pyarrow.parquet as pq\n"
    "path = str(table.location()).removeprefix('file://') + '/other.parquet'\n"
    "pq.write_table(rows, path)\ntable.add_files(file_paths=['file://' + path])\nresult = table.scan().count()",
    "catalogs of a class": "from PACKAGE.catalog.sql import SqlCatalog\nresult = isinstance(catalog, SqlCatalog)",
    "namespaces": "catalog.create_namespace_if_not_exists('more', {'owner': 'me'})\n"
    "done = catalog.update_namespace_properties('more', removals={'owner'}, updates={'a': 'b'})\n"
    "result = (done.removed, done.updated, catalog.load_namespace_properties('more').get('a'))\n"
    "catalog.drop_namespace('more')",
    "statistics of a snapshot": """
from PACKAGE.table.statistics import BlobMetadata, StatisticsFile
first, last = (one.snapshot_id for one in table.snapshots())
blob = BlobMetadata(type="apache-datasketches-theta-v1", snapshot_id=first, sequence_number=1, fields=[1],
    properties={"ndv": "2"})
def file(snapshot_id, path):
    return StatisticsFile(snapshot_id=snapshot_id, statistics_path=path, file_size_in_bytes=400,
        file_footer_size_in_bytes=40, blob_metadata=[blob])
table.update_statistics().set_statistics(file(first, "s3://a/1")).set_statistics(file(last, "s3://a/2")).commit()
with table.update_statistics() as update:
    update.remove_statistics(first)
found = table.metadata.statistics
result = [(one.statistics_path, one.file_size_in_bytes, one.blob_metadata[0].fields, one.blob_metadata[0].properties)
    for one in found] + [found[0].snapshot_id == last]
""",
    "statistics in a transaction": """
from PACKAGE.table.statistics import StatisticsFile
last = table.current_snapshot().snapshot_id
file = StatisticsFile(snapshot_id=last, statistics_path="s3://a/1", file_size_in_bytes=4, file_footer_size_in_bytes=2,
    blob_metadata=[])
with table.transaction() as transaction:
    transaction.set_properties(a="b")
    transaction.update_statistics().set_statistics(file).commit()
result = ([one.statistics_path for one in table.metadata.statistics], table.properties["a"])
""",
}

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "city": ["Oslo", "Rome"]})
MORE = pa.table({"id": pa.array([3, 4], pa.int64()), "city": ["Oslo", "Lima"]})


def run(package: str, snippet: str, **names: Any) -> Any:
    """Run a snippet with one of the packages, and return its result."""
    source = textwrap.dedent(HEAD + "\n" + snippet).replace("PACKAGE", package)
    exec(compile(source, f"<{package}>", "exec"), names)
    return names["result"]


@pytest.fixture(scope="module")
def catalogs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    opened = {}
    for package in PACKAGES:
        folder: Path = tmp_path_factory.mktemp(package)
        load = importlib.import_module(f"{package}.catalog").load_catalog
        place = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}"}
        opened[package] = load("local", type="sql", **place)
        opened[package].create_namespace("docs")
        places(opened[package], "docs.places")
    yield opened
    for catalog in opened.values():
        catalog.close()


def places(catalog: Any, name: str) -> Any:
    """Make a table of two appends and a tag."""
    table = catalog.create_table(name, schema=ROWS.schema, properties={"owner": "docs"})
    table.append(ROWS)
    table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "first").commit()
    table.append(MORE)
    return table


@pytest.mark.parametrize("name", VALUES)
def test_values_of_idioms(name: str) -> None:
    ours, theirs = (run(package, VALUES[name]) for package in PACKAGES)
    assert ours == theirs


@pytest.mark.parametrize("name", READS)
def test_reads_of_idioms(name: str, catalogs: dict[str, Any]) -> None:
    results = []
    for package, catalog in catalogs.items():
        results.append(run(package, READS[name], catalog=catalog, table=catalog.load_table("docs.places")))
    ours, theirs = results
    assert ours == theirs


@pytest.mark.parametrize("name", WRITES)
def test_writes_of_idioms(name: str, catalogs: dict[str, Any]) -> None:
    results = []
    for package, catalog in catalogs.items():
        table = places(catalog, "docs.written")
        try:
            results.append(run(package, WRITES[name], catalog=catalog, table=table, rows=MORE))
        finally:
            if catalog.table_exists("docs.written"):
                catalog.drop_table("docs.written")
    ours, theirs = results
    assert ours == theirs
