//! The dev server's command line. The doc comments are its help texts.

use crate::address::address;
use crate::log::Format;
use shared::domain::webhooks::AddressPolicy;
use std::net::SocketAddr;
use std::path::PathBuf;

pub const NAME: &str = "asset-lifecycle-dev";

const EXAMPLES: &str = "\
asset-lifecycle-dev
asset-lifecycle-dev --memory --addr 127.0.0.1:0
asset-lifecycle-dev --data /tmp/assets --empty
asset-lifecycle-dev --allow-local-webhooks
asset-lifecycle-dev --dynamodb-addr 127.0.0.1:8000 --log json";

/// Run the whole API on this machine, with an embedded DynamoDB-compatible engine.
///
/// Prints the address of the inventory page with an API key, and opens it in the browser. The API's base URL is the same address
/// up to /v1; /v1/docs describes the API. A request: curl -H "Authorization: Bearer KEY" http://127.0.0.1:3000/v1/assets
///
/// In a checkout, `cargo run -- OPTIONS` is the same as `asset-lifecycle-dev OPTIONS`. Needs neither AWS nor Docker.
#[derive(Debug, Clone, clap::Parser)]
#[command(name = NAME, version, after_help = terminal::examples(EXAMPLES))]
pub struct Options {
    /// Address of the API. Port 0 picks a free port
    ///
    /// With 0.0.0.0:3000, other devices in the network, such as your phone for the signing link, can reach the API at this
    /// machine's address. So can everyone else in the network. There is no TLS: anyone who can read the traffic gets keys, links
    /// and data.
    #[arg(long, default_value = "127.0.0.1:3000", value_name = "IP:PORT", value_parser = address)]
    pub addr: SocketAddr,
    /// Don't open the inventory page. Without a terminal or a display, it isn't opened either.
    ///
    /// While the browser starts, other users of this machine can see the key in the list of processes.
    #[arg(long)]
    pub no_open: bool,
    /// Folder for the data. Delete it to start over.
    #[arg(long, default_value = ".local", value_name = "DIR")]
    pub data: PathBuf,
    /// Keep the data in memory instead of a folder.
    #[arg(long, conflicts_with = "data")]
    pub memory: bool,
    /// Don't create demo data, only a tenant with an API key.
    #[arg(long)]
    pub empty: bool,
    /// Address of the DynamoDB-compatible engine, for other tools, which can use any credentials. Port 0 picks a free port.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "IP:PORT", value_parser = address)]
    pub dynamodb_addr: SocketAddr,
    /// Permit webhooks with http and https addresses of this machine, such as http://127.0.0.1:9000/hook.
    ///
    /// Without this option, as in AWS, webhooks need https addresses of public hosts.
    #[arg(long)]
    pub allow_local_webhooks: bool,
    /// When the server is ready, write base_url, api_key, tenant_id, table, dynamodb_endpoint and, if the demo data has an open
    /// handover, signing_url to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub ready_file: Option<PathBuf>,
    /// Log format of requests and errors on standard error [default: text on a terminal, otherwise json]
    ///
    /// RUST_LOG selects what to log. NO_COLOR turns colours off.
    #[arg(long, value_name = "FORMAT")]
    pub log: Option<Format>,
}

impl Options {
    #[must_use]
    pub fn address_policy(&self) -> AddressPolicy {
        if self.allow_local_webhooks { AddressPolicy::PublicOrLoopback } else { AddressPolicy::Public }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};

    #[test]
    fn the_help_has_examples_that_are_right() {
        Options::command().debug_assert();
        assert_eq!(terminal::check_examples(Options::command()), Ok(()));
    }

    #[test]
    fn webhooks_reach_this_machine_only_if_the_option_allows_it() {
        for (arguments, policy) in
            [(&[NAME][..], AddressPolicy::Public), (&[NAME, "--allow-local-webhooks"], AddressPolicy::PublicOrLoopback)]
        {
            assert_eq!(Options::parse_from(arguments).address_policy(), policy);
        }
    }
}
