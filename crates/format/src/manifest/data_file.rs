//! Files and entries as values: the input of manifest writers, and rows of [`Entries`] converted on demand.

use std::fmt;

use arrow_array::Array;

use crate::encryption::HiddenBytes;
use crate::value::Value;
use crate::{Error, Result};

use super::read::read_field::ReadField;
use super::{Entries, FileContent, FileFormat, Status};

macro_rules! data_file {
    ($($group:ident { $(#[$doc:meta])* $name:ident: $value:ty => $($declared:tt)* })*) => {
        /// A data or delete file ("Data File Fields").
        #[derive(Clone, PartialEq, Default)]
        pub struct DataFile {
            /// The partition spec of the tuple. It is written to the header of the manifest, not to the entry.
            pub partition_spec_id: i32,
            /// The partition tuple, in the order of the spec.
            pub partition: Vec<Option<Value>>,
            $($(#[$doc])* pub $name: $value,)*
        }

        /// Does not print the key.
        impl fmt::Debug for DataFile {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let hidden = self.key_metadata.as_ref().map(|_| HiddenBytes(Vec::new()));
                let mut shown = f.debug_struct("DataFile");
                shown.field("partition_spec_id", &self.partition_spec_id).field("partition", &self.partition);
                $(match stringify!($name) {
                    "key_metadata" => shown.field(stringify!($name), &hidden),
                    _ => shown.field(stringify!($name), &self.$name),
                };)*
                shown.finish()
            }
        }

        impl Entries {
            /// Returns the file of an entry as a value, without metrics that were not read.
            pub fn file(&self, row: usize, partition_spec_id: i32) -> Result<DataFile> {
                self.check(row)?;
                Ok(DataFile {
                    partition_spec_id,
                    partition: self.partition_of(row)?,
                    $($name: ReadField::value(&self.$name, row)?,)*
                })
            }
        }
    };
}

entry_fields!(file, data_file);

macro_rules! manifest_entry {
    ($($group:ident { $(#[$doc:meta])* $name:ident: $value:ty => $($declared:tt)* })*) => {
        /// A file with its status and sequence numbers ("Manifest Entry Fields").
        #[derive(Debug, Clone, PartialEq)]
        pub struct ManifestEntry {
            $($(#[$doc])* pub $name: $value,)*
            /// The file.
            pub file: DataFile,
        }

        impl Entries {
            /// Returns an entry as a value, without metrics that were not read.
            pub fn entry(&self, row: usize, partition_spec_id: i32) -> Result<ManifestEntry> {
                let file = self.file(row, partition_spec_id)?;
                Ok(ManifestEntry { $($name: ReadField::value(&self.$name, row)?,)* file })
            }
        }
    };
}

entry_fields!(entry, manifest_entry);

impl DataFile {
    /// The file format; `None` if the specification has no format with this name.
    pub fn format(&self) -> Option<FileFormat> {
        FileFormat::from_name(&self.file_format)
    }
}

impl Entries {
    /// Returns a partition tuple by its index in `tuples`.
    pub fn tuple(&self, place: usize) -> Result<Vec<Option<Value>>> {
        if place >= self.tuples.len() {
            return Err(Error::invalid(format!("there is no partition tuple {place}")));
        }
        let fields = &self.partition_type.fields;
        let columns = self.tuples.columns();
        fields.iter().zip(columns).map(|(field, column)| partition_value(column, field, place)).collect()
    }

    /// Returns the partition tuple of an entry.
    pub fn partition_of(&self, row: usize) -> Result<Vec<Option<Value>>> {
        self.check(row)?;
        let fields = &self.partition_type.fields;
        let columns = self.partition.columns();
        fields.iter().zip(columns).map(|(field, column)| partition_value(column, field, row)).collect()
    }
}

/// Reads a value of a partition column.
fn partition_value(column: &arrow_array::ArrayRef, field: &crate::types::Field, row: usize) -> Result<Option<Value>> {
    super::partition::value(column, &field.ty, row).ok_or_else(|| {
        Error::invalid(format!("the partition column {} does not have the type of its field", field.name))
    })
}
