//! Finds personal data in one record and its history, erases it from the history, and finds obstacles to erasing a user. Nothing
//! else ever changes a history entry.

use crate::domain::history::chain::HistoryEntry;
use crate::domain::history::event::{Event, canonical};
use crate::domain::people::{GuestObstacle, Obstacle, Person, Traces, replacement};
use crate::domain::processes::instance::{Instance, InstanceStatus, SubjectId, position};
use crate::domain::processes::movement::Movement;
use crate::domain::record::{Kind, Record, Stored};
use crate::domain::signing::Link;
use crate::domain::user::User;
use crate::domain::values::id::{AssetId, Id, InstanceId, UserId};
use crate::domain::values::json;
use crate::domain::values::time::Timestamp;
use crate::store::keys::{COMMITMENTS, ENTRY, commitments_attribute};
use crate::store::table::read::USES;
use crate::store::{
    BatchGet, ChangeContext, InstanceFilter, MAX_REQUEST, MAX_ROUNDS, PageRequest, Reader, StoreError, WriteError, Writer,
    max_event_delay, pause, unless_condition_failed,
};
use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

#[derive(Debug)]
pub struct Held<T> {
    /// `None` if the record was deleted.
    pub record: Option<Stored<T>>,
    /// Entries of the history, oldest first, each with pointers to its values about the person.
    pub entries: Vec<(HistoryEntry, Event, Vec<String>)>,
    pub traces: Traces,
}

impl Reader {
    /// Finds the data about a person in a record and its history.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time, or the record changes too often.
    pub async fn held<T: Record>(&self, person: Person, id: Uuid) -> Result<Held<T>, StoreError> {
        for round in 0..MAX_ROUNDS {
            // Read the history first: if the record then has a higher version, it has changed since.
            let (newest, entries, traces) = self.traces(person, T::KIND, id).await?;
            let record = self.get::<T>(T::Id::from_uuid(id)).await?;
            // In a dry run, the record can include planned writes, which the history doesn't include.
            if self.is_dry_run() || record.as_ref().is_none_or(|record| record.version <= newest) {
                return Ok(Held { record, entries, traces });
            }
            pause(&self.store, round).await;
        }
        Err(StoreError::Unavailable("a record changes too often".into()))
    }

    /// Reads the history of a record for the person's data. Also returns the version of the newest entry.
    async fn traces(
        &self,
        person: Person,
        kind: Kind,
        id: Uuid,
    ) -> Result<(u64, Vec<(HistoryEntry, Event, Vec<String>)>, Traces), StoreError> {
        let Some(mut state) = self.history_state_of(kind, id, None).await? else { return Ok(Default::default()) };
        let newest = state.total();
        let entries = self.history_entries(&mut state, 1..=newest).await?.into_values();
        let entries: Vec<(HistoryEntry, Event)> = entries
            .filter_map(|entry| Some((serde_json::from_str(&entry.text).ok()?, entry)))
            .map(|(event, entry)| (entry, event))
            .collect();
        let shown: Vec<_> = entries.iter().map(|(entry, event)| (event, &entry.commitments)).collect();
        let traces = Traces::of(person, kind, &shown);
        let about = traces.entries.iter().cloned();
        Ok((newest, entries.into_iter().zip(about).map(|((entry, event), about)| (entry, event, about)).collect(), traces))
    }
}

impl Writer {
    /// Erases the values at these pointers. Returns `false` if they were already erased.
    pub(super) async fn erase_in_entry(
        &self,
        person: Person,
        mut entry: HistoryEntry,
        pointers: &[String],
    ) -> Result<bool, StoreError> {
        for round in 0..MAX_ROUNDS {
            let mut next = entry.commitments.clone();
            let mut value = json::parse(&entry.text).map_err(StoreError::broken)?;
            let about = |pointer: &str| pointers.iter().any(|about| about == pointer).then(|| replacement(person, pointer));
            if next.erase(&mut value, about) == 0 {
                return Ok(false);
            }
            let text = canonical(&value).map_err(StoreError::broken)?;
            let attributes = [&entry.commitments, &next].map(commitments_attribute);
            let [Some(current), Some(next)] = attributes else { return Ok(false) };
            if self.is_dry_run() {
                return Ok(true);
            }
            let update = self.store.client.update_item().table_name(&self.store.table);
            let updated = update
                .set_key(Some(self.keys.event(entry.id).item()))
                .update_expression("SET #entry = :entry, #commitments = :next")
                .condition_expression("#commitments = :current")
                .expression_attribute_names("#entry", ENTRY)
                .expression_attribute_names("#commitments", COMMITMENTS)
                .expression_attribute_values(":entry", AttributeValue::S(text))
                .expression_attribute_values(":current", current)
                .expression_attribute_values(":next", next)
                .send()
                .await;
            if unless_condition_failed(updated)?.is_some() {
                return Ok(true);
            }
            // Erasures of two people can race for the same entry.
            pause(&self.store, round).await;
            let Some(again) = self.event_entry(entry.id).await? else { return Ok(false) };
            entry = again;
        }
        Err(StoreError::Unavailable("an entry changes too often".into()))
    }
}

/// Maximum number of pages of open instances to search for a user who was picked in a step. References in further instances are
/// counted, but not named.
const MAX_PAGES: u32 = 10;
const PAGE: u32 = 100;

impl Reader {
    /// Returns the obstacle to erasing the signer of a link, who isn't a user; `None` if there is none.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the link's process can't be read.
    pub async fn guest_obstacle(&self, link: &Link, now: Timestamp) -> Result<Option<GuestObstacle>, StoreError> {
        let ids = match link.subject {
            SubjectId::Instance(id) => vec![id],
            SubjectId::Movement(id) => {
                self.get::<Movement>(id).await?.map(|movement| movement.value.instance_ids).unwrap_or_default()
            }
        };
        let batch = self.batch_get(BatchGet::new().with_all::<Instance>(ids.iter().copied())).await?;
        Ok(GuestObstacle::of(link, now, position(&batch.get_all::<Instance>(ids)?)))
    }

    /// Finds the assets and open processes that refer to a user; `None` if there are no references.
    ///
    /// # Errors
    ///
    /// Same as [`Reader::assets_of_user`].
    pub async fn references_to_user(&self, user: UserId) -> Result<Option<Obstacle>, StoreError> {
        let item = self.item(&self.keys.references(Kind::User, user.uuid())).await?;
        let count = item.and_then(|item| item.get(USES)?.as_n().ok()?.parse().ok()).unwrap_or(0);
        if count == 0 { Ok(None) } else { self.in_use(user, count).await.map(Some) }
    }

    /// Returns the process instances in progress that have picked a user, among the newest 1,000 in progress.
    ///
    /// # Errors
    ///
    /// Same as [`Reader::assets_of_user`].
    pub async fn picked_in(&self, user: UserId) -> Result<Vec<InstanceId>, StoreError> {
        match self.references_to_user(user).await? {
            Some(Obstacle::InUse { instances, .. }) => Ok(instances),
            _ => Ok(Vec::new()),
        }
    }

    async fn in_use(&self, user: UserId, count: u64) -> Result<Obstacle, StoreError> {
        let (assets, _) = self.assets_of_user(user).await?;
        let assets: Vec<AssetId> = assets.iter().map(|asset| asset.value.id).collect();
        let processes = Obstacle::processes(&assets, count);
        Ok(Obstacle::InUse { assets, processes, instances: self.open_instances_of(user, processes).await? })
    }

    /// Searches the newest open instances for references to the user, until `count` are found.
    async fn open_instances_of(&self, user: UserId, count: u64) -> Result<Vec<InstanceId>, StoreError> {
        let filter = InstanceFilter { status: Some(InstanceStatus::InProgress), ..InstanceFilter::default() };
        let mut found = Vec::new();
        for number in 1..=MAX_PAGES {
            if found.len() as u64 >= count {
                break;
            }
            let request = PageRequest { number, limit: PAGE };
            let page = self.list_instances(filter, request).await?;
            let picked = page.items.iter().filter(|instance| instance.value.picked_users().any(|picked| picked == user));
            found.extend(picked.map(|instance| instance.value.id));
            if u64::from(number) * u64::from(PAGE) >= page.total as u64 {
                break;
            }
        }
        Ok(found)
    }
}

impl Writer {
    /// Erases a user's record, unless there is an obstacle. `current` is `None` if the record was deleted.
    ///
    /// # Errors
    ///
    /// Same as [`Writer::erase_user`].
    pub async fn erase_unhindered(
        &self,
        id: UserId,
        current: Option<&Stored<User>>,
        context: &ChangeContext,
    ) -> Result<Option<Obstacle>, WriteError> {
        let delay = max_event_delay() + MAX_REQUEST;
        let Some(user) = current else {
            // The history of a deleted user still names the person.
            let Some(history) = self.history_state::<User>(id, Some(1)).await? else { return Ok(Some(Obstacle::Unknown)) };
            let deleted_at = history.last_event().map(|event| event.timestamp());
            return Ok(deleted_at.and_then(|at| Obstacle::of_change(at, context.at, delay)));
        };
        if user.value.erased_at.is_some() {
            return Ok(None);
        }
        if let Some(obstacle) = Obstacle::of(user, context.at, delay) {
            return Ok(Some(obstacle));
        }
        match self.erase_user(user, context, false).await {
            Err(WriteError::InUse(count)) => Ok(Some(self.in_use(id, count).await?)),
            erased => erased.map(|()| None),
        }
    }
}
