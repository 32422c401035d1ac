//! Sealing secrets that the table keeps: by whom is for the program to say (docs/adr/0009).

use crate::domain::id::TenantId;
use futures_util::future::BoxFuture;

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why something could not be sealed or opened.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The sealer did not answer in time. Trying again later can help.
    #[error("the sealer did not answer in time")]
    Unavailable(#[source] Cause),
    /// It refused, or what it was given is not what it sealed for this tenant.
    #[error("the sealer refused")]
    Refused(#[source] Cause),
}

/// Encrypts small secrets and binds them to a tenant.
pub trait Sealer: Send + Sync {
    /// Tells sealers apart; kept beside what is sealed.
    fn name(&self) -> &'static str;

    /// Seals a secret of a tenant.
    fn seal<'a>(&'a self, tenant: TenantId, secret: &'a [u8]) -> BoxFuture<'a, Result<Vec<u8>, SealError>>;

    /// Opens what was sealed for the same tenant.
    fn open<'a>(&'a self, tenant: TenantId, sealed: &'a [u8]) -> BoxFuture<'a, Result<Vec<u8>, SealError>>;
}
