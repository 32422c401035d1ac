//! `assetctl webhooks listen`.

use crate::config::Connection;
use crate::error::{CliError, EXIT_INTERRUPTED, EXIT_REFUSED, EXIT_SUCCESS, Result};
use crate::http::client::Client;
use crate::interrupt::Interrupt;
use crate::output::count;
use crate::webhooks::args::{Listen, Print};
use crate::webhooks::feed::{Event, Feed};
use crate::webhooks::print::{Counts, delivery, line};
use crate::webhooks::receiver::Receiver;
use crate::webhooks::signature::Secret;
use std::time::{Duration, Instant};
use terminal::{print_data, print_note, print_styled, style};

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use crate::webhooks::args::Webhooks;
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
}
