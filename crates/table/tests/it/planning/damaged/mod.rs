//! Planning with files that are damaged, from other writers, or have absurd sizes.

mod damage;
mod sizes;
mod tolerant;
