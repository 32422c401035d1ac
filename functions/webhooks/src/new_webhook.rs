//! The creation of a webhook.

use crate::wire::{NewWebhook, WebhookView};
use serde_json::json;
use shared::auth::{Command, Principal};
use shared::domain::record::Stored;
use shared::domain::request::StoredResponse;
use shared::domain::values::slots::choose;
use shared::domain::webhooks::{EncryptedSecret, MAX_WEBHOOKS, Webhook};
use shared::http::error::{ApiError, ConflictCode};
use shared::http::responses::{Created, CreatedSecret, Success};
use shared::store::{CommitFailure, StoreError, TenantStore, UnitOfWork, WriteError};

pub(crate) struct CreateWebhook {
    pub(crate) body: NewWebhook,
    pub(crate) secret: EncryptedSecret,
}

pub(crate) fn created<T>(webhook: &Stored<Webhook>, view: T) -> CreatedSecret<T> {
    Created::new("webhooks", webhook.value.id, view).with_secret()
}

pub(crate) fn too_many() -> ApiError {
    let detail = format!("The limit of {MAX_WEBHOOKS} webhooks is reached.");
    ApiError::conflict(ConflictCode::Conflict, detail, json!({"limit": MAX_WEBHOOKS}))
}

impl Command for CreateWebhook {
    type Inputs = Vec<u8>;
    type Outcome = Stored<Webhook>;

    async fn read(&self, reads: &TenantStore) -> Result<Vec<u8>, ApiError> {
        Ok(reads.free_webhook_slots().await?)
    }

    fn decide(
        &self,
        principal: &Principal,
        unit: &mut UnitOfWork<'_>,
        free_slots: &Vec<u8>,
    ) -> Result<Stored<Webhook>, CommitFailure<ApiError>> {
        let now = principal.context.at;
        let id = principal.store.new_id(now)?;
        let slot = choose(free_slots, id).ok_or_else(too_many)?;
        let NewWebhook { url, description, events, is_active } = &self.body;
        Ok(unit.create(Webhook {
            id,
            url: url.clone(),
            description: description.value().cloned().unwrap_or_default(),
            events: events.clone(),
            is_active: is_active.unwrap_or(true),
            disabled_reason: None,
            active_since: now,
            slot,
            secret: self.secret.clone(),
            previous_secret: None,
            rotated_at: None,
            created_by: principal.context.actor.key_id,
        })?)
    }

    /// The stored response must not have the secret.
    fn stored_response(&self, webhook: &Stored<Webhook>) -> Result<StoredResponse, StoreError> {
        created(webhook, WebhookView::from(webhook.clone())).to_stored(Vec::new())
    }

    fn classify_failure(&self, error: WriteError, _: &Stored<Webhook>) -> CommitFailure<ApiError> {
        match error {
            // Another creation has taken the slot: the next attempt takes one that is left.
            WriteError::Duplicate(..) => CommitFailure::Outdated(WriteError::Stale),
            error => error.into(),
        }
    }
}
