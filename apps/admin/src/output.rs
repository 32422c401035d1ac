//! The output of a command, and its exit code.

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use std::borrow::Cow;
use terminal::Column;

/// A column's heading, and its cell for a row.
pub type Field = (Column, fn(&Value) -> String);

/// How to show a result to people.
enum View {
    /// One object, with a line for each member.
    Record,
    Text(String),
    /// Several objects, or a string if there are none.
    Table(&'static [Field], &'static str),
    /// A table of the objects in this member, and a list of the other members below it.
    Nested(&'static str, &'static [Field]),
}

pub struct Output {
    values: Vec<Value>,
    view: View,
    is_success: bool,
}

impl From<Value> for Output {
    fn from(value: Value) -> Self {
        Self { values: vec![value], view: View::Record, is_success: true }
    }
}

impl Output {
    /// Shows `values` as a table, or the text `empty` if there are none.
    pub fn table(values: Vec<Value>, fields: &'static [Field], empty: &'static str) -> Self {
        Self { values, view: View::Table(fields, empty), is_success: true }
    }

    pub fn described(value: Value, text: String) -> Self {
        Self { values: vec![value], view: View::Text(text), is_success: true }
    }

    pub fn nested(value: Value, list: &'static str, fields: &'static [Field]) -> Self {
        Self { values: vec![value], view: View::Nested(list, fields), is_success: true }
    }

    pub fn with_success(self, is_success: bool) -> Self {
        Self { is_success, ..self }
    }

    pub fn is_success(&self) -> bool {
        self.is_success
    }

    /// Prints a table on a terminal. Otherwise, or with `is_json`, prints one JSON object per line.
    pub fn print(&self, is_json: bool) -> Result<()> {
        if !is_json && terminal::is_terminal() {
            terminal::print(&self.text(terminal::width()))?;
        } else if let Some(lines) = self.json_lines() {
            terminal::print_data(&lines)?;
        }
        Ok(())
    }

    fn json_lines(&self) -> Option<String> {
        let lines: Vec<String> = self.values.iter().map(Value::to_string).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    fn text(&self, width: Option<usize>) -> String {
        match (&self.view, self.values.as_slice()) {
            (View::Text(text), _) => text.clone(),
            (View::Table(_, empty), []) => (*empty).to_owned(),
            (View::Table(fields, _), values) => table(values, fields, width),
            (View::Record, values) => values.iter().map(|value| record(value, "", width)).collect::<Vec<_>>().join("\n\n"),
            (View::Nested(list, fields), values) => {
                let nested = values.iter().flat_map(|value| {
                    let rows = value[*list].as_array().map(Vec::as_slice).unwrap_or_default();
                    let table = (!rows.is_empty()).then(|| table(rows, fields, width));
                    table.into_iter().chain([record(value, list, width)])
                });
                nested.collect::<Vec<_>>().join("\n\n")
            }
        }
    }
}

fn table(values: &[Value], fields: &[Field], width: Option<usize>) -> String {
    let columns: Vec<Column> = fields.iter().map(|(column, _)| column.clone()).collect();
    let mut table = terminal::Table::new(&columns);
    values.iter().for_each(|value| table.add(fields.iter().map(|(_, cell)| cell(value))));
    table.render(width)
}

fn record(value: &Value, left_out: &str, width: Option<usize>) -> String {
    let members = value.as_object().into_iter().flatten().filter(|(name, _)| *name != left_out);
    let titles: Vec<(String, String)> = members.map(|(name, value)| (title(name).into_owned(), cell(value))).collect();
    terminal::record(titles.iter().map(|(title, text)| (title.as_str(), text.clone())), width)
}

fn title(name: &str) -> Cow<'_, str> {
    match name.strip_suffix("_at") {
        Some(name) => format!("{} at (UTC)", name.replace('_', " ")).into(),
        None => name.replace('_', " ").into(),
    }
}

/// Styles a progress bar, which indicatif draws on stderr, and only on a terminal.
pub fn progress(bar: ProgressBar, template: &str) -> Result<ProgressBar> {
    Ok(bar.with_style(ProgressStyle::with_template(template)?))
}

/// Formats a value for people.
pub fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Bool(is_so) => if *is_so { "yes" } else { "no" }.to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => terminal::time(text),
        Value::Array(values) if values.is_empty() => "-".to_owned(),
        Value::Array(values) => values.iter().map(cell).collect::<Vec<_>>().join(", "),
        Value::Object(members) if members.is_empty() => "-".to_owned(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| format!("{} {}", title(name), cell(value))).collect::<Vec<_>>().join(", ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const FIELDS: &[Field] = &[(Column::new("ID"), |row| cell(&row["id"])), (Column::text("NAME"), |row| cell(&row["name"]))];

    #[test]
    fn people_see_tables_and_records() {
        let output = Output::table(vec![json!({"id": "1", "name": "Küche"}), json!({"id": "2", "name": null})], FIELDS, "None.");
        assert_eq!(output.text(Some(80)), "ID  NAME\n1   Küche\n2   -");
        assert_eq!(Output::table(vec![], FIELDS, "None.").text(None), "None.");
        let value = json!({"rows": [{"id": "1", "name": "a"}], "created_at": "2027-01-01T08:30:00.000Z", "items": {"user": 2}});
        let output = Output::nested(value, "rows", FIELDS);
        assert_eq!(output.text(None), "ID  NAME\n1   a\n\ncreated at (UTC)  2027-01-01 08:30\nitems             user 2");
    }

    #[test]
    fn programs_get_an_object_on_each_line() {
        let output = Output::table(vec![json!({"id": "1"}), json!({"id": "2"})], FIELDS, "None.");
        assert_eq!(output.json_lines().as_deref(), Some("{\"id\":\"1\"}\n{\"id\":\"2\"}"));
        assert_eq!(Output::table(vec![], FIELDS, "None.").json_lines(), None);
    }
}
