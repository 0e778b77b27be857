//! Sort orders, and their checks against a schema ("Sorting").

use std::fmt;

use super::partition::{Sources, check_transform};
use super::{NullOrder, SortDirection, SortField, SortOrder};
use crate::types::{Schema, Type};
use crate::{Error, Result};

/// Id of the unsorted order.
pub const UNSORTED_ORDER_ID: i32 = 0;

impl SortOrder {
    /// The order of unsorted tables.
    pub fn unsorted() -> Self {
        Self::default()
    }

    /// Whether there is no field to sort by.
    pub fn is_unsorted(&self) -> bool {
        self.fields.is_empty()
    }

    /// Whether rows in this order are also in the other one.
    pub fn satisfies(&self, other: &Self) -> bool {
        other.fields.len() <= self.fields.len() && self.fields.iter().zip(&other.fields).all(|(a, b)| a.satisfies(b))
    }

    /// Whether both have the same fields; ids are ignored.
    pub fn same_order(&self, other: &Self) -> bool {
        self.fields == other.fields
    }

    /// Checks that exactly the unsorted order has id 0.
    pub fn check_id(&self) -> Result<()> {
        match (self.is_unsorted(), self.order_id == UNSORTED_ORDER_ID) {
            (true, false) => Err(Error::invalid(format!("an unsorted order has id 0, not {}", self.order_id))),
            (false, true) => Err(Error::invalid("sort order id 0 is reserved for the unsorted order")),
            _ => Ok(()),
        }
    }

    /// Checks the order against the schema of new files.
    pub fn check(&self, schema: &Schema) -> Result<()> {
        for field in &self.fields {
            for id in &field.source_ids {
                let Some(ty) = schema.find_type(*id) else {
                    return Err(Error::unfit(format!("sort field {field}: there is no column {id}")));
                };
                field.check_source_type(*id, ty)?;
            }
        }
        Ok(())
    }
}

impl SortField {
    /// Whether rows sorted by this field are also sorted by the other one.
    fn satisfies(&self, other: &Self) -> bool {
        self.source_ids == other.source_ids
            && self.direction == other.direction
            && self.null_order == other.null_order
            && self.transform.satisfies_order_of(&other.transform)
    }

    fn check_source_type(&self, id: i32, ty: &Type) -> Result<()> {
        check_transform(&self.transform, ty, &format_args!("sort field {self}"))?;
        match ty.as_primitive() {
            Some(_) => Ok(()),
            None => Err(Error::unfit(format!("sort field {self}: column {id} is not of a primitive type: {ty}"))),
        }
    }
}

impl fmt::Display for SortField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = match self.direction {
            SortDirection::Ascending => "ASC",
            SortDirection::Descending => "DESC",
        };
        let nulls = match self.null_order {
            NullOrder::First => "NULLS FIRST",
            NullOrder::Last => "NULLS LAST",
        };
        write!(f, "{}({}) {direction} {nulls}", self.transform, Sources(&self.source_ids))
    }
}

impl fmt::Display for SortOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::write_fields(f, &self.fields)
    }
}
