//! Identifies objects that never change, so that what was read of them can be kept.

use super::{Scheme, Storage};
use crate::error::Result;

/// Identifies an immutable object without reading it: by its location, the properties used to access it, and the size
/// and modification time of a local file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    scheme: Scheme,
    authority: String,
    key: String,
    rights: u64,
    /// What decrypts the object, so that nothing decrypted is found without the key.
    keys: (u64, u64),
    local: Option<(u64, std::time::SystemTime)>,
}

impl Identity {
    /// Whether replacing the object would change its identity. For a local file this requires that it was written long
    /// enough ago for the time resolution of its file system.
    pub fn is_settled(&self) -> bool {
        const TICK: std::time::Duration = std::time::Duration::from_secs(2);
        self.local.as_ref().is_none_or(|(_, written)| written.elapsed().is_ok_and(|age| age > TICK))
    }
}

impl Storage {
    /// The identity of an object that is never changed in place. `None` if it is unknown (`memory:`), or if every step
    /// is counted.
    pub fn identity(&self, path: &str) -> Result<Option<Identity>> {
        let at = self.resolve(path)?;
        if self.inner.faults.is_some() || at.scheme == Scheme::Memory || self.permit(&at).is_err() {
            return Ok(None);
        }
        let written = |about: &std::fs::Metadata| about.modified().ok().map(|time| (about.len(), time));
        let local = match at.scheme {
            Scheme::File => match std::fs::metadata(&at.key).ok().as_ref().and_then(written) {
                None => return Ok(None),
                known => known,
            },
            _ => None,
        };
        let keys = (
            self.keyring.as_ref().map_or(0, |keyring| keyring.id()),
            self.file.as_ref().map_or(0, |key| key.fingerprint()),
        );
        let rights = self.inner.rights;
        Ok(Some(Identity { scheme: at.scheme, authority: at.authority, key: at.key, rights, keys, local }))
    }
}
