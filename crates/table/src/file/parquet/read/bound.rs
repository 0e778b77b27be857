//! Chooses the Arrow types of INT96 and of long decimals when a file is bound to a table, and checks that INT96 fits.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use arrow_schema::Fields;
use icefield_format::types::Schema;

use super::arrow_types::{arrow_metadata, as_arrow};
use super::int96;
use super::reader::ParquetFile;
use crate::error::{Error, Result};
use crate::file::Request;
use crate::file::parquet::decimals;
use crate::file::parquet::guard::guarded;

impl ParquetFile {
    /// From now on, reads decimals that may be longer than the library allows as binary, for columns of a schema that
    /// has them.
    pub(super) fn take_decimals(&mut self, fields: &Fields, schema: &Schema) {
        let leaves = decimals::leaves(self.metadata.parquet_schema(), fields, schema);
        if leaves.is_empty() {
            return;
        }
        let read = || as_arrow(Arc::new(decimals::as_bytes(self.metadata.metadata(), &leaves)?));
        // If the library refuses the changed schema, keep the old one.
        if let Ok(metadata) = guarded(&self.path, read) {
            (self.metadata, self.decimals) = (metadata, leaves);
        }
    }

    /// From now on, reads INT96 as the timestamp types of a schema.
    pub(super) fn take_int96(&mut self, fields: &Fields, schema: &Schema) -> Result<()> {
        let descriptor = self.metadata.parquet_schema();
        let typed = int96::typed(descriptor, self.fields(), fields, Some(schema));
        let (to_check, nanos) = int96::to_check(descriptor, self.fields(), fields, schema);
        let with = |fields| guarded(&self.path, || arrow_metadata(self.metadata.metadata().clone(), &[], Some(fields)));
        self.int96 = match nanos.is_empty() {
            true => None,
            false => Some((nanos, with(&to_check)?)),
        };
        self.metadata = with(&typed)?;
        Ok(())
    }

    /// Fails if INT96 values do not fit the nanoseconds that a request asks for, because the library lets them wrap
    /// around. To check, all selected rows are first read as microseconds.
    pub(super) fn check_int96(
        &self,
        row_groups: &[usize],
        request: &Request,
        slice: Option<&Range<u64>>,
        is_first: bool,
    ) -> Result<()> {
        let Some((nanos, metadata)) = &self.int96 else { return Ok(()) };
        let filtered = request.filter.iter().flat_map(|filter| &filter.leaves);
        let leaves: BTreeSet<usize> = request.leaves.iter().chain(filtered).copied().collect();
        let descriptor = metadata.parquet_schema();
        let root = |leaf: &usize| descriptor.get_column_root_idx(*leaf);
        let roots: BTreeSet<usize> = nanos.iter().filter(|leaf| leaves.contains(*leaf)).map(root).collect();
        if roots.is_empty() {
            return Ok(());
        }
        // The library reads a map only with all of its leaves.
        let is_beside = |leaf: &usize| *leaf < descriptor.num_columns() && roots.contains(&root(leaf));
        let leaves = leaves.into_iter().filter(is_beside).collect();
        let request = Request { leaves, filter: None, ..request.clone() };
        let mut file = self.clone();
        (file.metadata, file.int96) = (metadata.clone(), None);
        for batch in file.decode_rows(row_groups.to_vec(), &request, slice, is_first)? {
            if let Some(column) = int96::not_in_nanos(&batch?) {
                let message =
                    format!("column {column}: an INT96 timestamp is outside 1677 to 2262, the range of nanoseconds");
                return Err(Error::corrupt_file(&*self.path, message));
            }
        }
        Ok(())
    }
}
