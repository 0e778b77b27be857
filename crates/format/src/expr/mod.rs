//! Predicates on rows, on partitions and on statistics ("Scan Planning"; JSON form of the REST protocol's `Expression`).
//!
//! An [`Expr`] names its columns; [`Expr::bind`] looks them up in a schema and converts the literals, and what comes out, a
//! [`BoundExpr`], is what everything else works on: projection to partitions, residuals, and the evaluators over rows,
//! metrics and summaries. Binding is by field id, so a bound filter survives renames.

mod bind;
mod compare;
mod condition;
mod convert;
mod datum;
mod expression;
mod extract;
mod files;
mod json;
mod lexer;
mod literal;
mod mask;
mod metrics;
mod predicate;
mod project;
mod residual;
mod rows;
mod sql;
mod statistics;
mod strict;
mod summary;
mod text;
mod where_clause;

pub use bind::{BoundExpr, BoundPredicate, BoundReference, BoundTerm, PathStep, ValueSet};
pub use condition::{ColumnComparison, Condition, ConditionPredicate};
pub use convert::Converted;
pub use datum::Datum;
pub use expression::{Expression, Leaf};
pub use extract::{Extract, cast};
pub use literal::Literal;
pub use metrics::InclusiveMetrics;
pub use predicate::{Comparison, Expr, Operation, Predicate, Term, Test};
pub use project::{project_inclusive, project_strict};
pub use residual::Residuals;
pub use rows::{ColumnSource, TermColumn};
pub use statistics::{FieldStatistics, FileStatistics, StatisticsColumns, StatisticsOfFile};
pub use strict::StrictMetrics;
pub use summary::{FieldSummary, SummaryEvaluator};
