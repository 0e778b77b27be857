//! Counts the chunks and runs of a stream.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::compress::{ChunkHeader, Decompressor, HEADER};
use crate::error::{Error, Result};
use crate::proto::{ColumnEncoding, EncodingKind, StreamKind};
use crate::rle::{IntReader1, IntReader2, Run1, Run2};
use crate::stream::{ByteStream, Context, Part};
use crate::tail::{FileMetadata, FileVersion};
use crate::types::{Kind, MAX_SHORT_PRECISION, TypeDescription};

/// The counts of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct StreamReport {
    /// Number of compression chunks; `None` without compression.
    pub chunks: Option<u64>,
    /// Number of chunks that are stored uncompressed ("original").
    pub original: u64,
    /// Bytes after decompression.
    pub plain_length: u64,
    /// Number of values in the stream; `None` for bytes that are not run-length encoded, except varints.
    pub values: Option<u64>,
    /// Number of runs by kind (`direct`, `direct.w8`, …); empty for streams that are not run-length encoded.
    pub runs: BTreeMap<String, u64>,
}

/// How the values of a stream are run-length encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    Bytes,
    Integers { version2: bool },
    Plain,
}

fn coding(file: &FileMetadata, node: &TypeDescription, encoding: &ColumnEncoding, kind: StreamKind) -> Coding {
    let version2 = matches!(encoding.kind, Some(EncodingKind::DirectV2 | EncodingKind::DictionaryV2));
    let dictionary = matches!(encoding.kind, Some(EncodingKind::Dictionary | EncodingKind::DictionaryV2));
    let short = |precision: u8| file.version == FileVersion::V2Draft && precision <= MAX_SHORT_PRECISION;
    match (kind, &node.kind) {
        (StreamKind::Present, _) | (StreamKind::Data, Kind::Boolean | Kind::Byte | Kind::Union) => Coding::Bytes,
        (StreamKind::Length | StreamKind::Secondary, _) => Coding::Integers { version2 },
        (StreamKind::Data, Kind::Decimal { precision, .. }) if short(*precision) => Coding::Integers { version2: true },
        (
            StreamKind::Data,
            Kind::Short | Kind::Int | Kind::Long | Kind::Date | Kind::Timestamp | Kind::TimestampInstant,
        ) => Coding::Integers { version2 },
        (StreamKind::Data, Kind::String | Kind::Char { .. } | Kind::Varchar { .. }) if dictionary => {
            Coding::Integers { version2 }
        }
        _ => Coding::Plain,
    }
}

/// Counts the chunks and runs of a stream, whose bytes are still compressed but already decrypted.
pub(crate) fn report(
    file: &FileMetadata,
    node: &TypeDescription,
    encoding: &ColumnEncoding,
    kind: StreamKind,
    bytes: &Bytes,
) -> Result<StreamReport> {
    let mut report = StreamReport::default();
    count_chunks(file, bytes, &mut report)?;
    let mut context = Context {
        decompressor: Decompressor::new(file.compression)?,
        batch_values: file.limits.batch_values,
        dictionary_bytes: file.limits.dictionary_bytes,
    };
    let parts = vec![Part { offset: 0, bytes: bytes.clone() }];
    let mut stream = ByteStream::new(node.column, kind, parts.clone(), file.block);
    let coding = coding(file, node, encoding, kind);
    let varints = coding == Coding::Plain && kind == StreamKind::Data && matches!(node.kind, Kind::Decimal { .. });
    if varints || coding != Coding::Plain {
        report.values = Some(0);
    }
    while !stream.is_finished(&mut context)? {
        let count = stream.window().len();
        report.plain_length += count as u64;
        if varints {
            // The last byte of a varint has no high bit.
            report.add(stream.window().iter().filter(|byte| **byte < 0x80).count());
        }
        stream.consume(count);
    }
    let stream = ByteStream::new(node.column, kind, parts, file.block);
    match coding {
        Coding::Plain => {}
        Coding::Bytes => count_byte_runs(stream, &mut report, &mut context)?,
        Coding::Integers { version2: true } => count_runs2(stream, &mut report, &mut context)?,
        Coding::Integers { version2: false } => count_runs1(stream, &mut report, &mut context)?,
    }
    Ok(report)
}

fn count_chunks(file: &FileMetadata, mut bytes: &[u8], report: &mut StreamReport) -> Result<()> {
    if file.block == 0 {
        return Ok(());
    }
    let mut chunks = 0;
    while let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() {
        let header = ChunkHeader::read(*header);
        chunks += 1;
        report.original += u64::from(header.original);
        bytes = rest
            .get(header.length..)
            .ok_or_else(|| Error::corrupt("", "a chunk extends past the end of its stream"))?;
    }
    report.chunks = Some(chunks);
    Ok(())
}

fn count_byte_runs(mut stream: ByteStream, report: &mut StreamReport, context: &mut Context) -> Result<()> {
    while !stream.is_finished(context)? {
        let control = stream.byte(context)?;
        let (name, body, values) = match usize::from(control) {
            run @ 0..0x80 => ("byteRun", 1, run + 3),
            literals => ("byteLiteral", 256 - literals, 256 - literals),
        };
        stream.skip(body, context)?;
        report.add(values);
        report.count(name.to_owned());
    }
    Ok(())
}

fn count_runs1(stream: ByteStream, report: &mut StreamReport, context: &mut Context) -> Result<()> {
    let mut reader = IntReader1::new(stream, false);
    while !reader.is_finished(context)? {
        let (name, length) = match reader.next_run(context)? {
            Run1::Run { length, delta: 0 } => ("v1Run", length),
            Run1::Run { length, .. } => ("v1RunDelta", length),
            Run1::Literals(length) => ("v1Literal", length),
        };
        reader.skip(length, context)?;
        report.add(length);
        report.count(name.to_owned());
    }
    Ok(())
}

fn count_runs2(stream: ByteStream, report: &mut StreamReport, context: &mut Context) -> Result<()> {
    let mut reader = IntReader2::new(stream, false);
    while !reader.is_finished(context)? {
        let run = reader.next_run(context)?;
        report.add(run.length());
        match run {
            Run2::ShortRepeat { bytes, .. } => report.count_with("shortRepeat", &[("w", bytes)]),
            Run2::Direct { width, .. } => report.count_with("direct", &[("w", width)]),
            Run2::Delta { width: 0, .. } => report.count("deltaFixed".to_owned()),
            Run2::Delta { width, .. } => report.count_with("delta", &[("w", width)]),
            Run2::PatchedBase { width, base, patch, patches, .. } => {
                report.count_with("patchedBase", &[("w", width), ("base", base), ("patch", patch), ("list", patches)]);
            }
        }
    }
    Ok(())
}

impl StreamReport {
    fn add(&mut self, values: usize) {
        self.values = self.values.map(|sum| sum + values as u64);
    }

    fn count(&mut self, name: String) {
        *self.runs.entry(name).or_default() += 1;
    }

    fn count_with(&mut self, name: &str, details: &[(&str, usize)]) {
        self.count(name.to_owned());
        for (detail, number) in details {
            self.count(format!("{name}.{detail}{number}"));
        }
    }
}
