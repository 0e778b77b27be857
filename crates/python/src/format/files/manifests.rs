//! Reads manifest lists and manifests as Arrow tables ("Manifests", "Manifest Lists").

use arrow_array::RecordBatch;
use icefield_format::manifest::{FieldIds, ManifestContent, ManifestFile, Metrics, ReadOptions, entries, list};
use icefield_format::types::{StructType, Type};
use icefield_table::limits;
use icefield_table::snapshot::cache::ManifestCache;
use pyo3::prelude::*;

use crate::arguments::integer::{Int, Named};
use crate::arguments::type_input::TypeInput;
use crate::capsule::ArrowTable;
use crate::entry::detached;
use crate::errors::{InvalidArgumentError, Result};

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(read_manifest_list, module)?)?;
    module.add_function(wrap_pyfunction!(read_manifest, module)?)?;
    module.add_function(wrap_pyfunction!(manifest_cache_info, module)?)?;
    module.add_function(wrap_pyfunction!(clear_manifest_cache, module)?)?;
    module.add_function(wrap_pyfunction!(resize_manifest_cache, module)?)
}

/// Entries, bytes, most bytes, hits and misses of the cache of decoded manifests.
#[pyfunction]
fn manifest_cache_info() -> Result<(usize, usize, usize, u64, u64)> {
    let info = ManifestCache::shared()?.info();
    Ok((info.entries, info.bytes, info.max_bytes, info.hits, info.misses))
}

/// Forgets all decoded manifests.
#[pyfunction]
fn clear_manifest_cache(py: Python<'_>) -> Result<()> {
    detached(py, || ManifestCache::shared().map(ManifestCache::clear))??;
    Ok(())
}

/// Sets how many bytes the cache may take; 0 turns it off.
#[pyfunction]
#[pyo3(signature = (max_bytes, /))]
fn resize_manifest_cache(py: Python<'_>, max_bytes: Int<usize>) -> Result<()> {
    detached(py, || ManifestCache::shared().map(|cache| cache.resize(max_bytes.0)))??;
    Ok(())
}

/// A manifest list, one row a manifest.
#[pyfunction]
#[pyo3(signature = (data, /))]
fn read_manifest_list(py: Python<'_>, data: &[u8]) -> Result<ArrowTable> {
    let limits = limits()?;
    Ok(detached(py, || list::read(data, &limits)?.to_record_batch())?.map(RecordBatch::into)?)
}

/// The values that manifest entries inherit from the manifest list.
#[derive(Debug, FromPyObject)]
struct Inherited {
    #[pyo3(item)]
    added_snapshot_id: Int<i64>,
    #[pyo3(item)]
    sequence_number: Int<i64>,
    #[pyo3(item)]
    content: Int<i32>,
    #[pyo3(item)]
    first_row_id: Option<Int<i64>>,
}

/// A manifest, one row an entry.
#[pyfunction]
#[pyo3(signature = (data, /, *, manifest=None, partition_type=None, metrics=true, metrics_of=None, live_only=false))]
fn read_manifest(
    py: Python<'_>,
    data: &[u8],
    manifest: Option<Named<Inherited>>,
    partition_type: Option<TypeInput>,
    metrics: bool,
    metrics_of: Option<Vec<Int<i32>>>,
    live_only: bool,
) -> Result<ArrowTable> {
    let limits = limits()?;
    let inherit = manifest.map(|Named(row)| inherited(row)).transpose()?;
    let partition_type = partition_type.map(structure).transpose()?;
    let metrics = match metrics_of.map(Int::all) {
        _ if !metrics => Metrics::none(),
        None => Metrics::all(),
        Some(ids) => Metrics { column_sizes: FieldIds::only(ids.iter().copied()), ..Metrics::for_filter(ids) },
    };
    let options = ReadOptions {
        partition_type: partition_type.as_ref(),
        metrics,
        inherit: inherit.as_ref(),
        live_only,
        ..ReadOptions::default()
    };
    Ok(detached(py, || entries::read(data, &options, &limits)?.to_record_batch())?.map(RecordBatch::into)?)
}

fn inherited(row: Inherited) -> Result<ManifestFile> {
    Ok(ManifestFile {
        added_snapshot_id: row.added_snapshot_id.0,
        sequence_number: row.sequence_number.0,
        content: ManifestContent::from_id(row.content.0)?,
        first_row_id: row.first_row_id.map(|Int(id)| id),
        ..ManifestFile::default()
    })
}

fn structure(ty: TypeInput) -> Result<StructType> {
    match ty.0 {
        Type::Struct(ty) => Ok(ty.as_ref().clone()),
        other => Err(InvalidArgumentError::new_err(format!("a partition type is a struct, not {other}")).into()),
    }
}
