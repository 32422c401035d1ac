//! The engine's stream records, which it never deletes, through a connection of our own to its database.

use anyhow::{Context, Result};
use rusqlite::{Connection, params};
use tokio::sync::{mpsc, oneshot};

/// The engine adds this to the numbers that it stores, so that public ones have as many digits as DynamoDB's.
const OFFSET: u128 = 100_000_000_000_000_000_000;

/// Without it, the engine would look through all records for each one that it adds: it takes the highest number so far.
const INDEX: &str = "CREATE INDEX IF NOT EXISTS stream_records_in_order
    ON _stream_records (table_name, CAST(sequence_number AS INTEGER))";

const TRIM: &str = "DELETE FROM _stream_records WHERE table_name = ?1 AND CAST(sequence_number AS INTEGER) < ?2";

/// Must be used only between calls of the engine, on its thread.
pub struct StreamRecords {
    connection: Connection,
}

impl StreamRecords {
    /// Connects to a database that the engine has opened, and creates the index for its stream records.
    ///
    /// # Errors
    ///
    /// Returns an error when the database can't be opened.
    pub fn open(location: &str) -> Result<Self> {
        let connection = Connection::open(location)?;
        // As the engine's connection.
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.execute_batch(INDEX).context("can't create the index of stream records")?;
        Ok(Self { connection })
    }

    /// Deletes a table's records before the one with this sequence number, and returns their number. That one stays: the engine
    /// numbers records by the clock, but always above the last one.
    ///
    /// # Errors
    ///
    /// Returns an error when the number is none of the engine, or the database fails.
    pub fn trim(&self, table: &str, sequence_number: &str) -> Result<usize> {
        let stored = sequence_number.parse::<u128>().ok().and_then(|number| number.checked_sub(OFFSET));
        let stored = stored.and_then(|number| i64::try_from(number).ok()).context("this is no sequence number")?;
        Ok(self.connection.prepare_cached(TRIM)?.execute(params![table, stored])?)
    }

    /// Executes the requests of [`Trimmer`]s.
    pub(crate) async fn serve(self, mut requests: mpsc::UnboundedReceiver<TrimRequest>) {
        while let Some(TrimRequest { table, sequence_number, response }) = requests.recv().await {
            let _ = response.send(self.trim(&table, &sequence_number));
        }
    }
}

pub(crate) struct TrimRequest {
    table: String,
    sequence_number: String,
    response: oneshot::Sender<Result<usize>>,
}

/// Deletes stream records of a running engine, on its thread.
#[derive(Clone)]
pub struct Trimmer(pub(crate) mpsc::UnboundedSender<TrimRequest>);

impl Trimmer {
    /// As [`StreamRecords::trim`].
    ///
    /// # Errors
    ///
    /// Returns an error when the engine has stopped, or when [`StreamRecords::trim`] does.
    pub async fn trim(&self, table: &str, sequence_number: &str) -> Result<usize> {
        let (response, received) = oneshot::channel();
        let request = TrimRequest { table: table.to_owned(), sequence_number: sequence_number.to_owned(), response };
        let stopped = "the engine has stopped";
        self.0.send(request).ok().context(stopped)?;
        received.await.context(stopped)?
    }
}
