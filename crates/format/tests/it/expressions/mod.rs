//! Laws of expressions: no match is pruned, strict evaluation is right, and all ways of evaluating agree.

mod extract;
mod laws;
mod layouts;
mod text;
mod world;
