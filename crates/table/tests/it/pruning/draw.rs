//! Choices that a case is made of; the first of each is the simplest, so that a failure shrinks to zeros.

use std::fmt;

use proptest::collection::vec;
use proptest::prelude::*;

/// All choices of a case. What they came to is in the message of a failure.
#[derive(Clone)]
pub struct Choices(Vec<u16>);

impl fmt::Debug for Choices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} choices", self.0.len())
    }
}

pub fn choices() -> impl Strategy<Value = Choices> {
    vec(any::<u16>(), 400).prop_map(Choices)
}

/// Numbers that are taken one after the other; zeros once they are used up.
#[derive(Debug)]
pub struct Draw {
    choices: std::vec::IntoIter<u16>,
}

impl Draw {
    pub fn new(choices: Choices) -> Self {
        Self { choices: choices.0.into_iter() }
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::from(self.choices.next().unwrap_or(0)) % limit
    }

    /// True in so many cases of a hundred.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) >= 100 - percent
    }

    pub fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }
}
