//! The person whose data is erased: a user, or the signer of a link who isn't a user.

use crate::history::event::Actor;
use crate::record::Kind;
use crate::signing::{MAX_SECONDS, RECEIPT_TIME};
use crate::values::id::{Id, LinkId, UserId};
use crate::values::time::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Serialized as `user_id` or `link_id`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Person {
    #[serde(rename = "user_id")]
    User(UserId),
    /// The signer of this link, who isn't a user.
    #[serde(rename = "link_id")]
    Guest(LinkId),
}

impl From<UserId> for Person {
    fn from(id: UserId) -> Self {
        Self::User(id)
    }
}

impl From<LinkId> for Person {
    fn from(id: LinkId) -> Self {
        Self::Guest(id)
    }
}

impl Person {
    pub fn uuid(self) -> Uuid {
        self.record().1
    }

    /// Returns the record that is about nobody else: the user, or the guest's link.
    pub fn record(self) -> (Kind, Uuid) {
        match self {
            Self::User(id) => (Kind::User, id.uuid()),
            Self::Guest(id) => (Kind::Link, id.uuid()),
        }
    }

    pub fn is_actor(self, actor: &Actor) -> bool {
        match self {
            Self::User(id) => actor.user_id == Some(id),
            Self::Guest(id) => actor.link_id == Some(id) && actor.user_id.is_none(),
        }
    }

    /// Returns the creation time of the person's record.
    pub fn since(self) -> Timestamp {
        match self {
            Self::User(id) => id.timestamp(),
            Self::Guest(id) => id.timestamp(),
        }
    }

    /// Returns the time from which the person can't act any more: for a guest, the latest end of a link's lifetime.
    pub fn until(self) -> Option<Timestamp> {
        match self {
            Self::User(_) => None,
            Self::Guest(id) => Some(id.timestamp().plus_seconds(MAX_SECONDS).plus(RECEIPT_TIME)),
        }
    }
}
