//! Location providers: classes of the user's that say where data files lie (`write.location-provider.impl`).
//!
//! Metadata of strangers may name any class. So a name is only looked up among the providers that are installed, and
//! never imported.

use std::fmt::Debug;
use std::sync::{Arc, OnceLock};

use icefield_format::metadata::StringMap;
use icefield_format::metadata::properties::{LOCATION_PROVIDER_IMPL, PY_LOCATION_PROVIDER_IMPL};

use crate::error::{Error, Result};

/// Says where the data files of one table lie.
pub trait LocationProvider: Debug + Send + Sync {
    /// The location of a file; `partition` is the path of its partition, empty for an unpartitioned table. Called once
    /// for each file, from any thread.
    fn location(&self, partition: &str, name: &str) -> Result<String>;
}

/// The providers that are installed.
pub trait LocationProviders: Send + Sync {
    /// Whether there is one of this name.
    fn has(&self, name: &str) -> Result<bool>;
    /// The provider of a table.
    fn of_table(&self, name: &str, location: &str, properties: &StringMap) -> Result<Arc<dyn LocationProvider>>;
}

static INSTALLED: OnceLock<Box<dyn LocationProviders>> = OnceLock::new();

/// Says where providers are looked up; the first call in a process counts.
pub fn look_up_providers_in(providers: Box<dyn LocationProviders>) {
    // A second import of the extension registers the same ones.
    let _ = INSTALLED.set(providers);
}

/// The provider that a table's properties name.
pub(super) fn of_table(location: &str, properties: &StringMap) -> Result<Option<Arc<dyn LocationProvider>>> {
    let Some((_, name)) = named(properties) else { return Ok(None) };
    check(properties)?;
    INSTALLED.get().map(|installed| installed.of_table(name, location, properties)).transpose()
}

/// Checks that the provider that properties name is installed.
///
/// # Errors
/// [`Error::Unsupported`] if it is not.
pub fn check(properties: &StringMap) -> Result<()> {
    let Some((property, name)) = named(properties) else { return Ok(()) };
    match INSTALLED.get().map(|installed| installed.has(name)).transpose()? {
        Some(true) => Ok(()),
        _ => Err(Error::unsupported(format!(
            "the table property {property}={name}: no installed package has a location provider of this name, an entry \
             point of the group icefield.location_providers; without one, files lie by write.data.path and \
             write.object-storage.*"
        ))),
    }
}

/// Whether properties name a provider, which may read any of them.
pub(crate) fn is_named(properties: &StringMap) -> bool {
    named(properties).is_some()
}

fn named(properties: &StringMap) -> Option<(&'static str, &str)> {
    let of_both = [&PY_LOCATION_PROVIDER_IMPL, &LOCATION_PROVIDER_IMPL];
    of_both.into_iter().find_map(|property| Some((property.name, property.read(properties)?)))
}
