//! Delivers events to five receivers, three of which are dead, slow or failing for a while. Measures how long the healthy
//! receivers wait, and whether events are lost. The service runs in this process, with the functions `fanout` and `deliver` on
//! the embedded engine's stream and the dev server's queue; `deliver` runs on a separate thread, so that its CPU time can be
//! measured.

use crate::service::successful;
use crate::statistics::{millis, percentile};
use anyhow::{Context, Result, ensure};
use aws_sdk_dynamodb::Client;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use deliver::{Deliver, Sender};
use dev_server::api::ApiClient;
use dev_server::engine::{self, Engine};
use dev_server::meter::cpu_time;
use dev_server::queue::{Handler, MemoryQueue, in_memory};
use dev_server::server::{self, TABLE};
use dev_server::table;
use dev_server::webhooks::Pipeline;
use key_encryption::FileKeyEncryption;
use serde_json::{Value, json};
use shared::app::{App, system_clock};
use shared::domain::keys::api_key::MAX_RATE_LIMIT;
use shared::domain::values::time::Timestamp;
use shared::domain::webhooks::{AddressPolicy, Message, RETRY_DELAYS};
use shared::key_encryption::KeyEncryption;
use shared::store::{Clock, Store};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

/// The receivers: two are healthy, three fail.
const BEHAVIOURS: [Behaviour; 5] = [Behaviour::Healthy, Behaviour::Healthy, Behaviour::Dead, Behaviour::Slow, Behaviour::Failing];
/// Time without arrivals after which missing events count as lost: longer than any remaining wait once all receivers have
/// recovered.
const MAX_STANDSTILL: Duration = Duration::from_secs(600);
/// Maximum 99th percentile of a healthy receiver's latencies.
const MAX_LATENCY: Duration = Duration::from_secs(3);

#[derive(clap::Args)]
pub struct Options {
    /// Number of events.
    #[arg(long, default_value_t = 20_000, value_name = "N")]
    events: u32,
    /// Number of events per second.
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,
    /// Divide the pauses between delivery attempts by this number, to finish sooner.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    hurry: u16,
    /// Print the measurements, but don't fail because of high latencies, which mean nothing on a busy machine.
    #[arg(long)]
    report: bool,
}

struct Setup {
    client: ApiClient,
    receivers: Vec<Receiver>,
    queue: MemoryQueue,
    deliver: DeliverThread,
    pipeline: Pipeline,
    _engine: Engine,
}

/// Runs the benchmark. Fails if a receiver misses an event, or if a healthy receiver waits too long.
pub async fn run(options: Options) -> Result<()> {
    let setup = set_up(&options).await?;
    let started = Instant::now();
    let records = create_assets(&setup.client, &options).await?;
    let created_in = started.elapsed();
    let healthy = |receiver: &&Receiver| receiver.state.behaviour == Behaviour::Healthy;
    wait_for(&setup.receivers.iter().filter(healthy).collect::<Vec<_>>(), &records).await;
    let rows: Vec<Row> = setup.receivers.iter().map(Row::of).collect();
    print_start(&rows, records.len(), created_in, setup.queue.len())?;

    for receiver in &setup.receivers {
        receiver.recover().await?;
    }
    // Events are not replayed: failed deliveries must arrive with their remaining retries.
    let started = Instant::now();
    wait_for(&setup.receivers.iter().collect::<Vec<_>>(), &records).await;
    print_end(&setup.receivers, &records, started.elapsed(), setup.queue.len())?;
    let per_message = millis(setup.deliver.cpu_time_per_message());
    terminal::print(&format!("processor time per attempt: {per_message:.2} ms\n"))?;
    setup.pipeline.stop(Instant::now() + Duration::from_secs(5)).await;

    let lost: usize = setup.receivers.iter().map(|receiver| receiver.missing(&records)).sum();
    ensure!(lost == 0, "{lost} deliveries are lost");
    let healthy = rows.iter().filter(|row| row.behaviour == Behaviour::Healthy);
    let worst = healthy.map(|row| row.latencies[1]).max().unwrap_or_default();
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
        successful(&client, "POST", "/webhooks", &webhook.to_string()).await?;
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

/// Creates assets at the rate in the options. Returns the assets' IDs.
async fn create_assets(client: &ApiClient, options: &Options) -> Result<Vec<String>> {
    let mut records = Vec::new();
    let mut ticks = interval(Duration::from_secs(1) / options.rate);
    // If the machine is too slow, requests keep the interval instead of catching up, because bursts are not measured here.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for n in 0..options.events {
        ticks.tick().await;
        let asset = json!({"name": format!("Laptop {n}")}).to_string();
        let created = successful(client, "POST", "/assets", &asset).await?;
        records.push(created["data"]["id"].as_str().context("the new asset has no id")?.to_owned());
    }
    Ok(records)
}

/// Waits until the receivers have all events, or nothing more arrives.
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

type Invocation = ((Message, bool), oneshot::Sender<bool>);

/// The thread of the function `deliver`, which ends when this value is dropped.
struct DeliverThread {
    invocations: mpsc::UnboundedSender<Invocation>,
    used: Arc<Mutex<Used>>,
}

#[derive(Clone, Copy, Default)]
struct Used {
    messages: usize,
    cpu_time: Duration,
}

impl DeliverThread {
    /// Starts the thread. `deliver` must not be used elsewhere, because its connections belong to this thread.
    fn start(deliver: Deliver) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (invocations, mut received) = mpsc::unbounded_channel::<Invocation>();
        let (deliver, used) = (Arc::new(deliver), Arc::<Mutex<Used>>::default());
        let shared = Arc::clone(&used);
        std::thread::spawn(move || {
            runtime.block_on(async move {
                while let Some(((message, is_retry), respond)) = received.recv().await {
                    let (deliver, used) = (Arc::clone(&deliver), Arc::clone(&shared));
                    tokio::spawn(async move {
                        let is_done = deliver.handle_message(&message, is_retry).await.is_ok();
                        let mut used = used.lock().unwrap_or_else(PoisonError::into_inner);
                        *used = Used { messages: used.messages + 1, cpu_time: cpu_time() };
                        drop(used);
                        // At the end of the benchmark, nobody waits for the result.
                        let _ = respond.send(is_done);
                    });
                }
            });
        });
        Ok(Self { invocations, used })
    }

    /// Returns the average CPU time for a message. A retry counts as a message.
    fn cpu_time_per_message(&self) -> Duration {
        let Used { messages, cpu_time } = *self.used.lock().unwrap_or_else(PoisonError::into_inner);
        cpu_time / u32::try_from(messages).unwrap_or(u32::MAX).max(1)
    }

    fn handler(&self) -> Arc<Handler> {
        let invocations = self.invocations.clone();
        Arc::new(move |message, is_retry| {
            let (respond, response) = oneshot::channel();
            let _ = invocations.send(((message, is_retry), respond));
            // After a panic, the message is redelivered.
            Box::pin(async move { response.await.unwrap_or_default() })
        })
    }
}

const SLOW: Duration = Duration::from_secs(10);

/// The behaviour of a receiver until it recovers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Behaviour {
    /// Responds at once.
    Healthy,
    /// Nothing listens on its port.
    Dead,
    /// Responds after [`SLOW`].
    Slow,
    /// Responds with 500 to half of the requests, at random.
    Failing,
}

impl Behaviour {
    const fn name(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Dead => "dead",
            Self::Slow => "slow (10 s)",
            Self::Failing => "500 half of the time",
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Accepted {
    /// Latency: the time from an event until its first delivery.
    latency: Duration,
    count: u64,
}

/// A receiver at a separate address.
struct Receiver {
    address: SocketAddr,
    state: Arc<ReceiverState>,
}

struct ReceiverState {
    clock: Clock,
    behaviour: Behaviour,
    has_recovered: AtomicBool,
    refused: AtomicU64,
    /// Accepted deliveries by the ID of the event's record.
    accepted: Mutex<HashMap<String, Accepted>>,
}

impl Receiver {
    /// Starts a receiver. A dead receiver only reserves its port.
    async fn start(behaviour: Behaviour) -> Result<Self> {
        let state = ReceiverState {
            clock: system_clock(),
            behaviour,
            has_recovered: AtomicBool::new(false),
            refused: AtomicU64::new(0),
            accepted: Mutex::default(),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let receiver = Self { address: listener.local_addr()?, state: Arc::new(state) };
        if behaviour != Behaviour::Dead {
            receiver.serve(listener);
        }
        Ok(receiver)
    }

    fn serve(&self, listener: TcpListener) {
        let router = Router::new().route("/", post(receive)).with_state(Arc::clone(&self.state));
        tokio::spawn(async move { axum::serve(listener, router).await });
    }

    fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    async fn recover(&self) -> Result<()> {
        self.state.has_recovered.store(true, Ordering::Relaxed);
        if self.state.behaviour == Behaviour::Dead {
            self.serve(TcpListener::bind(self.address).await.context("the port of the dead receiver was taken")?);
        }
        Ok(())
    }

    /// Returns the number of records without an accepted delivery.
    fn missing(&self, records: &[String]) -> usize {
        let accepted = self.state.accepted();
        records.iter().filter(|record| !accepted.contains_key(*record)).count()
    }
}

impl ReceiverState {
    fn accepted(&self) -> std::sync::MutexGuard<'_, HashMap<String, Accepted>> {
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn receive(State(state): State<Arc<ReceiverState>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    if !state.has_recovered.load(Ordering::Relaxed) {
        match state.behaviour {
            Behaviour::Slow => sleep(SLOW).await,
            Behaviour::Failing if fastrand::bool() => {
                state.refused.fetch_add(1, Ordering::Relaxed);
                return StatusCode::INTERNAL_SERVER_ERROR;
            }
            _ => {}
        }
    }
    let delivered: Value = serde_json::from_slice(&body).unwrap_or_default();
    let text = |name: &str| delivered["data"][name].as_str();
    let Some((record, at)) = text("entity_id").zip(text("at").and_then(|at| at.parse::<Timestamp>().ok())) else {
        return StatusCode::BAD_REQUEST;
    };
    if !headers.contains_key("webhook-id") || !headers.contains_key("webhook-signature") {
        return StatusCode::BAD_REQUEST;
    }
    let latency = (state.clock)().since(at).to_std().unwrap_or_default();
    let mut accepted = state.accepted();
    let first = Accepted { latency, count: 0 };
    accepted.entry(record.to_owned()).or_insert(first).count += 1;
    StatusCode::NO_CONTENT
}

/// The measurements of a receiver while three fail.
struct Row {
    behaviour: Behaviour,
    accepted: usize,
    refused: u64,
    /// The 50th, 99th and 100th percentile.
    latencies: [Duration; 3],
}

impl Row {
    fn of(receiver: &Receiver) -> Self {
        let mut latencies: Vec<Duration> = receiver.state.accepted().values().map(|accepted| accepted.latency).collect();
        latencies.sort_unstable();
        Self {
            behaviour: receiver.state.behaviour,
            accepted: latencies.len(),
            refused: receiver.state.refused.load(Ordering::Relaxed),
            latencies: [50, 99, 100].map(|percent| percentile(&latencies, percent)),
        }
    }
}

fn print_start(rows: &[Row], events: usize, created_in: Duration, queued: usize) -> Result<()> {
    let seconds = created_in.as_secs_f64();
    let mut text = format!(
        "{events} events in {seconds:.1} s ({:.0} a second), to 5 receivers, of which 3 fail:\n\n",
        events as f64 / seconds
    );
    text += &format!("{:<22}{:>10}{:>10}{:>10}{:>10}{:>10}\n", "receiver", "accepted", "refused", "p50 ms", "p99 ms", "max ms");
    for Row { behaviour, accepted, refused, latencies } in rows {
        let [p50, p99, max] = latencies.map(|latency| latency.as_millis());
        text += &format!("{:<22}{accepted:>10}{refused:>10}{p50:>10}{p99:>10}{max:>10}\n", behaviour.name());
    }
    text += &format!("\nin the queues: {queued} messages\n");
    Ok(terminal::print(&text)?)
}

fn print_end(receivers: &[Receiver], records: &[String], took: Duration, queued: usize) -> Result<()> {
    let mut text = format!("\nafter all have recovered ({:.1} s):\n\n", took.as_secs_f64());
    text += &format!("{:<22}{:>10}{:>10}{:>10}\n", "receiver", "accepted", "repeated", "lost");
    for receiver in receivers {
        let lost = receiver.missing(records);
        let accepted = receiver.state.accepted();
        let events = accepted.len();
        // Accepted deliveries beyond the first of each event.
        let repeated: u64 = accepted.values().map(|accepted| accepted.count - 1).sum();
        text += &format!("{:<22}{events:>10}{repeated:>10}{lost:>10}\n", receiver.state.behaviour.name());
    }
    text += &format!("\nin the queues: {queued} messages\n");
    Ok(terminal::print(&text)?)
}
