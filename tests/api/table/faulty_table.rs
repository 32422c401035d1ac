//! Tests that each weakness of the faulty table occurs, and runs simulations on it.

use crate::support::prelude::*;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{KeysAndAttributes, Put, TransactWriteItem};
use dev_server::faulty_table::FaultyTable;
use dev_server::simulation::{Length, Report};
use dev_server::{simulation, table};
use tokio::time::sleep;

const TABLE: &str = "weak";

type Item = HashMap<String, AttributeValue>;

/// Runs a test on a table with these weaknesses. Returns the table.
fn with_table<F: Future<Output = ()>>(weaknesses: Weaknesses, test: impl FnOnce(Client) -> F) -> FaultyTable {
    paused_runtime().block_on(async {
        let weak = FaultyTable::new(7).unwrap();
        let client = Client::from_conf(weak.config().build());
        table::create(&client, TABLE).await.unwrap();
        weak.set(weaknesses);
        test(client).await;
        weak
    })
}

fn item(number: usize) -> Item {
    let text = |text: String| AttributeValue::S(text);
    let members = [("PK", "T#1".into()), ("SK", format!("ASSET#{number}")), ("LS", "A00".into()), ("name", format!("n{number}"))];
    members.map(|(name, value)| (name.to_owned(), text(value))).into()
}

fn key(number: usize) -> Item {
    let mut key = item(number);
    key.retain(|name, _| name == "PK" || name == "SK");
    key
}

/// Writes items 0 to `count` in one transaction.
async fn transact(client: &Client, count: usize) -> bool {
    let put = |number| Put::builder().table_name(TABLE).set_item(Some(item(number))).build().unwrap();
    let writes = (0..count).map(|number| TransactWriteItem::builder().put(put(number)).build());
    client.transact_write_items().set_transact_items(Some(writes.collect())).send().await.is_ok()
}

async fn put(client: &Client, number: usize) -> bool {
    client.put_item().table_name(TABLE).set_item(Some(item(number))).send().await.is_ok()
}

/// Returns the number of items on a page, and whether there are more.
async fn query(client: &Client, index: Option<&str>) -> (usize, bool) {
    let query = client.query().table_name(TABLE).set_index_name(index.map(str::to_owned)).key_condition_expression("PK = :pk");
    let page = query.expression_attribute_values(":pk", AttributeValue::S("T#1".into())).send().await.unwrap();
    (page.items().len(), page.last_evaluated_key.is_some())
}

async fn exists(client: &Client, number: usize) -> bool {
    client.get_item().table_name(TABLE).set_key(Some(key(number))).send().await.unwrap().item.is_some()
}

#[test]
fn a_query_sees_a_transaction_item_by_item_and_a_read_of_an_item_sees_it_whole() {
    with_table(Weaknesses { torn_millis: 1_000, ..Weaknesses::default() }, async |client| {
        let observe = async {
            let mut partial = 0;
            for _ in 0..200 {
                sleep(Duration::from_millis(5)).await;
                let (seen, _) = query(&client, None).await;
                partial += usize::from((1..10).contains(&seen));
                assert!(seen == 0 || exists(&client, 0).await && exists(&client, 9).await);
            }
            partial
        };
        let (written, partial) = tokio::join!(transact(&client, 10), observe);
        assert!(written && partial > 10, "{partial} torn reads");
        assert_eq!(query(&client, None).await.0, 10, "the response arrives only once every item is visible");
    });
}

#[test]
fn a_write_meets_a_transaction_in_progress() {
    let weak = with_table(Weaknesses { torn_millis: 60_000, ..Weaknesses::default() }, async |client| {
        let rival = async {
            sleep(Duration::from_millis(5)).await;
            let refused = client.put_item().table_name(TABLE).set_item(Some(item(0))).send().await.unwrap_err();
            assert!(refused.into_service_error().is_transaction_conflict_exception());
            assert!(!transact(&client, 1).await);
        };
        tokio::join!(transact(&client, 2), rival);
    });
    assert!(weak.shown()["conflicts"] >= 2 && weak.shown()["transactions in progress"] >= 1, "{:?}", weak.shown());
}

/// Checks that the index shows some of twenty changes after half a minute, and all after a minute.
async fn check_lag(client: &Client) {
    sleep(Duration::from_secs(30)).await;
    let (seen, _) = query(client, Some("list_index")).await;
    assert!((1..20).contains(&seen), "{seen} rows");
    sleep(Duration::from_secs(31)).await;
    assert_eq!(query(client, Some("list_index")).await.0, 20);
}

#[test]
fn rows_of_an_index_lag_one_by_one_and_one_that_moves_may_be_in_neither_place() {
    let weaknesses = Weaknesses { list_index_lag_millis: 60_000, ..Weaknesses::default() };
    with_table(weaknesses, async |client| {
        assert!(transact(&client, 20).await);
        assert_eq!(query(&client, None).await.0, 20);
        check_lag(&client).await;
        for number in 0..20 {
            let mut moved = item(number);
            moved.insert("LS".to_owned(), AttributeValue::S("B00".to_owned()));
            client.put_item().table_name(TABLE).set_item(Some(moved)).send().await.unwrap();
        }
        check_lag(&client).await;
    });
}

#[test]
fn a_busy_partition_is_throttled_and_recovers() {
    with_table(Weaknesses { write_units_per_second: 5, ..Weaknesses::default() }, async |client| {
        assert!(transact(&client, 10).await, "a partition's token bucket can become negative");
        assert!(!put(&client, 11).await);
        sleep(Duration::from_secs(20)).await;
        assert!(put(&client, 11).await);
    });
}

#[test]
fn pages_are_cut_and_batches_leave_keys_unprocessed() {
    let weaknesses = Weaknesses { cut_page_per_mille: 1_000, unprocessed_per_mille: 1_000, ..Weaknesses::default() };
    with_table(weaknesses, async |client| {
        assert!(transact(&client, 30).await);
        let (seen, has_more) = query(&client, None).await;
        assert!((1..30).contains(&seen) && has_more, "{seen} items");
        let keys = KeysAndAttributes::builder().set_keys(Some((0..30).map(key).collect())).build().unwrap();
        let batch = client.batch_get_item().request_items(TABLE, keys).send().await.unwrap();
        let left = batch.unprocessed_keys.unwrap()[TABLE].keys().len();
        assert!(left > 0 && left + batch.responses.unwrap()[TABLE].len() == 30);
    });
}

#[test]
fn requests_and_responses_are_lost() {
    with_table(Weaknesses { lost_before_per_mille: 1_000, ..Weaknesses::default() }, async |client| {
        assert!(!put(&client, 1).await);
    });
    with_table(Weaknesses { lost_after_per_mille: 1_000, ..Weaknesses::default() }, async |client| {
        assert!(!put(&client, 1).await);
        assert!(client.query().table_name(TABLE).send().await.is_err());
    });
    let weak = with_table(Weaknesses { lost_after_per_mille: 500, ..Weaknesses::default() }, async |client| {
        let mut failed = Vec::new();
        for number in 0..40 {
            if !put(&client, number).await {
                failed.push(number);
            }
        }
        for number in failed {
            assert!(exists(&client, number).await, "item {number} was written, although its response was lost");
        }
    });
    assert!(weak.shown()["lost responses"] > 5);
}

fn simulate(seed: u64) -> Report {
    let length = if full_tests() { Length::Full } else { Length::Short };
    paused_runtime().block_on(simulation::run(seed, length)).unwrap()
}

/// To repeat a seed of the full run: `cargo run -p bench -- simulate --seed N`.
#[test]
fn simulations_find_no_violation() {
    for seed in sample(1..=4, 1) {
        let report = simulate(seed);
        assert!(report.violations.is_empty(), "seed {seed}: {:#?}", report.violations);
        assert!(report.requests > 100 && report.weaknesses.len() > 5 && report.snapshots > 10, "seed {seed}: {report:?}");
        assert!(report.accepted_attacks > 30, "seed {seed}: {report:?}");
    }
}
