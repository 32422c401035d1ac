//! Users, owners of keys, and offboarding, which starts the return of all of a user's assets.

use crate::support::prelude::*;

#[tokio::test(start_paused = true)]
async fn a_new_user_has_every_field() {
    let client = over_http().await;
    let reply = client.post("/users", json!({"email": "Ada@Example.com", "display_name": "Ada"})).await;
    assert_eq!(reply.status, 201);
    assert_eq!(reply.header("location"), format!("/v1/users/{}", reply.id()));
    assert_json_snapshot!(reply.json(), {".data.id" => "[id]", ".data.created_at" => "[time]", ".data.updated_at" => "[time]"}, @r#"
    {
      "data": {
        "id": "[id]",
        "email": "Ada@Example.com",
        "display_name": "Ada",
        "role": "viewer",
        "is_active": true,
        "last_login_at": null,
        "erased_at": null,
        "created_at": "[time]",
        "updated_at": "[time]"
      }
    }
    "#);
    assert_eq!(client.get(&format!("/users/{}", reply.id())).await.json(), reply.json());
}

#[tokio::test(start_paused = true)]
async fn email_addresses_are_unique_ignoring_case() {
    let (api, client) = Api::with_tenant().await;
    let ada = client.post("/users", json!({"email": "ada@example.com", "display_name": "Ada"})).await.id();
    let eve = client.post("/users", json!({"email": "eve@example.com", "display_name": "Eve"})).await.id();
    let before = api.dump().await;
    let again = client.post("/users", json!({"email": "ADA@example.COM", "display_name": "Other"})).await;
    let taken = again.problem(409, "DUPLICATE");
    assert_eq!((&taken["field"], &taken["user_id"]), (&json!("email"), &json!(ada)));
    client.patch(&format!("/users/{eve}"), json!({"email": "Ada@example.com"})).await.problem(409, "DUPLICATE");
    assert_eq!(api.dump().await, before);
    for wide in ["ａｄａ@example.com", "ADA@Ｅxample．com"] {
        client.post("/users", json!({"email": wide, "display_name": "Other"})).await.problem(409, "DUPLICATE");
        let found = client.get(&format!("/users?email={}", wide)).await.data();
        assert_eq!(found[0]["id"], ada, "{wide}");
        let rows = format!("email,display_name\n{wide},Ada\n");
        assert_eq!(outcomes(&client.import("/users", "?match=email&dry_run=true", &rows).await), ["updated"], "{wide}");
        let rows = format!("name,assigned_to_email\nPhone,{wide}\n");
        assert_eq!(outcomes(&client.import("/assets", "?dry_run=true", &rows).await), ["created"], "{wide}");
        let rows = format!("email,display_name\n{wide},Ada\nada@example.com,Ada\n");
        assert_eq!(outcomes(&client.import("/users", "?match=email", &rows).await), ["refused", "refused"], "{wide}");
    }
    // E-mail addresses are compared with full case folding, like searches.
    client.post("/users", json!({"email": "STRASSE@example.com", "display_name": "S"})).await.data();
    client.post("/users", json!({"email": "straße@example.com", "display_name": "S"})).await.problem(409, "DUPLICATE");
    let first = client.post("/users", json!({"email": "Ju\u{308}rgen@example.com", "display_name": "J"})).await;
    assert_eq!(first.data()["email"], "Ju\u{308}rgen@example.com", "the address is stored as it was sent");
    for same in ["J\u{fc}rgen@example.com", "J\u{dc}RGEN@EXAMPLE.COM", "JU\u{308}RGEN@example.com"] {
        let refused = client.post("/users", json!({"email": same, "display_name": "J"})).await;
        assert_eq!(refused.problem(409, "DUPLICATE")["user_id"], first.id(), "{same}");
    }
    client.post("/users", json!({"email": "jurgen@example.com", "display_name": "J"})).await.data();
    // A user's own address in a different case is not a duplicate, a freed address can be used again, and other tenants are
    // independent.
    client.patch(&format!("/users/{ada}"), json!({"email": "ADA@example.com"})).await.data();
    client.patch(&format!("/users/{ada}"), json!({"email": "lovelace@example.com"})).await.data();
    client.patch(&format!("/users/{eve}"), json!({"email": "ada@example.com"})).await.data();
    client.delete(&format!("/users/{eve}")).await.data();
    client.post("/users", json!({"email": "eve@example.com", "display_name": "New Eve"})).await.data();
    let other = api.tenant().await;
    other.post("/users", json!({"email": "ada@example.com", "display_name": "Ada"})).await.data();
}

#[tokio::test(start_paused = true)]
async fn a_user_with_assets_can_be_deactivated_but_not_deleted() {
    let client = over_http().await;
    let user = client.user("Ada").await;
    let path = format!("/users/{user}");
    let mut assets = Vec::new();
    for name in ["a", "b"] {
        let asset = format!("/assets/{}", client.asset(json!({"name": name})).await);
        client.patch(&asset, json!({"assigned_to": user})).await.data();
        assets.push(asset);
    }
    assert_eq!(client.delete(&path).await.problem(409, "IN_USE")["count"], 2);
    client.patch(&path, json!({"is_active": false})).await.data();
    client.patch(&assets[0], json!({"name": "still assigned"})).await.data();
    client.patch(&assets[0], json!({"assigned_to": null})).await.data();
    assert_eq!(client.patch(&assets[0], json!({"assigned_to": user})).await.field_errors(), ["/assigned_to"]);
    client.delete(&assets[1]).await;
    assert_eq!(client.delete(&path).await.data()["display_name"], "Ada");
    client.get(&path).await.problem(404, "NOT_FOUND");
}

#[tokio::test(start_paused = true)]
async fn invalid_fields_of_a_user_are_refused_and_a_dotless_i_makes_another_address() {
    let client = over_http().await;
    let body = json!({"email": "nobody", "display_name": "", "role": "king", "is_active": "yes", "last_login_at": null});
    let errors = client.post("/users", body).await.field_errors();
    assert_eq!(errors, ["/display_name", "/email", "/is_active", "/last_login_at", "/role"]);
    assert_eq!(client.post("/users", json!({})).await.field_errors(), ["/display_name", "/email"]);

    let kadi = client.user("kadi").await;
    let other = json!({"email": "kadı@example.com", "display_name": "Kadı"});
    let rows = "name,assigned_to_email\nLaptop,kadı@example.com\n";
    assert_eq!(outcomes(&client.import("/assets", "", rows).await), ["refused"]);
    assert_ne!(client.post("/users", other).await.id(), kadi);
    assert_eq!(client.get("/users?email=KADI@example.com").await.data()[0]["id"], kadi);
}

#[tokio::test(start_paused = true)]
async fn search_finds_an_address_in_another_width() {
    let (api, client) = Api::with_tenant().await;
    let without_index = api.replica(0, 0).client(&client);
    for (email, name) in [("ｇｒａｃｅ@example.com", "Ｒear Admiral"), ("hopper@example.com", "Ensign")] {
        client.post("/users", json!({"email": email, "display_name": name})).await.data();
    }
    for (words, name) in [
        ("grace@example.com", "Ｒear Admiral"),
        ("ＧＲＡＣＥ", "Ｒear Admiral"),
        ("rear", "Ｒear Admiral"),
        ("ｈopper@Example", "Ensign"),
    ] {
        let words: String = words.bytes().map(|byte| format!("%{byte:02X}")).collect();
        for client in [&client, &without_index] {
            let found = client.get(&format!("/users?q={words}")).await.data();
            assert_eq!((found.as_array().unwrap().len(), &found[0]["display_name"]), (1, &json!(name)), "{words}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn users_are_searched_and_filtered() {
    let client = over_http().await;
    for (name, role, is_active) in
        [("Ada Lovelace", "admin", true), ("Jürgen Müller", "viewer", true), ("Old Ada", "viewer", false)]
    {
        let email = format!("{}@example.com", name.replace([' ', 'ü'], "").to_lowercase());
        client.post("/users", json!({"email": email, "display_name": name, "role": role, "is_active": is_active})).await.data();
    }
    for (query, names) in [
        ("", vec!["Old Ada", "Jürgen Müller", "Ada Lovelace"]),
        ("?q=ADA", vec!["Old Ada", "Ada Lovelace"]),
        ("?q=M%C3%9CLLER", vec!["Jürgen Müller"]),
        ("?q=example.com%20love", vec!["Ada Lovelace"]),
        ("?role=viewer&is_active=true", vec!["Jürgen Müller"]),
        ("?is_active=false", vec!["Old Ada"]),
        ("?q=nobody", vec![]),
    ] {
        let reply = client.get(&format!("/users{query}")).await.json();
        let found: Vec<&str> =
            reply["data"].as_array().unwrap().iter().map(|user| user["display_name"].as_str().unwrap()).collect();
        assert_eq!(found, names, "{query}");
        assert_eq!(reply["meta"]["total"], names.len());
    }
    assert_eq!(client.get("/users?role=x&is_active=1&page=0").await.field_errors(), ["is_active", "page", "role"]);
}

#[tokio::test(start_paused = true)]
async fn me_returns_the_key_and_the_end_of_a_rotated_secret_in_one_round_trip() {
    let (api, client) = Api::with_tenant().await;
    let body =
        json!({"name": "scanner", "scopes": ["assets:read"], "rate_limit_per_minute": 7, "expires_at": "2027-01-01T00:00:00Z"});
    let key = client.post("/keys", body).await.data();
    let me = client.with_key_of(&key).get("/me").await.data();
    let expected = json!({
        "key": {
            "id": key["id"], "name": "scanner", "prefix": key["prefix"], "scopes": ["assets:read"],
            "expires_at": "2027-01-01T00:00:00.000Z", "rate_limit_per_minute": 7, "created_at": key["created_at"]
        },
        "tenant": {"id": client.tenant.to_string(), "name": "Acme", "time_zone": "UTC", "locale": "en"},
        "user": null
    });
    assert_eq!(me, expected);
    client.patch("/settings", json!({"name": "New Acme", "time_zone": "Europe/Berlin"})).await.data();
    let tenant = client.get("/me").await.data()["tenant"].clone();
    assert_eq!((&tenant["name"], &tenant["time_zone"]), (&json!("New Acme"), &json!("Europe/Berlin")));
    let other = api.tenant().await;
    assert_eq!(other.get("/me").await.data()["tenant"]["id"], other.tenant.to_string());

    let key = client.post("/keys", json!({"name": "x", "scopes": ["assets:read"]})).await.data();
    let old = client.with_key_of(&key);
    old.get("/me").await.data();
    // In its first minute, a key shares the limit of the key that created it.
    api.advance_clock(60);
    api.meter.take();
    assert_eq!(old.get("/me").await.data()["key"]["expires_at"], Value::Null);
    let cost = api.meter.take();
    // Reads: the key, the tenant, the key's count and, once a minute, the tenant's limit.
    assert_eq!((cost.round_trips, cost.calls), (1, 4), "{cost:?}");
    let path = format!("/keys/{}/rotate", key["id"].as_str().unwrap());
    client.post(&path, json!({"grace_seconds": 60})).await.data();
    assert!(old.get("/me").await.data()["key"]["expires_at"].is_string());
}

#[tokio::test(start_paused = true)]
async fn me_returns_the_owner_of_the_key_and_the_effective_scopes() {
    let client = over_http().await;
    let body = json!({"email": "ada@example.com", "display_name": "Ada", "role": "viewer"});
    let ada = client.post("/users", body).await.id();
    let key = json!({"name": "ada's", "scopes": ["assets:read", "assets:write", "keys:read"], "user_id": ada});
    let bound = client.with_new_key(key).await;
    let me = bound.get("/me").await.data();
    assert_eq!(me["key"]["scopes"], json!(["assets:read"]));
    assert_eq!(me["user"], json!({"id": ada, "email": "ada@example.com", "display_name": "Ada", "role": "viewer"}));
    client.patch(&format!("/users/{ada}"), json!({"role": "technician", "display_name": "Countess"})).await.data();
    let me = bound.get("/me").await.data();
    assert_eq!(
        (&me["key"]["scopes"], &me["user"]["display_name"]),
        (&json!(["assets:read", "assets:write"]), &json!("Countess"))
    );
    client.patch(&format!("/users/{ada}"), json!({"is_active": false})).await.data();
    bound.get("/me").await.problem(401, "UNAUTHORIZED");
}

async fn in_use(client: &Client, user: &str, count: usize) -> Vec<String> {
    join_all((0..count).map(|n| client.asset(json!({"name": format!("n{n}"), "status": "in_use", "assigned_to": user})))).await
}

async fn offboard(client: &Client, user: &str, body: Value) -> Value {
    client.post(&format!("/users/{user}/offboard"), body).await.data()
}

fn asset_ids(rows: &Value) -> Vec<String> {
    let mut ids: Vec<String> = rows.as_array().unwrap().iter().map(|row| row["asset_id"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    ids
}

fn sorted(mut ids: Vec<String>) -> Vec<String> {
    ids.sort();
    ids
}

#[tokio::test(start_paused = true)]
async fn offboarding_starts_returns_together_and_names_the_other_assets() {
    let client = over_http().await;
    let user = client.user("Ada").await;
    let laptops = in_use(&client, &user, 3).await;
    let stocked = client.assigned_asset("in stock", &user).await;
    let repaired = in_use(&client, &user, 1).await.remove(0);
    let repair = system_process(&client, "repair").await;
    let repair = client.post(&format!("/processes/{repair}/start"), json!({"asset_id": repaired})).await.id();

    let plan = client.post(&format!("/users/{user}/offboard?dry_run=true"), json!({})).await;
    assert_eq!(plan.headers["dry-run"], "true");
    let document = served_document();
    let schema = json!({"$ref": "#/components/schemas/OffboardingResult", "components": document["components"]});
    assert_eq!(jsonschema::validate(&schema, &plan.json()).err().map(|error| error.to_string()), None, "as described");
    let plan = plan.data();
    assert_eq!(client.get(&format!("/users/{user}")).await.data()["is_active"], true, "nothing is written");
    let done = offboard(&client, &user, json!({})).await;
    assert_eq!(plan["movements"][0]["id"], Value::Null);
    for field in ["user", "process", "not_started", "in_progress", "instances", "has_more"] {
        assert_eq!(plan[field], done[field], "{field} of the plan");
    }
    assert_eq!(asset_ids(&plan["movements"][0]["assets"]), asset_ids(&done["movements"][0]["assets"]));

    assert_eq!((&done["user"]["is_active"], &done["process"]["slug"]), (&json!(false), &json!("device-return")));
    assert_eq!(done["movements"].as_array().unwrap().len(), 1);
    assert_eq!(done["movements"][0]["number"], "MOV-000001");
    assert_eq!(asset_ids(&done["movements"][0]["assets"]), sorted(laptops.clone()));
    assert_eq!((&done["instances"], &done["in_progress"], &done["has_more"]), (&json!([]), &json!([]), &json!(false)));
    let left: Vec<(&Value, &Value, &Value)> =
        done["not_started"].as_array().unwrap().iter().map(|row| (&row["asset_id"], &row["code"], &row["instance_id"])).collect();
    let expected =
        [(json!(repaired), json!("PROCESS_RUNNING"), json!(repair)), (json!(stocked), json!("WRONG_ASSET_STATUS"), Value::Null)];
    assert_eq!(left, expected.iter().map(|(a, b, c)| (a, b, c)).collect::<Vec<_>>());
    let movement = client.get(&format!("/movements/{}", done["movements"][0]["id"].as_str().unwrap())).await.data();
    assert_eq!(movement["status"], "in_progress");
    assert_eq!(client.total(&format!("/assets?assigned_to={user}")).await, 5, "the user keeps the assets still assigned");

    let again = offboard(&client, &user, json!({})).await;
    assert_eq!((&again["movements"], &again["instances"]), (&json!([]), &json!([])));
    assert_eq!(asset_ids(&again["in_progress"]), sorted(laptops));
    assert_eq!(again["in_progress"][0]["movement_id"], done["movements"][0]["id"]);
    assert_eq!(again["not_started"], done["not_started"]);
}

#[tokio::test(start_paused = true)]
async fn a_user_with_many_assets_gets_several_movements_and_a_single_asset_an_instance() {
    let client = over_http().await;
    let user = client.user("Ada").await;
    in_use(&client, &user, 41).await;
    let done = offboard(&client, &user, json!({"deactivate": false})).await;
    let sizes: Vec<usize> =
        done["movements"].as_array().unwrap().iter().map(|movement| movement["assets"].as_array().unwrap().len()).collect();
    assert_eq!((sizes, done["instances"].as_array().unwrap().len()), (vec![20, 20], 1));
    assert_eq!(done["user"]["is_active"], true);
    assert_eq!(client.total("/processes/instances").await, 41);

    let alone = client.user("Grace").await;
    let single = in_use(&client, &alone, 1).await;
    let done = offboard(&client, &alone, json!({})).await;
    assert_eq!((&done["movements"], asset_ids(&done["instances"])), (&json!([]), single));
    let nothing = client.user("Edith").await;
    let done = offboard(&client, &nothing, json!({})).await;
    assert_eq!((&done["instances"], &done["user"]["is_active"]), (&json!([]), &json!(false)));
}

#[tokio::test(start_paused = true)]
async fn invalid_offboardings_are_refused_and_change_nothing() {
    let client = over_http().await;
    let user = client.user("Ada").await;
    let asset = in_use(&client, &user, 1).await.remove(0);
    let path = format!("/users/{user}/offboard");
    let inactive = system_process(&client, "device-return").await;
    client.patch(&format!("/processes/{inactive}"), json!({"status": "inactive"})).await.data();
    let own = create_process(&client, json!([{"type": "complete", "key": "c", "label": "C"}])).await;
    for (body, status, code) in [
        (json!({}), 409, "PROCESS_INACTIVE"),
        (json!({"process_id": UNKNOWN_ID}), 422, "VALIDATION_ERROR"),
        (json!({"process_id": "x"}), 422, "VALIDATION_ERROR"),
        (json!({"proces_id": own}), 422, "VALIDATION_ERROR"),
    ] {
        let reply = client.post(&path, body.clone()).await;
        assert_eq!((reply.status.as_u16(), &reply.json()["code"]), (status, &json!(code)), "{body}");
    }
    assert_eq!(client.post(&format!("/users/{UNKNOWN_ID}/offboard"), json!({})).await.status, 404);
    for (scopes, missing) in [(["users:write"], "processes:write"), (["processes:write"], "users:write")] {
        let reply = client.scoped(&scopes).await.post(&path, json!({})).await;
        assert_eq!((reply.status.as_u16(), &reply.json()["scope"]), (403, &json!(missing)));
    }
    assert_eq!(client.get(&format!("/users/{user}")).await.data()["is_active"], true);
    assert!(client.get(&format!("/assets/{asset}/history")).await.json()["meta"]["total"] == 1);
    // This asset doesn't have the other process's trigger status.
    let done = offboard(&client, &user, json!({"process_id": own})).await;
    assert_eq!(done["not_started"][0]["code"], "WRONG_ASSET_STATUS");
}

/// Whichever fault a request meets, repeating it completes the offboarding without starting anything twice.
#[tokio::test(start_paused = true)]
async fn disturbed_offboarding_can_be_repeated() {
    let case = async |place, way: Disturbance| {
        let (api, client) = Api::with_tenant().await;
        let user = client.user("Ada").await;
        in_use(&client, &user, 3).await;
        let path = format!("/users/{user}/offboard");
        let send = async || client.send_json("POST", &path, "{}", ("idempotency-key", "k")).await;
        let (reply, is_disturbed) = way.at(&api, place, send).await;
        let done = reply.data();
        let moved = done["movements"].as_array().unwrap().iter().flat_map(|movement| asset_ids(&movement["assets"]));
        let started = moved.count() + asset_ids(&done["in_progress"]).len();
        assert_eq!((started, &done["user"]["is_active"]), (3, &json!(false)), "{way:?} {place}");
        assert_eq!(client.total("/processes/instances").await, 3, "{way:?} {place}");
        is_disturbed
    };
    let failures = [CallFailure::TimedOutBefore, CallFailure::TimedOutAfter].map(Disturbance::Fails);
    at_each_place(&failures, 15, 4, case).await;
    at_each_place(&[Disturbance::IsDropped], 3, 1, case).await;
}
