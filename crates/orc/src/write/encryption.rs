//! Writes encrypted columns ("Column Encryption").
//!
//! An encrypted column is written twice: masked, for readers without the key, and unmasked, with each stream encrypted.
//! The statistics of the true values of the column and its children are encrypted in the tail. Their indexes and Bloom
//! filters are encrypted too.

use std::ops::Range;
use std::sync::Arc;

use super::options::EncryptionOptions;
use super::stream::compress_all;
use super::stripe::{StreamBytes, VariantStripe};
use crate::compress::Compressor;
use crate::encrypt::{KeyMaker, KeyName, LocalKey};
use crate::error::{Error, Result};
use crate::mask::Mask;
use crate::proto::{
    ColumnStatistics, ColumnarStripeStatistics, DataMask, Encryption, EncryptionKey, EncryptionVariant, FileStatistics,
    Message, StreamKind, StripeEncryptionVariant,
};
use crate::types::TypeDescription;

/// One encrypted column, including its children.
#[derive(Debug)]
struct Variant {
    /// Index into [`Encryptor::keys`].
    key: usize,
    columns: Range<u32>,
    mask: Mask,
    local: LocalKey,
    wrapped: Vec<u8>,
    /// The statistics of the file so far.
    statistics: Vec<ColumnStatistics>,
    /// The statistics by stripe and column.
    stripes: Vec<Vec<ColumnStatistics>>,
}

/// The encrypted part of a file that is being written.
#[derive(Debug)]
pub(super) struct Encryptor {
    provider: Arc<dyn KeyMaker>,
    keys: Vec<KeyName>,
    /// Sorted by key name, then by column.
    variants: Vec<Variant>,
}

/// The encrypted part of a stripe.
#[derive(Debug, Default)]
pub(super) struct EncryptedStripe {
    pub index: Vec<StreamBytes>,
    pub data: Vec<StreamBytes>,
    pub footer: Vec<StripeEncryptionVariant>,
}

impl Encryptor {
    /// Creates a local key for each encrypted column, and adds key and mask to the attributes of its type.
    pub(super) fn new(options: &EncryptionOptions, types: &mut TypeDescription) -> Result<Self> {
        let mut this = Self { provider: Arc::clone(&options.keys), keys: Vec::new(), variants: Vec::new() };
        let mut columns: Vec<_> = options.columns.iter().collect();
        columns.sort_by(|one, other| one.0.cmp(&other.0));
        for (name, paths) in columns {
            if this.keys.last().is_none_or(|key| key.name != *name) {
                this.keys.push(options.keys.current_key(name)?);
            }
            let key = this.keys.len() - 1;
            for path in paths {
                let columns = columns_of(types, path)?;
                let overlaps = |other: &Variant| other.columns.start < columns.end && columns.start < other.columns.end;
                if this.variants.iter().any(overlaps) {
                    return Err(Error::invalid(format!("column {path} is encrypted twice")));
                }
                let name = this.keys.get(key).ok_or_else(|| Error::invalid("missing key"))?;
                let made = options.keys.new_local_key(name)?;
                this.variants.push(Variant {
                    key,
                    columns,
                    mask: Mask::default(),
                    local: LocalKey::new(name.algorithm, made.plain)?,
                    wrapped: made.wrapped,
                    statistics: Vec::new(),
                    stripes: Vec::new(),
                });
            }
        }
        this.variants.sort_by_key(|variant| (variant.key, variant.columns.start));
        for (mask, path) in options.masks.iter().flat_map(|(mask, paths)| paths.iter().map(move |path| (mask, path))) {
            let columns = columns_of(types, path)?;
            let variant = this.variants.iter_mut().find(|variant| variant.columns == columns);
            let variant =
                variant.ok_or_else(|| Error::invalid(format!("column {path} has a mask but is not encrypted")))?;
            variant.mask = mask.clone();
        }
        for variant in &this.variants {
            let name = this.keys.get(variant.key).map(|key| key.name.clone()).unwrap_or_default();
            annotate(types, variant.columns.start, "encrypt", &name);
            if variant.mask != Mask::Nullify {
                annotate(types, variant.columns.start, "mask", &mask_text(&variant.mask));
            }
        }
        Ok(this)
    }

    /// The column at the root of each variant, with its mask.
    pub(super) fn roots(&self) -> Vec<(u32, Mask)> {
        self.variants.iter().map(|variant| (variant.columns.start, variant.mask.clone())).collect()
    }

    /// Sets the statistics of a variant's columns before the first stripe.
    pub(super) fn set_statistics(&mut self, variant: usize, statistics: Vec<ColumnStatistics>) {
        if let Some(variant) = self.variants.get_mut(variant) {
            variant.statistics = statistics;
        }
    }

    /// The wrapped local keys, which the first stripe contains.
    pub(super) fn wrapped_keys(&self) -> Vec<Vec<u8>> {
        self.variants.iter().map(|variant| variant.wrapped.clone()).collect()
    }

    /// Encrypts the streams of a stripe; `id` is the stripe id in the initialization vectors, counted from 1.
    pub(super) fn stripe(&mut self, mut parts: Vec<VariantStripe>, id: u64) -> Result<EncryptedStripe> {
        parts.sort_by_key(|part| part.variant);
        let mut out = EncryptedStripe::default();
        for part in parts {
            let Some(variant) = self.variants.get_mut(part.variant) else { continue };
            let mut streams = Vec::new();
            for (from, to) in [(part.index, &mut out.index), (part.data, &mut out.data)] {
                for mut stream in from {
                    variant.local.apply(stream.column, stream.kind, id, 0, &mut stream.bytes)?;
                    streams.push(stream.message());
                    to.push(stream);
                }
            }
            out.footer.push(StripeEncryptionVariant { streams, encoding: part.encodings });
            variant.stripes.push(part.statistics);
            variant.statistics = part.file_statistics;
        }
        Ok(out)
    }

    /// Returns the message for the footer, and the encrypted statistics of the stripes, which precede the metadata
    /// section.
    pub(super) fn tail(self, stripes: usize, compressor: &mut Compressor) -> Result<(Encryption, Vec<u8>)> {
        let id = stripes as u64 + 1;
        let mut out = Vec::new();
        let mut variants = Vec::new();
        let mut masks: Vec<(Mask, Vec<u32>)> = Vec::new();
        for variant in self.variants {
            match masks.iter_mut().find(|(mask, _)| *mask == variant.mask) {
                Some((_, columns)) => columns.push(variant.columns.start),
                None => masks.push((variant.mask.clone(), vec![variant.columns.start])),
            }
            let mut stripe_statistics = Vec::new();
            for (index, column) in variant.columns.clone().enumerate() {
                let col_stats = variant.stripes.iter().filter_map(|stripe| stripe.get(index).cloned()).collect();
                let mut bytes = compress_all(ColumnarStripeStatistics { col_stats }.encode(), compressor)?;
                variant.local.apply(column, StreamKind::StripeStatistics, id, 0, &mut bytes)?;
                let stream = StreamBytes { column, kind: StreamKind::StripeStatistics, bytes };
                stripe_statistics.push(stream.message());
                out.extend_from_slice(&stream.bytes);
            }
            let mut bytes = compress_all(FileStatistics { column: variant.statistics }.encode(), compressor)?;
            variant.local.apply(variant.columns.start, StreamKind::FileStatistics, id, 0, &mut bytes)?;
            variants.push(EncryptionVariant {
                root: Some(variant.columns.start),
                key: Some(variant.key as u32),
                encrypted_key: Some(variant.wrapped),
                stripe_statistics,
                file_statistics: Some(bytes),
            });
        }
        let mask = |(mask, columns): (Mask, Vec<u32>)| DataMask {
            name: Some(mask.name().to_owned()),
            mask_parameters: mask.parameters().to_vec(),
            columns,
        };
        let key = |key: KeyName| EncryptionKey {
            key_name: Some(key.name),
            key_version: Some(key.version),
            algorithm: Some(key.algorithm),
        };
        let encryption = Encryption {
            mask: masks.into_iter().map(mask).collect(),
            key: self.keys.into_iter().map(key).collect(),
            variants,
            key_provider: Some(self.provider.kind()),
        };
        Ok((encryption, out))
    }
}

fn columns_of(types: &TypeDescription, path: &str) -> Result<Range<u32>> {
    let node = types.find_path(path).filter(|_| !path.is_empty());
    let node = node.ok_or_else(|| Error::invalid(format!("column {path} to encrypt does not exist")))?;
    Ok(node.column..node.end)
}

/// Formats a mask and its parameters as one text, as in the options of orc-core.
fn mask_text(mask: &Mask) -> String {
    mask.parameters().iter().fold(mask.name().to_owned(), |text, parameter| format!("{text},{parameter}"))
}

fn annotate(types: &mut TypeDescription, column: u32, name: &str, value: &str) {
    if types.column == column {
        types.attributes.retain(|(key, _)| key != name);
        return types.attributes.push((name.to_owned(), value.to_owned()));
    }
    let below = types.children.iter_mut().find(|child| (child.column..child.end).contains(&column));
    if let Some(child) = below {
        annotate(child, column, name, value);
    }
}
