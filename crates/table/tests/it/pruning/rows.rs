//! Pruning in data files: for both formats, reading with a filter returns exactly the matching rows.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int32Array, Int64Array,
    RecordBatch, StringArray,
};
use icefield_format::manifest::DataFile;
use icefield_format::types::PrimitiveType as P;
use icefield_format::value::Value;
use icefield_table::plan::{At, Scan};
use icefield_table::read::scan::count;
use icefield_table::storage::Storage;
use icefield_table::write::{TableWriter, WriterConfig};
use proptest::prelude::*;

use crate::pruning::draw::{Draw, choices};
use crate::pruning::filters::Filter;
use crate::pruning::laws::{FILTERS, location};
use crate::pruning::world::{Row, World, schema};

const DECIMAL: P = P::Decimal { precision: 9, scale: 2 };
pub const TYPES: [P; 12] = [
    P::Double,
    P::Float,
    P::Double,
    P::Float,
    P::Double,
    P::Float,
    P::Int,
    P::Long,
    P::Date,
    P::String,
    P::Boolean,
    DECIMAL,
];

pub fn array(ty: &P, values: &[Option<&Value>]) -> ArrayRef {
    macro_rules! collected {
        ($array:ty, $kind:path) => {
            values
                .iter()
                .map(|value| value.map(|value| if let $kind(v) = value { v.clone() } else { panic!() }))
                .collect::<$array>()
        };
    }
    match ty {
        P::Double => Arc::new(collected!(Float64Array, Value::Double)),
        P::Float => Arc::new(collected!(Float32Array, Value::Float)),
        P::Int => Arc::new(collected!(Int32Array, Value::Int)),
        P::Long => Arc::new(collected!(Int64Array, Value::Long)),
        P::Date => Arc::new(collected!(Date32Array, Value::Int)),
        P::String => Arc::new(collected!(StringArray, Value::String)),
        P::Boolean => Arc::new(collected!(BooleanArray, Value::Boolean)),
        _ => Arc::new(collected!(Decimal128Array, Value::Decimal).with_precision_and_scale(9, 2).unwrap()),
    }
}

/// Writes a file with these rows.
fn written(world: &World, storage: &Storage, location: &str, format: &str, rows: &[Row]) -> DataFile {
    let (schema, spec) = (Arc::new(schema(&world.columns, true)), Arc::new(world.specs[0].clone()));
    let properties = [("write.format.default".to_owned(), format.to_owned())].into_iter().collect();
    let config = WriterConfig { properties, ..WriterConfig::new(storage.clone(), location, schema, spec) };
    let columns = world.columns.iter().enumerate().map(|(position, column)| {
        let values: Vec<_> = rows.iter().map(|row| row[position].as_ref()).collect();
        (column.name.as_str(), array(&column.types.1, &values), !column.required)
    });
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let mut writer = TableWriter::new(config, &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap().remove(0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows_of_files_are_those_that_match(choices in choices()) {
        let mut draw = Draw::new(choices);
        let (storage, location) = (Storage::default(), location());
        let format = draw.pick(&["orc", "parquet"]);
        let mut world = World::plain(&mut draw, &TYPES);
        for place in 0..world.manifests[0].files.len() {
            let rows = &world.manifests[0].files[place].rows;
            let entry = written(&world, &storage, &location, format, rows);
            world.manifests[0].files[place].entry = entry;
        }
        let metadata = world.write(&storage, &location);
        let mut scan = Scan::new(storage, metadata, &At::default()).unwrap();
        for _ in 0..FILTERS {
            let filter = Filter::draw(&mut draw, &world, 1);
            scan.filter = filter.expr();
            let rows: Vec<&Row> = world.manifests[0].files.iter().flat_map(|file| &file.rows).collect();
            let matching = rows.iter().filter(|row| filter.matches(row)).count();
            let found = count(&scan, None).unwrap();
            prop_assert_eq!(found, matching as i64, "{} of {:?} in {}", scan.filter, rows, format);
        }
    }
}
