//! Commands about one record, whatever its kind.

use super::{Command, Principal};
use crate::domain::record::{Record, Stored};
use crate::domain::request::StoredResponse;
use crate::domain::values::field_error::FieldError;
use crate::http::error::ApiError;
use crate::http::responses::{Success, or_not_found};
use crate::store::{CommitFailure, StoreError, TenantStore, UnitOfWork, WriteError};

struct Creation<T, F> {
    value: T,
    respond: F,
}

impl<T: Record, R: Success + Send, F: Fn(Stored<T>) -> R + Sync> Command for Creation<T, F> {
    type Inputs = ();
    type Outcome = R;

    async fn read(&self, _: &TenantStore) -> Result<(), ApiError> {
        Ok(())
    }

    fn decide(&self, _: &Principal, unit: &mut UnitOfWork<'_>, (): &()) -> Result<R, CommitFailure<ApiError>> {
        Ok((self.respond)(unit.create(self.value.clone())?))
    }

    fn stored_response(&self, response: &R) -> Result<StoredResponse, StoreError> {
        response.to_stored(Vec::new())
    }

    /// Nothing was read that another attempt could read again.
    fn classify_failure(&self, error: WriteError, _: &R) -> CommitFailure<ApiError> {
        CommitFailure::Failed(error_of_one_record(error))
    }
}

struct Change<T: Record, F> {
    id: T::Id,
    decide: F,
}

impl<T, F> Command for Change<T, F>
where
    T: Record,
    F: Fn(&mut UnitOfWork<'_>, &Stored<T>) -> Result<Stored<T>, ApiError> + Sync,
{
    type Inputs = Stored<T>;
    type Outcome = Stored<T>;

    async fn read(&self, reads: &TenantStore) -> Result<Stored<T>, ApiError> {
        or_not_found(reads.get::<T>(self.id).await?)
    }

    fn decide(&self, _: &Principal, unit: &mut UnitOfWork<'_>, old: &Stored<T>) -> Result<Stored<T>, CommitFailure<ApiError>> {
        Ok((self.decide)(unit, old)?)
    }

    fn classify_failure(&self, error: WriteError, _: &Stored<T>) -> CommitFailure<ApiError> {
        match error {
            WriteError::Stale => CommitFailure::Outdated(error),
            other => CommitFailure::Failed(error_of_one_record(other)),
        }
    }
}

impl Principal {
    /// The response is stored for a repetition of the request, without images.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Conflict`] for a value that another record has and that must be unique, and [`ApiError::Invalid`] for
    /// a field that refers to a missing record.
    pub async fn create<T: Record, R: Success + Send>(
        &self,
        value: T,
        respond: impl Fn(Stored<T>) -> R + Sync,
    ) -> Result<R, ApiError> {
        self.execute(&Creation { value, respond }, ()).await
    }

    /// Changes a record that was just read with `decide`, which adds the change to the unit of work. If another writer
    /// changes it meanwhile, reads it again and decides again, so that both changes take effect. For requests other than
    /// POST.
    ///
    /// # Errors
    ///
    /// Returns the errors of `decide`, [`ApiError::NotFound`] if the record is deleted meanwhile, and
    /// [`ApiError::Conflict`] if other writers were faster five times. As [`Principal::create`] otherwise.
    pub async fn change<T: Record>(
        &self,
        old: Stored<T>,
        decide: impl Fn(&mut UnitOfWork<'_>, &Stored<T>) -> Result<Stored<T>, ApiError> + Sync,
    ) -> Result<Stored<T>, ApiError> {
        self.execute(&Change { id: old.value.id(), decide }, old).await
    }

    /// The record was just read.
    ///
    /// # Errors
    ///
    /// As [`Principal::change`].
    pub async fn update<T: Record>(
        &self,
        old: Stored<T>,
        decide: impl Fn(&T) -> Result<T, ApiError> + Sync,
    ) -> Result<Stored<T>, ApiError> {
        self.change(old, |unit, old| Ok(unit.update(old, decide(&old.value)?)?)).await
    }

    /// Replaces a record that was just read by `next`, in one attempt: a second one would undo what another writer has done
    /// meanwhile. `respond` makes the response that is stored for a repetition of the request.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Conflict`] if the record is changed meanwhile, and [`ApiError::NotFound`] if it is deleted.
    pub async fn replace<T: Record, R: Success>(
        &self,
        old: &Stored<T>,
        next: T,
        respond: impl FnOnce(Stored<T>) -> R,
    ) -> Result<Stored<T>, ApiError> {
        let mut unit = UnitOfWork::new(&self.store, &self.context);
        let replaced = unit.update(old, next)?;
        match unit.commit_with(|| respond(replaced.clone()).to_stored(Vec::new())).await {
            Err(WriteError::Stale) if self.store.get::<T>(old.value.id()).await?.is_none() => Err(ApiError::NotFound),
            committed => Ok(committed.map(|()| replaced)?),
        }
    }

    /// Deletes a record that was just read, whoever else is changing it, if `permit` allows it. Returns the record as
    /// it was.
    ///
    /// # Errors
    ///
    /// As [`Principal::change`], and [`ApiError::Conflict`] with the count while other records refer to it.
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

/// A reference that is missing was missing when the request was sent: the value comes from the client.
fn error_of_one_record(error: WriteError) -> ApiError {
    match error {
        WriteError::MissingReference(field) => ApiError::Invalid(vec![unknown_reference(field)]),
        other => other.into(),
    }
}

#[must_use]
pub fn unknown_reference(field: &str) -> FieldError {
    FieldError::field(field, "does not exist in this tenant")
}
