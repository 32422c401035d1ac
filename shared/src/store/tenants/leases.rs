//! Counts the requests of API keys, signing links and tenants. A function instance leases shares of their limits, so that most
//! requests cost nothing (docs/adr/0010). The operator sets a tenant's limit, called its ceiling; most tenants have none.

use crate::domain::keys::api_key::{WINDOW_SECONDS, window};
use crate::domain::keys::lease::{Counter, Lease, Share};
use crate::domain::record::Kind;
use crate::domain::values::id::{ApiKeyId, Id, TenantId};
use crate::domain::values::time::Timestamp;
use crate::store::keys::{self, EXPIRES, Item, PK, TYPE};
use crate::store::table::unit_of_work::{Condition, write_error};
use crate::store::table::unit_of_work::{Purpose, TransactionItem, Write};
use crate::store::tenants::tenant_deletion::DELETION_BEGAN;
use crate::store::{INITIAL_BACKOFF, OPERATION_TIMEOUT, Reader, StoreError, WriteError, Writer, unless_condition_failed};
use aws_sdk_dynamodb::Config;
use aws_sdk_dynamodb::config::retry::{RetryConfig, RetryPartition};
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout};
use uuid::Uuid;

/// Maximum number of leases in memory, each less than a hundred bytes. If there are more in one minute, all are dropped.
const MAX_LEASES: usize = 10_000;
/// How long a request waits for the update of its key's `last_used_at`.
const TOUCH_TIMEOUT: Duration = Duration::from_millis(250);
const COUNT_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of tenants whose ceilings are cached. If there are more, the cache is cleared.
const MAX_TENANTS: usize = 10_000;
/// How long a counter outlives its minute, in seconds.
const KEPT_SECONDS: i64 = 600;
const TAKEN: &str = "requests";
const HELD: &str = "held";
const LIMIT: &str = "requests_per_minute";

/// Configures calls whose failure doesn't fail their request. These calls have one retry, for connections that broke while the
/// function was frozen, and a separate retry quota, so that throttling them doesn't use up the retries of other calls.
fn dispensable_config() -> aws_sdk_dynamodb::config::Builder {
    let retries = RetryConfig::standard().with_max_attempts(2).with_initial_backoff(INITIAL_BACKOFF);
    Config::builder().retry_config(retries).retry_partition(RetryPartition::new("dispensable"))
}

impl Reader {
    /// Returns the tenant's ceiling for the minute of `at`; `None` if the tenant has none. Reads the ceiling once per minute, for
    /// half a read unit, so a change takes effect in the next minute.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table throttles or does not respond within [`COUNT_TIMEOUT`].
    pub(crate) async fn ceiling_of_minute(&self, at: Timestamp) -> Result<Option<u32>, StoreError> {
        let (ceilings, minute) = (&self.store.ceilings, window(at));
        if let Some(limit) = ceilings.known(self.id, minute) {
            return Ok(limit);
        }
        let key = self.keys.ceiling(self.id.uuid());
        let read = self.store.client.get_item().table_name(&self.store.table).set_key(Some(key.item()));
        let read = Box::pin(read.customize().config_override(dispensable_config()).send());
        let read = timeout(COUNT_TIMEOUT, read).await.map_err(|elapsed| StoreError::Unavailable(elapsed.into()))?;
        let limit = read?.item.as_ref().map(ceiling_in).transpose()?;
        ceilings.insert(self.id, minute, limit);
        Ok(limit)
    }

    /// Returns the tenant's rate limit per minute, as set by the operator.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the table can't be read.
    pub async fn ceiling(&self) -> Result<Option<u32>, StoreError> {
        self.item(&self.keys.ceiling(self.id.uuid())).await?.as_ref().map(ceiling_in).transpose()
    }
}

impl Writer {
    /// Updates `last_used_at`. Writes no event, because nobody changed the key. Times out early, so that requests don't wait.
    pub(crate) async fn touch_key(&self, id: ApiKeyId, at: Timestamp) -> Result<(), StoreError> {
        let update = self.store.client.update_item().table_name(&self.store.table);
        let request = update
            .set_key(Some(self.keys.record(Kind::ApiKey, id.uuid()).item()))
            .condition_expression("attribute_exists(#pk)")
            .update_expression("SET #used = :at")
            .expression_attribute_names("#pk", PK)
            .expression_attribute_names("#used", "last_used_at")
            .expression_attribute_values(":at", AttributeValue::S(at.to_string()))
            .customize()
            .config_override(dispensable_config())
            .send();
        let touched =
            timeout(TOUCH_TIMEOUT, Box::pin(request)).await.map_err(|elapsed| StoreError::Unavailable(elapsed.into()))?;
        unless_condition_failed(touched).map(drop)
    }

    /// Counts a request of a credential, or of the tenant if `credential` is the tenant's ID. Returns the number of requests in
    /// this minute, including this request, as far as this function instance knows; more than `limit` if the limit is used up.
    /// Costs nothing while the instance has leased requests left; a new lease usually costs one write unit (docs/adr/0010).
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table throttles or does not respond within [`COUNT_TIMEOUT`]. If the table
    /// counted a share nevertheless, the share stays unused.
    pub(crate) async fn count_request(&self, credential: Uuid, limit: u32, at: Timestamp) -> Result<u64, StoreError> {
        let leases = &self.store.leases;
        let counted = Counted { tenant: self.id, credential, limit, at };
        let share = match leases.count(&counted) {
            Ok(used) => return Ok(used),
            Err(share) => share,
        };
        let take = async {
            for share in [Some(share), share.single(limit)].into_iter().flatten() {
                if let Some(counter) = self.take_share(&counted, share).await? {
                    return Ok(leases.add(&counted, share, counter));
                }
            }
            Ok(leases.exhaust(&counted))
        };
        timeout(COUNT_TIMEOUT, take).await.map_err(|elapsed| StoreError::Unavailable(elapsed.into()))?
    }

    /// Adds a share to the counter. Returns the counter; `None` if the share would exceed a limit.
    async fn take_share(&self, of: &Counted, share: Share) -> Result<Option<Counter>, StoreError> {
        let minute = window(of.at);
        let number = |number: &dyn std::fmt::Display| AttributeValue::N(number.to_string());
        let condition = match share.max_held {
            None => "attribute_not_exists(#taken) OR #taken <= :max_taken",
            Some(_) => "attribute_not_exists(#taken) OR (#taken <= :max_taken AND #held <= :max_held)",
        };
        let taken = self
            .store
            .client
            .update_item()
            .table_name(&self.store.table)
            .set_key(Some(self.keys.rate(of.credential, minute).item()))
            .update_expression("ADD #taken :requests, #held :change SET #expires = :expires, #type = :type")
            .condition_expression(condition)
            .expression_attribute_names("#taken", TAKEN)
            .expression_attribute_names("#held", HELD)
            .expression_attribute_names("#expires", EXPIRES)
            .expression_attribute_names("#type", TYPE)
            .expression_attribute_values(":requests", number(&share.requests))
            .expression_attribute_values(":change", number(&share.change_of_held()))
            .expression_attribute_values(":max_taken", number(&share.max_taken))
            .expression_attribute_values(":expires", number(&((minute + 1) * WINDOW_SECONDS + KEPT_SECONDS)))
            .expression_attribute_values(":type", AttributeValue::S("rate".to_owned()));
        let taken = match share.max_held {
            None => taken,
            Some(max_held) => taken.expression_attribute_values(":max_held", number(&max_held)),
        };
        let request = taken.return_values(ReturnValue::UpdatedNew).customize().config_override(dispensable_config()).send();
        let Some(output) = unless_condition_failed(Box::pin(request).await)? else { return Ok(None) };
        let counter = output.attributes.as_ref().and_then(counter);
        counter.map(Some).ok_or_else(|| StoreError::broken("a request counter without numbers"))
    }

    /// Sets or removes the ceiling.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError::Stale`] for a tenant that does not exist or is being deleted, and [`WriteError::Store`] when the
    /// table can't be written.
    pub async fn set_ceiling(&self, limit: Option<u32>) -> Result<(), WriteError> {
        let key = self.keys.ceiling(self.id.uuid());
        let write = match limit {
            None => Write::Delete(key),
            Some(limit) => {
                let mut item = key.item();
                item.insert(LIMIT.to_owned(), AttributeValue::N(limit.to_string()));
                item.insert(TYPE.to_owned(), AttributeValue::S("ceiling".to_owned()));
                Write::Put(item)
            }
        };
        let is_registered = Condition::All(vec![Condition::EXISTS, Condition::Lacks(DELETION_BEGAN)]);
        let items = [(is_registered, Write::Check(keys::registry(self.id))), (Condition::ALWAYS, write)];
        let items = items.map(|(condition, write)| TransactionItem { purpose: Purpose::RecordState, condition, write });
        self.store.transact(items.into(), Instant::now() + OPERATION_TIMEOUT).await.map_err(write_error)
    }
}

/// Identifies a credential's counter for the minute of `at`.
#[derive(Debug, Clone, Copy)]
struct Counted {
    tenant: TenantId,
    credential: Uuid,
    limit: u32,
    at: Timestamp,
}

#[derive(Debug, Default)]
pub(in crate::store) struct Leases(Mutex<HashMap<(TenantId, Uuid), Lease>>);

impl Leases {
    fn count(&self, of: &Counted) -> Result<u64, Share> {
        self.with(of, Lease::count)
    }

    fn add(&self, of: &Counted, share: Share, counter: Counter) -> u64 {
        self.with(of, |lease| lease.add(share, counter))
    }

    fn exhaust(&self, of: &Counted) -> u64 {
        self.with(of, Lease::exhaust)
    }

    fn with<T>(&self, of: &Counted, change: impl FnOnce(&mut Lease) -> T) -> T {
        let (key, mut fresh) = ((of.tenant, of.credential), Lease::new(of.limit, of.at));
        let mut leases = self.leases();
        if leases.len() >= MAX_LEASES && !leases.contains_key(&key) {
            leases.retain(|_, lease| lease.window() >= fresh.window());
            // Rare. Dropped leases count as used until the minute ends.
            if leases.len() >= MAX_LEASES {
                leases.clear();
            }
        }
        let lease = leases.entry(key).or_insert(fresh);
        if lease.window() > fresh.window() {
            // A slow request must not end the lease of the current minute.
            return change(&mut fresh);
        }
        if !lease.is_for(of.limit, of.at) {
            *lease = fresh;
        }
        change(lease)
    }

    fn leases(&self) -> MutexGuard<'_, HashMap<(TenantId, Uuid), Lease>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ceilings that this function instance has read, with the minute of the read.
#[derive(Debug, Default)]
pub(in crate::store) struct Ceilings(Mutex<HashMap<TenantId, (i64, Option<u32>)>>);

impl Ceilings {
    /// Returns a cached ceiling; `None` if it was not read in this minute or later.
    fn known(&self, tenant: TenantId, minute: i64) -> Option<Option<u32>> {
        self.ceilings().get(&tenant).filter(|(read, _)| *read >= minute).map(|(_, limit)| *limit)
    }

    fn insert(&self, tenant: TenantId, minute: i64, limit: Option<u32>) {
        let mut ceilings = self.ceilings();
        if ceilings.len() >= MAX_TENANTS && !ceilings.contains_key(&tenant) {
            // Rare, and costs each tenant one read.
            ceilings.clear();
        }
        ceilings.insert(tenant, (minute, limit));
    }

    fn ceilings(&self) -> MutexGuard<'_, HashMap<TenantId, (i64, Option<u32>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ceiling_in(item: &Item) -> Result<u32, StoreError> {
    let limit = item.get(LIMIT).and_then(|limit| limit.as_n().ok()?.parse().ok());
    limit.ok_or_else(|| StoreError::broken("a ceiling without a number"))
}

/// Parses a counter. `held` can be negative: if a response is lost, the retry returns the same requests a second time.
fn counter(item: &Item) -> Option<Counter> {
    let number = |name: &str| item.get(name)?.as_n().ok()?.parse::<i64>().ok();
    Some(Counter { taken: number(TAKEN)?.try_into().ok()?, held: number(HELD)?.max(0).cast_unsigned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(tenant: u8, credential: u128, millis: i64) -> Counted {
        let start = Timestamp::from_millis(0);
        let tenant = TenantId::new(start, [tenant; 10]);
        Counted { tenant, credential: Uuid::from_u128(credential), limit: 600, at: Timestamp::from_millis(millis) }
    }

    fn take(leases: &Leases, of: &Counted) {
        let share = leases.count(of).expect_err("nothing is left");
        leases.add(of, share, Counter { taken: share.requests, held: share.requests - 1 });
    }

    #[test]
    fn a_lease_is_of_one_tenant_one_credential_and_one_minute() {
        let leases = Leases::default();
        take(&leases, &counted(1, 1, 0));
        assert_eq!(leases.count(&counted(1, 1, 59_999)), Ok(2));
        for other in [counted(2, 1, 0), counted(1, 2, 0), counted(1, 1, 60_000)] {
            assert!(leases.count(&other).is_err(), "{other:?}");
        }
        assert_eq!(leases.count(&counted(1, 1, 60_000)).map_err(|share| share.used_up), Err(0), "it held them a minute ago");
        take(&leases, &counted(1, 1, 60_000));
        assert!(leases.count(&counted(1, 1, 0)).is_err(), "a late request gets no share of the next minute");
        assert_eq!(leases.count(&counted(1, 1, 60_000)), Ok(2), "and doesn't end it");
        assert_eq!(leases.exhaust(&counted(1, 3, 0)), 601);
        assert_eq!(leases.count(&counted(1, 3, 0)), Ok(601), "it is not asked for again");
    }

    #[test]
    fn the_number_of_leases_is_limited_and_those_of_the_present_minute_are_kept() {
        let leases = Leases::default();
        for credential in 0..30_000 {
            let of = counted(1, credential, if credential < 9_000 { 0 } else { 60_000 });
            take(&leases, &of);
            assert!(leases.leases().len() <= MAX_LEASES && leases.count(&of).is_ok());
            assert!(credential != 12_000 || leases.count(&counted(1, 9_000, 60_000)).is_ok());
        }
    }

    fn tenant(n: u16) -> TenantId {
        let [high, low] = n.to_be_bytes();
        TenantId::new(Timestamp::from_millis(0), [high, low, 0, 0, 0, 0, 0, 0, 0, 0])
    }

    #[test]
    fn a_ceiling_is_known_in_its_minute_and_before() {
        let ceilings = Ceilings::default();
        ceilings.insert(tenant(1), 7, Some(100));
        ceilings.insert(tenant(2), 7, None);
        assert_eq!([6, 7, 8].map(|minute| ceilings.known(tenant(1), minute)), [Some(Some(100)), Some(Some(100)), None]);
        assert_eq!([7, 8].map(|minute| ceilings.known(tenant(2), minute)), [Some(None), None]);
    }

    #[test]
    fn the_number_of_tenants_is_limited() {
        let ceilings = Ceilings::default();
        for n in 0..25_000 {
            ceilings.insert(tenant(n), 0, None);
            assert!(ceilings.ceilings().len() <= MAX_TENANTS && ceilings.known(tenant(n), 0).is_some());
        }
    }
}
