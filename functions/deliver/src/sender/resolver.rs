//! The addresses of receivers' names: only those that webhooks may have.

use super::failure::Refused;
use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use shared::domain::webhooks::{AddressPolicy, AttemptFailure, is_local_name, is_public};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The addresses that are tried. They share the time.
const MAX_ADDRESSES: usize = 4;

type Lookup = dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync;

/// Is asked once for each connection, which is then made to one of the addresses that were checked. One bad address excludes the
/// name.
pub(super) struct CheckedResolver {
    pub policy: AddressPolicy,
    /// Tests have no public addresses, so they let others count.
    pub is_public: fn(IpAddr) -> bool,
    pub lookup: Arc<Lookup>,
}

impl CheckedResolver {
    /// With the resolver of the system.
    pub fn new(policy: AddressPolicy) -> Self {
        Self { policy, is_public, lookup: Arc::new(|name| Box::pin(lookup(name))) }
    }
}

async fn lookup(name: String) -> io::Result<Vec<IpAddr>> {
    Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let Self { policy, is_public, .. } = *self;
        let (name, found) = (name.as_str().to_owned(), (self.lookup)(name.as_str().to_owned()));
        Box::pin(async move {
            let found = found.await.unwrap_or_default();
            if found.is_empty() {
                return Err(Refused(AttemptFailure::NameNotFound).into());
            }
            let is_loopback = policy == AddressPolicy::PublicOrLoopback && found.iter().all(IpAddr::is_loopback);
            if !is_loopback && (is_local_name(&name) || !found.iter().copied().all(is_public)) {
                return Err(Refused(AttemptFailure::AddressNotAllowed).into());
            }
            let addresses: Addrs = Box::new(found.into_iter().take(MAX_ADDRESSES).map(|address| SocketAddr::new(address, 0)));
            Ok(addresses)
        })
    }
}
