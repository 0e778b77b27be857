//! Selects the row groups of a Parquet file that belong to a task's byte range and whose statistics may match.

use std::collections::{BTreeSet, HashMap};

use arrow_schema::{DataType, Field, FieldRef, Fields, TimeUnit};
use icefield_format::expr::{FieldStatistics, FileStatistics, InclusiveMetrics};
use icefield_format::types::arrow::field_id;
use icefield_format::types::{PrimitiveType, Schema, Type};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::statistics::Statistics;

use super::bounds::bounds;
use super::shredded::{self, Shredded};
use crate::file::Request;
use crate::file::leaves::skip;
use crate::file::parquet::decimals;

/// Row groups of the file whose midpoint is in the byte range of a request and that may match its filter.
///
/// `size` is the file's.
pub(in crate::file::parquet) fn wanted(
    metadata: &ParquetMetaData,
    columns: &[Tested],
    request: &Request,
    size: u64,
) -> Vec<usize> {
    let (start, length) = request.range;
    let evaluator = InclusiveMetrics::new(&request.prune);
    let groups = metadata.row_groups().iter().enumerate();
    let in_range = groups.filter(|(_, group)| {
        // Clamp the midpoint, so that a wrong footer still assigns each row group to exactly one part of the file.
        let middle = begin(group).saturating_add(stored(group) / 2).min(size.saturating_sub(1));
        middle >= start && middle < start.saturating_add(length)
    });
    in_range
        .filter(|(_, group)| group.num_rows() > 0 && evaluator.might_match(&Group::new(group, columns)))
        .map(|(place, _)| place)
        .collect()
}

/// The start of a row group, or 0 if the footer has no valid offset.
fn begin(group: &RowGroupMetaData) -> u64 {
    let start =
        group.columns().first().map(|column| column.dictionary_page_offset().unwrap_or(column.data_page_offset()));
    start.and_then(|start| u64::try_from(start).ok()).unwrap_or(0)
}

/// Bytes of a row group.
fn stored(group: &RowGroupMetaData) -> u64 {
    let sizes = group.columns().iter().map(|column| column.compressed_size().max(0).unsigned_abs());
    sizes.fold(0, u64::saturating_add)
}

/// A filtered column whose statistics the filter can use.
#[derive(Debug, Clone)]
pub(in crate::file::parquet) struct Leaf {
    pub id: i32,
    /// Its index among the leaves of the file.
    pub place: usize,
    pub ty: PrimitiveType,
}

/// A filtered column of the file.
pub(in crate::file::parquet) enum Tested {
    Primitive(Leaf),
    /// A variant, with shredded values in leaves of their own.
    Variant {
        id: i32,
        shredded: Vec<Shredded>,
    },
}

impl Tested {
    /// The leaf of a primitive column.
    pub(in crate::file::parquet) fn into_leaf(self) -> Option<Leaf> {
        match self {
            Self::Primitive(leaf) => Some(leaf),
            Self::Variant { .. } => None,
        }
    }
}

/// Finds the columns of a request's filter outside lists and maps whose stored values compare like the table's.
/// `fields` are the file's columns with the ids they are read by; `schema` has the types that the filter is bound to.
pub(in crate::file::parquet) fn tested(fields: &Fields, schema: &Schema, request: &Request) -> Vec<Tested> {
    let mut ids = InclusiveMetrics::new(&request.prune).field_ids();
    // A constant replaces what the file may have under the same id.
    ids.retain(|id| !request.constants.contains(id));
    filtered(fields, schema, &ids)
}

fn filtered(fields: &Fields, schema: &Schema, ids: &BTreeSet<i32>) -> Vec<Tested> {
    fn visit(fields: &Fields, schema: &Schema, ids: &BTreeSet<i32>, next: &mut usize, out: &mut Vec<Tested>) {
        let variant = |field: &FieldRef| {
            let id = field_id(field).filter(|id| ids.contains(id));
            id.filter(|id| schema.find_type(*id) == Some(&Type::Variant))
        };
        for field in fields {
            match field.data_type() {
                DataType::Struct(parts) if let Some(id) = variant(field) => {
                    out.push(Tested::Variant { id, shredded: shredded::find(parts, next) });
                }
                DataType::Struct(children) => visit(children, schema, ids, next, out),
                DataType::List(element) => skip(element.data_type(), next),
                DataType::Map(entries, _) => skip(entries.data_type(), next),
                _ => {
                    let id = field_id(field).filter(|id| ids.contains(id));
                    let ty = id.and_then(|id| schema.find_field(id)).and_then(|field| field.ty.as_primitive());
                    if let (Some(id), Some(ty)) = (id, ty.filter(|ty| comparable(field, ty))) {
                        out.push(Tested::Primitive(Leaf { id, place: *next, ty: ty.clone() }));
                    }
                    *next += 1;
                }
            }
        }
    }

    let mut out = Vec::new();
    visit(fields, schema, ids, &mut 0, &mut out);
    out
}

/// Whether the statistics of a stored column are valid bounds of a table type without conversion: if the types are the
/// same, or differ by a promotion that keeps the order.
pub(in crate::file::parquet) fn comparable(stored: &Field, ty: &PrimitiveType) -> bool {
    use PrimitiveType as P;
    if let Some((_, stored)) = decimals::declared(stored) {
        return matches!(ty, P::Decimal { scale, .. } if i16::from(stored) == i16::from(*scale));
    }
    match (stored.data_type(), ty) {
        (DataType::Boolean, P::Boolean)
        | (DataType::Int32, P::Int | P::Long | P::Date)
        | (DataType::Int64, P::Long | P::Time | P::Timestamp | P::Timestamptz | P::TimestampNs | P::TimestamptzNs)
        | (DataType::Float32, P::Float | P::Double)
        | (DataType::Float64, P::Double)
        | (DataType::Date32, P::Date)
        | (DataType::Time64(TimeUnit::Microsecond), P::Time)
        | (DataType::Timestamp(TimeUnit::Microsecond, _), P::Timestamp | P::Timestamptz)
        | (DataType::Timestamp(TimeUnit::Nanosecond, _), P::TimestampNs | P::TimestamptzNs)
        | (DataType::Utf8, P::String)
        | (DataType::Binary, P::Binary)
        | (DataType::FixedSizeBinary(_), P::Fixed(_) | P::Uuid) => true,
        (DataType::Decimal128(_, stored), P::Decimal { scale, .. }) => i16::from(*stored) == i16::from(*scale),
        _ => false,
    }
}

/// Statistics of some rows of a file, for the metrics evaluator.
pub(super) struct Group {
    rows: i64,
    columns: HashMap<i32, ChunkStatistics>,
}

#[derive(Default)]
struct ChunkStatistics {
    nulls: Option<i64>,
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
}

impl Group {
    /// A row group.
    fn new(group: &RowGroupMetaData, columns: &[Tested]) -> Self {
        let column = |column: &Tested| match column {
            Tested::Primitive(leaf) => {
                let statistics = group.columns().get(leaf.place)?.statistics()?;
                Some((leaf.id, ChunkStatistics::new(leaf, statistics)))
            }
            Tested::Variant { id, shredded } => {
                let (lower, upper) = shredded::of_group(group, shredded);
                Some((*id, ChunkStatistics { nulls: None, lower, upper }))
            }
        };
        Self { rows: group.num_rows(), columns: columns.iter().filter_map(column).collect() }
    }

    /// Some rows with statistics of one column.
    pub(super) fn of(rows: i64, leaf: &Leaf, statistics: &Statistics) -> Self {
        Self { rows, columns: HashMap::from([(leaf.id, ChunkStatistics::new(leaf, statistics))]) }
    }
}

impl ChunkStatistics {
    fn new(leaf: &Leaf, statistics: &Statistics) -> Self {
        let nulls = statistics.null_count_opt().and_then(|count| i64::try_from(count).ok());
        let (lower, upper) = bounds(statistics, &leaf.ty).unwrap_or_default();
        Self { nulls, lower, upper }
    }
}

impl FileStatistics for Group {
    fn record_count(&self) -> i64 {
        self.rows
    }

    fn field(&self, id: i32) -> FieldStatistics<'_> {
        let Some(column) = self.columns.get(&id) else { return FieldStatistics::default() };
        FieldStatistics {
            value_count: Some(self.rows),
            null_count: column.nulls,
            nan_count: None,
            lower: column.lower.as_deref(),
            upper: column.upper.as_deref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::file::metadata::ColumnChunkMetaData;
    use parquet::schema::parser::parse_message_type;
    use parquet::schema::types::SchemaDescriptor;

    use super::*;

    #[test]
    fn places_below_zero_are_no_places() {
        let schema = parse_message_type("message m { required int32 a; required int32 b; }").unwrap();
        let schema = Arc::new(SchemaDescriptor::new(Arc::new(schema)));
        for (offset, size, expected) in
            [(4, 10, (4, 20)), (-4, 10, (0, 20)), (i64::MIN, -1, (0, 0)), (7, i64::MAX, (7, u64::MAX - 1))]
        {
            let chunk = |at: usize| {
                let chunk = ColumnChunkMetaData::builder(schema.column(at));
                chunk.set_data_page_offset(offset).set_total_compressed_size(size).build().unwrap()
            };
            let group = RowGroupMetaData::builder(schema.clone());
            let group = group.set_column_metadata(vec![chunk(0), chunk(1)]).set_num_rows(1).build().unwrap();
            assert_eq!((begin(&group), stored(&group)), expected);
        }
    }
}
