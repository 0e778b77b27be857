//! The exact minimum and maximum of a column, from metrics.
//!
//! Bounds in metrics are exact values only if the writer did not truncate them, every row of a file is read, and
//! every file has them. The Java library pushes `min` and `max` down under the same conditions, but trusts more:
//! bounds of binary columns, of timestamps in ORC (whose statistics have milliseconds) and of floats with NaN.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::FieldRef;
use icefield_format::expr::{Datum, Expression};
use icefield_format::manifest::{FileFormat, Metrics};
use icefield_format::types::arrow::ToArrow;
use icefield_format::types::{Field, PrimitiveType, Schema, Type};
use icefield_format::value::{Value, binary};

use crate::arrow::constant;
use crate::error::{Error, Result};
use crate::plan::field_metrics::FieldMetrics;
use crate::plan::{PlannedManifest, Scan};

/// The answer of metrics about the values of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnBounds {
    /// The smallest and the largest non-null value; `None` if there are only nulls.
    Exact(Option<(Value, Value)>),
    /// The metrics are not exact, with the reason.
    Unknown(String),
}

impl ColumnBounds {
    /// The two values as an array of two, null if there are none, and the reason if they are unknown.
    pub fn to_arrow(&self, column: &str, ty: &PrimitiveType) -> Result<(FieldRef, ArrayRef, Option<&str>)> {
        let pair = match self {
            Self::Exact(Some((lower, upper))) => [Some(lower), Some(upper)],
            _ => [None, None],
        };
        let schema = Schema::new(0, vec![Field::optional(1, column, ty.clone())])?.to_arrow(&ToArrow::default())?;
        let field = Arc::new(schema.field(0).clone());
        let array = constant::array(&pair, &Type::Primitive(ty.clone()), field.data_type())?;
        Ok((field, array, if let Self::Unknown(why) = self { Some(why) } else { None }))
    }
}

/// Why bounds of this type may not be values that occur; `None` if they always are.
fn inexact(ty: &PrimitiveType) -> Option<&'static str> {
    use PrimitiveType as P;
    match ty {
        P::String | P::Binary | P::Fixed(_) => Some("bounds of this type may be cut"),
        P::Uuid => Some("bounds of this type may be widened, and of another order"),
        P::Geometry { .. } | P::Geography { .. } => Some("bounds of this type are of coordinates"),
        P::Unknown | P::Unrecognized(_) => Some("the type has no bounds"),
        _ => None,
    }
}

impl Scan {
    /// The bounds of a column over the rows of this scan; a nested one is named with dots.
    ///
    /// # Errors
    /// An unknown column, one that is not primitive, and errors of planning.
    pub fn bounds(&self, column: &str) -> Result<(PrimitiveType, ColumnBounds)> {
        let field = self.schema.named(column, self.case_sensitive)?;
        let ty = field.ty.as_primitive().cloned();
        let ty = ty.ok_or_else(|| Error::invalid(format!("{column} is {}, which has no order", field.ty)))?;
        let unknown = |why: String| Ok((ty.clone(), ColumnBounds::Unknown(why)));
        if let Some(why) = inexact(&ty) {
            return unknown(format!("{column} is {ty}: {why}"));
        }
        if self.schema.accessor(field.id).is_none() {
            return unknown(format!("{column} is an element of a list or map"));
        }
        let scan = Self { metrics: self.metrics.union(&Metrics::for_filter([field.id])), ..self.clone() };
        let mut all: Option<(Value, Value)> = None;
        for manifest in scan.plan_stream()? {
            let manifest = manifest?;
            let column = OfManifest::new(&manifest, field.id, &ty);
            for row in 0..manifest.entries.len() {
                match column.bounds(row) {
                    Err(why) => return unknown(format!("{}: {why}", manifest.entries.file_path.value(row))),
                    Ok(None) => {}
                    Ok(Some((lower, upper))) => {
                        all = Some(match all {
                            None => (lower, upper),
                            Some((least, most)) => (
                                if is_below(&lower, &least) { lower } else { least },
                                if is_below(&most, &upper) { upper } else { most },
                            ),
                        });
                    }
                }
            }
        }
        Ok((ty, ColumnBounds::Exact(all)))
    }
}

fn is_below(left: &Value, right: &Value) -> bool {
    let order = Datum::of(left).zip(Datum::of(right)).map(|(left, right)| left.order(right));
    order == Some(Ordering::Less)
}

/// The metrics of the column in a manifest's files.
struct OfManifest<'a> {
    manifest: &'a PlannedManifest,
    ty: &'a PrimitiveType,
    metrics: FieldMetrics,
}

impl<'a> OfManifest<'a> {
    fn new(manifest: &'a PlannedManifest, id: i32, ty: &'a PrimitiveType) -> Self {
        Self { manifest, ty, metrics: FieldMetrics::new(&manifest.entries, id) }
    }

    /// The bounds of a file; `None` if all its values are null; or the reason why they are unknown.
    fn bounds(&self, row: usize) -> Result<Option<(Value, Value)>, String> {
        use PrimitiveType as P;
        let (manifest, metrics) = (self.manifest, &self.metrics);
        if manifest.residual(row).ok() != Some(&Expression::True) {
            return Err("the filter is not decided by its partition".to_owned());
        }
        if !manifest.deletes(row).is_empty() || !manifest.deleted_by(row).is_empty() {
            return Err("rows of it are deleted".to_owned());
        }
        if manifest.entries.record_count.value(row) == 0 {
            return Ok(None);
        }
        if metrics.value_count(row).is_some() && metrics.value_count(row) == metrics.null_count(row) {
            return Ok(None);
        }
        if matches!(self.ty, P::Float | P::Double) && metrics.nan_count(row) != Some(0) {
            return Err("it may hold NaN".to_owned());
        }
        let format = FileFormat::from_name(manifest.entries.file_format.value(row));
        let timestamp = matches!(self.ty, P::Timestamp | P::Timestamptz | P::TimestampNs | P::TimestamptzNs);
        if timestamp && format == Some(FileFormat::Orc) {
            return Err("bounds of timestamps in ORC files have milliseconds".to_owned());
        }
        let bound = |bytes: Option<&[u8]>, which: &str| {
            let bytes = bytes.ok_or_else(|| format!("it has no {which} bound"))?;
            binary::from_bytes(bytes, self.ty).map_err(|error| format!("its {which} bound is not valid: {error}"))
        };
        let bounds = &metrics.bounds;
        Ok(Some((bound(bounds.lower(row), "lower")?, bound(bounds.upper(row), "upper")?)))
    }
}
