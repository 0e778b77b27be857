//! Reads deletion vectors ("Deletion Vectors"): the deleted positions of one data file, stored in a blob of a Puffin
//! file.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use icefield_format::Limits;
use icefield_format::puffin::{DeletionVector, Footer};

use crate::error::{Error, Result};
use crate::plan::tasks::part::DeletePart;
use crate::storage::Storage;

/// Bytes read at the end of a Puffin file to find its footer.
const END: u64 = 64 << 10;

/// Property of a blob: the data file it belongs to.
const REFERENCED: &str = "referenced-data-file";

/// The data file of each blob, from the footers of Puffin files. A manifest gives the position of a vector, so
/// footers are not needed; they are read as a check if it costs no request: for local files, and if the footer is
/// close after the vector.
#[derive(Default)]
pub struct Named(Mutex<HashMap<String, Option<Arc<Places>>>>);

/// The data file of each blob, by offset and length.
type Places = HashMap<(u64, u64), String>;

impl Named {
    fn state(&self) -> MutexGuard<'_, HashMap<String, Option<Arc<Places>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes of a blob, and what the footer says about blobs if it is known.
    fn blob(
        &self,
        storage: &Storage,
        (path, size): (&str, u64),
        (start, end): (u64, u64),
        limits: &Limits,
    ) -> Result<(Bytes, Option<Arc<Places>>)> {
        let known = self.state().get(path).cloned();
        if let Some(known) = known {
            return Ok((storage.range(path, start..end)?, known));
        }
        let is_near = size.saturating_sub(end) <= END;
        let (blob, last) = match storage.is_remote(path) {
            true if is_near => {
                let mut blob = storage.range(path, start..size)?;
                let length = usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX).min(blob.len());
                let last = blob.split_off(length);
                (blob, Some(last))
            }
            true => (storage.range(path, start..end)?, None),
            false => {
                let last = storage.range(path, size.saturating_sub(END)..size)?;
                (storage.range(path, start..end)?, Some(last))
            }
        };
        // An unreadable footer is ignored: the vector has its own checksum.
        let footer = last.and_then(|last| Footer::from_end(&last, size, limits).ok());
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

/// Reads a deletion vector and checks its offset, checksum, cardinality and data file against the manifest.
pub fn load(storage: &Storage, delete: &DeletePart, named: &Named, limits: &Limits) -> Result<DeletionVector> {
    let corrupt = |message: &str| Error::corrupt_file(&delete.path, message);
    let (offset, size) = delete.blob.ok_or_else(|| corrupt("a deletion vector whose place is not known"))?;
    let Some(referenced) = &delete.referenced_data_file else {
        return Err(corrupt("a deletion vector that references no data file"));
    };
    let (storage, length) = &storage.decrypting(&delete.file_ref())?;
    let start = u64::try_from(offset).map_err(|_| corrupt("its deletion vector begins before the file"))?;
    let end = u64::try_from(size).ok().and_then(|size| start.checked_add(size)).filter(|end| end <= length);
    let end = end.ok_or_else(|| corrupt("its deletion vector ends after the end of its file"))?;
    let (blob, places) = named.blob(storage, (&delete.path, *length), (start, end), limits)?;
    let own = places.as_ref().and_then(|places| places.get(&(start, end.saturating_sub(start))));
    if let Some(own) = own.filter(|own| *own != referenced) {
        return Err(corrupt(&format!("its deletion vector is that of {own}, but the manifest says {referenced}")));
    }
    let vector = DeletionVector::from_bytes(&blob, limits).map_err(|error| error.in_file(&delete.path))?;
    vector.check_cardinality(delete.record_count).map_err(|error| error.in_file(&delete.path))?;
    Ok(vector)
}
