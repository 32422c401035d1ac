//! The examples in docs/openapi.json: requests and responses of a small company's day, recorded from the service.

mod day;
mod recorder;

use crate::support::prelude::*;
use jsonschema::Validator;
use recorder::Scenario;
use shared::domain::webhooks::WebhookEvents;
use tokio::sync::OnceCell;

/// This operation's example would be the whole document.
const WITHOUT_EXAMPLE: &str = "get_openapi";
/// Media types of responses that need an example. Images and pages need none.
const WITH_EXAMPLE: [&str; 3] = ["application/json", "text/csv", "application/x-ndjson"];

/// Examples, and the document with them.
pub struct Recorded {
    examples: Value,
    pub text: String,
    document: Value,
}

/// Returns the examples, which are recorded once for all tests.
pub async fn recorded() -> &'static Recorded {
    static RECORDED: OnceCell<Recorded> = OnceCell::const_new();
    RECORDED
        .get_or_init(async || {
            let examples = record_all().await;
            let document = dev_server::document::document(serde_json::from_value(examples.clone()).unwrap()).unwrap();
            let text = serde_json::to_string_pretty(&document).unwrap() + "\n";
            Recorded { examples, document: serde_json::to_value(document).unwrap(), text }
        })
        .await
}

async fn record_all() -> Value {
    let scenario = Scenario::begin().await;
    let pipeline = day::subscribe(&scenario).await;
    day::choose_settings(&scenario).await;
    let people = day::add_people(&scenario).await;
    let catalog = day::fill_catalog(&scenario).await;
    let laptop = day::buy_assets(&scenario, &people, &catalog).await;
    let grace = day::give_key(&scenario, &people).await;
    day::hand_over(&grace, &people, &laptop).await;
    day::move_together(&scenario, &catalog).await;
    day::sign_by_link(&scenario, &people).await;
    day::leave_company(&scenario, &catalog).await;
    day::follow_changes(&scenario).await;
    day::read_reports(&scenario, &people, &laptop).await;
    day::meet_problems(&scenario, &people, &catalog, &laptop).await;
    day::clean_up(&scenario).await;
    day::deliver(&scenario, pipeline).await;
    scenario.end()
}

/// Returns the example that viewers show for a schema: the schema's own, or one built from its parts' examples.
fn shown(document: &Value, schema: &Value) -> Option<Value> {
    let schema = at(document, schema);
    let choice = ["anyOf", "oneOf"].iter().find_map(|choices| schema[choices].get(0));
    if let Some(own) = schema["examples"].get(0) {
        return Some(own.clone());
    } else if let Some(choice) = choice {
        return shown(document, choice);
    } else if let Some(items) = schema.get("items") {
        return Some(json!([shown(document, items)?]));
    }
    let required = schema["required"].as_array()?.iter().map(|name| name.as_str().unwrap());
    required.map(|name| Some((name.to_owned(), shown(document, &schema["properties"][name])?))).collect()
}

/// Checks an operation's examples against its schemas.
struct Check<'a> {
    document: &'a Value,
    operation: &'a Value,
    examples: &'a Value,
    faults: &'a mut Vec<String>,
    /// Compiled schemas: compiling is slow in a debug build, and many operations share them.
    validators: &'a mut HashMap<String, Validator>,
}

impl Check<'_> {
    /// Checks that all of these media types have an example, recorded and in the document, that matches the schema.
    fn contents(&mut self, place: &str, contents: &Value, examples: &Value, needed: &[&str]) {
        for (media_type, content) in contents.as_object().into_iter().flatten() {
            let shown = content.get("example").cloned().or_else(|| shown(self.document, &content["schema"]));
            let Some((shown, recorded)) = shown.zip(examples.get(media_type)) else {
                let is_needed = needed.is_empty() || needed.contains(&media_type.as_str());
                self.faults.extend(is_needed.then(|| format!("{place}: no example of {media_type}")));
                continue;
            };
            let validator = self.validators.entry(content["schema"].to_string()).or_insert_with(|| {
                let schema = json!({"allOf": [content["schema"]], "components": self.document["components"]});
                jsonschema::validator_for(&schema).unwrap()
            });
            for example in [&shown, recorded] {
                self.faults.extend(validator.iter_errors(example).map(|error| format!("{place}: {error}")));
            }
        }
    }

    fn operation(&mut self) {
        let id = self.operation["operationId"].as_str().unwrap();
        let body = at(self.document, &self.operation["requestBody"]);
        self.contents(id, &body["content"], &self.examples["request"], &[]);
        let responses = self.operation["responses"].as_object().unwrap();
        let known = |(status, _): &(&String, &Value)| responses.contains_key(status.as_str());
        let unknown = self.examples["responses"].as_object().into_iter().flatten().filter(|response| !known(response));
        self.faults.extend(unknown.map(|(status, _)| format!("{id}: {status} is not described")));
        for (status, response) in responses.iter().filter(|(status, _)| status.starts_with('2')) {
            let response = at(self.document, response);
            let examples = &self.examples["responses"][status];
            if id != WITHOUT_EXAMPLE {
                self.contents(&format!("{id} {status}"), &response["content"], examples, &WITH_EXAMPLE);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_operation_has_examples_in_the_document_that_fit_its_schemas() {
    let Recorded { examples, document, .. } = recorded().await;
    let operations = document["paths"].as_object().unwrap().values().flat_map(|item| item.as_object().unwrap().values());
    let (mut faults, mut validators) = (Vec::new(), HashMap::new());
    for operation in operations.filter(|operation| operation["operationId"].is_string()) {
        let examples = &examples["operations"][operation["operationId"].as_str().unwrap()];
        Check { document, operation, examples, faults: &mut faults, validators: &mut validators }.operation();
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_events_has_an_example_that_fits_the_schema() {
    let Recorded { examples, document, .. } = recorded().await;
    let content = &document["webhooks"]["event"]["post"]["requestBody"]["content"]["application/json"];
    let schema = json!({"allOf": [content["schema"]], "components": document["components"]});
    let validator = jsonschema::validator_for(&schema).unwrap();
    for kind in WebhookEvents::known_names().filter(|name| name.ends_with(".*")) {
        let example = &examples["webhooks"][&kind];
        assert_eq!(&content["examples"][&kind]["value"], example, "{kind}");
        let errors: Vec<_> = validator.iter_errors(example).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{kind}: {errors:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_code_of_a_problem_has_an_example() {
    let Recorded { examples, document, .. } = recorded().await;
    let codes = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/problems.md")).unwrap();
    // | 409 | `IN_USE` | … |
    let codes = codes.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        Some((cells.next()?.parse::<u16>().ok()?, cells.next()?.trim_matches('`').to_owned()))
    });
    let codes: Vec<(u16, String)> = codes.collect();
    assert!(codes.len() > 20, "{codes:?}");
    let components = &document["components"];
    let schema = json!({"$ref": "#/components/schemas/Problem", "components": components});
    let validator = jsonschema::validator_for(&schema).unwrap();
    for (status, code) in &codes {
        let problem = &examples["problems"][code];
        assert_eq!((&problem["status"], &problem["code"]), (&json!(status), &json!(code)));
        assert!(validator.is_valid(problem), "{problem}");
        // The 405 is not an example of an operation, because it comes from an unsupported method.
        if code != "METHOD_NOT_ALLOWED" {
            assert_eq!(components["examples"][code]["value"], *problem, "{code}");
        }
    }
    assert_eq!(examples["problems"].as_object().unwrap().len(), codes.len());
}
