//! Computes the metrics of a Parquet file from the statistics in its footer.

use std::collections::BTreeMap;

use arrow_schema::{DataType, Fields};
use icefield_format::metadata::properties::MetricsMode;
use icefield_format::types::arrow::field_id;
use icefield_format::types::{PrimitiveType, Schema, Type};
use icefield_format::value::{Value, binary, decimal, order};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::statistics::Statistics;

use super::prune::bounds::bounds;
use super::prune::row_groups::comparable;
use super::prune::shredded::{self, Shredded};
use crate::error::Result;
use crate::file::is_stored;
use crate::file::leaves::skip;
use crate::file::metrics::FileMetrics;
use crate::file::modes::Modes;

/// What is known about a column from the row groups so far.
#[derive(Default)]
struct ColumnMetrics {
    values: i64,
    nulls: i64,
    nans: i64,
    /// Some row group has no NaN count.
    nans_unknown: bool,
    lower: Option<Value>,
    upper: Option<Value>,
    /// Some row group has no statistics, so nothing is known.
    unknown: bool,
    /// Some row group has values but no bounds.
    unbounded: bool,
}

/// The metrics from a footer, as the metrics modes ask; `fields` are the columns of the file.
pub(super) fn from_footer(
    footer: &ParquetMetaData,
    fields: &Fields,
    schema: &Schema,
    modes: &Modes,
) -> Result<FileMetrics> {
    let mut metrics = FileMetrics { record_count: footer.file_metadata().num_rows(), ..FileMetrics::default() };
    let mut columns: BTreeMap<i32, ColumnMetrics> = BTreeMap::new();
    for group in footer.row_groups() {
        metrics.split_offsets.extend(group.columns().first().map(first_offset));
        for chunk in group.columns() {
            let Some((id, ty)) = counted(chunk, schema) else { continue };
            if modes.of(id) == MetricsMode::None {
                continue;
            }
            *metrics.column_sizes.entry(id).or_default() += chunk.compressed_size();
            if let Some(ty) = ty {
                columns.entry(id).or_default().add(chunk, ty, modes.of(id), chunk_bounds);
            }
        }
    }
    for (id, column) in columns {
        column.finish(id, schema, modes.of(id), &mut metrics)?;
    }
    let (mut variants, mut next) = (Vec::new(), 0);
    for (field, column) in fields.iter().zip(schema.fields().iter().filter(|field| is_stored(field))) {
        match field.data_type() {
            DataType::Struct(parts) if column.ty == Type::Variant => {
                variants.push((column.id, shredded::find(parts, &mut next)));
            }
            other => skip(other, &mut next),
        }
    }
    bound_variants(footer, &variants, modes, &mut metrics);
    Ok(metrics)
}

/// Adds the bounds of variants with values in columns of their own.
fn bound_variants(
    footer: &ParquetMetaData,
    variants: &[(i32, Vec<Shredded>)],
    modes: &Modes,
    metrics: &mut FileMetrics,
) {
    for (id, shredded) in variants {
        let Some(length) = modes.of(*id).bound_length() else { continue };
        let (lower, upper) = shredded::of_file(footer, shredded, length);
        metrics.lower_bounds.extend(lower.map(|lower| (*id, lower)));
        metrics.upper_bounds.extend(upper.map(|upper| (*id, upper)));
    }
}

/// The metrics of a file from any writer; `fields` are its columns with the ids they are read by.
///
/// Statistics in another order, or stored in another type than the table's, give no bounds.
pub(super) fn of_foreign(
    footer: &ParquetMetaData,
    fields: &Fields,
    schema: &Schema,
    modes: &Modes,
) -> Result<FileMetrics> {
    let mut metrics = FileMetrics { record_count: footer.file_metadata().num_rows(), ..FileMetrics::default() };
    let (mut found, mut variants) = (Vec::new(), Vec::new());
    collect(fields, schema, true, &mut 0, &mut found, &mut variants);
    found.retain(|column| modes.of(column.id) != MetricsMode::None);
    let mut columns: BTreeMap<i32, ColumnMetrics> = BTreeMap::new();
    for group in footer.row_groups() {
        metrics.split_offsets.extend(group.columns().first().map(first_offset));
        for column in &found {
            let Some(chunk) = group.columns().get(column.place) else { continue };
            *metrics.column_sizes.entry(column.id).or_default() += chunk.compressed_size();
            let Some(ty) = column.counted else { continue };
            let known = columns.entry(column.id).or_default();
            // Other writers may count no NaNs, and a bound says nothing about them.
            known.nans_unknown |= chunk.statistics().and_then(Statistics::nan_count_opt).is_none();
            known.add(chunk, ty, modes.of(column.id), |statistics, ty| {
                let (lower, upper) = if column.comparable { bounds(statistics, ty)? } else { return None };
                let value = |bytes: Option<Vec<u8>>| binary::from_bytes(&bytes?, ty).ok();
                let (lower, upper) = (value(lower)?, value(upper)?);
                (!is_nan(&lower) && !is_nan(&upper)).then_some((lower, upper))
            });
        }
    }
    for (id, column) in columns {
        column.finish(id, schema, modes.of(id), &mut metrics)?;
    }
    bound_variants(footer, &variants, modes, &mut metrics);
    Ok(metrics)
}

/// A leaf of a file and the table column it is read as.
struct Leaf<'a> {
    /// Its index among the leaves of the file.
    place: usize,
    id: i32,
    /// The type, if counts and bounds are kept: outside lists and maps.
    counted: Option<&'a Type>,
    /// Whether its statistics are values of that type.
    comparable: bool,
}

/// Collects the leaves of columns that the table has, and its variants. `counted` is false inside lists and maps, whose
/// values are not one for each row.
fn collect<'a>(
    fields: &Fields,
    schema: &'a Schema,
    counted: bool,
    next: &mut usize,
    out: &mut Vec<Leaf<'a>>,
    variants: &mut Vec<(i32, Vec<Shredded>)>,
) {
    for field in fields {
        let known = field_id(field).and_then(|id| schema.find_field(id));
        match field.data_type() {
            DataType::Struct(parts) if known.is_some_and(|field| field.ty == Type::Variant) => {
                if let Some(column) = known.filter(|_| counted) {
                    variants.push((column.id, shredded::find(parts, &mut next.clone())));
                }
                // As in files written here, a variant takes its counts from its metadata part.
                for part in parts {
                    if let Some(column) = known.filter(|_| counted && part.name() == "metadata") {
                        let (id, ty) = (column.id, Some(&column.ty));
                        out.push(Leaf { place: *next, id, counted: ty, comparable: false });
                    }
                    skip(part.data_type(), next);
                }
            }
            DataType::Struct(children) => collect(children, schema, counted, next, out, variants),
            DataType::List(element) => collect(&[element.clone()].into(), schema, false, next, out, variants),
            DataType::Map(entries, _) => collect(&[entries.clone()].into(), schema, false, next, out, variants),
            _ => {
                if let Some(column) = known {
                    let comparable = column.ty.as_primitive().is_some_and(|ty| comparable(field, ty));
                    let ty = counted.then_some(&column.ty);
                    out.push(Leaf { place: *next, id: column.id, counted: ty, comparable });
                }
                *next += 1;
            }
        }
    }
}

/// Where a column chunk begins: at its dictionary page, if it has one.
fn first_offset(chunk: &ColumnChunkMetaData) -> i64 {
    chunk
        .dictionary_page_offset()
        .map_or(chunk.data_page_offset(), |dictionary| dictionary.min(chunk.data_page_offset()))
}

/// The field of a leaf, and its type if counts and bounds are kept; columns in lists and maps only have a size.
///
/// The parts of a variant have no ids; its counts are those of its metadata part.
fn counted<'a>(chunk: &ColumnChunkMetaData, schema: &'a Schema) -> Option<(i32, Option<&'a Type>)> {
    let info = chunk.column_descr().self_type().get_basic_info();
    if info.has_id() {
        let field = schema.find_field(info.id())?;
        return Some((field.id, schema.accessor(field.id).map(|_| &field.ty)));
    }
    let (last, parents) = chunk.column_path().parts().split_last()?;
    let field = schema.find_by_name(&parents.join("."), true).ok()??;
    let counted = last == "metadata" && field.ty == Type::Variant && schema.accessor(field.id).is_some();
    counted.then_some((field.id, Some(&field.ty)))
}

impl ColumnMetrics {
    fn add(
        &mut self,
        chunk: &ColumnChunkMetaData,
        ty: &Type,
        mode: MetricsMode,
        bounds: impl Fn(&Statistics, &PrimitiveType) -> Option<(Value, Value)>,
    ) {
        let Some(nulls) = chunk.statistics().and_then(Statistics::null_count_opt) else {
            self.unknown = true;
            return;
        };
        self.values += chunk.num_values();
        let nulls = i64::try_from(nulls).unwrap_or(i64::MAX);
        self.nulls = self.nulls.saturating_add(nulls);
        let Type::Primitive(ty) = ty else { return };
        let Some(statistics) = chunk.statistics() else { return };
        let nans = statistics.nan_count_opt().and_then(|nans| i64::try_from(nans).ok()).unwrap_or(0);
        self.nans += nans;
        if mode.bound_length().is_none() {
            return;
        }
        let bounds = bounds(statistics, ty);
        // A chunk of nulls and NaNs alone has no bounds, and does not widen those of the others.
        self.unbounded |= bounds.is_none() && chunk.num_values() > nulls.saturating_add(nans);
        if let Some((lower, upper)) = bounds {
            let below = self.lower.as_ref().is_none_or(|known| order::compare(ty, &lower, known).is_lt());
            let above = self.upper.as_ref().is_none_or(|known| order::compare(ty, &upper, known).is_gt());
            self.lower = if below { Some(lower) } else { self.lower.take() };
            self.upper = if above { Some(upper) } else { self.upper.take() };
        }
    }

    fn finish(self, id: i32, schema: &Schema, mode: MetricsMode, metrics: &mut FileMetrics) -> Result<()> {
        // Readers would take a count of some row groups for that of the file.
        if self.unknown {
            return Ok(());
        }
        metrics.value_counts.insert(id, self.values);
        metrics.null_value_counts.insert(id, self.nulls);
        let Some(Type::Primitive(ty)) = schema.find_type(id) else { return Ok(()) };
        if matches!(ty, PrimitiveType::Float | PrimitiveType::Double) && !self.nans_unknown {
            metrics.nan_value_counts.insert(id, self.nans);
        }
        let (Some(lower), Some(upper), false) = (self.lower, self.upper, self.unbounded) else { return Ok(()) };
        metrics.set_bounds(id, ty, (lower, upper), mode)
    }
}

/// Smallest and largest value of a chunk; `None` if it contains only nulls and NaN.
///
/// Shapes have no bounds: the order of their bytes is meaningless.
fn chunk_bounds(statistics: &Statistics, ty: &PrimitiveType) -> Option<(Value, Value)> {
    if matches!(ty, PrimitiveType::Geometry { .. } | PrimitiveType::Geography { .. }) {
        return None;
    }
    let value = |bytes: &[u8]| stored_value(bytes, ty);
    let (lower, upper) = (value(statistics.min_bytes_opt()?)?, value(statistics.max_bytes_opt()?)?);
    (!is_nan(&lower) && !is_nan(&upper)).then_some((lower, upper))
}

fn is_nan(value: &Value) -> bool {
    match value {
        Value::Float(value) => value.is_nan(),
        Value::Double(value) => value.is_nan(),
        _ => false,
    }
}

/// A value in PLAIN encoding, which differs from the single-value form only for decimals.
fn stored_value(bytes: &[u8], ty: &PrimitiveType) -> Option<Value> {
    if let PrimitiveType::Decimal { precision, .. } = ty {
        let unscaled = match precision {
            0..=9 => i128::from(i32::from_le_bytes(bytes.try_into().ok()?)),
            10..=18 => i128::from(i64::from_le_bytes(bytes.try_into().ok()?)),
            _ => decimal::from_big_endian(bytes)?,
        };
        return Some(Value::Decimal(unscaled));
    }
    binary::from_bytes(bytes, ty).ok()
}
