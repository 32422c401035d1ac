//! The dev server's log: lines for people on a terminal, and otherwise JSON, as the functions do.

mod fields;
mod lines;

use lines::Lines;
use std::io::IsTerminal;
use terminal::style;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Lines for people
    Text,
    /// A JSON object on each line, as in AWS
    Json,
}

impl Format {
    /// By default, lines for people on a terminal, and JSON elsewhere.
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

/// Logs to standard error.
pub fn init(format: Format) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| format.default_filter().into());
    tracing_subscriber::registry().with(format.layer().with_filter(filter)).init();
}

pub fn warnings(format: Format) -> impl Subscriber + Send + Sync {
    tracing_subscriber::registry().with(format.layer().with_filter(LevelFilter::WARN))
}
