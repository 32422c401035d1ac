//! Erases guests: signers of links who aren't users.

use crate::support::prelude::*;
use crate::support::webhooks::settle;
use shared::domain::people::pseudonym;
use shared::domain::receipts::key::check;

const ADDRESS: &str = "Zyx9Mark@example.com";

/// A completed instance that a guest has signed, with the guest's link.
struct Signed {
    path: String,
    asset: String,
    link: Link,
}

impl Signed {
    fn id(&self) -> LinkId {
        self.link.id.parse().unwrap()
    }

    async fn erase(&self, client: &Client) -> Reply {
        erase_signer(client, &self.link).await
    }
}

async fn erase_signer(client: &Client, link: &Link) -> Reply {
    client.post(&format!("{}/erase", link.path), json!({})).await
}

fn guest(name: &str, address: &str) -> Value {
    json!({"signer": {"name": name, "email": address}, "until": "sign"})
}

/// Creates a link with an idempotency key, so that its response is stored.
async fn link_once(client: &Client, path: &str, body: Value) -> Link {
    let reply = client.post_once(&format!("{path}/links"), &body, &format!("link {path} {body}")).await;
    Link::of(path, &reply)
}

async fn signed_by_guest(client: &Client) -> Signed {
    let steps = json!([step("text", "note"), signature_step(), step("text", "last"), step("complete", "done")]);
    let asset = client.asset(json!({"name": "Laptop"})).await;
    let path = format!("/processes/instances/{}", start(client, &create_process(client, steps).await, &asset).await);
    let link = link_once(client, &path, guest(&format!("{MARK} Gus"), ADDRESS)).await;
    let signer = link.signer(client);
    signer.session().await;
    signer.sign(json!({"step_data": {"note": format!("{MARK} typed")}})).await.data();
    signer.sign_once(&json!({"step_data": {"sign": SIGNATURE}, "typed_signatures": ["sign"]}), "sign").await.data();
    let data = json!({"step_data": {"last": "by IT"}, "through": "done"});
    client.post_once(&format!("{path}/advance"), &data, "last").await.data();
    Signed { path, asset, link }
}

/// Creates links for other guests with the same address, for an instance in progress. Returns the instance's path.
async fn others_with_the_address(client: &Client, count: usize) -> String {
    let path = started(client, json!([signature_step(), step("complete", "done")])).await;
    for number in 0..count {
        link_once(client, &path, guest(&format!("Other {number}"), &ADDRESS.to_uppercase())).await;
    }
    path
}

#[tokio::test(start_paused = true)]
async fn nothing_of_an_erased_guest_is_left_and_every_history_holds() {
    let (api, client) = Api::with_tenant().await;
    let signed = signed_by_guest(&client).await;
    let other = others_with_the_address(&client, 1).await;
    let receipt = format!("{}/receipt", signed.path);
    let (handed_out, keys) = (client.get(&receipt).await.text().to_owned(), public_keys(&client).await);
    let before = check(&handed_out, &keys).unwrap();
    assert!(handed_out.contains(MARK) && items_with(&api, MARK).await.len() > 8);
    let erased = signed.erase(&client).await.data();
    assert_eq!((&erased["done"], &erased["removed"]["addresses"]), (&json!(true), &json!(1)), "{erased}");
    assert_eq!(erased["removed"]["signatures"], 1, "{erased}");
    assert_eq!(items_with(&api, MARK).await, Vec::<String>::new());

    let name = pseudonym(signed.id());
    assert_eq!((&erased["pseudonym"], &erased["link_id"]), (&json!(name), &json!(signed.link.id)));
    let shown = signed.link.shown(&client).await;
    assert_eq!(shown["signer"], json!({"user_id": null, "name": name, "email": null}));
    let listed = client.get(&format!("{other}/links")).await.data();
    assert_eq!(listed[0]["signer"], json!({"user_id": null, "name": "Other 0", "email": null}));
    let instance = client.get(&signed.path).await.data();
    let values = ["note", "sign", "last"].map(|step| instance["step_data"][step].clone());
    assert_eq!(values, [json!(name), json!(name), json!("by IT")], "{instance}");
    for path in [&signed.path, &format!("/assets/{}", signed.asset)] {
        let history = client.get(&format!("{path}/history?verify=true&limit=100")).await.json();
        assert_eq!(history["verification"]["valid"], true, "{path}: {history}");
        assert!(!history.to_string().contains(MARK), "{path}: {history}");
    }
    assert!(client.get(&format!("{}/history", signed.path)).await.text().contains(&name));
    assert_eq!(check(&handed_out, &keys).as_ref(), Ok(&before), "a receipt from before the erasure");
    let text = client.get(&receipt).await.text().to_owned();
    let after = check(&text, &keys).unwrap();
    assert_eq!((&after["erased_people"], text.contains(MARK)), (&json!([signed.link.id]), false), "{text}");
    let page = client.get(&format!("{receipt}?format=html")).await.text().to_owned();
    assert!(page.contains("The data of a person was erased") && page.contains(&name) && !page.contains("<img"), "{page}");
    settle(&api);
    assert!(!client.get("/events?limit=100").await.text().contains(MARK));
    let body = guest(&format!("{MARK} Gus"), ADDRESS);
    let repeated = client.post_once(&format!("{}/links", signed.path), &body, &format!("link {} {body}", signed.path)).await;
    assert_eq!(repeated.status, 409, "the stored response was erased");
    let again = signed.erase(&client).await.data();
    assert_eq!((&again["done"], &again["removed"]["entries"]), (&json!(true), &json!(0)), "{again}");
    api.check_invariants(client.tenant, "an erased guest").await;
}

#[tokio::test(start_paused = true)]
async fn link_of_an_erased_signer_opens_nothing_even_if_it_was_used() {
    let (api, client) = Api::with_tenant().await;
    let ada = client.user("Ada").await;
    for signer in [json!({"name": "Gus"}), json!({"user_id": ada})] {
        let path = started(&client, json!([signature_step()])).await;
        let link = Link::create(&client, &path, json!({"signer": signer})).await;
        // Signed without opening the session first.
        let holder = link.signer(&client);
        holder.sign(json!({"step_data": {"sign": SIGNATURE}, "through": "sign"})).await.data();
        assert_eq!(holder.get("/sign/receipt").await.status, 200);
        if signer["user_id"].is_null() {
            erase_signer(&client, &link).await.data();
        } else {
            client.patch(&format!("/users/{ada}"), json!({"is_active": false})).await.data();
            api.advance_clock(60);
            erase_all(&client, &ada).await;
        }
        for path in ["/sign/session", "/sign/receipt"] {
            assert_eq!(link_status(&holder.get(path).await), "revoked", "{signer}: {path}");
        }
        let shown = link.shown(&client).await;
        assert!(shown["status"] == "revoked" && shown["used_at"].is_string() && shown["opened_at"].is_null(), "{shown}");
        api.advance_clock(11);
        let checked = api.store.writer(client.tenant).check_items(CheckMode::ReadOnly, |_| ()).await.unwrap();
        assert_eq!(checked.findings, []);
    }
}

#[tokio::test(start_paused = true)]
async fn erasure_of_a_guest_waits_for_the_end_of_the_process() {
    let (api, client) = Api::with_tenant().await;
    let path = others_with_the_address(&client, 1).await;
    let link = link_once(&client, &path, guest(MARK, ADDRESS)).await;
    let refused = erase_signer(&client, &link).await.problem(409, "PROCESS_RUNNING");
    assert_eq!((&refused["link_status"], &refused["instance_id"]), (&json!("open"), &json!(id_of(&path))), "{refused}");
    client.delete(&link.path).await.data();
    let refused = erase_signer(&client, &link).await.problem(409, "PROCESS_RUNNING");
    assert!(refused["link_status"] == "revoked" && refused["detail"].as_str().unwrap().contains("cancel"), "{refused}");
    let user = client.user("Ada").await;
    let of_user = link_once(&client, &path, json!({"signer": {"user_id": user}})).await;
    client.post(&format!("{path}/cancel"), json!({})).await.data();
    assert_eq!(erase_signer(&client, &of_user).await.problem(409, "CONFLICT")["user_id"], user);
    let erase = format!("{}/erase", link.path);
    client.scoped(&["users:write", "processes:read"]).await.post(&erase, json!({})).await.problem(403, "FORBIDDEN");
    api.tenant().await.post(&erase, json!({})).await.problem(404, "NOT_FOUND");
    client.post(&format!("{path}/links/{UNKNOWN_ID}/erase"), json!({})).await.problem(404, "NOT_FOUND");
    client.post(&format!("/movements/{}/links/{}/erase", id_of(&path), link.id), json!({})).await.problem(404, "NOT_FOUND");
    assert_eq!(client.post(&erase, json!({"dry_run": true})).await.field_errors(), ["/dry_run"]);
    let before = api.dump().await;
    let counted = client.post(&format!("{erase}?dry_run=true"), json!({})).await.data();
    assert_eq!(api.dump().await, before);
    let done = client.post(&erase, json!({})).await.data();
    assert_eq!(counted, done);
    assert_eq!(done["removed"]["addresses"], 1, "{done}");
    assert_eq!(items_with(&api, MARK).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn guest_of_a_movement_is_erased_from_all_its_instances() {
    let (api, client) = Api::with_tenant().await;
    let process = create_process(&client, json!([step("text", "note"), signature_step()])).await;
    let movement = start_movement(&client, &process, &client.assets(3).await).await;
    let path = format!("/movements/{}", movement["id"].as_str().unwrap());
    let link = link_once(&client, &path, guest(MARK, ADDRESS)).await;
    let data = json!({"step_data": {"note": MARK, "sign": SIGNATURE}, "through": "sign"});
    link.signer(&client).sign(data).await.data();
    let erased = erase_signer(&client, &link).await.data();
    assert_eq!((&erased["done"], &erased["removed"]["signatures"]), (&json!(true), &json!(1)), "{erased}");
    assert_eq!(items_with(&api, MARK).await, Vec::<String>::new());
    let name = pseudonym(link.id.parse::<LinkId>().unwrap());
    let shown = client.get(&path).await.data();
    let values = shown["instances"].as_array().unwrap().iter().map(|instance| &instance["step_data"]);
    assert!(values.clone().count() == 3 && values.clone().all(|data| *data == json!({"note": name, "sign": name})), "{shown}");
    api.check_invariants(client.tenant, "a movement with an erased guest").await;
}

#[tokio::test(start_paused = true)]
async fn erasure_of_a_user_removes_the_addresses_of_the_user_from_links_of_guests() {
    let (api, client, ada) = with_person().await;
    let earlier = "Zyx9Mark.earlier@example.com";
    client.patch(&format!("/users/{}", ada.id), json!({"email": earlier})).await.data();
    let path = others_with_the_address(&client, 2).await;
    link_once(&client, &path, guest("Other", earlier)).await;
    link_once(&client, &path, guest("Somebody else", "somebody@example.com")).await;
    leaves(&api, &client, &ada).await;
    let counted = client.post(&format!("/users/{}/erase?dry_run=true", ada.id), json!({})).await.data();
    let erased = erase(&client, &ada.id).await.data();
    assert_eq!((&erased["removed"]["addresses"], &counted["removed"]["addresses"]), (&json!(3), &json!(3)), "{erased}");
    assert_eq!(items_with(&api, MARK).await, Vec::<String>::new());
    let links = client.get(&format!("{path}/links")).await.data();
    let addresses: Vec<&Value> = links.as_array().unwrap().iter().map(|link| &link["signer"]["email"]).collect();
    assert_eq!(addresses, [&json!("somebody@example.com"), &Value::Null, &Value::Null, &Value::Null]);
    api.check_invariants(client.tenant, "addresses of an erased user").await;
}

#[tokio::test(start_paused = true)]
async fn erasure_with_many_equal_addresses_takes_several_requests() {
    let (api, client) = Api::with_tenant().await;
    for count in [60, 60] {
        others_with_the_address(&client, count).await;
    }
    let signed = signed_by_guest(&client).await;
    let first = signed.erase(&client).await.data();
    assert_eq!((&first["done"], &first["removed"]["addresses"]), (&json!(false), &json!(100)), "{first}");
    assert_eq!(signed.link.shown(&client).await["signer"]["email"], ADDRESS, "kept until the other links are done");
    let second = signed.erase(&client).await.data();
    assert_eq!((&second["done"], &second["removed"]["addresses"]), (&json!(true), &json!(20)), "{second}");
    assert_eq!(items_with(&api, MARK).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn erasure_of_a_guest_interrupted_anywhere_can_be_continued() {
    let case = async |place, way: Disturbance| {
        let (api, client) = Api::with_tenant().await;
        let signed = signed_by_guest(&client).await;
        others_with_the_address(&client, 1).await;
        let (_, is_disturbed) = way.at(&api, place, async || signed.erase(&client).await).await;
        while signed.erase(&client).await.data()["done"] == false {}
        assert_eq!(items_with(&api, MARK).await, Vec::<String>::new(), "{way:?} at {place}");
        let verified = api.store.writer(client.tenant).verify_chains(|_, _| {}).await.unwrap();
        assert_eq!(verified.broken_links, [], "{way:?} at {place}");
        is_disturbed
    };
    let failures = [CallFailure::TimedOutBefore, CallFailure::TimedOutAfter].map(Disturbance::Fails);
    at_each_place(&failures, 25, 2, case).await;
    at_each_place(&[Disturbance::IsDropped], 15, 2, case).await;
}
