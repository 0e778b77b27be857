//! Chunks: compressed bytes are decompressed again, and incompressible ones are stored uncompressed.

use icefield_orc::proto::CompressionKind;
use icefield_orc::testing::{ChunkHeader, Compressor, Decompressor, HEADER, MAX_BLOCK};
use proptest::prelude::*;

const KINDS: [CompressionKind; 6] = [
    CompressionKind::Zlib,
    CompressionKind::Snappy,
    CompressionKind::Lzo,
    CompressionKind::Lz4,
    CompressionKind::Zstd,
    CompressionKind::Brotli,
];

/// Bytes with matches of every distance and length: noise, runs, and copies of earlier bytes.
fn blocks() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        prop::collection::vec(any::<u8>(), 1..400).prop_map(|noise| (0, 0, noise)),
        (any::<u8>(), 1..5000usize).prop_map(|(byte, count)| (0, 0, vec![byte; count])),
        (1..70_000usize, 1..1200usize).prop_map(|(distance, length)| (distance, length, Vec::new())),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| {
        let mut block: Vec<u8> = Vec::new();
        for (distance, length, bytes) in pieces {
            let from = block.len().saturating_sub(distance);
            for index in 0..length.min(block.len() - from).max(if distance < block.len() { length } else { 0 }) {
                block.push(block[from + index]);
            }
            block.extend(bytes);
        }
        block
    })
}

/// Bytes without a pattern.
fn noise(count: u64) -> Vec<u8> {
    let mix = |word: u64| (word ^ word >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let byte = |index: u64| mix(mix(index.wrapping_mul(0x9E37_79B9_7F4A_7C15))) >> 33;
    (1..=count).map(|index| byte(index) as u8).collect()
}

fn round_trip(kind: CompressionKind, level: Option<i32>, block: usize, plain: &[u8]) -> Vec<u8> {
    let mut compressor = Compressor::new(kind, level, block).unwrap();
    let mut out = Vec::new();
    compressor.deflate_all(plain, &mut out).unwrap();
    // A context that was used before gives the same result.
    let mut again = Vec::new();
    compressor.deflate_all(plain, &mut again).unwrap();
    assert_eq!(out, again, "{kind}");
    let read = Decompressor::new(kind).unwrap().inflate_all(&out, block, plain.len() + 1).unwrap();
    assert!(read == plain, "{kind}, blocks of {block}");
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_codec_gives_back_what_it_took(plain in blocks(), block in 1..100_000usize) {
        for kind in KINDS {
            let out = round_trip(kind, None, block, &plain);
            prop_assert!(out.len() <= plain.len() + HEADER * plain.len().div_ceil(block), "{}", kind);
        }
    }

    /// Positions in the hash table, and long lengths, tested without other codecs.
    #[test]
    fn lzo_gives_back_what_it_took(plain in prop::collection::vec(blocks(), 1..6)) {
        let plain = plain.concat();
        round_trip(CompressionKind::Lzo, None, MAX_BLOCK, &plain);
    }
}

#[test]
fn lzo_reaches_every_length_and_distance() {
    let noise = noise(60_000);
    for distance in [4, 7, 0x7ff, 0x800, 0x801, 0x3fff, 0x4000, 0x4001, 0x7fff, 0x8000, 0x8001, 0xbfff, 0xc000, 0xc001]
    {
        for length in (4..=12).chain([32, 33, 34, 260, 263, 264, 265, 288, 289, 544, 545, 2000]) {
            for literals in [0, 1, 2, 3, 4, 17, 18, 19, 238, 239, 272, 273, 274, 528, 529] {
                let mut plain = noise[..distance].to_vec();
                for index in 0..length {
                    plain.push(plain[index]);
                }
                plain.extend(noise[59_000..59_000 + literals].iter().map(|byte| byte ^ 0x55));
                round_trip(CompressionKind::Lzo, None, 1 << 20, &plain);
            }
        }
    }
}

#[test]
fn what_does_not_become_smaller_is_original() {
    let noise = noise(200);
    for kind in KINDS {
        for plain in [&noise[..1], &noise[..3], &noise[..200]] {
            let out = round_trip(kind, None, 4096, plain);
            let header = ChunkHeader { length: plain.len(), original: true };
            assert_eq!((&out[..HEADER], &out[HEADER..]), (header.write().unwrap().as_slice(), plain), "{kind}");
        }
        let out = round_trip(kind, None, 4096, &[7; 10_000]);
        let header = ChunkHeader::read([out[0], out[1], out[2]]);
        assert!(!header.original && header.length < 400, "{kind}: {header:?}");
        assert!(round_trip(kind, None, 4096, &[]).is_empty(), "{kind}");
    }
}

#[test]
fn without_a_codec_there_are_no_headers() {
    let mut compressor = Compressor::new(CompressionKind::None, None, 1 << 30).unwrap();
    assert_eq!(compressor.block(), 0);
    let mut out = vec![1];
    compressor.deflate_all(&[2, 3], &mut out).unwrap();
    assert_eq!(out, [1, 2, 3]);
}

#[test]
fn levels_are_the_codecs_own() {
    use CompressionKind::{Brotli, Lz4, Lzo, None as Plain, Snappy, Unknown, Zlib, Zstd};
    let text: Vec<u8> = (0..20_000).flat_map(|number: u32| (number * number % 1000).to_string().into_bytes()).collect();
    for (kind, low, high) in [(Zlib, 1, 12), (Zstd, -7, 22), (Brotli, 0, 11)] {
        let lengths = [low, high].map(|level| round_trip(kind, Some(level), 1 << 18, &text).len());
        assert!(lengths[1] < lengths[0], "{kind}: {lengths:?}");
        assert!(Compressor::new(kind, Some(high + 1), 1024).is_err(), "{kind}");
    }
    for (kind, level, block) in [
        (Snappy, Some(1), 1024),
        (Lzo, Some(1), 1024),
        (Lz4, Some(1), 1024),
        (Plain, Some(1), 1024),
        (Unknown(99), None, 1024),
        (Zlib, None, 0),
        (Zlib, None, MAX_BLOCK + 1),
    ] {
        assert!(Compressor::new(kind, level, block).is_err(), "{kind} {level:?} {block}");
    }
    assert!(Compressor::new(Zlib, None, 10).unwrap().deflate(&[0; 11], &mut Vec::new()).is_err());
}
