//! Deliveries that fail: their repetitions and their end.

use crate::support::queue::VISIBILITY;
use crate::support::webhooks::pipeline::{created, with_webhook};
use chrono::TimeDelta;
use shared::domain::webhooks::{AttemptFailure, DeliveryStatus, Message, RETRY_DELAYS};
use shared::queue::NewMessage;
use std::collections::HashMap;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn failures_are_repeated_by_the_schedule() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    let (_, event) = created(&api, &client, &mut pipeline).await;
    pipeline.receivers.respond(|_| 503);
    api.stop_clock();
    pipeline.run().await;
    // A waiting message is not in flight in the queue of first attempts: it is held back in the other one.
    assert_eq!((pipeline.queue.first_attempts(), pipeline.queue.len()), (0, 1));
    let sent: Vec<Duration> = pipeline.queue.take_sent_retries().iter().map(|new| new.delay).collect();
    assert!(sent.len() == 1 && (5..=6).contains(&sent[0].as_secs()), "{sent:?}");
    pipeline.run_to_end(&api).await;
    let received = pipeline.receivers.take();
    assert_eq!(received.len(), 1 + RETRY_DELAYS.len());
    assert!(received.iter().all(|sent| sent.id == event && sent.body == received[0].body));
    for (pair, delay) in received.windows(2).zip(RETRY_DELAYS) {
        let (waited, most) = (pair[1].at.since(pair[0].at), delay + delay / 10);
        // The queue counts whole seconds, so an attempt may be less than a second early.
        assert!(waited > delay - TimeDelta::seconds(1) && waited <= most, "{waited} instead of {delay} to {most}");
        assert_eq!(pair[1].seconds, pair[1].at.millis() / 1000);
        assert_eq!(pair[1].signatures, hook.secret.sign(&event, pair[1].seconds, &pair[1].body));
    }
    let waits: Vec<TimeDelta> = received.windows(2).map(|pair| pair[1].at.since(pair[0].at)).collect();
    assert!(
        waits.iter().zip(RETRY_DELAYS).any(|(waited, delay)| *waited > delay + TimeDelta::seconds(1)),
        "no jitter: {waits:?}"
    );
    // Each wait is one message, which is sent again as long as it is longer than a delay can be.
    let mut parts = HashMap::<u32, (Duration, u32)>::new();
    for new in sent.into_iter().map(|delay| (2, delay)).chain(pipeline.queue.take_sent_retries().iter().map(of_number)) {
        let (sum, count) = parts.entry(new.0).or_default();
        (*sum, *count) = (*sum + new.1, *count + 1);
    }
    assert_eq!(parts.len(), RETRY_DELAYS.len());
    for (number, delay) in (2..).zip(RETRY_DELAYS) {
        let (delay, (sum, count)) = (delay.to_std().unwrap(), parts[&number]);
        assert!(sum + Duration::from_secs(2) > delay && sum <= delay + delay / 10, "{sum:?} instead of {delay:?}");
        assert_eq!(count, u32::try_from(sum.as_secs().div_ceil(900)).unwrap(), "{number}");
    }
    let record = hook.delivery(&event).await.unwrap();
    assert_eq!((record.status, record.tries, record.next_attempt_at), (DeliveryStatus::Failed, 10, None));
    assert!(record.attempts.iter().zip(&received).all(|(attempt, sent)| attempt.at == sent.at && attempt.status == Some(503)));
    assert_eq!(pipeline.queue.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_success_after_failures_ends_the_delivery() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    let (_, event) = created(&api, &client, &mut pipeline).await;
    let mut statuses = [0, 302, 500, 201].into_iter();
    pipeline.receivers.respond(move |_| statuses.next().unwrap());
    pipeline.run().await;
    let pending = hook.delivery(&event).await.unwrap();
    assert_eq!((pending.status, pending.attempts[0].error), (DeliveryStatus::Pending, Some(AttemptFailure::TimedOut)));
    let due = pending.next_attempt_at.unwrap().since(pending.attempts[0].at);
    assert!(due >= TimeDelta::seconds(5) && due <= TimeDelta::milliseconds(5500), "{due}");
    pipeline.run_to_end(&api).await;
    let record = hook.delivery(&event).await.unwrap();
    let statuses: Vec<Option<u16>> = record.attempts.iter().map(|attempt| attempt.status).collect();
    assert_eq!((record.status, statuses), (DeliveryStatus::Delivered, vec![None, Some(302), Some(500), Some(201)]));
    assert_eq!(pipeline.receivers.len(), 4);
}

fn of_number(new: &NewMessage) -> (u32, Duration) {
    let Message::Delivery(request) = &new.message else { panic!("{new:?}") };
    (request.number, new.delay)
}

/// A message that comes back, since the one that waits in its place could not be sent, waits again.
#[tokio::test(start_paused = true)]
async fn an_attempt_is_not_made_before_it_is_due() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    let (_, event) = created(&api, &client, &mut pipeline).await;
    let mut attempts = 0;
    pipeline.receivers.respond(move |_| {
        attempts += 1;
        if attempts < 3 { 500 } else { 200 }
    });
    pipeline.run().await;
    api.advance_clock(6);
    pipeline.queue.fail_call(0, false);
    pipeline.run().await;
    assert!(pipeline.queue.stop_failing());
    assert_eq!(pipeline.receivers.len(), 2);
    pipeline.queue.take_sent_retries();
    api.advance_clock(VISIBILITY.num_seconds());
    pipeline.run().await;
    assert_eq!(pipeline.receivers.len(), 2);
    let waits = pipeline.queue.take_sent_retries();
    assert!(waits.len() == 1 && (100..160).contains(&waits[0].delay.as_secs()), "{waits:?}");
    pipeline.run_to_end(&api).await;
    assert_eq!((pipeline.receivers.len(), hook.delivery(&event).await.unwrap().status), (3, DeliveryStatus::Delivered));
}
