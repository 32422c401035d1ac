//! Receivers of deliveries: healthy ones, and ones that are dead, slow, or fail half of the time until they recover.

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde::Deserialize;
use shared::app::system_clock;
use shared::store::Clock;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;

/// The time that a slow receiver takes to respond.
const SLOW: Duration = Duration::from_secs(10);

/// The behaviour of a receiver until it recovers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// It responds at once, always.
    Healthy,
    /// Nothing listens at its port.
    Dead,
    /// It responds after 10 seconds.
    Slow,
    /// It responds with 500 to every second request, at random.
    Failing,
}

impl Behaviour {
    pub const fn name(self) -> &'static str {
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
    /// From the time in the event to its first delivery.
    latency: Duration,
    count: u64,
}

/// A receiver with an address of its own.
pub struct Receiver {
    pub behaviour: Behaviour,
    address: SocketAddr,
    state: Arc<ReceiverState>,
}

struct ReceiverState {
    clock: Clock,
    behaviour: Behaviour,
    has_recovered: AtomicBool,
    refused: AtomicU64,
    /// By the ID of the event's record.
    accepted: Mutex<HashMap<String, Accepted>>,
}

/// The fields of a delivery that the receiver reads.
#[derive(Deserialize)]
struct Delivered {
    data: Entry,
}

#[derive(Deserialize)]
struct Entry {
    entity_id: String,
    at: shared::domain::values::time::Timestamp,
}

impl Receiver {
    /// Starts a receiver. A dead one only reserves its port.
    pub async fn start(behaviour: Behaviour) -> Result<Self> {
        let state = ReceiverState {
            clock: system_clock(),
            behaviour,
            has_recovered: AtomicBool::new(false),
            refused: AtomicU64::new(0),
            accepted: Mutex::default(),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let receiver = Self { behaviour, address: listener.local_addr()?, state: Arc::new(state) };
        if behaviour != Behaviour::Dead {
            receiver.serve(listener);
        }
        Ok(receiver)
    }

    fn serve(&self, listener: TcpListener) {
        let router = Router::new().route("/", post(receive)).with_state(Arc::clone(&self.state));
        tokio::spawn(async move { axum::serve(listener, router).await });
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    pub async fn recover(&self) -> Result<()> {
        self.state.has_recovered.store(true, Ordering::Relaxed);
        if self.behaviour == Behaviour::Dead {
            self.serve(TcpListener::bind(self.address).await.context("the port of the dead receiver was taken")?);
        }
        Ok(())
    }

    pub fn events(&self) -> usize {
        self.state.accepted().len()
    }

    /// Accepted deliveries beyond the first of each event.
    pub fn repetitions(&self) -> u64 {
        self.state.accepted().values().map(|accepted| accepted.count - 1).sum()
    }

    pub fn refused(&self) -> u64 {
        self.state.refused.load(Ordering::Relaxed)
    }

    /// The number of records without an accepted delivery.
    pub fn missing(&self, records: &[String]) -> usize {
        let accepted = self.state.accepted();
        records.iter().filter(|record| !accepted.contains_key(*record)).count()
    }

    /// In ascending order.
    pub fn latencies(&self) -> Vec<Duration> {
        let mut latencies: Vec<Duration> = self.state.accepted().values().map(|accepted| accepted.latency).collect();
        latencies.sort_unstable();
        latencies
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
            Behaviour::Slow => tokio::time::sleep(SLOW).await,
            Behaviour::Failing if fastrand::bool() => {
                state.refused.fetch_add(1, Ordering::Relaxed);
                return StatusCode::INTERNAL_SERVER_ERROR;
            }
            _ => {}
        }
    }
    let Ok(Delivered { data }) = serde_json::from_slice(&body) else { return StatusCode::BAD_REQUEST };
    if !headers.contains_key("webhook-id") || !headers.contains_key("webhook-signature") {
        return StatusCode::BAD_REQUEST;
    }
    let latency = (state.clock)().since(data.at).to_std().unwrap_or_default();
    let mut accepted = state.accepted();
    let first = Accepted { latency, count: 0 };
    accepted.entry(data.entity_id).or_insert(first).count += 1;
    StatusCode::NO_CONTENT
}
