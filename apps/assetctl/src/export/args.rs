//! The command line of `export`.

use crate::format::Format;
use crate::import::args::Delimiter;
use crate::selection::Filters;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Options of `export`.
#[derive(Debug, Args)]
pub struct Export {
    /// What to export
    #[arg(default_value = "assets")]
    pub what: What,
    /// The file; it appears when it is complete. Standard output without
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Format; by the file's name without
    #[arg(long)]
    pub format: Option<Format>,
    /// What separates the cells of CSV; a comma without
    #[arg(long)]
    pub delimiter: Option<Delimiter>,
    /// What of it
    #[command(flatten)]
    pub filters: Filters,
    /// How long to wait for a service that is busy or can't be reached
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub give_up_after: u64,
}

/// The kind of exported records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum What {
    /// Assets
    Assets,
    /// Users
    Users,
}
