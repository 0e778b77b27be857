//! Appends: snapshots that add data files ("Snapshots", operation `append`).

use std::collections::HashSet;

use arrow_array::RecordBatch;
use arrow_schema::Schema as ArrowSchema;
use icefield_format::manifest::list::ManifestFile;
use icefield_format::manifest::{DataFile, FileContent, ManifestContent};
use icefield_format::metadata::{FormatVersion, MetadataBuilder, Operation, TableMetadata, requirements_for_update};
use icefield_format::spec::path::partition_path;
use icefield_format::types::{PrimitiveType, Type};

use crate::commit::{
    Arranged, Content, Manifests, SnapshotOptions, SnapshotProducer, SummaryBuilder, Transaction, Updates,
};
use crate::error::{Error, Result};
use crate::storage::Storage;
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
#[derive(Debug)]
pub struct Append {
    files: Vec<DataFile>,
    /// Manifests of the files, and the format version they were written in.
    own: Option<(FormatVersion, Vec<ManifestFile>)>,
    /// Where the files are deleted when the append fails; without it they stay the caller's.
    owned_in: Option<Storage>,
}

impl Append {
    /// An append of these files, which stay the caller's if it fails. A file that is named twice is taken once.
    ///
    /// # Errors
    /// A file that is no data file.
    pub fn new(mut files: Vec<DataFile>) -> Result<Self> {
        if let Some(file) = files.iter().find(|file| file.content != FileContent::Data) {
            return Err(Error::invalid(format!("{}: an append takes data files only", file.file_path)));
        }
        let mut seen = HashSet::new();
        files.retain(|file| seen.insert(file.file_path.clone()));
        Ok(Self { files, own: None, owned_in: None })
    }

    /// The same append; its files are deleted from `storage` if it certainly fails.
    #[must_use]
    pub fn that_owns_its_files(mut self, storage: Storage) -> Self {
        self.owned_in = Some(storage);
        self
    }

    fn own_manifests(&mut self, base: &TableMetadata, manifests: &mut Manifests) -> Result<Vec<ManifestFile>> {
        if let Some((version, own)) = &self.own
            && *version == base.format_version()
        {
            return Ok(own.clone());
        }
        manifests.forget();
        let own = manifests.of_added(base, &self.files)?;
        self.own = Some((base.format_version(), own.clone()));
        Ok(own)
    }
}

impl Content for Append {
    fn operation(&self) -> Operation {
        Operation::Append
    }

    /// The newest manifests come first.
    fn manifests(
        &mut self,
        base: &TableMetadata,
        older: Vec<ManifestFile>,
        manifests: &mut Manifests,
        merge: bool,
    ) -> Result<Arranged> {
        let own = self.own_manifests(base, manifests)?;
        if !merge {
            return Ok(Arranged { manifests: own.into_iter().chain(older).collect(), replaced: 0 });
        }
        let live = older.into_iter().filter(ManifestFile::has_live_files);
        let (data, deletes): (Vec<_>, Vec<_>) = live.partition(|manifest| manifest.content == ManifestContent::Data);
        let (mut arranged, replaced_data) = manifests.merge(base, own.into_iter().chain(data).collect())?;
        let (deletes, replaced_deletes) = manifests.merge(base, deletes)?;
        arranged.extend(deletes);
        Ok(Arranged { manifests: arranged, replaced: replaced_data + replaced_deletes })
    }

    fn summary(&self, base: &TableMetadata) -> Result<SummaryBuilder> {
        let mut builder = SummaryBuilder::default();
        for file in &self.files {
            let spec = base.partition_spec(file.partition_spec_id);
            let spec = spec.ok_or_else(|| Error::invalid(format!("no partition spec {}", file.partition_spec_id)))?;
            let source = |id: Option<i32>| {
                let found = id.and_then(|id| base.current_schema().find_type(id)).and_then(Type::as_primitive);
                found.cloned().unwrap_or(PrimitiveType::Unknown)
            };
            let sources: Vec<PrimitiveType> = spec.fields.iter().map(|field| source(field.source_id())).collect();
            builder.added(file, partition_path(spec, &sources, &file.partition)?);
        }
        Ok(builder)
    }

    fn failed(&mut self) {
        if let Some(storage) = &self.owned_in {
            let paths: Vec<String> = self.files.iter().map(|file| file.file_path.clone()).collect();
            storage.discard(&paths, "data files of an append that was not committed");
        }
    }
}
