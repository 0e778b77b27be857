//! Structs, lists and maps.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, ListArray, MapArray, StructArray};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, FieldRef, Fields};

use super::ColumnReader;
use super::presence::{Head, Slots};
use super::text::sum_lengths;
use crate::error::{Error, Result};
use crate::rle::IntReader;
use crate::stream::Context;
use crate::types::{ArrowOptions, TypeDescription};

/// `struct`
#[derive(Debug)]
pub(super) struct StructColumn {
    head: Head,
    children: Vec<Box<dyn ColumnReader>>,
    fields: Fields,
}

impl StructColumn {
    pub(super) fn new(
        head: Head,
        children: Vec<Box<dyn ColumnReader>>,
        node: &TypeDescription,
        options: &ArrowOptions,
    ) -> Self {
        let fields = match node.arrow_type(options) {
            DataType::Struct(fields) => fields,
            _ => Fields::empty(),
        };
        Self { head, children, fields }
    }
}

impl ColumnReader for StructColumn {
    fn read(&mut self, slots: Slots<'_>, context: &mut Context) -> Result<ArrayRef> {
        let validity = self.head.validity(slots, context)?;
        let inner = Slots { count: slots.count, mask: validity.valid.as_ref() };
        let arrays = self.children.iter_mut().map(|child| child.read(inner, context)).collect::<Result<Vec<_>>>()?;
        let nulls = validity.nulls();
        Ok(Arc::new(StructArray::try_new_with_length(self.fields.clone(), arrays, nulls, slots.count)?))
    }

    fn skip(&mut self, rows: usize, context: &mut Context) -> Result<()> {
        let present = self.head.skip(rows, context)?;
        self.children.iter_mut().try_for_each(|child| child.skip(present, context))
    }

    fn seek(&mut self, group: usize, context: &mut Context) -> Result<()> {
        self.head.seek(group, context, |_, _| Ok(()))?;
        self.children.iter_mut().try_for_each(|child| child.seek(group, context))
    }
}

/// The Arrow type that a list column is read as.
#[derive(Debug)]
enum NestedForm {
    List(FieldRef),
    Map(FieldRef, Fields),
}

/// `array`, `map`
#[derive(Debug)]
pub(super) struct ListColumn {
    head: Head,
    lengths: IntReader,
    children: Vec<Box<dyn ColumnReader>>,
    form: Option<NestedForm>,
    scratch: Vec<i64>,
}

impl ListColumn {
    pub(super) fn new(
        head: Head,
        lengths: IntReader,
        children: Vec<Box<dyn ColumnReader>>,
        node: &TypeDescription,
        options: &ArrowOptions,
    ) -> Self {
        let form = match node.arrow_type(options) {
            DataType::List(field) => Some(NestedForm::List(field)),
            DataType::Map(entries, _) => match entries.data_type() {
                DataType::Struct(fields) => Some(NestedForm::Map(Arc::clone(&entries), fields.clone())),
                _ => None,
            },
            _ => None,
        };
        Self { head, lengths, children, form, scratch: Vec::new() }
    }

    fn offsets(&self, limit: usize) -> Result<Vec<i32>> {
        let limit = limit.min(i32::MAX as usize) as u64;
        let mut offsets = Vec::with_capacity(self.scratch.len() + 1);
        offsets.push(0);
        let mut end = 0u64;
        for length in &self.scratch {
            end = end.saturating_add(*length as u64);
            offsets.push(end as i32);
            if end > limit {
                let place = format!("column {} LENGTH", self.head.column);
                return Err(Error::limit(format!("{place}: more than {limit} elements in one batch")));
            }
        }
        Ok(offsets)
    }
}

impl ColumnReader for ListColumn {
    fn read(&mut self, slots: Slots<'_>, context: &mut Context) -> Result<ArrayRef> {
        let validity = self.head.validity(slots, context)?;
        self.lengths.read_vec(validity.present, &mut self.scratch, context)?;
        if validity.valid.is_some() {
            self.scratch = validity.spread(std::mem::take(&mut self.scratch), 0);
        }
        let offsets = self.offsets(context.batch_values)?;
        let total = offsets.last().copied().unwrap_or_default() as usize;
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        let inner = Slots::all(total);
        let mut arrays =
            self.children.iter_mut().map(|child| child.read(inner, context)).collect::<Result<Vec<_>>>()?;
        let nulls = validity.nulls();
        match (&self.form, arrays.len()) {
            (Some(NestedForm::List(field)), 1) => {
                let values = arrays.swap_remove(0);
                Ok(Arc::new(ListArray::try_new(Arc::clone(field), offsets, values, nulls)?))
            }
            (Some(NestedForm::Map(field, fields)), 2) => {
                if arrays.first().is_some_and(|keys| keys.null_count() > 0) {
                    return Err(Error::value(format!("column {}: a map with a null key", self.head.column)));
                }
                let entries = StructArray::try_new(fields.clone(), arrays, None)?;
                Ok(Arc::new(MapArray::try_new(Arc::clone(field), offsets, entries, nulls, false)?))
            }
            _ => Err(Error::corrupt(format!("column {}", self.head.column), "a list or map without its children")),
        }
    }

    fn skip(&mut self, rows: usize, context: &mut Context) -> Result<()> {
        let present = self.head.skip(rows, context)?;
        let inner = sum_lengths(&mut self.lengths, present, &mut self.scratch, context)?;
        self.children.iter_mut().try_for_each(|child| child.skip(inner, context))
    }

    fn seek(&mut self, group: usize, context: &mut Context) -> Result<()> {
        self.head.seek(group, context, |positions, context| self.lengths.seek(positions, context))?;
        self.children.iter_mut().try_for_each(|child| child.seek(group, context))
    }
}
