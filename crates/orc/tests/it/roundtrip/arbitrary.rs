//! Generates types, values and options from bytes, for property tests and for the fuzz target.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, StringBuilder};
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, ListArray, MapArray, NullArray, PrimitiveArray, RecordBatch,
    StructArray, UnionArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Schema};
use icefield_orc::Packing;
use icefield_orc::proto::CompressionKind;
use icefield_orc::{
    ArrowOptions, BloomVersion, FileVersion, Kind, OutOfRange, TimeUnit, TypeDescription, WriterOptions,
};

/// Returns the bytes one by one, and then pseudo-random numbers derived from them.
#[derive(Debug)]
pub struct Draw {
    bytes: std::vec::IntoIter<u8>,
    state: u64,
}

impl Draw {
    pub fn new(bytes: &[u8]) -> Self {
        let state =
            bytes.iter().fold(0x9e37_79b9, |state: u64, byte| state.wrapping_mul(0x100_0193) ^ u64::from(*byte));
        Self { bytes: Vec::from(bytes).into_iter(), state }
    }

    /// Any number.
    pub fn any(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        let number = match self.bytes.next() {
            Some(byte) if bound <= 256 => u64::from(byte),
            Some(byte) => self.any() ^ u64::from(byte),
            None => self.any(),
        };
        number % bound.max(1)
    }

    pub fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    pub fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize].clone()
    }
}

/// A struct of up to six columns.
pub fn schema(draw: &mut Draw) -> TypeDescription {
    let count = 1 + draw.below(6);
    TypeDescription::structure((0..count).map(|index| (format!("c{index}"), node(draw, 3))))
}

fn node(draw: &mut Draw, depth: u32) -> TypeDescription {
    let kinds = if depth == 0 { 16 } else { 22 };
    let kind = match draw.below(kinds) {
        0 => Kind::Boolean,
        1 => Kind::Byte,
        2 => Kind::Short,
        3 => Kind::Int,
        4 => Kind::Long,
        5 => Kind::Float,
        6 => Kind::Double,
        7 | 16 => Kind::String,
        8 => Kind::Binary,
        9 => Kind::Timestamp,
        10 => Kind::TimestampInstant,
        11 => Kind::Date,
        12 | 17 => {
            let precision = 1 + draw.below(38) as u8;
            Kind::Decimal { precision, scale: draw.below(u64::from(precision) + 1) as u8 }
        }
        13 => Kind::Char { length: 1 + draw.below(20) as u32 },
        14 => Kind::Varchar { length: 1 + draw.below(20) as u32 },
        15 => draw.pick(&[Kind::Geometry { crs: None }, Kind::Geography { crs: None, algorithm: None }]),
        18 => return TypeDescription::nested(Kind::List, vec![node(draw, depth - 1)]),
        19 => return TypeDescription::nested(Kind::Map, vec![node(draw, 0), node(draw, depth - 1)]),
        20 => {
            let count = 1 + draw.below(4);
            return TypeDescription::nested(Kind::Union, (0..count).map(|_| node(draw, depth - 1)).collect());
        }
        _ => {
            let count = draw.below(4);
            return TypeDescription::structure((0..count).map(|index| (format!("f{index}"), node(draw, depth - 1))));
        }
    };
    TypeDescription::leaf(kind)
}

/// The Arrow options for reading and generating values, as exact as Arrow allows.
pub fn arrow(draw: &mut Draw) -> ArrowOptions {
    let timestamp_unit = draw.pick(&[TimeUnit::Microsecond, TimeUnit::Nanosecond]);
    ArrowOptions { timestamp_unit, out_of_range: OutOfRange::Error, trim_char: true, ..ArrowOptions::default() }
}

/// Batches of these types.
pub fn batches(draw: &mut Draw, types: &TypeDescription, arrow: &ArrowOptions) -> (Arc<Schema>, Vec<RecordBatch>) {
    let schema = Arc::new(types.to_arrow(arrow));
    let count = draw.below(4);
    let batches = (0..count).map(|_| {
        let rows = draw.pick(&[0, 1, 7, 100, 600, 1500]);
        let columns = types.children.iter().map(|child| array(draw, child, arrow, rows)).collect();
        RecordBatch::try_new(Arc::clone(&schema), columns).unwrap()
    });
    let batches = batches.collect();
    (schema, batches)
}

/// Which slots are null: none, all, runs, or some here and there.
fn nulls(draw: &mut Draw, count: usize) -> Option<NullBuffer> {
    match draw.below(5) {
        0 | 1 => None,
        2 => Some(NullBuffer::new_null(count)),
        3 => {
            let every = 1 + draw.below(300) as usize;
            Some((0..count).map(|slot| (slot / every).is_multiple_of(2)).collect())
        }
        _ => Some((0..count).map(|_| !draw.any().is_multiple_of(4)).collect()),
    }
}

/// Integers within a range, of every shape for which there is a kind of run.
fn integers(draw: &mut Draw, count: usize, least: i128, most: i128) -> Vec<i128> {
    let span = most.wrapping_sub(least).cast_unsigned().max(1);
    let wide = |draw: &mut Draw| {
        let number = u128::from(draw.any()) << 64 | u128::from(draw.any());
        least.wrapping_add((number % span) as i128)
    };
    let middle = wide(draw) / 2;
    let fit = |value: i128| value.clamp(least, most);
    let mut shape = draw.below(7);
    let (mut step, mut at) = (draw.below(1000) as i128 - 500, middle);
    let mut values = Vec::with_capacity(count);
    while values.len() < count {
        // A column may also have one shape after the other.
        if shape == 6 || values.len() % 700 == 699 {
            shape = draw.below(6);
            step = draw.below(1000) as i128 - 500;
        }
        match shape {
            // Repeats, short and long.
            0 => {
                let run = 1 + draw.any() as usize % if draw.any().is_multiple_of(8) { 700 } else { 12 };
                at = fit(middle + i128::from(draw.any() % 5));
                values.extend(std::iter::repeat_n(at, run.min(count - values.len())));
            }
            // A constant difference.
            1 => {
                at = fit(at.wrapping_add(step));
                values.push(at);
            }
            // Differences of one sign.
            2 => {
                at = fit(at.wrapping_add(i128::from(draw.any() % 90)));
                values.push(at);
            }
            // Few bits, and sometimes many.
            3 => {
                let outlier = draw.any().is_multiple_of(40);
                values.push(fit(if outlier { wide(draw) } else { middle + i128::from(draw.any() % 60) }));
            }
            // A fixed number of bits.
            4 => {
                let bits = (step.unsigned_abs() % 64) as u32;
                values.push(fit(i128::from(draw.any() >> (63 - bits)) - i128::from(draw.any() % 3)));
            }
            _ => values.push(match draw.any() % 16 {
                0 => least,
                1 => most,
                2 => fit(0),
                _ => wide(draw),
            }),
        }
    }
    values
}

fn primitive<T: ArrowPrimitiveType>(
    values: Vec<i128>,
    nulls: Option<NullBuffer>,
    convert: impl Fn(i128) -> T::Native,
) -> PrimitiveArray<T> {
    PrimitiveArray::new(values.into_iter().map(convert).collect::<Vec<_>>().into(), nulls)
}

/// Timestamps of a unit that ORC can store: none in the last second of an hour, to avoid the last second before 1970 in
/// any time zone.
fn ticks(values: Vec<i128>, second: i128) -> Vec<i128> {
    let moved = |tick: i128| match tick.rem_euclid(3600 * second) >= 3599 * second {
        true if tick < 0 => tick - second,
        _ => tick,
    };
    values.into_iter().map(moved).collect()
}

fn text(draw: &mut Draw, most: u64) -> String {
    let length = draw.any() % (most + 1);
    let letters = ['a', 'b', 'z', 'Q', '0', ' ', 'é', '€', '\u{10348}', '\u{ffff}'];
    let text: String = (0..length).map(|_| letters[draw.any() as usize % letters.len()]).collect();
    text.trim_end().to_owned()
}

/// Texts, with few or many distinct ones.
fn texts(draw: &mut Draw, count: usize, most: u64) -> Vec<String> {
    let known: Vec<_> = (0..=draw.below(30)).map(|_| text(draw, most)).collect();
    let fresh = draw.pick(&[0, 1, 3]);
    let mut one =
        |_| if draw.any() % 3 < fresh { text(draw, most) } else { known[draw.any() as usize % known.len()].clone() };
    (0..count).map(&mut one).collect()
}

fn bytes(draw: &mut Draw, count: usize, nulls: Option<&NullBuffer>) -> ArrayRef {
    let mut out = BinaryBuilder::new();
    for slot in 0..count {
        let length = draw.any() % 24;
        let value: Vec<u8> = (0..length).map(|_| draw.any() as u8).collect();
        out.append_option(nulls.is_none_or(|nulls| nulls.is_valid(slot)).then_some(value));
    }
    Arc::new(out.finish())
}

fn array(draw: &mut Draw, node: &TypeDescription, arrow: &ArrowOptions, count: usize) -> ArrayRef {
    let nulls = nulls(draw, count);
    let mut number = |least: i64, most: i64| integers(draw, count, least.into(), most.into());
    match &node.kind {
        Kind::Boolean => {
            let every = 1 + draw.below(40) as usize;
            let value =
                |slot: usize| if every < 20 { (slot / every).is_multiple_of(2) } else { draw.any().is_multiple_of(2) };
            Arc::new(BooleanArray::new((0..count).map(value).collect::<Vec<_>>().into(), nulls))
        }
        Kind::Byte => Arc::new(primitive::<Int8Type>(number(i8::MIN.into(), i8::MAX.into()), nulls, |v| v as i8)),
        Kind::Short => Arc::new(primitive::<Int16Type>(number(i16::MIN.into(), i16::MAX.into()), nulls, |v| v as i16)),
        Kind::Int => Arc::new(primitive::<Int32Type>(number(i32::MIN.into(), i32::MAX.into()), nulls, |v| v as i32)),
        Kind::Date => Arc::new(primitive::<Date32Type>(number(-719_162, 2_932_896), nulls, |v| v as i32)),
        Kind::Long => Arc::new(primitive::<Int64Type>(number(i64::MIN, i64::MAX), nulls, |v| v as i64)),
        Kind::Float => {
            let float = |v: i128| f32::from_bits(v as u32);
            Arc::new(primitive::<Float32Type>(number(0, u32::MAX.into()), nulls, float))
        }
        Kind::Double => {
            let double = |v: i128| if v % 3 == 0 { v as f64 / 8.0 } else { f64::from_bits(v as u64) };
            Arc::new(primitive::<Float64Type>(number(i64::MIN, i64::MAX), nulls, double))
        }
        Kind::Timestamp | Kind::TimestampInstant => {
            let zone = (node.kind == Kind::TimestampInstant).then(|| Arc::from("UTC"));
            match arrow.timestamp_unit {
                TimeUnit::Nanosecond => {
                    let values = ticks(number(i64::MIN / 2, i64::MAX / 2), 1_000_000_000);
                    let array = primitive::<TimestampNanosecondType>(values, nulls, |v| v as i64);
                    Arc::new(array.with_timezone_opt(zone))
                }
                _ => {
                    let values = ticks(number(-62_135_596_800_000_000, 253_402_300_799_999_999), 1_000_000);
                    let array = primitive::<TimestampMicrosecondType>(values, nulls, |v| v as i64);
                    Arc::new(array.with_timezone_opt(zone))
                }
            }
        }
        Kind::Decimal { precision, scale } => {
            let bound = 10i128.pow((*precision).into()) - 1;
            let values = integers(draw, count, -bound, bound);
            let array = primitive::<Decimal128Type>(values, nulls, |v| v);
            Arc::new(array.with_precision_and_scale(*precision, *scale as i8).unwrap())
        }
        Kind::String | Kind::Char { .. } | Kind::Varchar { .. } => {
            let most = match node.kind {
                Kind::Char { length } | Kind::Varchar { length } => length.into(),
                _ => draw.pick(&[3, 40, 2000]),
            };
            let mut out = StringBuilder::new();
            for (slot, value) in texts(draw, count, most).into_iter().enumerate() {
                out.append_option(nulls.as_ref().is_none_or(|nulls| nulls.is_valid(slot)).then_some(value));
            }
            Arc::new(out.finish())
        }
        Kind::Binary | Kind::Geometry { .. } | Kind::Geography { .. } => bytes(draw, count, nulls.as_ref()),
        Kind::List | Kind::Map => repeated(draw, node, arrow, count, nulls),
        Kind::Struct => {
            let DataType::Struct(fields) = node.arrow_type(arrow) else { panic!("a struct of another type") };
            let columns = node.children.iter().map(|child| array(draw, child, arrow, count)).collect();
            Arc::new(StructArray::try_new_with_length(fields, columns, nulls, count).unwrap())
        }
        Kind::Union => union(draw, node, arrow, count, nulls),
    }
}

fn repeated(
    draw: &mut Draw,
    node: &TypeDescription,
    arrow: &ArrowOptions,
    count: usize,
    nulls: Option<NullBuffer>,
) -> ArrayRef {
    let most = draw.pick(&[0, 1, 3, 7]);
    let length = |slot: usize| {
        let there = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(slot));
        if there { (draw.any() % (most + 1)) as usize } else { 0 }
    };
    let offsets = OffsetBuffer::<i32>::from_lengths((0..count).map(length).collect::<Vec<_>>());
    let total = offsets[count] as usize;
    match node.arrow_type(arrow) {
        DataType::List(field) => {
            Arc::new(ListArray::new(field, offsets, array(draw, &node.children[0], arrow, total), nulls))
        }
        DataType::Map(field, sorted) => {
            let DataType::Struct(fields) = field.data_type() else { panic!("entries of another type") };
            let keys = array(draw, &node.children[0], arrow, total);
            // Keys are never null.
            let keys = arrow_array::make_array(keys.to_data().into_builder().nulls(None).build().unwrap());
            let values = array(draw, &node.children[1], arrow, total);
            let entries = StructArray::new(fields.clone(), vec![keys, values], None);
            Arc::new(MapArray::new(field, offsets, entries, nulls, sorted))
        }
        other => panic!("{other} for {node}"),
    }
}

fn union(
    draw: &mut Draw,
    node: &TypeDescription,
    arrow: &ArrowOptions,
    count: usize,
    nulls: Option<NullBuffer>,
) -> ArrayRef {
    let DataType::Union(fields, _) = node.arrow_type(arrow) else { panic!("a union of another type") };
    let variants = node.children.len();
    let mut sizes = vec![0i32; variants + 1];
    let (mut tags, mut offsets) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for slot in 0..count {
        let there = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(slot));
        let tag = if there { draw.any() as usize % variants } else { variants };
        tags.push(tag as i8);
        offsets.push(sizes[tag]);
        sizes[tag] += 1;
    }
    let children = node.children.iter().zip(&sizes).map(|(child, size)| array(draw, child, arrow, *size as usize));
    let mut children: Vec<_> = children.collect();
    children.push(Arc::new(NullArray::new(sizes[variants] as usize)));
    Arc::new(UnionArray::try_new(fields, tags.into(), Some(offsets.into()), children).unwrap())
}

/// Options of every kind.
pub fn options(draw: &mut Draw, types: &TypeDescription) -> WriterOptions {
    let compression = draw.pick(&[
        CompressionKind::None,
        CompressionKind::Zlib,
        CompressionKind::Snappy,
        CompressionKind::Lzo,
        CompressionKind::Lz4,
        CompressionKind::Zstd,
        CompressionKind::Brotli,
    ]);
    let row_index_stride = draw.pick(&[0, 1, 10, 250, 1000, 10_000]);
    let bloom_filter_columns = if row_index_stride < 10 {
        Vec::new()
    } else {
        types.names.iter().filter(|_| draw.one_in(3)).cloned().collect()
    };
    WriterOptions {
        version: draw.pick(&[FileVersion::V0_12, FileVersion::V0_11, FileVersion::V2Draft]),
        compression,
        compression_block_size: draw.pick(&[None, Some(100), Some(4096), Some(1 << 18)]),
        stripe_size: draw.pick(&[64 << 20, 1, 1 << 12, 1 << 16]),
        stripe_rows: draw.pick(&[None, Some(1000), Some(333)]),
        row_index_stride,
        dictionary_key_size_threshold: draw.pick(&[0.8, 0.0, 0.3, 1.0]),
        sorted_dictionaries: draw.one_in(2),
        packing: draw.pick(&[Packing::Tight, Packing::Aligned]),
        bloom_filter_columns,
        bloom_filter_version: draw.pick(&[BloomVersion::Utf8, BloomVersion::Original]),
        block_size: draw.pick(&[None, None, Some(1 << 15)]),
        ..WriterOptions::default()
    }
}

/// The rows of one column, in one array.
pub fn column(batches: &[RecordBatch], index: usize) -> Option<ArrayRef> {
    let arrays: Vec<_> = batches.iter().map(|batch| batch.column(index).as_ref()).collect();
    (!arrays.is_empty()).then(|| arrow_select::concat::concat(&arrays).unwrap())
}

/// Asserts that two tables have the same rows.
pub fn assert_same(schema: &Schema, wanted: &[RecordBatch], got: &[RecordBatch]) {
    let wanted: Vec<_> = wanted.iter().filter(|batch| batch.num_rows() > 0).cloned().collect();
    for (index, field) in schema.fields().iter().enumerate() {
        assert_eq!(column(&wanted, index), column(got, index), "column {}", field.name());
    }
}
