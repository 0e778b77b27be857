//! Which schema changes the rows to be written need ("Schema Evolution"): missing columns, and types that may be
//! promoted. Everything else is cast during the write and needs no change.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field as ArrowField, FieldRef, Fields, Schema as ArrowSchema};

use icefield_format::types::arrow::{FromArrow, ToArrow};
use icefield_format::types::{Field, Schema, Type, is_promotion_allowed};

use super::conform::without_nameless_index;
use crate::error::Result;

/// The schema to unite with a table's columns, so that these rows can be written.
///
/// It uses the table's types, unless one of the two types may be promoted to the other.
pub fn asked_by(rows: &ArrowSchema, table: &Schema, format_version: u8) -> Result<Schema> {
    let asking = Asking { options: FromArrow::for_version(format_version) };
    let rows = without_nameless_index(rows);
    let fields = asking.fields(table.fields(), rows.fields());
    Ok(Schema::from_arrow(&ArrowSchema::new(fields), &asking.options)?)
}

struct Asking {
    options: FromArrow,
}

impl Asking {
    fn fields(&self, table: &[Field], rows: &Fields) -> Fields {
        let known: HashMap<&str, &Field> = table.iter().map(|field| (field.name.as_str(), field)).collect();
        let asked = rows.iter().map(|given| match known.get(given.name().as_str()) {
            Some(field) => self.field(field, given),
            None => given.clone(),
        });
        asked.collect()
    }

    fn field(&self, field: &Field, given: &FieldRef) -> FieldRef {
        use DataType as D;
        let with = |data_type| Arc::new(given.as_ref().clone().with_data_type(data_type));
        match (&field.ty, given.data_type()) {
            (Type::Struct(ty), D::Struct(children)) => with(D::Struct(self.fields(&ty.fields, children))),
            (
                Type::List(list),
                D::List(element)
                | D::LargeList(element)
                | D::FixedSizeList(element, _)
                | D::ListView(element)
                | D::LargeListView(element),
            ) => with(D::List(self.field(&list.element, element))),
            (Type::Map(map), D::Map(entries, sorted)) => match entries.data_type() {
                D::Struct(pair) => {
                    let parts = [&map.key, &map.value].into_iter().zip(pair);
                    let pair = parts.map(|(field, given)| self.field(field, given)).collect();
                    let entries = entries.as_ref().clone().with_data_type(D::Struct(pair));
                    with(D::Map(Arc::new(entries), *sorted))
                }
                _ => given.clone(),
            },
            _ if self.is_promotion(field, given) => given.clone(),
            // What does not fit is refused by the write, as it is without a schema change.
            _ => self.as_in_the_table(field).map_or_else(|| given.clone(), Arc::new),
        }
    }

    /// Whether one of the two types may be promoted to the other; the union then decides the result.
    fn is_promotion(&self, field: &Field, given: &ArrowField) -> bool {
        let version = self.options.format_version;
        match (&field.ty, self.options.type_of(given)) {
            (Type::Primitive(existing), Ok(asked @ Type::Primitive(_))) => {
                let Type::Primitive(wanted) = &asked else { return false };
                is_promotion_allowed(&field.ty, wanted, version) || is_promotion_allowed(&asked, existing, version)
            }
            _ => false,
        }
    }

    /// Without its id, which another column of the rows may have.
    fn as_in_the_table(&self, field: &Field) -> Option<ArrowField> {
        ToArrow { metadata: false, ..ToArrow::default() }.field(field).ok()
    }
}
