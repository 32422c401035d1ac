//! The result of a stock-taking: in words, as JSON, and as a file.

use super::{AMBIGUOUS, Answer, ELSEWHERE, Held, journal::Journal, shown};
use crate::error::{CliError, Result};
use crate::list;
use crate::lookup::person;
use crate::output::{persist, temporary_beside};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use terminal::{Column, Table, record};

/// Columns in the table of missing assets.
const MISSING: [&str; 4] = ["asset_tag", "name", "location", "last_seen_at"];
/// Columns of a report's file.
const COLUMNS: [&str; 8] = ["result", "code", "asset_tag", "name", "location", "assigned_to", "held_since", "last_seen_at"];

pub struct Report<'a> {
    pub place: &'a str,
    pub journal: &'a Journal,
    /// Names by ID.
    pub people: &'a BTreeMap<String, String>,
    pub held: &'a [Held],
    pub missing: &'a [Value],
}

impl Report<'_> {
    fn with(&self, is_meant: impl Fn(&Answer) -> bool) -> Vec<&Answer> {
        self.journal.answers().values().filter(|answer| is_meant(answer)).collect()
    }

    fn having(&self, outcome: &str) -> Vec<&Answer> {
        self.with(|answer| answer.outcome == outcome)
    }

    fn unknown(&self) -> Vec<&str> {
        let unknown = self.with(|answer| answer.id.is_none() && answer.outcome != AMBIGUOUS);
        unknown.into_iter().map(|answer| answer.code.as_str()).collect()
    }

    pub fn json(&self) -> Value {
        let held = |held: &Held| {
            let mut asset = held.asset.clone();
            asset["held_since"] = json!(held.since);
            asset
        };
        json!({
            "location": self.place, "since": format!("{:.3}", self.journal.since()), "found": self.with(Answer::is_found),
            "elsewhere": self.having(ELSEWHERE), "unknown": self.unknown(), "ambiguous": self.having(AMBIGUOUS),
            "held": self.held.iter().map(held).collect::<Vec<_>>(), "missing": self.missing,
        })
    }

    fn name(&self, id: Option<&String>) -> String {
        id.map(|id| self.people.get(id).unwrap_or(id).clone()).unwrap_or_default()
    }

    fn holder(&self, asset: &Value) -> String {
        match &asset["assigned_user"] {
            Value::Object(_) => person(&asset["assigned_user"]),
            _ => self.name(asset["assigned_to"].as_str().map(str::to_owned).as_ref()),
        }
    }

    pub fn in_words(&self) -> String {
        let width = terminal::width();
        let (found, moved) = (self.with(Answer::is_found).len(), self.having("moved").len());
        let moved = if moved > 0 { format!(", of which {moved} moved here") } else { String::new() };
        let (elsewhere, unknown, ambiguous) = (self.having(ELSEWHERE), self.unknown(), self.having(AMBIGUOUS));
        let mut members = vec![
            ("Place", self.place.to_owned()),
            ("Since", shown(self.journal.since())),
            ("Found", format!("{found}{moved}")),
            ("Elsewhere", elsewhere.len().to_string()),
            ("Unknown", unknown.len().to_string()),
        ];
        members.extend(unknown.into_iter().map(|code| ("", code.to_owned())));
        if !ambiguous.is_empty() {
            members.push(("Ambiguous", ambiguous.len().to_string()));
            members.extend(ambiguous.iter().map(|answer| ("", format!("{}: {}", answer.code, answer.candidates.join(", ")))));
        }
        if !self.held.is_empty() {
            members.push(("With people", self.held.len().to_string()));
        }
        members.push(("Missing", self.missing.len().to_string()));
        let mut parts = vec![record(members, width)];
        if !elsewhere.is_empty() {
            let mut table = Table::new(&["ELSEWHERE", "NAME", "LOCATION", "ASSIGNED TO"].map(Column::text));
            for answer in elsewhere {
                let cells = [answer.asset_tag.as_ref(), answer.name.as_ref(), answer.location.as_ref()];
                let cells = cells.map(|cell| cell.cloned().unwrap_or_default()).into_iter();
                table.add(cells.chain([self.name(answer.assigned_to.as_ref())]));
            }
            parts.push(table.render(width));
        }
        if !self.held.is_empty() {
            let mut table = Table::new(&["WITH PEOPLE", "NAME", "WITH", "SINCE"].map(Column::text));
            for Held { asset, since } in self.held {
                let text = |name: &str| asset[name].as_str().unwrap_or_default().to_owned();
                table.add([text("asset_tag"), text("name"), self.holder(asset), since.clone().unwrap_or_default()]);
            }
            parts.push(table.render(width));
        }
        if !self.missing.is_empty() {
            parts.push(format!("Missing:\n{}", list::table(self.missing, &MISSING).render(width)));
        }
        parts.join("\n\n")
    }

    /// Returns a row for each code, each asset that a person holds, and each missing asset.
    fn rows(&self) -> Vec<Value> {
        let of_code = |answer: &Answer| {
            let name = if answer.outcome == AMBIGUOUS { Some(answer.candidates.join(", ")) } else { answer.name.clone() };
            json!({
                "result": answer.outcome, "code": answer.code, "asset_tag": answer.asset_tag, "name": name,
                "location": answer.location, "assigned_to": self.name(answer.assigned_to.as_ref()),
            })
        };
        let of_asset = |result: &str, asset: &Value, since: Option<&String>| {
            json!({
                "result": result, "asset_tag": asset["asset_tag"], "name": asset["name"], "location": asset["location"],
                "assigned_to": self.holder(asset), "held_since": since, "last_seen_at": asset["last_seen_at"],
            })
        };
        let held = self.held.iter().map(|held| of_asset("held", &held.asset, held.since.as_ref()));
        let missing = self.missing.iter().map(|asset| of_asset("missing", asset, None));
        missing.chain(held).chain(self.journal.answers().values().map(of_code)).collect()
    }

    /// Writes a page if the file's name ends in `.html` or `.htm`, else CSV.
    pub fn write(&self, path: &Path) -> Result<()> {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase();
        let content = match matches!(ending.as_str(), "html" | "htm") {
            true => self.page().into_bytes(),
            false => list::csv(&self.rows(), &COLUMNS).map_err(|error| CliError::Failed(format!("can't write CSV: {error}")))?,
        };
        let mut file = temporary_beside(path)?;
        file.write_all(&content)?;
        persist(file, path)
    }

    fn page(&self) -> String {
        let title = escape(self.place);
        let since = shown(self.journal.since());
        let counts = [
            ("found", self.with(Answer::is_found).len()),
            ("elsewhere", self.having(ELSEWHERE).len()),
            ("unknown", self.unknown().len()),
            ("ambiguous", self.having(AMBIGUOUS).len()),
            ("with people", self.held.len()),
            ("missing", self.missing.len()),
        ];
        let counts = counts.map(|(name, number)| format!("{number} {name}")).join(", ");
        let heading = COLUMNS.map(|column| format!("<th>{}</th>", column.replace('_', " "))).concat();
        let cell = |row: &Value, column: &str| format!("<td>{}</td>", escape(row[column].as_str().unwrap_or_default()));
        let row = |row: &Value| format!("<tr>{}</tr>\n", COLUMNS.map(|column| cell(row, column)).concat());
        let rows: String = self.rows().iter().map(row).collect();
        format!(
            "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\n\
             <style>body{{font:14px sans-serif}}table{{border-collapse:collapse}}th,td{{border:1px solid #999;padding:4px 8px;\
             text-align:left}}</style>\n<h1>{title}</h1>\n<p>Since {since}: {counts}</p>\n\
             <table><thead><tr>{heading}</tr></thead><tbody>\n{rows}</tbody></table>\n</html>\n"
        )
    }
}

/// Escapes text for HTML.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
