//! Where data files lie and what they are called (`write.data.path`, `write.object-storage.*`; layouts as the Java
//! library makes them, so that its tools find them).

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use icefield_format::metadata::StringMap;
use icefield_format::metadata::properties::{
    OBJECT_STORE_ENABLED, OBJECT_STORE_PATH, WRITE_DATA_LOCATION, WRITE_FOLDER_STORAGE_LOCATION,
    WRITE_OBJECT_STORE_PARTITIONED_PATHS,
};
use icefield_format::transform::murmur3::murmur3_32;
use uuid::Uuid;

use super::provider::{self, LocationProvider};
use crate::error::{Error, Result};

/// Bits of the hash that spread the files of an object store over folders.
const HASH_BITS: usize = 20;
/// Bits of a folder's name; what is left after three of them is the fourth name.
const FOLDER_BITS: usize = 4;

/// Maximum bytes of a folder name, the limit of file systems.
const FOLDER_BYTES: usize = 255;

/// Where data files are stored.
#[derive(Debug, Clone)]
pub struct DataLocations {
    root: String,
    hashed: bool,
    /// Folders between the hash and the file, if the files are not below the table.
    context: Option<String>,
    partition_folders: bool,
    /// Decides instead of these rules.
    provider: Option<Arc<dyn LocationProvider>>,
}

impl DataLocations {
    /// The locations of a table.
    pub fn new(table_location: &str, properties: &StringMap) -> Result<Self> {
        let table = table_location.trim_end_matches('/');
        let provider = provider::of_table(table, properties)?;
        let hashed = OBJECT_STORE_ENABLED.read(properties);
        let folder = WRITE_DATA_LOCATION.read_valid(properties)?;
        for old in [OBJECT_STORE_PATH, WRITE_FOLDER_STORAGE_LOCATION] {
            if folder.is_none() && old.read(properties).is_some() {
                let (old, new) = (old.name, WRITE_DATA_LOCATION.name);
                return Err(Error::invalid(format!("table property '{old}': it is no longer used, set '{new}'")));
            }
        }
        let root = folder.map_or_else(|| format!("{table}/data"), str::to_owned);
        let root = root.trim_end_matches('/').to_owned();
        let context = (hashed && !root.starts_with(table)).then(|| {
            let parts: Vec<&str> = table.rsplit('/').filter(|part| !part.is_empty()).take(2).collect();
            parts.into_iter().rev().collect::<Vec<_>>().join("/")
        });
        let partition_folders = !hashed || WRITE_OBJECT_STORE_PARTITIONED_PATHS.read(properties);
        Ok(Self { root, hashed, context, partition_folders, provider })
    }

    /// The folder that all files lie beneath, unless a location provider decides.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// The location of a file; `partition` is the path of its partition, empty for an unpartitioned table.
    ///
    /// # Errors
    /// Those of a location provider.
    pub fn file(&self, partition: &str, name: &str) -> Result<String> {
        match &self.provider {
            Some(provider) => provider.location(partition, name),
            None => Ok(self.by_rules(partition, name)),
        }
    }

    fn by_rules(&self, partition: &str, name: &str) -> String {
        let root = &self.root;
        let name = match partition {
            "" => name.to_owned(),
            _ if self.partition_folders => {
                let folders: Vec<_> = partition.split('/').map(folder).collect();
                format!("{}/{name}", folders.join("/"))
            }
            _ => name.to_owned(),
        };
        if !self.hashed {
            return format!("{root}/{name}");
        }
        let hash = folders(&name);
        match &self.context {
            Some(context) => format!("{root}/{hash}/{context}/{name}"),
            None if self.partition_folders => format!("{root}/{hash}/{name}"),
            None => format!("{root}/{hash}-{name}"),
        }
    }
}

/// A folder name within the limit of file systems: a longer one is cut and ends with its hash. Partition paths are
/// escaped to one byte per character, so a cut escape sequence is recognized by its `%`.
fn folder(name: &str) -> Cow<'_, str> {
    if name.len() <= FOLDER_BYTES {
        return Cow::Borrowed(name);
    }
    let end = format!("~{:08x}", murmur3_32(name.as_bytes()));
    let head = name.get(..FOLDER_BYTES - end.len()).unwrap_or_default();
    let escape = head.rfind('%').filter(|at| head.len() - at < 3);
    Cow::Owned(format!("{}{end}", escape.and_then(|at| head.get(..at)).unwrap_or(head)))
}

/// Folders named by the bits of a name's hash.
fn folders(name: &str) -> String {
    let hash = murmur3_32(name.as_bytes()) & ((1 << HASH_BITS) - 1);
    let bits = format!("{hash:0width$b}", width = HASH_BITS);
    let parts = (0..4).map(|part| {
        let start = part * FOLDER_BITS;
        let end = if part == 3 { HASH_BITS } else { start + FOLDER_BITS };
        bits.get(start..end).unwrap_or_default()
    });
    parts.collect::<Vec<_>>().join("/")
}

/// Names of the files of one task of one write; two tasks, or two attempts at one, never share a name.
#[derive(Debug)]
pub struct FileNames {
    task: u32,
    attempt: u64,
    operation: Uuid,
    suffix: &'static str,
    extension: &'static str,
    count: Arc<AtomicU32>,
}

impl FileNames {
    /// Names for one attempt at one task. The operation's id is one for the whole write, fresh for each.
    pub fn new(task: u32, attempt: u64, operation: Uuid, extension: &'static str) -> Self {
        Self { task, attempt, operation, suffix: "", extension, count: Arc::default() }
    }

    /// The same names, with this before the extension.
    #[must_use]
    pub fn with_suffix(self, suffix: &'static str) -> Self {
        Self { suffix, ..self }
    }

    /// The same names, with the numbers that others count as well.
    #[must_use]
    pub fn counting(self, count: Arc<AtomicU32>) -> Self {
        Self { count, ..self }
    }

    /// The next name.
    pub fn next(&self) -> String {
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let Self { task, attempt, operation, suffix, extension, .. } = self;
        format!("{task:05}-{attempt}-{operation}-{number:05}{suffix}.{extension}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(properties: &[(&str, &str)]) -> StringMap {
        properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn layouts() {
        let at = |settings: &[(&str, &str)], partition: &str| {
            let settings = strings(settings);
            DataLocations::new("s3://b/db/t/", &settings).unwrap().file(partition, "a.parquet").unwrap()
        };
        let hashed = ("write.object-storage.enabled", "true");
        assert_eq!(at(&[], ""), "s3://b/db/t/data/a.parquet");
        assert_eq!(at(&[], "x=1"), "s3://b/db/t/data/x=1/a.parquet");
        assert_eq!(at(&[("write.data.path", "s3://c/d/")], "x=1"), "s3://c/d/x=1/a.parquet");
        assert!(at(&[hashed], "").starts_with("s3://b/db/t/data/"));
        let elsewhere = at(&[hashed, ("write.data.path", "s3://c/d")], "x=1");
        assert!(elsewhere.starts_with("s3://c/d/") && elsewhere.ends_with("/db/t/x=1/a.parquet"), "{elsewhere}");
        let flat = at(&[hashed, ("write.object-storage.partitioned-paths", "false")], "x=1");
        assert!(flat.ends_with("-a.parquet") && !flat.contains("x=1"), "{flat}");
        let empty = DataLocations::new("s3://b/t", &strings(&[("write.data.path", "")])).unwrap_err();
        assert_eq!(empty.to_string(), "table property 'write.data.path': expected a non-empty string, got ''");
    }

    #[test]
    fn names_that_file_systems_do_not_take_are_cut() {
        let locations = DataLocations::new("/t", &StringMap::new()).unwrap();
        let folder_of = |partition: &str| {
            let path = locations.file(partition, "a.parquet").unwrap();
            path.strip_prefix("/t/data/").unwrap().strip_suffix("/a.parquet").unwrap().to_owned()
        };
        let longest = format!("s={}", "x".repeat(253));
        assert_eq!(folder_of(&longest), longest);
        let (one, other) = (format!("{longest}y"), format!("{longest}z"));
        let cut = folder_of(&one);
        assert_eq!((cut.len(), &cut[..246]), (255, &longest[..246]));
        assert!(cut[246..].starts_with('~') && cut != folder_of(&other), "{cut}");
        // Remove a cut escape sequence whole; other folders of the path are unchanged.
        for shift in 0..3 {
            let partition = format!("d=2024/{}{}", "x".repeat(shift), "%C3%A4".repeat(60));
            let path = folder_of(&partition);
            let (day, cut) = path.split_once('/').unwrap();
            let (head, _) = cut.split_once('~').unwrap();
            assert_eq!(day, "d=2024");
            assert!(cut.len() <= 255 && (head.len() - shift) % 3 == 0 && partition.contains(head), "{cut}");
        }
    }

    #[test]
    fn hashes_are_javas() {
        for (name, expected) in [
            ("a", "0101/0110/1001/10110010"),
            ("b", "1110/0111/1110/00000011"),
            ("c", "0010/1101/0110/01011111"),
            ("d", "1001/0001/0100/01110011"),
        ] {
            assert_eq!(folders(name), expected, "{name}");
        }
    }

    #[test]
    fn names_of_attempts_differ() {
        let operation = Uuid::new_v4();
        let names = [
            FileNames::new(1, 0, operation, "orc"),
            FileNames::new(1, 1, operation, "orc"),
            FileNames::new(2, 0, operation, "orc"),
        ];
        let mut all: Vec<String> = names.iter().flat_map(|names| [names.next(), names.next()]).collect();
        assert!(all[0].starts_with("00001-0-") && all[0].ends_with("-00001.orc"), "{}", all[0]);
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 6);
    }
}
