//! Values of a path, read only from the columns that may contain them, equal those of the complete variants.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use icefield_format::expr::Extract;
use icefield_format::types::arrow::ToArrow;
use icefield_format::types::{Field, PrimitiveType, Schema, Type};
use icefield_format::value::Value;
use icefield_format::value::variant::path::Step;
use icefield_format::value::variant::{Column, Node, Path, Variant};
use icefield_table::arrow::constant::array;
use icefield_table::file::leaves::projected;
use icefield_table::file::parquet::read::ParquetFile;
use icefield_table::file::parquet::variant::value::with_nulls;
use icefield_table::file::{DataFileReader, Request};
use icefield_table::plan::projection::variant_paths::VariantPath;
use icefield_table::read::columns::{Constants, Rules, leaves};
use icefield_table::read::reshape::Reshape;

/// The column of a path in the variants with id 1.
struct Inside(VariantPath);

impl Constants for Inside {
    fn identity(&self, _: i32) -> Option<Option<Value>> {
        None
    }

    fn variant_path(&self, id: i32) -> Option<&VariantPath> {
        (id == 2).then_some(&self.0)
    }
}

/// Reads the values of a path in the column with id 1; also returns the names of the leaves that were read.
pub fn read_values(file: &ParquetFile, extract: &Extract) -> (ArrayRef, Vec<String>) {
    let schema = Schema::new(0, vec![Field::optional(1, "v", Type::Variant)]).unwrap();
    let constants = Inside(VariantPath::new(&schema, 1, extract.clone()).unwrap());
    let rules = Rules { path: "variants.parquet", constants: &constants };
    let column = Field::optional(2, "value", Type::Primitive(extract.ty().clone()));
    let output = Schema::new(0, vec![column.clone()]).unwrap().to_arrow(&ToArrow::default()).unwrap();
    let wanted = [(column, output.fields()[0].clone())];
    let fields = with_nulls(file.fields(), &file.nulls());
    let marks = leaves(&rules.plan(&wanted, &fields).unwrap(), &fields);
    let planned = rules.plan(&wanted, &projected(&fields, &marks)).unwrap();
    let reshape = Reshape::new("variants.parquet", Arc::new(output), planned);
    let batches = file.decode((0..file.metadata().num_row_groups()).collect(), &Request::all(marks.clone())).unwrap();
    let columns = batches.map(|batch| reshape.apply(&batch.unwrap()).unwrap().column(0).clone()).collect::<Vec<_>>();
    let columns: Vec<&dyn Array> = columns.iter().map(AsRef::as_ref).collect();
    let schema = file.metadata().file_metadata().schema_descr();
    let names = marks.iter().map(|leaf| schema.column(*leaf).path().string()).collect();
    (arrow_select::concat::concat(&columns).unwrap(), names)
}

/// Checks all paths in the variants, and some that do not exist, as every type.
pub fn check(file: &ParquetFile, whole: &ArrayRef) {
    let mut paths: BTreeSet<String> =
        ["$", "$.missing", "$.missing.a", "$[0]", "$[7]", "$[0].tags[1]"].map(str::to_owned).into();
    let column = Column::new(whole).unwrap();
    for row in 0..column.len() {
        if let Some(variant) = column.get(row).unwrap() {
            collect(variant, &mut Vec::new(), &mut paths);
        }
    }
    for path in paths.iter().take(40) {
        for ty in types() {
            let extract = Extract::new(Path::parse(path).unwrap(), ty).unwrap();
            let (found, _) = read_values(file, &extract);
            let of_row = |row| column.get(row).unwrap().and_then(|variant| extract.of(variant).unwrap());
            let wanted: Vec<Option<Value>> = (0..column.len()).map(of_row).collect();
            let wanted: Vec<Option<&Value>> = wanted.iter().map(Option::as_ref).collect();
            let wanted = array(&wanted, &Type::Primitive(extract.ty().clone()), found.data_type()).unwrap();
            assert_eq!(&found, &wanted, "{path} as {}", extract.ty());
        }
    }
}

fn collect(variant: Variant<'_>, steps: &mut Vec<Step>, paths: &mut BTreeSet<String>) {
    paths.insert(Path::new(steps.clone()).to_string());
    let inner: Vec<(Step, Variant<'_>)> = match variant.node() {
        Ok(Node::Object(object)) => {
            object.fields().map(Result::unwrap).map(|(name, value)| (Step::Field(name.to_owned()), value)).collect()
        }
        Ok(Node::Array(elements)) => {
            elements.iter().map(Result::unwrap).enumerate().map(|(at, value)| (Step::Element(at), value)).collect()
        }
        _ => Vec::new(),
    };
    for (step, value) in inner {
        steps.push(step);
        collect(value, steps, paths);
        steps.pop();
    }
}

fn types() -> Vec<PrimitiveType> {
    let names = "boolean int long float double date time timestamp timestamptz timestamp_ns timestamptz_ns string uuid binary \
                 fixed[3] decimal(9,2) decimal(38,2)";
    names.split_whitespace().map(|name| PrimitiveType::parse(name).unwrap()).collect()
}
