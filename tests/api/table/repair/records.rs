//! Transactions that change one record.

use super::test_each_item;

test_each_item!(
    asset_creation,
    asset_update,
    asset_deletion,
    user_creation,
    user_update,
    user_deletion,
    type_creation,
    type_update,
    manufacturer_deletion,
    model_creation,
    model_update,
    model_deletion,
    process_creation,
    process_update,
    process_deletion,
    settings_update,
    key_creation,
    key_rotation,
    key_revocation,
    receipt_key_creation,
    receipt_key_rotation,
    tenant_creation,
);

/// Each function commits the transaction that it is named after.
mod transactions {
    use crate::support::Api;
    use crate::support::receipts::completed_receipt;
    use crate::table::repair::transaction::Transaction;
    use serde_json::{Value, json};
    use shared::store::ChangeContext;

    fn text_step() -> Value {
        json!([{"type": "text", "key": "t", "label": "T"}])
    }

    pub async fn asset_creation() -> Transaction {
        let (api, client) = Api::with_tenant().await;
        let asset_type = client.asset_type("Laptop", "LAP", "physical").await;
        let model = client.model("Dell", "XPS", &asset_type).await;
        let body = json!({"name": "a", "model_id": model, "purchase_price": 12.5, "custom_fields": {"a": 1.5}});
        Transaction::post(api, client, "/assets", body).await
    }

    pub async fn asset_update() -> Transaction {
        let (api, client) = Api::with_tenant().await;
        let (old, new) = (client.user("Ada").await, client.user("Grace").await);
        let asset_type = client.asset_type("Laptop", "LAP", "physical").await;
        let model = client.model("Dell", "XPS", &asset_type).await;
        let id = client.assigned_asset("a", &old).await;
        let body = json!({"name": "b", "assigned_to": new, "notes": null, "model_id": model, "custom_fields": {"b": [1, null]}});
        Transaction::send(api, client, "PATCH", &format!("/assets/{id}"), body).await
    }

    pub async fn asset_deletion() -> Transaction {
        let (api, client) = Api::with_tenant().await;
        let user = client.user("Ada").await;
        let id = client.assigned_asset("a", &user).await;
        Transaction::send(api, client, "DELETE", &format!("/assets/{id}"), Value::Null).await
    }

    pub async fn user_creation() -> Transaction {
        let (api, client) = Api::with_tenant().await;
        let body = json!({"email": "ada@example.com", "display_name": "Ada"});
        Transaction::post(api, client, "/users", body).await
    }

    pub async fn user_update() -> Transaction {
        let (api, client) = Api::with_tenant().await;
        let id = client.user("Ada").await;
        let body = json!({"email": "grace@example.com", "is_active": false});
        Transaction::send(api, client, "PATCH", &format!("/users/{id}"), body).await
    }

    pub async fn user_deletion() -> Transaction {
        let (api, client) = Api::with_tenant().await;
        let id = client.user("Ada").await;
        Transaction::send(api, client, "DELETE", &format!("/users/{id}"), Value::Null).await
    }

    pub async fn type_creation() -> Transaction {
        let (api, client) = Api::with_tenant().await;
        let schema = json!({"type": "object", "properties": {"ram": {"type": "integer"}}});
        let body = json!({"name": "Laptop", "code": "LAP", "kind": "physical", "custom_fields_schema": schema});
        Transaction::post(api, client, "/catalog/asset-types", body).await
    }

    pub async fn type_update() -> Transaction {
        let (api, client) = Api::with_tenant().await;
        let id = client.asset_type("Laptop", "LAP", "physical").await;
        client.asset(json!({"name": "a", "asset_type_id": id})).await;
        Transaction::send(api, client, "PATCH", &format!("/catalog/asset-types/{id}"), json!({"code": "NB"})).await
    }

    pub async fn manufacturer_deletion() -> Transaction {
        let (api, client) = Api::with_tenant().await;
        let id = client.post("/catalog/manufacturers", json!({"name": "Dell"})).await.id();
        Transaction::send(api, client, "DELETE", &format!("/catalog/manufacturers/{id}"), Value::Null).await
    }

    pub async fn model_creation() -> Transaction {
        let (api, client) = Api::with_tenant().await;
        let asset_type = client.asset_type("Laptop", "LAP", "physical").await;
        let manufacturer = client.post("/catalog/manufacturers", json!({"name": "Dell"})).await.id();
        let body = json!({"name": "XPS", "manufacturer_id": manufacturer, "asset_type_id": asset_type});
        Transaction::post(api, client, "/catalog/models", body).await
    }

    pub async fn model_update() -> Transaction {
        let (api, client) = Api::with_tenant().await;
        let asset_type = client.asset_type("Laptop", "LAP", "physical").await;
        let id = client.model("Dell", "XPS", &asset_type).await;
        let other = client.post("/catalog/manufacturers", json!({"name": "HP"})).await.id();
        Transaction::send(api, client, "PATCH", &format!("/catalog/models/{id}"), json!({"manufacturer_id": other})).await
    }

    pub async fn model_deletion() -> Transaction {
        let (api, client) = Api::with_tenant().await;
        let asset_type = client.asset_type("Laptop", "LAP", "physical").await;
        let id = client.model("Dell", "XPS", &asset_type).await;
        Transaction::send(api, client, "DELETE", &format!("/catalog/models/{id}"), Value::Null).await
    }

    fn process_body() -> Value {
        json!({"name": "Own", "trigger_status": "in_stock", "target_status": "in_use", "steps": text_step()})
    }

    pub async fn process_creation() -> Transaction {
        let (api, client) = Api::with_tenant().await;
        Transaction::post(api, client, "/processes", process_body()).await
    }

    pub async fn process_update() -> Transaction {
        let (api, client) = Api::with_tenant().await;
        let id = client.post("/processes", process_body()).await.id();
        let steps = json!([{"type": "signature", "key": "s", "label": "S"}]);
        let body = json!({"steps": steps, "status": "inactive"});
        Transaction::send(api, client, "PATCH", &format!("/processes/{id}"), body).await
    }

    pub async fn process_deletion() -> Transaction {
        let (api, client) = Api::with_tenant().await;
        let id = client.post("/processes", process_body()).await.id();
        Transaction::send(api, client, "DELETE", &format!("/processes/{id}"), Value::Null).await
    }

    pub async fn settings_update() -> Transaction {
        let (api, client) = Api::with_tenant().await;
        let body = json!({"name": "Other", "status_transitions": {"in_stock": ["in_use"]}});
        Transaction::send(api, client, "PATCH", "/settings", body).await
    }

    pub async fn key_creation() -> Transaction {
        let (api, client) = Api::with_tenant().await;
        Transaction::post(api, client, "/keys", json!({"name": "ci", "scopes": ["assets:read"]})).await
    }

    pub async fn key_rotation() -> Transaction {
        let (api, client) = Api::with_tenant().await;
        let id = client.post("/keys", json!({"name": "ci", "scopes": ["assets:read"]})).await.id();
        Transaction::post(api, client, &format!("/keys/{id}/rotate"), json!({"grace_seconds": 60})).await
    }

    pub async fn key_revocation() -> Transaction {
        let (api, client) = Api::with_tenant().await;
        let id = client.post("/keys", json!({"name": "ci", "scopes": ["assets:read"]})).await.id();
        Transaction::send(api, client, "DELETE", &format!("/keys/{id}"), Value::Null).await
    }

    pub async fn receipt_key_creation() -> Transaction {
        let (api, client) = Api::with_tenant().await;
        let user = client.user("Ada").await;
        let (_, path) = completed_receipt(&client, &user).await;
        Transaction::commit(api, client, async |client| drop(client.get(&path).await.json())).await
    }

    pub async fn receipt_key_rotation() -> Transaction {
        let (api, client) = Api::with_tenant().await;
        let store = api.store.tenant(client.tenant);
        let context = ChangeContext::operator(api.now());
        store.rotate_receipt_key(api.key_encryption.as_ref(), &context).await.unwrap();
        let key_encryption = api.key_encryption.clone();
        let rotate = async |_| drop(store.rotate_receipt_key(key_encryption.as_ref(), &context).await.unwrap());
        Transaction::commit(api, client, rotate).await
    }

    pub async fn tenant_creation() -> Transaction {
        let api = Api::start().await;
        let email = "ada@example.com".parse().unwrap();
        let created = api.store.create_tenant("Acme".parse().unwrap(), Some(email), 100).await.unwrap();
        let router = api.router.clone();
        let (key, tenant) = (created.api_key.expose(), created.tenant_id);
        let client = crate::support::Client { router, key, tenant, table: None, clock: std::sync::Arc::default() };
        let after = crate::table::repair::transaction::items(&api).await;
        Transaction { api, client, before: Default::default(), after }
    }
}
