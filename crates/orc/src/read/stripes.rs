//! Reads the batches of stripes one after the other.

use std::ops::Deref;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;

use super::{ReadOptions, Reader, StripeReader};
use crate::error::Result;
use crate::source::Source;

/// The batches of some stripes of a file, read one after the other by the thread that asks for them.
///
/// `R` is a reference to a [`Reader`], or an `Arc` of one if the iterator must outlive it. An error ends the iterator.
#[derive(Debug)]
pub struct Batches<R> {
    reader: R,
    options: Arc<ReadOptions>,
    schema: SchemaRef,
    stripes: std::vec::IntoIter<usize>,
    current: Option<StripeReader>,
}

impl<S: Source> Reader<S> {
    /// Iterates over all batches, stripe by stripe.
    ///
    /// # Errors
    ///
    /// As [`Reader::stripes`].
    pub fn batches(&self, options: ReadOptions) -> Result<Batches<&Self>> {
        let stripes = self.stripes(&options)?;
        Batches::new(self, options, stripes)
    }
}

impl<S: Source> Reader<S> {
    /// Reads the rows of one stripe as one batch.
    ///
    /// # Errors
    ///
    /// As [`Reader::stripe`], and anything that is wrong with the stripe.
    pub fn read_stripe(&self, stripe: usize, options: ReadOptions) -> Result<RecordBatch> {
        let batches = Batches::new(self, options, vec![stripe])?;
        let schema = Arc::clone(batches.schema());
        match <[RecordBatch; 1]>::try_from(batches.collect::<Result<Vec<_>>>()?) {
            Ok([only]) => Ok(only),
            Err(batches) => Ok(concat_batches(&schema, &batches)?),
        }
    }
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
