//! Tests the Bloom filters of a stripe against its values.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
};
use arrow_array::{Array, ArrayRef};

use crate::error::Result;
use crate::predicate::{BloomView, Literal, bloom_is_usable, hash_of};
use crate::proto::{BloomFilterIndex, StreamKind};
use crate::read::{CalendarRule, Projection, ReadOptions};
use crate::stripe::StreamPlace;
use crate::types::{ArrowOptions, Kind, StringForm, TypeDescription};
use crate::{Batches, Reader, Source};

/// A value that is missing in the Bloom filter of its row group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lacking {
    /// The column.
    pub column: u32,
    /// The kind of the stream with the filter.
    pub stream: StreamKind,
    /// The row group, from 0; `None` if there is not one filter for each row group.
    pub group: Option<usize>,
}

/// The first value of each column that is missing in its Bloom filter. Filters that readers do not use, and those of
/// columns in lists, maps and unions, are not tested.
///
/// # Errors
///
/// Damaged streams and filters; errors of the source.
pub fn lacking(reader: &Reader<impl Source>, stripe: usize) -> Result<Vec<Lacking>> {
    let file = reader.metadata();
    let directory = reader.directory(stripe)?;
    let mut found = Vec::new();
    for place in &directory.streams {
        let is_filter = matches!(place.kind, StreamKind::BloomFilter | StreamKind::BloomFilterUtf8);
        let Some(node) = file.schema.find(place.column).filter(|_| is_filter && place.variant.is_none()) else {
            continue;
        };
        let encoding = directory.footer.columns.get(place.column as usize);
        if file.variants.is_empty()
            && bloom_is_usable(file, place.kind, &node.kind, encoding)
            && in_structs(&file.schema, node)
        {
            found.extend(test(reader, stripe, place, node)?);
        }
    }
    Ok(found)
}

/// Whether only structs are above a column.
fn in_structs(root: &TypeDescription, node: &TypeDescription) -> bool {
    let mut above = root;
    while above.column != node.column {
        let next = above.children.iter().find(|child| (child.column..child.end).contains(&node.column));
        match next {
            Some(next) if above.kind == Kind::Struct => above = next,
            _ => return false,
        }
    }
    true
}

fn test(
    reader: &Reader<impl Source>,
    stripe: usize,
    place: &StreamPlace,
    node: &TypeDescription,
) -> Result<Option<Lacking>> {
    let file = reader.metadata();
    let (Some(stride), Some(bytes)) = (file.row_index_stride(), reader.stream(stripe, place)?) else { return Ok(None) };
    let name = format!("stripe {stripe}, column {} {}", place.column, place.kind);
    let filters: BloomFilterIndex = file.section(&bytes, &name)?;
    let lacking = |group| Some(Lacking { column: place.column, stream: place.kind, group });
    let arrow =
        ArrowOptions { strings: StringForm::Binary, exact_times: [place.column].into(), ..ArrowOptions::default() };
    let options = ReadOptions {
        projection: Projection::Columns(vec![place.column]),
        batch_size: usize::try_from(stride).unwrap_or(usize::MAX),
        calendar: CalendarRule::Stored,
        arrow,
        ..ReadOptions::default()
    };
    let mut groups = 0;
    for (group, batch) in Batches::new(reader, options, vec![stripe])?.enumerate() {
        let batch = batch?;
        groups += 1;
        let Some(filter) = filters.bloom_filter.get(group) else { return Ok(lacking(None)) };
        let view = BloomView::new(filter);
        let Some(mut array) = batch.columns().first().cloned() else { return Ok(None) };
        while let Some(inner) = array.as_struct_opt().and_then(|own| own.columns().first()).cloned() {
            array = inner;
        }
        for row in 0..array.len() {
            let hash = literal(&array, &node.kind, row).and_then(|literal| hash_of(&literal, &node.kind, file.version));
            if hash.is_some_and(|hash| !view.may_contain(hash)) {
                return Ok(lacking(Some(group)));
            }
        }
    }
    Ok(if groups == filters.bloom_filter.len() { None } else { lacking(None) })
}

/// A value as a predicate has it.
fn literal(array: &ArrayRef, kind: &Kind, row: usize) -> Option<Literal> {
    if array.is_null(row) {
        return None;
    }
    let array = Arc::clone(array);
    Some(match kind {
        Kind::Byte => Literal::Long(i64::from(array.as_primitive_opt::<Int8Type>()?.value(row))),
        Kind::Short => Literal::Long(i64::from(array.as_primitive_opt::<Int16Type>()?.value(row))),
        Kind::Int => Literal::Long(i64::from(array.as_primitive_opt::<Int32Type>()?.value(row))),
        Kind::Long => Literal::Long(array.as_primitive_opt::<Int64Type>()?.value(row)),
        Kind::Float => Literal::Double(f64::from(array.as_primitive_opt::<Float32Type>()?.value(row))),
        Kind::Double => Literal::Double(array.as_primitive_opt::<Float64Type>()?.value(row)),
        Kind::Date => Literal::Date(i64::from(array.as_primitive_opt::<Date32Type>()?.value(row))),
        Kind::String | Kind::Char { .. } | Kind::Varchar { .. } => {
            Literal::Text(array.as_binary_opt::<i32>()?.value(row).to_vec())
        }
        Kind::Decimal { scale, .. } => {
            Literal::Decimal { unscaled: array.as_primitive_opt::<Decimal128Type>()?.value(row), scale: *scale }
        }
        Kind::Timestamp | Kind::TimestampInstant => {
            const NANOS: i128 = 1_000_000_000;
            let nanos = array.as_primitive_opt::<Decimal128Type>()?.value(row);
            Literal::Timestamp {
                seconds: i64::try_from(nanos.div_euclid(NANOS)).ok()?,
                nanos: u32::try_from(nanos.rem_euclid(NANOS)).ok()?,
            }
        }
        _ => return None,
    })
}
