//! Leaves out what two scans of one table have in common.

use std::collections::HashSet;
use std::sync::Arc;

use super::run::Side;
use crate::commit::require_same_table;
use crate::error::Result;
use crate::plan::Scan;
use crate::plan::tasks::ReadTask;
use crate::plan::tasks::part::FilePart;
use crate::read::row_scan::RowScan;
use crate::read::task;

/// The rows of two scans of one table, both in the columns of the right one, without those of files that both read with
/// the same deletes. Returns the sides, and the number of files that are left out of each.
///
/// # Errors
/// Scans of different tables; errors of planning.
pub fn without_common_files(left: &RowScan, right: &RowScan) -> Result<([Side; 2], usize)> {
    let uuid = right.scan().metadata.table_uuid();
    require_same_table(uuid, &left.scan().metadata, "the other side")?;
    // Columns are the same by their ids, whatever their names were.
    let older = Scan { schema: right.scan().schema.clone(), ..left.scan().clone() };
    let wanted = right.wanted();
    let parts = |scan: &Scan| {
        let plan = scan.plan()?;
        scan.parts(&plan, &plan.whole_files())
    };
    let (mut of_left, mut of_right) = (parts(&older)?, parts(right.scan())?);
    let known: HashSet<Identity> = of_left.iter().map(identity).collect();
    let common: HashSet<Identity> = of_right.iter().map(identity).filter(|part| known.contains(part)).collect();
    of_left.retain(|part| !common.contains(&identity(part)));
    of_right.retain(|part| !common.contains(&identity(part)));
    let side = |scan: &Scan, parts: Vec<FilePart>| {
        let task = ReadTask { wanted: Arc::clone(wanted), parts };
        let stream = task::rows_within(task, &scan.storage, None, &scan.limits)?;
        Ok::<_, crate::error::Error>(Side { schema: stream.schema().clone(), batches: Box::new(stream) })
    };
    Ok(([side(&older, of_left)?, side(right.scan(), of_right)?], common.len()))
}

/// A data file with its deletes.
type Identity = (String, Vec<(String, Option<(i64, i64)>)>);

fn identity(part: &FilePart) -> Identity {
    let mut deletes: Vec<_> = part.deletes.iter().map(|delete| (delete.path.clone(), delete.blob)).collect();
    deletes.sort();
    (part.path.clone(), deletes)
}
