//! The columns that both sides of a comparison have, in one type.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field as ArrowField, Schema as ArrowSchema, SchemaRef};
use icefield_format::types::arrow::{FromArrow, ToArrow};
use icefield_format::types::{Field, ListType, MapType, PrimitiveType, Schema, StructType, Type, is_promotion_allowed};

use crate::arrow::conform::conform;
use crate::error::{Error, Result};
use crate::write::Matching;
use crate::write::conform::Conform;
use crate::write::intake::Intake;

/// Names of the columns that describe a change.
pub(super) const CHANGE: &str = "_change";
pub(super) const CHANGED_COLUMNS: &str = "_changed_columns";

/// The common columns of two sides.
#[derive(Debug)]
pub(super) struct Columns {
    schema: Schema,
    /// The columns as Arrow.
    pub(super) arrow: SchemaRef,
    /// Names of columns that one side lacks, so that they are not compared.
    pub(super) only: [Vec<String>; 2],
}

impl Columns {
    /// Finds columns by their names. Both must have one type, or one type must be promoted to the other.
    ///
    /// # Errors
    /// No common column, and types that cannot be compared.
    pub(super) fn new(sides: [&ArrowSchema; 2]) -> Result<Self> {
        let [left, right] = sides;
        let lacks = |schema: &ArrowSchema, other: &ArrowSchema| -> Vec<String> {
            let all = schema.fields().iter().map(|field| field.name().clone());
            all.filter(|name| other.field_with_name(name).is_err()).collect()
        };
        let (mut fields, mut last_id) = (Vec::new(), 0);
        for field in right.fields() {
            let name = field.name();
            let Ok(other) = left.field_with_name(name) else { continue };
            if [CHANGE, CHANGED_COLUMNS].contains(&name.as_str()) {
                return Err(Error::column(name, "has the name of a column of the difference; select other columns"));
            }
            let (one, two) = (type_of(other)?, type_of(field)?);
            let ty = common(&one, &two).ok_or_else(|| {
                Error::column(
                    name,
                    format!(
                        "is of type {one} on one side and of type {two} on the other: cast it, or select other columns"
                    ),
                )
            })?;
            // A column of nulls only on both sides has nothing to compare.
            if !matches!(ty, Type::Primitive(PrimitiveType::Unknown)) {
                last_id += 1;
                let id = last_id;
                fields.push(Field::optional(id, name, ty.with_fresh_ids(&mut last_id)?));
            }
        }
        if fields.is_empty() {
            return Err(Error::invalid("both sides have no column in common that could be compared"));
        }
        let schema = Schema::new(0, fields)?;
        let plain = schema.to_arrow(&ToArrow::default())?;
        Ok(Self { schema, arrow: Arc::new(plain), only: [lacks(left, right), lacks(right, left)] })
    }

    /// The places of key columns.
    ///
    /// # Errors
    /// A column that is not common.
    pub(super) fn places(&self, names: &[String]) -> Result<Vec<usize>> {
        let place = |name: &String| {
            self.arrow.index_of(name).map_err(|_| {
                Error::column(name, "is a column of the key, and not one that both sides have and that can be compared")
            })
        };
        let mut places = names.iter().map(place).collect::<Result<Vec<_>>>()?;
        places.dedup();
        if places.is_empty() { Err(Error::invalid("keys: name at least one column")) } else { Ok(places) }
    }

    /// Converts the batches of a side to the common columns.
    pub(super) fn intake(&self, side: &ArrowSchema) -> Result<(Intake, Vec<usize>, SchemaRef)> {
        let place = |field: &Arc<ArrowField>| {
            side.index_of(field.name()).map_err(|error| Error::Internal(format!("a common column: {error}")))
        };
        let places = self.arrow.fields().iter().map(place).collect::<Result<Vec<_>>>()?;
        let given: Vec<ArrowField> =
            places.iter().map(|place| side.field(*place).clone().with_nullable(true)).collect();
        let given: SchemaRef = Arc::new(ArrowSchema::new(given));
        Ok((Intake::new(Conform::new(&self.schema, &given, Matching::default())?, None, None), places, given))
    }

    /// The common columns of a batch.
    pub(super) fn of(
        &self,
        batch: &RecordBatch,
        (intake, places, given): &mut (Intake, Vec<usize>, SchemaRef),
    ) -> Result<RecordBatch> {
        let columns: Vec<ArrayRef> = places.iter().filter_map(|place| batch.columns().get(*place)).cloned().collect();
        let picked = RecordBatch::try_new(given.clone(), columns).map_err(internal)?;
        let stored = intake.prepare(&picked)?.chunk;
        let pairs = stored.columns().iter().zip(self.arrow.fields());
        let columns = pairs.map(|(column, field)| conform(column, field.data_type())).collect::<Result<Vec<_>>>()?;
        RecordBatch::try_new(self.arrow.clone(), columns).map_err(internal)
    }

    /// The columns of the difference.
    pub(super) fn output(&self) -> SchemaRef {
        let item = ArrowField::new("item", DataType::Utf8, false);
        let mut fields = vec![
            Arc::new(ArrowField::new(CHANGE, DataType::Utf8, false)),
            Arc::new(ArrowField::new(CHANGED_COLUMNS, DataType::List(Arc::new(item)), true)),
        ];
        fields.extend(self.arrow.fields().iter().cloned());
        Arc::new(ArrowSchema::new(fields))
    }
}

fn type_of(field: &ArrowField) -> Result<Type> {
    let ty =
        FromArrow::for_version(3).type_of(field).map_err(|error| Error::column(field.name(), error.to_string()))?;
    if has_variant(&ty) {
        return Err(Error::column(
            field.name(),
            "has variants, which are not compared by value: select other columns, or values inside the variants",
        ));
    }
    Ok(ty)
}

fn has_variant(ty: &Type) -> bool {
    match ty {
        Type::Struct(inner) => inner.fields.iter().any(|field| has_variant(&field.ty)),
        Type::List(list) => has_variant(&list.element.ty),
        Type::Map(map) => has_variant(&map.key.ty) || has_variant(&map.value.ty),
        Type::Variant => true,
        Type::Primitive(_) => false,
    }
}

/// The type that both fit, nested fields matched by name and nullable; nested ids are those of `two`.
fn common(one: &Type, two: &Type) -> Option<Type> {
    let of_fields = |one: &Field, two: &Field| -> Option<Field> {
        Some(Field::optional(two.id, two.name.clone(), common(&one.ty, &two.ty)?))
    };
    match (one, two) {
        (Type::Struct(one), Type::Struct(two)) if one.fields.len() == two.fields.len() => {
            let other = |field: &Field| one.fields.iter().find(|other| other.name == field.name);
            let fields = two.fields.iter().map(|field| of_fields(other(field)?, field)).collect::<Option<_>>()?;
            Some(StructType { fields }.into())
        }
        (Type::List(one), Type::List(two)) => Some(ListType { element: of_fields(&one.element, &two.element)? }.into()),
        (Type::Map(one), Type::Map(two)) => {
            let key = Field { required: true, ..of_fields(&one.key, &two.key)? };
            Some(MapType { key, value: of_fields(&one.value, &two.value)? }.into())
        }
        (one, Type::Primitive(to)) if is_promotion_allowed(one, to, 3) => Some(two.clone()),
        (Type::Primitive(to), two) if is_promotion_allowed(two, to, 3) => Some(one.clone()),
        // Nulls without a type beside a nested type.
        (Type::Primitive(PrimitiveType::Unknown), nested) | (nested, Type::Primitive(PrimitiveType::Unknown)) => {
            Some(nested.clone())
        }
        _ => None,
    }
}

fn internal(error: arrow_schema::ArrowError) -> Error {
    Error::Internal(format!("rows of a comparison: {error}"))
}
