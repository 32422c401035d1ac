//! `assetctl set` against the real service.

use crate::support::Folder;
use crate::support::service::Service;
use serde_json::{Value, json};

fn asset(service: &Service, tag: &str) -> Value {
    service.get(&format!("/assets/by-tag/{tag}"))["data"].take()
}

fn laptop_type(service: &Service) -> String {
    let schema = json!({"properties": {"ram_gb": {"type": "integer"}, "cost_center": {"type": "string"}}});
    let body = json!({"name": "Laptop", "code": "LAP", "kind": "physical", "custom_fields_schema": schema});
    service.create("/catalog/asset-types", &body)
}

#[test]
fn values_get_the_types_of_their_fields_and_each_change_is_told() {
    let service = Service::start();
    let (laptop, ada) = (laptop_type(&service), service.user("Ada", true));
    let tags = [service.asset("in_stock").1, service.asset("in_use").1];
    let words = [
        tags[0].as_str(),
        &tags[1],
        "location=Berlin/ 2.01",
        "status=in_use",
        "assigned_to=ada@example.org",
        "asset_type=laptop",
        "custom_fields.ram_gb=16",
        "custom_fields.cost_center=0815",
        "purchase_price=2499.00",
        "notes==1+1",
    ];
    let set = |more: &[&str]| service.run(&[&["set"], &words[..], more].concat());
    let plan = set(&["--dry-run"]).ok();
    assert_eq!(plan.stderr, "2 assets would change\n");
    assert_eq!(asset(&service, &tags[0])["location"], Value::Null);
    let done = set(&[]).ok();
    assert_eq!((done.stdout.as_str(), done.stderr.as_str()), (plan.stdout.as_str(), "2 assets changed\n"));
    let row = done.stdout.lines().find(|line| line.starts_with(&tags[0])).unwrap();
    for change in [
        "status: in_stock → in_use",
        "location: none → Berlin / 2.01",
        "asset_type: none → Laptop",
        "assigned_to: none → Ada <ada@example.org>",
        "custom_fields.ram_gb: none → 16",
        "custom_fields.cost_center: none → 0815",
    ] {
        assert!(row.contains(change), "{change}: {}", done.stdout);
    }
    for tag in &tags {
        let asset = asset(&service, tag);
        assert_eq!((&asset["asset_type_id"], &asset["assigned_to"]), (&json!(laptop), &json!(ada)));
        assert_eq!((&asset["location"], &asset["notes"]), (&json!("Berlin / 2.01"), &json!("=1+1")));
        assert_eq!(asset["custom_fields"], json!({"ram_gb": 16, "cost_center": "0815"}));
    }
    let again = set(&[]).ok();
    assert_eq!(again.stderr, "0 assets changed, 2 unchanged\n");
    assert!(again.stdout.contains(&format!("{}  unchanged\n", tags[0])), "{}", again.stdout);
    let cleared = service.run(&["set", &tags[0], "location=", "assigned_to=", "asset_type=", "custom_fields.ram_gb=", "--json"]);
    let row = &cleared.ok().json()["rows"][0];
    assert_eq!((&row["outcome"], &row["asset_tag"]), (&json!("updated"), &json!(tags[0])));
    let change = json!({"field": "location", "old": "Berlin / 2.01", "new": null});
    assert!(row["changes"].as_array().unwrap().contains(&change), "{row}");
    let asset = asset(&service, &tags[0]);
    assert_eq!((&asset["location"], &asset["assigned_to"], &asset["asset_type_id"]), (&Value::Null, &Value::Null, &Value::Null));
    assert_eq!(asset["custom_fields"], json!({"cost_center": "0815"}));
}

#[test]
fn refused_assets_are_told_in_the_services_words_and_the_others_change() {
    let service = Service::start();
    let ((id, running), (_, other)) = (service.asset("in_stock"), service.asset("in_stock"));
    let processes = service.get("/processes?slug=prepare");
    let start = format!("/processes/{}/start", processes["data"][0]["id"].as_str().unwrap());
    service.create(&start, &json!({"asset_id": id}));
    let run = service.run(&["set", &running, &other, "status=scrapped"]);
    assert!(run.code == 3 && run.stderr == "1 asset changed, 1 refused\n", "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains(&format!("{running}  refused: status: ")), "{}", run.stdout);
    assert_eq!(
        (asset(&service, &running)["status"].clone(), asset(&service, &other)["status"].clone()),
        (json!("in_stock"), json!("scrapped"))
    );
    for (words, code, reason) in [
        (&[other.as_str(), "statsu=in_stock"][..], 2, "statsu: unknown column; known: status"),
        (&[&other, "status=in_stock", "status=in_use"], 2, "status is given twice"),
        (&[&other, "id=x"], 2, "id can't be changed"),
        (&[&other], 2, "give a new value, such as status=in_stock"),
        (&["status=in_stock"], 2, "name the assets to change"),
        (
            &["https://a.example/x?id=1", "status=in_stock"],
            1,
            "no asset has the tag or the serial number https://a.example/x?id=1",
        ),
        (&[&other, "assigned_to=eve@example.org"], 1, "no user has the e-mail address eve@example.org"),
        (&[&other, "asset_type=XYZ"], 1, "no single asset type has the code or name XYZ"),
    ] {
        service.run(&[&["set"], words].concat()).tells(code, reason);
    }
}

#[test]
fn more_assets_than_a_request_takes_are_changed() {
    let service = Service::start();
    let rows: String = (0..201).map(|number| format!("Dock {number},D-{number}\n")).collect();
    let folder = Folder::new();
    assert_eq!(service.import(&folder.file("docks.csv", format!("name,asset_tag\n{rows}")), &[]).counts(), [201, 0, 0, 0]);
    let tags: Vec<String> = (0..201).map(|number| format!("D-{number}")).collect();
    let words: Vec<&str> = tags.iter().map(String::as_str).collect();
    let done = service.run(&[&["set", "notes=x"], &words[..]].concat()).ok();
    assert_eq!(done.stderr, "201 assets changed\n");
    assert!(service.assets().iter().all(|asset| asset["notes"] == "x"));
}
