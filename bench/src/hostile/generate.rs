//! Random requests, made from the OpenAPI document: values of the right shape, most of them plausible, some hostile.

use super::attack::{Attack, Sender};
use super::images;
use super::mutate;
use super::target::Target;
use anyhow::{Result, ensure};
use fastrand::Rng;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};
use shared::domain::signing::signature_image::data_url;
use shared::http::endpoints::BASE;

/// Letters, digits, hyphens and underscores are not escaped in URLs.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_');
/// How deep values are nested that the document leaves open.
const MAX_DEPTH: usize = 5;
const METHODS: [&str; 5] = ["GET", "POST", "PATCH", "DELETE", "PUT"];
/// The keys of the steps that the sample processes have.
const STEP_KEYS: [&str; 8] = ["who", "list", "option", "day", "text", "sign", "sure", "done"];
/// Texts that have caused trouble in services like this one.
pub const TEXTS: [&str; 20] = [
    "",
    " ",
    "a",
    "Ärger",
    "e\u{301}",
    "\u{202e}txt.exe",
    "a\u{200b}b",
    "\u{feff}",
    "\u{0}",
    "\n",
    "'; --",
    "<b>x</b>",
    "=1+1",
    "../..",
    "%00",
    "null",
    "NaN",
    "9999-12-31",
    "👩‍👩‍👧",
    "\u{1f1e9}\u{1f1ea}",
];

/// An operation of the document.
struct Operation {
    method: &'static str,
    path: String,
    parameters: Vec<Value>,
    body: Option<Value>,
}

/// Returns what a reference of the document refers to, or the value itself if it is none.
fn referred<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let target = value["$ref"].as_str().and_then(|target| document.pointer(target.trim_start_matches('#')));
    target.unwrap_or(value)
}

/// Makes requests from one seed. The ids in them are those of the run, so two runs differ in these.
pub struct Generator {
    rng: Rng,
    document: Value,
    operations: Vec<Operation>,
    images: Vec<String>,
}

impl Generator {
    /// Creates a generator of requests for the operations of this document.
    pub fn new(seed: u64, document: Value) -> Result<Self> {
        let mut operations = Vec::new();
        for (path, item) in document["paths"].as_object().into_iter().flatten() {
            for method in METHODS {
                let operation = &item[method.to_lowercase()];
                if operation.is_object() {
                    let parameters = operation["parameters"].as_array().into_iter().flatten();
                    let parameters = parameters.map(|parameter| referred(&document, parameter).clone()).collect();
                    let body = operation.pointer("/requestBody/content/application~1json/schema").cloned();
                    operations.push(Operation { method, path: format!("{BASE}{path}"), parameters, body });
                }
            }
        }
        ensure!(operations.len() >= 30, "the document has only {} operations", operations.len());
        let mut with_rest = images::black(3, 2)?;
        with_rest.extend(b"more");
        let images = [images::black(3, 2)?, images::black(2000, 2000)?, images::black(4097, 1)?, with_rest, b"GIF89a".to_vec()];
        let images = images.iter().map(|image| data_url(image)).collect();
        Ok(Self { rng: Rng::with_seed(seed), document, operations, images })
    }

    /// Returns a request, and whose key it has.
    pub fn attack(&mut self, target: &Target) -> (Sender, Attack) {
        let operation = self.rng.usize(..self.operations.len());
        let is_for_signers = self.operations[operation].path.starts_with("/v1/sign/");
        let sender = match self.rng.u8(..20) {
            0 => Sender::Nobody,
            1 => Sender::Stranger,
            2 => Sender::Exhausted,
            3..6 => Sender::Reader,
            6 => Sender::Signer,
            _ if is_for_signers => Sender::Signer,
            _ => Sender::Admin,
        };
        let Operation { method, path, parameters, body } = &self.operations[operation];
        let (method, path, parameters, body) = (*method, path.clone(), parameters.clone(), body.clone());
        let collection = path.split("/{").next().unwrap_or_default();
        let step = self.rng.choice(STEP_KEYS).unwrap_or_default();
        let id = self.id(target, collection);
        let link = self.id(target, &format!("{collection}/{id}/links"));
        let mut url = path.replace("{id}", &id).replace("{link_id}", &link).replace("{key}", step);
        let mut query = Vec::new();
        for parameter in parameters.iter().filter(|parameter| parameter["in"] == "query") {
            if self.rng.u8(..3) == 0 {
                let value = self.value(&parameter["schema"], parameter["name"].as_str().unwrap_or_default(), target, 0);
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                query.push((parameter["name"].as_str().unwrap_or_default().to_owned(), text));
            }
        }
        mutate::query(&mut self.rng, &mut query);
        if !query.is_empty() {
            url.push('?');
            url.push_str(&query.iter().map(|(name, value)| format!("{name}={}", escape(value))).collect::<Vec<_>>().join("&"));
        }
        let mut value = body.map(|schema| self.value(&schema, "", target, 0));
        if let Some(value) = &mut value {
            mutate::json(&mut self.rng, value);
        }
        let mut bytes = value.map(|value| value.to_string().into_bytes()).unwrap_or_default();
        mutate::bytes(&mut self.rng, &mut bytes);
        let mut attack = Attack::new(method, url, bytes);
        mutate::head(&mut self.rng, &mut attack);
        (sender, attack)
    }

    /// Returns an id: mostly that of a resource of this collection that is the tenant's own.
    fn id(&mut self, target: &Target, collection: &str) -> String {
        let [own, others] = target.resources();
        let chosen = match self.rng.u8(..20) {
            0 => None,
            1 | 2 => self.rng.choice(others),
            3 | 4 => self.rng.choice(own),
            _ => self.rng.choice(own.iter().filter(|resource| resource.collection == collection).collect::<Vec<_>>()),
        };
        chosen.map_or_else(|| escape(&self.text()), |resource| resource.id.clone())
    }

    fn text(&mut self) -> String {
        (*self.rng.choice(TEXTS).unwrap_or_default()).to_owned()
    }

    /// Returns a value of a schema of the document. `name` is that of the property or parameter.
    fn value(&mut self, schema: &Value, name: &str, target: &Target, depth: usize) -> Value {
        if schema["$ref"].is_string() {
            let referred = referred(&self.document, schema).clone();
            return self.value(&referred, name, target, depth);
        }
        if let Some(choices) = schema["anyOf"].as_array().or_else(|| schema["oneOf"].as_array()) {
            // The first is the type itself; null is mostly the last.
            let choice = if self.rng.u8(..8) == 0 { self.rng.usize(..choices.len()) } else { 0 };
            return self.value(&choices[choice].clone(), name, target, depth);
        }
        if let Some(values) = schema["enum"].as_array() {
            return self.rng.choice(values).cloned().unwrap_or_default();
        }
        match name {
            "step_data" => return self.step_data(target),
            "custom_fields_schema" => return self.json_schema(0),
            "custom_fields" => return self.any(0),
            _ => {}
        }
        match schema["type"].as_str().unwrap_or_default() {
            "object" => self.object(schema, target, depth),
            "array" => {
                let least = schema["minItems"].as_u64().unwrap_or(0) as usize;
                let count = least + self.rng.usize(..4);
                (0..count).map(|_| self.value(&schema["items"], name, target, depth + 1)).collect()
            }
            "integer" => json!(self.integer()),
            "number" => json!(f64::from(self.rng.u32(..1_000_000)) / 100.0),
            "boolean" => json!(self.rng.bool()),
            _ => json!(self.string(schema, name, target)),
        }
    }

    fn object(&mut self, schema: &Value, target: &Target, depth: usize) -> Value {
        let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut object = Map::new();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let is_wanted = required.contains(&name.as_str()) || self.rng.u8(..3) == 0;
            if is_wanted && depth < MAX_DEPTH {
                object.insert(name.clone(), self.value(property, name, target, depth + 1));
            }
        }
        Value::Object(object)
    }

    fn integer(&mut self) -> u64 {
        match self.rng.u8(..6) {
            0 => 0,
            1 => u64::from(u32::MAX),
            2 => u64::MAX,
            _ => self.rng.u64(1..100),
        }
    }

    fn string(&mut self, schema: &Value, name: &str, target: &Target) -> String {
        let number = self.rng.u32(..100_000);
        if self.rng.u8(..12) == 0 {
            return self.text();
        }
        match (schema["format"].as_str().unwrap_or_default(), name) {
            ("uuid", _) => self.id(target, collection_of(name)),
            ("date", _) => format!("20{:02}-{:02}-{:02}", number % 100, number % 13, number % 32),
            ("date-time", _) => format!("2{:03}-12-31T23:59:{:02}Z", number % 1000, number % 61),
            (_, "email") => format!("a{number}@example.com"),
            (_, "code") => format!("Z{}", number % 9999),
            (_, "slug") => format!("process-{number}"),
            (_, "website") => format!("https://{number}.example.com/"),
            (_, "asset_tag_template") => "{PREFIX}-{TYPE_CODE}-NNNN".to_owned(),
            (_, "key") => format!("step_{number}"),
            (_, "sort") => "-name".to_owned(),
            _ => format!("{name} {number}"),
        }
    }

    /// Returns values of some steps.
    fn step_data(&mut self, target: &Target) -> Value {
        let mut step_data = Map::new();
        for key in STEP_KEYS {
            let value = match key {
                _ if self.rng.bool() => continue,
                "who" => json!(self.id(target, collection_of(key))),
                "list" => json!(["a", "b"]),
                "option" => json!("x"),
                "day" => json!("2026-02-28"),
                "text" => json!(self.text()),
                "sign" => json!(self.rng.choice(&self.images)),
                _ => json!(true),
            };
            step_data.insert(key.to_owned(), value);
        }
        Value::Object(step_data)
    }

    /// Returns a JSON Schema that may compile.
    fn json_schema(&mut self, depth: usize) -> Value {
        const PATTERNS: [&str; 8] = ["^a+$", r"\pL", r"\pL{20}%", "(a{9}){9}", "(?i)straße", "(?=a)b", "[", r"^\d{4}-\d{2}$"];
        if depth >= MAX_DEPTH {
            return json!(self.rng.bool());
        }
        match self.rng.u8(..10) {
            0 => json!({"type": "integer", "minimum": self.integer()}),
            1 => json!({"type": "string", "pattern": self.rng.choice(PATTERNS)}),
            2 => json!({"enum": [self.any(3), self.any(3)]}),
            3 => json!({"$ref": "#/$defs/a", "$defs": {"a": self.json_schema(depth + 1)}}),
            4 => {
                json!({"$ref": *self.rng.choice(["#", "#/properties/a", "http://127.0.0.1/", "#/$defs/none"]).unwrap_or_default()})
            }
            5 => json!({"allOf": [self.json_schema(depth + 1), self.json_schema(depth + 1)]}),
            6 => json!({"not": self.json_schema(depth + 1)}),
            7 => json!({"patternProperties": {*self.rng.choice(PATTERNS).unwrap_or_default(): self.json_schema(depth + 1)}}),
            _ => json!({"type": "object", "properties": {"a": self.json_schema(depth + 1), "b": self.json_schema(depth + 1)}}),
        }
    }

    /// Returns any JSON value; an object at the top.
    pub fn any(&mut self, depth: usize) -> Value {
        match self.rng.u8(..if depth == 0 || depth >= MAX_DEPTH { 1 } else { 6 }) {
            0 if depth >= MAX_DEPTH => Value::Null,
            0 => json!({"a": self.any(depth + 1), "b": self.any(depth + 1)}),
            1 => json!([self.any(depth + 1), self.any(depth + 1)]),
            2 => json!(self.text()),
            3 => json!(self.integer()),
            4 => json!(f64::from(self.rng.i32(..)) * 1e300),
            _ => json!(self.rng.bool()),
        }
    }
}

/// Returns the collection that a property of this name refers to.
fn collection_of(name: &str) -> &'static str {
    match name {
        "asset_id" | "asset_ids" => "/v1/assets",
        "asset_type_id" => "/v1/catalog/asset-types",
        "manufacturer_id" => "/v1/catalog/manufacturers",
        "model_id" => "/v1/catalog/models",
        "process_id" => "/v1/processes",
        _ => "/v1/users",
    }
}

/// Escapes a part of a URL (RFC 3986 §2.1).
fn escape(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}
