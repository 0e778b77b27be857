//! `partitions`: counts of each partition, and the snapshot that last changed it.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Array, Int32Array, Int64Array, RecordBatch, StructArray, TimestampMicrosecondArray};
use arrow_row::{OwnedRow, RowConverter, SortField};
use icefield_format::limits::Held;
use icefield_format::manifest::{Entries, FileContent, ManifestFile, Metrics};
use icefield_format::metadata::Snapshot;
use icefield_format::types::{Field, PrimitiveType as P, StructType, Type};
use rayon::prelude::*;

use super::batch::{build, internal, missing};
use super::{Read, manifests};
use crate::error::Result;
use crate::runtime;
use crate::stream::OpenTask;

/// Manifests in memory at a time, per thread.
const MANIFESTS_A_THREAD: usize = 4;

pub(super) fn fields(partition: &StructType) -> Vec<Field> {
    let mut fields = Vec::new();
    if !partition.fields.is_empty() {
        fields.push(Field::required(1, "partition", Type::Struct(Arc::new(partition.clone()))));
        fields.push(Field::required(4, "spec_id", P::Int));
    }
    fields.extend([
        Field::required(2, "record_count", P::Long).with_doc("Count of records in data files"),
        Field::required(3, "file_count", P::Int).with_doc("Count of data files"),
        Field::required(11, "total_data_file_size_in_bytes", P::Long).with_doc("Total size in bytes of data files"),
        Field::required(5, "position_delete_record_count", P::Long)
            .with_doc("Count of records in position delete files"),
        Field::required(6, "position_delete_file_count", P::Int).with_doc("Count of position delete files"),
        Field::required(7, "equality_delete_record_count", P::Long)
            .with_doc("Count of records in equality delete files"),
        Field::required(8, "equality_delete_file_count", P::Int).with_doc("Count of equality delete files"),
        Field::optional(9, "last_updated_at", P::Timestamptz)
            .with_doc("Commit time of snapshot that last updated this partition"),
        Field::optional(10, "last_updated_snapshot_id", P::Long)
            .with_doc("Id of snapshot that last updated this partition"),
    ]);
    fields
}

pub(super) fn task(read: &Arc<Read>, snapshot: &Snapshot) -> OpenTask {
    let snapshot = snapshot.clone();
    read.task(move |read| {
        let manifests = manifests::of(read, Some(&snapshot))?;
        let live: Vec<ManifestFile> = manifests.into_iter().filter(ManifestFile::has_live_files).collect();
        let mut partitions = Partitions::new(read)?;
        for some in live.chunks(MANIFESTS_A_THREAD * runtime::threads()) {
            let decode = |manifest| read.entries(manifest, &Metrics::none(), true);
            let decoded: Result<Vec<Entries>> = runtime::pool()?.install(|| some.par_iter().map(decode).collect());
            for (manifest, entries) in some.iter().zip(decoded?) {
                partitions.add(manifest, &entries)?;
            }
        }
        partitions.finish()
    })
}

/// The counts of a partition.
#[derive(Debug, Default)]
struct Counts {
    spec_id: i32,
    records: i64,
    files: i32,
    bytes: i64,
    position_deletes: (i64, i32),
    equality_deletes: (i64, i32),
    last_updated: Option<(i64, i64)>,
}

/// The partitions so far. Tuples are distinguished by their values and by the number of union fields in their spec: a
/// null is different from a missing field.
struct Partitions<'a> {
    read: &'a Read,
    converter: RowConverter,
    places: HashMap<Box<[u8]>, usize>,
    tuples: Vec<OwnedRow>,
    counts: Vec<Counts>,
    held: Held,
}

impl<'a> Partitions<'a> {
    fn new(read: &'a Read) -> Result<Self> {
        // An empty array for the types; the row format needs at least one column.
        let empty = read.partition.coerce(&StructArray::new_empty_fields(0, None))?;
        let mut fields: Vec<_> =
            empty.columns().iter().map(|column| SortField::new(column.data_type().clone())).collect();
        fields.push(SortField::new(arrow_schema::DataType::Int32));
        let converter = RowConverter::new(fields).map_err(internal)?;
        Ok(Self {
            read,
            converter,
            places: HashMap::new(),
            tuples: Vec::new(),
            counts: Vec::new(),
            held: read.inspect.limits.held(),
        })
    }

    fn add(&mut self, manifest: &ManifestFile, entries: &Entries) -> Result<()> {
        self.held.read(usize::try_from(manifest.manifest_length).unwrap_or_default());
        let of_spec = self.read.partition.of_spec(manifest.partition_spec_id, &manifest.manifest_path)?;
        let present = i32::try_from(of_spec.read.fields.len()).unwrap_or(i32::MAX);
        let mut columns = self.read.partition.coerce(&entries.partition)?.columns().to_vec();
        columns.push(Arc::new(Int32Array::from_value(present, entries.len())));
        let rows = self.converter.convert_columns(&columns).map_err(internal)?;
        for (row, tuple) in rows.iter().enumerate() {
            let place = match self.places.get(tuple.as_ref()) {
                Some(place) => *place,
                None => {
                    self.held.keep(2 * (tuple.as_ref().len() + size_of::<Counts>()))?;
                    self.places.insert(tuple.as_ref().into(), self.counts.len());
                    self.tuples.push(tuple.owned());
                    self.counts.push(Counts::default());
                    self.counts.len() - 1
                }
            };
            let snapshot = entries.snapshot_id.is_valid(row).then(|| entries.snapshot_id.value(row));
            let snapshot = snapshot.and_then(|id| self.read.inspect.metadata.snapshot(id));
            if let Some(counts) = self.counts.get_mut(place) {
                counts.add(entries, row, manifest.partition_spec_id, snapshot.map(|snapshot| &**snapshot))?;
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<RecordBatch> {
        let counts = &self.counts;
        let longs = |get: fn(&Counts) -> i64| Arc::new(Int64Array::from_iter_values(counts.iter().map(get)));
        let ints = |get: fn(&Counts) -> i32| Arc::new(Int32Array::from_iter_values(counts.iter().map(get)));
        build(&self.read.arrow, counts.len(), |field| {
            Ok(match field.name().as_str() {
                "partition" => {
                    let tuples = self.tuples.iter().map(OwnedRow::row);
                    let mut columns = self.converter.convert_rows(tuples).map_err(internal)?;
                    columns.pop();
                    let empty = self.read.partition.coerce(&StructArray::new_empty_fields(0, None))?;
                    let fields = empty.fields().clone();
                    let made = StructArray::try_new_with_length(fields, columns, None, counts.len());
                    Arc::new(made.map_err(internal)?)
                }
                "spec_id" => ints(|one| one.spec_id),
                "record_count" => longs(|one| one.records),
                "file_count" => ints(|one| one.files),
                "total_data_file_size_in_bytes" => longs(|one| one.bytes),
                "position_delete_record_count" => longs(|one| one.position_deletes.0),
                "position_delete_file_count" => ints(|one| one.position_deletes.1),
                "equality_delete_record_count" => longs(|one| one.equality_deletes.0),
                "equality_delete_file_count" => ints(|one| one.equality_deletes.1),
                "last_updated_at" => {
                    let times = counts.iter().map(|one| one.last_updated.map(|(time, _)| time.saturating_mul(1000)));
                    Arc::new(TimestampMicrosecondArray::from_iter(times).with_timezone("UTC"))
                }
                "last_updated_snapshot_id" => {
                    Arc::new(Int64Array::from_iter(counts.iter().map(|one| one.last_updated.map(|(_, id)| id))))
                }
                other => return Err(missing(other)),
            })
        })
    }
}

impl Counts {
    /// Counts a file; its spec becomes the partition's unless a newer snapshot has a file in it.
    fn add(&mut self, entries: &Entries, row: usize, spec_id: i32, snapshot: Option<&Snapshot>) -> Result<()> {
        if let Some(snapshot) = snapshot
            && self.last_updated.is_none_or(|(time, _)| snapshot.timestamp_ms > time)
        {
            self.spec_id = spec_id;
            self.last_updated = Some((snapshot.timestamp_ms, snapshot.snapshot_id));
        }
        // Unknown counts of old imports count as 0.
        let records = entries.record_count.value(row).max(0);
        let add = |(total, files): &mut (i64, i32)| {
            *total = total.saturating_add(records);
            *files = files.saturating_add(1);
        };
        match entries.content_of(row)? {
            FileContent::Data => {
                self.records = self.records.saturating_add(records);
                self.files = self.files.saturating_add(1);
                self.bytes = self.bytes.saturating_add(entries.file_size_in_bytes.value(row));
            }
            FileContent::PositionDeletes => add(&mut self.position_deletes),
            FileContent::EqualityDeletes => add(&mut self.equality_deletes),
        }
        Ok(())
    }
}
