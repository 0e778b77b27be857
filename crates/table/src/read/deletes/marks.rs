//! The metadata column `_deleted`: if it is selected, deleted rows are returned and marked.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};
use icefield_format::puffin::DeletionVector;
use icefield_format::types::arrow::FIELD_ID_KEY;
use icefield_format::types::reserved::DELETED;

use super::part::PartDeletes;
use crate::error::{Error, Result};
use crate::file::Filter;
use crate::file::leaves::{count, pick};
use crate::read::columns::Rules;
use crate::stream::BatchChange;

/// Marks the deleted rows of a file.
pub struct Marks {
    positions: Option<(Arc<DeletionVector>, usize)>,
    live: Option<Filter>,
    /// Index of the marks' leaf, after the leaves of the file.
    leaf: usize,
}

impl Marks {
    /// `fields` are the fields to read from the file, with the row position last. The marks are appended as one more
    /// field.
    pub fn new(deletes: &PartDeletes, rules: &Rules<'_>, fields: &mut Fields) -> Result<Self> {
        let leaf = count(fields);
        let positions = deletes.positions.clone().map(|positions| (positions, leaf.saturating_sub(1)));
        let live = Filter::all(deletes.tests(rules, fields)?);
        *fields = fields.iter().cloned().chain([field()]).collect();
        Ok(Self { positions, live, leaf })
    }

    /// The leaves to read from the file for some leaves, and the change that gives batches exactly those leaves.
    pub fn read(self: &Arc<Self>, leaves: &[usize]) -> (Vec<usize>, BatchChange) {
        if !leaves.contains(&self.leaf) {
            return (leaves.to_vec(), Arc::new(Ok));
        }
        let wanted: Vec<usize> = leaves.iter().copied().filter(|leaf| *leaf != self.leaf).collect();
        let mut read = wanted.clone();
        read.extend(self.positions.iter().map(|(_, leaf)| leaf));
        read.extend(self.live.iter().flat_map(|live| &live.leaves));
        read.sort_unstable();
        read.dedup();
        let (own, of_batch) = (self.clone(), read.clone());
        let change = move |batch: RecordBatch| {
            let marks: ArrayRef = Arc::new(own.of(&batch, &of_batch)?);
            let rest = pick(&batch, &of_batch, &wanted).map_err(internal)?;
            let fields: Fields = rest.schema_ref().fields().iter().cloned().chain([field()]).collect();
            let columns = rest.columns().iter().cloned().chain([marks]).collect();
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options).map_err(internal)
        };
        (read, Arc::new(change))
    }

    /// Adds marks to the input of a filter that tests them.
    pub fn filter(self: &Arc<Self>, filter: Filter) -> Filter {
        let (leaves, with_marks) = self.read(&filter.leaves);
        Filter { leaves, test: Arc::new(move |batch| (filter.test)(&with_marks(batch.clone())?)) }
    }

    /// A filter that keeps the deleted rows.
    pub fn deleted(self: Arc<Self>) -> Filter {
        let (mut leaves, _) = self.read(&[self.leaf]);
        leaves.sort_unstable();
        let read = leaves.clone();
        Filter { leaves, test: Arc::new(move |batch| self.of(batch, &read)) }
    }

    /// Which rows of a batch with the leaves `read` are deleted.
    fn of(&self, batch: &RecordBatch, read: &[usize]) -> Result<BooleanArray> {
        let mut deleted = match &self.positions {
            None => BooleanBuffer::new_unset(batch.num_rows()),
            Some((positions, leaf)) => {
                let numbers = pick(batch, read, &[*leaf]).map_err(internal)?;
                let numbers = numbers.columns().first().and_then(|column| column.as_primitive_opt::<Int64Type>());
                let numbers = numbers.ok_or_else(|| Error::Internal("rows without their positions".to_owned()))?;
                among(positions, numbers.values())
            }
        };
        if let Some(live) = &self.live {
            let kept = (live.test)(&pick(batch, read, &live.leaves).map_err(internal)?)?;
            deleted = &deleted | &!kept.values();
        }
        Ok(BooleanArray::new(deleted, None))
    }
}

/// A filter for the rows that must be deleted, if positions alone do not decide it.
pub fn test_deleted(part: &PartDeletes, rules: &Rules<'_>, fields: &Fields) -> Result<Option<Filter>> {
    let Some(by) = part.deleted_by.as_ref().filter(|by| !by.equality.is_empty()) else { return Ok(None) };
    let marks = Arc::new(Marks::new(by, rules, &mut fields.clone())?);
    Ok(Some(marks.deleted()))
}

/// Which of some ascending positions are deleted.
fn among(deleted: &DeletionVector, positions: &[i64]) -> BooleanBuffer {
    let number = |position: Option<&i64>| position.and_then(|position| u64::try_from(*position).ok()).unwrap_or(0);
    let (first, last) = (number(positions.first()), number(positions.last()));
    let mut ahead = deleted.positions_in(first..last.saturating_add(1)).peekable();
    let mut marks = BooleanBufferBuilder::new(positions.len());
    for position in positions {
        let position = number(Some(position));
        while ahead.next_if(|one| *one < position).is_some() {}
        marks.append(ahead.peek() == Some(&position));
    }
    marks.finish()
}

fn field() -> FieldRef {
    let mut field = Field::new(DELETED.name, DataType::Boolean, false);
    field.metadata_mut().insert(FIELD_ID_KEY, DELETED.id.to_string());
    Arc::new(field)
}

fn internal(error: arrow_schema::ArrowError) -> Error {
    Error::Internal(error.to_string())
}
