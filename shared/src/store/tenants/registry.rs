//! Tenants. The operator creates and lists them on the command line; the API can't.

use crate::domain::keys::api_key::{ApiKey, Role, Scope, Secret, Token};
use crate::domain::processes::process::{Process, SYSTEM_PROCESSES};
use crate::domain::record::Stored;
use crate::domain::tenants::tenant::Tenant;
use crate::domain::user::{Email, User};
use crate::domain::values::id::{ApiKeyId, Id, TenantId, UserId};
use crate::domain::values::text::Name;
use crate::domain::values::time::Timestamp;
use crate::store::keys::{self, Key, PK, SK, TYPE};
use crate::store::table::unit_of_work::{ChangeContext, UnitOfWork};
use crate::store::table::unit_of_work::{Purpose, TransactionItem};
use crate::store::tenants::tenant_deletion::{REGISTRATION, deletion_began};
use crate::store::{Store, StoreError, WriteError, Writer};
use aws_sdk_dynamodb::types::AttributeValue;

/// A new tenant. The text of its API key is stored nowhere.
#[derive(Debug)]
pub struct NewTenant {
    pub tenant_id: TenantId,
    pub key_id: ApiKeyId,
    /// The first key, to be shown once.
    pub api_key: Token,
    /// The first user, if an address was given.
    pub user_id: Option<UserId>,
}

#[derive(Debug)]
pub struct RegisteredTenant {
    pub id: TenantId,
    /// `None` if the record can't be read.
    pub record: Option<Stored<Tenant>>,
    /// The time at which an unfinished deletion began.
    pub deletion_began: Option<Timestamp>,
}

impl Store {
    /// Creates a tenant in one transaction, with a first key that has all scopes, the system processes and, if an address is
    /// given, a first user with the role `admin`.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError::Store`] when the tenant can't be written.
    pub async fn create_tenant(&self, name: Name, admin: Option<Email>, rate_limit: u32) -> Result<NewTenant, WriteError> {
        let context = ChangeContext::operator(self.now());
        let tenant_id = TenantId::new(context.at, self.random()?);
        let tenant = self.writer(tenant_id);
        let secret = Secret::new(self.random()?);
        let key_name = "first key".parse().map_err(StoreError::broken)?;
        let scopes = Scope::ALL.iter().copied().collect();
        let key = ApiKey::new(tenant.new_id(context.at)?, key_name, scopes, secret.hash(), rate_limit);
        let key_id = key.id;
        let mut registration = keys::registry(tenant_id).item();
        registration.insert(TYPE.to_owned(), AttributeValue::S(REGISTRATION.to_owned()));
        let mut unit = UnitOfWork::new(&tenant, &context);
        unit.add(TransactionItem::put_new(Purpose::Invariant, registration));
        unit.create(Tenant::new(tenant_id, name))?;
        unit.create(key)?;
        for process in SYSTEM_PROCESSES {
            unit.create(process.process(tenant.new_id(context.at)?).map_err(StoreError::broken)?)?;
        }
        let user_id = match admin {
            None => None,
            Some(email) => {
                let id = tenant.new_id(context.at)?;
                let display_name = email.as_str().parse().map_err(StoreError::broken)?;
                unit.create(User { id, email, display_name, role: Role::Admin, is_active: true, erased_at: None })?;
                Some(id)
            }
        };
        unit.commit().await?;
        Ok(NewTenant { tenant_id, key_id, api_key: Token::new(tenant_id, key_id, secret), user_id })
    }

    /// Lists all tenants, oldest first.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when tenants can't be read.
    pub async fn tenants(&self) -> Result<Vec<RegisteredTenant>, StoreError> {
        let mut tenants = Vec::new();
        for (id, deletion_began) in self.registrations().await? {
            match self.reader(id).get::<Tenant>(id).await {
                Ok(record) => tenants.extend(record.map(|record| RegisteredTenant { id, record: Some(record), deletion_began })),
                Err(StoreError::Unreadable(_)) => tenants.push(RegisteredTenant { id, record: None, deletion_began }),
                Err(error) => return Err(error),
            }
        }
        Ok(tenants)
    }

    /// Lists the IDs of all tenants in key order. Omits tenants that are being deleted.
    pub(in crate::store) async fn tenant_ids(&self) -> Result<Vec<TenantId>, StoreError> {
        let registrations = self.registrations().await?.into_iter();
        Ok(registrations.filter(|(_, deletion_began)| deletion_began.is_none()).map(|(id, _)| id).collect())
    }

    /// Reads all tenants, each with the time at which its deletion began, if any.
    async fn registrations(&self) -> Result<Vec<(TenantId, Option<Timestamp>)>, StoreError> {
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
            let registration = |item| Some((keys::registered_tenant(&Key::of(item)?)?, deletion_began(item)));
            tenants.extend(page?.items().iter().filter_map(registration));
        }
        Ok(tenants)
    }
}

impl Writer {
    /// Adds missing system processes, and returns their slugs.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError::Store`] when processes can't be read or written.
    pub async fn upgrade(&self) -> Result<Vec<String>, WriteError> {
        let context = ChangeContext::operator(self.store.now());
        let present: Vec<Stored<Process>> = self.all().await?;
        let mut added = Vec::new();
        for process in SYSTEM_PROCESSES {
            let slug = process.slug();
            if present.iter().any(|present| present.value.slug == slug) {
                continue;
            }
            let process = process.process(self.new_id(context.at)?).map_err(StoreError::broken)?;
            let mut unit = UnitOfWork::new(self, &context);
            unit.create(process)?;
            match unit.commit().await {
                // A concurrent upgrade has just added the process.
                Err(WriteError::Duplicate(..)) => {}
                committed => {
                    committed?;
                    added.push(slug.as_str().to_owned());
                }
            }
        }
        Ok(added)
    }
}
