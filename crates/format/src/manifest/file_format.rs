//! Formats of data and delete files ("Data File Fields", `file_format`).

use std::fmt;

/// The format of a data or delete file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileFormat {
    /// Apache Parquet.
    Parquet,
    /// Apache ORC.
    Orc,
    /// Apache Avro.
    Avro,
    /// Puffin: deletion vectors.
    Puffin,
}

impl FileFormat {
    /// All formats.
    pub const ALL: [Self; 4] = [Self::Parquet, Self::Orc, Self::Avro, Self::Puffin];

    /// Parses a format name in any case, as the Java library does; `None` for formats of a later specification.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name().eq_ignore_ascii_case(name))
    }

    /// The name as the Java library writes it to manifests.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Parquet => "PARQUET",
            Self::Orc => "ORC",
            Self::Avro => "AVRO",
            Self::Puffin => "PUFFIN",
        }
    }

    /// The name in properties and plans, and the extension of file names.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Orc => "orc",
            Self::Avro => "avro",
            Self::Puffin => "puffin",
        }
    }
}

impl fmt::Display for FileFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.extension())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_any_case() {
        for (name, format) in [
            ("PARQUET", Some(FileFormat::Parquet)),
            ("Orc", Some(FileFormat::Orc)),
            ("avro", Some(FileFormat::Avro)),
            ("puffin", Some(FileFormat::Puffin)),
            ("", None),
            ("parquet ", None),
            ("lance", None),
        ] {
            assert_eq!(FileFormat::from_name(name), format, "{name:?}");
        }
        for format in FileFormat::ALL {
            assert_eq!(format.name().to_lowercase(), format.extension());
            assert_eq!(FileFormat::from_name(&format.to_string()), Some(format));
        }
    }
}
