//! Request bodies: all errors are reported together, and no member is silently dropped.

pub use super::from_json::{BoundedInteger, FromJson, RateLimit, StepData, StepKeys};
pub use super::read_only::ReadOnlyFields;
use super::utf8::{NOT_UTF8, utf8_json};
use crate::domain::record::Patch;
use crate::domain::values::field_error::{ErrorLocation, FieldError};
use crate::domain::values::json::{self, PRIVATE_NAME, UNPAIRED_SURROGATE};
use crate::domain::values::suggestions::unknown_name;
use crate::http::error::ApiError;
use crate::http::openapi::describe::schema_or_reference;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::HashSet;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AnyOfBuilder, ObjectBuilder, Schema, Type};

/// The top-level members of a body, not yet read.
pub struct Fields<'a> {
    members: Vec<(String, Option<&'a RawValue>)>,
    /// The names of the fields that were taken.
    known: Vec<&'static str>,
    /// The names of the members that have their error and are not read.
    refused: Vec<String>,
    errors: Vec<FieldError>,
}

struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry::<String, &'de RawValue>()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

impl<'a> Fields<'a> {
    /// Splits a body into its top-level members.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Malformed`] if the body is not JSON or not UTF-8, and [`ApiError::Invalid`] if it is not an
    /// object.
    pub fn parse(body: &'a [u8]) -> Result<Self, ApiError> {
        let text = utf8_json(body).ok_or_else(|| ApiError::Malformed(format!("The body {NOT_UTF8}.")))?;
        // Reading a RawValue checks the syntax without recursion, however deep the body is.
        let raw: &RawValue =
            serde_json::from_str(text).map_err(|error| ApiError::Malformed(format!("The body is not JSON: {error}.")))?;
        let members = serde_json::from_str::<Members<'a>>(raw.get());
        let members = members
            .map_err(|_| {
                let detail = if raw.get().starts_with('{') { UNPAIRED_SURROGATE } else { "must be an object" };
                ApiError::Invalid(vec![FieldError { location: ErrorLocation::Pointer(String::new()), detail: detail.into() }])
            })?
            .0;
        let (mut errors, mut refused) = (Vec::new(), Vec::new());
        let mut seen = HashSet::new();
        for (name, raw) in &members {
            if !seen.insert(name) {
                errors.push(FieldError::field(name, "must be sent once"));
            }
            if let Some(pointer) = json::private_name(raw.get()) {
                errors.push(FieldError::within(name, &pointer, PRIVATE_NAME));
                refused.push(name.clone());
            }
        }
        let members = members.into_iter().map(|(name, raw)| (name, Some(raw))).collect();
        Ok(Self { members, known: Vec::new(), refused, errors })
    }

    /// The members that can be read, and the errors of the others and of those that occur twice.
    pub(in crate::http) fn into_members(self) -> (Vec<(String, &'a str)>, Vec<FieldError>) {
        let members = self.members.into_iter().filter(|(name, _)| !self.refused.contains(name));
        let members = members.filter_map(|(name, raw)| Some((name, raw?.get())));
        (members.collect(), self.errors)
    }

    fn take(&mut self, name: &'static str) -> Option<&'a RawValue> {
        self.known.push(name);
        self.members.iter_mut().find(|(known, _)| known == name).and_then(|(_, raw)| raw.take())
    }

    fn read<T: FromJson>(&mut self, name: &str, raw: &RawValue) -> Option<T> {
        if self.refused.iter().any(|refused| refused == name) {
            return None;
        }
        match T::from_json_with_locations(raw.get()) {
            Ok(value) => Some(value),
            Err(errors) => {
                self.errors.extend(errors.into_iter().map(|(pointer, detail)| FieldError::within(name, &pointer, detail)));
                None
            }
        }
    }

    /// Takes a required field. Records an error if it is missing or bad.
    pub fn required<T: FromJson>(&mut self, name: &'static str) -> Option<T> {
        match self.take(name) {
            Some(raw) => self.read(name, raw),
            None => {
                self.errors.push(FieldError::field(name, "is required"));
                None
            }
        }
    }

    /// Takes a field that may be left out, but not null.
    pub fn optional<T: FromJson>(&mut self, name: &'static str) -> Option<T> {
        let raw = self.take(name)?;
        self.read(name, raw)
    }

    /// Takes a field that may be left out or null.
    pub fn nullable<T: FromJson>(&mut self, name: &'static str) -> Patch<T> {
        match self.take(name) {
            None => Patch::Absent,
            Some(raw) if raw.get() == "null" => Patch::Null,
            Some(raw) => self.read(name, raw).map_or(Patch::Absent, Patch::Value),
        }
    }

    /// Takes the fields of a group, whose own name is not in the body.
    pub fn group<G: FieldGroup>(&mut self, _: &'static str) -> G {
        G::read(self)
    }

    pub(in crate::http) fn raw(&mut self, name: &'static str) -> Option<&'a RawValue> {
        self.take(name)
    }

    /// Takes the members that are `read_only`, to be compared with the present values.
    pub fn read_only(&mut self, read_only: &[&str]) -> ReadOnlyFields {
        let mut fields: Vec<(String, Option<serde_json::Value>)> = Vec::new();
        for (name, raw) in self.members.iter_mut().filter(|(name, _)| read_only.contains(&name.as_str())) {
            if let Some(raw) = raw.take()
                && !self.refused.contains(name)
            {
                fields.push((name.clone(), json::parse(raw.get()).ok()));
            }
        }
        fields.into()
    }

    /// All errors, with one for each member that was not taken: it is unknown or, in a creation, read-only.
    #[must_use]
    pub fn finish(mut self, read_only: &[&str]) -> Vec<FieldError> {
        let mut unknown = 0;
        for (name, raw) in &self.members {
            if read_only.contains(&name.as_str()) {
                if raw.is_some() {
                    self.errors.push(FieldError::field(name, "is read-only"));
                }
            } else if !self.known.contains(&name.as_str()) {
                let detail = unknown_name(name, &self.known, "field", unknown);
                self.errors.push(FieldError::field(name, detail));
                unknown += 1;
            }
        }
        self.errors
    }
}

/// Fields that several bodies have.
pub trait FieldGroup: Sized {
    fn read(fields: &mut Fields<'_>) -> Self;

    /// Adds the fields to the OpenAPI schema of a body.
    fn describe(object: ObjectBuilder) -> ObjectBuilder;

    fn add_schemas(schemas: &mut Vec<(String, RefOr<Schema>)>);
}

pub trait FromBody: Sized {
    /// Reads all fields. Returns the body, if every required field could be read, and the errors of the fields that
    /// could not.
    ///
    /// # Errors
    ///
    /// As [`Fields::parse`].
    fn read(body: &[u8]) -> Result<(Option<Self>, Vec<FieldError>), ApiError>;
}

/// The body of a PATCH, which may contain read-only fields.
pub trait PatchBody: FromBody {
    /// To be compared with the present values.
    fn unchanged(&self) -> &ReadOnlyFields;
}

/// The object is a field of a body, and is declared as a body is.
///
/// # Errors
///
/// Returns every error with its JSON Pointer, relative to the object.
pub fn read_nested<B: FromBody>(text: &str) -> Result<B, Vec<(String, String)>> {
    let (body, errors) = match B::read(text.as_bytes()) {
        Ok(read) => read,
        Err(ApiError::Invalid(errors)) => (None, errors),
        Err(error) => return Err(vec![(String::new(), error.to_string())]),
    };
    let located = |error: FieldError| match error.location {
        ErrorLocation::Pointer(pointer) => (pointer, error.detail),
        _ => (String::new(), error.detail),
    };
    match body {
        Some(body) if errors.is_empty() => Ok(body),
        _ => Err(errors.into_iter().map(located).collect()),
    }
}

/// A reference to its type's, or that itself if it has no name of its own, with the field's description.
#[must_use]
pub fn field_schema<T: ToSchema>(nullable: bool, description: &str) -> RefOr<Schema> {
    let any_of = AnyOfBuilder::new().description(Some(description.trim())).item(schema_or_reference::<T>());
    if nullable { any_of.item(ObjectBuilder::new().schema_type(Type::Null)).into() } else { any_of.into() }
}

/// Declares a request body: the struct, its OpenAPI schema and how it is read.
///
/// The schema has the name behind `as`; without it, that of the struct. Each field is `required`, `optional` (may be left out) or
/// `nullable` (may be left out or null), or a `group` that stands for the fields of a [`FieldGroup`]. Fields that `read_only`
/// lists are refused as read-only; those that `unchanged` lists are kept in a field of this name, to be compared with the present
/// ones. The body becomes the change that is named behind `into`, which has a field for each of its own, and those in braces.
///
/// [`FieldGroup`]: crate::http::requests::body::FieldGroup
#[macro_export]
macro_rules! body {
    (
        $(#[doc = $doc:literal])* pub struct $name:ident $(as $schema:ident)? {
            $($(#[doc = $fdoc:literal])* $need:ident $field:ident: $type:ty,)*
        } $mode:ident: $read_only:expr $(, into: $change:ident $({ $($other:tt)* })?)?
    ) => {
        $crate::body! { @into [$($change { $($($other)*)? })?] $name { $($need $field,)* } }

        $crate::body! { @struct $mode
            $(#[doc = $doc])*
            pub struct $name {$(
                $(#[doc = $fdoc])*
                pub $field: $crate::body!(@type $need $type),
            )*}
        }

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                let object = utoipa::openapi::ObjectBuilder::new()
                    .description(Some(concat!($($doc, "\n"),*).trim()))
                    .additional_properties(Some(utoipa::openapi::schema::AdditionalProperties::<utoipa::openapi::schema::Schema>::FreeForm(false)));
                $(let object = $crate::body!(@describe $need object $field $type, concat!($($fdoc, "\n"),*));)*
                object.into()
            }
        }

        impl utoipa::ToSchema for $name {
            $(fn name() -> std::borrow::Cow<'static, str> {
                stringify!($schema).into()
            })?

            fn schemas(schemas: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::schema::Schema>)>) {
                $($crate::body!(@add_schemas $need schemas $type);)*
            }
        }

        impl $crate::http::requests::body::FromBody for $name {
            fn read(
                body: &[u8],
            ) -> Result<(Option<Self>, Vec<$crate::domain::values::field_error::FieldError>), $crate::http::error::ApiError> {
                let mut fields = $crate::http::requests::body::Fields::parse(body)?;
                $(let $field = fields.$need::<$type>(stringify!($field).trim_start_matches("r#"));)*
                $crate::body! { @finish $mode fields, $read_only, $($field: $crate::body!(@value $need $field),)* }
            }
        }
    };
    (@struct read_only $item:item) => { #[derive(Debug)] $item };
    (@struct unchanged $(#[$doc:meta])* pub struct $name:ident {$($(#[$fdoc:meta])* pub $field:ident: $type:ty,)*}) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name {
            $($(#[$fdoc])* pub $field: $type,)*
            /// Read-only fields that the client has sent.
            pub unchanged: $crate::http::requests::body::ReadOnlyFields,
        }

        impl $crate::http::requests::body::PatchBody for $name {
            fn unchanged(&self) -> &$crate::http::requests::body::ReadOnlyFields {
                &self.unchanged
            }
        }
    };
    (@into [] $name:ident { $($need:ident $field:ident,)* }) => {};
    (@into [$change:ident { $($other:tt)* }] $name:ident { $($need:ident $field:ident,)* }) => {
        impl From<$name> for $change {
            fn from(body: $name) -> Self {
                Self { $($field: $crate::body!(@change $need body $field),)* $($other)* }
            }
        }
    };
    (@change required $body:ident $field:ident) => { Some($body.$field) };
    (@change $need:ident $body:ident $field:ident) => { $body.$field };
    (@finish read_only $fields:ident, $read_only:expr, $($field:ident: $value:expr,)*) => {{
        let errors = $fields.finish($read_only);
        let whole = || Some(Self { $($field: $value,)* });
        Ok((whole(), errors))
    }};
    (@finish unchanged $fields:ident, $read_only:expr, $($field:ident: $value:expr,)*) => {{
        let unchanged = $fields.read_only($read_only);
        let errors = $fields.finish($read_only);
        let whole = || Some(Self { $($field: $value,)* unchanged });
        Ok((whole(), errors))
    }};
    (@describe group $object:ident $field:ident $type:ty, $doc:expr) => {
        <$type as $crate::http::requests::body::FieldGroup>::describe($object)
    };
    (@describe required $object:ident $field:ident $type:ty, $doc:expr) => {
        $crate::body!(@describe optional $object $field $type, $doc).required(stringify!($field).trim_start_matches("r#"))
    };
    (@describe $need:ident $object:ident $field:ident $type:ty, $doc:expr) => {
        $object.property(
            stringify!($field).trim_start_matches("r#"),
            $crate::http::requests::body::field_schema::<$type>(stringify!($need) == "nullable", $doc),
        )
    };
    (@add_schemas group $schemas:ident $type:ty) => {
        <$type as $crate::http::requests::body::FieldGroup>::add_schemas($schemas)
    };
    (@add_schemas $need:ident $schemas:ident $type:ty) => { $crate::http::openapi::describe::add_schema::<$type>($schemas) };
    (@type group $type:ty) => { $type };
    (@type required $type:ty) => { $type };
    (@type optional $type:ty) => { Option<$type> };
    (@type nullable $type:ty) => { $crate::domain::record::Patch<$type> };
    (@value required $field:ident) => { $field? };
    (@value $need:ident $field:ident) => { $field };
}
