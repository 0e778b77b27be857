//! Writes equality delete files ("Equality Delete Files"): values of some columns; rows with these values are
//! deleted.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Schema as ArrowSchema;
use icefield_format::manifest::{DataFile, FileContent};
use icefield_format::types::{PrimitiveType, Schema, Type};

use super::{SUFFIX, delete_properties};
use crate::error::{Error, Result};
use crate::write::conform::Matching;
use crate::write::writer::{TableWriter, WriterConfig};

/// Writes equality deletes by one set of columns.
#[derive(Debug)]
pub struct EqualityDeleteWriter {
    writer: TableWriter,
    equality_ids: Vec<i32>,
}

impl EqualityDeleteWriter {
    /// A writer for batches of `data`, from which it writes the columns `equality_ids`; other columns are ignored.
    /// Each file belongs to the partition of its values. A spec with other source columns is refused, because the
    /// partition of the deleted rows would be unknown. Deletes of an unpartitioned spec apply to all partitions.
    ///
    /// # Errors
    ///
    /// A column that is not in the schema, whose type has no equality, or that is inside a list or map, and columns
    /// missing from the data.
    pub fn new(mut config: WriterConfig, equality_ids: &[i32], data: &ArrowSchema) -> Result<Self> {
        check_columns(&config.schema, equality_ids)?;
        let ids: HashSet<i32> = equality_ids.iter().copied().collect();
        for field in config.spec.fields.iter().filter(|field| !field.transform.is_void()) {
            if !field.source_ids.iter().all(|id| ids.contains(id)) {
                return Err(Error::invalid(format!(
                    "equality deletes: the source column of the partition field {} is not one of the columns they compare; \
                     add it to these, or write them with an unpartitioned spec",
                    field.name
                )));
            }
        }
        config.schema = Arc::new(config.schema.select_ids(&ids)?);
        config.properties = delete_properties(&config.properties);
        // The sort order may need columns that are not written here.
        config.order = None;
        config.suffix = SUFFIX;
        // A missing column would delete the rows where it is null.
        config.matching = Matching { allow_missing: false, ignore_extra: true };
        let writer = TableWriter::new(config, data)?;
        Ok(Self { writer, equality_ids: equality_ids.to_vec() })
    }

    /// Writes the values of a batch. After an error call [`EqualityDeleteWriter::abort`].
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.writer.write(batch)
    }

    /// Closes all files and returns what was written.
    pub fn finish(self) -> Result<Vec<DataFile>> {
        let files = self.writer.finish()?.into_iter().map(|file| DataFile {
            content: FileContent::EqualityDeletes,
            equality_ids: Some(self.equality_ids.clone()),
            ..file
        });
        Ok(files.collect())
    }

    /// Aborts: deletes every file of this writer, as far as the store allows it.
    pub fn abort(self) {
        self.writer.abort();
    }
}

/// Refuses columns whose values cannot be compared ("Equality Delete Files": those that cannot be identifier fields,
/// except for being nullable).
pub(crate) fn check_columns(schema: &Schema, ids: &[i32]) -> Result<()> {
    if ids.is_empty() {
        return Err(Error::invalid("equality deletes need at least one column to compare"));
    }
    for id in ids {
        let field = schema.find_field(*id);
        let field = field.ok_or_else(|| Error::invalid(format!("equality deletes: the table has no column {id}")))?;
        let name = schema.column_name(*id).unwrap_or(&field.name);
        let why = match &field.ty {
            Type::Primitive(PrimitiveType::Float | PrimitiveType::Double) => {
                Some("the specification allows no floating-point numbers")
            }
            Type::Primitive(PrimitiveType::Geometry { .. } | PrimitiveType::Geography { .. }) => {
                Some("shapes have no equality")
            }
            Type::Primitive(PrimitiveType::Unknown | PrimitiveType::Unrecognized(_)) => {
                Some("files have no values of it")
            }
            Type::Primitive(_) => None,
            _ => Some("only primitive values are compared"),
        };
        if let Some(why) = why {
            return Err(Error::invalid(format!("equality deletes: column {name} is {}: {why}", field.ty)));
        }
        if schema.accessor(*id).is_none() {
            return Err(Error::invalid(format!("equality deletes: column {name} is inside a list or map")));
        }
    }
    Ok(())
}
