//! The actor of changes made with a link: histories, the feed and receipts name the link and its signer.

use crate::keys::secrets::{items_as_text, traces};
use crate::support::prelude::*;
use shared::domain::receipts::key::check;

fn actor(link: &Link, user: Option<&str>, name: &str) -> Value {
    json!({"key_id": null, "key_name": "signing link", "user_id": user, "user_name": name, "link_id": link.id})
}

async fn feed(api: &Api, client: &Client) -> Vec<Value> {
    api.advance_clock(60);
    client.get("/events?limit=100").await.data().as_array().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn everything_that_a_link_changes_names_the_link_and_its_signer() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    for signer in [Some(user.as_str()), None] {
        let path = started(&client, json!([step("text", "note"), step("text", "own"), signature_step()])).await;
        let (body, name) = match signer {
            Some(user) => (json!({"signer": {"user_id": user}}), "Ada"),
            None => (signer_named("Grace Hopper"), "Grace Hopper"),
        };
        advance(&client, id_of(&path), json!({"note": "by the key", "own": "by the key"})).await.data();
        let link = Link::create(&client, &path, body).await;
        let actor = actor(&link, signer, name);
        link.signer(&client).session().await;
        link.signer(&client).sign(json!({"step_data": {"own": "by the link"}})).await.data();
        link.signer(&client).sign(json!({"step_data": {"sign": SIGNATURE}})).await.data();

        let of_instance = event_chain(&api, &client, id_of(&path)).await;
        let actors: Vec<&Value> = of_instance.iter().map(|event| &event["actor"]).collect();
        assert!(actors[0]["key_id"].is_string() && actors[0].get("link_id").is_none(), "{}", actors[0]);
        assert_eq!((actors[1], &actors[2..]), (actors[0], [&actor, &actor].as_slice()));
        let instance = client.get(&path).await.data();
        let asset = instance["asset_id"].as_str().unwrap();
        let of_asset = event_chain(&api, &client, asset).await;
        assert_eq!(of_asset.last().unwrap()["actor"], actor);
        let of_link = event_chain(&api, &client, &link.id).await;
        assert_eq!((&of_link[0]["type"], &of_link[0]["actor"]), (&json!("link.created"), actors[0]));
        assert_eq!(of_link.len(), 3, "created, opened, used");
        for event in &of_link[1..] {
            assert_eq!((&event["type"], &event["actor"]), (&json!("link.updated"), &actor));
        }
        for path in [path.clone(), format!("/assets/{asset}")] {
            let history = client.get(&format!("{path}/history?verify=true")).await.json();
            assert_eq!((&history["data"][0]["actor"], &history["verification"]["valid"]), (&actor, &json!(true)));
        }
        let feed = feed(&api, &client).await;
        let by_link = feed.iter().filter(|event| event["actor"] == actor).count();
        assert_eq!(by_link, 5, "two of the instance, one of the asset, two of the link");
        assert_eq!(instance["started_by"], actors[0]["key_id"]);
        let found = api.store.writer(client.tenant).verify_chains(|_, _| ()).await.unwrap();
        assert!(found.broken_links.is_empty(), "{:?}", found.broken_links);
    }
}

#[tokio::test(start_paused = true)]
async fn a_receipt_says_who_signed_through_which_link_and_whether_it_was_typed() {
    let client = over_http().await;
    let path = started(&client, json!([step("text", "note"), signature_step(), step("signature", "typed")])).await;
    advance(&client, id_of(&path), json!({"note": "n"})).await.data();
    let link = Link::create(&client, &path, json!({"signer": {"name": "Grace <b>"}, "until": "typed"})).await;
    let body = json!({"step_data": {"sign": SIGNATURE, "typed": SIGNATURE}, "through": "typed", "typed_signatures": ["typed"]});
    link.signer(&client).sign(body).await.data();
    let text = client.get(&format!("{path}/receipt")).await.text().to_owned();
    let receipt = check(&text, &public_keys(&client).await).unwrap();
    let actor = actor(&link, None, "Grace <b>");
    let steps = receipt["steps"].as_array().unwrap();
    assert!(steps[0]["submitted_by"]["key_id"].is_string() && steps[0]["submitted_by"].get("link_id").is_none());
    for step in &steps[1..] {
        assert_eq!((&step["submitted_by"], &step["closed_by"]), (&actor, &actor));
    }
    let image = client.get(&format!("{path}/signatures/typed")).await.bytes;
    let sha256 = shared::domain::values::hex::sha256(&image);
    assert_eq!(steps[1]["value"], json!({"sha256": sha256, "bytes": image.len()}));
    assert_eq!(steps[2]["value"], json!({"sha256": sha256, "bytes": image.len(), "typed": true}));
    let page = client.get(&format!("{path}/receipt?format=html")).await.text().to_owned();
    assert_eq!(page.matches(SIGNATURE).count(), 2);
    assert_eq!(page.matches("\nThe name was typed, not drawn.</td>").count(), 1, "{page}");
    assert_eq!(page.matches("typed, not drawn").count(), 1, "{page}");
    let by = format!("<bdi>Grace &#60;b&#62;</bdi> (signing link)\n<code>{}</code></td>", link.id);
    assert_eq!(page.matches(&by).count(), 2, "{page}");
    assert!(!page.contains("Grace <b>"), "{page}");
    let signer = link.signer(&client);
    assert_eq!(signer.get("/sign/receipt").await.text(), text);
    assert_eq!(signer.get("/sign/receipt?format=json").await.text(), text);
    let own = signer.get("/sign/receipt?format=html").await;
    assert_eq!((own.text(), own.header("content-type")), (page.as_str(), "text/html; charset=utf-8"));
    assert_eq!(signer.get("/sign/receipt?format=pdf").await.field_errors(), ["format"]);
}

#[tokio::test(start_paused = true)]
async fn a_movements_receipt_names_the_link_for_every_asset() {
    let client = over_http().await;
    let process = create_process(&client, json!([signature_step()])).await;
    let movement = start_movement(&client, &process, &client.assets(3).await).await;
    let path = format!("/movements/{}", movement["id"].as_str().unwrap());
    let user = client.user("Ada").await;
    let link = Link::create(&client, &path, json!({"signer": {"user_id": user}})).await;
    let signer = link.signer(&client);
    assert_eq!(signer.get("/sign/receipt").await.problem(409, "CONFLICT")["instance_status"], "in_progress");
    signer.sign(json!({"step_data": {"sign": SIGNATURE}, "typed_signatures": ["sign"]})).await.data();
    let text = client.get(&format!("{path}/receipt")).await.text().to_owned();
    let receipt = check(&text, &public_keys(&client).await).unwrap();
    assert_eq!(receipt["steps"][0]["submitted_by"], actor(&link, Some(&user), "Ada"));
    assert_eq!(receipt["steps"][0]["value"]["typed"], true);
    assert_eq!(signer.get("/sign/receipt").await.text(), text);
    let page = client.get(&format!("{path}/receipt?format=html")).await;
    assert!(page.text().contains(&link.id), "{}", page.text());
    assert_eq!(page.text().matches("typed, not drawn").count(), 1, "{}", page.text());
    assert_eq!(signer.get("/sign/receipt?format=html").await.text(), page.text());
    for instance in movement["instances"].as_array().unwrap() {
        let own = client.get(&format!("/processes/instances/{}/receipt", instance["id"].as_str().unwrap())).await.json();
        assert_eq!(own["receipt"]["steps"][0]["closed_by"]["link_id"], link.id);
    }
}

#[tokio::test(start_paused = true)]
async fn the_secret_of_a_link_is_nowhere_but_in_the_response_that_made_it() {
    let (api, client) = Api::with_tenant().await;
    let path = started(&client, json!([step("text", "note"), signature_step()])).await;
    let reply = client.post_once(&format!("{path}/links"), &signer_named("Grace"), "k").await;
    let link = Link::of(&path, &reply);
    let other = Link::for_guest(&client, &path).await;
    let signer = link.signer(&client);
    let mut texts = vec![signer.get("/sign/session").await.text().to_owned()];
    // The secret must not leak from other fields either.
    let misplaced = json!({"step_data": {"note": link.secret}, "typed_signatures": [link.secret], "x": link.secret});
    signer.sign(misplaced).await.field_errors();
    signer.sign_once(&json!({"step_data": {"note": "n"}}), &link.secret).await.data();
    let done = signer.sign_once(&json!({"step_data": {"sign": SIGNATURE}}), "done").await;
    texts.push(done.text().to_owned());
    client.delete(&other.path).await.data();
    for path in [
        format!("{path}/links"),
        link.path.clone(),
        format!("{path}/receipt"),
        format!("{path}/receipt?format=html"),
        path.clone(),
    ] {
        texts.push(client.get(&path).await.text().to_owned());
    }
    api.advance_clock(60);
    texts.push(client.get("/events?types=link.*&limit=100").await.text().to_owned());
    assert_eq!(serde_json::from_str::<Value>(texts.last().unwrap()).unwrap()["data"].as_array().unwrap().len(), 5);
    let items = items_as_text(&api).await;
    assert!(items.iter().any(|(item_type, _)| item_type == "link"), "the table has no link");
    let everything: String = items.iter().map(|(_, text)| text).chain(&texts).map(|text| text.to_lowercase()).collect();
    for secret in [&link.secret, &other.secret] {
        for (number, trace) in traces(secret).iter().enumerate() {
            assert!(!everything.contains(trace), "the secret is written in form {number}");
        }
        let hash = LinkToken::parse(secret).unwrap().secret.hash().0;
        for (item_type, text) in &items {
            let may_have = ["link", "rate"].contains(&item_type.as_str());
            assert!(may_have || !text.contains(&hash), "{item_type} has the hash of the secret");
        }
        assert!(
            items.iter().any(|(item_type, text)| item_type == "link" && text.contains(&hash)),
            "the hash is in the link's record"
        );
        assert!(texts.iter().all(|text| !text.contains(&hash)), "a response has the hash of the secret");
    }
}
