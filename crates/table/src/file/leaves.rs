//! Leaves of nested columns, numbered depth first: which columns a batch of some leaves has. A struct without fields
//! counts as a leaf, because it has nulls.

use std::slice::Iter;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray, MapArray, RecordBatch, RecordBatchOptions, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, DataType, FieldRef, Fields, Schema};

/// Number of leaves of the columns.
pub fn count(fields: &Fields) -> usize {
    let mut next = 0;
    keep_leaves(fields, &[], &mut next);
    next
}

/// The columns of a batch with some leaves: those of the file, without the parts that are not read.
pub fn projected(fields: &Fields, leaves: &[usize]) -> Fields {
    keep_leaves(fields, leaves, &mut 0)
}

/// Advances past the leaves of a type.
pub fn skip(ty: &DataType, next: &mut usize) {
    match ty {
        DataType::Struct(children) if !children.is_empty() => {
            children.iter().for_each(|child| skip(child.data_type(), next))
        }
        DataType::List(element) => skip(element.data_type(), next),
        DataType::Map(entries, _) => skip(entries.data_type(), next),
        _ => *next += 1,
    }
}

fn keep_leaves(fields: &Fields, leaves: &[usize], next: &mut usize) -> Fields {
    fields.iter().filter_map(|field| keep(field, leaves, next)).collect()
}

fn keep(field: &FieldRef, leaves: &[usize], next: &mut usize) -> Option<FieldRef> {
    let ty = match field.data_type() {
        DataType::Struct(children) if !children.is_empty() => {
            let kept = keep_leaves(children, leaves, next);
            if kept.is_empty() {
                return None;
            }
            DataType::Struct(kept)
        }
        DataType::List(element) => DataType::List(keep(element, leaves, next)?),
        DataType::Map(entries, sorted) => DataType::Map(keep(entries, leaves, next)?, *sorted),
        other => {
            let wanted = leaves.contains(next);
            *next += 1;
            if !wanted {
                return None;
            }
            other.clone()
        }
    };
    Some(Arc::new(field.as_ref().clone().with_data_type(ty)))
}

/// The columns with the `wanted` leaves of a batch that has the leaves `read`, ascending.
pub fn pick(batch: &RecordBatch, read: &[usize], wanted: &[usize]) -> Result<RecordBatch, ArrowError> {
    let mut read = read.iter();
    let (fields, columns) = pick_columns(batch.schema_ref().fields(), batch.columns(), &mut read, wanted, None)?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
}

type Columns = (Vec<FieldRef>, Vec<ArrayRef>);

fn pick_columns(
    fields: &Fields,
    columns: &[ArrayRef],
    read: &mut Iter<'_, usize>,
    wanted: &[usize],
    outer: Option<&NullBuffer>,
) -> Result<Columns, ArrowError> {
    let picked = fields.iter().zip(columns).map(|(field, column)| pick_column(field, column, read, wanted, outer));
    Ok(picked.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().unzip())
}

fn pick_column(
    field: &FieldRef,
    column: &ArrayRef,
    read: &mut Iter<'_, usize>,
    wanted: &[usize],
    outer: Option<&NullBuffer>,
) -> Result<Option<(FieldRef, ArrayRef)>, ArrowError> {
    let nulls = column.nulls().cloned();
    let picked: ArrayRef = match field.data_type() {
        DataType::Struct(children) if !children.is_empty() => {
            // Required fields are null where a struct around them is, in files.
            let nulls = NullBuffer::union(outer, nulls.as_ref());
            let (fields, columns) = pick_columns(children, column.as_struct().columns(), read, wanted, nulls.as_ref())?;
            if fields.is_empty() {
                return Ok(None);
            }
            Arc::new(StructArray::try_new_with_length(fields.into(), columns, nulls, column.len())?)
        }
        DataType::List(element) => {
            let list = column.as_list::<i32>();
            let Some((element, values)) = pick_column(element, list.values(), read, wanted, None)? else {
                return Ok(None);
            };
            Arc::new(ListArray::try_new(element, list.offsets().clone(), values, nulls)?)
        }
        DataType::Map(entries, sorted) => {
            let map = column.as_map();
            let all: ArrayRef = Arc::new(map.entries().clone());
            let Some((entries, picked)) = pick_column(entries, &all, read, wanted, None)? else { return Ok(None) };
            let picked = picked.as_struct().clone();
            Arc::new(MapArray::try_new(entries, map.offsets().clone(), picked, nulls, *sorted)?)
        }
        _ => {
            let leaf = read.next();
            return Ok(leaf.filter(|leaf| wanted.contains(leaf)).map(|_| (field.clone(), column.clone())));
        }
    };
    Ok(Some((Arc::new(field.as_ref().clone().with_data_type(picked.data_type().clone())), picked)))
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int32Array, Int64Array};
    use arrow_buffer::OffsetBuffer;
    use arrow_schema::Field;

    use super::*;

    fn field(name: &str, ty: DataType) -> FieldRef {
        Arc::new(Field::new(name, ty, true))
    }

    /// `a` (leaf 0), `s` of `x` (1) and a list of `y` (2), `b` (3); three rows.
    fn batch() -> RecordBatch {
        let numbers = |first: i32| -> ArrayRef { Arc::new(Int32Array::from_iter_values(first..first + 3)) };
        let element = field("element", DataType::Int32);
        let list = ListArray::new(element.clone(), OffsetBuffer::from_lengths([1, 0, 2]), numbers(20), None);
        let children: Fields = vec![field("x", DataType::Int32), field("y", DataType::List(element))].into();
        let nulls = NullBuffer::from(vec![true, false, true]);
        let s = StructArray::new(children.clone(), vec![numbers(10), Arc::new(list)], Some(nulls));
        let fields =
            vec![field("a", DataType::Int32), field("s", DataType::Struct(children)), field("b", DataType::Int64)];
        let b: ArrayRef = Arc::new(Int64Array::from_iter_values(30..33));
        RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![numbers(0), Arc::new(s), b]).unwrap()
    }

    #[test]
    fn what_is_picked_has_the_columns_of_its_leaves() {
        let all = batch();
        let fields = all.schema_ref().fields();
        assert_eq!(count(fields), 4);
        for wanted in [vec![], vec![0], vec![1], vec![2], vec![1, 2], vec![0, 3], vec![0, 1, 2, 3]] {
            let picked = pick(&all, &[0, 1, 2, 3], &wanted).unwrap();
            assert_eq!(picked.schema_ref().fields(), &projected(fields, &wanted), "{wanted:?}");
            assert_eq!(picked.num_rows(), 3);
            // Picking in two steps gives the same result.
            let read: Vec<usize> = [&wanted[..], &[2]]
                .concat()
                .into_iter()
                .collect::<std::collections::BTreeSet<_>>()
                .into_iter()
                .collect();
            let some = pick(&all, &[0, 1, 2, 3], &read).unwrap();
            assert_eq!(pick(&some, &read, &wanted).unwrap(), picked, "{wanted:?}");
        }
        let lists = pick(&all, &[0, 1, 2, 3], &[2]).unwrap();
        assert_eq!(lists.column(0).as_struct().column(0), all.column(1).as_struct().column(1));
        assert_eq!(lists.column(0).nulls(), all.column(1).nulls());
    }
}
