//! Expressions: unbound and bound classes, and their parts.

pub(crate) mod bound_classes;
pub(crate) mod expression_classes;
pub(crate) mod expressions;
pub(crate) mod predicates;
