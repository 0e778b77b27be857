//! Applies equality delete files ("Equality Delete Files"): a row is deleted if its equality columns equal those of a
//! row in the delete file.
//!
//! Delete files with the same columns that apply to the same data files are merged into one set of keys; each key
//! knows the files that contain it. So a data file is tested against one set, however many delete files a stream of
//! changes has left.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, FieldRef, Fields, Schema as ArrowSchema};
use icefield_format::Limits;
use icefield_format::manifest::FileContent;
use icefield_format::types::arrow::ToArrow;
use icefield_format::types::{Field, Schema, Type};

use super::key::{Keys, below};
use super::load::{Id, Kept, Shared, id, unexpected};
use crate::error::{Error, Result};
use crate::file::{self, Filter, Request, is_stored};
use crate::plan::deletes::DeleteKind;
use crate::plan::deletes::delete_parts::DeleteParts;
use crate::plan::projection::wanted::Wanted;
use crate::plan::tasks::part::{DeleteList, DeletePart};
use crate::read::columns::{Planned, Rules, Shape, Source as FileSource};
use crate::read::file_columns::{plan_pairs, with_ids};
use crate::read::reshape::Reshape;
use crate::storage::Storage;
use crate::{interrupt, runtime};

/// The equality delete files of parts that are read together.
#[derive(Default)]
pub struct EqualityFiles {
    /// Index in `files`, by delete file.
    places: HashMap<Id, usize>,
    files: Vec<Arc<DeletePart>>,
    /// For each file another one of its group, or itself: a union-find forest.
    linked: Vec<usize>,
    /// For each file the number of parts for which it is the first file of its group.
    uses: Vec<usize>,
    /// For each file the number of its column set.
    columns: Vec<usize>,
    known_columns: HashMap<Vec<i32>, usize>,
    /// For each delete list shared by parts, by address, the indices of its files. The list is kept alive, so that
    /// its address is not reused.
    of_list: HashMap<usize, (DeleteList, Vec<Option<usize>>)>,
    groups: Vec<DeleteGroup>,
    /// For each file its group, and its number in the group.
    of_group: Vec<(usize, u32)>,
}

/// Delete files with the same columns, connected by data files to which two of them apply.
struct DeleteGroup {
    columns: Arc<KeyColumns>,
    files: Vec<Arc<DeletePart>>,
    /// The set of the whole group; `None` if the set exceeds the memory budget.
    shared: Shared<Option<Arc<EqualitySet>>>,
}

/// The columns that some equality deletes compare.
#[derive(Debug)]
struct KeyColumns {
    pairs: Vec<(Field, FieldRef)>,
    types: Vec<DataType>,
}

/// The keys of some equality delete files.
pub struct EqualitySet {
    keys: Keys,
    /// Which files contain each key.
    seen: FilesByKey,
}

/// Linked lists of the files that contain a key, newest first; a key of one file needs none.
#[derive(Default)]
struct FilesByKey {
    is_needed: bool,
    links: Vec<(u32, Option<u32>)>,
}

/// A set, and the files in it that apply to a part.
pub struct Applied {
    columns: Arc<KeyColumns>,
    set: Arc<EqualitySet>,
    /// Whether each file applies; `None` if all do.
    files: Option<Arc<[bool]>>,
}

impl EqualityFiles {
    /// Registers the equality deletes of a part.
    pub fn expect(&mut self, deletes: &DeleteParts) -> Result<()> {
        let (list, runs) = deletes.shared();
        if runs.is_empty() {
            return Ok(());
        }
        let address = Arc::as_ptr(list).addr();
        let mut of_list = match self.of_list.remove(&address) {
            Some((_, of_list)) => of_list,
            None => vec![None; list.len()],
        };
        // The first file of each column set. Most tables have one set.
        let mut firsts: Vec<(usize, usize)> = Vec::new();
        for run in runs {
            let places = of_list.get_mut(run.start as usize..run.end as usize).ok_or_else(unexpected)?;
            for (delete, known) in run.of(list).iter().zip(places) {
                let Some(delete) = delete.as_ref().filter(|delete| delete.kind == DeleteKind::Equality) else {
                    continue;
                };
                let place = *known.get_or_insert_with(|| self.place(delete));
                let columns = self.columns.get(place).copied().ok_or_else(unexpected)?;
                match firsts.iter().find(|(known, _)| *known == columns) {
                    Some((_, first)) => self.link(*first, place),
                    None => {
                        firsts.push((columns, place));
                        if let Some(uses) = self.uses.get_mut(place) {
                            *uses += 1;
                        }
                    }
                }
            }
        }
        self.of_list.insert(address, (list.clone(), of_list));
        Ok(())
    }

    /// The index of a file; a new file is its own group.
    fn place(&mut self, delete: &Arc<DeletePart>) -> usize {
        let next = self.files.len();
        let place = *self.places.entry(id(delete)).or_insert(next);
        if place == next {
            self.files.push(delete.clone());
            self.linked.push(next);
            self.uses.push(0);
            let columns = self.known_columns.len();
            self.columns.push(*self.known_columns.entry(ids(delete)).or_insert(columns));
        }
        place
    }

    fn root(&self, mut place: usize) -> usize {
        while let Some(next) = self.linked.get(place).filter(|next| **next != place) {
            place = *next;
        }
        place
    }

    fn link(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        if let Some(linked) = self.linked.get_mut(one.max(other)) {
            *linked = one.min(other);
        }
    }

    /// Forms the groups of the registered files. The files of a group are ordered by sequence number.
    pub fn finish(&mut self) -> Result<()> {
        let mut by_root: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for place in 0..self.files.len() {
            by_root.entry(self.root(place)).or_default().push(place);
        }
        self.of_group = vec![(0, 0); self.files.len()];
        let mut known: HashMap<Vec<i32>, Arc<KeyColumns>> = HashMap::new();
        for mut places in by_root.into_values() {
            let file = |place: &usize| self.files.get(*place).cloned().ok_or_else(unexpected);
            places.sort_by_key(|place| self.files.get(*place).map(|file| file.sequence_number));
            let files = places.iter().map(file).collect::<Result<Vec<_>>>()?;
            let first = files.first().ok_or_else(unexpected)?;
            let columns = match known.get(&ids(first)) {
                Some(columns) => columns.clone(),
                None => {
                    let columns = Arc::new(KeyColumns::new(first)?);
                    known.insert(ids(first), columns.clone());
                    columns
                }
            };
            let mut shared = Shared::default();
            for (number, place) in (0u32..).zip(&places) {
                if let Some(slot) = self.of_group.get_mut(*place) {
                    *slot = (self.groups.len(), number);
                }
                (0..self.uses.get(*place).copied().unwrap_or_default()).for_each(|_| shared.expect_use());
            }
            self.groups.push(DeleteGroup { columns, files, shared });
        }
        Ok(())
    }

    /// The equality deletes that apply to a part.
    pub fn of(
        &self,
        deletes: &DeleteParts,
        storage: &Storage,
        wanted: &Wanted,
        limits: &Limits,
        kept: &Kept,
    ) -> Result<Vec<Applied>> {
        let mut of_groups: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        let (list, runs) = deletes.shared();
        let places =
            self.of_list.get(&Arc::as_ptr(list).addr()).map(|(_, places)| places.as_slice()).unwrap_or_default();
        for (delete, place) in runs.iter().flat_map(|run| run.of(list).iter().zip(run.of(places))) {
            if delete.as_ref().is_none_or(|delete| delete.kind != DeleteKind::Equality) {
                continue;
            }
            let place = place.and_then(|place| self.of_group.get(place));
            let (group, number) = place.ok_or_else(unexpected)?;
            of_groups.entry(*group).or_default().push(*number);
        }
        let mut applied = Vec::new();
        for (group, numbers) in of_groups {
            let group = self.groups.get(group).ok_or_else(unexpected)?;
            let one = group.apply(&numbers, &DeleteFiles { storage, wanted, limits }, kept)?;
            if one.set.keys.len() > 0 {
                applied.push(one);
            }
        }
        Ok(applied)
    }
}

/// Where delete files are, and how to read them.
struct DeleteFiles<'a> {
    storage: &'a Storage,
    wanted: &'a Wanted,
    limits: &'a Limits,
}

impl DeleteGroup {
    fn apply(&self, numbers: &[u32], source: &DeleteFiles<'_>, kept: &Kept) -> Result<Applied> {
        let columns = self.columns.clone();
        let whole = self.shared.get(kept, || {
            let set = EqualitySet::load(&columns, &self.files, source, Some(kept.most()))?.map(Arc::new);
            let bytes = set.as_ref().map_or(0, |set| set.memory());
            Ok((set, bytes))
        })?;
        if let Some(set) = whole.as_ref() {
            let mut files = vec![false; self.files.len()];
            for number in numbers {
                if let Some(file) = files.get_mut(*number as usize) {
                    *file = true;
                }
            }
            let files = (!files.iter().all(|applies| *applies)).then(|| files.into());
            return Ok(Applied { columns, set: set.clone(), files });
        }
        // The whole group exceeds the memory budget: load only the files of this part.
        let own = numbers.iter().filter_map(|number| self.files.get(*number as usize).cloned()).collect::<Vec<_>>();
        let set = EqualitySet::load(&columns, &own, source, None)?.ok_or_else(unexpected)?;
        Ok(Applied { columns, set: Arc::new(set), files: None })
    }
}

impl KeyColumns {
    fn new(delete: &DeletePart) -> Result<Self> {
        let mut own = Self { pairs: Vec::new(), types: Vec::new() };
        for field in delete.key.iter() {
            let wrong = || {
                let message = format!(
                    "it deletes by column {}, which is not a primitive field outside lists and maps",
                    field.name
                );
                Error::corrupt_file(&*delete.path, message)
            };
            let schema = Schema::new(0, vec![field.clone()])?;
            let arrow = schema.to_arrow(&ToArrow::default())?;
            let target = arrow.fields().first().cloned().ok_or_else(wrong)?;
            let mut leaf = field;
            let mut ty = target.data_type();
            while let (Type::Struct(inner), DataType::Struct(fields)) = (&leaf.ty, ty) {
                let ([only], [child]) = (&inner.fields[..], &fields[..]) else { return Err(wrong()) };
                (leaf, ty) = (only, child.data_type());
            }
            if !matches!(leaf.ty, Type::Primitive(_)) || !delete.equality_ids.contains(&leaf.id) {
                return Err(wrong());
            }
            own.types.push(ty.clone());
            own.pairs.push((field.clone(), target));
        }
        if own.pairs.is_empty() {
            return Err(Error::corrupt_file(&*delete.path, "an equality delete file without equality ids"));
        }
        Ok(own)
    }

    /// Plans how to read the columns from a file.
    fn plan(&self, rules: &Rules<'_>, fields: &Fields) -> Result<(Vec<usize>, Reshape)> {
        let (leaves, planned) = plan_pairs(rules, &self.pairs, fields)?;
        let schema = ArrowSchema::new(self.pairs.iter().map(|(_, target)| target.clone()).collect::<Fields>());
        Ok((leaves, Reshape::new(rules.path, Arc::new(schema), planned)))
    }

    /// Refuses a delete file that lacks one of the columns. A data file may lack it: its rows have the default, or
    /// null.
    fn check(&self, rules: &Rules<'_>, fields: &Fields) -> Result<()> {
        let (_, planned) = plan_pairs(rules, &self.pairs, fields)?;
        let lacking = self.pairs.iter().zip(&planned).find(|((field, _), planned)| lacks(field, planned));
        let Some(((field, _), _)) = lacking else { return Ok(()) };
        let column = name(field);
        let message = format!("it deletes by column {column}, which it does not have: what it deletes is not known");
        Err(Error::corrupt_file(rules.path, message))
    }

    /// The compared columns of a batch, extracted from their structs.
    fn of(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        batch.columns().iter().map(leaf).collect()
    }
}

/// Whether a delete file lacks values for its equality column. Columns of type `unknown` are always null and not
/// stored. For others, "the delete columns are the columns of the delete file", so the default for data files does
/// not apply.
fn lacks(field: &Field, planned: &Planned) -> bool {
    match (&field.ty, &planned.source) {
        (Type::Struct(ty), FileSource::File { shape: Shape::Struct(inner), .. }) => {
            ty.fields.iter().zip(inner).any(|(field, planned)| lacks(field, planned))
        }
        (_, FileSource::File { .. }) => false,
        _ => is_stored(leaf_of(field)),
    }
}

/// The primitive field inside an equality column.
fn leaf_of(mut field: &Field) -> &Field {
    while let Type::Struct(ty) = &field.ty
        && let [only] = &ty.fields[..]
    {
        field = only;
    }
    field
}

/// The dotted name of the primitive field inside an equality column.
fn name(mut field: &Field) -> String {
    let mut name = field.name.clone();
    while let Type::Struct(ty) = &field.ty
        && let Some(inner) = ty.fields.first()
    {
        name = format!("{name}.{}", inner.name);
        field = inner;
    }
    name
}

/// The ids of a file's equality columns, without duplicates.
fn ids(delete: &DeletePart) -> Vec<i32> {
    let ids: BTreeSet<i32> = delete.equality_ids.iter().copied().collect();
    ids.into_iter().collect()
}

/// The single primitive column inside a column; null where a parent struct is null.
fn leaf(column: &ArrayRef) -> Result<ArrayRef> {
    let mut column = column.clone();
    while let Some(parent) = column.as_struct_opt() {
        let child = parent.columns().first().ok_or_else(unexpected)?;
        column = below(child, parent.nulls())?;
    }
    Ok(column)
}

impl EqualitySet {
    /// Reads some delete files. `None` if they take more than `most` bytes; without `most` that is an error.
    fn load(
        columns: &Arc<KeyColumns>,
        files: &[Arc<DeletePart>],
        source: &DeleteFiles<'_>,
        most: Option<usize>,
    ) -> Result<Option<Self>> {
        let seen = FilesByKey { is_needed: files.len() > 1, links: Vec::new() };
        let set = Mutex::new(Self { keys: Keys::new(&columns.types, !seen.is_needed)?, seen });
        let fits = AtomicBool::new(true);
        runtime::for_each(files, runtime::threads(), |number, file| {
            if fits.load(Ordering::Relaxed) && !add_file(&set, file, number, columns, source, most)? {
                fits.store(false, Ordering::Relaxed);
            }
            Ok::<_, Error>(())
        })?;
        let set = set.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(fits.into_inner().then_some(set))
    }

    fn memory(&self) -> usize {
        self.keys.memory() + self.seen.links.capacity() * size_of::<(u32, Option<u32>)>()
    }
}

/// Adds the keys of a file and returns whether they fit.
fn add_file(
    set: &Mutex<EqualitySet>,
    delete: &DeletePart,
    number: usize,
    columns: &KeyColumns,
    source: &DeleteFiles<'_>,
    most: Option<usize>,
) -> Result<bool> {
    let number = u32::try_from(number).map_err(|_| Error::unsupported("2^32 and more equality delete files"))?;
    let content = FileContent::EqualityDeletes;
    let mut file = file::open(source.storage, &delete.file_ref(), &delete.format, content)?;
    let schema = Arc::new(Schema::new(0, columns.pairs.iter().take(1).map(|(field, _)| field.clone()).collect())?);
    let fields = file.bind(&|fields| with_ids(source.wanted, &delete.format, fields), &schema);
    let rules = Rules { path: &delete.path, constants: &() };
    columns.check(&rules, &fields)?;
    let (leaves, reshape) = columns.plan(&rules, &fields)?;
    let mut rows = 0usize;
    for batch in file.batches(Request::all(leaves))?.into_batches() {
        interrupt::check()?;
        let batch = reshape.apply(&batch?)?;
        rows = rows.saturating_add(batch.num_rows());
        let columns = columns.of(&batch)?;
        let mut set = set.lock().unwrap_or_else(PoisonError::into_inner);
        let EqualitySet { keys, seen } = &mut *set;
        keys.add(&columns, |known| seen.add(known, number))?;
        match most {
            Some(most) if set.memory() > most => return Ok(false),
            Some(_) => {}
            None => {
                let mut held = source.limits.held();
                held.read(usize::try_from(delete.size).unwrap_or(usize::MAX));
                held.keep(set.memory()).map_err(|error| error.in_file(&delete.path))?;
            }
        }
    }
    delete.check_rows(rows)?;
    Ok(true)
}

impl FilesByKey {
    /// Adds a file to the list of a key.
    fn add(&mut self, chain: Option<u32>, file: u32) -> Result<u32> {
        if !self.is_needed {
            return Ok(0);
        }
        let newest = chain.and_then(|chain| self.links.get(chain as usize));
        match (chain, newest) {
            (Some(chain), Some((newest, _))) if *newest == file => Ok(chain),
            _ => {
                let many = |_| Error::unsupported("equality deletes of 2^32 and more values");
                let place = u32::try_from(self.links.len()).map_err(many)?;
                self.links.push((file, chain));
                Ok(place)
            }
        }
    }

    fn any(&self, chain: u32, files: &[bool]) -> bool {
        let link = |chain: u32| self.links.get(chain as usize).copied();
        let mut links = std::iter::successors(link(chain), |(_, next)| next.and_then(link));
        links.any(|(file, _)| files.get(file as usize).copied().unwrap_or(false))
    }
}

impl Applied {
    /// Upper bound of the number of keys.
    pub fn keys(&self) -> usize {
        self.set.keys.len()
    }

    /// A filter that keeps the rows of a file whose keys are not in the set.
    pub fn test(&self, rules: &Rules<'_>, fields: &Fields) -> Result<Filter> {
        let (leaves, reshape) = self.columns.plan(rules, fields)?;
        let (columns, set, files) = (self.columns.clone(), self.set.clone(), self.files.clone());
        let test = move |batch: &RecordBatch| {
            let values = columns.of(&reshape.apply(batch)?)?;
            match &files {
                None => set.keys.absent(&values, batch.num_rows(), |_| true),
                Some(files) => set.keys.absent(&values, batch.num_rows(), |chain| set.seen.any(chain, files)),
            }
        };
        Ok(Filter { leaves, test: Arc::new(test) })
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::types::Int64Type;
    use arrow_array::{Int64Array, StructArray};
    use arrow_buffer::NullBuffer;
    use arrow_schema::Field as ArrowField;

    use super::*;

    /// Values under a null struct are ignored, whatever the decoder leaves there.
    #[test]
    fn a_null_struct_has_null_in_it() {
        let child: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), Some(2), None]));
        let field = Arc::new(ArrowField::new("x", DataType::Int64, true));
        let nulls = NullBuffer::from(vec![true, false, true]);
        let inner: ArrayRef = Arc::new(StructArray::new(vec![field].into(), vec![child], Some(nulls)));
        let field = Arc::new(ArrowField::new("in", inner.data_type().clone(), true));
        let outer: ArrayRef = Arc::new(StructArray::new(vec![field].into(), vec![inner], None));
        let found = leaf(&outer).unwrap();
        assert_eq!(found.as_primitive::<Int64Type>().iter().collect::<Vec<_>>(), [Some(1), None, None]);
    }

    #[test]
    fn a_key_knows_every_file_that_has_it() {
        let mut seen = FilesByKey { is_needed: true, links: Vec::new() };
        let first = seen.add(None, 0).unwrap();
        assert_eq!(seen.add(Some(first), 0).unwrap(), first, "the same file again");
        let second = seen.add(Some(first), 2).unwrap();
        for (files, expected) in
            [([true, false, false], true), ([false, true, false], false), ([false, false, true], true)]
        {
            assert_eq!(seen.any(second, &files), expected);
        }
        assert!(!seen.any(first, &[false, true, true]));
    }
}
