//! Evaluates an expression for many rows at once, to a mask.

use arrow_buffer::BooleanBuffer;

use crate::error::Result;

use crate::expr::Expression;

/// Combines the masks of the predicates. The second operand is not evaluated if the first one already decides all rows.
pub(super) fn evaluate<P>(
    expr: &Expression<P>,
    len: usize,
    leaf: &mut impl FnMut(&P) -> Result<BooleanBuffer>,
) -> Result<BooleanBuffer> {
    Ok(match expr {
        Expression::True => BooleanBuffer::new_set(len),
        Expression::False => BooleanBuffer::new_unset(len),
        Expression::Not(child) => !&evaluate(child, len, leaf)?,
        Expression::And(left, right) => {
            let left = evaluate(left, len, leaf)?;
            if left.count_set_bits() == 0 {
                return Ok(left);
            }
            &left & &evaluate(right, len, leaf)?
        }
        Expression::Or(left, right) => {
            let left = evaluate(left, len, leaf)?;
            if left.count_set_bits() == len {
                return Ok(left);
            }
            &left | &evaluate(right, len, leaf)?
        }
        Expression::Predicate(predicate) => leaf(predicate)?,
    })
}

/// Evaluates an expression for one row.
pub(super) fn decide<P>(expr: &Expression<P>, leaf: &impl Fn(&P) -> bool) -> bool {
    match expr {
        Expression::True => true,
        Expression::False => false,
        Expression::Not(child) => !decide(child, leaf),
        Expression::And(left, right) => decide(left, leaf) && decide(right, leaf),
        Expression::Or(left, right) => decide(left, leaf) || decide(right, leaf),
        Expression::Predicate(predicate) => leaf(predicate),
    }
}
