//! Joined rows of a table and a source, as conditions and new values use them: columns are named `target.NAME` and
//! `source.NAME`.

use std::collections::HashSet;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_schema::{DataType, Field as ArrowField, FieldRef, Schema as ArrowSchema, SchemaRef};
use arrow_select::take::take_record_batch;
use icefield_format::expr::{
    BoundExpr, BoundReference, ColumnSource, Condition, ConditionPredicate, Expr, Expression, Predicate, Term,
    TermColumn,
};
use icefield_format::types::arrow::{FromArrow, ToArrow};
use icefield_format::types::{Field, Schema, StructType, Type};

use super::key::find;
use crate::arrow::cells::StoredColumn;
use crate::error::{Error, Result};

/// Prefix of the names of the table's columns.
pub(crate) const TARGET: &str = "target";
/// Prefix of the names of the source's columns.
pub(crate) const SOURCE: &str = "source";

/// The columns of both sides; `None` if rows of that side are missing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sides<'a> {
    pub(crate) target: Option<&'a Schema>,
    pub(crate) source: Option<&'a ArrowSchema>,
}

impl Sides<'_> {
    /// Binds a filter to the columns of these sides.
    ///
    /// # Errors
    /// A column that neither side has, or a literal that does not fit one.
    pub(crate) fn bind(&self, filter: &Expr, case_sensitive: bool) -> Result<BoundExpr> {
        let mut sides = Vec::new();
        if let Some(schema) = self.target {
            let fields = schema.fields().iter().map(|field| Field { required: false, ..field.clone() });
            sides.push((TARGET, fields.collect::<Vec<_>>()));
        }
        if let Some(schema) = self.source {
            let options = FromArrow::for_version(3);
            // Columns with unsupported types cannot be used in filters.
            let field = |field: &FieldRef| Some(Field::optional(0, field.name(), options.type_of(field).ok()?));
            sides.push((SOURCE, schema.fields().iter().filter_map(field).collect()));
        }
        let mut last_id = 0;
        let side = |(name, fields): (&str, Vec<Field>)| {
            let ty = Type::Struct(StructType::new(fields).into()).with_fresh_ids(&mut last_id)?;
            last_id += 1;
            Ok(Field::required(last_id, name, ty))
        };
        let fields = sides.into_iter().map(side).collect::<Result<Vec<_>>>()?;
        let names = |side: &str| fields.iter().any(|field| field.name == side);
        let missing = filter.predicates().map(|predicate| side_of(&predicate.term.name)).find(|side| !names(side));
        if let Some(side) = missing {
            let known: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
            return Err(Error::invalid(match side {
                TARGET | SOURCE => format!("{filter}: there is no row of the {side} here"),
                _ => format!("{filter}: columns are named {}.NAME here", known.join(".NAME and ")),
            }));
        }
        Ok(filter.bind(&Schema::new(0, fields)?, case_sensitive)?)
    }

    /// Finds a column by a name such as `source.x`; returns its path in joined rows.
    pub(crate) fn column(&self, name: &str, case_sensitive: bool) -> Option<Vec<String>> {
        let (side, rest) = name.split_once('.')?;
        let path = match side {
            SOURCE => find(self.source?, rest, case_sensitive)?.0,
            TARGET => {
                let table = self.target?;
                let field = table.find_by_name(rest, case_sensitive).ok()??;
                let mut fields = table.fields();
                let mut path = Vec::new();
                for place in table.accessor(field.id)? {
                    let field = fields.get(*place)?;
                    path.push(field.name.clone());
                    fields = field.ty.as_struct().map_or(&[][..], |inner| &inner.fields);
                }
                path
            }
            _ => return None,
        };
        let (first, inner) = path.split_first()?;
        Some(std::iter::once(format!("{side}.{first}")).chain(inner.iter().cloned()).collect())
    }
}

impl Sides<'_> {
    /// The error text for a column that does not exist.
    pub(crate) fn missing(&self, name: &str) -> String {
        let known = [(TARGET, self.target.is_some()), (SOURCE, self.source.is_some())];
        match known.iter().find(|(side, _)| *side == side_of(name)) {
            Some((_, true)) => format!("there is no column {name}"),
            Some((side, false)) => format!("there is no row of the {side} here"),
            None => {
                let known: Vec<&str> = known.iter().filter(|(_, is_here)| *is_here).map(|(side, _)| *side).collect();
                format!("columns are named {}.NAME here", known.join(".NAME and "))
            }
        }
    }

    /// The Arrow type of a column of joined rows.
    pub(crate) fn type_of(&self, path: &[String]) -> Result<DataType> {
        let missing = || Error::Internal(format!("no column {} in joined rows", path.join(".")));
        let (first, inner) = path.split_first().ok_or_else(missing)?;
        let (side, name) = first.split_once('.').ok_or_else(missing)?;
        let schema = match (side, self.target, self.source) {
            (TARGET, Some(table), _) => table.to_arrow(&ToArrow::default())?,
            (SOURCE, _, Some(source)) => source.clone(),
            _ => return Err(missing()),
        };
        let mut ty = schema.field_with_name(name).map_err(|_| missing())?.data_type().clone();
        for name in inner {
            let DataType::Struct(fields) = &ty else { return Err(missing()) };
            let field = fields.iter().find(|field| field.name() == name).ok_or_else(missing)?;
            ty = field.data_type().clone();
        }
        Ok(ty)
    }
}

/// The part of a condition on joined rows that concerns only the table, as a filter of the table. It matches every
/// table row that the condition may match.
pub(crate) fn of_target(condition: &Condition) -> Expr {
    let mut leaf = |leaf: &ConditionPredicate| {
        let ConditionPredicate::Literals(predicate) = leaf else { return Ok(Expression::True) };
        let term = &predicate.term;
        Ok::<_, std::convert::Infallible>(match term.name.split_once('.') {
            Some((side, name)) if side.eq_ignore_ascii_case(TARGET) => Expression::Predicate(Predicate {
                term: Term { name: name.to_owned(), ..term.clone() },
                test: predicate.test.clone(),
            }),
            _ => Expression::True,
        })
    };
    match condition.rewrite_not().try_map(&mut leaf) {
        Ok(filter) => filter,
        Err(never) => match never {},
    }
}

/// The columns that a filter uses, by their names in joined rows.
pub(crate) fn columns_of(filter: &BoundExpr) -> HashSet<String> {
    let paths = filter.predicates().filter_map(|predicate| Some(path_of(&predicate.term.reference)?.swap_remove(0)));
    paths.collect()
}

fn path_of(reference: &BoundReference) -> Option<Vec<String>> {
    let [side, first, inner @ ..] = reference.path.as_deref()? else { return None };
    let inner = inner.iter().map(|step| step.name.clone());
    Some(std::iter::once(format!("{}.{}", side.name, first.name)).chain(inner).collect())
}

fn side_of(name: &str) -> &str {
    let side = name.split('.').next().unwrap_or(name);
    [TARGET, SOURCE].into_iter().find(|known| side.eq_ignore_ascii_case(known)).unwrap_or(side)
}

/// A batch of joined rows.
#[derive(Debug, Clone)]
pub(crate) struct Joined(RecordBatch);

impl Joined {
    /// Joined rows with these columns, given by their names here.
    pub(crate) fn new(columns: Vec<(String, ArrayRef)>, rows: usize) -> Result<Self> {
        let field = |(name, array): &(String, ArrayRef)| ArrowField::new(name, array.data_type().clone(), true);
        let schema: SchemaRef = ArrowSchema::new(columns.iter().map(field).collect::<Vec<_>>()).into();
        let arrays = columns.into_iter().map(|(_, array)| array).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(Self(RecordBatch::try_new_with_options(schema, arrays, &options).map_err(internal)?))
    }

    /// The rows.
    pub(crate) fn rows(&self) -> &RecordBatch {
        &self.0
    }

    /// A selection of the rows, each at most once and in their order.
    pub(crate) fn take(&self, rows: &[u32]) -> Result<Self> {
        if rows.len() == self.0.num_rows() {
            return Ok(self.clone());
        }
        let rows = UInt32Array::from(rows.to_vec());
        Ok(Self(take_record_batch(&self.0, &rows).map_err(internal)?))
    }

    /// Returns a column by its path.
    pub(crate) fn column(&self, path: &[String]) -> Result<ArrayRef> {
        StoredColumn::named(path.to_vec()).of(&self.0)
    }

    /// The rows that a filter matches.
    pub(crate) fn matching(&self, filter: &BoundExpr) -> Result<BooleanArray> {
        Ok(BooleanArray::new(filter.evaluate_columns(self)?, None))
    }
}

impl ColumnSource for Joined {
    fn len(&self) -> usize {
        self.0.num_rows()
    }

    fn column(&self, reference: &BoundReference) -> icefield_format::Result<TermColumn> {
        let failed = |why: String| icefield_format::Error::invalid(format!("column {}: {why}", reference.name));
        let path = path_of(reference).ok_or_else(|| failed("cannot be filtered by".to_owned()))?;
        Ok(TermColumn::new(Joined::column(self, &path).map_err(|error| failed(error.to_string()))?))
    }
}

fn internal(error: arrow_schema::ArrowError) -> Error {
    Error::Internal(format!("rows of a merge: {error}"))
}
