//! Laws of expressions: nothing that matches is pruned, what must match does, and every way of evaluating agrees.

mod extract;
mod laws;
mod layouts;
mod text;
mod world;
