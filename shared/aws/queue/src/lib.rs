//! The delivery and retry queues in Amazon SQS (docs/adr/0020-webhooks.md).

mod batches;
mod sqs;

pub use aws_sdk_sqs as sdk;
pub use sqs::{Connect, QUEUE_URL, RETRY_QUEUE_URL, Sqs, configure};
