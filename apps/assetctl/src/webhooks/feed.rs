//! The feed of all changes, page after page.

use crate::error::Result;
use crate::http::client::Client;
use crate::http::request::{get_endlessly, unreadable};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The service's maximum.
const LIMIT: &str = "100";

#[derive(Debug)]
pub struct Event {
    /// As the service wrote it.
    pub entry: Box<RawValue>,
    pub summary: Summary,
}

#[derive(Debug, Deserialize)]
pub struct Summary {
    pub id: String,
    pub at: String,
    #[serde(rename = "type")]
    pub event_type: String,
    pub entity_id: String,
    pub entity_name: Option<String>,
    pub entity_tag: Option<String>,
    pub actor: Actor,
}

#[derive(Debug, Deserialize)]
pub struct Actor {
    pub key_name: String,
    pub user_name: Option<String>,
}

#[derive(Deserialize)]
struct Page {
    data: Vec<Box<RawValue>>,
    meta: Meta,
}

#[derive(Deserialize)]
struct Meta {
    after: Option<String>,
    has_more: bool,
}

pub struct Feed<'a> {
    client: &'a Client,
    types: Option<String>,
    after: String,
    has_more: bool,
}

impl<'a> Feed<'a> {
    /// From now on; changes of the ten seconds before may come, too.
    ///
    /// # Errors
    ///
    /// As [`get_endlessly`]: a wrong parameter is an unknown type of events. It gives up a service that stays away.
    pub async fn begin(client: &'a Client, types: Option<String>) -> Result<Self> {
        let mut feed = Self { client, types, after: "now".into(), has_more: false };
        feed.read(true).await?;
        Ok(feed)
    }

    /// Perhaps none. Waits while the service is busy or can't be reached.
    ///
    /// # Errors
    ///
    /// As [`get_endlessly`].
    pub async fn next(&mut self) -> Result<Vec<Event>> {
        self.read(false).await?.into_iter().map(event).collect()
    }

    #[must_use]
    pub fn has_more(&self) -> bool {
        self.has_more
    }

    async fn read(&mut self, is_first: bool) -> Result<Vec<Box<RawValue>>> {
        let mut query = vec![("after", self.after.as_str()), ("limit", LIMIT)];
        query.extend(self.types.as_deref().map(|types| ("types", types)));
        let body = get_endlessly(self.client, &self.client.url("events", &query)?, is_first, "No event is lost.").await?;
        let page: Page = serde_json::from_slice(&body).map_err(|_| unreadable())?;
        self.after = page.meta.after.ok_or_else(unreadable)?;
        self.has_more = page.meta.has_more;
        Ok(page.data)
    }
}

fn event(entry: Box<RawValue>) -> Result<Event> {
    let summary = serde_json::from_str(entry.get()).map_err(|_| unreadable())?;
    Ok(Event { entry, summary })
}
