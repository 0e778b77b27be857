//! Restricts the locations that may be accessed (`io.allowed-locations`): untrusted metadata may reference any file and
//! any server.

use super::folders::{is_same, leads_to};
use crate::error::{Error, Result};
use crate::storage::properties::ALLOWED_LOCATIONS;
use crate::storage::{Location, Scheme, Storage};

impl Storage {
    /// Rejects a location outside the allowed ones, if they are restricted.
    pub(in crate::storage) fn permit(&self, at: &Location) -> Result<()> {
        let Some(allowed) = self.setting(ALLOWED_LOCATIONS) else { return Ok(()) };
        let place = self.normal(at.clone());
        let is_within = |folder: &str| {
            let Ok(folder) = self.locate(folder) else { return false };
            leads_to(&folder, &place) || is_same(&folder, &place)
        };
        let mut folders = allowed.split(',').map(str::trim).filter(|folder| !folder.is_empty());
        if is_plain(&place) && folders.any(is_within) {
            return Ok(());
        }
        let message = format!("the property {ALLOWED_LOCATIONS} does not allow this location");
        Err(Error::Storage { path: at.to_string(), operation: "open", message })
    }
}

/// Whether the key stays the same path if a server decodes it.
fn is_plain(at: &Location) -> bool {
    let key = at.key.to_ascii_lowercase();
    at.scheme != Scheme::Http
        || !(key.contains("%2e") || key.contains("%2f") || key.contains("%5c") || key.contains('\\'))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn what_is_not_allowed_is_not_reached() {
        let allowed = "s3://b/w, file:///w/t/,https://host/data,abfss://c@acc.dfs.core.windows.net/t";
        let storage = Storage::new(BTreeMap::from([(ALLOWED_LOCATIONS.to_owned(), allowed.to_owned())]));
        for (path, expected) in [
            ("s3://b/w/x", true),
            ("s3a://b/w/t/x", true),
            ("s3://b/ww/x", false),
            ("s3://b/w/../x", false),
            ("s3://c/w/x", false),
            ("/w/t/x", true),
            ("/w/t", true),
            ("file:/w/t/deep/x", true),
            ("/w/t/../u/x", false),
            ("/w/x", false),
            ("/etc/passwd", false),
            ("https://host/data/x", true),
            ("https://HOST:443/data/x?sig=1", true),
            ("http://host/data/x", false),
            ("https://host/data/%2e%2e/x", false),
            ("https://host.evil/data/x", false),
            ("https://host@evil/data/x", false),
            ("wasbs://c@acc.blob.core.windows.net/t/x", true),
            ("abfss://c@other.dfs.core.windows.net/t/x", false),
            ("memory://m/x", false),
        ] {
            let at = storage.resolve(path).unwrap();
            assert_eq!(storage.permit(&at).is_ok(), expected, "{path}");
        }
        assert!(Storage::default().permit(&Location::parse("/etc/passwd").unwrap()).is_ok());
        // Every operation checks the location.
        let refused = |error: &Error| error.to_string().contains(ALLOWED_LOCATIONS);
        assert!(refused(&storage.read("/etc/hostname").unwrap_err()));
        assert!(refused(&storage.size("/etc/hostname").unwrap_err()));
        assert!(refused(&storage.open("/etc/hostname").unwrap_err()));
        assert!(refused(&storage.list("/etc").unwrap_err()));
        assert!(refused(&storage.delete("/w/x").unwrap_err()));
        assert_eq!(storage.delete_all(&["/w/t/none", "/w/x"]).iter().filter(|error| refused(error)).count(), 1);
        assert!(storage.identity("/etc/hostname").unwrap().is_none());
    }
}
