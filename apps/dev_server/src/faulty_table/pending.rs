//! Changes that not every view shows yet, and items that a transaction still holds.

use super::databases::View;
use super::requests::ItemKey;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use tokio::time::Instant;

#[derive(Debug)]
pub struct PendingImage {
    pub view: View,
    pub table: String,
    pub key: ItemKey,
    /// `None` if the item is deleted, or not in the index.
    pub image: Option<Value>,
}

#[derive(Debug, Default)]
pub struct Pending {
    images: BTreeMap<(Instant, u64), PendingImage>,
    count: u64,
    /// The time at which the latest image of an item reaches a view. An earlier image never comes later.
    latest: HashMap<(View, ItemKey), Instant>,
    /// A transaction holds the item until then.
    held: HashMap<ItemKey, Instant>,
    /// The transaction with this `ClientRequestToken` is in progress until then.
    tokens: HashMap<String, Instant>,
}

impl Pending {
    /// Lets a view show an item from `at` on, or from the time of the item's previous change, if that is later.
    pub fn add(&mut self, at: Instant, image: PendingImage) {
        let latest = self.latest.entry((image.view, image.key.clone())).or_insert(at);
        *latest = at.max(*latest);
        self.count += 1;
        self.images.insert((*latest, self.count), image);
    }

    /// Takes the next image that its view shows by `now`.
    pub fn take_due(&mut self, now: Instant) -> Option<PendingImage> {
        let entry = self.images.first_entry()?;
        (entry.key().0 <= now).then(|| entry.remove())
    }

    pub fn hold(&mut self, key: ItemKey, until: Instant) {
        self.held.insert(key, until);
    }

    pub fn is_held(&self, key: &ItemKey, now: Instant) -> bool {
        self.held.get(key).is_some_and(|until| *until > now)
    }

    pub fn token(&self, token: &str) -> Option<Instant> {
        self.tokens.get(token).copied()
    }

    pub fn add_token(&mut self, token: String, until: Instant) {
        self.tokens.insert(token, until);
    }
}
