//! Asset tags: templates, number ranges and collisions.

use crate::support::prelude::*;

#[tokio::test(start_paused = true)]
async fn tags_follow_the_template_and_a_full_range_goes_on_with_one_more_digit() {
    let (api, client) = Api::with_tenant().await;
    let laptop = client.asset_type("Laptop", "LAP", "physical").await;
    let set = json!({"asset_tag_prefix": "ACME", "asset_tag_template": "{PREFIX}/{TYPE_CODE}/{YY}{MM}/NNN"});
    client.patch("/settings", set).await.data();
    let tag = async |body| client.post("/assets", body).await.data()["asset_tag"].as_str().unwrap().to_owned();
    assert_eq!(tag(json!({"name": "a"})).await, "ACME/GEN/2603/001");
    assert_eq!(tag(json!({"name": "b", "asset_type_id": laptop})).await, "ACME/LAP/2603/001");
    assert_eq!(tag(json!({"name": "c", "asset_type_id": laptop})).await, "ACME/LAP/2603/002");
    api.advance_clock(31 * 24 * 3600);
    assert_eq!(tag(json!({"name": "d"})).await, "ACME/GEN/2604/001");

    client.patch("/settings", json!({"asset_tag_template": "A-1NNN"})).await.data();
    let tag = async || client.post("/assets", json!({"name": "x"})).await.data()["asset_tag"].as_str().unwrap().to_owned();
    assert_eq!((tag().await, tag().await), ("A-1001".into(), "A-1002".into()));
    client.patch("/settings", json!({"asset_tag_template": "A-NNN"})).await.data();
    // Moves the counter of A-NNN to where its tags collide with tags of A-1NNN.
    let range = "A-NNN".parse::<shared::domain::tenants::tenant::TagTemplate>().unwrap();
    let range = range.range(&"AST".parse().unwrap(), None, api.now());
    let store = api.store.writer(client.tenant);
    while store.next_number(&range, 1).await.unwrap() < 999 {}
    assert_eq!(tag().await, "A-1000");
    assert_eq!(tag().await, "A-1003");
}

#[tokio::test(start_paused = true)]
async fn an_import_takes_every_tag_that_a_template_makes() {
    let client = over_http().await;
    let templates =
        ["Bu\u{308}ro-NNN", "a b-NNN", "{TYPE_CODE}-NNN\u{1f600}", &format!("{}-NNN", "F".repeat(60))].map(str::to_owned);
    for template in &templates {
        client.patch("/settings", json!({"asset_tag_template": template})).await.data();
        let made = client.post("/assets", json!({"name": "x"})).await.data();
        let tag = made["asset_tag"].as_str().unwrap();
        let reply = client.import("/assets", "?match=asset_tag", &format!("asset_tag,name\n{tag},x\n")).await;
        assert_eq!(outcomes(&reply), ["unchanged"], "{}", reply.text());
    }
    let exported = client.export("/assets/export").await.concat();
    assert_eq!(outcomes(&client.import("/assets", "?match=id", &exported).await), ["unchanged"; 4]);
    assert_eq!(client.total("/assets?asset_tag=B%C3%BCro-001").await, 1);
    for new in [".", "Büro-002", "a b", &"x".repeat(65)] {
        assert_eq!(client.post("/assets", json!({"name": "x", "asset_tag": new})).await.field_errors(), ["/asset_tag"]);
        assert_eq!(outcomes(&client.import("/assets", "", &format!("name,asset_tag\nx,{new}\n")).await), ["refused"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_free_tag_is_found_after_many_taken_ones() {
    let client = over_http().await;
    client.patch("/settings", json!({"asset_tag_template": "A-0NNN"})).await.data();
    for _ in 0..70 {
        client.asset(json!({"name": "x"})).await;
    }
    client.patch("/settings", json!({"asset_tag_template": "A-NNNN"})).await.data();
    let tag = client.post("/assets", json!({"name": "x"})).await.data()["asset_tag"].as_str().unwrap().to_owned();
    assert!(("A-0071".."A-0200").contains(&tag.as_str()), "{tag}");
}

#[tokio::test(start_paused = true)]
async fn asset_is_created_with_an_existing_tag_that_never_changes() {
    let client = over_http().await;
    let made = client.post("/assets", json!({"name": "Laptop", "asset_tag": "Inv/0143"})).await;
    assert_eq!((made.status.as_u16(), made.data()["asset_tag"].clone()), (201, json!("Inv/0143")));
    for path in ["/assets/by-tag/Inv%2F0143", "/assets/by-tag/INV%2F0143", "/assets/by-tag/%20Inv%2F0143%20"] {
        let found = client.get(path).await;
        assert_eq!((found.data(), found.header("etag")), (made.data(), made.header("etag")));
    }
    client.get("/assets/by-tag/INV-0144").await.problem(404, "NOT_FOUND");
    let path = format!("/assets/{}", made.id());
    assert_eq!(client.patch(&path, json!({"asset_tag": "other"})).await.field_errors(), ["/asset_tag"]);
    assert_eq!(client.patch(&path, json!({"asset_tag": "Inv/0143", "name": "Notebook"})).await.data()["name"], "Notebook");
    // URLs can't contain `.` and `..` as path segments.
    for invalid in [json!(""), json!("."), json!(".."), json!("two words"), json!("Ä1"), json!("x".repeat(65)), json!(7)] {
        assert_eq!(client.post("/assets", json!({"name": "x", "asset_tag": invalid})).await.field_errors(), ["/asset_tag"]);
    }
    let double = json!({"name": "x", "asset_tag": "iNV/0143"});
    for dry_run in ["", "?dry_run=true"] {
        let problem = client.post(&format!("/assets{dry_run}"), double.clone()).await.problem(409, "DUPLICATE");
        assert_eq!((&problem["asset_id"], &problem["field"]), (&json!(made.id()), &json!("asset_tag")));
    }
    let planned = client.post("/assets?dry_run=true", json!({"name": "x", "asset_tag": "T1"})).await.data();
    assert_eq!((&planned["asset_tag"], &planned["id"]), (&json!("T1"), &json!(null)));
    client.delete(&path).await;
    client.get("/assets/by-tag/Inv%2F0143").await.problem(404, "NOT_FOUND");
    client.post("/assets", double).await.problem(409, "DUPLICATE");
}

#[tokio::test(start_paused = true)]
async fn every_creation_accepts_a_tag_and_generated_numbers_skip_it() {
    let client = over_http().await;
    let batch = [
        json!({"op": "create", "body": {"name": "a", "asset_tag": "AST-000002"}}),
        json!({"op": "create", "body": {"name": "b"}}),
    ];
    let made = client.batch("/assets/batch", &batch).await.data();
    let tag = |made: &Value, index: usize| made[index]["data"]["asset_tag"].clone();
    assert_eq!((tag(&made, 0), tag(&made, 1)), (json!("AST-000002"), json!("AST-000001")));
    assert_eq!(client.post("/assets", json!({"name": "c"})).await.data()["asset_tag"], "AST-000003");
    let twice = [
        json!({"op": "create", "body": {"name": "a", "asset_tag": "X"}}),
        json!({"op": "create", "body": {"name": "b", "asset_tag": "x"}}),
    ];
    client.batch("/assets/batch", &twice).await.problem(409, "DUPLICATE");
    assert_eq!(outcomes(&client.import("/assets", "", "name,asset_tag\na,X\nb,x\n").await), ["created", "refused"]);
    let put = async |body: Value| client.put("/assets/by-serial/S1", &body).await;
    assert_eq!(put(json!({"name": "d", "asset_tag": "D1"})).await.data()["asset_tag"], "D1");
    assert_eq!(put(json!({"name": "d", "asset_tag": "d1"})).await.status, 200);
    assert_eq!(put(json!({"name": "d", "asset_tag": "D2"})).await.field_errors(), ["/asset_tag"]);
    let csv = "name,asset_tag\nd,D1\ne,E1\nf,\n";
    assert_eq!(outcomes(&client.import("/assets", "?match=asset_tag", csv).await), ["unchanged", "refused", "refused"]);
    let all = "?match=asset_tag&create_unmatched=true";
    assert_eq!(outcomes(&client.import("/assets", all, csv).await), ["unchanged", "created", "created"]);
    assert_eq!(client.get("/assets/by-tag/e1").await.data()["name"], "e");
    let reply = client.import("/assets", "", "name,asset_tag\ng,G1\nh,e1\n").await;
    assert_eq!(
        (outcomes(&reply), &reply.data()[1]["errors"][0]["code"]),
        (vec!["created".into(), "refused".into()], &json!("DUPLICATE"))
    );
}

#[tokio::test(start_paused = true)]
async fn generated_tag_skips_many_given_tags_in_few_updates() {
    let (api, client) = Api::with_tenant().await;
    let brought: String = (1..200).map(|n| format!("a,AST-{n:06}\n")).collect();
    api.faults.take_requests();
    let reply = client.import("/assets", "", &format!("name,asset_tag\n{brought}b,\n")).await;
    assert_eq!(outcomes(&reply), vec!["created"; 200]);
    let updates = api.faults.take_requests().into_iter().filter(|(operation, _)| operation == "UpdateItem").count();
    assert!(updates < 40, "{updates} steps");
}

#[tokio::test(start_paused = true)]
async fn a_tag_is_found_in_two_round_trips_and_only_in_its_tenant() {
    let (api, client) = Api::with_tenant().await;
    client.asset(json!({"name": "x", "asset_tag": "T1"})).await;
    client.get("/assets/by-tag/T1").await.data();
    let (_, cost) = api.cost(async { client.get("/assets/by-tag/T1").await.data() }).await;
    assert!(cost.round_trips <= 2 && cost.calls <= 3 && cost.read_units <= 3.0, "{cost:?}");
    api.tenant().await.get("/assets/by-tag/T1").await.problem(404, "NOT_FOUND");
    client.scoped(&["users:read"]).await.get("/assets/by-tag/T1").await.problem(403, "FORBIDDEN");
}

#[tokio::test(start_paused = true)]
async fn generated_tag_skips_a_tag_given_in_the_same_batch() {
    let next = json!({"op": "create", "body": {"name": "own", "asset_tag": "ast-000001"}});
    let after = json!({"op": "create", "body": {"name": "own", "asset_tag": "AST-000002"}});
    let generated = json!({"op": "create", "body": {"name": "generated"}});
    for operations in [
        [next.clone(), generated.clone(), after.clone()],
        [generated.clone(), after.clone(), next.clone()],
        [after, next, generated],
    ] {
        let client = over_http().await;
        let planned = client.batch("/assets/batch?dry_run=true", &operations).await;
        assert_eq!(statuses(&planned), [201; 3], "{}", planned.text());
        let made = client.batch("/assets/batch", &operations).await;
        assert_eq!(statuses(&made), [201; 3], "{}", made.text());
        let generated = made.data().as_array().unwrap().iter().find(|it| it["data"]["name"] == "generated").unwrap().clone();
        assert_eq!(generated["data"]["asset_tag"], "AST-000003");
    }
}

#[tokio::test(start_paused = true)]
async fn errors_of_an_aborted_import_name_no_asset_that_was_not_created() {
    let client = over_http().await;
    let reply = client.import("/assets", "?on_error=abort", "name,asset_tag\na,inv-1\nb,INV-1\n").await;
    assert_eq!(outcomes(&reply), ["skipped", "refused"]);
    assert_eq!(reply.data()[0]["id"], json!(null));
    assert_eq!(reply.data()[1]["errors"][0].get("asset_id"), None, "{}", reply.text());
    let existing = client.post("/assets", json!({"name": "a", "asset_tag": "inv-1"})).await.id();
    let reply = client.import("/assets", "?on_error=abort", "name,asset_tag\nb,INV-1\n").await;
    assert_eq!(reply.data()[0]["errors"][0]["asset_id"], existing);
}
