//! Splits messages into batches.

use aws_sdk_sqs::error::BuildError;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;

/// Maximum number of messages per request (SQS: SendMessageBatch).
pub const MAX_MESSAGES: usize = 10;
/// Maximum size of a request. SQS accepts 1 MiB since 2025, and 256 KiB before. A message has less than 4 KiB, so only a bug
/// could reach either limit.
const MAX_BYTES: usize = 256 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// Messages of one group don't delay other groups.
    pub group: String,
    /// JSON.
    pub body: String,
    pub delay_seconds: i32,
}

/// Splits messages into batches that SQS accepts, in order.
pub fn batches(messages: Vec<Outgoing>) -> Vec<Vec<Outgoing>> {
    let mut batches: Vec<Vec<Outgoing>> = Vec::new();
    let mut bytes = 0;
    for message in messages {
        match batches.last_mut() {
            Some(batch) if batch.len() < MAX_MESSAGES && bytes + message.body.len() <= MAX_BYTES => {
                bytes += message.body.len();
                batch.push(message);
            }
            _ => {
                bytes = message.body.len();
                batches.push(vec![message]);
            }
        }
    }
    batches
}

/// The entries of a batch. Each entry's ID is its index.
///
/// # Errors
///
/// Returns a [`BuildError`] when an entry lacks a required field, which never happens.
pub fn entries(batch: &[Outgoing]) -> Result<Vec<SendMessageBatchRequestEntry>, BuildError> {
    let entry = |(place, message): (usize, &Outgoing)| {
        SendMessageBatchRequestEntry::builder()
            .id(place.to_string())
            .message_group_id(&message.group)
            .message_body(&message.body)
            .delay_seconds(message.delay_seconds)
            .build()
    };
    batch.iter().enumerate().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: usize) -> Outgoing {
        Outgoing { group: "g".into(), body: "x".repeat(bytes), delay_seconds: 0 }
    }

    fn lengths(sizes: &[usize]) -> Vec<usize> {
        batches(sizes.iter().map(|size| message(*size)).collect()).iter().map(Vec::len).collect()
    }

    #[test]
    fn a_batch_has_at_most_ten_messages() {
        assert_eq!(lengths(&[]), [0; 0]);
        assert_eq!(lengths(&[1; 10]), [10]);
        assert_eq!(lengths(&[1; 25]), [10, 10, 5]);
    }

    #[test]
    fn a_batch_is_not_larger_than_sqs_takes() {
        assert_eq!(lengths(&[MAX_BYTES / 2; 5]), [2, 2, 1]);
        assert_eq!(lengths(&[MAX_BYTES - 1, 1, 1]), [2, 1]);
        // SQS rejects the large one, but not the others.
        assert_eq!(lengths(&[1, MAX_BYTES + 1, 1]), [1, 1, 1]);
    }

    #[test]
    fn batches_keep_the_order() {
        let messages: Vec<Outgoing> = (0..25).map(message).collect();
        assert_eq!(batches(messages.clone()).concat(), messages);
    }
}
