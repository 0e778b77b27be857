//! The clauses of a merge: the rows they apply to, their conditions and actions.

use std::fmt;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::Schema as ArrowSchema;
use icefield_format::expr::Condition as RowCondition;

use crate::error::Result;
use crate::write::Matching;

/// Computes values of rows, whose columns are named `target.NAME` and `source.NAME` if that side has a row. Returns a
/// struct with the fields of the schema, or booleans without a schema; one value for each row.
pub type RowFunction = Arc<dyn Fn(RecordBatch, Option<&ArrowSchema>) -> Result<ArrayRef> + Send + Sync>;

/// The kind of rows that a clause applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Rows of the table whose key the source has.
    Matched,
    /// Rows of the source whose key the table does not have.
    NotMatched,
    /// Rows of the table whose key the source does not have.
    NotMatchedBySource,
}

/// The condition of a clause.
#[derive(Clone)]
pub enum Condition {
    /// All rows.
    Always,
    /// Rows that a filter matches. Its columns are named `target.NAME` and `source.NAME`.
    Filter(RowCondition),
    /// Rows for which a function returns true.
    Function(RowFunction),
    /// Rows in which some column of the source differs from that of the table.
    Differs,
}

/// The action of a clause.
#[derive(Clone)]
pub enum Action {
    /// Deletes the row.
    Delete,
    /// Writes all columns that the source has; in a new row, the others get their defaults.
    WriteAll,
    /// Writes these columns; in a new row, the others get their defaults.
    Write(Assignments),
}

/// The values that an action assigns.
#[derive(Clone, Default)]
pub struct Assignments {
    /// Columns, each with the column of either side (`source.NAME`) that it is copied from.
    pub taken: Vec<(String, String)>,
    /// Columns assigned a string, with that string; one that looks like a column is rejected. The values themselves
    /// come from the function.
    pub texts: Vec<(String, String)>,
    /// Columns that the function computes, in its order.
    pub computed: Vec<String>,
    /// Computes the `computed` columns.
    pub function: Option<RowFunction>,
}

/// A clause of a merge.
#[derive(Debug, Clone)]
pub struct Clause {
    /// Name of the clause, for errors.
    pub name: String,
    /// The kind of rows it applies to.
    pub when: When,
    /// Which of these rows it applies to.
    pub condition: Condition,
    /// What it does with them.
    pub action: Action,
}

/// How the rows of a source and a table are matched, and what is done with them.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Pairs of columns, of the table and of the source, that form the key.
    pub on: Vec<(String, String)>,
    /// The clauses in order. For each row, the first clause of its kind whose condition is true applies.
    pub clauses: Vec<Clause>,
    /// Whether `on` and conditions match column names case-sensitively.
    pub case_sensitive: bool,
    /// Whether a null key matches a null key, and two source rows with the same key are an error.
    pub exact: bool,
    /// How the columns of the source may differ from the table's if a clause writes all columns. Columns that the table
    /// lacks are still allowed in the key, and in conditions and values.
    pub matching: Matching,
    /// Texts of the expressions that functions compute: source columns in them, as `source.NAME`, count as used.
    pub mentions: Vec<String>,
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always => f.write_str("Always"),
            Self::Filter(filter) => f.debug_tuple("Filter").field(filter).finish(),
            Self::Function(_) => f.write_str("Function"),
            Self::Differs => f.write_str("Differs"),
        }
    }
}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delete => f.write_str("Delete"),
            Self::WriteAll => f.write_str("WriteAll"),
            Self::Write(assignments) => f.debug_tuple("Write").field(assignments).finish(),
        }
    }
}

impl fmt::Debug for Assignments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = &mut f.debug_struct("Assignments");
        fields.field("taken", &self.taken).field("computed", &self.computed).finish_non_exhaustive()
    }
}
