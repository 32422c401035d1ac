//! The addresses of hosts.

use futures_util::future::BoxFuture;
use std::io;
use std::net::IpAddr;

/// Tests have their own.
pub trait Resolve: Send + Sync {
    /// There is at least one address.
    ///
    /// # Errors
    ///
    /// Returns an I/O error when there are none, or the resolver did not respond.
    fn addresses<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, io::Error>>;
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Resolver;

impl Resolve for Resolver {
    fn addresses<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, io::Error>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect()) })
    }
}
