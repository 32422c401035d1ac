//! The dev server's log: lines for people on a terminal, and otherwise JSON, as the functions write it.

use chrono::{DateTime, Local};
use std::fmt::{self, Debug, Write as _};
use std::io::IsTerminal;
use terminal::style::{self, Style, paint};
use terminal::{clean, pad};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Human-readable lines
    Text,
    /// A JSON object on each line, as in AWS
    Json,
}

impl Format {
    /// Returns the requested format or, by default, human-readable lines on a terminal, and JSON elsewhere.
    #[must_use]
    pub fn or_default(asked: Option<Self>) -> Self {
        asked.unwrap_or(if std::io::stderr().is_terminal() { Self::Text } else { Self::Json })
    }

    fn default_filter(self) -> &'static str {
        // The engine logs a warning for each failed condition, which is part of normal operation.
        match self {
            Self::Text => "warn,shared=info,deliver=info,dynoxide=error",
            Self::Json => "warn,shared=info,deliver=info,fanout=info,dynoxide=error",
        }
    }

    fn layer<S>(self) -> Box<dyn Layer<S> + Send + Sync>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        match self {
            Self::Text => {
                let lines = Lines { is_coloured: style::is_coloured(&std::io::stderr()) };
                tracing_subscriber::fmt::layer().event_format(lines).with_writer(std::io::stderr).boxed()
            }
            Self::Json => shared::log::lines(std::io::stderr).boxed(),
        }
    }
}

pub fn init(format: Format) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| format.default_filter().into());
    tracing_subscriber::registry().with(format.layer().with_filter(filter)).init();
}

pub fn warnings(format: Format) -> impl Subscriber + Send + Sync {
    tracing_subscriber::registry().with(format.layer().with_filter(LevelFilter::WARN))
}

#[derive(Debug, Default)]
pub struct Fields {
    pub message: String,
    pub others: Vec<(&'static str, String)>,
}

impl Fields {
    /// Returns an empty text if the event has no such field.
    pub fn get(&self, name: &str) -> &str {
        self.others.iter().find(|(other, _)| *other == name).map_or("", |(_, text)| text)
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            name => self.others.push((name, value.to_owned())),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut text = String::new();
        // Writing to a String never fails.
        let _ = write!(text, "{value:?}");
        self.record_str(field, &text);
    }
}

const METHOD_COLUMNS: usize = 7;
/// Column width of routes. Longer routes shift the rest of the line.
const ROUTE_COLUMNS: usize = 47;
/// Fields that the request's line already has, or that are useless on a single machine.
const OMITTED: [&str; 6] = ["method", "route", "status", "duration_ms", "tenant_id", "key_id"];

pub struct Lines {
    pub is_coloured: bool,
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let line = match *event.metadata().level() {
            Level::INFO if !fields.get("route").is_empty() => request_line(&fields, self.is_coloured),
            level => message_line(level, &fields, self.is_coloured),
        };
        writeln!(writer, "{}  {line}", paint(&time_of_day(), style::DIM, self.is_coloured))
    }
}

fn time_of_day() -> String {
    let now = DateTime::from_timestamp_millis(shared::app::system_clock()().millis()).unwrap_or_default();
    now.with_timezone(&Local).format("%H:%M:%S").to_string()
}

/// Formats method, route, status and time; for a failure of the service, also the request ID. The path and the query could
/// contain a key.
fn request_line(fields: &Fields, is_coloured: bool) -> String {
    let status: u16 = fields.get("status").parse().unwrap_or_default();
    let duration = match fields.get("duration_ms") {
        "0" => "<1".to_owned(),
        duration => duration.to_owned(),
    };
    let mut line = format!(
        "{} {}  {} {} ms",
        pad(&clean(fields.get("method")), METHOD_COLUMNS, false),
        pad(fields.get("route"), ROUTE_COLUMNS, false),
        paint(&status.to_string(), style_of(status), is_coloured),
        pad(&duration, 5, true),
    );
    if status >= 500 {
        // Writing to a String never fails.
        let _ = write!(line, "  request {}", clean(fields.get("request_id")));
    }
    line
}

fn style_of(status: u16) -> Style {
    match status {
        0..300 => style::GOOD,
        300..400 => style::NEUTRAL,
        400..500 => style::WARNING,
        _ => style::ERROR,
    }
}

fn message_line(level: Level, fields: &Fields, is_coloured: bool) -> String {
    let style = match level {
        Level::ERROR => style::ERROR,
        Level::WARN => style::WARNING,
        _ => style::DIM,
    };
    let mut text = fields.message.clone();
    for cause in ["cause", "error"].map(|name| fields.get(name)).into_iter().filter(|cause| !cause.is_empty()) {
        text = format!("{text}: {cause}");
    }
    for (name, value) in &fields.others {
        match *name {
            "cause" | "error" => {}
            "request_id" => text = format!("{text} (request {value})"),
            name if OMITTED.contains(&name) => {}
            name => text = format!("{text} {name}={value}"),
        }
    }
    format!("{}  {}", paint(&level.to_string().to_lowercase(), style, is_coloured), clean(text.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(message: &str, others: &[(&'static str, &str)]) -> Fields {
        let others = others.iter().map(|(name, text)| (*name, (*text).to_owned())).collect();
        Fields { message: message.into(), others }
    }

    fn request(method: &str, route: &str, status: &str, duration: &str) -> Fields {
        let others = [("method", method), ("route", route), ("status", status), ("duration_ms", duration)];
        fields("", &[&others[..], &[("request_id", "0190163d")]].concat())
    }

    #[test]
    fn requests_are_a_line_of_columns() {
        let lines = [("GET", "/v1/assets", "200", "4"), ("DELETE", "/v1/assets/{id}", "404", "0")];
        let lines = lines.map(|(method, route, status, ms)| request_line(&request(method, route, status, ms), false));
        assert_eq!(lines[0], "GET     /v1/assets                                       200     4 ms");
        assert_eq!(lines[1], "DELETE  /v1/assets/{id}                                  404    <1 ms");
        let failed = request_line(&request("GET", "/v1/assets", "503", "1200"), false);
        assert!(failed.ends_with(" 503  1200 ms  request 0190163d"), "{failed}");
    }

    #[test]
    fn statuses_have_the_colour_of_their_class() {
        let colours = ["200", "308", "422", "500"].map(|status| {
            let line = request_line(&request("GET", "/", status, "1"), true);
            line.split('\u{1b}').nth(1).unwrap().split('m').next().unwrap().to_owned()
        });
        assert_eq!(colours, ["[32", "[36", "[33", "[1"]);
    }

    #[test]
    fn nothing_that_a_terminal_obeys_is_shown() {
        let failed = fields("a failure", &[("cause", "\u{1b}[2J")]);
        assert_eq!(message_line(Level::WARN, &failed, false), "warn  a failure: \u{fffd}[2J");
    }

    #[test]
    fn failures_have_their_cause_and_the_requests_id() {
        let failed = fields(
            "GET /v1/assets/{id} failed with 500",
            &[("request_id", "0190163d"), ("route", "/v1/assets/{id}"), ("status", "500"), ("cause", "no table\nno")],
        );
        let expected = "error  GET /v1/assets/{id} failed with 500: no table no (request 0190163d)";
        assert_eq!(message_line(Level::ERROR, &failed, false), expected);
        let other = fields("", &[("metric", "unused_snapshots"), ("count", "1")]);
        assert_eq!(message_line(Level::WARN, &other, false), "warn  metric=unused_snapshots count=1");
    }
}
