//! Manifests and manifest lists: what is written is read again, by us and by another Avro reader; what is damaged is refused.

// In tests an `unwrap` is a check.
mod hostile;
mod made;
mod oracle;
