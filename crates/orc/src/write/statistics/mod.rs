//! Collects statistics of row groups, stripes and the file while values are written ("Column Statistics").
//!
//! Values are added to the statistics of their row group, a finished row group to those of its stripe, and a finished
//! stripe to those of the file. Doubles are therefore summed in the same order as in orc-core.

mod geometry;
mod merge;
mod number;
mod text;

use std::fmt::Debug;

pub(super) use geometry::Shapes;
pub(super) use merge::merge;
pub(super) use number::{Days, Decimals, Doubles, Instants, Integers};
pub(super) use text::Texts;

use crate::proto::{BinaryStatistics, BucketStatistics, CollectionStatistics, ColumnStatistics as Message};

/// The statistics that depend on the kind of values.
pub(super) trait Summary: Debug + Clone + Send {
    /// Adds the statistics of later values.
    fn merge(&mut self, later: &Self);
    /// Sets the part of the message for this kind.
    fn put(&self, message: &mut Message);
}

/// The statistics of any kind of values.
#[derive(Debug, Clone, Default)]
pub(super) struct Counted<S> {
    /// The number of values that are not null.
    pub count: u64,
    /// Whether there was a null.
    pub nulls: bool,
    /// The statistics that depend on the kind.
    pub values: S,
}

impl<S: Summary> Counted<S> {
    /// The statistics of no values; `values` is the part that depends on the kind.
    pub(super) fn new(values: S) -> Self {
        Self { count: 0, nulls: false, values }
    }

    /// Adds the statistics of later values.
    pub(super) fn merge(&mut self, later: &Self) {
        self.count += later.count;
        self.nulls |= later.nulls;
        self.values.merge(&later.values);
    }

    /// The protobuf message, with the bytes on disk if they are known.
    pub(super) fn message(&self, bytes_on_disk: Option<u64>) -> Message {
        let mut message = Message {
            number_of_values: Some(self.count),
            has_null: Some(self.nulls),
            bytes_on_disk,
            ..Message::default()
        };
        self.values.put(&mut message);
        message
    }
}

/// Statistics of structs and unions: nothing.
#[derive(Debug, Clone, Default)]
pub(super) struct Nothing;

impl Summary for Nothing {
    fn merge(&mut self, _: &Self) {}
    fn put(&self, _: &mut Message) {}
}

/// Statistics of booleans: the number of true values.
#[derive(Debug, Clone, Default)]
pub(super) struct Trues(pub u64);

impl Summary for Trues {
    fn merge(&mut self, later: &Self) {
        self.0 += later.0;
    }
    fn put(&self, message: &mut Message) {
        message.bucket_statistics = Some(Box::new(BucketStatistics { count: vec![self.0] }));
    }
}

/// Statistics of binary values: their total bytes.
#[derive(Debug, Clone, Default)]
pub(super) struct ByteCount(pub u64);

impl Summary for ByteCount {
    fn merge(&mut self, later: &Self) {
        self.0 += later.0;
    }
    fn put(&self, message: &mut Message) {
        message.binary_statistics = Some(Box::new(BinaryStatistics { sum: i64::try_from(self.0).ok() }));
    }
}

/// Statistics of lists and maps: their lengths.
#[derive(Debug, Clone, Default)]
pub(super) struct Lengths {
    range: Option<(u64, u64)>,
    total: u64,
}

impl Lengths {
    /// Adds lengths.
    pub(super) fn add(&mut self, lengths: &[i64]) {
        for length in lengths {
            let length = *length as u64;
            let (least, most) = self.range.unwrap_or((length, length));
            self.range = Some((least.min(length), most.max(length)));
            self.total = self.total.saturating_add(length);
        }
    }
}

impl Summary for Lengths {
    fn merge(&mut self, later: &Self) {
        self.range = match (self.range, later.range) {
            (Some(own), Some(later)) => Some((own.0.min(later.0), own.1.max(later.1))),
            (own, later) => own.or(later),
        };
        self.total = self.total.saturating_add(later.total);
    }

    fn put(&self, message: &mut Message) {
        let Some((least, most)) = self.range else { return };
        message.collection_statistics = Some(Box::new(CollectionStatistics {
            min_children: Some(least),
            max_children: Some(most),
            total_children: Some(self.total),
        }));
    }
}
