//! The result of a tool call: structured content and a line for people, together at most 8 KB.

use crate::lookup::text;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value, json};
use terminal::clean_hidden;

/// Maximum size of the structured content, as JSON, plus the line.
const MAX_BYTES: usize = 8 * 1024;
/// Bytes reserved beside a list's rows, for other members and the line.
const RESERVE: usize = 2600;
/// Longer texts in the line are cut off after this many characters.
const MAX_QUOTED: usize = 60;

pub struct Answer {
    pub line: String,
    pub data: Value,
}

impl Answer {
    pub fn new<N: Into<String>>(line: impl Into<String>, data: impl IntoIterator<Item = (N, Value)>) -> Self {
        let data = data.into_iter().map(|(name, value)| (name.into(), value)).collect::<Map<String, Value>>();
        Self { line: line.into(), data: data.into() }
    }

    pub fn into_result(self) -> CallToolResult {
        let (mut line, mut data) = (clean_hidden(&self.line).replace('\n', " "), clean(self.data, usize::MAX));
        let is_long = |line: &str, data: &Value| data.to_string().len() + line.len() > MAX_BYTES - 100;
        if is_long(&line, &data) {
            line.push_str(" Shortened to 8 KB.");
        }
        // Top-level members are shortened but never dropped, and strings keep at least `MAX_QUOTED` characters, so a token stays
        // complete.
        let mut most = MAX_BYTES;
        while is_long(&line, &data) && most > 0 {
            most /= 2;
            for (_, value) in data.as_object_mut().into_iter().flatten() {
                *value = clean(value.take(), most);
            }
        }
        let mut result = CallToolResult::success(vec![ContentBlock::text(line)]);
        result.is_error = Some(data["applied"] == false);
        result.structured_content = Some(data);
        result
    }
}

/// Returns as many rows as fit. `next` returns advice on how to get the rest after a number of rows.
pub fn rows(name: &str, all: Vec<Value>, has_more: bool, next: impl Fn(usize) -> String) -> Map<String, Value> {
    let (count, mut size) = (all.len(), RESERVE);
    let fits = |row: &Value| {
        let is_first = size == RESERVE;
        size += row.to_string().len() + 1;
        is_first || size <= MAX_BYTES
    };
    let shown: Vec<Value> = all.into_iter().map(|row| clean(row, usize::MAX)).take_while(fits).collect();
    let rest = (has_more || shown.len() < count).then(|| next(shown.len()));
    let members = [(name, Some(Value::from(shown))), ("rest", rest.map(Value::from))];
    members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Lists the first rows in words: `: the first; the second; and 3 more.`
pub fn first(rows: &[Value], number: usize, in_words: impl Fn(&Value) -> String) -> String {
    first_of(rows, number, rows.len() as u64, in_words)
}

/// Like [`first`], if `rows` are the beginning of a list with `total` rows.
pub fn first_of(rows: &[Value], number: usize, total: u64, in_words: impl Fn(&Value) -> String) -> String {
    if rows.is_empty() { ".".to_owned() } else { format!(": {}.", joined(rows, number, total, ("; ", "and "), in_words)) }
}

fn joined(
    all: &[Value],
    number: usize,
    total: u64,
    (separator, and): (&str, &str),
    in_words: impl Fn(&Value) -> String,
) -> String {
    let more = total.saturating_sub(all.len().min(number) as u64);
    let more = (more > 0).then(|| format!("{and}{more} more"));
    all.iter().take(number).map(in_words).chain(more).collect::<Vec<_>>().join(separator)
}

/// Returns the fields that differ, by name, except the version and the times of the last changes. Compares custom fields
/// individually.
pub fn differences(from: &Value, to: &Value) -> Vec<Value> {
    let (from, to) = (from.as_object().cloned().unwrap_or_default(), to.as_object().cloned().unwrap_or_default());
    let names = from.keys().chain(to.keys().filter(|name| !from.contains_key(*name)));
    let value = |of: &Map<String, Value>, name: &str| of.get(name).cloned().unwrap_or_default();
    let all = names.map(|name| (name, value(&from, name), value(&to, name)));
    let is_told = |name: &str| !matches!(name, "updated_at" | "status_changed_at" | "version");
    let differing = all.filter(|(name, from, to)| from != to && is_told(name));
    let told = differing.flat_map(|(name, from, to)| match name.as_str() {
        "custom_fields" => {
            let mut fields = differences(&from, &to);
            fields.iter_mut().for_each(|field| field["field"] = format!("custom_fields.{}", text(&field["field"])).into());
            fields
        }
        _ => vec![json!({"field": name, "from": from, "to": to})],
    });
    told.collect()
}

/// Describes changes, such as `status: "in_use" → "returned"`. Describes the first four, and counts the others.
pub fn in_words(changes: &[Value]) -> String {
    let value = |value: &Value| if value.is_null() { "none".to_owned() } else { quoted(value) };
    let one = |change: &Value| {
        let field = match text(&change["field"]) {
            // Custom field names come from users, so they are quoted.
            name if name.bytes().any(|byte| !byte.is_ascii_lowercase() && byte != b'_') => quoted(&change["field"]),
            name => name.to_owned(),
        };
        format!("{field}: {} → {}", value(&change["from"]), value(&change["to"]))
    };
    joined(changes, 4, changes.len() as u64, (", ", ""), one)
}

/// Quotes somebody else's text, so that it can't pass for a part of the sentence.
pub fn quoted(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let (text, mut short) = (clean_hidden(&text).replace('\n', " ").replace('"', "'"), String::new());
    short.extend(text.chars().take(MAX_QUOTED));
    if short.len() < text.len() { format!("\"{short}…\"") } else { format!("\"{short}\"") }
}

/// Removes control characters and invisible characters from all strings and member names. Cuts arrays and objects off after
/// `most` items, and strings after as many characters, but at least [`MAX_QUOTED`].
pub fn clean(value: Value, most: usize) -> Value {
    let short = |text: &str| clean_hidden(text).chars().take(most.max(MAX_QUOTED)).collect::<String>();
    match value {
        Value::String(text) => short(&text).into(),
        Value::Array(values) => values.into_iter().take(most).map(|value| clean(value, most)).collect(),
        Value::Object(members) => {
            members.into_iter().take(most).map(|(name, value)| (short(&name), clean(value, most))).collect()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(answer: Answer) -> usize {
        let result = answer.into_result();
        let line = result.content[0].as_text().map_or(0, |content| content.text.len());
        line + result.structured_content.map_or(0, |data| data.to_string().len())
    }

    #[test]
    fn no_answer_is_longer_than_8_kb() {
        for text in ["x", "東", "\"", "\u{1b}", "a\n"] {
            let long: Value = text.repeat(10_000).into();
            let deep = (0..200).fold(long.clone(), |inner, _| json!({"a": inner}));
            let many: Vec<Value> = (0..3000).map(|number| json!({"tag": number, "name": text.repeat(9)})).collect();
            let names: Map<String, Value> = (0..3000).map(|number| (format!("{text}{number}"), number.into())).collect();
            let named = json!({text.repeat(9_000): {}});
            for value in [long.clone(), deep, many.clone().into(), names.into(), named, json!([[long, many]])] {
                let line = format!("{0}: {0}", quoted(&value));
                assert!(size(Answer::new(line, [("asset", value), ("as_of", "now".into())])) <= MAX_BYTES, "{text}");
            }
        }
    }

    #[test]
    fn rows_without_room_are_the_rest() {
        let all: Vec<Value> = (0..20).map(|number| json!({"number": number, "name": "ä".repeat(255)})).collect();
        let data = rows("assets", all.clone(), false, |shown| format!("after {shown}"));
        let shown = data["assets"].as_array().map_or(0, Vec::len);
        assert!((5..20).contains(&shown), "{shown}");
        assert_eq!(data["rest"], format!("after {shown}"));
        assert!(size(Answer::new("x".repeat(2000), data)) <= MAX_BYTES);
        assert!(!rows("assets", all.into_iter().take(2).collect(), false, |_| String::new()).contains_key("rest"));
    }

    #[test]
    fn quoted_texts_stay_in_their_quotation_marks() {
        assert_eq!(quoted(&json!("Dock\". Apply\nit. \"")), "\"Dock'. Apply it. '\"");
        assert_eq!(quoted(&json!("é".repeat(61))), format!("\"{}…\"", "é".repeat(60)));
        assert_eq!(quoted(&json!({"a": "\u{202e}"})), "\"{'a':'\u{fffd}'}\"");
        assert_eq!(clean(json!({"\u{1b}a": ["b\u{200b}"]}), 9), json!({"\u{fffd}a": ["b\u{fffd}"]}));
    }

    #[test]
    fn only_fields_that_differ_are_told() {
        let (from, to) = (json!({"a": 1, "b": null, "c": "x"}), json!({"a": 1, "b": "y", "d": true}));
        let all = differences(&from, &to);
        assert_eq!(in_words(&all), "b: none → \"y\", c: \"x\" → none, d: none → \"true\"");
        assert!(differences(&to, &to).is_empty());
        let (from, to) = (json!({"custom_fields": {"ram_gb": 16, "b": 1}}), json!({"custom_fields": {"ram_gb": 32, "b": 1}}));
        let all = differences(&from, &to);
        assert_eq!(all, [json!({"field": "custom_fields.ram_gb", "from": 16, "to": 32})]);
        assert_eq!(in_words(&all), "\"custom_fields.ram_gb\": \"16\" → \"32\"");
    }
}
