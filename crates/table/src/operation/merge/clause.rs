//! The clauses of a merge: which rows each is about, its condition, and what it does.

use std::fmt;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::Schema as ArrowSchema;
use icefield_format::expr::Condition as RowCondition;

use crate::error::Result;
use crate::write::Matching;

/// Computes values of rows: their columns are named `target.NAME` and `source.NAME`, as far as there are rows of each side.
/// The answer is a struct with the fields of the schema, or booleans where there is none. It has a value for each row.
pub type RowFunction = Arc<dyn Fn(RecordBatch, Option<&ArrowSchema>) -> Result<ArrayRef> + Send + Sync>;

/// Which rows a clause is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Rows of the table with a row of the source that has their key.
    Matched,
    /// Rows of the source whose key no row of the table has.
    NotMatched,
    /// Rows of the table whose key no row of the source has.
    NotMatchedBySource,
}

/// For which of its rows a clause applies.
#[derive(Clone)]
pub enum Condition {
    /// All of them.
    Always,
    /// Those that a filter matches. Columns are named `target.NAME` and `source.NAME`.
    Filter(RowCondition),
    /// Those that a function answers with true.
    Function(RowFunction),
    /// Those where a column of the source has another value than the table's.
    Differs,
}

/// What a clause does with a row.
#[derive(Clone)]
pub enum Action {
    /// It is deleted.
    Delete,
    /// It gets the values of all columns that the source has; a new row has the defaults of the others.
    WriteAll,
    /// It gets the values of these columns; a new row has the defaults of the others.
    Write(Assignments),
}

/// Values of columns.
#[derive(Clone, Default)]
pub struct Assignments {
    /// Columns, and the column of either side (`source.NAME`) that each is taken from.
    pub taken: Vec<(String, String)>,
    /// Columns that get a text, and the texts: those that look like columns are refused. The function gives the values.
    pub texts: Vec<(String, String)>,
    /// Columns that the function computes.
    pub computed: Vec<String>,
    /// Computes columns, in their order.
    pub function: Option<RowFunction>,
}

/// A clause of a merge.
#[derive(Debug, Clone)]
pub struct Clause {
    /// Its name, for errors.
    pub name: String,
    /// Which rows it is about.
    pub when: When,
    /// For which of them it applies.
    pub condition: Condition,
    /// What it does.
    pub action: Action,
}

/// How the rows of a source and of a table are compared and what is done with them.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Pairs of columns of the table and of the source that make the key.
    pub on: Vec<(String, String)>,
    /// Clauses in their order: of those about a row, the first whose condition holds applies.
    pub clauses: Vec<Clause>,
    /// Whether the case of names in `on` and in conditions matters.
    pub case_sensitive: bool,
    /// Whether null is a key, and two rows of the source with one key are refused.
    pub exact: bool,
    /// How the columns of the source may differ from the table's where a clause takes all of them. Columns that the table lacks are
    /// still taken where they are of the key, or named by a condition or a value.
    pub matching: Matching,
    /// Texts of what functions compute: columns of the source that they name, as `source.NAME`, are used.
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
