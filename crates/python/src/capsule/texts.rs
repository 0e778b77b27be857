//! Rejects text that is not UTF-8 before any Rust code reads it.
//!
//! The arrow crates assume that text from the C data interface is UTF-8. File writers check the text that they write
//! themselves, and name the row in the whole input; all other code that imports text calls this module.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType};

/// Rejects a batch with text that is not UTF-8, at any depth.
pub(crate) fn check_batch(batch: &RecordBatch) -> Result<(), ArrowError> {
    let schema = batch.schema();
    schema.fields().iter().zip(batch.columns()).try_for_each(|(field, column)| check(column, field.name()))
}

/// Rejects an array with text that is not UTF-8, at any depth; `path` is its name.
pub(crate) fn check(array: &ArrayRef, path: &str) -> Result<(), ArrowError> {
    match array.data_type() {
        DataType::Struct(fields) => {
            let children = fields.iter().zip(array.as_struct().columns());
            children.into_iter().try_for_each(|(field, child)| check(child, &joined(path, field.name())))
        }
        DataType::List(child) => {
            let list = array.as_list::<i32>();
            check(&used(list.values(), list.value_offsets()), &joined(path, child.name()))
        }
        DataType::LargeList(child) => {
            let list = array.as_list::<i64>();
            check(&used(list.values(), list.value_offsets()), &joined(path, child.name()))
        }
        DataType::FixedSizeList(child, _) => check(array.as_fixed_size_list().values(), &joined(path, child.name())),
        DataType::Map(..) => {
            let map = array.as_map();
            check(&used(map.keys(), map.value_offsets()), &joined(path, "key"))?;
            check(&used(map.values(), map.value_offsets()), &joined(path, "value"))
        }
        _ => icefield_table::write::check_text(array).map_err(|fault| {
            let column = if path.is_empty() { String::new() } else { format!("column {path}: ") };
            ArrowError::InvalidArgumentError(format!("{column}{fault}"))
        }),
    }
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// The elements that belong to the lists of this slice.
fn used<O: arrow_array::OffsetSizeTrait>(values: &ArrayRef, offsets: &[O]) -> ArrayRef {
    match (offsets.first(), offsets.last()) {
        (Some(first), Some(last)) => values.slice(first.as_usize(), last.as_usize() - first.as_usize()),
        _ => values.slice(0, 0),
    }
}
