//! The command line.

use crate::import::columns::convert::DateFormat;
use crate::import::columns::{Kind, Mapping};
use crate::labels::args::Labels;
use crate::offboard::args::Offboard;
use crate::webhooks::args::Webhooks;
use clap::builder::StyledStr;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use terminal::examples;

const EXAMPLES: &str = "\
assetctl import laptops.csv --suggest
assetctl import laptops.csv --match serial_number --dry-run
assetctl export --output assets.csv
assetctl stats";

const IMPORT: &str = "\
assetctl import laptops.csv --suggest
assetctl import laptops.csv --match serial_number --dry-run \\
  --map \"Serial No=serial_number\"
assetctl import laptops.csv --match serial_number \\
  --date-format DD.MM.YYYY --decimal-comma
assetctl import people.csv --users --match email";

const LABELS: &str = "\
assetctl labels AST-000001 AST-000007
assetctl labels --status in_stock --layout a4-65 --skip 12
assetctl labels --all --format svg --size 62x29 --output labels";

const EXIT_CODES: &str = "\
Exit codes:
  0    everything is done, all rows are fine
  1    something failed; an import can be resumed
  2    the command line, the environment or the columns don't fit; nothing
       was sent
  3    some rows were refused, and are in a file of their own; an export lacks
       records that the service can't read; a process could not start on all
       assets of a user; or a receiver has not taken some events
  130  interrupted by Ctrl-C; an import can be resumed";

/// The end of the help.
fn after_help() -> StyledStr {
    let mut text = examples(EXAMPLES);
    text.push_str("\n\n");
    text.push_str(EXIT_CODES);
    text
}

/// Brings an inventory in and takes it out again, prints labels, takes back what people had, and shows events.
#[derive(Debug, Parser)]
#[command(name = "assetctl", version, after_help = after_help())]
pub struct Cli {
    /// Where the service is, and how results are printed.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
pub struct Global {
    /// Base URL of the service, such as `https://assets.example.com/v1`
    #[arg(long, global = true, value_name = "URL", env = "ASSETCTL_BASE_URL", help_heading = "Service")]
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

/// A command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Import assets or users from a CSV or NDJSON file of any size
    #[command(after_help = examples(IMPORT))]
    Import(Box<Import>),
    /// Export assets or users to a file or to standard output
    #[command(after_help = examples("assetctl export --output assets.csv\nassetctl export users --output users.ndjson\nassetctl export --status in_use --format csv | head"))]
    Export(Export),
    /// Print sheets of asset labels, or single ones as SVG, PNG or ZPL
    #[command(after_help = examples(LABELS))]
    Labels(Box<Labels>),
    /// Start the return of everything that a user has, and deactivate the user
    #[command(after_help = examples("assetctl offboard ada@example.com --dry-run\nassetctl offboard ada@example.com --process device-return"))]
    Offboard(Offboard),
    /// See what receivers of webhooks get
    #[command(after_help = examples("assetctl webhooks listen --forward http://127.0.0.1:9000/hook"))]
    Webhooks {
        /// What to do with webhooks
        #[command(subcommand)]
        command: Webhooks,
    },
    /// Show what there is: assets by status, type and manufacturer, their value and warranty, process instances
    #[command(after_help = examples("assetctl stats\nassetctl stats --json"))]
    Stats,
    /// Show whose the API key is, and what it may do
    #[command(after_help = examples("assetctl me\nassetctl me --json | jq .key.scopes"))]
    Me,
    /// Print the completions of a shell
    #[command(after_help = examples("assetctl completions bash"))]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Options of `import`.
#[derive(Debug, Args)]
pub struct Import {
    /// The file; its encoding and its delimiter are detected
    pub file: PathBuf,
    /// Import users instead of assets
    #[arg(long)]
    pub users: bool,
    /// What a column is: --map "Serial No=serial_number"; --map "OS=" ignores a column
    #[arg(long = "map", value_name = "COLUMN=FIELD")]
    pub mappings: Vec<Mapping>,
    /// Print a --map option for each column that looks familiar, and import nothing
    #[arg(long)]
    pub suggest: bool,
    /// By what a row finds the thing that it updates; with serial_number and email, a row that finds nothing creates
    #[arg(long = "match", value_name = "COLUMN", default_value = "none")]
    pub match_by: MatchBy,
    /// What happens to the good rows when one is refused
    #[arg(long, default_value = "skip")]
    pub on_error: OnError,
    /// Check every row, and write nothing
    #[arg(long, conflicts_with = "resume")]
    pub dry_run: bool,
    /// Go on with an import that was interrupted
    #[arg(long)]
    pub resume: bool,
    /// How dates are written: "DD.MM.YYYY", or "%d.%m.%Y"; otherwise YYYY-MM-DD
    #[arg(long, value_name = "FORMAT", value_parser = DateFormat::parse)]
    pub date_format: Option<DateFormat>,
    /// Read prices such as 1.249,00 €
    #[arg(long)]
    pub decimal_comma: bool,
    /// Encoding, such as utf-8 or windows-1252, instead of the detected one
    #[arg(long, value_name = "NAME", value_parser = encoding)]
    pub encoding: Option<&'static encoding_rs::Encoding>,
    /// Delimiter, instead of the detected one
    #[arg(long)]
    pub delimiter: Option<Delimiter>,
    /// Format, instead of by the file's name
    #[arg(long)]
    pub format: Option<Format>,
    /// How long to wait for a service that is busy or can't be reached
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub give_up_after: u64,
}

impl Import {
    #[must_use]
    pub fn kind(&self) -> Kind {
        if self.users { Kind::Users } else { Kind::Assets }
    }
}

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
    /// What of it
    #[command(flatten)]
    pub filters: Filters,
    /// How long to wait for a service that is busy or can't be reached
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub give_up_after: u64,
}

/// Which of the records are meant: filters of the list.
#[derive(Debug, Args)]
pub struct Filters {
    /// A filter of the list: --filter warranty_before=2027-01-01
    #[arg(long = "filter", value_name = "NAME=VALUE", value_parser = filter)]
    filters: Vec<(String, String)>,
    /// Those with this status: --filter status=STATUS
    #[arg(long)]
    status: Option<String>,
    /// Those that a search finds: --filter q=TEXT
    #[arg(long, value_name = "TEXT")]
    q: Option<String>,
}

impl Filters {
    /// As in a query.
    pub fn pairs(&self) -> impl Iterator<Item = (String, String)> {
        let named = [("status", &self.status), ("q", &self.q)];
        let named = named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
        self.filters.iter().cloned().chain(named)
    }
}

/// The kind of exported records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum What {
    /// Assets
    Assets,
    /// Users
    Users,
}

/// By what rows find what they update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum MatchBy {
    /// Every row creates
    None,
    /// The service's id, as an export has it
    Id,
    /// The asset's tag
    AssetTag,
    /// The asset's serial number
    SerialNumber,
    /// The user's e-mail address
    Email,
}

impl MatchBy {
    #[must_use]
    pub fn column(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Id => Some("id"),
            Self::AssetTag => Some("asset_tag"),
            Self::SerialNumber => Some("serial_number"),
            Self::Email => Some("email"),
        }
    }
}

/// The treatment of good rows when one is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnError {
    /// They are imported
    Skip,
    /// Nothing is imported: all rows are checked before the first is written
    Abort,
}

/// A delimiter by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Delimiter {
    /// ,
    #[value(alias = ",")]
    Comma,
    /// ;
    #[value(alias = ";")]
    Semicolon,
    /// Tab
    #[value(alias = "\t", alias = "\\t")]
    Tab,
}

impl Delimiter {
    #[must_use]
    pub fn byte(self) -> u8 {
        match self {
            Self::Comma => b',',
            Self::Semicolon => b';',
            Self::Tab => b'\t',
        }
    }
}

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table with a header
    Csv,
    /// A JSON object on each line
    Ndjson,
}

impl Format {
    /// By the extension of the file's name.
    #[must_use]
    pub fn of(path: &std::path::Path) -> Self {
        let extension = path.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase);
        if matches!(extension.as_deref(), Some("ndjson" | "jsonl")) { Self::Ndjson } else { Self::Csv }
    }
}

fn encoding(name: &str) -> Result<&'static encoding_rs::Encoding, String> {
    encoding_rs::Encoding::for_label(name.as_bytes())
        .ok_or_else(|| "no such encoding; try utf-8, utf-16le or windows-1252".into())
}

fn filter(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("must be NAME=VALUE, such as status=in_use")?;
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

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
