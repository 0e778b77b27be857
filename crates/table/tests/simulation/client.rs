//! The catalog of a table as seen by one writer: requests are lost, delayed or delivered twice, and the writer may be
//! dead.

use std::sync::{Arc, Mutex};

use icefield_format::metadata::{MetadataUpdate, UpdateRequirement};
use icefield_table::commit::{Catalog, Committed, Outcome, Pointer};
use icefield_table::storage::FaultPlan;
use icefield_table::{Error, Result};

use crate::schedule::{Request, Schedule};

/// What happens to a request to change the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    Sound,
    /// It takes effect, but the reply is lost.
    ReplyLost,
    /// It is lost.
    Lost,
    /// It may take effect later.
    Late,
    /// It is delivered twice, and the writer gets the second reply.
    Twice,
}

pub struct Client {
    schedule: Arc<Schedule>,
    /// What happens to the next request.
    message: Mutex<Message>,
    /// The fault plan, by which the writer may be dead.
    plan: Option<Arc<FaultPlan>>,
    /// When the writer began, by the clock of the store.
    began_ms: i64,
}

impl Client {
    pub fn new(schedule: Arc<Schedule>, message: Message, plan: Option<Arc<FaultPlan>>, began_ms: i64) -> Self {
        Self { schedule, message: Mutex::new(message), plan, began_ms }
    }

    fn check_alive(&self) -> Result<()> {
        match self.plan.as_ref().is_some_and(|plan| plan.is_dead()) {
            true => Err(Error::Callback("the writer is dead".into())),
            false => Ok(()),
        }
    }

    /// Sends a request. The reply is the table, or `None` if the request was rejected.
    fn send(&self, request: Request) -> Result<Option<Committed>> {
        self.check_alive()?;
        self.schedule.others();
        let message = std::mem::replace(&mut *self.message.lock().unwrap(), Message::Sound);
        match message {
            Message::Sound => Ok(self.schedule.serve(&request)),
            Message::ReplyLost => {
                self.schedule.serve(&request);
                Err(Error::Callback("the reply was lost".into()))
            }
            Message::Lost => Err(Error::Callback("the request was lost".into())),
            Message::Late => {
                self.schedule.late.lock().unwrap().push((request, self.began_ms));
                Err(Error::Callback("no reply in time".into()))
            }
            Message::Twice => {
                self.schedule.serve(&request);
                Ok(self.schedule.serve(&request))
            }
        }
    }

    fn loaded(&self) -> Result<Committed> {
        self.check_alive()?;
        self.schedule.others();
        Ok(self.schedule.committed())
    }
}

/// A catalog of pointers: the writer writes metadata files itself.
impl Pointer for Client {
    fn load(&self) -> Result<String> {
        Ok(self.loaded()?.location)
    }

    fn swap(&self, base: &str, new: &str) -> Result<()> {
        let swapped = self.send(Request::Swap(base.to_owned(), new.to_owned()))?;
        swapped.map(drop).ok_or_else(|| Error::CommitFailed("the table has changed".into()))
    }
}

/// A catalog service, which takes requirements and updates.
pub struct Service(pub Client);

impl Catalog for Service {
    fn load(&self, _known: Option<&Committed>) -> Result<Committed> {
        self.0.loaded()
    }

    fn commit(
        &self,
        _base: &Committed,
        requirements: &[UpdateRequirement],
        updates: &[MetadataUpdate],
    ) -> Result<Outcome> {
        Ok(match self.0.send(Request::Updates(requirements.to_vec(), updates.to_vec())) {
            Ok(Some(committed)) => Outcome::Committed(committed),
            Ok(None) => Outcome::Lost("the table has changed".to_owned()),
            Err(error) => Outcome::Unknown { message: error.to_string(), location: None, cause: None },
        })
    }
}
