//! Log lines: one JSON object each.

use std::error::Error;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

/// Writes `timestamp` (RFC 3339), `level`, `message` and all fields of an event at the top level.
///
/// Lambda filters a line by its level only if it has both `timestamp` and `level` ("Configuring JSON and plain text log formats"
/// in the AWS Lambda guide).
pub fn lines<S, W>(writer: W) -> impl Layer<S> + Send + Sync
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    tracing_subscriber::fmt::layer().json().flatten_event(true).with_current_span(false).with_span_list(false).with_writer(writer)
}

/// Starts logging to standard output, which Lambda reads, at the level `AWS_LAMBDA_LOG_LEVEL`, but never below INFO.
pub(crate) fn init_function() {
    let level = level(std::env::var("AWS_LAMBDA_LOG_LEVEL").ok().as_deref());
    // A filter for all layers, so that the SDK's spans cost nothing.
    tracing_subscriber::registry().with(level).with(lines(std::io::stdout)).init();
}

/// Parses a log level. Returns no level below INFO, because the SDK logs request contents at lower levels.
fn level(named: Option<&str>) -> LevelFilter {
    match named {
        // tracing has no FATAL.
        Some("FATAL") => LevelFilter::ERROR,
        named => named.and_then(|name| name.parse().ok()).unwrap_or(LevelFilter::INFO).min(LevelFilter::INFO),
    }
}

/// Joins an error and all its causes. The SDK's own error text is generic; only its causes contain the details.
#[must_use]
pub fn error_chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_is_lambdas_but_never_below_info() {
        for (named, is) in [
            (None, LevelFilter::INFO),
            (Some("TRACE"), LevelFilter::INFO),
            (Some("DEBUG"), LevelFilter::INFO),
            (Some("nonsense"), LevelFilter::INFO),
            (Some("WARN"), LevelFilter::WARN),
            (Some("ERROR"), LevelFilter::ERROR),
            (Some("FATAL"), LevelFilter::ERROR),
        ] {
            assert_eq!(level(named), is, "{named:?}");
        }
    }
}
