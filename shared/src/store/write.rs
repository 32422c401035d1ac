//! Writes of a single record, each a unit of work of its own.

use super::TenantStore;
use super::change_context::ChangeContext;
use super::error::{StoreError, WriteError};
use super::unit_of_work::UnitOfWork;
use crate::domain::record::{Record, Stored};
use crate::domain::request::StoredResponse;

impl TenantStore {
    /// Creates a record. `response` is stored if the request has an idempotency key.
    ///
    /// # Errors
    ///
    /// As [`UnitOfWork::create`] and [`UnitOfWork::commit_with`].
    pub async fn create<T: Record>(
        &self,
        value: T,
        context: &ChangeContext,
        response: impl FnOnce(&Stored<T>) -> Result<StoredResponse, StoreError>,
    ) -> Result<Stored<T>, WriteError> {
        let mut unit = UnitOfWork::new(self, context);
        let stored = unit.create(value)?;
        unit.commit_with(|| response(&stored)).await?;
        Ok(stored)
    }

    /// Replaces `old` by `next`. `response` is stored if the request has an idempotency key.
    ///
    /// # Errors
    ///
    /// As [`UnitOfWork::update`] and [`UnitOfWork::commit_with`].
    pub async fn update<T: Record>(
        &self,
        old: &Stored<T>,
        next: T,
        context: &ChangeContext,
        response: impl FnOnce(&Stored<T>) -> Result<StoredResponse, StoreError>,
    ) -> Result<Stored<T>, WriteError> {
        let mut unit = UnitOfWork::new(self, context);
        let stored = unit.update(old, next)?;
        unit.commit_with(|| response(&stored)).await?;
        Ok(stored)
    }

    /// Replaces `old` by `next`, if nothing references the record. `response` is stored if the request has an
    /// idempotency key.
    ///
    /// # Errors
    ///
    /// As [`UnitOfWork::update_unreferenced`] and [`UnitOfWork::commit_with`].
    pub async fn update_unreferenced<T: Record>(
        &self,
        old: &Stored<T>,
        next: T,
        context: &ChangeContext,
        response: impl FnOnce(&Stored<T>) -> Result<StoredResponse, StoreError>,
    ) -> Result<Stored<T>, WriteError> {
        let mut unit = UnitOfWork::new(self, context);
        let stored = unit.update_unreferenced(old, next)?;
        unit.commit_with(|| response(&stored)).await?;
        Ok(stored)
    }

    /// Deletes a record that nothing references. Its events stay.
    ///
    /// # Errors
    ///
    /// As [`UnitOfWork::delete`] and [`UnitOfWork::commit`].
    pub async fn delete<T: Record>(&self, old: &Stored<T>, context: &ChangeContext) -> Result<(), WriteError> {
        let mut unit = UnitOfWork::new(self, context);
        unit.delete(old)?;
        unit.commit().await
    }
}
