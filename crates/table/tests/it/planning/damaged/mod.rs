//! Planning over what is damaged, of other writers, or of absurd sizes.

mod damage;
mod sizes;
mod tolerant;
