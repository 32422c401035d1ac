//! The function `deliver` in a thread of its own, whose processor time is that of deliveries alone.

use anyhow::Result;
use deliver::Deliver;
use dev_server::cpu_time::cpu_time;
use dev_server::queue::Handler;
use shared::domain::webhooks::Message;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};

type Invocation = ((Message, bool), oneshot::Sender<bool>);

/// Dropping it ends the thread.
pub struct DeliverThread {
    invocations: mpsc::UnboundedSender<Invocation>,
    used: Arc<Mutex<Used>>,
}

#[derive(Clone, Copy, Default)]
struct Used {
    messages: usize,
    cpu_time: Duration,
}

impl DeliverThread {
    /// The function's connections must not be used by another thread.
    pub fn start(deliver: Deliver) -> Result<Self> {
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
                        // Nobody waits any more when the benchmark ends.
                        let _ = respond.send(is_done);
                    });
                }
            });
        });
        Ok(Self { invocations, used })
    }

    /// Of each message so far: first attempts and repeated ones.
    pub fn cpu_time_per_message(&self) -> Duration {
        let Used { messages, cpu_time } = *self.used.lock().unwrap_or_else(PoisonError::into_inner);
        cpu_time / u32::try_from(messages).unwrap_or(u32::MAX).max(1)
    }

    /// Hands messages to the thread.
    pub fn handler(&self) -> Arc<Handler> {
        let invocations = self.invocations.clone();
        Arc::new(move |message, is_retry| {
            let (respond, response) = oneshot::channel();
            let _ = invocations.send(((message, is_retry), respond));
            // After a panic, the message comes back.
            Box::pin(async move { response.await.unwrap_or_default() })
        })
    }
}
