//! Describes an existing file as an entry of a manifest, from its footer.

use std::cell::Cell;
use std::sync::Arc;

use arrow_schema::{DataType, Fields, SchemaRef};
use icefield_format::manifest::{DataFile, FileContent, FileFormat};
use icefield_format::metadata::{StringMap, TableMetadata};
use icefield_format::types::arrow::{ToArrow, field_id, has_ids, with_mapped_ids};
use icefield_format::types::reserved::MAX_COLUMN_ID;
use icefield_format::types::{Field, NameMapping, Schema, StructType, Type};
use icefield_format::value::Value;

use super::options::AddFilesOptions;
use super::partition::{PartitionOf, Partitioner};
use crate::error::{Error, Result};
use crate::file::metrics::FileMetrics;
use crate::file::modes::Modes;
use crate::file::{self, is_stored};
use crate::read::columns::{Constants, Rules};
use crate::read::file_columns::pairs;
use crate::storage::{FileRef, Storage};

/// Describes files of one table.
pub(super) struct Importer<'a> {
    storage: &'a Storage,
    metadata: &'a TableMetadata,
    mapping: &'a NameMapping,
    arrow: SchemaRef,
    /// The metrics that are written to manifests.
    modes: Modes,
    /// All metrics, as evidence of partition values.
    full: Modes,
    partitioner: Partitioner<'a>,
}

/// The description of a file.
pub(super) struct Described {
    pub(super) file: DataFile,
    /// Whether its columns are found by name, because it has no field ids.
    pub(super) is_mapped: bool,
}

impl<'a> Importer<'a> {
    pub(super) fn new(
        storage: &'a Storage,
        metadata: &'a TableMetadata,
        mapping: &'a NameMapping,
        options: &'a AddFilesOptions,
    ) -> Result<Self> {
        let schema = metadata.current_schema();
        let full = StringMap::from([("write.metadata.metrics.default".to_owned(), "full".to_owned())]);
        Ok(Self {
            storage,
            metadata,
            mapping,
            arrow: Arc::new(schema.to_arrow(&ToArrow::default())?),
            modes: Modes::new(metadata.properties(), schema, None)?,
            full: Modes::new(&full, schema, None)?,
            partitioner: Partitioner::new(storage, metadata, mapping, options)?,
        })
    }

    /// Describes a file as an entry of a manifest.
    pub(super) fn describe(&self, path: &str) -> Result<Described> {
        let schema = self.metadata.current_schema();
        let size = self.storage.size(path)?;
        let format = format_of(self.storage, path, size)?;
        let mut file = file::open(self.storage, &FileRef::plain(path, size), format.name(), FileContent::Data)?;
        let is_mapped = Cell::new(false);
        let with_ids = |fields: &Fields| {
            is_mapped.set(!has_ids(fields));
            if is_mapped.get() { with_mapped_ids(fields, self.mapping) } else { fields.clone() }
        };
        let fields = file.bind(&with_ids, schema);
        let is_mapped = is_mapped.get();
        if !is_mapped {
            self.check_ids(path, &fields, "")?;
        }
        if !fields.iter().filter_map(|field| field_id(field)).any(|id| schema.find_field(id).is_some()) {
            return Err(Error::invalid(format!("{path}: none of its columns is a column of the table")));
        }
        let proven = file.metrics(&self.full)?;
        let partition = self.partitioner.of(path, format, size, &proven, &fields)?;
        let constants = PartitionConstants { partition: &partition, schema };
        Rules { path, constants: &constants }.plan(&pairs(schema, &self.arrow), &fields)?;
        check_required(path, schema, &proven)?;

        let metrics = file.metrics(&self.modes)?;
        // As for Avro files written by this crate, only the rows are counted, not values per column.
        let counted = format != FileFormat::Avro;
        let file = DataFile {
            file_path: path.to_owned(),
            file_format: format.name().to_owned(),
            partition_spec_id: self.metadata.default_spec_id(),
            partition: partition.tuple,
            record_count: metrics.record_count,
            file_size_in_bytes: i64::try_from(size).unwrap_or(i64::MAX),
            column_sizes: counted.then(|| metrics.column_sizes.into_iter().collect()),
            value_counts: counted.then(|| metrics.value_counts.into_iter().collect()),
            null_value_counts: counted.then(|| metrics.null_value_counts.into_iter().collect()),
            nan_value_counts: counted.then(|| metrics.nan_value_counts.into_iter().collect()),
            lower_bounds: counted.then(|| metrics.lower_bounds.into_iter().collect()),
            upper_bounds: counted.then(|| metrics.upper_bounds.into_iter().collect()),
            split_offsets: counted.then_some(metrics.split_offsets),
            ..DataFile::default()
        };
        Ok(Described { file, is_mapped })
    }

    /// Rejects field ids that differ from those of the table's columns of the same name: such a file was written for
    /// another table. A column may be stored under one of its earlier names.
    fn check_ids(&self, path: &str, fields: &Fields, parent: &str) -> Result<()> {
        let current = self.metadata.current_schema();
        for field in fields {
            let name = if parent.is_empty() { field.name().clone() } else { format!("{parent}.{}", field.name()) };
            if let Some(id) = field_id(field).filter(|id| *id <= MAX_COLUMN_ID) {
                let mut schemas = self.metadata.schemas().iter();
                let had = |schema: &Arc<Schema>| schema.find_field(id).is_some_and(|known| known.name == *field.name());
                let other = match (current.find_field(id), current.find_by_name(&name, true)?) {
                    (Some(known), _) if !schemas.any(had) => Some(format!("column {} of the table", known.name)),
                    (None, Some(known)) => Some(format!("another one than {} of the table's column", known.id)),
                    _ => None,
                };
                if let Some(other) = other {
                    return Err(Error::invalid(format!(
                        "{path}: its column {name} has the field id {id}, which is {other}: the ids are those of another table"
                    )));
                }
            }
            if let DataType::Struct(children) = field.data_type() {
                self.check_ids(path, children, &name)?;
            }
        }
        Ok(())
    }
}

/// Detects the format of a file by its first bytes.
pub(crate) fn format_of(storage: &Storage, path: &str, size: u64) -> Result<FileFormat> {
    let found = file::format_in(&storage.range(path, 0..4.min(size))?);
    found.ok_or_else(|| Error::corrupt_file(path, "it is no Parquet, ORC or Avro file"))
}

/// Rejects nulls in required columns, as far as the footer counts them.
fn check_required(path: &str, schema: &Schema, metrics: &FileMetrics) -> Result<()> {
    fn visit(path: &str, fields: &[Field], metrics: &FileMetrics) -> Result<()> {
        for field in fields.iter().filter(|field| field.required && is_stored(field)) {
            if let Some(nulls) = metrics.null_value_counts.get(&field.id).filter(|nulls| **nulls > 0) {
                let name = &field.name;
                return Err(Error::invalid(format!("{path}: column {name} is required, and has {nulls} nulls")));
            }
            if let Type::Struct(inner) = &field.ty {
                visit(path, &inner.fields, metrics)?;
            }
        }
        Ok(())
    }
    visit(path, schema.fields(), metrics)
}

/// The values that a partition determines for all rows of its files.
struct PartitionConstants<'a> {
    partition: &'a PartitionOf,
    schema: &'a Schema,
}

impl Constants for PartitionConstants<'_> {
    fn identity(&self, source_id: i32) -> Option<Option<Value>> {
        self.partition.identities.get(&source_id).cloned()
    }

    fn whole_struct(&self, id: i32) -> Option<&StructType> {
        self.schema.find_type(id).and_then(Type::as_struct).map(|ty| &**ty)
    }
}
