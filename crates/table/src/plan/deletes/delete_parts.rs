//! The delete files of a part of a data file, as runs of a list shared by many parts. A task of n parts with n delete
//! files each stores n delete files, not n².

use std::fmt;
use std::sync::Arc;

use arrow_array::Array;
use icefield_format::encryption::HiddenBytes;
use icefield_format::manifest::Entries;
use icefield_format::types::Field;

use super::index::DeleteKind;
use super::links::Run;
use crate::error::{Error, Result};
use crate::storage::FileRef;

/// A delete file that applies to a data file.
#[derive(Debug, Clone, PartialEq)]
pub struct DeletePart {
    /// How it identifies deleted rows.
    pub kind: DeleteKind,
    /// Location.
    pub path: String,
    /// `parquet`, `orc`, `avro` or `puffin`, in lower case; a string as in [`FilePart::format`].
    pub format: String,
    /// Bytes of the whole file.
    pub size: u64,
    /// Rows; for a deletion vector, its number of positions.
    pub record_count: i64,
    /// Data sequence number.
    pub sequence_number: i64,
    /// Columns of an equality delete.
    pub equality_ids: Vec<i32>,
    /// The fields of those columns by ascending id, from the newest schema that has them: all optional, each inside
    /// its parent structs.
    pub key: Arc<[Field]>,
    /// The one data file it applies to, if it names one.
    pub referenced_data_file: Option<String>,
    /// Offset and length of a deletion vector in its file.
    pub blob: Option<(i64, i64)>,
    /// Encryption key metadata of the file.
    pub key_metadata: Option<HiddenBytes>,
}

impl DeletePart {
    /// The file, as it is opened.
    pub fn file_ref(&self) -> FileRef<'_> {
        FileRef { path: &self.path, size: self.size, key: self.key_metadata.as_ref().map(|key| &*key.0) }
    }

    /// Reads a delete file's entry of a manifest.
    pub fn of_entry(entries: &Entries, row: usize) -> Result<Self> {
        let long = |array: &arrow_array::Int64Array| array.is_valid(row).then(|| array.value(row));
        let named = &entries.referenced_data_file;
        Ok(Self {
            kind: DeleteKind::of_entry(entries, row)?,
            path: entries.file_path.value(row).to_owned(),
            format: entries.file_format.value(row).to_lowercase(),
            size: size(entries, row)?,
            record_count: entries.record_count.value(row),
            sequence_number: long(&entries.sequence_number).unwrap_or(0),
            equality_ids: super::index::equality_ids(entries, row),
            key: Arc::default(),
            referenced_data_file: named.is_valid(row).then(|| named.value(row).to_owned()),
            blob: long(&entries.content_offset).zip(long(&entries.content_size_in_bytes)),
            key_metadata: key_metadata(entries, row),
        })
    }
}

pub(in crate::plan) fn size(entries: &Entries, row: usize) -> Result<u64> {
    let size = u64::try_from(entries.file_size_in_bytes.value(row));
    size.map_err(|_| Error::corrupt_file(entries.file_path.value(row), "negative size"))
}

/// The encryption key metadata of a file.
pub(in crate::plan) fn key_metadata(entries: &Entries, row: usize) -> Option<HiddenBytes> {
    let keys = &entries.key_metadata;
    keys.is_valid(row).then(|| HiddenBytes(keys.value(row).to_vec()))
}

/// A list shared by parts; `None` for files that no part needs.
pub(crate) type DeleteList = Arc<[Option<Arc<DeletePart>>]>;

/// The delete files of a part, collected, or shared with other parts by [`crate::plan::Scan::parts`].
#[derive(Clone, Default)]
pub struct DeleteParts {
    list: DeleteList,
    runs: Arc<[Run]>,
}

impl DeleteParts {
    pub(crate) fn of_list(list: DeleteList, runs: Arc<[Run]>) -> Self {
        Self { list, runs }
    }

    /// The shared list and the runs of it that apply.
    pub(crate) fn shared(&self) -> (&DeleteList, &[Run]) {
        (&self.list, &self.runs)
    }

    /// The files.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<DeletePart>> + Clone {
        self.runs.iter().flat_map(|run| run.of(&self.list)).flatten()
    }

    /// Number of files.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether there are no files.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

impl FromIterator<Arc<DeletePart>> for DeleteParts {
    fn from_iter<I: IntoIterator<Item = Arc<DeletePart>>>(files: I) -> Self {
        let list: Arc<[_]> = files.into_iter().map(Some).collect();
        let end = u32::try_from(list.len()).unwrap_or(u32::MAX);
        Self { runs: [Run { start: 0, end }].into(), list }
    }
}

impl fmt::Debug for DeleteParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
