//! `--skip-bad`: leaves out the cells that the service refuses, if the user prefers that to refused rows.

use crate::error::{CliError, Result};
use crate::import::report::RowResult;
use crate::import::rows::{RowError, encode};
use crate::output::Format;
use csv::{ReaderBuilder, StringRecord};
use domain::import::objects::Members;
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// Returns the refused cells in these columns, each with the position of its row in the request. A value that another record has
/// is not among them: the row is probably imported already, and without the value it would be imported again.
pub fn bad_cells(results: &[RowResult], columns: &[String]) -> Vec<(usize, RowError)> {
    let is_duplicate = |error: &RowError| error.code.as_deref() == Some("DUPLICATE");
    let of_columns =
        |error: &&RowError| error.column.as_ref().is_some_and(|column| columns.contains(column)) && !is_duplicate(error);
    let rows = results.iter().enumerate();
    rows.flat_map(|(index, row)| row.errors.iter().filter(of_columns).map(move |error| (index, error.clone()))).collect()
}

/// Returns the body of a request without these cells, each given by the position of its row and the indexes of its columns.
///
/// # Errors
///
/// Returns [`CliError::Failed`] if the body can't be read, which is a bug.
pub fn without_cells<'a>(
    body: &[u8],
    format: Format,
    names: &[String],
    cells: impl Iterator<Item = (usize, &'a [usize])>,
) -> Result<Vec<u8>> {
    let mut left_out: HashMap<usize, HashSet<usize>> = HashMap::new();
    for (row, columns) in cells {
        left_out.entry(row).or_default().extend(columns);
    }
    let is_left_out = |row: usize, column: usize| left_out.get(&row).is_some_and(|columns| columns.contains(&column));
    let unreadable = |error: &dyn std::fmt::Display| CliError::Failed(format!("a request can't be read again: {error}"));
    let mut rest = Vec::new();
    if format == Format::Csv {
        let mut reader = ReaderBuilder::new().from_reader(body);
        rest.extend(encode(reader.headers().map_err(|error| unreadable(&error))?));
        for (row, record) in reader.records().enumerate() {
            let record = record.map_err(|error| unreadable(&error))?;
            let kept = record.iter().enumerate().map(|(column, cell)| if is_left_out(row, column) { "" } else { cell });
            rest.extend(encode(&kept.collect::<StringRecord>()));
        }
        return Ok(rest);
    }
    let lines = body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    for (row, line) in lines.enumerate() {
        let Members(members) = serde_json::from_slice(line).map_err(|error| unreadable(&error))?;
        let is_kept =
            |name: &str| !names.iter().position(|known| known == name.trim()).is_some_and(|column| is_left_out(row, column));
        let kept = members.into_iter().filter(|(name, _)| is_kept(name));
        let kept: Vec<String> = kept.map(|(name, value)| format!("{}:{}", Value::from(name), value.get())).collect();
        rest.extend(format!("{{{}}}\n", kept.join(",")).into_bytes());
    }
    Ok(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_named_cells_are_left_out() {
        let names = ["name", "email", "note"].map(str::to_owned);
        let without = |body: &str, format| {
            let rest = without_cells(body.as_bytes(), format, &names, [(1, &[1, 2][..])].into_iter()).unwrap();
            String::from_utf8(rest).unwrap()
        };
        let csv = "name,email,note\na,x,\"1\n2\"\nb,y,3\n";
        assert_eq!(without(csv, Format::Csv), "name,email,note\na,x,\"1\n2\"\nb,,\n");
        let lines = "{\"name\":\"a\",\"email\":\"x\"}\n{\"name\":\"b\",\"email\":1.50}\n";
        assert_eq!(without(lines, Format::Ndjson), "{\"name\":\"a\",\"email\":\"x\"}\n{\"name\":\"b\"}\n");
    }
}
