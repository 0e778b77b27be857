//! Changes of files: what becomes of manifests, what is refused for what others committed, and what attempts share. The
//! files are virtual: only manifests are written.

mod attempts;
mod conflicts;
mod manifests;
mod rewrites;
mod rules;
mod vectors;
mod world;
