//! The dev server's command line. The doc comments are its help texts.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Run the whole API on this machine, with an embedded DynamoDB-compatible engine.
#[derive(Debug, Clone, clap::Parser)]
#[command(name = "local", version)]
pub struct Options {
    /// Address of the API. Port 0 picks a free port.
    #[arg(long, default_value = "127.0.0.1:3000", value_name = "ADDR")]
    pub addr: SocketAddr,
    /// Folder for the data.
    #[arg(long, default_value = ".local", value_name = "DIR")]
    pub data: PathBuf,
    /// Keep the data in memory instead of a folder.
    #[arg(long, conflicts_with = "data")]
    pub memory: bool,
    /// Don't create demo data, only a tenant with an API key.
    #[arg(long)]
    pub empty: bool,
    /// Address of the DynamoDB-compatible engine, for other tools. Port 0 picks a free port.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDR")]
    pub dynamodb_addr: SocketAddr,
    /// When the server is ready, write base_url, api_key, tenant_id, table and dynamodb_endpoint to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub ready_file: Option<PathBuf>,
}
