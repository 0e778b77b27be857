//! Applies row-level deletes to files that are read together ("Row-level Deletes", "Scan Planning").
//!
//! [`Deletes`] knows which parts need which delete files. It reads a delete file when the first part needs it and
//! drops it after the last one. The deletes of a part, [`PartDeletes`], go to the file reader before anything is
//! decoded: [positions](positions) and [vectors] as a row selection, [values](equality) as a filter on their columns.
//! If the column `_deleted` is selected, all rows are read and get their [marks]. For a changelog, only the rows that
//! a part lost or got back are read: those that one set of delete files deletes and another does not.
//!
//! `plan::deletes` has decided which deletes apply, including sequence numbers and partitions.

pub mod equality;
mod integers;
mod key;
mod load;
pub mod marks;
pub mod part;
pub mod positions;
pub mod vectors;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use icefield_format::Limits;
use icefield_format::puffin::DeletionVector;

use crate::error::{Error, Result};
use crate::plan::deletes::DeleteKind;
use crate::plan::deletes::delete_parts::DeleteParts;
use crate::plan::projection::wanted::Wanted;
use crate::plan::tasks::part::{DeletePart, FilePart};
use crate::storage::Storage;
use equality::EqualityFiles;
pub(crate) use load::Kept;
use load::{Id, Shared, id, unexpected};
use part::PartDeletes;
use positions::{MOST_PRUNED, Positions, WantedData};

/// The delete files of parts that are read together.
pub struct Deletes {
    storage: Storage,
    wanted: Arc<Wanted>,
    limits: Limits,
    kept: Kept,
    vectors: HashMap<Id, Shared<DeletionVector>>,
    named: vectors::Named,
    positions: HashMap<Id, PositionFile>,
    data: Vec<(String, Option<u64>)>,
    all_data: OnceLock<WantedData>,
    equality: EqualityFiles,
    chosen: Option<Chosen>,
}

/// A choice of rows by position in data files, in addition to deletes.
#[derive(Debug, Clone)]
pub enum Chosen {
    /// All rows except these; a data file that is not in the map keeps all rows.
    Without(HashMap<String, Arc<DeletionVector>>),
    /// Only these rows; a data file that is not in the map keeps none.
    Only(HashMap<String, Arc<DeletionVector>>),
}

/// A position delete file, and the data files whose positions are needed from it.
#[derive(Default)]
struct PositionFile {
    /// Indices of the data files. Collected only until there are more than statistics are searched for.
    wanted: Vec<usize>,
    shared: Shared<Positions>,
}

impl Deletes {
    /// The deletes of some parts; each part may call [`Deletes::of`] once.
    pub fn new<'p>(
        storage: &Storage,
        wanted: &Arc<Wanted>,
        parts: impl IntoIterator<Item = &'p FilePart>,
        limits: &Limits,
    ) -> Result<Self> {
        let mut own = Self {
            storage: storage.clone(),
            wanted: wanted.clone(),
            kept: Kept::new(limits.operation_memory),
            limits: *limits,
            vectors: HashMap::new(),
            named: vectors::Named::default(),
            positions: HashMap::new(),
            data: Vec::new(),
            all_data: OnceLock::new(),
            equality: EqualityFiles::default(),
            chosen: None,
        };
        for part in parts {
            own.expect(part, &part.deletes)?;
            own.expect(part, &part.deleted_by)?;
        }
        own.equality.finish()?;
        Ok(own)
    }

    /// The same, within a memory budget that other reads have too.
    #[must_use]
    pub(crate) fn within(self, kept: &Arc<Kept>) -> Self {
        Self { kept: Kept::part_of(kept), ..self }
    }

    /// The same, restricted to some rows.
    #[must_use]
    pub fn choosing(mut self, chosen: Option<Chosen>) -> Self {
        self.chosen = chosen;
        self
    }

    /// Registers deletes that a part will ask for.
    fn expect(&mut self, part: &FilePart, deletes: &DeleteParts) -> Result<()> {
        let mut place = None;
        for delete in by_position(part, deletes)? {
            match delete.kind {
                DeleteKind::Vector => self.vectors.entry(id(delete)).or_default().expect_use(),
                _ => {
                    let place = *place.get_or_insert_with(|| {
                        self.data.push((part.path.clone(), u64::try_from(part.record_count).ok()));
                        self.data.len() - 1
                    });
                    let file = self.positions.entry(id(delete)).or_default();
                    if file.wanted.len() <= MOST_PRUNED {
                        file.wanted.push(place);
                    }
                    file.shared.expect_use();
                }
            }
        }
        self.equality.expect(deletes)
    }

    /// The deletes of a part.
    pub fn of(&self, part: &FilePart) -> Result<PartDeletes> {
        let mut found = self.of_files(part, &part.deletes)?;
        if !part.deleted_by.is_empty() {
            found.deleted_by = Some(Box::new(self.of_files(part, &part.deleted_by)?));
        }
        match &self.chosen {
            None => {}
            Some(Chosen::Without(rows)) => join(&mut found.positions, rows.get(&part.path)),
            Some(Chosen::Only(rows)) => {
                let positions = rows.get(&part.path).filter(|rows| !rows.is_empty()).cloned();
                found.deleted_by = Some(Box::new(PartDeletes { positions, ..PartDeletes::default() }));
            }
        }
        Ok(found)
    }

    /// The positions of a part that delete files delete, for parts that need only these; replaces [`Deletes::of`].
    pub fn positions_of(&self, part: &FilePart) -> Result<Option<Arc<DeletionVector>>> {
        self.by_position(part, &part.deletes)
    }

    fn by_position(&self, part: &FilePart, deletes: &DeleteParts) -> Result<Option<Arc<DeletionVector>>> {
        let mut positions: Option<Arc<DeletionVector>> = None;
        for delete in by_position(part, deletes)? {
            let found = match delete.kind {
                DeleteKind::Vector => Some(self.vector(delete, part)?),
                _ => self.positions(delete)?.of(&part.path),
            };
            join(&mut positions, found.as_ref());
        }
        Ok(positions.filter(|found| !found.is_empty()))
    }

    fn of_files(&self, part: &FilePart, deletes: &DeleteParts) -> Result<PartDeletes> {
        if deletes.is_empty() {
            return Ok(PartDeletes::default());
        }
        let positions = self.by_position(part, deletes)?;
        let equality = self.equality.of(deletes, &self.storage, &self.wanted, &self.limits, &self.kept)?;
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
            let vector = vectors::load(&self.storage, delete, &self.named, &self.limits)?;
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
            let few;
            let wanted = match file.wanted.len() > MOST_PRUNED {
                // One map of all data files, shared by the delete files that have many. Positions of other files are
                // simply not used.
                true => self.all_data.get_or_init(|| self.data.iter().cloned().collect()),
                false => {
                    few = file.wanted.iter().filter_map(|place| self.data.get(*place)).cloned().collect();
                    &few
                }
            };
            let positions = Positions::load(&self.storage, delete, wanted, &self.limits)?;
            let bytes = positions.memory();
            Ok((positions, bytes))
        })
    }
}

/// Merges positions into others.
fn join(positions: &mut Option<Arc<DeletionVector>>, more: Option<&Arc<DeletionVector>>) {
    match (positions, more) {
        (_, None) => {}
        (none @ None, Some(more)) => *none = Some(more.clone()),
        (Some(all), Some(more)) => Arc::make_mut(all).union_with(more),
    }
}

impl DeletePart {
    /// Refuses a delete file with missing rows, because the rows they delete would come back.
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

/// The position deletes among some deletes: only the deletion vector if there is one, since it includes all earlier
/// deletes.
fn by_position<'d>(part: &FilePart, deletes: &'d DeleteParts) -> Result<Vec<&'d Arc<DeletePart>>> {
    let of_kind = |kind: DeleteKind| deletes.iter().filter(move |delete| delete.kind == kind);
    let vectors: Vec<_> = of_kind(DeleteKind::Vector).collect();
    match &vectors[..] {
        [] => Ok(of_kind(DeleteKind::Positions).collect()),
        [_] => Ok(vectors),
        [..] => Err(Error::corrupt_file(&*part.path, "two deletion vectors apply to it")),
    }
}
