//! Trees of predicates of any kind: folding of constants, balancing of long chains, pushing down `NOT`.

/// A tree of predicates.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression<P> {
    /// Matches every row.
    True,
    /// Matches no row.
    False,
    /// Matches the rows that the child does not match.
    Not(Box<Expression<P>>),
    /// Matches the rows that both match.
    And(Box<Expression<P>>, Box<Expression<P>>),
    /// Matches the rows that at least one of them matches.
    Or(Box<Expression<P>>, Box<Expression<P>>),
    /// A test of one term.
    Predicate(P),
}

/// A predicate that can be negated.
pub trait Leaf: Clone {
    /// Returns the predicate that matches where this one does not.
    #[must_use]
    fn negate(&self) -> Self;
}

impl<P> Expression<P> {
    /// Creates `left AND right` and folds constants.
    #[must_use]
    pub fn and(left: Self, right: Self) -> Self {
        match (left, right) {
            (Self::False, _) | (_, Self::False) => Self::False,
            (Self::True, other) | (other, Self::True) => other,
            (left, right) => Self::And(Box::new(left), Box::new(right)),
        }
    }

    /// Creates `left OR right` and folds constants.
    #[must_use]
    pub fn or(left: Self, right: Self) -> Self {
        match (left, right) {
            (Self::True, _) | (_, Self::True) => Self::True,
            (Self::False, other) | (other, Self::False) => other,
            (left, right) => Self::Or(Box::new(left), Box::new(right)),
        }
    }

    /// Creates `NOT child`; folds constants, and two negations cancel.
    #[must_use]
    #[expect(clippy::should_implement_trait, reason = "an expression is built, not negated in place")]
    pub fn not(child: Self) -> Self {
        match child {
            Self::True => Self::False,
            Self::False => Self::True,
            Self::Not(inner) => *inner,
            child => Self::Not(Box::new(child)),
        }
    }

    /// Creates the conjunction of all terms as a balanced tree: a thousand terms are ten levels deep.
    #[must_use]
    pub fn all(terms: Vec<Self>) -> Self {
        fold_balanced(terms, Self::True, Self::and)
    }

    /// Creates the disjunction of all terms as a balanced tree.
    #[must_use]
    pub fn any(terms: Vec<Self>) -> Self {
        fold_balanced(terms, Self::False, Self::or)
    }

    /// Depth of the tree; a single predicate has depth one.
    #[must_use]
    pub fn depth(&self) -> usize {
        let mut deepest = 0;
        let mut open = vec![(self, 1)];
        while let Some((node, depth)) = open.pop() {
            deepest = deepest.max(depth);
            match node {
                Self::Not(child) => open.push((child, depth + 1)),
                Self::And(left, right) | Self::Or(left, right) => {
                    open.push((left, depth + 1));
                    open.push((right, depth + 1));
                }
                Self::True | Self::False | Self::Predicate(_) => {}
            }
        }
        deepest
    }

    /// Balances chains of one operator, so that `a OR b OR …` built step by step does not become deep.
    #[must_use]
    pub fn balanced(self) -> Self {
        match self {
            Self::And(..) => Self::all(self.chain(true).into_iter().map(Self::balanced).collect()),
            Self::Or(..) => Self::any(self.chain(false).into_iter().map(Self::balanced).collect()),
            Self::Not(child) => Self::not(child.balanced()),
            leaf => leaf,
        }
    }

    /// Returns the operands of a chain of one operator, in order.
    fn chain(self, conjunction: bool) -> Vec<Self> {
        let mut operands = Vec::new();
        let mut open = vec![self];
        while let Some(node) = open.pop() {
            match node {
                Self::And(left, right) if conjunction => open.extend([*right, *left]),
                Self::Or(left, right) if !conjunction => open.extend([*right, *left]),
                operand => operands.push(operand),
            }
        }
        operands
    }

    /// Iterates over the predicates from left to right.
    pub fn predicates(&self) -> impl Iterator<Item = &P> {
        let mut open = vec![self];
        std::iter::from_fn(move || {
            while let Some(node) = open.pop() {
                match node {
                    Self::Predicate(predicate) => return Some(predicate),
                    Self::Not(child) => open.push(child),
                    Self::And(left, right) | Self::Or(left, right) => open.extend([&**right, &**left]),
                    Self::True | Self::False => {}
                }
            }
            None
        })
    }

    /// Replaces each predicate with an expression, and folds constants that `leaf` returns.
    pub fn try_map<Q, E>(&self, leaf: &mut impl FnMut(&P) -> Result<Expression<Q>, E>) -> Result<Expression<Q>, E> {
        Ok(match self {
            Self::True => Expression::True,
            Self::False => Expression::False,
            Self::Not(child) => Expression::not(child.try_map(leaf)?),
            Self::And(left, right) => Expression::and(left.try_map(leaf)?, right.try_map(leaf)?),
            Self::Or(left, right) => Expression::or(left.try_map(leaf)?, right.try_map(leaf)?),
            Self::Predicate(predicate) => leaf(predicate)?,
        })
    }
}

impl<P: Leaf> Expression<P> {
    /// Pushes `NOT` down to the predicates, which are negated.
    #[must_use]
    pub fn rewrite_not(&self) -> Self {
        self.rewrite(false)
    }

    fn rewrite(&self, negated: bool) -> Self {
        match (self, negated) {
            (Self::True, false) | (Self::False, true) => Self::True,
            (Self::False, false) | (Self::True, true) => Self::False,
            (Self::Not(child), _) => child.rewrite(!negated),
            (Self::And(left, right), false) | (Self::Or(left, right), true) => {
                Self::and(left.rewrite(negated), right.rewrite(negated))
            }
            (Self::Or(left, right), false) | (Self::And(left, right), true) => {
                Self::or(left.rewrite(negated), right.rewrite(negated))
            }
            (Self::Predicate(predicate), false) => Self::Predicate(predicate.clone()),
            (Self::Predicate(predicate), true) => Self::Predicate(predicate.negate()),
        }
    }
}

/// Combines neighbours pairwise, level by level, to a balanced tree.
fn fold_balanced<T>(mut terms: Vec<T>, empty: T, combine: impl Fn(T, T) -> T) -> T {
    while terms.len() > 1 {
        let mut pairs = terms.into_iter();
        let mut next = Vec::with_capacity(pairs.len().div_ceil(2));
        while let Some(left) = pairs.next() {
            next.push(match pairs.next() {
                Some(right) => combine(left, right),
                None => left,
            });
        }
        terms = next;
    }
    terms.pop().unwrap_or(empty)
}
