//! The output of `webhooks listen`: a line for each event, and a summary.

use crate::output::count;
use crate::progress::duration;
use crate::webhooks::feed::{Event, Summary};
use crate::webhooks::receiver::Attempt;
use serde::Serialize;
use serde_json::value::RawValue;
use std::time::Duration;
use terminal::{clean, pad, style};

/// The width of an event's type, so that most names are in one column.
const TYPE_COLUMNS: usize = 18;
/// Characters of a failure's response that people see.
const MAX_SHOWN_CHARS: usize = 100;

/// A delivery as receivers get it, or as it is printed.
#[derive(Serialize)]
struct Delivery<'a> {
    #[serde(rename = "type")]
    event_type: &'a str,
    timestamp: &'a str,
    data: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<&'a Attempt>,
}

/// The JSON that receivers get; with the attempt to send it, if that is given.
#[must_use]
pub fn delivery(event: &Event, attempt: Option<&Attempt>) -> String {
    let Summary { event_type, at, .. } = &event.summary;
    let delivery = Delivery { event_type, timestamp: at, data: &event.entry, attempt };
    // Texts and what was JSON before can be written.
    serde_json::to_string(&delivery).unwrap_or_default()
}

#[must_use]
pub fn line(event: &Summary, attempt: Option<&Attempt>, is_coloured: bool) -> String {
    let time = event.at.get(..19).unwrap_or(&event.at).replace('T', " ");
    let named = [&event.entity_tag, &event.entity_name].into_iter().flatten().map(String::as_str);
    let entity = named.collect::<Vec<_>>().join(" ");
    let entity = if entity.is_empty() { &event.entity_id } else { &entity };
    let actor = event.actor.user_name.as_ref().unwrap_or(&event.actor.key_name);
    let text = format!("{time}  {}  {entity}  by {actor}", pad(&event.event_type, TYPE_COLUMNS, false));
    let Some(attempt) = attempt else { return clean(&text) };
    let colour = if attempt.is_success() { style::GOOD } else { style::ERROR };
    let outcome = style::paint(&clean(&outcome(attempt)), colour, is_coloured);
    format!("{}  {outcome}", clean(&text))
}

/// Status and duration, and for a failure the receiver's text.
fn outcome(attempt: &Attempt) -> String {
    let milliseconds = attempt.duration_ms;
    let Some(status) = attempt.status else {
        return format!("failed in {milliseconds} ms: {}", attempt.error.as_deref().unwrap_or_default());
    };
    let said: String = attempt.response.as_deref().unwrap_or_default().trim().chars().take(MAX_SHOWN_CHARS).collect();
    let colon = if said.is_empty() { "" } else { ": " };
    match attempt.is_success() {
        true => format!("{status} in {milliseconds} ms"),
        false => format!("{status} in {milliseconds} ms{colon}{said}"),
    }
}

#[derive(Debug, Default, Clone, Copy)]
pub struct Counts {
    pub events: u64,
    /// Events that the receiver has not taken.
    pub failed: u64,
}

impl Counts {
    #[must_use]
    pub fn summary(self, elapsed: Duration, is_forwarded: bool) -> String {
        let Self { events, failed } = self;
        let forwarded = format!(": {} forwarded, {failed} failed", events - failed);
        format!("{} in {}{}", count(events, "event"), duration(elapsed), if is_forwarded { &forwarded } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event() -> Event {
        let entry = r#"{"id":"e1","at":"2027-01-01T08:30:59.123Z","type":"asset.created","entity_id":"a1","entity_name":"My\u001b laptop",
            "entity_tag":"AST-000062","version":1,"actor":{"key_name":"ci","user_name":null},"changes":{"price":{"old":null,"new":1249.00}}}"#;
        let entry: Box<RawValue> = serde_json::from_str(entry).expect("an entry");
        Event { summary: serde_json::from_str(entry.get()).expect("a summary"), entry }
    }

    fn attempt(status: Option<u16>, error: Option<&str>, response: Option<&str>) -> Attempt {
        Attempt { status, error: error.map(Into::into), duration_ms: 12, response: response.map(Into::into) }
    }

    #[test]
    fn a_line_says_what_happened_and_what_became_of_it() {
        let mut summary = event().summary;
        let start = "2027-01-01 08:30:59  asset.created       AST-000062 My\u{fffd} laptop  by ci";
        assert_eq!(line(&summary, None, false), start);
        for (attempt, end) in [
            (attempt(Some(204), None, None), "204 in 12 ms"),
            (attempt(Some(200), None, Some("fine")), "200 in 12 ms"),
            (attempt(Some(500), None, Some("no\nluck\n")), "500 in 12 ms: no luck"),
            (attempt(Some(301), None, None), "301 in 12 ms"),
            (attempt(None, Some("Connection refused"), None), "failed in 12 ms: Connection refused"),
        ] {
            assert_eq!(line(&summary, Some(&attempt), false), format!("{start}  {end}"));
        }
        summary.entity_name = None;
        summary.entity_tag = None;
        summary.actor.user_name = Some("Ada".into());
        assert!(line(&summary, None, false).ends_with("  a1  by Ada"));
    }

    #[test]
    fn a_delivery_has_the_entry_as_it_came() {
        let event = event();
        let expected = format!(r#"{{"type":"asset.created","timestamp":"2027-01-01T08:30:59.123Z","data":{}}}"#, event.entry);
        assert_eq!(delivery(&event, None), expected);
        let printed = delivery(&event, Some(&attempt(Some(200), None, None)));
        assert!(printed.ends_with(r#","attempt":{"status":200,"error":null,"duration_ms":12,"response":null}}"#), "{printed}");
    }

    #[test]
    fn the_summary_counts() {
        let counts = Counts { events: 3, failed: 1 };
        assert_eq!(counts.summary(Duration::from_secs(61), true), "3 events in 1 min 1 s: 2 forwarded, 1 failed");
        assert_eq!(counts.summary(Duration::from_secs(1), false), "3 events in 1 s");
    }
}
