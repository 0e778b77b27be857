//! Tables created by their first commit (REST catalog: `stage-create`, then a commit that requires `assert-create`).

use std::time::Instant;

use icefield_format::metadata::{MetadataBuilder, MetadataUpdate, TableMetadata, UpdateRequirement};

use crate::clock::now_ms;
use crate::commit::{Catalog, Committed, Landed, Outcome};
use crate::error::{Error, Result, UnknownCommit};

/// Builds the metadata of a new table from its updates.
///
/// # Errors
/// The updates lack a part of a table or contradict each other.
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

/// Creates a table from updates if the catalog has no table of its name.
///
/// # Errors
/// [`Error::CommitStateUnknown`]: the table may have been created. With any other error it has certainly not been
/// created; this includes requirements that a table without metadata does not meet.
pub fn create_table(
    catalog: &dyn Catalog,
    requirements: &[UpdateRequirement],
    updates: &[MetadataUpdate],
) -> Result<Committed> {
    if let Some(unmet) = requirements.iter().find_map(|requirement| requirement.check(None).err()) {
        return Err(Error::CommitFailed(unmet.to_string()));
    }
    let began = Instant::now();
    let landed = |committed: Committed| {
        catalog.landed(&committed, &Landed { updates, attempts: 1, took: began.elapsed() });
        Ok(committed)
    };
    match catalog.create(updates)? {
        Outcome::Committed(committed) => landed(committed),
        Outcome::Lost(reason) => Err(Error::CommitFailed(reason)),
        Outcome::Unknown { message, location, cause } => {
            // `load` may fail for the same reason as the commit did, so its error says nothing about the outcome.
            if let Ok(now) = catalog.load(None)
                && is_created_by(updates, &now, location.as_deref())
            {
                return landed(now);
            }
            let commit = UnknownCommit { location, ..UnknownCommit::default() };
            Err(Error::CommitStateUnknown { commit: Box::new(commit), message, cause })
        }
    }
}

/// Whether these updates created this table: it has their uuid or the metadata file that the commit wrote.
fn is_created_by(updates: &[MetadataUpdate], now: &Committed, location: Option<&str>) -> bool {
    let uuid = updates.iter().find_map(|update| match update {
        MetadataUpdate::AssignUuid { uuid } => Some(uuid.as_str()),
        _ => None,
    });
    let has_uuid = now.metadata.table_uuid().zip(uuid).is_some_and(|(one, other)| one.eq_ignore_ascii_case(other));
    has_uuid || location.is_some_and(|location| location == now.location)
}
