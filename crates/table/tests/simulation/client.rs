//! The pointer of a table as one writer reaches it: requests are lost, late or delivered twice, and the writer may be dead.

use std::sync::{Arc, Mutex};

use icefield_table::commit::Pointer;
use icefield_table::storage::FaultPlan;
use icefield_table::{Error, Result};

use crate::schedule::Schedule;

/// What becomes of a request to swap the pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    Sound,
    /// It takes effect, and the reply is lost.
    ReplyLost,
    /// It is lost.
    Lost,
    /// It may take effect later.
    Late,
    /// It is delivered twice, and the second reply is what arrives.
    Twice,
}

pub struct Client {
    schedule: Arc<Schedule>,
    /// What becomes of its next request.
    message: Mutex<Message>,
    /// Where the writer may be dead.
    plan: Option<Arc<FaultPlan>>,
}

impl Client {
    pub fn new(schedule: Arc<Schedule>, message: Message, plan: Option<Arc<FaultPlan>>) -> Self {
        Self { schedule, message: Mutex::new(message), plan }
    }

    fn check_alive(&self) -> Result<()> {
        match self.plan.as_ref().is_some_and(|plan| plan.is_dead()) {
            true => Err(Error::Callback("the writer is dead".into())),
            false => Ok(()),
        }
    }
}

impl Pointer for Client {
    fn load(&self) -> Result<String> {
        self.check_alive()?;
        self.schedule.others();
        Ok(self.schedule.committed().location)
    }

    fn swap(&self, base: &str, new: &str) -> Result<()> {
        self.check_alive()?;
        self.schedule.others();
        let message = std::mem::replace(&mut *self.message.lock().unwrap(), Message::Sound);
        let refused = || Error::CommitFailed("the table has changed".into());
        match message {
            Message::Sound => self.schedule.swap(base, new).then_some(()).ok_or_else(refused),
            Message::ReplyLost => {
                self.schedule.swap(base, new);
                Err(Error::Callback("the reply was lost".into()))
            }
            Message::Lost => Err(Error::Callback("the request was lost".into())),
            Message::Late => {
                self.schedule.late.lock().unwrap().push((base.to_owned(), new.to_owned()));
                Err(Error::Callback("no reply in time".into()))
            }
            Message::Twice => {
                self.schedule.swap(base, new);
                self.schedule.swap(base, new).then_some(()).ok_or_else(refused)
            }
        }
    }
}
