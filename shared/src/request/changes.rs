//! The only way to write on behalf of a caller, with optimistic locking: an attempt reads, decides and commits, and after a
//! write conflict another attempt does so from fresh data. Most writes concern one record: handlers get, create, change and
//! delete it with the functions here.

use crate::auth::{Caller, Principal, VerifiedCaller};
use crate::domain::record::{Record, Stored};
use crate::domain::values::field_error::{ErrorLocation, FieldError, ValueError};
use crate::http::requests::body::{JsonBody, PatchBody};
use crate::http::responses::{ApiError, Created, Data, Success, Versioned, or_not_found};
use crate::store::{CommitFailure, DryRun, UnitOfWork, WriteError, has_time_for_operation, pause};
use serde::Serialize;
use std::fmt;

/// A value that only the real request assigns: null in a dry run. Only [`Principal::assign`] makes one.
#[derive(Clone, Serialize)]
#[serde(transparent)]
pub struct Assigned<T>(Option<T>);

/// Omits the value, which can be a secret.
impl<T> fmt::Debug for Assigned<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Assigned")
    }
}

/// Maximum number of attempts before the request fails.
const MAX_ATTEMPTS: u32 = 5;

impl Principal {
    /// Starts an empty unit of work.
    #[must_use]
    pub fn unit(&self) -> UnitOfWork<'_> {
        UnitOfWork::new(&self.store, &self.context)
    }

    /// Marks a value that only the real request assigns, such as a secret: a dry run returns null instead. IDs of new records,
    /// asset tags and movement numbers need no mark, because the store assigns them.
    #[must_use]
    pub fn assign<T>(&self, value: T) -> Assigned<T> {
        Assigned((!self.store.is_dry_run()).then_some(value))
    }

    /// Calls `attempt` until it commits, at most five times. The first attempt gets `inputs`, which the handler read while the key
    /// was verified. After a write conflict, pauses and reads the inputs again.
    ///
    /// # Errors
    ///
    /// Returns the error of an attempt that failed or of `read`, or the last [`WriteError`] if every attempt has a write conflict.
    pub async fn retry<I, T, R, F>(&self, mut inputs: I, read: impl Fn() -> R, attempt: impl Fn(I) -> F) -> Result<T, ApiError>
    where
        R: Future<Output = Result<I, ApiError>>,
        F: Future<Output = Result<T, CommitFailure<ApiError>>>,
    {
        let mut number = 1;
        loop {
            match attempt(inputs).await {
                Ok(outcome) => return Ok(outcome),
                Err(CommitFailure::Failed(error)) => return Err(error.with_actor(&self.store).await),
                Err(CommitFailure::Outdated(error)) if number == MAX_ATTEMPTS || !has_time_for_operation() => {
                    return Err(error.into());
                }
                Err(CommitFailure::Outdated(_)) => pause(self.store.store(), number - 1).await,
            }
            number += 1;
            inputs = read().await?;
        }
    }

    /// Creates a record, and stores the response for retries of the request. The response must not contain images.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Conflict`] for a duplicate of a unique value, and [`ApiError::Invalid`] for a field that refers to a
    /// missing record.
    pub async fn create<T: Record, R: Success + Send>(
        &self,
        value: T,
        respond: impl Fn(Stored<T>) -> R + Sync,
    ) -> Result<R, ApiError> {
        let mut unit = self.unit();
        let response = respond(unit.create(value)?);
        match unit.commit_with(|| response.to_stored(Vec::new())).await {
            Ok(()) => Ok(response),
            // Nothing was read, so another attempt would fail the same way.
            Err(error) => Err(error_of_one_record(error).with_actor(&self.store).await),
        }
    }

    /// Changes a record that was just read: `decide` adds the change to the unit of work. If another writer changes the record in
    /// the meantime, reads it again and decides again, so that both changes take effect. Not for POST requests.
    ///
    /// # Errors
    ///
    /// Returns the errors of `decide`, [`ApiError::NotFound`] if the record is deleted in the meantime, [`ApiError::Conflict`]
    /// after five write conflicts, or any error of [`Principal::create`].
    pub async fn change<T: Record>(
        &self,
        old: Stored<T>,
        decide: impl Fn(&mut UnitOfWork<'_>, &Stored<T>) -> Result<Stored<T>, ApiError> + Sync,
    ) -> Result<Stored<T>, ApiError> {
        let (id, decide) = (old.value.id(), &decide);
        let read = || async move { or_not_found(self.store.get::<T>(id).await?) };
        let attempt = |old| async move {
            let mut unit = self.unit();
            let changed = decide(&mut unit, &old)?;
            match unit.commit().await {
                Ok(()) => Ok(changed),
                Err(error @ WriteError::Stale) => Err(CommitFailure::Outdated(error)),
                Err(error) => Err(CommitFailure::Failed(error_of_one_record(error))),
            }
        };
        self.retry(old, read, attempt).await
    }

    /// Like [`Principal::change`], for a change to the record alone.
    ///
    /// # Errors
    ///
    /// Same as [`Principal::change`].
    pub async fn update<T: Record>(
        &self,
        old: Stored<T>,
        decide: impl Fn(&T) -> Result<T, ApiError> + Sync,
    ) -> Result<Stored<T>, ApiError> {
        self.change(old, |unit, old| Ok(unit.update(old, decide(&old.value)?)?)).await
    }

    /// Replaces a record that was just read with `next`, and commits `unit`, which can have expectations of other records. Makes
    /// one attempt, because a retry would undo the change of another writer. `respond` builds the response to store for retries
    /// of the request.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Conflict`] if the record is changed in the meantime, and [`ApiError::NotFound`] if it is deleted.
    pub async fn replace<T: Record, R: Success>(
        &self,
        mut unit: UnitOfWork<'_>,
        old: &Stored<T>,
        next: T,
        respond: impl FnOnce(Stored<T>) -> R,
    ) -> Result<Stored<T>, ApiError> {
        let replaced = unit.update(old, next)?;
        match unit.commit_with(|| respond(replaced.clone()).to_stored(Vec::new())).await {
            Err(WriteError::Stale) if self.store.get::<T>(old.value.id()).await?.is_none() => Err(ApiError::NotFound),
            committed => Ok(committed.map(|()| replaced)?),
        }
    }

    /// Deletes a record that was just read, if `permit` allows it, even if another writer changes it in the meantime. Returns the
    /// deleted record.
    ///
    /// # Errors
    ///
    /// Same as [`Principal::change`], and [`ApiError::Conflict`] with the number of records that refer to the record.
    pub async fn delete<T: Record>(
        &self,
        old: Stored<T>,
        permit: impl Fn(&T) -> Result<(), ApiError> + Sync,
    ) -> Result<Stored<T>, ApiError> {
        let delete = |unit: &mut UnitOfWork<'_>, old: &Stored<T>| {
            permit(&old.value)?;
            unit.delete(old)?;
            Ok(old.clone())
        };
        self.change(old, delete).await
    }
}

/// Maps a failed write of one record. A missing reference is the client's error, because the client sent its ID.
fn error_of_one_record(error: WriteError) -> ApiError {
    match error {
        WriteError::MissingReference(field) => ApiError::Invalid(vec![unknown_reference(field)]),
        other => other.into(),
    }
}

#[must_use]
pub fn unknown_reference(field: &str) -> FieldError {
    FieldError::field(field, ValueError::unknown_reference())
}

impl<S> Caller<S> {
    /// Reads a record.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::NotFound`] if there is no such record.
    pub async fn get<T: Record, V: From<Stored<T>>>(&self, id: T::Id) -> Result<Versioned<V>, ApiError> {
        Ok(or_not_found(self.store.get::<T>(id).await?)?.into())
    }

    /// Reads the record and the body of a PATCH. Read-only fields in the body must have the values of the view `V`.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::NotFound`] if there is no such record, [`ApiError::PreconditionFailed`] if it was changed after the
    /// body's `updated_at`, and [`ApiError::Invalid`] with the errors from the body and from `check`.
    pub async fn patch<T: Record, V: From<Stored<T>> + Serialize, B: PatchBody>(
        &self,
        id: T::Id,
        body: JsonBody<B>,
        check: impl Fn(&T, &B) -> Option<FieldError>,
    ) -> Result<(Stored<T>, B), ApiError> {
        let old = self.store.get::<T>(id).await?;
        let (body, mut errors) = body.parse_with_errors(self)?;
        let old = or_not_found(old)?;
        self.expect_read(&old, body.unchanged()).await?;
        errors.extend(check(&old.value, &body));
        body.unchanged().check(&V::from(old.clone()), errors)?;
        Ok((old, body))
    }

    /// Deletes a record.
    ///
    /// # Errors
    ///
    /// Same as [`Principal::delete`], and [`ApiError::NotFound`] if there is no such record.
    pub async fn delete<T: Record, V: From<Stored<T>>>(
        &self,
        id: T::Id,
        permit: impl Fn(&T) -> Result<(), ApiError> + Sync,
    ) -> Result<Data<V>, ApiError> {
        let old = or_not_found(self.store.get::<T>(id).await?)?;
        Ok(Data { data: self.verified().await?.delete(old, permit).await?.into() })
    }
}

impl<T: Record, V: From<Stored<T>>> From<Stored<T>> for Versioned<V> {
    fn from(stored: Stored<T>) -> Self {
        Self { version: stored.tag_version(), data: stored.into() }
    }
}

impl<V> Created<V> {
    pub fn of<T: Record>(collection: &str, stored: Stored<T>) -> Self
    where
        V: From<Stored<T>>,
    {
        Self::new(collection, stored.value.id(), stored.into())
    }
}

impl VerifiedCaller {
    /// Rejects `If-Match` on a request that changes several records.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Invalid`] for a request with `If-Match`.
    pub fn refuse_precondition(&self) -> Result<(), ApiError> {
        if self.context.precondition.is_none() {
            return Ok(());
        }
        let reason = "can't be sent with several changes; the operations of a batch can have if_match".into();
        Err(ApiError::Invalid(vec![FieldError { location: ErrorLocation::Header("If-Match"), reason }]))
    }

    /// Returns the same caller in a dry run, even if the request isn't one.
    #[must_use]
    pub fn with_dry_run(&self) -> Self {
        let mut checker = self.without_idempotency_key();
        if !checker.store.is_dry_run() {
            checker.principal.store = checker.principal.store.in_dry_run(DryRun::default());
        }
        checker
    }
}
