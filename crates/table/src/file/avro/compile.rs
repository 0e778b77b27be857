//! Compiles how to read the fields of a record into the columns of some leaves.
//!
//! The fuzz target `avro_rows` compiles this file and its dependencies alone, so it uses nothing else of this crate
//! except the numbering of leaves.

use arrow_schema::{DataType, FieldRef, Fields};
use icefield_format::avro::{RecordSchema, Schema, Skip};

use super::super::leaves::count;
use super::column::{ColumnBuilder, Step};
use super::schema::map_pair;

/// The steps that read some ascending leaves of a file's columns; the error names a column whose type has no
/// equivalent in Arrow or Iceberg.
pub(crate) fn steps(record: &RecordSchema, columns: &Fields, leaves: &[usize]) -> Result<Vec<Step>, String> {
    let mut compiler = Compiler { leaves, next: 0, unreadable: None };
    let steps = compiler.steps(record.fields.iter().map(|field| &field.schema).zip(columns));
    compiler.unreadable.map_or(Ok(steps), Err)
}

/// Walks the writer's schema and the columns in parallel, numbering leaves.
struct Compiler<'a> {
    leaves: &'a [usize],
    next: usize,
    unreadable: Option<String>,
}

impl Compiler<'_> {
    fn steps<'s>(&mut self, fields: impl Iterator<Item = (&'s Schema, &'s FieldRef)>) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut skipped = Vec::new();
        for (schema, field) in fields {
            match self.column(schema, field) {
                None => skipped.push(Skip::of(schema)),
                Some(column) => {
                    push_skip(&mut steps, &mut skipped);
                    steps.push(Step::Read(column));
                }
            }
        }
        push_skip(&mut steps, &mut skipped);
        steps
    }

    fn column(&mut self, schema: &Schema, field: &FieldRef) -> Option<ColumnBuilder> {
        let leaves = self.next..self.next + count(&Fields::from(vec![field.clone()]));
        let first = self.leaves.partition_point(|leaf| *leaf < leaves.start);
        if self.leaves.get(first).is_none_or(|leaf| !leaves.contains(leaf)) {
            self.next = leaves.end;
            return None;
        }
        let column = ColumnBuilder::new(schema, field.data_type(), &mut |schema, ty| self.inside(schema, ty));
        if column.is_none() {
            self.unreadable.get_or_insert_with(|| field.name().clone());
        }
        self.next = leaves.end;
        column
    }

    /// How to read the fields directly inside.
    fn inside(&mut self, schema: &Schema, ty: &DataType) -> Vec<Step> {
        const KEY: Schema = Schema::String(None);
        match (schema, ty) {
            (Schema::Record(record), DataType::Struct(fields)) => {
                self.steps(record.fields.iter().map(|field| &field.schema).zip(fields))
            }
            (Schema::Map(map), DataType::Struct(pair)) => self.steps([&KEY, &map.values].into_iter().zip(pair)),
            (Schema::Array(array), DataType::List(element)) => {
                let element = (map_pair(array).is_none()).then_some((&array.items, element));
                self.steps(element.into_iter())
            }
            _ => Vec::new(),
        }
    }
}

fn push_skip(steps: &mut Vec<Step>, skipped: &mut Vec<Skip>) {
    if !skipped.is_empty() {
        steps.push(Step::Skip(Skip::sequence(skipped.drain(..))));
    }
}
