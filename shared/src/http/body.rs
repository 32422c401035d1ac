//! Request bodies: all errors are reported together, and no member is silently dropped.

use super::error::ApiError;
use crate::domain::api_key::MAX_RATE_LIMIT;
use crate::domain::asset::Status;
use crate::domain::asset_tag::{TagPrefix, TagTemplate};
use crate::domain::catalog::{AssetKind, TypeCode, Website};
use crate::domain::custom_fields::{CustomFields, FieldsSchema};
use crate::domain::field_error::{ErrorLocation, FieldError, ValueError};
use crate::domain::id::{AssetId, AssetTypeId, ManufacturerId, ModelId, UserId};
use crate::domain::json::{UNPAIRED_SURROGATE, parse_strict};
use crate::domain::money::Price;
use crate::domain::movement::AssetIds;
use crate::domain::process::{MAX_STEPS, ProcessStatus, Slug, Steps};
use crate::domain::record::Patch;
use crate::domain::scope::{Role, Scope, Scopes};
use crate::domain::tenant::Transitions;
use crate::domain::text::{Line, Name, Notes};
use crate::domain::time::{Date, Timestamp};
use crate::domain::user::Email;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::HashSet;
use utoipa::PartialSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AnyOfBuilder, ObjectBuilder, Schema, Type};

/// A type that a field of a body can have.
pub trait FromJson: Sized {
    /// Whether reading a value takes little more than reading its text.
    const IS_CHEAP: bool = true;

    /// Reads the JSON text of a value.
    ///
    /// # Errors
    ///
    /// Returns a [`ValueError`] that says what is accepted.
    fn from_json(text: &str) -> Result<Self, ValueError>;

    /// Reads a value that can have several errors.
    ///
    /// # Errors
    ///
    /// Returns every error with its JSON Pointer, relative to the value. By default a single one for the whole value.
    fn from_json_with_locations(text: &str) -> Result<Self, Vec<(String, String)>> {
        Self::from_json(text).map_err(|error| vec![(String::new(), error.to_string())])
    }
}

macro_rules! from_json_string {
    ($($type:ty,)*) => {$(
        impl FromJson for $type {
            fn from_json(text: &str) -> Result<Self, ValueError> {
                // A lone surrogate such as \ud800 is well-formed JSON, but not text.
                serde_json::from_str::<String>(text).map_err(|_| ValueError::new("must be a string"))?.parse()
            }
        }
    )*};
}

from_json_string! {
    AssetTypeId, Date, Email, Line, ManufacturerId, ModelId, Name, Notes, Role, Scope, Status, TagPrefix, TagTemplate,
    AssetId, AssetKind, ProcessStatus, Slug, Timestamp, TypeCode, UserId, Website,
}

impl FromJson for bool {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        serde_json::from_str(text).map_err(|_| ValueError::new("must be true or false"))
    }
}

impl FromJson for Price {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        if !text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
            return Err(ValueError::new("must be a number"));
        }
        Self::from_json_number(text)
    }
}

impl FromJson for CustomFields {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        Self::from_json(text)
    }
}

impl FromJson for FieldsSchema {
    /// A schema is compiled.
    const IS_CHEAP: bool = false;

    fn from_json(text: &str) -> Result<Self, ValueError> {
        Self::from_json(text)
    }
}

impl FromJson for AssetIds {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        Self::from_json(text)
    }
}

impl FromJson for Steps {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        Self::from_json(text).map_err(|_| ValueError::new("must be a list of steps"))
    }

    fn from_json_with_locations(text: &str) -> Result<Self, Vec<(String, String)>> {
        Self::from_json(text)
    }
}

/// Values by step key, as a client submits them.
#[derive(Debug, Clone, Default, utoipa::ToSchema)]
#[schema(value_type = Object)]
pub struct StepData(pub serde_json::Map<String, serde_json::Value>);

impl FromJson for StepData {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        // An object of values. A checklist's value has one more level.
        match parse_strict(text, 2)? {
            serde_json::Value::Object(values) if values.len() > MAX_STEPS => {
                Err(ValueError::new(format!("must have at most {MAX_STEPS} values, one for each step")))
            }
            serde_json::Value::Object(values) => Ok(Self(values)),
            _ => Err(ValueError::new("must be an object from step key to value")),
        }
    }
}

impl FromJson for Transitions {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        Self::from_json(text)
    }
}

impl FromJson for Scopes {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        let scopes: Vec<String> =
            serde_json::from_str(text).map_err(|_| ValueError::new("must be a list of scopes, such as [\"assets:read\"]"))?;
        if scopes.is_empty() {
            return Err(ValueError::new("must name at least one scope"));
        }
        scopes.iter().map(|scope| scope.parse()).collect()
    }

    fn from_json_with_locations(text: &str) -> Result<Self, Vec<(String, String)>> {
        let whole = |error: ValueError| vec![(String::new(), error.to_string())];
        let Ok(entries) = serde_json::from_str::<Vec<&RawValue>>(text) else { return Self::from_json(text).map_err(whole) };
        let read = |(index, entry): (usize, &&RawValue)| {
            Scope::from_json(entry.get()).err().map(|error| (format!("/{index}"), error.to_string()))
        };
        let errors: Vec<(String, String)> = entries.iter().enumerate().filter_map(read).collect();
        if errors.is_empty() { Self::from_json(text).map_err(whole) } else { Err(errors) }
    }
}

/// A whole number from `MIN` to `MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, utoipa::ToSchema)]
#[schema(value_type = u32)]
pub struct BoundedInteger<const MIN: u32, const MAX: u32>(pub u32);

/// Requests per minute of a key.
pub type RateLimit = BoundedInteger<1, MAX_RATE_LIMIT>;

impl<const MIN: u32, const MAX: u32> FromJson for BoundedInteger<MIN, MAX> {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        let number = text.parse().ok().filter(|number| (MIN..=MAX).contains(number));
        number.map(Self).ok_or_else(|| ValueError::new(format!("must be a whole number from {MIN} to {MAX}")))
    }
}

/// The top-level members of a body, not yet read.
pub struct Fields<'a> {
    members: Vec<(String, Option<&'a RawValue>)>,
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
        let text = std::str::from_utf8(body).map_err(|_| ApiError::Malformed("The body is not UTF-8.".into()))?;
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
        let mut errors = Vec::new();
        let mut seen = HashSet::new();
        for (name, _) in &members {
            if !seen.insert(name) {
                errors.push(FieldError::field(name, "must be sent once"));
            }
        }
        Ok(Self { members: members.into_iter().map(|(name, raw)| (name, Some(raw))).collect(), errors })
    }

    fn take(&mut self, name: &str) -> Option<&'a RawValue> {
        self.members.iter_mut().find(|(known, _)| known == name).and_then(|(_, raw)| raw.take())
    }

    fn read<T: FromJson>(&mut self, name: &str, raw: &RawValue) -> Option<T> {
        match T::from_json_with_locations(raw.get()) {
            Ok(value) => Some(value),
            Err(errors) => {
                self.errors.extend(errors.into_iter().map(|(pointer, detail)| FieldError::within(name, &pointer, detail)));
                None
            }
        }
    }

    /// Takes a required field. Records an error if it is missing or bad.
    pub fn required<T: FromJson>(&mut self, name: &str) -> Option<T> {
        match self.take(name) {
            Some(raw) => self.read(name, raw),
            None => {
                self.errors.push(FieldError::field(name, "is required"));
                None
            }
        }
    }

    /// Takes a field that may be left out, but not null.
    pub fn optional<T: FromJson>(&mut self, name: &str) -> Option<T> {
        let raw = self.take(name)?;
        self.read(name, raw)
    }

    /// Takes a field that may be left out or null.
    pub fn nullable<T: FromJson>(&mut self, name: &str) -> Patch<T> {
        match self.take(name) {
            None => Patch::Absent,
            Some(raw) if raw.get() == "null" => Patch::Null,
            Some(raw) => self.read(name, raw).map_or(Patch::Absent, Patch::Value),
        }
    }

    /// Returns all errors, with one for each unknown or read-only member.
    #[must_use]
    pub fn finish(mut self, known: &[&str], read_only: &[&str]) -> Vec<FieldError> {
        for (name, _) in &self.members {
            if read_only.contains(&name.as_str()) {
                self.errors.push(FieldError::field(name, "is read-only"));
            } else if !known.contains(&name.as_str()) {
                self.errors.push(FieldError::field(name, "is not a field that can be set here"));
            }
        }
        self.errors
    }
}

/// The body of an endpoint.
pub trait FromBody: Sized {
    /// Whether reading the body takes little more than reading its text.
    const IS_CHEAP: bool;

    /// Reads all fields. Returns the body, if every required field could be read, and the errors of the fields that
    /// could not.
    ///
    /// # Errors
    ///
    /// As [`Fields::parse`].
    fn read(body: &[u8]) -> Result<(Option<Self>, Vec<FieldError>), ApiError>;
}

/// Returns the OpenAPI schema of a field: its type's, with the field's description.
#[must_use]
pub fn field_schema<T: PartialSchema>(nullable: bool, description: &str) -> RefOr<Schema> {
    let any_of = AnyOfBuilder::new().description(Some(description.trim())).item(T::schema());
    if nullable { any_of.item(ObjectBuilder::new().schema_type(Type::Null)).into() } else { any_of.into() }
}

/// Declares a request body: the struct, its OpenAPI schema and how it is read.
///
/// Each field is `required`, `optional` (may be left out) or `nullable` (may be left out or null). Fields that
/// `read_only` lists are refused as read-only.
#[macro_export]
macro_rules! body {
    (
        $(#[doc = $doc:literal])* pub struct $name:ident {
            $($(#[doc = $fdoc:literal])* $need:ident $field:ident: $type:ty,)*
        } read_only: $read_only:expr
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug)]
        pub struct $name {$(
            $(#[doc = $fdoc])*
            pub $field: $crate::body!(@type $need $type),
        )*}

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                let object = utoipa::openapi::ObjectBuilder::new()
                    .description(Some(concat!($($doc),*).trim()))
                    .additional_properties(Some(utoipa::openapi::schema::AdditionalProperties::<utoipa::openapi::schema::Schema>::FreeForm(false)));
                $(let object = object.property(
                    stringify!($field),
                    $crate::http::body::field_schema::<$type>($crate::body!(@nullable $need), concat!($($fdoc),*)),
                );)*
                $(let object = if $crate::body!(@required $need) { object.required(stringify!($field)) } else { object };)*
                object.into()
            }
        }

        impl utoipa::ToSchema for $name {
            fn schemas(schemas: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::schema::Schema>)>) {
                $(<$type as utoipa::ToSchema>::schemas(schemas);)*
            }
        }

        impl $crate::http::body::FromBody for $name {
            const IS_CHEAP: bool = true $(&& <$type as $crate::http::body::FromJson>::IS_CHEAP)*;

            fn read(
                body: &[u8],
            ) -> Result<(Option<Self>, Vec<$crate::domain::field_error::FieldError>), $crate::http::error::ApiError> {
                let mut fields = $crate::http::body::Fields::parse(body)?;
                $(let $field = fields.$need::<$type>(stringify!($field));)*
                let errors = fields.finish(&[$(stringify!($field)),*], $read_only);
                let whole = || Some(Self { $($field: $crate::body!(@value $need $field),)* });
                Ok((whole(), errors))
            }
        }
    };
    (@nullable nullable) => { true };
    (@nullable $need:ident) => { false };
    (@required required) => { true };
    (@required $need:ident) => { false };
    (@type required $type:ty) => { $type };
    (@type optional $type:ty) => { Option<$type> };
    (@type nullable $type:ty) => { $crate::domain::record::Patch<$type> };
    (@value required $field:ident) => { $field? };
    (@value $need:ident $field:ident) => { $field };
}
