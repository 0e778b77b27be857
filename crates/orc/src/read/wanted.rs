//! Selects the stripes that may contain requested rows.

use std::ops::Range;

use super::ReadOptions;
use super::groups::may_match;
use crate::error::Result;
use crate::tail::FileMetadata;

/// The numbers of the stripes that may contain requested rows.
pub(super) fn stripes(file: &FileMetadata, options: &ReadOptions) -> Result<Vec<usize>> {
    options.check(file)?;
    let mut first = 0u64;
    let mut stripes = Vec::new();
    for (index, stripe) in file.footer.stripes.iter().enumerate() {
        let end = first.saturating_add(stripe.number_of_rows.unwrap_or(0));
        let wanted = |rows: &Vec<Range<u64>>| rows.iter().any(|range| range.start < end && range.end > first);
        if end > first && options.rows.as_ref().is_none_or(wanted) {
            stripes.push(index);
        }
        first = end;
    }
    let Some(predicate) = &options.predicate else { return Ok(stripes) };
    if !may_match(file, predicate, &file.file_statistics()?) {
        return Ok(Vec::new());
    }
    let statistics = file.stripe_statistics()?;
    stripes.retain(|index| statistics.get(*index).is_none_or(|own| may_match(file, predicate, &own.col_stats)));
    Ok(stripes)
}
