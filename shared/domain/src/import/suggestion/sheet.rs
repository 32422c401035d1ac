//! The beginning of a file: its headings and its first rows.

use super::headings;
use crate::import::Kind;
use crate::import::header::{Header, delimiter, separator_line};
use crate::import::objects::{Members, lines, text};
use crate::import::parameters::{Delimiter, MAX_HEADER_LINE, Reading};
use crate::import::records::Records;
use std::collections::{BTreeMap, HashMap};

/// Maximum number of rows to look at.
const MAX_ROWS: usize = 1_000;
/// Maximum number of columns to look at.
const MAX_COLUMNS: usize = 200;
/// Maximum number of rows above the header.
const MAX_TITLE_ROWS: usize = 20;
/// Number of familiar headings that show a header.
const FAMILIAR: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Csv,
    Ndjson,
}

#[derive(Debug, Default)]
pub struct Sheet {
    /// Headings, with a number for each repeated one; or the names of all members of objects.
    pub names: Vec<String>,
    /// The headings of the names with a number.
    pub repeated: BTreeMap<String, String>,
    /// The cells of the first rows.
    pub rows: Vec<Vec<String>>,
    /// Number of rows in the text.
    pub count: usize,
    pub header_line: u32,
    /// The delimiter, if an import would take another one by itself.
    pub delimiter: Option<Delimiter>,
    /// Whether columns have numbers, unlike the members of objects.
    pub has_numbers: bool,
    /// What is doubtful about the file as a whole.
    pub doubts: Vec<String>,
    /// Whether columns or rows were left out.
    pub is_cut: bool,
}

impl Sheet {
    /// Reads the beginning of a file. Finds the header below title rows, and the delimiter, unless `reading` says them.
    pub fn read(kind: Kind, text: &str, format: Format, reading: &Reading) -> Self {
        let mut sheet = match format {
            Format::Csv => Self::of_csv(kind, text, reading),
            Format::Ndjson => Self::of_objects(text),
        };
        if sheet.is_cut {
            sheet
                .doubts
                .push(format!("Only the first {MAX_COLUMNS} columns were looked at. Map the others, or ignore them, too."));
        }
        if sheet.count > MAX_ROWS {
            sheet.is_cut = true;
            sheet.doubts.push(format!("Only the first {MAX_ROWS} of {} rows were looked at.", sheet.count));
        }
        sheet
    }

    pub fn cells(&self, index: usize) -> impl Iterator<Item = &str> {
        self.rows.iter().map(move |row| row.get(index).map_or("", |cell| cell.trim()))
    }

    fn of_csv(kind: Kind, text: &str, reading: &Reading) -> Self {
        let (given, mut reading) = (reading.delimiter, reading.clone());
        if reading.header_line.is_none()
            && let Some((line, delimiter)) = header_below_titles(kind, text, reading.delimiter)
        {
            (reading.header_line, reading.delimiter) = (Some(line), Some(delimiter));
        }
        let best = reading.delimiter.unwrap_or_else(|| delimiter(text, reading.header_line));
        let Some(header) = Header::read(text, &reading, best) else { return Self::default() };
        let names: Vec<String> = header.names.iter().take(MAX_COLUMNS).cloned().collect();
        let mut records = Records::new(text.get(header.end..).unwrap_or_default(), header.delimiter, header.next_line);
        let heading = |name: &'_ String| header.repeated.get(name).unwrap_or(name).clone();
        let headings: Vec<String> = header.names.iter().map(heading).collect();
        let (mut rows, mut count, mut repetition) = (Vec::new(), 0, None);
        let mut doubts: Vec<String> = header.broken.map(|broken| format!("The header row {broken}.")).into_iter().collect();
        while let Some(record) = records.next(Some(header.names.len())) {
            if record.cells.iter().all(|cell| cell.trim().is_empty()) {
                continue;
            }
            count += 1;
            if headings.len() > 1 && record.cells.iter().map(str::trim).eq(&headings) {
                repetition.get_or_insert(record.line);
            }
            if rows.len() < MAX_ROWS && record.broken.is_none() {
                rows.push(record.cells.iter().take(names.len()).map(str::to_owned).collect());
            }
        }
        let repeats = |line| format!("Line {line} repeats the header, and would become a record: remove it.");
        doubts.extend(repetition.map(repeats));
        let delimiter = Delimiter::ALL.iter().copied().find(|delimiter| delimiter.byte() == header.delimiter);
        // An import reads the line `sep=;` itself.
        let default = separator_line(text.lines().next().unwrap_or_default()).unwrap_or(Delimiter::Comma);
        Self {
            names,
            repeated: header.repeated,
            rows,
            count,
            header_line: reading.header_line.unwrap_or(1),
            delimiter: delimiter.filter(|delimiter| *delimiter != default || given == Some(*delimiter)),
            has_numbers: true,
            doubts,
            is_cut: header.names.len() > MAX_COLUMNS,
        }
    }

    fn of_objects(body: &str) -> Self {
        let mut sheet = Self { header_line: 1, ..Self::default() };
        let (mut places, mut strange) = (HashMap::<String, usize>::new(), 0);
        let lines = lines(body.as_bytes());
        sheet.count = lines.len();
        for line in lines.iter().take(MAX_ROWS) {
            let Ok(Members(members)) = serde_json::from_slice(line) else {
                strange += 1;
                continue;
            };
            let mut row = Vec::new();
            for (name, value) in members {
                if sheet.count == 1 && sheet.doubts.is_empty() && value.get().starts_with("[{") {
                    sheet
                        .doubts
                        .push(format!("The file is one object, not an array of objects. Save only the array in {name:?}."));
                }
                let place = match places.get(name.trim()) {
                    Some(place) => *place,
                    None if sheet.names.len() == MAX_COLUMNS => {
                        sheet.is_cut = true;
                        continue;
                    }
                    None => {
                        sheet.names.push(name.trim().to_owned());
                        places.insert(name.trim().to_owned(), sheet.names.len() - 1);
                        sheet.names.len() - 1
                    }
                };
                if row.len() <= place {
                    row.resize(place + 1, String::new());
                }
                row[place] = if value.get() == "null" { String::new() } else { text(&value) };
            }
            sheet.rows.push(row);
        }
        if strange > 0 {
            let lines = super::are(strange, "line");
            sheet
                .doubts
                .push(format!("{lines} not an object. The file must be an array of objects, or have one object per line."));
        }
        sheet
    }
}

/// Finds a header whose headings are familiar, below title rows that have none. Returns its line and its delimiter.
fn header_below_titles(kind: Kind, text: &str, delimiter: Option<Delimiter>) -> Option<(u32, Delimiter)> {
    let delimiters: &[Delimiter] = delimiter.as_ref().map_or(Delimiter::ALL, std::slice::from_ref);
    let familiar = |cells: &csv::StringRecord| {
        let is_familiar = |cell: &&str| kind.has_field(cell.trim()) || headings::field(kind, cell).is_some();
        cells.iter().take(MAX_COLUMNS).filter(|cell| cell.len() <= 100).filter(is_familiar).count()
    };
    let mut best: Option<(usize, u32, Delimiter)> = None;
    for delimiter in delimiters {
        let mut records = Records::new(text, delimiter.byte(), 1);
        for record in std::iter::from_fn(|| records.next(None)).take(MAX_TITLE_ROWS) {
            let found = familiar(&record.cells);
            let line = u32::try_from(record.line).unwrap_or(u32::MAX);
            if found >= FAMILIAR && best.is_none_or(|(most, first, _)| found > most || (found == most && line < first)) {
                best = Some((found, line, *delimiter));
            }
        }
    }
    let (_, line, delimiter) = best?;
    let first = Records::new(text, delimiter.byte(), 1).next(None)?;
    let is_hidden = text.starts_with("sep=");
    ((2..=MAX_HEADER_LINE).contains(&line) && !is_hidden && familiar(&first.cells) < FAMILIAR).then_some((line, delimiter))
}
