//! Checks that text is UTF-8 ("Column Encodings": `string`, `char`, `varchar`). Arrow requires this too, but not every
//! producer complies.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, UnionArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, FieldRef};

use super::column::Spans;
use crate::error::{Error, Result};
use crate::utf8::is_text;

/// Checks that all text is UTF-8, at any depth. The error names the column and the row, counted from `first_row`.
/// Values of null slots are not checked.
pub(super) fn check(batch: &RecordBatch, first_row: u64) -> Result<()> {
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        if let Some((row, path)) = fault(column, field.name(), &|_| true) {
            let row = first_row.saturating_add(row as u64);
            return Err(Error::value(format!(
                "column {path}: row {row} is not UTF-8: write it as binary, or fix the text"
            )));
        }
    }
    Ok(())
}

/// The first index in an array with invalid text, and the path of its column; `live` says which indices to check.
fn fault(array: &ArrayRef, path: &str, live: &dyn Fn(usize) -> bool) -> Option<(usize, String)> {
    let valid = |place: usize| live(place) && array.is_valid(place);
    match array.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let spans = Spans::new(array)?;
            if spans.all_text() {
                return None;
            }
            let wrong = |place: &usize| valid(*place) && !is_text(spans.value(*place));
            (0..array.len()).find(wrong).map(|place| (place, path.to_owned()))
        }
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            fault(dictionary.values(), path, &|_| true)?;
            let (keys, texts) = (dictionary.normalized_keys(), Spans::new(dictionary.values())?);
            let wrong = |(place, key): &(usize, &usize)| valid(*place) && !is_text(texts.value(**key));
            keys.iter().enumerate().find(wrong).map(|(place, _)| (place, path.to_owned()))
        }
        DataType::Struct(fields) => {
            let children = fields.iter().zip(array.as_struct().columns());
            let faults = children.filter_map(|(field, child)| fault(child, &inner(path, field.name()), &valid));
            faults.min_by_key(|(place, _)| *place)
        }
        DataType::List(field) => {
            let list = array.as_list::<i32>();
            in_list(list.offsets(), field, list.values(), path, &valid)
        }
        DataType::LargeList(field) => {
            let list = array.as_list::<i64>();
            in_list(list.offsets(), field, list.values(), path, &valid)
        }
        DataType::FixedSizeList(field, width) => {
            let width = usize::try_from(*width).ok().filter(|width| *width > 0)?;
            let values = array.as_fixed_size_list().values();
            let found = fault(values, &inner(path, field.name()), &|place| valid(place / width));
            found.map(|(place, path)| (place / width, path))
        }
        DataType::Map(..) => {
            let map = array.as_map();
            let (names, offsets) = (map.entries().fields(), map.offsets());
            let parts = names.iter().zip(map.entries().columns());
            let faults = parts.filter_map(|(field, part)| in_list(offsets, field, part, path, &valid));
            faults.min_by_key(|(place, _)| *place)
        }
        DataType::Union(fields, _) => {
            let union = array.as_union();
            let faults = fields.iter().filter_map(|(id, field)| in_union(union, id, &inner(path, field.name()), live));
            faults.min_by_key(|(place, _)| *place)
        }
        _ => None,
    }
}

/// Finds invalid text in the values of one variant; returns the first row with this value. Values that no row refers to
/// are not checked.
fn in_union(union: &UnionArray, id: i8, path: &str, live: &dyn Fn(usize) -> bool) -> Option<(usize, String)> {
    let values = union.child(id);
    let mut rows: Vec<Option<usize>> = vec![None; values.len()];
    for (row, _) in union.type_ids().iter().enumerate().filter(|(row, other)| **other == id && live(*row)) {
        // Sparse unions have no offsets: each variant has a value for every row.
        let place = union.offsets().map_or(Some(row), |offsets| usize::try_from(*offsets.get(row)?).ok())?;
        rows.get_mut(place)?.get_or_insert(row);
    }
    let row = |place: usize| rows.get(place).copied().flatten();
    let (place, path) = fault(values, path, &|place| row(place).is_some())?;
    Some((row(place)?, path))
}

fn in_list<O: arrow_array::OffsetSizeTrait>(
    offsets: &OffsetBuffer<O>,
    field: &FieldRef,
    values: &ArrayRef,
    path: &str,
    valid: &dyn Fn(usize) -> bool,
) -> Option<(usize, String)> {
    // The list that contains a value is the last one that starts at or before it.
    let row = |place: usize| offsets.partition_point(|offset| offset.as_usize() <= place).checked_sub(1);
    let live = |place: usize| row(place).is_some_and(|row| row + 1 < offsets.len() && valid(row));
    let (place, path) = fault(values, &inner(path, field.name()), &live)?;
    Some((row(place)?, path))
}

fn inner(path: &str, name: &str) -> String {
    format!("{path}.{name}")
}
