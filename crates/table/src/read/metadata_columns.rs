//! Metadata columns ("Reserved Field IDs"): those that are the same for all rows of a file, or part of one.
//!
//! In a changelog `_change_type` is `INSERT` or `DELETE`, `_change_ordinal` the place of the snapshot in the changelog, from 0,
//! and `_commit_snapshot_id` the snapshot.

use icefield_format::types::reserved::{CHANGE_ORDINAL, CHANGE_TYPE, COMMIT_SNAPSHOT_ID};
use icefield_format::value::Value;

use crate::plan::part::FilePart;

/// The value of a metadata column in all rows of a part; `None` for other columns.
pub fn constant(part: &FilePart, id: i32) -> Option<Option<Value>> {
    let change = part.change.as_ref()?;
    let value = match id {
        _ if id == CHANGE_TYPE.id => Value::String(change.change_type.as_str().into()),
        _ if id == CHANGE_ORDINAL.id => Value::Int(change.ordinal),
        _ if id == COMMIT_SNAPSHOT_ID.id => Value::Long(change.snapshot_id),
        _ => return None,
    };
    Some(Some(value))
}
