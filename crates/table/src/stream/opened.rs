//! Tasks as a stream is given them, and what they turn out to be when they are opened.

use std::sync::Arc;

use arrow_array::RecordBatch;

use crate::error::Result;

/// The batches of one task.
pub type TaskBatches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// Opens one task, on the thread that will read it.
pub type OpenTask = Box<dyn FnOnce() -> Result<TaskBatches> + Send>;

/// An opened task.
pub enum Opened {
    /// Its batches.
    Batches(TaskBatches),
    /// The tasks that replace it, in order.
    Parts(Vec<OpenParts>),
    /// Small tasks, in order, read by one thread; their batches are sent together.
    Together(Vec<OpenParts>),
}

impl Opened {
    /// Applies a change to each batch.
    pub fn map(self, change: BatchChange) -> Self {
        match self {
            Self::Batches(batches) => Self::Batches(Box::new(batches.map(move |batch| change(batch?)))),
            Self::Parts(parts) => Self::Parts(changed(parts, &change)),
            Self::Together(parts) => Self::Together(changed(parts, &change)),
        }
    }

    /// The batches, read by the calling thread.
    pub fn into_batches(self) -> TaskBatches {
        match self {
            Self::Batches(batches) => batches,
            Self::Parts(parts) | Self::Together(parts) => Box::new(parts.into_iter().flat_map(|open| match open() {
                Ok(opened) => opened.into_batches(),
                Err(error) => Box::new(std::iter::once(Err(error))),
            })),
        }
    }
}

fn changed(parts: Vec<OpenParts>, change: &BatchChange) -> Vec<OpenParts> {
    let changed = |open: OpenParts| -> OpenParts {
        let change = Arc::clone(change);
        Box::new(move || Ok(open()?.map(change)))
    };
    parts.into_iter().map(changed).collect()
}

/// A change to each batch of a task.
pub type BatchChange = Arc<dyn Fn(RecordBatch) -> Result<RecordBatch> + Send + Sync>;

/// Opens one task on the thread that will read it, unless it is split.
pub type OpenParts = Box<dyn FnOnce() -> Result<Opened> + Send>;
