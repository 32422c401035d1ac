//! One transaction, retried while others are in its way.

use super::Store;
use super::error::{StoreError, means_later};
use super::keys::Item;
use super::retry::pause;
use crate::domain::record::Kind;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{CancellationReason, TransactWriteItem};
use tokio::time::Instant;

/// What a part of a transaction guards; says what it means when its condition fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition {
    /// The thing itself: its version, or that it is new.
    Record,
    /// The thing at this version, and that nothing points to it.
    Unused(u64),
    /// That a value is free: of things of this kind, in this field.
    Unique(Kind, &'static str),
    /// That what a field points to is there.
    Reference(&'static str),
    /// That the request was not answered yet.
    Answer,
    /// What can only fail by a mistake of ours.
    Certain,
}

/// A part of a transaction.
pub(super) struct TransactionItem {
    pub(super) guard: Condition,
    pub(super) write: TransactWriteItem,
}

/// Why a transaction did nothing.
pub(super) enum TransactionError {
    /// A condition failed; with the item that was there, where the part asked for it.
    By(Condition, Option<Item>),
    /// The same request is being written by another at this moment, for as long as this one may take.
    Rival,
    /// The table.
    Store(StoreError),
}

impl Store {
    /// Writes all parts or none, and gives up when `until` comes: an event that got its id at the beginning is then
    /// in the table, or never will be.
    ///
    /// The SDK repeats throttled and timed-out attempts under one ClientRequestToken, so that an attempt which
    /// took effect unseen is not done twice. A TransactionConflict it leaves to us.
    pub(super) async fn transact(&self, parts: Vec<TransactionItem>, until: Instant) -> Result<(), TransactionError> {
        let (guards, writes): (Vec<Condition>, Vec<TransactWriteItem>) = parts.into_iter().map(|p| (p.guard, p.write)).unzip();
        for round in 0.. {
            if Instant::now() >= until {
                return Err(TransactionError::Store(StoreError::Unavailable("it took too long to decide".into())));
            }
            let sending = self.client.transact_write_items().set_transact_items(Some(writes.clone())).send();
            let error = match tokio::time::timeout_at(until, sending).await {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(error)) => error,
                Err(elapsed) => return Err(TransactionError::Store(StoreError::Unavailable(elapsed.into()))),
            };
            let Some(reasons) = cancelled(&error) else { return Err(TransactionError::Store(error.into())) };
            let failed = |reason: &&CancellationReason| reason.code() == Some("ConditionalCheckFailed");
            if let Some((guard, reason)) = guards.iter().zip(reasons).find(|(_, reason)| failed(reason)) {
                return Err(TransactionError::By(*guard, reason.item.clone()));
            }
            if !reasons.iter().filter_map(CancellationReason::code).any(|code| code == "TransactionConflict" || means_later(code))
            {
                return Err(TransactionError::Store(StoreError::Internal(error.into())));
            }
            pause(round).await;
            if Instant::now() >= until {
                let rival = |(guard, reason): (&Condition, &CancellationReason)| {
                    *guard == Condition::Answer && reason.code() == Some("TransactionConflict")
                };
                if guards.iter().zip(reasons).any(rival) {
                    return Err(TransactionError::Rival);
                }
                return Err(TransactionError::Store(StoreError::Unavailable(error.into())));
            }
        }
        unreachable!("the loop ends by returning")
    }
}

fn cancelled(error: &SdkError<TransactWriteItemsError>) -> Option<&[CancellationReason]> {
    match error.as_service_error()? {
        TransactWriteItemsError::TransactionCanceledException(cancelled) => Some(cancelled.cancellation_reasons()),
        _ => None,
    }
}
