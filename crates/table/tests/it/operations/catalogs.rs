//! Catalogs of one table: a service that can lose answers, and one that stores a location.

use std::sync::{Arc, Mutex};

use icefield_format::metadata::{MetadataBuilder, MetadataUpdate, UpdateRequirement};
use icefield_table::commit::{Catalog, Committed, Outcome, Pointer, created_by};
use icefield_table::{Error, Result};

/// A catalog service: it holds the metadata of one table, checks requirements and applies updates.
#[derive(Default)]
pub(super) struct Service {
    pub(super) table: Mutex<Option<Committed>>,
    /// The answers to the next commits.
    pub(super) answers: Mutex<Vec<Answer>>,
    /// The requirements of all commits so far.
    pub(super) asked: Mutex<Vec<UpdateRequirement>>,
    /// Whether the table cannot be loaded.
    pub(super) is_deaf: Mutex<bool>,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Answer {
    Lost,
    AppliedButUnknown,
    /// Likewise, and all later requests fail.
    Forgotten,
    Refused,
}

impl Catalog for Service {
    fn load(&self, _known: Option<&Committed>) -> Result<Committed> {
        if *self.is_deaf.lock().unwrap() {
            return Err(Error::Callback("no reply".into()));
        }
        let table = self.table.lock().unwrap().clone();
        let Committed { location, metadata } = table.ok_or_else(|| Error::NotFound { path: "the table".to_owned() })?;
        // A new copy, as if parsed from an answer.
        Ok(Committed { location, metadata: Arc::new((*metadata).clone()) })
    }

    fn commit(
        &self,
        _base: &Committed,
        requirements: &[UpdateRequirement],
        updates: &[MetadataUpdate],
    ) -> Result<Outcome> {
        self.asked.lock().unwrap().extend_from_slice(requirements);
        let answer = self.answers.lock().unwrap().pop();
        let mut table = self.table.lock().unwrap();
        let table = table.as_mut().unwrap();
        let unmet = requirements.iter().find_map(|requirement| requirement.check(Some(&table.metadata)).err());
        match (unmet, answer) {
            (Some(unmet), _) => return Ok(Outcome::Lost(unmet.to_string())),
            (None, Some(Answer::Lost)) => return Ok(Outcome::Lost("busy".into())),
            (None, Some(Answer::Refused)) => return Err(Error::Validation("you may not".into())),
            (None, _) => {}
        }
        let builder = MetadataBuilder::from_base(&table.metadata, table.metadata.last_updated_ms());
        table.metadata = Arc::new(builder.apply_all(updates.iter().cloned())?.build()?);
        table.location = format!("the service's own, {}", self.asked.lock().unwrap().len());
        if answer == Some(Answer::Forgotten) {
            *self.is_deaf.lock().unwrap() = true;
        }
        match answer {
            Some(Answer::AppliedButUnknown | Answer::Forgotten) => {
                Ok(Outcome::Unknown { message: "no reply".into(), location: None, cause: None })
            }
            _ => Ok(Outcome::Committed(table.clone())),
        }
    }

    fn create(&self, updates: &[MetadataUpdate]) -> Result<Outcome> {
        self.asked.lock().unwrap().push(UpdateRequirement::AssertCreate);
        let answer = self.answers.lock().unwrap().pop();
        let mut table = self.table.lock().unwrap();
        match answer {
            Some(Answer::Lost) => return Ok(Outcome::Lost("busy".into())),
            Some(Answer::Refused) => return Err(Error::Validation("you may not".into())),
            _ if table.is_some() => return Err(Error::Refused("the table exists".into())),
            _ => {}
        }
        let metadata = Arc::new(created_by(updates)?);
        let committed = Committed { location: "the service's own".to_owned(), metadata };
        *table = Some(committed.clone());
        if answer == Some(Answer::Forgotten) {
            *self.is_deaf.lock().unwrap() = true;
        }
        match answer {
            Some(_) => Ok(Outcome::Unknown { message: "no reply".into(), location: None, cause: None }),
            None => Ok(Outcome::Committed(committed)),
        }
    }
}

/// A catalog that stores a location.
pub(super) struct Location(pub(super) Mutex<String>);

impl Pointer for Location {
    fn load(&self) -> Result<String> {
        Ok(self.0.lock().unwrap().clone())
    }

    fn swap(&self, base: &str, new: &str) -> Result<()> {
        let mut location = self.0.lock().unwrap();
        if *location != base {
            return Err(Error::CommitFailed("the table has changed".into()));
        }
        *location = new.to_owned();
        Ok(())
    }

    fn add(&self, new: &str) -> Result<()> {
        let mut location = self.0.lock().unwrap();
        if !location.is_empty() {
            return Err(Error::Refused("the table exists".into()));
        }
        *location = new.to_owned();
        Ok(())
    }
}
