//! The header of a CSV file: where it is, what separates its cells, and the names of its columns.

use crate::assets::csv_cell;
use crate::import::CUSTOM_FIELD;
use crate::import::parameters::{Delimiter, Reading};
use crate::import::records::Records;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Number of rows that show the delimiter.
const ROWS: usize = 100;

/// The headings of a CSV file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    /// Names of the columns, with a number for each repeated heading, as in `Category (2)`.
    pub names: Vec<String>,
    /// The headings of the names with a number.
    pub repeated: BTreeMap<String, String>,
    pub delimiter: u8,
    /// What is wrong with the header's quotes.
    pub broken: Option<&'static str>,
    /// Where the rows begin: the byte and the line.
    pub end: usize,
    pub next_line: u64,
}

impl Header {
    /// Reads the headings; `None` if the text ends before them. Skips the lines before `header_line`, and the line `sep=;`, which
    /// Excel writes and hides. `delimiter` is used if neither says another.
    pub fn read(text: &str, reading: &Reading, delimiter: Delimiter) -> Option<Self> {
        let first = text.lines().next().unwrap_or_default();
        let separator = separator_line(first);
        let delimiter = reading.delimiter.or(separator).unwrap_or(delimiter).byte();
        let mut records = Records::new(text, delimiter, 1);
        let mut record = records.next(None)?;
        let line = u64::from(reading.header_line.unwrap_or(1));
        while record.line < line || (record.line == 1 && is_separator_line(first)) {
            record = records.next(None)?;
        }
        // Exports escape the names of custom fields as they escape cells.
        let heading = |name: &str| match name.trim() {
            name if name.starts_with(CUSTOM_FIELD) => csv_cell::to_text(name).into_owned(),
            name => name.to_owned(),
        };
        let headings: Vec<String> = record.cells.iter().map(heading).collect();
        let (names, repeated) = numbered(&headings);
        Some(Self { names, repeated, delimiter, broken: record.broken, end: records.position(), next_line: records.line() })
    }
}

/// Returns the delimiter in a line such as `sep=;`.
pub fn separator_line(line: &str) -> Option<Delimiter> {
    line.trim_end_matches(['\r', '\n']).strip_prefix("sep=").and_then(|delimiter| match delimiter {
        "," => Some(Delimiter::Comma),
        ";" => Some(Delimiter::Semicolon),
        "\t" => Some(Delimiter::Tab),
        "|" => Some(Delimiter::Pipe),
        _ => None,
    })
}

fn is_separator_line(line: &str) -> bool {
    line.trim_end_matches(['\r', '\n', ';', '\t']) == "sep=" || separator_line(line).is_some()
}

/// Returns the delimiter for which most rows have as many cells as the header, and which splits the header into the most cells.
/// The line `sep=;` takes precedence.
pub fn delimiter(text: &str, header_line: Option<u32>) -> Delimiter {
    let first = text.lines().next().unwrap_or_default();
    let best = || Delimiter::ALL.iter().copied().rev().max_by_key(|delimiter| score(text, *delimiter, header_line));
    separator_line(first).or_else(best).unwrap_or(Delimiter::Comma)
}

/// If the given delimiter results in a single column, returns a delimiter that results in several columns, and their number.
pub fn better_delimiter(text: &str, given: Delimiter, header_line: Option<u32>) -> Option<(Delimiter, usize)> {
    let best = Delimiter::ALL.iter().copied().rev().max_by_key(|delimiter| score(text, *delimiter, header_line))?;
    let columns = score(text, best, header_line).1;
    (score(text, given, header_line).1 < 2 && columns > 1).then_some((best, columns))
}

/// Scores a delimiter by the first [`ROWS`] rows: returns how many per 1,000 have as many cells as the header (0 if the header
/// has a single cell), and the number of cells in the header.
fn score(text: &str, delimiter: Delimiter, header_line: Option<u32>) -> (usize, usize) {
    let mut records = Records::new(text, delimiter.byte(), 1);
    let records =
        std::iter::from_fn(|| records.next(None)).skip_while(|record| record.line < u64::from(header_line.unwrap_or(1)));
    let lengths: Vec<usize> = records.take(ROWS).map(|record| record.cells.len()).collect();
    // The text can end in the middle of a row.
    let complete = if lengths.len() > 2 && lengths.len() < ROWS { lengths.len() - 1 } else { lengths.len() };
    let header = lengths.first().copied().unwrap_or_default();
    if header < 2 {
        return (0, header);
    }
    let fitting = lengths.iter().take(complete).filter(|length| **length == header).count();
    (fitting * 1_000 / complete.max(1), header)
}

/// Returns the headings, with a number for each repeated one, as in `Category (2)`; and the numbered ones.
fn numbered(headings: &[String]) -> (Vec<String>, BTreeMap<String, String>) {
    let known: HashSet<&str> = headings.iter().map(String::as_str).collect();
    let (mut counts, mut names, mut repeated) = (HashMap::<&str, u32>::new(), Vec::new(), BTreeMap::new());
    for heading in headings {
        let count = counts.entry(heading).or_default();
        *count += 1;
        let mut name = heading.clone();
        if *count > 1 && !heading.is_empty() && heading != super::REASONS {
            name = format!("{heading} ({count})");
            while known.contains(name.as_str()) {
                *count += 1;
                name = format!("{heading} ({count})");
            }
            repeated.insert(name.clone(), heading.clone());
        }
        names.push(name);
    }
    (names, repeated)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str, parameters: &[(&str, &str)]) -> Option<(Vec<String>, u64)> {
        let reading = Reading::parse(parameters.iter().copied()).unwrap_or_default();
        Header::read(text, &reading, delimiter(text, reading.header_line)).map(|header| (header.names, header.next_line))
    }

    fn list(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn further_columns_of_a_heading_have_a_number() {
        let (numbered, repeated) =
            numbered(&list(&["A", "A", "", "", "A (2)", "A", "custom_fields.x", "custom_fields.x", "name"]));
        assert_eq!(numbered, list(&["A", "A (3)", "", "", "A (2)", "A (4)", "custom_fields.x", "custom_fields.x (2)", "name"]));
        assert!(repeated.keys().eq(["A (3)", "A (4)", "custom_fields.x (2)"]));
    }

    #[test]
    fn the_header_can_be_below_title_rows() {
        let text = "Inventory 2026,,\nprinted today,,\n\nName,Tag,Room\na,b,c\n";
        assert_eq!(names(text, &[("header_line", "4")]), Some((list(&["Name", "Tag", "Room"]), 5)));
        assert_eq!(names(text, &[("header_line", "9")]), None);
        assert_eq!(names("", &[]), None);
        assert_eq!(names("sep=;\na;b\n1;2\n", &[]), Some((list(&["a", "b"]), 3)));
        assert_eq!(names("a\tb\n1\t2\n", &[]), Some((list(&["a", "b"]), 2)));
        assert_eq!(names("a;b,c\n", &[("delimiter", "semicolon")]), Some((list(&["a", "b,c"]), 2)));
    }

    #[test]
    fn the_delimiter_is_the_one_that_rows_and_header_share() {
        for (text, found) in [
            ("a,b;c\n1,2\n3,4\n", Delimiter::Comma),
            ("a;b\n1,5;2\n3,5;4\n", Delimiter::Semicolon),
            ("sep=;\na,b\n", Delimiter::Semicolon),
            ("name\na\n", Delimiter::Comma),
            ("Name|Serial, old\na|1\n", Delimiter::Pipe),
        ] {
            assert_eq!(delimiter(text, None), found, "{text}");
        }
        assert_eq!(better_delimiter("a,b\n1,2\n", Delimiter::Semicolon, None), Some((Delimiter::Comma, 2)));
    }
}
