//! Paths that were handled before, in bounded memory.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;

use crate::snapshot::parallel::locked;

/// Maximum number of paths that are remembered.
const MET: usize = 1 << 24;

/// A set of paths, as two hashes each: a table may have a hundred million files. When it is full it forgets all, so that
/// handling a path twice must be harmless.
#[derive(Default)]
pub(super) struct Seen {
    keys: (RandomState, RandomState),
    met: Mutex<HashSet<(u64, u64)>>,
}

impl Seen {
    /// Adds a path; returns whether it is new.
    pub(super) fn add(&self, path: &str) -> bool {
        let key = (self.keys.0.hash_one(path), self.keys.1.hash_one(path));
        let mut met = locked(&self.met);
        if met.len() >= MET {
            met.clear();
        }
        met.insert(key)
    }
}
