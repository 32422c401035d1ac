//! The transport of deliveries to their receivers.

use super::{Sender, SignedDelivery};
use futures_util::future::BoxFuture;
use shared::domain::values::time::Timestamp;
use shared::domain::webhooks::Attempt;

/// Takes a delivery to its receiver. Tests have their own.
pub trait Transport: Send + Sync {
    /// Sends a delivery once.
    fn send<'a>(&'a self, delivery: SignedDelivery<'a>, at: Timestamp) -> BoxFuture<'a, Attempt>;
}

impl Transport for Sender {
    fn send<'a>(&'a self, delivery: SignedDelivery<'a>, at: Timestamp) -> BoxFuture<'a, Attempt> {
        Box::pin(Self::send(self, delivery, at))
    }
}
