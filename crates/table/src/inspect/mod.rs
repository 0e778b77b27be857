//! Metadata tables: what a table is made of, as rows, with the schemas of the Java library.
//!
//! [`Inspect::scan`] streams a table manifest by manifest; only the columns that are asked for are decoded. Tables of the
//! current state ([`MetadataTable::has_snapshots`]) can be read at any snapshot; their partition and metrics columns are
//! always those of the table as it is now, as in Java.

mod batch;
mod entries;
mod files;
mod history;
mod manifests;
mod partition;
mod partitions;
mod position_deletes;
mod readable_metrics;

use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use icefield_format::Limits;
use icefield_format::expr::{BoundExpr, Expr};
use icefield_format::metadata::{Snapshot, TableMetadata};
use icefield_format::types::arrow::ToArrow;
use icefield_format::types::{Field, Schema};

use crate::error::{Error, Result};
use crate::plan::{At, Scan};
use crate::storage::Storage;
use crate::stream::{BatchStream, OpenTask, TaskBatches};

use partition::PartitionUnion;

/// A metadata table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MetadataTable {
    /// The snapshots that are there.
    Snapshots,
    /// Which snapshot was current from when on.
    History,
    /// The metadata files, the newest last.
    MetadataLogEntries,
    /// Branches and tags.
    Refs,
    /// The entries of the manifests, deleted ones too.
    Entries,
    /// Data and delete files.
    Files,
    /// Data files.
    DataFiles,
    /// Delete files.
    DeleteFiles,
    /// The manifests.
    Manifests,
    /// The partitions and how much is in them.
    Partitions,
    /// Every deleted position.
    PositionDeletes,
    /// Data and delete files of all snapshots.
    AllFiles,
    /// Data files of all snapshots.
    AllDataFiles,
    /// Delete files of all snapshots.
    AllDeleteFiles,
    /// Entries of the manifests of all snapshots.
    AllEntries,
    /// The manifests of all snapshots.
    AllManifests,
}

impl MetadataTable {
    /// Every one.
    pub const ALL: [Self; 16] = [
        Self::Snapshots,
        Self::History,
        Self::MetadataLogEntries,
        Self::Refs,
        Self::Entries,
        Self::Files,
        Self::DataFiles,
        Self::DeleteFiles,
        Self::Manifests,
        Self::Partitions,
        Self::PositionDeletes,
        Self::AllFiles,
        Self::AllDataFiles,
        Self::AllDeleteFiles,
        Self::AllEntries,
        Self::AllManifests,
    ];

    /// Its name: `data_files`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Snapshots => "snapshots",
            Self::History => "history",
            Self::MetadataLogEntries => "metadata_log_entries",
            Self::Refs => "refs",
            Self::Entries => "entries",
            Self::Files => "files",
            Self::DataFiles => "data_files",
            Self::DeleteFiles => "delete_files",
            Self::Manifests => "manifests",
            Self::Partitions => "partitions",
            Self::PositionDeletes => "position_deletes",
            Self::AllFiles => "all_files",
            Self::AllDataFiles => "all_data_files",
            Self::AllDeleteFiles => "all_delete_files",
            Self::AllEntries => "all_entries",
            Self::AllManifests => "all_manifests",
        }
    }

    /// The table of a name, in any letter case.
    pub fn parse(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|table| table.name().eq_ignore_ascii_case(name)).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|table| table.name()).collect();
            Error::invalid(format!("there is no metadata table {name:?}; there are {}", names.join(", ")))
        })
    }

    /// Whether it is about one snapshot, so that another one can be chosen.
    pub fn has_snapshots(self) -> bool {
        matches!(
            self,
            Self::Entries
                | Self::Files
                | Self::DataFiles
                | Self::DeleteFiles
                | Self::Manifests
                | Self::Partitions
                | Self::PositionDeletes
        )
    }
}

impl fmt::Display for MetadataTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What is read of a metadata table.
#[derive(Debug, Clone)]
pub struct Selection {
    /// The snapshot; only for tables that have a choice.
    pub at: At,
    /// Columns by name, nested ones with dots; all without it. Rows have them in the order of the table.
    pub columns: Option<Vec<String>>,
    /// Rows to keep.
    pub filter: Option<Expr>,
    /// Whether the case of names matters.
    pub case_sensitive: bool,
    /// Only one part of the rows, for workers that share them.
    pub part: Option<Part>,
}

/// One of some parts of about the same size that together are a metadata table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Which one, from 0.
    pub number: usize,
    /// How many there are.
    pub of: usize,
}

impl Part {
    /// The part of this number.
    pub fn new(number: usize, of: usize) -> Result<Self> {
        match number < of {
            true => Ok(Self { number, of }),
            false => Err(Error::invalid(format!("there is no part {number} of {of}; they count from 0"))),
        }
    }
}

impl Default for Selection {
    fn default() -> Self {
        Self { at: At::default(), columns: None, filter: None, case_sensitive: true, part: None }
    }
}

/// A table to look into.
#[derive(Debug, Clone)]
pub struct Inspect {
    /// Where the files are.
    pub storage: Storage,
    /// The table.
    pub metadata: Arc<TableMetadata>,
    /// The metadata file that it was read from.
    pub metadata_location: String,
    /// Bounds of what is read.
    pub limits: Limits,
}

/// A metadata table being read: what its rows are made from.
#[derive(Debug)]
struct Read {
    inspect: Inspect,
    partition: PartitionUnion,
    /// The columns that rows are made with: those wanted, and those of the filter.
    made: Schema,
    arrow: SchemaRef,
    filter: Option<BoundExpr>,
    /// The columns that are given out.
    output: SchemaRef,
}

impl Inspect {
    /// The columns of a metadata table.
    pub fn schema(&self, table: MetadataTable) -> Result<Schema> {
        self.schema_with(table, &PartitionUnion::of(&self.metadata)?)
    }

    fn schema_with(&self, table: MetadataTable, partition: &PartitionUnion) -> Result<Schema> {
        use MetadataTable as T;
        let columns: Vec<Field> = match table {
            T::Snapshots => history::snapshots_fields(),
            T::History => history::history_fields(),
            T::MetadataLogEntries => history::metadata_log_fields(),
            T::Refs => history::refs_fields(),
            T::Manifests => manifests::fields(),
            T::AllManifests => manifests::all_fields(),
            T::Partitions => partitions::fields(&partition.union),
            T::PositionDeletes => return position_deletes::schema(&self.metadata, &partition.union),
            T::Entries | T::AllEntries => {
                readable_metrics::joined(entries::fields(&partition.union), self.metadata.current_schema())?
            }
            T::Files | T::DataFiles | T::DeleteFiles | T::AllFiles | T::AllDataFiles | T::AllDeleteFiles => {
                readable_metrics::joined(files::fields(&partition.union), self.metadata.current_schema())?
            }
        };
        Ok(Schema::new(0, columns)?)
    }

    /// The rows of a metadata table.
    pub fn scan(&self, table: MetadataTable, selection: &Selection) -> Result<BatchStream> {
        let (output, mut tasks) = self.tasks(table, selection)?;
        if let Some(Part { number, of }) = selection.part {
            tasks = tasks.into_iter().enumerate().filter(|(at, _)| at % of == number).map(|(_, task)| task).collect();
        }
        Ok(BatchStream::new(output, tasks, None))
    }

    /// Into how many parts a metadata table can be cut: the rows of one manifest stay together, and tables that no data
    /// manifests tell of are one.
    pub fn most_parts(&self, table: MetadataTable, selection: &Selection) -> Result<usize> {
        Ok(self.tasks(table, selection)?.1.len().max(1))
    }

    fn tasks(&self, table: MetadataTable, selection: &Selection) -> Result<(SchemaRef, Vec<OpenTask>)> {
        let snapshot = self.snapshot(table, &selection.at)?;
        let partition = PartitionUnion::of(&self.metadata)?;
        let schema = self.schema_with(table, &partition)?;
        let wanted = match &selection.columns {
            Some(names) => schema.select_in_order(names, selection.case_sensitive)?,
            None => schema.clone(),
        };
        let filter = selection.filter.as_ref().map(|filter| filter.bind(&schema, selection.case_sensitive));
        let filter = filter.transpose()?;
        let mut ids = wanted.projected_ids();
        ids.extend(filter.iter().flat_map(BoundExpr::predicates).map(|predicate| predicate.term.reference.id));
        let made = schema.project(&ids)?;
        let arrow = |schema: &Schema| Ok::<_, Error>(Arc::new(schema.to_arrow(&ToArrow::default())?));
        let output = arrow(&wanted)?;
        let read =
            Read { inspect: self.clone(), partition, arrow: arrow(&made)?, made, filter, output: output.clone() };
        Ok((output, Arc::new(read).tasks(table, snapshot.as_deref())?))
    }

    fn snapshot(&self, table: MetadataTable, at: &At) -> Result<Option<Arc<Snapshot>>> {
        let chosen = at.snapshot_id.is_some() || at.as_of_ms.is_some() || at.reference.is_some();
        if chosen && !table.has_snapshots() {
            return Err(Error::invalid(format!("cannot select a snapshot in the metadata table {table}")));
        }
        Ok(Scan::new(self.storage.clone(), self.metadata.clone(), at)?.snapshot)
    }
}

impl Read {
    fn tasks(self: &Arc<Self>, table: MetadataTable, snapshot: Option<&Snapshot>) -> Result<Vec<OpenTask>> {
        use MetadataTable as T;
        match table {
            T::Snapshots => Ok(vec![self.task(history::snapshots)]),
            T::History => Ok(vec![self.task(history::history)]),
            T::MetadataLogEntries => Ok(vec![self.task(history::metadata_log)]),
            T::Refs => Ok(vec![self.task(history::refs)]),
            T::Manifests => Ok(snapshot.map(|snapshot| manifests::task(self, snapshot)).into_iter().collect()),
            T::AllManifests => Ok(manifests::all_tasks(self)),
            T::Partitions => Ok(snapshot.map(|snapshot| partitions::task(self, snapshot)).into_iter().collect()),
            T::PositionDeletes => position_deletes::tasks(self, snapshot),
            T::Entries => entries::tasks(self, manifests::of(self, snapshot)?),
            T::AllEntries => entries::tasks(self, manifests::of_all_snapshots(self)?),
            T::Files | T::DataFiles | T::DeleteFiles => files::tasks(self, table, manifests::of(self, snapshot)?),
            T::AllFiles | T::AllDataFiles | T::AllDeleteFiles => {
                files::tasks(self, table, manifests::of_all_snapshots(self)?)
            }
        }
    }

    /// A task that makes one batch.
    fn task(self: &Arc<Self>, make: impl FnOnce(&Self) -> Result<RecordBatch> + Send + 'static) -> OpenTask {
        let read = Arc::clone(self);
        Box::new(move || {
            let batch = read.finish(&make(&read)?);
            Ok(Box::new(std::iter::once(batch)) as TaskBatches)
        })
    }

    /// The rows of a batch that are wanted, with the columns that are wanted.
    fn finish(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let Some(filter) = &self.filter else { return batch::select(batch, &self.output) };
        let kept = arrow_select::filter::filter_record_batch(batch, &filter.evaluate(batch)?);
        batch::select(&kept.map_err(batch::internal)?, &self.output)
    }
}
