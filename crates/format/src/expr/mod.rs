//! Predicates on rows, partitions and statistics ("Scan Planning"; JSON form of the REST protocol's `Expression`).
//!
//! An [`Expr`] refers to columns by name. [`Expr::bind`] looks them up in a schema and converts the literals. All
//! further steps use the resulting [`BoundExpr`]: projection to partitions, residuals, and the evaluators for rows,
//! metrics and summaries. Binding is by field id, so a bound filter survives renames.

mod bind;
mod condition;
mod convert;
mod datum;
mod evaluate;
mod expression;
mod extract;
mod json;
mod lexer;
mod literal;
mod partition;
mod predicate;
mod sql;
mod text;
mod where_clause;

pub use bind::{BoundExpr, BoundPredicate, BoundReference, BoundTerm, PathStep, ValueSet};
pub use condition::{ColumnComparison, Condition, ConditionPredicate};
pub use convert::Converted;
pub use datum::Datum;
pub use evaluate::metrics::InclusiveMetrics;
pub use evaluate::rows::{ColumnSource, TermColumn};
pub use evaluate::statistics::{FieldStatistics, FileStatistics, StatisticsColumns, StatisticsOfFile};
pub use evaluate::strict::StrictMetrics;
pub use evaluate::summary::{FieldSummary, SummaryEvaluator};
pub use expression::{Expression, Leaf};
pub use extract::{Extract, cast};
pub use literal::Literal;
pub use partition::project::{project_inclusive, project_strict};
pub use partition::residual::Residuals;
pub use predicate::{Comparison, Expr, Operation, Predicate, Term, Test};
