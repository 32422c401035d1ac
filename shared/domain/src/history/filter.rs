//! Filters for the event feed.

use crate::history::event::{EventType, Verb};
use crate::record::Kind;
use crate::values::field_error::{ErrorCode, ValueError, nearest_first};
use crate::values::time::Timestamp;
use serde::Deserialize;
use std::str::FromStr;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, Type};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};
use uuid::Uuid;

pub(crate) const EVENT_TYPE_FILTER: &str = "EventTypeFilter";
/// Stands for every verb or, alone, for every type.
pub(crate) const ANY: &str = "*";
/// The maximum length in characters of an unknown type's name in an error. Longer names are truncated.
const MAX_SHOWN_CHARS: usize = 64;

/// Event types: one type such as `asset.created`, all types of a kind such as `asset.*`, or all types, `*`. Patterns with `*` don't
/// include frequent types such as `asset.seen`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventTypes(Vec<(Kind, Option<Verb>)>);

impl EventTypes {
    /// Parses event types. Ignores types unknown to this version of the service.
    pub fn of_known<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self(names.into_iter().flat_map(named).collect())
    }

    /// Returns the filter; `None` for the default, all types that don't have to be named.
    #[must_use]
    pub fn unless_all(self) -> Option<Self> {
        let has_all = Kind::ALL.iter().all(|kind| self.0.contains(&(*kind, None)));
        let has_more = self.0.iter().any(|(_, verb)| *verb == Some(Verb::Seen));
        if has_all && !has_more { None } else { Some(self) }
    }

    fn contain(&self, event_type: EventType) -> bool {
        let EventType { kind, verb } = event_type;
        let is_wanted = |wanted: Option<Verb>| wanted.map_or_else(|| !must_be_named(event_type), |_| wanted == verb);
        self.0.iter().any(|(known, wanted)| Some(*known) == kind && is_wanted(*wanted))
    }
}

/// Whether an event type is only included by exact name, not by `asset.*` or `*`, because its events are frequent and few readers
/// need them.
pub(crate) fn must_be_named(event_type: EventType) -> bool {
    event_type.verb == Some(Verb::Seen)
}

fn name((kind, verb): (Kind, Option<Verb>)) -> String {
    verb.map_or_else(|| format!("{kind}.{ANY}"), |verb| verb.event_type(kind))
}

fn known() -> impl Iterator<Item = (Kind, Option<Verb>)> {
    let verbs = || Verb::COMMON.into_iter().map(Some).chain([None]);
    let common = Kind::ALL.iter().flat_map(move |kind| verbs().map(move |verb| (*kind, verb)));
    common.chain([(Kind::Asset, Some(Verb::Seen))])
}

/// Returns the types that a name stands for; none if the name is unknown.
fn named(wanted: &str) -> Vec<(Kind, Option<Verb>)> {
    known().filter(|known| name(*known) == wanted || wanted == ANY && known.1.is_none()).collect()
}

pub(crate) fn known_names() -> impl Iterator<Item = String> {
    known().map(name).chain([ANY.to_owned()])
}

impl FromStr for EventTypes {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let mut types = Vec::new();
        for wanted in text.split(',') {
            let found = named(wanted);
            if found.is_empty() {
                return Err(unknown(wanted));
            }
            for known in found {
                if !types.contains(&known) {
                    types.push(known);
                }
            }
        }
        Ok(Self(types))
    }
}

fn unknown(wanted: &str) -> ValueError {
    let names: Vec<String> = known_names().collect();
    let names = nearest_first(wanted, names.iter().map(String::as_str)).join(", ");
    let shown: String = wanted.chars().take(MAX_SHOWN_CHARS).collect();
    ValueError::coded(
        ErrorCode::UnknownValue,
        format!("must be event types, separated by commas; '{shown}' isn't one of {names}"),
    )
}

impl PartialSchema for EventTypes {
    fn schema() -> RefOr<Schema> {
        let name = Ref::from_schema_name(EVENT_TYPE_FILTER);
        ArrayBuilder::new().items(name).min_items(Some(1)).into()
    }
}

impl ToSchema for EventTypes {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        let name = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(known_names()));
        let name = name.description(Some("An event type, all types of a kind, or `*` for all."));
        schemas.push((EVENT_TYPE_FILTER.to_owned(), name.into()));
    }
}

/// A filter for the event feed. Every criterion that is set must match. Without types, all types match unless they must be named.
#[derive(Debug, Clone, Default)]
pub struct EventFilter {
    pub types: Option<EventTypes>,
    pub entity: Option<Uuid>,
    /// The key, user or signing link that made the change.
    pub actor: Option<Uuid>,
    /// Earliest time of the request, inclusive.
    pub since: Option<Timestamp>,
    /// Latest time of the request, exclusive.
    pub until: Option<Timestamp>,
}

impl EventFilter {
    pub fn is_empty(&self) -> bool {
        let Self { types, entity, actor, since, until } = self;
        types.is_none() && entity.is_none() && actor.is_none() && since.is_none() && until.is_none()
    }

    /// Whether the filter could match only a few of a resource's events in a period.
    pub fn is_selective(&self) -> bool {
        self.types.is_some() || self.actor.is_some()
    }

    /// Whether an event matches. `entry` is the event's canonical JSON.
    pub fn matches(&self, entry: &str) -> bool {
        let Ok(event) = serde_json::from_str::<EventSummary>(entry) else { return self.is_empty() };
        let found = EventType::parse(&event.event_type);
        let is_wanted = match &self.types {
            None => !found.is_some_and(must_be_named),
            Some(types) => found.is_some_and(|found| types.contain(found)),
        };
        let actor = [event.actor.key_id, event.actor.user_id, event.actor.link_id];
        is_wanted
            && self.entity.is_none_or(|wanted| wanted == event.entity_id)
            && self.actor.is_none_or(|wanted| actor.contains(&Some(wanted)))
            && self.since.is_none_or(|since| event.at >= since)
            && self.until.is_none_or(|until| event.at < until)
    }
}

#[derive(Deserialize)]
struct EventSummary {
    #[serde(rename = "type")]
    event_type: String,
    entity_id: Uuid,
    at: Timestamp,
    actor: ActorIds,
}

#[derive(Deserialize)]
struct ActorIds {
    key_id: Option<Uuid>,
    user_id: Option<Uuid>,
    link_id: Option<Uuid>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(event_type: &str, entity: u128) -> String {
        let (actor, at) = (serde_json::json!({"key_id": null, "user_id": null}), Timestamp::from_millis(0));
        let entry = serde_json::json!({"type": event_type, "entity_id": Uuid::from_u128(entity), "at": at, "actor": actor});
        entry.to_string()
    }

    #[test]
    fn a_star_stands_for_all_types_that_need_not_be_named() {
        let types = |text: &str| text.parse::<EventTypes>().expect(text);
        for text in ["*", "*,*", "asset.created,*", "*,user.*"] {
            assert_eq!(types(text).unless_all(), None, "{text}");
        }
        let filter = EventFilter { types: types("*,asset.seen").unless_all(), ..EventFilter::default() };
        assert!(filter.matches(&entry("asset.seen", 1)) && filter.matches(&entry("user.deleted", 1)));
        assert!(types("asset.*,asset.*").unless_all() == Some(types("asset.*")), "repetitions are ignored");
        assert!("user.seen".parse::<EventTypes>().is_err(), "only assets are scanned");
        let all = EventFilter::default();
        assert!(!all.matches(&entry("asset.seen", 1)), "a scan must be named");
        assert!(all.matches("not JSON") && !filter.matches("not JSON"));
    }

    #[test]
    fn a_key_a_user_and_a_link_are_found_by_their_ids() {
        for name in ["key_id", "user_id", "link_id"] {
            let mut actor = serde_json::json!({"key_id": null, "user_id": null});
            actor[name] = Uuid::from_u128(7).to_string().into();
            let at = Timestamp::from_millis(0);
            let entry =
                serde_json::json!({"type": "asset.created", "entity_id": Uuid::nil(), "at": at, "actor": actor}).to_string();
            let by = |actor| EventFilter { actor: Some(Uuid::from_u128(actor)), ..EventFilter::default() };
            assert!(by(7).matches(&entry) && !by(8).matches(&entry), "{name}");
        }
    }

    #[test]
    fn unknown_types_are_answered_with_the_known_ones_nearest_first() {
        for (wrong, nearest) in [
            ("asset.craeted", "asset.created"),
            ("asset.created,process_instance.*", "instance.*"),
            ("asset.deleted.twice", "asset.deleted"),
            ("user.created,", "*"),
        ] {
            let error = wrong.parse::<EventTypes>().expect_err(wrong).to_string();
            assert!(error.contains(&format!("isn't one of {nearest}, ")), "{wrong}: {error}");
            assert_eq!(error.matches(".*").count() - wrong.matches(".*").count(), Kind::ALL.len(), "{error}");
        }
        let long = "x".repeat(100_000).parse::<EventTypes>().expect_err("too long").to_string();
        assert!(long.len() < 2_000, "{long}");
    }
}
