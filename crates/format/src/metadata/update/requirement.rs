//! Requirements of a commit: conditions that the current metadata must meet (REST catalog, `TableRequirement`).

use std::collections::HashSet;

use serde_json::Value as Json;

use crate::json::{self, Object, Writer};
use crate::metadata::{MAIN_BRANCH, MetadataUpdate, TableMetadata};
use crate::{Error, Result};

/// A condition on the metadata that a commit replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpdateRequirement {
    /// The table does not exist.
    AssertCreate,
    /// The table has this uuid.
    AssertTableUuid {
        /// Its uuid.
        uuid: String,
    },
    /// A branch or tag has not moved.
    AssertRefSnapshotId {
        /// Its name.
        ref_name: String,
        /// Its snapshot; `None` if it must not exist.
        snapshot_id: Option<i64>,
    },
    /// No column has been added.
    AssertLastAssignedFieldId {
        /// The highest column id.
        last_assigned_field_id: i32,
    },
    /// The current schema has not changed.
    AssertCurrentSchemaId {
        /// Its id.
        current_schema_id: i32,
    },
    /// No partition field has been added.
    AssertLastAssignedPartitionId {
        /// The highest partition field id.
        last_assigned_partition_id: i32,
    },
    /// The default spec has not changed.
    AssertDefaultSpecId {
        /// Its id.
        default_spec_id: i32,
    },
    /// The default sort order has not changed.
    AssertDefaultSortOrderId {
        /// Its id.
        default_sort_order_id: i32,
    },
}

impl UpdateRequirement {
    /// Reads the JSON form.
    pub fn from_json(value: &Json) -> Result<Self> {
        let object = Object::new(value, "an update requirement")?;
        Ok(match object.field("type", json::string)?.to_lowercase().as_str() {
            "assert-create" => Self::AssertCreate,
            "assert-table-uuid" => Self::AssertTableUuid { uuid: object.field("uuid", json::string)? },
            "assert-ref-snapshot-id" => Self::AssertRefSnapshotId {
                ref_name: object.field("ref", json::string)?,
                snapshot_id: object.nullable("snapshot-id", json::long)?,
            },
            "assert-last-assigned-field-id" => Self::AssertLastAssignedFieldId {
                last_assigned_field_id: object.field("last-assigned-field-id", json::int)?,
            },
            "assert-current-schema-id" => {
                Self::AssertCurrentSchemaId { current_schema_id: object.field("current-schema-id", json::int)? }
            }
            "assert-last-assigned-partition-id" => Self::AssertLastAssignedPartitionId {
                last_assigned_partition_id: object.field("last-assigned-partition-id", json::int)?,
            },
            "assert-default-spec-id" => {
                Self::AssertDefaultSpecId { default_spec_id: object.field("default-spec-id", json::int)? }
            }
            "assert-default-sort-order-id" => Self::AssertDefaultSortOrderId {
                default_sort_order_id: object.field("default-sort-order-id", json::int)?,
            },
            other => return Err(Error::corrupt("/type", format!("unknown table requirement: {other:?}"))),
        })
    }

    /// Writes the JSON form.
    pub fn to_json(&self) -> Json {
        let mut object = Writer::default();
        match self {
            Self::AssertCreate => object.put("type", "assert-create"),
            Self::AssertTableUuid { uuid } => object.put("type", "assert-table-uuid").put("uuid", uuid.as_str()),
            Self::AssertRefSnapshotId { ref_name, snapshot_id } => object
                .put("type", "assert-ref-snapshot-id")
                .put("ref", ref_name.as_str())
                .put("snapshot-id", *snapshot_id),
            Self::AssertLastAssignedFieldId { last_assigned_field_id: id } => {
                object.put("type", "assert-last-assigned-field-id").put("last-assigned-field-id", *id)
            }
            Self::AssertCurrentSchemaId { current_schema_id: id } => {
                object.put("type", "assert-current-schema-id").put("current-schema-id", *id)
            }
            Self::AssertLastAssignedPartitionId { last_assigned_partition_id: id } => {
                object.put("type", "assert-last-assigned-partition-id").put("last-assigned-partition-id", *id)
            }
            Self::AssertDefaultSpecId { default_spec_id: id } => {
                object.put("type", "assert-default-spec-id").put("default-spec-id", *id)
            }
            Self::AssertDefaultSortOrderId { default_sort_order_id: id } => {
                object.put("type", "assert-default-sort-order-id").put("default-sort-order-id", *id)
            }
        };
        object.finish()
    }

    /// Checks the requirement against the current metadata, `None` if the table does not exist.
    pub fn check(&self, base: Option<&TableMetadata>) -> Result<()> {
        let Some(base) = base else {
            return match self {
                Self::AssertCreate => Ok(()),
                _ => Err(Error::RequirementFailed("the table does not exist".to_owned())),
            };
        };
        match self {
            Self::AssertCreate => Err(Error::RequirementFailed("the table exists already".to_owned())),
            Self::AssertTableUuid { uuid } => match base.table_uuid() {
                Some(current) if current.eq_ignore_ascii_case(uuid) => Ok(()),
                current => Err(changed("table uuid", uuid, current.unwrap_or("none"))),
            },
            Self::AssertRefSnapshotId { ref_name, snapshot_id } => check_ref(base, ref_name, *snapshot_id),
            Self::AssertLastAssignedFieldId { last_assigned_field_id } => {
                same("last assigned field id", *last_assigned_field_id, base.last_column_id())
            }
            Self::AssertCurrentSchemaId { current_schema_id } => {
                same("current schema id", *current_schema_id, base.current_schema_id())
            }
            Self::AssertLastAssignedPartitionId { last_assigned_partition_id } => {
                same("last assigned partition id", *last_assigned_partition_id, base.last_partition_id())
            }
            Self::AssertDefaultSpecId { default_spec_id } => {
                same("default spec id", *default_spec_id, base.default_spec_id())
            }
            Self::AssertDefaultSortOrderId { default_sort_order_id } => {
                same("default sort order id", *default_sort_order_id, base.default_sort_order_id())
            }
        }
    }
}

fn changed(what: &str, expected: impl std::fmt::Display, current: impl std::fmt::Display) -> Error {
    Error::RequirementFailed(format!("{what} has changed: expected {expected}, found {current}"))
}

fn same(what: &str, expected: i32, current: i32) -> Result<()> {
    if expected == current { Ok(()) } else { Err(changed(what, expected, current)) }
}

fn check_ref(base: &TableMetadata, ref_name: &str, expected: Option<i64>) -> Result<()> {
    match (base.reference(ref_name), expected) {
        (None, None) => Ok(()),
        (Some(current), Some(expected)) if current.snapshot_id == expected => Ok(()),
        (Some(current), Some(expected)) => {
            Err(changed(&format!("{} {ref_name}", current.kind), expected, current.snapshot_id))
        }
        (Some(current), None) => {
            Err(Error::RequirementFailed(format!("{} {ref_name} was created concurrently", current.kind)))
        }
        (None, Some(expected)) => {
            Err(Error::RequirementFailed(format!("branch or tag {ref_name} is missing, expected at {expected}")))
        }
    }
}

/// Requirements of a commit that creates a table.
pub fn requirements_for_create() -> Vec<UpdateRequirement> {
    vec![UpdateRequirement::AssertCreate]
}

/// Requirements of a commit with these updates: nothing that they build on has changed.
pub fn requirements_for_update(base: &TableMetadata, updates: &[MetadataUpdate]) -> Vec<UpdateRequirement> {
    Requirements::new(base, false).of(updates)
}

/// Requirements of a commit that replaces a table: only that ids are still free, since a replacement keeps nothing
/// else.
pub fn requirements_for_replace(base: &TableMetadata, updates: &[MetadataUpdate]) -> Vec<UpdateRequirement> {
    Requirements::new(base, true).of(updates)
}

/// Collects requirements, each once, in the order of the updates that need them.
struct Requirements<'a> {
    base: &'a TableMetadata,
    replaces: bool,
    list: Vec<UpdateRequirement>,
    changed_refs: HashSet<&'a str>,
}

impl<'a> Requirements<'a> {
    fn new(base: &'a TableMetadata, replaces: bool) -> Self {
        let uuid = base.table_uuid().map(|uuid| UpdateRequirement::AssertTableUuid { uuid: uuid.to_owned() });
        Self { base, replaces, list: uuid.into_iter().collect(), changed_refs: HashSet::new() }
    }

    fn of(mut self, updates: &'a [MetadataUpdate]) -> Vec<UpdateRequirement> {
        updates.iter().for_each(|update| self.add_for(update));
        self.list
    }

    fn add_for(&mut self, update: &'a MetadataUpdate) {
        let base = self.base;
        match update {
            MetadataUpdate::SetSnapshotRef { ref_name, .. } if self.changed_refs.insert(ref_name) => {
                let snapshot_id = base.reference(ref_name).map(|reference| reference.snapshot_id);
                self.add_unless_replacing(UpdateRequirement::AssertRefSnapshotId {
                    ref_name: ref_name.clone(),
                    snapshot_id,
                });
            }
            MetadataUpdate::AddSchema { .. } => {
                self.add(UpdateRequirement::AssertLastAssignedFieldId {
                    last_assigned_field_id: base.last_column_id(),
                });
            }
            MetadataUpdate::SetCurrentSchema { .. } => self.add_unless_replacing(self.current_schema()),
            MetadataUpdate::AddSpec { .. } => self.add(UpdateRequirement::AssertLastAssignedPartitionId {
                last_assigned_partition_id: base.last_partition_id(),
            }),
            MetadataUpdate::SetDefaultSpec { .. } => self.add_unless_replacing(self.default_spec()),
            MetadataUpdate::SetDefaultSortOrder { .. } => {
                let default_sort_order_id = base.default_sort_order_id();
                self.add_unless_replacing(UpdateRequirement::AssertDefaultSortOrderId { default_sort_order_id });
            }
            // A concurrent write may use what is removed, so no branch may have moved, except `main`, as in the Java
            // library.
            MetadataUpdate::RemovePartitionSpecs { .. } => {
                self.add_unless_replacing(self.default_spec());
                self.add_branches();
            }
            MetadataUpdate::RemoveSchemas { .. } => {
                self.add_unless_replacing(self.current_schema());
                self.add_branches();
            }
            _ => {}
        }
    }

    fn current_schema(&self) -> UpdateRequirement {
        UpdateRequirement::AssertCurrentSchemaId { current_schema_id: self.base.current_schema_id() }
    }

    fn default_spec(&self) -> UpdateRequirement {
        UpdateRequirement::AssertDefaultSpecId { default_spec_id: self.base.default_spec_id() }
    }

    fn add_branches(&mut self) {
        let base = self.base;
        for (name, branch) in base.refs().iter().filter(|(name, branch)| branch.is_branch() && *name != MAIN_BRANCH) {
            let snapshot_id = Some(branch.snapshot_id);
            self.add_unless_replacing(UpdateRequirement::AssertRefSnapshotId { ref_name: name.clone(), snapshot_id });
        }
    }

    fn add_unless_replacing(&mut self, requirement: UpdateRequirement) {
        if !self.replaces {
            self.add(requirement);
        }
    }

    fn add(&mut self, requirement: UpdateRequirement) {
        if !self.list.contains(&requirement) {
            self.list.push(requirement);
        }
    }
}
