//! Metadata tables: the parts of a table as rows, with the schemas of the Java library.
//!
//! [`Inspect::scan`] streams a table manifest by manifest and decodes only the selected columns. Tables about one
//! snapshot ([`MetadataTable::has_snapshots`]) can be read at any snapshot; their partition and metrics columns
//! always follow the current table, as in Java.

mod batch;
mod entries;
mod files;
mod history;
mod manifests;
pub(crate) mod partition;
mod partitions;
mod position_deletes;
mod readable_metrics;
mod tables;

use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use icefield_format::Limits;
use icefield_format::expr::{BoundExpr, Expr};
use icefield_format::metadata::TableMetadata;
use icefield_format::types::Schema;

use crate::error::{Error, Result};
use crate::plan::At;
use crate::storage::Storage;
use crate::stream::{OpenTask, TaskBatches};

use partition::PartitionUnion;

/// A metadata table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MetadataTable {
    /// The existing snapshots.
    Snapshots,
    /// Which snapshot was current from which time on.
    History,
    /// The metadata files, newest last.
    MetadataLogEntries,
    /// Branches and tags.
    Refs,
    /// The entries of the manifests, deleted ones included.
    Entries,
    /// Data and delete files.
    Files,
    /// Data files.
    DataFiles,
    /// Delete files.
    DeleteFiles,
    /// The manifests.
    Manifests,
    /// The partitions with their row and file counts.
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
    /// All of them.
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

    /// Finds a table by name, in any letter case.
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

/// What to read from a metadata table.
#[derive(Debug, Clone)]
pub struct Selection {
    /// The snapshot; only for tables about one snapshot.
    pub at: At,
    /// Column names, nested ones with dots; `None` for all. Rows have them in table order.
    pub columns: Option<Vec<String>>,
    /// Rows to keep.
    pub filter: Option<Expr>,
    /// Whether names are case-sensitive.
    pub case_sensitive: bool,
    /// One part of the rows, for workers that share them.
    pub part: Option<Part>,
}

/// One of several parts of similar size that together form a metadata table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Its number, from 0.
    pub number: usize,
    /// The number of parts.
    pub of: usize,
}

impl Part {
    /// The part with this number.
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

/// A table to inspect.
#[derive(Debug, Clone)]
pub struct Inspect {
    /// Where the files are.
    pub storage: Storage,
    /// The table.
    pub metadata: Arc<TableMetadata>,
    /// The location of its metadata file.
    pub metadata_location: String,
    /// Limits on what is read.
    pub limits: Limits,
}

/// A metadata table being read: the input of its rows.
#[derive(Debug)]
struct Read {
    inspect: Inspect,
    partition: PartitionUnion,
    /// The columns to build: the selected ones, and those of the filter.
    made: Schema,
    arrow: SchemaRef,
    filter: Option<BoundExpr>,
    /// The columns to return.
    output: SchemaRef,
}

impl Read {
    /// A task that builds one batch.
    fn task(self: &Arc<Self>, make: impl FnOnce(&Self) -> Result<RecordBatch> + Send + 'static) -> OpenTask {
        let read = Arc::clone(self);
        Box::new(move || {
            let batch = read.finish(&make(&read)?);
            Ok(Box::new(std::iter::once(batch)) as TaskBatches)
        })
    }

    /// Filters a batch and selects its columns.
    fn finish(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let Some(filter) = &self.filter else { return batch::select(batch, &self.output) };
        let kept = arrow_select::filter::filter_record_batch(batch, &filter.evaluate(batch)?);
        batch::select(&kept.map_err(batch::internal)?, &self.output)
    }
}
