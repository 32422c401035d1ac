//! The arguments of the command line. Doc comments are help texts.

use crate::export::Export;
use crate::handover::{Handover, Return, Run};
use crate::import::args::Import;
use crate::labels::Labels;
use crate::list::{Events, List, Stats};
use crate::mcp::Mcp;
use crate::offboard::Offboard;
use crate::set::Set;
use crate::show::Who;
use crate::stocktake::Stocktake;
use crate::types::Type;
use crate::users::User;
use crate::verify::Verify;
use crate::webhooks::Webhooks;
use clap::builder::StyledStr;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;
use terminal::examples;

const EXAMPLES: &str = "\
assetctl import laptops.csv --suggest
assetctl import laptops.csv --match serial_number --dry-run
assetctl export --output assets.csv
assetctl list --location Berlin --status in_use
assetctl set AST-000007 location=\"Berlin / 2.01\"
assetctl handover AST-000007 --to mary@example.org
assetctl stats";

const IMPORT: &str = "\
assetctl import laptops.csv --suggest
assetctl import laptops.csv --match serial_number --dry-run \\
  --map \"Serial No=serial_number\"
assetctl import laptops.csv --match serial_number \\
  --value \"status:Lager=in_stock\" --set asset_type_code=LAP \\
  --date-format DD.MM.YYYY --decimal comma
assetctl import people.csv --users --match email";

const LABELS: &str = "\
assetctl labels AST-000001 AST-000007
assetctl labels --status in_stock --layout a4-65 --skip 12
assetctl labels --all --format svg --size 62x29 --output labels";

const LIST: &str = "\
assetctl list --location Berlin --type LAP
assetctl list --person none --status in_use --sort location
assetctl list --filter warranty_from=2026-10-01 \\
  --filter warranty_before=2027-01-01 --format csv
assetctl list --custom cost_center=0815 --columns asset_tag,purchase_price";

const EVENTS: &str = "\
assetctl events --since 2026-03-02 --until 2026-03-08 --types \"asset.*\"
assetctl events --since 2026-03-02 --actor ada@example.com --format csv";

const STOCKTAKE: &str = "\
assetctl stocktake \"Berlin / 3rd floor\"
assetctl stocktake \"Berlin / 3rd floor\" --move --file scans.txt
assetctl stocktake Lager --json";

const SET: &str = "\
assetctl set AST-000007 status=in_stock location=\"Berlin / 2.01\"
assetctl set AST-000007 AST-000012 assigned_to=ada@example.com notes=
assetctl set PF3XK201 asset_type=LAP custom_fields.cost_center=0815";

const RUN: &str = "\
assetctl run restock AST-000007 AST-000012 --tick all
assetctl run decommission AST-000007 --value reason=Defective \\
  --value data_erased=true --dry-run
assetctl run loan AST-000007 --to mary@example.org --wait";

const VERIFY: &str = "\
assetctl verify AST-000007
assetctl verify receipt.json --keys keys.json
assetctl verify history.json";

const HANDOVER: &str = "\
assetctl handover AST-000007 --to mary@example.org
assetctl handover AST-000007 AST-000012 --to mary@example.org \\
  --tick all --wait
assetctl handover AST-000007 --to mary@example.org --prepare \\
  --location \"Berlin / 3.14\" --dry-run";

const RETURN: &str = "\
assetctl return AST-000007
assetctl return AST-000007 AST-000012 --tick all \\
  --condition \"A scratch on the lid\" --wait
assetctl return AST-000007 --from mary@example.org --dry-run";

const EXIT_CODES: &str = "\
Exit codes:
  0    everything was done, and all rows were accepted
  1    something failed, or nobody signed in time; repeat the command to
       continue an import, a handover, a return or another process
  2    the command line, the environment or the columns are invalid; nothing
       was written
  3    some rows were refused, and are in a separate file; some assets or the
       user could not be changed; an export lacks records that the service
       can't read; a process could not start on all assets of a user; a
       receiver refused some events; or assets are missing at a stock-taking
  130  interrupted by Ctrl-C; repeat the command to continue";

fn after_help() -> StyledStr {
    let mut text = examples(EXAMPLES);
    text.push_str("\n\n");
    text.push_str(EXIT_CODES);
    text
}

/// Imports, exports, lists and changes an inventory, takes stock, prints labels, hands assets over, and shows events.
#[derive(Debug, Parser)]
#[command(name = "assetctl", version, after_help = after_help())]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Args)]
pub struct Global {
    /// Base URL of the service, such as `https://assets.example.com/v1` [env: ASSETCTL_BASE_URL]
    #[arg(long, global = true, value_name = "URL", help_heading = "Service")]
    pub base_url: Option<String>,
    /// API key; better in a file, because other programs can see command lines [env: ASSETCTL_API_KEY]
    #[arg(long, global = true, value_name = "KEY", help_heading = "Service")]
    pub api_key: Option<String>,
    /// File with the API key, which only you can read (mode 600) [env: ASSETCTL_API_KEY_FILE]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Service")]
    pub api_key_file: Option<PathBuf>,
    /// Allow http:// to other computers, which sends the key unencrypted
    #[arg(long, global = true, help_heading = "Service")]
    pub insecure_http: bool,
    /// Print the result as JSON
    #[arg(long, global = true)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Import assets or users from a CSV or NDJSON file of any size
    #[command(after_help = examples(IMPORT))]
    Import(Box<Import>),
    /// Export assets or users to a file or to standard output
    #[command(after_help = examples("assetctl export --output assets.csv\nassetctl export users --output users.ndjson\nassetctl export --status in_use --format csv | head"))]
    Export(Export),
    /// Print sheets of asset labels, or single labels as SVG, PNG or ZPL
    #[command(after_help = examples(LABELS))]
    Labels(Box<Labels>),
    /// Hand assets over to a user, who signs on a phone
    #[command(after_help = examples(HANDOVER))]
    Handover(Box<Handover>),
    /// Take assets back: their user signs on a phone, and you confirm that you received them
    #[command(after_help = examples(RETURN))]
    Return(Box<Return>),
    /// Start or continue any process on assets, such as a repair
    #[command(after_help = examples(RUN))]
    Run(Box<Run>),
    /// Change fields of assets
    #[command(after_help = examples(SET))]
    Set(Set),
    /// List assets as a table, CSV or JSON
    #[command(after_help = examples(LIST))]
    List(List),
    /// Show what changed in a period, and who changed it
    #[command(after_help = examples(EVENTS))]
    Events(Events),
    /// Take stock of a place: scan what is there, and see what is missing
    #[command(after_help = examples(STOCKTAKE))]
    Stocktake(Stocktake),
    /// Show who has an asset, or who had it on a day
    #[command(after_help = examples("assetctl who AST-000007\nassetctl who AST-000007 --on 2026-03-01"))]
    Who(Who),
    /// Show an asset with all its fields, the running process and the latest changes
    #[command(after_help = examples("assetctl show AST-000007\nassetctl show PF3XK201 --json"))]
    Show {
        /// The asset: a tag, an ID, or a serial number that only one asset has
        #[arg(value_name = "TAG")]
        asset: String,
    },
    /// Start the return of everything that a user has, and deactivate the user
    #[command(after_help = examples("assetctl offboard ada@example.com --dry-run\nassetctl offboard ada@example.com --process device-return"))]
    Offboard(Offboard),
    /// Add and change users, report and erase the data about a person
    #[command(after_help = examples("assetctl user add ada@example.com \"Ada Lovelace\"\nassetctl user change ada@example.com role=technician"))]
    User {
        #[command(subcommand)]
        command: User,
    },
    /// Add and change asset types, with their custom fields
    #[command(after_help = examples("assetctl type add LAP Laptop --field ram_gb:integer"))]
    Type {
        #[command(subcommand)]
        command: Type,
    },
    /// Verify an asset's history and receipts, or those in a file
    #[command(after_help = examples(VERIFY))]
    Verify(Verify),
    /// Receive the events of webhooks on this computer
    #[command(after_help = examples("assetctl webhooks listen --forward http://127.0.0.1:9000/hook"))]
    Webhooks {
        #[command(subcommand)]
        command: Webhooks,
    },
    /// Let an AI assistant query and, if allowed, change the inventory, over the Model Context Protocol
    #[command(after_help = examples("assetctl mcp\nassetctl mcp --allow-writes"))]
    Mcp(Mcp),
    /// Show statistics: assets by status, type and manufacturer, their value and warranty, process instances
    #[command(after_help = examples("assetctl stats\nassetctl stats --by location --depth 2\nassetctl stats --by custom_fields.cost_center --status in_use --json"))]
    Stats(Stats),
    /// Show who owns the API key, and what it may do
    #[command(after_help = examples("assetctl me\nassetctl me --json | jq .key.scopes"))]
    Me,
    /// Print shell completions
    #[command(after_help = examples("assetctl completions bash"))]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn help_has_exit_codes_and_no_key() {
        let help = Cli::command().render_long_help().to_string();
        assert!(help.contains("130  interrupted") && !help.contains("apl_"), "{help}");
    }

    #[test]
    fn every_help_has_examples_that_are_right() {
        assert_eq!(terminal::check_examples(Cli::command()), Ok(()));
    }
}
