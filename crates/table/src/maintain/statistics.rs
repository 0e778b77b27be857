//! Computes the statistics of a snapshot: the number of distinct values of each column, as theta sketches in a Puffin
//! file ("Table Statistics").

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Float32Type, Float64Type, Int32Type, Int64Type, Time64MicrosecondType, TimestampMicrosecondType,
    TimestampNanosecondType,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray};
use arrow_schema::{DataType, TimeUnit};
use icefield_format::encryption::stream::encrypt_new;
use icefield_format::metadata::{
    BlobMetadata, EncryptedKey, MetadataUpdate, Snapshot, StatisticsFile, StringMap, TableMetadata,
    requirements_for_update,
};
use icefield_format::puffin::{self, Blob, BlobCodec, Footer, PuffinWriter, ThetaSketch};
use icefield_format::types::{PrimitiveType, Schema, Type};
use icefield_format::value::binary;
use rayon::prelude::*;
use serde_json::Map;

use crate::arrow::cells::{StoredColumn, value_at};
use crate::clock::now_ms;
use crate::commit::metadata_folder;
use crate::error::{Error, Result};
use crate::plan::{At, Scan};
use crate::read::scan::rows;
use crate::runtime;
use crate::storage::Existing;
use crate::table::Table;
use crate::write::{check_writable, key_length, table_keys};

/// The property of a blob that has the number of distinct values.
const NDV: &str = "ndv";

/// The result of a computation.
#[derive(Debug, Clone)]
pub struct Computed {
    /// The table with the statistics.
    pub table: Table,
    /// The statistics file.
    pub file: StatisticsFile,
}

/// Which statistics to compute.
#[derive(Debug, Clone, Default)]
pub struct StatsOptions {
    /// The columns, nested ones with dots; by default all columns of primitive types outside other columns.
    pub columns: Option<Vec<String>>,
    /// The snapshot; by default the current one.
    pub snapshot_id: Option<i64>,
}

/// Reads the rows of a snapshot, writes a statistics file with a sketch of each column, and adds it to the table. It
/// replaces an earlier one of the snapshot.
///
/// Rows are read once, batch by batch. The result is `None` if the table has no snapshot.
///
/// # Errors
/// Unknown columns and columns that are not of a primitive type; any error of reading and committing. The file is then
/// deleted, unless it is unknown whether the commit landed.
pub fn compute_table_stats(table: &Table, options: &StatsOptions) -> Result<Option<Computed>> {
    check_writable(table.metadata(), table.storage())?;
    let at = At { snapshot_id: options.snapshot_id, ..At::default() };
    let scan = Scan::new(table.storage().clone(), table.metadata().clone(), &at)?;
    let Some(snapshot) = scan.snapshot.clone() else { return Ok(None) };
    let columns = columns(&scan.schema, options.columns.as_deref())?;
    let sketches = sketches(&scan, &columns)?;
    let (bytes, footer) = puffin_file(&snapshot, &columns, &sketches)?;
    let storage = table.storage();
    let folder = metadata_folder(table.metadata())?;
    let path = format!("{folder}/{}-{}.stats", snapshot.snapshot_id, uuid::Uuid::new_v4());
    let mut file = describe(&snapshot, path.clone(), &bytes, &footer)?;
    let (bytes, keys) = encrypted(table, &mut file, bytes)?;
    storage.put(&path, bytes, Existing::Refuse)?;
    let mut updates: Vec<MetadataUpdate> =
        keys.into_iter().map(|encryption_key| MetadataUpdate::AddEncryptionKey { encryption_key }).collect();
    updates.extend(replaced_keys(table.metadata(), &file));
    updates.push(MetadataUpdate::SetStatistics { statistics: file.clone() });
    match table.update(requirements_for_update(table.metadata(), &updates), updates) {
        Ok(table) => Ok(Some(Computed { table, file })),
        Err(error) => {
            if !matches!(error, Error::CommitStateUnknown { .. }) {
                storage.discard(&[path], "statistics files of a commit that failed");
            }
            Err(error)
        }
    }
}

/// The bytes to store, and the keys that the metadata need: of an encrypted table, the last one is that of the file.
fn encrypted(table: &Table, file: &mut StatisticsFile, bytes: Vec<u8>) -> Result<(Vec<u8>, Vec<EncryptedKey>)> {
    let metadata = table.metadata();
    let Some((table_key, keyring)) = table_keys(metadata, table.storage())? else { return Ok((bytes, Vec::new())) };
    let length = key_length(metadata.properties())?.unwrap_or_default();
    let (stored, key) = encrypt_new(&bytes, length)?;
    let mut keys = keyring.seal(&key, metadata.encryption_keys(), table_key, now_ms())?;
    if let Some(own) = keys.last_mut() {
        file.own_key_id().clone_into(&mut own.key_id);
    }
    file.set_encrypted();
    file.file_size_in_bytes = i64::try_from(stored.len()).unwrap_or(i64::MAX);
    Ok((stored, keys))
}

/// Removes the keys of earlier statistics of the snapshot.
fn replaced_keys(metadata: &TableMetadata, file: &StatisticsFile) -> Vec<MetadataUpdate> {
    let replaced = metadata.statistics().iter().filter(|known| known.snapshot_id == file.snapshot_id);
    let ids: Vec<&str> = replaced.map(StatisticsFile::own_key_id).collect();
    let keys = metadata.encryption_keys().iter().filter(|key| ids.contains(&key.key_id.as_str()));
    keys.map(|key| MetadataUpdate::RemoveEncryptionKey { key_id: key.key_id.clone() }).collect()
}

/// A column whose values are counted.
struct CountedColumn {
    id: i32,
    name: String,
    ty: PrimitiveType,
}

fn columns(schema: &Schema, given: Option<&[String]>) -> Result<Vec<CountedColumn>> {
    let is_counted = |ty: &PrimitiveType| !matches!(ty, PrimitiveType::Unrecognized(_));
    let Some(names) = given else {
        let all = schema.fields().iter().filter_map(|field| match &field.ty {
            Type::Primitive(ty) if is_counted(ty) => {
                Some(CountedColumn { id: field.id, name: field.name.clone(), ty: ty.clone() })
            }
            _ => None,
        });
        return Ok(all.collect());
    };
    let of = |name: &String| {
        let field = schema.named(name, true)?;
        match field.ty.as_primitive().filter(|ty| is_counted(ty)) {
            Some(ty) => Ok(CountedColumn { id: field.id, name: name.clone(), ty: ty.clone() }),
            None => Err(Error::invalid(format!(
                "column {name} is of type {}: statistics are of columns of primitive types",
                field.ty
            ))),
        }
    };
    names.iter().map(of).collect()
}

fn sketches(scan: &Scan, columns: &[CountedColumn]) -> Result<Vec<ThetaSketch>> {
    let mut sketches = vec![ThetaSketch::new(); columns.len()];
    if columns.is_empty() {
        return Ok(sketches);
    }
    let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    let wanted = scan.wanted(Some(&names))?;
    let places: Vec<StoredColumn> =
        columns.iter().map(|column| StoredColumn::find(&wanted.projection, column.id)).collect::<Result<_>>()?;
    for batch in rows(scan, &scan.plan()?, &wanted, None)? {
        let batch = batch?;
        let add = |((sketch, place), column): ((&mut ThetaSketch, &StoredColumn), &CountedColumn)| {
            add(sketch, &place.of(&batch)?, &column.ty)
        };
        let all = || sketches.par_iter_mut().zip(&places).zip(columns).try_for_each(add);
        runtime::pool()?.install(all)?;
    }
    Ok(sketches)
}

/// Adds the values of an array in their single-value form.
fn add(sketch: &mut ThetaSketch, values: &ArrayRef, ty: &PrimitiveType) -> Result<()> {
    fn numbers<T: ArrowPrimitiveType, const N: usize>(
        sketch: &mut ThetaSketch,
        values: &PrimitiveArray<T>,
        bytes: impl Fn(T::Native) -> [u8; N],
    ) {
        values.iter().flatten().for_each(|value| sketch.update(&bytes(value)));
    }
    match values.data_type() {
        // Columns of the type unknown have no values, and are counted as in Java.
        DataType::Null => {}
        DataType::Int32 => numbers(sketch, values.as_primitive::<Int32Type>(), i32::to_le_bytes),
        DataType::Date32 => numbers(sketch, values.as_primitive::<Date32Type>(), i32::to_le_bytes),
        DataType::Int64 => numbers(sketch, values.as_primitive::<Int64Type>(), i64::to_le_bytes),
        DataType::Time64(TimeUnit::Microsecond) => {
            numbers(sketch, values.as_primitive::<Time64MicrosecondType>(), i64::to_le_bytes);
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            numbers(sketch, values.as_primitive::<TimestampMicrosecondType>(), i64::to_le_bytes);
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            numbers(sketch, values.as_primitive::<TimestampNanosecondType>(), i64::to_le_bytes);
        }
        DataType::Float32 => numbers(sketch, values.as_primitive::<Float32Type>(), f32::to_le_bytes),
        DataType::Float64 => numbers(sketch, values.as_primitive::<Float64Type>(), f64::to_le_bytes),
        DataType::Utf8 => {
            values.as_string::<i32>().iter().flatten().for_each(|value| sketch.update(value.as_bytes()));
        }
        DataType::Binary => values.as_binary::<i32>().iter().flatten().for_each(|value| sketch.update(value)),
        _ => {
            for row in (0..values.len()).filter(|row| values.is_valid(*row)) {
                if let Some(value) = value_at(values, ty, row)? {
                    sketch.update(&binary::to_bytes(&value, ty)?);
                }
            }
        }
    }
    Ok(())
}

fn puffin_file(snapshot: &Snapshot, columns: &[CountedColumn], sketches: &[ThetaSketch]) -> Result<(Vec<u8>, Footer)> {
    let by = format!("icefield {}", env!("CARGO_PKG_VERSION"));
    let mut writer = PuffinWriter::new(vec![("created-by".to_owned(), by)]);
    for (column, sketch) in columns.iter().zip(sketches) {
        writer.add(&Blob {
            ty: puffin::THETA_SKETCH,
            fields: &[column.id],
            snapshot_id: snapshot.snapshot_id,
            sequence_number: snapshot.sequence_number,
            data: &sketch.to_bytes(),
            codec: BlobCodec::Zstd,
            properties: vec![(NDV.to_owned(), format!("{:.0}", sketch.estimate().floor()))],
        })?;
    }
    Ok(writer.finish()?)
}

fn describe(snapshot: &Snapshot, path: String, bytes: &[u8], footer: &Footer) -> Result<StatisticsFile> {
    let size = bytes.len() as u64;
    let tail = bytes.get(bytes.len().saturating_sub(puffin::TAIL_BYTES)..).unwrap_or_default();
    let footer_size = Footer::length(tail, size)?;
    let blobs = footer.blobs.iter().map(|blob| BlobMetadata {
        blob_type: blob.ty.clone(),
        snapshot_id: blob.snapshot_id,
        sequence_number: blob.sequence_number,
        fields: blob.fields.clone(),
        properties: blob.properties.iter().cloned().collect::<StringMap>(),
    });
    Ok(StatisticsFile {
        snapshot_id: snapshot.snapshot_id,
        statistics_path: path,
        file_size_in_bytes: i64::try_from(size).unwrap_or(i64::MAX),
        file_footer_size_in_bytes: i64::try_from(footer_size).unwrap_or(i64::MAX),
        blob_metadata: blobs.collect(),
        unknown: Map::new(),
    })
}
