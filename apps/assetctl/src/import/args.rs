//! The options of `import`, and the options to repeat in a suggested command.

use crate::output::{Format, quote};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use domain::import::Kind;
use domain::import::dates::DateFormat;
use domain::import::parameters::{Constant, Delimiter, Mapping, Reading, ValueMapping};
use domain::import::prices::Decimal;
use std::path::{Path, PathBuf};
use std::str::FromStr;

#[derive(Debug, Clone, Args)]
pub struct Import {
    /// The file, or - for standard input; its encoding and its delimiter are detected
    pub file: PathBuf,
    /// Import users instead of assets
    #[arg(long)]
    pub users: bool,
    /// Map a column to a field: --map "Serial No=serial_number"; --map "OS=" ignores a column; --map "#7=notes" is the seventh column;
    /// --map "First Name + Last Name=display_name" joins columns, --map "Building / Room=location" as levels; the last mapping of a
    /// column counts, but two different fields are an error
    #[arg(long = "map", value_name = "COLUMN=FIELD", allow_hyphen_values = true)]
    pub maps: Vec<Mapping>,
    /// Say what a value means: --value "status:Lager=in_stock"; --value "serial_number:n/a=" treats it as an empty cell
    #[arg(long = "value", value_name = "FIELD:TEXT=VALUE", allow_hyphen_values = true)]
    pub values: Vec<ValueMapping>,
    /// Set a field to the same value in all rows: --set asset_type_code=LAP
    #[arg(long = "set", value_name = "FIELD=VALUE", allow_hyphen_values = true)]
    pub constants: Vec<Constant>,
    /// Ask the service how to import the file, and print the command; nothing is imported
    #[arg(long)]
    pub suggest: bool,
    /// The column that identifies the record to update; with serial_number and email, a new value creates a record
    #[arg(long = "match", value_name = "COLUMN", default_value = "none", overrides_with = "match_by")]
    pub match_by: MatchBy,
    /// Create records from rows without a value to match, and from rows with unknown tags
    #[arg(long)]
    pub create_unmatched: bool,
    /// What happens to valid rows if another row is refused
    #[arg(long, default_value = "skip")]
    pub on_error: OnError,
    /// Import a row without its bad cell in this column, instead of refusing it: --skip-bad assigned_to_email
    #[arg(long = "skip-bad", value_name = "COLUMN", allow_hyphen_values = true)]
    pub skip_bad: Vec<String>,
    /// Check every row, report what would change, and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Re-import rows that were imported in the last 24 hours; with the NAME printed by an interrupted run, continue that run
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = "", conflicts_with = "dry_run")]
    pub again: Option<String>,
    /// How dates are written, in addition to YYYY-MM-DD: "DD.MM.YYYY", or "%d.%m.%Y"; can be repeated
    #[arg(long = "date-format", value_name = "FORMAT")]
    pub date_formats: Vec<DateFormat>,
    /// The sign before the cents: comma reads prices such as 1.249,00 €; point reads $1,249 as more than a thousand. Without this
    /// option, only prices such as $12.49 and $1,249.00 are accepted
    #[arg(long, value_parser = one_of::<Decimal>(["comma", "point"]))]
    pub decimal: Option<Decimal>,
    /// Line with the columns' names, if it isn't the first
    #[arg(long, value_name = "LINE", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub header_line: Option<u32>,
    /// Encoding, if the detected one is wrong, such as utf-8 or windows-1252
    #[arg(long, value_name = "NAME", value_parser = encoding)]
    pub encoding: Option<&'static encoding_rs::Encoding>,
    /// Delimiter, if the detected one is wrong: comma, semicolon, tab or pipe
    #[arg(long, value_parser = delimiter)]
    pub delimiter: Option<Delimiter>,
    /// Format, if not clear from the file extension
    #[arg(long)]
    pub format: Option<Format>,
    /// Seconds to wait for a service that is busy or can't be reached
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub give_up_after: u64,
}

impl Import {
    pub fn kind(&self) -> Kind {
        if self.users { Kind::Users } else { Kind::Assets }
    }

    /// Returns how the file is to be read.
    pub fn reading(&self) -> Reading {
        Reading {
            maps: self.maps.clone(),
            values: self.values.clone(),
            constants: self.constants.clone(),
            date_formats: self.date_formats.clone(),
            decimal: self.decimal,
            header_line: self.header_line,
            delimiter: self.delimiter,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum MatchBy {
    /// Every row creates a record
    None,
    /// The service's ID, as in an export
    Id,
    /// The asset's tag
    AssetTag,
    /// The asset's serial number
    SerialNumber,
    /// The user's e-mail address
    Email,
}

impl MatchBy {
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnError {
    /// Valid rows are imported
    Skip,
    /// Nothing is imported: all rows are checked before the first is written
    Abort,
}

/// Every encoding, without aliases.
const ENCODINGS: &str = "utf-8, utf-16le, utf-16be, windows-1250, windows-1251, windows-1252, windows-1253, windows-1254, windows-1255, \
                         windows-1256, windows-1257, windows-1258, windows-874, iso-8859-2, iso-8859-3, iso-8859-4, iso-8859-5, \
                         iso-8859-6, iso-8859-7, iso-8859-8, iso-8859-8-i, iso-8859-10, iso-8859-13, iso-8859-14, iso-8859-15, iso-8859-16, \
                         macintosh, x-mac-cyrillic, ibm866, koi8-r, koi8-u, gbk, gb18030, big5, euc-kr, euc-jp, iso-2022-jp, shift_jis";

fn encoding(name: &str) -> Result<&'static encoding_rs::Encoding, String> {
    encoding_rs::Encoding::for_label(name.as_bytes())
        .ok_or_else(|| format!("no such encoding; save the file as UTF-8, or name one of {ENCODINGS}"))
}

/// Parses one of these values.
pub fn one_of<T>(values: [&'static str; 2]) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err: std::error::Error + Send + Sync + 'static> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(values).try_map(|value| value.parse::<T>())
}

/// Parses the name of a delimiter, or the delimiter itself.
pub fn delimiter(text: &str) -> Result<Delimiter, String> {
    let name = if text == "\\t" { "tab" } else { text };
    let reading = Reading::parse([("delimiter", name)]).map_err(|_| "must be comma, semicolon, tab or pipe".to_owned())?;
    reading.delimiter.ok_or_else(|| "must be comma, semicolon, tab or pipe".to_owned())
}

/// Returns the command that imports a file with these parameters, in shell syntax, one word per option.
pub fn command(options: &Import, file: &Path, parameters: &[(&str, String)]) -> Vec<String> {
    let mut words = vec![format!("assetctl import {}", quote(&file.display().to_string()))];
    words.extend(options.users.then(|| "--users".to_owned()));
    words.extend(parameters.iter().map(|(name, value)| option(name, value)));
    words.extend(options.skip_bad.iter().map(|column| format!("--skip-bad {}", quote(column))));
    words.extend((options.on_error == OnError::Abort).then(|| "--on-error abort".to_owned()));
    words
}

/// Returns a parameter of the service as an option.
pub fn option(name: &str, value: &str) -> String {
    match (name, value) {
        ("create_unmatched", "true") => "--create-unmatched".to_owned(),
        _ => format!("--{} {}", name.replace('_', "-"), quote(value)),
    }
}

/// Writes the parameters in a sentence of the service, which are in backquotes, as options.
pub fn with_options(sentence: &str) -> String {
    let parts = sentence.split('`').enumerate().map(|(index, part)| match part.split_once('=') {
        Some((name, value)) if index % 2 == 1 => option(name, value),
        _ => part.to_owned(),
    });
    parts.collect()
}

impl Import {
    /// Returns the options that affect rows, as parameters of the service.
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        let mut parameters = self.reading().parameters();
        parameters.extend(self.match_by.column().map(|column| ("match", column.to_owned())));
        parameters.extend(self.create_unmatched.then(|| ("create_unmatched", "true".to_owned())));
        parameters
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;

    pub fn parsed(words: &[&str]) -> Box<Import> {
        let command = Cli::try_parse_from([&["assetctl", "import"], words].concat()).unwrap().command;
        let Command::Import(options) = command else { panic!("not an import") };
        options
    }

    #[test]
    fn options_can_be_appended_to_a_command() {
        let options = parsed(&["a.csv", "--map", "-dash=name", "--match", "serial_number", "--match", "asset_tag"]);
        assert_eq!((options.maps[0].columns(), options.match_by), ("-dash", MatchBy::AssetTag));
        let aborts = parsed(&["a.csv", "--on-error", "abort"]);
        assert_eq!(command(&aborts, Path::new("a.csv"), &[]), ["assetctl import a.csv", "--on-error abort"]);
    }

    #[test]
    fn parameters_in_sentences_are_written_as_options() {
        assert_eq!(with_options("say `set=status=in use`, or not"), "say --set \"status=in use\", or not");
        assert_eq!(with_options("a=b"), "a=b");
    }

    #[test]
    fn an_error_names_the_encodings() {
        let error = encoding("cp850").unwrap_err();
        for name in ENCODINGS.split(", ") {
            assert!(error.contains(name) && encoding(name).is_ok_and(|known| known.name().eq_ignore_ascii_case(name)), "{name}");
        }
    }
}
