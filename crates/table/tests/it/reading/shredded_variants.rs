//! Variants that are shredded when they are written: they read back the same, and the bounds of the file and of its row
//! groups never leave out a row.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::{Array, ArrayRef, BinaryArray, RecordBatch, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field as ArrowField, Fields};
use icefield_format::expr::{Expr, Extract, FieldStatistics, FileStatistics, InclusiveMetrics};
use icefield_format::metadata::StringMap;
use icefield_format::types::arrow::ToArrow;
use icefield_format::types::{Field, PrimitiveType, Schema, Type, parse_shape};
use icefield_format::value::Value;
use icefield_format::value::variant::path::Step;
use icefield_format::value::variant::tree::Primitive;
use icefield_format::value::variant::{Column, Node, Path, Shape, Tree, Variant};
use icefield_table::file::metrics::FileMetrics;
use icefield_table::file::modes::Modes;
use icefield_table::file::parquet::ParquetOptions;
use icefield_table::file::parquet::read::ParquetFile;
use icefield_table::file::{DataFileReader, FileLayout, FormatOptions, Request};
use icefield_table::read::columns::{Constants, Rules, leaves};
use icefield_table::read::reshape::Reshape;
use icefield_table::storage::Storage;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

struct NoPartition;

impl Constants for NoPartition {
    fn identity(&self, _: i32) -> Option<Option<Value>> {
        None
    }
}

/// One file: what it is shredded as, by which rows, its row groups, and its rows.
#[derive(Debug, Clone)]
struct World {
    shape: Option<Shape>,
    inferring: usize,
    group_rows: usize,
    mode: &'static str,
    rows: Vec<Option<Tree>>,
}

const NAMES: [&str; 5] = ["a", "b", "x.y", "it's", "größe"];

/// Values of one type, by its number.
fn leaf(kind: usize) -> BoxedStrategy<Tree> {
    let text = |text: String| Tree::Primitive(Primitive::String(text));
    let fixed = Tree::fixed;
    match kind {
        0 => any::<bool>().prop_map(move |value| fixed(Node::Boolean(value))).boxed(),
        1 => any::<i8>().prop_map(move |value| fixed(Node::Int8(value))).boxed(),
        2 => any::<i16>().prop_map(move |value| fixed(Node::Int16(value))).boxed(),
        3 => any::<i32>().prop_map(move |value| fixed(Node::Int32(value))).boxed(),
        4 => any::<i64>().prop_map(move |value| fixed(Node::Int64(value))).boxed(),
        5 => any::<f32>().prop_map(move |value| fixed(Node::Float(value))).boxed(),
        6 => prop_oneof![any::<f64>(), Just(f64::NAN), Just(-0.0), Just(0.0)]
            .prop_map(move |value| fixed(Node::Double(value)))
            .boxed(),
        7 => (-99_999..99_999_i128, 0..4_u8)
            .prop_map(|(unscaled, scale)| Tree::decimal(unscaled, scale).unwrap())
            .boxed(),
        8 => {
            (any::<i64>(), 0..3_u8).prop_map(|(unscaled, scale)| Tree::decimal(unscaled.into(), scale).unwrap()).boxed()
        }
        9 => (-(10_i128.pow(37))..10_i128.pow(37), 0..30_u8)
            .prop_map(|(unscaled, scale)| Tree::decimal(unscaled, scale).unwrap())
            .boxed(),
        10 => any::<i32>().prop_map(move |value| fixed(Node::Date(value))).boxed(),
        11 => (0..86_400_000_000_i64).prop_map(move |value| fixed(Node::Time(value))).boxed(),
        12 => (any::<i64>(), any::<bool>())
            .prop_map(move |(micros, is_utc)| fixed(Node::Timestamp { micros, is_utc }))
            .boxed(),
        13 => (any::<i64>(), any::<bool>())
            .prop_map(move |(nanos, is_utc)| fixed(Node::TimestampNanos { nanos, is_utc }))
            .boxed(),
        14 => "[a-c]{0,3}|.{0,40}".prop_map(text).boxed(),
        15 => prop::collection::vec(any::<u8>(), 0..40)
            .prop_map(|bytes| Tree::Primitive(Primitive::Binary(bytes)))
            .boxed(),
        16 => any::<[u8; 16]>().prop_map(move |bytes| fixed(Node::Uuid(bytes))).boxed(),
        _ => Just(fixed(Node::Null)).boxed(),
    }
}

/// Values with fields of a few types only, so that many have one type.
fn value(kinds: Vec<usize>) -> BoxedStrategy<Tree> {
    let leaf = prop::sample::select(kinds).prop_flat_map(leaf);
    let name = prop::sample::select(NAMES.to_vec()).prop_map(str::to_owned);
    leaf.prop_recursive(3, 16, 4, move |inner| {
        prop_oneof![
            3 => prop::collection::btree_map(name.clone(), inner.clone(), 0..4).prop_map(Tree::Object),
            1 => prop::collection::vec(inner, 0..3).prop_map(Tree::Array),
        ]
    })
    .boxed()
}

/// Objects whose fields have a type each; in some worlds now and then another one.
fn record(kinds: &[usize], is_messy: bool) -> BoxedStrategy<Tree> {
    let field = |(name, kind): (&&str, &usize)| {
        let other = value(kinds.to_vec());
        let messy = u32::from(is_messy);
        let value = prop_oneof![12 => leaf(*kind), 1 => Just(Tree::fixed(Node::Null)), messy => other];
        (Just((*name).to_owned()), prop::option::weighted(0.8, value))
    };
    let fields: Vec<_> = NAMES.iter().zip(kinds.iter().cycle()).map(field).collect();
    fields
        .prop_map(|fields| Tree::Object(fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()))
        .boxed()
}

fn shape() -> BoxedStrategy<Shape> {
    let names = "boolean int8 int16 int long float double decimal(9,3) decimal(18,2) decimal(38,6) date time timestamp \
                 timestamptz timestamp_ns timestamptz_ns string binary uuid";
    let words: Vec<&str> = names.split_whitespace().collect();
    let leaf = prop::sample::select(words).prop_map(|word| parse_shape(word).unwrap());
    leaf.prop_recursive(3, 12, 4, |inner| {
        let name = prop::sample::select(NAMES.to_vec()).prop_map(str::to_owned);
        prop_oneof![
            3 => prop::collection::btree_map(name, inner.clone(), 1..4)
                .prop_map(|fields| Shape::Object(fields.into_iter().collect())),
            1 => inner.prop_map(|element| Shape::Array(Box::new(element))),
        ]
    })
    .boxed()
}

fn world() -> impl Strategy<Value = World> {
    let kinds = prop::collection::vec(0..18_usize, 1..5);
    (kinds, 0..4_usize).prop_flat_map(|(kinds, style)| {
        let row = match style {
            0 => prop_oneof![1 => value(kinds.clone()), 2 => record(&kinds, true)].boxed(),
            style => record(&kinds, style == 1),
        };
        let rows = prop::collection::vec(prop::option::weighted(0.9, row), 20..21);
        let mode = prop::sample::select(vec!["truncate(4)", "full", "counts"]);
        (prop::option::weighted(0.4, shape()), 1..30_usize, 4..25_usize, mode, rows)
            .prop_map(|(shape, inferring, group_rows, mode, rows)| World { shape, inferring, group_rows, mode, rows })
    })
}

fn schema() -> Arc<Schema> {
    Arc::new(Schema::new(0, vec![Field::optional(1, "v", Type::Variant)]).unwrap())
}

/// The metadata and the value of a variant.
type Encoded = (Vec<u8>, Vec<u8>);

/// A column of variants.
fn column(rows: &[Option<Tree>]) -> ArrayRef {
    let encoded: Vec<_> = rows.iter().map(|row| row.as_ref().map(|tree| tree.encode().unwrap())).collect();
    let part = |of: fn(&Encoded) -> &Vec<u8>| {
        let none = Vec::new();
        Arc::new(BinaryArray::from_iter_values(encoded.iter().map(|row| row.as_ref().map_or(&none, of)))) as ArrayRef
    };
    let field = |name: &str| ArrowField::new(name, DataType::Binary, false);
    let fields = Fields::from(vec![field("metadata"), field("value")]);
    let nulls = NullBuffer::from_iter(rows.iter().map(Option::is_some));
    Arc::new(StructArray::new(fields, vec![part(|row| &row.0), part(|row| &row.1)], Some(nulls)))
}

/// Writes a file in batches of a few rows, and opens it.
fn write(storage: &Storage, world: &World) -> (ParquetFile, FileMetrics) {
    let mut properties: StringMap = [
        ("write.parquet.shred-variants".to_owned(), "true".to_owned()),
        ("write.parquet.variant-inference-buffer-size".to_owned(), world.inferring.to_string()),
        ("write.parquet.row-group-limit".to_owned(), world.group_rows.to_string()),
        ("write.metadata.metrics.default".to_owned(), world.mode.to_owned()),
    ]
    .into();
    if let Some(shape) = &world.shape {
        properties.insert("write.parquet.shred-variants.column.v".to_owned(), shape.to_string());
    }
    let schema = schema();
    let options = FormatOptions::Parquet(ParquetOptions::new(&properties).unwrap());
    let arrow = Arc::new(schema.to_arrow(&ToArrow::default()).unwrap());
    let modes = Modes::new(&properties, &schema, None).unwrap();
    let layout = FileLayout::new(&schema, arrow.clone(), &options, modes).unwrap();
    static FILES: AtomicUsize = AtomicUsize::new(0);
    let path = format!("memory://shredded/{}.parquet", FILES.fetch_add(1, Ordering::Relaxed));
    let mut writer = layout.create(storage, path.clone(), &[]).unwrap();
    for rows in world.rows.chunks(7) {
        let batch = RecordBatch::try_new(arrow.clone(), vec![column(rows)]).unwrap();
        writer.write(&[batch], false).unwrap();
    }
    let written = writer.finish().unwrap();
    let mut file = ParquetFile::open(storage, &path, None).unwrap();
    file.bind(&Fields::clone, &schema);
    (file, written.metrics)
}

fn read(file: ParquetFile) -> ArrayRef {
    let schema = schema();
    let output = Arc::new(schema.to_arrow(&ToArrow::default()).unwrap());
    let wanted = [(schema.fields()[0].clone(), output.fields()[0].clone())];
    let planned = Rules { path: "v", constants: &NoPartition }.plan(&wanted, file.fields()).unwrap();
    let request = Request::all(leaves(&planned, file.fields()));
    let groups = (0..file.metadata().num_row_groups()).collect();
    let reshape = Reshape::new("v", output, planned);
    let batches = file.decode(groups, &request).unwrap();
    let columns: Vec<ArrayRef> =
        batches.map(|batch| reshape.apply(&batch.unwrap()).unwrap().column(0).clone()).collect();
    let columns: Vec<&dyn Array> = columns.iter().map(AsRef::as_ref).collect();
    arrow_select::concat::concat(&columns).unwrap()
}

/// A value with its types as text; decimals without zeros at the end, and with `loose`, numbers without their widths.
fn shown(variant: Variant<'_>, loose: bool) -> String {
    match variant.node().unwrap() {
        Node::Object(object) => {
            let fields = object.fields().map(|field| field.unwrap());
            let fields: Vec<String> =
                fields.map(|(name, value)| format!("{name:?}: {}", shown(value, loose))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        Node::Array(elements) => {
            let elements: Vec<String> = elements.iter().map(|element| shown(element.unwrap(), loose)).collect();
            format!("[{}]", elements.join(", "))
        }
        Node::Decimal { mut unscaled, mut scale, bytes } => {
            while scale > 0 && unscaled % 10 == 0 {
                (unscaled, scale) = (unscaled / 10, scale - 1);
            }
            format!("decimal{} {unscaled}e-{scale}", if loose { 0 } else { bytes })
        }
        Node::Int8(value) if loose => format!("integer {value}"),
        Node::Int16(value) if loose => format!("integer {value}"),
        Node::Int32(value) if loose => format!("integer {value}"),
        Node::Int64(value) if loose => format!("integer {value}"),
        Node::Float(value) if loose => format!("number {:x}", f64::from(value).to_bits()),
        Node::Double(value) if loose => format!("number {:x}", value.to_bits()),
        Node::Float(value) => format!("float {:x}", value.to_bits()),
        Node::Double(value) => format!("double {:x}", value.to_bits()),
        other => format!("{other:?}"),
    }
}

/// Every primitive value in a variant that has a path of fields, with the type that it is asked for as.
fn values(variant: Variant<'_>, steps: &mut Vec<Step>, out: &mut Vec<Extract>) {
    let ty = match variant.node().unwrap() {
        Node::Object(object) => {
            for field in object.fields() {
                let (name, value) = field.unwrap();
                steps.push(Step::Field(name.to_owned()));
                values(value, steps, out);
                steps.pop();
            }
            return;
        }
        Node::Array(_) | Node::Null => return,
        Node::Boolean(_) => PrimitiveType::Boolean,
        Node::Int8(_) | Node::Int16(_) | Node::Int32(_) => PrimitiveType::Int,
        Node::Int64(_) => PrimitiveType::Long,
        Node::Float(_) => PrimitiveType::Float,
        Node::Double(_) => PrimitiveType::Double,
        Node::Decimal { scale, .. } => PrimitiveType::Decimal { precision: 38, scale },
        Node::Date(_) => PrimitiveType::Date,
        Node::Time(_) => PrimitiveType::Time,
        Node::Timestamp { is_utc: false, .. } => PrimitiveType::Timestamp,
        Node::Timestamp { is_utc: true, .. } => PrimitiveType::Timestamptz,
        Node::TimestampNanos { is_utc: false, .. } => PrimitiveType::TimestampNs,
        Node::TimestampNanos { is_utc: true, .. } => PrimitiveType::TimestamptzNs,
        Node::String(_) => PrimitiveType::String,
        Node::Binary(_) => PrimitiveType::Binary,
        Node::Uuid(_) => PrimitiveType::Uuid,
    };
    out.push(Extract::new(Path::new(steps.clone()), ty).unwrap());
}

struct Metrics<'a>(&'a FileMetrics);

impl FileStatistics for Metrics<'_> {
    fn record_count(&self) -> i64 {
        self.0.record_count
    }

    fn field(&self, id: i32) -> FieldStatistics<'_> {
        FieldStatistics {
            value_count: self.0.value_counts.get(&id).copied(),
            null_count: self.0.null_value_counts.get(&id).copied(),
            nan_count: self.0.nan_value_counts.get(&id).copied(),
            lower: self.0.lower_bounds.get(&id).map(Vec::as_slice),
            upper: self.0.upper_bounds.get(&id).map(Vec::as_slice),
        }
    }
}

/// The bounds of a file by path.
fn bounds<'a>(bytes: Option<&'a Vec<u8>>) -> Vec<(Path, Variant<'a>)> {
    let Some(bytes) = bytes else { return Vec::new() };
    let Node::Object(object) = Variant::concatenated(bytes).unwrap().node().unwrap() else { panic!("no object") };
    object.fields().map(Result::unwrap).map(|(path, bound)| (Path::parse(path).unwrap(), bound)).collect()
}

/// Bounds hold for all values, which have their type; and rows that match a filter are in files and row groups that are read.
fn check_bounds(world: &World, file: &ParquetFile, metrics: &FileMetrics, read: &Column<'_>) -> (usize, usize) {
    let lower = bounds(metrics.lower_bounds.get(&1));
    let upper = bounds(metrics.upper_bounds.get(&1));
    assert!(world.mode != "counts" || lower.is_empty() && upper.is_empty());
    let (mut extracts, mut tested) = (Vec::new(), 0);
    for row in 0..read.len() {
        let Some(variant) = read.get(row).unwrap() else { continue };
        for (is_lower, (path, bound)) in lower.iter().map(|one| (true, one)).chain(upper.iter().map(|one| (false, one)))
        {
            let found = path.find(variant).unwrap().filter(|found| !matches!(found.node().unwrap(), Node::Null));
            let Some(found) = found else { continue };
            let kind = |node: Node<'_>| node.kind().replace("_FALSE", "").replace("_TRUE", "");
            assert_eq!(kind(found.node().unwrap()), kind(bound.node().unwrap()), "{path} of row {row}");
            let mut own = Vec::new();
            values(found, &mut Vec::new(), &mut own);
            let ty = own[0].ty();
            let of =
                |variant: Variant<'_>| Extract::new(Path::default(), ty.clone()).unwrap().of(variant).unwrap().unwrap();
            let order = icefield_format::value::order::compare(ty, &of(found), &of(*bound));
            assert!(if is_lower { order.is_ge() } else { order.is_le() }, "{path} of row {row} beyond its bound");
        }
        let mut own = Vec::new();
        values(variant, &mut Vec::new(), &mut own);
        extracts.extend(own.into_iter().map(|extract| (row, variant, extract)));
    }
    let mut seen = BTreeSet::new();
    for (row, variant, extract) in extracts {
        let value = extract.of(variant).unwrap().unwrap();
        let Some(literal) = literal(&value, extract.ty()) else { continue };
        let group = row / world.group_rows;
        for comparison in ["=", "<=", ">=", "<", ">"] {
            let text = format!("v{extract} {comparison} {literal}");
            if !seen.insert((group, text.clone())) {
                continue;
            }
            let bound = Expr::parse(&text).unwrap().bind(&schema(), true).unwrap();
            let matches = matches!(comparison, "=" | "<=" | ">=");
            let might = InclusiveMetrics::new(&bound).might_match(&Metrics(metrics));
            assert!(might || !matches, "the file is left out for {text}, which row {row} matches");
            let mut request = Request { prune: bound, ..Request::all(vec![0]) };
            let groups = file.pieces(&mut request, u64::MAX).unwrap().concat();
            assert!(groups.contains(&group) || !matches, "row group {group} is left out for {text}");
            tested += usize::from(!might);
        }
    }
    (lower.len(), tested)
}

/// A literal of a filter; `None` for values that have none.
fn literal(value: &Value, ty: &PrimitiveType) -> Option<String> {
    Some(match (value, ty) {
        (Value::Boolean(value), _) => value.to_string(),
        (Value::Int(value), PrimitiveType::Int) => value.to_string(),
        (Value::Long(value), PrimitiveType::Long) => value.to_string(),
        (Value::String(text), _) => format!("'{}'", text.replace('\'', "''")),
        (Value::Decimal(unscaled), PrimitiveType::Decimal { scale, .. }) => {
            let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = usize::from(*scale) + 1);
            let (whole, part) = digits.split_at(digits.len() - usize::from(*scale));
            let sign = if *unscaled < 0 { "-" } else { "" };
            if part.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{part}") }
        }
        _ => return None,
    })
}

#[test]
fn variants_are_the_same_when_they_were_shredded() {
    let storage = Storage::default();
    let (bounded, pruned, shredded) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let config = Config { cases: 100, failure_persistence: None, ..Config::default() };
    let law = |world: World| {
        let (file, metrics) = write(&storage, &world);
        let columns = file.metadata().file_metadata().schema_descr().num_columns();
        shredded.fetch_add(usize::from(columns > 2), Ordering::Relaxed);
        let opened = write(&storage, &world).0;
        let found = read(opened);
        let (found, given) = (Column::new(&found).unwrap(), column(&world.rows));
        let given = Column::new(&given).unwrap();
        assert_eq!(found.len(), given.len());
        let loose = world.shape.is_some();
        for row in 0..given.len() {
            let shown = |column: &Column<'_>| {
                let variant = column.get(row).unwrap()?;
                Some((variant.metadata().bytes().to_vec(), shown(variant, loose)))
            };
            assert_eq!(shown(&found), shown(&given), "row {row}");
        }
        let (bounds, left_out) = check_bounds(&world, &file, &metrics, &found);
        bounded.fetch_add(bounds, Ordering::Relaxed);
        pruned.fetch_add(left_out, Ordering::Relaxed);
        Ok(())
    };
    TestRunner::new(config).run(&world(), law).unwrap();
    // The cases are such that the laws say something.
    for (count, least) in [(shredded, 40), (bounded, 30), (pruned, 5)] {
        let count = count.into_inner();
        assert!(count >= least, "{count} of at least {least}");
    }
}
