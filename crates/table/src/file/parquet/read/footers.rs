//! Reads footers, and caches them for the whole process: data files are immutable, so a footer is read once
//! as long as it stays in the cache.
//!
//! Cached files are identified as manifests are ([`Identity`]): by location, by the properties of the storage that read
//! them, and local files also by size and modification time.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::atomic::AtomicPtr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use parquet::DecodeResult;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::encryption::decrypt::FileDecryptionProperties;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataPushDecoder};

use super::arrow_types::as_arrow;
use super::encrypted::{key_of, unique};
use super::tail::Tail;
use crate::error::{Error, Result};
use crate::file::parquet::guard::guarded;
use crate::file::parquet::pages::page_index::{numbered, sound};
use crate::runtime::{self, Started};
use crate::storage::{Identity, Storage};

/// Bytes fetched from the end of a file, likely to include its footer.
pub(super) const TAIL: u64 = 64 << 10;

/// Environment variable with the size of the footer cache in bytes; 0 turns it off.
pub(super) const BYTES_VARIABLE: &str = "ICEFIELD_FOOTER_CACHE_BYTES";
/// Default size of the cache.
const DEFAULT_BYTES: usize = 64 << 20;
/// Approximate memory of a column's Arrow field.
const FIELD_BYTES: usize = 256;

static KEPT: AtomicPtr<Started<Mutex<Footers>>> = AtomicPtr::new(std::ptr::null_mut());

/// A file and its size according to the manifest.
type Key = Arc<(Identity, u64)>;

/// Footers, ordered by last use.
struct Footers {
    most: usize,
    slots: HashMap<Key, Slot>,
    order: BTreeMap<u64, Key>,
    bytes: usize,
    clock: u64,
}

struct Slot {
    footer: Footer,
    bytes: usize,
    used: u64,
}

/// The footer of a file.
#[derive(Clone)]
pub(super) struct Footer {
    pub(super) metadata: ArrowReaderMetadata,
    /// The identifier of an encrypted file, to which its pages are bound.
    pub(super) unique: Option<Arc<[u8]>>,
}

/// The footer of a file of this size, and the end of the file: empty if the footer was cached, because then nothing was
/// fetched.
pub(super) fn footer(storage: &Storage, path: &str, size: u64) -> Result<(Footer, Tail)> {
    let mut tail = Tail { start: size, bytes: Bytes::new() };
    let read = || {
        let (metadata, read, unique) = fetched(storage, path, size)?;
        tail = read;
        let metadata = guarded(path, || as_arrow(Arc::new(sound(numbered(metadata)?))))?;
        Ok(Footer { metadata, unique })
    };
    let footer = cached(storage, path, size, read)?;
    Ok((footer, tail))
}

/// The metadata in a footer, the end of the file, and the identifier of an encrypted one.
type ReadFooter = (ParquetMetaData, Tail, Option<Arc<[u8]>>);

/// Fetches a footer.
fn fetched(storage: &Storage, path: &str, size: u64) -> Result<ReadFooter> {
    // Page bounds are read only for filtered columns; page locations for all, to fetch only pages with selected rows.
    let decoder = || ParquetMetaDataPushDecoder::try_new(size);
    let mut decoder = guarded(path, decoder)?.with_column_index_policy(PageIndexPolicy::Skip);
    let key = key_of(storage);
    if let Some(key) = key {
        let properties = FileDecryptionProperties::builder(key.key.clone()).with_aad_prefix(key.aad_prefix.clone());
        let properties = guarded(path, || properties.build())?;
        decoder =
            decoder.with_page_index_policy(PageIndexPolicy::Skip).with_file_decryption_properties(Some(properties));
    }
    let last = Range { start: size.saturating_sub(TAIL), end: size };
    let tail = Tail { start: last.start, bytes: storage.range(path, last.clone())? };
    let (mut wanted, mut bytes) = (vec![last], vec![tail.bytes.clone()]);
    loop {
        guarded(path, || decoder.push_ranges(std::mem::take(&mut wanted), std::mem::take(&mut bytes)))?;
        match guarded(path, || decoder.try_decode())? {
            DecodeResult::Data(metadata) => {
                let Some(_) = key else { return Ok((metadata, tail, None)) };
                let unique = unique(storage, path, size, &tail)?;
                // Without the library's decryptor: pages are decrypted here, before the library reads them.
                let plain = ParquetMetaData::new(metadata.file_metadata().clone(), metadata.row_groups().to_vec());
                return Ok((plain, tail, Some(unique)));
            }
            DecodeResult::NeedsData(ranges) => {
                if let Some(Range { start, end }) = ranges.iter().find(|one| one.end > size || one.start > one.end) {
                    let message =
                        format!("its footer names bytes {start} to {end} of the file, which has {size} bytes");
                    return Err(Error::corrupt_file(path, message));
                }
                bytes = storage.ranges(path, &ranges)?;
                wanted = ranges;
            }
            DecodeResult::Finished => return Err(Error::corrupt_file(path, "it has no footer")),
        }
    }
}

/// The cached footer of a file of this size, or the one that `read` returns.
fn cached(storage: &Storage, path: &str, size: u64, read: impl FnOnce() -> Result<Footer>) -> Result<Footer> {
    let kept = runtime::of_this_process(&KEPT, || {
        let asked = std::env::var(BYTES_VARIABLE).ok().and_then(|text| text.trim().parse().ok());
        Ok(Mutex::new(Footers::new(asked.unwrap_or(DEFAULT_BYTES))))
    })?;
    let lock = || -> MutexGuard<'_, Footers> { kept.lock().unwrap_or_else(PoisonError::into_inner) };
    if lock().most == 0 {
        return read();
    }
    // Files rewritten within one clock tick cannot be distinguished, so recent ones are not cached.
    let Some(identity) = storage.identity(path)?.filter(Identity::is_settled) else { return read() };
    let key = Arc::new((identity, size));
    if let Some(footer) = lock().get(&key) {
        return Ok(footer);
    }
    let footer = read()?;
    lock().keep(key, footer.clone());
    Ok(footer)
}

impl Footers {
    fn new(most: usize) -> Self {
        Self { most, slots: HashMap::new(), order: BTreeMap::new(), bytes: 0, clock: 0 }
    }

    fn get(&mut self, key: &Key) -> Option<Footer> {
        let slot = self.slots.get_mut(key)?;
        let key = self.order.remove(&slot.used)?;
        self.clock += 1;
        slot.used = self.clock;
        self.order.insert(self.clock, key);
        Some(slot.footer.clone())
    }

    fn keep(&mut self, key: Key, footer: Footer) {
        let columns = footer.metadata.parquet_schema().num_columns();
        let bytes = footer.metadata.metadata().memory_size().saturating_add(columns * FIELD_BYTES);
        if bytes > self.most || self.slots.contains_key(&key) {
            return;
        }
        self.clock += 1;
        self.bytes += bytes;
        self.slots.insert(key.clone(), Slot { footer, bytes, used: self.clock });
        self.order.insert(self.clock, key);
        while self.bytes > self.most
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.bytes -= self.slots.remove(&oldest).map_or(0, |slot| slot.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Int64Array, RecordBatch};
    use bytes::Bytes;
    use parquet::arrow::ArrowWriter;
    use parquet::arrow::arrow_reader::ArrowReaderOptions;

    use super::*;

    fn some_footer() -> Footer {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..9));
        let batch = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let metadata = ArrowReaderMetadata::load(&Bytes::from(bytes), ArrowReaderOptions::new()).unwrap();
        Footer { metadata, unique: None }
    }

    fn key(number: u64) -> Key {
        Arc::new((Storage::default().identity("s3://bucket/file").unwrap().unwrap(), number))
    }

    #[test]
    fn those_that_were_not_used_longest_go_first() {
        let footer = some_footer();
        let mut all = Footers::new(usize::MAX);
        all.keep(key(0), footer.clone());
        let bytes = all.bytes;
        assert!(bytes > 0);
        let mut footers = Footers::new(3 * bytes);
        for number in 0..3 {
            footers.keep(key(number), footer.clone());
        }
        assert!(footers.get(&key(0)).is_some());
        footers.keep(key(3), footer.clone());
        footers.keep(key(3), footer.clone());
        let kept: Vec<bool> = (0..4).map(|number| footers.get(&key(number)).is_some()).collect();
        assert_eq!((kept, footers.bytes), (vec![true, false, true, true], 3 * bytes));
        // A footer larger than the whole cache.
        let mut none = Footers::new(bytes - 1);
        none.keep(key(0), footer);
        assert!(none.get(&key(0)).is_none() && none.bytes == 0);
    }
}
