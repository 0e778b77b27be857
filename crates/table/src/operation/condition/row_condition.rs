//! Conditions over the rows of one table that compare two of its columns, such as `sent > received`.
//!
//! Metadata cannot decide such a comparison. The rest of the condition prunes files, and the comparison is evaluated on
//! the rows that are read.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::BooleanBuffer;
use icefield_format::expr::{BoundExpr, ColumnComparison, Comparison, Condition, ConditionPredicate, Expression, Term};
use icefield_format::puffin::DeletionVector;
use icefield_format::types::arrow::ToArrow;
use icefield_format::types::reserved::{FILE, POS};
use icefield_format::types::{Field, PrimitiveType, Schema, Type};

use super::compared::{ComparedAs, ONLY_COLUMNS};
use super::places;
use crate::arrow::cells::StoredColumn;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::plan::Scan;
use crate::plan::projection::wanted::Wanted;
use crate::stream::BatchStream;

/// A condition bound to the columns of a table; `NOT` has been pushed into its predicates.
#[derive(Debug)]
pub(in crate::operation) struct RowTests(Expression<RowTest>);

/// A condition on rows that a scan reads.
#[derive(Debug)]
pub(in crate::operation) struct RowCondition {
    tests: RowTests,
    /// The columns that the condition needs, and the file path and position of each row.
    pub(in crate::operation) wanted: Arc<Wanted>,
    /// Indexes of the columns with the file path and the position of a row.
    place: (usize, usize),
}

/// A predicate of a condition.
#[derive(Debug)]
enum RowTest {
    Filter(BoundExpr),
    Columns(Box<ComparedColumns>),
}

/// A comparison of two columns.
#[derive(Debug)]
struct ComparedColumns {
    left: StoredColumn,
    comparison: Comparison,
    right: StoredColumn,
    ty: ComparedAs,
    /// The comparison as text, for errors.
    text: String,
}

impl RowTests {
    /// # Errors
    /// A column that the schema lacks, a literal that does not fit one, and columns that cannot be compared.
    pub(in crate::operation) fn new(condition: &Condition, columns: &Schema, case_sensitive: bool) -> Result<Self> {
        let mut leaf = |test: &ConditionPredicate| {
            Ok::<_, Error>(Expression::Predicate(match test {
                ConditionPredicate::Literals(predicate) => {
                    RowTest::Filter(Expression::Predicate(predicate.clone()).bind(columns, case_sensitive)?)
                }
                ConditionPredicate::Columns(pair) => {
                    RowTest::Columns(Box::new(ComparedColumns::new(pair, columns, case_sensitive)?))
                }
            }))
        };
        Ok(Self(condition.rewrite_not().try_map(&mut leaf)?))
    }

    /// The rows for which the condition is true.
    pub(in crate::operation) fn matching(&self, rows: &RecordBatch) -> Result<BooleanBuffer> {
        matching(&self.0, rows)
    }
}

impl RowCondition {
    /// # Errors
    /// A column that the table lacks, a literal that does not fit one, and columns that cannot be compared.
    pub(in crate::operation) fn new(condition: &Condition, scan: &Scan) -> Result<Self> {
        let terms = condition.predicates().flat_map(|test| match test {
            ConditionPredicate::Literals(predicate) => vec![&predicate.term],
            ConditionPredicate::Columns(columns) => vec![&columns.left, &columns.right],
        });
        let names: Vec<String> = terms.map(|term| term.name.clone()).collect();
        let all = scan.columns_named(names.iter().map(String::as_str))?.schema;
        let tests = RowTests::new(condition, &all, scan.case_sensitive)?;
        let wanted = scan.wanted(Some(&names))?;
        let (projection, place) = with_place(&wanted.projection)?;
        let wanted = Arc::new(Wanted { projection: Arc::new(projection), ..(*wanted).clone() });
        Ok(Self { tests, wanted, place })
    }

    /// Evaluates the condition on a stream; returns the positions of matching rows by file path.
    pub(in crate::operation) fn positions(&self, rows: BatchStream) -> Result<HashMap<String, Arc<DeletionVector>>> {
        let mut found = HashMap::new();
        for batch in rows {
            interrupt::check()?;
            let batch = batch?;
            let chosen = self.tests.matching(&batch)?;
            let paths = batch.column(self.place.0);
            places::add(&mut found, paths, batch.column(self.place.1), Some(&chosen))?;
        }
        Ok(found.into_iter().map(|(path, rows)| (path, Arc::new(rows))).collect())
    }
}

fn matching(condition: &Expression<RowTest>, rows: &RecordBatch) -> Result<BooleanBuffer> {
    Ok(match condition {
        Expression::True => BooleanBuffer::new_set(rows.num_rows()),
        Expression::False => BooleanBuffer::new_unset(rows.num_rows()),
        Expression::Not(child) => !&matching(child, rows)?,
        Expression::And(left, right) => &matching(left, rows)? & &matching(right, rows)?,
        Expression::Or(left, right) => &matching(left, rows)? | &matching(right, rows)?,
        Expression::Predicate(RowTest::Filter(filter)) => filter.evaluate_columns(rows)?,
        Expression::Predicate(RowTest::Columns(compared)) => compared.matching(rows)?,
    })
}

/// Adds the columns for the file path and the position of a row, and returns their indexes. The table may itself have
/// columns of these names.
fn with_place(columns: &Schema) -> Result<(Schema, (usize, usize))> {
    let mut fields = columns.fields().to_vec();
    let mut place = |column: Field| {
        if let Some(place) = fields.iter().position(|field| field.id == column.id) {
            return place;
        }
        let mut name = column.name.clone();
        while fields.iter().any(|field| field.name == name) {
            name.push('_');
        }
        fields.push(Field { name, ..column });
        fields.len() - 1
    };
    let place = (place(FILE.to_field()), place(POS.to_field()));
    Ok((Schema::new(0, fields)?, place))
}

impl ComparedColumns {
    fn new(columns: &ColumnComparison, all: &Schema, case_sensitive: bool) -> Result<Self> {
        let text = columns.to_string();
        let column = |term: &Term| {
            if term.transform.is_some() || term.extract.is_some() {
                return Err(Error::unsupported(format!("{text}: of {term} {ONLY_COLUMNS}")));
            }
            let field = all.named(&term.name, case_sensitive).map_err(|error| {
                Error::invalid(format!("{text}: {error}; a text stands in single quotes: '{}'", term.name))
            })?;
            let stored = StoredColumn::find(all, field.id)?;
            let shape =
                matches!(field.ty, Type::Primitive(PrimitiveType::Geometry { .. } | PrimitiveType::Geography { .. }));
            Ok((field, stored, shape))
        };
        let ((left_field, left, left_shape), (right_field, right, right_shape)) =
            (column(&columns.left)?, column(&columns.right)?);
        let rows = RecordBatch::new_empty(Arc::new(all.to_arrow(&ToArrow::default())?));
        let ty = ComparedAs::of(left.of(&rows)?.data_type(), right.of(&rows)?.data_type());
        let ty = ty.filter(|_| !left_shape && !right_shape).ok_or_else(|| {
            Error::invalid(format!(
                "{text}: columns of the types {} and {} cannot be compared",
                left_field.ty, right_field.ty
            ))
        })?;
        Ok(Self { left, comparison: columns.comparison, right, ty, text })
    }

    fn matching(&self, rows: &RecordBatch) -> Result<BooleanBuffer> {
        let found = self.ty.matching(&self.left.of(rows)?, self.comparison, &self.right.of(rows)?);
        found.map_err(|error| Error::invalid(format!("{}: {error}", self.text)))
    }
}
