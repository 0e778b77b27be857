//! What the golden vectors do not say.
