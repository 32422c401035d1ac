//! The check of a request's credential: a task, which the extractor of the credential starts. A handler can read meanwhile, and
//! waits for [`Check::passed`] before anything with an effect. The middleware sends the handler's response only once the check has
//! passed. Otherwise it sends the error from the check, regardless of the handler's response.

use super::received::ReceivedRequest;
use super::responses::ApiError;
use axum::response::{IntoResponse, Response};
use futures_util::future::{BoxFuture, Shared};
use futures_util::{FutureExt, TryFutureExt};
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use tracing::Instrument;
use tracing::instrument::WithSubscriber;

pub(super) type Checked<T> = Result<T, Arc<ApiError>>;

/// The check of a request's credential, which a task makes. All clones share its result, a `T`.
#[derive(Clone)]
pub(crate) struct Check<T: Clone>(Shared<BoxFuture<'static, Checked<T>>>);

impl<T: Clone + Send + Sync + 'static> Check<T> {
    /// Starts the task, and refuses what the handler doesn't read from the request. The task ends with the request. The errors of
    /// `check` concern the credential and the headers.
    pub(crate) fn start(
        received: &ReceivedRequest,
        check: impl Future<Output = Result<T, ApiError>> + Send + 'static,
    ) -> Result<Self, ApiError> {
        let task = tokio::spawn(check.in_current_span().with_current_subscriber());
        let abort = task.abort_handle();
        // A panic of the task is an error of this request alone.
        let result = task.map(|ended| ended.unwrap_or_else(|error| Err(ApiError::Internal(error.into()))));
        let check = result.map_err(Arc::new).boxed().shared();
        let _ = received.check.set((abort, check.clone().map_ok(drop).boxed().shared()));
        received.refuse_unread().map(|()| Self(check))
    }

    /// Waits until the check has passed. Returns [`ApiError::Unauthorized`] if the check fails; the middleware then sends the
    /// check's own error.
    pub(crate) async fn passed(&self) -> Result<T, ApiError> {
        self.0.clone().await.map_err(|_| ApiError::Unauthorized)
    }
}

/// Ends the check with its request. The check's task has the request, so dropping the request doesn't drop the task.
struct EndOfCheck<'a>(&'a ReceivedRequest);

impl Drop for EndOfCheck<'_> {
    fn drop(&mut self) {
        if let Some((abort, _)) = self.0.check.get() {
            abort.abort();
        }
    }
}

pub(super) async fn respond(handler: impl Future<Output = Response>, received: &ReceivedRequest) -> Response {
    let _end = EndOfCheck(received);
    let response = AssertUnwindSafe(handler).catch_unwind().await;
    if let Some((_, check)) = received.check.get() {
        if let Err(error) = check.clone().await {
            return ApiError::response(error);
        }
    } else if response.as_ref().is_ok_and(|response| !response.status().is_client_error())
        && let Err(error) = received.refuse_body()
    {
        // The endpoint needs no credential.
        return error.into_response();
    }
    response.unwrap_or_else(|panic| resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::received::ReceivedBody;
    use axum::http::{Method, StatusCode};
    use std::pin::pin;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, Ordering};
    use tokio::sync::oneshot;
    use tokio::sync::oneshot::error::TryRecvError;

    /// A request whose check the test completes.
    struct TestRequest {
        received: ReceivedRequest,
        check: Check<()>,
        end: oneshot::Sender<Result<(), ApiError>>,
    }

    fn received() -> ReceivedRequest {
        ReceivedRequest {
            path: Some(Vec::new()),
            query: String::new(),
            parameters: None,
            method: Method::GET,
            check: OnceLock::new(),
            content_type: None,
            is_encoded: false,
            body: ReceivedBody::Unread,
        }
    }

    fn begun() -> TestRequest {
        let (end, ended) = oneshot::channel();
        let received = received();
        let check = Check::start(&received, async { ended.await.unwrap() }).unwrap();
        TestRequest { received, check, end }
    }

    async fn ok() -> Response {
        StatusCode::OK.into_response()
    }

    #[tokio::test]
    async fn response_waits_for_the_check() {
        let request = begun();
        let mut response = pin!(respond(ok(), &request.received));
        assert!(response.as_mut().now_or_never().is_none(), "sent before the check has passed");
        request.end.send(Ok(())).unwrap();
        assert_eq!(response.await.status(), StatusCode::OK);
    }

    #[tokio::test]
    async fn error_of_the_check_is_sent_whatever_the_handler_says() {
        let panicking = async || -> Response { panic!("a fault of the handler") };
        for handler in [ok().boxed(), async { ApiError::NotFound.into_response() }.boxed(), panicking().boxed()] {
            let request = begun();
            request.end.send(Err(ApiError::Unauthorized)).unwrap();
            assert_eq!(respond(handler, &request.received).await.status(), StatusCode::UNAUTHORIZED);
        }
    }

    #[tokio::test]
    async fn effect_waits_for_the_check_and_does_not_happen_if_that_fails() {
        for is_valid in [true, false] {
            let request = begun();
            let is_written = AtomicBool::new(false);
            let handler = async {
                if let Err(error) = request.check.passed().await {
                    return error.into_response();
                }
                is_written.store(true, Ordering::Relaxed);
                ok().await
            };
            let mut response = pin!(respond(handler, &request.received));
            assert!(response.as_mut().now_or_never().is_none() && !is_written.load(Ordering::Relaxed));
            request.end.send(if is_valid { Ok(()) } else { Err(ApiError::NotFound) }).unwrap();
            let expected = if is_valid { StatusCode::OK } else { StatusCode::NOT_FOUND };
            assert_eq!((response.await.status(), is_written.load(Ordering::Relaxed)), (expected, is_valid));
        }
    }

    #[tokio::test]
    async fn panic_of_the_check_is_a_500() {
        let received = received();
        let check: Check<()> = Check::start(&received, async { panic!("a fault of the check") }).unwrap();
        assert!(check.passed().await.is_err());
        assert_eq!(respond(ok(), &received).await.status(), StatusCode::INTERNAL_SERVER_ERROR);
    }

    #[tokio::test]
    async fn check_ends_with_its_request() {
        let (running, mut ended) = oneshot::channel::<()>();
        let received = Arc::new(received());
        // As the check of a key, it has the request.
        let owned = (running, Arc::clone(&received));
        let check: Check<()> = Check::start(&received, async move {
            let _owned = owned;
            std::future::pending().await
        })
        .unwrap();
        let mut response = Box::pin(respond(ok(), &received));
        assert!(response.as_mut().now_or_never().is_none());
        tokio::task::yield_now().await;
        assert!(ended.try_recv().is_err_and(|error| error == TryRecvError::Empty));
        drop(response);
        assert!(ended.await.is_err() && check.passed().await.is_err());
    }

    #[tokio::test]
    async fn query_of_a_handler_without_one_is_refused_once_the_check_has_passed() {
        for is_valid in [true, false] {
            let received = ReceivedRequest { query: "x=1".into(), ..received() };
            let check = async move { if is_valid { Ok(()) } else { Err(ApiError::Unauthorized) } };
            let refused = Check::start(&received, check).err().unwrap();
            let expected = if is_valid { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::UNAUTHORIZED };
            assert_eq!(respond(async { refused.into_response() }, &received).await.status(), expected);
        }
    }

    #[tokio::test]
    async fn request_without_a_credential_has_nothing_to_wait_for() {
        assert_eq!(respond(ok(), &received()).await.status(), StatusCode::OK);
    }
}
