//! One transaction, retried while it conflicts with others.

use crate::domain::record::Kind;
use crate::store::Store;
use crate::store::keys::Item;
use crate::store::table::backoff::pause;
use crate::store::table::error::{StoreError, is_retryable};
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{CancellationReason, TransactWriteItem};
use tokio::time::Instant;

/// The purpose of an item's condition, and so the meaning of its failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Condition {
    /// The record is new, or as it was read.
    RecordState,
    /// Nothing refers to the record.
    Unreferenced,
    /// No other record of this kind has the same value in this field.
    UniqueValue(Kind, &'static str),
    /// The record that this field refers to exists and can be referenced.
    Reference(&'static str),
    /// No response is stored for the request yet.
    NoStoredResponse,
    /// Something that always holds, unless the service has a bug.
    Invariant,
}

pub(in crate::store) struct TransactionItem {
    pub(in crate::store) condition: Condition,
    pub(in crate::store) write: TransactWriteItem,
}

pub(in crate::store) enum TransactionError {
    /// The first condition that failed, with the present item if the write requests it.
    ConditionFailed(Condition, Option<Item>),
    /// The same request was being written by another function instance until the deadline.
    ConcurrentRequest,
    Store(StoreError),
}

impl Store {
    /// Writes all items or none, and gives up at `deadline`. An event whose id was created when the unit of work began
    /// is therefore written by then, or never.
    ///
    /// The SDK retries throttled and timed-out attempts with the same ClientRequestToken, so an attempt whose response
    /// was lost is not executed twice. It does not retry a TransactionConflict; this function does.
    pub(in crate::store) async fn transact(
        &self,
        items: Vec<TransactionItem>,
        deadline: Instant,
    ) -> Result<(), TransactionError> {
        let (conditions, writes): (Vec<Condition>, Vec<TransactWriteItem>) =
            items.into_iter().map(|item| (item.condition, item.write)).unzip();
        for round in 0.. {
            if Instant::now() >= deadline {
                return Err(TransactionError::Store(StoreError::TooLate));
            }
            let request = self.client.transact_write_items().set_transact_items(Some(writes.clone())).send();
            let error = match tokio::time::timeout_at(deadline, request).await {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(error)) => error,
                Err(elapsed) => return Err(TransactionError::Store(StoreError::Unavailable(elapsed.into()))),
            };
            let Some(reasons) = cancellation_reasons(&error) else { return Err(TransactionError::Store(error.into())) };
            let failed = |reason: &&CancellationReason| reason.code() == Some("ConditionalCheckFailed");
            if let Some((condition, reason)) = conditions.iter().zip(reasons).find(|(_, reason)| failed(reason)) {
                return Err(TransactionError::ConditionFailed(*condition, reason.item.clone()));
            }
            let retryable = |code: &str| code == "TransactionConflict" || is_retryable(code);
            if !reasons.iter().filter_map(CancellationReason::code).any(retryable) {
                return Err(TransactionError::Store(StoreError::Internal(error.into())));
            }
            pause(self, round).await;
            if Instant::now() >= deadline {
                let same_request = |(condition, reason): (&Condition, &CancellationReason)| {
                    *condition == Condition::NoStoredResponse && reason.code() == Some("TransactionConflict")
                };
                if conditions.iter().zip(reasons).any(same_request) {
                    return Err(TransactionError::ConcurrentRequest);
                }
                return Err(TransactionError::Store(StoreError::Unavailable(error.into())));
            }
        }
        unreachable!("the loop ends by returning")
    }
}

fn cancellation_reasons(error: &SdkError<TransactWriteItemsError>) -> Option<&[CancellationReason]> {
    match error.as_service_error()? {
        TransactWriteItemsError::TransactionCanceledException(cancelled) => Some(cancelled.cancellation_reasons()),
        _ => None,
    }
}
