//! `assetctl webhooks listen`: follows the feed of all changes, prints a line for each event and a summary, and forwards events
//! to a receiver on this computer, signed as in [Standard Webhooks](https://www.standardwebhooks.com).

use crate::config::{Connection, is_local};
use crate::error::{CliError, EXIT_INTERRUPTED, EXIT_REFUSED, EXIT_SUCCESS, Result};
use crate::http::{Client, JSON, MAX_PAGE, Page, USER_AGENT, cause, random, unreadable};
use crate::interrupt::Interrupt;
use crate::list::at_least_one;
use crate::lookup::text;
use crate::output::{count, duration, to_json};
use crate::show::actor_name;
use base64_simd::STANDARD;
use clap::{Args, Subcommand, ValueEnum};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Response, Url, redirect};
use ring::hmac;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant, UNIX_EPOCH};
use terminal::{clean, examples, pad, print_data, print_note, print_styled, style};

/// Polling interval of the feed.
const INTERVAL: Duration = Duration::from_secs(2);
/// Timeout for a response, as in the service.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Timeout for the body of a response, which doesn't affect the outcome.
const BODY_TIMEOUT: Duration = Duration::from_secs(1);
const MAX_BODY_BYTES: usize = 256;
/// Column width of event types, so that most names are aligned.
const TYPE_COLUMNS: usize = 18;
/// Maximum length to show of an error response, in characters.
const MAX_SHOWN_CHARS: usize = 100;

const LISTEN: &str = "\
assetctl webhooks listen
assetctl webhooks listen --events \"asset.*,user.created\" \\
  --forward http://127.0.0.1:9000/hook
assetctl webhooks listen --print json --count 1 --for 60 | jq .data";

#[derive(Debug, Subcommand)]
pub enum Webhooks {
    /// Print events as they arrive, and forward them to a program on this computer
    #[command(after_help = examples(LISTEN))]
    Listen(Box<Listen>),
}

#[derive(Debug, Args)]
pub struct Listen {
    /// Send each event to this address, signed like the service's deliveries; http:// and addresses of this computer are allowed
    #[arg(long, value_name = "URL", value_parser = receiver_url)]
    pub forward: Option<Url>,
    /// Types of events, separated by commas: asset.created, or asset.* for all events of a kind [default: all types]
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    pub events: Vec<String>,
    /// Signing secret to reuse across sessions [default: a new one for each session]
    #[arg(long, value_name = "SECRET", requires = "forward")]
    pub secret: Option<Secret>,
    /// How events are printed
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub print: Print,
    /// Stop after this many events
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub count: Option<u64>,
    /// Stop after this many seconds; with --count, it is an error if fewer events arrive
    #[arg(long = "for", value_name = "SECONDS")]
    pub seconds: Option<u64>,
}

impl Listen {
    /// Returns the types in the service's format; `None` for all.
    fn types(&self) -> Option<String> {
        let is_all = self.events.is_empty() || self.events.iter().any(|wanted| wanted == "*");
        (!is_all).then(|| self.events.join(","))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Print {
    /// A line for people
    Text,
    /// A JSON object on each line: the delivery as a receiver gets it, and the attempt to send it
    Json,
}

fn receiver_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    url.ok_or_else(|| "must begin with http:// or https://, such as http://127.0.0.1:9000/hook".into())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// The requested number of events arrived, or the output was closed.
    Complete,
    TimeOver,
    Interrupted,
}

pub async fn listen(options: &Listen, connection: &Connection, is_json: bool) -> Result<u8> {
    let mut interrupt = Interrupt::listen();
    let began = Instant::now();
    let client = Client::new(connection)?.with_exact_numbers();
    let print = if is_json { Print::Json } else { options.print };
    let mut listener = Listener { options, receiver: receiver(options)?, print, counts: Counts::default() };
    let ending = tokio::select! {
        biased;
        _ = interrupt.next() => Ok(Ending::Interrupted),
        () = time_over(options.seconds) => Ok(Ending::TimeOver),
        result = listener.follow(&client) => result.map(|()| Ending::Complete),
    };
    if terminal::is_error_terminal() && matches!(ending, Ok(Ending::Interrupted)) {
        // Ends the line on which the terminal shows ^C.
        print_note("");
    }
    print_note(&listener.counts.summary(began.elapsed(), options.forward.is_some()));
    exit_code(ending?, listener.counts, options)
}

/// Prints the secret if it is new.
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
            Err(CliError::Failed(format!("only {} of {wanted} arrived within {seconds} s", count(counts.events, "event"))))
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
    /// Follows the feed from now on, possibly with changes of the last ten seconds, until enough events have arrived. Retries
    /// while the service is busy or can't be reached, except at the first request.
    async fn follow(&mut self, client: &Client) -> Result<()> {
        let (types, limit, mut after) = (self.options.types(), MAX_PAGE.to_string(), None::<String>);
        loop {
            let mut query = vec![("after", after.as_deref().unwrap_or("now")), ("limit", limit.as_str())];
            query.extend(types.as_deref().map(|types| ("types", types)));
            let is_first = after.is_none();
            let document = client.document_endlessly("events", &query, is_first, "No event is lost.").await?;
            let Page { rows, meta } = Page::of(document)?;
            after = Some(meta["after"].as_str().ok_or_else(unreadable)?.to_owned());
            if is_first {
                print_note(&self.greeting());
                continue;
            }
            for event in &rows {
                let is_read = self.handle(event).await?;
                if !is_read || self.options.count.is_some_and(|count| self.counts.events >= count) {
                    return Ok(());
                }
            }
            if meta["has_more"] != true {
                tokio::time::sleep(INTERVAL).await;
            }
        }
    }

    fn greeting(&self) -> String {
        let forwards = self.options.forward.as_ref().map_or(String::new(), |url| format!(" and forwarding to {url}"));
        let types = self.options.types().unwrap_or_else(|| "all events".into());
        format!("Listening to {types}{forwards}. Events arrive about ten seconds after the change. Press Ctrl-C to stop.")
    }

    /// Forwards and prints an event. Returns whether the output is still read.
    async fn handle(&mut self, event: &Value) -> Result<bool> {
        let attempt = match &self.receiver {
            Some(receiver) => Some(receiver.send(text(&event["id"]), delivery(event, None)).await),
            None => None,
        };
        self.counts.events += 1;
        self.counts.failed += u64::from(attempt.as_ref().is_some_and(|attempt| !attempt.is_success()));
        Ok(match self.print {
            Print::Text => print_styled(&line(event, attempt.as_ref(), style::is_output_coloured()))?,
            Print::Json => print_data(&delivery(event, attempt.as_ref()))?,
        })
    }
}

/// Returns the JSON that receivers get, with the attempt to send it if there is one.
fn delivery(event: &Value, attempt: Option<&Attempt>) -> String {
    let mut delivery = json!({"type": event["type"], "timestamp": event["at"], "data": event});
    if let Some(attempt) = attempt {
        delivery["attempt"] = json!(attempt);
    }
    to_json(&delivery)
}

fn line(event: &Value, attempt: Option<&Attempt>, is_coloured: bool) -> String {
    let at = text(&event["at"]);
    let time = at.get(..19).unwrap_or(at).replace('T', " ");
    let named: Vec<&str> = [&event["entity_tag"], &event["entity_name"]].into_iter().filter_map(Value::as_str).collect();
    let entity = if named.is_empty() { text(&event["entity_id"]).to_owned() } else { named.join(" ") };
    let kind = pad(text(&event["type"]), TYPE_COLUMNS, false);
    let line = clean(&format!("{time}  {kind}  {entity}  by {}", actor_name(event)));
    let Some(attempt) = attempt else { return line };
    let colour = if attempt.is_success() { style::GOOD } else { style::ERROR };
    format!("{line}  {}", style::paint(&clean(&outcome(attempt)), colour, is_coloured))
}

/// Returns the status and the duration, and the receiver's text if the attempt failed.
fn outcome(attempt: &Attempt) -> String {
    let milliseconds = attempt.duration_ms;
    let Some(status) = attempt.status else {
        return format!("failed in {milliseconds} ms: {}", attempt.error.as_deref().unwrap_or_default());
    };
    let said: String = attempt.response.as_deref().unwrap_or_default().trim().chars().take(MAX_SHOWN_CHARS).collect();
    let is_shown = !attempt.is_success() && !said.is_empty();
    format!("{status} in {milliseconds} ms{}", if is_shown { format!(": {said}") } else { String::new() })
}

#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    events: u64,
    /// Number of events that the receiver refused or missed.
    failed: u64,
}

impl Counts {
    fn summary(self, elapsed: Duration, is_forwarded: bool) -> String {
        let Self { events, failed } = self;
        let forwarded = format!(": {} forwarded, {failed} failed", events - failed);
        format!("{} in {}{}", count(events, "event"), duration(elapsed), if is_forwarded { &forwarded } else { "" })
    }
}

struct Receiver {
    http: reqwest::Client,
    url: Url,
    secret: Secret,
}

#[derive(Debug, Serialize)]
struct Attempt {
    status: Option<u16>,
    error: Option<String>,
    duration_ms: u64,
    response: Option<String>,
}

impl Attempt {
    fn is_success(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }
}

impl Receiver {
    fn new(url: Url, secret: Secret) -> Result<Self> {
        let mut builder = reqwest::Client::builder()
            .user_agent(USER_AGENT)
            .timeout(TIMEOUT)
            // The service follows no redirects either.
            .redirect(redirect::Policy::none())
            // A receiver can restart at any time, so connections aren't reused.
            .pool_max_idle_per_host(0);
        if is_local(&url) {
            builder = builder.no_proxy();
        }
        let http = builder.build().map_err(|error| CliError::Failed(cause(&error)))?;
        Ok(Self { http, url, secret })
    }

    async fn send(&self, id: &str, body: String) -> Attempt {
        let began = Instant::now();
        let seconds = UNIX_EPOCH.elapsed().unwrap_or_default().as_secs();
        let request = self
            .http
            .post(self.url.clone())
            .header(CONTENT_TYPE, JSON)
            .header("webhook-id", id)
            .header("webhook-timestamp", seconds)
            .header("webhook-signature", self.secret.sign(id, seconds, &body));
        let result = request.body(body).send().await;
        let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        match result {
            Ok(response) => {
                let status = Some(response.status().as_u16());
                Attempt { status, error: None, duration_ms, response: beginning(response).await }
            }
            Err(error) => {
                let error = if error.is_timeout() { "no response within 15 s".into() } else { cause(&error) };
                Attempt { status: None, error: Some(error), duration_ms, response: None }
            }
        }
    }
}

/// Reads the start of the body; `None` if the body is empty.
async fn beginning(mut response: Response) -> Option<String> {
    let mut bytes = Vec::new();
    let read = async {
        while bytes.len() < MAX_BODY_BYTES
            && let Ok(Some(chunk)) = response.chunk().await
        {
            bytes.extend_from_slice(&chunk);
        }
    };
    // On a timeout, the bytes read so far are enough.
    let _ = tokio::time::timeout(BODY_TIMEOUT, read).await;
    bytes.truncate(MAX_BODY_BYTES);
    (!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

const PREFIX: &str = "whsec_";
const NEW_BYTES: usize = 32;
const BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// A signing secret, which `Debug` doesn't disclose.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    fn generate() -> Result<Self> {
        Ok(Self(random::<NEW_BYTES>()?.to_vec()))
    }

    /// Returns the text form that receivers use to verify signatures.
    fn expose(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode_to_string(&self.0))
    }

    /// Signs a delivery. `seconds` is its Unix time.
    fn sign(&self, id: &str, seconds: u64, body: &str) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.0);
        let signature = hmac::sign(&key, format!("{id}.{seconds}.{body}").as_bytes());
        format!("v1,{}", STANDARD.encode_to_string(signature.as_ref()))
    }
}

impl FromStr for Secret {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes = text.strip_prefix(PREFIX).and_then(|encoded| STANDARD.decode_to_vec(encoded).ok());
        let bytes = bytes.filter(|bytes| BYTES.contains(&bytes.len()));
        bytes.map(Self).ok_or_else(|| format!("must be {PREFIX} and {} to {} bytes in base64", BYTES.start(), BYTES.end()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use crate::output::exact;
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
    fn receivers_are_http_addresses() {
        for good in ["http://127.0.0.1:9000/hook", "http://localhost:1", "https://example.com/a?b"] {
            assert!(receiver_url(good).is_ok(), "{good}");
        }
        for bad in ["localhost:9000", "127.0.0.1", "ftp://example.com", "http://", ""] {
            assert!(receiver_url(bad).is_err(), "{bad}");
        }
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

    const EVENT: &str = r#"{"id":"e1","at":"2027-01-01T08:30:59.123Z","type":"asset.created","entity_id":"a1","entity_name":"My\u001b laptop","entity_tag":"AST-000062","version":1,"actor":{"key_name":"ci","user_name":null},"changes":{"price":{"old":null,"new":1249.00}}}"#;

    fn attempt(status: Option<u16>, error: Option<&str>, response: Option<&str>) -> Attempt {
        Attempt { status, error: error.map(Into::into), duration_ms: 12, response: response.map(Into::into) }
    }

    #[test]
    fn a_line_says_what_happened_and_how_it_was_received() {
        let mut event = exact(EVENT).expect("an event");
        let start = "2027-01-01 08:30:59  asset.created       AST-000062 My\u{fffd} laptop  by ci";
        assert_eq!(line(&event, None, false), start);
        for (attempt, end) in [
            (attempt(Some(204), None, None), "204 in 12 ms"),
            (attempt(Some(200), None, Some("fine")), "200 in 12 ms"),
            (attempt(Some(500), None, Some("no\nluck\n")), "500 in 12 ms: no luck"),
            (attempt(Some(301), None, None), "301 in 12 ms"),
            (attempt(None, Some("Connection refused"), None), "failed in 12 ms: Connection refused"),
        ] {
            assert_eq!(line(&event, Some(&attempt), false), format!("{start}  {end}"));
        }
        (event["entity_name"], event["entity_tag"]) = (Value::Null, Value::Null);
        event["actor"]["user_name"] = "Ada".into();
        assert!(line(&event, None, false).ends_with("  a1  by Ada"));
    }

    #[test]
    fn a_delivery_has_the_entry_as_it_came() {
        let event = exact(EVENT).expect("an event");
        let expected = format!(r#"{{"type":"asset.created","timestamp":"2027-01-01T08:30:59.123Z","data":{EVENT}}}"#);
        assert_eq!(delivery(&event, None), expected);
        let printed = delivery(&event, Some(&attempt(Some(200), None, None)));
        assert!(printed.ends_with(r#","attempt":{"status":200,"error":null,"duration_ms":12,"response":null}}"#), "{printed}");
    }

    #[test]
    fn secrets_have_a_prefix_and_enough_bytes() {
        let (one, other) = (Secret::generate().expect("a secret"), Secret::generate().expect("a secret"));
        assert!(one != other && one.expose().parse() == Ok(one.clone()));
        assert_eq!(format!("{one:?}"), "Secret(…)");
        for bad in ["", "whsec_", "whsec_AAAA", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS!"] {
            assert!(bad.parse::<Secret>().is_err(), "{bad}");
        }
    }
}
