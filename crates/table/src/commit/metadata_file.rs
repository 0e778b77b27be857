//! Locates, names, reads and writes metadata files ("Metastore Tables").

use icefield_format::metadata::properties::{METADATA_COMPRESSION, WRITE_METADATA_LOCATION};
use icefield_format::metadata::{MetadataCodec, TableMetadata, compress, metadata_file_name, metadata_file_version};

use crate::error::{Error, Result};
use crate::limits::limits;
use crate::storage::{Existing, Storage};

/// First bytes of other kinds of files.
const OTHERS: [(&[u8], &str); 5] = [
    (b"PAR1", "a Parquet file (PAR1)"),
    (b"ORC", "an ORC file (ORC)"),
    (b"Obj\x01", "an Avro file (Obj1)"),
    (b"PFA1", "a Puffin file (PFA1)"),
    (b"ARRO", "an Arrow IPC file (ARROW1)"),
];

/// Reads a metadata file, compressed or not.
pub fn read_metadata(storage: &Storage, location: &str) -> Result<TableMetadata> {
    let limits = limits()?;
    let bytes = storage.read_at_most(location, limits.metadata_json_bytes)?;
    if let Some((_, what)) = OTHERS.iter().find(|(head, _)| bytes.starts_with(head)) {
        let message = format!(
            "{what}, not a metadata file: these are called *.metadata.json and lie in the table's folder metadata"
        );
        return Err(icefield_format::Error::corrupt("", message).in_file(location).into());
    }
    TableMetadata::from_json(&bytes, &limits).map_err(|error| match error.in_file(location) {
        icefield_format::Error::Unsupported(what) => Error::unsupported(format!("{location}: {what}")),
        error => error.into(),
    })
}

/// Writes a metadata file under a unique name and returns its location. Metadata that could not be loaded again is not
/// written.
pub fn write_metadata(storage: &Storage, metadata: &TableMetadata, version: u64) -> Result<String> {
    let properties = metadata.properties();
    let codec: MetadataCodec = METADATA_COMPRESSION.read(properties).parse()?;
    let name = metadata_file_name(version, &uuid::Uuid::new_v4().to_string(), codec);
    let location = format!("{}/{name}", metadata_folder(metadata)?);
    let bytes = compress(&metadata.to_json(), codec)?;
    // Parses the bytes as they are stored: the limits of a document depend on the length of its file.
    TableMetadata::from_json(&bytes, &limits()?)
        .map_err(|error| Error::invalid(format!("the table's new metadata could not be loaded again: {error}")))?;
    storage.put(&location, bytes, Existing::Refuse)?;
    Ok(location)
}

/// The folder of metadata files, manifest lists and manifests (`write.metadata.path`).
pub(crate) fn metadata_folder(metadata: &TableMetadata) -> Result<String> {
    match WRITE_METADATA_LOCATION.read_valid(metadata.properties())? {
        Some(folder) => Ok(folder.trim_end_matches('/').to_owned()),
        None => Ok(format!("{}/metadata", metadata.location().trim_end_matches('/'))),
    }
}

/// The version after that of a metadata file; a name without a version counts as version 0.
pub(super) fn next_version(location: &str) -> u64 {
    metadata_file_version(location).map_or(0, |version| version.saturating_add(1))
}
