//! The common parts of all resources' endpoints: showing, changing and deleting one by its ID.

use super::{Caller, UnverifiedRequest};
use crate::domain::keys::scope::Scope;
use crate::domain::record::{Record, Stored};
use crate::domain::values::field_error::FieldError;
use crate::http::error::ApiError;
use crate::http::requests::body::PatchBody;
use crate::http::requests::extract::{JsonBody, PathId};
use crate::http::requests::path::PathParameter;
use crate::http::responses::{Created, Data, Versioned, or_not_found};
use crate::store::TenantStore;
use serde::Serialize;

impl UnverifiedRequest {
    /// # Errors
    ///
    /// As [`UnverifiedRequest::authorize`], and [`ApiError::NotFound`].
    pub async fn get<T: Record, V: From<Stored<T>>>(self, scope: Scope, id: PathId<T::Id>) -> Result<Versioned<V>, ApiError>
    where
        T::Id: PathParameter<Value = T::Id>,
    {
        let read = async |store: TenantStore| or_not_found(store.get::<T>(id.parse()?).await?);
        Ok(self.authorize_and_read(scope, read).await?.1.into())
    }

    /// Reads the record with this ID and the body of a PATCH, whose read-only fields must be those of the view.
    ///
    /// # Errors
    ///
    /// As [`UnverifiedRequest::authorize`], then [`ApiError::NotFound`], and [`ApiError::Invalid`] with the errors of the body
    /// and that of `check`.
    pub async fn patch<T: Record, V: From<Stored<T>> + Serialize, B: PatchBody>(
        self,
        scope: Scope,
        id: PathId<T::Id>,
        body: JsonBody<B>,
        check: impl Fn(&Caller, &T, &B) -> Option<FieldError>,
    ) -> Result<(Caller, Stored<T>, B), ApiError>
    where
        T::Id: PathParameter<Value = T::Id>,
    {
        let (caller, old) = self.authorize_and_read(scope, async |store| Ok(store.get::<T>(id.parse()?).await?)).await?;
        let (body, mut errors) = body.parse_with_errors(&caller)?;
        let old = or_not_found(old)?;
        errors.extend(check(&caller, &old.value, &body));
        body.unchanged().check(&V::from(old.clone()), errors)?;
        Ok((caller, old, body))
    }

    /// # Errors
    ///
    /// As [`UnverifiedRequest::authorize`] and [`Principal::delete`](super::Principal::delete).
    pub async fn delete<T: Record, V: From<Stored<T>>>(
        self,
        scope: Scope,
        id: PathId<T::Id>,
        permit: impl Fn(&T) -> Result<(), ApiError> + Sync,
    ) -> Result<Data<V>, ApiError>
    where
        T::Id: PathParameter<Value = T::Id>,
    {
        let read = async |store: TenantStore| or_not_found(store.get::<T>(id.parse()?).await?);
        let (caller, old) = self.authorize_and_read(scope, read).await?;
        Ok(Data { data: caller.delete(old, permit).await?.into() })
    }
}

impl<T: Record, V: From<Stored<T>>> From<Stored<T>> for Versioned<V> {
    fn from(stored: Stored<T>) -> Self {
        Self { version: stored.version, data: stored.into() }
    }
}

impl<V> Created<V> {
    pub fn of<T: Record>(collection: &str, stored: Stored<T>) -> Self
    where
        V: From<Stored<T>>,
    {
        Self::new(collection, stored.value.id(), stored.into())
    }
}
