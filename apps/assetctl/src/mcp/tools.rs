//! The tools, as `tools.json` describes them.

use crate::error::{CliError, Result};
use crate::mcp::asker::Asker;
use rmcp::model::Tool;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Texts become parts of URLs.
const MAX_TEXT: usize = 2000;

#[derive(Deserialize)]
struct Described<T> {
    /// Plans or applies.
    #[serde(default)]
    writes: bool,
    /// Without these, it doesn't exist.
    scopes: Vec<String>,
    #[serde(flatten)]
    what: T,
}

/// What exists for a key, of what a JSON text describes.
pub fn described<T: DeserializeOwned>(all: &str, asker: &Asker, allow_writes: bool) -> Vec<T> {
    let all: Vec<Described<T>> = serde_json::from_str(all).unwrap_or_default();
    let exists = |one: &Described<T>| (allow_writes || !one.writes) && one.scopes.iter().all(|scope| asker.has(scope));
    all.into_iter().filter(exists).map(|one| one.what).collect()
}

/// The tools that exist for a key. Only a plan has something to apply.
pub fn of(asker: &Asker, allow_writes: bool) -> Vec<Tool> {
    let mut all: Vec<Tool> = described(include_str!("tools.json"), asker, allow_writes);
    if !all.iter().any(|tool| tool.name.starts_with("plan_")) {
        all.retain(|tool| tool.name != "apply");
    }
    all
}

/// Checks the arguments of a call by the tool's schema. Nulls and empty texts, which some assistants send, count as absent.
pub fn check(mut given: Map<String, Value>, tool: &Tool) -> Result<Value> {
    let wrong = |text: String| Err(CliError::Usage(format!("wrong arguments: {text}")));
    given.retain(|_, value| !value.is_null() && value != "");
    let properties = &tool.input_schema["properties"];
    let known = || properties.as_object().map(|all| all.keys().map(String::as_str).collect::<Vec<_>>().join(", "));
    let is_text = |value: &Value| value.as_str().is_some_and(|text| text.len() <= MAX_TEXT);
    for (name, value) in &given {
        let most = properties[name]["maxItems"].as_u64().unwrap_or(u64::MAX);
        let is_list = |all: &Vec<Value>| !all.is_empty() && all.len() as u64 <= most && all.iter().all(is_text);
        let fits = match properties[name]["type"].as_str() {
            None => return wrong(format!("unknown {name}; known: {}", known().unwrap_or_default())),
            Some("integer") => value.is_u64(),
            Some("boolean") => value.is_boolean(),
            Some("array") => value.as_array().is_some_and(is_list),
            Some("object") => value.is_object(),
            Some(_) => is_text(value),
        };
        if !fits {
            return wrong(format!("{name} must be as {}, in texts of at most {MAX_TEXT} bytes", properties[name]));
        }
    }
    let required = texts(tool.input_schema.get("required").unwrap_or(&Value::Null));
    match required.iter().find(|name| !given.contains_key(*name)) {
        Some(missing) => wrong(format!("{missing} is missing")),
        None => Ok(given.into()),
    }
}

/// The texts of an argument.
pub fn texts(argument: &Value) -> Vec<String> {
    argument.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn all() -> Vec<Tool> {
        let described: Vec<Described<Tool>> = serde_json::from_str(include_str!("tools.json")).expect("tools");
        described.into_iter().map(|one| one.what).collect()
    }

    #[test]
    fn every_tool_and_argument_is_described() {
        assert_eq!(all().len(), 11);
        for tool in all() {
            assert!(tool.title.is_some() && tool.description.is_some() && tool.annotations.is_some(), "{}", tool.name);
            assert_eq!(tool.input_schema["additionalProperties"], false);
            assert_eq!(tool.output_schema.expect("a schema")["type"], "object");
            for (name, property) in tool.input_schema["properties"].as_object().expect("properties") {
                assert!(property["type"].is_string() && property["description"].is_string(), "{} {name}", tool.name);
            }
        }
    }

    #[test]
    fn arguments_are_checked_by_the_schema() {
        let tool = all().into_iter().find(|tool| tool.name == "plan_handover").expect("the tool");
        let check =
            |given: Value| check(given.as_object().cloned().unwrap_or_default(), &tool).map_err(|error| error.to_string());
        let fine = json!({"assets": ["AST-1"], "person": "Ada", "process": null});
        assert_eq!(check(fine), Ok(json!({"assets": ["AST-1"], "person": "Ada"})));
        for (given, reason) in [
            (json!({"assets": ["AST-1"]}), "person is missing"),
            (json!({"assets": ["AST-1"], "person": ""}), "person is missing"),
            (json!({"assets": ["AST-1"], "person": "x".repeat(2001)}), "in texts of at most 2000 bytes"),
            (json!({"assets": ["AST-1", "x".repeat(2001)], "person": "Ada"}), "in texts of at most 2000 bytes"),
            (json!({"assets": vec!["AST-1"; 21], "person": "Ada"}), "\"maxItems\":20"),
            (json!({"assets": [], "person": "Ada"}), "assets must be as {"),
            (json!({"assets": "AST-1", "person": "Ada"}), "assets must be as {"),
            (json!({"assets": ["AST-1"], "person": 1}), "person must be as {"),
            (json!({"asset": "AST-1"}), "unknown asset; known: assets, person, process, tick, prepare"),
        ] {
            assert!(check(given.clone()).expect_err("wrong").contains(reason), "{given}");
        }
    }
}
