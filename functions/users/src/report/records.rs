//! Data about a person, found in records and their histories.

use super::views::{
    Effect, ReportedAsset, ReportedEntry, ReportedInstance, ReportedKey, ReportedLink, ReportedMovement, ReportedPart,
    ReportedPeriod, ReportedSignature,
};
use serde::Serialize;
use shared::domain::assets::asset::Asset;
use shared::domain::history::event::Event;
use shared::domain::keys::api_key::ApiKey;
use shared::domain::people::{is_person, lead, picks};
use shared::domain::processes::instance::{Instance, Starter, State};
use shared::domain::processes::movement::Movement;
use shared::domain::record::{Kind, Record};
use shared::domain::signing::Link;
use shared::domain::user::User;
use shared::domain::values::id::{EventId, Id, UserId};
use shared::domain::values::signature_image::data_url;
use shared::store::{Held, Reader, StoreError};
use std::collections::HashMap;
use uuid::Uuid;

/// Maximum bytes of an instance's images as data URLs, in a response of at most 6 MB. Images that don't fit are shown as paths.
const MAX_IMAGES: usize = 2_000_000;

/// Maximum bytes of a history's entries. Beyond this size, older entries lose their values.
const MAX_ENTRIES: usize = 2_000_000;

#[derive(Serialize)]
pub(super) enum About {
    Key(ReportedKey),
    Asset(ReportedAsset),
    Instance(Box<ReportedInstance>),
    Movement(ReportedMovement),
    Link(Box<ReportedLink>),
    /// Only history entries: for the user, who is in every report, or for a damaged record.
    Entries,
}

pub(super) struct RecordReport {
    /// The first event that made the report read this history.
    pub(super) first: EventId,
    pub(super) about: About,
    pub(super) entries: Vec<ReportedEntry>,
}

impl RecordReport {
    /// Reads a record with its history. Returns `None` if nothing in the history is readable, or if an event up to `after` names
    /// the person: then an earlier part has the record, with its complete history.
    pub(super) async fn read(
        store: &Reader,
        person: UserId,
        kind: Kind,
        id: Uuid,
        after: Option<EventId>,
    ) -> Result<Option<Self>, StoreError> {
        Ok(match kind {
            Kind::User => Self::of(person, &whole(store.held::<User>(person.into(), id).await?), after, |_| None),
            Kind::ApiKey => {
                Self::of(person, &store.held(person.into(), id).await?, after, |held| Some(About::Key(key(held, id))))
            }
            Kind::Asset => {
                Self::of(person, &store.held(person.into(), id).await?, after, |held| Some(About::Asset(asset(held, id, person))))
            }
            Kind::Instance => {
                let held = store.held(person.into(), id).await?;
                let images = if first(person, &held, after).is_some() { images(store, &held).await? } else { HashMap::new() };
                Self::of(person, &held, after, |held| instance(held, person, &images))
            }
            Kind::Movement => Self::of(person, &store.held(person.into(), id).await?, after, movement),
            Kind::Link => Self::of(person, &store.held(person.into(), id).await?, after, link),
            _ => None,
        })
    }

    fn of<T: Record>(
        person: UserId,
        held: &Held<T>,
        after: Option<EventId>,
        about: impl FnOnce(&Held<T>) -> Option<About>,
    ) -> Option<Self> {
        let first = first(person, held, after)?;
        let is_about = |event: &Event, pointers: &[String]| !pointers.is_empty() || event.actor.user_id == Some(person);
        let entries = held.entries.iter().filter(|(_, event, pointers)| is_about(event, pointers));
        let entries = entries.filter_map(|(text, event, pointers)| ReportedEntry::new(person, text, event, pointers));
        let mut entries: Vec<ReportedEntry> = entries.collect();
        leave_out_values(&mut entries, MAX_ENTRIES);
        Some(Self { first, about: about(held).unwrap_or(About::Entries), entries })
    }
}

/// Drops values from the oldest entries, so that the remaining data has at most `max_bytes`.
fn leave_out_values(entries: &mut [ReportedEntry], max_bytes: usize) {
    let mut bytes = 0;
    for entry in entries.iter_mut().rev() {
        bytes += serde_json::to_vec(entry).map_or(0, |json| json.len());
        if bytes > max_bytes {
            entry.values = None;
        }
    }
}

/// Returns the first event that leads to the record, or `None` if an earlier part has the event.
fn first<T>(person: UserId, held: &Held<T>, after: Option<EventId>) -> Option<EventId> {
    let first = events(held).find(|event| lead(person.into(), event).is_some())?.id;
    after.is_none_or(|after| first > after).then_some(first)
}

/// Treats all values in the user's own history, such as the role, as data about the person.
fn whole(mut held: Held<User>) -> Held<User> {
    for (_, event, pointers) in &mut held.entries {
        let sides = event.changes.keys().flat_map(|field| ["old", "new"].map(|side| (field, side)));
        let said = sides.filter(|(field, side)| !event.changes[*field][side].is_null());
        let said: Vec<String> = said.map(|(field, side)| format!("/changes/{field}/{side}")).collect();
        pointers.retain(|pointer| !said.contains(pointer));
        pointers.extend(said);
    }
    held
}

fn events<T>(held: &Held<T>) -> impl Iterator<Item = &Event> {
    held.entries.iter().map(|(_, event, _)| event)
}

fn last_text<T>(held: &Held<T>, field: &str) -> String {
    let texts = events(held).filter_map(|event| {
        let change = event.changes.get(field)?;
        change["new"].as_str().or_else(|| change["old"].as_str())
    });
    texts.last().unwrap_or_default().to_owned()
}

fn key(held: &Held<ApiKey>, id: Uuid) -> ReportedKey {
    ReportedKey {
        id: Id::from_uuid(id),
        name: last_text(held, "name"),
        last_used_at: held.record.as_ref().and_then(|key| key.value.last_used_at),
        is_revoked: held.record.is_none(),
    }
}

fn asset(held: &Held<Asset>, id: Uuid, person: UserId) -> ReportedAsset {
    let mut periods: Vec<ReportedPeriod> = Vec::new();
    for event in events(held) {
        let Some(change) = event.changes.get("assigned_to") else { continue };
        if let Some(period) = periods.last_mut().filter(|_| is_person(&change["old"], person)) {
            period.until = Some(event.at);
            period.others[1] = other(event, person);
        }
        if is_person(&change["new"], person) {
            periods.push(ReportedPeriod { from: event.at, until: None, others: [other(event, person), None] });
        }
    }
    let notes = held.record.as_ref().filter(|_| held.traces.fields.contains("notes"));
    ReportedAsset {
        id: Id::from_uuid(id),
        asset_tag: last_text(held, "asset_tag"),
        name: last_text(held, "name"),
        periods,
        notes: notes.and_then(|asset| asset.value.notes.clone()).map(|notes| notes.to_string()),
        location: held
            .record
            .as_ref()
            .and_then(|asset| asset.value.details.location.as_ref())
            .map(|place| place.as_str().to_owned()),
    }
}

/// Returns the name of another person who caused the event. Actions through a link count as the person's own actions.
fn other(event: &Event, person: UserId) -> Option<String> {
    let is_other = event.actor.user_id != Some(person) && event.actor.link_id.is_none();
    is_other.then(|| Starter::from(&event.actor).name)
}

/// Reads the images of the person's signatures, by step: as data URLs or, for images that don't fit into a response, as paths.
async fn images(store: &Reader, held: &Held<Instance>) -> Result<HashMap<String, String>, StoreError> {
    let Some(stored) = &held.record else { return Ok(HashMap::new()) };
    let own = stored.value.signatures().filter(|(name, _)| is_about(held, &name.step));
    let mut bytes = 0;
    let (shown, others): (Vec<_>, Vec<_>) = own.partition(|(_, length)| {
        let fits = bytes + length <= MAX_IMAGES;
        bytes += if fits { *length } else { 0 };
        fits
    });
    let images = store.signature_images(shown.into_iter().map(|(name, _)| name).collect()).await?;
    let images = images.into_iter().map(|(name, image)| (name.step, data_url(&image)));
    let paths = others.into_iter().map(|(name, _)| {
        let path = stored.value.signature_path(&name.step);
        (name.step, path)
    });
    Ok(images.chain(paths).collect())
}

fn is_about(held: &Held<Instance>, step: &str) -> bool {
    held.traces.fields.contains(&format!("step_data/{step}"))
}

fn effect(instance: &Instance, person: UserId) -> Effect {
    let receives = instance.recipient() == Some(person);
    let is_taken = instance.recipient().is_some() || instance.target_status.clears_assignment();
    let gives_back = instance.held_by == Some(person) && is_taken;
    match instance.state {
        State::Completed { at } if receives => Effect::Received(at),
        State::Completed { at } if gives_back => Effect::GivenBack(at),
        State::InProgress { .. } if receives || gives_back => Effect::Open,
        _ => Effect::Nothing,
    }
}

fn instance(held: &Held<Instance>, person: UserId, images: &HashMap<String, String>) -> Option<About> {
    let (stored, traces) = (held.record.as_ref()?, &held.traces);
    let Instance { id, step_values, signed, state, .. } = &stored.value;
    let is_about = |step: &str| is_about(held, step);
    let has_submitted = |step: &str| traces.submitted.contains(step);
    let about = step_values.as_map().iter().filter(|(step, _)| is_about(step));
    let signature = |step: &String| ReportedSignature {
        step: step.clone(),
        name: signed.get(step).filter(|_| has_submitted(step)).map(|signed| signed.by.clone()),
        image: images.get(step).cloned(),
    };
    let steps = stored.value.steps.as_slice().iter().filter(|step| step.is_signature()).map(|step| &step.key);
    let own: Vec<&String> = steps.filter(|step| is_about(step) || has_submitted(step)).collect();
    let parts = [
        (ReportedPart::Started, traces.is_creator),
        (ReportedPart::Picked, events(held).any(|event| picks(event, person))),
        (ReportedPart::Holder, stored.value.held_by == Some(person)),
        (ReportedPart::Submitted, !traces.submitted.is_empty()),
        (ReportedPart::Signed, own.iter().any(|step| is_about(step) && has_submitted(step))),
    ];
    let reason = if let State::Cancelled { reason, .. } = state { reason.as_ref() } else { None };
    let effect = effect(&stored.value, person);
    // Later events, such as an erasure, are not part of the handover.
    let other = effect.at().and_then(|at| {
        let until_then = events(held).filter(|event| event.at <= at);
        until_then.filter_map(|event| other(event, person)).last()
    });
    let labels = stored.value.steps.as_slice().iter().map(|step| (step.key.clone(), step.label.to_string()));
    Some(About::Instance(Box::new(ReportedInstance {
        id: *id,
        process_name: stored.value.process_name.to_string(),
        asset_id: stored.value.asset_id,
        asset_tag: stored.value.asset_tag.clone(),
        asset_name: stored.value.asset_name.to_string(),
        status: stored.value.status(),
        started_at: stored.created_at,
        parts: parts.into_iter().filter(|(_, was)| *was).map(|(part, _)| part).collect(),
        started_by_name: traces.is_creator.then(|| stored.value.started_by_name.clone()),
        step_data: about.map(|(step, value)| (step.clone(), value.clone())).collect(),
        signatures: own.into_iter().map(signature).collect(),
        cancel_reason: reason.filter(|_| traces.fields.contains("cancel_reason")).map(|reason| reason.to_string()),
        effect,
        movement_id: stored.value.movement_id,
        other,
        labels: labels.collect(),
    })))
}

fn movement(held: &Held<Movement>) -> Option<About> {
    let stored = held.record.as_ref()?;
    Some(About::Movement(ReportedMovement {
        id: stored.value.id,
        number: stored.value.number.clone(),
        process_name: stored.value.process_name.to_string(),
        started_at: stored.created_at,
        started_by_name: held.traces.is_creator.then(|| stored.value.started_by_name.clone()),
    }))
}

fn link(held: &Held<Link>) -> Option<About> {
    let stored = held.record.as_ref()?;
    let Link { id, subject, signer, opened_at, used_at, .. } = &stored.value;
    Some(About::Link(Box::new(ReportedLink {
        id: *id,
        instance_id: subject.instance(),
        movement_id: subject.movement(),
        name: signer.name.to_string(),
        email: signer.email.as_ref().map(|email| email.as_str().to_owned()),
        created_at: stored.created_at,
        opened_at: *opened_at,
        used_at: *used_at,
    })))
}
