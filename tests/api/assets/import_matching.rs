//! The resources that rows of an import update.

use super::import::asset;
use crate::support::bulk::{outcomes, row_errors};
use crate::support::{UNKNOWN_ID, over_http};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_row_updates_what_it_matches() {
    let client = over_http().await;
    let ids = client.assets(3).await;
    let get = async |id: &str| client.get(&format!("/assets/{id}")).await.data();
    let (first, tag) = (get(&ids[0]).await, get(&ids[1]).await["asset_tag"].as_str().unwrap().to_owned());
    client
        .patch(&format!("/assets/{}", ids[2]), json!({"serial_number": "S-3", "notes": "old", "custom_fields": {"a": 1, "b": 2}}))
        .await
        .data();

    let csv = format!("id,name,notes\n{},by id,\n{UNKNOWN_ID},unknown,\nx,bad,\n,new,\n{},{},\n", ids[0], ids[1], "a1");
    let reply = client.import("/assets", "?match=id&create_unmatched=true", &csv).await;
    assert_eq!(outcomes(&reply), ["updated", "refused", "refused", "created", "unchanged"]);
    assert_eq!(
        (get(&ids[0]).await["name"].clone(), first["created_at"].clone()),
        (json!("by id"), get(&ids[0]).await["created_at"].clone())
    );

    let csv = format!("asset_tag,status\n{},in_use\nAST-999999,in_use\n", tag.to_lowercase());
    assert_eq!(outcomes(&client.import("/assets", "?match=asset_tag", &csv).await), ["updated", "refused"]);
    assert_eq!(get(&ids[1]).await["status"], "in_use");

    let csv = "serial_number,name,notes,custom_fields.a,custom_fields.b,custom_fields.c\n\
               S-3,by serial,\\N,\\N,2,4711\n\
               S-4,created,,,,0815\n";
    let reply = client.import("/assets", "?match=serial_number", csv).await;
    assert_eq!(outcomes(&reply), ["updated", "created"]);
    let third = get(&ids[2]).await;
    assert_eq!((&third["notes"], &third["custom_fields"]), (&json!(null), &json!({"b": 2, "c": "4711"})), "b is as it was");
    assert_eq!(asset(&client, "created").await["custom_fields"], json!({"c": "0815"}));

    client.asset(json!({"name": "double", "serial_number": "S-3"})).await;
    let reply = client.import("/assets", "?match=serial_number", csv).await;
    assert_eq!(outcomes(&reply), ["refused", "unchanged"]);
    assert_eq!(reply.data()[0]["errors"][0]["code"], "DUPLICATE");
    assert_eq!(reply.data()[0]["errors"][0]["asset_ids"].as_array().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn rows_that_could_become_the_wrong_asset_are_refused() {
    let client = over_http().await;
    let csv = "name,serial_number\na,S-1\nb,\nc,n/a\nd, S-1 \ne,s-1\nf,To be filled by O.E.M.\ng,S-1\n";
    let reply = client.import("/assets", "?match=serial_number", csv).await;
    assert_eq!(outcomes(&reply), ["refused", "refused", "refused", "refused", "created", "refused", "refused"]);
    let detail = |row| row_errors(&reply, row).remove(0).1;
    assert_eq!((detail(0), detail(3)), ("has the same value in rows 4, 7".into(), "has the same value in rows 1, 7".into()));
    let unmatched = "is empty, so the row names nothing to update; with create_unmatched=true, it creates a record";
    assert_eq!(row_errors(&reply, 1), [("serial_number".to_owned(), unmatched.to_owned())]);
    assert!(detail(2).starts_with("is a placeholder") && detail(5).starts_with("is a placeholder"), "{reply:?}");
    let again = client.import("/assets", "?match=serial_number&create_unmatched=true", csv).await;
    assert_eq!(outcomes(&again), ["refused", "created", "refused", "refused", "unchanged", "refused", "refused"]);
    let users = "email,display_name\nada@example.com,Ada\nADA@example.com,Again\n,Nobody\n";
    assert_eq!(outcomes(&client.import("/users", "?match=email", users).await), ["refused"; 3]);
    let ids = client.assets(1).await;
    let csv = format!("id,name\n{},a\n{},b\n", ids[0], ids[0].to_uppercase());
    assert_eq!(outcomes(&client.import("/assets", "?match=id", &csv).await), ["refused"; 2]);
}
