//! Structs, lists and maps.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, PrimitiveArray};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

use super::head::{Head, encoding};
use super::number::Fresh;
use super::writer::{ColumnWriter, Plan, unexpected};
use crate::error::{Error, Result};
use crate::proto::{ColumnStatistics, EncodingKind, StreamKind};
use crate::rle::IntWriter;
use crate::types::TypeDescription;
use crate::write::statistics::{Lengths, Nothing};
use crate::write::stream::{Context, Stream};
use crate::write::stripe::{StripeContent, StripeWriter};

/// The slots of a child for which the parent is not null.
fn of_present(child: &ArrayRef, nulls: Option<&NullBuffer>) -> Result<ArrayRef> {
    match nulls.filter(|nulls| nulls.null_count() > 0) {
        None => Ok(Arc::clone(child)),
        Some(nulls) => {
            let kept = BooleanArray::new(nulls.inner().clone(), None);
            Ok(arrow_select::filter::filter(child, &kept)?)
        }
    }
}

/// `struct`
#[derive(Debug)]
pub(super) struct StructColumn {
    head: Head<Nothing>,
    names: Vec<String>,
    children: Vec<Box<dyn ColumnWriter>>,
}

impl StructColumn {
    pub(super) fn new(node: &TypeDescription, plan: &Plan<'_>, children: Vec<Box<dyn ColumnWriter>>) -> Self {
        Self { head: Head::new(node.column, Nothing, plan), names: node.names.clone(), children }
    }
}

impl ColumnWriter for StructColumn {
    fn write(&mut self, array: &ArrayRef, context: &mut Context) -> Result<()> {
        let own = array.as_struct_opt().filter(|own| own.num_columns() == self.children.len());
        let own = own.ok_or_else(|| unexpected(self.head.column, array))?;
        self.head.add(own.nulls(), own.len(), context)?;
        let fields: Vec<_> = self.children.iter_mut().zip(&self.names).zip(own.columns()).collect();
        context.for_each(fields, |((child, name), column), context| {
            let written = child.write(&of_present(column, own.nulls())?, context);
            written.map_err(|error| error.within(&format!("field {name}")))
        })
    }

    fn begin_group(&mut self, context: &Context) {
        self.head.begin_group(context);
        self.children.iter_mut().for_each(|child| child.begin_group(context));
    }

    fn end_group(&mut self, context: &mut Context) -> Result<()> {
        self.head.end_group();
        context.for_each(self.children.iter_mut().collect(), |child, context| child.end_group(context))
    }

    fn finish(&mut self, stripe: &mut StripeWriter<'_>) -> Result<()> {
        self.head.finish(encoding(EncodingKind::Direct), Vec::new(), Vec::new(), stripe)?;
        let mut parts: Vec<_> = self.children.iter().map(|_| StripeContent::default()).collect();
        let fields: Vec<_> = self.children.iter_mut().zip(&mut parts).collect();
        stripe.context.for_each(fields, |(child, part), context| {
            let mut own = StripeWriter::new(context);
            child.finish(&mut own)?;
            *part = own.content;
            Ok(())
        })?;
        parts.into_iter().for_each(|part| stripe.content.append(part));
        Ok(())
    }

    fn file_statistics(&self, out: &mut Vec<ColumnStatistics>) {
        out.push(self.head.file_statistics());
        self.children.iter().for_each(|child| child.file_statistics(out));
    }

    fn memory(&self) -> usize {
        self.head.memory() + self.children.iter().map(|child| child.memory()).sum::<usize>()
    }
}

/// The lengths and the concatenated elements of lists.
#[derive(Debug)]
struct Elements {
    /// The lengths of the lists that are not null.
    lengths: Vec<i64>,
    values: ArrayRef,
}

impl Elements {
    /// Gathers the elements of lists; `spans` has the start and the length of the list in every slot.
    fn gather(
        values: &ArrayRef,
        spans: impl Iterator<Item = (usize, usize)>,
        nulls: Option<&NullBuffer>,
    ) -> Result<Self> {
        let mut lengths = Vec::new();
        // Runs of consecutive elements.
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for (slot, (start, length)) in spans.enumerate() {
            if nulls.is_some_and(|nulls| nulls.is_null(slot)) {
                continue;
            }
            lengths.push(length as i64);
            match runs.last_mut() {
                _ if length == 0 => {}
                Some(last) if last.1 == start => last.1 = start + length,
                _ => runs.push((start, start + length)),
            }
        }
        let values = match runs.as_slice() {
            [] => values.slice(0, 0),
            [(start, end)] => values.slice(*start, end - start),
            runs => {
                let indices: Int64Array =
                    runs.iter().flat_map(|(start, end)| *start as i64..*end as i64).collect::<Vec<_>>().into();
                let indices: &PrimitiveArray<Int64Type> = &indices;
                arrow_select::take::take(values, indices, None)?
            }
        };
        Ok(Self { lengths, values })
    }

    fn of_lists(column: u32, array: &ArrayRef) -> Result<Self> {
        fn offsets(offsets: &[i32]) -> impl Iterator<Item = (usize, usize)> {
            offsets.iter().zip(offsets.iter().skip(1)).map(|(start, end)| (*start as usize, (end - start) as usize))
        }
        fn large(offsets: &[i64]) -> impl Iterator<Item = (usize, usize)> {
            offsets.iter().zip(offsets.iter().skip(1)).map(|(start, end)| (*start as usize, (end - start) as usize))
        }
        let nulls = array.nulls();
        match array.data_type() {
            DataType::List(_) => {
                let lists = array.as_list::<i32>();
                Self::gather(lists.values(), offsets(lists.value_offsets()), nulls)
            }
            DataType::LargeList(_) => {
                let lists = array.as_list::<i64>();
                Self::gather(lists.values(), large(lists.value_offsets()), nulls)
            }
            DataType::ListView(_) => {
                let lists = array.as_list_view::<i32>();
                let spans = lists.value_offsets().iter().zip(lists.value_sizes());
                Self::gather(lists.values(), spans.map(|(start, size)| (*start as usize, *size as usize)), nulls)
            }
            DataType::LargeListView(_) => {
                let lists = array.as_list_view::<i64>();
                let spans = lists.value_offsets().iter().zip(lists.value_sizes());
                Self::gather(lists.values(), spans.map(|(start, size)| (*start as usize, *size as usize)), nulls)
            }
            DataType::FixedSizeList(_, size) => {
                let lists = array.as_fixed_size_list();
                let size = usize::try_from(*size).map_err(|_| unexpected(column, array))?;
                Self::gather(lists.values(), (0..lists.len()).map(|slot| (slot * size, size)), nulls)
            }
            _ => Err(unexpected(column, array)),
        }
    }
}

/// The head and the LENGTH stream of lists and maps.
#[derive(Debug)]
struct Repeated {
    head: Head<Lengths>,
    lengths: Stream<IntWriter>,
    fresh: Fresh,
}

impl Repeated {
    fn new(column: u32, plan: &Plan<'_>) -> Self {
        let fresh = Fresh::new(false, plan);
        Self { head: Head::new(column, Lengths::default(), plan), lengths: fresh.stream(), fresh }
    }

    fn write(&mut self, array: &ArrayRef, lengths: &[i64], context: &mut Context) -> Result<()> {
        self.head.add(array.nulls(), array.len(), context)?;
        self.head.statistics().add(lengths);
        self.lengths.coder.write(lengths, &mut self.lengths.open);
        self.lengths.spill(&mut context.compressor)
    }

    fn begin_group(&mut self, context: &Context) {
        self.head.begin_group(context);
        self.lengths.mark(&context.compressor);
    }

    fn finish(&mut self, stripe: &mut StripeWriter<'_>) -> Result<()> {
        let lengths = std::mem::replace(&mut self.lengths, self.fresh.stream());
        let lengths = lengths.finish(&mut stripe.context.compressor)?;
        let streams = vec![(StreamKind::Length, lengths)];
        self.head.finish(encoding(self.fresh.encodings().0), streams, Vec::new(), stripe)
    }

    fn memory(&self) -> usize {
        self.head.memory() + self.lengths.memory()
    }
}

/// `array`
#[derive(Debug)]
pub(super) struct ListColumn {
    own: Repeated,
    child: Box<dyn ColumnWriter>,
}

impl ListColumn {
    pub(super) fn new(column: u32, plan: &Plan<'_>, child: Box<dyn ColumnWriter>) -> Self {
        Self { own: Repeated::new(column, plan), child }
    }
}

impl ColumnWriter for ListColumn {
    fn write(&mut self, array: &ArrayRef, context: &mut Context) -> Result<()> {
        let elements = Elements::of_lists(self.own.head.column, array)?;
        self.own.write(array, &elements.lengths, context)?;
        self.child.write(&elements.values, context)
    }

    fn begin_group(&mut self, context: &Context) {
        self.own.begin_group(context);
        self.child.begin_group(context);
    }

    fn end_group(&mut self, context: &mut Context) -> Result<()> {
        self.own.head.end_group();
        self.child.end_group(context)
    }

    fn finish(&mut self, stripe: &mut StripeWriter<'_>) -> Result<()> {
        self.own.finish(stripe)?;
        self.child.finish(stripe)
    }

    fn file_statistics(&self, out: &mut Vec<ColumnStatistics>) {
        out.push(self.own.head.file_statistics());
        self.child.file_statistics(out);
    }

    fn memory(&self) -> usize {
        self.own.memory() + self.child.memory()
    }
}

/// `map`
#[derive(Debug)]
pub(super) struct MapColumn {
    own: Repeated,
    key: Box<dyn ColumnWriter>,
    value: Box<dyn ColumnWriter>,
}

impl MapColumn {
    pub(super) fn new(column: u32, plan: &Plan<'_>, key: Box<dyn ColumnWriter>, value: Box<dyn ColumnWriter>) -> Self {
        Self { own: Repeated::new(column, plan), key, value }
    }
}

impl ColumnWriter for MapColumn {
    fn write(&mut self, array: &ArrayRef, context: &mut Context) -> Result<()> {
        let maps = array.as_map_opt().ok_or_else(|| unexpected(self.own.head.column, array))?;
        let entries: ArrayRef = Arc::new(maps.entries().clone());
        let offsets = maps.value_offsets();
        let spans =
            offsets.iter().zip(offsets.iter().skip(1)).map(|(start, end)| (*start as usize, (end - start) as usize));
        let elements = Elements::gather(&entries, spans, array.nulls())?;
        self.own.write(array, &elements.lengths, context)?;
        let entries = elements.values.as_struct();
        let [keys, values] = entries.columns() else { return Err(unexpected(self.own.head.column, array)) };
        if entries.null_count() > 0 {
            return Err(Error::value(format!("column {}: a map's entry is null", self.own.head.column)));
        }
        self.key.write(keys, context)?;
        self.value.write(values, context)
    }

    fn begin_group(&mut self, context: &Context) {
        self.own.begin_group(context);
        self.key.begin_group(context);
        self.value.begin_group(context);
    }

    fn end_group(&mut self, context: &mut Context) -> Result<()> {
        self.own.head.end_group();
        self.key.end_group(context)?;
        self.value.end_group(context)
    }

    fn finish(&mut self, stripe: &mut StripeWriter<'_>) -> Result<()> {
        self.own.finish(stripe)?;
        self.key.finish(stripe)?;
        self.value.finish(stripe)
    }

    fn file_statistics(&self, out: &mut Vec<ColumnStatistics>) {
        out.push(self.own.head.file_statistics());
        self.key.file_statistics(out);
        self.value.file_statistics(out);
    }

    fn memory(&self) -> usize {
        self.own.memory() + self.key.memory() + self.value.memory()
    }
}
