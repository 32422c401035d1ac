//! Receiving messages.

use super::database::Database;
use super::receipt::Receipt;
use super::shares::{Candidate, Shares};
use anyhow::Result;
use rusqlite::{OptionalExtension, Transaction, params};

/// Receives of a message before it becomes a dead letter.
pub const MAX_RECEIVES: u32 = 30;
/// Messages that are received at once. More would keep senders waiting.
const MAX_MESSAGES: usize = 100;

/// The groups with messages, each with the time from which its first message is visible. Each step looks up the next group: as
/// many look-ups as groups, however many messages they have.
const GROUPS: &str = "
    WITH RECURSIVE groups (grouping) AS (
        SELECT MIN(grouping) FROM messages
        UNION ALL
        SELECT (SELECT MIN(grouping) FROM messages WHERE grouping > groups.grouping) FROM groups WHERE grouping IS NOT NULL
    )
    SELECT grouping,
        (SELECT MIN(visible_at) FROM messages WHERE grouping = groups.grouping) AS since,
        (SELECT COUNT(*) FROM messages WHERE grouping = groups.grouping AND is_held = 1)
    FROM groups WHERE grouping IS NOT NULL AND since <= ?1";

const FIRST: &str = "SELECT id, body, is_retry, sent_at, receives, first_received_at FROM messages
    WHERE grouping = ?1 AND visible_at <= ?2 ORDER BY visible_at, id LIMIT 1";

const HOLD: &str = "UPDATE messages SET visible_at = ?2, receives = ?3, first_received_at = ?4, is_held = 1 WHERE id = ?1";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedMessage {
    pub id: String,
    pub receipt_handle: String,
    pub grouping: String,
    /// JSON.
    pub body: String,
    pub is_retry: bool,
    /// In milliseconds since 1970.
    pub sent_at: i64,
    /// In milliseconds since 1970.
    pub first_received_at: i64,
    pub receives: u32,
}

impl ReceivedMessage {
    /// The first part of its group.
    #[must_use]
    pub fn tenant(&self) -> &str {
        self.grouping.split_once('#').map_or("", |(tenant, _)| tenant)
    }

    #[must_use]
    pub fn queue(&self) -> &'static str {
        if self.is_retry { super::RETRIES } else { super::DELIVERIES }
    }
}

impl Database {
    pub fn receive(&mut self, capacity: usize, now: i64, visibility: i64) -> Result<Vec<ReceivedMessage>> {
        let transaction = self.connection.transaction()?;
        let held: usize = transaction.query_row("SELECT COUNT(*) FROM messages WHERE is_held = 1", [], |row| row.get(0))?;
        let free = capacity.saturating_sub(held);
        if free == 0 {
            return Ok(Vec::new());
        }
        let mut shares = Shares::new(free, waiting(&transaction, now)?);
        let mut received = Vec::new();
        while received.len() < MAX_MESSAGES
            && let Some(next) = shares.next()
        {
            if let Some(message) = take(&transaction, &next.grouping, now, now + visibility)? {
                received.push(message);
                shares.took(next);
            }
        }
        transaction.commit()?;
        Ok(received)
    }
}

fn waiting(transaction: &Transaction<'_>, now: i64) -> Result<Vec<Candidate>> {
    let mut query = transaction.prepare_cached(GROUPS)?;
    let groups =
        query.query_map(params![now], |row| Ok(Candidate { grouping: row.get(0)?, since: row.get(1)?, held: row.get(2)? }))?;
    Ok(groups.collect::<Result<_, _>>()?)
}

/// Receives the first visible message of a group. Those that were received too often become dead letters.
fn take(transaction: &Transaction<'_>, grouping: &str, now: i64, hidden_until: i64) -> Result<Option<ReceivedMessage>> {
    loop {
        let mut first = transaction.prepare_cached(FIRST)?;
        let first = first.query_row(params![grouping, now], |row| {
            let first_received_at: Option<i64> = row.get(5)?;
            let receives: u32 = row.get(4)?;
            let message = ReceivedMessage {
                id: String::new(),
                receipt_handle: String::new(),
                grouping: grouping.to_owned(),
                body: row.get(1)?,
                is_retry: row.get(2)?,
                sent_at: row.get(3)?,
                first_received_at: first_received_at.unwrap_or(now),
                receives: receives + 1,
            };
            Ok((row.get::<_, i64>(0)?, message))
        });
        let Some((id, message)) = first.optional()? else { return Ok(None) };
        let ReceivedMessage { receives, first_received_at, .. } = message;
        if receives > MAX_RECEIVES {
            bury(transaction, id, now)?;
            continue;
        }
        transaction.prepare_cached(HOLD)?.execute(params![id, hidden_until, receives, first_received_at])?;
        return Ok(Some(ReceivedMessage { id: id.to_string(), receipt_handle: Receipt { id, receives }.to_string(), ..message }));
    }
}

fn bury(transaction: &Transaction<'_>, id: i64, now: i64) -> Result<()> {
    let bury = "INSERT INTO dead_letters SELECT id, grouping, body, sent_at, ?2 FROM messages WHERE id = ?1";
    transaction.execute(bury, params![id, now])?;
    transaction.execute("DELETE FROM messages WHERE id = ?1", params![id])?;
    tracing::error!(
        message_id = id,
        "a message of the queue was received {MAX_RECEIVES} times and never handled: it is a dead letter now"
    );
    Ok(())
}
