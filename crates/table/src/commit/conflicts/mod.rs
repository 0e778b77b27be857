//! Conflicts with other commits: which files they added and removed since an operation started, and the rules that
//! decide.

pub(super) mod history;
pub mod rule;
pub mod validate;
