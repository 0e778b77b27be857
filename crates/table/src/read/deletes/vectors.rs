//! Deletion vectors ("Deletion Vectors"): the positions of deleted rows of one data file, in a blob of a Puffin file.

use icefield_format::Limits;
use icefield_format::puffin::DeletionVector;

use crate::error::{Error, Result};
use crate::plan::part::DeletePart;
use crate::storage::Storage;

/// Reads a deletion vector; its place in the file, its checksum and its cardinality are held against what the manifest says.
pub fn load(storage: &Storage, delete: &DeletePart, limits: &Limits) -> Result<DeletionVector> {
    let corrupt = |message: &str| Error::corrupt_file(&delete.path, message);
    let (offset, size) = delete.blob.ok_or_else(|| corrupt("a deletion vector whose place is not known"))?;
    if delete.referenced_data_file.is_none() {
        return Err(corrupt("a deletion vector that references no data file"));
    }
    let start = u64::try_from(offset).map_err(|_| corrupt("its deletion vector begins before the file"))?;
    let end = u64::try_from(size).ok().and_then(|size| start.checked_add(size)).filter(|end| *end <= delete.size);
    let end = end.ok_or_else(|| corrupt("its deletion vector ends behind the file"))?;
    let blob = storage.range(&delete.path, start..end)?;
    let vector = DeletionVector::from_bytes(&blob, limits).map_err(|error| error.in_file(&delete.path))?;
    vector.check_cardinality(delete.record_count).map_err(|error| error.in_file(&delete.path))?;
    Ok(vector)
}
