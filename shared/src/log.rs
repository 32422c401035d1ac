//! The lines that the service writes, one JSON object each.

use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

/// What goes to `writer`: `timestamp` (RFC 3339), `level`, `message` and the fields, side by side.
///
/// Lambda takes a line for what its level says only if it has both of the first two ("Configuring JSON and plain text
/// log formats", AWS Lambda guide).
pub fn lines<S, W>(writer: W) -> impl Layer<S> + Send + Sync
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    tracing_subscriber::fmt::layer().json().flatten_event(true).with_current_span(false).with_span_list(false).with_writer(writer)
}

/// Sends the lines of a function to Lambda, from the level that `AWS_LAMBDA_LOG_LEVEL` names; from INFO, if that is not
/// less.
pub(crate) fn of_function() {
    let level = level(std::env::var("AWS_LAMBDA_LOG_LEVEL").ok().as_deref());
    tracing_subscriber::registry().with(lines(std::io::stdout).with_filter(level)).init();
}

/// Never more than INFO: below it the SDK tells what it sends, which nobody is to read in a log.
fn level(named: Option<&str>) -> LevelFilter {
    match named {
        // tracing has no such level.
        Some("FATAL") => LevelFilter::ERROR,
        named => named.and_then(|name| name.parse().ok()).unwrap_or(LevelFilter::INFO).min(LevelFilter::INFO),
    }
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
