//! Filters on an ORC file without a table: columns are found by name.
//!
//! This is in `read` and not in `file`, because rows are tested like those of a table: the rules of projection
//! convert the file's columns to Iceberg types.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::{Fields, Schema as ArrowSchema};
use icefield_format::expr::{BoundExpr, Expr};
use icefield_format::types::arrow::{FromArrow, ToArrow, with_mapped_ids};
use icefield_format::types::{NameMapping, Schema};
use icefield_orc::{ArrowOptions, Evolution, EvolvedColumns, Kind, Predicate, Projection, RowFilter, TypeDescription};

use super::columns::Rules;
use super::reshape::Reshape;
use crate::error::{Error, Result};
use crate::file::orc::predicate as orc_predicate;

/// The format version with all types.
const NEWEST: u8 = 3;

/// Tests whole rows of a file.
#[derive(Debug)]
struct ByName {
    columns: Vec<u32>,
    reshape: Reshape,
    filter: BoundExpr,
}

impl RowFilter for ByName {
    fn columns(&self) -> Vec<u32> {
        self.columns.clone()
    }

    fn evaluate(&self, batch: &RecordBatch) -> icefield_orc::Result<BooleanArray> {
        let found = self.reshape.apply(batch).and_then(|batch| Ok(self.filter.evaluate(&batch)?));
        found.map_err(icefield_orc::Error::external)
    }
}

/// Whether a filter tests a top-level column, or a part of it.
fn asks(expr: &Expr, name: &str) -> bool {
    expr.predicates().any(|predicate| {
        let rest = predicate.term.name.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// Tests the rows of a file that is read with another schema.
#[derive(Debug)]
struct Converted {
    ids: Vec<u32>,
    columns: EvolvedColumns,
    filter: Arc<dyn RowFilter>,
}

impl RowFilter for Converted {
    fn columns(&self) -> Vec<u32> {
        self.ids.clone()
    }

    fn evaluate(&self, batch: &RecordBatch) -> icefield_orc::Result<BooleanArray> {
        self.filter.evaluate(&self.columns.apply(batch)?)
    }
}

/// As [`filter`], for a filter on the columns of another schema that the file is read with. Tests of columns whose
/// conversion may change the order of values skip nothing.
///
/// # Errors
///
/// As [`filter`].
pub fn converted_filter(
    expr: &Expr,
    evolution: &Evolution,
    arrow: &ArrowOptions,
) -> Result<(Option<Predicate>, Arc<dyn RowFilter>)> {
    let schema = evolution.schema();
    let (predicate, filter) = filter(expr, schema, arrow)?;
    let tops: BTreeSet<&str> = schema.names.iter().map(String::as_str).filter(|name| asks(expr, name)).collect();
    let columns = evolution.tops(&tops, arrow).map_err(Error::Orc)?;
    let ids = match &columns.projection {
        Projection::Columns(ids) => ids.clone(),
        Projection::All => Vec::new(),
    };
    let predicate = predicate.and_then(|predicate| evolution.predicate(&predicate));
    Ok((predicate, Arc::new(Converted { ids, columns, filter })))
}

/// Converts a filter to a predicate that skips stripes and row groups, and a test of rows.
///
/// `file` is the schema of the whole file; `arrow` controls the conversion of its types to Arrow.
///
/// # Errors
///
/// Missing columns, columns of a type that cannot be compared, such as a union, and a root that is not a struct.
pub fn filter(
    expr: &Expr,
    file: &TypeDescription,
    arrow: &ArrowOptions,
) -> Result<(Option<Predicate>, Arc<dyn RowFilter>)> {
    if file.kind != Kind::Struct {
        return Err(Error::unsupported(format!("cannot filter a file whose rows are not structs: {file}")));
    }
    let schema = file.to_arrow(arrow);
    let tops = schema.fields().iter().zip(&file.children).filter(|(field, _)| asks(expr, field.name()));
    let (fields, nodes): (Vec<_>, Vec<_>) = tops.unzip();
    let fields: Fields = fields.into_iter().cloned().collect();
    let types = Schema::from_arrow(&ArrowSchema::new(fields.clone()), &FromArrow::for_version(NEWEST))?;
    let filter = expr.bind(&types, true)?;
    let fields = with_mapped_ids(&fields, &NameMapping::of_schema(&types)?);
    let root = TypeDescription {
        names: fields.iter().map(|field| field.name().clone()).collect(),
        children: nodes.iter().map(|node| (*node).clone()).collect(),
        ..TypeDescription::leaf(Kind::Struct)
    };
    let predicate = orc_predicate::predicate(&filter, &orc_predicate::columns(&fields, &root, false));
    let target = Arc::new(types.to_arrow(&ToArrow::default())?);
    let wanted: Vec<_> = types.fields().iter().cloned().zip(target.fields().iter().cloned()).collect();
    let planned = Rules { path: "", constants: &() }.plan(&wanted, &fields)?;
    let columns = nodes.iter().map(|node| node.column).collect();
    Ok((predicate, Arc::new(ByName { columns, reshape: Reshape::new("", target, planned), filter })))
}
