//! A filter for rows of a table that may have a key of the source, used to prune files.
//!
//! It lists a few keys one by one, and otherwise uses the minimum and maximum. It can thus be computed without holding
//! the source in memory.

use arrow_array::{Array, ArrayRef};
use arrow_row::{OwnedRow, RowConverter, SortField};
use arrow_schema::ArrowError;
use icefield_format::expr::{Comparison, Expr, Expression, Literal, Predicate, Term, Test};
use icefield_format::types::{PrimitiveType, Schema, Type};

use super::key::Key;
use crate::arrow::cells::value_at;
use crate::error::{Error, Result};

/// Maximum number of keys that the filter lists one by one.
const MOST_KEYS: usize = 200;

/// The ranges of the key's columns.
#[derive(Debug)]
pub(crate) struct KeyRange {
    columns: Vec<Option<ColumnRange>>,
    rows: usize,
}

/// The range of one column.
#[derive(Debug)]
struct ColumnRange {
    name: String,
    ty: PrimitiveType,
    /// All values, as long as there are few.
    few: Vec<Literal>,
    ends: Option<(End, End)>,
    has_null: bool,
}

type End = (OwnedRow, Literal);

impl KeyRange {
    /// The range of no rows.
    pub(crate) fn new(table: &Schema, key: &Key) -> Self {
        let column = |id: i32| {
            let Some(Type::Primitive(ty)) = table.find_type(id) else { return None };
            let name = table.column_name(id)?.to_owned();
            is_ordered(ty).then(|| ColumnRange { name, ty: ty.clone(), few: Vec::new(), ends: None, has_null: false })
        };
        Self { columns: key.columns.iter().map(|of_key| column(of_key.id)).collect(), rows: 0 }
    }

    /// Adds the key columns of some rows.
    pub(crate) fn add(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.rows += columns.first().map_or(0, |column| column.len());
        let few = self.rows <= MOST_KEYS;
        let pairs = self.columns.iter_mut().zip(columns).filter_map(|(range, column)| Some((range.as_mut()?, column)));
        pairs.into_iter().try_for_each(|(range, column)| range.add(column, few))
    }

    /// The filter; with `nulls`, a null key matches too.
    pub(crate) fn filter(self, nulls: bool) -> Expr {
        if self.rows == 0 {
            return Expression::False;
        }
        let few = self.rows <= MOST_KEYS;
        Expr::all(self.columns.into_iter().flatten().map(|range| range.filter(few, nulls)).collect())
    }
}

impl ColumnRange {
    fn add(&mut self, column: &ArrayRef, few: bool) -> Result<()> {
        let converter = RowConverter::new(vec![SortField::new(column.data_type().clone())]).map_err(internal)?;
        let rows = converter.convert_columns(std::slice::from_ref(column)).map_err(internal)?;
        self.has_null |= column.null_count() > 0;
        let mut ends: Option<(usize, usize)> = None;
        for row in (0..column.len()).filter(|row| column.is_valid(*row)) {
            ends = Some(match ends {
                None => (row, row),
                Some((least, most)) => (
                    if rows.row(row) < rows.row(least) { row } else { least },
                    if rows.row(row) > rows.row(most) { row } else { most },
                ),
            });
        }
        let literal = |row: usize| {
            let value = value_at(column, &self.ty, row)?.ok_or_else(|| Error::Internal("no value".to_owned()))?;
            Ok::<_, Error>(Literal::new(self.ty.clone(), value)?)
        };
        match few {
            false => self.few = Vec::new(),
            true => {
                let valid = (0..column.len()).filter(|row| column.is_valid(*row));
                let values = valid.map(literal).collect::<Result<Vec<_>>>()?;
                self.few.extend(values);
            }
        }
        let Some((least, most)) = ends else { return Ok(()) };
        let (least, most) = ((rows.row(least).owned(), literal(least)?), (rows.row(most).owned(), literal(most)?));
        self.ends = Some(match self.ends.take() {
            None => (least, most),
            Some((old_least, old_most)) => (
                if least.0 < old_least.0 { least } else { old_least },
                if most.0 > old_most.0 { most } else { old_most },
            ),
        });
        Ok(())
    }

    fn filter(self, few: bool, nulls: bool) -> Expr {
        let name = self.name;
        let test = |test| Expression::Predicate(Predicate { term: Term::column(name.as_str()), test });
        let mut found = Vec::new();
        if let Some(((_, least), (_, most))) = self.ends {
            found.push(match few {
                true => test(Test::In(self.few)),
                false => {
                    Expr::and(test(Test::Compare(Comparison::GtEq, least)), test(Test::Compare(Comparison::LtEq, most)))
                }
            });
        }
        if self.has_null && nulls {
            found.push(test(Test::IsNull));
        }
        Expr::any(found)
    }
}

/// Whether the order of a type's values is the same in metadata, in files and in Arrow's row format.
fn is_ordered(ty: &PrimitiveType) -> bool {
    use PrimitiveType as P;
    matches!(
        ty,
        P::Int
            | P::Long
            | P::Date
            | P::Time
            | P::Timestamp
            | P::Timestamptz
            | P::TimestampNs
            | P::TimestamptzNs
            | P::String
    )
}

fn internal(error: ArrowError) -> Error {
    Error::Internal(format!("the keys of a merge: {error}"))
}
