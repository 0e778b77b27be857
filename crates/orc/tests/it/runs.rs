//! Run-length encodings: written values are read again, every sub-encoding occurs, and positions lead to their values.

use std::collections::BTreeSet;

use arrow_buffer::BooleanBuffer;
use bytes::Bytes;
use icefield_orc::Packing;
use icefield_orc::proto::{CompressionKind, StreamKind};
use icefield_orc::testing::{
    BooleanReader, BooleanWriter, ByteReader, ByteStream, ByteWriter, Context, Decompressor, IntReader, IntReader1,
    IntReader2, IntWriter, Part, Positions, Run1, Run2,
};
use proptest::prelude::*;

fn context() -> Context {
    let decompressor = Decompressor::new(CompressionKind::None).unwrap();
    Context { decompressor, batch_values: 1 << 20, dictionary_bytes: 1 << 20 }
}

fn stream(bytes: &[u8]) -> ByteStream {
    let part = Part { offset: 0, bytes: Bytes::copy_from_slice(bytes) };
    ByteStream::new(0, StreamKind::Data, vec![part], 0)
}

/// Values in shapes for each of the sub-encodings.
fn piece() -> impl Strategy<Value = Vec<i64>> {
    let bits = 0..64u32;
    let value = (any::<i64>(), bits.clone()).prop_map(|(value, bits)| value >> bits);
    prop_oneof![
        prop::collection::vec(value.clone(), 1..700),
        (value.clone(), 1..1100usize).prop_map(|(value, count)| vec![value; count]),
        (value.clone(), -1000..1000i64, 1..700usize)
            .prop_map(|(base, step, count)| (0..count as i64).map(|at| base.wrapping_add(at * step)).collect()),
        (value.clone(), any::<bool>(), prop::collection::vec(0..5000i64, 1..600)).prop_map(|(base, down, steps)| {
            let step = |value: &mut i64, step: i64| {
                *value = if down { value.wrapping_sub(step) } else { value.wrapping_add(step) };
                Some(*value)
            };
            steps.into_iter().scan(base, step).collect()
        }),
        // Small numbers and a few large ones, for patches with gaps of every length.
        (value, 1..12u32, 10..40u32, prop::collection::vec((any::<u64>(), 1..400usize), 1..4)).prop_map(
            |(base, narrow, wide, islands)| {
                let mut values = Vec::new();
                for (noise, gap) in islands {
                    for at in 0..gap as u64 {
                        let small = noise.wrapping_mul(at | 1) >> (64 - narrow);
                        values.push((base >> 9).wrapping_add(small as i64));
                    }
                    values.push((base >> 9).wrapping_add((noise >> (64 - wide)) as i64));
                }
                values
            }
        ),
    ]
}

fn values() -> impl Strategy<Value = Vec<i64>> {
    prop::collection::vec(piece(), 0..6).prop_map(|pieces| pieces.concat())
}

/// Writes `step` values at a time; returns the bytes, and the position before each step.
fn write(writer: &mut IntWriter, values: &[i64], step: usize) -> (Vec<u8>, Vec<[u64; 2]>) {
    let (mut out, mut positions) = (Vec::new(), Vec::new());
    for piece in values.chunks(step) {
        positions.push([out.len() as u64, writer.pending() as u64]);
        writer.write(piece, &mut out);
    }
    writer.finish(&mut out);
    (out, positions)
}

fn writers(signed: bool) -> [(IntWriter, bool); 3] {
    [
        (IntWriter::v1(signed), false),
        (IntWriter::v2(signed, Packing::Aligned), true),
        (IntWriter::v2(signed, Packing::Tight), true),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn integers_come_back_from_every_position(values in values(), signed: bool, step in 1..1500usize) {
        for (mut writer, version2) in writers(signed) {
            let (bytes, positions) = write(&mut writer, &values, step);
            let mut context = context();
            let mut read = vec![0; values.len()];
            IntReader::new(stream(&bytes), signed, version2).read(&mut read, &mut context).unwrap();
            prop_assert!(read == values);
            for (index, position) in positions.iter().enumerate() {
                let mut reader = IntReader::new(stream(&bytes), signed, version2);
                reader.seek(&mut Positions::new(position), &mut context).unwrap();
                let rest = &values[index * step..];
                let mut read = vec![0; rest.len().min(600)];
                reader.read(&mut read, &mut context).unwrap();
                prop_assert!(read == rest[..read.len()]);
            }
            // The writer has been reset.
            prop_assert_eq!(write(&mut writer, &values, step).0, bytes);
        }
    }

    #[test]
    fn bytes_come_back_from_every_position(
        pieces in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..200), any::<u8>(), 0..400usize), 0..6),
        step in 1..500usize,
    ) {
        let values: Vec<u8> =
            pieces.into_iter().flat_map(|(noise, byte, count)| [noise, vec![byte; count]].concat()).collect();
        let (mut writer, mut out, mut positions) = (ByteWriter::default(), Vec::new(), Vec::new());
        for piece in values.chunks(step) {
            positions.push([out.len() as u64, writer.pending() as u64]);
            writer.write(piece, &mut out);
        }
        writer.finish(&mut out);
        for (index, position) in positions.iter().enumerate() {
            let (mut reader, mut context, mut read) = (ByteReader::new(stream(&out)), context(), Vec::new());
            reader.seek(&mut Positions::new(position), &mut context).unwrap();
            let rest = &values[index * step..];
            reader.read_onto(rest.len(), &mut read, &mut context).unwrap();
            prop_assert!(read == rest);
        }
    }

    #[test]
    fn bits_come_back_from_every_position(
        runs in prop::collection::vec((any::<bool>(), 0..700usize, any::<u64>()), 0..8),
        by_run: bool,
        step in 1..300usize,
    ) {
        let mut bits = Vec::new();
        for (bit, count, noise) in &runs {
            bits.extend(std::iter::repeat_n(*bit, *count));
            bits.extend((0..noise % 65).map(|at| noise >> at & 1 == 1));
        }
        let buffer = BooleanBuffer::from(bits.as_slice());
        let (mut writer, mut out, mut positions) = (BooleanWriter::default(), Vec::new(), Vec::new());
        for start in (0..bits.len()).step_by(step) {
            let (bytes, used) = writer.pending();
            positions.push([out.len() as u64, bytes as u64, used as u64]);
            let length = step.min(bits.len() - start);
            if by_run {
                let runs = bits[start..start + length].chunk_by(|one, other| one == other);
                runs.for_each(|run| writer.write_run(run[0], run.len(), &mut out));
            } else {
                writer.write(&buffer.slice(start, length), &mut out);
            }
        }
        writer.finish(&mut out);
        for (index, position) in positions.iter().enumerate() {
            let (mut reader, mut context) = (BooleanReader::new(stream(&out)), context());
            reader.seek(&mut Positions::new(position), &mut context).unwrap();
            let rest = buffer.slice(index * step, bits.len() - index * step);
            prop_assert_eq!(reader.read(rest.len(), &mut context).unwrap(), rest);
        }
    }
}

/// The kinds of runs that version 2 writes for values.
fn kinds(values: &[i64], signed: bool) -> BTreeSet<&'static str> {
    let (bytes, _) = write(&mut IntWriter::v2(signed, Packing::Tight), values, values.len());
    let (mut reader, mut context, mut kinds) = (IntReader2::new(stream(&bytes), signed), context(), BTreeSet::new());
    while !reader.is_finished(&mut context).unwrap() {
        kinds.insert(match reader.next_run(&mut context).unwrap() {
            Run2::ShortRepeat { .. } => "short repeat",
            Run2::Direct { .. } => "direct",
            Run2::PatchedBase { .. } => "patched base",
            Run2::Delta { width: 0, .. } => "fixed delta",
            Run2::Delta { .. } => "delta",
        });
    }
    let mut read = vec![0; values.len()];
    IntReader2::new(stream(&bytes), signed).read(&mut read, &mut context).unwrap();
    assert_eq!(read, values);
    kinds
}

#[test]
fn each_run_of_version_2_comes_about() {
    let noise = |index: i64| (index.wrapping_mul(0x9E37_79B9_7F4A_7C15u64 as i64) >> 40) & 0xfff;
    let mixed: Vec<i64> = (0..512).map(noise).collect();
    let mut patched = mixed.clone();
    patched[77] = 1 << 40;
    let mut far = vec![1; 512];
    (0..512).for_each(|index| far[index] = index as i64 % 2);
    far[511] = 1 << 30;
    let extremes = [i64::MIN, i64::MAX, 0, -1].repeat(8);
    let cases: [(&str, Vec<i64>); 10] = [
        ("short repeat", vec![-7; 3]),
        ("short repeat", vec![i64::MAX; 10]),
        ("fixed delta", vec![5; 11]),
        ("fixed delta", (0..512).map(|index| index * -3).collect()),
        ("delta", (0..100).map(|index| index * index).collect()),
        ("delta", (0..100).map(|index| -index * index).collect()),
        ("direct", mixed),
        ("direct", extremes),
        ("patched base", patched),
        ("patched base", far),
    ];
    for (kind, values) in cases {
        assert_eq!(kinds(&values, true), BTreeSet::from([kind]), "{values:?}");
    }
    // The magnitude of the base -2^63 does not fit 63 bits, so such a run is direct (orc-core writes a broken header
    // for it).
    let mut least: Vec<i64> = (0..100).map(|index| i64::MIN + noise(index)).collect();
    least[50] = -1 << 20;
    assert_eq!(kinds(&least, true), BTreeSet::from(["direct"]));
}

#[test]
fn each_run_of_version_1_comes_about() {
    let values: Vec<i64> = (0..200).chain([5, 5, 5, 1000, -1000, i64::MIN, i64::MAX]).collect();
    let (bytes, _) = write(&mut IntWriter::v1(true), &values, values.len());
    let (mut reader, mut context, mut runs) = (IntReader1::new(stream(&bytes), true), context(), Vec::new());
    let mut read = Vec::new();
    while !reader.is_finished(&mut context).unwrap() {
        let run = reader.next_run(&mut context).unwrap();
        let (Run1::Run { length, .. } | Run1::Literals(length)) = run;
        runs.push(run);
        let start = read.len();
        read.resize(start + length, 0);
        reader.read(&mut read[start..], &mut context).unwrap();
    }
    assert_eq!(read, values);
    let run = |length, delta| Run1::Run { length, delta };
    assert_eq!(runs, [run(130, 1), run(70, 1), run(3, 0), Run1::Literals(4)]);
}
