//! "Column Projection" with random nested schemas, their evolution and all file formats: every value is the one of a
//! naive evaluator.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, FieldRef, Fields, Schema as ArrowSchema, SchemaRef};
use arrow_select::concat::concat_batches;
use icefield_format::expr::{BoundExpr, Comparison, Expression, Literal, Predicate, Term, Test};
use icefield_format::spec::PartitionSpec;
use icefield_format::types::arrow::ToArrow;
use icefield_format::types::{
    Field, ListType, MapType, NameMapping, PrimitiveType as P, Schema, StructType, Type, promote,
};
use icefield_format::value::Value;
use icefield_table::arrow::constant;
use icefield_table::plan::projection::wanted::Wanted;
use icefield_table::plan::tasks::ReadTask;
use icefield_table::plan::tasks::part::{FilePart, FilePartition, PlannedSpec};
use icefield_table::read::{task, wire};
use icefield_table::storage::{Existing, Storage};
use parquet::arrow::ArrowWriter;
use proptest::prelude::*;

use crate::files::{FORMATS, write_file};

/// A source of random choices.
struct Draw {
    state: u64,
    next_id: i32,
}

impl Draw {
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// True with a probability of `chance` percent.
    fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    fn id(&mut self) -> i32 {
        self.next_id += 1;
        self.next_id
    }

    fn primitive(&mut self) -> P {
        let all = [
            P::Boolean,
            P::Int,
            P::Int,
            P::Long,
            P::Float,
            P::Float,
            P::Double,
            P::Decimal { precision: 5, scale: 2 },
            P::Decimal { precision: 17, scale: 3 },
            P::Date,
            P::Date,
            P::Time,
            P::Timestamp,
            P::Timestamptz,
            P::String,
            P::Uuid,
            P::Fixed(3),
            P::Binary,
        ];
        all[self.below(all.len())].clone()
    }

    fn ty(&mut self, depth: usize) -> Type {
        match if depth == 0 { 9 } else { self.below(10) } {
            0..=2 => self.structure(depth - 1).into(),
            3 | 4 => {
                let id = self.id();
                ListType::optional(id, self.ty(depth - 1)).into()
            }
            5 => {
                let (key, value) = (self.id(), self.id());
                let key_type = [P::String, P::Int, P::Date][self.below(3)].clone();
                MapType::optional(key, key_type, value, self.ty(depth - 1)).into()
            }
            _ => self.primitive().into(),
        }
    }

    fn structure(&mut self, depth: usize) -> StructType {
        let fields = (0..1 + self.below(3)).map(|_| {
            let id = self.id();
            let ty = self.ty(depth);
            Field { required: self.percent(20), ..Field::optional(id, format!("f{id}"), ty) }
        });
        StructType::new(fields.collect())
    }

    fn primitive_value(&mut self, ty: &P) -> Value {
        let small = self.below(2000) as i64;
        match ty {
            P::Boolean => Value::Boolean(small % 2 == 0),
            P::Int | P::Date => Value::Int(small as i32 * 7),
            P::Long | P::Timestamp | P::Timestamptz | P::TimestampNs | P::Time => Value::Long(small * 1_000_003),
            P::Float => Value::Float(small as f32 / 8.0),
            P::Double => Value::Double(small as f64 / 16.0),
            P::Decimal { .. } => Value::Decimal(i128::from(small) * 11),
            P::String => Value::String(format!("s{}", small % 5)),
            P::Uuid => Value::Uuid([small as u8; 16]),
            P::Fixed(length) => Value::Binary(vec![small as u8; *length as usize]),
            P::Binary => Value::Binary(small.to_le_bytes()[..(small % 4) as usize].to_vec()),
            other => panic!("no values of {other}"),
        }
    }

    fn value(&mut self, ty: &Type) -> Value {
        match ty {
            Type::Primitive(ty) => self.primitive_value(ty),
            Type::Struct(ty) => Value::Struct(ty.fields.iter().map(|field| self.field_value(field)).collect()),
            Type::List(ty) => Value::List((0..self.below(4)).map(|_| self.field_value(&ty.element)).collect()),
            Type::Map(ty) => {
                let key = |at: usize| match ty.key.ty.as_primitive().unwrap() {
                    P::String => Value::String(format!("k{at}")),
                    _ => Value::Int(at as i32),
                };
                Value::Map((0..self.below(4)).map(|at| (key(at), self.field_value(&ty.value))).collect())
            }
            Type::Variant => unreachable!("not drawn"),
        }
    }

    fn field_value(&mut self, field: &Field) -> Option<Value> {
        (field.required || !self.percent(25)).then(|| self.value(&field.ty))
    }

    fn promoted(&mut self, ty: &P) -> P {
        match ty {
            P::Int => P::Long,
            P::Float => P::Double,
            P::Decimal { precision, scale } => P::Decimal { precision: precision + 4, scale: *scale },
            P::Date if self.percent(50) => P::Timestamp,
            P::Date => P::TimestampNs,
            other => other.clone(),
        }
    }

    fn evolved_type(&mut self, ty: &Type) -> Type {
        match ty {
            Type::Primitive(ty) if self.percent(50) => self.promoted(ty).into(),
            Type::Struct(ty) => self.evolved(ty).into(),
            Type::List(ty) => {
                let element = Field { ty: self.evolved_type(&ty.element.ty), ..ty.element.clone() };
                Type::List(Arc::new(ListType { element }))
            }
            Type::Map(ty) => {
                let key = Field { ty: self.evolved_type(&ty.key.ty), ..ty.key.clone() };
                let value = Field { ty: self.evolved_type(&ty.value.ty), ..ty.value.clone() };
                Type::Map(Arc::new(MapType { key, value }))
            }
            other => other.clone(),
        }
    }

    fn evolved(&mut self, ty: &StructType) -> StructType {
        let mut fields: Vec<Field> = Vec::new();
        for field in &ty.fields {
            if self.percent(15) {
                continue;
            }
            let name = if self.percent(20) { format!("renamed{}", field.id) } else { field.name.clone() };
            let required = field.required && !self.percent(30);
            fields.push(Field { name, required, ty: self.evolved_type(&field.ty), ..field.clone() });
        }
        while fields.is_empty() || self.percent(40) {
            fields.push(self.added());
        }
        for at in (1..fields.len()).rev() {
            let other = self.below(at + 1);
            fields.swap(at, other);
        }
        StructType { fields }
    }

    /// A field that files with the old schema lack; a required one has a default.
    fn added(&mut self) -> Field {
        let id = self.id();
        let ty = if self.percent(40) { self.with_defaults().into() } else { Type::Primitive(self.primitive()) };
        let mut field = Field::optional(id, format!("new{id}"), ty);
        if !field.ty.is_nested() && self.percent(50) {
            field.initial_default = Some(self.value(&field.ty));
            field.required = self.percent(50);
        }
        field
    }

    fn with_defaults(&mut self) -> StructType {
        StructType::new((0..1 + self.below(2)).map(|_| self.added()).collect())
    }
}

/// The values of the new schema's columns, from a file and its partition, by the rules of the specification.
struct Naive {
    partition: BTreeMap<i32, Option<Value>>,
}

impl Naive {
    fn structure(&self, wanted: &StructType, stored: &StructType, row: &[Option<Value>]) -> Vec<Option<Value>> {
        wanted.fields.iter().map(|field| self.field(field, stored, row)).collect()
    }

    fn field(&self, field: &Field, stored: &StructType, row: &[Option<Value>]) -> Option<Value> {
        if let Some(value) = self.partition.get(&field.id) {
            return value.clone();
        }
        match stored.fields.iter().position(|other| other.id == field.id) {
            Some(at) => row[at].as_ref().map(|value| self.converted(value, &stored.fields[at].ty, &field.ty)),
            None => self.absent(field),
        }
    }

    fn absent(&self, field: &Field) -> Option<Value> {
        match (&field.ty, &field.initial_default) {
            (Type::Struct(ty), None) if self.has_value(ty) => {
                Some(Value::Struct(self.structure(ty, &StructType::default(), &[])))
            }
            (_, default) => default.clone(),
        }
    }

    fn has_value(&self, ty: &StructType) -> bool {
        ty.fields.iter().any(|field| match &field.ty {
            Type::Struct(inner) => self.has_value(inner),
            _ => self.partition.get(&field.id).is_some_and(Option::is_some),
        })
    }

    fn converted(&self, value: &Value, from: &Type, to: &Type) -> Value {
        match (value, from, to) {
            (Value::Struct(values), Type::Struct(from), Type::Struct(to)) => {
                Value::Struct(self.structure(to, from, values))
            }
            (Value::List(items), Type::List(from), Type::List(to)) => {
                let item = |item: &Value| self.converted(item, &from.element.ty, &to.element.ty);
                Value::List(items.iter().map(|one| one.as_ref().map(item)).collect())
            }
            (Value::Map(pairs), Type::Map(from), Type::Map(to)) => {
                let pair = |(key, value): &(Value, Option<Value>)| {
                    let value = value.as_ref().map(|value| self.converted(value, &from.value.ty, &to.value.ty));
                    (self.converted(key, &from.key.ty, &to.key.ty), value)
                };
                Value::Map(pairs.iter().map(pair).collect())
            }
            (value, from, Type::Primitive(to)) => promote(value, from, to).unwrap(),
            _ => panic!("{value:?} of {from} as {to}"),
        }
    }
}

/// Primitive fields that can be sources of partitions and filters: those only inside structs.
fn sources(fields: &[Field], out: &mut Vec<Field>) {
    for field in fields {
        match &field.ty {
            Type::Struct(ty) => sources(&ty.fields, out),
            Type::Primitive(_) => out.push(field.clone()),
            _ => {}
        }
    }
}

fn batch(schema: &Schema, rows: &[Vec<Option<Value>>]) -> RecordBatch {
    let arrow = Arc::new(schema.to_arrow(&ToArrow::default()).unwrap());
    let columns = schema.fields().iter().zip(arrow.fields()).enumerate().map(|(at, (field, target))| {
        let values: Vec<Option<&Value>> = rows.iter().map(|row| row[at].as_ref()).collect();
        constant::array(&values, &field.ty, target.data_type()).unwrap()
    });
    let columns: Vec<ArrayRef> = columns.collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(arrow, columns, &options).unwrap()
}

/// Writes a Parquet file without ids; returns its size.
fn write_bare(storage: &Storage, path: &str, groups: &[RecordBatch]) -> u64 {
    fn bare(field: &FieldRef) -> FieldRef {
        let ty = match field.data_type() {
            DataType::Struct(fields) => DataType::Struct(fields.iter().map(bare).collect()),
            DataType::List(element) => DataType::List(bare(element)),
            DataType::Map(entries, sorted) => DataType::Map(bare(entries), *sorted),
            other => other.clone(),
        };
        Arc::new(arrow_schema::Field::new(field.name(), ty, field.is_nullable()))
    }
    let schema: SchemaRef =
        Arc::new(ArrowSchema::new(groups[0].schema_ref().fields().iter().map(bare).collect::<Fields>()));
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, schema.clone(), None).unwrap();
    for group in groups {
        let columns = group.columns().iter().zip(schema.fields());
        let columns = columns.map(|(column, field)| arrow_cast::cast(column, field.data_type()).unwrap()).collect();
        writer.write(&RecordBatch::try_new(schema.clone(), columns).unwrap()).unwrap();
        writer.flush().unwrap();
    }
    writer.close().unwrap();
    let size = bytes.len() as u64;
    storage.put(path, bytes, Existing::Replace).unwrap();
    size
}

fn filter(draw: &mut Draw, schema: &Schema, rows: &[Vec<Option<Value>>]) -> BoundExpr {
    let mut fields = Vec::new();
    sources(schema.fields(), &mut fields);
    if fields.is_empty() || draw.percent(30) {
        return Expression::True;
    }
    let field = fields[draw.below(fields.len())].clone();
    let ty = field.ty.as_primitive().unwrap().clone();
    let path = schema.accessor(field.id).unwrap().to_vec();
    let known = |row: &Vec<Option<Value>>| {
        let mut value = row.get(path[0]).cloned().flatten();
        for at in &path[1..] {
            value = match value {
                Some(Value::Struct(inner)) => inner[*at].clone(),
                _ => None,
            };
        }
        value
    };
    let values: Vec<Value> = rows.iter().filter_map(known).collect();
    let value = if values.is_empty() { draw.primitive_value(&ty) } else { values[draw.below(values.len())].clone() };
    let literal = Literal::new(ty, value).unwrap();
    let test = match draw.below(6) {
        0 => Test::IsNull,
        1 => Test::NotNull,
        2 => Test::Compare(Comparison::NotEq, literal),
        3 => Test::Compare(Comparison::GtEq, literal),
        _ => Test::Compare(Comparison::Eq, literal),
    };
    let term = Term::column(schema.column_name(field.id).unwrap());
    Expression::Predicate(Predicate { term, test }).bind(schema, true).unwrap()
}

fn partition(draw: &mut Draw, schema: &Schema) -> (FilePartition, BTreeMap<i32, Option<Value>>) {
    let mut fields = Vec::new();
    sources(schema.fields(), &mut fields);
    fields.retain(|field| !matches!(field.ty.as_primitive(), Some(P::Float | P::Double)));
    if fields.is_empty() || draw.percent(50) {
        return (FilePartition::unpartitioned(), BTreeMap::new());
    }
    let field = fields[draw.below(fields.len())].clone();
    let value = draw.field_value(&field);
    let spec = Arc::new(PartitionSpec::from_text(1, &[schema.column_name(field.id).unwrap()], schema).unwrap());
    let tuple = Field::optional(spec.fields[0].field_id, "p", field.ty.clone());
    let spec = Arc::new(PlannedSpec { spec, partition_type: StructType::new(vec![tuple]) });
    (FilePartition { spec, tuple: vec![value.clone()] }, BTreeMap::from([(field.id, value)]))
}

/// Writes a file with a random schema, and reads it with an evolved schema.
fn story(seed: u64) {
    static STORIES: AtomicU64 = AtomicU64::new(0);
    let mut draw = Draw { state: seed, next_id: 0 };
    let old = draw.structure(3);
    let new = draw.evolved(&old);
    let old_schema = Schema::new(0, old.fields.clone()).unwrap();
    let new_schema = Schema::new(1, new.fields.clone()).unwrap();
    let rows: Vec<Vec<Option<Value>>> =
        (0..draw.below(30)).map(|_| old.fields.iter().map(|field| draw.field_value(field)).collect()).collect();
    let groups: Vec<RecordBatch> = match rows.is_empty() {
        true => vec![batch(&old_schema, &rows)],
        false => rows.chunks(1 + draw.below(20)).map(|some| batch(&old_schema, some)).collect(),
    };
    let (partition, values) = partition(&mut draw, &new_schema);
    let naive = Naive { partition: values };
    let seen: Vec<Vec<Option<Value>>> = rows.iter().map(|row| naive.structure(&new, &old, row)).collect();
    let storage = Storage::default();
    for format in 0..4 {
        let is_bare = format == 3;
        let name = FORMATS[format % 3];
        let path = format!("memory://projection-laws/{}.{name}", STORIES.fetch_add(1, Ordering::Relaxed));
        let size = match is_bare {
            true => write_bare(&storage, &path, &groups),
            false => write_file(&storage, &path, &Arc::new(old_schema.clone()), &groups, format),
        };
        let residual = filter(&mut draw, &new_schema, &seen);
        let chosen: HashSet<i32> = new_schema
            .ids()
            .iter()
            .copied()
            .filter(|id| new_schema.accessor(*id).is_some() && draw.percent(40))
            .collect();
        let projection = if draw.percent(40) { new_schema.clone() } else { new_schema.select_ids(&chosen).unwrap() };
        let wanted = Wanted {
            name_mapping: is_bare.then(|| Arc::new(NameMapping::of_schema(&old_schema).unwrap())),
            ..Wanted::new(Arc::new(new_schema.clone()), Arc::new(projection.clone()))
        };
        let part = FilePart {
            key_metadata: None,
            path,
            format: name.to_owned(),
            size,
            start: 0,
            length: size,
            record_count: rows.len() as i64,
            partition: partition.clone(),
            sequence_number: Some(1),
            first_row_id: None,
            deletes: Default::default(),
            residual: residual.clone(),
            change: None,
            deleted_by: Default::default(),
        };
        let task = ReadTask { wanted: Arc::new(wanted), parts: vec![part] };
        let task = wire::from_bytes(&wire::to_bytes(&task).unwrap()).unwrap();
        let output = task.wanted.arrow().unwrap();
        let batches: Vec<RecordBatch> = task::rows(task, &storage, None)
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap_or_else(|error| panic!("seed {seed}, {name}: {error}\nold {old_schema}\nnew {new_schema}"));
        let found = concat_batches(&output, &batches).unwrap();
        // The projection is a part of the new schema: apply the same rules to the rows of the whole schema.
        let whole = Naive { partition: BTreeMap::new() };
        let expected: Vec<Vec<Option<Value>>> = seen
            .iter()
            .filter(|row| residual.matches(row))
            .map(|row| whole.structure(projection.as_struct(), new_schema.as_struct(), row))
            .collect();
        let expected = batch(&projection, &expected);
        assert_eq!(found.num_rows(), expected.num_rows(), "seed {seed}, {name}, {residual:?}");
        for (at, field) in projection.fields().iter().enumerate() {
            let context = || format!("seed {seed}, {name}, bare {is_bare}: {field:?}\nold {old_schema}\n{residual:?}");
            assert_eq!(found.column(at), expected.column(at), "{}", context());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn columns_are_what_the_rules_say(seed in any::<u64>()) {
        story(seed);
    }
}

/// Required fields in required structs, within optional ones that are null.
#[test]
fn required_fields_are_null_where_a_struct_around_them_is() {
    for seed in [1_250_471_210_276_676_279, 5_421_692_344_191_655_571, 8_834_836_454_946_897_993] {
        story(seed);
    }
}
