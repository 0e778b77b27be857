//! Writing delete files: they are read back, and have the same metrics as those of Java.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray, StructArray};
use arrow_schema::{DataType, Field as ArrowField};
use icefield_format::Limits;
use icefield_format::expr::Expression;
use icefield_format::manifest::{DataFile, FileContent};
use icefield_format::metadata::StringMap;
use icefield_format::puffin::{DeletionVector, Footer};
use icefield_format::spec::{PartitionField, PartitionSpec};
use icefield_format::transform::Transform;
use icefield_format::types::reserved::{DELETE_FILE_PATH, DELETE_FILE_POS};
use icefield_format::types::{Field, ListType, PrimitiveType, Schema, StructType};
use icefield_format::value::Value;
use icefield_table::Error;
use icefield_table::file::{self, Request};
use icefield_table::plan::deletes::DeleteKind;
use icefield_table::plan::projection::wanted::Wanted;
use icefield_table::plan::tasks::ReadTask;
use icefield_table::plan::tasks::part::{DeletePart, FilePart, FilePartition, PlannedSpec};
use icefield_table::read::deletes::positions::Positions;
use icefield_table::read::deletes::{Chosen, vectors};
use icefield_table::read::options::ReadOptions;
use icefield_table::read::task;
use icefield_table::storage::{Fault, FaultPlan, FileRef, Storage};
use icefield_table::write::deletes::equality::EqualityDeleteWriter;
use icefield_table::write::deletes::positions::write_positions;
use icefield_table::write::deletes::vectors::write_vectors;
use icefield_table::write::deletes::{DeleteConfig, DeletedRows, Granularity};
use icefield_table::write::{TableWriter, WriterConfig};
use proptest::prelude::*;

fn schema() -> Arc<Schema> {
    let inner = StructType::new(vec![Field::optional(4, "x", PrimitiveType::Int)]);
    let fields = vec![
        Field::required(1, "id", PrimitiveType::Long),
        Field::optional(2, "name", PrimitiveType::String),
        Field::optional(3, "at", inner),
        Field::optional(5, "tags", ListType::optional(6, PrimitiveType::String)),
    ];
    Arc::new(Schema::new(0, fields).unwrap())
}

fn by_name() -> Arc<PartitionSpec> {
    let field =
        PartitionField { source_ids: vec![2], field_id: 1000, name: "name".into(), transform: Transform::Identity };
    Arc::new(PartitionSpec { spec_id: 3, fields: vec![field] })
}

fn config(name: &str, properties: &[(&str, &str)]) -> DeleteConfig {
    DeleteConfig {
        storage: Storage::default(),
        location: format!("memory://write-deletes/{name}"),
        properties: properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        schema: schema(),
        operation: uuid::Uuid::new_v4(),
        task: 0,
        attempt: 0,
    }
}

fn deleted(path: &str, partition: Option<&str>, positions: &[u64]) -> DeletedRows {
    DeletedRows {
        data_file: path.to_owned(),
        spec: by_name(),
        partition: vec![partition.map(|value| Value::String(value.into()))],
        positions: Arc::new(DeletionVector::from_positions(positions.iter().copied()).unwrap()),
    }
}

fn part(file: &DataFile, kind: DeleteKind) -> DeletePart {
    DeletePart {
        key_metadata: None,
        kind,
        path: file.file_path.clone(),
        format: file.file_format.to_lowercase(),
        size: file.file_size_in_bytes.unsigned_abs(),
        record_count: file.record_count,
        sequence_number: 2,
        equality_ids: file.equality_ids.clone().unwrap_or_default(),
        key: Arc::default(),
        referenced_data_file: file.referenced_data_file.clone(),
        blob: file.content_offset.zip(file.content_size_in_bytes),
    }
}

/// The deleted positions of each data file, read back as in a scan.
fn read_back(files: &[DataFile], data_files: &[DeletedRows], storage: &Storage) -> BTreeMap<String, Vec<u64>> {
    let mut found: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let wanted: HashMap<String, Option<u64>> = data_files.iter().map(|rows| (rows.data_file.clone(), None)).collect();
    for file in files {
        if file.content_offset.is_some() {
            let vector =
                vectors::load(storage, &part(file, DeleteKind::Vector), &vectors::Named::default(), &Limits::default())
                    .unwrap();
            let path = file.referenced_data_file.clone().unwrap();
            found.entry(path).or_default().extend(vector.positions());
            continue;
        }
        let delete = part(file, DeleteKind::Positions);
        let positions = Positions::load(storage, &delete, &wanted, &Limits::default()).unwrap();
        for path in wanted.keys() {
            if let Some(of_file) = positions.of(path) {
                found.entry(path.clone()).or_default().extend(of_file.positions());
            }
        }
    }
    found
}

/// The rows of a position delete file, in their stored order.
fn stored(file: &DataFile, storage: &Storage) -> Vec<(String, i64)> {
    let fields = vec![DELETE_FILE_PATH.to_field(), DELETE_FILE_POS.to_field()];
    let schema = Arc::new(Schema::new(0, fields).unwrap());
    let size = file.file_size_in_bytes.unsigned_abs();
    let mut reader =
        file::open(storage, &FileRef::plain(&file.file_path, size), &file.file_format, FileContent::PositionDeletes)
            .unwrap();
    reader.bind(&Clone::clone, &schema);
    let mut rows = Vec::new();
    for batch in reader.batches(Request::all(vec![0, 1])).unwrap().into_batches() {
        let batch = batch.unwrap();
        let (paths, positions) = (batch.column(0).as_string::<i32>(), batch.column(1).as_primitive::<Int64Type>());
        rows.extend(paths.iter().zip(positions.values()).map(|(path, at)| (path.unwrap().to_owned(), *at)));
    }
    rows
}

fn any_deleted() -> impl Strategy<Value = Vec<DeletedRows>> {
    let positions = prop::collection::btree_set(prop_oneof![0..50_u64, 0..200_000_u64], 0..40);
    let one = (prop::option::of("[a-c/ ]{0,2}"), positions);
    prop::collection::vec(one, 0..6).prop_map(|all| {
        let rows = all.into_iter().enumerate().map(|(at, (partition, positions))| {
            let positions: Vec<u64> = positions.into_iter().collect();
            // Descending paths that differ only after the length of truncated bounds.
            deleted(
                &format!("memory://write-deletes/t/data/{}-{}.parquet", "x".repeat(20), 9 - at),
                partition.as_deref(),
                &positions,
            )
        });
        rows.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn positions_that_are_written_are_read(
        rows in any_deleted(),
        format in prop::sample::select(vec!["parquet", "orc", "avro"]),
        granularity in prop::sample::select(vec![Granularity::File, Granularity::Partition]),
        target in prop::sample::select(vec!["1", "67108864"]),
    ) {
        let settings = [("write.delete.format.default", format), ("write.delete.target-file-size-bytes", target)];
        let config = config("positions", &settings);
        let files = write_positions(&config, rows.clone(), granularity).unwrap();
        let expected: BTreeMap<String, Vec<u64>> = rows
            .iter()
            .filter(|rows| !rows.positions.is_empty())
            .map(|rows| (rows.data_file.clone(), rows.positions.positions().collect()))
            .collect();
        prop_assert_eq!(&read_back(&files, &rows, &config.storage), &expected);
        let partitions: BTreeMap<_, _> = rows.iter().map(|rows| (rows.data_file.clone(), rows.partition.clone())).collect();
        for file in &files {
            let stored = stored(file, &config.storage);
            prop_assert!(stored.is_sorted(), "{stored:?}");
            prop_assert_eq!(stored.len() as i64, file.record_count);
            prop_assert!(stored.iter().all(|(path, _)| partitions[path] == file.partition));
            prop_assert!(file.file_path.ends_with(&format!("-deletes.{format}")), "{}", file.file_path);
            let (first, last) = (&stored[0].0, &stored[stored.len() - 1].0);
            let is_one = first == last;
            prop_assert!(is_one || granularity == Granularity::Partition && target != "1");
            prop_assert_eq!(file.referenced_data_file.as_ref(), is_one.then_some(first));
            // As in Java: files about a single data file have complete bounds, and no counts.
            let bound = |bounds: &Option<Vec<(i32, Vec<u8>)>>| {
                let found = bounds.as_ref()?.iter().find(|(id, _)| *id == DELETE_FILE_PATH.id)?;
                Some(String::from_utf8(found.1.clone()).unwrap())
            };
            let expected = (is_one && format != "avro").then(|| first.clone());
            prop_assert_eq!(bound(&file.lower_bounds), expected.clone());
            prop_assert_eq!(bound(&file.upper_bounds), expected);
            prop_assert_eq!(file.content, FileContent::PositionDeletes);
            prop_assert_eq!(file.partition_spec_id, 3);
            prop_assert_eq!((file.sort_order_id, &file.value_counts, &file.null_value_counts), (None, &None, &None));
            prop_assert_eq!(file.split_offsets.is_some(), format != "avro");
        }
        let data_files: std::collections::HashSet<_> = expected.keys().collect();
        let of_partitions: std::collections::HashSet<_> = expected.keys().map(|path| format!("{:?}", partitions[path])).collect();
        let most = if granularity == Granularity::File || target == "1" { data_files.len() } else { of_partitions.len() };
        prop_assert_eq!(files.len(), most);
    }

    #[test]
    fn vectors_that_are_written_are_read(rows in any_deleted(), target in prop::sample::select(vec!["1", "120", "67108864"])) {
        let config = config("vectors", &[("write.delete.target-file-size-bytes", target)]);
        let files = write_vectors(&config, rows.clone()).unwrap();
        let expected: BTreeMap<String, Vec<u64>> = rows
            .iter()
            .filter(|rows| !rows.positions.is_empty())
            .map(|rows| (rows.data_file.clone(), rows.positions.positions().collect()))
            .collect();
        prop_assert_eq!(&read_back(&files, &rows, &config.storage), &expected);
        let puffins: std::collections::BTreeSet<_> = files.iter().map(|file| &file.file_path).collect();
        match target {
            "1" => prop_assert_eq!(puffins.len(), expected.len()),
            "67108864" => prop_assert_eq!(puffins.len(), expected.len().min(1)),
            _ => {}
        }
        for file in &files {
            let bytes = config.storage.read(&file.file_path).unwrap();
            prop_assert_eq!(bytes.len() as i64, file.file_size_in_bytes);
            let footer = Footer::read(&bytes, &Limits::default()).unwrap();
            let blob = footer.blobs.iter().find(|blob| Some(blob.offset as i64) == file.content_offset).unwrap();
            prop_assert_eq!(blob.property("referenced-data-file"), file.referenced_data_file.as_deref());
            prop_assert_eq!(blob.property("cardinality"), Some(&*file.record_count.to_string()));
            prop_assert_eq!((blob.length as i64, &*blob.ty), (file.content_size_in_bytes.unwrap(), "deletion-vector-v1"));
            prop_assert_eq!((file.content, file.sort_order_id, &*file.file_format), (FileContent::PositionDeletes, None, "PUFFIN"));
            let of_file = rows.iter().find(|rows| Some(&rows.data_file) == file.referenced_data_file.as_ref()).unwrap();
            prop_assert_eq!(&of_file.partition, &file.partition);
        }
    }
}

#[test]
fn a_data_file_has_one_vector() {
    let config = config("twice", &[]);
    let error = write_vectors(&config, vec![deleted("a", None, &[1]), deleted("a", None, &[2])]).unwrap_err();
    assert_eq!(error.to_string(), "two deletion vectors for a");
    assert!(config.storage.list(&config.location).unwrap().is_empty());
}

#[test]
fn a_write_that_fails_leaves_nothing() {
    for granularity in [Granularity::File, Granularity::Partition] {
        let mut config = config("failing", &[("write.delete.target-file-size-bytes", "1")]);
        let plain = config.storage.clone();
        let plan = FaultPlan::new(4, Fault::Error);
        config.storage = plain.with_faults(plan.clone());
        let rows = ["a", "b", "c"].map(|path| deleted(path, None, &[1])).to_vec();
        let error = write_positions(&config, rows, granularity).unwrap_err();
        assert!(matches!(error, Error::Storage { .. }), "{error}");
        assert!(plan.steps() > 4);
        assert_eq!(plain.list(&config.location).unwrap().len(), 0, "{granularity:?}");
    }
}

fn data() -> RecordBatch {
    let x: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(3), Some(1)]));
    let at = StructArray::from(vec![(Arc::new(ArrowField::new("x", DataType::Int32, true)), x)]);
    RecordBatch::try_from_iter_with_nullable([
        ("id", Arc::new(Int64Array::from(vec![1, 2, 3, 4])) as ArrayRef, false),
        ("name", Arc::new(StringArray::from(vec![Some("a"), Some("b"), None, Some("b")])), true),
        ("at", Arc::new(at), true),
    ])
    .unwrap()
}

/// The ids that remain in a file with some deletes.
fn ids(file: &DataFile, spec: &Arc<PartitionSpec>, deletes: Vec<DeletePart>, chosen: Option<Chosen>) -> Vec<i64> {
    let partition_type = spec.partition_type(&schema());
    let partition = FilePartition {
        spec: Arc::new(PlannedSpec { spec: spec.clone(), partition_type }),
        tuple: file.partition.clone(),
    };
    let part = FilePart {
        key_metadata: None,
        path: file.file_path.clone(),
        format: file.file_format.to_lowercase(),
        size: file.file_size_in_bytes.unsigned_abs(),
        start: 0,
        length: file.file_size_in_bytes.unsigned_abs(),
        record_count: file.record_count,
        partition,
        sequence_number: Some(1),
        first_row_id: None,
        deletes: deletes.into_iter().map(Arc::new).collect(),
        residual: Expression::True,
        change: None,
        deleted_by: Default::default(),
    };
    let id = schema().select_ids(&[1].into()).unwrap();
    let task = ReadTask { wanted: Arc::new(Wanted::new(schema(), Arc::new(id))), parts: vec![part] };
    let storage = Storage::default();
    let batches = match chosen {
        Some(chosen) => task::rows_chosen(task, &storage, chosen, &ReadOptions::default()),
        None => task::rows(task, &storage, None),
    };
    let batches = batches.unwrap().map(Result::unwrap);
    batches.flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect()
}

fn data_config(name: &str, spec: Arc<PartitionSpec>) -> WriterConfig {
    WriterConfig::new(Storage::default(), format!("memory://write-deletes/{name}"), schema(), spec)
}

#[test]
fn equality_deletes_delete_rows_with_their_values() {
    let unpartitioned = Arc::new(PartitionSpec::unpartitioned());
    for format in ["parquet", "orc", "avro"] {
        let mut config = data_config("equality", unpartitioned.clone());
        let mut writer = TableWriter::new(config.clone(), &data().schema()).unwrap();
        writer.write(&data()).unwrap();
        let written = writer.finish().unwrap();
        config.operation = uuid::Uuid::new_v4();
        config.properties =
            [("write.delete.format.default".to_owned(), format.to_owned())].into_iter().collect::<StringMap>();
        for (equality_ids, rows, left) in [
            (vec![1], vec![1], vec![1, 3, 4]),
            // A null deletes a null, also inside structs.
            (vec![2], vec![2], vec![1, 2, 4]),
            (vec![4], vec![1], vec![1, 3, 4]),
            (vec![4, 2], vec![0, 3], vec![2, 3]),
        ] {
            let mut writer = EqualityDeleteWriter::new(config.clone(), &equality_ids, &data().schema()).unwrap();
            for row in rows {
                writer.write(&data().slice(row, 1)).unwrap();
            }
            let files = writer.finish().unwrap();
            config.operation = uuid::Uuid::new_v4();
            let [file] = files.as_slice() else { panic!("{files:?}") };
            assert_eq!((file.content, file.sort_order_id), (FileContent::EqualityDeletes, Some(0)));
            assert_eq!(file.equality_ids.as_ref(), Some(&equality_ids));
            assert_eq!(file.lower_bounds.is_some(), format != "avro");
            assert!(file.file_path.ends_with(&format!("-deletes.{format}")));
            let mut delete = part(file, DeleteKind::Equality);
            let mut sorted = equality_ids.clone();
            sorted.sort_unstable();
            let key: Vec<Field> =
                sorted.iter().flat_map(|id| schema().select_ids(&[*id].into()).unwrap().fields().to_vec()).collect();
            delete.key = key.into();
            assert_eq!(ids(&written[0], &unpartitioned, vec![delete], None), left, "{format} {equality_ids:?}");
        }
    }
}

#[test]
fn equality_deletes_are_of_the_partition_of_their_values() {
    let config = data_config("partitioned", by_name());
    let mut writer = EqualityDeleteWriter::new(config.clone(), &[1, 2], &data().schema()).unwrap();
    writer.write(&data()).unwrap();
    let mut found: Vec<_> =
        writer.finish().unwrap().into_iter().map(|file| (file.partition, file.record_count)).collect();
    found.sort_by_key(|(partition, _)| format!("{partition:?}"));
    let text = |value: &str| vec![Some(Value::String(value.into()))];
    assert_eq!(found, [(vec![None], 1), (text("a"), 1), (text("b"), 2)]);
}

#[test]
fn columns_that_cannot_be_compared_are_refused() {
    for (ids, spec, expected) in [
        (vec![], PartitionSpec::unpartitioned(), "at least one column"),
        (vec![9], PartitionSpec::unpartitioned(), "the table has no column 9"),
        (vec![3], PartitionSpec::unpartitioned(), "only primitive values"),
        (vec![6], PartitionSpec::unpartitioned(), "tags.element is inside a list or map"),
        (vec![1], (*by_name()).clone(), "source column of the partition field name"),
    ] {
        let config = data_config("refused", Arc::new(spec));
        let error = EqualityDeleteWriter::new(config, &ids, &data().schema()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let config = data_config("refused", Arc::new(PartitionSpec::unpartitioned()));
    let without = data().project(&[1]).unwrap();
    assert!(EqualityDeleteWriter::new(config, &[1], &without.schema()).unwrap_err().to_string().contains("id"));
}

#[test]
fn rows_are_chosen_by_position_beside_what_is_deleted() {
    let unpartitioned = Arc::new(PartitionSpec::unpartitioned());
    let mut config = data_config("chosen", unpartitioned.clone());
    // The rows belong to the given partition, whatever their values.
    (config.spec, config.partition) = (by_name(), Some(vec![Some(Value::String("given".into()))]));
    config.sorted_by = Some(7);
    let mut writer = TableWriter::new(config, &data().schema()).unwrap();
    writer.write(&data()).unwrap();
    let written = writer.finish().unwrap();
    let file = &written[0];
    assert_eq!((&file.partition, file.partition_spec_id), (&vec![Some(Value::String("given".into()))], 3));
    assert!(file.file_path.contains("/data/name=given/") && file.sort_order_id == Some(7), "{}", file.file_path);

    let rows = DeletedRows { data_file: file.file_path.clone(), ..deleted("", Some("given"), &[2]) };
    let delete_config = self::config("chosen", &[]);
    let deletes =
        || vec![part(&write_vectors(&delete_config.clone(), vec![rows.clone()]).unwrap()[0], DeleteKind::Vector)];
    let chosen = |positions: &[u64]| {
        let vector = Arc::new(DeletionVector::from_positions(positions.iter().copied()).unwrap());
        HashMap::from([(file.file_path.clone(), vector)])
    };
    let storage = Storage::default();
    let _ = &storage;
    let vector = deletes();
    for (chosen, left) in [
        (None, vec![1, 2, 4]),
        (Some(Chosen::Without(chosen(&[0, 2]))), vec![2, 4]),
        (Some(Chosen::Without(HashMap::new())), vec![1, 2, 4]),
        (Some(Chosen::Only(chosen(&[0, 2]))), vec![1]),
        (Some(Chosen::Only(HashMap::new())), vec![]),
    ] {
        let shown = format!("{chosen:?}");
        assert_eq!(ids(file, &by_name(), vector.clone(), chosen), left, "{shown}");
    }
}
