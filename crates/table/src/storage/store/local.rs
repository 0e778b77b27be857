//! The store of local files.
//!
//! An object appears under its name only when it is complete: it is written next to it under a temporary name, synced,
//! and then linked (if nothing may be replaced, since a link never replaces) or renamed.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use bytes::Bytes;

use super::PAGE;
use super::calls::{before_change, before_write};
use super::read_at::read_at;
use crate::error::{Error, Result};
use crate::storage::{Entry, Existing, Location, OpenObject, Output, Pages, Store};

/// Folders deeper than this are not listed; only a loop can be so deep.
const MAX_DEPTH: usize = 256;

/// Minimum size at which available memory is checked before reading.
const LARGE: usize = 1 << 28;

/// Maximum bytes to read at once for several ranges.
const TOGETHER: u64 = 1 << 20;

/// The store of local files.
#[derive(Debug)]
pub(in crate::storage) struct Local;

fn failed(at: &Path, operation: &'static str) -> impl FnOnce(io::Error) -> Error {
    let path = at.display().to_string();
    move |error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Error::NotFound { path },
        ErrorKind::AlreadyExists => Error::AlreadyExists { path },
        _ => Error::Storage { path, operation, message: error.to_string() },
    }
}

/// The error of a write: a missing folder or a file in its place must not look like a missing file.
fn unwritten(target: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = target.display().to_string();
    let blocked = target.ancestors().skip(1).find(|above| above.exists()).filter(|above| !above.is_dir());
    let blocked = blocked.map(|file| format!("{} is a file, not a folder", file.display()));
    move |error| match (blocked, error.kind()) {
        (None, ErrorKind::AlreadyExists) => Error::AlreadyExists { path },
        (blocked, _) => {
            Error::Storage { path, operation: "write", message: blocked.unwrap_or_else(|| error.to_string()) }
        }
    }
}

/// Opens a regular file or a link to one, and returns its length. Other files are rejected: a pipe without a writer
/// blocks forever, and a device has no end.
fn open(path: &Path) -> Result<(File, u64)> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = match options.open(path) {
        Ok(file) => file,
        // Some kinds of files, such as sockets, cannot be opened: report the kind instead of the system's error.
        Err(error) => {
            if let Ok(about) = fs::metadata(path) {
                regular(path, &about)?;
            }
            return Err(failed(path, "read")(error));
        }
    };
    let about = file.metadata().map_err(failed(path, "read"))?;
    let size = regular(path, &about)?;
    Ok((file, size))
}

/// The size of a regular file; anything else is an error.
fn regular(path: &Path, about: &fs::Metadata) -> Result<u64> {
    if about.is_file() {
        return Ok(about.len());
    }
    let message = format!("not a regular file but {}; only regular files are read", kind(about));
    Err(Error::Storage { path: path.display().to_string(), operation: "read", message })
}

/// The kind of a path that is not a regular file, such as a directory; `None` if it does not exist.
pub(in crate::storage) fn other_than_file(path: &Path) -> Option<&'static str> {
    let about = fs::metadata(path).ok()?;
    (!about.is_file()).then(|| kind(&about))
}

fn kind(about: &fs::Metadata) -> &'static str {
    if about.is_dir() {
        return "a directory";
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        let kind = about.file_type();
        if kind.is_fifo() {
            return "a named pipe";
        }
        if kind.is_char_device() || kind.is_block_device() {
            return "a device";
        }
        if kind.is_socket() {
            return "a socket";
        }
    }
    "a special file"
}

/// Reads bytes at an offset. A file that ends too early was truncated after its size was determined.
fn read_range(file: &File, path: &Path, offset: u64, length: u64) -> Result<Vec<u8>> {
    let too_large =
        || Error::corrupt_file(path.display().to_string(), format!("{length} bytes do not fit into memory"));
    let length = usize::try_from(length).map_err(|_| too_large())?;
    // A sparse file may be longer than memory.
    if length > LARGE {
        Vec::<u8>::new().try_reserve_exact(length).map_err(|_| too_large())?;
    }
    read_at(file, length, offset).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => {
            Error::corrupt_file(path.display().to_string(), "became shorter while it was being read")
        }
        _ => failed(path, "read")(error),
    })
}

/// Groups adjacent ranges that are read with one system call, up to a total size: the columns of a small file. Large
/// ranges stay separate, so that their memory can be freed one by one.
fn in_one_read(ranges: &[Range<u64>]) -> impl Iterator<Item = &[Range<u64>]> {
    let mut length = 0;
    ranges.chunk_by(move |one, next| {
        length += one.end.saturating_sub(one.start);
        let is_near = one.start <= one.end && one.end == next.start && next.start <= next.end;
        let is_joined = is_near && length.saturating_add(next.end - next.start) <= TOGETHER;
        if !is_joined {
            length = 0;
        }
        is_joined
    })
}

/// An open file with its length when it was opened.
#[derive(Debug)]
struct OpenFile {
    path: PathBuf,
    file: File,
    size: u64,
}

impl OpenFile {
    fn open(path: &Path) -> Result<Self> {
        let (file, size) = open(path)?;
        Ok(Self { path: path.to_owned(), file, size })
    }
}

impl OpenObject for OpenFile {
    fn range(&self, range: Range<u64>) -> Result<Bytes> {
        let Range { start, end } = range;
        if start > end || end > self.size {
            let wanted = format!("bytes {start} to {end} of a file of {}", self.size);
            return Err(Error::corrupt_file(self.path.display().to_string(), wanted));
        }
        read_range(&self.file, &self.path, start, end - start).map(Bytes::from)
    }
}

impl Store for Local {
    fn read(&self, at: &Location, most: u64) -> Result<Bytes> {
        let path = Path::new(&at.key);
        let (file, size) = open(path)?;
        if size > most {
            return Err(super::too_long(&at.key, size, most));
        }
        let bytes = read_range(&file, path, 0, size)?;
        if read_at(&file, 1, size).is_ok() {
            let message = format!("became longer than its {size} bytes while it was being read");
            return Err(Error::corrupt_file(&at.key, message));
        }
        Ok(bytes.into())
    }

    fn size(&self, at: &Location) -> Result<u64> {
        let path = Path::new(&at.key);
        let found = fs::metadata(path).map_err(failed(path, "read"))?;
        if found.is_dir() {
            return Err(Error::NotFound { path: at.key.clone() });
        }
        regular(path, &found)
    }

    fn ranges(&self, at: &Location, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let opened = OpenFile::open(Path::new(&at.key))?;
        let mut found = Vec::with_capacity(ranges.len());
        for together in in_one_read(ranges) {
            let (Some(first), Some(last)) = (together.first(), together.last()) else { continue };
            let bytes = opened.range(first.start..last.end)?;
            // In bounds: the ranges of a group are adjacent.
            let within = |range: &Range<u64>| (range.start - first.start) as usize..(range.end - first.start) as usize;
            found.extend(together.iter().map(|range| bytes.slice(within(range))));
        }
        Ok(found)
    }

    fn open(&self, at: &Location) -> Result<Option<Arc<dyn OpenObject>>> {
        Ok(Some(Arc::new(OpenFile::open(Path::new(&at.key))?)))
    }

    fn put(&self, at: &Location, bytes: Bytes, existing: Existing) -> Result<()> {
        let mut draft = Draft::open(Path::new(&at.key))?;
        draft.write(&bytes)?;
        draft.publish(existing)
    }

    fn output(&self, at: &Location) -> Result<Box<dyn Output>> {
        Ok(Box::new(Draft::open(Path::new(&at.key))?))
    }

    fn delete(&self, at: &Location) -> Result<()> {
        let path = Path::new(&at.key);
        before_change();
        match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(path, "delete")(error)),
            _ => Ok(()),
        }
    }

    fn pages(&self, prefix: &Location) -> Result<Pages> {
        let root = Folder { at: PathBuf::from(&prefix.key), name: prefix.key.clone(), depth: 0 };
        Ok(Box::new(Listing { folders: vec![root], open: None }))
    }
}

/// A folder to list; its entries are named `name` plus their own name.
struct Folder {
    at: PathBuf,
    name: String,
    depth: usize,
}

/// Lists all files below a folder, keeping the folders that remain to be read.
struct Listing {
    folders: Vec<Folder>,
    /// The folder being read.
    open: Option<(Folder, fs::ReadDir)>,
}

impl Listing {
    /// The next file or the error of a folder; `None` at the end.
    fn advance(&mut self) -> Result<Option<Entry>> {
        loop {
            let Some((folder, children)) = &mut self.open else {
                let Some(folder) = self.folders.pop() else { return Ok(None) };
                match fs::read_dir(&folder.at) {
                    Ok(children) => self.open = Some((folder, children)),
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    Err(error) => return Err(failed(&folder.at, "list")(error)),
                }
                continue;
            };
            let Some(child) = children.next() else {
                self.open = None;
                continue;
            };
            let child = child.map_err(failed(&folder.at, "list"))?;
            let path = format!("{}{}", folder.name, child.file_name().to_string_lossy());
            let kind = child.file_type().map_err(failed(&folder.at, "list"))?;
            if kind.is_dir() {
                if folder.depth < MAX_DEPTH {
                    self.folders.push(Folder { at: child.path(), name: format!("{path}/"), depth: folder.depth + 1 });
                }
                continue;
            }
            // A file may disappear between the listing and the request for its size.
            let Ok(about) = child.metadata() else { continue };
            return Ok(Some(Entry { path, size: about.len(), modified_ms: modified(&about) }));
        }
    }
}

impl Iterator for Listing {
    type Item = Result<Vec<Entry>>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut page = Vec::new();
        while page.len() < PAGE {
            match self.advance() {
                Ok(Some(entry)) => page.push(entry),
                Ok(None) => break,
                Err(error) => {
                    (self.folders, self.open) = (Vec::new(), None);
                    return Some(Err(error));
                }
            }
        }
        (!page.is_empty()).then_some(Ok(page))
    }
}

fn modified(about: &fs::Metadata) -> Option<i64> {
    let since = about.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok()
}

/// A file under a temporary name, deleted unless it is published.
struct Draft {
    file: File,
    written: PathBuf,
    target: PathBuf,
    published: bool,
}

impl Draft {
    fn open(target: &Path) -> Result<Self> {
        let name = target
            .file_name()
            .ok_or_else(|| Error::invalid(format!("{}: expected the path of a file", target.display())))?;
        let own = format!(".{}.{}.tmp", name.to_string_lossy(), uuid::Uuid::new_v4().simple());
        let written = target.with_file_name(own);
        let create = || {
            before_write()?;
            File::options().write(true).create_new(true).open(&written)
        };
        let file = match create() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if let Some(folder) = target.parent() {
                    before_write().and_then(|()| fs::create_dir_all(folder)).map_err(unwritten(target))?;
                }
                create()
            }
            other => other,
        };
        let file = file.map_err(unwritten(target))?;
        Ok(Self { file, written, target: target.to_owned(), published: false })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        before_write().and_then(|()| self.file.write_all(bytes)).map_err(failed(&self.target, "write"))
    }

    fn publish(mut self, existing: Existing) -> Result<()> {
        before_change();
        self.file.sync_data().map_err(failed(&self.target, "write"))?;
        match existing {
            Existing::Replace => {
                let renamed = before_write().and_then(|()| fs::rename(&self.written, &self.target));
                renamed.map_err(failed(&self.target, "write"))?;
                self.published = true;
            }
            Existing::Refuse => self.link()?,
        }
        sync_folder(&self.target)
    }

    /// Gives the file its name unless a file with that name exists. The temporary name is removed on drop.
    fn link(&self) -> Result<()> {
        match before_write().and_then(|()| fs::hard_link(&self.written, &self.target)) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(failed(&self.target, "write")(error)),
            // On a file system without links: create the target first to claim the name, then rename over it. Readers
            // may see the empty file in between.
            Err(_) => {
                let claim = || File::options().write(true).create_new(true).open(&self.target);
                drop(before_write().and_then(|()| claim()).map_err(failed(&self.target, "write"))?);
                before_change();
                fs::rename(&self.written, &self.target).map_err(failed(&self.target, "write"))
            }
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.published {
            before_change();
            let _ = fs::remove_file(&self.written);
        }
    }
}

impl Output for Draft {
    fn write(&mut self, bytes: Bytes) -> Result<()> {
        Self::write(self, &bytes)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.publish(Existing::Replace)
    }

    fn abort(self: Box<Self>) {}
}

/// Syncs the folder entry of a file.
#[cfg(unix)]
fn sync_folder(of: &Path) -> Result<()> {
    before_change();
    let folder = of.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // The file is complete and has its name, so a folder that cannot be synced (on some network file systems) is not an
    // error.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_follow_one_another_are_read_at_once() {
        let runs = |ranges: &[Range<u64>]| in_one_read(ranges).map(<[_]>::len).collect::<Vec<_>>();
        assert_eq!(runs(&[]), [0; 0]);
        assert_eq!(runs(&[4..9, 9..20, 20..20, 20..30, 31..40, 40..41, 0..4]), [4, 2, 1]);
        assert_eq!(runs(&[0..TOGETHER, TOGETHER..TOGETHER + 1]), [1, 1]);
        assert_eq!(runs(&[0..1, 1..TOGETHER, TOGETHER..TOGETHER + 1, TOGETHER + 1..2 * TOGETHER]), [2, 2]);
        // Invalid ranges are left to the reader to reject.
        assert_eq!(runs(&[5..9, Range { start: 9, end: 3 }, 3..4]), [1, 1, 1]);
    }

    #[test]
    fn each_range_has_its_own_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let text: Vec<u8> = (0..1000).map(|place| (place % 251) as u8).collect();
        fs::write(&path, &text).unwrap();
        let at = Location::parse(&path.display().to_string()).unwrap();
        let ranges = [0..0, 0..10, 10..300, 300..300, 700..1000, 5..6];
        let found = Local.ranges(&at, &ranges).unwrap();
        let expected = ranges.iter().map(|range| &text[range.start as usize..range.end as usize]);
        assert!(found.iter().map(|bytes| &bytes[..]).eq(expected));
        for wrong in [[0..1, 1..1001], [999..1000, 1000..1001]] {
            assert!(matches!(Local.ranges(&at, &wrong), Err(Error::CorruptFile { .. })), "{wrong:?}");
        }
    }
}
