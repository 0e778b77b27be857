//! Expressions: their classes, their parts, and the same bound to a schema.

pub(crate) mod bound_classes;
pub(crate) mod expression_classes;
pub(crate) mod expressions;
pub(crate) mod predicates;
