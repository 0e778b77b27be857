//! What each fuzz target of `icefield-orc` does with its input: whole files, runs, chunks, rows that are written.
//!
//! The fuzz targets call these, and so does `crates/orc/tests/fuzz_corpus.rs`, which runs them over the stored corpus and
//! over mutations of it in the ordinary tests.

#[path = "../crates/orc/tests/it/roundtrip/arbitrary.rs"]
mod arbitrary;

use bytes::Bytes;
use icefield_orc::proto::{CompressionKind, StreamKind};
use icefield_orc::testing::{
    BooleanReader, ByteReader, ByteStream, ByteWriter, Compressor, Context, Decompressor, IntReader, IntWriter, Part,
};
use icefield_orc::{Limits, Packing, ReadOptions, Reader, Writer};

/// Takes any bytes; it may refuse them, it may not panic.
pub type Target = fn(&[u8]);

/// Every target; the corpus of each is `corpus/NAME`.
pub const ALL: &[(&str, Target)] =
    &[("orc_file", orc_file), ("orc_runs", orc_runs), ("orc_chunks", orc_chunks), ("orc_write", orc_write)];

/// Rows after which a file has shown enough.
const ENOUGH_ROWS: usize = 100_000;
/// Values that are asked of a run.
const VALUES: usize = 2000;
/// Bytes of a chunk.
const BLOCK: usize = 1 << 16;

/// Small enough that no input takes long.
fn limits() -> Limits {
    Limits {
        chunk_bytes: 1 << 20,
        metadata_bytes: 1 << 22,
        depth: 40,
        columns: 10_000,
        batch_values: 1 << 20,
        dictionary_bytes: 1 << 22,
        least_memory: 1 << 25,
        most_memory: 1 << 27,
        ..Limits::default()
    }
}

/// Tail, statistics, row indexes, rows.
pub fn orc_file(data: &[u8]) {
    let Ok(reader) = Reader::open_with(Bytes::copy_from_slice(data), limits(), None) else { return };
    let _ = reader.metadata().stripe_statistics();
    let Ok(batches) = reader.batches(ReadOptions::default()) else { return };
    let mut rows = 0;
    for batch in batches {
        let Ok(batch) = batch else { return };
        rows += batch.num_rows();
        if rows > ENOUGH_ROWS {
            return;
        }
    }
}

fn context() -> Option<Context> {
    let decompressor = Decompressor::new(CompressionKind::None).ok()?;
    Some(Context { decompressor, batch_values: 1 << 20, dictionary_bytes: 1 << 20 })
}

fn stream(bytes: &[u8]) -> ByteStream {
    let part = Part { offset: 0, bytes: Bytes::copy_from_slice(bytes) };
    ByteStream::new(0, StreamKind::Data, vec![part], 0)
}

/// The first byte says which run lengths the others are; what is read is written and read again.
pub fn orc_runs(data: &[u8]) {
    let (Some((kind, bytes)), Some(mut context)) = (data.split_first(), context()) else { return };
    let (signed, packing) = (kind & 4 != 0, if kind & 8 != 0 { Packing::Tight } else { Packing::Aligned });
    match kind & 3 {
        0 => {
            let _ = BooleanReader::new(stream(bytes)).read(VALUES, &mut context);
        }
        1 => {
            let mut values = Vec::new();
            let _ = ByteReader::new(stream(bytes)).read_onto(VALUES, &mut values, &mut context);
            let (mut writer, mut out, mut again) = (ByteWriter::default(), Vec::new(), Vec::new());
            writer.write(&values, &mut out);
            writer.finish(&mut out);
            let read = ByteReader::new(stream(&out)).read_onto(values.len(), &mut again, &mut context);
            read.unwrap();
            assert_eq!(again, values);
        }
        version => {
            let mut values = vec![0; VALUES];
            let _ = IntReader::new(stream(bytes), signed, version == 3).read(&mut values, &mut context);
            for mut writer in [IntWriter::v1(signed), IntWriter::v2(signed, packing)] {
                let version2 = matches!(writer, IntWriter::V2(_));
                let (mut out, mut again) = (Vec::new(), vec![0; VALUES]);
                writer.write(&values, &mut out);
                writer.finish(&mut out);
                let read = IntReader::new(stream(&out), signed, version2).read(&mut again, &mut context);
                read.unwrap();
                assert_eq!(again, values);
            }
        }
    }
}

/// The first byte is the codec; the others are chunks, and then plain bytes that are compressed and decompressed.
pub fn orc_chunks(data: &[u8]) {
    let Some((kind, bytes)) = data.split_first() else { return };
    let kind = CompressionKind::from_number(u32::from(kind % 7));
    let Ok(mut decompressor) = Decompressor::new(kind) else { return };
    let _ = decompressor.inflate_all(bytes, BLOCK, 1 << 22);
    let mut chunks = Vec::new();
    let compressed = Compressor::new(kind, None, BLOCK).and_then(|mut codec| codec.deflate_all(bytes, &mut chunks));
    compressed.unwrap();
    assert_eq!(decompressor.inflate_all(&chunks, BLOCK, bytes.len() + 1).unwrap(), bytes);
}

/// The bytes draw types, rows and options: what is written is read again as it was.
pub fn orc_write(data: &[u8]) {
    let mut draw = arbitrary::Draw::new(data);
    let types = arbitrary::schema(&mut draw);
    let arrow = arbitrary::arrow(&mut draw);
    let (schema, batches) = arbitrary::batches(&mut draw, &types, &arrow);
    let mut writer = Writer::try_new(Vec::new(), &schema, arbitrary::options(&mut draw, &types)).expect("a writer");
    batches.iter().for_each(|batch| writer.write(batch).expect("rows that can be written"));
    let (bytes, _) = writer.finish().expect("a file");
    let reader = Reader::open(Bytes::from(bytes)).expect("a file that can be read");
    let read = reader.batches(ReadOptions { arrow, batch_size: 777, ..ReadOptions::default() }).expect("batches");
    let read: Vec<_> = read.map(|batch| batch.expect("rows that can be read")).collect();
    arbitrary::assert_same(&schema, &batches, &read);
}
