//! Appends: snapshots that add data files ("Snapshots", operation `append`).

use arrow_array::RecordBatch;
use arrow_schema::Schema as ArrowSchema;
use icefield_format::manifest::DataFile;
use icefield_format::manifest::list::ManifestFile;
use icefield_format::metadata::{MetadataBuilder, Operation, requirements_for_update};

use crate::commit::{Change, Content, FileChanges, SnapshotOptions, SnapshotProducer, Transaction, Updates};
use crate::error::Result;
use crate::interrupt;
use crate::write::widening::asked_by;
use crate::write::{Matching, TableWriter, WriterConfig, check_writable};

/// How rows are appended.
#[derive(Debug, Clone, Default)]
pub struct AppendOptions {
    /// The snapshot: its branch and its summary.
    pub snapshot: SnapshotOptions,
    /// How the columns of the rows may differ from the table's.
    pub matching: Matching,
    /// Whether columns that the table lacks are first added to it, in the same commit.
    pub evolve: bool,
    /// Whether nothing is written: rows are encoded and counted.
    pub dry_run: bool,
}

/// What an append adds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AddedFiles {
    /// Rows.
    pub rows: i64,
    /// Data files.
    pub files: usize,
    /// Bytes of the data files.
    pub bytes: i64,
}

impl AddedFiles {
    /// The sums of some files.
    pub fn of(files: &[DataFile]) -> Self {
        Self {
            rows: files.iter().map(|file| file.record_count).sum(),
            files: files.len(),
            bytes: files.iter().map(|file| file.file_size_in_bytes).sum(),
        }
    }
}

impl Transaction {
    /// Writes rows to data files and adds their append; returns what is added.
    ///
    /// # Errors
    /// What is wrong with the rows, the table or the storage. The files that were written are deleted then, as they are when
    /// the transaction fails.
    pub fn append(
        &mut self,
        schema: &ArrowSchema,
        batches: impl Iterator<Item = Result<RecordBatch>>,
        options: AppendOptions,
    ) -> Result<AddedFiles> {
        let before = self.metadata()?.clone();
        let storage = self.storage().clone();
        check_writable(&before)?;
        let asked = match options.evolve {
            true => asked_by(schema, before.current_schema(), before.format_version().number())?,
            false => before.current_schema().as_ref().clone(),
        };
        let widening = if options.evolve { before.widened_by(&asked)? } else { Vec::new() };
        let builder = MetadataBuilder::from_base(&before, before.last_updated_ms());
        let metadata = builder.apply_all(widening.iter().cloned())?.build()?;

        let written_to = if options.dry_run { storage.unwritten() } else { storage.clone() };
        let mut config = WriterConfig::of_table(written_to, &metadata);
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

/// Writes all batches; what was written of them is deleted after an error.
fn write(mut writer: TableWriter, batches: impl Iterator<Item = Result<RecordBatch>>) -> Result<Vec<DataFile>> {
    for batch in batches {
        if let Err(error) = interrupt::check().and(batch).and_then(|batch| writer.write(&batch)) {
            writer.abort();
            return Err(error);
        }
    }
    writer.finish()
}

/// The content of a snapshot that adds data files. Its own manifests are written once for all attempts.
#[derive(Debug, Default)]
pub struct Append(FileChanges);

impl Append {
    /// An append of these files, which stay the caller's if it fails. A file that is named twice is taken once.
    ///
    /// # Errors
    /// A file that is no data file.
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
