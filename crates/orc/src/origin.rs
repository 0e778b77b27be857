//! Which implementation wrote a file, and which of its old bugs were fixed by then ("File Tail": `writer` in the
//! footer, `writerVersion` in the postscript; docs/orc-pitfalls.md, "Writer ids and versions").

use std::fmt;

use crate::proto::CalendarKind;

/// The implementation that wrote a file, by its code in the footer; a file without a code is by the Java library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriterId(pub u32);

/// The names of the codes from 0: in the format, and for people.
const WRITERS: [(&str, &str); 6] = [
    ("ORC_JAVA", "ORC Java"),
    ("ORC_CPP", "ORC C++"),
    ("PRESTO", "Presto"),
    ("SCRITCHLEY_GO", "Scritchley Go"),
    ("TRINO", "Trino"),
    ("CUDF", "CUDF"),
];

impl WriterId {
    /// orc-core, the Java library of Apache ORC.
    pub const JAVA: Self = Self(0);
    /// The C++ library of Apache ORC, which pyarrow and pyorc write with.
    pub const CPP: Self = Self(1);
    /// This library, which has no code in the format. orc-core and the C++ library read this number as an unknown
    /// writer, and then assume that every bug is fixed.
    pub const ICEFIELD: Self = Self(i32::MAX as u32);

    fn names(self) -> Option<(&'static str, &'static str)> {
        WRITERS.get(usize::try_from(self.0).ok()?).copied()
    }

    /// The name for people, for example `ORC C++`.
    pub fn title(self) -> &'static str {
        self.names().map_or("unknown", |(_, title)| title)
    }
}

/// The name in the format, for example `ORC_JAVA`, or the code if it has no name.
impl fmt::Display for WriterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.names() {
            Some((name, _)) => f.write_str(name),
            None => self.0.fmt(f),
        }
    }
}

/// The last bug of the Java writer that is fixed in a file. Other implementations start at 6, where the numbers do not
/// refer to these bugs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WriterVersion(pub u32);

const VERSIONS: [&str; 10] = [
    "ORIGINAL",
    "HIVE_8732",
    "HIVE_4243",
    "HIVE_12055",
    "HIVE_13083",
    "ORC_101",
    "ORC_135",
    "ORC_517",
    "ORC_203",
    "ORC_14",
];

impl WriterVersion {
    /// String minima and maxima cover the whole stripe and file.
    pub const HIVE_8732: Self = Self(1);
    /// The vectorized writer; Bloom filters of the older kind hash strings as UTF-8.
    pub const HIVE_12055: Self = Self(3);
    /// Timestamp statistics are in UTC.
    pub const ORC_135: Self = Self(6);
    /// Statistics of decimals of up to 18 digits are correct.
    pub const ORC_517: Self = Self(7);
    /// Column encryption; includes every earlier fix.
    pub const ORC_14: Self = Self(9);
}

/// The name in the format, for example `ORC_135`, or the number if it has no name.
impl fmt::Display for WriterVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match usize::try_from(self.0).ok().and_then(|version| VERSIONS.get(version)) {
            Some(name) => f.write_str(name),
            None => self.0.fmt(f),
        }
    }
}

/// What the tail of a file says about the writer of its stripes.
#[derive(Debug)]
pub(crate) struct Origin {
    pub writer: Option<u32>,
    pub writer_version: Option<u32>,
    pub software_version: Option<String>,
    pub calendar: Option<CalendarKind>,
}

/// The origin of files that this library writes.
impl Default for Origin {
    fn default() -> Self {
        Self {
            writer: Some(WriterId::ICEFIELD.0),
            writer_version: Some(WriterVersion::ORC_14.0),
            software_version: Some(concat!("icefield ", env!("CARGO_PKG_VERSION")).to_owned()),
            calendar: Some(CalendarKind::ProlepticGregorian),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_their_names() {
        for (version, name) in [
            (WriterVersion(0), "ORIGINAL"),
            (WriterVersion::HIVE_8732, "HIVE_8732"),
            (WriterVersion::HIVE_12055, "HIVE_12055"),
            (WriterVersion::ORC_135, "ORC_135"),
            (WriterVersion::ORC_517, "ORC_517"),
            (WriterVersion::ORC_14, "ORC_14"),
            (WriterVersion(10), "10"),
            (WriterVersion(u32::MAX), "4294967295"),
        ] {
            assert_eq!(version.to_string(), name);
        }
        for (writer, name, title) in [
            (WriterId::JAVA, "ORC_JAVA", "ORC Java"),
            (WriterId::CPP, "ORC_CPP", "ORC C++"),
            (WriterId(5), "CUDF", "CUDF"),
            (WriterId::ICEFIELD, "2147483647", "unknown"),
        ] {
            assert_eq!((writer.to_string().as_str(), writer.title()), (name, title));
        }
    }
}
