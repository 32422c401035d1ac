//! The sender of a request with an API key, and the scopes that an endpoint needs, as types.

use super::Command;
use super::unverified::UnverifiedRequest;
use crate::app::App;
use crate::domain::catalog::custom_fields::Validations;
use crate::domain::keys::api_key::ApiKey;
use crate::domain::keys::scope::{Role, Scope, Scopes};
use crate::domain::request::{Precondition, StoredResponse};
use crate::domain::user::User;
use crate::domain::values::id::ApiKeyId;
use crate::http::RequestContext;
use crate::http::credential_check::Check;
use crate::http::error::ApiError;
use crate::http::openapi::{API_KEY, Describe, Schemas};
use crate::http::requests::extract::{ReceivedRequest, VerifiedSender};
use crate::store::{ChangeContext, TenantStore, WriteError};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::SecurityRequirement;

/// The sender of a request with an API key that has the scopes `S`: the first argument of a handler.
///
/// The key is verified if this instance has not verified it lately. Otherwise, that may go on while the handler reads; the
/// layer around all routes discloses nothing before. [`Caller::verified`] waits for it, and has what a change needs: nothing but
/// review keeps a handler from writing through `store` before.
pub struct Caller<S> {
    /// For reads. The first single items join the batch that reads the key.
    pub store: TenantStore,
    pub app: App,
    check: Check<VerifiedCaller>,
    received: Arc<ReceivedRequest>,
    scopes: PhantomData<fn() -> S>,
}

impl<S: RequiredScopes> FromRequestParts<App> for Caller<S> {
    type Rejection = ApiError;

    /// # Errors
    ///
    /// Returns the errors of a key that was not verified lately: [`ApiError::Unauthorized`], [`ApiError::RateLimited`],
    /// [`ApiError::TenantRateLimited`] and [`ApiError::Forbidden`].
    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let request = UnverifiedRequest::<ApiKeyId>::new(parts, app, ApiError::Unauthorized)?;
        let received = Arc::clone(&request.received);
        let (store, check) = request.begin_check(S::SCOPES).await?;
        let check = Check::begin(parts, Arc::clone(&received), check)?;
        Ok(Self { store, app: app.clone(), check, received, scopes: PhantomData })
    }
}

impl<S> VerifiedSender for Caller<S> {}

impl<S: RequiredScopes> Describe for Caller<S> {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        let scopes = S::SCOPES.iter().map(|scope| scope.as_str());
        operation.security = Some(vec![SecurityRequirement::new(API_KEY, scopes)]);
    }
}

impl<S> Caller<S> {
    /// Waits until the key is verified.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Unauthorized`] in place of the error of the key or of the headers `Idempotency-Key` and `If-Match`, which
    /// is sent instead. Returns [`ApiError::Invalid`] for query parameters that nobody has read.
    pub async fn verified(&self) -> Result<VerifiedCaller, ApiError> {
        let caller = self.check.passed().await?;
        self.received.refuse_unread_query()?;
        Ok(caller)
    }

    /// Reads the inputs of a command, and executes it once the key is verified.
    ///
    /// # Errors
    ///
    /// As [`Command::read`], [`Caller::verified`] and [`Principal::execute`].
    pub async fn execute<C: Command>(&self, command: &C) -> Result<C::Outcome, ApiError> {
        let inputs = command.read(&self.store).await?;
        self.verified().await?.execute(command, inputs).await
    }
}

/// The sender of a request whose credential is verified, with all that its changes need: a [`VerifiedCaller`] or the holder of a
/// signing link.
#[derive(Clone)]
pub struct Principal {
    pub store: TenantStore,
    pub context: ChangeContext,
    /// The state that the function keeps between requests.
    pub app: App,
    /// Shared by all changes of the request.
    pub validations: Validations,
}

/// A [`Caller`] whose key is verified.
#[derive(Clone)]
pub struct VerifiedCaller {
    pub(super) principal: Principal,
    /// The key's effective scopes.
    pub scopes: Scopes,
    /// The owner's or, for a key of the tenant, the highest role whose scopes the key has.
    pub role: Role,
    pub key: ApiKey,
    /// `None` for a key of the tenant.
    pub owner: Option<User>,
    pub(crate) notes: RequestContext,
    /// Whether the request, whose changes are committed one by one, was begun before under its idempotency key.
    pub(super) is_resumed: bool,
}

impl VerifiedSender for VerifiedCaller {}

impl Deref for VerifiedCaller {
    type Target = Principal;
    fn deref(&self) -> &Principal {
        &self.principal
    }
}

impl VerifiedCaller {
    /// Checks that the key has a further scope, which only some requests of an endpoint need.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Forbidden`] if it does not.
    pub fn check_scope(&self, scope: Scope) -> Result<(), ApiError> {
        if self.scopes.contains(&scope) { Ok(()) } else { Err(ApiError::Forbidden(scope)) }
    }

    /// For the single changes of a request that stores its response at the end ([`VerifiedCaller::store_finished`]).
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

/// The scopes that an endpoint needs, as a type: one scope, or a tuple.
pub trait RequiredScopes: 'static {
    const SCOPES: &'static [Scope];
}

macro_rules! scopes {
    ($($name:ident)*) => {$(
        pub struct $name;

        impl RequiredScopes for $name {
            const SCOPES: &'static [Scope] = &[Scope::$name];
        }
    )*};
}

scopes! {
    AssetsRead AssetsWrite ProcessesRead ProcessesWrite UsersRead UsersWrite CatalogRead CatalogWrite SettingsRead SettingsWrite
    KeysRead KeysWrite EventsRead WebhooksRead WebhooksWrite
}

/// Every key may, whatever its scopes.
impl RequiredScopes for () {
    const SCOPES: &'static [Scope] = &[];
}

/// Offboarding is a change of a user, of processes and of assets.
impl RequiredScopes for (UsersWrite, ProcessesWrite, AssetsRead) {
    const SCOPES: &'static [Scope] = &[Scope::UsersWrite, Scope::ProcessesWrite, Scope::AssetsRead];
}
