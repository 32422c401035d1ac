//! The options of `import`, and the options to repeat in a suggested command.

use crate::import::columns::convert::{Constant, DateFormat, ValueMapping};
use crate::import::columns::suggest::as_option;
use crate::import::columns::{Kind, Mapping};
use crate::output::{Format, quote};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Args)]
pub struct Import {
    /// The file; its encoding and its delimiter are detected
    pub file: PathBuf,
    /// Import users instead of assets
    #[arg(long)]
    pub users: bool,
    /// Map a column to a field: --map "Serial No=serial_number"; --map "OS=" ignores a column; --map "First Name + Last
    /// Name=display_name" joins columns; the last mapping of a column counts, but two different fields are an error
    #[arg(long = "map", value_name = "COLUMN=FIELD")]
    pub mappings: Vec<Mapping>,
    /// Map a value to its meaning: --map-value "Status:Lager=in_stock"; COLUMN is the name in the file, not the field of --map
    #[arg(long = "map-value", value_name = "COLUMN:VALUE=MEANING")]
    pub value_mappings: Vec<ValueMapping>,
    /// Set a field to the same value in all rows: --set asset_type_code=LAP
    #[arg(long = "set", value_name = "FIELD=VALUE")]
    pub constants: Vec<Constant>,
    /// Print a command that imports the columns and values recognized in the file, and send nothing
    #[arg(long)]
    pub suggest: bool,
    /// The column that identifies the record to update; with serial_number and email, a new value creates a record
    #[arg(long = "match", value_name = "COLUMN", default_value = "none")]
    pub match_by: MatchBy,
    /// Create records from rows without a value to match, and from rows with unknown tags
    #[arg(long)]
    pub create_unmatched: bool,
    /// What happens to valid rows if another row is refused
    #[arg(long, default_value = "skip")]
    pub on_error: OnError,
    /// Import a row without its bad cell in this column, instead of refusing it: --skip-bad assigned_to_email
    #[arg(long = "skip-bad", value_name = "COLUMN")]
    pub skip_bad: Vec<String>,
    /// Check every row, report what would change, and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Re-import rows that were imported in the last 24 hours; with the NAME printed by an interrupted run, continue that run
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = "", conflicts_with = "dry_run")]
    pub again: Option<String>,
    /// How dates are written, in addition to YYYY-MM-DD: "DD.MM.YYYY", or "%d.%m.%Y"
    #[arg(long, value_name = "FORMAT", value_parser = DateFormat::parse)]
    pub date_format: Option<DateFormat>,
    /// Read prices such as 1.249,00 €
    #[arg(long)]
    pub decimal_comma: bool,
    /// Read $1,249 as a price of more than a thousand; without this option, only prices such as $12.49 and $1,249.00 are accepted
    #[arg(long, conflicts_with = "decimal_comma")]
    pub decimal_point: bool,
    /// Encoding, if the detected one is wrong, such as utf-8 or windows-1252
    #[arg(long, value_name = "NAME", value_parser = encoding)]
    pub encoding: Option<&'static encoding_rs::Encoding>,
    /// Delimiter, if the detected one is wrong
    #[arg(long)]
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[repr(u8)]
pub enum Delimiter {
    /// ,
    #[value(alias = ",")]
    Comma = b',',
    /// ;
    #[value(alias = ";")]
    Semicolon = b';',
    /// Tab
    #[value(alias = "\t", alias = "\\t")]
    Tab = b'\t',
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

/// Returns the command that imports the file with the options that affect rows, in shell syntax, one word per option.
pub fn command(options: &Import, file: &Path) -> Vec<String> {
    let option = |name: &str, value: &str| format!("{name} {}", quote(value));
    let flag = |name: &str, is_set: bool| is_set.then(|| name.to_owned());
    let mut words = vec![format!("assetctl import {}", quote(&file.display().to_string()))];
    words.extend(flag("--users", options.users));
    words.extend(options.mappings.iter().map(as_option));
    let values = options.value_mappings.iter();
    words.extend(values.map(|mapping| option("--map-value", &format!("{}={}", mapping.cell, mapping.meaning))));
    let constants = options.constants.iter();
    words.extend(constants.map(|constant| option("--set", &format!("{}={}", constant.field, constant.value))));
    words.extend(options.match_by.column().map(|column| format!("--match {column}")));
    words.extend(flag("--create-unmatched", options.create_unmatched));
    words.extend(options.date_format.as_ref().map(|format| option("--date-format", format.given())));
    words.extend(flag("--decimal-comma", options.decimal_comma));
    words.extend(flag("--decimal-point", options.decimal_point));
    words.extend(options.skip_bad.iter().map(|column| option("--skip-bad", column)));
    words
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
    fn an_error_names_the_encodings() {
        let error = encoding("cp850").unwrap_err();
        for name in ENCODINGS.split(", ") {
            assert!(error.contains(name) && encoding(name).is_ok_and(|known| known.name().eq_ignore_ascii_case(name)), "{name}");
        }
    }
}
