//! Streams a plan: data files, manifest by manifest.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_schema::Fields;
use icefield_format::limits::Held;
use icefield_format::manifest::list::ManifestFile;
use icefield_format::manifest::{FieldIds, ManifestContent, Metrics};
use icefield_format::metadata::FormatVersion;
use icefield_format::types::PrimitiveType;

use super::deletes::{DeleteIndex, Deletes};
use super::incremental::changelog;
use super::incremental::window::Window;
use super::pipeline::Ordered;
use super::prune::{DataItem, DataWork, DeleteItem, DeleteWork, Pruner, stored};
use super::{Observer, Plan, PlannedManifest, Scan, ScanReport, incremental, twice};
use crate::error::Result;

/// The data files of a scan as they are found; manifests without remaining files are left out.
#[derive(Debug)]
pub struct PlanStream {
    found: Ordered<DataWork>,
    index: Arc<DeleteIndex>,
    /// The plan of a server, and the number of its manifests that were returned.
    served: Option<(Arc<Plan>, usize)>,
    /// In a changelog: the delete files of all states.
    changed: Option<Arc<Deletes>>,
    partition: Fields,
    metrics: Metrics,
    report: ScanReport,
    /// Bytes of the remaining manifests.
    stored: std::vec::IntoIter<usize>,
    window: Option<Window>,
    held: Held,
    /// Upper bound of the row ids that the table has assigned, if it assigns any.
    next_row_id: Option<i64>,
    /// The observer, and the time at which planning began.
    observer: Option<(Observer, Instant)>,
}

impl Scan {
    /// Plans the scan.
    pub fn plan(&self) -> Result<Plan> {
        if let Some(plan) = &self.served {
            if let Some(observer) = &self.observer {
                observer.tell(&plan.report, Duration::ZERO);
            }
            return Ok(Plan { metrics: self.metrics.clone(), ..Plan::clone(plan) });
        }
        self.plan_stream()?.into_plan()
    }

    /// Plans the scan: delete files now, data files on demand.
    pub fn plan_stream(&self) -> Result<PlanStream> {
        let began = Instant::now();
        let stream = PlanStream::new(self)?;
        Ok(PlanStream { observer: self.observer.clone().map(|observer| (observer, began)), ..stream })
    }
}

impl PlanStream {
    pub(super) fn new(scan: &Scan) -> Result<Self> {
        let (filter, named) = scan.bound_filter()?;
        let pruner = Arc::new(Pruner::new(scan, filter, named.partition_fields)?);
        let mut report = ScanReport::default();
        if let Some(plan) = &scan.served {
            let index = Arc::new(DeleteIndex::new(scan.schema.clone(), &scan.limits));
            let none = Planned { data: Vec::new(), index, equality_ids: BTreeSet::new(), changed: None };
            let stream = none.stream(scan, pruner, plan.report.clone(), scan.limits.held());
            return Ok(Self { partition: plan.partition.clone(), served: Some((plan.clone(), 0)), ..stream });
        }
        if let Some(changes) = scan.changes.as_ref().filter(|changes| changes.is_changelog()) {
            let mut held = scan.limits.held();
            let steps = changelog::steps(changes, &pruner, scan, &mut report, &mut held)?;
            report.count_kinds(&steps.deletes)?;
            let index = Arc::new(DeleteIndex::new(scan.schema.clone(), &scan.limits));
            let of_steps =
                Planned { data: steps.items, index, equality_ids: steps.equality_ids, changed: Some(steps.deletes) };
            return Ok(of_steps.stream(scan, pruner, report, held));
        }
        let manifests = match &scan.changes {
            Some(changes) => Arc::new(incremental::manifests(changes, &pruner, scan)?),
            None => pruner.list(scan)?.0,
        };
        let of = |content| manifests.iter().filter(move |manifest| manifest.content == content);
        let deletes = pruner.manifests(of(ManifestContent::Deletes))?;
        report.delete_manifests(of(ManifestContent::Deletes).count(), deletes.len());
        let data = pruner.manifests(of(ManifestContent::Data))?;
        report.data_manifests(of(ManifestContent::Data).count(), data.len());

        let mut held = scan.limits.held();
        let index = Arc::new(index(scan, &pruner, deletes, &mut report, &mut held)?);
        report.count_kinds(index.files())?;
        let equality_ids = index.equality_ids().collect();
        let data = data.into_iter().map(DataItem::from).collect();
        Ok(Planned { data, index, equality_ids, changed: None }.stream(scan, pruner, report, held))
    }

    /// Counts so far.
    pub fn report(&self) -> &ScanReport {
        &self.report
    }

    /// Delete files that may apply; data files refer to them by index.
    pub fn deletes(&self) -> &Deletes {
        let served = self.served.as_ref().map(|(plan, _)| &*plan.deletes);
        self.changed.as_deref().or(served).unwrap_or_else(|| self.index.files())
    }

    /// Number of delete files that may apply to more than one data file.
    pub(super) fn shared_deletes(&self) -> usize {
        match (&self.changed, &self.served) {
            (None, None) => self.index.shared_len(),
            _ => self.deletes().len(),
        }
    }

    /// Whether data files are changes of a changelog.
    pub(super) fn is_changelog(&self) -> bool {
        self.changed.is_some()
    }

    /// Partition fields of all specs seen so far.
    pub(super) fn partition(&self) -> &Fields {
        &self.partition
    }

    /// Metrics that the scan asked for.
    pub(super) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    fn tell(&mut self) {
        if let Some((observer, began)) = self.observer.take() {
            observer.tell(&self.report, began.elapsed());
        }
    }

    pub(super) fn into_plan(mut self) -> Result<Plan> {
        let mut manifests = Vec::new();
        while let Some(manifest) = self.next().transpose()? {
            self.held.keep(manifest.memory())?;
            manifests.push(manifest);
        }
        let is_changelog = self.is_changelog();
        // A changelog has files of several snapshots, and a file that was added and removed occurs twice.
        if !is_changelog {
            twice::check_entries(&manifests)?;
            self.next_row_id.map_or(Ok(()), |next| twice::check_row_ids(&manifests, next))?;
        }
        // The index is not needed after the last manifest.
        drop(self.found);
        let deletes = match (self.changed, Arc::try_unwrap(self.index)) {
            (Some(changed), _) => changed,
            (None, Ok(index)) => Arc::new(index.into_files()),
            (None, Err(shared)) => Arc::new(shared.files().clone()),
        };
        let (partition, metrics, report) = (self.partition, self.metrics, self.report);
        Ok(Plan { manifests, deletes, partition, metrics, report, is_changelog })
    }
}

/// Data manifests, and the deletes that apply to them.
struct Planned {
    data: Vec<DataItem>,
    index: Arc<DeleteIndex>,
    equality_ids: BTreeSet<i32>,
    changed: Option<Arc<Deletes>>,
}

impl Planned {
    fn stream(self, scan: &Scan, pruner: Arc<Pruner>, report: ScanReport, held: Held) -> PlanStream {
        let Self { data, index, equality_ids, changed } = self;
        // Filtered fields and fields of equality deletes, in addition to what the caller requested.
        let ids: BTreeSet<i32> = pruner.filtered_ids().iter().copied().chain(equality_ids).collect();
        let metrics = if ids.is_empty() { scan.metrics.clone() } else { scan.metrics.union(&needed(scan, ids)) };
        let partition = pruner.partition_fields(data.iter().map(|item| &item.manifest));
        let remote = data.first().is_some_and(|item| scan.storage.is_remote(&item.manifest.manifest_path));
        let stored = stored(data.iter().map(|item| &item.manifest)).into_iter();
        let appends = scan.changes.clone().filter(|changes| !changes.is_changelog());
        let metadata = &scan.metadata;
        let work = DataWork { pruner, index: index.clone(), metrics, changes: appends };
        PlanStream {
            found: Ordered::new(Arc::new(work), data, remote),
            index,
            served: None,
            changed,
            partition,
            metrics: scan.metrics.clone(),
            report,
            stored,
            window: scan.batch.map(Window::new),
            held,
            next_row_id: (metadata.format_version() >= FormatVersion::V3).then(|| metadata.next_row_id()),
            observer: None,
        }
    }
}

impl Iterator for PlanStream {
    type Item = Result<PlannedManifest>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some((plan, next)) = &mut self.served {
            let found = plan.manifests.get(*next).cloned();
            *next += 1;
            if found.is_none() {
                self.tell();
            }
            return found.map(Ok);
        }
        loop {
            match self.found.next() {
                None => {
                    self.tell();
                    return None;
                }
                Some(Err(error)) => return Some(Err(error)),
                Some(Ok((manifest, counts))) => {
                    self.held.read(self.stored.next().unwrap_or_default());
                    let kept = match &mut self.window {
                        Some(window) => window.keep(manifest, counts),
                        None => Ok((manifest, counts)),
                    };
                    let (manifest, counts) = match kept {
                        Err(error) => return Some(Err(error)),
                        Ok(kept) => kept,
                    };
                    self.report.add_data(&counts);
                    if !manifest.entries.is_empty() {
                        return Some(Ok(manifest));
                    }
                }
            }
        }
    }
}

/// Counts and bounds of these fields; NaN counts only for floats.
fn needed(scan: &Scan, ids: BTreeSet<i32>) -> Metrics {
    let is_float = |id: &i32| {
        let ty = scan.schema.find_field(*id).and_then(|field| field.ty.as_primitive());
        matches!(ty, Some(PrimitiveType::Float | PrimitiveType::Double))
    };
    let floats: Vec<i32> = ids.iter().copied().filter(is_float).collect();
    let nan_value_counts = if floats.is_empty() { FieldIds::None } else { FieldIds::only(floats) };
    Metrics { nan_value_counts, ..Metrics::for_filter(ids) }
}

fn index(
    scan: &Scan,
    pruner: &Arc<Pruner>,
    manifests: Vec<ManifestFile>,
    report: &mut ScanReport,
    held: &mut Held,
) -> Result<DeleteIndex> {
    let mut index = DeleteIndex::new(scan.schema.clone(), &scan.limits);
    // Manifests of one table are in one storage, so the first one decides.
    let remote = manifests.first().is_some_and(|manifest| scan.storage.is_remote(&manifest.manifest_path));
    let stored = stored(manifests.iter());
    let manifests = manifests.into_iter().map(|manifest| DeleteItem { manifest, live_only: true }).collect();
    for (read, stored) in Ordered::new(Arc::new(DeleteWork(pruner.clone())), manifests, remote).zip(stored) {
        let (spec, entries, counts) = read?;
        held.read(stored);
        report.add_deletes(&counts);
        held.keep(entries.memory())?;
        index.add(&spec, entries)?;
    }
    index.finish()?;
    held.keep(index.files().len().saturating_mul(size_of::<u32>()))?;
    Ok(index)
}
