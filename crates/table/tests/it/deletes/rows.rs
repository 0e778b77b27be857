//! The rows of the tests, as stored and as read, with values from small sets, so that equal keys are frequent.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, Date32Array, Float32Array, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray, StructArray,
};
use arrow_buffer::NullBuffer;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::DataType;
use icefield_format::types::arrow::ToArrow;
use icefield_format::types::{Field, PrimitiveType as P, Schema, StructType};
use icefield_format::value::Value;
use proptest::prelude::*;

/// Ids that equality deletes compare: `id`, `k`, `s`, `f`, `st.x`, `d`, `gone` (dropped) and `added` (with a default).
pub const KEYS: [i32; 8] = [1, 2, 3, 4, 6, 7, 8, 9];
/// The default of `added`, for files without the column.
pub const DEFAULT: i64 = 5;

#[derive(Debug, Clone)]
pub struct Row {
    pub id: i64,
    pub k: Option<i32>,
    pub s: Option<&'static str>,
    pub f: Option<f32>,
    /// A null struct, or a struct with a null or a number.
    pub st: Option<Option<i32>>,
    pub d: Option<i32>,
    pub gone: Option<&'static str>,
    pub added: Option<i64>,
}

pub fn row(ids: std::ops::Range<i64>) -> impl Strategy<Value = Row> {
    let floats = vec![None, Some(0.0), Some(-0.0), Some(f32::NAN), Some(f32::from_bits(0xffc0_1234)), Some(1.5)];
    (
        ids,
        prop::sample::select(vec![None, Some(-1), Some(0), Some(7)]),
        prop::sample::select(vec![None, Some(""), Some("a"), Some("some longer text, more than a block of 32 bytes")]),
        prop::sample::select(floats),
        prop::sample::select(vec![None, Some(None), Some(Some(0)), Some(Some(3))]),
        prop::sample::select(vec![None, Some(0), Some(18_000)]),
        prop::sample::select(vec![None, Some("x"), Some("y")]),
        prop::sample::select(vec![None, Some(DEFAULT), Some(6)]),
    )
        .prop_map(|(id, k, s, f, st, d, gone, added)| Row { id, k, s, f, st, d, gone, added })
}

impl Row {
    /// The row as read from a file: older files lack `added`, newer ones `gone`; a partition has one value of `d`.
    pub fn seen(&self, is_old: bool, d: Option<Option<i32>>) -> Self {
        let row = Self { d: d.unwrap_or(self.d), ..self.clone() };
        if is_old { Self { added: Some(DEFAULT), ..row } } else { Self { gone: None, ..row } }
    }

    /// The values of some columns as text; equal if equality deletes consider them equal.
    pub fn key(&self, ids: &[i32]) -> Vec<Option<String>> {
        let float = |value: f32| if value.is_nan() { "NaN".to_owned() } else { format!("{:x}", value.to_bits()) };
        let value = |id: &i32| match id {
            1 => Some(self.id.to_string()),
            2 => self.k.map(|value| value.to_string()),
            3 => self.s.map(str::to_owned),
            4 => self.f.map(float),
            6 => self.st.flatten().map(|value| value.to_string()),
            7 => self.d.map(|value| value.to_string()),
            8 => self.gone.map(str::to_owned),
            9 => self.added.map(|value| value.to_string()),
            _ => unreachable!(),
        };
        ids.iter().map(value).collect()
    }
}

/// All columns that ever existed; the older schema has narrower types.
fn all_fields(is_old: bool) -> Vec<Field> {
    let (k, f) = if is_old { (P::Int, P::Float) } else { (P::Long, P::Double) };
    let added = Field::optional(9, "added", P::Long);
    vec![
        Field::required(1, "id", P::Long),
        Field::optional(2, "k", k),
        Field::optional(3, "s", P::String),
        Field::optional(4, "f", f),
        Field::optional(5, "st", StructType::new(vec![Field::optional(6, "x", P::Int)])),
        Field::optional(7, "d", P::Date),
        Field::optional(8, "gone", P::String),
        Field { initial_default: Some(Value::Long(DEFAULT)), ..added },
    ]
}

/// The table's schema.
pub fn current() -> Schema {
    Schema::new(1, all_fields(false).into_iter().filter(|field| field.id != 8).collect()).unwrap()
}

/// The columns of equality deletes, as from planning.
pub fn key_fields(ids: &[i32]) -> Vec<Field> {
    let top = |id: &i32| if *id == 6 { 5 } else { *id };
    let field = |id: &i32| all_fields(false).into_iter().find(|field| field.id == top(id)).unwrap();
    ids.iter().map(|id| Field { required: false, ..field(id) }).collect()
}

/// The columns of a file with these ids, in the file's types.
pub fn stored(is_old: bool, ids: &[i32]) -> Arc<Schema> {
    Arc::new(Schema::new(0, all_fields(is_old).into_iter().filter(|field| ids.contains(&field.id)).collect()).unwrap())
}

/// Rows as a batch of some schema.
pub fn batch(schema: &Schema, rows: &[Row]) -> RecordBatch {
    let arrow = Arc::new(schema.to_arrow(&ToArrow::default()).unwrap());
    let columns = arrow.fields().iter().map(|field| column(field.name(), field.data_type(), rows)).collect();
    RecordBatch::try_new(arrow, columns).unwrap()
}

fn column(name: &str, ty: &DataType, rows: &[Row]) -> ArrayRef {
    let texts = |of: fn(&Row) -> Option<&'static str>| Arc::new(StringArray::from_iter(rows.iter().map(of)));
    match (name, ty) {
        ("id", _) => Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.id))),
        ("k", DataType::Int32) => Arc::new(Int32Array::from_iter(rows.iter().map(|row| row.k))),
        ("k", _) => Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.k.map(i64::from)))),
        ("s", _) => texts(|row| row.s),
        ("f", DataType::Float32) => Arc::new(Float32Array::from_iter(rows.iter().map(|row| row.f))),
        ("f", _) => Arc::new(Float64Array::from_iter(rows.iter().map(|row| row.f.map(f64::from)))),
        ("st", DataType::Struct(fields)) => {
            let x = Int32Array::from_iter(rows.iter().map(|row| row.st.flatten()));
            let nulls = NullBuffer::from_iter(rows.iter().map(|row| row.st.is_some()));
            Arc::new(StructArray::new(fields.clone(), vec![Arc::new(x)], Some(nulls)))
        }
        ("d", _) => Arc::new(Date32Array::from_iter(rows.iter().map(|row| row.d))),
        ("gone", _) => texts(|row| row.gone),
        ("added", _) => Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.added))),
        other => panic!("{other:?}"),
    }
}

/// The rows of batches as text.
pub fn texts(batches: &[RecordBatch]) -> Vec<String> {
    let options = FormatOptions::new().with_null("null");
    let of_batch = |batch: &RecordBatch| {
        let formatters: Vec<_> =
            batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
        let text = |row| formatters.iter().map(|one| one.value(row).to_string()).collect::<Vec<_>>().join(" | ");
        (0..batch.num_rows()).map(text).collect::<Vec<_>>()
    };
    batches.iter().flat_map(of_batch).collect()
}
