//! A plan becomes what the readers take: tasks of parts of files.

use std::sync::Arc;

use icefield_format::manifest::{DataFile, Entries};
use icefield_format::spec::PartitionSpec;
use icefield_format::transform::Transform;
use icefield_format::types::{NAME_MAPPING_PROPERTY, NameMapping};
use icefield_format::value::Value;

use super::split::{Piece, SplitOptions, with_sizes};
use super::{Plan, Scan};
use crate::error::{Error, Result};
use crate::read::stream::BatchStream;
use crate::read::task::{FilePart, ReadTask, Wanted};

/// Bytes of a file that one thread of this process reads in one go.
const LOCAL_SPLIT: i64 = 32 << 20;

impl FilePart {
    /// The part of a planned file.
    pub fn of_plan(plan: &Plan, piece: &Piece, spec: &PartitionSpec) -> Result<Self> {
        let lost = || Error::Internal("a piece of a file that the plan lacks".to_owned());
        let manifest = plan.manifests.get(piece.manifest).ok_or_else(lost)?;
        let file = manifest.entries.file(piece.row, manifest.spec_id)?;
        let place = manifest.residual_places.get(piece.row).ok_or_else(lost)?;
        let residual = manifest.residuals.get(*place as usize).ok_or_else(lost)?;
        let (start, length) = whole_start(&manifest.entries, piece);
        Ok(Self {
            size: file
                .file_size_in_bytes
                .try_into()
                .map_err(|_| Error::corrupt_file(&file.file_path, "negative size"))?,
            start: start.unsigned_abs(),
            length: length.unsigned_abs(),
            record_count: file.record_count,
            identity: identity(&file, spec),
            format: file.file_format.to_lowercase(),
            residual: residual.clone(),
            deletes: manifest.deletes.as_ref().map_or(0, |links| links.of(piece.row).len()),
            path: file.file_path,
        })
    }
}

/// Where a piece begins, and its bytes. What lies before the first split offset is the first piece's, or nobody would read
/// it; every format has its magic there.
fn whole_start(entries: &Entries, piece: &Piece) -> (i64, i64) {
    const MAGIC: i64 = 4;
    let first = || with_sizes(entries, piece.row, |sizes| sizes.sound_offsets()?.first().copied());
    if piece.start > MAGIC && first() == Some(piece.start) {
        (0, piece.start.saturating_add(piece.length))
    } else {
        (piece.start, piece.length)
    }
}

fn identity(file: &DataFile, spec: &PartitionSpec) -> Vec<(i32, Option<Value>)> {
    let fields = spec.fields.iter().zip(&file.partition);
    let identities = fields.filter(|(field, _)| field.transform == Transform::Identity);
    identities.filter_map(|(field, value)| Some((field.source_id()?, value.clone()))).collect()
}

impl Scan {
    /// What the scan wants of every file. `columns` are names to select, all without them; rows have them in the order of
    /// the schema.
    pub fn wanted(&self, columns: Option<&[String]>) -> Result<Arc<Wanted>> {
        let projection = match columns {
            Some(names) => Arc::new(self.schema.select_in_order(names, self.case_sensitive)?),
            None => self.schema.clone(),
        };
        let mapping = self.metadata.property(NAME_MAPPING_PROPERTY).map(NameMapping::parse).transpose()?;
        Ok(Arc::new(Wanted { schema: self.schema.clone(), projection, name_mapping: mapping.map(Arc::new) }))
    }

    /// The tasks of a plan of this scan.
    pub fn tasks(&self, plan: &Plan, wanted: &Arc<Wanted>, options: &SplitOptions) -> Result<Vec<ReadTask>> {
        let part = |piece: &Piece| {
            let spec_id = plan.manifests.get(piece.manifest).map(|manifest| manifest.spec_id);
            let spec = spec_id.and_then(|id| self.metadata.partition_spec(id));
            let spec = spec.ok_or_else(|| Error::Internal("a planned manifest without a spec".to_owned()))?;
            FilePart::of_plan(plan, piece, spec)
        };
        let task = |pieces: &Vec<Piece>| {
            let parts = pieces.iter().map(part).collect::<Result<_>>()?;
            Ok(ReadTask { wanted: wanted.clone(), parts })
        };
        plan.tasks(options)?.iter().map(task).collect()
    }

    /// The rows of a plan of this scan, in this process: files are cut small, so that all processors have work.
    pub fn rows(&self, plan: &Plan, wanted: &Arc<Wanted>, limit: Option<usize>) -> Result<BatchStream> {
        let options = SplitOptions { split_size: LOCAL_SPLIT, lookback: 1, open_file_cost: LOCAL_SPLIT };
        let parts = self.tasks(plan, wanted, &options)?.into_iter().flat_map(|task| task.parts).collect();
        ReadTask { wanted: wanted.clone(), parts }.batches(&self.storage, limit)
    }
}
