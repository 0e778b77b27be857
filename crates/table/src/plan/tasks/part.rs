//! Parts of data files with everything that a reader needs to know about them.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use arrow_array::Array;
use icefield_format::encryption::HiddenBytes;
use icefield_format::expr::BoundExpr;
use icefield_format::manifest::Entries;
use icefield_format::spec::PartitionSpec;
use icefield_format::transform::Transform;
use icefield_format::types::{Field, Schema, StructType, Type};
use icefield_format::value::Value;

use super::split::{Piece, with_sizes};
use crate::error::{Error, Result};
use crate::plan::changes::Change;
use crate::plan::deletes::Deletes;
pub(crate) use crate::plan::deletes::delete_parts::DeleteList;
pub use crate::plan::deletes::delete_parts::{DeletePart, DeleteParts};
use crate::plan::deletes::delete_parts::{key_metadata, size};
use crate::plan::deletes::links::Linked;
use crate::plan::projection::metadata_columns::FileFacts;
use crate::plan::projection::wanted::Wanted;
use crate::plan::{Plan, PlannedManifest, Scan};
use crate::storage::FileRef;

/// A part of a data file.
#[derive(Debug, Clone)]
pub struct FilePart {
    /// Location.
    pub path: String,
    /// `parquet`, `orc` or `avro`, in lower case. A string, because a file in a format of a later specification can
    /// be planned; only reading it is an error, which names the format.
    pub format: String,
    /// Bytes of the whole file.
    pub size: u64,
    /// Encryption key metadata of the file.
    pub key_metadata: Option<HiddenBytes>,
    /// First byte of the part.
    pub start: u64,
    /// Bytes of the part.
    pub length: u64,
    /// Rows of the whole file.
    pub record_count: i64,
    /// The partition of the file.
    pub partition: FilePartition,
    /// Data sequence number, inherited as the last update of rows without their own; `None` in version 1 tables.
    pub sequence_number: Option<i64>,
    /// Row id of the first row of the file; `None` if rows have no ids.
    pub first_row_id: Option<i64>,
    /// The delete files that apply, shared by all parts they apply to.
    pub deletes: DeleteParts,
    /// The part of the filter still to be tested on rows.
    pub residual: BoundExpr,
    /// In a changelog: the change of the rows.
    pub change: Option<Change>,
    /// In a changelog, unless empty: only rows deleted by one of these and by none of `deletes` are read.
    pub deleted_by: DeleteParts,
}

/// The partition of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct FilePartition {
    /// The partition spec.
    pub spec: Arc<PlannedSpec>,
    /// The tuple, in the order of the spec's fields.
    pub tuple: Vec<Option<Value>>,
}

/// A partition spec and the type of its tuples.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedSpec {
    /// The spec.
    pub spec: Arc<PartitionSpec>,
    /// One tuple field for each field of the spec.
    pub partition_type: StructType,
}

impl FilePartition {
    /// The partition of a file in an unpartitioned table.
    pub fn unpartitioned() -> Self {
        let spec = Arc::new(PartitionSpec::unpartitioned());
        Self { spec: Arc::new(PlannedSpec { spec, partition_type: StructType::default() }), tuple: Vec::new() }
    }

    /// The value of the identity field for a source column: `Some(None)` is null.
    pub fn identity(&self, source_id: i32) -> Option<Option<&Value>> {
        let fields = self.spec.spec.fields.iter().zip(&self.tuple);
        let mut identities = fields.filter(|(field, _)| field.transform == Transform::Identity);
        identities.find(|(field, _)| field.source_id() == Some(source_id)).map(|(_, value)| value.as_ref())
    }
}

impl FilePart {
    /// The file, as it is opened.
    pub fn file_ref(&self) -> FileRef<'_> {
        FileRef { path: &self.path, size: self.size, key: self.key_metadata.as_ref().map(|key| &*key.0) }
    }

    /// What is known about the file before it is opened, and what is wanted of it.
    pub fn facts(&self, wanted: &Wanted) -> FileFacts<'_> {
        FileFacts {
            path: &self.path,
            spec: &self.partition.spec.spec,
            tuple: &self.partition.tuple,
            // In a changelog a deletion is a change, not a mark.
            has_deleted_rows: wanted.has_deleted_rows() && self.change.is_none() && !self.deletes.is_empty(),
            has_row_ids: self.first_row_id.is_some(),
            change: self.change,
        }
    }
}

impl Scan {
    /// The parts for these pieces of a plan of this scan.
    pub fn parts<'p>(&self, plan: &Plan, pieces: impl IntoIterator<Item = &'p Piece>) -> Result<Vec<FilePart>> {
        let pieces: Vec<Piece> = pieces.into_iter().copied().collect();
        let mut parts = Parts::new(self, plan, &pieces)?;
        pieces.iter().map(|piece| parts.part(piece)).collect()
    }
}

/// Builds parts and shares what several of them have in common.
pub(super) struct Parts<'a> {
    scan: &'a Scan,
    plan: &'a Plan,
    /// By index of the manifest.
    specs: HashMap<usize, Arc<PlannedSpec>>,
    /// By index of the delete file.
    deletes: HashMap<u32, Arc<DeletePart>>,
    /// By identity of a delete list: its files that some part needs.
    lists: HashMap<usize, DeleteList>,
    /// Equality columns by their ids.
    keys: HashMap<Vec<i32>, Arc<[Field]>>,
}

impl<'a> Parts<'a> {
    /// For the parts of exactly these pieces.
    pub(super) fn new<'p>(scan: &'a Scan, plan: &'a Plan, pieces: impl IntoIterator<Item = &'p Piece>) -> Result<Self> {
        let mut own = Self {
            scan,
            plan,
            specs: HashMap::new(),
            deletes: HashMap::new(),
            lists: HashMap::new(),
            keys: HashMap::new(),
        };
        let mut needed: HashMap<usize, (&[u32], Vec<bool>)> = HashMap::new();
        for piece in pieces {
            let manifest = plan.manifests.get(piece.manifest).ok_or_else(lost)?;
            for linked in [manifest.deletes(piece.row), manifest.deleted_by(piece.row)] {
                if linked.is_empty() {
                    continue;
                }
                let (_, needed) =
                    needed.entry(linked.list_id()).or_insert_with(|| (linked.list(), vec![false; linked.list().len()]));
                for run in linked.runs() {
                    needed.get_mut(run.start as usize..run.end as usize).ok_or_else(lost)?.fill(true);
                }
            }
        }
        for (id, (places, needed)) in needed {
            let delete = |(place, needed): (&u32, bool)| needed.then(|| own.delete(*place)).transpose();
            let list = places.iter().zip(needed).map(delete).collect::<Result<Arc<[_]>>>()?;
            own.lists.insert(id, list);
        }
        Ok(own)
    }

    fn deletes(&self, linked: Linked<'_>) -> Result<DeleteParts> {
        if linked.is_empty() {
            return Ok(DeleteParts::default());
        }
        let list = self.lists.get(&linked.list_id()).ok_or_else(lost)?;
        Ok(DeleteParts::of_list(list.clone(), linked.runs().into()))
    }

    pub(super) fn part(&mut self, piece: &Piece) -> Result<FilePart> {
        let manifest = self.plan.manifests.get(piece.manifest).ok_or_else(lost)?;
        let (entries, row) = (&manifest.entries, piece.row);
        let tuple = entries.partition_of(row)?;
        let long = |array: &arrow_array::Int64Array| array.is_valid(row).then(|| array.value(row));
        let (start, length) = whole_start(entries, piece);
        let (deletes, deleted_by) = (self.deletes(manifest.deletes(row))?, self.deletes(manifest.deleted_by(row))?);
        Ok(FilePart {
            path: entries.file_path.value(row).to_owned(),
            format: entries.file_format.value(row).to_lowercase(),
            size: size(entries, row)?,
            key_metadata: key_metadata(entries, row),
            start: start.unsigned_abs(),
            length: length.unsigned_abs(),
            record_count: entries.record_count.value(row),
            partition: FilePartition { spec: self.spec(piece.manifest, manifest), tuple },
            sequence_number: long(&entries.sequence_number),
            first_row_id: long(&entries.first_row_id),
            deletes,
            residual: manifest.residual(row)?.clone(),
            change: manifest.changes.is_some().then(|| manifest.change(row)).transpose()?,
            deleted_by,
        })
    }

    fn spec(&mut self, place: usize, manifest: &PlannedManifest) -> Arc<PlannedSpec> {
        let made = || {
            let partition_type = manifest.entries.partition_type.clone();
            Arc::new(PlannedSpec { spec: manifest.spec().clone(), partition_type })
        };
        self.specs.entry(place).or_insert_with(made).clone()
    }

    fn delete(&mut self, place: u32) -> Result<Arc<DeletePart>> {
        if let Some(known) = self.deletes.get(&place) {
            return Ok(known.clone());
        }
        let mut made = self.plan.deletes.part(place)?;
        made.key = self.key(&made)?;
        let made = Arc::new(made);
        self.deletes.insert(place, made.clone());
        Ok(made)
    }

    fn key(&mut self, delete: &DeletePart) -> Result<Arc<[Field]>> {
        if let Some(known) = self.keys.get(&delete.equality_ids) {
            return Ok(known.clone());
        }
        let ids: BTreeSet<i32> = delete.equality_ids.iter().copied().collect();
        let fields = ids.into_iter().map(|id| {
            key_field(self.scan, id)?.ok_or_else(|| {
                let message = format!("it deletes by the column with id {id}, which no schema of the table has");
                Error::corrupt_file(&*delete.path, message)
            })
        });
        let key: Arc<[Field]> = fields.collect::<Result<Vec<_>>>()?.into();
        self.keys.insert(delete.equality_ids.clone(), key.clone());
        Ok(key)
    }
}

fn lost() -> Error {
    Error::Internal("a piece of a file that the plan lacks".to_owned())
}

/// An equality column. The current schema has the widest type of a column; a dropped column is in an older schema.
fn key_field(scan: &Scan, id: i32) -> Result<Option<Field>> {
    let mut others: Vec<&Arc<Schema>> = scan.metadata.schemas().iter().collect();
    others.sort_by_key(|schema| std::cmp::Reverse(schema.schema_id()));
    let mut all = [scan.metadata.current_schema(), &scan.schema].into_iter().chain(others);
    let Some(schema) = all.find(|schema| schema.find_field(id).is_some()) else { return Ok(None) };
    Ok(schema.select_ids(&HashSet::from([id]))?.fields().first().map(as_optional))
}

/// The field as optional: a file without the column has null in it, even if it is required.
fn as_optional(field: &Field) -> Field {
    let ty = match &field.ty {
        Type::Struct(ty) => StructType::new(ty.fields.iter().map(as_optional).collect()).into(),
        other => other.clone(),
    };
    Field { initial_default: field.initial_default.clone(), ..Field::optional(field.id, &*field.name, ty) }
}

impl Deletes {
    /// A delete file as a part.
    pub fn part(&self, place: u32) -> Result<DeletePart> {
        let (source, row) = self.find(place)?;
        DeletePart::of_entry(&source.entries, row)
    }
}

/// The start and length of a piece. Bytes before the first split offset belong to the first piece; every format has
/// its magic bytes there.
fn whole_start(entries: &Entries, piece: &Piece) -> (i64, i64) {
    const MAGIC: i64 = 4;
    let first = || with_sizes(entries, piece.row, |sizes| sizes.sound_offsets()?.first().copied());
    if piece.start > MAGIC && first() == Some(piece.start) {
        (0, piece.start.saturating_add(piece.length))
    } else {
        (piece.start, piece.length)
    }
}
