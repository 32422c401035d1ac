//! The erasure of a person's data: its progress, obstacles to it, and the pseudonyms in records.

use super::traces::{held_by, picked};
use super::{Person, Traces, pseudonym};
use crate::assets::asset::Asset;
use crate::history::event::Event;
use crate::history::event::{Commitments, is_pseudonym};
use crate::keys::api_key::ApiKey;
use crate::processes::instance::{Instance, InstanceStatus, State};
use crate::processes::movement::Movement;
use crate::record::{Record, Stored};
use crate::signing::{Link, LinkStatus, Signer};
use crate::user::User;
use crate::values::id::{AssetId, EventId, Id, InstanceId, UserId};
use crate::values::text::{Name, Notes};
use crate::values::time::Timestamp;
use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;
use uuid::Uuid;

/// The progress of an erasure, without personal data. Kept so that erasures can be repeated after a restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Erasure {
    #[serde(flatten)]
    pub person: Person,
    /// Time of the first request.
    pub erased_at: Timestamp,
    /// Start of the current pass over the tenant's events. The pass covers earlier events.
    pub began_at: Timestamp,
    /// Everything up to this event is done; `None` at the start.
    pub position: Option<EventId>,
    /// If set, the records of the next part are done, and so are its stored responses up to this key.
    pub responses_until: Option<String>,
    /// Whether the current pass removed something, or was interrupted where it might have.
    pub has_removed: bool,
    /// Whether a part has started but not ended. Its removals are not in `has_removed` yet.
    pub is_in_part: bool,
    /// When the last complete pass ended.
    pub done_at: Option<Timestamp>,
    pub is_done: bool,
}

impl Erasure {
    pub fn begun(person: impl Into<Person>, at: Timestamp) -> Self {
        Self {
            person: person.into(),
            erased_at: at,
            began_at: at,
            position: None,
            responses_until: None,
            has_removed: false,
            is_in_part: false,
            done_at: None,
            is_done: false,
        }
    }

    /// Handles a further request. An erasure that is done starts again, because a restored table can have old values.
    #[must_use]
    pub fn resumed(self, at: Timestamp) -> Self {
        if self.is_done { self.restarted(at) } else { self }
    }

    /// Starts again: after a restore, the table can lack the effects of the current pass.
    #[must_use]
    pub fn restarted(self, at: Timestamp) -> Self {
        Self {
            began_at: at,
            position: None,
            responses_until: None,
            has_removed: false,
            is_in_part: false,
            is_done: false,
            ..self
        }
    }

    /// Records that a part has begun. Must be stored before the part removes anything. Otherwise, the retry of an interrupted
    /// part would find nothing to remove, and no further pass would follow.
    #[must_use]
    pub fn part_begun(self) -> Self {
        Self { has_removed: self.has_removed || self.is_in_part, is_in_part: true, ..self }
    }

    /// Whether the erasure ended at `since` or later, or has not ended. A table restored to that time lacks some of the erasure's
    /// removals.
    pub fn is_since(&self, since: Timestamp) -> bool {
        !self.is_done || self.done_at.is_none_or(|done_at| done_at >= since)
    }

    /// Records the end of a part that began at `of`, unless another request has continued or restarted the erasure since.
    ///
    /// A pass that removed something is followed by another one: someone could have signed through a link before the pass reached
    /// the link.
    #[must_use]
    pub fn advanced(self, of: &Self, part: PartEnd) -> Self {
        if self.began_at != of.began_at || self.is_done {
            return self;
        }
        let has_removed = self.has_removed || part.has_removed;
        if self.position != of.position {
            return Self { has_removed, ..self };
        }
        let (position, responses_until) = (part.position, part.responses_until);
        let ended = Self { is_in_part: false, ..self };
        match (&responses_until, &position) {
            (Some(_), _) => Self { has_removed, responses_until, ..ended },
            (None, Some(_)) => Self { has_removed, position, responses_until, ..ended },
            (None, None) if has_removed => Self { position: Some(part.next_pass), ..ended.restarted(part.at) },
            (None, None) => Self { position, responses_until, done_at: Some(part.at), is_done: true, ..ended },
        }
    }
}

#[derive(Debug, Clone)]
pub struct PartEnd {
    /// The last event of the part; `None` at the end of the pass.
    pub position: Option<EventId>,
    /// The last stored response that the part checked, if there are more.
    pub responses_until: Option<String>,
    pub has_removed: bool,
    pub at: Timestamp,
    /// Where another pass would start.
    pub next_pass: EventId,
}

pub trait Erase: Record {
    /// Returns the record with pseudonyms instead of personal data, based on the `traces` in its history. `at` is the time of the
    /// erasure.
    #[must_use]
    fn without(&self, person: Person, traces: &Traces, at: Timestamp) -> Self;
}

fn name(person: Person) -> Name {
    Name::from_stored(pseudonym(person))
}

/// Whether a text was already erased for someone else, and stays unchanged. Checks both history and text: anyone can write a text
/// that looks like a pseudonym, and a restored table can have a text older than its history.
fn is_erased(text: &str, field: &str, traces: &Traces) -> bool {
    traces.erased.contains(field) && is_pseudonym(text)
}

fn notes(present: Option<&Notes>, person: Person, field: &str, traces: &Traces) -> Option<Notes> {
    let stays = |notes: &Notes| !traces.fields.contains(field) || is_erased(notes, field, traces);
    present.map(|notes| if stays(notes) { notes.clone() } else { Notes::from_stored(pseudonym(person)) })
}

impl Erase for User {
    fn without(&self, person: Person, _: &Traces, at: Timestamp) -> Self {
        if Person::User(self.id) == person { self.erased(at) } else { self.clone() }
    }
}

impl Erase for ApiKey {
    fn without(&self, person: Person, _: &Traces, _: Timestamp) -> Self {
        if self.user_id.map(Person::User) == Some(person) { Self { name: name(person), ..self.clone() } } else { self.clone() }
    }
}

impl Erase for Link {
    /// Replaces the signer's name, removes the address, and revokes the link, so that nobody can use it any more: a used link would
    /// still open the session and the receipt.
    fn without(&self, person: Person, _: &Traces, at: Timestamp) -> Self {
        if self.person() != person {
            return self.clone();
        }
        let signer = Signer { user_id: self.signer.user_id, name: name(person), email: None };
        Self { signer, ..self.revoked(at) }
    }
}

impl Erase for Asset {
    fn without(&self, person: Person, traces: &Traces, _: Timestamp) -> Self {
        Self { notes: notes(self.notes.as_ref(), person, "notes", traces), ..self.clone() }
    }
}

impl Erase for Instance {
    fn without(&self, person: Person, traces: &Traces, _: Timestamp) -> Self {
        let mut erased = self.clone();
        for field in &traces.fields {
            let step = field.strip_prefix("step_data/").and_then(|step| erased.step_values.0.get_mut(step));
            if let Some(value) = step.filter(|value| !value.as_str().is_some_and(|text| is_erased(text, field, traces))) {
                *value = Value::String(pseudonym(person));
            }
        }
        for step in &traces.submitted {
            if let Some(signed) = erased.signed.get_mut(step) {
                signed.by = pseudonym(person);
            }
        }
        if let State::Cancelled { reason, .. } = &mut erased.state {
            *reason = notes(reason.as_ref(), person, "cancel_reason", traces);
        }
        if traces.is_creator {
            erased.started_by_name = pseudonym(person);
        }
        erased
    }
}

impl Erase for Movement {
    fn without(&self, person: Person, traces: &Traces, _: Timestamp) -> Self {
        if traces.is_creator { Self { started_by_name: pseudonym(person), ..self.clone() } } else { self.clone() }
    }
}

/// Returns the IDs of the erased people whose texts are missing from the entries, out of the people whose IDs the entries contain:
/// of users, and of the links of guests.
pub fn erased_people(entries: &[(&Event, &Commitments)]) -> BTreeSet<Uuid> {
    let named = entries.iter().flat_map(|(event, _)| people(event));
    let pseudonyms: BTreeMap<String, Uuid> = named.map(|person| (pseudonym(person), person.uuid())).collect();
    let erased = entries.iter().flat_map(|(event, commitments)| {
        let shown = json!({"actor": event.actor, "changes": event.changes});
        let texts = commitments.erased().filter_map(|pointer| pseudonyms.get(shown.pointer(pointer)?.as_str()?).copied());
        texts.collect::<Vec<_>>()
    });
    erased.collect()
}

/// Returns the actor, users who were picked or had the asset, and, if the record is a user, that user.
fn people(event: &Event) -> Vec<Person> {
    let users = picked(event).chain(held_by(event)).chain(event.actor.user_id).chain([UserId::from_uuid(event.entity_id)]);
    users.map(Person::User).chain(event.actor.link_id.map(Person::Guest)).collect()
}

/// Number of items that a request removed or, with `dry_run`, would remove.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Removed {
    /// Resources with data about the person.
    pub resources: usize,
    /// History entries.
    pub entries: usize,
    /// Signature images.
    pub signatures: usize,
    /// Responses stored for retries with the same `Idempotency-Key`.
    pub responses: usize,
    /// Equal e-mail addresses in signing links of people who aren't users.
    pub addresses: usize,
}

impl AddAssign for Removed {
    fn add_assign(&mut self, other: Self) {
        let Self { resources, entries, signatures, responses, addresses } = other;
        self.resources += resources;
        self.entries += entries;
        self.signatures += signatures;
        self.responses += responses;
        self.addresses += addresses;
    }
}

/// Why a person can't be erased now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    #[error("This user never existed.")]
    Unknown,
    #[error("The user is active. Deactivate the user first, with PATCH or by offboarding.")]
    Active,
    #[error("The user was just changed or deleted, and the user's requests could still be running. Try again after {0}.")]
    Changed(Timestamp),
    #[error("The user is in use. Assets: {}. Open processes: {processes}. Return the assets, and complete or cancel the processes.", .assets.len())]
    InUse {
        assets: Vec<AssetId>,
        processes: u64,
        /// Can be fewer than `processes`, because only the newest open instances are searched.
        instances: Vec<InstanceId>,
    },
}

impl Obstacle {
    /// Returns the obstacle in the user's record, if any. Requests that started before its last change end within `delay`.
    pub fn of(user: &Stored<User>, now: Timestamp, delay: TimeDelta) -> Option<Self> {
        if user.value.is_active {
            return Some(Self::Active);
        }
        Self::of_change(user.updated_at, now, delay)
    }

    /// Returns the obstacle if the user was changed or deleted less than `delay` ago.
    pub fn of_change(changed_at: Timestamp, now: Timestamp, delay: TimeDelta) -> Option<Self> {
        let retry_at = changed_at.plus(delay);
        (now < retry_at).then_some(Self::Changed(retry_at))
    }

    /// Counts the open processes: the `references` to a user that don't come from the user's assets.
    pub fn processes(assets: &[AssetId], references: u64) -> u64 {
        references.saturating_sub(assets.len() as u64)
    }
}

/// Why a guest, the signer of a link who isn't a user, can't be erased now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GuestObstacle {
    #[error("The signer is a user. Erase the user instead.")]
    IsUser(UserId),
    #[error("The process is still in progress. Complete or cancel it first, which also ends the link. The link's status is {0}.")]
    InProgress(LinkStatus),
}

impl GuestObstacle {
    /// Returns the obstacle to erasing the signer of a link, if any. `process` and `step` are the status and current step of the
    /// link's process instance or movement. Once the process has ended, nobody can sign with the link, so its status doesn't
    /// matter then.
    pub fn of(link: &Link, now: Timestamp, (process, step): (InstanceStatus, usize)) -> Option<Self> {
        match link.signer.user_id {
            Some(user) => Some(Self::IsUser(user)),
            None if process == InstanceStatus::InProgress => Some(Self::InProgress(link.status(now, (process, step), true))),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{self, time, user};

    fn end(at: i64, position: Option<EventId>, has_removed: bool) -> PartEnd {
        PartEnd { position, responses_until: None, has_removed, at: time(at), next_pass: event(9) }
    }

    fn event(number: i64) -> EventId {
        EventId::new(time(number), [0; 10])
    }

    #[test]
    fn a_table_restored_to_a_moment_lacks_what_was_not_done_before() {
        let begun = Erasure::begun(user(1), time(1));
        let done = begun.clone().advanced(&begun, end(5, None, false));
        assert!(begun.is_since(time(9)) && done.is_since(time(5)) && !done.is_since(time(6)));
        let again = done.resumed(time(7));
        assert!(again.is_since(time(9)) && again.done_at == Some(time(5)), "the second pass has not ended");
        assert_eq!(again.clone().restarted(time(8)), Erasure { began_at: time(8), ..again });
    }

    #[test]
    fn erasure_is_done_after_a_pass_that_removed_nothing() {
        let begun = Erasure::begun(user(1), time(1));
        let half = begun.clone().advanced(&begun, end(2, Some(event(1)), true));
        assert_eq!((half.position, half.has_removed), (Some(event(1)), true));
        let second = half.clone().advanced(&half, end(3, None, false));
        assert_eq!((second.is_done, second.began_at, second.position), (false, time(3), Some(event(9))));
        assert!(second.clone().advanced(&second, end(4, None, false)).is_done);
    }

    #[test]
    fn an_interrupted_part_is_followed_by_another_pass() {
        let begun = Erasure::begun(user(1), time(1)).part_begun();
        assert_eq!((begun.has_removed, begun.is_in_part), (false, true));
        let again = begun.part_begun();
        let second = again.clone().advanced(&again, end(3, None, false));
        assert_eq!((second.is_done, second.position), (false, Some(event(9))));
        let undisturbed = second.part_begun();
        assert!(undisturbed.clone().advanced(&undisturbed, end(4, None, false)).is_done);
    }

    #[test]
    fn a_part_ends_with_its_stored_responses() {
        let begun = Erasure::begun(user(1), time(1));
        let part = PartEnd { responses_until: Some("key".into()), ..end(2, Some(event(1)), false) };
        let half = begun.clone().advanced(&begun, part);
        assert_eq!((half.position, half.responses_until.as_deref()), (None, Some("key")));
        let whole = half.clone().advanced(&half, end(3, Some(event(1)), false));
        assert_eq!((whole.position, whole.responses_until), (Some(event(1)), None));
        assert_eq!(half.clone().advanced(&begun, end(3, Some(event(1)), false)).position, Some(event(1)));
    }

    #[test]
    fn a_user_is_inactive_for_a_while_first() {
        let user = |is_active: bool| {
            let fields = json!({
                "id": samples::user(1), "email": "a@b.c", "display_name": "A", "role": "viewer", "is_active": is_active
            });
            samples::stored(serde_json::from_value::<User>(fields).expect("a user"))
        };
        let obstacle = |is_active, now| Obstacle::of(&user(is_active), samples::time(now), TimeDelta::seconds(2));
        assert_eq!(obstacle(true, 9_000), Some(Obstacle::Active));
        assert_eq!(obstacle(false, 2_999), Some(Obstacle::Changed(samples::time(3_000))));
        assert_eq!(obstacle(false, 3_000), None);
        let assets = vec![samples::asset(1).id];
        let in_use = Obstacle::InUse { processes: Obstacle::processes(&assets, 3), assets, instances: Vec::new() };
        assert!(in_use.to_string().starts_with("The user is in use. Assets: 1. Open processes: 2."), "{in_use}");
    }
}
