//! "Column Projection": the source of each requested column of a Parquet file, file by file.

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, ListBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, Float32Array, Int32Array, RecordBatch, StringArray, StructArray};
use arrow_schema::{DataType, Field as ArrowField, FieldRef, Fields, Schema as ArrowSchema};
use icefield_format::types::arrow::{field_id, with_mapped_ids};
use icefield_format::types::{Field, ListType, NameMapping, PrimitiveType, StructType, Type};
use icefield_format::value::Value;
use icefield_table::file::Request;
use icefield_table::file::leaves::projected;
use icefield_table::file::parquet::read::ParquetFile;
use icefield_table::read::columns::{Constants, Planned, Rules, Source, leaves};
use icefield_table::read::reshape::Reshape;
use icefield_table::storage::{Existing, Storage};
use icefield_table::{Error, Result};
use parquet::arrow::{ArrowWriter, PARQUET_FIELD_ID_META_KEY};

fn with_id(field: ArrowField, id: i32) -> FieldRef {
    Arc::new(field.with_metadata([(PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string())]))
}

/// A file with three rows: `a` (1) int, `st` (2) struct of `x` (3) float and `y` (4) string, `l` (5) list of int (6).
fn file(storage: &Storage, path: &str, ids: bool) -> ParquetFile {
    let x = with_id(ArrowField::new("x", DataType::Float32, true), 3);
    let y = with_id(ArrowField::new("y", DataType::Utf8, true), 4);
    let element = with_id(ArrowField::new("element", DataType::Int32, true), 6);
    let children: Vec<ArrayRef> = vec![
        Arc::new(Float32Array::from(vec![Some(0.5), None, Some(1.5)])),
        Arc::new(StringArray::from(vec![Some("p"), Some("q"), None])),
    ];
    let st = StructArray::new(vec![x, y].into(), children, Some(vec![true, false, true].into()));
    let mut l = ListBuilder::new(Int32Builder::new()).with_field(element);
    l.append_value([Some(1), None]);
    l.append_null();
    l.append_value([]);
    let columns: Vec<ArrayRef> = vec![Arc::new(Int32Array::from(vec![1, 2, 3])), Arc::new(st), Arc::new(l.finish())];
    let names = [("a", 1), ("st", 2), ("l", 5)];
    let fields: Fields = names
        .iter()
        .zip(&columns)
        .map(|((name, id), column)| with_id(ArrowField::new(*name, column.data_type().clone(), true), *id))
        .collect();
    let (fields, columns) = if ids { (fields, columns) } else { stripped(&fields, &columns) };
    let batch = RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), columns).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    storage.put(path, bytes, Existing::Replace).unwrap();
    ParquetFile::open(storage, path, None).unwrap()
}

fn stripped(fields: &Fields, columns: &[ArrayRef]) -> (Fields, Vec<ArrayRef>) {
    let bare: Fields = fields.iter().map(without_id).collect();
    let cast = columns.iter().zip(&bare).map(|(column, field)| arrow_cast::cast(column, field.data_type()).unwrap());
    (bare.clone(), cast.collect())
}

fn without_id(field: &FieldRef) -> FieldRef {
    let ty = match field.data_type() {
        DataType::Struct(children) => DataType::Struct(children.iter().map(without_id).collect()),
        DataType::List(element) => DataType::List(without_id(element)),
        other => other.clone(),
    };
    Arc::new(ArrowField::new(field.name(), ty, field.is_nullable()))
}

struct Partition(Vec<(i32, Option<Value>)>);

impl Constants for Partition {
    fn identity(&self, source_id: i32) -> Option<Option<Value>> {
        self.0.iter().find(|(id, _)| *id == source_id).map(|(_, value)| value.clone())
    }
}

/// Reads requested columns as a scan does: plan, leaves, decoder, reshaping.
fn read(file: &ParquetFile, wanted: &[(Field, FieldRef)], rules: &Rules<'_>, fields: &Fields) -> Result<RecordBatch> {
    let marks = leaves(&rules.plan(wanted, fields)?, fields);
    let planned: Vec<Planned> = rules.plan(wanted, &projected(fields, &marks))?;
    let schema = Arc::new(ArrowSchema::new(wanted.iter().map(|(_, target)| target.clone()).collect::<Vec<_>>()));
    let batch = file.decode(vec![0], &Request::all(marks))?.next().unwrap()?;
    Reshape::new("file", schema, planned).apply(&batch)
}

fn wanted(field: Field, ty: DataType) -> (Field, FieldRef) {
    let target = ArrowField::new(&field.name, ty, !field.required);
    (field, Arc::new(target))
}

const NO_PARTITION: Partition = Partition(Vec::new());

fn rules(constants: &Partition) -> Rules<'_> {
    Rules { path: "memory://b/f.parquet", constants }
}

#[test]
fn columns_are_found_by_id_and_promoted() {
    let storage = Storage::default();
    let file = file(&storage, "memory://projection/ids.parquet", true);
    let columns = [
        wanted(Field::optional(9, "added", PrimitiveType::String), DataType::Utf8),
        wanted(Field::optional(1, "renamed", PrimitiveType::Long), DataType::Int64),
    ];
    let batch = read(&file, &columns, &rules(&NO_PARTITION), file.fields()).unwrap();
    assert_eq!(batch.column(0).null_count(), 3);
    assert_eq!(batch.column(1).as_primitive::<Int64Type>().values(), &[1, 2, 3]);
}

#[test]
fn nested_fields_are_projected_on_their_own() {
    let storage = Storage::default();
    let file = file(&storage, "memory://projection/nested.parquet", true);
    let inner = StructType {
        fields: vec![Field::optional(8, "new", PrimitiveType::Int), Field::optional(3, "was_x", PrimitiveType::Double)],
    };
    let targets: Fields =
        vec![ArrowField::new("new", DataType::Int32, true), ArrowField::new("was_x", DataType::Float64, true)].into();
    let columns = [wanted(Field::optional(2, "st", Type::Struct(Arc::new(inner))), DataType::Struct(targets))];
    assert_eq!(leaves(&rules(&NO_PARTITION).plan(&columns, file.fields()).unwrap(), file.fields()), [1]);
    let batch = read(&file, &columns, &rules(&NO_PARTITION), file.fields()).unwrap();
    let st = batch.column(0).as_struct();
    assert!(st.is_null(1) && st.is_valid(0));
    assert_eq!(st.column(0).null_count(), 3);
    assert_eq!(st.column(1).as_primitive::<arrow_array::types::Float64Type>().value(2), 1.5);
}

#[test]
fn a_struct_without_wanted_children_keeps_its_nulls() {
    let storage = Storage::default();
    let file = file(&storage, "memory://projection/hollow.parquet", true);
    let inner = StructType { fields: vec![Field::optional(8, "new", PrimitiveType::Int)] };
    let targets: Fields = vec![ArrowField::new("new", DataType::Int32, true)].into();
    let columns = [wanted(Field::optional(2, "st", Type::Struct(Arc::new(inner))), DataType::Struct(targets))];
    let batch = read(&file, &columns, &rules(&NO_PARTITION), file.fields()).unwrap();
    let nulls: Vec<bool> = (0..3).map(|row| batch.column(0).is_null(row)).collect();
    assert_eq!(nulls, [false, true, false]);
}

#[test]
fn elements_are_promoted() {
    let storage = Storage::default();
    let file = file(&storage, "memory://projection/list.parquet", true);
    let list = Type::List(Arc::new(ListType { element: Field::optional(6, "element", PrimitiveType::Long) }));
    let target = DataType::List(Arc::new(ArrowField::new("element", DataType::Int64, true)));
    let batch =
        read(&file, &[wanted(Field::optional(5, "l", list), target)], &rules(&NO_PARTITION), file.fields()).unwrap();
    let l = batch.column(0).as_list::<i32>();
    assert_eq!((l.value_length(0), l.is_null(1), l.value_length(2)), (2, true, 0));
    assert_eq!(l.value(0).as_primitive::<Int64Type>().value(0), 1);
}

#[test]
fn absent_columns_follow_the_rules_in_order() {
    let storage = Storage::default();
    let file = file(&storage, "memory://projection/absent.parquet", true);
    let mut with_default = Field::required(20, "d", PrimitiveType::Int);
    with_default.initial_default = Some(Value::Int(7));
    let partition = Partition(vec![(21, Some(Value::Int(5))), (22, None), (1, Some(Value::Int(99)))]);
    let columns = [
        wanted(with_default, DataType::Int32),
        wanted(Field::optional(21, "p", PrimitiveType::Int), DataType::Int32),
        wanted(Field::optional(22, "null_partition", PrimitiveType::Int), DataType::Int32),
        wanted(Field::optional(1, "a", PrimitiveType::Int), DataType::Int32),
    ];
    let batch = read(&file, &columns, &rules(&partition), file.fields()).unwrap();
    let ints = |at: usize| batch.column(at).as_primitive::<Int32Type>().iter().collect::<Vec<_>>();
    assert_eq!(ints(0), [Some(7); 3]);
    assert_eq!(ints(1), [Some(5); 3]);
    assert_eq!(ints(2), [None; 3]);
    assert_eq!(ints(3), [Some(99); 3], "what planning has pruned by is what rows show");

    let missing = [wanted(Field::required(30, "must", PrimitiveType::Int), DataType::Int32)];
    let error = read(&file, &missing, &rules(&NO_PARTITION), file.fields()).unwrap_err();
    assert!(error.to_string().contains("column must (id 30) is required"), "{error}");
}

#[test]
fn columns_without_ids_are_found_by_name() {
    let storage = Storage::default();
    let file = file(&storage, "memory://projection/names.parquet", false);
    assert!(field_id(&file.fields()[0]).is_none());
    let mapping = r#"[{"field-id": 1, "names": ["a"]}, {"field-id": 5, "names": ["l"]}]"#;
    let named = with_mapped_ids(file.fields(), &NameMapping::parse(mapping).unwrap());
    let partition = Partition(vec![(1, Some(Value::Int(42)))]);
    let rules = rules(&partition);
    let planned = rules.plan(&[wanted(Field::optional(1, "a", PrimitiveType::Int), DataType::Int32)], &named).unwrap();
    assert!(matches!(&planned[0].source, Source::Constant(Some(Value::Int(42)))));
    let rules = Rules { constants: &NO_PARTITION, ..rules };
    let columns = [wanted(Field::optional(1, "a", PrimitiveType::Int), DataType::Int32)];
    let batch = read(&file, &columns, &rules, &named).unwrap();
    assert_eq!(batch.column(0).as_primitive::<Int32Type>().values(), &[1, 2, 3]);
}

#[test]
fn a_type_that_cannot_be_read_names_the_column() {
    let storage = Storage::default();
    let file = file(&storage, "memory://projection/mismatch.parquet", true);
    for (id, ty, target) in [
        (1, PrimitiveType::String, DataType::Utf8),
        (1, PrimitiveType::Boolean, DataType::Boolean),
        (5, PrimitiveType::Int, DataType::Int32),
    ] {
        let columns = [wanted(Field::optional(id, "c", ty), target)];
        let error = rules(&NO_PARTITION).plan(&columns, file.fields()).unwrap_err();
        assert!(matches!(&error, Error::CorruptFile { message, .. } if message.contains("column c")), "{error}");
    }
}

#[test]
fn a_cut_or_flipped_file_is_an_error_and_no_panic() {
    let storage = Storage::default();
    let path = "memory://projection/whole.parquet";
    let _ = file(&storage, path, true);
    let bytes = storage.read(path).unwrap();
    let damaged = "memory://projection/damaged.parquet";
    let try_it = |bytes: Vec<u8>| -> Result<usize> {
        storage.put(damaged, bytes, Existing::Replace)?;
        let file = ParquetFile::open(&storage, damaged, None)?;
        let groups = (0..file.metadata().num_row_groups()).collect();
        file.decode(groups, &Request::all(vec![0, 1, 2, 3]))?.map(|batch| batch.map(|batch| batch.num_rows())).sum()
    };
    for cut in 0..bytes.len() {
        let error = try_it(bytes[..cut].to_vec()).unwrap_err();
        assert!(error.to_string().contains("damaged.parquet"), "{error}");
    }
    for at in (0..bytes.len()).step_by(3) {
        let mut flipped = bytes.to_vec();
        flipped[at] ^= 0x20;
        // The damage may go unnoticed, as there is no checksum, but it must not end the process.
        let _ = try_it(flipped);
    }
}
