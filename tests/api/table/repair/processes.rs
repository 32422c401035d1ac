//! Transactions of processes and movements, which change several records, so two of their items are also lost together.

use super::damage::{Damage, check_damage};
use super::test_each_item;
use super::transaction::Transaction;
use crate::support::sample;

test_each_item!(
    start,
    advance_by_picking,
    advance_by_signing,
    last_advance,
    start_through_the_last_step,
    advance_through_the_last_step,
    movement_start_through_the_last_step,
    last_advance_without_effect,
    cancellation,
    movement_start,
    movement_advance,
    last_movement_advance,
    movement_cancellation,
);

/// Damages pairs of a transaction's items: every fifth in the full run.
async fn check_each_pair(transaction: Transaction) {
    let damages = transaction.damages();
    let pairs = (0..damages.len()).flat_map(|first| (first + 1..damages.len()).map(move |second| (first, second)));
    let pairs = pairs.filter(|(first, second)| damages[*first].key != damages[*second].key);
    for (first, second) in sample(pairs.step_by(5), 2) {
        check_damage(&transaction, &[damages[first].clone(), damages[second].clone()] as &[Damage]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn pairs_of_a_start() {
    check_each_pair(transactions::start().await).await;
}

#[tokio::test(start_paused = true)]
async fn pairs_of_a_last_advance() {
    check_each_pair(transactions::last_advance().await).await;
}

#[tokio::test(start_paused = true)]
async fn pairs_of_a_cancellation() {
    check_each_pair(transactions::cancellation().await).await;
}

#[tokio::test(start_paused = true)]
async fn pairs_of_a_movement_start() {
    check_each_pair(transactions::movement_start().await).await;
}

/// Each function commits the transaction that it is named after.
mod transactions {
    use crate::support::processes::{advance, advance_movement, start_movement};
    use crate::support::samples::SIGNATURE;
    use crate::support::{Api, Client};
    use crate::table::repair::transaction::Transaction;
    use serde_json::{Value, json};

    /// A tenant with a process in which a user is picked and signs, another user, and two assets.
    struct Fixture {
        api: Api,
        client: Client,
        process: String,
        user: String,
        assets: Vec<String>,
    }

    impl Fixture {
        async fn new(target_status: &str) -> Self {
            let (api, client) = Api::with_tenant().await;
            let steps = json!([
                {"type": "user_picker", "key": "who", "label": "Who"},
                {"type": "signature", "key": "sign", "label": "Sign"},
                {"type": "text", "key": "note", "label": "Note"}
            ]);
            let body = json!({"name": "Own", "trigger_status": "in_stock", "target_status": target_status, "steps": steps});
            let process = client.post("/processes", body).await.id();
            let (user, holder) = (client.user("Ada").await, client.user("Grace").await);
            let mut assets = Vec::new();
            for name in ["a", "b"] {
                assets.push(client.assigned_asset(name, &holder).await);
            }
            Self { api, client, process, user, assets }
        }

        fn path(&self) -> String {
            format!("/processes/{}/start", self.process)
        }

        /// Starts an instance and submits the first steps.
        async fn instance(&self, data: &[Value]) -> String {
            let instance = self.client.post(&self.path(), json!({"asset_id": self.assets[0]})).await.id();
            for data in data {
                advance(&self.client, &instance, data.clone()).await.data();
            }
            format!("/processes/instances/{instance}")
        }

        /// Starts a movement and submits the first steps.
        async fn movement(&self, data: &[Value]) -> String {
            let movement = start_movement(&self.client, &self.process, &self.assets).await;
            let id = movement["id"].as_str().unwrap().to_owned();
            for data in data {
                advance_movement(&self.client, &id, data.clone()).await.data();
            }
            format!("/movements/{id}")
        }

        fn pick(&self) -> Value {
            json!({"who": self.user})
        }

        async fn post(self, path: &str, body: Value) -> Transaction {
            Transaction::post(self.api, self.client, path, body).await
        }
    }

    fn sign() -> Value {
        json!({"sign": SIGNATURE})
    }

    pub async fn start() -> Transaction {
        let fixture = Fixture::new("in_use").await;
        let (path, body) = (fixture.path(), json!({"asset_id": fixture.assets[0]}));
        fixture.post(&path, body).await
    }

    pub async fn advance_by_picking() -> Transaction {
        let fixture = Fixture::new("in_use").await;
        let (path, body) = (fixture.instance(&[]).await, json!({"step_data": fixture.pick()}));
        fixture.post(&format!("{path}/advance"), body).await
    }

    pub async fn advance_by_signing() -> Transaction {
        let fixture = Fixture::new("in_use").await;
        let path = fixture.instance(&[fixture.pick()]).await;
        fixture.post(&format!("{path}/advance"), json!({"step_data": sign()})).await
    }

    pub async fn last_advance() -> Transaction {
        let fixture = Fixture::new("in_use").await;
        let path = fixture.instance(&[fixture.pick(), sign()]).await;
        fixture.post(&format!("{path}/advance"), json!({"step_data": {"note": "x"}})).await
    }

    pub async fn start_through_the_last_step() -> Transaction {
        let fixture = Fixture::new("in_use").await;
        let (path, data) = (fixture.path(), json!({"who": fixture.user, "sign": SIGNATURE}));
        let body = json!({"asset_id": fixture.assets[0], "step_data": data, "through": "note"});
        fixture.post(&path, body).await
    }

    pub async fn advance_through_the_last_step() -> Transaction {
        let fixture = Fixture::new("returned").await;
        let path = fixture.instance(&[fixture.pick()]).await;
        fixture.post(&format!("{path}/advance"), json!({"step_data": sign(), "through": "note"})).await
    }

    pub async fn movement_start_through_the_last_step() -> Transaction {
        let fixture = Fixture::new("in_use").await;
        let (path, data) = (fixture.path(), json!({"who": fixture.user, "sign": SIGNATURE}));
        let body = json!({"asset_ids": fixture.assets, "step_data": data, "through": "note"});
        fixture.post(&path, body).await
    }

    /// The asset keeps its status and its assignment.
    pub async fn last_advance_without_effect() -> Transaction {
        let (api, client) = Api::with_tenant().await;
        let steps = json!([{"type": "text", "key": "t", "label": "T"}]);
        let body = json!({"name": "Own", "trigger_status": "in_use", "target_status": "in_use", "steps": steps});
        let process = client.post("/processes", body).await.id();
        let asset = client.asset(json!({"name": "a", "status": "in_use"})).await;
        let instance = crate::support::processes::start(&client, &process, &asset).await;
        Transaction::post(api, client, &format!("/processes/instances/{instance}/advance"), json!({"step_data": {}})).await
    }

    pub async fn cancellation() -> Transaction {
        let fixture = Fixture::new("in_use").await;
        let path = fixture.instance(&[fixture.pick()]).await;
        fixture.post(&format!("{path}/cancel"), json!({"reason": "why"})).await
    }

    pub async fn movement_start() -> Transaction {
        let fixture = Fixture::new("in_use").await;
        let (path, body) = (fixture.path(), json!({"asset_ids": fixture.assets}));
        fixture.post(&path, body).await
    }

    pub async fn movement_advance() -> Transaction {
        let fixture = Fixture::new("in_use").await;
        let path = fixture.movement(&[fixture.pick()]).await;
        fixture.post(&format!("{path}/advance"), json!({"step_data": sign()})).await
    }

    pub async fn last_movement_advance() -> Transaction {
        let fixture = Fixture::new("returned").await;
        let path = fixture.movement(&[fixture.pick(), sign()]).await;
        fixture.post(&format!("{path}/advance"), json!({"step_data": {"note": "x"}})).await
    }

    pub async fn movement_cancellation() -> Transaction {
        let fixture = Fixture::new("in_use").await;
        let path = fixture.movement(&[fixture.pick()]).await;
        fixture.post(&format!("{path}/cancel"), json!({})).await
    }
}
