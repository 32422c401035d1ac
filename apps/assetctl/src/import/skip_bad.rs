//! `--skip-bad`: leaves out the cells that the service refuses, if the user prefers that to refused rows.

use crate::error::{CliError, Result};
use crate::import::report::RowResult;
use crate::import::rows::{Members, RowError, encode};
use csv::{ReaderBuilder, StringRecord};
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

/// Returns the body of a request without these cells.
///
/// # Errors
///
/// Returns [`CliError::Failed`] if the body can't be read, which is a bug.
pub fn without_cells(body: &[u8], is_csv: bool, cells: &[(usize, RowError)]) -> Result<Vec<u8>> {
    let mut left_out: HashMap<usize, HashSet<&str>> = HashMap::new();
    for (row, error) in cells {
        left_out.entry(*row).or_default().extend(error.column.as_deref());
    }
    let is_left_out = |row: usize, name: &str| left_out.get(&row).is_some_and(|names| names.contains(name));
    let unreadable = |error: &dyn std::fmt::Display| CliError::Failed(format!("a request can't be read again: {error}"));
    let mut rest = Vec::new();
    if is_csv {
        let mut reader = ReaderBuilder::new().from_reader(body);
        let header = reader.headers().map_err(|error| unreadable(&error))?.clone();
        rest.extend(encode(&header));
        for (row, record) in reader.records().enumerate() {
            let record = record.map_err(|error| unreadable(&error))?;
            let kept = header.iter().zip(&record).map(|(name, cell)| if is_left_out(row, name) { "" } else { cell });
            rest.extend(encode(&kept.collect::<StringRecord>()));
        }
        return Ok(rest);
    }
    let lines = body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    for (row, line) in lines.enumerate() {
        let Members(members) = serde_json::from_slice(line).map_err(|error| unreadable(&error))?;
        let kept = members.into_iter().filter(|(name, _)| !is_left_out(row, name));
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
        let cells = [(1, RowError::of_column("email", "is unknown")), (1, RowError::of_column("note", "is too long"))];
        let csv = "name,email,note\na,x,\"1\n2\"\nb,y,3\n";
        let rest = without_cells(csv.as_bytes(), true, &cells).unwrap();
        assert_eq!(String::from_utf8(rest).unwrap(), "name,email,note\na,x,\"1\n2\"\nb,,\n");
        let lines = "{\"name\":\"a\",\"email\":\"x\"}\n{\"name\":\"b\",\"email\":1.50}\n";
        let rest = without_cells(lines.as_bytes(), false, &cells).unwrap();
        assert_eq!(String::from_utf8(rest).unwrap(), "{\"name\":\"a\",\"email\":\"x\"}\n{\"name\":\"b\"}\n");
    }
}
