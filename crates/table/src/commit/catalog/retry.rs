//! Retries of a commit until it lands or has certainly failed (`commit.retry.*`).

use std::time::{Duration, Instant};

use icefield_format::metadata::properties::{
    COMMIT_MAX_RETRY_WAIT_MS, COMMIT_MIN_RETRY_WAIT_MS, COMMIT_NUM_RETRIES, COMMIT_TOTAL_RETRY_TIME_MS, Property,
};
use icefield_format::metadata::{MetadataUpdate, StringMap};

use super::pointer::cause_of;
use super::status::{Found, Sought, look_for};
use crate::commit::{Catalog, Change, Committed, Landed, Outcome, require_same_table};
use crate::error::{Error, Result, UnknownCommit};
use crate::interrupt;

/// Commits a change; each attempt computes its updates from the current table. `opened` is the table as the caller
/// knows it: the change is never committed to a different table of the same name.
///
/// # Errors
/// [`Error::CommitStateUnknown`]: the commit may have landed, and nothing was deleted. With any other error it has
/// certainly not landed, and [`Change::failed`] was called: [`Error::CommitFailed`] if other commits won every race,
/// [`Error::TableReplaced`] if another table has replaced `opened`.
pub fn commit(catalog: &dyn Catalog, opened: &Committed, change: &mut dyn Change) -> Result<Committed> {
    let mut retries: Option<Retries> = None;
    let mut made = Vec::new();
    let mut attempts = 0_u64;
    let began = Instant::now();
    let landed = |committed: Committed, updates: &[MetadataUpdate], attempts: u64| {
        if !updates.is_empty() {
            catalog.landed(&committed, &Landed { updates, attempts, took: began.elapsed() });
        }
        Ok(committed)
    };
    loop {
        attempts += 1;
        let lost = match attempt(catalog, opened, change, &mut made) {
            Ok(Attempt::Landed(committed)) => {
                change.landed(true);
                return landed(committed, &made, attempts);
            }
            Ok(Attempt::Found { committed, last_attempt }) => {
                change.landed(last_attempt);
                return landed(committed, &made, attempts);
            }
            Ok(Attempt::Lost(reason, properties)) => {
                let table = opened.metadata.location();
                let waited = match &mut retries {
                    Some(retries) => retries.wait(),
                    none => Retries::new(&properties).and_then(|retries| none.insert(retries).wait()),
                };
                match waited {
                    Ok(true) => {
                        log::info!("{table}: another commit was first ({reason}); trying again on top of it");
                        continue;
                    }
                    Ok(false) => {
                        // The last request may have been delivered twice, and refused because the first delivery
                        // succeeded.
                        if let Ok(now) = catalog.load(Some(opened))
                            && change.snapshot_id().is_some_and(|id| now.metadata.snapshot(id).is_some())
                        {
                            change.landed(false);
                            return landed(now, &made, attempts);
                        }
                        log::warn!("{table}: the commit lost to others ({reason}); no attempt is left");
                        Error::CommitFailed(format!(
                            "{reason} (attempts: {attempts}; {} and {} allow more)",
                            COMMIT_NUM_RETRIES.name, COMMIT_TOTAL_RETRY_TIME_MS.name
                        ))
                    }
                    Err(interrupted) => interrupted,
                }
            }
            Err(unknown @ Error::CommitStateUnknown { .. }) => {
                log::warn!("{}: {unknown}; nothing was deleted", opened.metadata.location());
                return Err(unknown);
            }
            Err(error) => error,
        };
        change.failed();
        return Err(lost);
    }
}

/// How an attempt ended. An error means that it has certainly not landed, except [`Error::CommitStateUnknown`].
enum Attempt {
    /// The attempt landed.
    Landed(Committed),
    /// The table already has the change, from this attempt or an earlier one, or there is nothing to change.
    Found { committed: Committed, last_attempt: bool },
    /// Another commit was first; with the properties of the table, which configure the retries.
    Lost(String, StringMap),
}

/// Runs one attempt. `made` holds the updates of the previous attempt and is replaced by those of this one.
fn attempt(
    catalog: &dyn Catalog,
    opened: &Committed,
    change: &mut dyn Change,
    made: &mut Vec<MetadataUpdate>,
) -> Result<Attempt> {
    let mut base = catalog.load(Some(opened))?;
    require_same_table(opened.metadata.table_uuid(), &base.metadata, &base.location)?;
    if change.snapshot_id().is_some_and(|id| base.metadata.snapshot(id).is_some()) {
        // A request delivered twice is refused the second time because the first one succeeded.
        let last_attempt = Sought { location: None, updates: made.as_slice() }.is_last_attempt(&base.metadata);
        return Ok(Attempt::Found { committed: base, last_attempt });
    }
    // Services return newly parsed metadata. If it is unchanged, use `opened` itself: a transaction recognizes it by
    // its pointer and reuses its updates.
    if base.location == opened.location && base.metadata == opened.metadata {
        base = opened.clone();
    }
    *made = change.updates(&base.metadata)?;
    let updates = made.as_slice();
    if updates.is_empty() {
        return Ok(Attempt::Found { committed: base, last_attempt: false });
    }
    let requirements = change.requirements(&base.metadata, updates);
    Ok(match catalog.commit(&base, &requirements, updates)? {
        Outcome::Committed(committed) => Attempt::Landed(committed),
        Outcome::Lost(reason) => Attempt::Lost(reason, base.metadata.properties().clone()),
        Outcome::Unknown { message, location, cause } => {
            let sought = Sought { location: location.as_deref(), updates };
            let cause = match look_for(catalog, &base, sought) {
                Ok(Found::There(committed)) => {
                    log::info!("{}: the answer was lost ({message}), the commit is there", opened.metadata.location());
                    let last_attempt = sought.is_last_attempt(&committed.metadata);
                    return Ok(Attempt::Found { committed, last_attempt });
                }
                // The request may still be under way.
                Ok(Found::Absent | Found::Unread) => cause,
                Err(interrupted) => cause_of(interrupted),
            };
            let (snapshot_id, files) = (change.snapshot_id(), change.files());
            let commit = UnknownCommit { snapshot_id, files, base: Some(base.location.clone()), location };
            return Err(Error::CommitStateUnknown { commit: Box::new(commit), message, cause });
        }
    })
}

/// The remaining retries of a lost commit and the waits between them.
struct Retries {
    left: i64,
    wait_ms: u64,
    longest_ms: u64,
    begin: Instant,
    total: Duration,
}

impl Retries {
    /// # Errors
    /// An invalid property. Properties are read only after a commit has lost, so that a commit that corrects one can
    /// succeed.
    fn new(properties: &StringMap) -> Result<Self> {
        let read = |property: &Property<i64>| property.read_valid(properties);
        let milliseconds = |property| Ok::<_, Error>(u64::try_from(read(property)?).unwrap_or_default());
        let total = Duration::from_millis(milliseconds(&COMMIT_TOTAL_RETRY_TIME_MS)?);
        Ok(Self {
            left: read(&COMMIT_NUM_RETRIES)?,
            wait_ms: milliseconds(&COMMIT_MIN_RETRY_WAIT_MS)?,
            longest_ms: milliseconds(&COMMIT_MAX_RETRY_WAIT_MS)?,
            // Not the system clock, which may be set while a commit waits.
            begin: Instant::now(),
            total,
        })
    }

    /// Waits for the next attempt; `false` if no attempt is left.
    fn wait(&mut self) -> Result<bool> {
        if self.left == 0 || self.begin.elapsed() >= self.total {
            return Ok(false);
        }
        self.left -= 1;
        // Each waits a random time, so that the losers of one race do not collide again.
        let share = u64::from(uuid::Uuid::new_v4().as_bytes()[0]);
        interrupt::sleep(Duration::from_millis(self.wait_ms / 2 + self.wait_ms / 512 * share))?;
        self.wait_ms = self.wait_ms.saturating_mul(2).min(self.longest_ms);
        Ok(true)
    }
}
