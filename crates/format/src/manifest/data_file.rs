//! One file and its entry as values: what writers of manifests take, and what a row of [`Entries`] becomes on demand.

use arrow_array::Array;

use crate::value::Value;
use crate::{Error, Result};

use super::read::read_field::ReadField;
use super::{Entries, FileContent, FileFormat, Status};

macro_rules! data_file {
    ($($group:ident { $(#[$doc:meta])* $name:ident: $value:ty => $($declared:tt)* })*) => {
        /// A data or delete file ("Data File Fields").
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct DataFile {
            /// The partition spec of the tuple. It is written into the header of the manifest, not into the entry.
            pub partition_spec_id: i32,
            /// The partition tuple, in the order of the spec.
            pub partition: Vec<Option<Value>>,
            $($(#[$doc])* pub $name: $value,)*
        }

        impl Entries {
            /// The file of an entry as a value. Metrics that were not read are missing.
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
        /// A file and what became of it ("Manifest Entry Fields").
        #[derive(Debug, Clone, PartialEq)]
        pub struct ManifestEntry {
            $($(#[$doc])* pub $name: $value,)*
            /// The file.
            pub file: DataFile,
        }

        impl Entries {
            /// An entry as a value. Metrics that were not read are missing.
            pub fn entry(&self, row: usize, partition_spec_id: i32) -> Result<ManifestEntry> {
                let file = self.file(row, partition_spec_id)?;
                Ok(ManifestEntry { $($name: ReadField::value(&self.$name, row)?,)* file })
            }
        }
    };
}

entry_fields!(entry, manifest_entry);

impl DataFile {
    /// The file format; `None` if the specification does not have its name.
    pub fn format(&self) -> Option<FileFormat> {
        FileFormat::from_name(&self.file_format)
    }
}

impl Entries {
    /// One of the partition tuples.
    pub fn tuple(&self, place: usize) -> Result<Vec<Option<Value>>> {
        if place >= self.tuples.len() {
            return Err(Error::invalid(format!("there is no partition tuple {place}")));
        }
        let fields = &self.partition_type.fields;
        let columns = self.tuples.columns();
        fields.iter().zip(columns).map(|(field, column)| partition_value(column, field, place)).collect()
    }

    /// The partition tuple of an entry.
    pub fn partition_of(&self, row: usize) -> Result<Vec<Option<Value>>> {
        self.check(row)?;
        let fields = &self.partition_type.fields;
        let columns = self.partition.columns();
        fields.iter().zip(columns).map(|(field, column)| partition_value(column, field, row)).collect()
    }
}

/// A value of a partition column.
fn partition_value(column: &arrow_array::ArrayRef, field: &crate::types::Field, row: usize) -> Result<Option<Value>> {
    super::partition::value(column, &field.ty, row).ok_or_else(|| {
        Error::invalid(format!("the partition column {} does not have the type of its field", field.name))
    })
}
