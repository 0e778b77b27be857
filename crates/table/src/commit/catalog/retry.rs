//! Attempts at a commit, until it lands or has certainly failed (`commit.retry.*`).

use std::time::{Duration, Instant};

use icefield_format::metadata::properties::{
    COMMIT_MAX_RETRY_WAIT_MS, COMMIT_MIN_RETRY_WAIT_MS, COMMIT_NUM_RETRIES, COMMIT_TOTAL_RETRY_TIME_MS, Property,
};
use icefield_format::metadata::{MetadataUpdate, StringMap, requirements_for_update};

use super::pointer::cause_of;
use super::status::{Sought, look_for};
use crate::commit::{Catalog, Change, Committed, Outcome, require_same_table};
use crate::error::{Error, Result, UnknownCommit};
use crate::interrupt;

/// Commits what `change` makes of the table as it is, anew for each attempt. `opened` is the table as the caller knows it:
/// the change is committed to no other.
///
/// # Errors
/// [`Error::CommitStateUnknown`]: it may have landed, and nothing was deleted. Every other error: it has certainly not,
/// and [`Change::failed`] was called; [`Error::CommitFailed`] where other commits won all races,
/// [`Error::TableReplaced`] where another table has taken the place of `opened`.
pub fn commit(catalog: &dyn Catalog, opened: &Committed, change: &mut dyn Change) -> Result<Committed> {
    let mut retries: Option<Retries> = None;
    let mut made = Vec::new();
    let mut attempts = 0_u64;
    loop {
        attempts += 1;
        let lost = match attempt(catalog, opened, change, &mut made) {
            Ok(Attempt::Landed(committed)) => {
                change.landed(true);
                return Ok(committed);
            }
            Ok(Attempt::Found { committed, last_attempt }) => {
                change.landed(last_attempt);
                return Ok(committed);
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
                        // The last request may have been delivered twice, and refused for the sake of the first.
                        if let Ok(now) = catalog.load(Some(opened))
                            && change.snapshot_id().is_some_and(|id| now.metadata.snapshot(id).is_some())
                        {
                            change.landed(false);
                            return Ok(now);
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

/// How an attempt ended, unless in an error: then it has certainly not landed, but for the one that says otherwise.
enum Attempt {
    /// It landed.
    Landed(Committed),
    /// It was found in the table, as this attempt has made it or an earlier one, or there is nothing to change.
    Found { committed: Committed, last_attempt: bool },
    /// Another commit was first; with the properties of the table.
    Lost(String, StringMap),
}

/// `made` is what the attempt before has made, and then what this one has.
fn attempt(
    catalog: &dyn Catalog,
    opened: &Committed,
    change: &mut dyn Change,
    made: &mut Vec<MetadataUpdate>,
) -> Result<Attempt> {
    let mut base = catalog.load(Some(opened))?;
    require_same_table(opened.metadata.table_uuid(), &base.metadata, &base.location)?;
    if change.snapshot_id().is_some_and(|id| base.metadata.snapshot(id).is_some()) {
        // A request that is delivered twice is refused the second time, for the sake of the first.
        let last_attempt = Sought { location: None, updates: made.as_slice() }.is_last_attempt(&base.metadata);
        return Ok(Attempt::Found { committed: base, last_attempt });
    }
    // Services answer with metadata that they have read anew: what was made of the same table already is not made again.
    if base.location == opened.location && base.metadata == opened.metadata {
        base = opened.clone();
    }
    *made = change.updates(&base.metadata)?;
    let updates = made.as_slice();
    if updates.is_empty() {
        return Ok(Attempt::Found { committed: base, last_attempt: false });
    }
    let requirements = requirements_for_update(&base.metadata, updates);
    Ok(match catalog.commit(&base, &requirements, updates)? {
        Outcome::Committed(committed) => Attempt::Landed(committed),
        Outcome::Lost(reason) => Attempt::Lost(reason, base.metadata.properties().clone()),
        Outcome::Unknown { message, location, cause } => {
            let sought = Sought { location: location.as_deref(), updates };
            let cause = match look_for(catalog, &base, sought) {
                Ok(Some(committed)) => {
                    log::info!("{}: the answer was lost ({message}), the commit is there", opened.metadata.location());
                    let last_attempt = sought.is_last_attempt(&committed.metadata);
                    return Ok(Attempt::Found { committed, last_attempt });
                }
                Ok(None) => cause,
                Err(interrupted) => cause_of(interrupted),
            };
            let (snapshot_id, files) = (change.snapshot_id(), change.files());
            let commit = UnknownCommit { snapshot_id, files, base: Some(base.location.clone()), location };
            return Err(Error::CommitStateUnknown { commit: Box::new(commit), message, cause });
        }
    })
}

/// How often, and how long apart, a lost commit is run again.
struct Retries {
    left: i64,
    wait_ms: u64,
    longest_ms: u64,
    begin: Instant,
    total: Duration,
}

impl Retries {
    /// # Errors
    /// A property that cannot be read. That is found out when a commit is lost: one that corrects the property needs none.
    fn new(properties: &StringMap) -> Result<Self> {
        let read = |property: &Property<i64>| property.read_valid(properties);
        let milliseconds = |property| Ok::<_, Error>(u64::try_from(read(property)?).unwrap_or_default());
        let total = Duration::from_millis(milliseconds(&COMMIT_TOTAL_RETRY_TIME_MS)?);
        Ok(Self {
            left: read(&COMMIT_NUM_RETRIES)?,
            wait_ms: milliseconds(&COMMIT_MIN_RETRY_WAIT_MS)?,
            longest_ms: milliseconds(&COMMIT_MAX_RETRY_WAIT_MS)?,
            // A clock of the day may be set while a commit waits.
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
        // Losers of one race must not meet again at the next: each waits a length of its own.
        let share = u64::from(uuid::Uuid::new_v4().as_bytes()[0]);
        interrupt::sleep(Duration::from_millis(self.wait_ms / 2 + self.wait_ms / 512 * share))?;
        self.wait_ms = self.wait_ms.saturating_mul(2).min(self.longest_ms);
        Ok(true)
    }
}
