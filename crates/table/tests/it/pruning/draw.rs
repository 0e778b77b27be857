//! Random choices from which a case is generated; the first choice is always the simplest, so that a failure shrinks to
//! zeros.

use std::fmt;

use proptest::collection::vec;
use proptest::prelude::*;

/// All choices of a case. The message of a failure contains the resulting case.
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

/// Takes numbers one after the other, then zeros when they are used up.
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

    /// True with a probability of `percent`.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) >= 100 - percent
    }

    pub fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }
}
