//! Deliveries to five receivers, three of which fail: the waiting time of the healthy ones, and lost events.
//!
//! The service runs in this process, with the functions `fanout` and `deliver` on the embedded engine's stream and the dev
//! server's queue.

mod deliver_thread;
mod receivers;
mod report;

use crate::service::ApiClient;
use anyhow::{Context, Result, ensure};
use aws_sdk_dynamodb::Client;
use deliver::{Deliver, Sender};
use deliver_thread::DeliverThread;
use dev_server::engine::{self, Engine};
use dev_server::queue::{MemoryQueue, in_memory};
use dev_server::server::{self, TABLE};
use dev_server::table;
use dev_server::webhooks::Pipeline;
use key_encryption::FileKeyEncryption;
use receivers::{Behaviour, Receiver};
use report::Report;
use serde_json::{Value, json};
use shared::app::{App, system_clock};
use shared::domain::keys::api_key::MAX_RATE_LIMIT;
use shared::domain::webhooks::{AddressPolicy, RETRY_DELAYS};
use shared::key_encryption::KeyEncryption;
use shared::store::Store;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

/// The receivers. As many fail as are healthy and one more.
const BEHAVIOURS: [Behaviour; 5] = [Behaviour::Healthy, Behaviour::Healthy, Behaviour::Dead, Behaviour::Slow, Behaviour::Failing];
/// The time without arrivals after which missing events count as lost: longer than the wait of any attempt that is left when all
/// receivers have recovered.
const MAX_STANDSTILL: Duration = Duration::from_secs(600);
/// For the 99th percentile of a healthy receiver.
const MAX_LATENCY: Duration = Duration::from_secs(3);

#[derive(clap::Args)]
pub struct Options {
    /// Number of events.
    #[arg(long, default_value_t = 20_000, value_name = "N")]
    events: u32,
    /// Number of events per second.
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,
    /// Divide the pauses between the attempts of a delivery by this, so that the end comes sooner.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    hurry: u16,
    /// Print what was measured, and don't judge latencies: on a busy machine they mean nothing.
    #[arg(long)]
    report: bool,
}

/// The service, its receivers and their webhooks.
struct Setup {
    client: ApiClient,
    receivers: Vec<Receiver>,
    queue: MemoryQueue,
    deliver: DeliverThread,
    pipeline: Pipeline,
    _engine: Engine,
}

/// Fails if a receiver misses an event in the end, or a healthy one waits too long.
pub async fn run(options: Options) -> Result<()> {
    let setup = set_up(&options).await?;
    let started = Instant::now();
    let records = create_assets(&setup.client, &options).await?;
    let created_in = started.elapsed();
    wait_for_healthy(&setup.receivers, &records).await;
    let report = Report::new(&setup.receivers, &records, created_in, setup.queue.len());
    report.print()?;

    for receiver in &setup.receivers {
        receiver.recover().await?;
    }
    // No replay: what failed must arrive by the attempts that are left.
    let started = Instant::now();
    wait_for_all(&setup.receivers, &records).await;
    report::print_end(&setup.receivers, &records, started.elapsed(), setup.queue.len())?;
    report::print_cpu_time(setup.deliver.cpu_time_per_message())?;
    setup.pipeline.stop(Instant::now() + Duration::from_secs(5)).await;

    let lost: usize = setup.receivers.iter().map(|receiver| receiver.missing(&records)).sum();
    ensure!(lost == 0, "{lost} deliveries are lost");
    let worst = report.slowest_healthy();
    ensure!(options.report || worst <= MAX_LATENCY, "the 99th percentile of a healthy receiver is {} ms", worst.as_millis());
    Ok(())
}

async fn set_up(options: &Options) -> Result<Setup> {
    let engine = Engine::start(None, ([127, 0, 0, 1], 0).into())?;
    let dynamo = Client::from_conf(engine::config(&engine.url).build());
    table::create(&dynamo, TABLE).await?;
    let store = Store::new(dynamo, TABLE, system_clock());
    let (queue, worker) = in_memory();
    let key_encryption: Arc<dyn KeyEncryption> = Arc::new(FileKeyEncryption::in_memory()?);
    let policy = AddressPolicy::PublicOrLoopback;
    let app = App::new(store.clone()).with_key_encryption(Some(Arc::clone(&key_encryption)));
    let app = app.with_queue(Some(Arc::new(queue.clone()))).with_address_policy(policy);
    let created = store.create_tenant("Bench".parse()?, None, MAX_RATE_LIMIT).await?;
    let client = ApiClient { router: server::router(app), api_key: created.api_key.expose() };
    let mut receivers = Vec::new();
    for behaviour in BEHAVIOURS {
        let receiver = Receiver::start(behaviour).await?;
        let webhook = json!({"url": receiver.url(), "events": ["asset.created"]});
        send(&client, "POST", "/webhooks", &webhook).await?;
        receivers.push(receiver);
    }
    let sender = Sender::new(policy)?;
    let retry_delays = RETRY_DELAYS.iter().map(|delay| *delay / i32::from(options.hurry)).collect();
    let own = Store::new(Client::from_conf(engine::config(&engine.url).build()), TABLE, system_clock());
    let deliver = Deliver::new(own, Arc::new(queue.clone()), key_encryption, sender).with_retry_delays(retry_delays);
    let deliver = DeliverThread::start(deliver)?;
    let pipeline = Pipeline::start(&engine, store, TABLE, (queue.clone(), worker), deliver.handler()).await?;
    Ok(Setup { client, receivers, queue, deliver, pipeline, _engine: engine })
}

async fn send(client: &ApiClient, method: &str, path: &str, body: &Value) -> Result<Value> {
    let (status, response) = client.send(method, path, &body.to_string()).await?;
    ensure!(status.is_success(), "{method} {path} returned {status}: {response}");
    Ok(response)
}

/// At the rate of the options. Returns the IDs.
async fn create_assets(client: &ApiClient, options: &Options) -> Result<Vec<String>> {
    let mut records = Vec::new();
    let mut ticks = interval(Duration::from_secs(1) / options.rate);
    // Requests that the machine can't send in time are left out, not made up for: bursts are another test.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for n in 0..options.events {
        ticks.tick().await;
        let created = send(client, "POST", "/assets", &json!({"name": format!("Laptop {n}")})).await?;
        records.push(created["data"]["id"].as_str().context("the new asset has no id")?.to_owned());
    }
    Ok(records)
}

/// Until they have everything, or nothing more comes.
async fn wait_for_healthy(receivers: &[Receiver], records: &[String]) {
    let healthy: Vec<&Receiver> = receivers.iter().filter(|receiver| receiver.behaviour == Behaviour::Healthy).collect();
    wait_for(&healthy, records).await;
}

/// Until they have everything, or nothing more comes.
async fn wait_for_all(receivers: &[Receiver], records: &[String]) {
    wait_for(&receivers.iter().collect::<Vec<_>>(), records).await;
}

async fn wait_for(receivers: &[&Receiver], records: &[String]) {
    let missing = || receivers.iter().map(|receiver| receiver.missing(records)).sum::<usize>();
    let (mut left, mut progress) = (missing(), Instant::now());
    while left > 0 && progress.elapsed() < MAX_STANDSTILL {
        sleep(Duration::from_millis(100)).await;
        let now = missing();
        if now < left {
            (left, progress) = (now, Instant::now());
        }
    }
}
