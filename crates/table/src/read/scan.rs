//! Reads a scan in this process: the one path to rows, used by Python, the tests and engines' tasks ([`task`]).
//!
//! Files are read in plan order. A large Parquet file is split when it is opened, so that all threads have work. With
//! a limit, files are read one after the other and no further than needed.
//!
//! [`task`]: super::task

use std::collections::HashSet;
use std::sync::Arc;

use icefield_format::types::reserved::DELETED;

use super::options::ReadOptions;
use super::task;
use crate::error::Result;
use crate::limits::limits;
use crate::plan::projection::wanted::Wanted;
use crate::plan::tasks::ReadTask;
use crate::plan::{Plan, Scan};
use crate::stream::BatchStream;

/// The rows of a plan, file after file, at most `limit`.
pub fn rows(scan: &Scan, plan: &Plan, wanted: &Arc<Wanted>, limit: Option<usize>) -> Result<BatchStream> {
    rows_with(scan, plan, wanted, limit, &ReadOptions::default())
}

/// As [`rows`], with read options.
pub fn rows_with(
    scan: &Scan,
    plan: &Plan,
    wanted: &Arc<Wanted>,
    limit: Option<usize>,
    options: &ReadOptions,
) -> Result<BatchStream> {
    let parts = scan.parts(plan, &plan.whole_files())?;
    task::rows_with(ReadTask { wanted: wanted.clone(), parts }, &scan.storage, limit, &limits()?, options)
}

/// The number of rows of a scan, at most `limit`; see [`count_wanted`].
pub fn count(scan: &Scan, limit: Option<usize>) -> Result<i64> {
    count_wanted(scan, &*scan.wanted(Some(&[]))?, limit)
}

/// The number of rows of a scan, at most `limit`: from metadata where it is exact, otherwise by reading only what the
/// filter needs.
pub fn count_wanted(scan: &Scan, wanted: &Wanted, limit: Option<usize>) -> Result<i64> {
    let most = limit.and_then(|limit| i64::try_from(limit).ok()).unwrap_or(i64::MAX);
    let plan = scan.plan()?;
    // Metadata counts live rows only.
    let (mut rows, unknown) = if wanted.has_deleted_rows() { (0, plan.whole_files()) } else { plan.known_rows()? };
    if rows >= most || unknown.is_empty() {
        return Ok(rows.min(most));
    }
    let left = limit.map(|limit| limit.saturating_sub(usize::try_from(rows).unwrap_or(usize::MAX)));
    let no_more = wanted.projection.select_ids(&HashSet::from([DELETED.id]))?;
    let counted = Wanted { projection: Arc::new(no_more), ..wanted.clone() };
    let task = ReadTask { wanted: Arc::new(counted), parts: scan.parts(&plan, &unknown)? };
    for batch in task::rows(task, &scan.storage, left)? {
        rows = rows.saturating_add(i64::try_from(batch?.num_rows()).unwrap_or(i64::MAX));
    }
    Ok(rows.min(most))
}
