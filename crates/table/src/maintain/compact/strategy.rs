//! How the rows of a group are ordered: as they are, by a sort order, or along a curve.

use std::collections::HashSet;
use std::sync::Arc;

use icefield_format::metadata::TableMetadata;
use icefield_format::spec::{PartitionSpec, SortOrder, UNSORTED_ORDER_ID};
use icefield_format::transform::Transform;

use super::super::options::Given;
use crate::error::{Error, Result};
use crate::operation::rewrite_groups::RowOrder;
use crate::write::curve::{Curve, CurveKind};

/// Bytes of a text in the key of a curve.
const TEXT_BYTES: i64 = 8;

/// The most bytes of a text in a key of a curve: keys of all rows of a batch are in memory.
const MOST_TEXT_BYTES: i64 = 1024;

/// What [`Strategy::of`] reads from the options of a strategy that sorts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Compression(pub(super) f64);

/// The order of the rewritten rows.
#[derive(Debug, Clone)]
pub(super) struct Strategy {
    pub(super) order: RowOrder,
    /// Whether all rows of a group are sorted together.
    pub(super) sorts: bool,
    pub(super) compression: Compression,
}

impl Strategy {
    /// The strategy of a name (`binpack` or `sort`) and a sort order: fields as in SQL, or one `zorder(a, b)` or
    /// `hilbert(a, b)`. Without a name it follows from the sort order; without both, files are only packed. Packed rows
    /// are sorted by the table's order file by file, as in other writes.
    ///
    /// # Errors
    /// An unknown name; a sort order that does not fit the name or the table; options of another strategy.
    pub(super) fn of(
        name: Option<&str>,
        order: Option<&str>,
        metadata: &TableMetadata,
        spec: &PartitionSpec,
        case_sensitive: bool,
        given: &mut Given<'_>,
    ) -> Result<Self> {
        let name = name.map(str::to_ascii_lowercase);
        let order = order.filter(|order| !order.trim().is_empty());
        match (name.as_deref(), order) {
            (None | Some("binpack"), None) => {
                let order = RowOrder::By(metadata.default_sort_order().clone());
                Ok(Self { order, sorts: false, compression: Compression(1.0) })
            }
            (Some("binpack"), Some(_)) => Err(Error::invalid(
                "compaction: the strategy binpack keeps the order of rows: leave the sort order out, or use the strategy sort",
            )),
            (None | Some("sort"), order) => {
                let factor = given.number("compression-factor", 1.0, "a positive number", |factor| factor > 0.0)?;
                // Partitions of a shuffle, which a single process does not have.
                given.integer("shuffle-partitions-per-file", 1, 1)?;
                let order = sorted(order, metadata, spec, case_sensitive, given)?;
                Ok(Self { order, sorts: true, compression: Compression(factor) })
            }
            (Some(other), _) => {
                Err(Error::invalid(format!("compaction: expected the strategy binpack or sort, got '{other}'")))
            }
        }
    }
}

/// The order that a text describes, by default the table's.
fn sorted(
    order: Option<&str>,
    metadata: &TableMetadata,
    spec: &PartitionSpec,
    case_sensitive: bool,
    given: &mut Given<'_>,
) -> Result<RowOrder> {
    let Some(order) = order else {
        let own = metadata.default_sort_order();
        return match own.is_unsorted() {
            true => Err(Error::invalid("compaction: the table has no sort order: give one")),
            false => Ok(RowOrder::By(own.clone())),
        };
    };
    let fields = fields(order);
    let curves: Vec<(CurveKind, &str)> = fields.iter().filter_map(|field| curve(field)).collect();
    match (curves.as_slice(), fields.len()) {
        ([(kind, columns)], 1) => along(*kind, columns, metadata, spec, case_sensitive, given),
        ([], _) => {
            let schema = metadata.current_schema();
            let order = SortOrder::from_text_with(UNSORTED_ORDER_ID, &fields, schema, case_sensitive)?;
            // Files are marked as sorted only by an order of the table.
            let known = metadata.sort_orders().iter().find(|known| known.same_order(&order));
            Ok(RowOrder::By(known.cloned().unwrap_or_else(|| Arc::new(order))))
        }
        _ => Err(Error::invalid(format!(
            "compaction: a curve is the whole sort order, and cannot be mixed with other fields: {order}"
        ))),
    }
}

/// A curve through these columns. Columns that partitions have one value of say nothing about the order within them.
fn along(
    kind: CurveKind,
    columns: &str,
    metadata: &TableMetadata,
    spec: &PartitionSpec,
    case_sensitive: bool,
    given: &mut Given<'_>,
) -> Result<RowOrder> {
    let text_bytes = given.integer("var-length-contribution", TEXT_BYTES, 1)?;
    if text_bytes > MOST_TEXT_BYTES {
        return Err(Error::invalid(format!(
            "compaction: option 'var-length-contribution': expected at most {MOST_TEXT_BYTES} bytes, got {text_bytes}"
        )));
    }
    let key_bytes = given.integer("max-output-size", i64::from(i32::MAX), 1)?;
    let constant: HashSet<i32> = (spec.fields.iter())
        .filter(|field| field.transform == Transform::Identity)
        .filter_map(|field| field.source_id())
        .collect();
    let mut ids = Vec::new();
    for name in columns.split(',').map(|name| name.trim().trim_matches('`')).filter(|name| !name.is_empty()) {
        let field = metadata.current_schema().named(name, case_sensitive)?;
        if !constant.contains(&field.id) && !ids.contains(&field.id) {
            ids.push(field.id);
        }
    }
    if ids.is_empty() {
        return Err(Error::invalid(
            "compaction: a curve needs columns, and these are none or have one value in each partition",
        ));
    }
    let size = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
    Ok(RowOrder::Along(Curve { kind, columns: ids, text_bytes: size(text_bytes), key_bytes: size(key_bytes) }))
}

/// The kind and the columns of a field `zorder(a, b)` or `hilbert(a, b)`.
fn curve(field: &str) -> Option<(CurveKind, &str)> {
    let (name, columns) = field.strip_suffix(')')?.split_once('(')?;
    match name.trim().to_ascii_lowercase().as_str() {
        "zorder" => Some((CurveKind::ZOrder, columns)),
        "hilbert" => Some((CurveKind::Hilbert, columns)),
        _ => None,
    }
}

/// The fields of a sort order, separated by commas outside parentheses.
fn fields(order: &str) -> Vec<&str> {
    let (mut fields, mut depth, mut start) = (Vec::new(), 0_i32, 0);
    for (at, character) in order.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                fields.push(order.get(start..at).unwrap_or_default().trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    fields.push(order.get(start..).unwrap_or_default().trim());
    fields
}
