//! `assetctl webhooks`: sends events as they come to a receiver on this computer.

pub mod listen;
pub mod receiver;

use crate::list::at_least_one;
use crate::webhooks::receiver::Secret;
use clap::{Args, Subcommand, ValueEnum};
use reqwest::Url;
use terminal::examples;

const LISTEN: &str = "\
assetctl webhooks listen
assetctl webhooks listen --events \"asset.*,user.created\" \\
  --forward http://127.0.0.1:9000/hook
assetctl webhooks listen --print json --count 1 --for 60 | jq .data";

/// A command about webhooks.
#[derive(Debug, Subcommand)]
pub enum Webhooks {
    /// Print events as they come, and forward them to a program on this computer
    #[command(after_help = examples(LISTEN))]
    Listen(Box<Listen>),
}

/// Options of `webhooks listen`.
#[derive(Debug, Args)]
pub struct Listen {
    /// Send each event to this address, signed as the service signs; http:// and this computer are fine
    #[arg(long, value_name = "URL", value_parser = receiver_url)]
    pub forward: Option<Url>,
    /// Types of events, separated by commas: asset.created, or asset.* for all of a kind; otherwise, every type
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    pub events: Vec<String>,
    /// Secret to sign with, the same for several sessions; otherwise, each session makes one
    #[arg(long, value_name = "SECRET", requires = "forward")]
    pub secret: Option<Secret>,
    /// How events are printed
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub print: Print,
    /// End after this many events
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub count: Option<u64>,
    /// End after this many seconds; with --count, fewer events are an error
    #[arg(long = "for", value_name = "SECONDS")]
    pub seconds: Option<u64>,
}

impl Listen {
    /// As the service takes them; `None` for all.
    #[must_use]
    pub fn types(&self) -> Option<String> {
        let is_all = self.events.is_empty() || self.events.iter().any(|wanted| wanted == "*");
        (!is_all).then(|| self.events.join(","))
    }
}

/// The form of printed events.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receivers_are_http_addresses() {
        for good in ["http://127.0.0.1:9000/hook", "http://localhost:1", "https://example.com/a?b"] {
            assert!(receiver_url(good).is_ok(), "{good}");
        }
        for bad in ["localhost:9000", "127.0.0.1", "ftp://example.com", "http://", ""] {
            assert!(receiver_url(bad).is_err(), "{bad}");
        }
    }
}
