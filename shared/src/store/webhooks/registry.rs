//! A tenant's webhooks and their health.

use super::deliveries::expiry;
use crate::domain::record::{Stored, Unique};
use crate::domain::values::id::WebhookId;
use crate::domain::values::time::Timestamp;
use crate::domain::webhooks::{Health, MAX_WEBHOOKS, Webhook};
use crate::store::keys::{EXPIRES, TYPE};
use crate::store::lists::indexed_lists::{Page, PageRequest};
use crate::store::{Reader, StoreError, Writer, unless_condition_failed};
use aws_sdk_dynamodb::types::AttributeValue;

const FAILING_SINCE: &str = "failing_since";
/// Attribute that only slow webhooks have.
const IS_SLOW: &str = "is_slow";

impl Reader {
    /// Returns the slots for further webhooks. Takes one round trip.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time.
    pub async fn free_webhook_slots(&self) -> Result<Vec<u8>, StoreError> {
        let slots: Vec<Unique> = (0..MAX_WEBHOOKS).map(Webhook::unique_slot).collect();
        let owners = self.owners::<Webhook>(&slots).await?;
        Ok((0..MAX_WEBHOOKS)
            .zip(&slots)
            .filter(|(_, unique)| !owners.contains_key(&unique.value))
            .map(|(slot, _)| slot)
            .collect())
    }

    /// Lists the webhooks of the tenant, newest first.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the table can't be read.
    pub async fn list_webhooks(&self, request: PageRequest) -> Result<Page<Stored<Webhook>>, StoreError> {
        self.list_all(request, |_: &Webhook| true).await
    }

    /// Reads the health of a webhook.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time.
    pub async fn webhook_health(&self, webhook: WebhookId) -> Result<Health, StoreError> {
        let Some(item) = self.item(&self.keys.webhook_health(webhook)).await? else { return Ok(Health::default()) };
        let failing_since = item.get(FAILING_SINCE).and_then(|since| since.as_s().ok()?.parse().ok());
        Ok(Health { failing_since, is_slow: item.contains_key(IS_SLOW) })
    }
}

impl Writer {
    /// Writes a change to the health by an attempt at `at`, unless a concurrent attempt has made the same change. Writes nothing
    /// if the health is unchanged.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time.
    pub async fn write_webhook_health(
        &self,
        webhook: WebhookId,
        previous: &Health,
        next: &Health,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        if previous == next {
            return Ok(());
        }
        let text = |at: Timestamp| AttributeValue::S(at.to_string());
        let update = self.store.client.update_item().table_name(&self.store.table);
        let mut update = update
            .set_key(Some(self.keys.webhook_health(webhook).item()))
            .expression_attribute_names("#type", TYPE)
            .expression_attribute_names("#expires", EXPIRES)
            .expression_attribute_names("#slow", IS_SLOW)
            .expression_attribute_values(":type", AttributeValue::S("webhook_health".to_owned()))
            .expression_attribute_values(":expires", expiry(at));
        let (mut set, mut remove) = ("SET #type = :type, #expires = :expires".to_owned(), String::new());
        if next.is_slow {
            set += ", #slow = :slow";
            update = update.expression_attribute_values(":slow", AttributeValue::Bool(true));
        } else {
            remove += " REMOVE #slow";
        }
        // A slow concurrent attempt must not prevent recording that failures have ended.
        let condition = if previous.failing_since == next.failing_since {
            if previous.is_slow { "attribute_exists(#slow)" } else { "attribute_not_exists(#slow)" }
        } else {
            update = update.expression_attribute_names("#since", FAILING_SINCE);
            if let Some(since) = next.failing_since {
                set += ", #since = :since";
                update = update.expression_attribute_values(":since", text(since));
            } else {
                remove += if remove.is_empty() { " REMOVE #since" } else { ", #since" };
            }
            if let Some(previous) = previous.failing_since {
                update = update.expression_attribute_values(":previous", text(previous));
                "#since = :previous"
            } else {
                "attribute_not_exists(#since)"
            }
        };
        unless_condition_failed(update.update_expression(set + &remove).condition_expression(condition).send().await).map(drop)
    }
}
