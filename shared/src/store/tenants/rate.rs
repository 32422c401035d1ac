//! Counts the requests of API keys and signing links.

use super::leases::Counted;
use crate::domain::keys::lease::{Counter, Share};
use crate::domain::keys::rate::{WINDOW_SECONDS, window};
use crate::domain::values::time::Timestamp;
use crate::store::keys::{EXPIRES, Item, TYPE};
use crate::store::table::error::{StoreError, unless_condition_failed};
use crate::store::{TenantStore, client};
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};
use std::time::Duration;
use tokio::time::timeout;
use uuid::Uuid;

const TAKEN: &str = "requests";
const HELD: &str = "held";
/// The time for which a counter outlives its minute, in seconds.
const KEPT_SECONDS: i64 = 600;
pub(super) const COUNT_TIMEOUT: Duration = Duration::from_secs(1);

impl TenantStore {
    /// Counts a request of a credential, or of the tenant under its own id. Returns how many are used in this minute, this one
    /// included, as far as this function instance knows: more than `limit` if the limit is used up. Costs nothing while the
    /// instance holds a share of the limit, and otherwise mostly one write unit (docs/adr/0010).
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table throttles or does not respond within [`COUNT_TIMEOUT`]. A share that
    /// was taken nevertheless is used by nobody.
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

    /// Adds a share to the counter and returns the counter; `None` if its condition doesn't hold.
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
        let taken = taken.return_values(ReturnValue::UpdatedNew).customize().config_override(client::dispensable()).send().await;
        let Some(output) = unless_condition_failed(taken)? else { return Ok(None) };
        let counter = output.attributes.as_ref().and_then(counter);
        counter.map(Some).ok_or_else(|| StoreError::broken("a request counter without numbers"))
    }
}

/// Reads a counter. What is held can be below zero: an attempt whose answer was lost gives up the same requests twice.
fn counter(item: &Item) -> Option<Counter> {
    let number = |name: &str| item.get(name)?.as_n().ok()?.parse::<i64>().ok();
    Some(Counter { taken: number(TAKEN)?.try_into().ok()?, held: number(HELD)?.max(0).cast_unsigned() })
}
