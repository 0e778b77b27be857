//! Plans made by the server of a catalog (the REST protocol's scan planning): the request for one, and its file scan
//! tasks as a [`Plan`].
//!
//! A server may plan other rows than the manifests have, because it hides some, so the tasks are taken as they are: a
//! file is read if the server names it, with the deletes and the residual filter that the server gives.
//!
//! The protocol has no sequence numbers. The server has already decided which deletes apply to which files, so only
//! `_last_updated_sequence_number` of rows that inherit it is unknown, and null as in the Java library.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use arrow_array::Int64Array;
use icefield_format::avro::{Codec, Compression};
use icefield_format::expr::{BoundExpr, Expr, Expression, Test};
use icefield_format::manifest::entries::{self, Entries, ReadOptions};
use icefield_format::manifest::write::{ManifestOptions, ManifestWriter};
use icefield_format::manifest::{
    DataFile, FileContent, ManifestContent, ManifestEntry, Metrics, Status, partition_fields,
};
use icefield_format::rest::{ContentFile, FileScanTask, PlanTableScanRequest, ScanTasks};
use icefield_format::spec::PartitionSpec;
use icefield_format::types::arrow::field_id;
use icefield_format::types::{Field, Schema};
use serde_json::Value as Json;

use super::deletes::links::DeleteLinks;
use super::deletes::{Deletes, Source};
use super::projection::partition_union::stored_union;
use super::prune::{check_sizes, partition_type};
use super::report::{FileCounts, ScanReport};
use super::{Plan, PlannedManifest, Scan};
use crate::error::{Error, Result};

impl Scan {
    /// The request for a plan of this scan.
    ///
    /// # Arguments
    /// `projection` has the columns to read, `stats` the full names of those whose metrics are wanted, and `rows` is the
    /// number of rows that are enough.
    ///
    /// # Errors
    /// A scan of changes, and a filter that does not fit the table.
    pub fn plan_request(
        &self,
        projection: &Schema,
        stats: Option<Vec<String>>,
        rows: Option<i64>,
    ) -> Result<PlanTableScanRequest> {
        if self.changes.is_some() {
            return Err(Error::unsupported("a server plans scans of snapshots, and none of changes"));
        }
        let (filter, _) = self.bound_filter()?;
        Ok(PlanTableScanRequest {
            snapshot_id: self.snapshot.as_ref().map(|snapshot| snapshot.snapshot_id),
            select: self.sent_columns(projection, &filter),
            filter: self.sent_filter(&filter)?,
            min_rows_requested: rows,
            case_sensitive: self.case_sensitive,
            use_snapshot_schema: self.schema.schema_id() != self.metadata.current_schema().schema_id(),
            start_snapshot_id: None,
            end_snapshot_id: None,
            stats_fields: stats,
        })
    }

    /// The top-level columns that are read or tested; `None` if these are all, or none.
    fn sent_columns(&self, projection: &Schema, filter: &BoundExpr) -> Option<Vec<String>> {
        let read: HashSet<i32> = projection.fields().iter().map(|field| field.id).collect();
        let tested: HashSet<&str> = filter
            .predicates()
            .filter_map(|predicate| self.schema.names().iter().find(|(_, id)| **id == predicate.term.reference.id))
            .map(|(name, _)| name.split('.').next().unwrap_or(name))
            .collect();
        let is_wanted = |field: &&Field| read.contains(&field.id) || tested.contains(&*field.name);
        let all = self.schema.fields();
        let names: Vec<String> = all.iter().filter(is_wanted).map(|field| field.name.clone()).collect();
        (!names.is_empty() && names.len() < all.len()).then_some(names)
    }

    /// The filter as a server takes it; `None` without one, or if it names what the protocol does not have:
    /// metadata columns, values inside variants, and boxes. Readers test that filter.
    fn sent_filter(&self, filter: &BoundExpr) -> Result<Option<Json>> {
        let is_known = filter.predicates().all(|predicate| {
            self.schema.find_field(predicate.term.reference.id).is_some()
                && predicate.term.extract.is_none()
                && !matches!(predicate.test, Test::Intersects(_) | Test::Disjoint(_))
        });
        Ok((is_known && *filter != Expression::True).then(|| filter.to_json()).transpose()?)
    }

    /// This scan with the files that a server planned, page by page, instead of those of the manifests.
    ///
    /// # Errors
    /// Tasks that do not fit the table, and a file that is there twice. Places begin with the number of the page.
    pub fn planned_by_server(self, pages: &[ScanTasks]) -> Result<Self> {
        let mut planner = Planner::new(&self)?;
        for (number, page) in pages.iter().enumerate() {
            planner.page(page, &format!("/{number}"))?;
        }
        let plan = planner.finish()?;
        Ok(Self { served: Some(Arc::new(plan)), ..self })
    }
}

/// The indices of the vectors in a page, by their file and the data file that they are of.
fn vectors(deletes: &[ContentFile]) -> HashMap<(&str, &str), i32> {
    let mut found = HashMap::new();
    for (index, file) in (0..).zip(deletes) {
        if let (Some(_), Some(data_file)) = (file.content_offset, &file.referenced_data_file) {
            found.insert((&*file.file_path, &**data_file), index);
        }
    }
    found
}

/// The index of the delete file that a task means. Of several vectors in one file Java's server names the last one for
/// each data file, but a vector is of one data file only.
fn meant(index: i32, deletes: &[ContentFile], vectors: &HashMap<(&str, &str), i32>, data_file: &str) -> i32 {
    let named = usize::try_from(index).ok().and_then(|index| deletes.get(index));
    let vector = named.filter(|file| file.content_offset.is_some());
    vector.and_then(|file| vectors.get(&(&*file.file_path, data_file))).copied().unwrap_or(index)
}

/// Data files of one spec: each with its residual and its deletes.
#[derive(Default)]
struct OfSpec {
    files: Vec<DataFile>,
    residual_places: Vec<u32>,
    residuals: Vec<BoundExpr>,
    /// By JSON.
    known: HashMap<Option<String>, u32>,
    deletes: Vec<Vec<u32>>,
}

struct Planner<'a> {
    scan: &'a Scan,
    filter: BoundExpr,
    /// Whether the server knows the filter.
    is_sent: bool,
    specs: BTreeMap<i32, OfSpec>,
    deletes: Deletes,
    paths: HashSet<String>,
}

impl<'a> Planner<'a> {
    fn new(scan: &'a Scan) -> Result<Self> {
        let (filter, _) = scan.bound_filter()?;
        let is_sent = scan.sent_filter(&filter)?.is_some();
        let (specs, deletes, paths) = (BTreeMap::new(), Deletes::default(), HashSet::new());
        Ok(Self { scan, filter, is_sent, specs, deletes, paths })
    }

    fn page(&mut self, page: &ScanTasks, place: &str) -> Result<()> {
        let deletes = page.delete_files.as_deref().unwrap_or_default();
        let places = self.page_deletes(deletes, place)?;
        let vectors = vectors(deletes);
        for (number, task) in page.file_scan_tasks.iter().flatten().enumerate() {
            let meant = |index: i32| meant(index, deletes, &vectors, &task.data_file.file_path);
            self.task(task, &places, meant, &format!("{place}/file-scan-tasks/{number}"))?;
        }
        Ok(())
    }

    /// Takes the delete files of a page; returns their indices in the plan.
    fn page_deletes(&mut self, files: &[ContentFile], place: &str) -> Result<Vec<u32>> {
        let mut by_spec: BTreeMap<i32, (Vec<DataFile>, Vec<usize>)> = BTreeMap::new();
        for (number, file) in files.iter().enumerate() {
            let file = self.file(file, false, &format!("{place}/delete-files/{number}"))?;
            let (files, numbers) = by_spec.entry(file.partition_spec_id).or_default();
            files.push(file);
            numbers.push(number);
        }
        let mut places = vec![0; files.len()];
        for (spec_id, (files, numbers)) in by_spec {
            let entries = Arc::new(self.entries(spec_id, files, ManifestContent::Deletes)?);
            let start = self.deletes.push(Source { spec_id, entries })?;
            for (at, number) in (start..).zip(numbers) {
                if let Some(slot) = places.get_mut(number) {
                    *slot = at;
                }
            }
        }
        Ok(places)
    }

    fn task(&mut self, task: &FileScanTask, deletes: &[u32], meant: impl Fn(i32) -> i32, place: &str) -> Result<()> {
        let file = self.file(&task.data_file, true, &format!("{place}/data-file"))?;
        if !self.paths.insert(file.file_path.clone()) {
            let message = format!("{} has a task already: its rows would be read twice", file.file_path);
            return Err(corrupt(&format!("{place}/data-file/file-path"), message));
        }
        let of_deletes = format!("{place}/delete-file-references");
        let references = task.delete_file_references.iter().flatten();
        let linked = references.map(|index| {
            let found = usize::try_from(meant(*index)).ok().and_then(|index| deletes.get(index)).copied();
            found.ok_or_else(|| corrupt(&of_deletes, format!("{index} is none of {} delete files", deletes.len())))
        });
        let linked = linked.collect::<Result<Vec<u32>>>()?;
        let text = task.residual_filter.as_ref().map(Json::to_string);
        let known = self.specs.get(&file.partition_spec_id).and_then(|of_spec| of_spec.known.get(&text)).copied();
        let made = match known {
            Some(_) => None,
            None => Some(self.residual(task, &format!("{place}/residual-filter"))?),
        };
        let of_spec = self.specs.entry(file.partition_spec_id).or_default();
        let residual = match (known, made) {
            (Some(known), _) => known,
            (None, made) => {
                let new = u32::try_from(of_spec.residuals.len()).unwrap_or(u32::MAX);
                of_spec.residuals.extend(made);
                of_spec.known.insert(text, new);
                new
            }
        };
        of_spec.files.push(file);
        of_spec.residual_places.push(residual);
        of_spec.deletes.push(linked);
        Ok(())
    }

    /// What rows of a file must match: without a residual the whole filter, and what the server does not know of it
    /// always.
    fn residual(&self, task: &FileScanTask, place: &str) -> Result<BoundExpr> {
        let Some(json) = &task.residual_filter else { return Ok(self.filter.clone()) };
        let scan = self.scan;
        let read =
            Expr::from_json_typed(json, &scan.schema).and_then(|found| found.bind(&scan.schema, scan.case_sensitive));
        let residual = read.map_err(|error| place_of(error, place))?;
        Ok(if self.is_sent { residual } else { BoundExpr::and(residual, self.filter.clone()) })
    }

    fn file(&self, file: &ContentFile, is_data: bool, place: &str) -> Result<DataFile> {
        let spec = self.scan.metadata.partition_spec(file.spec_id).ok_or_else(|| {
            corrupt(&format!("{place}/spec-id"), format!("the table has no partition spec {}", file.spec_id))
        })?;
        let tuple = partition_type(self.scan, spec);
        let made = file.to_data_file(&tuple, &self.scan.schema).map_err(|error| place_of(error, place))?;
        if (made.content == FileContent::Data) != is_data {
            let wanted = if is_data { "a data file" } else { "a delete file" };
            return Err(corrupt(
                &format!("{place}/content"),
                format!("expected {wanted}, found {}", file.content.name()),
            ));
        }
        if made.record_count < 0 {
            return Err(corrupt(&format!("{place}/record-count"), format!("{} is negative", made.record_count)));
        }
        Ok(made)
    }

    /// Files in columns: written as a manifest and read as one, so that they are what manifests have.
    fn entries(&self, spec_id: i32, files: Vec<DataFile>, content: ManifestContent) -> Result<Entries> {
        let scan = self.scan;
        let spec = self.spec(spec_id)?;
        let has_all = |schema: &&Arc<Schema>| has_sources(spec, schema);
        let mut schemas = std::iter::once(&scan.schema).chain(scan.metadata.schemas().iter().rev());
        let schema = schemas.find(has_all).unwrap_or(&scan.schema);
        let mut writer = ManifestWriter::new(ManifestOptions {
            format_version: scan.metadata.format_version().number(),
            content,
            schema,
            spec,
            snapshot_id: 0,
            first_row_id: None,
            compression: Compression { codec: Codec::Null, level: None },
            sync: [0; 16],
        })?;
        let count = files.len();
        for file in files {
            let number = Some(0);
            writer.add(&ManifestEntry {
                status: Status::Existing,
                snapshot_id: Some(0),
                sequence_number: number,
                file_sequence_number: number,
                file,
            })?;
        }
        let (bytes, _) = writer.finish("")?;
        let tuple = partition_type(scan, spec);
        let options = ReadOptions { partition_type: Some(&tuple), metrics: Metrics::all(), ..ReadOptions::default() };
        let mut read = entries::read(&bytes, &options, &scan.limits)?;
        if content == ManifestContent::Data {
            read.sequence_number = Int64Array::new_null(count);
            read.file_sequence_number = Int64Array::new_null(count);
        }
        Ok(read)
    }

    fn spec(&self, spec_id: i32) -> Result<&'a Arc<PartitionSpec>> {
        let found = self.scan.metadata.partition_spec(spec_id);
        found.ok_or_else(|| Error::Internal("a planned file without its spec".to_owned()))
    }

    fn finish(mut self) -> Result<Plan> {
        let mut held = self.scan.limits.held();
        let mut report = ScanReport::default();
        let (mut manifests, mut fields) = (Vec::new(), Vec::new());
        for (spec_id, of_spec) in std::mem::take(&mut self.specs) {
            let OfSpec { files, residual_places, residuals, deletes, .. } = of_spec;
            let spec = self.spec(spec_id)?.clone();
            let entries = Arc::new(self.entries(spec_id, files, ManifestContent::Data)?);
            check_sizes(&entries).map_err(|message| Error::unsupported(format!("the plan of the server {message}")))?;
            let tuple = partition_fields(&entries.partition_type);
            fields.extend(tuple.iter().map(|field| {
                let known = spec.fields.iter().find(|part| Some(part.field_id) == field_id(field));
                (field.clone(), known.is_some_and(|part| part.transform.is_void()))
            }));
            let mut deletes_size: i64 = 0;
            for place in deletes.iter().flatten() {
                deletes_size = deletes_size.saturating_add(self.deletes.content_size(*place)?);
            }
            let deletes = DeleteLinks::of_files(deletes.iter().map(Vec::as_slice))?;
            report.add_data(&FileCounts {
                kept: entries.len(),
                links: deletes.as_ref().map_or(0, DeleteLinks::len),
                size: entries.file_size_in_bytes.values().iter().fold(0, |sum: i64, size| sum.saturating_add(*size)),
                deletes_size,
                ..FileCounts::default()
            });
            let manifest = PlannedManifest { spec, entries, residual_places, residuals, deletes, changes: None };
            held.keep(manifest.memory())?;
            manifests.push(manifest);
        }
        report.indexed_delete_files = self.deletes.len();
        report.count_kinds(&self.deletes)?;
        Ok(Plan {
            manifests,
            deletes: Arc::new(self.deletes),
            partition: stored_union(fields.into_iter()),
            metrics: self.scan.metrics.clone(),
            report,
            is_changelog: false,
        })
    }
}

fn has_sources(spec: &PartitionSpec, schema: &Schema) -> bool {
    spec.fields.iter().flat_map(|field| &field.source_ids).all(|id| schema.find_field(*id).is_some())
}

fn corrupt(place: &str, message: String) -> Error {
    icefield_format::Error::corrupt(place, message).into()
}

/// Values that are none are faults of the server, at their place.
fn place_of(error: icefield_format::Error, place: &str) -> Error {
    use icefield_format::Error as Format;
    match error {
        Format::Invalid(message) | Format::Unfit(message) => corrupt(place, message),
        other => other.within(place).into(),
    }
}
