//! Manifests and manifest lists: written files are read again, by us and by another Avro reader; damaged files are
//! rejected.

// In tests an `unwrap` is a check.
mod hostile;
mod made;
mod oracle;
