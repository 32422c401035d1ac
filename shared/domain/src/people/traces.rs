//! Finds the data about a person in histories, for reports and erasures.

use super::Person;
use crate::assets::asset::Asset;
use crate::catalog::{Manufacturer, Model};
use crate::history::event::{Actor, Commitments, pointers_of_changes, side_and_field, value_of};
use crate::history::event::{Event, EventType};
use crate::keys::api_key::ApiKey;
use crate::processes::instance::Instance;
use crate::record::{Kind, Record};
use crate::signing::Link;
use crate::user::{Email, User};
use crate::values::id::{Id, UserId};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// Returns the fields in a kind's history that can be about people.
pub fn personal_fields(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Asset => Asset::PERSONAL_FIELDS,
        Kind::User => User::PERSONAL_FIELDS,
        Kind::ApiKey => ApiKey::PERSONAL_FIELDS,
        Kind::Instance => Instance::PERSONAL_FIELDS,
        Kind::Link => Link::PERSONAL_FIELDS,
        Kind::Manufacturer => Manufacturer::PERSONAL_FIELDS,
        Kind::Model => Model::PERSONAL_FIELDS,
        Kind::Tenant | Kind::AssetType | Kind::Process | Kind::Movement | Kind::ReceiptKeys | Kind::Webhook => &[],
    }
}

/// Returns the event's record if its whole history must be read, because the history could have data about the person.
pub fn lead(person: Person, event: &Event) -> Option<(Kind, Uuid)> {
    let kind = EventType::parse(&event.event_type)?.kind?;
    let record = (kind, event.entity_id);
    let leads = match person {
        Person::User(user) => leads_to_user(kind, user, event),
        Person::Guest(_) => {
            record == person.record() || matches!(kind, Kind::Instance | Kind::Movement) && person.is_actor(&event.actor)
        }
    };
    leads.then_some(record)
}

fn leads_to_user(kind: Kind, person: UserId, event: &Event) -> bool {
    match kind {
        Kind::User => event.entity_id == person.uuid(),
        Kind::ApiKey => names(event, "user_id", person),
        Kind::Link => names(event, "signer_id", person),
        Kind::Asset => names(event, "assigned_to", person),
        Kind::Instance => event.actor.user_id == Some(person) || picks(event, person) || held_by(event) == Some(person),
        Kind::Movement => event.actor.user_id == Some(person),
        Kind::Tenant | Kind::AssetType | Kind::Manufacturer | Kind::Model | Kind::Process | Kind::ReceiptKeys | Kind::Webhook => {
            false
        }
    }
}

/// Returns all e-mail addresses in the history of a user that are not erased.
pub fn addresses<'a>(entries: impl IntoIterator<Item = (&'a Event, &'a Commitments)>) -> Vec<Email> {
    let of_entry = |(event, commitments): (&'a Event, &'a Commitments)| {
        let is_kept = |side: &&str| !commitments.erased().any(|erased| erased == format!("/changes/email/{side}"));
        let sides = ["old", "new"].into_iter().filter(is_kept);
        sides.filter_map(|side| value_of(&event.changes, side, "email")?.as_str()?.parse().ok()).collect::<Vec<_>>()
    };
    let mut found: Vec<Email> = entries.into_iter().flat_map(of_entry).collect();
    found.sort_by_key(Email::folded);
    found.dedup_by_key(|address| address.folded());
    found
}

/// The data about a person in a record and its history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traces {
    /// The pointers to the person's data in each entry, oldest entry first.
    pub entries: Vec<Vec<String>>,
    /// The fields whose current values are about the person, such as `notes` or `step_data/sign`.
    pub fields: BTreeSet<String>,
    /// The fields whose current values were erased, possibly for someone else.
    pub erased: BTreeSet<String>,
    /// The keys of steps submitted by the person.
    pub submitted: BTreeSet<String>,
    pub is_creator: bool,
}

impl Traces {
    /// Finds the data about the person in a record's entries, oldest first.
    pub fn of(person: Person, kind: Kind, entries: &[(&Event, &Commitments)]) -> Self {
        let events = || entries.iter().map(|(event, _)| *event);
        let is_creator = events().next().is_some_and(|event| person.is_actor(&event.actor));
        let mut traces = Self { is_creator, ..Self::default() };
        // The user of a key or link never changes.
        let belongs = events().any(|event| lead(person, event).is_some());
        let subjects = subjects(entries);
        let mut holder = None;
        // Whether the current value of each field is about the person.
        let mut about: BTreeMap<String, bool> = BTreeMap::new();
        // The pseudonyms that an erasure put into fields. A later change that repeats one has no data about the person.
        let mut pseudonyms: BTreeMap<String, Value> = BTreeMap::new();
        for (event, commitments) in entries {
            // Handle the assignment first, because the new values in the same change are about the asset's new user.
            if let Some(change) = event.changes.get("assigned_to") {
                holder = change["new"].as_str().and_then(|id| id.parse::<UserId>().ok());
            }
            let mut pointers = actor_pointers(person, &event.actor);
            let was_about = about.clone();
            for pointer in pointers_of_changes(&event.changes, personal_fields(kind)) {
                let Some((side, field)) = side_and_field(&pointer) else { continue };
                let value = value_of(&event.changes, side, &field);
                let is_erased = commitments.erased().any(|erased| erased == pointer);
                let repeats = !is_erased && value.is_some_and(|value| pseudonyms.get(&field) == Some(value));
                let is_about = match side {
                    "old" => !repeats && was_about.get(&field).copied().unwrap_or_default(),
                    _ if !commitments.is_changed(&event.changes, &field) => {
                        !repeats && about.get(&field).copied().unwrap_or_default()
                    }
                    _ => {
                        let is_own = person.is_actor(&event.actor);
                        let is_about = match kind {
                            Kind::Instance => is_value_about(person, &event.actor, &subjects),
                            Kind::Asset => holder.map(Person::User) == Some(person),
                            _ => belongs,
                        };
                        about.insert(field.clone(), is_about);
                        match value.filter(|_| is_erased) {
                            Some(value) => drop(pseudonyms.insert(field.clone(), value.clone())),
                            None => drop(pseudonyms.remove(&field)),
                        }
                        match field.strip_prefix("step_data/").filter(|_| kind == Kind::Instance) {
                            Some(step) if is_own => drop(traces.submitted.insert(step.to_owned())),
                            Some(step) => drop(traces.submitted.remove(step)),
                            None => {}
                        }
                        is_about
                    }
                };
                pointers.extend(is_about.then_some(pointer));
            }
            traces.entries.push(pointers);
        }
        traces.erased = pseudonyms.into_keys().collect();
        traces.fields = about.into_iter().filter(|(_, is_about)| *is_about).map(|(field, _)| field).collect();
        traces
    }
}

/// Returns the pointers to the actor's names, if the actor is the person.
pub fn actor_pointers(person: Person, actor: &Actor) -> Vec<String> {
    if person.is_actor(actor) { actor.personal_pointers() } else { Vec::new() }
}

/// Whether a submitted value is about the person. A value submitted through a link is about the signer. Other values are about
/// the `subjects`, because technicians write and collect signatures for others. Without subjects, they are about the key's user.
fn is_value_about(person: Person, actor: &Actor, subjects: &[UserId]) -> bool {
    if actor.link_id.is_some() || subjects.is_empty() {
        person.is_actor(actor)
    } else {
        subjects.iter().any(|user| Person::User(*user) == person)
    }
}

/// Returns the users picked in the last change to `step_data`, because a value sent ahead can be replaced; if there are none, the
/// user who had the asset.
fn subjects(entries: &[(&Event, &Commitments)]) -> Vec<UserId> {
    let last = entries.iter().rfind(|(event, _)| event.changes.contains_key("step_data"));
    let picked: Vec<UserId> = last.into_iter().flat_map(|(event, _)| picked(event)).collect();
    if picked.is_empty() { entries.iter().find_map(|(event, _)| held_by(event)).into_iter().collect() } else { picked }
}

/// Returns the user who had the asset when this event started a process on it.
pub(super) fn held_by(event: &Event) -> Option<UserId> {
    event.changes.get("held_by")?["new"].as_str()?.parse().ok()
}

fn names(event: &Event, field: &str, person: UserId) -> bool {
    event.changes.get(field).is_some_and(|change| is_person(&change["new"], person) || is_person(&change["old"], person))
}

pub fn picks(event: &Event, person: UserId) -> bool {
    picked(event).any(|user| user == person)
}

pub(super) fn picked(event: &Event) -> impl Iterator<Item = UserId> {
    let data = event.changes.get("step_data").and_then(|change| change["new"].as_object());
    data.into_iter().flatten().filter_map(|(_, value)| value.as_str()?.parse().ok())
}

pub fn is_person(value: &Value, person: UserId) -> bool {
    value.as_str().and_then(|id| id.parse::<UserId>().ok()) == Some(person)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::event::{Commitment, SALT_BYTES, pseudonym};
    use crate::samples::{self, user};
    use crate::values::id::LinkId;
    use serde_json::json;

    fn event(version: u64, event_type: &str, actor: Actor, changes: Value) -> Event {
        Event { actor, ..samples::event(version, event_type, &changes) }
    }

    fn traces(person: UserId, kind: Kind, events: &[Event]) -> Traces {
        let none = Commitments::default();
        Traces::of(person.into(), kind, &events.iter().map(|event| (event, &none)).collect::<Vec<_>>())
    }

    #[test]
    fn notes_are_about_the_user_who_has_the_asset() {
        let (ada, grace) = (user(1), user(2));
        let set = |old: Value, new: &str| json!({"old": old, "new": new});
        let assigned = |old: Value, new: Value| json!({"old": old, "new": new});
        let events = [
            event(1, "asset.created", Actor::operator(), json!({"notes": set(Value::Null, "of nobody")})),
            event(
                2,
                "asset.updated",
                Actor::operator(),
                json!({"assigned_to": assigned(Value::Null, json!(ada)), "notes": set(json!("of nobody"), "of Ada")}),
            ),
            event(3, "asset.updated", Actor::operator(), json!({"assigned_to": assigned(json!(ada), json!(grace))})),
            event(4, "asset.updated", Actor::operator(), json!({"notes": set(json!("of Ada"), "of Grace")})),
        ];
        let of_ada = traces(ada, Kind::Asset, &events);
        let expected: [&[&str]; 4] = [&[], &["/changes/notes/new"], &[], &["/changes/notes/old"]];
        assert_eq!(of_ada.entries, expected.map(|pointers| pointers.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>()));
        assert!(of_ada.fields.is_empty());
        assert_eq!(traces(grace, Kind::Asset, &events).fields, BTreeSet::from(["notes".to_owned()]));
    }

    #[test]
    fn a_technician_writes_for_the_user_who_is_picked_and_a_signer_for_themselves() {
        let (ada, technician) = (user(1), user(2));
        let key = Actor { user_id: Some(technician), user_name: Some("T".into()), ..Actor::operator() };
        let link = Actor::signer(LinkId::from_uuid(Uuid::nil()), "Ada", Some(ada));
        let step = |old: Value, new: Value| json!({"step_data": {"old": old, "new": new}});
        let (picked, typed) = (json!({"who": ada}), json!({"who": ada, "note": "x"}));
        let signed = json!({"who": ada, "note": "x", "sign": {"sha256": "h"}});
        let events = [
            event(1, "instance.created", key.clone(), json!({})),
            event(2, "instance.updated", key.clone(), step(json!({}), picked.clone())),
            event(3, "instance.updated", key, step(picked, typed.clone())),
            event(4, "instance.updated", link, step(typed, signed)),
        ];
        let of_ada = traces(ada, Kind::Instance, &events);
        assert_eq!(of_ada.fields, ["step_data/note", "step_data/sign"].map(str::to_owned).into());
        assert_eq!((of_ada.submitted, of_ada.is_creator), (BTreeSet::from(["sign".to_owned()]), false));
        let of_technician = traces(technician, Kind::Instance, &events);
        assert!(of_technician.fields.is_empty() && of_technician.is_creator);
        assert_eq!(of_technician.entries[2], ["/actor/user_name"]);
        assert_eq!(of_technician.entries[3], Vec::<String>::new());
    }

    #[test]
    fn guest_is_found_as_the_actor_and_by_the_link() {
        let [link, other] = [1, 2].map(|number| LinkId::from_uuid(Uuid::from_u128(number)));
        let by = |link| Actor::signer(link, "Gus", None);
        let step = |old: Value, new: Value| json!({"step_data": {"old": old, "new": new}});
        let (first, second) = (json!({"note": "by Gus"}), json!({"note": "by Gus", "sign": {"sha256": "h"}}));
        let events = [
            event(1, "instance.created", Actor::operator(), json!({})),
            event(2, "instance.updated", by(link), step(json!({}), first.clone())),
            event(3, "instance.updated", by(other), step(first, second)),
        ];
        let none = Commitments::default();
        let entries: Vec<_> = events.iter().map(|event| (event, &none)).collect();
        let of_guest = Traces::of(link.into(), Kind::Instance, &entries);
        assert_eq!((of_guest.fields, of_guest.submitted), (["step_data/note".to_owned()].into(), ["note".to_owned()].into()));
        assert_eq!(of_guest.entries[1], ["/actor/user_name", "/changes/step_data/new/note"]);
        assert!(lead(link.into(), &events[0]).is_none() && lead(link.into(), &events[1]).is_some());
        let made = Event { entity_id: link.uuid(), ..event(1, "link.created", Actor::operator(), json!({})) };
        assert_eq!(lead(link.into(), &made), Some((Kind::Link, link.uuid())));
        assert_eq!(lead(other.into(), &made), None);
        let of_user = Actor { user_id: Some(user(1)), ..by(link) };
        assert!(!Person::from(link).is_actor(&of_user), "the signer is a user");
    }

    #[test]
    fn what_is_submitted_is_about_whoever_is_picked_in_the_end_or_had_the_asset_or_has_the_key() {
        let [ada, grace, technician] = [1, 2, 3].map(user);
        let about = |held_by: Option<UserId>, sent_ahead: Value, submitted: Value| {
            let key = || Actor { user_id: Some(technician), ..Actor::operator() };
            let mut start = json!({"step_data": {"old": {}, "new": sent_ahead}});
            start["held_by"] = json!({"old": null, "new": held_by});
            let next = json!({"step_data": {"old": sent_ahead, "new": submitted}});
            let events = [event(1, "instance.created", key(), start), event(2, "instance.updated", key(), next)];
            let leads = |person: &UserId| events.iter().any(|event| lead(Person::User(*person), event).is_some());
            let is_about = |person: &UserId| !traces(*person, Kind::Instance, &events).fields.is_empty();
            let found: Vec<UserId> = [ada, grace, technician].into_iter().filter(is_about).collect();
            assert!(found.iter().all(leads), "{found:?}");
            found
        };
        let typed = json!({"note": "x"});
        assert_eq!(about(None, json!({}), typed.clone()), [technician]);
        assert_eq!(about(Some(ada), json!({}), typed.clone()), [ada]);
        assert_eq!(about(Some(ada), json!({"who": grace}), json!({"who": grace, "note": "x"})), [grace]);
        assert_eq!(
            about(None, json!({"who": grace}), json!({"who": ada, "note": "x"})),
            [ada],
            "a different user was sent ahead"
        );
        assert_eq!(about(Some(ada), json!({"who": grace}), typed), [ada], "the user sent ahead was removed");
    }

    #[test]
    fn who_submitted_last_is_known_after_the_texts_are_erased() {
        let (ada, technician) = (user(1), user(2));
        let by = |user| Actor { user_id: Some(user), ..Actor::operator() };
        let step = |old: Value, new: Value| json!({"step_data": {"old": old, "new": new}});
        let (picked, first, second) = (json!({"who": ada}), json!({"who": ada, "note": "x"}), json!({"who": ada, "note": "y"}));
        let mut events = [
            event(1, "instance.created", by(technician), json!({})),
            event(2, "instance.updated", by(technician), step(json!({}), picked.clone())),
            event(3, "instance.updated", by(ada), step(picked, first.clone())),
            event(4, "instance.updated", by(technician), step(first, second)),
        ];
        let salt =
            |pointer: &String| (pointer.clone(), Commitment::Salt([pointer.len().try_into().unwrap_or_default(); SALT_BYTES]));
        let mut commitments = events.clone().map(|event| {
            let pointers = pointers_of_changes(&event.changes, personal_fields(Kind::Instance));
            pointers.iter().map(salt).collect::<Commitments>()
        });
        for erased in [0, 1, 2] {
            let entries: Vec<_> = events.iter().zip(&commitments).collect();
            assert!(Traces::of(ada.into(), Kind::Instance, &entries).submitted.is_empty(), "erased {erased} times");
            for (event, commitments) in events.iter_mut().zip(&mut commitments) {
                let mut shown = json!({"changes": event.changes});
                commitments.erase(&mut shown, |pointer| pointer.contains("note").then(|| pseudonym(ada)));
                event.changes = shown["changes"].as_object().cloned().expect("an object");
            }
        }
    }
}
