//! What happens to the files of a copy: they are listed for other programs, or copied.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use super::super::seen::Seen;
use crate::error::{Error, Result};
use crate::snapshot::parallel::try_side_by_side;
use crate::storage::{Output, Storage};

/// Bytes read and written at once.
const PIECE: u64 = 8 << 20;

/// Bytes of lines that are collected before they are written.
const FLUSH: usize = 1 << 20;

/// A file that belongs to the copy.
#[derive(Debug, Clone)]
pub(super) struct Named {
    pub(super) source: String,
    pub(super) target: String,
    /// Its size according to the file that names it.
    pub(super) size: Option<u64>,
    /// Whether `source` is a file that was written for the copy.
    pub(super) is_rewritten: bool,
}

/// Takes the files of a copy; each may come more than once.
pub(super) trait Plan {
    fn add(&mut self, files: Vec<Named>) -> Result<()>;
}

/// A list of files as text: source and target of each in a line, with a comma between them.
pub(super) struct FileList {
    path: String,
    output: Option<Box<dyn Output>>,
    pending: String,
    seen: Seen,
    files: u64,
}

impl FileList {
    /// Starts a list; without `path` files are only counted.
    pub(super) fn new(storage: &Storage, path: Option<&str>) -> Result<Self> {
        let output = path.map(|path| storage.output(path)).transpose()?;
        let path = path.unwrap_or_default().to_owned();
        Ok(Self { path, output, pending: String::new(), seen: Seen::default(), files: 0 })
    }

    /// Ends the list; returns its location and the number of files.
    pub(super) fn finish(mut self) -> Result<(Option<String>, u64)> {
        self.flush()?;
        let Some(output) = self.output.take() else { return Ok((None, self.files)) };
        output.finish()?;
        Ok((Some(std::mem::take(&mut self.path)), self.files))
    }

    fn flush(&mut self) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        match &mut self.output {
            Some(output) if !pending.is_empty() => output.write(Bytes::from(pending)),
            _ => Ok(()),
        }
    }
}

impl Drop for FileList {
    fn drop(&mut self) {
        if let Some(output) = self.output.take() {
            output.abort();
        }
    }
}

impl Plan for FileList {
    fn add(&mut self, files: Vec<Named>) -> Result<()> {
        for file in files {
            if !self.seen.add(&file.target) {
                continue;
            }
            self.files += 1;
            let line = [field(&file.source), ",".to_owned(), field(&file.target), "\n".to_owned()];
            self.pending.extend(line);
            if self.pending.len() >= FLUSH {
                self.flush()?;
            }
        }
        Ok(())
    }
}

/// A field of the list; quoted where it would be read as another (RFC 4180).
fn field(text: &str) -> String {
    match text.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

/// Copies files, several at a time.
pub(super) struct Copier<'a> {
    storage: &'a Storage,
    /// Where files are written: nowhere in a dry run.
    written: &'a Storage,
    is_dry_run: bool,
    seen: Seen,
    pub(super) copied: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) present: AtomicU64,
}

impl<'a> Copier<'a> {
    pub(super) fn new(storage: &'a Storage, written: &'a Storage, is_dry_run: bool) -> Self {
        let seen = Seen::default();
        Self {
            storage,
            written,
            is_dry_run,
            seen,
            copied: AtomicU64::default(),
            bytes: AtomicU64::default(),
            present: AtomicU64::default(),
        }
    }

    fn copy(&self, file: &Named) -> Result<()> {
        if file.is_rewritten || !self.seen.add(&file.target) {
            return Ok(());
        }
        let size = self.storage.size(&file.source)?;
        if let Some(expected) = file.size.filter(|expected| *expected != size) {
            let message = format!("has {size} bytes, but the table's metadata says {expected}");
            return Err(Error::corrupt_file(&file.source, message));
        }
        // Files never change once they are written, so one of the same name and size is the same.
        match self.storage.size(&file.target) {
            Ok(there) if there == size => {
                self.present.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
            Ok(_) | Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
        if !self.is_dry_run {
            let mut output = self.written.output(&file.target)?;
            match self.pieces(file, size, output.as_mut()) {
                Ok(()) => output.finish()?,
                Err(error) => {
                    output.abort();
                    return Err(error);
                }
            }
            let there = self.written.size(&file.target)?;
            if there != size {
                let message = format!("the copy has {there} bytes, and {} has {size}", file.source);
                return Err(Error::corrupt_file(&file.target, message));
            }
        }
        self.copied.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(size, Ordering::Relaxed);
        Ok(())
    }

    fn pieces(&self, file: &Named, size: u64, output: &mut dyn Output) -> Result<()> {
        let mut at = 0;
        while at < size {
            let end = size.min(at + PIECE);
            output.write(self.storage.range(&file.source, at..end)?)?;
            at = end;
        }
        Ok(())
    }
}

impl Plan for Copier<'_> {
    fn add(&mut self, files: Vec<Named>) -> Result<()> {
        let Some(first) = files.first() else { return Ok(()) };
        let place = first.target.clone();
        try_side_by_side(self.storage, &place, &files, |file| self.copy(file))
    }
}

#[cfg(test)]
mod tests {
    use super::field;

    #[test]
    fn fields_are_quoted_where_they_have_commas() {
        for (text, expected) in [("s3://a/b", "s3://a/b"), ("a,b", "\"a,b\""), ("a\"b", "\"a\"\"b\"")] {
            assert_eq!(field(text), expected);
        }
    }
}
