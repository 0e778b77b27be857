//! Deleted rows of the files that are read together ("Row-level Deletes", "Scan Planning").
//!
//! [`Deletes`] knows which of its parts need which delete files, reads each of these once when the first part asks for it, and
//! lets go of it when the last one has it. What they delete of a part, [`PartDeletes`], goes to the file reader before anything
//! is decoded: [positions](positions) and [vectors] as the rows to read, [values](equality) as a test of their columns. Where the
//! column `_deleted` is asked for, all rows are read and get their [marks]. Of a part of a changelog that lost rows, or got some
//! back, only those are read: rows that one set of delete files deletes and another does not.
//!
//! Which deletes apply is settled by `plan::deletes`, sequence numbers and partitions included.

pub mod equality;
mod key;
mod load;
pub mod marks;
pub mod positions;
pub mod vectors;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_schema::Fields;
use icefield_format::Limits;
use icefield_format::puffin::DeletionVector;
use roaring::RoaringTreemap;

use super::columns::Rules;
use crate::error::{Error, Result};
use crate::file::Filter;
use crate::plan::deletes::DeleteKind;
use crate::plan::part::{DeletePart, FilePart};
use crate::plan::wanted::Wanted;
use crate::storage::Storage;
use equality::{Applied, EqualityFiles};
use load::{Id, Kept, Shared, id, unexpected};
use marks::Marks;
use positions::Positions;

/// The delete files of the parts that are read together.
pub struct Deletes {
    storage: Storage,
    wanted: Arc<Wanted>,
    limits: Limits,
    kept: Kept,
    vectors: HashMap<Id, Shared<DeletionVector>>,
    positions: HashMap<Id, PositionFile>,
    equality: EqualityFiles,
}

/// Fewer keys than this part of the rows of a file leave most of them.
const MANY: usize = 2;

/// A position delete file and the data files whose positions are wanted of it, each with its rows where they are known.
#[derive(Default)]
struct PositionFile {
    wanted: HashMap<String, Option<u64>>,
    shared: Shared<Positions>,
}

/// What is deleted of a part.
#[derive(Default)]
pub struct PartDeletes {
    /// By position in the file.
    pub positions: Option<Arc<DeletionVector>>,
    /// By values.
    pub equality: Vec<Applied>,
    /// What deletes the rows that are read; without it all that are left are.
    pub deleted_by: Option<Box<PartDeletes>>,
}

impl Deletes {
    /// The deletes of some parts, each of which may ask once with [`Deletes::of`].
    pub fn new(storage: &Storage, wanted: &Arc<Wanted>, parts: &[FilePart], limits: &Limits) -> Result<Self> {
        let mut own = Self {
            storage: storage.clone(),
            wanted: wanted.clone(),
            kept: Kept::new(limits.operation_memory),
            limits: *limits,
            vectors: HashMap::new(),
            positions: HashMap::new(),
            equality: EqualityFiles::default(),
        };
        for part in parts {
            own.expect(part, &part.deletes)?;
            own.expect(part, &part.deleted_by)?;
        }
        own.equality.finish()?;
        Ok(own)
    }

    /// Announces that some deletes of a part will be asked for.
    fn expect(&mut self, part: &FilePart, deletes: &[Arc<DeletePart>]) -> Result<()> {
        for delete in by_position(part, deletes)? {
            match delete.kind {
                DeleteKind::Vector => self.vectors.entry(id(delete)).or_default().expect_use(),
                _ => {
                    let file = self.positions.entry(id(delete)).or_default();
                    file.wanted.insert(part.path.clone(), u64::try_from(part.record_count).ok());
                    file.shared.expect_use();
                }
            }
        }
        self.equality.expect(&equality_of(deletes))
    }

    /// What is deleted of a part.
    pub fn of(&self, part: &FilePart) -> Result<PartDeletes> {
        let mut found = self.of_files(part, &part.deletes)?;
        if !part.deleted_by.is_empty() {
            found.deleted_by = Some(Box::new(self.of_files(part, &part.deleted_by)?));
        }
        Ok(found)
    }

    fn of_files(&self, part: &FilePart, deletes: &[Arc<DeletePart>]) -> Result<PartDeletes> {
        if deletes.is_empty() {
            return Ok(PartDeletes::default());
        }
        let mut positions: Option<Arc<DeletionVector>> = None;
        for delete in by_position(part, deletes)? {
            let found = match delete.kind {
                DeleteKind::Vector => Some(self.vector(delete, part)?),
                _ => self.positions(delete)?.of(&part.path),
            };
            if let Some(found) = found {
                match &mut positions {
                    None => positions = Some(found),
                    Some(all) => Arc::make_mut(all).union_with(&found),
                }
            }
        }
        let equality = equality_of(deletes);
        let equality = self.equality.of(&equality, &self.storage, &self.wanted, &self.limits, &self.kept)?;
        let positions = positions.filter(|found| !found.is_empty());
        Ok(PartDeletes { positions, equality, deleted_by: None })
    }

    fn vector(&self, delete: &Arc<DeletePart>, part: &FilePart) -> Result<Arc<DeletionVector>> {
        if delete.referenced_data_file.as_deref() != Some(&part.path) {
            let named = delete.referenced_data_file.as_deref().unwrap_or("no data file");
            let message = format!("its deletion vector references {named}, but is applied to {}", part.path);
            return Err(Error::corrupt_file(&*delete.path, message));
        }
        let shared = self.vectors.get(&id(delete)).ok_or_else(unexpected)?;
        shared.get(&self.kept, || {
            let vector = vectors::load(&self.storage, delete, &self.limits)?;
            if let (Some(last), Ok(rows)) = (vector.max(), u64::try_from(part.record_count))
                && last >= rows
            {
                let message =
                    format!("its deletion vector has position {last} of {}, which has {rows} rows", part.path);
                return Err(Error::corrupt_file(&*delete.path, message));
            }
            let bytes = vector.as_bitmap().serialized_size();
            Ok((vector, bytes))
        })
    }

    fn positions(&self, delete: &Arc<DeletePart>) -> Result<Arc<Positions>> {
        let file = self.positions.get(&id(delete)).ok_or_else(unexpected)?;
        file.shared.get(&self.kept, || {
            let positions = Positions::load(&self.storage, delete, &file.wanted, &self.limits)?;
            let bytes = positions.memory();
            Ok((positions, bytes))
        })
    }
}

impl PartDeletes {
    /// The rows that are left by positions; `None` where that is all of them.
    pub fn rows_left(&self) -> Option<Vec<Range<u64>>> {
        if let Some(only) = self.only_positions() {
            let mut rows = only.as_bitmap().clone();
            if let Some(deleted) = &self.positions {
                rows -= deleted.as_bitmap();
            }
            return Some(runs(&rows).map(|(start, end)| start..end).collect());
        }
        self.positions.as_ref().map(|deleted| rows_without(deleted))
    }

    /// Of rows that must have been deleted, their positions, if positions alone tell.
    fn only_positions(&self) -> Option<&DeletionVector> {
        self.deleted_by.as_ref().filter(|by| by.equality.is_empty()).and_then(|by| by.positions.as_deref())
    }

    /// Whether rows must have been deleted by what deletes none.
    pub fn is_nothing_left(&self) -> bool {
        self.deleted_by.as_ref().is_some_and(|by| by.equality.is_empty() && by.positions.is_none())
    }

    /// The test for the rows that must have been deleted, where positions alone do not tell.
    pub fn deleted(&self, rules: &Rules<'_>, fields: &Fields) -> Result<Option<Filter>> {
        let Some(by) = self.deleted_by.as_ref().filter(|by| !by.equality.is_empty()) else { return Ok(None) };
        let marks = Arc::new(Marks::new(by, rules, &mut fields.clone())?);
        Ok(Some(marks.deleted()))
    }

    /// Tests for the rows that are left by values.
    fn tests(&self, rules: &Rules<'_>, fields: &Fields) -> Result<Vec<Filter>> {
        self.equality.iter().map(|applied| applied.test(rules, fields)).collect()
    }

    /// The same, in two: what pays before other columns are decoded, since it may leave few rows of a file that has so many,
    /// and what does not.
    pub fn early_and_late(
        &self,
        rules: &Rules<'_>,
        fields: &Fields,
        rows: i64,
    ) -> Result<(Vec<Filter>, Option<Filter>)> {
        let (mut early, mut late) = (Vec::new(), Vec::new());
        for applied in &self.equality {
            let is_late = usize::try_from(rows).is_ok_and(|rows| applied.keys() < rows / MANY);
            if is_late { &mut late } else { &mut early }.push(applied.test(rules, fields)?);
        }
        Ok((early, Filter::all(late)))
    }
}

impl DeletePart {
    /// Refuses a file that has lost rows: what they deleted would come back.
    fn check_rows(&self, found: usize) -> Result<()> {
        match usize::try_from(self.record_count) {
            Ok(expected) if found < expected => {
                let message = format!("it has {found} rows, but the manifest says {expected}");
                Err(Error::corrupt_file(&*self.path, message))
            }
            _ => Ok(()),
        }
    }
}

/// Those of some deletes of a part that delete by position: a vector alone if there is one, which has all that was deleted before it.
fn by_position<'d>(part: &FilePart, deletes: &'d [Arc<DeletePart>]) -> Result<Vec<&'d Arc<DeletePart>>> {
    let of_kind = |kind: DeleteKind| deletes.iter().filter(move |delete| delete.kind == kind);
    let vectors: Vec<_> = of_kind(DeleteKind::Vector).collect();
    match &vectors[..] {
        [] => Ok(of_kind(DeleteKind::Positions).collect()),
        [_] => Ok(vectors),
        [..] => Err(Error::corrupt_file(&*part.path, "two deletion vectors apply to it")),
    }
}

fn equality_of(deletes: &[Arc<DeletePart>]) -> Vec<Arc<DeletePart>> {
    deletes.iter().filter(|delete| delete.kind == DeleteKind::Equality).cloned().collect()
}

/// The rows between deleted ones. A file's number of rows is the reader's to know.
fn rows_without(deleted: &DeletionVector) -> Vec<Range<u64>> {
    let mut left = Vec::new();
    let mut next = 0u64;
    for (start, end) in runs(deleted.as_bitmap()) {
        if start > next {
            left.push(next..start);
        }
        next = end;
    }
    left.push(next..i64::MAX.unsigned_abs());
    left
}

/// Runs of positions, each with its first and the one behind its last; those that meet at a multiple of 2^32 are two.
fn runs(positions: &RoaringTreemap) -> impl Iterator<Item = (u64, u64)> {
    positions.bitmaps().flat_map(|(key, bitmap)| {
        let base = u64::from(key) << 32;
        let mut positions = bitmap.iter();
        std::iter::from_fn(move || {
            let run = positions.next_range()?;
            Some((base + u64::from(*run.start()), base + u64::from(*run.end()) + 1))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_left_are_those_between_the_deleted_ones() {
        let end = i64::MAX.unsigned_abs();
        let boundary = 1u64 << 32;
        for (deleted, left) in [
            (vec![], vec![(0, end)]),
            (vec![0, 1, 2], vec![(3, end)]),
            (vec![1, 3, 4], vec![(0, 1), (2, 3), (5, end)]),
            (
                vec![boundary - 1, boundary, boundary + 5],
                vec![(0, boundary - 1), (boundary + 1, boundary + 5), (boundary + 6, end)],
            ),
        ] {
            let found = rows_without(&DeletionVector::from_positions(deleted).unwrap());
            assert_eq!(found.into_iter().map(|range| (range.start, range.end)).collect::<Vec<_>>(), left);
        }
    }
}
