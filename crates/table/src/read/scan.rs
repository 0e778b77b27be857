//! A scan to rows, in this process: the one path that Python, the tests and engines' tasks ([`task`]) run.
//!
//! Files are read whole and in the order of the plan. A large Parquet file is cut where it is opened, so that all threads
//! have work; a limit reads one file after the other, and no further than it must.
//!
//! [`task`]: super::task

use std::sync::Arc;

use super::task;
use crate::error::Result;
use crate::plan::tasks::ReadTask;
use crate::plan::wanted::Wanted;
use crate::plan::{Plan, Scan};
use crate::stream::BatchStream;

/// The rows of a plan of a scan, file after file, `limit` of them at the most.
pub fn rows(scan: &Scan, plan: &Plan, wanted: &Arc<Wanted>, limit: Option<usize>) -> Result<BatchStream> {
    let parts = scan.parts(plan, &plan.whole_files())?;
    task::rows(ReadTask { wanted: wanted.clone(), parts }, &scan.storage, limit)
}

/// The number of rows of a scan, `limit` at the most: from metadata where they tell, else by reading no more than the
/// filter needs.
pub fn count(scan: &Scan, limit: Option<usize>) -> Result<i64> {
    let most = limit.and_then(|limit| i64::try_from(limit).ok()).unwrap_or(i64::MAX);
    let plan = scan.plan()?;
    let (mut rows, unknown) = plan.known_rows()?;
    if rows >= most || unknown.is_empty() {
        return Ok(rows.min(most));
    }
    let left = limit.map(|limit| limit.saturating_sub(usize::try_from(rows).unwrap_or(usize::MAX)));
    let task = ReadTask { wanted: scan.wanted(Some(&[]))?, parts: scan.parts(&plan, &unknown)? };
    for batch in task::rows(task, &scan.storage, left)? {
        rows = rows.saturating_add(i64::try_from(batch?.num_rows()).unwrap_or(i64::MAX));
    }
    Ok(rows.min(most))
}
