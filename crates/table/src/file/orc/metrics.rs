//! Metrics of an ORC file from its statistics, as the Java library computes them.
//!
//! Float statistics are unusable: a NaN among the values spoils them, and NaNs are not counted. Float metrics come
//! from the batches ([`Floats`]), as in Java.

use std::collections::HashMap;

use arrow_schema::{DataType, Fields};
use icefield_format::metadata::properties::MetricsMode;
use icefield_format::types::arrow::field_id;
use icefield_format::types::{PrimitiveType, Schema, Type};
use icefield_format::value::{Value, decimal};
use icefield_orc::proto::{ColumnStatistics, TimestampStatistics};
use icefield_orc::{FileMetadata, Kind, TypeDescription, WrittenFile};

use super::floats::Floats;
use super::predicate::FIRST_GREGORIAN_DAY;
use super::schema::ID;
use crate::error::{Error, Result};
use crate::file::metrics::FileMetrics;
use crate::file::modes::Modes;

const MICROSECONDS_OF_DAY: i64 = 86_400_000_000;

/// The metrics of a finished file.
pub(super) fn of_file(file: &WrittenFile, floats: &Floats, schema: &Schema, modes: &Modes) -> Result<FileMetrics> {
    let mut metrics = FileMetrics {
        record_count: signed(file.rows),
        split_offsets: file.stripes.iter().map(|stripe| signed(stripe.offset)).collect(),
        ..FileMetrics::default()
    };
    let mut ids = HashMap::new();
    stored_ids(&file.schema, &mut ids);
    let source =
        Source { rows: file.rows, statistics: &file.statistics, ids, floats: Some(floats), own: true, schema, modes };
    source.fields(&file.schema, &mut metrics)?;
    Ok(metrics)
}

/// The metrics of a file from any writer; `fields` are its columns with the ids they are read by, `own` whether the
/// file stores these ids itself, as Iceberg writers do.
pub(super) fn of_foreign(
    file: &FileMetadata,
    fields: &Fields,
    own: bool,
    schema: &Schema,
    modes: &Modes,
) -> Result<FileMetrics> {
    let mut metrics = FileMetrics {
        record_count: signed(file.rows()),
        split_offsets: file.footer.stripes.iter().filter_map(|stripe| Some(signed(stripe.offset?))).collect(),
        ..FileMetrics::default()
    };
    let statistics = file.file_statistics().map_err(|error| Error::of_orc("", error))?;
    let mut ids = HashMap::new();
    bound_ids(fields, &file.schema, &mut ids);
    let source = Source { rows: file.rows(), statistics: &statistics, ids, floats: None, own, schema, modes };
    source.fields(&file.schema, &mut metrics)?;
    Ok(metrics)
}

/// Field ids by column, from the attributes of the types.
fn stored_ids(node: &TypeDescription, out: &mut HashMap<u32, i32>) {
    for child in &node.children {
        out.extend(child.attribute(ID).and_then(|id| Some((child.column, id.parse().ok()?))));
        stored_ids(child, out);
    }
}

/// Field ids by column, outside lists and maps.
fn bound_ids(fields: &Fields, node: &TypeDescription, out: &mut HashMap<u32, i32>) {
    for (field, child) in fields.iter().zip(&node.children) {
        out.extend(field_id(field).map(|id| (child.column, id)));
        if let DataType::Struct(inner) = field.data_type()
            && child.kind == Kind::Struct
        {
            bound_ids(inner, child, out);
        }
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

struct Source<'a> {
    rows: u64,
    /// By column.
    statistics: &'a [ColumnStatistics],
    ids: HashMap<u32, i32>,
    /// `None` if the rows were not seen.
    floats: Option<&'a Floats>,
    /// Whether an Iceberg writer made the file.
    own: bool,
    schema: &'a Schema,
    modes: &'a Modes,
}

impl Source<'_> {
    /// The fields of a struct, and of the structs in it.
    fn fields(&self, node: &TypeDescription, metrics: &mut FileMetrics) -> Result<()> {
        for child in &node.children {
            self.field(child, metrics)?;
            if child.kind == Kind::Struct {
                self.fields(child, metrics)?;
            }
        }
        Ok(())
    }

    fn field(&self, node: &TypeDescription, metrics: &mut FileMetrics) -> Result<()> {
        let Some(id) = self.ids.get(&node.column).copied() else { return Ok(()) };
        let mode = self.modes.of(id);
        let Some(statistics) = self.statistics.get(node.column as usize) else { return Ok(()) };
        if mode == MetricsMode::None {
            return Ok(());
        }
        metrics.column_sizes.insert(id, signed(statistics.bytes_on_disk.unwrap_or(0)));
        let values = statistics.number_of_values.unwrap_or(0);
        // Below a null struct a column has neither a value nor a null: if the column has nulls, subtract from all
        // rows.
        let nulls = if statistics.has_null == Some(true) { self.rows.saturating_sub(values) } else { 0 };
        metrics.value_counts.insert(id, signed(values + nulls));
        metrics.null_value_counts.insert(id, signed(nulls));
        let Some(Type::Primitive(ty)) = self.schema.find_type(id) else { return Ok(()) };
        let bounds = match ty {
            PrimitiveType::Float | PrimitiveType::Double => {
                let Some(found) = self.floats.and_then(|floats| floats.of(id)) else { return Ok(()) };
                metrics.nan_value_counts.insert(id, signed(found.nans));
                let value = |bound: f64| match ty {
                    PrimitiveType::Float => Value::Float(bound as f32),
                    _ => Value::Double(bound),
                };
                found.bounds().map(|(lower, upper)| (value(lower), value(upper)))
            }
            _ => bounds(statistics, ty).filter(|bounds| self.own || is_of_any_writer(bounds, ty)),
        };
        bounds.map_or(Ok(()), |bounds| metrics.set_bounds(id, ty, bounds, mode))
    }
}

/// Whether these bounds mean the same for all writers: before 1582 some use another calendar.
fn is_of_any_writer((lower, _): &(Value, Value), ty: &PrimitiveType) -> bool {
    use PrimitiveType as P;
    let first = match ty {
        P::Date => FIRST_GREGORIAN_DAY,
        P::Timestamp | P::Timestamptz => FIRST_GREGORIAN_DAY * MICROSECONDS_OF_DAY,
        P::TimestampNs | P::TimestamptzNs => i64::MIN,
        _ => return true,
    };
    match lower {
        Value::Int(days) => i64::from(*days) >= first,
        Value::Long(moment) => *moment >= first,
        _ => false,
    }
}

/// The smallest and the largest value; `None` for binaries, for which ORC keeps none.
fn bounds(statistics: &ColumnStatistics, ty: &PrimitiveType) -> Option<(Value, Value)> {
    let values = statistics.number_of_values.filter(|values| *values > 0)?;
    match ty {
        PrimitiveType::Boolean => {
            let trues = statistics.bucket_statistics.as_ref()?.count.first().copied()?;
            Some((Value::Boolean(trues == values), Value::Boolean(trues > 0)))
        }
        PrimitiveType::Int => {
            let own = statistics.int_statistics.as_ref()?;
            Some((Value::Int(own.minimum?.try_into().ok()?), Value::Int(own.maximum?.try_into().ok()?)))
        }
        PrimitiveType::Long | PrimitiveType::Time => {
            let own = statistics.int_statistics.as_ref()?;
            Some((Value::Long(own.minimum?), Value::Long(own.maximum?)))
        }
        PrimitiveType::Date => {
            let own = statistics.date_statistics.as_ref()?;
            Some((Value::Int(own.minimum?), Value::Int(own.maximum?)))
        }
        PrimitiveType::Timestamp | PrimitiveType::Timestamptz => {
            let (lower, upper) = nanoseconds(statistics.timestamp_statistics.as_ref()?)?;
            let micros = |nanos: i128| i64::try_from(nanos.div_euclid(1000)).ok().map(Value::Long);
            Some((micros(lower)?, micros(upper)?))
        }
        PrimitiveType::TimestampNs | PrimitiveType::TimestamptzNs => {
            let (lower, upper) = nanoseconds(statistics.timestamp_statistics.as_ref()?)?;
            Some((Value::Long(lower.try_into().ok()?), Value::Long(upper.try_into().ok()?)))
        }
        PrimitiveType::Decimal { scale, .. } => {
            let own = statistics.decimal_statistics.as_ref()?;
            let value = |text: &[u8]| {
                let number = decimal::parse(std::str::from_utf8(text).ok()?)?.rescaled(*scale)?;
                Some(Value::Decimal(number))
            };
            Some((value(own.minimum.as_deref()?)?, value(own.maximum.as_deref()?)?))
        }
        PrimitiveType::String => {
            // Truncated bounds of long values are still bounds.
            let own = statistics.string_statistics.as_ref()?;
            let text = |bytes: &[u8]| Some(Value::String(std::str::from_utf8(bytes).ok()?.to_owned()));
            let lower = own.minimum.as_deref().or(own.lower_bound.as_deref())?;
            let upper = own.maximum.as_deref().or(own.upper_bound.as_deref())?;
            Some((text(lower)?, text(upper)?))
        }
        _ => None,
    }
}

/// Milliseconds with the six digits below, which are stored plus one unless missing.
fn nanoseconds(own: &TimestampStatistics) -> Option<(i128, i128)> {
    let digits = |stored: Option<i32>, absent: i32| i128::from(stored.map_or(absent, |digits| digits - 1));
    let at = |millis: i64, digits: i128| i128::from(millis) * 1_000_000 + digits;
    let lower = at(own.minimum_utc?, digits(own.minimum_nanos, 0));
    Some((lower, at(own.maximum_utc?, digits(own.maximum_nanos, 999_999))))
}
