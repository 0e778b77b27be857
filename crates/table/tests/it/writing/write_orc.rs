//! Writing ORC data files: metrics, stripes, limits, and cleanup.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float32Array, Int64Array, RecordBatch, StringArray, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field as ArrowField, Fields};
use icefield_format::manifest::DataFile;
use icefield_format::spec::{PartitionField, PartitionSpec};
use icefield_format::transform::Transform;
use icefield_format::types::{Field, PrimitiveType, Schema, StructType};
use icefield_orc::Reader;
use icefield_table::storage::Storage;
use icefield_table::write::{TableWriter, WriterConfig};

const ROOT: &str = "memory://write-orc";

fn schema() -> Arc<Schema> {
    let inner = StructType::new(vec![
        Field::optional(4, "f", PrimitiveType::Float),
        Field::required(5, "s", PrimitiveType::String),
    ]);
    let fields = vec![Field::required(1, "id", PrimitiveType::Long), Field::optional(3, "at", inner)];
    Arc::new(Schema::new(0, fields).unwrap())
}

/// Rows in which every fifth struct is null; its floats are NaN, -0.0, 1.5 and null in turn.
fn batch(from: i64, count: i64) -> RecordBatch {
    let ids = from..from + count;
    let floats: ArrayRef = Arc::new(
        ids.clone().map(|id| [Some(f32::NAN), Some(-0.0), Some(1.5), None][id as usize % 4]).collect::<Float32Array>(),
    );
    let texts: ArrayRef =
        Arc::new(ids.clone().map(|id| Some(format!("{id:06}-{}", "y".repeat(40)))).collect::<StringArray>());
    let fields: Fields =
        vec![ArrowField::new("f", DataType::Float32, true), ArrowField::new("s", DataType::Utf8, true)].into();
    let nulls = ids.clone().map(|id| id % 5 != 0).collect::<Vec<_>>();
    let at = StructArray::try_new(fields, vec![floats, texts], Some(NullBuffer::from(nulls))).unwrap();
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(ids));
    RecordBatch::try_from_iter_with_nullable([("at", Arc::new(at) as ArrayRef, true), ("id", ids, false)]).unwrap()
}

fn config(name: &str, spec: PartitionSpec, settings: &[(&str, &str)]) -> WriterConfig {
    let settings = [("write.format.default", "orc")].iter().chain(settings);
    let properties = settings.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let config = WriterConfig::new(Storage::default(), format!("{ROOT}/{name}"), schema(), Arc::new(spec));
    WriterConfig { properties, ..config }
}

fn unpartitioned() -> PartitionSpec {
    PartitionSpec { spec_id: 0, fields: Vec::new() }
}

fn by_bucket(buckets: u32) -> PartitionSpec {
    let transform = Transform::Bucket(buckets);
    let field = PartitionField { source_ids: vec![1], field_id: 1000, name: "id_bucket".to_owned(), transform };
    PartitionSpec { spec_id: 0, fields: vec![field] }
}

fn write(config: WriterConfig, batches: &[RecordBatch]) -> Vec<DataFile> {
    let mut writer = TableWriter::new(config, &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap()
}

fn open(file: &DataFile) -> Reader<bytes::Bytes> {
    let bytes = Storage::default().read(&file.file_path).unwrap();
    assert_eq!(bytes.len() as i64, file.file_size_in_bytes);
    Reader::open(bytes).unwrap()
}

#[test]
fn metrics_and_stripes_of_one_file() {
    let config = config("one", unpartitioned(), &[("write.orc.stripe-size-bytes", "20000")]);
    let files = write(config, &[batch(0, 4000), batch(4000, 6000)]);
    let [file] = files.as_slice() else { panic!("{files:?}") };
    assert_eq!((file.file_format.as_str(), file.record_count), ("ORC", 10_000));
    // Floats and texts of null structs count neither as values nor as nulls; a column with nulls counts all rows.
    assert_eq!(file.value_counts, Some(vec![(1, 10_000), (3, 10_000), (4, 10_000), (5, 8000)]));
    assert_eq!(file.null_value_counts, Some(vec![(1, 0), (3, 2000), (4, 4000), (5, 0)]));
    assert_eq!(file.nan_value_counts, Some(vec![(4, 2000)]));
    let text = |text: &str| text.as_bytes().to_vec();
    let float = |value: f32| value.to_le_bytes().to_vec();
    let lower = vec![(1, 0_i64.to_le_bytes().to_vec()), (4, float(-0.0)), (5, text("000001-yyyyyyyyy"))];
    assert_eq!(file.lower_bounds, Some(lower));
    let upper = vec![(1, 9999_i64.to_le_bytes().to_vec()), (4, float(1.5)), (5, text("009999-yyyyyyyyz"))];
    assert_eq!(file.upper_bounds, Some(upper));
    let sizes = file.column_sizes.clone().unwrap();
    assert!(sizes.iter().filter(|(id, _)| *id != 3).all(|(_, size)| *size > 0), "{sizes:?}");
    let reader = open(file);
    let stripes = reader.metadata().footer.stripes.iter().map(|stripe| stripe.offset.unwrap() as i64);
    assert_eq!(file.split_offsets, Some(stripes.collect()));
    assert!(file.split_offsets.as_ref().unwrap().len() > 5);
}

#[test]
fn modes_leave_out_metrics() {
    for (mode, counted, bounded) in [("none", 0, 0), ("counts", 4, 0), ("truncate(2)", 4, 3), ("full", 4, 3)] {
        let settings = [("write.metadata.metrics.default", mode)];
        let file = write(config(mode, unpartitioned(), &settings), &[batch(0, 10)]).remove(0);
        let length = |map: &Option<Vec<(i32, Vec<u8>)>>| map.as_ref().unwrap().len();
        assert_eq!(file.value_counts.unwrap().len(), counted, "{mode}");
        assert_eq!(file.column_sizes.unwrap().len(), counted, "{mode}");
        assert_eq!(file.nan_value_counts.unwrap().len(), counted.min(1), "{mode}");
        assert_eq!((length(&file.lower_bounds), length(&file.upper_bounds)), (bounded, bounded), "{mode}");
    }
}

#[test]
fn many_partitions_stay_within_little_memory() {
    let mut config = config("many", by_bucket(200), &[]);
    (config.memory_bytes, config.open_files) = (100_000, 20);
    let files = write(config, &(0..8).map(|number| batch(number * 500, 500)).collect::<Vec<_>>());
    assert_eq!(files.iter().map(|file| file.record_count).sum::<i64>(), 4000);
    assert!(files.len() >= 200);
    let rows: u64 = files.iter().map(|file| open(file).metadata().rows()).sum();
    assert_eq!(rows, 4000);
}

#[test]
fn what_fails_leaves_nothing() {
    let config = WriterConfig { memory_bytes: 1000, ..config("failed", by_bucket(3), &[]) };
    let storage = config.storage.clone();
    let mut writer = TableWriter::new(config, &batch(0, 1).schema()).unwrap();
    writer.write(&batch(0, 1000)).unwrap();
    writer.abort();
    assert!(storage.list(&format!("{ROOT}/failed")).unwrap().is_empty());
}
