//! Which events a webhook gets.

use crate::domain::event_filter::EventTypes;
use serde::{Deserialize, Serialize};

/// Types of events: exact ones such as `asset.created`, all of a kind such as `asset.*`, or `*` for all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WebhookEvents(pub Vec<String>);

impl WebhookEvents {
    /// Returns whether an event of this type is sent.
    #[must_use]
    pub fn contain(&self, event_type: &str) -> bool {
        self.0.iter().any(|wanted| wanted == "*" || wanted == event_type)
    }

    /// Returns the types as a filter of the change feed; `None` for all.
    #[must_use]
    pub fn filter(&self) -> Option<EventTypes> {
        self.0.join(",").parse().ok()
    }
}
