//! The file to import: its format, encoding and columns, and its rows, as often as needed.

use crate::error::{CliError, Result};
use crate::import::args::{Import, with_options};
use crate::import::chunks::{Chunks, Doubles, Rows};
use crate::import::encoding::{Doubt, Examination, examine};
use crate::import::rows::{CsvRows, Input, LineRows, Original, Shape, member_names};
use crate::import::text::{Text, decode_sample};
use crate::output::{Format, count};
use domain::import::REASONS;
use domain::import::columns::Columns;
use domain::import::header::{Header, better_delimiter, delimiter};
use domain::import::objects;
use domain::import::parameters::Delimiter;
use domain::import::suggestion::survey::is_garbled;
use domain::import::suggestion::{headings, is_list_of_users};
use domain::values::field_error::{ErrorLocation, FieldError};
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

const MAX_UNKNOWN: usize = 50;
/// The file name that means standard input.
pub const STANDARD_INPUT: &str = "-";

/// Where the bytes come from.
enum Content {
    File,
    /// Standard input, or the items of an array as lines.
    Memory(Rc<[u8]>),
}

pub struct Source {
    pub path: PathBuf,
    pub examination: Examination,
    pub format: Format,
    /// The header of a CSV file, or the names of the members of all objects.
    pub header: Header,
    content: Content,
    doubles: OnceCell<Rc<Doubles>>,
}

impl Source {
    pub fn open(options: &Import) -> Result<Self> {
        let path = options.file.clone();
        let mut content = Content::File;
        if path == Path::new(STANDARD_INPUT) {
            let mut bytes = Vec::new();
            std::io::stdin().read_to_end(&mut bytes)?;
            content = Content::Memory(bytes.into());
        }
        let mut examination = examine(read(&content, &path)?, options.encoding).map_err(|error| CliError::file(&path, &error))?;
        if let Some(what) = binary(&examination.sample) {
            return Err(CliError::Usage(format!(
                "{} is {what}. Save it as \"CSV UTF-8\" in your spreadsheet program, and import that file.",
                path.display()
            )));
        }
        let sample = decode_sample(&examination.sample, examination.encoding);
        let looks_like_json = sample.trim_start().starts_with('{') || sample.trim_start().starts_with('[');
        let format = options.format.unwrap_or(match content {
            Content::Memory(_) if looks_like_json => Format::Ndjson,
            _ if looks_like_json && path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json")) => {
                Format::Ndjson
            }
            _ => Format::of(&path),
        });
        if format == Format::Ndjson && sample.trim_start().starts_with('[') {
            let (items, size) = items(&content, &path, &examination)?;
            (content, examination.encoding, examination.size) = (items, encoding_rs::UTF_8, size);
        }
        let mut source = Self { path, examination, format, header: Header::default(), content, doubles: OnceCell::new() };
        source.header = match format {
            Format::Csv => {
                let delimiter = delimiter(&sample, options.header_line);
                Header::read(source.text()?.ahead()?, &options.reading(), delimiter).unwrap_or_default()
            }
            Format::Ndjson => Header { names: source.member_names()?, ..Header::default() },
        };
        if source.header.names.is_empty() {
            return Err(CliError::Usage(format!("{} is empty", source.path.display())));
        }
        Ok(source)
    }

    /// Returns the name of the delimiter, for a file without one as well.
    pub fn delimiter_name(&self) -> &'static str {
        let found = Delimiter::ALL.iter().find(|delimiter| delimiter.byte() == self.header.delimiter);
        found.map_or(Delimiter::Comma.as_str(), |delimiter| delimiter.as_str())
    }

    /// Describes the detected encoding, format and delimiter in words.
    pub fn describe(&self) -> String {
        let form = match self.format {
            Format::Csv => {
                format!("delimiter {}, {}", self.delimiter_name(), count(self.header.names.len() as u64, "column"))
            }
            Format::Ndjson => "NDJSON".to_owned(),
        };
        format!("{}: {} ({}), {form}", self.path.display(), self.examination.encoding.name(), self.examination.how)
    }

    /// Returns the signs of a wrong option, or of a damaged file.
    pub fn doubts(&self, options: &Import) -> Vec<String> {
        let encoding = self.examination.encoding.name();
        let sample = decode_sample(&self.examination.sample, self.examination.encoding);
        let of_encoding = self.examination.doubt.map(|doubt| match doubt {
            Doubt::IsUtf8 => format!(
                "Warning: the file is UTF-8. With --encoding {encoding}, its non-ASCII letters are garbled: omit the option."
            ),
            Doubt::UndefinedBytes => format!(
                "Warning: the file has bytes that {encoding} leaves undefined. It is probably in a different encoding, for example \
                 cp850 or Mac Roman: save it as UTF-8."
            ),
            Doubt::Guessed => {
                let odd = sample.split(|c: char| c.is_whitespace() || c == ',' || c == ';').find(|word| !word.is_ascii());
                format!(
                    "Warning: the encoding {encoding} is a guess. If {} is wrong, the file can be in a different one, for example cp850 or \
                     Mac Roman: save it as UTF-8, or say --encoding.",
                    odd.unwrap_or("a letter")
                )
            }
        });
        let garbled = sample.split(['\n', ',', ';', '\t']).find(|cell| is_garbled(cell)).map(|cell| {
            let cell = cell.trim();
            format!("Warning: letters are garbled, as in {cell}: the file was saved as UTF-8, and read as Windows-1252. Export it again.")
        });
        let given = options.delimiter.filter(|_| self.format == Format::Csv);
        let of_delimiter = given.and_then(|given| {
            let (better, columns) = better_delimiter(&sample, given, options.header_line)?;
            Some(format!("Warning: with --delimiter {given} there is 1 column; with {better} there are {columns} columns."))
        });
        of_encoding.into_iter().chain(garbled).chain(of_delimiter).collect()
    }

    /// # Errors
    ///
    /// Returns [`CliError::Usage`] with all errors of the columns.
    pub fn columns(&self, options: &Import) -> Result<Columns> {
        let (kind, reading) = (options.kind(), options.reading());
        let columns = Columns::resolve(kind, &self.header.names, &self.header.repeated, &reading, options.match_by.column());
        let columns = columns.map_err(|errors| self.misfit(options, &errors.iter().map(written).collect::<Vec<_>>()))?;
        if columns.columns.is_empty() {
            return Err(self.misfit(options, &["no column is left to import".to_owned()]));
        }
        Ok(columns)
    }

    /// Returns the fields of `--skip-bad`, whose arguments are fields or columns of the file.
    pub fn skip_bad(&self, options: &Import, columns: &Columns) -> Result<Vec<String>> {
        let (mut fields, mut problems) = (Vec::new(), Vec::new());
        for name in &options.skip_bad {
            match columns.columns.iter().find(|column| column.heading == *name || column.field == *name) {
                Some(column) if options.match_by.column() == Some(column.field.as_str()) => {
                    problems.push(format!("--skip-bad {name}: rows are matched by this column"));
                }
                Some(column) if column.field == "updated_at" => {
                    problems.push(format!("--skip-bad {name}: without it, a row would overwrite later changes"));
                }
                Some(column) => fields.push(column.field.clone()),
                None => problems.push(format!("--skip-bad {name}: no imported column or field has this name")),
            }
        }
        if problems.is_empty() { Ok(fields) } else { Err(self.misfit(options, &problems)) }
    }

    fn misfit(&self, options: &Import, problems: &[String]) -> CliError {
        let names = &self.header.names;
        let is_known = |name: &String| options.kind().has_field(name) || headings::field(options.kind(), name).is_some();
        let is_strange = self.format == Format::Csv && options.maps.is_empty() && !names.iter().any(is_known);
        let header = "\nNo column name looks familiar. If the first row contains data, insert a row with the columns' names before it; if the \
             header is further down, say --header-line.";
        let users =
            if !options.users && is_list_of_users(names) { "\nThis looks like a list of users: add --users." } else { "" };
        let keep = if options.users { "" } else { " keep it with\n--map \"COLUMN=custom_fields.NAME\"," };
        CliError::Usage(format!(
            "the columns of {} can't be imported; nothing was sent:\n  {}{}{users}\nMap each with --map \"COLUMN=FIELD\",{keep} or \
                 ignore it with --map \"COLUMN=\".\n--suggest prints guesses from the names and the values.",
            self.path.display(),
            problems.join("\n  "),
            if is_strange { header } else { "" }
        ))
    }

    pub fn chunks(&self, shape: &Rc<Shape>, max_body: usize) -> Result<Chunks> {
        let doubles = match self.doubles.get() {
            Some(doubles) => Rc::clone(doubles),
            None if shape.matched.is_none() => Rc::default(),
            None => Rc::new(Doubles::find(self.rows(shape)?)?),
        };
        Ok(Chunks::new(self.rows(shape)?, Rc::clone(self.doubles.get_or_init(|| doubles)), max_body))
    }

    fn rows(&self, shape: &Rc<Shape>) -> Result<Rows> {
        let (mut text, shape) = (self.text()?, Rc::clone(shape));
        Ok(match self.format {
            Format::Csv => {
                text.ahead()?;
                Rows::Csv(Box::new(CsvRows::new(text, self.header.clone(), shape)))
            }
            Format::Ndjson => Rows::Ndjson(Box::new(LineRows::new(text, Rc::new(self.header.names.clone()), shape))),
        })
    }

    /// Returns the beginning of the file, for a suggestion.
    pub fn beginning(&self, most: usize) -> Result<String> {
        let mut text = self.text()?;
        let ahead = text.ahead()?;
        let end = (0..=most.min(ahead.len())).rev().find(|end| ahead.is_char_boundary(*end)).unwrap_or_default();
        let beginning = ahead.get(..end).unwrap_or_default();
        // The last line can be cut off.
        let whole = if end < ahead.len() { beginning.rfind('\n').map_or(beginning, |end| &beginning[..=end]) } else { beginning };
        Ok(whole.to_owned())
    }

    fn text(&self) -> Result<Text<Input>> {
        Ok(Text::new(read(&self.content, &self.path)?, self.examination.encoding))
    }

    fn member_names(&self) -> Result<Vec<String>> {
        let shape = Rc::new(Shape { columns: Columns::default(), matched: None });
        let mut rows = LineRows::new(self.text()?, Rc::default(), shape);
        let mut names = BTreeSet::new();
        while let Some(row) = rows.next()? {
            if let Original::Line(line) = row.original
                && names.len() < MAX_UNKNOWN + domain::import::Kind::Assets.columns().len()
            {
                let found = member_names(&line).into_iter();
                names.extend(found.map(|name| name.trim().to_owned()));
            }
        }
        // A file without objects has a refused row for each line.
        Ok(if names.is_empty() { vec![REASONS.to_owned()] } else { names.into_iter().collect() })
    }

    /// Returns the bytes of standard input, which has no name of its own.
    pub fn memory(&self) -> Option<&[u8]> {
        match &self.content {
            Content::Memory(bytes) if self.path == Path::new(STANDARD_INPUT) => Some(bytes),
            _ => None,
        }
    }
}

/// Writes an error of the columns as options of this program.
fn written(error: &FieldError) -> String {
    let reason = with_options(&error.reason.text);
    match &error.location {
        ErrorLocation::Parameter(name) => format!("--{} {reason}", name.replace('_', "-")),
        ErrorLocation::Column(column) => format!("{column:?}: {reason}"),
        _ => reason,
    }
}

fn read(content: &Content, path: &Path) -> Result<Input> {
    match content {
        Content::Memory(bytes) => Ok(Box::new(Cursor::new(Rc::clone(bytes)))),
        Content::File => Ok(Box::new(open(path)?)),
    }
}

/// Returns the items of an array as lines, and their size.
fn items(content: &Content, path: &Path, examination: &Examination) -> Result<(Content, u64)> {
    let mut bytes = Vec::new();
    read(content, path)?.read_to_end(&mut bytes)?;
    let (text, ..) = examination.encoding.decode(&bytes);
    let lines = objects::lines(text.as_bytes());
    // Within a line, white space means nothing.
    let line =
        |line: &&[u8]| line.iter().map(|byte| if *byte == b'\n' || *byte == b'\r' { b' ' } else { *byte }).collect::<Vec<u8>>();
    let lines: Vec<Vec<u8>> = lines.iter().map(line).collect();
    let joined = lines.join(&b'\n');
    let size = joined.len() as u64;
    Ok((Content::Memory(joined.into()), size))
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
