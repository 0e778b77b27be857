//! Stripe after stripe: which of them may hold rows that are wanted, and their batches.

use std::ops::{Deref, Range};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::groups::may_match;
use super::{ReadOptions, Reader, StripeReader};
use crate::error::Result;
use crate::source::Source;
use crate::tail::FileMetadata;

/// The stripes that may hold wanted rows.
pub(super) fn stripes(file: &FileMetadata, options: &ReadOptions) -> Result<Vec<usize>> {
    options.check(file)?;
    let mut first = 0u64;
    let mut stripes = Vec::new();
    for (index, stripe) in file.footer.stripes.iter().enumerate() {
        let end = first.saturating_add(stripe.number_of_rows.unwrap_or(0));
        let wanted = |rows: &Vec<Range<u64>>| rows.iter().any(|range| range.start < end && range.end > first);
        if end > first && options.rows.as_ref().is_none_or(wanted) {
            stripes.push(index);
        }
        first = end;
    }
    let Some(predicate) = &options.predicate else { return Ok(stripes) };
    if !may_match(file, predicate, &file.file_statistics()?) {
        return Ok(Vec::new());
    }
    let statistics = file.stripe_statistics()?;
    stripes.retain(|index| statistics.get(*index).is_none_or(|own| may_match(file, predicate, &own.col_stats)));
    Ok(stripes)
}

/// The batches of some stripes of a file, read one after the other by the thread that asks for them.
///
/// `R` is a reference to a [`Reader`], or an `Arc` of one where the iterator has to outlive it. Nothing follows an error.
#[derive(Debug)]
pub struct Batches<R> {
    reader: R,
    options: Arc<ReadOptions>,
    schema: SchemaRef,
    stripes: std::vec::IntoIter<usize>,
    current: Option<StripeReader>,
}

impl<S: Source, R: Deref<Target = Reader<S>>> Batches<R> {
    /// The batches of the stripes with these numbers, which count from 0.
    ///
    /// # Errors
    ///
    /// Columns that the file lacks. A stripe that the file lacks is an error when its turn comes.
    pub fn new(reader: R, options: ReadOptions, stripes: Vec<usize>) -> Result<Self> {
        let schema = reader.schema(&options)?;
        Ok(Self { reader, options: Arc::new(options), schema, stripes: stripes.into_iter(), current: None })
    }

    /// The schema of every batch.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(stripe) = &mut self.current
                && let Some(batch) = stripe.next_batch()?
            {
                return Ok(Some(batch));
            }
            let Some(next) = self.stripes.next() else { return Ok(None) };
            self.current = Some(self.reader.stripe(next, &self.options)?);
        }
    }
}

impl<S: Source, R: Deref<Target = Reader<S>>> Iterator for Batches<R> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.advance();
        if batch.is_err() {
            (self.stripes, self.current) = (Vec::new().into_iter(), None);
        }
        batch.transpose()
    }
}
