//! Reads the file to import: detects its format, and reads its rows, as often as needed, and the users that they name.

use crate::error::{CliError, Result};
use crate::http::Client;
use crate::import::args::Import;
use crate::import::chunks::{Chunks, Doubles, Rows};
use crate::import::columns::convert::{Constant, Values, check_constants};
use crate::import::columns::{
    CUSTOM_FIELD, Columns, Fields, OWNER_NAME, Owners, REASONS, Target, joined, numbered, resolve, settled, suggest, target,
};
use crate::import::rows::decode::{Text, decode_sample};
use crate::import::rows::encoding::{self, Doubt, Examination, examine};
use crate::import::rows::{CsvRows, NdjsonRows, Original, member_names, read_header};
use crate::import::suggestion::is_list_of_users;
use crate::lookup::Directory;
use crate::output::{Format, count};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use terminal::Notice;

const MAX_UNKNOWN: usize = 50;

pub struct Source {
    pub path: PathBuf,
    pub examination: Examination,
    pub format: Format,
    pub delimiter: u8,
    /// CSV column names without duplicates, or the members of all NDJSON objects.
    pub names: Vec<String>,
    /// Numbered names of columns with the same heading.
    pub doubled: BTreeSet<String>,
    doubles: OnceCell<Rc<Doubles>>,
}

impl Source {
    pub fn open(options: &Import) -> Result<Self> {
        let path = options.file.clone();
        let format = options.format.unwrap_or_else(|| Format::of(&path));
        let examination = examine(open(&path)?, options.encoding).map_err(|error| CliError::file(&path, &error))?;
        if let Some(what) = binary(&examination.sample) {
            return Err(CliError::Usage(format!(
                "{} is {what}. Save it as \"CSV UTF-8\" in your spreadsheet program, and import that file.",
                path.display()
            )));
        }
        let sample = decode_sample(&examination.sample, examination.encoding);
        let delimiter = options.delimiter.map_or_else(|| encoding::delimiter(&sample), |delimiter| delimiter as u8);
        let (names, doubled) = Default::default();
        let mut source = Self { path, examination, format, delimiter, names, doubled, doubles: OnceCell::new() };
        (source.names, source.doubled) = match format {
            Format::Csv => numbered(&read_header(source.text(true)?, delimiter)?.0),
            Format::Ndjson => (source.member_names(options)?, BTreeSet::new()),
        };
        if source.names.is_empty() {
            return Err(CliError::Usage(format!("{} is empty", source.path.display())));
        }
        Ok(source)
    }

    /// Describes the detected encoding, format and delimiter in words.
    pub fn describe(&self) -> String {
        let (delimiter, columns) = (encoding::delimiter_name(self.delimiter), count(self.names.len() as u64, "column"));
        let form = match self.format {
            Format::Csv => format!("delimiter {delimiter}, {columns}"),
            Format::Ndjson => "NDJSON".to_owned(),
        };
        format!("{}: {} ({}), {form}", self.path.display(), self.examination.encoding.name(), self.examination.how)
    }

    /// Returns the signs of a wrong option, or of a damaged file.
    pub fn doubts(&self, options: &Import) -> Vec<String> {
        let encoding = self.examination.encoding.name();
        let of_encoding = self.examination.doubt.map(|doubt| match doubt {
            Doubt::IsUtf8 => format!(
                "Warning: the file is UTF-8. With --encoding {encoding}, its non-ASCII letters are garbled: omit the option."
            ),
            Doubt::UndefinedBytes => format!(
                "Warning: the file has bytes that {encoding} leaves undefined. It is probably in a different encoding, for example \
                 cp850 or Mac Roman: save it as UTF-8."
            ),
        });
        let sample = decode_sample(&self.examination.sample, self.examination.encoding);
        let is_csv = self.format == Format::Csv && options.delimiter.is_some();
        let better = is_csv.then(|| encoding::better_delimiter(&sample, self.delimiter)).flatten();
        let of_delimiter = better.map(|(delimiter, columns)| {
            let (given, better) = (encoding::delimiter_name(self.delimiter), encoding::delimiter_name(delimiter));
            format!("Warning: with --delimiter {given} there is 1 column; with {better} there are {columns} columns.")
        });
        of_encoding.into_iter().chain(of_delimiter).collect()
    }

    /// # Errors
    ///
    /// Returns [`CliError::Usage`] with all errors of the columns.
    pub fn columns(&self, options: &Import) -> Result<Columns> {
        let (kind, mut problems) = (options.kind(), Vec::new());
        let (targets, joined): (Vec<Target>, _) = match self.format {
            Format::Csv => {
                let (mappings, joined) = joined(&options.mappings, &self.names, &mut problems);
                match resolve(kind, &self.names, &self.doubled, &mappings) {
                    Ok(targets) => (targets, joined),
                    Err(found) => return Err(self.misfit(options, &[problems, found].concat())),
                }
            }
            Format::Ndjson => {
                let mappings = settled(&options.mappings, &mut problems);
                let targets = self.names.iter().map(|name| target(kind, name.trim(), &mappings, &mut problems));
                (targets.collect(), BTreeMap::new())
            }
        };
        check_constants(kind, &options.constants, &targets, &self.names, &mut problems);
        let mut fields = Fields {
            date_format: options.date_format.clone(),
            decimal_comma: options.decimal_comma,
            decimal_point: options.decimal_point,
            match_column: options.match_by.column(),
            values: Values::resolve(&options.value_mappings, &self.names, &targets, &mut problems),
            skip_bad: self.skip_bad(options, &targets, &mut problems),
            joined,
            ..Fields::new(kind)
        };
        for Constant { field, value } in options.constants.clone() {
            match fields.convert(&field, &value) {
                Ok(converted) => fields.constants.push(Constant { field, value: converted.unwrap_or(value) }),
                Err(detail) => problems.push(format!("--set {field}: {detail}")),
            }
        }
        if problems.is_empty() { Ok(Columns { targets, fields }) } else { Err(self.misfit(options, &problems)) }
    }

    /// Returns the fields of `--skip-bad`, whose arguments are fields or columns of the file.
    fn skip_bad(&self, options: &Import, targets: &[Target], problems: &mut Vec<String>) -> Vec<String> {
        let mut fields = Vec::new();
        for column in &options.skip_bad {
            let mut imported = self.names.iter().zip(targets).filter_map(|(name, target)| Some((name.trim(), target.field()?)));
            match imported.find(|(name, field)| name == column || field == column) {
                Some((_, field)) if options.match_by.column() == Some(field) => {
                    problems.push(format!("--skip-bad {column}: rows are matched by this column"));
                }
                Some((_, "updated_at")) => {
                    problems.push(format!("--skip-bad {column}: without it, a row would overwrite later changes"));
                }
                Some((_, field)) => fields.push(field.to_owned()),
                None => problems.push(format!("--skip-bad {column}: no imported column or field has this name")),
            }
        }
        fields
    }

    fn misfit(&self, options: &Import, problems: &[String]) -> CliError {
        let is_known = |name: &String| options.kind().has_column(name) || suggest::field(options.kind(), name).is_some();
        let is_strange = self.format == Format::Csv && options.mappings.is_empty() && !self.names.iter().any(is_known);
        let header =
            "\nNo column name looks familiar. If the first row contains data, insert a row with the columns' names before it.";
        let users =
            if !options.users && is_list_of_users(&self.names) { "\nThis looks like a list of users: add --users." } else { "" };
        let keep = if options.users { "" } else { " keep it with\n--map \"COLUMN=custom_fields.NAME\"," };
        CliError::Usage(format!(
            "the columns of {} can't be imported; nothing was sent:\n  {}{}{users}\nMap each with --map \"COLUMN=FIELD\",{keep} or \
                 ignore it with --map \"COLUMN=\".\n--suggest prints guesses from the names.",
            self.path.display(),
            problems.join("\n  "),
            if is_strange { header } else { "" }
        ))
    }

    pub fn chunks(&self, options: &Import, columns: &Columns) -> Result<Chunks<File>> {
        let doubles = match self.doubles.get() {
            Some(doubles) => Rc::clone(doubles),
            None if columns.fields.match_column.is_none() => Rc::default(),
            None => Rc::new(Doubles::find(self.rows(options, columns)?)?),
        };
        Ok(Chunks::new(self.rows(options, columns)?, Rc::clone(self.doubles.get_or_init(|| doubles))))
    }

    pub fn rows(&self, options: &Import, columns: &Columns) -> Result<Rows<File>> {
        let fields = columns.fields.clone();
        Ok(match self.format {
            Format::Csv => {
                let (_, records) = read_header(self.text(true)?, self.delimiter)?;
                Rows::Csv(Box::new(CsvRows::new(self.names.clone(), records, columns.targets.clone(), fields)))
            }
            Format::Ndjson => {
                let mappings = settled(&options.mappings, &mut Vec::new());
                Rows::Ndjson(Box::new(NdjsonRows::new(self.text(false)?, mappings, fields)))
            }
        })
    }

    fn text(&self, with_end: bool) -> Result<Text<File>> {
        Ok(Text::new(open(&self.path)?, self.examination.encoding, with_end))
    }

    fn member_names(&self, options: &Import) -> Result<Vec<String>> {
        let mut rows = NdjsonRows::new(self.text(false)?, Vec::new(), Fields::new(options.kind()));
        let mut names = BTreeSet::new();
        let known = options.kind().import_columns().count();
        while let Some(row) = rows.next()? {
            if let Original::Line(line) = row.original
                && names.len() < MAX_UNKNOWN + known
            {
                let found = member_names(&line).into_iter().filter(|name| !name.starts_with(CUSTOM_FIELD));
                names.extend(found.map(|name| name.trim().to_owned()));
            }
        }
        // A file without objects has a refused row for each line.
        Ok(if names.is_empty() { vec![REASONS.to_owned()] } else { names.into_iter().collect() })
    }
}

/// Returns the type of a file that isn't text.
fn binary(sample: &[u8]) -> Option<&'static str> {
    if sample.starts_with(b"PK\x03\x04") || sample.starts_with(b"\xD0\xCF\x11\xE0") {
        return Some("a spreadsheet or an archive, not CSV");
    }
    sample.starts_with(b"%PDF").then_some("a PDF document, not CSV")
}

fn open(path: &Path) -> Result<File> {
    if path.is_dir() {
        return Err(CliError::Usage(format!("{} is a folder; name a file in it", path.display())));
    }
    File::open(path).map_err(|error| CliError::Usage(format!("{}: {error}", path.display())))
}

/// Maximum number of names to search for, each with one or two requests. For more names, all users are read, usually with one
/// request: for the service, reading 500 users costs as much as a search.
const FEW: usize = 10;

/// Looks up each different name once. Sends nothing if no column has names.
pub async fn find_owners(client: &Client, source: &Source, options: &Import, columns: &Columns) -> Result<Owners> {
    let (names, mut owners) = (names(source, options, columns)?, Owners::new());
    let _notice =
        (!names.is_empty()).then(|| Notice::show(&format!("Looking up {} of users", count(names.len() as u64, "name"))));
    let directory = if names.len() <= FEW { Directory::Service(client) } else { Directory::read(client).await? };
    for name in &names {
        owners.insert(name.clone(), directory.find(name).await?);
    }
    Ok(owners)
}

/// Returns all different names in the rows, after `--map-value`.
fn names(source: &Source, options: &Import, columns: &Columns) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let mut targets = columns.targets.iter().zip(&source.names);
    let Some((_, column)) = targets.find(|(target, _)| target.field() == Some(OWNER_NAME)) else { return Ok(names) };
    let mut rows = source.rows(options, columns)?;
    while let Some(row) = rows.next()? {
        let cell = row.original.text(&source.names, column).unwrap_or_default();
        // An ambiguous value is reported with its row.
        let name = columns.fields.values.translate(column, &cell).unwrap_or_default().trim();
        if !name.is_empty() && name != "\\N" {
            names.insert(name.to_owned());
        }
    }
    Ok(names)
}
