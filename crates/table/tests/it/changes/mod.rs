//! Changes of files: the resulting manifests, conflicts with other commits, and what attempts share. The files are
//! virtual: only manifests are written.

mod attempts;
mod conflicts;
mod manifests;
mod rewrites;
mod rules;
mod vectors;
mod world;
