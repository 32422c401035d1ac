//! The common parts of all resources' endpoints: showing, changing and deleting one by its ID.

use super::Caller;
use crate::domain::record::{Record, Stored};
use crate::domain::values::field_error::FieldError;
use crate::http::error::ApiError;
use crate::http::requests::body::PatchBody;
use crate::http::requests::extract::JsonBody;
use crate::http::responses::{Created, Data, Versioned, or_not_found};
use serde::Serialize;

impl<S> Caller<S> {
    /// # Errors
    ///
    /// Returns [`ApiError::NotFound`].
    pub async fn get<T: Record, V: From<Stored<T>>>(&self, id: T::Id) -> Result<Versioned<V>, ApiError> {
        Ok(or_not_found(self.store.get::<T>(id).await?)?.into())
    }

    /// Reads the record with this ID and the body of a PATCH, whose read-only fields must be those of the view.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::NotFound`], and [`ApiError::Invalid`] with the errors of the body and that of `check`.
    pub async fn patch<T: Record, V: From<Stored<T>> + Serialize, B: PatchBody>(
        &self,
        id: T::Id,
        body: JsonBody<B>,
        check: impl Fn(&T, &B) -> Option<FieldError>,
    ) -> Result<(Stored<T>, B), ApiError> {
        let old = self.store.get::<T>(id).await?;
        let (body, mut errors) = body.parse_with_errors(self)?;
        let old = or_not_found(old)?;
        errors.extend(check(&old.value, &body));
        body.unchanged().check(&V::from(old.clone()), errors)?;
        Ok((old, body))
    }

    /// # Errors
    ///
    /// As [`Principal::delete`](super::Principal::delete), and [`ApiError::NotFound`].
    pub async fn delete<T: Record, V: From<Stored<T>>>(
        &self,
        id: T::Id,
        permit: impl Fn(&T) -> Result<(), ApiError> + Sync,
    ) -> Result<Data<V>, ApiError> {
        let old = or_not_found(self.store.get::<T>(id).await?)?;
        Ok(Data { data: self.verified().await?.delete(old, permit).await?.into() })
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
