//! Work that is dropped at any point, as by `kill -9`, is done again.

use super::dropping::dropped_after;
use super::*;
use crate::queue::Counts;
use crate::queue::tests::message;
use crate::webhooks::connector::Step;
use crate::webhooks::worker::{handle, in_batches};
use shared::domain::values::time::Timestamp;
use shared::queue::Queue;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicI64, Ordering};
use tokio::task::yield_now;

/// Tries of each point, at least. The waits of a future are a matter of luck, since the engine and the queue have threads.
const ROUNDS: u32 = 10;
/// The rounds in which both kinds of drops must have happened often enough, however busy the machine is.
const MAX_ROUNDS: u32 = 100;

type Handled<T> = Arc<Mutex<HashMap<T, usize>>>;

/// A function that can be dropped before and after its work, and the record of its work.
fn noting<E: Clone + Send + 'static, R: Default + Send + 'static, T: Eq + Hash + Send + 'static>(
    parts: fn(&E) -> Vec<T>,
) -> (Arc<Function<E, R>>, Handled<T>) {
    let handled = Handled::default();
    let noted = Arc::clone(&handled);
    let function = Function::new(move |event: E| {
        let noted = Arc::clone(&noted);
        Box::pin(async move {
            yield_now().await;
            for part in parts(&event) {
                *noted.lock().unwrap().entry(part).or_default() += 1;
            }
            yield_now().await;
            R::default()
        }) as BoxFuture<'static, R>
    });
    (function, handled)
}

/// Parts that were dropped before they were handled, and parts that were handled more than once.
#[derive(Debug, Default)]
struct Drops {
    before: usize,
    again: usize,
}

impl Drops {
    /// `new` are the parts before a drop, of which `handled` were handled by then.
    fn count<T: Eq + Hash>(&mut self, handled: usize, all: &Handled<T>, new: &[T], name: &str) {
        let all = all.lock().unwrap();
        assert!(new.iter().all(|part| all.contains_key(part)), "{name}: something was lost");
        self.before += usize::from(handled == 0);
        self.again += usize::from(new.iter().any(|part| all[part] > 1));
    }

    fn are_enough(&self, round: u32) -> bool {
        assert!(round < MAX_ROUNDS, "{self:?}");
        round >= ROUNDS && self.before >= 10 && self.again >= 10
    }
}

fn count_of<T: Eq + Hash>(handled: &Handled<T>, new: &[T]) -> usize {
    let handled = handled.lock().unwrap();
    new.iter().filter(|part| handled.contains_key(part)).count()
}

#[tokio::test]
async fn every_record_is_handled_wherever_a_step_of_the_connector_is_dropped() {
    let local = Local::start(None).await;
    let (fanout, handled) = noting(|event: &Event| event.records.iter().map(number).collect());
    let connector = Connector {
        streams: stream::client(&local.engine.url),
        stream: stream::enable(&local.client, TABLE).await.unwrap(),
        table: TABLE.to_owned(),
        trimmer: local.engine.trimmer(),
        queue: local.queue.clone(),
        handler: fanout,
    };
    let (mut drops, mut written) = (Drops::default(), 0);
    let mut round = 0;
    while !drops.are_enough(round) {
        for polls in 1.. {
            // In some rounds more than a batch has, so that a step is also dropped between two of them.
            let new: Vec<usize> = (written..written + if round % 5 == 4 { 101 } else { 2 }).collect();
            local.put_events(written..written + new.len()).await;
            written += new.len();
            let done = dropped_after(polls, connector.step(&mut None)).await;
            let handled_first = count_of(&handled, &new);
            // The next process reads from the checkpoint.
            let mut iterator = None;
            while !matches!(connector.step(&mut iterator).await.unwrap(), Step::Idle) {}
            if done.is_some() {
                break;
            }
            drops.count(handled_first, &handled, &new, &format!("round {round}, {polls} polls"));
        }
        round += 1;
    }
}

async fn receive_and_handle(queue: &SqliteQueue, handler: &Arc<dyn MessageHandler>, settings: Settings) {
    let messages = queue.receive(settings.capacity, settings.visibility).await.unwrap();
    for batch in in_batches(messages) {
        handle(queue.clone(), Arc::clone(handler), batch).await;
    }
}

#[tokio::test]
async fn every_message_is_handled_wherever_the_worker_is_dropped() {
    let millis = Arc::new(AtomicI64::new(1_772_704_800_000));
    let clock = Arc::clone(&millis);
    let queue = SqliteQueue::open(None, Arc::new(move || Timestamp::from_millis(clock.load(Ordering::Relaxed)))).unwrap();
    let (deliver, handled) = noting(|event: &SqsEvent| event.records.iter().map(|it| it.body.clone().unwrap()).collect());
    let handler = deliver as Arc<dyn MessageHandler>;
    let settings = Settings::default();
    let visibility = i64::try_from(settings.visibility.as_millis()).unwrap();
    let (mut drops, mut events) = (Drops::default(), 0..);
    let mut round = 0;
    while !drops.are_enough(round) {
        for polls in 1.. {
            // Two batches of a tenant, and one of another.
            let tenants = [1; 11].into_iter().chain([2; 2]);
            let messages: Vec<_> = tenants.zip(&mut events).map(|(tenant, event)| message(tenant, event)).collect();
            let new: Vec<String> = messages.iter().map(|message| serde_json::to_string(message).unwrap()).collect();
            queue.send(messages.into_iter().map(Into::into).collect()).await.unwrap();
            let done = dropped_after(polls, receive_and_handle(&queue, &handler, settings)).await;
            let handled_first = count_of(&handled, &new);
            // The next worker gets what this one had, at the latest when it is visible again.
            until(async || {
                millis.fetch_add(visibility, Ordering::Relaxed);
                queue.release().await.unwrap();
                receive_and_handle(&queue, &handler, settings).await;
                queue.counts().await.unwrap() == Counts::default()
            })
            .await;
            if done.is_some() {
                break;
            }
            drops.count(handled_first, &handled, &new, &format!("round {round}, {polls} polls"));
        }
        round += 1;
    }
}
