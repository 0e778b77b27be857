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

impl Read {
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
