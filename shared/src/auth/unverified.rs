//! A request whose credential is not verified yet, and its headers `Idempotency-Key` and `If-Match`, which make a change
//! repeatable or conditional.

use super::verify::{CheckedKey, KeyCheck};
use super::{Principal, VerifiedCaller};
use crate::app::App;
use crate::domain::keys::scope::Scope;
use crate::domain::keys::token::{BearerToken, Credential};
use crate::domain::request::{ExpectedVersions, IdempotencyKey, IdempotentRequest, Precondition};
use crate::domain::values::field_error::ValueError;
use crate::domain::values::id::{ApiKeyId, Id, TenantId};
use crate::http::RequestContext;
use crate::http::error::ApiError;
use crate::http::requests::receive::{ReceivedBody, ReceivedRequest, bearer_token, list_header, media_type, received};
use crate::store::{ChangeContext, KeyBatch, PreviousRequest, TenantStore, WriteError};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use std::sync::Arc;
use uuid::Uuid;

pub(super) struct UnverifiedRequest<C> {
    pub(super) app: App,
    pub(super) token: BearerToken<C>,
    /// The tenant's part of the table. A dry run writes nothing.
    pub(super) store: TenantStore,
    pub(super) received: Arc<ReceivedRequest>,
    headers: RequestHeaders,
    pub(super) notes: RequestContext,
}

impl<C: Credential> UnverifiedRequest<C> {
    /// # Errors
    ///
    /// Returns `without` for a request without a credential.
    pub(super) fn new(parts: &Parts, app: &App, without: ApiError) -> Result<Self, ApiError> {
        let token: BearerToken<C> = bearer_token(&parts.headers).ok_or(without)?;
        let received = received(parts)?;
        let store = app.store().tenant(token.tenant);
        let store = match received.dry_run() {
            Some(dry_run) => store.in_dry_run(dry_run),
            None => store,
        };
        Ok(Self {
            app: app.clone(),
            token,
            store,
            received,
            headers: RequestHeaders::of(parts),
            notes: parts.extensions.get::<RequestContext>().cloned().unwrap_or_default(),
        })
    }

    /// The context of the request's changes, from its headers; and whether its changes, which are committed one by one, were
    /// begun before. The credential is verified.
    ///
    /// # Errors
    ///
    /// Returns the errors of the headers. Returns [`WriteError::AlreadyAnswered`] if the request was answered before: the layer
    /// around all routes then sends the stored response.
    pub(super) fn context_with_headers(
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
            self.notes.note_idempotent_request(principal.store.clone(), request.clone(), previous);
            if is_repeated {
                // The layer around all routes sends the stored response.
                return Err(WriteError::AlreadyAnswered.into());
            }
            context.idempotency = Some(request);
        }
        Ok((context, is_resumed))
    }

    pub(super) async fn idempotency(&self, store: &TenantStore) -> Result<Idempotency, ApiError> {
        // A body that is not whole is refused before the request could be repeated.
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
    /// Begins the check of a key that this instance has verified lately: the rest of it is returned, with a store whose first reads
    /// join the batch that reads the key. Any other key is read first, alone; the rest is to count the request, and to look it up by
    /// its idempotency key.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Unauthorized`], [`ApiError::RateLimited`], [`ApiError::TenantRateLimited`] and [`ApiError::Forbidden`].
    pub(super) async fn begin_check(
        self,
        scopes: &'static [Scope],
    ) -> Result<(TenantStore, impl Future<Output = Result<VerifiedCaller, ApiError>> + Send + use<>), ApiError> {
        let batch = Arc::<KeyBatch>::default();
        let check = self.key_check(scopes);
        let (reads, key) = match check.known() {
            Some(known) => (self.store.joining(&batch), CheckedKey::Known(known)),
            None => (self.store.clone(), check.begin_alone().await?),
        };
        let store = reads.clone();
        let rest = async move {
            let check = self.key_check(scopes);
            // The look-up is polled first, so that it joins the batch. An error of the key ends it.
            let look_up = async { Ok(self.idempotency(&reads).await) };
            let (idempotency, caller) = futures_util::try_join!(look_up, check.verify(key, &batch))?;
            let (context, is_resumed) = self.context_with_headers(&caller, idempotency?)?;
            Ok(VerifiedCaller { is_resumed, ..caller.with_context(context) })
        };
        Ok((store, rest))
    }

    fn key_check(&self, scopes: &'static [Scope]) -> KeyCheck<'_> {
        KeyCheck { app: &self.app, store: &self.store, token: &self.token, scopes, notes: &self.notes }
    }
}

/// A request by its idempotency key, and the previous request under it; `None` if it has no key.
pub(super) type Idempotency = Option<(IdempotentRequest, Option<PreviousRequest>)>;

/// The headers that the method uses. A bad one is reported once the key is verified.
struct RequestHeaders {
    /// The path, with the parameters that change the meaning of the request.
    path: String,
    idempotency_key: Option<Result<IdempotencyKey, ValueError>>,
    expected: Option<Result<ExpectedVersions, ValueError>>,
}

impl RequestHeaders {
    /// Reads `Idempotency-Key` of a POST, and `If-Match` of every request that is not safe (RFC 9110 §9.2.1).
    fn of(parts: &Parts) -> Self {
        let (is_post, is_safe) = (parts.method == Method::POST, parts.method.is_safe());
        let idempotency_key = single_header(&parts.headers, "idempotency-key").filter(|_| is_post);
        let if_match = parts.headers.get(header::IF_MATCH).filter(|_| !is_safe);
        Self {
            path: path_with_parameters(parts),
            idempotency_key: idempotency_key.map(|text| text?.parse()),
            expected: if_match.map(|_| {
                let text = list_header(&parts.headers, &header::IF_MATCH);
                ExpectedVersions::parse(&text.ok_or_else(|| ValueError::new("must be printable ASCII"))?)
            }),
        }
    }

    /// `None` without an idempotency key.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Invalid`] for a bad idempotency key.
    fn idempotent_request<C: Credential>(&self, by: &BearerToken<C>, body: &[u8]) -> Result<Option<IdempotentRequest>, ApiError> {
        match &self.idempotency_key {
            None => Ok(None),
            Some(Ok(key)) => Ok(Some(IdempotentRequest::new(by, key.clone(), &self.path, body))),
            Some(Err(error)) => Err(ApiError::idempotency_key(error.to_string())),
        }
    }

    /// # Errors
    ///
    /// Returns [`ApiError::Invalid`] with `reason` if there is an idempotency key.
    fn refuse_idempotency_key(&self, reason: &str) -> Result<(), ApiError> {
        self.idempotency_key.as_ref().map_or(Ok(()), |_| Err(ApiError::idempotency_key(reason)))
    }

    /// From `If-Match`: the accepted versions of the resource with this `id` or, without one, of the tenant.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Malformed`] for a text that is not a list of entity tags.
    fn precondition(&self, id: Option<Uuid>, tenant: TenantId) -> Result<Option<Precondition>, ApiError> {
        match &self.expected {
            None => Ok(None),
            Some(Ok(expected)) => {
                Ok(Some(Precondition { record_id: id.unwrap_or_else(|| tenant.uuid()), expected: expected.clone() }))
            }
            Some(Err(error)) => Err(ApiError::Malformed(format!("The header If-Match {error}."))),
        }
    }
}

/// Returns the path with its query parameters, in an order that does not depend on the client, and with the format of rows,
/// since the same text can be rows of CSV and of NDJSON. Whether it is a dry run is left out: a dry run has no idempotency key.
fn path_with_parameters(parts: &Parts) -> String {
    let query = parts.uri.query().unwrap_or_default();
    let is_kept = |pair: &&str| !pair.is_empty() && pair.split('=').next() != Some("dry_run");
    let mut parameters: Vec<&str> = query.split('&').filter(is_kept).collect();
    parameters.sort_unstable();
    let content_type = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    // Nothing is added for other types: they can differ in letter case or parameters and mean the same.
    let format = Some("\nNDJSON").filter(|_| media_type(content_type).eq_ignore_ascii_case("application/x-ndjson"));
    [vec![parts.uri.path()], parameters, format.into_iter().collect()].concat().join("&")
}

fn single_header<'a>(headers: &'a HeaderMap, name: &str) -> Option<Result<&'a str, ValueError>> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() {
        return Some(Err(ValueError::new("must be sent once")));
    }
    Some(value.to_str().map_err(|_| ValueError::new("must be printable ASCII")))
}
