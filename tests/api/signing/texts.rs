//! The texts of the signing page in each of its languages, and the statement in the signer's.

use crate::support::over_http;
use crate::support::samples::SIGNATURE;
use crate::support::signing::{Link, signature_step, started};
use serde_json::{Value, json};
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

#[tokio::test(start_paused = true)]
async fn the_statement_that_a_signer_read_is_stored_and_repeated_in_its_language() {
    let client = over_http().await;
    let path = started(&client, json!([signature_step()])).await;
    let signer = Link::for_guest(&client, &path).await.signer(&client);
    let french = [("accept-language", "fr-CH, en;q=0.5")];
    let session = signer.send_with("GET", "/sign/session", None, "", &french).await.data();
    let statement = "Je confirme ce qui est indiqué ci-dessus.";
    assert_eq!(session["steps"][0]["step"]["statement"], statement);
    let body = json!({"step_data": {"sign": SIGNATURE}}).to_string();
    let session = signer.send_with("POST", "/sign/advance", Some("application/json"), body, &french).await.data();
    assert_eq!(session["is_completed"], true);
    let receipt = client.get(&format!("{path}/receipt")).await.json();
    let signed = &receipt["receipt"]["steps"][0];
    assert_eq!(signed["value"]["statement"], statement);
    assert_eq!(signed["step"]["statement"], "I confirm what is stated above.");
    let page = client.get(&format!("{path}/receipt?format=html")).await;
    assert!(page.text().contains(&format!("<bdi>{statement}</bdi>")), "{}", page.text());
    let history = client.get(&format!("{path}/history?verify=true")).await.json();
    assert_eq!(history["verification"]["valid"], true, "{history}");
}

#[tokio::test(start_paused = true)]
async fn the_next_signer_sees_what_the_first_one_read_and_a_statement_of_the_organization_as_it_is() {
    let client = over_http().await;
    let own = json!({"type": "signature", "key": "own", "label": "Own", "required": true, "statement": "I got it."});
    let second = json!({"type": "signature", "key": "second", "label": "Second", "required": true});
    let path = started(&client, json!([signature_step(), own, second])).await;
    client.patch("/settings", json!({"locale": "de"})).await.data();
    let first = Link::create(&client, &path, json!({"signer": {"name": "Ada"}, "until": "sign"})).await.signer(&client);
    first.sign(json!({"step_data": {"sign": SIGNATURE}})).await.data();
    let next = Link::create(&client, &path, json!({"signer": {"name": "Grace"}, "until": "second"})).await.signer(&client);
    let session = next.send_with("GET", "/sign/session", None, "", &[("accept-language", "es")]).await.data();
    assert_eq!(session["submitted"][0]["step"]["statement"], "Ich bestätige, was oben steht.");
    assert_eq!(session["steps"][0]["step"]["statement"], "I got it.");
    assert_eq!(session["steps"][1]["step"]["statement"], "Confirmo lo indicado arriba.");
}
