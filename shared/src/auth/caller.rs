//! The caller: the sender of a request whose credential is verified.

use crate::app::App;
use crate::domain::catalog::custom_fields::Validations;
use crate::domain::keys::api_key::ApiKey;
use crate::domain::keys::scope::{Role, Scope, Scopes};
use crate::domain::request::{Precondition, StoredResponse};
use crate::domain::user::User;
use crate::http::RequestContext;
use crate::http::error::ApiError;
use crate::http::requests::unread::VerifiedSender;
use crate::store::{ChangeContext, TenantStore, WriteError};
use std::ops::Deref;

/// The sender of a request whose credential is verified, with all that its changes need: of a [`Caller`] and of the holder of a
/// signing link alike.
#[derive(Clone)]
pub struct Principal {
    pub store: TenantStore,
    pub context: ChangeContext,
    /// The state that the function keeps between requests.
    pub app: App,
    /// Shared by all changes of the request.
    pub validations: Validations,
}

#[derive(Clone)]
pub struct Caller {
    pub(super) principal: Principal,
    /// The key's effective scopes.
    pub scopes: Scopes,
    /// That of the owner or, for a key of the tenant, the highest whose scopes it all has.
    pub role: Role,
    pub key: ApiKey,
    /// `None` for a key of the tenant.
    pub owner: Option<User>,
    pub(crate) notes: RequestContext,
    /// Whether the request, whose changes are committed one by one, was begun before under its idempotency key.
    pub(super) is_resumed: bool,
}

impl VerifiedSender for Caller {}

impl Deref for Caller {
    type Target = Principal;
    fn deref(&self) -> &Principal {
        &self.principal
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

    /// For the single changes of a request that stores its response at the end ([`Caller::store_finished`]).
    #[must_use]
    pub fn without_idempotency_key(&self) -> Self {
        self.with_context(ChangeContext { idempotency: None, ..self.context.clone() })
    }

    /// For an endpoint that checks it by itself.
    pub fn take_precondition(&mut self) -> Option<Precondition> {
        self.principal.context.precondition.take()
    }

    #[must_use]
    pub(super) fn with_context(&self, context: ChangeContext) -> Self {
        let principal = Principal { context, ..self.principal.clone() };
        Self { principal, ..self.clone() }
    }

    /// Stores the response after all changes, if the request has an idempotency key. A response that is too long is not stored: a
    /// repetition makes its own, and nothing twice.
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
