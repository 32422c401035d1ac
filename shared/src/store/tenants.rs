//! Tenants: made and listed by the operator, never over HTTP (contract 3).

use super::Store;
use super::change_context::ChangeContext;
use super::error::{StoreError, WriteError};
use super::keys::{self, Key, PK, SK, TYPE};
use super::transaction::{Condition, TransactionItem};
use super::unit_of_work::UnitOfWork;
use crate::domain::api_key::ApiKey;
use crate::domain::id::{ApiKeyId, Id, TenantId, UserId};
use crate::domain::process::{Process, SYSTEM};
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
        let context = ChangeContext::operator(self.now());
        let tenant_id = TenantId::new(context.at, self.random()?);
        let tenant = self.tenant(tenant_id);
        let secret = Secret::new(self.random()?);
        let name_of_key = "first key".parse().map_err(StoreError::broken)?;
        let scopes = Scope::ALL.iter().copied().collect();
        let key = ApiKey::new(tenant.new_id(context.at)?, name_of_key, scopes, secret.hash(), rate_limit);
        let key_id = key.id;
        let mut registered = keys::registry(tenant_id).item();
        registered.insert(TYPE.to_owned(), AttributeValue::S("registration".to_owned()));
        let mut work = UnitOfWork::new(&tenant, &context);
        work.add(TransactionItem { condition: Condition::Invariant, write: self.put_new(registered)? });
        work.create(Tenant::new(tenant_id, name))?;
        work.create(key)?;
        for process in SYSTEM {
            work.create(process.process(tenant.new_id(context.at)?).map_err(StoreError::broken)?)?;
        }
        let user_id = match admin {
            None => None,
            Some(email) => {
                let id = tenant.new_id(context.at)?;
                let display_name = email.as_str().parse().map_err(StoreError::broken)?;
                work.create(User { id, email, display_name, role: Role::Admin, is_active: true })?;
                Some(id)
            }
        };
        work.commit().await?;
        Ok(NewTenant { tenant_id, key_id, api_key: Token::new(tenant_id, key_id, secret), user_id })
    }

    /// Gives a tenant the system processes that it does not have yet; gives their slugs.
    ///
    /// # Errors
    ///
    /// The table.
    pub async fn upgrade_tenant(&self, id: TenantId) -> Result<Vec<String>, WriteError> {
        let context = ChangeContext::operator(self.now());
        let tenant = self.tenant(id);
        let present: Vec<Stored<Process>> = tenant.all().await?;
        let mut added = Vec::new();
        for process in SYSTEM {
            let slug = process.slug();
            if present.iter().any(|known| known.value.slug == slug) {
                continue;
            }
            let process = process.process(tenant.new_id(context.at)?).map_err(StoreError::broken)?;
            let mut work = UnitOfWork::new(&tenant, &context);
            work.create(process)?;
            match work.commit().await {
                // Somebody upgrades the same tenant at the same time.
                Err(WriteError::Duplicate(..)) => {}
                committed => {
                    committed?;
                    added.push(slug.as_str().to_owned());
                }
            }
        }
        Ok(added)
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
            .expression_attribute_values(":sk", keys::registry_prefix())
            .into_paginator()
            .send();
        let mut tenants = Vec::new();
        while let Some(page) = pages.next().await {
            for id in page?.items().iter().filter_map(Key::of).filter_map(|key| keys::registered_tenant(&key)) {
                tenants.extend(self.tenant(id).get::<Tenant>(id).await?);
            }
        }
        Ok(tenants)
    }
}
