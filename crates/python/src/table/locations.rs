//! Location providers that are written in Python.

use std::collections::BTreeMap;
use std::sync::Arc;

use icefield_format::metadata::StringMap;
use icefield_table::Error;
use icefield_table::write::provider::{LocationProvider, LocationProviders, look_up_providers_in};
use pyo3::prelude::*;

use crate::callback::{ENDED, call_python};
use crate::errors::from_callback;

/// The module that finds them.
const MODULE: &str = "icefield.table.locations";

/// Makes the providers of installed packages known to the core.
pub(crate) fn register(_: &Bound<'_, PyModule>) -> PyResult<()> {
    look_up_providers_in(Box::new(Installed));
    Ok(())
}

/// The entry points.
struct Installed;

impl LocationProviders for Installed {
    fn has(&self, name: &str) -> icefield_table::Result<bool> {
        call(|py| py.import(MODULE)?.call_method1("is_installed", (name,))?.extract())
    }

    fn of_table(
        &self,
        name: &str,
        location: &str,
        properties: &StringMap,
    ) -> icefield_table::Result<Arc<dyn LocationProvider>> {
        let properties: BTreeMap<&str, &str> =
            properties.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let made = call(|py| {
            let made = py.import(MODULE)?.call_method1("provider_of", (name, location, properties))?;
            Ok(made.unbind())
        })?;
        Ok(Arc::new(Provider(made)))
    }
}

/// An object with PyIceberg's method `new_data_location`.
#[derive(Debug)]
struct Provider(Py<PyAny>);

impl LocationProvider for Provider {
    fn location(&self, partition: &str, name: &str) -> icefield_table::Result<String> {
        call(|py| py.import(MODULE)?.call_method1("location_by", (&self.0, partition, name))?.extract())
    }
}

fn call<T>(work: impl FnOnce(Python<'_>) -> PyResult<T>) -> icefield_table::Result<T> {
    let called = call_python(|py| work(py).map_err(|error| from_callback(py, error)));
    called.unwrap_or_else(|| Err(Error::Interrupted(ENDED.into())))
}
