//! Appends: snapshots that add data files ("Snapshots", operation `append`).

use arrow_array::RecordBatch;
use arrow_schema::Schema as ArrowSchema;
use icefield_format::manifest::DataFile;
use icefield_format::manifest::list::ManifestFile;
use icefield_format::metadata::{MetadataBuilder, Operation, StringMap, requirements_for_update};

use crate::commit::{Change, Content, FileChanges, SnapshotOptions, SnapshotProducer, Transaction, Updates};
use crate::error::Result;
use crate::interrupt;
use crate::write::widening::asked_by;
use crate::write::{Matching, TableWriter, WriterConfig, check_writable};

/// Options of an append.
#[derive(Debug, Clone, Default)]
pub struct AppendOptions {
    /// The branch and the summary entries of the snapshot.
    pub snapshot: SnapshotOptions,
    /// How the columns of the rows may differ from the table's.
    pub matching: Matching,
    /// Whether columns that the table lacks are added in the same commit.
    pub evolve: bool,
    /// Whether to write nothing: rows are only encoded and counted.
    pub dry_run: bool,
    /// Values of table properties that this write has instead of the table's.
    pub properties: StringMap,
}

/// Counts of what an append adds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AddedFiles {
    /// Number of rows.
    pub rows: i64,
    /// Number of data files.
    pub files: usize,
    /// Total size of the data files in bytes.
    pub bytes: i64,
}

impl AddedFiles {
    /// The totals of these files.
    pub fn of(files: &[DataFile]) -> Self {
        Self {
            rows: files.iter().map(|file| file.record_count).sum(),
            files: files.len(),
            bytes: files.iter().map(|file| file.file_size_in_bytes).sum(),
        }
    }
}

impl Transaction {
    /// Writes rows to data files and stages an append; returns counts of what is added.
    ///
    /// # Errors
    /// An error of the rows, the table or the storage. Written files are then deleted, as they are when the transaction
    /// fails.
    pub fn append(
        &mut self,
        schema: &ArrowSchema,
        batches: impl Iterator<Item = Result<RecordBatch>>,
        options: AppendOptions,
    ) -> Result<AddedFiles> {
        let before = self.metadata()?.clone();
        let storage = self.storage().clone();
        check_writable(&before, &storage)?;
        let asked = match options.evolve {
            true => asked_by(schema, before.current_schema(), before.format_version().number())?,
            false => before.current_schema().as_ref().clone(),
        };
        let widening = if options.evolve { before.widened_by(&asked)? } else { Vec::new() };
        let builder = MetadataBuilder::from_base(&before, before.last_updated_ms());
        let metadata = builder.apply_all(widening.iter().cloned())?.build()?;

        let written_to = if options.dry_run { storage.unwritten() } else { storage.clone() };
        let mut config = WriterConfig::of_table(written_to, &metadata).with_properties(options.properties)?;
        config.matching = options.matching;
        let files = write(TableWriter::new(config, schema)?, batches)?;
        let added = AddedFiles::of(&files);
        if options.dry_run {
            return Ok(added);
        }

        let producer = SnapshotProducer::new(storage, Append::new(files)?, options.snapshot);
        let mut change = producer.that_owns_its_files();
        if !widening.is_empty() {
            let requirements = requirements_for_update(&before, &widening);
            match Updates::new(requirements, widening) {
                Ok(updates) => self.add(updates),
                Err(error) => {
                    change.failed();
                    return Err(error);
                }
            }
        }
        self.add(change);
        Ok(added)
    }
}

/// Writes all batches; after an error, the written files are deleted.
fn write(mut writer: TableWriter, batches: impl Iterator<Item = Result<RecordBatch>>) -> Result<Vec<DataFile>> {
    for batch in batches {
        if let Err(error) = interrupt::check().and(batch).and_then(|batch| writer.write(&batch)) {
            writer.abort();
            return Err(error);
        }
    }
    writer.finish()
}

/// The content of a snapshot that adds data files. Its manifests are written once and reused by all attempts.
#[derive(Debug, Default)]
pub struct Append(FileChanges);

impl Append {
    /// An append of these files; the caller keeps them if it fails. A file that is given twice is added once.
    ///
    /// # Errors
    /// A file that is not a data file.
    pub fn new(files: Vec<DataFile>) -> Result<Self> {
        let mut changes = FileChanges::new();
        files.into_iter().try_for_each(|file| changes.add(file))?;
        Ok(Self(changes))
    }

    /// Adds the files of a manifest; see [`FileChanges::add_manifest`].
    ///
    /// # Errors
    /// A manifest that cannot be appended.
    pub fn add_manifest(&mut self, manifest: ManifestFile) -> Result<()> {
        self.0.add_manifest(manifest)
    }
}

impl Content for Append {
    fn operation(&self) -> Operation {
        Operation::Append
    }

    fn changes(&self) -> &FileChanges {
        &self.0
    }

    fn changes_mut(&mut self) -> &mut FileChanges {
        &mut self.0
    }
}
