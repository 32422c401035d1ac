//! A minimal function: the baseline for the cold starts of the other functions.

use lambda_http::{Body, Error, Request, Response, run, service_fn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    run(service_fn(async |_: Request| Ok::<_, Error>(Response::new(Body::from("hello"))))).await
}
