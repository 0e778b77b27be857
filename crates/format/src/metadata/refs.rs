//! Branches and tags ("Snapshot References"; JSON in Appendix C, "Table Metadata").

use std::fmt;

use serde_json::{Map, Value as Json};

use crate::json::{self, Object, Writer};
use crate::{Error, Result};

/// Name of the branch that points to the table's current snapshot.
pub const MAIN_BRANCH: &str = "main";

/// A branch or tag: a named snapshot with its retention.
#[derive(Debug, Clone, PartialEq)]
pub struct SnapshotRef {
    /// The snapshot; for a branch, its newest one.
    pub snapshot_id: i64,
    /// Branch or tag.
    pub kind: RefKind,
    /// Age at which expiry removes the reference; `main` is never removed.
    pub max_ref_age_ms: Option<i64>,
    /// Fields of a newer writer, preserved as they are.
    pub unknown: Map<String, Json>,
}

/// Kind of a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefKind {
    /// Moves to each new snapshot committed to it.
    Branch {
        /// Minimum number of snapshots that expiry keeps in the branch.
        min_snapshots_to_keep: Option<i32>,
        /// Age up to which expiry keeps snapshots in the branch.
        max_snapshot_age_ms: Option<i64>,
    },
    /// Stays at its snapshot.
    Tag,
}

impl RefKind {
    /// A branch with the retention that the table's properties set.
    pub const BRANCH: Self = Self::Branch { min_snapshots_to_keep: None, max_snapshot_age_ms: None };

    /// Its name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Branch { .. } => "branch",
            Self::Tag => "tag",
        }
    }
}

impl fmt::Display for RefKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

const KNOWN: &[&str] = &["snapshot-id", "type", "min-snapshots-to-keep", "max-snapshot-age-ms", "max-ref-age-ms"];

impl SnapshotRef {
    /// A branch with the retention that the table's properties set.
    pub fn branch(snapshot_id: i64) -> Self {
        Self { snapshot_id, kind: RefKind::BRANCH, max_ref_age_ms: None, unknown: Map::new() }
    }

    /// A tag with the retention that the table's properties set.
    pub fn tag(snapshot_id: i64) -> Self {
        Self { kind: RefKind::Tag, ..Self::branch(snapshot_id) }
    }

    /// Whether it is a branch.
    pub fn is_branch(&self) -> bool {
        matches!(self.kind, RefKind::Branch { .. })
    }

    /// Checks the retention: zero and negative numbers are refused.
    pub fn check(&self) -> Result<()> {
        let positive = |name: &str, value: Option<i64>| match value {
            Some(value) if value <= 0 => Err(Error::corrupt(json::step(name), format!("must be positive: {value}"))),
            _ => Ok(()),
        };
        positive("max-ref-age-ms", self.max_ref_age_ms)?;
        if let RefKind::Branch { min_snapshots_to_keep, max_snapshot_age_ms } = self.kind {
            positive("min-snapshots-to-keep", min_snapshots_to_keep.map(i64::from))?;
            positive("max-snapshot-age-ms", max_snapshot_age_ms)?;
        }
        Ok(())
    }

    /// Reads the JSON form.
    pub fn from_json(value: &Json) -> Result<Self> {
        let object = Object::new(value, "a snapshot reference")?;
        let mut reference = Self::read_fields(object)?;
        reference.unknown = object.unknown(KNOWN);
        Ok(reference)
    }

    /// Reads the fields of a reference from an object that may have others (such as the update `set-snapshot-ref`).
    pub(crate) fn read_fields(object: Object<'_>) -> Result<Self> {
        let min_snapshots_to_keep = object.nullable("min-snapshots-to-keep", json::int)?;
        let max_snapshot_age_ms = object.nullable("max-snapshot-age-ms", json::long)?;
        let kind = match object.field("type", json::string)?.to_lowercase().as_str() {
            "branch" => RefKind::Branch { min_snapshots_to_keep, max_snapshot_age_ms },
            "tag" if min_snapshots_to_keep.is_some() => {
                return Err(Error::corrupt("/min-snapshots-to-keep", "not allowed for a tag"));
            }
            "tag" if max_snapshot_age_ms.is_some() => {
                return Err(Error::corrupt("/max-snapshot-age-ms", "not allowed for a tag"));
            }
            "tag" => RefKind::Tag,
            other => return Err(Error::corrupt("/type", format!("neither branch nor tag: {other:?}"))),
        };
        let reference = Self {
            snapshot_id: object.field("snapshot-id", json::long)?,
            kind,
            max_ref_age_ms: object.nullable("max-ref-age-ms", json::long)?,
            unknown: Map::new(),
        };
        reference.check()?;
        Ok(reference)
    }

    /// Writes the JSON form.
    pub fn to_json(&self) -> Json {
        let mut object = Writer::default();
        self.write_fields(&mut object);
        object.put_unknown(&self.unknown).finish()
    }

    /// Writes the fields that [`Self::read_fields`] reads.
    pub(crate) fn write_fields(&self, object: &mut Writer) {
        object.put("snapshot-id", self.snapshot_id).put("type", self.kind.as_str());
        if let RefKind::Branch { min_snapshots_to_keep, max_snapshot_age_ms } = self.kind {
            object
                .put_some("min-snapshots-to-keep", min_snapshots_to_keep)
                .put_some("max-snapshot-age-ms", max_snapshot_age_ms);
        }
        object.put_some("max-ref-age-ms", self.max_ref_age_ms);
    }
}
