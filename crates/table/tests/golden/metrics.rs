//! Metrics of written files: when we write a data file of the reference again, it has the same metrics.
//!
//! Column sizes depend on the encoder and are not compared. Files with another schema than the current one, or without
//! metrics in their manifest entry, are skipped.

use std::collections::BTreeMap;
use std::sync::Arc;

use icefield_format::manifest::{DataFile, Metrics};
use icefield_format::metadata::StringMap;
use icefield_format::types::{PrimitiveType, Schema, Type};
use icefield_format::value::uuid::in_both_orders;
use icefield_table::plan::{At, Scan};
use icefield_table::storage::Storage;
use icefield_table::write::{TableWriter, WriterConfig};
use libtest_mimic::{Failed, Trial};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Type as PhysicalType;
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor};

use super::tables::Table;

/// One trial per table with files to compare.
pub fn trials(table: &Table) -> Vec<Trial> {
    let Ok(scan) = Scan::new(table.storage.clone(), table.metadata.clone(), &At::default()) else { return Vec::new() };
    let Ok(plan) = (Scan { metrics: Metrics::all(), ..scan }).plan() else { return Vec::new() };
    let mut trials = Vec::new();
    for manifest in &plan.manifests {
        for row in 0..manifest.entries.len() {
            let Ok(file) = manifest.entries.file(row, manifest.spec_id()) else { continue };
            if !file.file_format.eq_ignore_ascii_case("parquet") || file.value_counts.is_none() {
                continue;
            }
            let name = file.file_path.rsplit('/').next().unwrap_or_default().to_owned();
            let (storage, metadata) = (table.storage.clone(), table.metadata.clone());
            let check = move || {
                // Write Parquet, whatever the current default format of the table.
                let mut properties = metadata.properties().clone();
                properties.insert("write.format.default".to_owned(), "parquet".to_owned());
                let order = metadata.default_sort_order().clone();
                check(&storage, metadata.current_schema().clone(), properties, order, &file)
            };
            trials.push(Trial::test(format!("metrics::{}::{name}", table.name), check));
        }
    }
    trials
}

fn check(
    storage: &Storage,
    schema: Arc<Schema>,
    properties: StringMap,
    order: Arc<icefield_format::spec::SortOrder>,
    file: &DataFile,
) -> Result<(), Failed> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(storage.read(&file.file_path)?)?;
    let spec = Arc::new(icefield_format::spec::PartitionSpec::unpartitioned());
    let location = format!("memory://golden-metrics/{}", uuid::Uuid::new_v4());
    let config = WriterConfig { properties, ..WriterConfig::new(Storage::default(), location, schema.clone(), spec) };
    // The sort order only sets the metrics modes; rows stay as they are.
    let config = WriterConfig { order: Some(order), ..config };
    let columns = leaves(reader.parquet_schema());
    let Ok(mut writer) = TableWriter::new(config, reader.schema()) else { return Ok(()) };
    for batch in reader.build()? {
        writer.write(&batch?)?;
    }
    let files = writer.finish()?;
    let [ours] = files.as_slice() else { return Err("not one file".into()) };
    let written = ParquetRecordBatchReaderBuilder::try_new(Storage::default().read(&ours.file_path)?)?;
    let promoted = |types| {
        matches!(types, (PhysicalType::INT32, PhysicalType::INT64) | (PhysicalType::FLOAT, PhysicalType::DOUBLE))
    };
    let same = |(theirs, ours): (&Leaf, &Leaf)| {
        theirs.0 == ours.0 && theirs.1.is_none_or(|id| Some(id) == ours.1) && !promoted((theirs.2, ours.2))
    };
    let ours_leaves = leaves(written.parquet_schema());
    if columns.len() != ours_leaves.len() || !columns.iter().zip(&ours_leaves).all(same) {
        return Ok(());
    }
    compare("record count", &Some(vec![(0, file.record_count)]), &Some(vec![(0, ours.record_count)]))?;
    compare("value counts", &file.value_counts, &ours.value_counts)?;
    compare("null counts", &file.null_value_counts, &ours.null_value_counts)?;
    compare("nan counts", &file.nan_value_counts, &ours.nan_value_counts)?;
    let of_uuids = |bounds: &Option<Vec<(i32, Vec<u8>)>>| -> BTreeMap<i32, u128> {
        let uuid = |id: i32| schema.find_type(id).and_then(Type::as_primitive) == Some(&PrimitiveType::Uuid);
        let all = bounds.iter().flatten().filter(|(id, _)| uuid(*id));
        all.map(|(id, bytes)| (*id, u128::from_be_bytes(bytes.as_slice().try_into().unwrap()))).collect()
    };
    // Our bounds of UUIDs are valid in both orders (docs/differences.md, "Bounds of uuids").
    let (least, most) = (of_uuids(&file.lower_bounds), of_uuids(&file.upper_bounds));
    let (our_least, our_most) = (of_uuids(&ours.lower_bounds), of_uuids(&ours.upper_bounds));
    for (id, least) in &least {
        let wanted = most.get(id).map_or((None, None), |most| in_both_orders(*least, *most));
        if (our_least.get(id).copied(), our_most.get(id).copied()) != wanted {
            return Err(format!("bounds of the uuids of field {id}").into());
        }
    }
    let plain = |bounds: &Option<Vec<(i32, Vec<u8>)>>| {
        let uuid = |id: i32| schema.find_type(id).and_then(Type::as_primitive) == Some(&PrimitiveType::Uuid);
        bounds.clone().map(|bounds| bounds.into_iter().filter(|(id, _)| !uuid(*id)).collect())
    };
    compare("lower bounds", &plain(&file.lower_bounds), &plain(&ours.lower_bounds))?;
    compare("upper bounds", &plain(&file.upper_bounds), &plain(&ours.upper_bounds))
}

/// The path, id and physical type of a leaf.
type Leaf = (String, Option<i32>, PhysicalType);

fn leaves(schema: &SchemaDescriptor) -> Vec<Leaf> {
    let leaf = |column: &ColumnDescPtr| {
        let info = column.self_type().get_basic_info();
        (column.path().string(), info.has_id().then(|| info.id()), column.physical_type())
    };
    schema.columns().iter().map(leaf).collect()
}

fn compare<T: PartialEq + std::fmt::Debug + Clone>(
    what: &str,
    theirs: &Option<Vec<(i32, T)>>,
    ours: &Option<Vec<(i32, T)>>,
) -> Result<(), Failed> {
    let map = |pairs: &Option<Vec<(i32, T)>>| pairs.iter().flatten().cloned().collect::<BTreeMap<i32, T>>();
    let (theirs, ours) = (map(theirs), map(ours));
    let differ: Vec<_> = theirs.keys().chain(ours.keys()).filter(|id| theirs.get(id) != ours.get(id)).collect();
    match differ.first() {
        None => Ok(()),
        Some(id) => Err(format!("{what} of field {id}: theirs {:?}, ours {:?}", theirs.get(id), ours.get(id)).into()),
    }
}
