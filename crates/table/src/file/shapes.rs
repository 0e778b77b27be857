//! Bounds of geometry columns in a written file ("Bounds for Variant, Geometry, and Geography").
//!
//! As in the Java library, geographies have none: their edges may extend beyond the box around their points.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use icefield_format::types::{PrimitiveType, Schema, Type};
use icefield_format::value::wkb::GeoBox;

use super::metrics::FileMetrics;
use super::modes::Modes;

/// The bounding boxes of the shapes in a file so far.
#[derive(Debug, Clone)]
pub(super) struct Shapes(Vec<Column>);

#[derive(Debug, Clone)]
struct Column {
    id: i32,
    /// Names from the row to the column, through structs, because batches lack columns that are not stored.
    path: Vec<String>,
    /// `None` after bytes that are not a shape.
    found: Option<GeoBox>,
}

impl Shapes {
    /// Empty boxes for the columns whose mode asks for bounds.
    pub(super) fn new(schema: &Schema, modes: &Modes) -> Self {
        let is_bounded = |id: &i32| {
            matches!(schema.find_type(*id), Some(Type::Primitive(PrimitiveType::Geometry { .. })))
                && modes.of(*id).bound_length().is_some()
        };
        let path = |id: i32| {
            let mut fields = schema.fields();
            let mut names = Vec::new();
            for place in schema.accessor(id)? {
                let field = fields.get(*place)?;
                names.push(field.name.clone());
                fields = field.ty.as_struct().map_or(&[], |inner| &inner.fields);
            }
            Some(names)
        };
        let column = |id: &i32| Some(Column { id: *id, path: path(*id)?, found: Some(GeoBox::default()) });
        Self(schema.ids().iter().filter(|id| is_bounded(id)).filter_map(column).collect())
    }

    /// Adds the shapes of written batches.
    pub(super) fn add(&mut self, batches: &[RecordBatch]) {
        for column in &mut self.0 {
            for batch in batches {
                column.add(batch);
            }
        }
    }

    /// Sets the bounds.
    pub(super) fn finish(self, metrics: &mut FileMetrics) {
        for Column { id, found, .. } in self.0 {
            if let Some((lower, upper)) = found.and_then(|found| found.corners()) {
                metrics.lower_bounds.insert(id, lower.to_bytes());
                metrics.upper_bounds.insert(id, upper.to_bytes());
            }
        }
    }
}

impl Column {
    fn add(&mut self, batch: &RecordBatch) {
        let Some(mut found) = self.found else { return };
        let Some((first, rest)) = self.path.split_first() else { return };
        let Some(mut array): Option<&ArrayRef> = batch.column_by_name(first) else { return };
        let mut parents = Vec::new();
        for name in rest {
            let Some(inner) = array.as_struct_opt().and_then(|parent| parent.column_by_name(name)) else { return };
            parents.extend(array.nulls().cloned());
            array = inner;
        }
        let is_null = |row| array.is_null(row) || parents.iter().any(|nulls| nulls.is_null(row));
        let added = match (array.as_binary_opt::<i32>(), array.as_binary_opt::<i64>(), array.as_binary_view_opt()) {
            (Some(shapes), ..) => (0..shapes.len()).all(|row| is_null(row) || found.add(shapes.value(row))),
            (_, Some(shapes), _) => (0..shapes.len()).all(|row| is_null(row) || found.add(shapes.value(row))),
            (.., Some(shapes)) => (0..shapes.len()).all(|row| is_null(row) || found.add(shapes.value(row))),
            _ => false,
        };
        self.found = added.then_some(found);
    }
}
