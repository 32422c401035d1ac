//! `assetctl webhooks listen`: follows the feed of all changes, page after page, and prints a line for each event and a summary.

use crate::config::Connection;
use crate::error::{CliError, EXIT_INTERRUPTED, EXIT_REFUSED, EXIT_SUCCESS, Result};
use crate::http::client::Client;
use crate::http::request::{get_endlessly, unreadable};
use crate::interrupt::Interrupt;
use crate::output::{count, duration};
use crate::webhooks::receiver::{Attempt, Receiver, Secret};
use crate::webhooks::{Listen, Print};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::time::{Duration, Instant};
use terminal::{clean, pad, print_data, print_note, print_styled, style};

const INTERVAL: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// Enough events came, or nobody reads the output any more.
    Complete,
    TimeOver,
    Interrupted,
}

/// Prints events as they come, and forwards them to a receiver.
///
/// # Errors
///
/// Returns an error when the service refuses the requests, and when too few events came.
pub async fn listen(options: &Listen, connection: &Connection, is_json: bool) -> Result<u8> {
    let mut interrupt = Interrupt::listen();
    let began = Instant::now();
    let client = Client::new(connection)?;
    let print = if is_json { Print::Json } else { options.print };
    let mut listener = Listener { options, receiver: receiver(options)?, print, counts: Counts::default() };
    let ending = tokio::select! {
        biased;
        _ = interrupt.next() => Ok(Ending::Interrupted),
        () = time_over(options.seconds) => Ok(Ending::TimeOver),
        result = listener.follow(&client) => result.map(|()| Ending::Complete),
    };
    if terminal::is_error_terminal() && matches!(ending, Ok(Ending::Interrupted)) {
        // Ends the line with ^C.
        print_note("");
    }
    print_note(&listener.counts.summary(began.elapsed(), options.forward.is_some()));
    exit_code(ending?, listener.counts, options)
}

/// Prints a new secret, which the user doesn't know.
fn receiver(options: &Listen) -> Result<Option<Receiver>> {
    let Some(url) = options.forward.clone() else { return Ok(None) };
    let secret = match &options.secret {
        Some(secret) => secret.clone(),
        None => {
            let secret = Secret::generate()?;
            print_note(&format!("Your signing secret for this session is {}", secret.expose()));
            secret
        }
    };
    Receiver::new(url, secret).map(Some)
}

async fn time_over(seconds: Option<u64>) {
    match seconds {
        Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
        None => std::future::pending().await,
    }
}

fn exit_code(ending: Ending, counts: Counts, options: &Listen) -> Result<u8> {
    match (ending, options.count) {
        (Ending::Interrupted, _) => Ok(EXIT_INTERRUPTED),
        (Ending::TimeOver, Some(wanted)) if counts.events < wanted => {
            let seconds = options.seconds.unwrap_or_default();
            Err(CliError::Failed(format!("only {} of {wanted} came in {seconds} s", count(counts.events, "event"))))
        }
        _ if counts.failed > 0 => Ok(EXIT_REFUSED),
        _ => Ok(EXIT_SUCCESS),
    }
}

struct Listener<'a> {
    options: &'a Listen,
    receiver: Option<Receiver>,
    print: Print,
    counts: Counts,
}

impl Listener<'_> {
    /// Follows the feed until there were enough events.
    async fn follow(&mut self, client: &Client) -> Result<()> {
        let mut feed = Feed::begin(client, self.options.types()).await?;
        print_note(&self.greeting());
        loop {
            for event in feed.next().await? {
                let is_read = self.handle(&event).await?;
                if !is_read || self.options.count.is_some_and(|count| self.counts.events >= count) {
                    return Ok(());
                }
            }
            if !feed.has_more() {
                tokio::time::sleep(INTERVAL).await;
            }
        }
    }

    fn greeting(&self) -> String {
        let forwards = self.options.forward.as_ref().map_or(String::new(), |url| format!(" and forwarding to {url}"));
        let types = self.options.types().unwrap_or_else(|| "all events".into());
        format!("Listening to {types}{forwards}. Events come about ten seconds after their change. Ctrl-C ends.")
    }

    /// Returns whether anybody still reads the output.
    async fn handle(&mut self, event: &Event) -> Result<bool> {
        let attempt = match &self.receiver {
            Some(receiver) => Some(receiver.send(&event.summary.id, delivery(event, None)).await),
            None => None,
        };
        self.counts.events += 1;
        self.counts.failed += u64::from(attempt.as_ref().is_some_and(|attempt| !attempt.is_success()));
        Ok(match self.print {
            Print::Text => print_styled(&line(&event.summary, attempt.as_ref(), style::is_output_coloured()))?,
            Print::Json => print_data(&delivery(event, attempt.as_ref()))?,
        })
    }
}

/// The service's maximum.
const LIMIT: &str = "100";

#[derive(Debug)]
struct Event {
    /// As the service wrote it.
    entry: Box<RawValue>,
    summary: Summary,
}

#[derive(Debug, Deserialize)]
struct Summary {
    id: String,
    at: String,
    #[serde(rename = "type")]
    event_type: String,
    entity_id: String,
    entity_name: Option<String>,
    entity_tag: Option<String>,
    actor: Actor,
}

#[derive(Debug, Deserialize)]
struct Actor {
    key_name: String,
    user_name: Option<String>,
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

struct Feed<'a> {
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
    async fn begin(client: &'a Client, types: Option<String>) -> Result<Self> {
        let mut feed = Self { client, types, after: "now".into(), has_more: false };
        feed.read(true).await?;
        Ok(feed)
    }

    /// Perhaps none. Waits while the service is busy or can't be reached.
    ///
    /// # Errors
    ///
    /// As [`get_endlessly`].
    async fn next(&mut self) -> Result<Vec<Event>> {
        self.read(false).await?.into_iter().map(event).collect()
    }

    #[must_use]
    fn has_more(&self) -> bool {
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
fn delivery(event: &Event, attempt: Option<&Attempt>) -> String {
    let Summary { event_type, at, .. } = &event.summary;
    let delivery = Delivery { event_type, timestamp: at, data: &event.entry, attempt };
    // Texts and what was JSON before can be written.
    serde_json::to_string(&delivery).unwrap_or_default()
}

#[must_use]
fn line(event: &Summary, attempt: Option<&Attempt>, is_coloured: bool) -> String {
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
struct Counts {
    events: u64,
    /// Events that the receiver has not taken.
    failed: u64,
}

impl Counts {
    #[must_use]
    fn summary(self, elapsed: Duration, is_forwarded: bool) -> String {
        let Self { events, failed } = self;
        let forwarded = format!(": {} forwarded, {failed} failed", events - failed);
        format!("{} in {}{}", count(events, "event"), duration(elapsed), if is_forwarded { &forwarded } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use crate::webhooks::Webhooks;
    use clap::Parser;

    fn options(arguments: &[&str]) -> Listen {
        let command = Cli::try_parse_from([&["assetctl", "webhooks", "listen"], arguments].concat()).expect("options").command;
        match command {
            Command::Webhooks { command: Webhooks::Listen(options) } => *options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn all_types_are_asked_for_without_a_filter() {
        assert_eq!(options(&[]).types(), None);
        assert_eq!(options(&["--events", "asset.*,*"]).types(), None);
        let types = options(&["--events", "asset.*,user.created", "--events", "movement.created"]).types();
        assert_eq!(types.as_deref(), Some("asset.*,user.created,movement.created"));
    }

    #[test]
    fn the_exit_code_tells_why_it_ended_and_whether_the_receiver_took_all() {
        let (some, failed) = (Counts { events: 2, failed: 0 }, Counts { events: 2, failed: 1 });
        let code = |ending, counts, arguments: &[&str]| exit_code(ending, counts, &options(arguments)).ok();
        assert_eq!(code(Ending::Complete, some, &["--count", "2"]), Some(0));
        assert_eq!(code(Ending::Complete, failed, &["--count", "2"]), Some(3));
        assert_eq!(code(Ending::TimeOver, some, &["--for", "9"]), Some(0));
        assert_eq!(code(Ending::TimeOver, failed, &["--for", "9"]), Some(3));
        assert_eq!(code(Ending::TimeOver, some, &["--for", "9", "--count", "3"]), None);
        assert_eq!(code(Ending::Interrupted, failed, &["--count", "3"]), Some(130));
    }

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
