//! Deletion vectors ("Deletion Vectors"): the positions of deleted rows of one data file, in a blob of a Puffin file.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use icefield_format::Limits;
use icefield_format::puffin::{DeletionVector, Footer};

use crate::error::{Error, Result};
use crate::plan::part::DeletePart;
use crate::storage::Storage;

/// Bytes at the end of a Puffin file in which its footer is looked for.
const END: u64 = 64 << 10;

/// Property of a blob: the data file that it is about.
const REFERENCED: &str = "referenced-data-file";

/// What the footers of Puffin files say of their blobs: the data file of each, by its place. A manifest says where a vector lies, so
/// that footers need not be read; they are where that costs no request, of a file of this machine, or of one that ends behind
/// the vector.
#[derive(Default)]
pub struct Named(Mutex<HashMap<String, Option<Arc<Places>>>>);

/// The data file of each blob, by its first byte and its length.
type Places = HashMap<(u64, u64), String>;

impl Named {
    fn state(&self) -> MutexGuard<'_, HashMap<String, Option<Arc<Places>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes of a blob from `start` to `end`, and what the footer says of the blobs, if it is known.
    fn blob(
        &self,
        storage: &Storage,
        delete: &DeletePart,
        (start, end): (u64, u64),
        limits: &Limits,
    ) -> Result<(Bytes, Option<Arc<Places>>)> {
        let path = &*delete.path;
        let known = self.state().get(path).cloned();
        if let Some(known) = known {
            return Ok((storage.range(path, start..end)?, known));
        }
        let is_near = delete.size.saturating_sub(end) <= END;
        let (blob, last) = match storage.is_remote(path) {
            true if is_near => {
                let mut blob = storage.range(path, start..delete.size)?;
                let length = usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX).min(blob.len());
                let last = blob.split_off(length);
                (blob, Some(last))
            }
            true => (storage.range(path, start..end)?, None),
            false => {
                let last = storage.range(path, delete.size.saturating_sub(END)..delete.size)?;
                (storage.range(path, start..end)?, Some(last))
            }
        };
        // A footer that cannot be read says nothing: the vector has a checksum of its own.
        let footer = last.and_then(|last| Footer::from_end(&last, delete.size, limits).ok());
        let named = footer.map(|footer| {
            let of_blob = |blob: &icefield_format::puffin::BlobMetadata| {
                Some(((blob.offset, blob.length), blob.property(REFERENCED)?.to_owned()))
            };
            Arc::new(footer.blobs.iter().filter_map(of_blob).collect::<Places>())
        });
        self.state().insert(path.to_owned(), named.clone());
        Ok((blob, named))
    }
}

/// Reads a deletion vector; its place in the file, its checksum, its cardinality and its data file are held against what the
/// manifest says.
pub fn load(storage: &Storage, delete: &DeletePart, named: &Named, limits: &Limits) -> Result<DeletionVector> {
    let corrupt = |message: &str| Error::corrupt_file(&delete.path, message);
    let (offset, size) = delete.blob.ok_or_else(|| corrupt("a deletion vector whose place is not known"))?;
    let Some(referenced) = &delete.referenced_data_file else {
        return Err(corrupt("a deletion vector that references no data file"));
    };
    let start = u64::try_from(offset).map_err(|_| corrupt("its deletion vector begins before the file"))?;
    let end = u64::try_from(size).ok().and_then(|size| start.checked_add(size)).filter(|end| *end <= delete.size);
    let end = end.ok_or_else(|| corrupt("its deletion vector ends behind the file"))?;
    let (blob, places) = named.blob(storage, delete, (start, end), limits)?;
    let own = places.as_ref().and_then(|places| places.get(&(start, end.saturating_sub(start))));
    if let Some(own) = own.filter(|own| *own != referenced) {
        return Err(corrupt(&format!("its deletion vector is that of {own}, but the manifest says {referenced}")));
    }
    let vector = DeletionVector::from_bytes(&blob, limits).map_err(|error| error.in_file(&delete.path))?;
    vector.check_cardinality(delete.record_count).map_err(|error| error.in_file(&delete.path))?;
    Ok(vector)
}
