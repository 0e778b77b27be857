//! The rows of the histories, with values from small sets, so that equal rows and keys are frequent.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::builder::{Int32Builder, ListBuilder, MapBuilder, MapFieldNames, StringBuilder};
use arrow_array::{
    Array, ArrayRef, Float64Array, Int32Array, Int64Array, ListArray, MapArray, RecordBatch, StringArray,
};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::DataType;
use icefield_format::types::arrow::ToArrow;
use icefield_format::types::{Field, ListType, MapType, PrimitiveType as P, Schema};
use proptest::prelude::*;

#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub id: i64,
    pub k: Option<i32>,
    pub s: Option<&'static str>,
    pub f: Option<f64>,
    /// The value from which a list and a map are made.
    pub nested: Option<u8>,
}

pub fn row() -> impl Strategy<Value = Row> {
    let floats = vec![None, Some(0.0), Some(-0.0), Some(f64::NAN), Some(f64::from_bits(0xfff8_0000_0000_1234))];
    (
        0..8i64,
        prop::sample::select(vec![None, Some(1), Some(2)]),
        prop::sample::select(vec![None, Some(""), Some("a")]),
        prop::sample::select(floats),
        prop::option::of(0..3u8),
    )
        .prop_map(|(id, k, s, f, nested)| Row { id, k, s, f, nested })
}

impl Row {
    /// The values of some columns as text; equal if equality deletes consider them equal.
    pub fn key(&self, ids: &[i32]) -> Vec<Option<String>> {
        let float = |value: f64| if value.is_nan() { "NaN".to_owned() } else { format!("{:x}", value.to_bits()) };
        let value = |id: &i32| match id {
            1 => Some(self.id.to_string()),
            2 => self.k.map(|value| value.to_string()),
            3 => self.s.map(str::to_owned),
            4 => self.f.map(float),
            _ => unreachable!(),
        };
        ids.iter().map(value).collect()
    }

    /// The row in the same text form as rows of batches.
    pub fn text(&self) -> String {
        texts(&[batch(&schema(), std::slice::from_ref(self))]).remove(0)
    }
}

pub fn schema() -> Schema {
    let list = ListType { element: Field::optional(7, "element", P::Int) };
    let map = MapType { key: Field::required(8, "key", P::String), value: Field::optional(9, "value", P::Int) };
    let fields = vec![
        Field::required(1, "id", P::Long),
        Field::optional(2, "k", P::Int),
        Field::optional(3, "s", P::String),
        Field::optional(4, "f", P::Double),
        Field::optional(5, "list", list),
        Field::optional(6, "map", map),
    ];
    Schema::new(0, fields).unwrap()
}

/// The columns with some ids.
pub fn some(ids: &[i32]) -> Schema {
    Schema::new(0, schema().fields().iter().filter(|field| ids.contains(&field.id)).cloned().collect()).unwrap()
}

/// Rows as a batch of some of the columns.
pub fn batch(schema: &Schema, rows: &[Row]) -> RecordBatch {
    let arrow = Arc::new(schema.to_arrow(&ToArrow::default()).unwrap());
    let column = |field: &Arc<arrow_schema::Field>| -> ArrayRef {
        match field.name().as_str() {
            "id" => Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.id))),
            "k" => Arc::new(Int32Array::from_iter(rows.iter().map(|row| row.k))),
            "s" => Arc::new(StringArray::from_iter(rows.iter().map(|row| row.s))),
            "f" => Arc::new(Float64Array::from_iter(rows.iter().map(|row| row.f))),
            "list" => Arc::new(lists(rows, field.data_type())),
            "map" => Arc::new(maps(rows, field.data_type())),
            other => panic!("{other}"),
        }
    };
    let columns = arrow.fields().iter().map(column).collect();
    RecordBatch::try_new(arrow, columns).unwrap()
}

fn lists(rows: &[Row], ty: &DataType) -> ListArray {
    let mut lists = ListBuilder::new(Int32Builder::new());
    for row in rows {
        let values = |number: u8| (0..i32::from(number)).map(|value| (value != 1).then_some(value)).collect::<Vec<_>>();
        lists.append_option(row.nested.map(values));
    }
    let DataType::List(element) = ty else { panic!("{ty}") };
    let made = lists.finish();
    ListArray::new(element.clone(), made.offsets().clone(), made.values().clone(), made.nulls().cloned())
}

/// Maps of two entries, whose order depends on whether the id is even.
fn maps(rows: &[Row], ty: &DataType) -> MapArray {
    let names = MapFieldNames { entry: "entries".to_owned(), key: "key".to_owned(), value: "value".to_owned() };
    let mut maps = MapBuilder::new(Some(names), StringBuilder::new(), Int32Builder::new());
    for row in rows {
        let mut entries =
            row.nested.map(|number| vec![("x", Some(i32::from(number))), ("y", None)]).unwrap_or_default();
        if row.id % 2 == 1 {
            entries.reverse();
        }
        for (key, value) in entries {
            maps.keys().append_value(key);
            maps.values().append_option(value);
        }
        maps.append(row.nested.is_some()).unwrap();
    }
    let DataType::Map(entries, is_sorted) = ty else { panic!("{ty}") };
    let made = maps.finish();
    let DataType::Struct(fields) = entries.data_type() else { panic!("{ty}") };
    let pairs = arrow_array::StructArray::new(fields.clone(), made.entries().columns().to_vec(), None);
    MapArray::new(entries.clone(), made.offsets().clone(), pairs, made.nulls().cloned(), *is_sorted)
}

/// The rows of batches as text; maps with their entries in order.
pub fn texts(batches: &[RecordBatch]) -> Vec<String> {
    let options = FormatOptions::new().with_null("null");
    let of_batch = |batch: &RecordBatch| {
        let columns: Vec<ArrayRef> = batch
            .columns()
            .iter()
            .map(|column| icefield_table::read::changelog::comparable::comparable(column).unwrap())
            .collect();
        let formatters: Vec<_> =
            columns.iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
        let text = |row| formatters.iter().map(|one| one.value(row).to_string()).collect::<Vec<_>>().join(" | ");
        (0..batch.num_rows()).map(text).collect::<Vec<_>>()
    };
    batches.iter().flat_map(of_batch).collect()
}

/// The number of occurrences of each text.
pub fn counted(texts: impl IntoIterator<Item = String>) -> BTreeMap<String, i64> {
    let mut counts = BTreeMap::new();
    texts.into_iter().for_each(|text| *counts.entry(text).or_default() += 1);
    counts
}
