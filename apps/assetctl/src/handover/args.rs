//! The command line of `handover`.

use clap::Args;

/// Options of `handover`.
#[derive(Debug, Args)]
pub struct Handover {
    /// What is handed over, 20 assets at most: tags, ids or serial numbers
    #[arg(required = true, value_name = "TAG")]
    pub assets: Vec<String>,
    /// Who gets it: an e-mail address, a name or an id
    #[arg(long, value_name = "USER")]
    pub to: String,
    /// The process that hands it over, by its slug
    #[arg(long, value_name = "SLUG", default_value = "employee-onboarding")]
    pub process: String,
    /// Tick an entry of the checklists, in any case, or `all`; without, whoever signs ticks them
    #[arg(long, value_name = "LABEL")]
    pub tick: Vec<String>,
    /// Run the process `prepare` first on what is still in stock
    #[arg(long)]
    pub prepare: bool,
    /// Wait until it is signed, and submit the last step
    #[arg(long, conflicts_with = "dry_run")]
    pub wait: bool,
    /// The longest wait
    #[arg(long, value_name = "SECONDS", default_value_t = 1800, requires = "wait")]
    pub timeout: u64,
    /// Show the QR code of the link even if the output is no terminal
    #[arg(long)]
    pub qr: bool,
    /// Say what would happen, and write nothing
    #[arg(long)]
    pub dry_run: bool,
}
