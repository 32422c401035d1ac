//! Signing links as their creator sees them: creation, lists, scopes, revocation and limits.

use crate::support::prelude::*;

const DEFAULT_SECONDS: u32 = 3 * 24 * 3600;

/// Starts a movement of two assets whose second step is a signature. Returns the paths of the movement and of an instance.
async fn movement(client: &Client) -> (String, String) {
    let process = create_process(client, json!([step("text", "note"), signature_step()])).await;
    let movement = start_movement(client, &process, &client.assets(2).await).await;
    let id = |value: &Value| value["id"].as_str().unwrap().to_owned();
    (format!("/movements/{}", id(&movement)), format!("/processes/instances/{}", id(&movement["instances"][0])))
}

async fn instance(client: &Client) -> String {
    started(client, json!([step("text", "note"), signature_step(), step("complete", "done")])).await
}

fn time(value: &Value) -> Timestamp {
    value.as_str().unwrap().parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_link_shows_its_url_once_and_leads_through_the_next_signature_for_three_days() {
    let client = over_http().await;
    let user = client.user("Ada").await;
    let own_key = client.get("/keys").await.data()[0]["id"].clone();
    let (movement, _) = movement(&client).await;
    for path in [instance(&client).await, movement] {
        let made = client.post(&format!("{path}/links"), json!({"signer": {"user_id": user}})).await;
        let link = Link::of(&path, &made);
        assert_eq!(made.header("location"), format!("/v1{}", link.path));
        let mut data = made.data();
        let url = data["url"].as_str().unwrap();
        assert!(url.contains("/v1/sign#sgn_") && url.matches('#').count() == 1, "{url}");
        data.as_object_mut().unwrap().remove("url");
        assert_eq!((&data["signer"]["user_id"], &data["signer"]["name"]), (&json!(user), &json!("Ada")));
        let until = if path.starts_with("/movements") { "sign" } else { "done" };
        assert_eq!((&data["until"], &data["status"], &data["created_by"]), (&json!(until), &json!("open"), &own_key));
        assert_eq!(time(&data["expires_at"]), time(&data["created_at"]).plus_seconds(DEFAULT_SECONDS));
        for unset in ["opened_at", "used_at", "revoked_at"] {
            assert_eq!(data.get(unset), Some(&Value::Null), "{unset}");
        }
        let (of, other) =
            if path.starts_with("/movements") { ("movement_id", "instance_id") } else { ("instance_id", "movement_id") };
        assert_eq!((&data[of], data.get(other)), (&json!(id_of(&path)), Some(&Value::Null)));
        let read = client.get(&link.path).await;
        let list = client.get(&format!("{path}/links")).await;
        assert_eq!((read.data(), list.data()), (data.clone(), json!([data])));
        assert!(!read.text().contains("sgn_") && !list.text().contains("sgn_") && read.data().get("url").is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn a_signer_is_a_user_or_somebody_with_a_name() {
    let (api, client) = Api::with_tenant().await;
    let path = instance(&client).await;
    let links = format!("{path}/links");
    let guest = json!({"signer": {"name": "Grace Hopper", "email": "grace@example.com"}});
    let guest = client.post(&links, guest).await.data();
    assert_eq!(guest["signer"], json!({"user_id": null, "name": "Grace Hopper", "email": "grace@example.com"}));
    let nameless = client.post(&links, signer_named("Grace")).await.data();
    assert_eq!(nameless["signer"], json!({"user_id": null, "name": "Grace", "email": null}));
    // A user who leaves can sign for the return.
    let user = client.user("Ada").await;
    client.patch(&format!("/users/{user}"), json!({"is_active": false})).await.data();
    assert_eq!(client.post(&links, json!({"signer": {"user_id": user}})).await.data()["signer"]["user_id"], user.as_str());
    let other_tenants = api.tenant().await.user("Ada").await;
    let before = api.dump().await;
    for (signer, place) in [
        (json!({}), "/signer"),
        (json!("Ada"), "/signer"),
        (json!({"user_id": user, "name": "Ada"}), "/signer"),
        (json!({"user_id": user, "email": "ada@example.com"}), "/signer"),
        (json!({"email": "ada@example.com"}), "/signer"),
        (json!({"user_id": UNKNOWN_ID}), "/signer/user_id"),
        (json!({"user_id": other_tenants}), "/signer/user_id"),
        (json!({"user_id": "Ada"}), "/signer/user_id"),
        (json!({"name": ""}), "/signer/name"),
        (json!({"name": "a\u{202e}b"}), "/signer/name"),
        (json!({"name": "x".repeat(256)}), "/signer/name"),
        (json!({"name": "Ada", "email": "no address"}), "/signer/email"),
        (json!({"name": "Ada", "phone": "1"}), "/signer/phone"),
    ] {
        let errors = client.post(&links, json!({"signer": signer})).await.field_errors();
        let is_there = |error: &String| error == place || (place == "/signer" && error.starts_with("/signer/"));
        assert!(!errors.is_empty() && errors.iter().all(is_there), "{signer}: {errors:?}");
    }
    assert_eq!(client.post(&links, json!({})).await.field_errors(), ["/signer"]);
    let both = json!({"signer": {"name": "Ada"}, "colour": "red", "expires_in": 1});
    assert_eq!(client.post(&links, both).await.field_errors(), ["/colour", "/expires_in"]);
    assert_eq!(api.dump().await, before);
}

#[tokio::test(start_paused = true)]
async fn a_link_ends_with_the_step_that_it_names_or_after_a_minute_to_thirty_days() {
    let client = over_http().await;
    let sign = |key: &str| step("signature", key);
    let steps = json!([step("text", "a"), sign("first"), step("text", "b"), sign("second"), step("text", "c")]);
    let path = started(&client, steps).await;
    let until = async |body: Value| client.post(&format!("{path}/links"), body).await;
    let with = |until: &str| json!({"signer": {"name": "Ada"}, "until": until});
    for (submitted, default) in [("", "first"), ("a", "first"), ("first", "second"), ("second", "c")] {
        if !submitted.is_empty() {
            let body = json!({"step_data": {}, "through": submitted});
            client.post(&format!("{path}/advance"), body).await.data();
        }
        assert_eq!(until(signer_named("Ada")).await.data()["until"], default, "after {submitted}");
        assert_eq!(until(with("c")).await.data()["until"], "c");
        if !submitted.is_empty() {
            assert_eq!(until(with(submitted)).await.field_errors(), ["/until"], "{submitted} is submitted");
        }
    }
    for wrong in ["d", "", "C"] {
        assert_eq!(until(with(wrong)).await.field_errors(), ["/until"], "{wrong}");
    }
    assert_eq!(until(json!({"signer": {"name": "Ada"}, "until": 1})).await.field_errors(), ["/until"]);

    let links = format!("{}/links", instance(&client).await);
    let with = |seconds: Value| json!({"signer": {"name": "Ada"}, "expires_in": seconds});
    for seconds in [60, 30 * 24 * 3600] {
        let data = client.post(&links, with(json!(seconds))).await.data();
        assert_eq!(time(&data["expires_at"]), time(&data["created_at"]).plus_seconds(seconds));
    }
    for wrong in [json!(59), json!(30 * 24 * 3600 + 1), json!(-60), json!("60"), json!(60.5), json!(1e20)] {
        assert_eq!(client.post(&links, with(wrong.clone())).await.field_errors(), ["/expires_in"], "{wrong}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_return_ends_with_the_confirmation_of_whoever_receives_the_asset() {
    let client = over_http().await;
    let user = client.user("Ada").await;
    let definition = client.get("/processes?slug=device-return").await.data();
    let steps = definition[0]["steps"].as_array().unwrap();
    let shown = |step: &Value| format!("{} {} {}", step["type"], step["key"], step["required"]).replace('"', "");
    assert_eq!(
        steps.iter().map(shown).collect::<Vec<_>>(),
        [
            "checklist returned_items null",
            "textarea condition null",
            "signature signature true",
            "confirmation received null",
            "complete complete null"
        ]
    );
    let asset = client.asset(json!({"name": "Laptop", "status": "in_use", "assigned_to": user})).await;
    let instance = start(&client, definition[0]["id"].as_str().unwrap(), &asset).await;
    let path = format!("/processes/instances/{instance}");
    let link = Link::create(&client, &path, json!({"signer": {"user_id": user}})).await;
    assert_eq!(link.shown(&client).await["until"], "signature");
    let signer = link.signer(&client);
    let data = json!({"returned_items": ["Device"], "condition": "A scratch"});
    let unsigned = signer.sign(json!({"step_data": data, "through": "signature"})).await;
    assert_eq!(unsigned.field_errors(), ["/step_data/signature"]);
    let body = json!({"step_data": {"condition": "A scratch", "signature": SIGNATURE}, "through": "signature"});
    let session = signer.sign(body).await.data();
    assert_eq!((&session["status"], &session["is_completed"]), (&json!("used"), &json!(false)));
    assert_eq!(client.get(&format!("/assets/{asset}")).await.data()["assigned_to"], user.as_str());
    assert_eq!(advance(&client, &instance, json!({})).await.field_errors(), ["/step_data/received"]);
    let body = json!({"step_data": {"received": true}, "through": "complete"});
    assert_eq!(client.post(&format!("{path}/advance"), body).await.data()["status"], "completed");
    let asset = client.get(&format!("/assets/{asset}")).await.data();
    assert_eq!((&asset["status"], &asset["assigned_to"]), (&json!("returned"), &Value::Null));
}

#[tokio::test(start_paused = true)]
async fn a_process_that_has_ended_and_an_instance_of_a_movement_get_no_link() {
    let (api, client) = Api::with_tenant().await;
    let (movement, of_movement) = movement(&client).await;
    let cancelled = instance(&client).await;
    cancel(&client, id_of(&cancelled)).await.data();
    let completed = instance(&client).await;
    for data in [json!({"note": "n"}), json!({"sign": SIGNATURE}), json!({})] {
        advance(&client, id_of(&completed), data).await.data();
    }
    let before = api.dump().await;
    let refused = client.post(&format!("{of_movement}/links"), signer_named("Ada")).await;
    assert_eq!(refused.problem(409, "CONFLICT")["movement_id"], id_of(&movement));
    for path in [&cancelled, &completed] {
        client.post(&format!("{path}/links"), signer_named("Ada")).await.problem(409, "INSTANCE_CLOSED");
    }
    for unknown in [format!("/processes/instances/{UNKNOWN_ID}"), format!("/movements/{UNKNOWN_ID}"), "/movements/x".to_owned()] {
        client.post(&format!("{unknown}/links"), signer_named("Ada")).await.problem(404, "NOT_FOUND");
        client.get(&format!("{unknown}/links")).await.problem(404, "NOT_FOUND");
    }
    assert_eq!(api.dump().await, before);
    client.post(&format!("{movement}/cancel"), json!({})).await.data();
    client.post(&format!("{movement}/links"), signer_named("Ada")).await.problem(409, "INSTANCE_CLOSED");
}

#[tokio::test(start_paused = true)]
async fn links_are_listed_newest_first_in_pages() {
    let client = over_http().await;
    let (movement, _) = movement(&client).await;
    let other = instance(&client).await;
    Link::for_guest(&client, &other).await;
    for path in [instance(&client).await, movement] {
        let mut ids = Vec::new();
        for _ in 0..3 {
            ids.insert(0, Link::for_guest(&client, &path).await.id);
        }
        let page = async |query: &str| {
            let page = client.get(&format!("{path}/links{query}")).await.json();
            let listed: Vec<String> =
                page["data"].as_array().unwrap().iter().map(|link| link["id"].as_str().unwrap().to_owned()).collect();
            (listed, page["meta"].clone())
        };
        let meta = |page: u32, limit: u32, pages: u32| json!({"total": 3, "page": page, "limit": limit, "total_pages": pages});
        assert_eq!(page("?limit=2").await, (ids[..2].to_vec(), meta(1, 2, 2)));
        assert_eq!(page("?limit=2&page=2").await, (ids[2..].to_vec(), meta(2, 2, 2)));
        assert_eq!(page("?limit=2&page=9").await, (vec![], meta(9, 2, 2)));
        assert_eq!(page("?limit=100").await.0, ids);
        assert_eq!(
            client.get(&format!("{path}/links?limit=101&page=0&status=open")).await.field_errors(),
            ["limit", "page", "status"]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_link_of_another_process_is_not_found() {
    let (api, client) = Api::with_tenant().await;
    let (movement, _) = movement(&client).await;
    for path in [instance(&client).await, movement] {
        let link = Link::for_guest(&client, &path).await;
        let elsewhere = instance(&client).await;
        let before = api.dump().await;
        for path in [format!("{elsewhere}/links/{}", link.id), format!("{path}/links/{UNKNOWN_ID}"), format!("{path}/links/x")] {
            client.get(&path).await.problem(404, "NOT_FOUND");
            client.delete(&path).await.problem(404, "NOT_FOUND");
        }
        assert_eq!(api.dump().await, before);
        link.signer(&client).session().await;
    }
}

/// The domain comes from the gateway's event, not from the request's Host header.
#[tokio::test(start_paused = true)]
async fn the_url_has_the_address_that_the_service_was_reached_at() {
    let (api, client) = Api::with_tenant().await;
    let links = format!("{}/links", instance(&client).await);
    let body = signer_named("Ada").to_string();
    let made = client.send_json("POST", &links, &body, ("host", "192.168.0.7:3000")).await.data();
    assert!(made["url"].as_str().unwrap().starts_with("http://192.168.0.7:3000/v1/sign#sgn_"), "{}", made["url"]);
    let event = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../events/assets/create-201.json")).unwrap();
    let mut event: Value = serde_json::from_str(&event).unwrap();
    let path = json!(format!("/v1{links}"));
    (event["rawPath"], event["requestContext"]["http"]["path"]) = (path.clone(), path);
    (event["routeKey"], event["body"]) = (json!("ANY /v1/processes/{proxy+}"), json!(body));
    event["requestContext"]["routeKey"] = event["routeKey"].clone();
    event["requestContext"]["domainName"] = json!("api.example.com");
    event["headers"]["host"] = json!("evil.example");
    event["headers"]["authorization"] = json!(format!("Bearer {}", client.key));
    let request = lambda_http::request::from_str(&event.to_string()).unwrap().map(Body::new);
    let made = call(&Function::named("processes").router(api.store.clone()), request).await.data();
    assert!(made["url"].as_str().unwrap().starts_with("https://api.example.com/v1/sign#sgn_"), "{}", made["url"]);
}

/// Creates links concurrently. Returns how many were created; the others were refused.
async fn create_at_once(client: &Client, links: &str, count: usize) -> usize {
    let replies = join_all((0..count).map(|_| client.post(links, signer_named("Grace")))).await;
    let (made, refused): (Vec<_>, Vec<_>) = replies.iter().partition(|reply| reply.status == 201);
    refused.iter().for_each(|reply| drop(reply.problem(409, "CONFLICT")));
    made.len()
}

/// Creates links, the first 40 concurrently, until 100 are reached, and checks that further ones are refused.
async fn fill(client: &Client, links: &str, mut count: usize) {
    count += create_at_once(client, links, 40).await;
    // A request that lost too many races can be retried.
    for _ in count..100 {
        assert_eq!(create_at_once(client, links, 1).await, 1);
    }
    let refused = client.post(links, signer_named("Grace")).await.problem(409, "CONFLICT");
    assert_eq!(refused["detail"], "The limit of 100 links is reached.");
    client.post(&format!("{links}?dry_run=true"), signer_named("Grace")).await.problem(409, "CONFLICT");
    assert_eq!(client.total(links).await, 100);
}

#[tokio::test(start_paused = true)]
async fn there_are_at_most_100_links_however_many_are_created_at_once() {
    let (api, client) = Api::with_tenant().await;
    let path = started(&client, json!([signature_step()])).await;
    let links = format!("{path}/links");
    let first = Link::for_guest(&client, &path).await;
    for _ in 0..4 {
        assert_eq!(create_at_once(&client, &links, 20).await, 20);
    }
    fill(&client, &links, 81).await;
    assert_eq!(client.get(&format!("{links}?limit=100")).await.data().as_array().unwrap().len(), 100);
    api.check_invariants(client.tenant, "creations of links").await;
    // Revoked links count toward the limit, too.
    client.delete(&first.path).await.data();
    client.post(&links, signer_named("Grace")).await.problem(409, "CONFLICT");
    // The limit is separate for each process instance.
    Link::for_guest(&client, &started(&client, json!([signature_step()])).await).await;
}
