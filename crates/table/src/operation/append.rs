//! Appends: snapshots that add data files ("Snapshots", operation `append`).

use arrow_array::RecordBatch;
use arrow_schema::Schema as ArrowSchema;
use icefield_format::manifest::DataFile;
use icefield_format::manifest::list::ManifestFile;
use icefield_format::metadata::{MetadataBuilder, Operation, TableMetadata, requirements_for_update};

use crate::commit::{
    Arranged, Content, FileChanges, Manifests, SnapshotOptions, SnapshotProducer, SummaryBuilder, Transaction, Updates,
};
use crate::error::Result;
use crate::interrupt;
use crate::storage::Storage;
use crate::write::conform::Conform;
use crate::write::intake::Intake;
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
    /// Whether nothing is written: rows are looked at and counted.
    pub dry_run: bool,
}

/// Writes rows to data files and adds their append to a transaction; returns the number of rows.
///
/// # Errors
/// What is wrong with the rows, the table or the storage. The files that were written are deleted then, as they are when
/// the transaction fails.
pub fn append(
    storage: &Storage,
    transaction: &mut Transaction,
    schema: &ArrowSchema,
    batches: impl Iterator<Item = Result<RecordBatch>>,
    options: AppendOptions,
) -> Result<i64> {
    let before = transaction.metadata()?.clone();
    check_writable(&before)?;
    let asked = match options.evolve {
        true => asked_by(schema, before.current_schema(), before.format_version().number())?,
        false => before.current_schema().as_ref().clone(),
    };
    let widening = if options.evolve { before.widened_by(&asked)? } else { Vec::new() };
    let builder = MetadataBuilder::from_base(&before, before.last_updated_ms());
    let metadata = builder.apply_all(widening.iter().cloned())?.build()?;

    let mut config = WriterConfig::of_table(storage.clone(), &metadata);
    config.matching = options.matching;
    if options.dry_run {
        let conform = Conform::new(metadata.current_schema(), schema, options.matching)?;
        TableWriter::new(config, schema)?;
        return counted(Intake::new(conform, None, None), batches);
    }
    let files = write(TableWriter::new(config, schema)?, batches)?;
    let rows = files.iter().map(|file| file.record_count).sum();

    let mut change = Append::new(files)?.that_owns_its_files(storage.clone());
    if !widening.is_empty() {
        let requirements = requirements_for_update(&before, &widening);
        match Updates::new(requirements, widening) {
            Ok(updates) => transaction.add(updates),
            Err(error) => {
                Content::failed(&mut change);
                return Err(error);
            }
        }
    }
    transaction.add(SnapshotProducer::new(storage.clone(), change, options.snapshot));
    Ok(rows)
}

/// Looks at all batches as if they were to be written.
fn counted(mut intake: Intake, batches: impl Iterator<Item = Result<RecordBatch>>) -> Result<i64> {
    let mut rows = 0_i64;
    for batch in batches {
        interrupt::check()?;
        let batch = intake.prepare(&batch?)?.chunk;
        rows = rows.saturating_add(i64::try_from(batch.num_rows()).unwrap_or(i64::MAX));
    }
    Ok(rows)
}

/// Writes all batches; what was written of them is deleted after an error.
fn write(mut writer: TableWriter, batches: impl Iterator<Item = Result<RecordBatch>>) -> Result<Vec<DataFile>> {
    for batch in batches {
        if let Err(error) = batch.and_then(|batch| writer.write(&batch)) {
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

    /// The same append; its files are deleted from `storage` if it certainly fails.
    #[must_use]
    pub fn that_owns_its_files(mut self, storage: Storage) -> Self {
        self.0.own_files(storage);
        self
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

    fn manifests(
        &mut self,
        base: &TableMetadata,
        older: Vec<ManifestFile>,
        manifests: &mut Manifests,
        merge: bool,
    ) -> Result<Arranged> {
        self.0.manifests(base, older, manifests, merge)
    }

    fn summary(&self, _base: &TableMetadata) -> Result<SummaryBuilder> {
        Ok(self.0.summary())
    }

    fn files(&self) -> Vec<String> {
        self.0.owned()
    }

    fn failed(&mut self) {
        self.0.failed();
    }
}
