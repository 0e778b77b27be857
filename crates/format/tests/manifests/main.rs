//! Manifests and manifest lists: what is written is read again, by us and by another Avro reader; what is damaged is refused.

mod hostile;
mod made;
mod oracle;
