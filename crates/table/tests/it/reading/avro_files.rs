//! Avro data files: written rows are read back, with any requested leaves, byte ranges and rows.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use arrow_array::builder::{BinaryBuilder, FixedSizeBinaryBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int32Array, Int64Array,
    ListArray, MapArray, NullArray, RecordBatch, StructArray, Time64MicrosecondArray, TimestampMicrosecondArray,
    TimestampNanosecondArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_cast::display::{ArrayFormatter, FormatOptions as Display};
use arrow_schema::{DataType, Fields};
use icefield_format::manifest::FileContent;
use icefield_format::metadata::StringMap;
use icefield_format::types::arrow::ToArrow;
use icefield_format::types::{Field, ListType, MapType, PrimitiveType, Schema, StructType, Type};
use icefield_table::file::leaves::{count, pick};
use icefield_table::file::modes::Modes;
use icefield_table::file::{self, FileLayout, Filter, FormatOptions, Request};
use icefield_table::storage::{Existing, FileRef, Storage};
use proptest::prelude::*;

/// A source of random choices.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// Numbers of all sizes.
    fn long(&mut self) -> i64 {
        let bits = self.below(64);
        self.next().cast_signed() >> bits
    }
}

fn primitive(draw: &mut Draw) -> PrimitiveType {
    use PrimitiveType as P;
    let precision = draw.below(38) as u8 + 1;
    let all = [
        P::Boolean,
        P::Int,
        P::Long,
        P::Float,
        P::Double,
        P::Date,
        P::Time,
        P::Timestamp,
        P::Timestamptz,
        P::TimestampNs,
        P::TimestamptzNs,
        P::String,
        P::Uuid,
        P::Fixed(draw.below(9) as u32 + 1),
        P::Binary,
        P::Decimal { precision, scale: draw.below(u64::from(precision) + 1) as u8 },
        P::Geometry { crs: None },
    ];
    all[draw.below(all.len() as u64) as usize].clone()
}

fn any_type(draw: &mut Draw, ids: &mut i32, depth: u32) -> Type {
    let mut id = || {
        *ids += 1;
        *ids
    };
    match if depth == 0 { 9 } else { draw.below(10) } {
        0 => {
            let fields = (0..draw.below(3) + 1).map(|_| field(draw, ids, depth - 1)).collect();
            StructType::new(fields).into()
        }
        1 => {
            let (id, ty) = (id(), any_type(draw, ids, depth - 1));
            if draw.below(2) == 0 { ListType::required(id, ty).into() } else { ListType::optional(id, ty).into() }
        }
        2 => {
            let (key, value) = (id(), id());
            let of = if draw.below(2) == 0 { PrimitiveType::String } else { PrimitiveType::Long };
            let ty = any_type(draw, ids, depth - 1);
            if draw.below(2) == 0 {
                MapType::required(key, of, value, ty).into()
            } else {
                MapType::optional(key, of, value, ty).into()
            }
        }
        3 => Type::Variant,
        _ => primitive(draw).into(),
    }
}

fn field(draw: &mut Draw, ids: &mut i32, depth: u32) -> Field {
    *ids += 1;
    let id = *ids;
    let names = ["plain", "with space", "1st", "ünï.x", "a-b"];
    let name = format!("{}{id}", names[draw.below(5) as usize]);
    let ty = any_type(draw, ids, depth);
    if draw.below(2) == 0 { Field::required(id, name, ty) } else { Field::optional(id, name, ty) }
}

fn schema(draw: &mut Draw) -> Arc<Schema> {
    let mut ids = 0;
    let fields = (0..draw.below(6) + 1).map(|_| field(draw, &mut ids, 3)).collect();
    Arc::new(Schema::new(0, fields).unwrap())
}

fn nulls(draw: &mut Draw, nullable: bool, rows: usize) -> Option<NullBuffer> {
    (nullable && rows > 0).then(|| (0..rows).map(|_| draw.below(4) > 0).collect::<Vec<_>>().into())
}

/// Random values of an Arrow type that our own schemas use.
fn array(draw: &mut Draw, ty: &DataType, nullable: bool, rows: usize) -> ArrayRef {
    let nulls = nulls(draw, nullable, rows);
    let longs: Vec<i64> = (0..rows).map(|_| draw.long()).collect();
    let ints: Vec<i32> = longs.iter().map(|long| *long as i32).collect();
    let bytes = |draw: &mut Draw, most: u64| (0..draw.below(most)).map(|_| draw.next() as u8).collect::<Vec<_>>();
    match ty {
        DataType::Boolean => {
            let values: Vec<bool> = longs.iter().map(|long| long & 1 == 1).collect();
            Arc::new(BooleanArray::new(values.into(), nulls))
        }
        DataType::Int32 => Arc::new(Int32Array::new(ints.into(), nulls)),
        DataType::Date32 => Arc::new(Date32Array::new(ints.into(), nulls)),
        DataType::Int64 => Arc::new(Int64Array::new(longs.into(), nulls)),
        DataType::Time64(_) => Arc::new(Time64MicrosecondArray::new(longs.into(), nulls)),
        DataType::Timestamp(arrow_schema::TimeUnit::Microsecond, _) => {
            Arc::new(TimestampMicrosecondArray::new(longs.into(), nulls).with_data_type(ty.clone()))
        }
        DataType::Timestamp(..) => {
            Arc::new(TimestampNanosecondArray::new(longs.into(), nulls).with_data_type(ty.clone()))
        }
        DataType::Float32 => {
            let values: Vec<f32> = longs.iter().map(|long| f32::from_bits(*long as u32)).collect();
            Arc::new(Float32Array::new(values.into(), nulls))
        }
        DataType::Float64 => {
            let values: Vec<f64> = longs.iter().map(|long| f64::from_bits(long.cast_unsigned())).collect();
            Arc::new(Float64Array::new(values.into(), nulls))
        }
        DataType::Decimal128(precision, _) => {
            let most = 10i128.pow(u32::from(*precision)) - 1;
            let wide = |long: &i64| (i128::from(*long) * i128::from(u64::MAX)).clamp(-most, most);
            let values: Vec<i128> = longs.iter().map(wide).collect();
            Arc::new(Decimal128Array::new(values.into(), nulls).with_data_type(ty.clone()))
        }
        DataType::Utf8 => {
            let mut builder = StringBuilder::new();
            for row in 0..rows {
                let text: String = (0..draw.below(9)).map(|_| ['a', 'ß', '☃', '😀'][draw.below(4) as usize]).collect();
                let valid = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
                builder.append_option(valid.then_some(text));
            }
            Arc::new(builder.finish())
        }
        DataType::Binary => {
            let mut builder = BinaryBuilder::new();
            for row in 0..rows {
                let valid = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
                builder.append_option(valid.then(|| bytes(draw, 200)));
            }
            Arc::new(builder.finish())
        }
        DataType::FixedSizeBinary(size) => {
            let mut builder = FixedSizeBinaryBuilder::new(*size);
            for row in 0..rows {
                let value: Vec<u8> = (0..*size).map(|_| draw.next() as u8).collect();
                match nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)) {
                    true => builder.append_value(value).unwrap(),
                    false => builder.append_null(),
                }
            }
            Arc::new(builder.finish())
        }
        DataType::Struct(fields) => Arc::new(structs(draw, fields, nulls, rows)),
        DataType::List(element) => {
            let offsets = OffsetBuffer::<i32>::from_lengths((0..rows).map(|_| draw.below(4) as usize));
            let values = array(draw, element.data_type(), element.is_nullable(), offsets[rows] as usize);
            Arc::new(ListArray::new(element.clone(), offsets, values, nulls))
        }
        DataType::Map(entries, _) => {
            let DataType::Struct(pair) = entries.data_type() else { panic!() };
            let offsets = OffsetBuffer::<i32>::from_lengths((0..rows).map(|_| draw.below(4) as usize));
            let pairs = structs(draw, pair, None, offsets[rows] as usize);
            Arc::new(MapArray::new(entries.clone(), offsets, pairs, nulls, false))
        }
        DataType::Null => Arc::new(NullArray::new(rows)),
        other => panic!("{other}"),
    }
}

fn structs(draw: &mut Draw, fields: &Fields, nulls: Option<NullBuffer>, rows: usize) -> StructArray {
    let children = fields.iter().map(|field| array(draw, field.data_type(), field.is_nullable(), rows)).collect();
    StructArray::try_new_with_length(fields.clone(), children, nulls, rows).unwrap()
}

/// Values as text, so that columns can be compared regardless of their field names.
fn values(array: &ArrayRef) -> Vec<String> {
    let rows = 0..array.len();
    let joined =
        |parts: &[Vec<String>], row: usize| parts.iter().map(|part| part[row].as_str()).collect::<Vec<_>>().join(" ");
    let items = |items: &[String], offsets: &[i32]| -> Vec<String> {
        offsets.windows(2).map(|pair| items[pair[0] as usize..pair[1] as usize].join(", ")).collect()
    };
    let texts: Vec<String> = match array.data_type() {
        DataType::Struct(_) => {
            let parts: Vec<_> = array.as_struct().columns().iter().map(values).collect();
            rows.map(|row| format!("{{{}}}", joined(&parts, row))).collect()
        }
        DataType::List(_) => items(&values(array.as_list::<i32>().values()), array.as_list::<i32>().offsets()),
        DataType::Map(..) => {
            let map = array.as_map();
            let pairs = [values(map.keys()), values(map.values())];
            let pairs: Vec<_> = (0..map.keys().len()).map(|row| joined(&pairs, row)).collect();
            items(&pairs, map.offsets())
        }
        DataType::Timestamp(..) => values(&arrow_cast::cast(array, &DataType::Int64).unwrap()),
        _ => {
            let options = Display::default().with_display_error(true);
            let formatter = ArrayFormatter::try_new(array, &options).unwrap();
            rows.map(|row| formatter.value(row).to_string()).collect()
        }
    };
    let text = |(row, text)| if array.is_null(row) { "null".to_owned() } else { format!("[{text}]") };
    texts.into_iter().enumerate().map(text).collect()
}

/// Rows as texts.
fn texts(batch: &RecordBatch) -> Vec<String> {
    let columns: Vec<_> = batch.columns().iter().map(values).collect();
    let row = |row: usize| columns.iter().map(|column| column[row].as_str()).collect::<Vec<_>>().join(" | ");
    (0..batch.num_rows()).map(row).collect()
}

struct Written {
    storage: Storage,
    path: String,
    size: u64,
    schema: Arc<Schema>,
    batch: RecordBatch,
}

fn options(settings: &[(&str, &str)]) -> FormatOptions {
    let properties: StringMap =
        settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    FormatOptions::Avro(file::avro::AvroOptions::new(&properties).unwrap())
}

fn write(name: &str, schema: &Arc<Schema>, batch: &RecordBatch, codec: &str, block_rows: usize) -> Written {
    let storage = Storage::default();
    let modes = Modes::new(&StringMap::default(), schema, None).unwrap();
    let options = options(&[("write.avro.compression-codec", codec)]);
    let layout = FileLayout::new(schema, batch.schema(), &options, modes).unwrap();
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Concurrent tests use the same seeds.
    let path = format!("memory://avro-files/{name}-{}.avro", NEXT.fetch_add(1, Ordering::Relaxed));
    let mut writer = layout.create(&storage, path, &[]).unwrap();
    for start in (0..batch.num_rows()).step_by(block_rows) {
        writer.write(&[batch.slice(start, block_rows.min(batch.num_rows() - start))], false).unwrap();
        writer.close_group().unwrap();
    }
    let before = writer.size();
    let file = writer.finish().unwrap();
    assert_eq!(file.bytes, before);
    assert_eq!(file.metrics.record_count as usize, batch.num_rows());
    assert_eq!(storage.size(&file.path).unwrap(), file.bytes);
    Written { storage, path: file.path, size: file.bytes, schema: schema.clone(), batch: batch.clone() }
}

impl Written {
    fn read(&self, request: Request) -> Vec<RecordBatch> {
        let mut file =
            file::open(&self.storage, &FileRef::plain(&self.path, self.size), "AVRO", FileContent::Data).unwrap();
        file.bind(&Fields::clone, &self.schema);
        file.batches(request).unwrap().into_batches().map(Result::unwrap).collect()
    }

    /// The expected leaves of some rows, as text.
    fn expected(&self, leaves: &[usize], rows: impl Fn(usize) -> bool) -> Vec<String> {
        let all: Vec<usize> = (0..count(self.batch.schema_ref().fields())).collect();
        let texts = texts(&pick(&self.batch, &all, leaves).unwrap());
        texts.into_iter().enumerate().filter(|(row, _)| rows(*row)).map(|(_, text)| text).collect()
    }
}

fn found(batches: &[RecordBatch]) -> Vec<String> {
    batches.iter().flat_map(texts).collect()
}

fn world(seed: u64) -> (Draw, Written) {
    let mut draw = Draw(seed);
    let schema = schema(&mut draw);
    let arrow = Arc::new(schema.to_arrow(&ToArrow::default()).unwrap());
    let rows = draw.below(300) as usize;
    let columns = structs(&mut draw, arrow.fields(), None, rows);
    let batch = RecordBatch::try_new(arrow, columns.columns().to_vec()).unwrap();
    let codec = ["gzip", "zstd", "snappy", "uncompressed"][draw.below(4) as usize];
    let block_rows = draw.below(60) as usize + 1;
    let written = write(&format!("{seed:x}"), &schema, &batch, codec, block_rows);
    (draw, written)
}

/// Some leaves; for a map both keys and values, as readers request them.
fn some_leaves(draw: &mut Draw, written: &Written) -> Vec<usize> {
    fn tops(ty: &DataType, draw: &mut Draw, next: &mut usize, out: &mut BTreeSet<usize>) {
        match ty {
            DataType::Struct(fields) => fields.iter().for_each(|field| tops(field.data_type(), draw, next, out)),
            DataType::List(element) => tops(element.data_type(), draw, next, out),
            DataType::Map(entries, _) => {
                let leaves = count(&vec![entries.clone()].into());
                if draw.below(2) == 0 {
                    out.extend(*next..*next + leaves);
                }
                *next += leaves;
            }
            _ => {
                if draw.below(2) == 0 {
                    out.insert(*next);
                }
                *next += 1;
            }
        }
    }
    let (mut out, mut next) = (BTreeSet::new(), 0);
    let fields = DataType::Struct(written.batch.schema_ref().fields().clone());
    tops(&fields, draw, &mut next, &mut out);
    out.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(seed in any::<u64>()) {
        let (_, written) = world(seed);
        let all: Vec<usize> = (0..count(written.batch.schema_ref().fields())).collect();
        let batches = written.read(Request { batch_rows: 70, ..Request::all(all.clone()) });
        prop_assert!(batches.iter().all(|batch| batch.num_rows() <= 70));
        prop_assert_eq!(found(&batches), written.expected(&all, |_| true));
    }

    #[test]
    fn any_leaves_rows_and_cuts(seed in any::<u64>()) {
        let (mut draw, written) = world(seed);
        let rows = written.batch.num_rows();
        let mut leaves = some_leaves(&mut draw, &written);
        prop_assert_eq!(found(&written.read(Request::all(leaves.clone()))), written.expected(&leaves, |_| true));

        // However the file is split, each row is in exactly one part.
        let mut cuts: Vec<u64> = (0..draw.below(6)).map(|_| draw.below(written.size)).chain([0, written.size]).collect();
        cuts.sort_unstable();
        let parts = cuts.windows(2).flat_map(|cut| {
            written.read(Request { range: (cut[0], cut[1] - cut[0]), ..Request::all(leaves.clone()) })
        });
        prop_assert_eq!(found(&parts.collect::<Vec<_>>()), written.expected(&leaves, |_| true));

        // Rows by number, with their numbers, also across a split.
        let wanted: Vec<Range<u64>> = {
            let mut places: Vec<u64> = (0..draw.below(9) * 2).map(|_| draw.below(rows as u64 + 5)).collect();
            places.sort_unstable();
            places.dedup();
            places.chunks_exact(2).map(|pair| pair[0]..pair[1]).collect()
        };
        let is_wanted = |row: usize| wanted.iter().any(|range| range.contains(&(row as u64)));
        let position = count(written.batch.schema_ref().fields());
        leaves.push(position);
        let numbered = cuts.windows(2).flat_map(|cut| {
            let rows = Some(wanted.clone());
            written.read(Request { range: (cut[0], cut[1] - cut[0]), rows, batch_rows: 50, ..Request::all(leaves.clone()) })
        });
        let numbered: Vec<_> = numbered.collect();
        leaves.pop();
        let expected: Vec<String> = (0..rows).filter(|row| is_wanted(*row)).map(|row| format!("[{row}]")).collect();
        let texts = written.expected(&leaves, is_wanted);
        let expected: Vec<String> = match leaves.is_empty() {
            true => expected,
            false => texts.iter().zip(&expected).map(|(text, row)| format!("{text} | {row}")).collect(),
        };
        prop_assert_eq!(found(&numbered), expected);

        // A filter on row numbers, evaluated before other columns.
        let odd = |batch: &RecordBatch| {
            let numbers = batch.columns().last().unwrap();
            let numbers = numbers.as_any().downcast_ref::<Int64Array>().unwrap();
            Ok(numbers.values().iter().map(|row| Some(row % 2 == 1)).collect::<BooleanArray>())
        };
        let mut tested = some_leaves(&mut draw, &written);
        tested.push(position);
        let filter = Some(Filter { leaves: tested, test: Arc::new(odd) });
        let rows = Some(wanted.clone());
        let kept = written.read(Request { filter, rows, batch_rows: 33, ..Request::all(leaves.clone()) });
        prop_assert_eq!(found(&kept), written.expected(&leaves, |row| row % 2 == 1 && is_wanted(row)));
    }
}

/// The file is large enough to be shared by threads.
#[test]
fn threads_give_the_rows_in_order() {
    let schema = Arc::new(Schema::new(0, vec![Field::required(1, "n", PrimitiveType::Long)]).unwrap());
    let arrow = Arc::new(schema.to_arrow(&ToArrow::default()).unwrap());
    let rows = 1_500_000i64;
    let numbers = Int64Array::from_iter_values((0..rows).map(|row| row.wrapping_mul(0x9e37_79b9_7f4a_7c15u64 as i64)));
    let batch = RecordBatch::try_new(arrow, vec![Arc::new(numbers)]).unwrap();
    let written = write("threads", &schema, &batch, "uncompressed", rows as usize);
    assert!(written.size > 12 << 20);
    for leaves in [vec![0], vec![0, 1]] {
        let mut file =
            file::open(&written.storage, &FileRef::plain(&written.path, written.size), "avro", FileContent::Data)
                .unwrap();
        file.bind(&Fields::clone, &schema);
        let opened = file.batches(Request { threads: 4, ..Request::all(leaves.clone()) }).unwrap();
        assert!(matches!(&opened, icefield_table::stream::Opened::Parts(parts) if parts.len() > 1));
        let mut next = 0;
        for read in opened.into_batches().map(Result::unwrap) {
            assert_eq!(read.column(0).as_ref(), batch.column(0).slice(next, read.num_rows()).as_ref());
            if leaves.len() == 2 {
                let places = Int64Array::from_iter_values((next..next + read.num_rows()).map(|row| row as i64));
                assert_eq!(read.column(1).as_ref(), &places as &dyn Array);
            }
            next += read.num_rows();
        }
        assert_eq!(next, rows as usize);
    }
}

/// Every truncation of a file and every changed byte gives rows, or an error that names the file, never a panic.
#[test]
fn damage_is_an_error_that_names_the_file() {
    let mut refused = 0;
    for seed in 0..12 {
        let (_, written) = world(seed);
        let bytes = written.storage.read(&written.path).unwrap();
        let leaves: Vec<usize> = (0..count(written.batch.schema_ref().fields())).collect();
        let mut draw = Draw(seed);
        for _ in 0..60 {
            let mut damaged = bytes.to_vec();
            match draw.below(3) {
                0 => damaged.truncate(draw.below(damaged.len() as u64) as usize),
                _ => {
                    let at = draw.below(damaged.len() as u64) as usize;
                    damaged[at] = draw.next() as u8;
                }
            }
            let path = "memory://avro-files/damaged.avro";
            let size = damaged.len() as u64;
            written.storage.put(path, damaged, Existing::Replace).unwrap();
            let read = || {
                let mut file = file::open(&written.storage, &FileRef::plain(path, size), "avro", FileContent::Data)?;
                let fields = file.bind(&Fields::clone, &written.schema);
                let known = count(&fields) - 1;
                let leaves = leaves.iter().copied().filter(|leaf| *leaf < known).collect();
                file.batches(Request::all(leaves))?.into_batches().collect::<icefield_table::Result<Vec<_>>>()
            };
            if let Err(error) = read() {
                refused += 1;
                assert!(error.to_string().contains("damaged.avro"), "{error}");
            }
        }
    }
    assert!(refused > 100, "{refused}");
}
