//! The partition specs of a table ("Partition Evolution"), and sets of partitions across specs.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use arrow_array::Array;
use icefield_format::avro::{Codec, Compression};
use icefield_format::expr::Datum;
use icefield_format::manifest::entries::{self, ReadOptions};
use icefield_format::manifest::list::{FieldSummary, ManifestFile};
use icefield_format::manifest::write::{ManifestOptions, ManifestWriter};
use icefield_format::manifest::{DataFile, Entries, ManifestContent, ManifestEntry, Metrics, Status};
use icefield_format::metadata::TableMetadata;
use icefield_format::spec::PartitionSpec;
use icefield_format::spec::path::partition_path;
use icefield_format::types::{PrimitiveType, Schema, StructType, Type};
use icefield_format::value::Value;

use crate::error::{Error, Result};
use crate::limits::limits;
use crate::plan::deletes::partition_key;

/// The partition values of a file.
pub type Tuple = Vec<Option<Value>>;

/// A partition spec with a schema that has its source columns.
#[derive(Debug, Clone)]
pub struct Spec {
    /// The spec.
    pub spec: Arc<PartitionSpec>,
    /// The current schema, or the newest one with all source columns if the current one lacks some.
    pub schema: Arc<Schema>,
    /// The type of partition tuples.
    pub partition_type: StructType,
    /// The types of the source columns.
    sources: Vec<PrimitiveType>,
}

impl Spec {
    fn new(base: &TableMetadata, spec: &Arc<PartitionSpec>) -> Self {
        let ids: Vec<i32> = spec.fields.iter().flat_map(|field| field.source_ids.iter().copied()).collect();
        let has_all = |schema: &&Arc<Schema>| ids.iter().all(|id| schema.find_field(*id).is_some());
        let current = base.current_schema();
        let schema = [current].into_iter().chain(base.schemas().iter().rev()).find(has_all).unwrap_or(current);
        let source = |id: Option<i32>| {
            let found = id.and_then(|id| schema.find_type(id)).and_then(Type::as_primitive);
            found.cloned().unwrap_or(PrimitiveType::Unknown)
        };
        Self {
            spec: spec.clone(),
            schema: schema.clone(),
            partition_type: spec.tuple_type(schema),
            sources: spec.fields.iter().map(|field| source(field.source_id())).collect(),
        }
    }

    /// The path of a partition, as in summaries and messages.
    ///
    /// # Errors
    /// A tuple that does not fit the spec.
    pub fn path(&self, partition: &[Option<Value>]) -> Result<String> {
        Ok(partition_path(&self.spec, &self.sources, partition)?)
    }

    /// Converts data files to manifest entries with this data sequence number, so that code for entries works on them.
    ///
    /// # Errors
    /// A file of another spec.
    pub(in crate::commit) fn entries(&self, files: &[&DataFile], sequence_number: i64) -> Result<Entries> {
        let mut writer = ManifestWriter::new(ManifestOptions {
            format_version: 2,
            content: ManifestContent::Data,
            schema: &self.schema,
            spec: &self.spec,
            snapshot_id: 0,
            first_row_id: None,
            compression: Compression { codec: Codec::Null, level: None },
            sync: [0; 16],
        })?;
        for file in files {
            writer.add(&ManifestEntry {
                status: Status::Existing,
                snapshot_id: Some(0),
                sequence_number: Some(sequence_number),
                file_sequence_number: Some(sequence_number),
                file: (*file).clone(),
            })?;
        }
        let options = ReadOptions {
            metrics: Metrics::all(),
            partition_type: Some(&self.partition_type),
            ..ReadOptions::default()
        };
        Ok(entries::read(&writer.finish("")?.0, &options, &limits()?)?)
    }

    /// Whether a manifest with these summaries may list files of this partition.
    fn may_contain(&self, summaries: &[FieldSummary], partition: &[Option<Value>]) -> bool {
        let fields = self.partition_type.fields.iter().zip(summaries).zip(partition);
        fields.into_iter().all(|((field, summary), value)| {
            let Some(ty) = field.ty.as_primitive() else { return true };
            may_contain(ty, summary, value.as_ref())
        })
    }
}

fn may_contain(ty: &PrimitiveType, summary: &FieldSummary, value: Option<&Value>) -> bool {
    let Some(value) = value else { return summary.contains_null };
    if matches!(ty, PrimitiveType::Unrecognized(_)) {
        // The bounds have an unknown type.
        return true;
    }
    let Some(datum) = Datum::of(value) else { return true };
    if datum.is_nan() {
        return summary.contains_nan != Some(false);
    }
    if summary.lower_bound.is_none() {
        return matches!(ty, PrimitiveType::Unknown);
    }
    let (lower, upper) = Datum::of_bounds(ty, summary.lower_bound.as_deref(), summary.upper_bound.as_deref());
    lower.is_none_or(|lower| lower.order(datum).is_le()) && upper.is_none_or(|upper| upper.order(datum).is_ge())
}

/// All specs of a table.
#[derive(Debug, Clone)]
pub struct Specs(HashMap<i32, Arc<Spec>>);

impl Specs {
    /// The specs of a table.
    pub fn of(base: &TableMetadata) -> Self {
        Self(base.partition_specs().iter().map(|spec| (spec.spec_id, Arc::new(Spec::new(base, spec)))).collect())
    }

    /// All specs.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Spec>> {
        self.0.values()
    }

    /// The spec with this id.
    pub(super) fn with_id(&self, spec_id: i32) -> Option<&Arc<Spec>> {
        self.0.get(&spec_id)
    }

    /// The spec with this id.
    ///
    /// # Errors
    /// A spec that the table does not have.
    pub fn get(&self, spec_id: i32) -> Result<&Arc<Spec>> {
        let found = self.with_id(spec_id);
        found.ok_or_else(|| Error::invalid(format!("partition spec {spec_id} is not one of the table's")))
    }

    /// The spec of a manifest.
    ///
    /// # Errors
    /// A manifest with a spec that the table does not have.
    pub fn of_manifest(&self, manifest: &ManifestFile) -> Result<&Arc<Spec>> {
        self.0.get(&manifest.partition_spec_id).ok_or_else(|| {
            let id = manifest.partition_spec_id;
            Error::corrupt_file(&manifest.manifest_path, format!("its partition spec {id} is not one of the table's"))
        })
    }

    /// The spec of a file to be added or removed.
    ///
    /// # Errors
    /// A spec that the table does not have, or a tuple that does not fit it.
    pub fn of_file(&self, file: &DataFile) -> Result<&Arc<Spec>> {
        let (path, id) = (&file.file_path, file.partition_spec_id);
        let spec = self
            .0
            .get(&id)
            .ok_or_else(|| Error::invalid(format!("{path}: its partition spec {id} is not one of the table's")))?;
        let (has, wants) = (file.partition.len(), spec.spec.fields.len());
        if has != wants {
            return Err(Error::invalid(format!("{path}: has {has} partition values: the spec has {wants} fields")));
        }
        Ok(spec)
    }
}

/// A set of partitions of any spec.
#[derive(Debug, Clone, Default)]
pub struct Partitions {
    keys: HashSet<Vec<u8>>,
    by_spec: BTreeMap<i32, Vec<Tuple>>,
}

impl Partitions {
    /// Adds a partition.
    pub fn insert(&mut self, spec_id: i32, partition: &[Option<Value>]) {
        if self.keys.insert(partition_key(spec_id, partition)) {
            self.by_spec.entry(spec_id).or_default().push(partition.to_vec());
        }
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether the set has this partition.
    pub fn contains(&self, spec_id: i32, partition: &[Option<Value>]) -> bool {
        !self.keys.is_empty() && self.keys.contains(&partition_key(spec_id, partition))
    }

    /// For each partition tuple of a manifest, whether the set has it.
    pub fn of_tuples(&self, spec: &Spec, entries: &Entries) -> Result<Vec<bool>> {
        if self.keys.is_empty() {
            return Ok(vec![false; entries.tuples.len()]);
        }
        let contains = |place| Ok(self.contains(spec.spec.spec_id, &entries.tuple(place)?));
        (0..entries.tuples.len()).map(contains).collect()
    }

    /// Whether a manifest may list files of a partition in the set.
    pub fn may_be_in(&self, spec: &Spec, manifest: &ManifestFile) -> bool {
        let Some(tuples) = self.by_spec.get(&manifest.partition_spec_id) else { return false };
        let Some(summaries) = &manifest.partitions else { return true };
        tuples.iter().any(|tuple| spec.may_contain(summaries, tuple))
    }
}
