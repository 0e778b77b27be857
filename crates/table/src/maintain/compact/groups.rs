//! Chooses the data files to rewrite and groups them: the rules of Java's `BinPackRewriteFilePlanner`.

use std::collections::HashMap;

use icefield_format::manifest::DataFile;
use icefield_format::metadata::TableMetadata;
use icefield_format::value::Value;

use super::settings::{Rules, Settings};
use crate::error::Result;
use crate::operation::matching::is_about_one_file;
use crate::plan::deletes::{DeleteFile, partition_key};
use crate::plan::{Plan, PlannedManifest};

/// The values of a partition.
pub(super) type Tuple = Vec<Option<Value>>;

/// Data files that are rewritten together.
#[derive(Debug, Clone)]
pub(super) struct Group {
    pub(super) inputs: Vec<Input>,
    /// Bytes of the files.
    pub(super) bytes: i64,
    /// The number of files to write.
    pub(super) outputs: i64,
    /// Bytes that one writer reads.
    pub(super) split_bytes: i64,
    /// The partition of all rows, if all files have the output spec and the same partition.
    pub(super) partition: Option<Tuple>,
}

/// A data file to rewrite.
#[derive(Debug, Clone)]
pub(super) struct Input {
    pub(super) file: DataFile,
    /// The indices of its manifest in the plan, and of the file in it.
    pub(super) place: (usize, usize),
    /// Whether any delete file applies to it.
    pub(super) has_deletes: bool,
    /// Whether delete files that are about it alone have as many rows as it has.
    pub(super) is_empty: bool,
    /// Its deletion vectors.
    pub(super) vectors: Vec<DataFile>,
}

impl Input {
    /// The rows that deletion vectors leave. Other deletes may delete more of them. The number is below zero if the
    /// manifest does not say how many rows the file has.
    pub(super) fn rows_left(&self) -> i64 {
        let rows = self.file.record_count;
        let deleted = self.vectors.iter().map(|vector| vector.record_count.max(0)).fold(0, i64::saturating_add);
        // A vector of more rows than the file has does not say how many are left.
        if deleted > rows { rows } else { rows - deleted }
    }
}

/// A file of the plan.
#[derive(Debug, Clone, Copy)]
struct PlannedFile {
    manifest: usize,
    row: usize,
    bytes: i64,
    /// Whether it has too many deletes.
    is_worn: bool,
    /// Whether delete files that are about it alone have as many rows as it has.
    is_empty: bool,
}

/// What is known about the delete files of a plan, by their index.
struct KnownDeletes<'a> {
    plan: &'a Plan,
    /// Rows that a delete file about one data file deletes; 0 for others.
    rows: Vec<Option<i64>>,
}

/// The groups of a plan, in the order in which they are rewritten.
///
/// # Errors
/// Invalid manifests.
pub(super) fn groups(plan: &Plan, metadata: &TableMetadata, settings: &Settings) -> Result<Vec<Group>> {
    let sizes = &settings.sizes;
    let mut of_partition: Vec<Vec<PlannedFile>> = Vec::new();
    let mut known: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut deletes = KnownDeletes { plan, rows: vec![None; plan.deletes.len()] };
    for (number, manifest) in plan.manifests.iter().enumerate() {
        let mut of_tuple: HashMap<usize, usize> = HashMap::new();
        for row in 0..manifest.entries.len() {
            let bytes = manifest.entries.file_size_in_bytes.value(row);
            let deleted = deletes.of_file(manifest, row)?;
            let rows = manifest.entries.record_count.value(row);
            let is_worn = deleted.are_many(rows, &settings.rules);
            if !sizes.rewrite_all && !is_worn && !sizes.is_outside(bytes) {
                continue;
            }
            let tuple = manifest.entries.tuple_of.value(row) as usize;
            let group = match of_tuple.get(&tuple) {
                Some(group) => *group,
                None => {
                    let next = known.len();
                    let group = *known.entry(key(manifest, tuple, metadata)?).or_insert(next);
                    *of_tuple.entry(tuple).or_insert(group)
                }
            };
            if group == of_partition.len() {
                of_partition.push(Vec::new());
            }
            let is_empty = deleted.rows > 0 && deleted.rows >= rows;
            let found = PlannedFile { manifest: number, row, bytes, is_worn, is_empty };
            of_partition.get_mut(group).into_iter().for_each(|files| files.push(found));
        }
    }
    let (mut groups, mut room) = (Vec::new(), settings.rules.most_files);
    for files in of_partition {
        for mut files in sizes.packed(files, |file| file.bytes) {
            let sum = |files: &[PlannedFile]| files.iter().map(|file| file.bytes).fold(0, i64::saturating_add);
            let is_worn = files.iter().any(|file| file.is_worn);
            if !sizes.rewrite_all && !is_worn && !sizes.is_worthwhile(files.len(), sum(&files)) {
                continue;
            }
            files.truncate(room);
            room -= files.len();
            if !files.is_empty() {
                groups.push(group(plan, &files, sum(&files), settings)?);
            }
        }
    }
    settings.rules.order.sort(&mut groups, |group| (group.bytes, group.inputs.len()));
    Ok(groups)
}

/// The partition of a file as a key. Files of other specs may have rows of any partition: they are one group, with the
/// files whose partition values are all null, as in Java.
fn key(manifest: &PlannedManifest, tuple: usize, metadata: &TableMetadata) -> Result<Vec<u8>> {
    let spec = metadata.default_spec();
    let own = manifest.spec_id() == spec.spec_id;
    let tuple = if own { manifest.entries.tuple(tuple)? } else { vec![None; spec.fields.len()] };
    Ok(partition_key(spec.spec_id, &tuple))
}

fn group(plan: &Plan, files: &[PlannedFile], bytes: i64, settings: &Settings) -> Result<Group> {
    let mut inputs = Vec::with_capacity(files.len());
    for PlannedFile { manifest: number, row, is_empty, .. } in files {
        let Some(manifest) = plan.manifests.get(*number) else { continue };
        let linked = manifest.deletes(*row);
        let mut vectors = Vec::new();
        for delete in linked.iter() {
            let delete = plan.deletes.get(*delete)?;
            if delete.is_vector() {
                vectors.push(delete.file);
            }
        }
        let file = manifest.entries.file(*row, manifest.spec_id())?;
        inputs.push(Input {
            file,
            place: (*number, *row),
            has_deletes: !linked.is_empty(),
            is_empty: *is_empty,
            vectors,
        });
    }
    let first = inputs.first().map(|input| &input.file).filter(|file| file.partition_spec_id == settings.spec.spec_id);
    let same = |first: &&DataFile| {
        inputs.iter().all(|input| {
            input.file.partition_spec_id == first.partition_spec_id
                && partition_key(0, &input.file.partition) == partition_key(0, &first.partition)
        })
    };
    let partition = first.filter(same).map(|file| file.partition.clone());
    let sizes = &settings.sizes;
    let outputs = sizes.outputs((bytes as f64 * settings.strategy.compression.0) as i64).max(1);
    Ok(Group { bytes, outputs, split_bytes: sizes.split_bytes(bytes, outputs), partition, inputs })
}

/// What is known about the deletes of a data file.
struct DeletedOf {
    /// Delete files.
    files: usize,
    /// Rows of those that are about this file alone.
    rows: i64,
}

impl DeletedOf {
    /// Whether a file with this many rows is rewritten for the number of its delete files, or of its rows that are known
    /// to be deleted.
    fn are_many(&self, rows: i64, rules: &Rules) -> bool {
        let is_share = || self.rows.min(rows) as f64 / rows as f64 >= rules.delete_ratio;
        self.files >= rules.delete_files || (self.files > 0 && is_share())
    }
}

impl KnownDeletes<'_> {
    fn of_file(&mut self, manifest: &PlannedManifest, row: usize) -> Result<DeletedOf> {
        let linked = manifest.deletes(row);
        let mut rows = 0_i64;
        for place in linked.iter() {
            rows = rows.saturating_add(self.rows_of(*place)?);
        }
        Ok(DeletedOf { files: linked.len(), rows })
    }

    fn rows_of(&mut self, place: u32) -> Result<i64> {
        let slot = self.rows.get_mut(place as usize);
        if let Some(Some(known)) = slot {
            return Ok(*known);
        }
        let delete: DeleteFile = self.plan.deletes.get(place)?;
        let rows = if is_about_one_file(&delete) { delete.file.record_count } else { 0 };
        slot.into_iter().for_each(|slot| *slot = Some(rows));
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_vectors_have_deleted_are_not_expected() {
        let file = |record_count| DataFile { record_count, ..DataFile::default() };
        for (rows, vectors, left) in
            [(10, &[][..], 10), (10, &[4], 6), (10, &[10], 0), (10, &[-1], 10), (10, &[11], 10), (-1, &[4], -1)]
        {
            let vectors = vectors.iter().copied().map(file).collect();
            let input = Input { file: file(rows), place: (0, 0), has_deletes: true, is_empty: false, vectors };
            assert_eq!(input.rows_left(), left, "{rows}");
        }
    }
}
