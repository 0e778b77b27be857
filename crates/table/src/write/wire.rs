//! Serializes descriptions of written files, to send them from executors to the driver.
//!
//! The bytes are a manifest ("Manifests"): its codec exists, is exact for every type, and limits what it reads.

use icefield_format::avro::{Codec, Compression};
use icefield_format::manifest::entries::{self, ReadOptions};
use icefield_format::manifest::write::{ManifestOptions, ManifestWriter};
use icefield_format::manifest::{DataFile, FileContent, ManifestContent, Metrics};
use icefield_format::spec::PartitionSpec;
use icefield_format::types::Schema;

use crate::error::{Error, Result};
use crate::limits::limits;

/// The newest version, which has a field for everything about a file.
const VERSION: u8 = 3;
/// A placeholder for the snapshot, which does not exist yet.
const NO_SNAPSHOT: i64 = 1;

/// Serializes data files, or delete files, of one partition spec.
pub fn to_bytes(files: &[DataFile], schema: &Schema, spec: &PartitionSpec) -> Result<Vec<u8>> {
    let content = match files.first().map(|file| file.content) {
        None | Some(FileContent::Data) => ManifestContent::Data,
        Some(_) => ManifestContent::Deletes,
    };
    let mut writer = ManifestWriter::new(ManifestOptions {
        format_version: VERSION,
        content,
        schema,
        spec,
        snapshot_id: NO_SNAPSHOT,
        first_row_id: None,
        compression: Compression { codec: Codec::Zstandard, level: None },
        sync: *uuid::Uuid::new_v4().as_bytes(),
    })?;
    for file in files {
        if file.partition_spec_id != spec.spec_id {
            let message = format!("{}: of spec {}, not {}", file.file_path, file.partition_spec_id, spec.spec_id);
            return Err(Error::invalid(message));
        }
        writer.add_file(file.clone())?;
    }
    Ok(writer.finish("written files")?.0)
}

/// Deserializes the files of [`to_bytes`].
pub fn from_bytes(bytes: &[u8], schema: &Schema, spec: &PartitionSpec) -> Result<Vec<DataFile>> {
    let partition_type = spec.tuple_type(schema);
    let options =
        ReadOptions { partition_type: Some(&partition_type), metrics: Metrics::all(), ..ReadOptions::default() };
    let entries = entries::read(bytes, &options, &limits()?)?;
    let files = (0..entries.len()).map(|row| entries.file(row, spec.spec_id));
    Ok(files.collect::<std::result::Result<_, _>>()?)
}
