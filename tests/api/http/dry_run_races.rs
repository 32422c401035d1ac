//! Dry runs beside other writers, and several units of work in one dry run.

use crate::support::operations::dry_run;
use crate::support::{Api, Client, over_http, paused_runtime};
use dev_server::faulty_table::Weaknesses;
use futures_util::future::join_all;
use serde_json::json;
use shared::domain::catalog::{AssetType, Model};
use shared::domain::keys::scope::Role;
use shared::domain::record::Stored;
use shared::domain::user::User;
use shared::domain::values::id::Id;
use shared::store::{ChangeContext, DryRun, StoreError, TenantStore, UnitOfWork, WriteError};

#[tokio::test(start_paused = true)]
async fn writers_and_dry_runs_of_one_record_do_each_other_no_harm() {
    let client = over_http().await;
    let path = format!("/assets/{}", client.asset(json!({"name": "0"})).await);
    let tried = dry_run(&path);
    let tries = async {
        for round in 0..4 {
            let all = join_all((0..4).map(|n| client.patch(&tried, json!({"notes": format!("{round} {n}")})))).await;
            for reply in all.iter().filter(|reply| reply.status != 200) {
                reply.problem(409, "CONFLICT");
            }
        }
    };
    let writes = async {
        for n in 1..=8 {
            client.patch(&path, json!({"name": n.to_string()})).await.data();
        }
    };
    tokio::join!(tries, writes);
    let asset = client.get(&path).await;
    assert!(asset.header("etag").starts_with("\"9-"));
    assert_eq!((&asset.data()["name"], &asset.data()["notes"]), (&json!("8"), &json!(null)));
}

#[test]
fn dry_runs_on_a_faulty_table_get_an_answer_and_write_nothing() {
    paused_runtime().block_on(async {
        let api = Api::on_faulty_table(5, Weaknesses { conflict_per_mille: 300, ..Weaknesses::ordinary() }).await;
        let client = api.tenant().await;
        let path = format!("/users/{}", client.user("Ada").await);
        for n in 0..10 {
            let body = json!({"email": format!("u{n}@example.com"), "display_name": "U"});
            assert_eq!(client.post("/users?dry_run=true", body).await.data()["id"], json!(null));
            client.patch(&dry_run(&path), json!({"display_name": "renamed"})).await.data();
            client.delete(&dry_run(&path)).await.data();
        }
        assert_eq!(client.get(&path).await.header("etag").split_once('-').unwrap().0, "\"1");
        assert_eq!(client.total("/users").await, 1);
    });
}

/// Several units of work on behalf of one dry run.
struct Units {
    store: TenantStore,
    context: ChangeContext,
}

impl Units {
    fn new(api: &Api, client: &Client) -> Self {
        let store = api.store.tenant(client.tenant).in_dry_run(DryRun::default());
        Self { store, context: ChangeContext::operator(api.now()) }
    }

    async fn create(&self, email: &str) -> Result<Stored<User>, WriteError> {
        let id = self.store.new_id(self.context.at)?;
        let (email, display_name) = (email.parse().unwrap(), "U".parse().unwrap());
        let mut unit = UnitOfWork::new(&self.store, &self.context);
        let user = unit.create(User { id, email, display_name, role: Role::Viewer, is_active: true, erased_at: None })?;
        unit.commit().await.map(|()| user)
    }

    async fn update(&self, old: &Stored<User>, email: &str) -> Result<Stored<User>, WriteError> {
        let mut unit = UnitOfWork::new(&self.store, &self.context);
        let user = unit.update(old, User { email: email.parse().unwrap(), ..old.value.clone() })?;
        unit.commit().await.map(|()| user)
    }
}

#[tokio::test(start_paused = true)]
async fn units_of_one_dry_run_see_what_earlier_ones_would_have_written() {
    let (api, client) = Api::with_tenant().await;
    client.user("Ada").await;
    let before = api.dump().await;
    let units = Units::new(&api, &client);
    let state = |user: Stored<User>| (user.value, user.version, user.last_hash);
    let get = async |id| units.store.get::<User>(id).await.unwrap().map(state);

    let first = units.create("first@example.com").await.unwrap();
    let id = first.value.id;
    assert_eq!(get(id).await, Some(state(first.clone())));
    let taken = units.create("FIRST@example.com").await;
    assert!(matches!(taken, Err(WriteError::Duplicate("email", Some((_, owner)))) if owner == id.uuid()), "{taken:?}");
    assert!(matches!(units.create("ada@example.com").await, Err(WriteError::Duplicate("email", Some(_)))));

    let second = units.update(&first, "second@example.com").await.unwrap();
    assert_eq!(get(id).await, Some(state(second.clone())));
    assert!(matches!(units.update(&first, "third@example.com").await, Err(WriteError::Stale)), "its version is the second");
    units.create("first@example.com").await.unwrap();
    assert!(matches!(units.create("second@example.com").await, Err(WriteError::Duplicate(..))));

    units.store.delete(&second, &units.context).await.unwrap();
    assert_eq!(get(id).await, None);
    assert!(matches!(units.store.delete(&second, &units.context).await, Err(WriteError::Stale)));
    units.create("second@example.com").await.unwrap();
    assert_eq!(api.dump().await, before);
    // Another dry run knows nothing of it.
    assert!(Units::new(&api, &client).create("second@example.com").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn units_of_one_dry_run_count_the_references_of_earlier_ones() {
    let (api, client) = Api::with_tenant().await;
    let laptop = client.asset_type("Laptop", "LAP", "physical").await;
    let model = client.model("Dell", "XPS", &laptop).await;
    let before = api.dump().await;
    let Units { store, context } = Units::new(&api, &client);
    let laptop = store.get::<AssetType>(laptop.parse().unwrap()).await.unwrap().unwrap();
    let model = store.get::<Model>(model.parse().unwrap()).await.unwrap().unwrap();
    let refused = store.delete(&laptop, &context).await;
    assert!(matches!(refused, Err(WriteError::InUse(1))), "{refused:?}");
    store.delete(&model, &context).await.unwrap();
    store.delete(&laptop, &context).await.unwrap();
    assert_eq!(api.dump().await, before);
}

#[tokio::test(start_paused = true)]
async fn a_unit_that_is_refused_leaves_nothing_to_later_ones() {
    let (api, client) = Api::with_tenant().await;
    client.user("Ada").await;
    let units = Units::new(&api, &client);
    let mut unit = UnitOfWork::new(&units.store, &units.context);
    for email in ["new@example.com", "ada@example.com"] {
        let (id, display_name) = (units.store.new_id(units.context.at).unwrap(), "U".parse().unwrap());
        unit.create(User {
            id,
            email: email.parse().unwrap(),
            display_name,
            role: Role::Viewer,
            is_active: true,
            erased_at: None,
        })
        .unwrap();
    }
    assert!(matches!(unit.commit().await, Err(WriteError::Duplicate(..))));
    units.create("new@example.com").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_unit_that_writes_an_item_twice_is_refused() {
    let (api, client) = Api::with_tenant().await;
    let ada = client.user("Ada").await;
    let units = Units::new(&api, &client);
    for store in [&units.store, &api.store.tenant(client.tenant)] {
        let user = store.get::<User>(ada.parse().unwrap()).await.unwrap().unwrap();
        let mut unit = UnitOfWork::new(store, &units.context);
        for name in ["A", "B"] {
            unit.update(&user, User { display_name: name.parse().unwrap(), ..user.value.clone() }).unwrap();
        }
        let refused = unit.commit().await;
        assert!(matches!(refused, Err(WriteError::Store(StoreError::Internal(_)))), "{refused:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_unit_that_no_transaction_can_hold_is_refused() {
    let (api, client) = Api::with_tenant().await;
    let units = Units::new(&api, &client);
    let earnest = api.store.tenant(client.tenant);
    for store in [&units.store, &earnest] {
        let mut unit = UnitOfWork::new(store, &units.context);
        // A user is four items.
        for n in 0..26 {
            let (id, email) = (store.new_id(units.context.at).unwrap(), format!("u{n}@example.com").parse().unwrap());
            let display_name = "U".parse().unwrap();
            unit.create(User { id, email, display_name, role: Role::Viewer, is_active: true, erased_at: None }).unwrap();
        }
        assert!(matches!(unit.commit().await, Err(WriteError::TooLarge)));
    }
}
