//! The key check and the first read, together.

use super::request_headers::RequestHeaders;
use crate::app::App;
use crate::domain::event::Actor;
use crate::domain::field_error::FieldError;
use crate::domain::id::Id;
use crate::domain::rate::Rate;
use crate::domain::scope::{Scope, Scopes};
use crate::domain::time::Timestamp;
use crate::domain::token::Token;
use crate::http::RequestNotes;
use crate::http::body::FromBody;
use crate::http::error::ApiError;
use crate::http::params::{FromQuery, Params, decode};
use crate::store::{ChangeContext, TenantStore, WriteError};
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::{HeaderMap, header};
use http_body_util::BodyExt;
use std::convert::Infallible;

/// The largest body (contract 1, "Size").
const LARGEST_BODY: usize = 1024 * 1024;
/// How much of a larger one is still read, so that the sender hears why it is refused. API Gateway lets no more
/// than this through.
const READ_AT_MOST: usize = 10 * 1024 * 1024;
/// How old a key's `last_used_at` gets before it is written again.
const TOUCH_AFTER: chrono::TimeDelta = chrono::TimeDelta::hours(1);

/// What a body turned out to be.
enum ReceivedBody {
    Bytes(Bytes),
    TooLarge,
    BrokenLink,
}

/// A request whose key has not been checked yet.
pub struct UnverifiedRequest {
    app: App,
    token: Option<Token>,
    path: Result<Vec<(String, String)>, ()>,
    query: String,
    content_type: Option<String>,
    body: ReceivedBody,
    asked: RequestHeaders,
    trace: RequestNotes,
}

/// Who asks, what they may do, and their tenant's part of the table.
pub struct Caller {
    /// The tenant's part of the table.
    pub store: TenantStore,
    /// What the key may do now.
    pub scopes: Scopes,
    /// Who changes something, and when.
    pub context: ChangeContext,
    /// What the function keeps between requests.
    pub app: App,
}

impl FromRequest<App> for UnverifiedRequest {
    type Rejection = Infallible;

    async fn from_request(request: Request, app: &App) -> Result<Self, Infallible> {
        let (mut parts, body) = request.into_parts();
        let path = match RawPathParams::from_request_parts(&mut parts, app).await {
            Ok(params) if decode(parts.uri.path()).is_ok() => {
                Ok(params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
            }
            _ => Err(()),
        };
        Ok(Self {
            app: app.clone(),
            token: bearer(&parts.headers).and_then(Token::parse),
            path,
            query: parts.uri.query().unwrap_or_default().to_owned(),
            content_type: parts.headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).map(str::to_owned),
            asked: RequestHeaders::of(&parts),
            body: receive(body).await,
            trace: parts.extensions.get::<RequestNotes>().cloned().unwrap_or_default(),
        })
    }
}

/// The token of the one `Authorization: Bearer …` header (RFC 6750 §2.1; the scheme's case does not matter).
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (scheme, token) = values.next()?.to_str().ok()?.split_once(' ')?;
    (values.next().is_none() && scheme.eq_ignore_ascii_case("bearer")).then(|| token.trim())
}

async fn receive(mut body: Body) -> ReceivedBody {
    let mut bytes = Vec::new();
    let mut received = 0usize;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return ReceivedBody::BrokenLink };
        let Some(data) = frame.data_ref() else { continue };
        received = received.saturating_add(data.len());
        if received > READ_AT_MOST {
            return ReceivedBody::TooLarge;
        }
        if received <= LARGEST_BODY {
            bytes.extend_from_slice(data);
        } else {
            bytes = Vec::new();
        }
    }
    if received > LARGEST_BODY { ReceivedBody::TooLarge } else { ReceivedBody::Bytes(bytes.into()) }
}

impl UnverifiedRequest {
    /// Checks that the key is good and has `scope`; meanwhile runs `read` in the key's tenant. The endpoint takes
    /// no query parameters.
    ///
    /// # Errors
    ///
    /// First the key's (401, 403), then those of `read`.
    pub async fn enter<T, F: Future<Output = Result<T, ApiError>>>(
        &self,
        scope: Scope,
        read: impl FnOnce(TenantStore) -> F,
    ) -> Result<(Caller, T), ApiError> {
        self.enter_list(scope, |store| async {
            Params::parse(&self.query)?.finish()?;
            read(store).await
        })
        .await
    }

    /// [`UnverifiedRequest::enter`] for an endpoint that takes query parameters, which `read` gets by [`UnverifiedRequest::query`].
    ///
    /// # Errors
    ///
    /// As [`UnverifiedRequest::enter`].
    pub async fn enter_list<T, F: Future<Output = Result<T, ApiError>>>(
        &self,
        scope: Scope,
        read: impl FnOnce(TenantStore) -> F,
    ) -> Result<(Caller, T), ApiError> {
        let token = self.token.as_ref().ok_or(ApiError::Unauthorized)?;
        let (store, admission) = self.app.store().tenant_for_stranger(token.tenant);
        // A key that fails ends both: what `read` was about to cost is not spent on strangers.
        let read = async { Ok(read(store.clone()).await) };
        let check = async {
            let caller = self.check(token, &store, scope).await?;
            // Nobody else sets it.
            let _ = admission.set(());
            Ok::<_, ApiError>(caller)
        };
        let claim = match &self.body {
            ReceivedBody::Bytes(body) => self.asked.claim(token.key, body),
            // It is refused as it is.
            ReceivedBody::TooLarge | ReceivedBody::BrokenLink => Ok(None),
        };
        let recall = async {
            match &claim {
                Ok(Some(claim)) => Ok(store.recall(claim).await),
                _ => Ok(Ok(None)),
            }
        };
        let (caller, found, recalled) = futures_util::try_join!(check, read, recall)?;
        let (claim, recalled) = (claim?, recalled?);
        let precondition = self.asked.precondition(self.path_parameter("id").ok(), store.id())?;
        if let Some(claim) = &claim {
            let known = recalled.is_some();
            self.trace.note_claim(store.clone(), claim.clone(), recalled);
            if known {
                // The layer around all routes tells what is known.
                return Err(WriteError::AlreadyAnswered.into());
            }
        }
        let context = ChangeContext { idempotency: claim, precondition, ..caller.context };
        Ok((Caller { context, ..caller }, found?))
    }

    async fn check(&self, token: &Token, store: &TenantStore, scope: Scope) -> Result<Caller, ApiError> {
        let now = self.app.store().now();
        let secret = token.secret.hash();
        let (found, mut used) = futures_util::join!(store.credentials(token.key), store.count_request(token.key, &secret.0, now));
        let found = found?.ok_or(ApiError::Unauthorized)?;
        let key = &found.key.value;
        let owner = found.owner.as_ref().map(|owner| &owner.value);
        let owner_is_fine = key.user_id.is_none() || owner.is_some_and(|owner| owner.is_active);
        if !token.secret.is_one_of(&key.accepted(now)) || !owner_is_fine {
            return Err(ApiError::Unauthorized);
        }
        self.trace.note_caller(token.tenant, token.key);
        // While the old secret of a rotated key still works, both count.
        for other in key.accepted(now).into_iter().filter(|other| **other != secret) {
            used = Ok(used? + store.counted_requests(token.key, &other.0, now).await?);
        }
        let rate = Rate::new(key.rate_limit_per_minute, used?, now);
        self.trace.note_rate(rate);
        if rate.is_exceeded() {
            return Err(ApiError::RateLimited(rate.wait));
        }
        if is_stale(key.last_used_at, now)
            && let Err(error) = store.touch_key(token.key, now).await
        {
            tracing::warn!(error = %error, key_id = %token.key, "could not note that a key was used");
        }
        let scopes = key.effective_scopes(owner);
        if !scopes.contains(&scope) {
            return Err(ApiError::Forbidden(scope));
        }
        let by = Actor {
            key_id: Some(token.key),
            key_name: key.name.to_string(),
            user_id: key.user_id,
            user_name: owner.map(|owner| owner.display_name.to_string()),
        };
        Ok(Caller {
            store: store.clone(),
            scopes,
            context: ChangeContext { actor: by, at: now, idempotency: None, precondition: None },
            app: self.app.clone(),
        })
    }

    /// The id in the path.
    ///
    /// # Errors
    ///
    /// 404 for what is no id, as for an id of nothing.
    pub fn id<I: Id>(&self) -> Result<I, ApiError> {
        self.path_parameter("id")?.parse().map_err(|_| ApiError::NotFound)
    }

    /// A part of the path, by the name that the route gives it.
    ///
    /// # Errors
    ///
    /// 400 for bad percent-encoding.
    pub fn path_parameter(&self, name: &str) -> Result<&str, ApiError> {
        let params = self.path.as_ref().map_err(|()| ApiError::Malformed("The URL has bad percent-encoding.".into()))?;
        let found = params.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).ok_or(ApiError::NotFound)
    }

    /// The query parameters.
    ///
    /// # Errors
    ///
    /// 400 or 422, with every field_error.
    pub fn query<Q: FromQuery>(&self) -> Result<Q, ApiError> {
        Q::from_query(&self.query)
    }

    /// The body.
    ///
    /// # Errors
    ///
    /// 413, 415, 400 or 422, with every field_error.
    pub fn body<B: FromBody>(&self) -> Result<B, ApiError> {
        let (body, errors) = self.body_and_errors()?;
        if errors.is_empty() { Ok(body) } else { Err(ApiError::Invalid(errors)) }
    }

    /// The body and the errors of those of its fields that could not be read, for an endpoint that looks for more
    /// errors before it names them all.
    ///
    /// # Errors
    ///
    /// 413, 415, 400; 422 when a required field can't be read.
    pub fn body_and_errors<B: FromBody>(&self) -> Result<(B, Vec<FieldError>), ApiError> {
        let bytes = match &self.body {
            ReceivedBody::Bytes(bytes) => bytes,
            ReceivedBody::TooLarge => return Err(ApiError::TooLarge),
            ReceivedBody::BrokenLink => return Err(ApiError::Malformed("The body ended early.".into())),
        };
        if bytes.is_empty() {
            return Err(ApiError::Malformed("A body is needed: a JSON object.".into()));
        }
        let media_type = self.content_type.as_deref().map(|value| value.split(';').next().unwrap_or_default().trim());
        if !media_type.is_some_and(|media_type| media_type.eq_ignore_ascii_case("application/json")) {
            return Err(ApiError::UnsupportedMediaType);
        }
        match B::read(bytes)? {
            (Some(body), errors) => Ok((body, errors)),
            (None, errors) => Err(ApiError::Invalid(errors)),
        }
    }

    /// The body, or `None` when there is none, for an endpoint that can do without.
    ///
    /// # Errors
    ///
    /// As [`UnverifiedRequest::body`].
    pub fn optional_body<B: FromBody>(&self) -> Result<Option<B>, ApiError> {
        match &self.body {
            ReceivedBody::Bytes(bytes) if bytes.is_empty() => Ok(None),
            _ => self.body().map(Some),
        }
    }
}

fn is_stale(last_used_at: Option<Timestamp>, now: Timestamp) -> bool {
    last_used_at.is_none_or(|at| at.plus(TOUCH_AFTER) <= now)
}
