//! Tables that begin with a commit (REST catalog: `stage-create`, then a commit that requires `assert-create`).

use icefield_format::metadata::{MetadataBuilder, MetadataUpdate, TableMetadata, UpdateRequirement};

use crate::clock::now_ms;
use crate::commit::{Catalog, Committed, Outcome};
use crate::error::{Error, Result, UnknownCommit};

/// The metadata of a new table that these updates make.
///
/// # Errors
/// Updates that lack a part of a table, or contradict each other.
pub fn created_by(updates: &[MetadataUpdate]) -> Result<TableMetadata> {
    let version = updates.iter().find_map(|update| match update {
        MetadataUpdate::UpgradeFormatVersion { format_version } => Some(*format_version),
        _ => None,
    });
    let mut builder = MetadataBuilder::new_table(now_ms());
    if let Some(version) = version {
        builder = builder.with_format_version(version.try_into()?);
    }
    Ok(builder.apply_all(updates.iter().cloned())?.build()?)
}

/// Creates a table by updates, if the catalog has none of its name.
///
/// # Errors
/// [`Error::CommitStateUnknown`]: it may have been created. Every other error: it has certainly not; a requirement that a
/// table without metadata does not meet is one.
pub fn create_table(
    catalog: &dyn Catalog,
    requirements: &[UpdateRequirement],
    updates: &[MetadataUpdate],
) -> Result<Committed> {
    if let Some(unmet) = requirements.iter().find_map(|requirement| requirement.check(None).err()) {
        return Err(Error::CommitFailed(unmet.to_string()));
    }
    match catalog.create(updates)? {
        Outcome::Committed(committed) => Ok(committed),
        Outcome::Lost(reason) => Err(Error::CommitFailed(reason)),
        Outcome::Unknown { message, location, cause } => {
            // Whoever asks may be refused for the same reason: that says nothing.
            if let Ok(now) = catalog.load(None)
                && is_created_by(updates, &now, location.as_deref())
            {
                return Ok(now);
            }
            let commit = UnknownCommit { location, ..UnknownCommit::default() };
            Err(Error::CommitStateUnknown { commit: Box::new(commit), message, cause })
        }
    }
}

/// Whether a table is the one that these updates create, by its uuid, or by the metadata file that the commit has written.
fn is_created_by(updates: &[MetadataUpdate], now: &Committed, location: Option<&str>) -> bool {
    let uuid = updates.iter().find_map(|update| match update {
        MetadataUpdate::AssignUuid { uuid } => Some(uuid.as_str()),
        _ => None,
    });
    let has_uuid = now.metadata.table_uuid().zip(uuid).is_some_and(|(one, other)| one.eq_ignore_ascii_case(other));
    has_uuid || location.is_some_and(|location| location == now.location)
}
