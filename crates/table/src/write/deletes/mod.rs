//! Writes delete files ("Row-level Deletes"), for changes that delete rows and keep their data files.
//!
//! [`positions`] writes position delete files (version 2), [`vectors`] deletion vectors (version 3 and later), and
//! [`equality`] files of deleted values. Earlier deletes of a data file are read elsewhere and passed in with the new
//! ones.

pub mod equality;
pub mod positions;
pub mod vectors;

use std::sync::Arc;

use icefield_format::manifest::{DataFile, FileFormat};
use icefield_format::metadata::properties::{
    DEFAULT_FILE_FORMAT, DELETE_DEFAULT_FILE_FORMAT, DELETE_GRANULARITY, DELETE_TARGET_FILE_SIZE_BYTES,
    ORC_BLOOM_FILTER_COLUMNS, WRITE_TARGET_FILE_SIZE_BYTES,
};
use icefield_format::metadata::{StringMap, TableMetadata};
use icefield_format::puffin::DeletionVector;
use icefield_format::spec::PartitionSpec;
use icefield_format::spec::path::partition_path;
use icefield_format::types::Schema;
use icefield_format::value::Value;
use uuid::Uuid;

use super::location::{DataLocations, FileNames};
use super::writer::source_types;
use crate::error::Result;
use crate::storage::Storage;

/// Suffix of the names of delete files, before the extension, as in the Java library.
pub(super) const SUFFIX: &str = "-deletes";

/// Formats for which `write.delete.FORMAT.*` overrides `write.FORMAT.*`.
const FORMATS: [&str; 3] = ["parquet.", "orc.", "avro."];

/// A data file and all of its deleted rows.
#[derive(Debug, Clone)]
pub struct DeletedRows {
    /// Location of the data file, as in its manifest.
    pub data_file: String,
    /// Its partition spec.
    pub spec: Arc<PartitionSpec>,
    /// Its partition.
    pub partition: Vec<Option<Value>>,
    /// Positions of the deleted rows.
    pub positions: Arc<DeletionVector>,
}

/// Which data files share a position delete file (`write.delete.granularity`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Granularity {
    /// Each data file has its own.
    #[default]
    File,
    /// The data files of a partition share one.
    Partition,
}

impl Granularity {
    /// Reads the property. The default is one file per data file, as in Spark: readers of one data file then read no
    /// deletes of others.
    pub fn of(properties: &StringMap) -> Result<Self> {
        if !properties.contains_key(DELETE_GRANULARITY.name) {
            return Ok(Self::default());
        }
        Ok(match DELETE_GRANULARITY.read_choice(properties)? {
            "partition" => Self::Partition,
            _ => Self::File,
        })
    }
}

/// Configuration of the delete files of one write.
#[derive(Debug, Clone)]
pub struct DeleteConfig {
    /// Where the files go.
    pub storage: Storage,
    /// Location of the table.
    pub location: String,
    /// Properties of the table.
    pub properties: StringMap,
    /// The table's current schema.
    pub schema: Arc<Schema>,
    /// The id of the write, part of its file names.
    pub operation: Uuid,
    /// Number of the task within the write.
    pub task: u32,
    /// Number of the attempt at the task.
    pub attempt: u64,
}

impl DeleteConfig {
    /// A configuration for a table.
    pub fn of_table(storage: Storage, metadata: &TableMetadata, operation: Uuid) -> Self {
        Self {
            storage,
            location: metadata.location().to_owned(),
            properties: metadata.properties().clone(),
            schema: metadata.current_schema().clone(),
            operation,
            task: 0,
            attempt: 0,
        }
    }

    fn locations(&self) -> Result<DataLocations> {
        DataLocations::new(&self.location, &self.properties)
    }

    fn names(&self, format: FileFormat) -> FileNames {
        FileNames::new(self.task, self.attempt, self.operation, format.extension()).with_suffix(SUFFIX)
    }

    /// The folders of a partition.
    fn partition_path(&self, rows: &DeletedRows) -> Result<String> {
        Ok(partition_path(&rows.spec, &source_types(&rows.spec, &self.schema), &rows.partition)?)
    }
}

/// The properties for writing delete files: those of data files with their `write.delete.*` overrides.
pub(super) fn delete_properties(properties: &StringMap) -> StringMap {
    let mut own = properties.clone();
    // They name columns of the table, which most delete files lack.
    own.shift_remove(ORC_BLOOM_FILTER_COLUMNS.name);
    for (name, value) in properties {
        let of_format = name.strip_prefix("write.delete.");
        if let Some(rest) = of_format.filter(|rest| FORMATS.iter().any(|format| rest.starts_with(format))) {
            own.insert(format!("write.{rest}"), value.clone());
        }
    }
    if let Some(format) = DELETE_DEFAULT_FILE_FORMAT.read(properties) {
        own.insert(DEFAULT_FILE_FORMAT.name.to_owned(), format.to_owned());
    }
    let target = properties.get(DELETE_TARGET_FILE_SIZE_BYTES.name).cloned();
    let target = target.unwrap_or_else(|| DELETE_TARGET_FILE_SIZE_BYTES.default.to_string());
    own.insert(WRITE_TARGET_FILE_SIZE_BYTES.name.to_owned(), target);
    own
}

/// Deletes the files of a failed write.
fn discard(storage: &Storage, written: &[DataFile]) {
    let paths: Vec<String> = written.iter().map(|file| file.file_path.clone()).collect();
    storage.discard(&paths, "delete files of a write that failed");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings<const N: usize>(properties: [(&str, &str); N]) -> StringMap {
        properties.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }

    #[test]
    fn properties_of_delete_files_go_before_those_of_data_files() {
        let own = delete_properties(&strings([
            ("write.format.default", "orc"),
            ("write.delete.format.default", "avro"),
            ("write.parquet.compression-codec", "zstd"),
            ("write.delete.parquet.compression-codec", "gzip"),
            ("write.delete.avro.compression-codec", "snappy"),
            ("write.avro.compression-level", "3"),
            ("write.orc.bloom.filter.columns", "a"),
            ("write.target-file-size-bytes", "1"),
        ]));
        let get = |name: &str| own.get(name).map(String::as_str);
        assert_eq!(get("write.format.default"), Some("avro"));
        assert_eq!(get("write.parquet.compression-codec"), Some("gzip"));
        assert_eq!(get("write.avro.compression-codec"), Some("snappy"));
        assert_eq!(get("write.avro.compression-level"), Some("3"));
        assert_eq!(get("write.orc.bloom.filter.columns"), None);
        assert_eq!(get("write.target-file-size-bytes"), Some("67108864"));
        let own = delete_properties(&strings([("write.format.default", "orc")]));
        assert_eq!(own.get("write.format.default").map(String::as_str), Some("orc"));
    }

    #[test]
    fn tables_that_say_nothing_get_a_file_for_each_data_file() {
        for (properties, expected) in [
            (strings([]), Some(Granularity::File)),
            (strings([("write.delete.granularity", "file")]), Some(Granularity::File)),
            (strings([("write.delete.granularity", "PARTITION")]), Some(Granularity::Partition)),
            (strings([("write.delete.granularity", "row")]), None),
        ] {
            assert_eq!(Granularity::of(&properties).ok(), expected, "{properties:?}");
        }
    }
}
