//! The author, the time and the conditions of a change.

use crate::domain::actor::Actor;
use crate::domain::request::{IdempotentRequest, Precondition};
use crate::domain::values::time::Timestamp;

/// The common parts of the changes of one request.
#[derive(Debug, Clone)]
pub struct ChangeContext {
    pub actor: Actor,
    /// The time of the request.
    pub at: Timestamp,
    /// The request, if it has an idempotency key.
    pub idempotency: Option<IdempotentRequest>,
    /// The version of a record that the request expects (`If-Match`).
    pub precondition: Option<Precondition>,
    /// The changes take values about a person away: their events don't have the old values either.
    pub is_erasure: bool,
}

impl ChangeContext {
    /// For changes on the operator's command line.
    #[must_use]
    pub fn operator(at: Timestamp) -> Self {
        Self { actor: Actor::operator(), at, idempotency: None, precondition: None, is_erasure: false }
    }
}
