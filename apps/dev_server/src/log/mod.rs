//! The dev server's log: lines for people on a terminal, and otherwise JSON, as the functions write it.

use crate::meter::Cost;
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
use tracing_subscriber::fmt::format::{self, Compact, FormatEvent, FormatFields, Writer};
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
            Self::Text => "warn,dev_server=info,shared=info,deliver=info,dynoxide=error",
            Self::Json => "warn,shared=info,deliver=info,fanout=info,dynoxide=error",
        }
    }

    fn layer<S>(self) -> Box<dyn Layer<S> + Send + Sync>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        match self {
            Self::Text => {
                let others = tracing_subscriber::fmt::format().compact().without_time().with_target(false);
                let lines = Lines { others, is_coloured: style::is_coloured(&std::io::stderr()) };
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

/// The fields of a request's log line.
#[derive(Debug, Default)]
struct Fields(Vec<(&'static str, String)>);

impl Fields {
    /// Returns an empty text if the event has no such field.
    fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(other, _)| *other == name).map_or("", |(_, text)| text)
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.push((field.name(), value.to_owned()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.push((field.name(), format!("{value:?}")));
    }
}

const METHOD_COLUMNS: usize = 7;
/// Column width of routes. Longer routes shift the rest of the line.
const ROUTE_COLUMNS: usize = 28;

/// Formats requests in columns, with their calls to the table.
struct Lines {
    /// The format of other events.
    others: format::Format<Compact, ()>,
    is_coloured: bool,
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        write!(writer, "{}  ", paint(&time_of_day(), style::DIM, self.is_coloured))?;
        let mut fields = Fields::default();
        event.record(&mut fields);
        if *event.metadata().level() != Level::INFO || fields.get("route").is_empty() {
            return self.others.format_event(context, writer, event);
        }
        let request = context.event_scope().and_then(|scope| scope.from_root().next());
        let extensions = request.as_ref().map(|request| request.extensions());
        let free = Cost::default();
        let cost = extensions.as_ref().and_then(|extensions| extensions.get::<Cost>()).unwrap_or(&free);
        writeln!(writer, "{}", request_line(&fields, cost, self.is_coloured))
    }
}

fn time_of_day() -> String {
    let now = DateTime::from_timestamp_millis(shared::services::system_clock()().millis()).unwrap_or_default();
    now.with_timezone(&Local).format("%H:%M:%S").to_string()
}

/// Formats method, route, status, time, and the calls to the table with their read and write units; for a failure of the service,
/// also the request ID. The path and the query could contain a key.
fn request_line(fields: &Fields, cost: &Cost, is_coloured: bool) -> String {
    let status: u16 = fields.get("status").parse().unwrap_or_default();
    let duration = match fields.get("duration_ms") {
        "0" => "<1".to_owned(),
        duration => duration.to_owned(),
    };
    let Cost { calls, read_units, write_units, .. } = cost;
    let ending = if *calls == 1 { "" } else { "s" };
    let mut line = format!(
        "{} {}  {} {} ms  {calls} call{ending}, {read_units} RU, {write_units} WU",
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

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, route: &str, status: &str, duration: &str) -> Fields {
        let others = [("method", method), ("route", route), ("status", status), ("duration_ms", duration)];
        Fields(others.into_iter().chain([("request_id", "0190163d")]).map(|(name, text)| (name, text.to_owned())).collect())
    }

    #[test]
    fn requests_are_a_line_of_columns() {
        let cost = Cost { calls: 3, read_units: 2.5, write_units: 10.0, ..Cost::default() };
        let lines = [("GET", "/v1/assets", "200", "4"), ("DELETE", "/v1/assets/{id}", "404", "0")];
        let lines = lines.map(|(method, route, status, ms)| request_line(&request(method, route, status, ms), &cost, false));
        assert_eq!(lines[0], "GET     /v1/assets                    200     4 ms  3 calls, 2.5 RU, 10 WU");
        assert_eq!(lines[1], "DELETE  /v1/assets/{id}               404    <1 ms  3 calls, 2.5 RU, 10 WU");
        let failed = request_line(&request("GET", "/v1/assets", "503", "1200"), &cost, false);
        assert!(failed.ends_with(" 503  1200 ms  3 calls, 2.5 RU, 10 WU  request 0190163d"), "{failed}");
    }

    #[test]
    fn statuses_have_the_colour_of_their_class() {
        let colours = ["200", "308", "422", "500"].map(|status| {
            let line = request_line(&request("GET", "/", status, "1"), &Cost::default(), true);
            line.split('\u{1b}').nth(1).unwrap().split('m').next().unwrap().to_owned()
        });
        assert_eq!(colours, ["[32", "[36", "[33", "[1"]);
    }
}
