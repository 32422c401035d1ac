//! Tenants: made and listed by the operator, never over HTTP (contract 3).

use super::Store;
use super::error::{StoreError, WriteError};
use super::keys::{self, Key, PK, SK, TYPE};
use super::transact::{Guard, Part};
use super::write::Stamp;
use crate::domain::api_key::ApiKey;
use crate::domain::event::Actor;
use crate::domain::id::{ApiKeyId, Id, TenantId, UserId};
use crate::domain::record::Stored;
use crate::domain::scope::{Role, Scope};
use crate::domain::tenant::Tenant;
use crate::domain::text::Name;
use crate::domain::token::{Secret, Token};
use crate::domain::user::{Email, User};
use aws_sdk_dynamodb::types::AttributeValue;

/// A tenant that was just made. Its key's text is nowhere else.
#[derive(Debug)]
pub struct NewTenant {
    /// Which tenant.
    pub tenant_id: TenantId,
    /// Its first key.
    pub key_id: ApiKeyId,
    /// The key's text, to be shown once.
    pub api_key: Token,
    /// Its first user, if an address was given.
    pub user_id: Option<UserId>,
}

impl Store {
    /// Makes a tenant with a first key that may do everything and, if there is an address, a first user.
    /// All of it in one transaction.
    ///
    /// # Errors
    ///
    /// The table.
    pub async fn create_tenant(&self, name: Name, admin: Option<Email>, rate_limit: u32) -> Result<NewTenant, WriteError> {
        let stamp = Stamp { by: Actor::operator(), at: self.now() };
        let tenant_id = TenantId::new(stamp.at, self.random()?);
        let tenant = self.tenant(tenant_id);
        let secret = Secret::new(self.random()?);
        let name_of_key = "first key".parse().map_err(StoreError::broken)?;
        let scopes = Scope::ALL.iter().copied().collect();
        let key = ApiKey::new(tenant.new_id(stamp.at)?, name_of_key, scopes, secret.hash(), rate_limit);
        let key_id = key.id;
        let mut registered = keys::registry(tenant_id).item();
        registered.insert(TYPE.to_owned(), AttributeValue::S("registration".to_owned()));
        let mut parts = vec![Part { guard: Guard::Certain, write: self.put_new(registered)? }];
        parts.extend(tenant.creation(Tenant::new(tenant_id, name), &stamp)?.1);
        parts.extend(tenant.creation(key, &stamp)?.1);
        let user_id = match admin {
            None => None,
            Some(email) => {
                let id = tenant.new_id(stamp.at)?;
                let display_name = email.as_str().parse().map_err(StoreError::broken)?;
                let user = User { id, email, display_name, role: Role::Admin, is_active: true };
                parts.extend(tenant.creation(user, &stamp)?.1);
                Some(id)
            }
        };
        tenant.write(parts).await?;
        Ok(NewTenant { tenant_id, key_id, api_key: Token::new(tenant_id, key_id, secret), user_id })
    }

    /// Every tenant, oldest first.
    ///
    /// # Errors
    ///
    /// The table.
    pub async fn tenants(&self) -> Result<Vec<Stored<Tenant>>, StoreError> {
        let query = self.client.query().table_name(&self.table).consistent_read(true);
        let mut pages = query
            .key_condition_expression("#pk = :pk AND begins_with(#sk, :sk)")
            .expression_attribute_names("#pk", PK)
            .expression_attribute_names("#sk", SK)
            .expression_attribute_values(":pk", keys::registry_partition())
            .expression_attribute_values(":sk", AttributeValue::S("T#".to_owned()))
            .into_paginator()
            .send();
        let mut tenants = Vec::new();
        while let Some(page) = pages.next().await {
            for id in page?.items().iter().filter_map(Key::of).filter_map(|key| keys::registered(&key)) {
                tenants.extend(self.tenant(id).get::<Tenant>(id).await?);
            }
        }
        Ok(tenants)
    }
}
