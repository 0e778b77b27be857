//! Unions: one tag per value, and the values of each variant.
//!
//! Arrow's unions have no validity buffer: the rows of a variant of type `Null` are null unions.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, Int32Array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, UnionMode};

use super::head::{Head, encoding};
use super::writer::{ColumnWriter, Plan, unexpected};
use crate::error::{Error, Result};
use crate::proto::{ColumnStatistics, EncodingKind, StreamKind};
use crate::rle::ByteWriter;
use crate::types::TypeDescription;
use crate::write::statistics::Nothing;
use crate::write::stream::{Context, Stream};
use crate::write::stripe::StripeWriter;

/// Maximum number of variants, since tags are single bytes.
const MAX_VARIANTS: usize = 256;

/// `uniontype`
#[derive(Debug)]
pub(super) struct UnionColumn {
    head: Head<Nothing>,
    tags: Stream<ByteWriter>,
    children: Vec<Box<dyn ColumnWriter>>,
}

impl UnionColumn {
    pub(super) fn new(node: &TypeDescription, plan: &Plan<'_>, children: Vec<Box<dyn ColumnWriter>>) -> Result<Self> {
        if node.children.len() > MAX_VARIANTS {
            return Err(Error::unsupported(format!("a union of {} variants: expected 1 to 256", node.children.len())));
        }
        Ok(Self { head: Head::new(node.column, Nothing, plan), tags: Stream::new(ByteWriter::default()), children })
    }
}

impl ColumnWriter for UnionColumn {
    fn write(&mut self, array: &ArrayRef, context: &mut Context) -> Result<()> {
        if *array.data_type() == DataType::Null {
            return self.head.add(Some(&NullBuffer::new_null(array.len())), array.len(), context);
        }
        let refused = || unexpected(self.head.column, array);
        let (DataType::Union(fields, mode), Some(union)) = (array.data_type(), array.as_union_opt()) else {
            return Err(refused());
        };
        let type_ids = union.type_ids();
        let real = |(_, field): &(i8, &std::sync::Arc<arrow_schema::Field>)| field.data_type() != &DataType::Null;
        let variants: Vec<i8> = fields.iter().filter(real).map(|(id, _)| id).collect();
        if variants.len() != self.children.len() {
            return Err(refused());
        }
        // Tags by type id; the variant of null unions has no tag.
        let mut tags_of = [None; 128];
        for (tag, id) in variants.iter().enumerate() {
            if let Some(slot) = usize::try_from(*id).ok().and_then(|id| tags_of.get_mut(id)) {
                *slot = Some(tag as u8);
            }
        }
        let tag_of = |id: &i8| usize::try_from(*id).ok().and_then(|id| tags_of.get(id).copied()).flatten();
        let there = BooleanBuffer::from_iter(type_ids.iter().map(|id| tag_of(id).is_some()));
        let nulls = NullBuffer::new(there);
        self.head.add(Some(&nulls), type_ids.len(), context)?;
        let tags: Vec<u8> = type_ids.iter().filter_map(tag_of).collect();
        self.tags.coder.write(&tags, &mut self.tags.open);
        self.tags.spill(&mut context.compressor)?;
        for (child, id) in self.children.iter_mut().zip(variants) {
            let values = union.child(id);
            let own = match (mode, union.offsets()) {
                (UnionMode::Dense, Some(offsets)) => {
                    let places = type_ids.iter().zip(offsets).filter(|(other, _)| **other == id);
                    let places: Vec<i32> = places.map(|(_, offset)| *offset).collect();
                    match places.as_slice() {
                        [] => values.slice(0, 0),
                        [first, rest @ ..] if rest.iter().zip(first + 1..).all(|(place, next)| *place == next) => {
                            values.slice(*first as usize, places.len())
                        }
                        _ => arrow_select::take::take(values, &Int32Array::from(places), None)?,
                    }
                }
                _ => {
                    let mine = BooleanBuffer::from_iter(type_ids.iter().map(|other| *other == id));
                    arrow_select::filter::filter(values, &BooleanArray::new(mine, None))?
                }
            };
            child.write(&own, context)?;
        }
        Ok(())
    }

    fn begin_group(&mut self, context: &Context) {
        self.head.begin_group(context);
        self.tags.mark(&context.compressor);
        self.children.iter_mut().for_each(|child| child.begin_group(context));
    }

    fn end_group(&mut self, context: &mut Context) -> Result<()> {
        self.head.end_group();
        self.children.iter_mut().try_for_each(|child| child.end_group(context))
    }

    fn finish(&mut self, stripe: &mut StripeWriter<'_>) -> Result<()> {
        let tags = std::mem::replace(&mut self.tags, Stream::new(ByteWriter::default()));
        let streams = vec![(StreamKind::Data, tags.finish(&mut stripe.context.compressor)?)];
        self.head.finish(encoding(EncodingKind::Direct), streams, Vec::new(), stripe)?;
        self.children.iter_mut().try_for_each(|child| child.finish(stripe))
    }

    fn file_statistics(&self, out: &mut Vec<ColumnStatistics>) {
        out.push(self.head.file_statistics());
        self.children.iter().for_each(|child| child.file_statistics(out));
    }

    fn memory(&self) -> usize {
        self.head.memory() + self.tags.memory() + self.children.iter().map(|child| child.memory()).sum::<usize>()
    }
}
