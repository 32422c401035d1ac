//! Optimistic locking: decides again from fresh data when another writer was faster.

use crate::domain::request::StoredResponse;
use crate::store::table::change_context::ChangeContext;
use crate::store::table::deadline::has_time_for_operation;
use crate::store::table::error::{StoreError, WriteError};
use crate::store::table::unit_of_work::UnitOfWork;
use crate::store::{Store, TenantStore};
use std::time::Duration;

/// How often a change is decided before the caller is told to try again.
const MAX_ATTEMPTS: u32 = 5;
/// The first pause is at most this long, and each further one twice as long.
const FIRST_PAUSE_MILLIS: u64 = 10;
/// How often the pause doubles: to 640 ms at most.
const MAX_DOUBLINGS: u32 = 6;

/// Why an attempt to commit a change failed.
#[derive(Debug)]
pub enum AttemptError<E> {
    /// Another writer was faster: read again and decide again.
    Outdated(WriteError),
    /// Another attempt would fail in the same way.
    Failed(E),
}

impl<E: From<WriteError>> From<WriteError> for AttemptError<E> {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Stale | WriteError::MissingReference(_) => Self::Outdated(error),
            other => Self::Failed(other.into()),
        }
    }
}

/// Decides a change from `inputs` and commits it in one transaction. When another writer was faster, pauses, reads the
/// inputs again with `reread` and decides again, up to five times.
///
/// `decide` adds the changes to the unit of work and returns what they lead to; it must do nothing else, since it may
/// be called several times. `respond` makes the response that is stored for a request with an idempotency key.
/// `judge` says what a failed commit means.
///
/// # Errors
///
/// Returns the error of `decide` or `reread`, what `judge` makes of a failed commit, or the last [`WriteError`] if every
/// attempt was outdated.
pub async fn retry<I, T, E, R>(
    store: &TenantStore,
    context: &ChangeContext,
    mut inputs: I,
    mut reread: impl FnMut(I) -> R,
    decide: impl Fn(&mut UnitOfWork<'_>, &I) -> Result<T, AttemptError<E>>,
    respond: impl Fn(&T) -> Result<StoredResponse, StoreError>,
    judge: impl Fn(WriteError, &T) -> AttemptError<E>,
) -> Result<T, E>
where
    R: Future<Output = Result<I, E>>,
    E: From<WriteError>,
{
    let mut attempt = 1;
    loop {
        let mut unit = UnitOfWork::new(store, context);
        let failure = match decide(&mut unit, &inputs) {
            Err(failure) => failure,
            Ok(decided) => match unit.commit_with(|| respond(&decided)).await {
                Ok(()) => return Ok(decided),
                Err(error) => judge(error, &decided),
            },
        };
        match failure {
            AttemptError::Failed(error) => return Err(error),
            AttemptError::Outdated(error) if attempt == MAX_ATTEMPTS || !has_time_for_operation() => return Err(error.into()),
            AttemptError::Outdated(_) => {
                pause(store.store(), attempt - 1).await;
                inputs = reread(inputs).await?;
            }
        }
        attempt += 1;
    }
}

/// Waits a random time before another attempt, so that rivals part: up to 10 ms after round 0, 20 ms after round 1, and
/// so on up to 640 ms.
pub(crate) async fn pause(store: &Store, round: u32) {
    let longest = FIRST_PAUSE_MILLIS << round.min(MAX_DOUBLINGS);
    // Without random bytes every rival waits equally long.
    let bytes = store.random().unwrap_or_default();
    tokio::time::sleep(Duration::from_millis(1 + u64::from(u16::from_le_bytes(bytes)) % longest)).await;
}
