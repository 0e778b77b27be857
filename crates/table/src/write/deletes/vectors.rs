//! Writes deletion vectors ("Deletion Vectors"): one blob for each data file, many in one Puffin file.

use icefield_format::encryption::stream::encrypt_new;
use icefield_format::manifest::{DataFile, FileContent, FileFormat};
use icefield_format::metadata::properties::DELETE_TARGET_FILE_SIZE_BYTES;
use icefield_format::puffin::PuffinWriter;

use super::{DeleteConfig, DeletedRows, discard};
use crate::error::{Error, Result};
use crate::interrupt;
use crate::storage::Existing;
use crate::write::options::key_length;

/// Writes a vector for each data file with deleted rows. A Puffin file is closed when it reaches
/// `write.delete.target-file-size-bytes`. The vectors must include the positions of the older ones they replace.
///
/// # Errors
///
/// Two entries for one data file, and errors of the storage. No file of the write is left then.
pub fn write_vectors(config: &DeleteConfig, mut deleted: Vec<DeletedRows>) -> Result<Vec<DataFile>> {
    deleted.retain(|rows| !rows.positions.is_empty());
    deleted.sort_by(|a, b| a.data_file.cmp(&b.data_file));
    if let Some([first, _]) = deleted.windows(2).find(|pair| matches!(pair, [a, b] if a.data_file == b.data_file)) {
        return Err(Error::invalid(format!("two deletion vectors for {}", first.data_file)));
    }
    let mut written = Vec::with_capacity(deleted.len());
    match write_all(config, &deleted, &mut written) {
        Ok(()) => Ok(written),
        Err(error) => {
            discard(&config.storage, &written);
            Err(error)
        }
    }
}

fn write_all(config: &DeleteConfig, mut rest: &[DeletedRows], written: &mut Vec<DataFile>) -> Result<()> {
    let target = DELETE_TARGET_FILE_SIZE_BYTES.read_size(&config.properties)? as u64;
    let (locations, names) = (config.locations()?, config.names(FileFormat::Puffin));
    while !rest.is_empty() {
        interrupt::check()?;
        // A Puffin file for several partitions belongs in no partition folder.
        let path = locations.file("", &names.next())?;
        let created_by = concat!("icefield version ", env!("CARGO_PKG_VERSION"));
        let mut puffin = PuffinWriter::new(vec![("created-by".to_owned(), created_by.to_owned())]);
        let (first, mut end) = (written.len(), 0);
        while let Some((rows, behind)) = rest.split_first()
            && (written.len() == first || end < target)
        {
            let blob = puffin.add_deletion_vector(&rows.data_file, &rows.positions)?;
            let long = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
            end = blob.offset.saturating_add(blob.length);
            written.push(DataFile {
                content: FileContent::PositionDeletes,
                file_path: path.clone(),
                file_format: FileFormat::Puffin.name().to_owned(),
                partition_spec_id: rows.spec.spec_id,
                partition: rows.partition.clone(),
                record_count: long(rows.positions.cardinality()),
                referenced_data_file: Some(rows.data_file.clone()),
                content_offset: Some(long(blob.offset)),
                content_size_in_bytes: Some(long(blob.length)),
                ..DataFile::default()
            });
            rest = behind;
        }
        let (mut bytes, _) = puffin.finish()?;
        let mut key_metadata = None;
        if let Some(key_length) = key_length(&config.properties)? {
            let key;
            (bytes, key) = encrypt_new(&bytes, key_length)?;
            key_metadata = Some(key.to_bytes());
        }
        let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        for file in written.iter_mut().skip(first) {
            (file.file_size_in_bytes, file.key_metadata) = (size, key_metadata.clone());
        }
        config.storage.put(&path, bytes, Existing::Refuse)?;
    }
    Ok(())
}
