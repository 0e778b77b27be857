//! The candidate files of a change, sorted by path and stored in blocks: a worker decodes only the blocks with its
//! files.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use icefield_format::expr::Expression;
use icefield_format::manifest::{DataFile, FileContent};
use icefield_format::metadata::TableMetadata;
use icefield_format::puffin::DeletionVector;
use icefield_format::types::Schema;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::commit::Specs;
use crate::error::{Error, Result};
use crate::operation::matching::{MatchedFile, MatchedRows};
use crate::plan::projection::wanted::Wanted;
use crate::plan::tasks::ReadTask;
use crate::plan::tasks::part::FilePart;
use crate::read::wire as parts_wire;
use crate::runtime;
use crate::write::wire as files_wire;

/// Number of files in a block.
const BLOCK: usize = 2048;

/// A file that may have rows to remove.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// The file, without any rows chosen.
    pub(super) file: MatchedFile,
    /// Whether all of its rows are removed, so that no task reads it.
    pub(super) whole: bool,
}

/// All candidate files of a change.
#[derive(Debug)]
pub(super) struct Candidates {
    blocks: Vec<Block>,
    specs: Specs,
}

#[derive(Debug)]
struct Block {
    form: BlockForm,
    /// Number of files in earlier blocks.
    start: usize,
    files: OnceLock<Vec<Candidate>>,
    /// The serialized files, decoded on first use.
    sections: Vec<Bytes>,
}

/// The entry of a block in the header of a plan.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct BlockForm {
    /// The path of the first file.
    first: String,
    files: usize,
    /// Number of files that are removed whole.
    whole: usize,
    /// The partition specs of the delete files: one for each section after the first two.
    specs: Vec<i32>,
}

/// What read tasks do not say about files; stored in a section of its own.
#[derive(Serialize, Deserialize)]
struct More {
    whole: Vec<bool>,
    sorted_by: Vec<Option<i32>>,
    /// For each delete file that applies to only one data file, in the order of the sections, the index of that data
    /// file.
    own_deletes: Vec<usize>,
}

impl Candidates {
    pub(super) fn new(mut files: Vec<Candidate>, metadata: &TableMetadata) -> Self {
        files.sort_by(|a, b| a.file.part.path.cmp(&b.file.part.path));
        let (mut blocks, mut start) = (Vec::new(), 0);
        let mut rest = files.into_iter().peekable();
        while let Some(first) = rest.peek() {
            let first = first.file.part.path.clone();
            let files: Vec<Candidate> = rest.by_ref().take(BLOCK).collect();
            let whole = files.iter().filter(|file| file.whole).count();
            let form = BlockForm { first, files: files.len(), whole, specs: Vec::new() };
            blocks.push(Block { form, start, files: OnceLock::from(files), sections: Vec::new() });
            start += BLOCK;
        }
        Self { blocks, specs: Specs::of(metadata) }
    }

    /// Number of files.
    pub(super) fn len(&self) -> usize {
        self.blocks.last().map_or(0, |block| block.start.saturating_add(block.form.files))
    }

    /// Finds the number of a file by its path.
    ///
    /// # Errors
    /// An unknown path, or a block that cannot be decoded.
    pub(super) fn find(&self, path: &str) -> Result<usize> {
        let none = || {
            Error::invalid(format!(
                "{path}: is none of the files of this plan: take `_file` and `_pos` from the tasks of the same plan"
            ))
        };
        let behind = self.blocks.partition_point(|block| block.form.first.as_str() <= path);
        let block = behind.checked_sub(1).and_then(|place| self.blocks.get(place)).ok_or_else(none)?;
        let files = block.files(&self.specs)?;
        let place = files.binary_search_by(|file| file.file.part.path.as_str().cmp(path)).map_err(|_| none())?;
        Ok(block.start.saturating_add(place))
    }

    /// Returns a file by its number.
    ///
    /// # Errors
    /// A number out of range, or a block that cannot be decoded.
    pub(super) fn get(&self, number: usize) -> Result<&Candidate> {
        let behind = self.blocks.partition_point(|block| block.start <= number);
        let block = behind.checked_sub(1).and_then(|place| self.blocks.get(place));
        let found =
            block.map(|block| Ok::<_, Error>(block.files(&self.specs)?.get(number - block.start))).transpose()?;
        found.flatten().ok_or_else(|| Error::invalid(format!("the plan has no file of the number {number}")))
    }

    /// The files that are removed whole.
    pub(super) fn whole(&self) -> Result<Vec<MatchedFile>> {
        let mut whole = Vec::new();
        for block in self.blocks.iter().filter(|block| block.form.whole > 0) {
            let files = block.files(&self.specs)?.iter().filter(|file| file.whole);
            whole.extend(files.map(|file| MatchedFile { rows: MatchedRows::All, ..file.file.clone() }));
        }
        Ok(whole)
    }

    /// Whether any file is removed whole.
    pub(super) fn has_whole(&self) -> bool {
        self.blocks.iter().any(|block| block.form.whole > 0)
    }

    /// Serializes the files: block entries for a header, and their sections.
    pub(super) fn to_sections(&self) -> Result<(Vec<BlockForm>, Vec<Bytes>)> {
        let serialized = || -> Vec<Result<(BlockForm, Vec<Bytes>)>> {
            let of_block = |block: &Block| match block.sections.is_empty() {
                true => block.to_sections(&self.specs),
                false => Ok((block.form.clone(), block.sections.clone())),
            };
            self.blocks.par_iter().map(of_block).collect()
        };
        let (mut forms, mut sections) = (Vec::with_capacity(self.blocks.len()), Vec::new());
        for block in runtime::pool()?.install(serialized) {
            let (form, of_block) = block?;
            forms.push(form);
            sections.extend(of_block);
        }
        Ok((forms, sections))
    }

    /// Deserializes files from [`Candidates::to_sections`].
    pub(super) fn from_sections(forms: Vec<BlockForm>, sections: Vec<Bytes>, metadata: &TableMetadata) -> Result<Self> {
        let (mut blocks, mut start, mut sections) = (Vec::with_capacity(forms.len()), 0_usize, sections.into_iter());
        for form in forms {
            let own: Vec<Bytes> = sections.by_ref().take(form.specs.len().saturating_add(2)).collect();
            if own.len() < 2 {
                return Err(damaged());
            }
            let next = start.saturating_add(form.files);
            blocks.push(Block { form, start, files: OnceLock::new(), sections: own });
            start = next;
        }
        Ok(Self { blocks, specs: Specs::of(metadata) })
    }
}

impl Block {
    /// The files of the block, decoded on first use.
    fn files(&self, specs: &Specs) -> Result<&[Candidate]> {
        if let Some(known) = self.files.get() {
            return Ok(known);
        }
        let decoded = self.decode(specs)?;
        Ok(self.files.get_or_init(|| decoded))
    }

    fn to_sections(&self, specs: &Specs) -> Result<(BlockForm, Vec<Bytes>)> {
        let files = self.files(specs)?;
        let nothing = Arc::new(Schema::new(0, Vec::new())?);
        let parts = files.iter().map(|file| file.file.part.clone()).collect();
        let task = ReadTask { wanted: Arc::new(Wanted::new(nothing.clone(), nothing)), parts };
        let mut own: Vec<(usize, &DataFile)> = Vec::new();
        for (number, file) in files.iter().enumerate() {
            own.extend(file.file.own_deletes.iter().map(|delete| (number, delete)));
        }
        own.sort_by_key(|(_, delete)| delete.partition_spec_id);
        let more = More {
            whole: files.iter().map(|file| file.whole).collect(),
            sorted_by: files.iter().map(|file| file.file.file.sort_order_id).collect(),
            own_deletes: own.iter().map(|(number, _)| *number).collect(),
        };
        let more = serde_json::to_vec(&more).map_err(|error| Error::Internal(error.to_string()))?;
        let mut sections =
            vec![parts_wire::pack(&parts_wire::to_bytes(&task)?)?.into(), parts_wire::pack(&more)?.into()];
        let own: Vec<DataFile> = own.into_iter().map(|(_, delete)| delete.clone()).collect();
        let (of_specs, manifests) = of_specs(&own, specs)?;
        sections.extend(manifests);
        Ok((BlockForm { specs: of_specs, ..self.form.clone() }, sections))
    }

    fn decode(&self, specs: &Specs) -> Result<Vec<Candidate>> {
        let [parts, more, manifests @ ..] = self.sections.as_slice() else { return Err(damaged()) };
        let parts = parts_wire::from_bytes(&parts_wire::unpack(parts)?)?.parts;
        let More { whole, sorted_by, own_deletes } =
            serde_json::from_slice(&parts_wire::unpack(more)?).map_err(|_| damaged())?;
        if [parts.len(), whole.len(), sorted_by.len()] != [self.form.files; 3] {
            return Err(damaged());
        }
        let described = parts.into_iter().zip(whole).zip(sorted_by);
        let mut files: Vec<Candidate> = described
            .map(|((part, whole), sorted_by)| Candidate { file: described_by(part, sorted_by), whole })
            .collect();
        let deletes = files_of_specs(&self.form.specs, manifests, specs)?;
        if deletes.len() != own_deletes.len() {
            return Err(damaged());
        }
        for (number, delete) in own_deletes.into_iter().zip(deletes) {
            files.get_mut(number).ok_or_else(damaged)?.file.own_deletes.push(delete);
        }
        Ok(files)
    }
}

/// A data file as its part of a task describes it. Metrics are missing, which only makes checks less precise.
fn described_by(part: FilePart, sorted_by: Option<i32>) -> MatchedFile {
    let file = DataFile {
        content: FileContent::Data,
        file_path: part.path.clone(),
        file_format: part.format.clone(),
        partition_spec_id: part.partition.spec.spec.spec_id,
        partition: part.partition.tuple.clone(),
        record_count: part.record_count,
        file_size_in_bytes: i64::try_from(part.size).unwrap_or(i64::MAX),
        sort_order_id: sorted_by,
        first_row_id: part.first_row_id,
        key_metadata: part.key_metadata.as_ref().map(|key| key.0.clone()),
        ..DataFile::default()
    };
    let part = FilePart { residual: Expression::True, ..part };
    MatchedFile { part, file, rows: MatchedRows::Some(Arc::<DeletionVector>::default()), own_deletes: Vec::new() }
}

/// Serializes files sorted by partition spec: returns the spec ids, and one manifest for each.
pub(super) fn of_specs(files: &[DataFile], specs: &Specs) -> Result<(Vec<i32>, Vec<Bytes>)> {
    let (mut ids, mut manifests) = (Vec::new(), Vec::new());
    for files in files.chunk_by(|a, b| a.partition_spec_id == b.partition_spec_id) {
        let Some(first) = files.first() else { continue };
        let spec = specs.of_file(first)?;
        ids.push(first.partition_spec_id);
        manifests.push(files_wire::to_bytes(files, &spec.schema, &spec.spec)?.into());
    }
    Ok((ids, manifests))
}

/// Deserializes files from [`of_specs`].
pub(super) fn files_of_specs(ids: &[i32], manifests: &[Bytes], specs: &Specs) -> Result<Vec<DataFile>> {
    if ids.len() != manifests.len() {
        return Err(damaged());
    }
    let mut files = Vec::new();
    for (id, manifest) in ids.iter().zip(manifests) {
        let spec = specs.get(*id)?;
        files.extend(files_wire::from_bytes(manifest, &spec.schema, &spec.spec)?);
    }
    Ok(files)
}

pub(super) fn damaged() -> Error {
    Error::invalid("not a change of rows: its parts do not fit together")
}
