//! Decides what the variants of a file are shredded as: by table properties, or by their first rows.

use arrow_array::{Array, ArrayRef};
use icefield_format::metadata::properties::PARQUET_SHRED_VARIANTS_COLUMN_PREFIX;
use icefield_format::types::{Schema, Type};
use icefield_format::value::variant::infer::Observed;
use icefield_format::value::variant::shape::Fit;
use icefield_format::value::variant::{Column, Shape};

use super::options::ParquetOptions;
use super::schema::Shredded;
use crate::error::{Error, Result};
use crate::file::parquet::variant::shred::Shredding;

/// The shapes that properties give. A property of a column that the schema does not have means nothing, as with other
/// properties of columns.
pub(super) fn given(schema: &Schema, options: &ParquetOptions) -> Result<Shredded> {
    let mut found = Shredded::new();
    for (column, shape) in &options.shapes {
        let Ok(Some(field)) = schema.find_by_name(column, true) else { continue };
        let wrong = |message: String| {
            Error::invalid(format!(
                "table property '{}{column}': {message}",
                PARQUET_SHRED_VARIANTS_COLUMN_PREFIX.prefix
            ))
        };
        if field.ty != Type::Variant {
            return Err(wrong(format!("the column has the type {}, expected variant", field.ty)));
        }
        if !schema.fields().iter().any(|own| own.id == field.id) {
            return Err(wrong("only variants that are columns of the table are shredded, not those in others".into()));
        }
        found.insert(field.id, Shredding { shape: shape.clone(), fit: Fit::Widened });
    }
    Ok(found)
}

/// What the first rows of a column are shredded as; `None` leaves the variants whole.
pub(super) fn inferred<'a>(
    columns: impl Iterator<Item = &'a ArrayRef>,
    rows: usize,
) -> std::result::Result<Option<Shape>, BadRow> {
    let (mut observed, mut left) = (Observed::default(), rows);
    for array in columns {
        let bad = |row: usize| move |error: icefield_format::Error| BadRow(row, error.to_string());
        let column = Column::new(array).map_err(bad(0))?;
        for row in 0..array.len().min(left) {
            if let Some(variant) = column.get(row).map_err(bad(row))? {
                observed.add(variant).map_err(bad(row))?;
            }
        }
        left = left.saturating_sub(array.len());
    }
    Ok(observed.shape())
}

/// A variant that cannot be read: its row in the batch, and what is wrong.
pub(super) struct BadRow(usize, String);

impl BadRow {
    pub(super) fn in_column(self, name: &str) -> Error {
        Error::column(name, format!("variant {} of a batch: {}", self.0, self.1))
    }
}
