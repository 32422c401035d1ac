//! What is in the way of erasing a user.

use crate::domain::people::Obstacle;
use crate::domain::processes::instance::InstanceStatus;
use crate::domain::record::{Kind, Stored};
use crate::domain::user::User;
use crate::domain::values::id::{AssetId, Id, InstanceId, UserId};
use crate::store::table::error::{StoreError, WriteError};
use crate::store::table::read::USES;
use crate::store::table::times::{MAX_REQUEST, max_event_delay};
use crate::store::{ChangeContext, InstanceFilter, PageRequest, TenantStore};

/// The most pages of open instances that are searched for a picked user.
const MAX_PAGES: u32 = 10;
const PAGE: u32 = 100;

impl TenantStore {
    /// Erases a user's own record, which is `present` or deleted, unless something is in the way.
    ///
    /// # Errors
    ///
    /// As [`TenantStore::erase_user`].
    pub async fn erase_unhindered(
        &self,
        id: UserId,
        present: Option<&Stored<User>>,
        context: &ChangeContext,
    ) -> Result<Option<Obstacle>, WriteError> {
        let delay = max_event_delay() + MAX_REQUEST;
        let Some(user) = present else {
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

    /// The assets and open processes that refer to a user; `None` if there are none.
    ///
    /// # Errors
    ///
    /// As [`TenantStore::assets_of_user`].
    pub async fn references_to_user(&self, user: UserId) -> Result<Option<Obstacle>, StoreError> {
        let item = self.item(&self.keys.references(Kind::User, user.uuid())).await?;
        let count = item.and_then(|item| item.get(USES)?.as_n().ok()?.parse().ok()).unwrap_or(0);
        if count == 0 { Ok(None) } else { self.in_use(user, count).await.map(Some) }
    }

    async fn in_use(&self, user: UserId, count: u64) -> Result<Obstacle, StoreError> {
        let (assets, _) = self.assets_of_user(user).await?;
        let assets: Vec<AssetId> = assets.iter().map(|asset| asset.value.id).collect();
        let processes = Obstacle::processes(&assets, count);
        Ok(Obstacle::InUse { assets, processes, instances: self.open_instances_of(user, processes).await? })
    }

    /// Looks at the newest open instances, until `count` are found.
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
