//! Laws of expressions: nothing that matches is pruned, what must match does, and every way of evaluating agrees.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod extract;
mod laws;
mod layouts;
mod text;
mod world;
