//! Authentication by API key, and an endpoint's required scopes as types. A key is checked in this order: secret, owner, rate
//! limit, scopes. Keys that this instance verified recently are cached, so that a request's reads can run beside the check. The
//! cache never affects permissions or responses.

use crate::domain::catalog::custom_fields::Patterns;
use crate::domain::history::event::Actor;
use crate::domain::keys::api_key::{
    ApiKey, BearerToken, Credential, Rate, Role, Scope, Scopes, SharedLimit, Token, end_of_window,
};
use crate::domain::record::{
    Expected, ExpectedVersions, IdempotencyKey, IdempotentRequest, Precondition, Record, Stored, StoredResponse,
};
use crate::domain::user::User;
use crate::domain::values::field_error::ValueError;
use crate::domain::values::id::{ApiKeyId, Id, TenantId, UserId};
use crate::domain::values::time::Timestamp;
use crate::http::RequestContext;
use crate::http::check::Check;
use crate::http::openapi::{API_KEY, Describe, Schemas};
use crate::http::received::{ReceivedBody, ReceivedRequest, bearer_token, list_header, media_type, received};
use crate::http::requests::body::{ReadOnlyFields, VerifiedSender};
use crate::http::responses::ApiError;
use crate::log::error_chain;
use crate::services::{App, KnownKey};
use crate::store::{BatchGet, ChangeContext, PreviousRequest, Reader, StoreError, WriteError, Writer};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::SecurityRequirement;
use uuid::Uuid;

/// The sender of a request with an API key that has the scopes `S`: the first argument of a handler.
///
/// A key that this instance hasn't verified recently is read before the handler runs, which it does if secret, owner and scopes
/// fit. The rest of the check, or the whole check of any other key, runs beside the handler, and the middleware sends no response
/// until it passes. [`Caller::verified`] waits for the check and is the
/// only way to a [`Writer`].
pub struct Caller<S> {
    /// Store for the handler's reads.
    pub store: Reader,
    pub app: App,
    check: Check<VerifiedCaller>,
    /// The record that a PATCH changes, and its `updated_at` in the body.
    read_at: OnceLock<(Uuid, Timestamp)>,
    scopes: PhantomData<fn() -> S>,
}

impl<S: RequiredScopes> FromRequestParts<App> for Caller<S> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let request = UnverifiedRequest::<ApiKeyId>::new(parts, app, ApiError::Unauthorized)?;
        let (store, received) = (request.store.reads().clone(), Arc::clone(&request.received));
        let check = request.key_check(S::SCOPES);
        let (known, read) = match check.known() {
            Some(known) => (known, None),
            None => {
                // Read before anything else, so that unauthenticated requests stay cheap.
                let credentials = check.credentials().await?;
                (KnownKey::from(&credentials.key), Some(credentials))
            }
        };
        // `credentials` has noted the key if its secret, owner and scopes fit.
        let is_permitted = check.known().is_some();
        let check = Check::start(&received, request.checked(S::SCOPES, known, read))?;
        if !is_permitted {
            check.passed().await?;
        }
        Ok(Self { store, app: app.clone(), check, read_at: OnceLock::new(), scopes: PhantomData })
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
    /// Returns [`ApiError::Unauthorized`] if the check of the key or of the headers `Idempotency-Key` and `If-Match` fails; the
    /// client gets the actual error.
    pub async fn verified(&self) -> Result<VerifiedCaller, ApiError> {
        let mut caller = self.check.passed().await?;
        if let Some((record_id, updated_at)) = self.read_at.get() {
            let precondition = &mut caller.principal.context.precondition;
            let precondition =
                precondition.get_or_insert_with(|| Precondition { record_id: *record_id, expected: Expected::default() });
            precondition.expected.updated_at = Some(*updated_at);
        }
        Ok(caller)
    }

    /// Checks the `updated_at` in the body of a PATCH, now and when the change is committed.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::PreconditionFailed`] if the record was changed since.
    pub async fn expect_read<T: Record>(&self, old: &Stored<T>, body: &ReadOnlyFields) -> Result<(), ApiError> {
        let Some(updated_at) = body.updated_at() else { return Ok(()) };
        let _ = self.read_at.set((old.value.id().uuid(), updated_at));
        match (Expected { updated_at: Some(updated_at), versions: None }).check(old) {
            Ok(()) => Ok(()),
            Err(mismatch) => Err(ApiError::PreconditionFailed(mismatch).with_actor(&self.store).await),
        }
    }
}

/// The authenticated sender of a request, with everything its changes need: a [`VerifiedCaller`] or the holder of a signing link.
#[derive(Clone)]
pub struct Principal {
    pub store: Writer,
    pub context: ChangeContext,
    pub app: App,
    /// Compiled patterns of custom fields, shared by all changes of the request.
    pub patterns: Patterns,
}

/// A [`Caller`] whose key is verified.
#[derive(Clone)]
pub struct VerifiedCaller {
    pub(crate) principal: Principal,
    /// The key's effective scopes.
    pub scopes: Scopes,
    /// The owner's role. For a tenant key, the highest role whose scopes the key has.
    pub role: Role,
    pub key: ApiKey,
    /// `None` for a tenant key.
    pub owner: Option<User>,
    pub(crate) notes: RequestContext,
    /// Whether an earlier attempt with the same idempotency key has started. Can be `true` only for a request whose changes are
    /// committed separately.
    pub(crate) is_resumed: bool,
}

impl VerifiedSender for VerifiedCaller {}

impl Deref for VerifiedCaller {
    type Target = Principal;
    fn deref(&self) -> &Principal {
        &self.principal
    }
}

impl VerifiedCaller {
    /// Checks for an additional scope, which only some requests of an endpoint need.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Forbidden`] if the key lacks the scope.
    pub fn check_scope(&self, scope: Scope) -> Result<(), ApiError> {
        if self.scopes.contains(&scope) { Ok(()) } else { Err(ApiError::Forbidden(scope)) }
    }

    /// Returns the same caller without the idempotency key, for the individual changes of a request that stores its response at
    /// the end ([`VerifiedCaller::store_finished`]).
    #[must_use]
    pub fn without_idempotency_key(&self) -> Self {
        self.with_context(ChangeContext { idempotency: None, ..self.context.clone() })
    }

    /// Takes the precondition (`If-Match`), for an endpoint that checks it itself.
    pub fn take_precondition(&mut self) -> Option<Precondition> {
        self.principal.context.precondition.take()
    }

    #[must_use]
    pub(crate) fn with_context(&self, context: ChangeContext) -> Self {
        let mut caller = self.clone();
        caller.principal.context = context;
        caller
    }

    /// Stores the response after all changes, if the request has an idempotency key. A response that is too long isn't stored: a
    /// retry then repeats no change, but builds a new response.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Conflict`] if another attempt has already stored its response (the middleware then sends that one),
    /// and [`ApiError::Unavailable`] if the table is unavailable.
    pub async fn store_finished(&self, response: &StoredResponse) -> Result<(), ApiError> {
        Ok(self.store_response_alone(response).await?)
    }

    /// Stores a response to the whole request, if it has an idempotency key and the response isn't too long.
    pub(crate) async fn store_response_alone(&self, response: &StoredResponse) -> Result<(), WriteError> {
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

/// Any key is allowed.
impl RequiredScopes for () {
    const SCOPES: &'static [Scope] = &[];
}

/// The scopes for offboarding, which changes a user, starts processes and lists assets.
impl RequiredScopes for (UsersWrite, ProcessesWrite, AssetsRead) {
    const SCOPES: &'static [Scope] = &[Scope::UsersWrite, Scope::ProcessesWrite, Scope::AssetsRead];
}

pub(crate) struct UnverifiedRequest<C> {
    pub(crate) app: App,
    /// The time at which the request arrived.
    pub(crate) at: Timestamp,
    pub(crate) token: BearerToken<C>,
    /// Writes nothing in a dry run.
    pub(crate) store: Writer,
    pub(crate) received: Arc<ReceivedRequest>,
    headers: RequestHeaders,
    pub(crate) notes: RequestContext,
}

impl<C: Credential> UnverifiedRequest<C> {
    /// Reads the request's credential, without verifying it, and the headers. Returns `without` if there is no credential.
    pub(crate) fn new(parts: &Parts, app: &App, without: ApiError) -> Result<Self, ApiError> {
        let token: BearerToken<C> = bearer_token(&parts.headers).ok_or(without)?;
        let received = received(parts)?;
        let store = app.store().writer(token.tenant);
        let store = match received.dry_run() {
            Some(dry_run) => store.in_dry_run(dry_run),
            None => store,
        };
        Ok(Self {
            app: app.clone(),
            at: app.store().now(),
            token,
            store,
            received,
            headers: RequestHeaders::of(parts),
            notes: parts.extensions.get::<RequestContext>().cloned().unwrap_or_default(),
        })
    }

    /// Returns the context of the request's changes, including the headers, and whether an earlier attempt at a request with
    /// separately committed changes has started. The credential must already be verified. Returns
    /// [`WriteError::AlreadyAnswered`] if there is a stored response, which the middleware then sends.
    pub(crate) fn context_with_headers(
        &self,
        principal: &Principal,
        idempotency: Idempotency,
    ) -> Result<(ChangeContext, bool), ApiError> {
        let id = ["link_id", "id"].iter().find_map(|name| self.received.path_parameter(name).ok()?.parse().ok());
        let precondition = self.headers.precondition(id, principal.store.id())?;
        let mut context = ChangeContext { precondition, ..principal.context.clone() };
        let mut is_resumed = false;
        if let Some(dry_run) = principal.store.dry_run() {
            self.headers.refuse_idempotency_key("can't be sent with dry_run")?;
            self.notes.note_dry_run(dry_run.clone());
        }
        if let Some((request, previous)) = idempotency {
            is_resumed = matches!(&previous, Some(PreviousRequest::Same(response)) if response.is_in_parts);
            let previous = previous.filter(|_| !is_resumed);
            let is_repeated = previous.is_some();
            self.notes.note_idempotent_request(principal.store.reads().clone(), request.clone(), previous);
            if is_repeated {
                return Err(WriteError::AlreadyAnswered.into());
            }
            context.idempotency = Some(request);
        }
        Ok((context, is_resumed))
    }

    pub(crate) async fn idempotency(&self, store: &Reader) -> Result<Idempotency, ApiError> {
        // A request with an incomplete body is rejected, so there is nothing to deduplicate.
        let ReceivedBody::Whole(body) = &self.received.body else { return Ok(None) };
        if store.is_dry_run() {
            return Ok(None);
        }
        let Some(request) = self.headers.idempotent_request(&self.token, body)? else { return Ok(None) };
        let previous = store.previous_request(&request).await?;
        Ok(Some((request, previous)))
    }
}

impl UnverifiedRequest<ApiKeyId> {
    /// Verifies the key, counts the request, and looks up the idempotency key, at once. `read` is the key if it is already read.
    async fn checked(
        self,
        scopes: &'static [Scope],
        known: KnownKey,
        read: Option<Credentials>,
    ) -> Result<VerifiedCaller, ApiError> {
        let check = self.key_check(scopes);
        let count = check.count();
        let credentials = async {
            match read {
                Some(credentials) => Ok(credentials),
                None => check.credentials_at_once(known.owner).await,
            }
        };
        let look_up = self.idempotency(&self.store);
        let (credentials, begun, idempotency) = futures_util::join!(credentials, count.begin(known.rate_limit), look_up);
        let caller = check.verify(credentials?, &count, begun).await?;
        let (context, is_resumed) = self.context_with_headers(&caller, idempotency?)?;
        Ok(VerifiedCaller { is_resumed, ..caller.with_context(context) })
    }

    fn key_check(&self, scopes: &'static [Scope]) -> KeyCheck<'_> {
        KeyCheck { app: &self.app, at: self.at, store: &self.store, token: &self.token, scopes, notes: &self.notes }
    }
}

/// The request with its idempotency key, and the previous request with the same key. `None` without a key.
pub(crate) type Idempotency = Option<(IdempotentRequest, Option<PreviousRequest>)>;

/// The headers that apply to the request's method. Invalid headers are reported after the key is verified.
struct RequestHeaders {
    /// The path, with the parameters that change the meaning of the request.
    path: String,
    idempotency_key: Option<Result<IdempotencyKey, ValueError>>,
    expected: Option<Result<ExpectedVersions, ValueError>>,
}

impl RequestHeaders {
    /// Reads `Idempotency-Key` from a POST, and `If-Match` from a request with any unsafe method (RFC 9110 §9.2.1).
    fn of(parts: &Parts) -> Self {
        let (is_post, is_safe) = (parts.method == Method::POST, parts.method.is_safe());
        let idempotency_key = single_header(&parts.headers, "idempotency-key").filter(|_| is_post);
        let if_match = parts.headers.get(header::IF_MATCH).filter(|_| !is_safe);
        Self {
            path: path_with_parameters(parts),
            idempotency_key: idempotency_key.map(|text| text?.parse()),
            expected: if_match.map(|_| {
                let text = list_header(&parts.headers, &header::IF_MATCH);
                ExpectedVersions::parse(&text.ok_or_else(|| ValueError::form("must be printable ASCII"))?)
            }),
        }
    }

    /// Returns `None` without an idempotency key.
    fn idempotent_request<C: Credential>(&self, by: &BearerToken<C>, body: &[u8]) -> Result<Option<IdempotentRequest>, ApiError> {
        match &self.idempotency_key {
            None => Ok(None),
            Some(Ok(key)) => Ok(Some(IdempotentRequest::new(by, key.clone(), &self.path, body))),
            Some(Err(error)) => Err(ApiError::idempotency_key(error.to_string())),
        }
    }

    /// Returns an error with `reason` if there is an idempotency key.
    fn refuse_idempotency_key(&self, reason: &str) -> Result<(), ApiError> {
        self.idempotency_key.as_ref().map_or(Ok(()), |_| Err(ApiError::idempotency_key(reason)))
    }

    /// Returns the versions that `If-Match` accepts for the resource `id` or, without an ID, for the tenant.
    fn precondition(&self, id: Option<Uuid>, tenant: TenantId) -> Result<Option<Precondition>, ApiError> {
        match &self.expected {
            None => Ok(None),
            Some(Ok(expected)) => {
                let expected = Expected { versions: Some(expected.clone()), updated_at: None };
                Ok(Some(Precondition { record_id: id.unwrap_or_else(|| tenant.uuid()), expected }))
            }
            Some(Err(error)) => Err(ApiError::Malformed(format!("The header If-Match {error}."))),
        }
    }
}

/// Returns the path with its query parameters, sorted, and the row format, because the same text can be valid as CSV and as
/// NDJSON. Omits `dry_run`: a dry run has no idempotency key.
fn path_with_parameters(parts: &Parts) -> String {
    let query = parts.uri.query().unwrap_or_default();
    let is_kept = |pair: &&str| !pair.is_empty() && pair.split('=').next() != Some("dry_run");
    let mut parameters: Vec<&str> = query.split('&').filter(is_kept).collect();
    parameters.sort_unstable();
    let content_type = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    // Other content types are omitted, because they can differ in case or parameters and still be the same type.
    let format = Some("\nNDJSON").filter(|_| media_type(content_type).eq_ignore_ascii_case("application/x-ndjson"));
    [vec![parts.uri.path()], parameters, format.into_iter().collect()].concat().join("&")
}

fn single_header<'a>(headers: &'a HeaderMap, name: &str) -> Option<Result<&'a str, ValueError>> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() {
        return Some(Err(ValueError::new("must not be sent more than once")));
    }
    Some(value.to_str().map_err(|_| ValueError::form("must be printable ASCII")))
}

/// A key's `last_used_at` is updated once it is this old.
const LAST_USED_PRECISION: chrono::TimeDelta = chrono::TimeDelta::hours(1);

/// Marks the log lines of requests that could not be counted, for the dashboard.
const UNCOUNTED: &str = "uncounted_requests";

struct KeyCheck<'a> {
    app: &'a App,
    at: Timestamp,
    store: &'a Writer,
    token: &'a Token,
    scopes: &'static [Scope],
    notes: &'a RequestContext,
}

/// A key and its owner, just read from the table.
struct Credentials {
    key: ApiKey,
    /// The user that the key is bound to; `None` for a tenant key.
    owner: Option<User>,
}

impl KeyCheck<'_> {
    /// Returns the key if, according to the cache, it permits the request. The request's reads can then start right away.
    fn known(&self) -> Option<KnownKey> {
        self.app.verified_keys().permits(self.token, self.scopes, self.at)
    }

    /// Reads an uncached key, and then the owner of a bound key. The key is read alone, so that unauthenticated requests stay
    /// cheap.
    async fn credentials(&self) -> Result<Credentials, ApiError> {
        // An unreadable key or owner counts as missing, so the request gets a 401.
        let key = StoreError::tolerate_unreadable(self.store.get::<ApiKey>(self.token.id).await)?;
        let Some(key) = self.accepted(key) else { return self.remember(None) };
        let owner = match key.user_id {
            None => None,
            Some(user) => StoreError::tolerate_unreadable(self.store.get::<User>(user).await)?,
        };
        self.remember(Some((key, owner)))
    }

    /// Reads a cached key together with its owner.
    async fn credentials_at_once(&self, owner: Option<UserId>) -> Result<Credentials, ApiError> {
        let records = BatchGet::new().with::<ApiKey>(Some(self.token.id)).with::<User>(owner);
        let records = self.store.batch_get_without_blobs(records).await?;
        let key = self.accepted(records.get_readable(Some(self.token.id))?);
        let owner = records.get_readable::<User>(key.as_ref().and_then(|key| key.user_id))?;
        self.remember(key.map(|key| (key, owner)))
    }

    /// Returns the key if it accepts the token's secret.
    fn accepted(&self, key: Option<Stored<ApiKey>>) -> Option<ApiKey> {
        let (key, secret) = (key?.value, &self.token.secret);
        let is_accepted = secret.is_one_of(&key.accepted_hashes(self.at));
        is_accepted.then(|| if secret.is_one_of(&[&key.hash]) { key } else { key.in_grace() })
    }

    /// Caches an accepted key. Rejects a bound key whose owner is deleted or inactive, and removes rejected keys from the cache.
    fn remember(&self, read: Option<(ApiKey, Option<Stored<User>>)>) -> Result<Credentials, ApiError> {
        let known = self.app.verified_keys();
        let accepted = read.map(|(key, owner)| (key, owner.map(|owner| owner.value).filter(|owner| owner.is_active)));
        let Some((key, owner)) = accepted.filter(|(key, owner)| key.user_id == owner.as_ref().map(|owner| owner.id)) else {
            known.remove(self.token);
            return Err(ApiError::Unauthorized);
        };
        let scopes = key.effective_scopes(owner.as_ref().map(|owner| owner.role));
        known.insert(self.token, scopes, KnownKey::from(&key), self.at);
        Ok(Credentials { key, owner })
    }

    fn count(&self) -> RequestCount<'_> {
        RequestCount { store: self.store, credential: self.token.id.uuid(), at: self.at }
    }

    /// Verifies a key that was just read, for a request that is counted against the key's own limit.
    async fn verify(&self, credentials: Credentials, count: &RequestCount<'_>, begun: Begun) -> Result<VerifiedCaller, ApiError> {
        let (store, token, known, now) = (self.store, self.token, self.app.verified_keys(), count.at);
        let (key, owner) = (&credentials.key, credentials.owner.as_ref());
        self.notes.note_caller(token.tenant, token.id);
        let counted = count.finish(begun, key.rate_limit_per_minute, key.shared_limits(now), self.notes).await;
        if let Err(ApiError::RateLimited(_) | ApiError::TenantRateLimited(_)) = counted {
            known.exhaust(token, end_of_window(now));
        }
        counted?;
        let scopes = key.effective_scopes(owner.map(|owner| owner.role));
        if is_outdated(key.last_used_at, now)
            && let Err(error) = store.touch_key(token.id, now).await
        {
            tracing::warn!(error = %error, key_id = %token.id, "could not record that a key was used");
        }
        if let Some(scope) = self.scopes.iter().find(|scope| !scopes.contains(scope)) {
            return Err(ApiError::Forbidden(*scope));
        }
        let actor = Actor {
            key_id: Some(token.id),
            key_name: key.name.to_string(),
            user_id: key.user_id,
            user_name: owner.map(|owner| owner.display_name.to_string()),
            link_id: None,
        };
        let context = ChangeContext { actor, at: now, idempotency: None, precondition: None, is_erasure: false };
        let role = key.role(owner.map(|owner| owner.role));
        let (app, notes) = (self.app.clone(), self.notes.clone());
        let Credentials { key, owner } = credentials;
        let principal = Principal { patterns: Patterns::default(), store: store.clone(), context, app };
        Ok(VerifiedCaller { principal, scopes, role, key, owner, notes, is_resumed: false })
    }
}

fn is_outdated(last_used_at: Option<Timestamp>, now: Timestamp) -> bool {
    last_used_at.is_none_or(|at| at.plus(LAST_USED_PRECISION) <= now)
}

/// Counts a request against the rate limits.
pub(crate) struct RequestCount<'a> {
    pub(crate) store: &'a Writer,
    pub(crate) credential: Uuid,
    pub(crate) at: Timestamp,
}

/// A request that has been counted only against its credential's limit, not yet against the others.
pub(crate) struct Begun {
    used: Result<u64, StoreError>,
    /// The tenant's limit.
    ceiling: Result<Option<u32>, StoreError>,
}

impl RequestCount<'_> {
    /// Counts the request against the credential's limit and, concurrently, reads the tenant's limit.
    pub(crate) async fn begin(&self, limit: u32) -> Begun {
        let used = self.store.count_request(self.credential, limit, self.at);
        let (used, ceiling) = futures_util::join!(used, self.store.ceiling_of_minute(self.at));
        Begun { used, ceiling }
    }

    /// Counts the request against the other limits: first the limits that a new key shares with the keys that created it, then
    /// the tenant's. A request rejected by one limit doesn't count against the next, so a key that exceeds its limit doesn't use
    /// up the tenant's. Writes the exceeded limit to `notes` or, if none is exceeded, the credential's limit.
    pub(crate) async fn finish(
        &self,
        begun: Begun,
        limit: u32,
        shared: &[SharedLimit],
        notes: &RequestContext,
    ) -> Result<(), ApiError> {
        let rate = Rate::new(limit, self.counted(self.credential, begun.used)?, self.at);
        let rate = if rate.is_exceeded() { rate } else { self.shared_rate(shared).await?.unwrap_or(rate) };
        if rate.is_exceeded() {
            notes.note_rate(rate);
            return Err(ApiError::RateLimited(rate.wait));
        }
        let of_tenant = self.tenant_rate(begun.ceiling).await?.filter(Rate::is_exceeded);
        notes.note_rate(of_tenant.unwrap_or(rate));
        of_tenant.map_or(Ok(()), |of_tenant| Err(ApiError::TenantRateLimited(of_tenant.wait)))
    }

    /// Returns the rate of the first exceeded shared limit.
    async fn shared_rate(&self, limits: &[SharedLimit]) -> Result<Option<Rate>, StoreError> {
        let count = |limit: &SharedLimit| self.store.count_request(limit.key.uuid(), limit.rate_limit_per_minute, self.at);
        let counts = futures_util::future::join_all(limits.iter().map(count)).await;
        for (limit, used) in limits.iter().zip(counts) {
            let rate = Rate::new(limit.rate_limit_per_minute, self.counted(limit.key.uuid(), used)?, self.at);
            if rate.is_exceeded() {
                return Ok(Some(rate));
            }
        }
        Ok(None)
    }

    async fn tenant_rate(&self, ceiling: Result<Option<u32>, StoreError>) -> Result<Option<Rate>, StoreError> {
        let tenant = self.store.id().uuid();
        let Some(limit) = self.counted(tenant, ceiling)?.flatten() else { return Ok(None) };
        let used = self.store.count_request(tenant, limit, self.at).await;
        Ok(Some(Rate::new(limit, self.counted(tenant, used)?, self.at)))
    }

    /// Returns the table's answer, or `None` if the table is unavailable: an outage of the table must not make rate limits reject
    /// requests.
    fn counted<T>(&self, credential_id: Uuid, answer: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
        match answer {
            Err(StoreError::Unavailable(cause)) => {
                let (tenant_id, cause) = (self.store.id(), error_chain(&*cause));
                tracing::warn!(metric = UNCOUNTED, %tenant_id, %credential_id, cause, "a request was let through without being counted");
                Ok(None)
            }
            other => other.map(Some),
        }
    }
}
