//! Checks a request's credential while the handler reads.
//!
//! The extractor of a credential begins the check. The handler reads meanwhile, but waits for [`Check::passed`] before anything
//! with an effect. The layer around all routes polls both, and sends the handler's response only if the check passes. Otherwise
//! it sends the error of the check, whatever the handler returns.

use super::error::ApiError;
use super::requests::extract::ReceivedRequest;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::future::{BoxFuture, Shared};
use futures_util::{FutureExt, TryFutureExt};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

type Checked<T> = Result<T, Arc<ApiError>>;

/// A check in progress. All clones share its result, a `T`.
#[derive(Clone)]
pub(crate) struct Check<T: Clone>(Shared<BoxFuture<'static, Checked<T>>>);

/// What the layer polls.
struct Begun {
    check: BoxFuture<'static, Checked<()>>,
    received: Arc<ReceivedRequest>,
}

/// Where the layer finds the check of its request.
#[derive(Clone, Default)]
struct CheckOfRequest(Arc<Mutex<Option<Begun>>>);

impl CheckOfRequest {
    fn place(&self) -> MutexGuard<'_, Option<Begun>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin<T: Clone + Send + Sync + 'static>(
        &self,
        received: Arc<ReceivedRequest>,
        check: impl Future<Output = Result<T, ApiError>> + Send + 'static,
    ) -> Check<T> {
        let check = check.map_err(Arc::new).boxed().shared();
        *self.place() = Some(Begun { check: check.clone().map_ok(drop).boxed(), received });
        Check(check)
    }
}

impl<T: Clone + Send + Sync + 'static> Check<T> {
    /// Begins the check of a request. Its errors concern the credential and the headers.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Internal`] for a route without the layer.
    pub(crate) fn begin(
        parts: &Parts,
        received: Arc<ReceivedRequest>,
        check: impl Future<Output = Result<T, ApiError>> + Send + 'static,
    ) -> Result<Self, ApiError> {
        let layer = parts.extensions.get::<CheckOfRequest>();
        let layer = layer.ok_or_else(|| ApiError::Internal("a route outside of http::service".into()))?;
        Ok(layer.begin(received, check))
    }

    /// Waits until the check has passed.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Unauthorized`] if it fails. The layer then sends the check's own error.
    pub(crate) async fn passed(&self) -> Result<T, ApiError> {
        self.0.clone().await.map_err(|_| ApiError::Unauthorized)
    }
}

/// Runs the handler and, once begun, the check of its credential.
pub(super) async fn join(mut request: Request, next: Next) -> Response {
    let of_request = CheckOfRequest::default();
    request.extensions_mut().insert(of_request.clone());
    respond(next.run(request), &of_request).await
}

async fn respond(handler: impl Future<Output = Response>, of_request: &CheckOfRequest) -> Response {
    let mut handler = pin!(handler);
    let (mut response, mut check, mut received) = (None, None, None);
    std::future::poll_fn(|context| {
        // Poll the handler first, so that its first reads join the batch that reads its key.
        if response.is_none()
            && let Poll::Ready(ready) = handler.as_mut().poll(context)
        {
            response = Some(ready);
        }
        if let Some(begun) = of_request.place().take() {
            (check, received) = (Some(begun.check), Some(begun.received));
        }
        if let Some(begun) = &mut check {
            match begun.poll_unpin(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => return Poll::Ready(ApiError::response(error)),
                Poll::Ready(Ok(())) => check = None,
            }
        }
        let Some(response) = response.take() else { return Poll::Pending };
        // Takes precedence over the handler's errors about the path and the body.
        let unread = received.as_ref().map_or(Ok(()), |received| received.refuse_unread_query());
        Poll::Ready(unread.map_or_else(IntoResponse::into_response, |()| response))
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::StatusCode;
    use std::sync::atomic::{AtomicBool, Ordering};
    use tokio::sync::oneshot;

    struct TestRequest {
        of_request: CheckOfRequest,
        received: Arc<ReceivedRequest>,
        check: Check<()>,
        end: oneshot::Sender<Result<(), ApiError>>,
    }

    /// A request whose check ends when the test says so.
    fn begun(query: &str) -> TestRequest {
        let (end, ended) = oneshot::channel();
        let (of_request, received) = (CheckOfRequest::default(), Arc::new(ReceivedRequest::with_query(query)));
        let check = of_request.begin(Arc::clone(&received), async { ended.await.unwrap() });
        TestRequest { of_request, received, check, end }
    }

    async fn ok() -> Response {
        StatusCode::OK.into_response()
    }

    async fn not_found() -> Response {
        ApiError::NotFound.into_response()
    }

    #[tokio::test]
    async fn a_response_waits_for_the_check() {
        let request = begun("");
        let mut response = pin!(respond(ok(), &request.of_request));
        assert!(response.as_mut().now_or_never().is_none(), "sent before the check has passed");
        request.end.send(Ok(())).unwrap();
        assert_eq!(response.await.status(), StatusCode::OK);
    }

    #[tokio::test]
    async fn a_check_that_has_passed_waits_for_the_handler() {
        let request = begun("");
        let (go_on, waits) = oneshot::channel();
        let handler = async {
            waits.await.unwrap();
            ok().await
        };
        let mut response = pin!(respond(handler, &request.of_request));
        request.end.send(Ok(())).unwrap();
        for _ in 0..2 {
            assert!(response.as_mut().now_or_never().is_none());
        }
        go_on.send(()).unwrap();
        assert_eq!(response.await.status(), StatusCode::OK);
    }

    #[tokio::test]
    async fn the_error_of_the_check_is_sent_whatever_the_handler_says() {
        for handler in [ok().boxed(), not_found().boxed(), std::future::pending().boxed()] {
            let request = begun("");
            let mut response = pin!(respond(handler, &request.of_request));
            assert!(response.as_mut().now_or_never().is_none());
            request.end.send(Err(ApiError::Unauthorized)).unwrap();
            assert_eq!(response.await.status(), StatusCode::UNAUTHORIZED);
        }
    }

    #[tokio::test]
    async fn an_effect_waits_for_the_check_and_does_not_happen_if_that_fails() {
        for is_valid in [true, false] {
            let request = begun("");
            let is_written = AtomicBool::new(false);
            let handler = async {
                if let Err(error) = request.check.passed().await {
                    return error.into_response();
                }
                is_written.store(true, Ordering::Relaxed);
                ok().await
            };
            let mut response = pin!(respond(handler, &request.of_request));
            assert!(response.as_mut().now_or_never().is_none() && !is_written.load(Ordering::Relaxed));
            request.end.send(if is_valid { Ok(()) } else { Err(ApiError::NotFound) }).unwrap();
            let expected = if is_valid { StatusCode::OK } else { StatusCode::NOT_FOUND };
            assert_eq!((response.await.status(), is_written.load(Ordering::Relaxed)), (expected, is_valid));
        }
    }

    #[tokio::test]
    async fn a_query_that_nobody_has_read_is_refused_after_the_check_and_before_the_handlers_errors() {
        for (query, is_read, is_valid, expected) in [
            ("x=1", false, true, StatusCode::UNPROCESSABLE_ENTITY),
            ("x=1", false, false, StatusCode::UNAUTHORIZED),
            ("x=1", true, true, StatusCode::NOT_FOUND),
            ("", false, true, StatusCode::NOT_FOUND),
        ] {
            let request = begun(query);
            if is_read {
                request.received.params().unwrap();
            }
            request.end.send(if is_valid { Ok(()) } else { Err(ApiError::Unauthorized) }).unwrap();
            assert_eq!(respond(not_found(), &request.of_request).await.status(), expected, "{query} {is_read}");
        }
    }

    #[tokio::test]
    async fn a_request_without_a_credential_has_nothing_to_wait_for() {
        assert_eq!(respond(ok(), &CheckOfRequest::default()).await.status(), StatusCode::OK);
    }
}
