//! Tables with aligned columns.

use crate::text::{clean, pad, width, wrap};
use std::borrow::Cow;

const GAP: usize = 2;
/// Minimum width to which a column of text is shrunk.
const MIN_WIDTH: usize = 14;

#[derive(Debug, Clone)]
pub struct Column {
    title: Cow<'static, str>,
    is_right: bool,
    is_text: bool,
}

impl Column {
    /// Creates a column whose cells are never wrapped, such as IDs and times.
    #[must_use]
    pub const fn new(title: &'static str) -> Self {
        Self { title: Cow::Borrowed(title), is_right: false, is_text: false }
    }

    /// Like [`text`](Self::text), with a title from a user.
    #[must_use]
    pub fn named(title: &str) -> Self {
        Self { title: Cow::Owned(clean(title)), is_right: false, is_text: true }
    }

    /// Creates a column whose cells are wrapped if the table is too wide.
    #[must_use]
    pub const fn text(title: &'static str) -> Self {
        Self { title: Cow::Borrowed(title), is_right: false, is_text: true }
    }

    /// Creates a right-aligned column, whose cells are never wrapped.
    #[must_use]
    pub const fn number(title: &'static str) -> Self {
        Self { title: Cow::Borrowed(title), is_right: true, is_text: false }
    }
}

#[derive(Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    #[must_use]
    pub fn new(columns: &[Column]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row. Missing cells are empty.
    pub fn add(&mut self, cells: impl IntoIterator<Item = String>) {
        let mut cells: Vec<String> = cells.into_iter().map(|cell| clean(&cell)).collect();
        cells.resize(self.columns.len(), String::new());
        self.rows.push(cells);
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Formats the table. `terminal` is the terminal's width in columns; without it, the table has its full width. If the table
    /// is too wide even with wrapped cells, each row becomes a block with a line for each cell.
    #[must_use]
    pub fn render(&self, terminal: Option<usize>) -> String {
        match self.widths(terminal.unwrap_or(usize::MAX)) {
            Some(widths) => self.aligned(&widths),
            None => {
                let titles = || self.columns.iter().map(|column| &*column.title);
                let block = |row: &Vec<String>| record(titles().zip(row.iter().cloned()), terminal);
                self.rows.iter().map(block).collect::<Vec<_>>().join("\n\n")
            }
        }
    }

    /// Returns the width of each column. `None` if the table can't be shrunk enough.
    fn widths(&self, terminal: usize) -> Option<Vec<usize>> {
        let longest = |index: usize| self.rows.iter().map(|row| width(&row[index])).max().unwrap_or_default();
        let mut widths: Vec<usize> =
            self.columns.iter().enumerate().map(|(index, column)| width(&column.title).max(longest(index))).collect();
        let gaps = GAP * self.columns.len().saturating_sub(1);
        while widths.iter().sum::<usize>() + gaps > terminal {
            let least = |column: &Column| MIN_WIDTH.max(width(&column.title));
            let texts = self.columns.iter().zip(&mut widths).filter(|(column, width)| column.is_text && **width > least(column));
            *texts.map(|(_, width)| width).max()? -= 1;
        }
        Some(widths)
    }

    fn aligned(&self, widths: &[usize]) -> String {
        let titles = self.columns.iter().map(|column| vec![column.title.to_string()]).collect();
        let rows = self.rows.iter().map(|row| row.iter().zip(widths).map(|(cell, width)| wrap(cell, *width)).collect());
        let mut lines = Vec::new();
        for cells in std::iter::once::<Vec<Vec<String>>>(titles).chain(rows) {
            for number in 0..cells.iter().map(Vec::len).max().unwrap_or_default() {
                let part = |index: usize| cells[index].get(number).map_or("", String::as_str);
                let padded =
                    self.columns.iter().enumerate().map(|(index, column)| pad(part(index), widths[index], column.is_right));
                lines.push(padded.collect::<Vec<_>>().join(&" ".repeat(GAP)).trim_end().to_owned());
            }
        }
        lines.join("\n")
    }
}

/// Formats a line for each member, or several if its text is too wide. `terminal` is the terminal's width in columns.
#[must_use]
pub fn record<'a>(members: impl IntoIterator<Item = (&'a str, String)>, terminal: Option<usize>) -> String {
    let members: Vec<(String, String)> = members.into_iter().map(|(title, text)| (clean(title), clean(&text))).collect();
    let titles = members.iter().map(|(title, _)| width(title)).max().unwrap_or_default() + GAP;
    let room = terminal.map_or(usize::MAX, |terminal| terminal.saturating_sub(titles));
    let mut lines = Vec::new();
    for (title, text) in members {
        // Values without spaces, such as IDs and keys, are not wrapped, so that they can be copied.
        let parts = if text.contains(' ') && room >= MIN_WIDTH { wrap(&text, room) } else { vec![text] };
        for (number, part) in parts.into_iter().enumerate() {
            let title = if number == 0 { title.as_str() } else { "" };
            lines.push((pad(title, titles, false) + &part).trim_end().to_owned());
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Table {
        let mut table = Table::new(&[Column::new("ID"), Column::text("NAME"), Column::number("RATE")]);
        for (id, name, rate) in [("0190163d-8694", "Scanner in the warehouse at the harbour", "600"), ("0190", "東京", "5")] {
            table.add([id, name, rate].map(str::to_owned));
        }
        table
    }

    #[test]
    fn columns_are_aligned_and_as_wide_as_needed() {
        let expected = "\
ID             NAME                                     RATE
0190163d-8694  Scanner in the warehouse at the harbour   600
0190           東京                                        5";
        assert_eq!(keys().render(None), expected);
        assert_eq!(keys().render(Some(60)), expected);
    }

    #[test]
    fn texts_are_broken_before_the_terminal_is_too_narrow() {
        let expected = "\
ID             NAME                 RATE
0190163d-8694  Scanner in the        600
               warehouse at the
               harbour
0190           東京                    5";
        assert_eq!(keys().render(Some(40)), expected);
    }

    #[test]
    fn rows_are_blocks_if_nothing_else_fits() {
        let expected = "\
ID    0190163d-8694
NAME  Scanner in the
      warehouse at the
      harbour
RATE  600

ID    0190
NAME  東京
RATE  5";
        assert_eq!(keys().render(Some(24)), expected);
    }

    #[test]
    fn a_table_without_rows_is_its_header() {
        let table = Table::new(&[Column::new("ID"), Column::text("NAME")]);
        assert!(table.is_empty());
        assert_eq!(table.render(Some(80)), "ID  NAME");
    }

    #[test]
    fn ids_are_never_broken() {
        assert_eq!(
            record([("api key", "apl_0351f4Sj8zZ02J8pdPLh51".to_owned())], Some(20)),
            "api key  apl_0351f4Sj8zZ02J8pdPLh51"
        );
    }
}
