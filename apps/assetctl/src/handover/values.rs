//! What can be submitted before the signature.

use crate::folded::folded;
use crate::lookup::text;
use serde_json::{Map, Value};
use terminal::clean;

/// # Errors
///
/// Returns a text about a label that is neither `all` nor an entry of a checklist.
pub fn check_labels<'s>(labels: &[String], steps: impl Iterator<Item = &'s Value>) -> Result<(), String> {
    let known: Vec<&str> = steps.flat_map(entries).collect();
    match labels.iter().find(|label| !is_same(label, "all") && !known.iter().any(|entry| is_same(label, entry))) {
        None => Ok(()),
        Some(label) => {
            // An entry can't leave its quotation marks.
            let known = known.iter().map(|entry| clean(entry).replace('"', "'")).collect::<Vec<_>>();
            Err(format!("tick \"{label}\": the checklists have \"{}\"", known.join("\", \"")))
        }
    }
}

fn is_same(label: &str, entry: &str) -> bool {
    folded(label.trim()) == folded(entry)
}

/// In any case, unless another entry of the checklist is the label exactly.
fn ticks(label: &str, entry: &str, checklist: &Value) -> bool {
    is_same(label, "all") || label == entry || is_same(label, entry) && entries(checklist).all(|other| other != label)
}

pub fn entries(step: &Value) -> impl Iterator<Item = &str> {
    step["items"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Of a process definition or an instance.
#[must_use]
pub fn steps_of(process: &Value) -> &[Value] {
    process["steps"].as_array().map(Vec::as_slice).unwrap_or_default()
}

#[must_use]
pub fn is_of_type(step: &Value, kind: &str) -> bool {
    step["type"] == kind
}

/// The step whose user gets the asset: the last one that picks a user.
#[must_use]
pub fn picker(steps: &[Value]) -> Option<&str> {
    steps.iter().rfind(|step| is_of_type(step, "user_picker")).map(|step| text(&step["key"]))
}

/// Values by step key, for the steps from `first` on, and the key of the last step that can be submitted with them: nothing is
/// submitted without a value, and neither is a signature. Beside those `given`, `labels` are ticked in checklists.
#[must_use]
pub fn values<'a>(
    steps: &'a [Value],
    first: usize,
    given: &Map<String, Value>,
    labels: &[String],
) -> (Map<String, Value>, Option<&'a str>) {
    let open = steps.get(first..).unwrap_or_default();
    let value = |step: &Value| {
        let ticked: Vec<Value> =
            entries(step).filter(|entry| labels.iter().any(|label| ticks(label, entry, step))).map(Value::from).collect();
        given.get(text(&step["key"])).cloned().or_else(|| Some(ticked).filter(|list| !list.is_empty()).map(Value::from))
    };
    let values = open.iter().filter_map(|step| Some((text(&step["key"]).to_owned(), value(step)?))).collect();
    let last = open.iter().take_while(|step| value(step).is_some()).last();
    (values, last.map(|step| text(&step["key"])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn steps(kinds: &[&str]) -> Vec<Value> {
        let items = |kind: &str| if kind == "checklist" { json!(["Device", "Bag"]) } else { Value::Null };
        kinds.iter().enumerate().map(|(n, kind)| json!({"type": kind, "key": format!("s{n}"), "items": items(kind)})).collect()
    }

    fn submitted(kinds: &[&str], first: usize, tick: &[&str]) -> (Value, Option<String>) {
        let (steps, labels) = (steps(kinds), tick.iter().map(ToString::to_string).collect::<Vec<_>>());
        check_labels(&labels, steps.iter()).expect("labels");
        let given = picker(&steps).map(|key| (key.to_owned(), json!("mary"))).into_iter().collect();
        let (values, through) = values(&steps, first, &given, &labels);
        (values.into(), through.map(str::to_owned))
    }

    #[test]
    fn steps_are_submitted_up_to_the_first_without_a_value() {
        let onboarding = &["user_picker", "checklist", "signature", "complete"];
        let through = |key: &str| Some(key.to_owned());
        assert_eq!(submitted(onboarding, 0, &[]), (json!({"s0": "mary"}), through("s0")));
        assert_eq!(submitted(onboarding, 0, &["bAG"]), (json!({"s0": "mary", "s1": ["Bag"]}), through("s1")));
        assert_eq!(submitted(onboarding, 1, &["all"]), (json!({"s1": ["Device", "Bag"]}), through("s1")));
        assert_eq!(submitted(onboarding, 2, &["ALL"]), (json!({}), None));
        assert_eq!(submitted(&["text", "user_picker", "signature"], 0, &[]), (json!({"s1": "mary"}), None));
        assert_eq!(submitted(&["user_picker", "signature", "user_picker"], 0, &[]), (json!({"s2": "mary"}), None));
        assert_eq!(submitted(&["checklist", "complete"], 0, &["all"]), (json!({"s0": ["Device", "Bag"]}), through("s0")));
    }

    #[test]
    fn a_label_ticks_the_entry_that_it_is_exactly_else_those_in_another_case() {
        let checklist = json!({"items": ["Bag", "BAG", "Étui"]});
        let ticked = |label: &str| entries(&checklist).filter(|entry| ticks(label, entry, &checklist)).collect::<Vec<_>>();
        assert_eq!((ticked("BAG"), ticked("bag"), ticked("E\u{301}TUI")), (vec!["BAG"], vec!["Bag", "BAG"], vec!["Étui"]));
    }

    #[test]
    fn unknown_labels_are_refused_with_the_known_ones() {
        let (labels, mut checklist) = (["Bag".to_owned(), "Dock".to_owned()], steps(&["checklist"]));
        checklist[0]["items"] = json!(["Bag", "Device\". Apply\nit. \""]);
        let error = check_labels(&labels, checklist.iter()).expect_err("an error");
        assert_eq!(error, "tick \"Dock\": the checklists have \"Bag\", \"Device'. Apply it. '\"");
    }
}
