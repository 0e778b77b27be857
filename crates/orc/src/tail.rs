//! Decodes the tail of a file ("File Tail"): postscript, footer and metadata.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::compress::{DEFAULT_BLOCK, Decompressor};
use crate::encrypt::{KeyName, KeyProvider, LocalKey};
use crate::error::{Error, Result};
use crate::limits::{Budget, Limits};
use crate::origin::{WriterId, WriterVersion};
use crate::proto::{
    self, ColumnStatistics, ColumnarStripeStatistics, CompressionKind, FileStatistics, Footer, Message, Metadata,
    PostScript, StreamKind, StripeStatistics,
};
use crate::source::{Fetched, Step};
use crate::types::TypeDescription;

/// Bytes to read first, which are enough for the tails of most files.
const GUESS: u64 = 16 << 10;
const MAGIC: &[u8] = b"ORC";

/// The version of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileVersion {
    /// 0.11: run-length encoding version 1.
    V0_11,
    /// 0.12: run-length encoding version 2.
    V0_12,
    /// `[1, 9999]`, the draft of version 2.
    V2Draft,
}

impl FileVersion {
    fn read(list: &[u32]) -> Result<Self> {
        match list {
            [] | [0, 11] => Ok(Self::V0_11),
            [0, 12] => Ok(Self::V0_12),
            [1, 9999] => Ok(Self::V2Draft),
            other => Err(Error::unsupported(format!("unknown file version {other:?}"))),
        }
    }

    /// The name that orc-core prints.
    pub fn name(self) -> &'static str {
        match self {
            Self::V0_11 => "0.11",
            Self::V0_12 => "0.12",
            Self::V2Draft => "UNSTABLE-PRE-2.0",
        }
    }
}

/// An encrypted variant: a column and its children, encrypted with one key.
#[derive(Debug)]
pub(crate) struct Variant {
    /// Its columns, starting with its root.
    pub columns: Range<u32>,
    name: KeyName,
}

/// The contents of the tail, and values derived from them.
#[derive(Debug)]
pub struct FileMetadata {
    /// Length of the file in bytes.
    pub length: u64,
    /// The postscript, as it is stored.
    pub postscript: PostScript,
    /// The footer, as it is stored.
    pub footer: Footer,
    /// The type of the rows: a tree whose nodes are numbered by column id.
    pub schema: TypeDescription,
    /// The codec of all streams and of the tail.
    pub compression: CompressionKind,
    /// The version of the format.
    pub version: FileVersion,
    /// The limits for reading the file.
    pub limits: Limits,
    /// The chunk size; 0 without compression.
    pub(crate) block: usize,
    pub(crate) variants: Vec<Variant>,
    keys: Option<Arc<dyn KeyProvider>>,
    metadata: Bytes,
    encrypted_statistics: Bytes,
}

/// The first bytes of files in other formats.
const OTHERS: [(&[u8], &str); 7] = [
    (b"PAR1", "a Parquet file (PAR1)"),
    (b"PARE", "an encrypted Parquet file (PARE)"),
    (b"Obj\x01", "an Avro file (Obj1)"),
    (b"PFA1", "a Puffin file (PFA1)"),
    (b"ARRO", "an Arrow IPC file (ARROW1)"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x1f\x8b", "gzip data"),
];

/// Decodes a tail without I/O: it returns the ranges that it needs, until it has all of them.
#[derive(Debug)]
pub struct TailDecoder {
    length: u64,
    limits: Limits,
    keys: Option<Arc<dyn KeyProvider>>,
    /// The ranges fetched so far.
    pub fetched: Fetched,
}

impl TailDecoder {
    /// A decoder for a file of `length` bytes. Without `keys`, encrypted columns are read masked.
    pub fn new(length: u64, limits: Limits, keys: Option<Arc<dyn KeyProvider>>) -> Self {
        Self { length, limits, keys, fetched: Fetched::default() }
    }

    /// Returns the ranges needed next, or the tail. Add the bytes of the ranges to [`TailDecoder::fetched`], and call
    /// again.
    ///
    /// # Errors
    ///
    /// A file that is not ORC, or whose tail is damaged or exceeds the limits; errors of the key provider.
    pub fn advance(&mut self) -> Result<Step<FileMetadata>> {
        if self.length == 0 {
            return Ok(Step::Done(self.empty_file()));
        }
        if self.length <= MAGIC.len() as u64 {
            return Err(Error::corrupt("tail", format!("the file has only {} bytes", self.length)));
        }
        let guess = self.length.saturating_sub(GUESS)..self.length;
        let Some(last) = self.fetched.get(&guess) else { return Ok(Step::Need(vec![guess])) };
        let (postscript, own) = match read_postscript(&last) {
            Ok(read) => read,
            Err(error) => return self.other_format(error),
        };
        if !last.get(..last.len() - 1).is_some_and(|rest| rest.ends_with(MAGIC)) {
            // Files of Hive 0.11 have the magic only at their start.
            let head = 0..MAGIC.len() as u64;
            let Some(bytes) = self.fetched.get(&head) else { return Ok(Step::Need(vec![head])) };
            if bytes != MAGIC {
                return self.other_format(Error::corrupt("postscript", "missing magic: this is not an ORC file"));
            }
        }
        let length = |length: Option<u64>| length.unwrap_or(0);
        let sections = [
            length(postscript.stripe_statistics_length),
            length(postscript.metadata_length),
            length(postscript.footer_length),
        ];
        let total = sections.iter().try_fold(own, |sum, next| sum.checked_add(*next)).filter(|sum| *sum <= self.length);
        let Some(total) = total else {
            return Err(Error::corrupt("postscript", "the sections of the tail extend past the start of the file"));
        };
        let whole = self.length - total..self.length;
        let Some(tail) = self.fetched.get(&whole) else { return Ok(Step::Need(vec![whole])) };
        Ok(Step::Done(self.read(postscript, &tail, sections)?))
    }

    /// The error for a file without a postscript: it names the format, if the first bytes reveal it.
    fn other_format(&self, error: Error) -> Result<Step<FileMetadata>> {
        let head = 0..MAGIC.len() as u64 + 1;
        let Some(bytes) = self.fetched.get(&head) else { return Ok(Step::Need(vec![head])) };
        let known = OTHERS.iter().find(|(magic, _)| bytes.starts_with(magic));
        Err(match known {
            Some((_, format)) => Error::corrupt("tail", format!("this is {format}, not an ORC file")),
            None => error,
        })
    }

    /// The metadata of an empty file. Hive creates such files; they have no columns and no rows.
    fn empty_file(&self) -> FileMetadata {
        FileMetadata {
            length: 0,
            postscript: PostScript::default(),
            footer: Footer::default(),
            schema: TypeDescription::structure([]),
            compression: CompressionKind::None,
            version: FileVersion::V0_12,
            limits: self.limits,
            block: 0,
            variants: Vec::new(),
            keys: None,
            metadata: Bytes::new(),
            encrypted_statistics: Bytes::new(),
        }
    }

    fn read(&self, postscript: PostScript, tail: &Bytes, sections: [u64; 3]) -> Result<FileMetadata> {
        let version = FileVersion::read(&postscript.version)?;
        let compression = postscript.compression.unwrap_or_default();
        let mut decompressor = Decompressor::new(compression)?;
        let block = block_size(compression, postscript.compression_block_size, &self.limits)?;
        let mut start = 0usize;
        let [encrypted_statistics, metadata, footer] = sections.map(|length| {
            let end = start + length as usize;
            let section = tail.slice(start..end);
            start = end;
            section
        });
        let footer: Footer = section(
            &mut decompressor,
            &footer,
            block,
            self.limits.metadata_bytes,
            &mut self.limits.budget(footer.len()),
            "footer",
        )?;
        if footer == Footer::default() {
            return Err(Error::corrupt("footer", "empty"));
        }
        let schema = TypeDescription::from_proto(&footer.types, &self.limits)?;
        let variants = read_variants(&footer, &schema)?;
        Ok(FileMetadata {
            length: self.length,
            postscript,
            footer,
            schema,
            compression,
            version,
            limits: self.limits,
            block,
            variants,
            keys: self.keys.clone(),
            metadata,
            encrypted_statistics,
        })
    }
}

/// Decodes the postscript; also returns its length, including the length byte.
fn read_postscript(last: &[u8]) -> Result<(PostScript, u64)> {
    let (length, rest) = last.split_last().ok_or_else(|| Error::corrupt("postscript", "missing"))?;
    let length = usize::from(*length);
    let start = rest.len().checked_sub(length).filter(|_| length > 0);
    let start = start.ok_or_else(|| Error::corrupt("postscript", format!("invalid length of {length} bytes")))?;
    let bytes = rest.get(start..).unwrap_or_default();
    let postscript = PostScript::decode(bytes).map_err(|error| error.within("postscript"))?;
    Ok((postscript, length as u64 + 1))
}

/// Decompresses and decodes a metadata section. The budget is charged for both, and it also limits the decompressed
/// bytes.
fn section<M: Message + Default>(
    decompressor: &mut Decompressor,
    bytes: &[u8],
    block: usize,
    most: usize,
    budget: &mut Budget,
    place: &str,
) -> Result<M> {
    let mut read = || {
        let plain = decompressor.inflate_all(bytes, block, most.min(budget.left()))?;
        budget.charge(plain.len())?;
        let message = M::decode_within(&plain, budget);
        budget.release(plain.len());
        message
    };
    read().map_err(|error| error.within(place))
}

fn block_size(compression: CompressionKind, stored: Option<u64>, limits: &Limits) -> Result<usize> {
    if compression == CompressionKind::None {
        return Ok(0);
    }
    let block = stored.unwrap_or(DEFAULT_BLOCK as u64);
    match usize::try_from(block) {
        Ok(0) => Err(Error::corrupt("postscript", "the compression block size is 0")),
        Ok(block) if block <= limits.chunk_bytes => Ok(block),
        _ => Err(Error::limit(format!("a compression block size of {block} bytes exceeds the limit"))),
    }
}

fn read_variants(footer: &Footer, schema: &TypeDescription) -> Result<Vec<Variant>> {
    let Some(encryption) = &footer.encryption else { return Ok(Vec::new()) };
    let read = |variant: &proto::EncryptionVariant| {
        let key = encryption.key.get(variant.key.unwrap_or_default() as usize);
        let root = schema.find(variant.root.unwrap_or_default());
        let (Some(key), Some(root)) = (key, root) else {
            return Err(Error::corrupt(
                "footer encryption",
                "a variant refers to a key or a column that does not exist",
            ));
        };
        let name = KeyName {
            name: key.key_name.clone().unwrap_or_default(),
            version: key.key_version.unwrap_or_default(),
            algorithm: key.algorithm.unwrap_or_default(),
        };
        Ok(Variant { columns: root.column..root.end, name })
    };
    encryption.variants.iter().map(read).collect()
}

impl FileMetadata {
    /// The number of rows: the sum over the stripes. Like orc-core, it ignores the number in the footer.
    pub fn rows(&self) -> u64 {
        self.footer.stripes.iter().fold(0, |sum, stripe| sum.saturating_add(stripe.number_of_rows.unwrap_or(0)))
    }

    /// Rows per row group; `None` without a row index.
    pub fn row_index_stride(&self) -> Option<u64> {
        self.footer.row_index_stride.filter(|stride| *stride > 0).map(u64::from)
    }

    /// The implementation that wrote the file.
    pub fn writer(&self) -> WriterId {
        self.footer.writer.map_or(WriterId::JAVA, WriterId)
    }

    /// The bugs that this implementation had fixed.
    pub fn writer_version(&self) -> WriterVersion {
        WriterVersion(self.postscript.writer_version.unwrap_or(0))
    }

    /// The software that wrote the file, with its version if the file has one, for example `ORC C++ 2.0.3`.
    pub fn software_version(&self) -> String {
        let title = self.writer().title();
        match &self.footer.software_version {
            // The format has no code for this library, so its version starts with its name.
            Some(version) if self.writer() == WriterId::ICEFIELD && version.starts_with("icefield ") => version.clone(),
            Some(version) => format!("{title} {version}"),
            None => title.to_owned(),
        }
    }

    /// Whether columns carry Iceberg field ids, which means that Iceberg wrote the file.
    pub fn has_field_ids(&self) -> bool {
        self.schema.walk().iter().any(|node| node.attribute("iceberg.id").is_some())
    }

    /// Decompresses and decodes a metadata section.
    pub(crate) fn section<M: Message + Default>(&self, bytes: &[u8], place: &str) -> Result<M> {
        self.section_within(bytes, place, &mut self.limits.budget(bytes.len()))
    }

    /// Like [`Self::section`], for one of several sections that share a budget.
    pub(crate) fn section_within<M: Message + Default>(
        &self,
        bytes: &[u8],
        place: &str,
        budget: &mut Budget,
    ) -> Result<M> {
        let mut decompressor = Decompressor::new(self.compression)?;
        section(&mut decompressor, bytes, self.block, self.limits.metadata_bytes, budget, place)
    }

    /// The statistics of each stripe by column id; empty if the file has none. For encrypted columns they are those of
    /// the true values if the key is available, otherwise of the masked values.
    pub fn stripe_statistics(&self) -> Result<Vec<StripeStatistics>> {
        let mut stripes = self.section::<Metadata>(&self.metadata, "metadata")?.stripe_stats;
        self.decrypt_stripe_statistics(&mut stripes).map_err(|error| self.decrypted(error))?;
        Ok(stripes)
    }

    /// Adds the stripe to an error.
    pub(crate) fn in_stripe(&self, stripe: usize, error: Error) -> Error {
        self.decrypted(error.within(&format!("stripe {stripe}")))
    }

    /// Adds to an error about corrupt bytes that they may have been decrypted with a wrong key.
    fn decrypted(&self, error: Error) -> Error {
        match error {
            Error::Corrupt(mut corrupt) if self.keys.is_some() && !self.variants.is_empty() => {
                corrupt.message.push_str("; the file is encrypted, its key may be wrong");
                Error::Corrupt(corrupt)
            }
            other => other,
        }
    }

    /// The statistics of the file by column id. For encrypted columns they are those of the true values if the key is
    /// available, otherwise of the masked values.
    pub fn file_statistics(&self) -> Result<Vec<ColumnStatistics>> {
        let mut statistics = self.footer.statistics.clone();
        for index in 0..self.variants.len() {
            let Some((variant, key)) = self.tail_key(index)? else { continue };
            let Some(mut bytes) = self.proto_variant(index).and_then(|variant| variant.file_statistics.clone()) else {
                continue;
            };
            key.apply(variant.columns.start, StreamKind::FileStatistics, self.tail_stripe(), 0, &mut bytes)?;
            let place = "encrypted file statistics";
            let own = self.section::<FileStatistics>(&bytes, place).map_err(|error| self.decrypted(error))?.column;
            for (column, own) in variant.columns.clone().zip(own) {
                if let Some(slot) = statistics.get_mut(column as usize) {
                    *slot = own;
                }
            }
        }
        Ok(statistics)
    }

    /// Replaces the statistics in `stripes` by those of the true values, for encrypted columns whose key is available.
    fn decrypt_stripe_statistics(&self, stripes: &mut [StripeStatistics]) -> Result<()> {
        let place = "encrypted stripe statistics";
        let mut start = 0usize;
        for index in 0..self.variants.len() {
            let key = self.tail_key(index)?;
            for stream in
                self.proto_variant(index).map(|variant| variant.stripe_statistics.as_slice()).unwrap_or_default()
            {
                let length = usize::try_from(stream.length.unwrap_or(0)).unwrap_or(usize::MAX);
                let end = start.saturating_add(length);
                let bytes = self.encrypted_statistics.get(start..end);
                let mut bytes = bytes.ok_or_else(|| Error::corrupt(place, "a stream extends past the end"))?.to_vec();
                start = end;
                let Some((_, key)) = &key else { continue };
                let column = stream.column.unwrap_or_default();
                key.apply(column, StreamKind::StripeStatistics, self.tail_stripe(), 0, &mut bytes)?;
                let own = self.section::<ColumnarStripeStatistics>(&bytes, place)?.col_stats;
                for (stripe, own) in stripes.iter_mut().zip(own) {
                    if let Some(slot) = stripe.col_stats.get_mut(column as usize) {
                        *slot = own;
                    }
                }
            }
        }
        Ok(())
    }

    fn proto_variant(&self, index: usize) -> Option<&proto::EncryptionVariant> {
        self.footer.encryption.as_ref()?.variants.get(index)
    }

    /// The stripe id in the initialization vectors of the tail: the number of stripes plus one (docs/orc-pitfalls.md,
    /// "Encrypted tails").
    fn tail_stripe(&self) -> u64 {
        self.footer.stripes.len() as u64 + 1
    }

    fn tail_key(&self, index: usize) -> Result<Option<(&Variant, LocalKey)>> {
        let (Some(variant), Some(written)) = (self.variants.get(index), self.proto_variant(index)) else {
            return Ok(None);
        };
        let wrapped = written.encrypted_key.as_deref().unwrap_or_default();
        Ok(self.unwrap(variant, wrapped)?.map(|key| (variant, key)))
    }

    /// The local key of a variant in a stripe, and the stripe id in its initialization vectors; `None` if the reader
    /// has no key.
    pub(crate) fn stripe_key(&self, index: usize, stripe: usize) -> Result<Option<(LocalKey, u64)>> {
        let Some(variant) = self.variants.get(index) else { return Ok(None) };
        let (mut wrapped, mut id) = (None, 0u64);
        for stripe in self.footer.stripes.iter().take(stripe + 1) {
            id = stripe.encrypt_stripe_id.unwrap_or(id + 1);
            wrapped = stripe.encrypted_local_keys.get(index).or(wrapped);
        }
        let Some(wrapped) = wrapped else { return Ok(None) };
        Ok(self.unwrap(variant, wrapped)?.map(|key| (key, id)))
    }

    fn unwrap(&self, variant: &Variant, wrapped: &[u8]) -> Result<Option<LocalKey>> {
        let Some(provider) = &self.keys else { return Ok(None) };
        let key = provider.local_key(&variant.name, wrapped)?;
        key.map(|key| LocalKey::new(variant.name.algorithm, key)).transpose()
    }
}
