//! Cold lists with snapshots: on one instance, and on many that start at once.

use super::{Samples, request_page, sample_after};
use crate::service::Service;
use anyhow::{Result, ensure};
use axum::body::{Body, to_bytes};
use axum::http::Request;
use chrono::TimeDelta;
use futures_util::future::join_all;
use std::time::{Duration, Instant};
use tower::ServiceExt;

const INSTANCES: usize = 13;

pub async fn write(service: &Service) -> Result<()> {
    let report = service.store.write_snapshots(service.store.now().plus(TimeDelta::hours(1))).await?;
    ensure!(report.failed == 0 && report.written > 0, "{report:?}");
    Ok(())
}

pub async fn cold_lists(service: &Service, size: usize, count: usize) -> Result<Samples> {
    let forget = || service.store.forget_list_indexes();
    sample_after(service, count, forget, async || request_page(service, "", size).await).await
}

/// Starts instances at once, at a table that allows 3,000 read units per second. Returns the time until the last one has listed,
/// with all retries.
pub async fn many_at_once(service: &Service) -> Result<Duration> {
    let start = Instant::now();
    service.read_limit.set(true);
    let instances = (0..INSTANCES).map(async |_| {
        let router = service.instance();
        loop {
            let request = Request::builder().uri("/v1/assets").header("authorization", format!("Bearer {}", service.api_key()));
            let response = router.clone().oneshot(request.body(Body::empty())?).await?;
            let status = response.status();
            let retry_after = response.headers().get("retry-after").and_then(|seconds| seconds.to_str().ok()?.parse().ok());
            to_bytes(response.into_body(), usize::MAX).await?;
            match retry_after {
                _ if status.is_success() => return Ok::<_, anyhow::Error>(start.elapsed()),
                Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
                None => anyhow::bail!("status {status}"),
            }
        }
    });
    let ends: Vec<Duration> = join_all(instances).await.into_iter().collect::<Result<_>>()?;
    service.read_limit.set(false);
    Ok(ends.into_iter().max().unwrap_or_default())
}
