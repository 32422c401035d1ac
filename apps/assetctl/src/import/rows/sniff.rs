//! Finds out the delimiter of a file.

use csv::ReaderBuilder;

/// In the order of preference.
const CANDIDATES: [u8; 3] = [b',', b';', b'\t'];
const ROWS: usize = 100;

/// The delimiter that splits most rows into as many cells as the header has, and the header into most.
///
/// The line `sep=;`, which Excel writes and hides, decides.
#[must_use]
pub fn delimiter(sample: &str) -> u8 {
    if let Some(separator) = excel_separator(sample.lines().next().unwrap_or_default()) {
        return separator;
    }
    let best = CANDIDATES.into_iter().rev().max_by_key(|candidate| score(sample, *candidate));
    best.unwrap_or(b',')
}

/// The delimiter with several columns, and their number, if the given one makes one column of the file.
#[must_use]
pub fn better(sample: &str, given: u8) -> Option<(u8, usize)> {
    let best = CANDIDATES.into_iter().rev().max_by_key(|candidate| score(sample, *candidate))?;
    let columns = score(sample, best).1;
    (score(sample, given).1 < 2 && columns > 1).then_some((best, columns))
}

#[must_use]
pub fn excel_separator(line: &str) -> Option<u8> {
    match line.trim_end_matches(['\r', '\n']).strip_prefix("sep=")?.as_bytes() {
        [separator] if CANDIDATES.contains(separator) => Some(*separator),
        _ => None,
    }
}

/// The rows of 1,000 that fit the header, and the cells of the header; a single cell is no sign of anything.
fn score(sample: &str, delimiter: u8) -> (usize, usize) {
    let mut reader = ReaderBuilder::new().delimiter(delimiter).flexible(true).has_headers(false).from_reader(sample.as_bytes());
    let lengths: Vec<usize> = reader.records().take(ROWS).filter_map(Result::ok).map(|record| record.len()).collect();
    // The sample may end in the middle of a row.
    let complete = if lengths.len() > 2 && lengths.len() < ROWS { lengths.len() - 1 } else { lengths.len() };
    let header = lengths.first().copied().unwrap_or_default();
    if header < 2 {
        return (0, header);
    }
    let fitting = lengths.iter().take(complete).filter(|length| **length == header).count();
    (fitting * 1_000 / complete.max(1), header)
}

#[must_use]
pub fn name(delimiter: u8) -> &'static str {
    match delimiter {
        b',' => "comma",
        b';' => "semicolon",
        b'\t' => "tab",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_fit_the_header_decide() {
        assert_eq!(delimiter("a,b,c\n1,2,3\n"), b',');
        assert_eq!(delimiter("Name;Preis\nGerät;1.249,00 €\nTisch;99,00 €\n"), b';');
        assert_eq!(delimiter("name\tnotes\nX\tone, two; three\n"), b'\t');
        assert_eq!(delimiter("a;b,c;d\n1;2;3\n4;5;6\n"), b';');
        assert_eq!(delimiter("\"a,b\";c\n\"1,2,3\";4\n"), b';');
    }

    #[test]
    fn a_wrong_delimiter_has_a_better_one() {
        assert_eq!(better("a,b,c\n1,2,3\n", b';'), Some((b',', 3)));
        assert_eq!(better("a,b;c\n1,2;3\n", b';'), None);
        assert_eq!(better("a\nx, y\n", b';'), None);
    }

    #[test]
    fn a_single_column_needs_no_delimiter() {
        assert_eq!(delimiter("serial_number\nX1\nX2\n"), b',');
        assert_eq!(delimiter(""), b',');
    }

    #[test]
    fn excels_first_line_decides() {
        assert_eq!(delimiter("sep=;\r\nname,x;notes\r\n"), b';');
        assert_eq!(excel_separator("sep=,"), Some(b','));
        assert_eq!(excel_separator("sep=ab"), None);
        assert_eq!(excel_separator("separator"), None);
    }
}
