//! A caller whose API key is verified, and changes of one record on the behalf of whoever sent a request.

use super::command::not_repeatable;
use crate::app::App;
use crate::domain::assets::custom_fields::Validations;
use crate::domain::keys::api_key::ApiKey;
use crate::domain::keys::scope::{Role, Scope, Scopes};
use crate::domain::record::{Record, Stored};
use crate::domain::request::{Precondition, StoredResponse};
use crate::domain::user::User;
use crate::domain::values::field_error::FieldError;
use crate::http::RequestNotes;
use crate::http::error::ApiError;
use crate::http::response::{Success, found};
use crate::store::{AttemptError, ChangeContext, TenantStore, UnitOfWork, WriteError, retry};
use std::ops::Deref;

/// Whoever sent a request whose credential is verified, and what its changes need: of a [`Caller`] and of the holder of a
/// signing link alike.
#[derive(Clone)]
pub struct Requester {
    /// The tenant's part of the table.
    pub store: TenantStore,
    /// Who changes something, and when.
    pub context: ChangeContext,
    /// What the function keeps between requests.
    pub app: App,
    /// What the request validates, for requests with several changes.
    pub validations: Validations,
}

/// A caller whose API key is verified.
#[derive(Clone)]
pub struct Caller {
    /// What its changes need.
    pub(super) requester: Requester,
    /// What the key permits at this moment.
    pub scopes: Scopes,
    /// The role that the caller counts as.
    pub role: Role,
    /// The key.
    pub key: ApiKey,
    /// The user whom the key is bound to; `None` for a key of the tenant.
    pub owner: Option<User>,
    /// What is known of the request itself.
    pub(crate) notes: RequestNotes,
    /// Whether the request, whose changes are committed one by one, was begun before under its idempotency key.
    pub(super) is_resumed: bool,
}

impl Deref for Caller {
    type Target = Requester;
    fn deref(&self) -> &Requester {
        &self.requester
    }
}

impl Caller {
    /// Checks that the key has a further scope, for an endpoint that needs two.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Forbidden`] if it does not.
    pub fn check_scope(&self, scope: Scope) -> Result<(), ApiError> {
        if self.scopes.contains(&scope) { Ok(()) } else { Err(ApiError::Forbidden(scope)) }
    }

    /// Returns the same caller without an idempotency key, for the single changes of a request that stores its response at
    /// the end ([`Caller::store_finished`]).
    #[must_use]
    pub fn without_idempotency_key(&self) -> Self {
        self.with_context(ChangeContext { idempotency: None, ..self.context.clone() })
    }

    /// Takes the request's precondition away, for an endpoint that checks it by itself.
    pub fn take_precondition(&mut self) -> Option<Precondition> {
        self.requester.context.precondition.take()
    }

    /// Returns the same caller with another context.
    #[must_use]
    pub(super) fn with_context(&self, context: ChangeContext) -> Self {
        let requester = Requester { context, ..self.requester.clone() };
        Self { requester, ..self.clone() }
    }

    /// Stores the response to a request whose changes are made, if it has an idempotency key. A response that is too long
    /// is not stored: a repetition makes its own, and nothing twice.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Conflict`] if a copy of the request has stored its response before, which is sent instead, and
    /// [`ApiError::Unavailable`] if the table can't be written.
    pub async fn store_finished(&self, response: &StoredResponse) -> Result<(), ApiError> {
        Ok(self.store_response_alone(response).await?)
    }

    /// Stores a response to the request as a whole, if it has an idempotency key and the response is not too long.
    pub(super) async fn store_response_alone(&self, response: &StoredResponse) -> Result<(), WriteError> {
        let Some(request) = &self.context.idempotency else { return Ok(()) };
        match self.store.store_response_alone(request, response).await {
            Err(WriteError::ResponseTooLong) => Ok(()),
            stored => stored,
        }
    }
}

impl Requester {
    /// Creates a record and returns the response that `respond` makes of it. The same response is stored for a
    /// repetition of the request, without images.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Conflict`] for a value that another record has and that must be unique, and
    /// [`ApiError::Invalid`] for a field that refers to a missing record.
    pub async fn create<T: Record, R: Success>(&self, value: T, respond: impl Fn(&Stored<T>) -> R) -> Result<R, ApiError> {
        let mut unit = UnitOfWork::new(&self.store, &self.context);
        let stored = unit.create(value)?;
        let response = respond(&stored);
        unit.commit_with(|| response.to_stored(Vec::new())).await.map_err(without_retry)?;
        Ok(response)
    }

    /// Changes a record that was just read to what `decide` makes of it. If another writer changes it meanwhile, reads
    /// it again and decides again, so that both changes take effect. For requests other than POST.
    ///
    /// # Errors
    ///
    /// Returns the errors of `decide`, [`ApiError::NotFound`] if the record is deleted meanwhile, and
    /// [`ApiError::Conflict`] if other writers were faster five times. As [`Requester::create`] otherwise.
    pub async fn update<T: Record>(
        &self,
        old: Stored<T>,
        decide: impl Fn(&T) -> Result<T, ApiError>,
    ) -> Result<Stored<T>, ApiError> {
        self.change(old, |unit, old| Ok(unit.update(old, decide(&old.value)?)?)).await
    }

    /// Decides a change of one record with `decide`, which adds it to the unit of work. Retries as [`Requester::update`]
    /// does.
    ///
    /// # Errors
    ///
    /// As [`Requester::update`].
    pub async fn change<T: Record, O>(
        &self,
        old: Stored<T>,
        decide: impl Fn(&mut UnitOfWork<'_>, &Stored<T>) -> Result<O, ApiError>,
    ) -> Result<O, ApiError> {
        let reread = |old: Stored<T>| async move { found(self.store.get::<T>(old.value.id()).await?) };
        let judge = |error, _: &O| match error {
            WriteError::Stale => AttemptError::Outdated(error),
            other => AttemptError::Failed(without_retry(other)),
        };
        let decide = |unit: &mut UnitOfWork<'_>, old: &Stored<T>| Ok(decide(unit, old)?);
        retry(&self.store, &self.context, old, reread, decide, |_| Err(not_repeatable()), judge).await
    }

    /// Deletes a record that was just read, whoever else is changing it, if `permit` allows it. Returns the record as
    /// it was.
    ///
    /// # Errors
    ///
    /// Returns the errors of `permit`, [`ApiError::Conflict`] with the count while other records refer to it, and
    /// [`ApiError::NotFound`] if it is deleted meanwhile.
    pub async fn delete<T: Record>(
        &self,
        old: Stored<T>,
        permit: impl Fn(&T) -> Result<(), ApiError>,
    ) -> Result<Stored<T>, ApiError> {
        let delete = |unit: &mut UnitOfWork<'_>, old: &Stored<T>| {
            permit(&old.value)?;
            unit.delete(old)?;
            Ok(old.clone())
        };
        self.change(old, delete).await
    }
}

/// The error of a change that another attempt would not help.
fn without_retry(error: WriteError) -> ApiError {
    match error {
        WriteError::MissingReference(field) => ApiError::Invalid(vec![unknown_reference(field)]),
        other => other.into(),
    }
}

/// Returns the error of a field that refers to a missing record.
#[must_use]
pub fn unknown_reference(field: &str) -> FieldError {
    FieldError::field(field, "does not exist in this tenant")
}
