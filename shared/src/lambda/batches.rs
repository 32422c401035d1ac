//! Runs a function that gets batches of stream records or queue messages.

use super::exit_code;
use crate::app::system_clock;
use crate::log;
use crate::store::{Clock, Store, client, with_deadline};
use lambda_http::Error;
use lambda_http::lambda_runtime::{self, LambdaEvent, service_fn};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::process::ExitCode;
use std::time::Duration;
use tokio::time::Instant;

/// Time left until Lambda's deadline when a batch ends. At the deadline, Lambda stops the function and the whole batch counts as
/// failed.
const MARGIN: Duration = Duration::from_millis(1500);

pub trait BatchHandler {
    type Batch: DeserializeOwned;
    type Response: Serialize;

    /// Reports the items not finished by `deadline` as unhandled.
    fn handle_until(&self, batch: Self::Batch, deadline: Instant) -> impl Future<Output = Self::Response>;
}

/// Creates a handler for the table `TABLE_NAME` and passes it every batch, until Lambda stops the function. Logs the error and
/// fails if `make` does.
pub async fn run_batches<H, E>(make: impl FnOnce(Store) -> Result<H, E>) -> ExitCode
where
    H: BatchHandler,
    E: Into<Error>,
{
    log::init_function();
    let clock = system_clock();
    let handler = client::function_store(clock.clone()).map_err(Error::from);
    exit_code(match handler.and_then(|store| make(store).map_err(Into::into)) {
        Ok(handler) => {
            let service = service_fn(async |event: LambdaEvent<H::Batch>| {
                let deadline = Instant::now() + time_left(event.context.deadline, &clock);
                Ok::<_, Error>(with_deadline(deadline, handler.handle_until(event.payload, deadline)).await)
            });
            lambda_runtime::run(service).await
        }
        Err(error) => Err(error),
    })
}

/// `deadline` is Lambda's deadline, in milliseconds since 1970.
fn time_left(deadline: u64, clock: &Clock) -> Duration {
    let now = u64::try_from(clock().millis()).unwrap_or_default();
    Duration::from_millis(deadline.saturating_sub(now)).saturating_sub(MARGIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::values::time::Timestamp;
    use std::sync::Arc;

    #[test]
    fn a_batch_ends_before_lambda_would_end_it() {
        let clock: Clock = Arc::new(|| Timestamp::from_millis(10_000));
        assert_eq!(time_left(70_000, &clock), Duration::from_millis(58_500));
        assert_eq!([0, 10_000, 11_000].map(|deadline| time_left(deadline, &clock)), [Duration::ZERO; 3]);
    }
}
