//! The queue's tables and their statements.

use super::Counts;
use super::receipt::Receipt;
use anyhow::{Result, ensure};
use rusqlite::{Connection, OptionalExtension, params};
use shared::queue::{MAX_DELAY, NewMessage};
use std::path::Path;

/// Times are milliseconds since 1970. IDs are never given twice, so a receipt handle never means another message.
const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS messages (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        grouping TEXT NOT NULL,
        body TEXT NOT NULL,
        is_retry INTEGER NOT NULL,
        sent_at INTEGER NOT NULL,
        visible_at INTEGER NOT NULL,
        receives INTEGER NOT NULL DEFAULT 0,
        first_received_at INTEGER,
        is_held INTEGER NOT NULL DEFAULT 0
    );
    CREATE INDEX IF NOT EXISTS messages_of_group ON messages (grouping, visible_at);
    CREATE INDEX IF NOT EXISTS held_messages ON messages (grouping) WHERE is_held = 1;
    CREATE TABLE IF NOT EXISTS dead_letters (
        id INTEGER PRIMARY KEY,
        grouping TEXT NOT NULL,
        body TEXT NOT NULL,
        sent_at INTEGER NOT NULL,
        dead_at INTEGER NOT NULL
    );
    CREATE TABLE IF NOT EXISTS checkpoints (
        stream TEXT PRIMARY KEY,
        sequence_number TEXT NOT NULL
    );";

/// For a new worker, which has none of the messages of an earlier one.
const RELEASE: &str = "UPDATE messages SET is_held = 0, visible_at = ?1 WHERE is_held = 1";

pub(super) struct Database {
    pub connection: Connection,
}

impl Database {
    pub fn open(file: Option<&Path>) -> Result<Self> {
        let connection = match file {
            Some(file) => Connection::open(file)?,
            None => Connection::open_in_memory()?,
        };
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.execute_batch(TABLES)?;
        Ok(Self { connection })
    }

    /// Makes the messages of a worker visible.
    pub fn release(&self, now: i64) -> Result<()> {
        self.connection.execute(RELEASE, params![now])?;
        Ok(())
    }

    /// Stores messages, all or none, in the queue of retries or in that of first attempts.
    pub fn send(&mut self, messages: &[NewMessage], is_retry: bool, now: i64) -> Result<()> {
        let transaction = self.connection.transaction()?;
        for NewMessage { message, delay } in messages {
            ensure!(*delay <= MAX_DELAY, "a message can be delayed by 15 minutes at most");
            let mut insert = transaction.prepare_cached(
                "INSERT INTO messages (grouping, body, is_retry, sent_at, visible_at) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?;
            let body = serde_json::to_string(message)?;
            insert.execute(params![
                super::grouping(&message.group(), is_retry),
                body,
                is_retry,
                now,
                now + super::millis(*delay)
            ])?;
        }
        Ok(transaction.commit()?)
    }

    /// Deletes messages, and leaves others for later.
    pub fn settle(&mut self, done: &[String], failed: &[String]) -> Result<()> {
        const DELETE: &str = "DELETE FROM messages WHERE id = ?1 AND receives = ?2";
        const LEAVE: &str = "UPDATE messages SET is_held = 0 WHERE id = ?1 AND receives = ?2";
        let transaction = self.connection.transaction()?;
        for (statement, receipt_handles) in [(DELETE, done), (LEAVE, failed)] {
            for receipt_handle in receipt_handles {
                let Receipt { id, receives } = receipt_handle.parse()?;
                transaction.prepare_cached(statement)?.execute(params![id, receives])?;
            }
        }
        Ok(transaction.commit()?)
    }

    pub fn checkpoint(&self, stream: &str) -> Result<Option<String>> {
        let query = "SELECT sequence_number FROM checkpoints WHERE stream = ?1";
        Ok(self.connection.query_row(query, params![stream], |row| row.get(0)).optional()?)
    }

    pub fn set_checkpoint(&self, stream: &str, sequence_number: &str) -> Result<()> {
        let upsert = "INSERT INTO checkpoints VALUES (?1, ?2) ON CONFLICT DO UPDATE SET sequence_number = ?2";
        self.connection.prepare_cached(upsert)?.execute(params![stream, sequence_number])?;
        Ok(())
    }

    pub fn counts(&self, now: i64) -> Result<Counts> {
        let query = "SELECT COUNT(*) FILTER (WHERE is_held = 0 AND visible_at <= ?1), COUNT(*) FILTER (WHERE is_held = 1),
                COUNT(*) FILTER (WHERE is_held = 0 AND visible_at > ?1), (SELECT COUNT(*) FROM dead_letters)
            FROM messages";
        Ok(self.connection.query_row(query, params![now], |row| {
            Ok(Counts { visible: row.get(0)?, held: row.get(1)?, hidden: row.get(2)?, dead: row.get(3)? })
        })?)
    }
}
