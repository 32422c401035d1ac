//! The command line of `offboard`.

use clap::Args;

/// Options of `offboard`.
#[derive(Debug, Args)]
pub struct Offboard {
    /// Who leaves: an e-mail address, a name or an id
    pub user: String,
    /// The process that takes the assets back, by its slug; Device Return without
    #[arg(long, value_name = "SLUG")]
    pub process: Option<String>,
    /// Leave the user active
    #[arg(long)]
    pub keep_active: bool,
    /// Don't ask
    #[arg(long)]
    pub yes: bool,
    /// Show the plan, and write nothing
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
}
