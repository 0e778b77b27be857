//! Scan planning ("Scan Planning"): snapshot, manifests, pruned files with their deletes, tasks.
//!
//! A [`Scan`] is a request for rows. [`Scan::plan_stream`] reads the manifest list, prunes manifests by partition
//! summaries, reads all delete manifests, and then returns data files manifest by manifest in list order. Data
//! manifests are decoded into columns in parallel, or taken from the [cache](crate::snapshot::cache); files are
//! pruned by partition and metrics and linked to their deletes. [`Scan::plan`] collects the stream. No object is
//! created per file: a [`Plan`] holds the columns of the manifests, and [`tasks`] and [`engine`] turn them into tasks or
//! Arrow tables.
//!
//! Memory: a plan takes the memory of its files. A stream takes the memory of the delete files and of data files in
//! flight, which [`pipeline`] bounds. The cache comes on top. [`Limits::operation_memory`] bounds a plan and the
//! delete files.

pub mod by_metadata;
pub mod changes;
pub mod deletes;
pub mod engine;
mod field_metrics;
pub mod incremental;
pub mod pipeline;
mod planned;
pub mod projection;
pub mod prune;
pub mod report;
mod served;
mod stream;
pub mod tasks;
mod twice;

use std::sync::Arc;

use icefield_format::Limits;
use icefield_format::expr::{Expr, Expression};
use icefield_format::manifest::{FieldIds, Metrics};
use icefield_format::metadata::{MAIN_BRANCH, Snapshot, TableMetadata};
use icefield_format::nearest::{hint, listed};
use icefield_format::types::Schema;
use icefield_format::value::calendar::format_micros;

use crate::error::{Error, Result};
use crate::limits::limits;
use crate::storage::Storage;
pub use planned::{Plan, PlannedManifest};
pub use report::{Observer, ScanReport};
pub use stream::PlanStream;

/// A request for rows of a table.
#[derive(Debug, Clone)]
pub struct Scan {
    /// Where the files are.
    pub storage: Storage,
    /// The table.
    pub metadata: Arc<TableMetadata>,
    /// The snapshot; `None` for an empty table.
    pub snapshot: Option<Arc<Snapshot>>,
    /// The schema that names are resolved in and that rows have.
    pub schema: Arc<Schema>,
    /// Selects rows.
    pub filter: Expr,
    /// Whether names are case-sensitive.
    pub case_sensitive: bool,
    /// Metrics to keep in the plan, in addition to those that planning needs.
    pub metrics: Metrics,
    /// Limits on what is read.
    pub limits: Limits,
    /// Whether the [cache](crate::snapshot::cache) of this process may be used.
    pub cached: bool,
    /// Whether to link deletes that delete no matching row, because the change rewrites the other rows of the files
    /// too.
    pub all_deletes: bool,
    /// Whether to leave out deleted rows even if `_deleted` is selected or in the filter: changes concern live rows.
    pub only_live_rows: bool,
    /// The files that a server planned, which are read instead of those of the manifests;
    /// see [`Scan::planned_by_server`].
    pub served: Option<Arc<Plan>>,
    /// Restricts the scan to the changes of some snapshots; see [`incremental`].
    pub changes: Option<Arc<changes::Changes>>,
    /// Restricts an append scan to a [micro-batch](incremental::micro_batch): from an offset up to another.
    pub batch: Option<(incremental::window::Offset, Option<incremental::window::Offset>)>,
    /// Told of each plan when it is finished.
    pub observer: Option<Observer>,
}

/// Chooses the snapshot of a scan; at most one field is set.
#[derive(Debug, Clone, Default)]
pub struct At {
    /// By id.
    pub snapshot_id: Option<i64>,
    /// The snapshot that was current at this time, in milliseconds.
    pub as_of_ms: Option<i64>,
    /// By the name of a branch or tag.
    pub reference: Option<String>,
}

impl Scan {
    /// A scan of all rows of a snapshot.
    ///
    /// The current snapshot and branches use the current schema's names; a snapshot by id, time or tag uses its own
    /// schema's.
    pub fn new(storage: Storage, metadata: Arc<TableMetadata>, at: &At) -> Result<Self> {
        let (snapshot, own_schema) = resolve(&metadata, at)?;
        let of_snapshot = snapshot.as_ref().and_then(|snapshot| snapshot.schema_id).filter(|_| own_schema);
        let schema =
            of_snapshot.and_then(|id| metadata.schema(id)).unwrap_or_else(|| metadata.current_schema()).clone();
        Ok(Self {
            storage,
            metadata,
            snapshot,
            schema,
            filter: Expression::True,
            case_sensitive: true,
            metrics: Metrics::none(),
            limits: limits()?,
            cached: true,
            served: None,
            changes: None,
            batch: None,
            all_deletes: false,
            only_live_rows: false,
            observer: None,
        })
    }

    /// All metrics of some columns; nested ones are named with dots.
    pub fn metrics_of(&self, columns: &[String]) -> Result<Metrics> {
        let id = |name: &String| self.schema.named(name, self.case_sensitive).map(|field| field.id);
        let ids = columns.iter().map(id).collect::<Result<Vec<_>, _>>()?;
        Ok(Metrics { column_sizes: FieldIds::only(ids.iter().copied()), ..Metrics::for_filter(ids) })
    }
}

/// Formats milliseconds from the epoch for people.
fn iso(milliseconds: i64) -> String {
    milliseconds.checked_mul(1000).map_or_else(|| format!("{milliseconds} ms"), |micros| format_micros(micros) + "Z")
}

fn no_snapshot(metadata: &TableMetadata, id: i64) -> String {
    let mut ids: Vec<String> = metadata.snapshots().iter().rev().map(|known| known.snapshot_id.to_string()).collect();
    if ids.is_empty() {
        ids.push("none".to_owned());
    }
    format!("the table has no snapshot {id} (there are, newest first: {})", listed(ids.iter().map(String::as_str)))
}

/// The snapshot, and whether its own schema names the columns.
pub(crate) fn resolve(metadata: &TableMetadata, at: &At) -> Result<(Option<Arc<Snapshot>>, bool)> {
    let given = [at.snapshot_id.is_some(), at.as_of_ms.is_some(), at.reference.is_some()];
    if given.iter().filter(|given| **given).count() > 1 {
        return Err(Error::invalid("give one of snapshot id, timestamp and reference, not several"));
    }
    let by_id = |id: i64| metadata.snapshot(id).cloned().ok_or_else(|| Error::invalid(no_snapshot(metadata, id)));
    if let Some(name) = &at.reference {
        // Some writers set the current snapshot without its branch.
        if name == MAIN_BRANCH
            && metadata.reference(name).is_none()
            && let Some(current) = metadata.current_snapshot()
        {
            return Ok((Some(current.clone()), false));
        }
        let found = metadata.reference(name);
        let found = found.ok_or_else(|| {
            let names = || metadata.refs().keys().map(String::as_str);
            let list = listed(names());
            Error::invalid(format!(
                "the table has no branch or tag {name:?}{} (there are: {list})",
                hint(name, names())
            ))
        })?;
        return Ok((Some(by_id(found.snapshot_id)?), !found.is_branch()));
    }
    if let Some(time) = at.as_of_ms {
        let id = metadata.snapshot_id_as_of(time);
        let id = id.ok_or_else(|| {
            let first = metadata.snapshot_log().first().map(|entry| entry.timestamp_ms);
            let since = match first {
                Some(first) => format!("its first snapshot is of {}", iso(first)),
                None => "it has none yet".to_owned(),
            };
            Error::invalid(format!("the table had no snapshot at {}: {since}", iso(time)))
        })?;
        return Ok((Some(by_id(id)?), true));
    }
    match at.snapshot_id {
        Some(id) => Ok((Some(by_id(id)?), true)),
        None => Ok((metadata.current_snapshot().cloned(), false)),
    }
}
