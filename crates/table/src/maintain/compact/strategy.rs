//! How the rows of a group are ordered: as they are, by a sort order, or along a curve.

use std::collections::HashSet;
use std::sync::Arc;

use icefield_format::metadata::TableMetadata;
use icefield_format::spec::{PartitionSpec, SortField, SortOrder, UNSORTED_ORDER_ID};
use icefield_format::transform::Transform;

use super::super::options::Given;
use crate::error::{Error, Result};
use crate::operation::rewrite_groups::RowOrder;
use crate::write::curve::{Curve, CurveKind};

/// Bytes of a text in the key of a curve.
const TEXT_BYTES: i64 = 8;
const TEXT_BYTES_OPTION: &str = "var-length-contribution";

/// The most bytes of a text in a key of a curve: keys of all rows of a batch are in memory.
const MOST_TEXT_BYTES: i64 = 1024;

/// How much smaller the files become, as an option of a strategy that sorts says it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Compression(pub(super) f64);

/// A strategy as it is written, and its options: nothing that depends on a table.
#[derive(Debug)]
pub(super) struct Form<'a> {
    order: OrderForm<'a>,
    compression: Compression,
}

#[derive(Debug)]
enum OrderForm<'a> {
    /// Rows are packed.
    Packed,
    /// The order of the table.
    OfTable,
    /// Fields of a sort order.
    Fields(Vec<&'a str>),
    Along(CurveForm<'a>),
}

#[derive(Debug)]
struct CurveForm<'a> {
    kind: CurveKind,
    columns: &'a str,
    text_bytes: i64,
    key_bytes: i64,
}

/// The order of the rewritten rows.
#[derive(Debug, Clone)]
pub(super) struct Strategy {
    pub(super) order: RowOrder,
    /// Whether all rows of a group are sorted together.
    pub(super) sorts: bool,
    pub(super) compression: Compression,
}

impl<'a> Form<'a> {
    /// The form of a name (`binpack` or `sort`) and a sort order: fields as in SQL, or one `zorder(a, b)` or
    /// `hilbert(a, b)`. Without a name it follows from the sort order; without both, files are only packed.
    ///
    /// # Errors
    /// An unknown name, a sort order that does not fit it, and options that are not allowed.
    pub(super) fn of(name: Option<&str>, order: Option<&'a str>, given: &mut Given<'_>) -> Result<Self> {
        let name = name.map(str::to_ascii_lowercase);
        let order = order.filter(|order| !order.trim().is_empty());
        match (name.as_deref(), order) {
            (None | Some("binpack"), None) => Ok(Self { order: OrderForm::Packed, compression: Compression(1.0) }),
            (Some("binpack"), Some(_)) => Err(Error::invalid(
                "compaction: the strategy binpack keeps the order of rows: leave the sort order out, or use the strategy sort",
            )),
            (None | Some("sort"), order) => {
                let factor = given.number("compression-factor", 1.0, "a positive number", |factor| factor > 0.0)?;
                // Partitions of a shuffle, which a single process does not have.
                given.integer("shuffle-partitions-per-file", 1, 1)?;
                let order = order.map_or(Ok(OrderForm::OfTable), |order| OrderForm::of(order, given))?;
                Ok(Self { order, compression: Compression(factor) })
            }
            (Some(other), _) => {
                Err(Error::invalid(format!("compaction: expected the strategy binpack or sort, got '{other}'")))
            }
        }
    }

    /// Rejects a sort order that no table can have.
    ///
    /// # Errors
    /// A field that is no field of a sort order.
    pub(super) fn check(&self) -> Result<()> {
        match &self.order {
            OrderForm::Fields(fields) => Ok(fields.iter().try_for_each(|field| SortField::check_text(field))?),
            OrderForm::Along(curve) if curve.names().next().is_none() => Err(no_columns()),
            _ => Ok(()),
        }
    }
}

impl<'a> OrderForm<'a> {
    fn of(order: &'a str, given: &mut Given<'_>) -> Result<Self> {
        let fields = fields(order);
        let curves: Vec<(CurveKind, &str)> = fields.iter().filter_map(|field| curve(field)).collect();
        match (curves.as_slice(), fields.len()) {
            ([(kind, columns)], 1) => {
                let text_bytes = given.integer(TEXT_BYTES_OPTION, TEXT_BYTES, 1)?;
                if text_bytes > MOST_TEXT_BYTES {
                    return Err(Error::invalid(format!(
                        "compaction: option '{TEXT_BYTES_OPTION}': expected at most {MOST_TEXT_BYTES} bytes, got {text_bytes}"
                    )));
                }
                let key_bytes = given.integer("max-output-size", i64::from(i32::MAX), 1)?;
                Ok(Self::Along(CurveForm { kind: *kind, columns, text_bytes, key_bytes }))
            }
            ([], _) => Ok(Self::Fields(fields)),
            _ => Err(Error::invalid(format!(
                "compaction: a curve is the whole sort order, and cannot be mixed with other fields: {order}"
            ))),
        }
    }
}

impl Strategy {
    /// The strategy of a form. Packed rows are sorted by the table's order file by file, as in other writes.
    ///
    /// # Errors
    /// A sort order that does not fit the table.
    pub(super) fn of(
        form: Form<'_>,
        metadata: &TableMetadata,
        spec: &PartitionSpec,
        case_sensitive: bool,
    ) -> Result<Self> {
        let (own, compression) = (metadata.default_sort_order(), form.compression);
        let order = match form.order {
            OrderForm::Packed => {
                return Ok(Self { order: RowOrder::By(own.clone()), sorts: false, compression });
            }
            OrderForm::OfTable if own.is_unsorted() => {
                return Err(Error::invalid("compaction: the table has no sort order: give one"));
            }
            OrderForm::OfTable => RowOrder::By(own.clone()),
            OrderForm::Fields(fields) => {
                let schema = metadata.current_schema();
                let order = SortOrder::from_text_with(UNSORTED_ORDER_ID, &fields, schema, case_sensitive)?;
                // Files are marked as sorted only by an order of the table.
                let known = metadata.sort_orders().iter().find(|known| known.same_order(&order));
                RowOrder::By(known.cloned().unwrap_or_else(|| Arc::new(order)))
            }
            OrderForm::Along(curve) => curve.along(metadata, spec, case_sensitive)?,
        };
        Ok(Self { order, sorts: true, compression })
    }
}

impl CurveForm<'_> {
    fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.split(',').map(|name| name.trim().trim_matches('`')).filter(|name| !name.is_empty())
    }

    /// The curve. Columns that partitions have one value of say nothing about the order within them.
    fn along(&self, metadata: &TableMetadata, spec: &PartitionSpec, case_sensitive: bool) -> Result<RowOrder> {
        let constant: HashSet<i32> = (spec.fields.iter())
            .filter(|field| field.transform == Transform::Identity)
            .filter_map(|field| field.source_id())
            .collect();
        let mut ids = Vec::new();
        for name in self.names() {
            let field = metadata.current_schema().named(name, case_sensitive)?;
            if !constant.contains(&field.id) && !ids.contains(&field.id) {
                ids.push(field.id);
            }
        }
        if ids.is_empty() {
            return Err(no_columns());
        }
        let size = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
        let (text_bytes, key_bytes) = (size(self.text_bytes), size(self.key_bytes));
        Ok(RowOrder::Along(Curve { kind: self.kind, columns: ids, text_bytes, key_bytes }))
    }
}

fn no_columns() -> Error {
    Error::invalid("compaction: a curve needs columns, and these are none or have one value in each partition")
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
