//! `assetctl type`: adds and changes asset types, with the schemas of their custom fields.

use crate::config::Connection;
use crate::error::{CliError, EXIT_SUCCESS, Result};
use crate::http::{Client, new_run_id, object, take, unreadable, wrong_parameter};
use crate::lookup::{self, id_of, items, text};
use crate::offboard::DRY_RUN;
use crate::output::print_json;
use crate::set::assignment;
use clap::{Args, Subcommand};
use domain::values::json;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use terminal::{examples, print, record};

/// Types of JSON Schema. Other types of `--field` are formats of a string.
const TYPES: [&str; 5] = ["string", "number", "integer", "boolean", "array"];
const SCHEMA: &str = "custom_fields_schema";

#[derive(Debug, Subcommand)]
pub enum Type {
    /// Add an asset type
    #[command(after_help = examples("assetctl type add LAP Laptop --field ram_gb:integer:required\nassetctl type add LIC \"Software licence\" --kind logical --schema licence.json"))]
    Add(Add),
    /// Change an asset type's fields (name, code, kind), and its custom fields
    #[command(after_help = examples("assetctl type change LAP name=Notebook --field imei:string --dry-run\nassetctl type change LAP --schema laptop.json"))]
    Change(Change),
}

#[derive(Debug, Args)]
pub struct Add {
    /// Code for asset tags, such as LAP
    code: String,
    /// Display name
    name: String,
    /// Kind of the assets: physical or logical
    #[arg(long, default_value = "physical")]
    kind: String,
    #[command(flatten)]
    schema: Schema,
}

#[derive(Debug, Args)]
pub struct Change {
    /// The asset type: its code or its name
    #[arg(value_name = "TYPE")]
    asset_type: String,
    /// New values of fields
    #[arg(value_name = "FIELD=VALUE", value_parser = assignment)]
    values: Vec<(String, String)>,
    #[command(flatten)]
    schema: Schema,
}

#[derive(Debug, Args)]
pub struct Schema {
    /// Add a custom field, or replace it: --field ram_gb:integer:required; a type is string, number, integer, boolean, array, date,
    /// date-time, email or uri
    #[arg(long = "field", value_name = "NAME:TYPE[:required]", value_parser = Field::parse)]
    fields: Vec<Field>,
    /// Replace the schema of the custom fields by the JSON Schema in this file
    #[arg(long = "schema", value_name = "FILE")]
    file: Option<PathBuf>,
    /// Show the type as it would be, and write nothing
    #[arg(long)]
    dry_run: bool,
}

/// A custom field of `--field`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    name: String,
    kind: String,
    is_required: bool,
}

impl Field {
    fn parse(text: &str) -> Result<Self, String> {
        let (rest, is_required) = text.strip_suffix(":required").map_or((text, false), |rest| (rest, true));
        let (name, kind) = rest.rsplit_once(':').ok_or("must be NAME:TYPE or NAME:TYPE:required, such as ram_gb:integer")?;
        Ok(Self { name: name.to_owned(), kind: kind.to_owned(), is_required })
    }

    fn property(&self) -> Value {
        match TYPES.contains(&self.kind.as_str()) {
            true => json!({"type": self.kind}),
            false => json!({"type": "string", "format": self.kind}),
        }
    }
}

impl Schema {
    /// Returns the new schema; `None` if the options don't change it. `current` can be null.
    fn changed(&self, current: &Value) -> Result<Option<Value>> {
        let base = match &self.file {
            Some(path) => read(path)?,
            None if self.fields.is_empty() => return Ok(None),
            None => current.clone(),
        };
        let mut schema =
            if let Value::Object(schema) = base { schema } else { Map::from_iter([("type".to_owned(), "object".into())]) };
        for field in &self.fields {
            let required = items(schema.get("required").unwrap_or(&Value::Null)).iter();
            let others = required.filter(|name| **name != *field.name).cloned();
            let required: Vec<Value> = others.chain(field.is_required.then(|| field.name.clone().into())).collect();
            schema.insert("required".to_owned(), required.into());
            let properties = schema.entry("properties").or_insert_with(|| json!({}));
            if let Value::Object(properties) = properties {
                properties.insert(field.name.clone(), field.property());
            }
        }
        Ok(Some(schema.into()))
    }
}

fn read(path: &Path) -> Result<Value> {
    let text = std::fs::read_to_string(path).map_err(|error| CliError::file(path, &error))?;
    let schema = json::parse(&text).ok().filter(Value::is_object);
    schema.ok_or_else(|| CliError::Usage(format!("{} is not a JSON Schema, an object", path.display())))
}

pub async fn asset_type(command: &Type, connection: &Connection, is_json: bool) -> Result<u8> {
    let client = Client::new(connection)?;
    let (verbs, dry_run, written) = match command {
        Type::Add(options) => (["Would add", "Added"], options.schema.dry_run, add(&client, options).await),
        Type::Change(options) => (["Would be", "Changed"], options.schema.dry_run, change(&client, options).await),
    };
    let written = written.map_err(wrong_parameter)?;
    if is_json {
        print_json(&json!({"asset_type": written, "dry_run": dry_run}))?;
        return Ok(EXIT_SUCCESS);
    }
    let [planned, done] = verbs;
    let name = format!("{} {}, {}", text(&written["code"]), text(&written["name"]), text(&written["kind"]));
    let members = [(if dry_run { planned } else { done }, name), ("Fields", fields(&written[SCHEMA]))];
    print(&record(members.into_iter().filter(|(_, text)| !text.is_empty()), terminal::width()))?;
    Ok(EXIT_SUCCESS)
}

async fn add(client: &Client, options: &Add) -> Result<Value> {
    let Add { code, name, kind, schema } = options;
    let mut body = json!({"code": code, "name": name, "kind": kind});
    if let Some(schema) = schema.changed(&Value::Null)? {
        body[SCHEMA] = schema;
    }
    match schema.dry_run {
        true => client.post("catalog/asset-types", DRY_RUN, &body, None).await,
        false => client.post("catalog/asset-types", &[], &body, Some(&new_run_id()?)).await,
    }
}

async fn change(client: &Client, options: &Change) -> Result<Value> {
    let path = format!("catalog/asset-types/{}", id_of(&lookup::asset_type(client, &options.asset_type).await?));
    let (mut document, etag) = client.document(&path, &[]).await?;
    let (current, etag) = (object(take(&mut document, "data"))?, etag.ok_or_else(unreadable)?);
    let value = |value: &String| if value.is_empty() { Value::Null } else { value.as_str().into() };
    let mut body: Map<String, Value> = options.values.iter().map(|(name, text)| (name.clone(), value(text))).collect();
    if let Some(schema) = options.schema.changed(&current[SCHEMA])? {
        body.insert(SCHEMA.to_owned(), schema);
    }
    if body.is_empty() {
        return Err(CliError::Usage("give a new value, such as name=Laptop, --field or --schema".into()));
    }
    client.patch(&path, if options.schema.dry_run { DRY_RUN } else { &[] }, &body.into(), etag).await
}

/// Lists the custom fields of a schema, such as `ram_gb: integer, required`.
fn fields(schema: &Value) -> String {
    let is_required = |name: &str| items(&schema["required"]).iter().any(|required| required == name);
    let kind = |property: &Value| match (property["format"].as_str(), &property["type"]) {
        (Some(format), _) => format.to_owned(),
        (None, Value::String(kind)) => kind.clone(),
        (None, Value::Null) => "any of its values".to_owned(),
        (None, kinds) => items(kinds).iter().map(text).collect::<Vec<_>>().join(" or "),
    };
    let properties = schema["properties"].as_object().into_iter().flatten();
    let field = |(name, property): (&String, &Value)| {
        format!("{name}: {}{}", kind(property), if is_required(name) { ", required" } else { "" })
    };
    properties.map(field).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_added_to_a_schema_and_replaced_in_it() {
        let fields = ["ram_gb:integer", "a:b:date:required", "color:string"].map(|text| Field::parse(text).expect(text)).to_vec();
        assert!(Field::parse("ram_gb").is_err());
        let schema = Schema { fields, file: None, dry_run: false };
        let current = json!({"properties": {"color": {"enum": ["red"]}, "os": {"type": "string"}}, "required": ["color", "os"]});
        let expected = json!({
            "properties": {
                "color": {"type": "string"}, "os": {"type": "string"}, "ram_gb": {"type": "integer"},
                "a:b": {"type": "string", "format": "date"}
            },
            "required": ["os", "a:b"]
        });
        assert_eq!(schema.changed(&current).expect("a schema"), Some(expected.clone()));
        assert_eq!(super::fields(&expected), "color: string; os: string, required; ram_gb: integer; a:b: date, required");
        let unchanged = Schema { fields: Vec::new(), file: None, dry_run: false };
        assert_eq!(unchanged.changed(&current).expect("no schema"), None);
    }
}
