//! Write options of Avro files: a table's `write.avro.*` properties.

use icefield_format::avro::codec::Compressor;
use icefield_format::avro::{Codec, Compression};
use icefield_format::metadata::StringMap;
use icefield_format::metadata::properties::{AVRO_COMPRESSION, AVRO_COMPRESSION_LEVEL};

use crate::error::{Error, Result};

/// Write options of Avro files.
#[derive(Debug, Clone)]
pub struct AvroOptions {
    pub(super) compression: Compression,
}

impl AvroOptions {
    /// Reads the properties.
    pub fn new(properties: &StringMap) -> Result<Self> {
        let codec = AVRO_COMPRESSION.read_choice(properties).map_err(|error| Error::unsupported(error.to_string()))?;
        let level = AVRO_COMPRESSION_LEVEL.read(properties)?;
        let level = level.map(|level| i32::try_from(level).unwrap_or(i32::MAX));
        let compression = Compression { codec: Codec::from_property(codec)?, level };
        // Refuse an invalid level before a file is started.
        Compressor::new(compression)
            .map_err(|error| Error::invalid(format!("{}: {error}", AVRO_COMPRESSION_LEVEL.name)))?;
        Ok(Self { compression })
    }
}
