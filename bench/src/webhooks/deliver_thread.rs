//! The function `deliver` in a thread of its own, whose processor time is that of deliveries alone.

use anyhow::Result;
use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use deliver::Deliver;
use dev_server::cpu_time::cpu_time;
use dev_server::webhooks::MessageHandler;
use futures_util::future::BoxFuture;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};

type Invocation = (SqsEvent, oneshot::Sender<SqsBatchResponse>);

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
                while let Some((event, respond)) = received.recv().await {
                    let (deliver, used) = (Arc::clone(&deliver), Arc::clone(&shared));
                    tokio::spawn(async move {
                        let messages = event.records.len();
                        let response = deliver.handle(event).await;
                        let mut used = used.lock().unwrap_or_else(PoisonError::into_inner);
                        *used = Used { messages: used.messages + messages, cpu_time: cpu_time() };
                        drop(used);
                        // Nobody waits any more when the benchmark ends.
                        let _ = respond.send(response);
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
}

fn failed(messages: Vec<String>) -> SqsBatchResponse {
    let mut response = SqsBatchResponse::default();
    messages.into_iter().for_each(|message| response.add_failure(message));
    response
}

impl MessageHandler for DeliverThread {
    fn handle(&self, event: SqsEvent) -> BoxFuture<'_, SqsBatchResponse> {
        Box::pin(async move {
            let (respond, response) = oneshot::channel();
            let messages: Vec<_> = event.records.iter().filter_map(|message| message.message_id.clone()).collect();
            let _ = self.invocations.send((event, respond));
            // After a panic, the messages come back, as in Lambda.
            response.await.unwrap_or_else(|_| failed(messages))
        })
    }
}
