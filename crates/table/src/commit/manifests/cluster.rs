//! Rewrites manifests with their entries grouped by a key.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use hashbrown::HashMap;
use icefield_format::manifest::entries::{self, ReadOptions};
use icefield_format::manifest::list::ManifestFile;
use icefield_format::manifest::write::ManifestWriter;
use icefield_format::manifest::{Entries, ManifestContent, Metrics, Status};
use icefield_format::metadata::TableMetadata;

use super::merging::Manifests;
use super::output::Form;
use super::specs::{Spec, Specs};
use crate::error::{Error, Result};
use crate::limits::limits;

/// Computes the key of each entry of a manifest; entries with the same key are grouped.
pub type Clustering = dyn Fn(&Specs, &Spec, &Entries) -> Result<Vec<String>> + Send + Sync;

/// The manifests that replace others.
#[derive(Debug, Clone, Default)]
pub struct Clustered {
    /// The new manifests.
    pub manifests: Vec<ManifestFile>,
    /// Number of entries in them.
    pub entries: usize,
}

impl Manifests {
    /// Rewrites the live entries of manifests. Entries with the same partition spec and key go into the same manifests,
    /// data and delete files apart, in the order in which keys first occur.
    ///
    /// # Errors
    /// An error of the clustering, or of reading or writing a manifest.
    pub fn clustered(&self, base: &TableMetadata, of: &[ManifestFile], clustering: &Clustering) -> Result<Clustered> {
        let (form, specs, limits) = (Form::of(base)?, Specs::of(base), limits()?);
        let mut places: HashMap<(i32, bool, String), usize> = HashMap::new();
        let mut open: Vec<(Arc<Spec>, Option<ManifestWriter>)> = Vec::new();
        let mut done = Clustered::default();
        for manifest in of {
            let path = &manifest.manifest_path;
            let in_file = |error: icefield_format::Error| Error::from(error.in_file(path));
            let spec = specs.of_manifest(manifest)?;
            let options = ReadOptions {
                metrics: Metrics::all(),
                partition_type: Some(&spec.partition_type),
                inherit: Some(manifest),
                live_only: true,
                ..ReadOptions::default()
            };
            let bytes = self.output().storage().read_manifest(manifest)?;
            let entries = entries::read(&bytes, &options, &limits).map_err(in_file)?;
            let keys = clustering(&specs, spec, &entries)?;
            if keys.len() != entries.len() {
                let message = format!("expected a key for each of {} entries, got {}", entries.len(), keys.len());
                return Err(Error::invalid(format!("{path}: {message}")));
            }
            for (row, key) in keys.into_iter().enumerate() {
                let is_data = manifest.content == ManifestContent::Data;
                let place = *places.entry((manifest.partition_spec_id, is_data, key)).or_insert_with(|| {
                    open.push((spec.clone(), None));
                    open.len() - 1
                });
                let Some((spec, writer)) = open.get_mut(place) else { continue };
                if let Some(full) = writer.take_if(|writer| writer.length() >= form.target) {
                    done.manifests.push(self.output().finish(&form, full)?);
                }
                let writer = match writer {
                    Some(writer) => writer,
                    None => writer.insert(self.output().writer(&form, spec, manifest.content)?),
                };
                let mut entry = entries.entry(row, manifest.partition_spec_id).map_err(in_file)?;
                entry.status = Status::Existing;
                writer.add(&entry)?;
                done.entries += 1;
            }
        }
        for writer in open.into_iter().filter_map(|(_, writer)| writer) {
            done.manifests.push(self.output().finish(&form, writer)?);
        }
        Ok(done)
    }
}

/// A key for each entry: its values of some columns of a manifest (`partition`, `file_path`, `record_count`, …) or
/// fields of its partition tuple. Without columns, all entries have the same key. A field that this spec lacks, but
/// another spec of the table has, does not contribute to the key.
///
/// # Errors
/// A name that is neither a column nor a partition field of any spec.
pub fn keys_of_columns(specs: &Specs, spec: &Spec, entries: &Entries, names: &[String]) -> Result<Vec<String>> {
    let column = |name: &String| -> Result<Option<ArrayRef>> {
        if name == "partition" {
            return Ok(Some(Arc::new(entries.partition.clone())));
        }
        if let Some(place) = place_of(specs, spec, name) {
            return Ok(place.and_then(|place| entries.partition.columns().get(place)).cloned());
        }
        entries.column(name).map(Some).ok_or_else(|| {
            Error::invalid(format!("cannot cluster by {name:?}: neither a partition field nor a field of data files"))
        })
    };
    let columns: Vec<Option<ArrayRef>> = names.iter().map(column).collect::<Result<_>>()?;
    let mut keys = vec![String::new(); entries.len()];
    for column in columns.iter().flatten() {
        for (key, text) in keys.iter_mut().zip(keys_of_values(column)?) {
            key.push_str(&text);
            key.push('\u{1f}');
        }
    }
    Ok(keys)
}

/// The position of a partition field in a spec, which may have it under another name; `None` if no spec has a field of
/// this name.
fn place_of(specs: &Specs, spec: &Spec, name: &str) -> Option<Option<usize>> {
    let named = |spec: &Spec| spec.spec.fields.iter().find(|field| field.name == name).map(|field| field.field_id);
    let own = spec.spec.fields.iter().position(|field| field.name == name);
    let ids: Vec<i32> = specs.iter().filter_map(|spec| named(spec)).collect();
    let renamed = || spec.spec.fields.iter().position(|field| ids.contains(&field.field_id));
    (!ids.is_empty()).then(|| own.or_else(renamed))
}

/// A key for each value; equal values have equal keys.
///
/// # Errors
/// A type that cannot be formatted as text.
pub fn keys_of_values(values: &ArrayRef) -> Result<Vec<String>> {
    let options = FormatOptions::default().with_null("\u{0}");
    let formatter = ArrayFormatter::try_new(values, &options).map_err(|error| Error::invalid(error.to_string()))?;
    let text = |row| formatter.value(row).try_to_string().map_err(|error| Error::invalid(error.to_string()));
    (0..values.len()).map(text).collect()
}
