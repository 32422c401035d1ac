//! Writing on behalf of a caller, deciding again when somebody was faster.

use super::Caller;
use crate::domain::field_error::FieldError;
use crate::domain::record::{Record, Stored};
use crate::domain::request::StoredResponse;
use crate::http::Answer;
use crate::http::error::ApiError;
use crate::store::{StoreError, WriteError, pause};

/// How often a decision is made again before the client is told to do so.
pub const TRIES: u32 = 5;

impl Caller {
    /// Writes a new thing and answers with `reply`, which is also what the request gets when it comes again.
    ///
    /// # Errors
    ///
    /// 409 for a value that is taken, 422 for a field that points to nothing.
    pub async fn create<T: Record>(&self, value: T, reply: impl Fn(&Stored<T>) -> Answer) -> Answer {
        let kept = |stored: &Stored<T>| keep(reply(stored));
        let stored = self.store.create(value, &self.context, kept).await.map_err(dangling)?;
        reply(&stored)
    }

    /// Changes a thing that was just read. `decide` gives the next state and whether it is possible only while
    /// nothing points to the thing; it is asked again if somebody else changes the thing meanwhile, so that the
    /// changes of both stand. For what no POST asks for: no answer is kept.
    ///
    /// # Errors
    ///
    /// Those of `decide`; 404 if the thing goes meanwhile; 409 if others keep being faster; 412.
    pub async fn update<T: Record>(
        &self,
        mut old: Stored<T>,
        decide: impl Fn(&T) -> Result<(T, bool), ApiError>,
    ) -> Result<Stored<T>, ApiError> {
        for round in 0..TRIES {
            let (next, unused) = decide(&old.value)?;
            let unkept = |_: &Stored<T>| Err(StoreError::broken("a request that may come again, and no answer to keep"));
            let written = if unused {
                self.store.update_unreferenced(&old, next, &self.context, unkept).await
            } else {
                self.store.update(&old, next, &self.context, unkept).await
            };
            match written {
                Err(WriteError::Stale) => old = self.again(&old, round).await?,
                other => return other.map_err(dangling),
            }
        }
        Err(WriteError::Stale.into())
    }

    /// Deletes a thing that was just read, whoever else is changing it, as long as `permit` has nothing against it.
    ///
    /// # Errors
    ///
    /// Those of `permit`; 409 with the count while others point to it; 404 if it goes meanwhile.
    pub async fn delete<T: Record>(
        &self,
        mut old: Stored<T>,
        permit: impl Fn(&T) -> Result<(), ApiError>,
    ) -> Result<Stored<T>, ApiError> {
        for round in 0..TRIES {
            permit(&old.value)?;
            match self.store.delete(&old, &self.context).await {
                Ok(()) => return Ok(old),
                Err(WriteError::Stale) => old = self.again(&old, round).await?,
                Err(error) => return Err(error.into()),
            }
        }
        Err(WriteError::Stale.into())
    }

    async fn again<T: Record>(&self, old: &Stored<T>, round: u32) -> Result<Stored<T>, ApiError> {
        pause(round).await;
        self.store.get::<T>(old.value.id()).await?.ok_or(ApiError::NotFound)
    }
}

/// What is kept of an answer that shows no signature.
///
/// # Errors
///
/// The answer can't be written.
pub fn keep(answer: Answer) -> Result<StoredResponse, StoreError> {
    answer.map_err(StoreError::broken)?.kept(Vec::new())
}

fn dangling(error: WriteError) -> ApiError {
    match error {
        WriteError::MissingReference(field) => ApiError::Invalid(vec![missing(field)]),
        other => other.into(),
    }
}

/// The field_error of a field that points to nothing.
#[must_use]
pub fn missing(field: &str) -> FieldError {
    FieldError::field(field, "names nothing in this tenant")
}
