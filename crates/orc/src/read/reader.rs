//! A plain synchronous reader: a source, a tail, and stripe after stripe.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};

use super::groups::may_match;
use super::{ReadOptions, StripeLoader, StripeReader};
use crate::encrypt::KeyProvider;
use crate::error::Result;
use crate::limits::Limits;
use crate::source::{Fetched, Source, Step};
use crate::tail::{FileMetadata, TailDecoder};

/// An open file.
#[derive(Debug)]
pub struct Reader<S> {
    source: S,
    file: Arc<FileMetadata>,
}

fn fetch<S: Source>(source: &S, ranges: Vec<Range<u64>>, into: &mut Fetched) -> Result<()> {
    for range in ranges {
        let start = range.start;
        into.insert(start, source.read_range(range)?);
    }
    Ok(())
}

impl<S: Source> Reader<S> {
    /// Opens a file; encrypted columns are read masked.
    pub fn open(source: S) -> Result<Self> {
        Self::open_with(source, Limits::default(), None)
    }

    /// Opens a file under limits, with keys for encrypted columns.
    pub fn open_with(source: S, limits: Limits, keys: Option<Arc<dyn KeyProvider>>) -> Result<Self> {
        let mut tail = TailDecoder::new(source.length()?, limits, keys);
        loop {
            match tail.advance()? {
                Step::Need(ranges) => fetch(&source, ranges, &mut tail.fetched)?,
                Step::Done(file) => return Ok(Self { source, file: Arc::new(file) }),
            }
        }
    }

    /// What the tail says.
    pub fn metadata(&self) -> &Arc<FileMetadata> {
        &self.file
    }

    /// The source.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// The schema of the batches.
    pub fn schema(&self, options: &ReadOptions) -> Result<SchemaRef> {
        let schema = options.projection.apply(&self.file.schema)?.to_arrow(&options.arrow);
        let Some(name) = &options.row_numbers else { return Ok(Arc::new(schema)) };
        let mut fields: Vec<_> = schema.fields().iter().cloned().collect();
        fields.push(Arc::new(arrow_schema::Field::new(name, arrow_schema::DataType::Int64, false)));
        Ok(Arc::new(Schema::new(fields)))
    }

    /// The stripes that may hold rows wanted: by the file's and the stripes' statistics, and by the rows asked for.
    pub fn stripes(&self, options: &ReadOptions) -> Result<Vec<usize>> {
        options.check(&self.file)?;
        let mut first = 0u64;
        let mut stripes = Vec::new();
        for (index, stripe) in self.file.footer.stripes.iter().enumerate() {
            let end = first.saturating_add(stripe.number_of_rows.unwrap_or(0));
            let wanted = |rows: &Vec<Range<u64>>| rows.iter().any(|range| range.start < end && range.end > first);
            if end > first && options.rows.as_ref().is_none_or(wanted) {
                stripes.push(index);
            }
            first = end;
        }
        let Some(predicate) = &options.predicate else { return Ok(stripes) };
        if !may_match(&self.file, predicate, &self.file.file_statistics()?) {
            return Ok(Vec::new());
        }
        let mut statistics = self.file.stripe_statistics()?;
        self.file.decrypt_stripe_statistics(&mut statistics)?;
        stripes
            .retain(|index| statistics.get(*index).is_none_or(|own| may_match(&self.file, predicate, &own.col_stats)));
        Ok(stripes)
    }

    /// A reader of one stripe; it holds its bytes, and can go to another thread.
    pub fn stripe(&self, index: usize, options: &Arc<ReadOptions>) -> Result<StripeReader> {
        let mut loader = StripeLoader::new(Arc::clone(&self.file), Arc::clone(options), index)?;
        loop {
            match loader.advance()? {
                Step::Need(ranges) => fetch(&self.source, ranges, &mut loader.fetched)?,
                Step::Done(reader) => return Ok(reader),
            }
        }
    }

    /// All batches, stripe after stripe.
    pub fn batches(&self, options: ReadOptions) -> Result<Batches<'_, S>> {
        let stripes = self.stripes(&options)?.into_iter();
        Ok(Batches { reader: self, options: Arc::new(options), stripes, current: None })
    }
}

/// The batches of a file.
#[derive(Debug)]
pub struct Batches<'a, S> {
    reader: &'a Reader<S>,
    options: Arc<ReadOptions>,
    stripes: std::vec::IntoIter<usize>,
    current: Option<StripeReader>,
}

impl<S: Source> Batches<'_, S> {
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

impl<S: Source> Iterator for Batches<'_, S> {
    type Item = Result<RecordBatch>;

    /// The next batch; after an error there is none.
    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.advance();
        if batch.is_err() {
            (self.stripes, self.current) = (Vec::new().into_iter(), None);
        }
        batch.transpose()
    }
}
