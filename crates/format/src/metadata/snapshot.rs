//! Snapshots ("Snapshots"; JSON in Appendix C, "Snapshot").

use std::fmt;

use serde_json::{Map, Value as Json};

use crate::json::{self, Object, StringMap, Writer};
use crate::{Error, Result};

/// A snapshot: the state of the table after a commit.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// Id, unique within the table.
    pub snapshot_id: i64,
    /// The snapshot that this one is based on; it may have been expired since.
    pub parent_snapshot_id: Option<i64>,
    /// Position in the order of changes to the table; 0 in v1.
    pub sequence_number: i64,
    /// Creation time, in milliseconds from the epoch.
    pub timestamp_ms: i64,
    /// What the commit did; old v1 writers left it out.
    pub summary: Option<Summary>,
    /// Where its manifests are listed.
    pub manifests: SnapshotManifests,
    /// The schema that was current when it was created.
    pub schema_id: Option<i32>,
    /// v3: id of the first row in its first added manifest.
    pub first_row_id: Option<i64>,
    /// v3: upper bound of the number of rows that were assigned ids; present if and only if `first_row_id` is.
    pub added_rows: Option<i64>,
    /// v3: id of the key that encrypts the key metadata of the manifest list.
    pub key_id: Option<String>,
    /// Fields of a newer writer, preserved as they are.
    pub unknown: Map<String, Json>,
}

/// Where the manifests of a snapshot are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SnapshotManifests {
    /// Location of the manifest list.
    List(String),
    /// v1 only: the locations of the manifests themselves.
    Inline(Vec<String>),
}

/// The summary of a snapshot: operation and counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// What the commit did.
    pub operation: Operation,
    /// The other entries, in document order.
    pub properties: StringMap,
}

/// What a commit did to the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Added data files only.
    Append,
    /// Added and removed files without changing the rows, as in a compaction.
    Replace,
    /// Added and removed rows.
    Overwrite,
    /// Removed rows.
    Delete,
    /// An operation of another writer, as written.
    Other(String),
}

impl Operation {
    /// Parses the name in summaries.
    pub fn parse(name: &str) -> Self {
        match name {
            "append" => Self::Append,
            "replace" => Self::Replace,
            "overwrite" => Self::Overwrite,
            "delete" => Self::Delete,
            other => Self::Other(other.to_owned()),
        }
    }

    /// Returns the name in summaries.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Append => "append",
            Self::Replace => "replace",
            Self::Overwrite => "overwrite",
            Self::Delete => "delete",
            Self::Other(name) => name,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Summary {
    /// A summary without other entries.
    pub fn new(operation: Operation) -> Self {
        Self { operation, properties: StringMap::new() }
    }

    /// Returns an entry, including `operation`.
    pub fn get(&self, name: &str) -> Option<&str> {
        if name == "operation" { Some(self.operation.as_str()) } else { self.properties.get(name).map(String::as_str) }
    }

    /// Reads a summary; an empty one counts as missing. Some writers omit the operation: then `overwrite` is assumed,
    /// since it rules out nothing.
    fn from_json(value: &Json) -> Result<Option<Self>> {
        let mut properties = json::present_strings(value)?;
        if properties.is_empty() {
            return Ok(None);
        }
        let operation = properties.shift_remove("operation");
        let operation = operation.map_or(Operation::Overwrite, |name| Operation::parse(&name));
        Ok(Some(Self { operation, properties }))
    }

    fn to_json(&self) -> Json {
        let mut object = Writer::default();
        object.put("operation", self.operation.as_str());
        for (name, value) in &self.properties {
            object.put(name, value.as_str());
        }
        object.finish()
    }
}

const KNOWN: &[&str] = &[
    "sequence-number",
    "snapshot-id",
    "parent-snapshot-id",
    "timestamp-ms",
    "summary",
    "manifests",
    "manifest-list",
    "schema-id",
    "first-row-id",
    "added-rows",
    "key-id",
];

impl Snapshot {
    /// Location of the manifest list; `None` if the metadata lists the manifests itself (v1).
    pub fn manifest_list(&self) -> Option<&str> {
        match &self.manifests {
            SnapshotManifests::List(location) => Some(location),
            SnapshotManifests::Inline(_) => None,
        }
    }

    /// What the commit did, if the snapshot says so.
    pub fn operation(&self) -> Option<&Operation> {
        self.summary.as_ref().map(|summary| &summary.operation)
    }

    /// Reads the JSON form of any version.
    pub fn from_json(value: &Json) -> Result<Self> {
        let object = Object::new(value, "a snapshot")?;
        let mut snapshot = Self {
            sequence_number: object.nullable("sequence-number", json::long)?.unwrap_or(0),
            snapshot_id: object.field("snapshot-id", json::long)?,
            parent_snapshot_id: object.nullable("parent-snapshot-id", json::long)?,
            timestamp_ms: object.field("timestamp-ms", json::long)?,
            summary: object.nullable("summary", Summary::from_json)?.flatten(),
            schema_id: object.nullable("schema-id", json::int)?,
            first_row_id: object.nullable("first-row-id", row_count)?,
            added_rows: object.nullable("added-rows", row_count)?,
            key_id: object.nullable("key-id", json::string)?,
            manifests: match object.nullable("manifest-list", json::string)? {
                Some(location) => SnapshotManifests::List(location),
                None => SnapshotManifests::Inline(inline_manifests(object)?),
            },
            unknown: object.unknown(KNOWN),
        };
        snapshot.drop_stray_row_ids()?;
        Ok(snapshot)
    }

    /// Drops row ids from snapshots without a manifest list, and counts without a first row id. A first row id without
    /// a count is an error.
    fn drop_stray_row_ids(&mut self) -> Result<()> {
        if self.manifest_list().is_none() {
            (self.first_row_id, self.added_rows, self.key_id) = (None, None, None);
        }
        match (self.first_row_id, self.added_rows) {
            (Some(_), None) => Err(Error::corrupt("/added-rows", "required where first-row-id is set")),
            (None, _) => {
                self.added_rows = None;
                Ok(())
            }
            (Some(_), Some(_)) => Ok(()),
        }
    }

    /// Writes the JSON form, which is the same for all versions.
    pub fn to_json(&self) -> Json {
        let mut object = Writer::default();
        object
            .put_some("sequence-number", (self.sequence_number > 0).then_some(self.sequence_number))
            .put("snapshot-id", self.snapshot_id)
            .put_some("parent-snapshot-id", self.parent_snapshot_id)
            .put("timestamp-ms", self.timestamp_ms)
            .put_some("summary", self.summary.as_ref().map(Summary::to_json));
        match &self.manifests {
            SnapshotManifests::List(location) => object.put("manifest-list", location.as_str()),
            SnapshotManifests::Inline(locations) => object.put("manifests", locations.clone()),
        };
        object
            .put_some("schema-id", self.schema_id)
            .put_some("first-row-id", self.first_row_id)
            .put_some("added-rows", self.added_rows)
            .put_some("key-id", self.key_id.as_deref())
            .put_unknown(&self.unknown)
            .finish()
    }
}

fn inline_manifests(object: Object<'_>) -> Result<Vec<String>> {
    if object.get("manifests").is_none() {
        return Err(Error::corrupt("/manifest-list", "required, but missing (and so is manifests)"));
    }
    object.field("manifests", |value| json::list(value, json::string))
}

fn row_count(value: &Json) -> Result<i64> {
    match json::long(value)? {
        count if count < 0 => Err(Error::corrupt("", format!("cannot be negative: {count}"))),
        count => Ok(count),
    }
}
