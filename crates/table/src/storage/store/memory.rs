//! Objects in the memory of this process (`memory:`), shared by all storage instances.

use std::collections::BTreeMap;
use std::ops::{Bound, Range};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::{Bytes, BytesMut};

use super::PAGE;
use crate::error::{Error, Result};
use crate::storage::{Entry, Existing, Location, Output, Pages, Store};

static OBJECTS: Mutex<Objects> = Mutex::new(Objects { by_key: BTreeMap::new(), last_ms: 0 });

struct Objects {
    by_key: BTreeMap<(String, String), Object>,
    /// When the last object was written.
    last_ms: i64,
}

struct Object {
    bytes: Bytes,
    modified_ms: i64,
}

impl Objects {
    /// The time in milliseconds from the epoch, later than that of any object: simulations ask which of two is older.
    fn time_ms(&mut self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
        self.last_ms = now.max(self.last_ms.saturating_add(1));
        self.last_ms
    }
}

fn objects() -> MutexGuard<'static, Objects> {
    OBJECTS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn key(at: &Location) -> (String, String) {
    (at.authority.clone(), at.key.clone())
}

fn object(at: &Location) -> Result<Bytes> {
    objects()
        .by_key
        .get(&key(at))
        .map(|object| object.bytes.clone())
        .ok_or_else(|| Error::NotFound { path: at.to_string() })
}

/// The store of `memory:`.
#[derive(Debug)]
pub(in crate::storage) struct Memory;

impl Store for Memory {
    fn read(&self, at: &Location, most: u64) -> Result<Bytes> {
        match object(at)? {
            bytes if bytes.len() as u64 > most => Err(super::too_long(&at.to_string(), bytes.len() as u64, most)),
            bytes => Ok(bytes),
        }
    }

    fn size(&self, at: &Location) -> Result<u64> {
        object(at).map(|bytes| bytes.len() as u64)
    }

    fn ranges(&self, at: &Location, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let whole = object(at)?;
        let cut = |range: &Range<u64>| {
            let (start, end) = (usize::try_from(range.start).ok()?, usize::try_from(range.end).ok()?);
            (start <= end && end <= whole.len()).then(|| whole.slice(start..end))
        };
        let found: Option<Vec<Bytes>> = ranges.iter().map(cut).collect();
        found.ok_or_else(|| Error::corrupt_file(at.to_string(), "a range past the end of the object"))
    }

    fn put(&self, at: &Location, bytes: Bytes, existing: Existing) -> Result<()> {
        let mut objects = objects();
        if existing == Existing::Refuse && objects.by_key.contains_key(&key(at)) {
            return Err(Error::AlreadyExists { path: at.to_string() });
        }
        let modified_ms = objects.time_ms();
        objects.by_key.insert(key(at), Object { bytes, modified_ms });
        Ok(())
    }

    fn output(&self, at: &Location) -> Result<Box<dyn Output>> {
        Ok(Box::new(Growing { at: at.clone(), bytes: BytesMut::new() }))
    }

    fn delete(&self, at: &Location) -> Result<()> {
        objects().by_key.remove(&key(at));
        Ok(())
    }

    fn pages(&self, prefix: &Location) -> Result<Pages> {
        Ok(Box::new(Listing { prefix: prefix.clone(), next: Some(Bound::Included(key(prefix))) }))
    }
}

/// A listing that does not lock the objects between pages.
struct Listing {
    prefix: Location,
    /// Where the next page begins; `None` after the last one.
    next: Option<Bound<(String, String)>>,
}

impl Iterator for Listing {
    type Item = Result<Vec<Entry>>;

    fn next(&mut self) -> Option<Self::Item> {
        let objects = objects();
        let Location { authority, key: prefix, .. } = &self.prefix;
        let found = objects.by_key.range((self.next.take()?, Bound::Unbounded));
        let below = found.take_while(|((of, key), _)| of == authority && key.starts_with(prefix));
        let entry = |((_, key), object): (&(String, String), &Object)| Entry {
            path: key.clone(),
            size: object.bytes.len() as u64,
            modified_ms: Some(object.modified_ms),
        };
        let page: Vec<Entry> = below.take(PAGE).map(entry).collect();
        if page.len() == PAGE {
            self.next = page.last().map(|last| Bound::Excluded((authority.clone(), last.path.clone())));
        }
        (!page.is_empty()).then_some(Ok(page))
    }
}

struct Growing {
    at: Location,
    bytes: BytesMut,
}

impl Output for Growing {
    fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.bytes.extend_from_slice(&bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        Memory.put(&self.at, self.bytes.freeze(), Existing::Replace)
    }

    fn abort(self: Box<Self>) {}
}
