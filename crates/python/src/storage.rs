//! Access to the files of tables by URL, with the properties of a catalog, and by the keys of a service in Python.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use icefield_format::encryption::Cipher;
use icefield_table::Error;
use icefield_table::storage::{
    self, Existing, HIDDEN, KeyManagement, Renewal, Renewed, SignRequest, Signed, Storage, Traffic,
};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyType};

use crate::callback::{ENDED, call_python};
use crate::entry::detached;
use crate::errors::{InvalidArgumentError, Result, from_callback};

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyStorage>()?;
    module.add_class::<PyTraffic>()?;
    module.add("HIDDEN", HIDDEN)?;
    module.add_function(wrap_pyfunction!(shown_property, module)?)?;
    module.add_function(wrap_pyfunction!(redacted, module)?)?;
    module.add_function(wrap_pyfunction!(aes_gcm_encrypt, module)?)?;
    module.add_function(wrap_pyfunction!(aes_gcm_decrypt, module)?)
}

/// Return the value of a property as messages show it: without secrets.
#[pyfunction]
fn shown_property(name: &str, value: &str) -> String {
    storage::shown(name, value)
}

/// Return a text without the users, passwords and queries of the URLs in it.
#[pyfunction]
fn redacted(text: &str) -> String {
    storage::redacted(text)
}

/// Where files are: the local disk, memory, S3, GCS, Azure or HTTP, by the scheme of a location.
///
/// ``relocate`` maps old prefixes of locations to new ones, for tables that were moved or copied. Properties that
/// storage does not read, such as the credentials of a catalog, are dropped. ``renewal`` gets other credentials before
/// those in the properties expire: ``due_ms`` and ``expires_ms`` say when to ask and when they expire, in milliseconds
/// from the epoch, or ``None``; ``renew()`` returns other properties, and both times for them. With the property
/// ``s3.remote-signing-enabled`` its ``sign(method, region, uri, headers, body)`` signs each request to S3: it returns
/// the URL to send it to, headers to add, and whether the signature may be used again. ``prefixes`` has storages whose
/// credentials are used for locations that begin with their prefix, the longest one that fits.
#[pyclass(frozen, from_py_object, name = "Storage", module = "icefield.distributed")]
#[derive(Debug, Clone)]
pub struct PyStorage(pub Storage);

/// What a change has read and written so far.
#[pyclass(frozen, name = "Traffic", module = "icefield._core")]
#[derive(Debug, Default)]
pub struct PyTraffic(pub Arc<Traffic>);

#[pymethods]
impl PyTraffic {
    #[new]
    fn py_new() -> Self {
        Self::default()
    }

    /// Bytes that were read.
    #[getter]
    fn read(&self) -> u64 {
        self.0.read()
    }

    /// Bytes that were written.
    #[getter]
    fn written(&self) -> u64 {
        self.0.written()
    }

    /// Files that were written whole.
    #[getter]
    fn files(&self) -> u64 {
        self.0.files()
    }
}

/// The arguments that create a storage: properties, new path prefixes by old ones, the renewal of credentials, and
/// storages with other credentials by their prefixes.
type StorageParts =
    (BTreeMap<String, String>, BTreeMap<String, String>, Option<Py<PyAny>>, BTreeMap<String, PyStorage>);

/// A renewal of credentials by an object of Python.
#[derive(Debug)]
struct PyRenewal(Py<PyAny>);

impl Renewal for PyRenewal {
    fn renew(&self) -> icefield_table::Result<Renewed> {
        let called = call_python(|py| {
            let answer = self.0.bind(py).call_method0("renew").and_then(|found| found.extract());
            answer.map_err(|error| {
                // A storage goes on without a renewal, but Ctrl-C is for what waits for the storage.
                if error.is_instance_of::<PyKeyboardInterrupt>(py) {
                    let _ = py.import("_thread").and_then(|module| module.call_method0("interrupt_main"));
                }
                from_callback(py, error)
            })
        });
        let (properties, due, expires) = called.unwrap_or_else(|| Err(Error::Interrupted(ENDED.into())))?;
        Ok(renewed(properties, due, expires))
    }

    fn sign(&self, request: &SignRequest) -> icefield_table::Result<Signed> {
        let SignRequest { method, region, uri, headers, body } = request.clone();
        let called = call_python(|py| {
            let answer = self.0.bind(py).call_method1("sign", (method, region, uri, headers, body));
            let parts = answer.and_then(|found| found.extract::<(String, Vec<(String, String)>, bool)>());
            let (uri, headers, is_reusable) = parts.map_err(|error| from_callback(py, error))?;
            Ok(Signed { uri, headers, is_reusable })
        });
        called.unwrap_or_else(|| Err(Error::Interrupted(ENDED.into())))
    }
}

fn renewed(properties: BTreeMap<String, String>, due: Option<f64>, expires: Option<f64>) -> Renewed {
    // A conversion that does not fit saturates.
    let milliseconds = |time: f64| time as i64;
    Renewed { properties, due_ms: due.map(milliseconds), expires_ms: expires.map(milliseconds) }
}

#[pymethods]
impl PyStorage {
    #[new]
    #[pyo3(signature = (properties=BTreeMap::new(), relocate=BTreeMap::new(), renewal=None, prefixes=BTreeMap::new()))]
    fn py_new(
        py: Python<'_>,
        properties: BTreeMap<String, String>,
        relocate: BTreeMap<String, String>,
        renewal: Option<Py<PyAny>>,
        prefixes: BTreeMap<String, Self>,
    ) -> Result<Self> {
        let mut storage = match renewal {
            None => Storage::new(properties),
            Some(renewal) => {
                let time = |name| renewal.bind(py).getattr(name)?.extract::<Option<f64>>();
                let first = renewed(properties, time("due_ms")?, time("expires_ms")?);
                Storage::renewed_by(Arc::new(PyRenewal(renewal)), first)
            }
        };
        if !prefixes.is_empty() {
            storage = storage.with_prefixes(prefixes.into_iter().map(|(prefix, other)| (prefix, other.0)));
        }
        Ok(Self(if relocate.is_empty() { storage } else { storage.relocated(relocate)? }))
    }

    /// Return a storage that can read and write encrypted tables, whose keys the client has. It pickles without the client.
    fn with_keys(&self, client: Py<PyAny>) -> Self {
        Self(self.0.with_keys(Arc::new(PythonKeys(client))))
    }

    /// Return a storage that can read the manifest lists whose keys are given, as `Inspect.list_keys` has them.
    fn with_list_keys(&self, keys: HashMap<String, PyBackedBytes>) -> Self {
        Self(self.0.with_list_keys(keys.into_iter().map(|(key_id, key)| (key_id, key.to_vec())).collect()))
    }

    /// Whether it can read and write encrypted tables.
    #[getter]
    fn has_keys(&self) -> bool {
        self.0.keyring().is_some()
    }

    /// Return all bytes of a file; a missing one raises ``MissingFileError``.
    fn read<'py>(&self, py: Python<'py>, path: &str) -> Result<Bound<'py, PyBytes>> {
        let bytes = detached(py, || self.0.read(path))??;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Return whether the file exists.
    fn exists(&self, py: Python<'_>, path: &str) -> Result<bool> {
        Ok(detached(py, || self.0.exists(path))??)
    }

    /// Return the location that a path is read from, after ``relocate``, as a URL.
    fn resolve(&self, path: &str) -> Result<String> {
        Ok(self.0.resolve(path)?.to_string())
    }

    /// Write a whole file; an existing one raises ``ExistingFileError`` unless it is to be replaced.
    #[pyo3(signature = (path, data, *, overwrite=false))]
    fn write(&self, py: Python<'_>, path: &str, data: PyBackedBytes, overwrite: bool) -> Result<()> {
        let existing = if overwrite { Existing::Replace } else { Existing::Refuse };
        Ok(detached(py, || self.0.put(path, data.to_vec(), existing))??)
    }

    /// Delete a file; a missing one is not an error.
    fn delete(&self, py: Python<'_>, path: &str) -> Result<()> {
        Ok(detached(py, || self.0.delete(path))??)
    }

    /// Return the files below a folder, with their lengths in bytes.
    fn list(&self, py: Python<'_>, folder: &str) -> Result<Vec<(String, u64)>> {
        let entries = detached(py, || self.0.list(folder))??;
        Ok(entries.into_iter().map(|entry| (entry.path, entry.size)).collect())
    }

    /// What renews its credentials; ``None`` if they do not expire.
    #[getter]
    fn renewal(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let source: &dyn Any = &**self.0.renewal()?;
        source.downcast_ref::<PyRenewal>().map(|renewal| renewal.0.clone_ref(py))
    }

    /// Pickles with its properties, credentials of storage among them, and what renews these: executors must reach the
    /// same files. The keys of encrypted tables are not: tasks have the keys of their own files.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Result<(Bound<'py, PyType>, StorageParts)> {
        let (py, storage) = (slf.py(), &slf.get().0);
        // The credentials may be due, and renewing them takes a request.
        let properties = detached(py, || storage.properties())?;
        let relocate = storage.relocation().iter().cloned().collect();
        let prefixes = storage.prefixes().iter().map(|(prefix, other)| (prefix.clone(), Self(other.clone()))).collect();
        Ok((slf.get_type(), ((*properties).clone(), relocate, slf.get().renewal(py), prefixes)))
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// Encrypt bytes by a key of 16, 24 or 32 bytes: a random nonce, the ciphertext, the tag.
#[pyfunction]
fn aes_gcm_encrypt<'py>(py: Python<'py>, key: &[u8], data: &[u8]) -> Result<Bound<'py, PyBytes>> {
    let mut sealed = Vec::new();
    Cipher::new(key)?.encrypt(data, b"", &mut sealed)?;
    Ok(PyBytes::new(py, &sealed))
}

/// Decrypt what `aes_gcm_encrypt` returned.
#[pyfunction]
fn aes_gcm_decrypt<'py>(py: Python<'py>, key: &[u8], data: &[u8]) -> Result<Bound<'py, PyBytes>> {
    let mut plain = Vec::new();
    let opened = Cipher::new(key)?.decrypt(data, b"", &mut plain);
    opened.map_err(|_| InvalidArgumentError::new_err("the bytes were encrypted by another key, or changed"))?;
    Ok(PyBytes::new(py, &plain))
}

/// A `KeyManagementClient`.
#[derive(Debug)]
struct PythonKeys(Py<PyAny>);

impl PythonKeys {
    fn call(&self, method: &str, given: &[u8], key_id: &str) -> icefield_table::Result<Vec<u8>> {
        let called = call_python(|py| {
            let answer = self.0.bind(py).call_method1(method, (PyBytes::new(py, given), key_id));
            let bytes = answer.and_then(|answer| Ok(answer.extract::<PyBackedBytes>()?.to_vec()));
            bytes.map_err(|error| from_callback(py, error))
        });
        called.unwrap_or_else(|| Err(Error::Interrupted(ENDED.into())))
    }
}

impl KeyManagement for PythonKeys {
    fn wrap(&self, key: &[u8], wrapping_key_id: &str) -> icefield_table::Result<Vec<u8>> {
        self.call("wrap_key", key, wrapping_key_id)
    }

    fn unwrap(&self, wrapped: &[u8], wrapping_key_id: &str) -> icefield_table::Result<Vec<u8>> {
        self.call("unwrap_key", wrapped, wrapping_key_id)
    }
}
