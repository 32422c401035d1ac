//! The types of fields of bodies, and their JSON form.

use crate::domain::assets::asset::Status;
use crate::domain::assets::asset_tag::{AssetTag, RowTag};
use crate::domain::assets::label_url::LabelUrlTemplate;
use crate::domain::assets::location::Location;
use crate::domain::assets::tag::{TagPrefix, TagTemplate};
use crate::domain::assets::transitions::Transitions;
use crate::domain::catalog::custom_fields::{CustomFields, CustomFieldsPatch, FieldsSchema};
use crate::domain::catalog::{AssetKind, TypeCode, Website};
use crate::domain::keys::api_key::MAX_RATE_LIMIT;
use crate::domain::keys::scope::{Role, Scope, Scopes};
use crate::domain::processes::movement::AssetIds;
use crate::domain::processes::process::{MAX_STEPS, ProcessStatus, Slug, Steps};
use crate::domain::request::ExpectedVersions;
use crate::domain::tenants::locale::Locale;
use crate::domain::tenants::time_zone::TimeZone;
use crate::domain::user::Email;
use crate::domain::values::field_error::ValueError;
use crate::domain::values::id::{AssetId, AssetTypeId, ManufacturerId, ModelId, ProcessId, UserId};
use crate::domain::values::json::parse_strict;
use crate::domain::values::money::{self, Price};
use crate::domain::values::text::{Line, Name, Notes};
use crate::domain::values::time::{Date, Timestamp};
use crate::domain::webhooks::{WebhookEvents, WebhookUrl};
use crate::http::error::MAX_FIELD_ERRORS;
use serde_json::value::RawValue;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

pub trait FromJson: Sized {
    /// # Errors
    ///
    /// Says which values are accepted.
    fn from_json(text: &str) -> Result<Self, ValueError>;

    /// For values that can have several errors.
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
    AssetId, AssetTag, AssetTypeId, Date, Email, LabelUrlTemplate, Line, Locale, Location, ManufacturerId, ModelId, Name, Notes, ProcessId, RowTag,
    Slug, TagPrefix, TagTemplate, TimeZone, Timestamp, TypeCode, UserId, WebhookUrl, Website,
}

/// Values that are no text get the same error as texts that are none of the enumeration's: it lists them.
macro_rules! from_json_enum {
    ($($type:ty,)*) => {$(
        impl FromJson for $type {
            fn from_json(text: &str) -> Result<Self, ValueError> {
                serde_json::from_str::<String>(text).unwrap_or_default().parse()
            }
        }
    )*};
}

from_json_enum! { AssetKind, ProcessStatus, Role, Scope, Status, }

impl FromJson for String {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        serde_json::from_str(text).map_err(|_| ValueError::new("must be a string"))
    }
}

impl FromJson for ExpectedVersions {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        Self::parse(&String::from_json(text)?)
    }
}

impl FromJson for bool {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        serde_json::from_str(text).map_err(|_| ValueError::new("must be true or false"))
    }
}

impl FromJson for Price {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        match serde_json::from_str::<String>(text) {
            Ok(text) => Self::from_decimal_text(&text),
            Err(_) if text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => Self::from_json_number(text),
            Err(_) => Err(ValueError::new(money::FORM)),
        }
    }
}

impl FromJson for CustomFields {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        Self::from_body(text).map_err(|_| ValueError::new("must be custom fields"))
    }

    fn from_json_with_locations(text: &str) -> Result<Self, Vec<(String, String)>> {
        Self::from_body(text)
    }
}

impl FromJson for CustomFieldsPatch {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        Self::from_json(text).map_err(|_| ValueError::new("must be an object of custom fields"))
    }

    fn from_json_with_locations(text: &str) -> Result<Self, Vec<(String, String)>> {
        Self::from_json(text)
    }
}

impl FromJson for FieldsSchema {
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
#[derive(Debug, Clone, Default, ToSchema)]
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

/// Keys of steps.
#[derive(Debug, Clone, Default, ToSchema)]
#[schema(value_type = Vec<String>)]
pub struct StepKeys(pub Vec<String>);

impl FromJson for StepKeys {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        let keys: Vec<String> = serde_json::from_str(text).map_err(|_| ValueError::new("must be a list of step keys"))?;
        if keys.len() > MAX_STEPS {
            return Err(ValueError::new(format!("must have at most {MAX_STEPS} step keys")));
        }
        Ok(Self(keys))
    }
}

impl FromJson for Transitions {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        Self::from_json(text)
    }
}

impl FromJson for Scopes {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        let scopes: Vec<String> = serde_json::from_str(text).map_err(|_| {
            let known = Scope::ALL.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(", ");
            ValueError::new(format!("must be a list of scopes, each one of {known}"))
        })?;
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
        let errors: Vec<(String, String)> = entries.iter().enumerate().filter_map(read).take(MAX_FIELD_ERRORS).collect();
        if errors.is_empty() { Self::from_json(text).map_err(whole) } else { Err(errors) }
    }
}

impl FromJson for WebhookEvents {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        Self::from_json_with_locations(text).map_err(|_| ValueError::new("must be a list of types of events"))
    }

    fn from_json_with_locations(text: &str) -> Result<Self, Vec<(String, String)>> {
        let types: Vec<String> = serde_json::from_str(text).map_err(|_| {
            let known = WebhookEvents::known_names().collect::<Vec<_>>().join(", ");
            vec![(String::new(), format!("must be a list of types of events, each one of {known}"))]
        })?;
        let located = |(index, error): (Option<usize>, ValueError)| {
            (index.map_or_else(String::new, |index| format!("/{index}")), error.to_string())
        };
        Self::read(types).map_err(|errors| errors.into_iter().map(located).collect())
    }
}

/// A whole number from `MIN` to `MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoundedInteger<const MIN: u32, const MAX: u32>(pub u32);

/// Requests per minute.
pub type RateLimit = BoundedInteger<1, MAX_RATE_LIMIT>;

impl<const MIN: u32, const MAX: u32> PartialSchema for BoundedInteger<MIN, MAX> {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(MIN)).maximum(Some(MAX)).into()
    }
}

impl<const MIN: u32, const MAX: u32> ToSchema for BoundedInteger<MIN, MAX> {}

impl<const MIN: u32, const MAX: u32> FromJson for BoundedInteger<MIN, MAX> {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        let number = text.parse().ok().filter(|number| (MIN..=MAX).contains(number));
        number.map(Self).ok_or_else(|| ValueError::new(format!("must be a whole number from {MIN} to {MAX}")))
    }
}
