//! Counts the rows, files and deletes of partitions, from manifests and from earlier statistics.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, Int32Array, Int64Array, PrimitiveArray, RecordBatch, StructArray};
use arrow_row::{OwnedRow, RowConverter, SortField};
use arrow_schema::DataType;
use icefield_format::Limits;
use icefield_format::limits::Held;
use icefield_format::manifest::{
    Entries, FileContent, FileFormat, ManifestFile, Metrics, ReadOptions, Status, entries,
};
use icefield_format::metadata::{Snapshot, TableMetadata};
use rayon::prelude::*;

use super::layout::Layout;
use crate::arrow::conform::conform;
use crate::error::{Error, Result};
use crate::inspect::partition::PartitionUnion;
use crate::limits::limits;
use crate::storage::Storage;
use crate::{interrupt, runtime};

/// Manifests in memory at a time, per thread.
const MANIFESTS_A_THREAD: usize = 4;

/// Which entries of manifests count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counting {
    /// Those of the files that a snapshot has.
    Live,
    /// Those that the snapshot of their manifest added or removed, in addition to earlier statistics.
    Changes,
}

/// The counts of one partition, named as the columns of the specification.
#[derive(Debug, Default)]
struct Counts {
    spec_id: i32,
    data_records: i64,
    data_files: i32,
    data_bytes: i64,
    position_deletes: i64,
    position_delete_files: i32,
    vectors: i32,
    equality_deletes: i64,
    equality_delete_files: i32,
    /// Time in milliseconds and id of a snapshot.
    updated: Option<(i64, i64)>,
}

/// Counts the partitions of one table. A partition is a tuple of one spec.
#[derive(Debug)]
pub(super) struct Counter<'a> {
    storage: &'a Storage,
    metadata: &'a TableMetadata,
    union: &'a PartitionUnion,
    counting: Counting,
    limits: Limits,
    held: Held,
    /// Converts tuples, each followed by its spec, to bytes that sort as they do, nulls first.
    converter: RowConverter,
    places: HashMap<Box<[u8]>, usize>,
    tuples: Vec<OwnedRow>,
    counts: Vec<Counts>,
}

/// The counts of all partitions.
#[derive(Debug)]
pub(super) struct Counted {
    converter: RowConverter,
    partitions: Vec<(OwnedRow, Counts)>,
}

impl<'a> Counter<'a> {
    pub(super) fn new(
        storage: &'a Storage,
        metadata: &'a TableMetadata,
        union: &'a PartitionUnion,
        counting: Counting,
    ) -> Result<Self> {
        let empty = union.coerce(&StructArray::new_empty_fields(0, None))?;
        let mut fields: Vec<_> =
            empty.columns().iter().map(|column| SortField::new(column.data_type().clone())).collect();
        fields.push(SortField::new(DataType::Int32));
        let converter = RowConverter::new(fields).map_err(internal)?;
        let limits = limits()?;
        Ok(Self {
            storage,
            metadata,
            union,
            counting,
            held: limits.held(),
            limits,
            converter,
            places: HashMap::new(),
            tuples: Vec::new(),
            counts: Vec::new(),
        })
    }

    /// Adds the entries of manifests, some at a time.
    pub(super) fn add_manifests(&mut self, manifests: &[ManifestFile]) -> Result<()> {
        for some in manifests.chunks(MANIFESTS_A_THREAD * runtime::threads()) {
            interrupt::check()?;
            let this = &*self;
            let decode = |manifest: &ManifestFile| this.entries(manifest);
            let decoded: Result<Vec<Entries>> = runtime::pool()?.install(|| some.par_iter().map(decode).collect());
            for (manifest, entries) in some.iter().zip(decoded?) {
                self.held.read(usize::try_from(manifest.manifest_length).unwrap_or_default());
                self.add_entries(manifest, &entries)?;
            }
        }
        Ok(())
    }

    /// Adds the rows of earlier statistics.
    pub(super) fn add_file(&mut self, rows: &RecordBatch, path: &str) -> Result<()> {
        let ints = |name: &str| column::<Int32Type>(rows, name);
        let longs = |name: &str| column::<Int64Type>(rows, name);
        let partition = rows.column_by_name("partition").and_then(|column| column.as_struct_opt()).ok_or_else(lost)?;
        let spec_ids = ints("spec_id")?;
        let vectors = rows.column_by_name("dv_count").map(|_| ints("dv_count")).transpose()?;
        let (time, snapshot) = (longs("last_updated_at")?, longs("last_updated_snapshot_id")?);
        let (data_records, data_files) = (longs("data_record_count")?, ints("data_file_count")?);
        let data_bytes = longs("total_data_file_size_in_bytes")?;
        let (positions, position_files) = (longs("position_delete_record_count")?, ints("position_delete_file_count")?);
        let (equality, equality_files) = (longs("equality_delete_record_count")?, ints("equality_delete_file_count")?);
        let places = self.places_of(partition, spec_ids)?;
        for (row, place) in places.into_iter().enumerate() {
            let spec_id = get(spec_ids, row).unwrap_or_default();
            if self.metadata.partition_spec(spec_id).is_none() {
                let message = format!("its partition spec {spec_id} is not one of the table's");
                return Err(Error::corrupt_file(path, message));
            }
            let Some(counts) = self.counts.get_mut(place) else { return Err(lost()) };
            let updated = counts.updated;
            *counts = Counts {
                spec_id,
                data_records: get(data_records, row).unwrap_or_default(),
                data_files: get(data_files, row).unwrap_or_default(),
                data_bytes: get(data_bytes, row).unwrap_or_default(),
                position_deletes: get(positions, row).unwrap_or_default(),
                position_delete_files: get(position_files, row).unwrap_or_default(),
                vectors: vectors.and_then(|vectors| get(vectors, row)).unwrap_or_default(),
                equality_deletes: get(equality, row).unwrap_or_default(),
                equality_delete_files: get(equality_files, row).unwrap_or_default(),
                updated: get(time, row).zip(get(snapshot, row)).or(updated),
            };
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Counted {
        let mut partitions: Vec<_> = self.tuples.into_iter().zip(self.counts).collect();
        partitions.sort_by(|(one, _), (other, _)| one.as_ref().cmp(other.as_ref()));
        Counted { converter: self.converter, partitions }
    }

    fn entries(&self, manifest: &ManifestFile) -> Result<Entries> {
        let path = &manifest.manifest_path;
        let bytes = self.storage.read_manifest(manifest)?;
        let options = ReadOptions {
            partition_type: Some(&self.union.of_spec(manifest.partition_spec_id, path)?.read),
            metrics: Metrics::none(),
            inherit: Some(manifest),
            live_only: false,
            ..ReadOptions::default()
        };
        Ok(entries::read(&bytes, &options, &self.limits).map_err(|error| error.in_file(path))?)
    }

    fn add_entries(&mut self, manifest: &ManifestFile, entries: &Entries) -> Result<()> {
        let spec_ids = Int32Array::from_value(manifest.partition_spec_id, entries.len());
        let places = self.places_of(&self.union.coerce(&entries.partition)?, &spec_ids)?;
        for (row, place) in places.into_iter().enumerate() {
            let snapshot = entries.snapshot_id.is_valid(row).then(|| entries.snapshot_id.value(row));
            let snapshot = snapshot.and_then(|id| self.metadata.snapshot(id));
            let sign = match (self.counting, entries.status_of(row)?) {
                (Counting::Live, Status::Added | Status::Existing) | (Counting::Changes, Status::Added) => 1,
                (Counting::Changes, Status::Deleted) => -1,
                // A removal updates the partition; what was counted earlier does not.
                (Counting::Live, Status::Deleted) => 0,
                (Counting::Changes, Status::Existing) => continue,
            };
            let Some(counts) = self.counts.get_mut(place) else { return Err(lost()) };
            counts.spec_id = manifest.partition_spec_id;
            counts.add(entries, row, sign)?;
            counts.update(snapshot.map(|snapshot| &**snapshot));
        }
        Ok(())
    }

    /// The place of each tuple in `counts`; new ones are added.
    fn places_of(&mut self, tuples: &StructArray, spec_ids: &Int32Array) -> Result<Vec<usize>> {
        let mut columns = tuples.columns().to_vec();
        columns.push(Arc::new(spec_ids.clone()));
        let rows = self.converter.convert_columns(&columns).map_err(internal)?;
        let mut places = Vec::with_capacity(rows.num_rows());
        for tuple in &rows {
            if let Some(place) = self.places.get(tuple.as_ref()) {
                places.push(*place);
                continue;
            }
            self.held.keep(2 * (tuple.as_ref().len() + size_of::<Counts>()))?;
            places.push(self.counts.len());
            self.places.insert(tuple.as_ref().into(), self.counts.len());
            self.tuples.push(tuple.owned());
            self.counts.push(Counts::default());
        }
        Ok(places)
    }
}

impl Counts {
    /// Adds a file (`sign` 1), takes it away (-1), or neither (0).
    fn add(&mut self, entries: &Entries, row: usize, sign: i32) -> Result<()> {
        let long = i64::from(sign);
        // Unknown counts of old imports count as 0.
        let records = entries.record_count.value(row).max(0).saturating_mul(long);
        let add = |records_of: &mut i64, files_of: &mut i32| {
            *records_of = records_of.saturating_add(records);
            *files_of = files_of.saturating_add(sign);
        };
        match entries.content_of(row)? {
            FileContent::Data => {
                add(&mut self.data_records, &mut self.data_files);
                let bytes = entries.file_size_in_bytes.value(row).saturating_mul(long);
                self.data_bytes = self.data_bytes.saturating_add(bytes);
            }
            FileContent::PositionDeletes => {
                let is_vector = FileFormat::from_name(entries.file_format.value(row)) == Some(FileFormat::Puffin);
                let files = if is_vector { &mut self.vectors } else { &mut self.position_delete_files };
                add(&mut self.position_deletes, files);
            }
            FileContent::EqualityDeletes => add(&mut self.equality_deletes, &mut self.equality_delete_files),
        }
        Ok(())
    }

    fn update(&mut self, snapshot: Option<&Snapshot>) {
        let Some(snapshot) = snapshot else { return };
        if self.updated.is_none_or(|(time, _)| time < snapshot.timestamp_ms) {
            self.updated = Some((snapshot.timestamp_ms, snapshot.snapshot_id));
        }
    }

    /// The number of rows, unless only reading the deletes would tell.
    fn total_records(&self) -> Option<i64> {
        let is_exact = self.equality_deletes <= 0 && self.position_delete_files <= 0;
        is_exact.then(|| self.data_records.saturating_sub(self.position_deletes).max(0))
    }

    fn is_negative(&self) -> bool {
        let longs = [self.data_records, self.data_bytes, self.position_deletes, self.equality_deletes];
        let ints = [self.data_files, self.position_delete_files, self.vectors, self.equality_delete_files];
        longs.iter().any(|count| *count < 0) || ints.iter().any(|count| *count < 0)
    }
}

impl Counted {
    pub(super) fn is_empty(&self) -> bool {
        self.partitions.is_empty()
    }

    pub(super) fn has_negative(&self) -> bool {
        self.partitions.iter().any(|(_, counts)| counts.is_negative())
    }

    /// The rows of the file, sorted by partition.
    pub(super) fn batch(&self, layout: &Layout) -> Result<RecordBatch> {
        let counts = || self.partitions.iter().map(|(_, counts)| counts);
        let longs = |get: fn(&Counts) -> i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(counts().map(get))) };
        let ints = |get: fn(&Counts) -> i32| -> ArrayRef { Arc::new(Int32Array::from_iter_values(counts().map(get))) };
        let some = |get: fn(&Counts) -> Option<i64>| -> ArrayRef { Arc::new(Int64Array::from_iter(counts().map(get))) };
        let make = |name: &str| -> Result<ArrayRef> {
            Ok(match name {
                "partition" => {
                    let tuples = self.partitions.iter().map(|(tuple, _)| tuple.row());
                    let mut columns = self.converter.convert_rows(tuples).map_err(internal)?;
                    columns.pop();
                    let empty = layout.union.coerce(&StructArray::new_empty_fields(0, None))?;
                    let fields = empty.fields().clone();
                    let made = StructArray::try_new_with_length(fields, columns, None, self.partitions.len());
                    Arc::new(made.map_err(internal)?)
                }
                "spec_id" => ints(|one| one.spec_id),
                "data_record_count" => longs(|one| one.data_records),
                "data_file_count" => ints(|one| one.data_files),
                "total_data_file_size_in_bytes" => longs(|one| one.data_bytes),
                "position_delete_record_count" => longs(|one| one.position_deletes),
                "position_delete_file_count" => ints(|one| one.position_delete_files),
                "equality_delete_record_count" => longs(|one| one.equality_deletes),
                "equality_delete_file_count" => ints(|one| one.equality_delete_files),
                "total_record_count" => some(Counts::total_records),
                "last_updated_at" => some(|one| one.updated.map(|(time, _)| time)),
                "last_updated_snapshot_id" => some(|one| one.updated.map(|(_, id)| id)),
                "dv_count" => ints(|one| one.vectors),
                _ => return Err(lost()),
            })
        };
        let columns = layout.arrow.fields().iter().map(|field| conform(&make(field.name())?, field.data_type()));
        RecordBatch::try_new(layout.arrow.clone(), columns.collect::<Result<_>>()?).map_err(internal)
    }
}

fn column<'b, T: ArrowPrimitiveType>(rows: &'b RecordBatch, name: &str) -> Result<&'b PrimitiveArray<T>> {
    rows.column_by_name(name).and_then(|column| column.as_primitive_opt::<T>()).ok_or_else(lost)
}

fn get<T: ArrowPrimitiveType>(column: &PrimitiveArray<T>, row: usize) -> Option<T::Native> {
    column.is_valid(row).then(|| column.value(row))
}

fn lost() -> Error {
    Error::Internal("partition statistics without one of their columns".to_owned())
}

fn internal(error: arrow_schema::ArrowError) -> Error {
    Error::Internal(error.to_string())
}
