//! Batches of upserts and deletes by key, as from a stream ("Equality Delete Files"): data files and equality deletes
//! in one snapshot.
//!
//! The table is not read: an equality delete for every key removes older rows, wherever they are. Of several changes to
//! a key in a batch only the last one counts, because equality deletes do not apply to data files of their own
//! snapshot. Rows are held until the batch is committed; those beyond the memory limit are on disk, partitioned by the
//! hash of the key.
//!
//! An equality delete applies only to files in the same partition of the same spec, or to all files if its spec is
//! unpartitioned. Deletes are therefore written for every spec that has data files, and all source columns of these
//! specs must be in the key.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use arrow_array::{Array, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{DataType, Field as ArrowField, FieldRef, Schema as ArrowSchema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use icefield_format::manifest::DataFile;
use icefield_format::metadata::{FormatVersion, TableMetadata};
use icefield_format::spec::PartitionSpec;
use icefield_format::types::arrow::ToArrow;
use icefield_format::types::{Field, Schema, StructType, Type};

use super::merge::assigned::rows_of;
use super::merge::key::{Equality, Key};
use super::merge::keyed::{Doubles, KeyedRows};
use super::merge::spill::Spill;
use super::row_delta::{RowDelta, live_specs};
use crate::commit::{SnapshotOptions, SnapshotProducer, Transaction};
use crate::error::{Error, Result};
use crate::interrupt;
use crate::storage::Storage;
use crate::write::conform::Conform;
use crate::write::deletes::equality::{EqualityDeleteWriter, check_columns};
use crate::write::intake::Intake;
use crate::write::{Matching, TableWriter, WriterConfig, key_length};

/// Number of hash partitions of a batch on disk.
const PARTS: usize = 64;
/// The last column of held rows: whether the row is a delete. It is addressed by position, since the table may have a
/// column of this name.
const DELETES: &str = "_delete";

/// Collects changes of rows by key until they are committed.
#[derive(Debug)]
pub struct KeyedBatch {
    metadata: Arc<TableMetadata>,
    key: Key,
    /// The columns of the table, followed by [`DELETES`].
    held: SchemaRef,
    rows: Vec<RecordBatch>,
    bytes: usize,
    spill: Option<Spill>,
    memory: usize,
}

/// Counts of what a batch has written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeyedChanges {
    /// Number of rows written: the last one of each key, unless it was deleted afterwards.
    pub rows_written: i64,
    /// Number of keys with equality deletes.
    pub keys: i64,
}

impl KeyedBatch {
    /// An empty batch for the table of a transaction. Without `columns`, the key consists of the identifier fields.
    ///
    /// # Errors
    /// A table of version 1, columns that cannot be a key, or partition specs with source columns outside the key.
    pub fn new(transaction: &mut Transaction, columns: &[String], case_sensitive: bool, memory: usize) -> Result<Self> {
        transaction.check_open()?;
        let metadata = transaction.metadata()?.clone();
        if metadata.format_version() < FormatVersion::V2 {
            return Err(Error::unsupported(
                "streams of upserts: tables of format version 1 have no delete files; upgrade the table",
            ));
        }
        let table = metadata.current_schema();
        let named = |name: &String| Ok(table.named(name, case_sensitive)?.id);
        let ids: Vec<i32> = match columns {
            [] => table.identifier_field_ids().to_vec(),
            names => names.iter().map(named).collect::<Result<_>>()?,
        };
        if ids.is_empty() {
            return Err(Error::invalid(
                "streams of upserts: name the columns of the key, or set identifier fields in the table's schema",
            ));
        }
        check_columns(table, &ids)?;
        // Deletes only have values for the key, so all columns are optional here; required columns are checked when
        // rows are written.
        let own = Schema::new(0, table.fields().iter().map(relaxed).collect())?.to_arrow(&ToArrow::default())?;
        let mut fields: Vec<FieldRef> = own.fields().to_vec();
        fields.push(Arc::new(ArrowField::new(DELETES, DataType::Boolean, false)));
        let held = Arc::new(ArrowSchema::new(fields));
        let name = |id: &i32| table.column_name(*id).map(|name| (name.to_owned(), name.to_owned()));
        let on: Vec<(String, String)> = ids.iter().filter_map(name).collect();
        let key = Key::new(table, &held, &on, Equality::Exact, true)?;
        let batch = Self { key, held, rows: Vec::new(), bytes: 0, spill: None, memory, metadata: metadata.clone() };
        batch.check_spec(metadata.default_spec())?;
        Ok(batch)
    }

    /// Whether there are no changes.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.spill.is_none()
    }

    /// Adds rows that replace those with the same keys.
    ///
    /// # Errors
    /// Rows that do not fit the table. The batch must then be discarded: it may already have some of these rows.
    pub fn upsert(
        &mut self,
        schema: &ArrowSchema,
        batches: impl Iterator<Item = Result<RecordBatch>>,
        matching: Matching,
    ) -> Result<()> {
        let conform = Conform::new(self.metadata.current_schema(), schema, matching)?;
        // A default value must not fill in a missing key column.
        let names = self.key_names();
        self.require_key(schema, &names)?;
        self.take(Intake::new(conform, None, None), None, batches, false)
    }

    /// Deletes the rows with these keys; columns outside the key are ignored.
    ///
    /// # Errors
    /// Key columns that are missing or do not fit; otherwise as for [`KeyedBatch::upsert`].
    pub fn delete(&mut self, schema: &ArrowSchema, batches: impl Iterator<Item = Result<RecordBatch>>) -> Result<()> {
        let names = self.key_names();
        self.require_key(schema, &names)?;
        let top: HashSet<&str> = names.iter().map(|name| self.top_of(name)).collect();
        let places: Vec<usize> =
            (0..schema.fields().len()).filter(|place| top.contains(schema.field(*place).name().as_str())).collect();
        let table = self.metadata.current_schema();
        let fields = table.fields().iter().filter(|field| top.contains(field.name.as_str())).map(relaxed).collect();
        let given = schema.project(&places).map_err(internal)?;
        let matching = Matching { allow_missing: true, ignore_extra: true };
        let conform = Conform::new(&Schema::new(0, fields)?, &given, matching)?;
        self.take(Intake::new(conform, None, None), Some(&places), batches, true)
    }

    /// Writes the changes and stages their snapshot; without changes, no snapshot is made.
    ///
    /// # Errors
    /// An error of the rows or the storage; written files are deleted.
    pub fn commit(mut self, transaction: &mut Transaction, options: SnapshotOptions) -> Result<KeyedChanges> {
        if self.is_empty() {
            return Ok(KeyedChanges::default());
        }
        if !Arc::ptr_eq(transaction.metadata()?, &self.metadata) {
            return Err(Error::invalid("the table has changed since the batch of changes began: begin another one"));
        }
        let metadata = self.metadata.clone();
        let storage = &transaction.storage().clone();
        let parent = match metadata.reference(&options.branch) {
            Some(found) if !found.is_branch() => {
                let branch = &options.branch;
                return Err(Error::invalid(format!("{branch} is a tag: only a branch can be written to")));
            }
            Some(found) => metadata.snapshot(found.snapshot_id),
            None => metadata.current_snapshot(),
        };
        let mut specs = live_specs(storage, &metadata, parent.map(|snapshot| &**snapshot))?;
        specs.insert(metadata.default_spec_id());
        let mut writers = Writers::new(storage, &metadata, &self, &specs)?;
        let written = self.write_all(&mut writers);
        let (files, deletes, done) = match written {
            Ok(done) => {
                let (files, deletes) = writers.finish(storage)?;
                (files, deletes, done)
            }
            Err(error) => {
                writers.abort();
                return Err(error);
            }
        };
        let mut content = RowDelta::new();
        files.into_iter().try_for_each(|file| content.add_rows(file))?;
        deletes.into_iter().try_for_each(|file| content.add_deletes(file))?;
        content.validate_data_files_of_specs(specs);
        transaction.stage(SnapshotProducer::new(storage.clone(), content, options).that_owns_its_files())?;
        Ok(done)
    }

    fn key_names(&self) -> Vec<String> {
        let table = self.metadata.current_schema();
        self.key.columns.iter().filter_map(|column| table.column_name(column.id)).map(str::to_owned).collect()
    }

    fn require_key(&self, schema: &ArrowSchema, names: &[String]) -> Result<()> {
        let on: Vec<_> = names.iter().map(|name| (name.clone(), name.clone())).collect();
        Key::new(self.metadata.current_schema(), schema, &on, Equality::Exact, true).map(drop)
    }

    /// The top-level column that contains a key column.
    fn top_of<'n>(&self, name: &'n str) -> &'n str {
        let is_column = |name: &str| self.metadata.current_schema().fields().iter().any(|field| field.name == name);
        match is_column(name) {
            true => name,
            false => name
                .match_indices('.')
                .filter_map(|(place, _)| name.get(..place))
                .find(|front| is_column(front))
                .unwrap_or(name),
        }
    }

    /// Rejects a spec whose partitions cannot be computed from the key, so that equality deletes would miss rows.
    fn check_spec(&self, spec: &PartitionSpec) -> Result<()> {
        let is_of_key = |id: &i32| self.key.columns.iter().any(|column| column.id == *id);
        let mut fields = spec.fields.iter().filter(|field| !field.transform.is_void());
        match fields.find(|field| !field.source_ids.iter().all(is_of_key)) {
            None => Ok(()),
            Some(field) => Err(Error::invalid(format!(
                "streams of upserts: the source column of the partition field {} (spec {}) is not in the key {}: add it, so that \
                 deletes are known to be of the partition of the rows that they are for",
                field.name,
                spec.spec_id,
                self.key_names().join(", ")
            ))),
        }
    }

    /// Adds converted rows to the batch.
    fn take(
        &mut self,
        mut intake: Intake,
        places: Option<&[usize]>,
        batches: impl Iterator<Item = Result<RecordBatch>>,
        deletes: bool,
    ) -> Result<()> {
        let columns =
            ArrowSchema::new(self.held.fields().iter().take(self.held.fields().len() - 1).cloned().collect::<Vec<_>>());
        let columns = Arc::new(columns);
        for batch in batches {
            interrupt::check()?;
            let batch = batch?;
            let batch = match places {
                Some(places) => batch.project(places).map_err(internal)?,
                None => batch,
            };
            let rows = rows_of(&intake.prepare(&batch)?.chunk, None, &columns)?;
            let mut arrays = rows.columns().to_vec();
            arrays.push(Arc::new(BooleanArray::from(vec![deletes; rows.num_rows()])));
            let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
            let rows = RecordBatch::try_new_with_options(self.held.clone(), arrays, &options).map_err(internal)?;
            if rows.num_rows() > 0 {
                self.bytes += rows.get_array_memory_size();
                self.rows.push(rows);
            }
            if self.bytes > self.memory / 2 {
                self.spill()?;
            }
        }
        Ok(())
    }

    /// Moves held rows to disk.
    fn spill(&mut self) -> Result<()> {
        let spill = match &mut self.spill {
            Some(spill) => spill,
            slot => {
                let is_encrypted = key_length(self.metadata.properties())?.is_some();
                slot.insert(Spill::new(self.held.clone(), PARTS, self.memory / 4, is_encrypted)?)
            }
        };
        for batch in std::mem::take(&mut self.rows) {
            interrupt::check()?;
            let columns = self.key.source_columns(&batch)?;
            let keys = self.key.of_columns(columns)?;
            let part = |row: usize| {
                let hash = keys.get(row).map_or(0, |key| self.key.hash(key));
                Some(usize::try_from(hash >> 32).unwrap_or(0) % PARTS)
            };
            spill.add(&batch, &(0..keys.len()).map(part).collect::<Vec<_>>())?;
        }
        self.bytes = 0;
        Ok(())
    }

    fn write_all(&mut self, writers: &mut Writers) -> Result<KeyedChanges> {
        let mut done = KeyedChanges::default();
        if self.spill.is_some() {
            self.spill()?;
        }
        let Some(mut spill) = self.spill.take() else {
            let rows = std::mem::take(&mut self.rows);
            return self.write(rows, writers);
        };
        for part in 0..spill.parts() {
            let rows = spill.take(part).collect::<Result<Vec<_>>>()?;
            let of_part = self.write(rows, writers)?;
            done.rows_written += of_part.rows_written;
            done.keys += of_part.keys;
        }
        Ok(done)
    }

    /// Writes the last row of each key.
    fn write(&mut self, rows: Vec<RecordBatch>, writers: &mut Writers) -> Result<KeyedChanges> {
        let mut keyed = Vec::with_capacity(rows.len());
        for batch in rows {
            interrupt::check()?;
            let columns = self.key.source_columns(&batch)?;
            keyed.push((batch, self.key.of_columns(columns)?));
        }
        let keyed = KeyedRows::new(self.held.clone(), keyed, &mut self.key, Doubles::Keep)?;
        let replaced = keyed.replaced();
        let mut done = KeyedChanges::default();
        for (number, batch) in keyed.batches().iter().enumerate() {
            interrupt::check()?;
            let last = keyed.unmarked(number, &replaced);
            let last = filter_record_batch(batch, &last).map_err(internal)?;
            if last.num_rows() == 0 {
                continue;
            }
            let places: Vec<usize> = (0..last.num_columns() - 1).collect();
            let rows = last.project(&places).map_err(internal)?;
            writers.delete(&rows)?;
            done.keys += i64::try_from(rows.num_rows()).unwrap_or(i64::MAX);
            let deletes = last.columns().last().and_then(|column| column.as_any().downcast_ref::<BooleanArray>());
            let deletes = deletes.ok_or_else(|| Error::Internal("rows without their kind".to_owned()))?;
            let kept = BooleanArray::new(BooleanBuffer::collect_bool(deletes.len(), |row| !deletes.value(row)), None);
            let kept = filter_record_batch(&rows, &kept).map_err(internal)?;
            if kept.num_rows() > 0 {
                writers.data.write(&kept)?;
                done.rows_written += i64::try_from(kept.num_rows()).unwrap_or(i64::MAX);
            }
        }
        Ok(done)
    }
}

/// The writers of one batch.
struct Writers {
    data: TableWriter,
    /// One writer for each spec.
    deletes: Vec<EqualityDeleteWriter>,
}

impl Writers {
    fn new(storage: &Storage, metadata: &TableMetadata, batch: &KeyedBatch, specs: &BTreeSet<i32>) -> Result<Self> {
        let width = batch.held.fields().len() - 1;
        let schema = ArrowSchema::new(batch.held.fields().iter().take(width).cloned().collect::<Vec<_>>());
        let ids: Vec<i32> = batch.key.columns.iter().map(|column| column.id).collect();
        let mut deletes = Vec::with_capacity(specs.len());
        for id in specs {
            let spec = metadata.partition_spec(*id);
            let spec = spec.ok_or_else(|| Error::invalid(format!("the table has no partition spec {id}")))?;
            batch.check_spec(spec)?;
            let config = WriterConfig { spec: spec.clone(), ..WriterConfig::of_table(storage.clone(), metadata) };
            deletes.push(EqualityDeleteWriter::new(config, &ids, &schema)?);
        }
        let data = TableWriter::new(WriterConfig::of_table(storage.clone(), metadata), &schema)?;
        Ok(Self { data, deletes })
    }

    fn delete(&mut self, rows: &RecordBatch) -> Result<()> {
        self.deletes.iter_mut().try_for_each(|writer| writer.write(rows))
    }

    /// Closes the writers; returns the data files and the delete files.
    fn finish(self, storage: &Storage) -> Result<(Vec<DataFile>, Vec<DataFile>)> {
        let (mut deletes, mut failed) = (Vec::new(), None);
        for writer in self.deletes {
            match failed {
                Some(_) => writer.abort(),
                None => match writer.finish() {
                    Ok(files) => deletes.extend(files),
                    Err(error) => failed = Some(error),
                },
            }
        }
        let data = match failed {
            None => self.data.finish(),
            Some(error) => {
                self.data.abort();
                Err(error)
            }
        };
        match data {
            Ok(data) => Ok((data, deletes)),
            Err(error) => {
                let paths: Vec<String> = deletes.into_iter().map(|file| file.file_path).collect();
                storage.discard(&paths, "delete files of a change by key that failed");
                Err(error)
            }
        }
    }

    fn abort(self) {
        self.data.abort();
        self.deletes.into_iter().for_each(EqualityDeleteWriter::abort);
    }
}

/// The field with all of its parts optional.
fn relaxed(field: &Field) -> Field {
    let ty = match &field.ty {
        Type::Struct(inner) => Type::Struct(StructType::new(inner.fields.iter().map(relaxed).collect()).into()),
        other => other.clone(),
    };
    Field { required: false, write_default: None, ty, ..field.clone() }
}

fn internal(error: arrow_schema::ArrowError) -> Error {
    Error::Internal(format!("changes by key: {error}"))
}
