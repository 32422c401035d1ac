//! Suggestions how to import a file, as other systems export it and as people keep it.

use crate::support::prelude::*;

const RAILINGS: &str = "Price (EUR);Gerät;Hersteller / Modell;Seriennummer;Inv.-Nr.;Bought;Warranty;Owner email;Cost Center;Status;Typ;Farbe;Created at\n\
    1.249,00;Laptop;Lenovo T14;PF3;INV-1;05.03.2025;24 months;ada@example.com;4711;In Storage;Notebook;rot;2020-01-05 10:00:00\n\
    99,50;Dock;Lenovo Dock;n/a;INV-2;14 Feb 2024;36 months;gone@example.com;0815;kaputt;Dock;;2020-01-05 10:00:00\n\
    5;Kabel;BÃ¼ro;;INV-3;2025-03-05;;;;Lager;;;2020-01-05 10:00:00\n";

async fn suggested(client: &Client, path: &str, text: &str) -> Value {
    let reply = client.send("POST", path, Some("text/csv"), text.to_owned()).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.data()
}

/// Returns the parameters as `name=value`.
fn parameters(suggestion: &Value) -> Vec<String> {
    let list = suggestion["parameters"].as_array().unwrap().iter();
    list.map(|parameter| format!("{}={}", parameter["name"].as_str().unwrap(), parameter["value"].as_str().unwrap())).collect()
}

fn doubts(suggestion: &Value) -> String {
    suggestion["doubts"].as_array().unwrap().iter().map(|doubt| doubt.as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

fn field(suggestion: &Value, heading: &str) -> Value {
    let columns = suggestion["columns"].as_array().unwrap();
    columns.iter().find(|column| column["heading"] == heading).unwrap_or_else(|| panic!("no column {heading}"))["field"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_list_that_people_keep_is_understood_by_its_headings_and_values() {
    let client = over_http().await;
    client.asset_type("Notebook", "LAP", "physical").await;
    client.post("/users", json!({"email": "ada@example.com", "display_name": "Ada"})).await.data();
    client.asset(json!({"name": "known", "location": "Berlin / 2.01"})).await;
    let suggestion = suggested(&client, "/assets/import/suggest", RAILINGS).await;
    assert_eq!(
        parameters(&suggestion),
        [
            "delimiter=semicolon",
            "map=Price (EUR)=purchase_price",
            "map=Gerät=name",
            "map=Hersteller / Modell=model",
            "map=Seriennummer=serial_number",
            "map=Inv.-Nr.=asset_tag",
            "map=Bought=purchase_date",
            "map=Owner email=assigned_to_email",
            "map=Cost Center=custom_fields.cost_center",
            "map=Status=status",
            "map=Typ=asset_type_code",
            "value=status:In Storage=in_stock",
            "value=status:Lager=in_stock",
            "value=status:kaputt=in_service",
            "value=asset_type_code:Notebook=LAP",
            "date_format=DD.MM.YYYY",
            "date_format=DD MMM YYYY",
            "decimal=comma",
            "match=serial_number",
        ],
        "{suggestion:#}"
    );
    for (heading, expected) in
        [("Warranty", Value::Null), ("Farbe", Value::Null), ("Created at", Value::Null), ("Gerät", json!("name"))]
    {
        assert_eq!(field(&suggestion, heading), expected, "{heading}");
    }
    let doubts = doubts(&suggestion);
    for told in [
        "Typ: 1 value is no type of assets: Dock.",
        "1 of 2 people are no single user: gone@example.com.",
        "letters are garbled, as in BÃ¼ro",
        "2 rows are without a value to match, and will be refused. Placeholders: n/a.",
    ] {
        assert!(doubts.contains(told), "{told}: {doubts}");
    }
    assert_eq!((&suggestion["list"], &suggestion["rows"]), (&json!("assets"), &json!(3)));
    assert_eq!(client.total("/assets").await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_suggestion_is_imported_as_it_is_and_again_without_a_change() {
    let client = over_http().await;
    client.asset_type("Laptop", "LAP", "physical").await;
    for (text, expected) in [
        (
            "Inventur;;\n2026;;\nGerät;Farbe;Seriennummer\nLaptop;rot;PF3\n",
            &["header_line=3", "delimiter=semicolon", "map=Gerät=name", "map=Seriennummer=serial_number", "match=serial_number"]
                [..],
        ),
        (
            "name,asset_tag,Type\nDock,D-1,laptop\n",
            &["map=Type=asset_type_code", "value=asset_type_code:laptop=LAP", "match=asset_tag", "create_unmatched=true"],
        ),
        ("Name,Site,Building,Room\nTisch,Berlin,HQ,2.01\n", &["map=Name=name", "map=Site / Building / Room=location"]),
    ] {
        let suggestion = suggested(&client, "/assets/import/suggest", text).await;
        assert_eq!(parameters(&suggestion), expected, "{suggestion:#}");
        let unplaced = suggestion["columns"].as_array().unwrap().iter().filter(|column| column["field"].is_null());
        let ignored = unplaced.map(|column| json!({"name": "map", "value": format!("{}=", column["heading"].as_str().unwrap())}));
        let all: Vec<Value> = suggestion["parameters"].as_array().unwrap().iter().cloned().chain(ignored).collect();
        let body = json!({"parameters": all, "text": text});
        assert_eq!(outcomes(&client.post("/assets/import", body.clone()).await), ["created"], "{text}");
        if parameters(&suggestion).iter().any(|parameter| parameter.starts_with("match")) {
            assert_eq!(outcomes(&client.post("/assets/import", body).await), ["unchanged"], "{text}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_caller_may_not_know_is_not_told() {
    let client = over_http().await;
    client.asset_type("Notebook", "LAP", "physical").await;
    client.post("/users", json!({"email": "ada@example.com", "display_name": "Ada"})).await.data();
    client.asset(json!({"name": "known", "location": "Berlin"})).await;
    let text = "name,Typ,E-Mail,Standort\na,Notebook,ada@example.com,Berlin\nb,Notebook,gone@example.com,Berlinn\n";
    let writer = client.scoped(&["assets:write"]).await;
    let hidden = suggested(&writer, "/assets/import/suggest", text).await;
    assert!(!parameters(&hidden).iter().any(|parameter| parameter.starts_with("value=")), "{hidden}");
    let told = doubts(&hidden);
    assert!(told.contains("it isn't known whether these are types") && told.contains("only with the scope users:read"), "{told}");
    assert!(!told.contains("single user") && !told.contains("Berlin"), "{told}");
    let shown = doubts(&suggested(&client, "/assets/import/suggest", text).await);
    assert!(shown.contains("1 of 2 people are no single user: gone@example.com."), "{shown}");
    assert!(shown.contains("Standort: 1 place is new, such as Berlinn.\nStandort: Berlinn is nearly Berlin."), "{shown}");
    client
        .scoped(&["assets:read"])
        .await
        .send("POST", "/assets/import/suggest", Some("text/csv"), text)
        .await
        .problem(403, "FORBIDDEN");
}

#[tokio::test(start_paused = true)]
async fn users_are_suggested_with_joined_names() {
    let client = over_http().await;
    let suggestion = suggested(
        &client,
        "/users/import/suggest",
        "Vorname;Nachname;Mail;Rolle;Abteilung\nAda;Lovelace;ada@example.com;Techniker;IT\n",
    )
    .await;
    let expected = [
        "delimiter=semicolon",
        "map=Vorname + Nachname=display_name",
        "map=Mail=email",
        "map=Rolle=role",
        "value=role:Techniker=technician",
        "match=email",
    ];
    assert_eq!(parameters(&suggestion), expected, "{suggestion:#}");
    assert_eq!(field(&suggestion, "Abteilung"), Value::Null);
    let people = suggested(&client, "/assets/import/suggest", "First name,Last name,Email\nAda,L,a@example.com\n").await;
    assert_eq!(people["list"], "users");
}

/// Only the beginning counts: the cost doesn't grow with repeated delimiters, headings or values.
#[tokio::test(start_paused = true)]
async fn a_hostile_file_is_looked_at_only_in_its_beginning() {
    let client = over_http().await;
    for text in [
        ",".repeat(1_000_000),
        format!("{}\n", "a,".repeat(500_000)),
        format!("name\n{}", "\"x\n".repeat(250_000)),
        format!("Kauf,Preis\n{}", "1.1.11,1.1\n".repeat(90_000)),
        "\"".repeat(1_000_000),
        "[".repeat(1_000_000),
    ] {
        let suggestion = suggested(&client, "/assets/import/suggest", &text).await;
        assert!(suggestion["columns"].as_array().unwrap().len() <= 200);
    }
}
