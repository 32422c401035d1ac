//! Webhooks: URLs that a tenant's events are sent to.

mod address;
mod decision;
mod delivery;
mod events;
mod health;
mod message;
mod request;
pub use address::{AddressPolicy, PUBLIC_PORTS, WebhookUrl, is_local_name, is_public};
pub use decision::{Decision, MAX_DELAY, Race, Retries, after_race, decide};
pub use delivery::{
    Attempt, AttemptFailure, Delivery, DeliveryStatus, MAX_ATTEMPTS_KEPT, MAX_REPLAYS_PER_DAY, RETENTION, RETRY_DELAYS,
    ReplayRefusal, Replays, TestEvent,
};
pub use events::{EventRequest, FanoutRequest, MAX_EVENT_TYPES, NewEvent, WebhookEvents};
pub use health::{Health, MAX_FAILING, SLOW_AFTER};
pub use message::{Message, REPLAY_DELAY, ReplayPart, ReplayRequest};
pub use request::{
    Attempted, DeliveryRequest, EncryptedSecret, SECRET_BYTES, TEST_EVENT, WebhookSecret, delivery_body, test_event,
};

use crate::record::{Kind, Patch, Record, Unique, fields};
use crate::values::id::{ApiKeyId, WebhookId};
use crate::values::string_enum::string_enum;
use crate::values::text::Notes;
use crate::values::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub const MAX_WEBHOOKS: u8 = 20;
/// Maximum time for which a replaced secret still signs: 7 days.
pub const MAX_GRACE_SECONDS: u32 = 7 * 24 * 3600;

string_enum! {
    /// Why the service disabled a webhook.
    DisabledReason {
        /// Every delivery failed for 5 days.
        Failing = "failing",
        /// The receiver responded with 410.
        Gone = "gone",
    }
}

/// A secret replaced by a rotation. It still signs deliveries until `until`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviousSecret {
    pub secret: EncryptedSecret,
    pub until: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Webhook {
    pub id: WebhookId,
    pub url: WebhookUrl,
    pub description: Notes,
    pub events: WebhookEvents,
    pub is_active: bool,
    /// Why the service disabled the webhook; `None` if it is active or was disabled by a caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled_reason: Option<DisabledReason>,
    /// When the webhook became active with this URL. Earlier failures don't count.
    pub active_since: Timestamp,
    /// A number below [`MAX_WEBHOOKS`], unique in the tenant, so that a tenant can't have more webhooks.
    pub slot: u8,
    pub secret: EncryptedSecret,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_secret: Option<PreviousSecret>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotated_at: Option<Timestamp>,
    /// The API key that created the webhook; `None` for the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<ApiKeyId>,
}

#[derive(Debug, Clone, Default)]
pub struct WebhookChange {
    pub url: Option<WebhookUrl>,
    pub description: Patch<Notes>,
    pub events: Option<WebhookEvents>,
    pub is_active: Option<bool>,
}

impl Webhook {
    /// Applies a change. After a change to the URL or a reactivation, earlier failures don't count. Activating or deactivating a
    /// webhook clears `disabled_reason`.
    #[must_use]
    pub fn changed(&self, change: &WebhookChange, now: Timestamp) -> Self {
        let WebhookChange { url, description, events, is_active } = change.clone();
        let url = url.unwrap_or_else(|| self.url.clone());
        let is_active = is_active.unwrap_or(self.is_active);
        let begins_anew = url != self.url || is_active && !self.is_active;
        Self {
            active_since: if begins_anew { now } else { self.active_since },
            disabled_reason: self.disabled_reason.filter(|_| is_active == self.is_active),
            url,
            description: description.or(Some(self.description.clone())).unwrap_or_default(),
            events: events.unwrap_or_else(|| self.events.clone()),
            is_active,
            ..self.clone()
        }
    }

    /// Returns the current secret, then the previous one during its grace period.
    pub fn secrets(&self, now: Timestamp) -> impl Iterator<Item = &EncryptedSecret> {
        let previous = self.previous_secret.as_ref().filter(|previous| now < previous.until);
        std::iter::once(&self.secret).chain(previous.map(|previous| &previous.secret))
    }

    /// Replaces the secret. The old secret still signs, too, until `until`.
    #[must_use]
    pub fn rotated(&self, secret: EncryptedSecret, now: Timestamp, until: Timestamp) -> Self {
        let previous_secret = (until > now).then(|| PreviousSecret { secret: self.secret.clone(), until });
        Self { secret, previous_secret, rotated_at: Some(now), ..self.clone() }
    }

    #[must_use]
    pub fn disabled(&self, reason: DisabledReason) -> Self {
        Self { is_active: false, disabled_reason: Some(reason), ..self.clone() }
    }

    pub fn unique_slot(slot: u8) -> Unique {
        Unique { field: "slot", value: slot.to_string(), reserved_after_deletion: false }
    }
}

impl Record for Webhook {
    const KIND: Kind = Kind::Webhook;
    type Id = WebhookId;

    fn id(&self) -> WebhookId {
        self.id
    }

    fn history_fields(&self) -> Map<String, Value> {
        let Self {
            id: _,
            url,
            description,
            events,
            is_active,
            disabled_reason,
            active_since: _,
            slot: _,
            secret: _,
            previous_secret,
            rotated_at,
            created_by: _,
        } = self;
        fields([
            ("url", json!(url.without_query())),
            ("description", json!(description)),
            ("events", json!(events)),
            ("is_active", json!(is_active)),
            ("disabled_reason", json!(disabled_reason)),
            ("rotated_at", json!(rotated_at)),
            ("previous_secret_until", json!(previous_secret.as_ref().map(|previous| previous.until))),
        ])
    }

    fn unique(&self) -> Vec<Unique> {
        vec![Self::unique_slot(self.slot)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{at, webhook};

    fn activation(is_active: bool) -> WebhookChange {
        WebhookChange { is_active: Some(is_active), ..WebhookChange::default() }
    }

    #[test]
    fn fields_that_a_change_omits_stay() {
        let before = webhook();
        assert_eq!(before.changed(&WebhookChange::default(), at(9)), before);
        let change = WebhookChange {
            description: Patch::Value("ERP".parse().expect("text")),
            events: Some(WebhookEvents(vec!["*".to_owned()])),
            ..WebhookChange::default()
        };
        let after = before.changed(&change, at(9));
        assert_eq!((&*after.description, after.events.0[0].as_str(), after.active_since), ("ERP", "*", at(0)));
        let cleared = after.changed(&WebhookChange { description: Patch::Null, ..WebhookChange::default() }, at(9));
        assert_eq!(&*cleared.description, "");
    }

    #[test]
    fn a_new_address_and_an_activation_begin_anew() {
        let moved = |url: &str| WebhookChange { url: Some(url.parse().expect("a URL")), ..WebhookChange::default() };
        assert_eq!(webhook().changed(&moved("https://example.com/hook"), at(9)).active_since, at(0));
        assert_eq!(webhook().changed(&moved("https://example.com/b"), at(9)).active_since, at(9));
        let inactive = webhook().changed(&activation(false), at(5));
        assert_eq!((inactive.is_active, inactive.active_since), (false, at(0)));
        let active = inactive.changed(&activation(true), at(9));
        assert_eq!((active.is_active, active.active_since), (true, at(9)));
        assert_eq!(active.changed(&activation(true), at(12)), active);
    }

    #[test]
    fn the_services_reason_stays_until_somebody_activates_the_webhook() {
        let disabled = webhook().disabled(DisabledReason::Failing);
        assert_eq!((disabled.is_active, disabled.disabled_reason), (false, Some(DisabledReason::Failing)));
        // Sending back `is_active: false` doesn't clear the reason.
        assert_eq!(disabled.changed(&activation(false), at(9)), disabled);
        let active = disabled.changed(&activation(true), at(9));
        assert_eq!((active.is_active, active.disabled_reason, active.active_since), (true, None, at(9)));
        assert_eq!(active.changed(&activation(false), at(10)).disabled_reason, None);
    }

    #[test]
    fn a_replaced_secret_signs_until_its_end() {
        let (second, third) = (EncryptedSecret(b"second".to_vec()), EncryptedSecret(b"third".to_vec()));
        let rotated = webhook().rotated(second.clone(), at(10), at(70));
        let secrets = |webhook: &Webhook, now| webhook.secrets(now).cloned().collect::<Vec<_>>();
        assert_eq!(secrets(&rotated, at(69)), [second.clone(), webhook().secret]);
        assert_eq!(secrets(&rotated, at(70)), [second]);
        assert_eq!(rotated.history_fields()["previous_secret_until"], json!(at(70)));
        let again = rotated.rotated(third.clone(), at(20), at(20));
        assert_eq!((secrets(&again, at(20)), again.rotated_at), (vec![third], Some(at(20))));
    }

    #[test]
    fn neither_debug_text_nor_history_has_a_secret() {
        let rotated = webhook().rotated(EncryptedSecret(b"second".to_vec()), at(1), at(2));
        let text = format!("{rotated:?} {:?}", webhook().history_fields());
        for secret in ["first", "second", "[102, 105", "Zmlyc3"] {
            assert!(!text.contains(secret), "{text}");
        }
        let with_token = Webhook { url: "https://example.com/?token=1".parse().expect("an address"), ..webhook() };
        assert!(!json!(with_token.history_fields()).to_string().contains("token"));
    }
}
