//! Unions: one tag per value, and the rows of each variant.
//!
//! Arrow's dense unions have no validity buffer, so a null union is a row of the variant `null` (or, on request, a null
//! of the first variant). Unions with more variants than Arrow allows become a struct of the tag and all variants.

use std::sync::Arc;

use arrow_array::{ArrayRef, NullArray, StructArray, UInt8Array, UnionArray};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use arrow_schema::{DataType, Fields, UnionFields};

use super::ColumnReader;
use super::presence::{Head, Slots, Validity};
use crate::error::{Error, Result};
use crate::rle::ByteReader;
use crate::stream::Context;
use crate::types::{ArrowOptions, TypeDescription};

/// The Arrow type that a union column is read as.
#[derive(Debug)]
enum UnionForm {
    Dense { fields: UnionFields, null_variant: bool },
    Struct(Fields),
}

/// `uniontype`
#[derive(Debug)]
pub(super) struct UnionColumn {
    head: Head,
    tags: ByteReader,
    children: Vec<Box<dyn ColumnReader>>,
    form: UnionForm,
}

impl UnionColumn {
    pub(super) fn new(
        head: Head,
        tags: ByteReader,
        children: Vec<Box<dyn ColumnReader>>,
        node: &TypeDescription,
        options: &ArrowOptions,
    ) -> Self {
        let form = match node.arrow_type(options) {
            DataType::Union(fields, _) => UnionForm::Dense { fields, null_variant: options.null_variant },
            DataType::Struct(fields) => UnionForm::Struct(fields),
            _ => UnionForm::Struct(Fields::empty()),
        };
        Self { head, tags, children, form }
    }

    /// The number of rows of each variant.
    fn counts(&self, tags: &[u8]) -> Result<Vec<usize>> {
        let mut counts = vec![0usize; self.children.len()];
        for tag in tags {
            match counts.get_mut(usize::from(*tag)) {
                Some(count) => *count += 1,
                None => {
                    let message = format!("tag {tag} of a union of {} variants", self.children.len());
                    return Err(self.tags.corrupt(&message));
                }
            }
        }
        Ok(counts)
    }

    fn dense(&mut self, tags: &[u8], validity: &Validity, context: &mut Context) -> Result<ArrayRef> {
        let UnionForm::Dense { fields, null_variant } = &self.form else {
            return Err(Error::corrupt("", "a union without children"));
        };
        let (fields, null_variant) = (fields.clone(), *null_variant);
        if self.children.is_empty() && !null_variant && validity.slots > 0 {
            return Err(Error::unsupported("a union without variants"));
        }
        // A null union is a row of the variant `null`, or of the first variant.
        let null = if null_variant { self.children.len() as u8 } else { 0 };
        let mut next = vec![0i32; self.children.len() + 1];
        let mut type_ids = Vec::with_capacity(validity.slots);
        let mut offsets = Vec::with_capacity(validity.slots);
        let mut first = BooleanBufferBuilder::new(0);
        let mut tags = tags.iter();
        for slot in 0..validity.slots {
            let valid = validity.valid.as_ref().is_none_or(|valid| valid.value(slot));
            let tag = if valid { tags.next().copied().unwrap_or(null) } else { null };
            if tag == 0 {
                first.append(valid);
            }
            type_ids.push(tag as i8);
            if let Some(next) = next.get_mut(usize::from(tag)) {
                offsets.push(*next);
                *next += 1;
            }
        }
        let first: BooleanBuffer = first.finish();
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(next.len());
        for (index, (child, count)) in self.children.iter_mut().zip(&next).enumerate() {
            let mask = (index == 0 && !null_variant && validity.valid.is_some()).then_some(&first);
            arrays.push(child.read(Slots { count: *count as usize, mask }, context)?);
        }
        if null_variant {
            let nulls = next.last().copied().unwrap_or_default();
            arrays.push(Arc::new(NullArray::new(nulls as usize)));
        }
        Ok(Arc::new(UnionArray::try_new(fields, type_ids.into(), Some(offsets.into()), arrays)?))
    }

    fn as_struct(&mut self, tags: Vec<u8>, validity: &Validity, context: &mut Context) -> Result<ArrayRef> {
        let UnionForm::Struct(fields) = &self.form else { return Err(Error::corrupt("", "a union without children")) };
        let fields = fields.clone();
        let tags = validity.spread(tags, 0);
        let mut arrays: Vec<ArrayRef> = vec![Arc::new(UInt8Array::new(tags.clone().into(), validity.nulls()))];
        for (index, child) in self.children.iter_mut().enumerate() {
            let mine = |slot: usize| validity.valid.as_ref().is_none_or(|valid| valid.value(slot));
            let mask = tags.iter().enumerate().map(|(slot, tag)| usize::from(*tag) == index && mine(slot));
            let mask = BooleanBuffer::from_iter(mask);
            arrays.push(child.read(Slots { count: validity.slots, mask: Some(&mask) }, context)?);
        }
        Ok(Arc::new(StructArray::try_new(fields, arrays, validity.nulls())?))
    }
}

impl ColumnReader for UnionColumn {
    fn read(&mut self, slots: Slots<'_>, context: &mut Context) -> Result<ArrayRef> {
        let validity = self.head.validity(slots, context)?;
        let mut tags = Vec::new();
        self.tags.read_onto(validity.present, &mut tags, context)?;
        self.counts(&tags)?;
        match self.form {
            UnionForm::Dense { .. } => self.dense(&tags, &validity, context),
            UnionForm::Struct(_) => self.as_struct(tags, &validity, context),
        }
    }

    fn skip(&mut self, rows: usize, context: &mut Context) -> Result<()> {
        /// Rows per step, which bounds the memory of their tags.
        const STEP: usize = 1 << 13;
        let mut left = self.head.skip(rows, context)?;
        while left > 0 {
            let step = left.min(STEP);
            let mut tags = Vec::new();
            self.tags.read_onto(step, &mut tags, context)?;
            let counts = self.counts(&tags)?;
            for (child, count) in self.children.iter_mut().zip(counts) {
                child.skip(count, context)?;
            }
            left -= step;
        }
        Ok(())
    }

    fn seek(&mut self, group: usize, context: &mut Context) -> Result<()> {
        self.head.seek(group, context, |positions, context| self.tags.seek(positions, context))?;
        self.children.iter_mut().try_for_each(|child| child.seek(group, context))
    }
}
