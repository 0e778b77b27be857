//! Columns of the entries of a manifest ("Manifest Entry Fields", "Data File Fields"), with its header and counts.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Int32Array, Int64Array, ListArray, MapArray, StringArray, StructArray,
    UInt32Array,
};
use arrow_buffer::BooleanBuffer;
use arrow_schema::ArrowError;
use arrow_select::filter::FilterBuilder;

use crate::avro::Container;
use crate::types::StructType;
use crate::{Error, Result};

use super::fields::EntryField;
use super::list::ManifestFile;
use super::metrics::MetricMap;
use super::{FileContent, ManifestContent, Status};

/// Number of entries in a manifest by status, including entries that were filtered out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Files of earlier snapshots.
    pub existing: usize,
    /// Files that the manifest's snapshot added.
    pub added: usize,
    /// Files that the manifest's snapshot removed.
    pub deleted: usize,
}

/// Header of a manifest. Every key is optional: readers get spec and schema from the table's metadata.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ManifestHeader {
    /// `format-version`; 1 if missing.
    pub format_version: u8,
    /// `content`; data if missing.
    pub content: ManifestContent,
    /// `schema`: the table's schema when the manifest was written, as JSON.
    pub schema: Option<String>,
    /// `schema-id`
    pub schema_id: Option<i32>,
    /// `partition-spec`: the fields of the spec, as JSON.
    pub partition_spec: Option<String>,
    /// `partition-spec-id`
    pub partition_spec_id: Option<i32>,
}

/// A column of [`Entries`].
trait EntryColumn: Sized {
    /// The column as an array; `None` if it was not read.
    fn to_array(&self) -> Option<ArrayRef>;
    fn memory(&self) -> usize;
    /// Applies `change` to the column, which must keep its type.
    fn changed(&self, change: &mut Change<'_>) -> Result<Self>;
}

type Change<'a> = dyn FnMut(&dyn Array) -> Result<ArrayRef, ArrowError> + 'a;

fn changed<T: Clone + 'static>(array: &dyn Array, change: &mut Change<'_>) -> Result<T> {
    let made = change(array).map_err(|error| Error::invalid(error.to_string()))?;
    made.as_any().downcast_ref::<T>().cloned().ok_or_else(|| Error::invalid("a column changed its type"))
}

macro_rules! arrays {
    ($($array:ty),*) => {$(
        impl EntryColumn for $array {
            fn to_array(&self) -> Option<ArrayRef> {
                Some(Arc::new(self.clone()))
            }

            fn memory(&self) -> usize {
                self.get_array_memory_size()
            }

            fn changed(&self, change: &mut Change<'_>) -> Result<Self> {
                changed(self, change)
            }
        }
    )*};
}

arrays!(BinaryArray, Int32Array, Int64Array, ListArray, MapArray, StringArray, StructArray, UInt32Array);

impl EntryColumn for Option<MetricMap> {
    fn to_array(&self) -> Option<ArrayRef> {
        self.as_ref().and_then(|map| map.as_array().clone().to_array())
    }

    fn memory(&self) -> usize {
        self.as_ref().map_or(0, |map| map.as_array().get_array_memory_size())
    }

    fn changed(&self, change: &mut Change<'_>) -> Result<Self> {
        self.as_ref().map(|map| changed(map.as_array(), change).map(MetricMap::from_array)).transpose()
    }
}

macro_rules! columns {
    ($($group:ident {
        $(#[$doc:meta])* $name:ident: $value:ty => $column:ty = $($declared:tt)*
    })*) => {
        /// The entries of a manifest, column by column. All columns have the same length; metrics that were not read
        /// are `None`.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Entries {
            /// Header of the manifest.
            pub header: Arc<ManifestHeader>,
            /// Number of entries in the manifest by status, including those filtered out.
            pub tally: Tally,
            /// Which entries have metrics ([`ReadOptions::keep_excluded`]); the metrics of the others are null. `None`:
            /// all have.
            ///
            /// [`ReadOptions::keep_excluded`]: super::ReadOptions::keep_excluded
            pub metrics_read: Option<BooleanBuffer>,
            /// Index of the entry in the manifest, from 0.
            pub position: Int64Array,
            /// The partition tuple: a column for each field, with its field id in the Arrow field's metadata
            /// (`PARQUET:field_id`).
            pub partition: StructArray,
            /// The type of the partition tuple.
            pub partition_type: StructType,
            /// The distinct partition tuples of the manifest, including those of entries that were filtered out.
            pub tuples: Arc<StructArray>,
            /// For each entry, the index of its tuple in `tuples`.
            pub tuple_of: UInt32Array,
            $($(#[$doc])* pub $name: $column,)*
        }

        impl Entries {
            /// Memory of the columns in bytes.
            pub fn memory(&self) -> usize {
                let header = [&self.header.schema, &self.header.partition_spec];
                header.into_iter().flatten().map(String::capacity).sum::<usize>()
                    + self.metrics_read.as_ref().map_or(0, |read| read.inner().capacity())
                    + self.position.memory()
                    + self.partition.memory()
                    + self.tuples.memory()
                    + self.tuple_of.memory()
                    $(+ self.$name.memory())*
            }

            /// Applies the same change to every column. `change` must keep the types and return columns of equal
            /// length.
            pub fn map_columns(
                &self,
                mut change: impl FnMut(&dyn Array) -> Result<ArrayRef, ArrowError>,
            ) -> Result<Self> {
                let metrics_read = self.metrics_read.as_ref().map(|read| {
                    let read: BooleanArray = changed(&BooleanArray::new(read.clone(), None), &mut change)?;
                    Ok::<_, Error>(read.values().clone())
                });
                Ok(Self {
                    header: self.header.clone(),
                    tally: self.tally,
                    metrics_read: metrics_read.transpose()?,
                    position: self.position.changed(&mut change)?,
                    partition: self.partition.changed(&mut change)?,
                    partition_type: self.partition_type.clone(),
                    tuples: self.tuples.clone(),
                    tuple_of: self.tuple_of.changed(&mut change)?,
                    $($name: self.$name.changed(&mut change)?,)*
                })
            }

            /// Returns the column of a field; `None` for metrics that were not read.
            pub(super) fn field_column(&self, field: EntryField) -> Option<ArrayRef> {
                match field { $(EntryField::$name => self.$name.to_array(),)* }
            }
        }
    };
}

entry_fields!(all, columns);

impl Tally {
    pub(super) fn add(&mut self, status: Status) {
        match status {
            Status::Existing => self.existing += 1,
            Status::Added => self.added += 1,
            Status::Deleted => self.deleted += 1,
        }
    }

    /// Number of all entries.
    pub fn entries(&self) -> usize {
        self.existing + self.added + self.deleted
    }

    /// Number of entries whose files are in the snapshot.
    pub fn live(&self) -> usize {
        self.existing + self.added
    }

    /// Checks the counts against the manifest list. More entries than listed are accepted, since no data is lost.
    pub fn check(&self, listed: &ManifestFile) -> Result<()> {
        let counts = [listed.existing_files_count, listed.added_files_count, listed.deleted_files_count];
        let wanted = counts.into_iter().try_fold(0i64, |sum, count| count.map(|count| sum + i64::from(count.max(0))));
        match wanted {
            Some(wanted) if wanted.unsigned_abs() > self.entries() as u64 => Err(Error::corrupt(
                "manifest",
                format!("has {} entries, but its manifest list says {wanted}", self.entries()),
            )),
            _ => Ok(()),
        }
    }
}

impl ManifestHeader {
    /// Reads only the header.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        Ok(Self::of(&Container::open(bytes)?))
    }

    pub(super) fn of(container: &Container<'_>) -> Self {
        let number = |key| container.text(key).and_then(|text| text.trim().parse().ok());
        Self {
            format_version: container.text("format-version").and_then(|text| text.trim().parse().ok()).unwrap_or(1),
            content: match container.text("content") {
                Some("deletes") => ManifestContent::Deletes,
                _ => ManifestContent::Data,
            },
            schema: container.text("schema").map(str::to_owned),
            schema_id: number("schema-id"),
            partition_spec: container.text("partition-spec").map(str::to_owned),
            partition_spec_id: number("partition-spec-id"),
        }
    }
}

impl Entries {
    /// Number of entries in these columns.
    pub fn len(&self) -> usize {
        self.status.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Status of an entry. Reading has already checked the numbers.
    pub fn status_of(&self, row: usize) -> Result<Status> {
        self.check(row)?;
        Status::from_id(self.status.value(row))
    }

    /// Content of an entry's file.
    pub fn content_of(&self, row: usize) -> Result<FileContent> {
        self.check(row)?;
        FileContent::from_id(self.content.value(row))
    }

    /// Returns the column of a field of the entry or its file, by its name in the specification; `None` for an unknown
    /// name and for metrics that were not read.
    pub fn column(&self, name: &str) -> Option<ArrayRef> {
        EntryField::from_name(name).and_then(|field| self.field_column(field))
    }

    /// Returns the entries for which `keep` is true.
    pub fn filter(&self, keep: &BooleanArray) -> Result<Self> {
        // Analyse the mask once for all columns.
        let filter = FilterBuilder::new(keep).optimize().build();
        self.map_columns(|array| filter.filter(array))
    }

    /// Returns the entries at these indices, in this order.
    pub fn take(&self, rows: &UInt32Array) -> Result<Self> {
        self.map_columns(|array| arrow_select::take::take(array, rows, None))
    }

    pub(super) fn check(&self, row: usize) -> Result<()> {
        if row < self.len() {
            return Ok(());
        }
        Err(Error::invalid(format!("there is no entry {row}: the manifest has {}", self.len())))
    }
}
