//! Signing links: with a link's secret, a person without an API key can submit steps of one process instance or movement.

use crate::keys::api_key::SecretHash;
use crate::people::Person;
use crate::processes::instance::{InstanceStatus, SubjectId};
use crate::record::{Kind, Record, Unique, fields};
use crate::user::Email;
use crate::values::id::{ApiKeyId, LinkId, UserId};
use crate::values::string_enum::string_enum;
use crate::values::text::Name;
use crate::values::time::Timestamp;
use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::fmt::Display;
use uuid::Uuid;

/// Default lifetime of a link: 3 days.
pub const DEFAULT_SECONDS: u32 = 3 * 24 * 3600;
pub const MIN_SECONDS: u32 = 60;
/// Maximum lifetime of a link: 30 days.
pub const MAX_SECONDS: u32 = 30 * 24 * 3600;
/// Rate limit of a link, in requests per minute.
pub const RATE_LIMIT: u32 = 60;
/// Maximum number of links per process instance or movement: a list reads the unique marker of each link.
pub const MAX_LINKS: u8 = 100;
/// How long a link still opens the receipt after its last step.
pub const RECEIPT_TIME: TimeDelta = TimeDelta::hours(24);

string_enum! {
    /// Status of a signing link. `used`: the link's last step was submitted through the link. `ended`: the process has ended,
    /// someone else submitted the link's steps, or the signer was deleted.
    LinkStatus {
        Open = "open",
        Used = "used",
        Revoked = "revoked",
        Expired = "expired",
        Ended = "ended",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signer {
    /// The signer; `None` for a person who isn't a user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    /// The signer's name: for a user, the display name when the link was created.
    pub name: Name,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<Email>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkSteps {
    /// The index of the step that was open when the link was created.
    pub first: usize,
    /// The index of the link's last step.
    pub last: usize,
    pub until: String,
}

impl LinkSteps {
    pub fn contains(&self, index: usize) -> bool {
        (self.first..=self.last).contains(&index)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    pub id: LinkId,
    #[serde(flatten)]
    pub subject: SubjectId,
    pub signer: Signer,
    pub steps: LinkSteps,
    pub hash: SecretHash,
    pub expires_at: Timestamp,
    /// The API key that created the link; `None` for the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<ApiKeyId>,
    /// When the link was first opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
    /// A number below [`MAX_LINKS`], unique among the links of the process instance or movement.
    pub slot: u8,
}

impl Link {
    /// Returns the status, ignoring the process: a link can be open even if its process has ended. See [`Link::status`].
    pub fn own_status(&self, now: Timestamp) -> LinkStatus {
        if self.revoked_at.is_some() {
            LinkStatus::Revoked
        } else if self.used_at.is_some() {
            LinkStatus::Used
        } else if self.expires_at <= now {
            LinkStatus::Expired
        } else {
            LinkStatus::Open
        }
    }

    /// Returns the status. `process` and `step` are the status and current step of the link's process instance or movement.
    /// `has_signer` is false if the signer is a user who was deleted.
    pub fn status(&self, now: Timestamp, (process, step): (InstanceStatus, usize), has_signer: bool) -> LinkStatus {
        let is_signable = has_signer && process == InstanceStatus::InProgress && step <= self.steps.last;
        match self.own_status(now) {
            LinkStatus::Open if !is_signable => LinkStatus::Ended,
            status => status,
        }
    }

    /// Returns the signer: the user, or the guest of this link.
    pub fn person(&self) -> Person {
        self.signer.user_id.map_or(Person::Guest(self.id), Person::User)
    }

    /// Returns the end of the link's lifetime: its expiry or, for a used link, 24 hours after its last step, because until then
    /// the link opens the receipt.
    pub fn ends_at(&self) -> Timestamp {
        self.used_at.map_or(self.expires_at, |at| at.plus(RECEIPT_TIME))
    }

    /// Returns the reason why the link no longer works, ignoring the process; `None` if the link works.
    pub fn end_reason(&self, now: Timestamp) -> Option<LinkStatus> {
        match self.own_status(now) {
            LinkStatus::Open => None,
            LinkStatus::Used if now < self.ends_at() => None,
            status => Some(status),
        }
    }

    /// Records that the link was opened. Keeps the time of the first opening.
    #[must_use]
    pub fn opened(&self, at: Timestamp) -> Self {
        Self { opened_at: self.opened_at.or(Some(at)), ..self.clone() }
    }

    /// Records a submission up to the step `last`. Once the link's last step is submitted, the link is used.
    #[must_use]
    pub fn submitted(&self, last: usize, at: Timestamp) -> Self {
        let used_at = (last >= self.steps.last).then_some(at);
        Self { used_at: self.used_at.or(used_at), ..self.clone() }
    }

    #[must_use]
    pub fn revoked(&self, at: Timestamp) -> Self {
        Self { revoked_at: self.revoked_at.or(Some(at)), ..self.clone() }
    }

    /// Returns the link without the signer's address.
    #[must_use]
    pub fn without_address(&self) -> Self {
        Self { signer: Signer { email: None, ..self.signer.clone() }, ..self.clone() }
    }

    /// Returns the prefix shared by the unique values of all links whose signers have this address, to find the links in the
    /// table. The address is compared without case. The prefix can also begin values of other addresses, which contain a `#`.
    pub fn of_address(address: &Email) -> Unique {
        Self::unique_address(address, "")
    }

    pub fn unique_address(address: &Email, end: impl Display) -> Unique {
        Unique { field: "address", value: format!("{}#{end}", address.folded()), reserved_after_deletion: false }
    }

    /// Returns the prefix shared by the unique values of all links to this process instance or movement, to find the links in the
    /// table. In each value, the link's slot follows the prefix.
    pub fn of_subject(subject: Uuid) -> Unique {
        Self::unique_of(subject, "")
    }

    pub fn unique_slot(subject: Uuid, slot: u8) -> Unique {
        Self::unique_of(subject, slot)
    }

    fn unique_of(subject: Uuid, end: impl Display) -> Unique {
        Unique { field: "of", value: format!("{subject}#{end}"), reserved_after_deletion: false }
    }
}

impl Record for Link {
    const KIND: Kind = Kind::Link;
    const PERSONAL_FIELDS: &'static [&'static str] = &["signer_name"];
    type Id = LinkId;

    fn id(&self) -> LinkId {
        self.id
    }

    fn history_fields(&self) -> Map<String, Value> {
        let Self { id: _, subject, signer, steps, hash: _, expires_at, created_by: _, opened_at, used_at, revoked_at, slot: _ } =
            self;
        let Signer { user_id, name, email: _ } = signer;
        fields([
            ("instance_id", json!(subject.instance())),
            ("movement_id", json!(subject.movement())),
            ("signer_id", json!(user_id)),
            ("signer_name", json!(name)),
            ("until", json!(steps.until)),
            ("expires_at", json!(expires_at)),
            ("opened_at", json!(opened_at)),
            ("used_at", json!(used_at)),
            ("revoked_at", json!(revoked_at)),
        ])
    }

    fn unique(&self) -> Vec<Unique> {
        let address = self.signer.email.as_ref().map(|address| Self::unique_address(address, self.id));
        std::iter::once(Self::unique_slot(self.subject.uuid(), self.slot)).chain(address).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::at;
    use crate::values::id::{Id, InstanceId};

    /// Returns a link for steps 1 to 2 that expires at 100 seconds.
    fn link() -> Link {
        Link {
            id: LinkId::new(at(0), [0; 10]),
            subject: SubjectId::Instance(InstanceId::new(at(0), [0; 10])),
            signer: Signer { user_id: None, name: "Ada".parse().expect("a name"), email: None },
            steps: LinkSteps { first: 1, last: 2, until: "signature".to_owned() },
            hash: SecretHash("hash".to_owned()),
            expires_at: at(100),
            created_by: None,
            opened_at: None,
            used_at: None,
            revoked_at: None,
            slot: 7,
        }
    }

    #[test]
    fn a_revoked_link_is_over_even_if_it_was_used() {
        let revoked = link().revoked(at(7));
        assert_eq!(revoked.end_reason(at(7)), Some(LinkStatus::Revoked));
        assert_eq!(link().submitted(2, at(5)).revoked(at(7)).end_reason(at(7)), Some(LinkStatus::Revoked));
        assert_eq!(revoked.revoked(at(9)), revoked, "the first revocation counts");
        assert_eq!(link().opened(at(1)).opened(at(2)).opened_at, Some(at(1)));
    }

    #[test]
    fn link_has_ended_with_its_process_its_steps_or_its_signer() {
        let status = |process, step, has_signer| link().status(at(1), (process, step), has_signer);
        assert_eq!(status(InstanceStatus::InProgress, 2, true), LinkStatus::Open);
        assert_eq!(status(InstanceStatus::InProgress, 3, true), LinkStatus::Ended);
        assert_eq!(status(InstanceStatus::Completed, 2, true), LinkStatus::Ended);
        assert_eq!(status(InstanceStatus::InProgress, 2, false), LinkStatus::Ended);
        let used = link().submitted(2, at(1));
        assert_eq!(used.status(at(1), (InstanceStatus::InProgress, 2), false), LinkStatus::Used);
    }

    #[test]
    fn links_are_found_by_the_address_of_the_signer() {
        let with = |text: &str| {
            let email = Some(text.parse::<Email>().expect("an address"));
            Link { signer: Signer { email, ..link().signer }, ..link() }
        };
        let address = "ada@example.com".parse::<Email>().expect("an address");
        let finds = |link: &Link| {
            let unique = link.unique();
            unique.iter().any(|it| it.field == "address" && it.value.starts_with(&Link::of_address(&address).value))
        };
        assert!(finds(&with("ADA@example.com")) && !finds(&with("ada@example.com.au")) && !finds(&link()));
        assert!(!finds(&with("ADA@example.com").without_address()));
    }

    #[test]
    fn the_history_has_neither_the_secrets_hash_nor_an_address() {
        let email = Some("ada@example.com".parse().expect("an address"));
        let link = Link { signer: Signer { email, ..link().signer }, ..link() };
        let shown = Value::Object(link.history_fields()).to_string();
        assert!(shown.contains("Ada") && !shown.contains("hash") && !shown.contains("ada@"), "{shown}");
    }
}
