//! Records without what they say about a person.

use super::{Traces, pseudonym};
use crate::assets::asset::Asset;
use crate::keys::api_key::ApiKey;
use crate::processes::instance::{Instance, State};
use crate::processes::movement::Movement;
use crate::pseudonym::is_pseudonym;
use crate::record::Record;
use crate::signing::link::{Link, LinkStatus, Signer};
use crate::user::User;
use crate::values::id::UserId;
use crate::values::text::{Name, Notes};
use crate::values::time::Timestamp;
use serde_json::Value;

/// A record that can say something about a person.
pub trait Erase: Record {
    /// The record with pseudonyms in place of what it says about the person, by the `traces` in its history. `at` is the time of
    /// the erasure.
    #[must_use]
    fn without(&self, person: UserId, traces: &Traces, at: Timestamp) -> Self;
}

fn name(person: UserId) -> Name {
    Name::from_stored(pseudonym(person))
}

/// A text that was erased for somebody else stays as it is. Anybody can write one that looks so, and a table that was restored can
/// have an older text than its history.
fn is_erased(text: &str, field: &str, traces: &Traces) -> bool {
    traces.erased.contains(field) && is_pseudonym(text)
}

fn notes(present: Option<&Notes>, person: UserId, field: &str, traces: &Traces) -> Option<Notes> {
    let stays = |notes: &Notes| !traces.fields.contains(field) || is_erased(notes, field, traces);
    present.map(|notes| if stays(notes) { notes.clone() } else { Notes::from_stored(pseudonym(person)) })
}

impl Erase for User {
    fn without(&self, person: UserId, _: &Traces, at: Timestamp) -> Self {
        if self.id == person { self.erased(at) } else { self.clone() }
    }
}

impl Erase for ApiKey {
    fn without(&self, person: UserId, _: &Traces, _: Timestamp) -> Self {
        if self.user_id == Some(person) { Self { name: name(person), ..self.clone() } } else { self.clone() }
    }
}

impl Erase for Link {
    /// Nobody can sign with it any more.
    fn without(&self, person: UserId, _: &Traces, at: Timestamp) -> Self {
        if self.signer.user_id != Some(person) {
            return self.clone();
        }
        let signer = Signer { user_id: Some(person), name: name(person), email: None };
        let ended = if self.own_status(at) == LinkStatus::Open { self.revoked(at) } else { self.clone() };
        Self { signer, ..ended }
    }
}

impl Erase for Asset {
    fn without(&self, person: UserId, traces: &Traces, _: Timestamp) -> Self {
        Self { notes: notes(self.notes.as_ref(), person, "notes", traces), ..self.clone() }
    }
}

impl Erase for Instance {
    fn without(&self, person: UserId, traces: &Traces, _: Timestamp) -> Self {
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
    fn without(&self, person: UserId, traces: &Traces, _: Timestamp) -> Self {
        if traces.is_creator { Self { started_by_name: pseudonym(person), ..self.clone() } } else { self.clone() }
    }
}
