//! Decodes the batches of one stripe.
//!
//! Each top-level field is a lane with its own position. The lanes of a filter are decoded first. The others are
//! decoded only for the rows that match, and seek to them if a row group starts in between.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::ReadOptions;
use crate::column::{ColumnReader, Slots, StripeColumns};
use crate::error::{Error, Result};
use crate::stream::Context;
use crate::tail::FileMetadata;
use crate::types::{Kind, TypeDescription};

/// Requested rows at most this far apart are decoded together; the rows in between are dropped afterwards.
pub(super) const CLOSE: u64 = 512;

/// The input of a stripe's reader, from the stripe's plan.
#[derive(Debug)]
pub(super) struct StripeParts {
    pub columns: StripeColumns,
    /// The schema that is decoded: the output's, plus the columns of the filter.
    pub decoded: TypeDescription,
    /// The schema that is returned.
    pub output: TypeDescription,
    /// The rows to read, counted from the first row of the stripe.
    pub rows: Vec<Range<u64>>,
    /// The row number, in the file, of the first row of the stripe.
    pub first_row: u64,
    /// Rows per row group, if lanes can seek.
    pub stride: Option<u64>,
    pub stripe: usize,
}

/// One top-level field.
#[derive(Debug)]
struct Lane {
    column: u32,
    reader: Box<dyn ColumnReader>,
    /// The next row to decode.
    at: u64,
    /// Whether the filter needs it.
    filtered: bool,
    /// Whether it is a field of the root struct; the reader is then that of a struct with this one field.
    field: bool,
    /// The Arrow field as it is decoded.
    arrow: Arc<Field>,
}

/// Rows to decode, and which of them are requested (`None` means all).
type Span = (Range<u64>, Option<Vec<Range<u64>>>);

/// Decodes the batches of a stripe. It holds the bytes of the stripe, and can move to another thread.
#[derive(Debug)]
pub struct StripeReader {
    lanes: Vec<Lane>,
    file: Arc<FileMetadata>,
    /// Created when it is first needed; readers of single columns borrow one instead.
    context: Option<Context>,
    options: Arc<ReadOptions>,
    schema: SchemaRef,
    /// For each returned column, its lane and its projected field.
    outputs: Vec<(usize, Arc<Field>)>,
    rows: Vec<Range<u64>>,
    /// The index of the current range, and the next row.
    range: usize,
    next: u64,
    first_row: u64,
    stride: Option<u64>,
    stripe: usize,
}

impl StripeReader {
    pub(super) fn new(parts: StripeParts, file: Arc<FileMetadata>, options: Arc<ReadOptions>) -> Result<Self> {
        let StripeParts { columns, decoded, output, rows, first_row, stride, stripe } = parts;
        let lanes = lanes(&columns, &decoded, &options)?;
        let output_schema = output.to_arrow(&options.arrow);
        let tops: Vec<u32> = match output.kind {
            Kind::Struct => output.children.iter().map(|child| child.column).collect(),
            _ => vec![output.column],
        };
        let lane_of = |column: &u32| lanes.iter().position(|lane| lane.column == *column);
        let outputs = tops.iter().zip(output_schema.fields()).map(|(column, field)| {
            let lane = lane_of(column).ok_or_else(|| Error::invalid(format!("column {column} was not planned")))?;
            Ok((lane, Arc::clone(field)))
        });
        let outputs = outputs.collect::<Result<Vec<_>>>()?;
        let mut fields: Vec<Arc<Field>> = output_schema.fields().iter().cloned().collect();
        if let Some(name) = &options.row_numbers {
            fields.push(Arc::new(Field::new(name, DataType::Int64, false)));
        }
        let schema = Arc::new(Schema::new(fields));
        let next = rows.first().map_or(0, |range| range.start);
        let (context, range) = (None, 0);
        Ok(Self { lanes, file, context, options, schema, outputs, rows, range, next, first_row, stride, stripe })
    }

    /// Splits the reader into one reader per column, which can run on different threads. Their batches have the same
    /// rows, and together all columns. With a filter the reader is not split, because the columns depend on each other.
    ///
    /// The batches of the last column contain the row numbers.
    pub fn by_column(mut self) -> Vec<Self> {
        if self.options.filter.is_some() || self.outputs.len() < 2 || self.outputs.len() != self.lanes.len() {
            return vec![self];
        }
        let others = Arc::new(ReadOptions { row_numbers: None, ..self.options.as_ref().clone() });
        let mut lanes: Vec<Option<Lane>> = self.lanes.drain(..).map(Some).collect();
        let count = self.outputs.len();
        let part = |(number, (lane, field)): (usize, &(usize, Arc<Field>))| {
            let last = number + 1 == count;
            let mut fields = vec![Arc::clone(field)];
            fields.extend(self.schema.fields().iter().skip(count).filter(|_| last).cloned());
            Self {
                lanes: lanes.get_mut(*lane).and_then(Option::take).into_iter().collect(),
                file: Arc::clone(&self.file),
                context: None,
                options: Arc::clone(if last { &self.options } else { &others }),
                schema: Arc::new(Schema::new(fields)),
                outputs: vec![(0, Arc::clone(field))],
                rows: self.rows.clone(),
                ..self
            }
        };
        self.outputs.iter().enumerate().map(part).collect()
    }

    /// The schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Rows left to read; a filter may drop some of them.
    pub fn rows_left(&self) -> u64 {
        let later = self.rows.iter().skip(self.range + 1).map(|range| range.end - range.start);
        let current = self.rows.get(self.range).map_or(0, |range| range.end - self.next.max(range.start));
        later.fold(current, u64::saturating_add)
    }

    /// The next batch, or `None` at the end. A batch has at least one row.
    ///
    /// # Errors
    ///
    /// Damaged streams, values that the Arrow type cannot hold, errors of the filter. Nothing should be read after an
    /// error.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let mut context = match self.context.take() {
            Some(context) => context,
            None => Context::new(&self.file)?,
        };
        let batch = self.next_batch_with(&mut context);
        self.context = Some(context);
        batch
    }

    /// Like [`Self::next_batch`], with a context that a thread can use for all readers of a file.
    pub fn next_batch_with(&mut self, context: &mut Context) -> Result<Option<RecordBatch>> {
        while let Some((span, wanted)) = self.next_span() {
            let batch = self.read_span(span, wanted, context);
            let batch = batch.map_err(|error| self.file.in_stripe(self.stripe, error))?;
            if batch.as_ref().is_some_and(|batch| batch.num_rows() > 0) {
                return Ok(batch);
            }
        }
        Ok(None)
    }

    /// The next rows to decode, and which of them are requested (`None` means all).
    fn next_span(&mut self) -> Option<Span> {
        let start = self.rows.get(self.range)?.start.max(self.next);
        let limit = start.saturating_add(self.options.batch_size as u64);
        let mut wanted: Vec<Range<u64>> = Vec::new();
        while let Some(range) = self.rows.get(self.range) {
            let from = range.start.max(self.next);
            if wanted.last().is_some_and(|last| from >= limit || from - last.end > CLOSE) {
                break;
            }
            let until = range.end.min(limit);
            wanted.push(from..until);
            self.next = until;
            if until < range.end {
                break;
            }
            self.range += 1;
        }
        let span = wanted.first()?.start..wanted.last()?.end;
        Some((span, (wanted.len() > 1).then_some(wanted)))
    }

    fn read_span(
        &mut self,
        span: Range<u64>,
        wanted: Option<Vec<Range<u64>>>,
        context: &mut Context,
    ) -> Result<Option<RecordBatch>> {
        let mut mask = wanted.map(|wanted| selection_mask(&span, &wanted));
        let mut arrays: Vec<Option<ArrayRef>> = vec![None; self.lanes.len()];
        if let Some(filter) = self.options.filter.clone() {
            for index in 0..self.lanes.len() {
                if self.lanes.get(index).is_some_and(|lane| lane.filtered) {
                    self.read_lane(index, &span, &mut arrays, context)?;
                }
            }
            let found = filter.evaluate(&self.filter_batch(&arrays, &span)?)?;
            if found.len() as u64 != span.end - span.start {
                return Err(Error::invalid("a filter returned the wrong number of rows"));
            }
            let yes = match found.nulls() {
                Some(nulls) => found.values() & nulls.inner(),
                None => found.values().clone(),
            };
            let both = match &mask {
                None => yes,
                Some(mask) => &yes & mask.values(),
            };
            mask = Some(BooleanArray::new(both, None));
        }
        let (inner, mask) = match mask {
            None => (span.clone(), None),
            Some(mask) => match narrow(&span, mask) {
                None => return Ok(None),
                Some(found) => found,
            },
        };
        for index in 0..self.lanes.len() {
            match arrays.get_mut(index) {
                Some(Some(array)) => {
                    *array = array.slice((inner.start - span.start) as usize, (inner.end - inner.start) as usize);
                }
                _ => self.read_lane(index, &inner, &mut arrays, context)?,
            }
        }
        self.assemble(&inner, mask, &arrays).map(Some)
    }

    fn read_lane(
        &mut self,
        index: usize,
        rows: &Range<u64>,
        arrays: &mut [Option<ArrayRef>],
        context: &mut Context,
    ) -> Result<()> {
        let (Some(lane), Some(slot)) = (self.lanes.get_mut(index), arrays.get_mut(index)) else { return Ok(()) };
        lane.go_to(rows.start, self.stride, context)?;
        let count =
            usize::try_from(rows.end - rows.start).map_err(|_| Error::limit("a batch exceeds the address space"))?;
        let array = lane.reader.read(Slots::all(count), context)?;
        lane.at = rows.end;
        *slot = Some(if lane.field { only_field(&array)? } else { array });
        Ok(())
    }

    fn filter_batch(&self, arrays: &[Option<ArrayRef>], span: &Range<u64>) -> Result<RecordBatch> {
        let lanes = self.lanes.iter().zip(arrays).filter(|(lane, _)| lane.filtered);
        let (fields, columns): (Vec<_>, Vec<_>) =
            lanes.filter_map(|(lane, array)| Some((Arc::clone(&lane.arrow), array.clone()?))).unzip();
        let count = (span.end - span.start) as usize;
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?)
    }

    fn assemble(
        &self,
        rows: &Range<u64>,
        mask: Option<BooleanArray>,
        arrays: &[Option<ArrayRef>],
    ) -> Result<RecordBatch> {
        let mut columns = Vec::with_capacity(self.outputs.len() + 1);
        for (lane, field) in &self.outputs {
            let array = arrays.get(*lane).cloned().flatten();
            let array = array.ok_or_else(|| Error::invalid("a column was not read"))?;
            columns.push(project(&array, field.data_type())?);
        }
        let count = (rows.end - rows.start) as usize;
        if self.options.row_numbers.is_some() {
            let first = self.first_row.saturating_add(rows.start) as i64;
            columns
                .push(Arc::new(Int64Array::from_iter_values((0..count as i64).map(|row| first.saturating_add(row)))));
        }
        let Some(mask) = mask else {
            let options = RecordBatchOptions::new().with_row_count(Some(count));
            return Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?);
        };
        let kept = columns.iter().map(|column| Ok(arrow_select::filter::filter(column, &mask)?));
        let kept = kept.collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(mask.true_count()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), kept, &options)?)
    }
}

fn lanes(columns: &StripeColumns, decoded: &TypeDescription, options: &ReadOptions) -> Result<Vec<Lane>> {
    let asked = options.filter.as_ref().map(|filter| filter.columns()).unwrap_or_default();
    let filtered = |node: &TypeDescription| asked.iter().any(|column| (node.column..node.end).contains(column));
    if decoded.kind != Kind::Struct {
        let arrow = Arc::new(decoded.arrow_field("value", &options.arrow));
        let reader = columns.reader(decoded)?;
        return Ok(vec![Lane {
            column: decoded.column,
            reader,
            at: 0,
            filtered: filtered(decoded),
            field: false,
            arrow,
        }]);
    }
    let lane = |(name, child): (&String, &TypeDescription)| {
        let only = TypeDescription { names: vec![name.clone()], children: vec![child.clone()], ..decoded.clone() };
        let arrow = Arc::new(child.arrow_field(name, &options.arrow));
        Ok(Lane {
            column: child.column,
            reader: columns.reader(&only)?,
            at: 0,
            filtered: filtered(child),
            field: true,
            arrow,
        })
    };
    decoded.names.iter().zip(&decoded.children).map(lane).collect()
}

impl Lane {
    /// Moves forward to a row: seeks if the row is in a later row group, then skips rows.
    fn go_to(&mut self, row: u64, stride: Option<u64>, context: &mut Context) -> Result<()> {
        if let Some(stride) = stride.filter(|stride| row / stride > self.at / stride || self.at > row) {
            let group =
                usize::try_from(row / stride).map_err(|_| Error::limit("a row group exceeds the address space"))?;
            self.reader.seek(group, context)?;
            self.at = row / stride * stride;
        }
        let left = row.saturating_sub(self.at);
        if left > 0 {
            self.reader
                .skip(usize::try_from(left).map_err(|_| Error::limit("a row exceeds the address space"))?, context)?;
            self.at = row;
        }
        Ok(())
    }
}

/// The array of the only field of a lane's struct; where the root is null, so is the field.
fn only_field(array: &ArrayRef) -> Result<ArrayRef> {
    let fields = array.as_struct_opt().map(|own| own.columns());
    let only = fields.and_then(|columns| columns.first()).cloned();
    only.ok_or_else(|| Error::invalid("a root struct without its field"))
}

/// A mask of the rows of a span that are in the requested ranges.
fn selection_mask(span: &Range<u64>, wanted: &[Range<u64>]) -> BooleanArray {
    let mut bits = arrow_buffer::BooleanBufferBuilder::new((span.end - span.start) as usize);
    let mut at = span.start;
    for range in wanted {
        bits.append_n((range.start - at) as usize, false);
        bits.append_n((range.end - range.start) as usize, true);
        at = range.end;
    }
    bits.append_n((span.end - at) as usize, false);
    BooleanArray::new(bits.finish(), None)
}

/// The rows from the first to the last requested one, with the mask for them; `None` if no row is requested.
fn narrow(span: &Range<u64>, mask: BooleanArray) -> Option<(Range<u64>, Option<BooleanArray>)> {
    let mut set = mask.values().set_slices();
    let (first, mut last) = set.next()?;
    let mut slices = 1;
    for (_, end) in set {
        last = end;
        slices += 1;
    }
    let inner = span.start + first as u64..span.start + last as u64;
    Some((inner, (slices > 1).then(|| mask.slice(first, last - first))))
}

/// The projected part of a decoded column. The fields of a filter are decoded whole.
fn project(array: &ArrayRef, wanted: &DataType) -> Result<ArrayRef> {
    if array.data_type() == wanted {
        return Ok(Arc::clone(array));
    }
    let (Some(own), DataType::Struct(fields)) = (array.as_struct_opt(), wanted) else {
        return Err(Error::unsupported("a filter inside a list or map of which only a part is projected"));
    };
    let columns = fields.iter().map(|field| {
        let column = own.column_by_name(field.name()).ok_or_else(|| Error::invalid("missing projected field"))?;
        project(column, field.data_type())
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let nulls = own.nulls().cloned();
    Ok(Arc::new(arrow_array::StructArray::try_new_with_length(fields.clone(), columns, nulls, own.len())?))
}
