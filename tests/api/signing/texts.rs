//! The texts of the signing page in each of its languages.

use crate::support::over_http;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// One for each form of the plural.
fn forms(text: &Value) -> Vec<&str> {
    match text {
        Value::String(text) => vec![text.as_str()],
        forms => ["one", "other"].map(|form| forms[form].as_str().unwrap()).to_vec(),
    }
}

/// The names of the values that a text has places for.
fn values(text: &str) -> BTreeSet<&str> {
    text.split('{').skip(1).filter_map(|rest| rest.split('}').next()).collect()
}

#[tokio::test(start_paused = true)]
async fn every_language_has_every_text_of_the_page_and_each_text_is_used() {
    let client = over_http().await.with_key("");
    let page = client.get("/sign").await.text().to_owned();
    let (texts, script) = page.split_once("const TEXTS = ").unwrap().1.split_once(";\n").unwrap();
    let texts: BTreeMap<String, BTreeMap<String, Value>> = serde_json::from_str(texts).unwrap();
    assert!(texts.keys().eq(["de", "en", "es", "fr"]), "{:?}", texts.keys());
    let english = &texts["en"];
    for (language, texts) in &texts {
        assert!(texts.keys().eq(english.keys()), "{language}");
        for (name, text) in texts {
            let expected = values(forms(&english[name])[0]);
            for form in forms(text) {
                assert!(!form.trim().is_empty() && values(form) == expected, "{language} {name}");
            }
        }
    }
    for name in english.keys() {
        let is_of_family = name.split_once('.').is_some_and(|(family, _)| script.contains(&format!("`{family}.${{")));
        assert!(is_of_family || script.contains(&format!("'{name}'")), "{name} is not used");
    }
    let mut used = 0;
    for call in ["t('", "pieces('"] {
        let parts: Vec<&str> = script.split(call).collect();
        // Not the end of another name, such as `createElement('`.
        let is_call = |before: &str| !before.ends_with(|last: char| last.is_alphanumeric() || last == '.');
        for part in parts.windows(2).filter(|part| is_call(part[0])) {
            let name = part[1].split('\'').next().unwrap();
            assert!(english.contains_key(name), "{name} has no text");
            used += 1;
        }
    }
    assert!(used > 60, "only {used} calls were found");
}
