//! Micro-batches of a stream: the data files that snapshots add, some at a time, as Java's `SparkMicroBatchStream`
//! finds them.
//!
//! A stream's [`Offset`] is a position among the files that a snapshot added, in manifest order. [`Stream::latest`]
//! chooses the end of the next batch, and [`Scan::micro_batch`] scans the files between two offsets. It needs only
//! the table and the offsets, so a batch can be planned again after a restart.
//!
//! Only snapshots with the operation `append` are read. Those with `replace` change no rows and are skipped; `delete`
//! and `overwrite` are errors unless the options skip them. Delete files are ignored: a stream returns appended rows,
//! even if they are deleted later.

use std::sync::Arc;

use icefield_format::expr::Expression;
use icefield_format::metadata::{Operation, Snapshot, TableMetadata};

use super::range::{Point, Range};
pub use super::window::Offset;
use crate::error::{Error, Result};
use crate::plan::Scan;
use crate::storage::Storage;

/// How to stream a table.
#[derive(Debug, Clone, Default)]
pub struct Stream {
    /// Start with the first snapshot at or after this time, in milliseconds; `None` for the oldest one.
    pub from_timestamp: Option<i64>,
    /// Skip snapshots with the operation `delete`.
    pub skip_deletes: bool,
    /// Skip snapshots with the operation `overwrite`.
    pub skip_overwrites: bool,
    /// The branch to read; `None` for the main one.
    pub branch: Option<String>,
}

/// Maximum size of a micro-batch.
#[derive(Debug, Clone, Copy)]
pub struct ReadLimit {
    /// Files.
    pub files: u64,
    /// Rows; the file that reaches the limit is still read.
    pub rows: u64,
}

impl Default for ReadLimit {
    fn default() -> Self {
        Self { files: u64::MAX, rows: u64::MAX }
    }
}

impl Stream {
    /// The offset of a new stream.
    pub fn initial(&self, metadata: &TableMetadata) -> Result<Offset> {
        let Some(head) = self.head(metadata)? else { return Ok(Offset::START) };
        let from = self.from_timestamp.unwrap_or(i64::MIN);
        let wanted = metadata.ancestors(head.snapshot_id).take_while(|snapshot| snapshot.timestamp_ms >= from);
        let first = wanted.last().map(|snapshot| Offset { snapshot_id: snapshot.snapshot_id, position: 0 });
        Ok(first.unwrap_or(Offset::START))
    }

    /// The end of the batch that begins at `start`; `start` itself if there is nothing new.
    ///
    /// `last` is the snapshot to stop at, for a stream that ends at an earlier state of the table; it is that of
    /// [`Offset::START`] if the table was empty then.
    pub fn latest(
        &self,
        storage: &Storage,
        metadata: &Arc<TableMetadata>,
        start: Offset,
        limit: ReadLimit,
        last: Option<i64>,
    ) -> Result<Offset> {
        if limit.files == 0 || limit.rows == 0 {
            return Err(Error::invalid("a limit of a micro-batch must be positive, got 0"));
        }
        let from = if start == Offset::START { self.initial(metadata)? } else { start };
        let head = match last {
            Some(id) if id == Offset::START.snapshot_id => return Ok(start),
            Some(id) => Some(existing(metadata, id)?.clone()),
            None => self.head(metadata)?.cloned(),
        };
        let Some(head) = head.filter(|_| from != Offset::START) else { return Ok(start) };
        let scan = self.between(storage, metadata, from, head.snapshot_id)?;
        let (mut end, mut files, mut rows) = (from, 0u64, 0u64);
        for manifest in scan.plan_stream()? {
            let manifest = manifest?;
            for row in 0..manifest.entries.len() {
                let snapshot_id = manifest.entries.snapshot_id.value(row);
                let position = if snapshot_id == end.snapshot_id { end.position } else { 0 };
                if files == limit.files {
                    return Ok(end);
                }
                files = files.saturating_add(1);
                // Old imports may lack the count; the batch must end somewhere all the same.
                let count = u64::try_from(manifest.entries.record_count.value(row)).unwrap_or(1);
                rows = rows.saturating_add(count);
                end = Offset { snapshot_id, position: position.saturating_add(1) };
                if rows >= limit.rows {
                    return Ok(end);
                }
            }
        }
        Ok(end)
    }

    /// A scan of the files appended after an offset, up to a snapshot.
    fn between(&self, storage: &Storage, metadata: &Arc<TableMetadata>, from: Offset, to: i64) -> Result<Scan> {
        existing(metadata, from.snapshot_id)?;
        let mut found = false;
        for snapshot in metadata.ancestors(to) {
            self.check(snapshot)?;
            if snapshot.snapshot_id == from.snapshot_id {
                found = true;
                break;
            }
        }
        if !found {
            return Err(Error::invalid(format!(
                "cannot read on from snapshot {}: it is not an ancestor of snapshot {to}; the table was rolled back, or the \
                 stream is of another table or branch",
                from.snapshot_id
            )));
        }
        let range = Range {
            from: Some(Point::Id(from.snapshot_id)),
            from_inclusive: true,
            to: Some(Point::Id(to)),
            branch: None,
        };
        let scan = Scan::appends(storage.clone(), metadata.clone(), &range)?;
        Ok(Scan { batch: Some((from, None)), ..scan })
    }

    /// Refuses a snapshot whose changes a stream cannot represent.
    fn check(&self, snapshot: &Snapshot) -> Result<()> {
        let operation = snapshot.summary.as_ref().map(|summary| &summary.operation);
        let id = snapshot.snapshot_id;
        match operation {
            Some(Operation::Append | Operation::Replace) => Ok(()),
            Some(Operation::Delete) if self.skip_deletes => Ok(()),
            Some(Operation::Overwrite) if self.skip_overwrites => Ok(()),
            Some(Operation::Delete) => Err(Error::invalid(format!(
                "cannot process delete snapshot: {id}, to ignore deletes, set streaming-skip-delete-snapshots=true"
            ))),
            Some(Operation::Overwrite) => Err(Error::invalid(format!(
                "cannot process overwrite snapshot: {id}, to ignore overwrites, set streaming-skip-overwrite-snapshots=true"
            ))),
            other => {
                let name = other.map_or("none", |operation| operation.as_str());
                Err(Error::invalid(format!("cannot process unknown snapshot operation: {name} (snapshot id {id})")))
            }
        }
    }

    fn head<'m>(&self, metadata: &'m TableMetadata) -> Result<Option<&'m Arc<Snapshot>>> {
        let Some(name) = &self.branch else { return Ok(metadata.current_snapshot()) };
        let found = metadata.reference(name).filter(|found| found.is_branch());
        let found = found.ok_or_else(|| Error::invalid(format!("the table has no branch {name:?}")))?;
        Ok(metadata.snapshot(found.snapshot_id))
    }
}

impl Scan {
    /// A scan of the files between two offsets from [`Stream::latest`], in order.
    pub fn micro_batch(
        storage: &Storage,
        metadata: &Arc<TableMetadata>,
        stream: &Stream,
        start: Offset,
        end: Offset,
    ) -> Result<Self> {
        if end == Offset::START || start == end {
            let current = metadata.current_snapshot().map(|snapshot| Point::Id(snapshot.snapshot_id));
            let range = Range { from: current.clone(), from_inclusive: true, to: current, branch: None };
            let none = Scan::appends(storage.clone(), metadata.clone(), &range)?;
            return Ok(Self { filter: Expression::False, ..none });
        }
        existing(metadata, end.snapshot_id)?;
        let from = if start == Offset::START { stream.initial(metadata)? } else { start };
        let scan = stream.between(storage, metadata, from, end.snapshot_id)?;
        Ok(Self { batch: Some((from, Some(end))), ..scan })
    }
}

fn existing(metadata: &TableMetadata, id: i64) -> Result<&Arc<Snapshot>> {
    metadata.snapshot(id).ok_or_else(|| {
        Error::invalid(format!("cannot load current offset at snapshot {id}, the snapshot was expired or removed"))
    })
}
