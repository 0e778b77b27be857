//! Concatenates files without decoding values: copies their stripes unchanged, and writes a new tail.
//!
//! The rules are those of `OrcFile.mergeFiles` in orc-core: all files must have the same schema, codec, version, writer
//! and row index stride, and must not have different values for a key of the user metadata. orc-core skips files that
//! do not match. Here they are errors that name the file, so that no rows are lost silently.

use std::sync::Arc;

use super::file::{WrittenFile, WrittenStripe};
use super::options::WriterOptions;
use super::sink::Sink;
use super::statistics::merge;
use super::tail::{MAGIC, Tail};
use crate::compress::{Compressor, DEFAULT_BLOCK, MAX_BLOCK};
use crate::error::{Error, Result};
use crate::origin::Origin;
use crate::proto::{CompressionKind, StripeInformation, StripeStatistics};
use crate::read::Reader;
use crate::source::Source;
use crate::tail::FileMetadata;

/// Maximum bytes copied at a time.
const PIECE: u64 = 4 << 20;

/// Concatenates files without decoding them, in the order in which they are added.
///
/// After an error the file is incomplete.
#[derive(Debug)]
pub struct Merger<S> {
    sink: S,
    offset: u64,
    /// The first file, which all others must match.
    first: Option<(String, Arc<FileMetadata>)>,
    /// The largest block size of all files.
    block: u64,
    stripes: Vec<StripeInformation>,
    stripe_statistics: Vec<StripeStatistics>,
    statistics: Vec<crate::proto::ColumnStatistics>,
    user_metadata: Vec<(String, Vec<u8>)>,
    failed: bool,
}

impl<S: Sink> Merger<S> {
    /// Starts a file: writes the header.
    ///
    /// # Errors
    ///
    /// Errors of the sink.
    pub fn try_new(mut sink: S) -> Result<Self> {
        sink.append(MAGIC)?;
        Ok(Self {
            sink,
            offset: MAGIC.len() as u64,
            first: None,
            block: 0,
            stripes: Vec::new(),
            stripe_statistics: Vec::new(),
            statistics: Vec::new(),
            user_metadata: Vec::new(),
            failed: false,
        })
    }

    /// Appends the stripes of a file, called `name` in errors.
    ///
    /// # Errors
    ///
    /// A file whose schema, compression, version, writer, row groups or calendar differ from those of the first one, or
    /// that is encrypted; errors of the source and the sink.
    pub fn add<R: Source>(&mut self, name: &str, file: &Reader<R>) -> Result<()> {
        if self.failed {
            return Err(Error::invalid("this merge has failed: its file is incomplete"));
        }
        self.failed = true;
        self.append(name, file)?;
        self.failed = false;
        Ok(())
    }

    fn append<R: Source>(&mut self, name: &str, reader: &Reader<R>) -> Result<()> {
        let file = reader.metadata();
        self.check(name, file)?;
        if self.first.is_none() {
            self.first = Some((name.to_owned(), Arc::clone(file)));
        }
        self.block = self.block.max(file.postscript.compression_block_size.unwrap_or(DEFAULT_BLOCK as u64));
        let mut statistics = file.stripe_statistics()?.into_iter();
        for stripe in &file.footer.stripes {
            let start = stripe.offset.unwrap_or(0);
            let lengths = [stripe.index_length, stripe.data_length, stripe.footer_length];
            let length = lengths.iter().flatten().try_fold(0u64, |sum, length| sum.checked_add(*length));
            let end = length.and_then(|length| start.checked_add(length)).filter(|end| *end <= file.length);
            let Some(end) = end else {
                return Err(Error::corrupt("footer", "a stripe extends past the end of the file").in_file(name));
            };
            self.stripes.push(StripeInformation { offset: Some(self.offset), ..stripe.clone() });
            // A stripe without statistics gets an empty list, which means that they are unknown.
            self.stripe_statistics.push(statistics.next().unwrap_or_default());
            let mut at = start;
            while at < end {
                let next = end.min(at + PIECE);
                let bytes = reader.source().read_range(at..next).map_err(|error| error.in_file(name))?;
                self.sink.append(&bytes)?;
                self.offset += bytes.len() as u64;
                at = next;
            }
        }
        merge(&mut self.statistics, &file.footer.statistics, file.schema.end as usize);
        for item in &file.footer.metadata {
            let (name, value) = (item.name.clone().unwrap_or_default(), item.value.clone().unwrap_or_default());
            if !self.user_metadata.iter().any(|(known, _)| *known == name) {
                self.user_metadata.push((name, value));
            }
        }
        Ok(())
    }

    /// Checks that a file matches those added before.
    fn check(&self, name: &str, file: &FileMetadata) -> Result<()> {
        let refuse = |why: String| Err(Error::invalid(format!("{name} cannot be merged: {why}")));
        if file.footer.encryption.is_some() {
            return refuse("its columns are encrypted".to_owned());
        }
        let Some((first_name, first)) = &self.first else { return Ok(()) };
        let differs = |what: &str, own: &dyn std::fmt::Display, other: &dyn std::fmt::Display| {
            refuse(format!("its {what} is {own}, that of {first_name} is {other}"))
        };
        let (footer, other) = (&file.footer, &first.footer);
        if file.schema != first.schema {
            return if file.schema.to_string() == first.schema.to_string() {
                refuse(format!("the attributes of its types differ from those of {first_name}"))
            } else {
                differs("schema", &file.schema, &first.schema)
            };
        }
        if file.compression != first.compression {
            return differs("compression", &file.compression, &first.compression);
        }
        if file.version != first.version {
            return differs("file version", &file.version.name(), &first.version.name());
        }
        // Readers derive from these which bugs of old writers a file may have.
        if (footer.writer, &footer.software_version) != (other.writer, &other.software_version)
            || file.postscript.writer_version != first.postscript.writer_version
        {
            let shown =
                |file: &FileMetadata| format!("{} (version {})", file.software_version(), file.writer_version());
            return differs("writer", &shown(file), &shown(first));
        }
        let stride = |file: &FileMetadata| file.row_index_stride().unwrap_or(0);
        if stride(file) != stride(first) {
            return differs("row index stride", &stride(file), &stride(first));
        }
        if footer.calendar != other.calendar {
            let shown = |file: &FileMetadata| file.footer.calendar.map_or("unspecified", |calendar| calendar.name());
            return differs("calendar", &shown(file), &shown(first));
        }
        for item in &footer.metadata {
            let (key, value) = (item.name.as_deref().unwrap_or(""), item.value.as_deref().unwrap_or_default());
            if self.user_metadata.iter().any(|(known, other)| known == key && other != value) {
                return refuse(format!("its user metadata {key} differs from that of an earlier file"));
            }
        }
        Ok(())
    }

    /// Writes the tail, and returns the sink.
    ///
    /// # Errors
    ///
    /// No file was added, or the sink fails.
    pub fn finish(mut self) -> Result<(S, WrittenFile)> {
        let Some((_, first)) = self.first.take().filter(|_| !self.failed) else {
            return Err(Error::invalid("nothing was merged, or merging has failed"));
        };
        let block = usize::try_from(self.block).unwrap_or(MAX_BLOCK).clamp(1, MAX_BLOCK);
        let compression = first.compression;
        let block = if compression == CompressionKind::None { 0 } else { block };
        let mut compressor = Compressor::new(compression, None, block)?;
        let options = WriterOptions {
            version: first.version,
            compression,
            row_index_stride: first.footer.row_index_stride.unwrap_or(0),
            ..WriterOptions::default()
        };
        let lengths = |stripe: &StripeInformation| {
            [stripe.index_length, stripe.data_length, stripe.footer_length].iter().flatten().sum()
        };
        let written = |stripe: &StripeInformation| WrittenStripe {
            offset: stripe.offset.unwrap_or(0),
            length: lengths(stripe),
            rows: stripe.number_of_rows.unwrap_or(0),
        };
        let stripes: Vec<_> = self.stripes.iter().map(written).collect();
        let tail = Tail {
            encryption: None,
            schema: &first.schema,
            options: &options,
            origin: Origin {
                writer: first.footer.writer,
                writer_version: first.postscript.writer_version,
                software_version: first.footer.software_version.clone(),
                calendar: first.footer.calendar,
            },
            content_length: self.offset,
            stripes: self.stripes,
            stripe_statistics: self.stripe_statistics.clone(),
            statistics: self.statistics.clone(),
            user_metadata: &self.user_metadata,
        };
        let tail = tail.encode(&mut compressor)?;
        self.sink.append(&tail)?;
        let file = WrittenFile {
            length: self.offset + tail.len() as u64,
            rows: stripes.iter().map(|stripe| stripe.rows).sum(),
            stripes,
            schema: first.schema.clone(),
            statistics: self.statistics,
            stripe_statistics: self.stripe_statistics,
        };
        Ok((self.sink, file))
    }
}
