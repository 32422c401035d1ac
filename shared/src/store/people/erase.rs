//! Erases a person in parts. Each part is idempotent, and a record of the erasure stores the progress. Only a pass over all
//! events of the tenant finds everything that names the person: records, history entries, stored responses and signature images.

use super::held::Held;
use crate::domain::assets::asset::Asset;
use crate::domain::history::chain::HistoryEntry;
use crate::domain::history::event::Event;
use crate::domain::keys::api_key::ApiKey;
use crate::domain::people::{Erase, Erasure, PartEnd, Person, Removed, actor_pointers, addresses, lead};
use crate::domain::processes::instance::{ImageName, Instance};
use crate::domain::processes::movement::Movement;
use crate::domain::record::{Kind, Stored, StoredResponse};
use crate::domain::signing::Link;
use crate::domain::user::{Email, User};
use crate::domain::values::id::{EventId, Id, MovementId};
use crate::domain::values::time::Timestamp;
use crate::store::history::of_record::entry_of;
use crate::store::keys::{ERASURES, Item, Key, Keys, SIGNATURES, STORED_RESPONSES, TYPE, history_entry};
use crate::store::state_records::state_of;
use crate::store::table::stored_responses::{ENTRIES, RESPONSE};
use crate::store::{
    BatchGet, ChangeContext, DryRun, MAX_REQUEST, MAX_ROUNDS, Reader, StoreError, UnitOfWork, WriteError, Writer,
    has_time_for_operation, max_event_delay, pause, unless_condition_failed,
};
use aws_sdk_dynamodb::types::AttributeValue;
use chrono::TimeDelta;
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use uuid::Uuid;

/// Maximum number of parts that a request's dry run counts. With more parts, the count is incomplete.
const MAX_COUNTED_PARTS: usize = 4;
/// Number of history entries written concurrently.
const CONCURRENT: usize = 8;
/// Maximum number of events per part: about 4 MB, or 1,000 read units.
const MAX_EVENTS: usize = 5_000;
/// Maximum number of records per part: each takes about ten round trips, and a part must finish within one request.
const MAX_RECORDS: usize = 40;
/// Maximum number of actions per part: each takes one write.
const MAX_ACTIONS: usize = 200;
/// Maximum number of links whose addresses are removed per part: each takes up to two round trips.
const MAX_ADDRESSES: usize = 100;
/// Maximum number of pages of stored responses, of 1 MB each, that a part checks.
const MAX_RESPONSE_PAGES: usize = 8;

struct Step {
    ended_pass: bool,
    is_done: bool,
    removed: Removed,
}

/// The data about a person in the events of a part.
#[derive(Debug)]
pub struct PartAbout {
    person: Person,
    /// The person's ID as text. Every event that names the person contains this text.
    id: String,
    /// Records whose histories may contain data about the person.
    pub records: BTreeSet<(Kind, Uuid)>,
    /// Changes to other records by the person. These entries name the person only as the actor.
    pub actions: Vec<(HistoryEntry, Event)>,
    /// Last event of the part; `None` at the end of the pass.
    pub last: Option<EventId>,
}

impl PartAbout {
    #[must_use]
    pub fn new(person: Person) -> Self {
        Self { person, id: person.uuid().to_string(), records: BTreeSet::new(), actions: Vec::new(), last: None }
    }

    /// Returns actions on records outside `records`. The histories of `records` contain the other actions.
    pub fn actions_on_others(&self) -> impl Iterator<Item = &(HistoryEntry, Event)> {
        self.actions.iter().filter(|(_, event)| !self.records.iter().any(|(_, id)| *id == event.entity_id))
    }

    /// Returns the IDs of all records about the person, including the user.
    fn ids(&self) -> BTreeSet<Uuid> {
        self.records.iter().map(|(_, id)| *id).chain([self.person.uuid()]).collect()
    }

    /// Whether the part found the record that is about nobody else. Only the first part does.
    fn has_own_record(&self) -> bool {
        self.records.contains(&self.person.record())
    }

    /// Whether the part found something or ends the pass.
    fn is_due(&self) -> bool {
        self.last.is_none() || !self.records.is_empty() || !self.actions.is_empty()
    }

    /// Adds the data about the person in an entry.
    pub(in crate::store) fn add(&mut self, entry: &HistoryEntry) {
        // Search for the ID first, because that is faster than parsing JSON.
        let event: Option<Event> = entry.text.contains(&self.id).then(|| serde_json::from_str(&entry.text).ok()).flatten();
        let Some(event) = event else { return };
        match lead(self.person, &event) {
            Some(record) => drop(self.records.insert(record)),
            None if actor_pointers(self.person, &event.actor).is_empty() => {}
            None => self.actions.push((entry.clone(), event)),
        }
    }
}

impl Reader {
    /// Returns the e-mail addresses of a guest, or of a user, now and earlier.
    async fn addresses_of(&self, person: Person) -> Result<Vec<Email>, StoreError> {
        match person {
            Person::Guest(id) => {
                let link = self.get::<Link>(id).await?;
                Ok(link.and_then(|link| link.value.signer.email).into_iter().collect())
            }
            Person::User(id) => {
                let held = self.held::<User>(person, id.uuid()).await?;
                Ok(addresses(held.entries.iter().map(|(entry, event, _)| (event, &entry.commitments))))
            }
        }
    }

    /// Lists all erasures of the tenant, oldest user first.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time.
    pub async fn erasures(&self) -> Result<Vec<Erasure>, StoreError> {
        let items = self.every(self.beginning(AttributeValue::S(ERASURES.to_owned()))).await?;
        items.iter().map(|item: &Item| state_of(Some(item))).filter_map(Result::transpose).collect()
    }

    /// Reads the erasure of a person; `None` if none has started.
    ///
    /// # Errors
    ///
    /// Same as [`Reader::erasures`].
    pub async fn erasure(&self, person: Person) -> Result<Option<Erasure>, StoreError> {
        state_of(self.item(&self.keys.erasure(person)).await?.as_ref())
    }

    /// Reads the next part of a pass over the events before `until`: after an event, or from the start.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time.
    pub async fn part_about(&self, person: Person, after: Option<EventId>, until: Timestamp) -> Result<PartAbout, StoreError> {
        let mut part = PartAbout::new(person);
        // No event from more than a minute before the creation of the person's record names the person, and none after the end of
        // a guest's link.
        let first = Keys::last_event_before(person.since().plus(-TimeDelta::minutes(1)));
        let until = person.until().map_or(until, |end| until.min(end.plus(TimeDelta::minutes(1))));
        let Some((from, to)) = Keys::events_between(Some(after.unwrap_or(first)), until) else { return Ok(part) };
        let (mut read, mut pages) = (0, self.events_query(from, to).into_paginator().send());
        while let Some(page) = pages.next().await {
            for entry in page?.items.unwrap_or_default().iter().filter_map(entry_of) {
                part.last = Some(entry.id);
                read += 1;
                part.add(&entry);
                if read == MAX_EVENTS || part.records.len() == MAX_RECORDS || part.actions.len() == MAX_ACTIONS {
                    return Ok(part);
                }
            }
        }
        part.last = None;
        Ok(part)
    }

    /// Counts the data that [`Writer::erase_whole`] would remove in at most `max_parts` parts, and returns whether all data
    /// was counted.
    ///
    /// # Errors
    ///
    /// Same as [`Writer::erase_part`].
    pub async fn remains(&self, person: Person, max_parts: usize) -> Result<(bool, Removed), WriteError> {
        let (until, mut found) = (self.store.now(), PartAbout::new(person));
        for _ in 0..max_parts {
            let part = self.part_about(person, found.last, until).await?;
            found.records.extend(part.records);
            found.actions.extend(part.actions);
            found.last = part.last;
            if found.last.is_none() {
                break;
            }
        }
        Ok((found.last.is_none(), self.remains_in(person, &found).await?))
    }

    /// Counts the person's data in a part that an erasure would remove.
    ///
    /// # Errors
    ///
    /// Same as [`Writer::erase_part`].
    pub async fn remains_in(&self, person: Person, found: &PartAbout) -> Result<Removed, WriteError> {
        let store = if self.is_dry_run() { self.clone() } else { self.clone().in_dry_run(DryRun::default()) };
        let store = Writer(store);
        let context = ChangeContext::operator(self.store.now());
        let mut removed = Removed::default();
        if found.has_own_record() {
            removed += store.erase_addresses(person, &context).await?.0;
        }
        removed += store.erase_found(person, found, &context).await?;
        removed.responses += store.erase_all_responses(&found.ids()).await?;
        Ok(removed)
    }

    /// Returns the images that no instance of the movement uses.
    async fn unused_by_movement(&self, id: Uuid, mut images: BTreeSet<ImageName>) -> Result<BTreeSet<ImageName>, StoreError> {
        if images.is_empty() {
            return Ok(images);
        }
        let Some(movement) = self.get::<Movement>(MovementId::from_uuid(id)).await? else { return Ok(BTreeSet::new()) };
        let ids = movement.value.instance_ids;
        let batch = self.batch_get(BatchGet::new().with_all::<Instance>(ids.iter().copied())).await?;
        for id in ids {
            let instance = batch.get::<Instance>(Some(id))?;
            for (name, _) in instance.iter().flat_map(|instance| instance.value.signatures()) {
                images.remove(&name);
            }
        }
        Ok(images)
    }

    async fn images_of(&self, owner: Uuid) -> Result<Vec<ImageName>, StoreError> {
        let prefix = format!("{SIGNATURES}{}#", EventId::from_uuid(owner).short());
        let query = self.beginning(AttributeValue::S(prefix.clone())).projection_expression("#pk, #sk");
        let name = |key: Key| {
            let (step, hash) = key.sort().strip_prefix(&prefix)?.split_once('#')?;
            Some(ImageName { owner, step: step.to_owned(), hash: hash.to_owned() })
        };
        Ok(self.every(query).await?.iter().filter_map(Key::of).filter_map(name).collect())
    }
}

impl Writer {
    /// Erases the user's record. Fails if anything refers to the record, unless `forced`, for example when an erasure is repeated
    /// after a restore.
    ///
    /// # Errors
    ///
    /// Same as [`UnitOfWork::update_unreferenced`] and [`UnitOfWork::commit`].
    pub async fn erase_user(&self, old: &Stored<User>, context: &ChangeContext, forced: bool) -> Result<(), WriteError> {
        let context = ChangeContext { is_erasure: true, ..context.clone() };
        let (mut unit, next) = (UnitOfWork::new(self, &context), old.value.erased(context.at));
        let _ = if forced { unit.update(old, next)? } else { unit.update_unreferenced(old, next)? };
        unit.commit().await
    }

    /// Starts or continues to erase a person whose user record is already erased. Returns whether the erasure is complete.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError::Store`] when the table or the object store does not respond in time. Work done so far is kept.
    pub async fn erase_part(&self, person: Person, context: &ChangeContext) -> Result<(bool, Removed), WriteError> {
        if self.is_dry_run() {
            return self.remains(person, MAX_COUNTED_PARTS).await;
        }
        let mut removed = Removed::default();
        loop {
            let step = self.erase_next(person, context).await?;
            removed += step.removed;
            // Continue right away after a part without data about the person. Also after a pass, to read the events since its
            // start.
            let goes_on = step.ended_pass || step.removed == Removed::default();
            if step.is_done || !goes_on || !has_time_for_operation() {
                return Ok((step.is_done, removed));
            }
        }
    }

    async fn erase_next(&self, person: Person, context: &ChangeContext) -> Result<Step, WriteError> {
        let now = self.store.now();
        let state = self
            .change_erasure(person, |current| {
                current.map_or_else(|| Erasure::begun(person, now), |erasure| erasure.resumed(now)).part_begun()
            })
            .await?;
        let part = self.part_about(person, state.position, state.began_at).await?;
        let mut removed = Removed::default();
        if state.responses_until.is_none() {
            // Done first: later, neither the person's record nor its history has the addresses.
            if part.has_own_record() {
                let (of_addresses, has_more) = self.erase_addresses(person, context).await?;
                removed += of_addresses;
                if has_more {
                    return Ok(Step { ended_pass: false, is_done: false, removed });
                }
            }
            removed += self.erase_found(person, &part, context).await?;
        }
        let mut responses_until = None;
        if part.is_due() {
            let (count, until) = self.erase_responses(&part.ids(), state.responses_until.as_deref()).await?;
            removed.responses += count;
            responses_until = until;
            // Snapshots have no data about guests.
            if matches!(person, Person::User(_)) {
                self.forget_snapshots().await?;
            }
        }
        let ended_pass = part.last.is_none() && responses_until.is_none();
        let end = PartEnd {
            position: part.last,
            responses_until,
            has_removed: removed != Removed::default(),
            at: self.store.now(),
            // Events can be written later than the time in their IDs.
            next_pass: Keys::last_event_before(state.began_at.plus(-(max_event_delay() + MAX_REQUEST))),
        };
        let advanced = |current: Option<Erasure>| current.unwrap_or_else(|| state.clone()).advanced(&state, end.clone());
        let is_done = self.change_erasure(person, advanced).await?.is_done;
        Ok(Step { ended_pass, is_done, removed })
    }

    /// Removes the person's addresses from the links of other guests, and erases the stored responses that name these links.
    /// Returns what was removed, and whether there are more addresses. A dry run counts all of them.
    async fn erase_addresses(&self, person: Person, context: &ChangeContext) -> Result<(Removed, bool), WriteError> {
        let mut ids = Vec::new();
        for address in self.addresses_of(person).await? {
            ids.extend(self.links_of_address(&address).await?);
        }
        ids.retain(|id| Person::Guest(*id) != person);
        let has_more = ids.len() > MAX_ADDRESSES && !self.is_dry_run();
        if has_more {
            ids.truncate(MAX_ADDRESSES);
        }
        let mut removed = Removed { addresses: ids.len(), ..Removed::default() };
        if ids.is_empty() {
            return Ok((removed, has_more));
        }
        removed.responses += self.erase_all_responses(&ids.iter().map(|id| id.uuid()).collect()).await?;
        if self.is_dry_run() {
            return Ok((removed, has_more));
        }
        let batch = self.batch_get(BatchGet::new().with_all::<Link>(ids.iter().copied())).await?;
        let links = batch.get_all::<Link>(ids)?;
        let context = ChangeContext { idempotency: None, precondition: None, is_erasure: true, ..context.clone() };
        for link in links {
            self.erase_address(link, &context).await?;
        }
        Ok((removed, has_more))
    }

    async fn erase_address(&self, mut link: Stored<Link>, context: &ChangeContext) -> Result<(), WriteError> {
        for round in 0.. {
            let mut unit = UnitOfWork::new(self, context);
            unit.update(&link, link.value.without_address())?;
            match unit.commit().await {
                Err(WriteError::Stale) if round < MAX_ROUNDS => pause(&self.store, round).await,
                committed => return committed,
            }
            let Some(current) = self.get::<Link>(link.value.id).await? else { break };
            link = current;
        }
        Ok(())
    }

    /// Erases a person's data in a part from records and history entries.
    async fn erase_found(&self, person: Person, part: &PartAbout, context: &ChangeContext) -> Result<Removed, WriteError> {
        let context = ChangeContext { idempotency: None, precondition: None, is_erasure: true, ..context.clone() };
        let (mut removed, mut images) = (Removed::default(), BTreeSet::new());
        for (kind, id) in &part.records {
            removed += match kind {
                Kind::User => self.erase_record::<User>(person, *id, &context, &mut images).await?,
                Kind::ApiKey => self.erase_record::<ApiKey>(person, *id, &context, &mut images).await?,
                Kind::Asset => self.erase_record::<Asset>(person, *id, &context, &mut images).await?,
                Kind::Link => self.erase_record::<Link>(person, *id, &context, &mut images).await?,
                Kind::Instance => self.erase_record::<Instance>(person, *id, &context, &mut images).await?,
                Kind::Movement => self.erase_record::<Movement>(person, *id, &context, &mut images).await?,
                _ => Removed::default(),
            };
        }
        removed.signatures = images.len();
        let actions = part.actions_on_others().map(|(entry, event)| (entry.clone(), actor_pointers(person, &event.actor)));
        removed.entries += self.erase_in_entries(person, actions.collect()).await?;
        Ok(removed)
    }

    /// Erases the person from a record, its history and its images. Adds the deleted images to `images`.
    async fn erase_record<T: Erase>(
        &self,
        person: Person,
        id: Uuid,
        context: &ChangeContext,
        images: &mut BTreeSet<ImageName>,
    ) -> Result<Removed, WriteError> {
        let mut round = 0;
        let (held, is_changed) = loop {
            let held = self.held::<T>(person, id).await?;
            match self.rewrite(person, &held, context).await {
                Ok(is_changed) => break (held, is_changed),
                Err(WriteError::Stale) if round < MAX_ROUNDS => pause(&self.store, round).await,
                Err(error) => return Err(error),
            }
            round += 1;
        };
        // Erase the images first, because the entries name them.
        self.erase_images(id, &held, images).await?;
        let entries = held.entries.into_iter().map(|(entry, _, about)| (entry, about));
        let entries = self.erase_in_entries(person, entries.collect()).await?;
        Ok(Removed { resources: is_changed.into(), entries, ..Removed::default() })
    }

    /// Erases the person from the record itself. Returns whether the record contained anything about the person.
    async fn rewrite<T: Erase>(&self, person: Person, held: &Held<T>, context: &ChangeContext) -> Result<bool, WriteError> {
        let Some(old) = &held.record else { return Ok(false) };
        let next = old.value.without(person, &held.traces, context.at);
        if next == old.value {
            return Ok(false);
        }
        let mut unit = UnitOfWork::new(self, context);
        unit.update(old, next)?;
        unit.commit().await.map(|()| true)
    }

    async fn erase_in_entries(&self, person: Person, entries: Vec<(HistoryEntry, Vec<String>)>) -> Result<usize, StoreError> {
        let erased = stream::iter(entries).map(|(entry, about)| async move { self.erase_in_entry(person, entry, &about).await });
        let erased: Vec<bool> = erased.buffer_unordered(CONCURRENT).try_collect().await?;
        Ok(erased.into_iter().filter(|is_erased| *is_erased).count())
    }

    /// Deletes the tenant's snapshots. Lists are loaded from the table until new snapshots are written.
    async fn forget_snapshots(&self) -> Result<(), StoreError> {
        let Some(objects) = self.store.snapshots.as_ref().filter(|_| !self.is_dry_run()) else { return Ok(()) };
        for key in self.snapshot_keys() {
            objects.delete(&key).await.map_err(|error| StoreError::Unavailable(error.to_string().into()))?;
        }
        Ok(())
    }

    /// Replaces the state of an erasure with the result of `next`.
    async fn change_erasure(&self, person: Person, next: impl Fn(Option<Erasure>) -> Erasure) -> Result<Erasure, StoreError> {
        let decide = |current| {
            let next = next(current);
            Ok::<_, StoreError>((next.clone(), next))
        };
        self.change_state(&self.keys.erasure(person), "erasure", decide).await
    }

    /// Erases a person completely, from the start, even if an earlier erasure is complete.
    ///
    /// # Errors
    ///
    /// Same as [`Writer::erase_part`]. After an error, a repeated call does the rest.
    pub async fn erase_whole(&self, person: Person) -> Result<Removed, WriteError> {
        let now = self.store.now();
        let begun = |current: Option<Erasure>| current.map_or_else(|| Erasure::begun(person, now), |it| it.restarted(now));
        self.change_erasure(person, begun).await?;
        let mut removed = Removed::default();
        loop {
            let (is_done, part) = self.erase_part(person, &ChangeContext::operator(self.store.now())).await?;
            removed += part;
            if is_done {
                return Ok(removed);
            }
        }
    }

    /// Like [`Writer::erase_responses`], but goes through all responses. Returns their number.
    async fn erase_all_responses(&self, ids: &BTreeSet<Uuid>) -> Result<usize, StoreError> {
        let (mut count, mut from) = self.erase_responses(ids, None).await?;
        while let Some(after) = from {
            let (more, next) = self.erase_responses(ids, Some(&after)).await?;
            count += more;
            from = next;
        }
        Ok(count)
    }

    /// Erases stored responses that name a record in `ids`, report a change to such a record, or belong to a key or link in
    /// `ids`. A retry of such a request gets an error, because its response was erased. Returns the number of responses and, if
    /// there are more to check, the cursor to pass as `from` next time.
    async fn erase_responses(&self, ids: &BTreeSet<Uuid>, from: Option<&str>) -> Result<(usize, Option<String>), StoreError> {
        let texts: Vec<String> = ids.iter().map(Uuid::to_string).collect();
        let erased = serde_json::to_string(&StoredResponse::erased()).map_err(StoreError::broken)?;
        let (mut count, mut from) = (0, from.map(|from| self.keys.sibling(from)));
        for _ in 0..MAX_RESPONSE_PAGES {
            let query = self.beginning(AttributeValue::S(STORED_RESPONSES.to_owned()));
            let page = query.set_exclusive_start_key(from.as_ref().map(Key::item)).send().await?;
            for item in page.items.unwrap_or_default() {
                let (Some(key), Some(AttributeValue::S(text))) = (Key::of(&item), item.get(RESPONSE)) else { continue };
                let by = key.sort().strip_prefix(STORED_RESPONSES).and_then(|rest| EventId::from_short(rest.split('#').next()?));
                let names = by.is_some_and(|by| ids.contains(&by.uuid()))
                    || changes_one(&item, ids)
                    || texts.iter().any(|id| text.contains(id.as_str()));
                // An unreadable response may name the person. The stored response of a request in progress says only that the
                // request has started.
                let stays = |response: StoredResponse| response.is_nameless || response.is_in_parts;
                if !names || *text == erased || serde_json::from_str(text).is_ok_and(stays) {
                    continue;
                }
                count += 1;
                if self.is_dry_run() {
                    continue;
                }
                let update = self.store.client.update_item().table_name(&self.store.table).set_key(Some(key.item()));
                let update = update
                    .update_expression("SET #response = :erased")
                    .condition_expression("#response = :current")
                    .expression_attribute_names("#response", RESPONSE)
                    .expression_attribute_values(":current", AttributeValue::S(text.clone()))
                    .expression_attribute_values(":erased", AttributeValue::S(erased.clone()));
                // The condition fails if the response has expired or was replaced.
                unless_condition_failed(update.send().await)?;
            }
            from = page.last_evaluated_key.as_ref().and_then(Key::of);
            if from.is_none() {
                break;
            }
        }
        Ok((count, from.map(|key| key.sort().to_owned())))
    }

    /// Deletes the images of signatures that are about the person according to an instance's entries. Instances of a movement
    /// share images, so `images` contains each image only once.
    async fn erase_images<T>(&self, id: Uuid, held: &Held<T>, images: &mut BTreeSet<ImageName>) -> Result<(), StoreError> {
        let owner = held.entries.iter().find_map(|(_, event, _)| movement_of(event)).unwrap_or(id);
        let named = |all: bool| {
            let signed = held
                .entries
                .iter()
                .flat_map(move |(_, event, about)| signed(event, if all { None } else { Some(about.as_slice()) }));
            signed.map(|(step, hash)| ImageName { owner, step, hash }).collect::<BTreeSet<_>>()
        };
        let mut names = named(false);
        let erased: BTreeSet<&str> = held.entries.iter().flat_map(|(_, event, about)| erased_steps(event, about)).collect();
        if !erased.is_empty() {
            // After a restore, there can be images that are no longer named by any entry.
            let named = named(true);
            let present = self.images_of(owner).await?.into_iter();
            let unnamed = present.filter(|name| erased.contains(name.step.as_str()) && !named.contains(name)).collect();
            names.extend(if owner == id { unnamed } else { self.unused_by_movement(owner, unnamed).await? });
        }
        let present = self.signature_images(names).await?;
        if !self.is_dry_run() {
            for name in present.keys() {
                let delete = self.store.client.delete_item().table_name(&self.store.table);
                let delete = delete.set_key(Some(self.keys.signature(name).item()));
                let delete = delete.condition_expression("#type = :type").expression_attribute_names("#type", TYPE);
                let deleted = delete.expression_attribute_values(":type", AttributeValue::S("signature".to_owned())).send().await;
                // The condition fails if another request has erased it first.
                unless_condition_failed(deleted)?;
            }
        }
        images.extend(present.into_keys());
        Ok(())
    }
}

/// Whether the request changed one of the records. The response need not contain the IDs of these records: the session of a
/// signing link shows the submissions of other people, without the instance's ID.
fn changes_one(response: &Item, ids: &BTreeSet<Uuid>) -> bool {
    let entries = response.get(ENTRIES).and_then(|entries| entries.as_l().ok()).map(Vec::as_slice).unwrap_or_default();
    entries.iter().filter_map(history_entry).any(|(record, _)| ids.contains(&record))
}

fn step_values<'a>(event: &'a Event, side: &str) -> Option<&'a Map<String, Value>> {
    event.changes.get("step_data")?.get(side)?.as_object()
}

/// Returns the steps and hashes of an event's signatures; with `about`, only of signatures at these pointers.
fn signed(event: &Event, about: Option<&[String]>) -> Vec<(String, String)> {
    let sides = ["old", "new"].into_iter().filter_map(|side| Some((side, step_values(event, side)?)));
    let signed = sides.flat_map(|(side, values)| values.iter().map(move |(step, value)| (side, step, value)));
    let is_about =
        |side: &str, step: &str| about.is_none_or(|about| about.contains(&format!("/changes/step_data/{side}/{step}")));
    signed
        .filter(|(side, step, _)| is_about(side, step))
        .filter_map(|(_, step, value)| Some((step.clone(), value["sha256"].as_str()?.to_owned())))
        .collect()
}

/// Returns the steps with text at these pointers, which may have replaced signatures.
fn erased_steps<'a>(event: &'a Event, about: &[String]) -> Vec<&'a str> {
    let texts = step_values(event, "new").into_iter().flatten().filter(|(_, value)| value.is_string());
    texts.map(|(step, _)| step.as_str()).filter(|step| about.contains(&format!("/changes/step_data/new/{step}"))).collect()
}

/// Returns the movement that an instance is part of, from the instance's first event.
fn movement_of(event: &Event) -> Option<Uuid> {
    event.changes.get("movement_id")?["new"].as_str()?.parse().ok()
}
