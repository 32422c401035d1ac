//! What is dropped at any point is done again: that is what `kill -9` leads to.

use super::dropping::dropped_after;
use super::*;
use crate::queue::Counts;
use crate::queue::tests::message;
use crate::webhooks::connector::Step;
use crate::webhooks::worker::{handle, in_batches};
use shared::domain::time::Timestamp;
use shared::queue::Queue;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicI64, Ordering};
use tokio::task::yield_now;

/// What a function has handled to its end.
type Handled<T> = Arc<Mutex<BTreeSet<T>>>;

/// Returns a function that can be dropped before and after it has done its work, and what it has done.
fn noting<E: Clone + Send + 'static, R: Default + Send + 'static, T: Ord + Send + 'static>(
    parts: fn(&E) -> Vec<T>,
) -> (Arc<Function<E, R>>, Handled<T>) {
    let handled = Handled::default();
    let noted = Arc::clone(&handled);
    let function = Function::new(move |event: E| {
        let noted = Arc::clone(&noted);
        Box::pin(async move {
            yield_now().await;
            noted.lock().unwrap().extend(parts(&event));
            yield_now().await;
            R::default()
        }) as BoxFuture<'static, R>
    });
    (function, handled)
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
    let (mut dropped, mut written) = (0, 0);
    for polls in 1..1000 {
        // More than a batch has, so that a step can be dropped between two of them.
        let new: Range<usize> = written..written + if polls % 8 == 0 { 101 } else { 2 };
        local.put_events(new.clone()).await;
        written = new.end;
        let done = dropped_after(polls, connector.step(&mut None)).await;
        dropped += usize::from(done.is_none());
        // The next process reads from the checkpoint.
        let mut iterator = None;
        while !matches!(connector.step(&mut iterator).await.unwrap(), Step::Idle) {}
        let handled = handled.lock().unwrap().clone();
        assert!(new.clone().all(|number| handled.contains(&number)), "{polls} polls: {new:?}");
        if done.is_some() {
            break;
        }
    }
    assert!((8..999).contains(&dropped), "{dropped}");
}

/// Does what the worker does with messages.
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
    let mut dropped = 0;
    for polls in 1..1000 {
        // Two batches of a webhook, and one of another.
        let messages: Vec<_> = [(1, 0..11), (2, 0..2)]
            .into_iter()
            .flat_map(|(webhook, events)| events.map(move |event| message(webhook, polls * 100 + event)))
            .collect();
        queue.send(messages.iter().cloned().map(Into::into).collect()).await.unwrap();
        let done = dropped_after(usize::try_from(polls).unwrap(), receive_and_handle(&queue, &handler, settings)).await;
        dropped += usize::from(done.is_none());
        // The next worker gets what this one had, at the latest when it is visible again.
        until(async || {
            millis.fetch_add(visibility, Ordering::Relaxed);
            queue.release().await.unwrap();
            receive_and_handle(&queue, &handler, settings).await;
            queue.counts().await.unwrap() == Counts::default()
        })
        .await;
        let handled = handled.lock().unwrap().clone();
        assert!(messages.iter().all(|it| handled.contains(&serde_json::to_string(it).unwrap())), "{polls} polls");
        if done.is_some() {
            break;
        }
    }
    assert!((8..999).contains(&dropped), "{dropped}");
}
