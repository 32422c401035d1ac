//! Request bodies, parsed strictly: all errors are reported together, and no member is silently dropped. [`body!`](crate::body)
//! declares a body; the types of its fields parse their JSON ([`FromJson`]).

use crate::domain::assets::asset::{AssetDetailsChange, AssetTag, RowTag, Status, Transitions};
use crate::domain::assets::label::LabelUrlTemplate;
use crate::domain::catalog::custom_fields::{CustomFields, CustomFieldsPatch, FieldsSchema};
use crate::domain::catalog::{AssetKind, TypeCode, Website};
use crate::domain::keys::api_key::{MAX_RATE_LIMIT, Role, Scope, Scopes};
use crate::domain::processes::movement::AssetIds;
use crate::domain::processes::process::{MAX_STEPS, ProcessStatus, Slug, Steps};
use crate::domain::record::{ExpectedVersions, Patch};
use crate::domain::tenants::tenant::{Locale, TagPrefix, TagTemplate};
use crate::domain::tenants::time_zone::TimeZone;
use crate::domain::user::Email;
use crate::domain::values::field_error::{ErrorCode, ErrorLocation, FieldError, ValueError, unknown_name};
use crate::domain::values::id::{AssetId, AssetTypeId, ManufacturerId, ModelId, ProcessId, UserId};
use crate::domain::values::json::{self, PRIVATE_NAME, UNPAIRED_SURROGATE, parse_strict};
use crate::domain::values::money::{self, Price};
use crate::domain::values::text::{Line, Location, Name, Notes, SerialNumber};
use crate::domain::values::time::{Date, Timestamp};
use crate::domain::webhooks::{WebhookEvents, WebhookUrl};
use crate::http::openapi::{Describe, Schemas, add_body, add_schema, schema_or_reference};
use crate::http::problem::{ApiError, MAX_FIELD_ERRORS};
use crate::http::received::{ReceivedBody, ReceivedRequest, received};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::Serialize;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::HashSet;
use std::marker::PhantomData;
use std::sync::Arc;
use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::{AnyOfBuilder, ObjectBuilder, Schema, Type};
use utoipa::openapi::{RefOr, Required};
use utoipa::{PartialSchema, ToSchema};

pub type JsonBody<B> = Unread<InBody<B>>;
pub type OptionalJsonBody<B> = Unread<InOptionalBody<B>>;

pub struct InBody<B>(PhantomData<B>);
pub struct InOptionalBody<B>(PhantomData<B>);

/// An unparsed request body. `T` is its kind, which determines the parser.
pub struct Unread<T> {
    pub(in crate::http) received: Arc<ReceivedRequest>,
    part: PhantomData<fn() -> T>,
}

impl<S: Sync, T> FromRequestParts<S> for Unread<T> {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Ok(Self { received: received(parts)?, part: PhantomData })
    }
}

/// A sender whose credential was verified: for this request or, while that check is in progress, recently.
pub trait VerifiedSender {}

impl<B: FromBody> JsonBody<B> {
    /// Parses the body, for a verified sender.
    ///
    /// # Errors
    ///
    /// Same as [`JsonBody::parse_with_errors`], and [`ApiError::Invalid`] with all invalid fields.
    pub fn parse(&self, _: &impl VerifiedSender) -> Result<B, ApiError> {
        without_errors(read_body(&self.received)?)
    }

    /// Returns the body without its invalid fields, and their errors: for an endpoint that finds more errors and reports all of
    /// them together.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::TooLarge`], [`ApiError::UnsupportedMediaType`], [`ApiError::UnsupportedContentCoding`],
    /// [`ApiError::Malformed`] for a body that is missing, incomplete or not JSON, and [`ApiError::Invalid`] if a required field
    /// is missing or invalid.
    pub fn parse_with_errors(&self, _: &impl VerifiedSender) -> Result<(B, Vec<FieldError>), ApiError> {
        read_body(&self.received)
    }

    /// Like [`JsonBody::parse_with_errors`], for a body whose type depends on the resource.
    ///
    /// # Errors
    ///
    /// Same as [`JsonBody::parse_with_errors`].
    pub fn parse_as<C: FromBody>(&self, _: &impl VerifiedSender) -> Result<(C, Vec<FieldError>), ApiError> {
        read_body(&self.received)
    }
}

impl<B: FromBody> OptionalJsonBody<B> {
    /// Parses the body, for a verified sender. `None` without a body.
    ///
    /// # Errors
    ///
    /// Same as [`JsonBody::parse`].
    pub fn parse(&self, _: &impl VerifiedSender) -> Result<Option<B>, ApiError> {
        match &self.received.body {
            ReceivedBody::Whole(bytes) if bytes.is_empty() => Ok(None),
            _ => without_errors(read_body(&self.received)?).map(Some),
        }
    }
}

fn read_body<B: FromBody>(received: &ReceivedRequest) -> Result<(B, Vec<FieldError>), ApiError> {
    let (bytes, media_type) = received.whole_body("A body is required: a JSON object.")?;
    if !media_type.eq_ignore_ascii_case("application/json") {
        return Err(ApiError::UnsupportedMediaType("application/json"));
    }
    // Some editors and shells start every file with a byte order mark.
    match B::read(bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes))? {
        (Some(body), errors) => Ok((body, errors)),
        (None, errors) => Err(ApiError::Invalid(errors)),
    }
}

fn without_errors<B>((body, errors): (B, Vec<FieldError>)) -> Result<B, ApiError> {
    if errors.is_empty() { Ok(body) } else { Err(ApiError::Invalid(errors)) }
}

impl<B: ToSchema> Describe for JsonBody<B> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        add_body::<B>(operation, schemas, Required::True);
    }
}

impl<B: ToSchema> Describe for OptionalJsonBody<B> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        add_body::<B>(operation, schemas, Required::False);
    }
}

/// The top-level members of a body before they are parsed.
pub struct Fields<'a> {
    members: Vec<(String, Option<&'a RawValue>)>,
    /// Names of the taken fields.
    known: Vec<&'static str>,
    /// Names of members that are not parsed because they already have an error.
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
    /// Returns [`ApiError::Malformed`] if the body isn't JSON in UTF-8, and [`ApiError::Invalid`] if it isn't an object.
    pub fn parse(body: &'a [u8]) -> Result<Self, ApiError> {
        let text = utf8_json(body).ok_or_else(|| ApiError::Malformed(format!("The body {NOT_UTF8}.")))?;
        // Parsing a RawValue checks the syntax without recursion, however deeply the body nests.
        let raw: &RawValue =
            serde_json::from_str(text).map_err(|error| ApiError::Malformed(format!("The body is not JSON: {error}.")))?;
        let members = serde_json::from_str::<Members<'a>>(raw.get());
        let members = members
            .map_err(|_| {
                let detail = if raw.get().starts_with('{') { UNPAIRED_SURROGATE } else { "must be an object" };
                ApiError::Invalid(vec![FieldError {
                    location: ErrorLocation::Pointer(String::new()),
                    reason: ValueError::form(detail),
                }])
            })?
            .0;
        let (mut errors, mut refused) = (Vec::new(), Vec::new());
        let mut seen = HashSet::new();
        for (name, raw) in &members {
            if !seen.insert(name) {
                errors.push(FieldError::field(name, "must not be sent more than once"));
            }
            if let Some(pointer) = json::private_name(raw.get()) {
                errors.push(FieldError::within(name, &pointer, PRIVATE_NAME));
                refused.push(name.clone());
            }
        }
        let members = members.into_iter().map(|(name, raw)| (name, Some(raw))).collect();
        Ok(Self { members, known: Vec::new(), refused, errors })
    }

    /// Returns the members to parse, and the errors of refused and repeated members.
    pub(in crate::http) fn into_members(self) -> (Vec<(String, &'a str)>, Vec<FieldError>) {
        let members = self.members.into_iter().filter(|(name, _)| !self.refused.contains(name));
        let members = members.filter_map(|(name, raw)| Some((name, raw?.get())));
        (members.collect(), self.errors)
    }

    pub(in crate::http) fn take(&mut self, name: &'static str) -> Option<&'a RawValue> {
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
                self.errors.extend(errors.into_iter().map(|(pointer, error)| FieldError::within(name, &pointer, error)));
                None
            }
        }
    }

    /// Takes a required field. Records an error if it is missing or invalid.
    pub fn required<T: FromJson>(&mut self, name: &'static str) -> Option<T> {
        match self.take(name) {
            Some(raw) => self.read(name, raw),
            None => {
                self.errors.push(FieldError::field(name, ValueError::required()));
                None
            }
        }
    }

    /// Takes a field that can be omitted, but not null.
    pub fn optional<T: FromJson>(&mut self, name: &'static str) -> Option<T> {
        let raw = self.take(name)?;
        self.read(name, raw)
    }

    /// Takes a field that can be omitted or null.
    pub fn nullable<T: FromJson>(&mut self, name: &'static str) -> Patch<T> {
        match self.take(name) {
            None => Patch::Absent,
            Some(raw) if raw.get() == "null" => Patch::Null,
            Some(raw) => self.read(name, raw).map_or(Patch::Absent, Patch::Value),
        }
    }

    /// Takes the fields of a group. The group's name is not part of the body.
    pub fn group<G: FieldGroup>(&mut self, _: &'static str) -> G {
        G::read(self)
    }

    /// Takes the `read_only` members, for comparison with the current values.
    pub fn read_only(&mut self, read_only: &[&str]) -> ReadOnlyFields {
        let (mut fields, mut updated_at) = (Vec::new(), None);
        for (name, raw) in self.members.iter_mut().filter(|(name, _)| read_only.contains(&name.as_str())) {
            let Some(raw) = raw.take().filter(|_| !self.refused.contains(name)) else { continue };
            if name == UPDATED_AT {
                updated_at = Some(raw);
            } else {
                let value = json::parse(raw.get()).ok();
                let may_be_earlier = name == LAST_SEEN_AT;
                fields.push(ReadOnlyField { name: name.clone(), value, compared: name.clone(), may_be_earlier });
            }
        }
        ReadOnlyFields { fields, updated_at: updated_at.and_then(|raw| self.read(UPDATED_AT, raw)) }
    }

    /// Returns all errors, including one for each member that was not taken: it is unknown or, in a creation, read-only.
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
                self.errors.push(FieldError::field(name, ValueError::coded(ErrorCode::UnknownField, detail)));
                unknown += 1;
            }
        }
        self.errors
    }
}

/// Fields shared by several bodies.
pub trait FieldGroup: Sized {
    fn read(fields: &mut Fields<'_>) -> Self;

    /// Adds the fields to the OpenAPI schema of a body.
    fn describe(object: ObjectBuilder) -> ObjectBuilder;

    fn add_schemas(schemas: &mut Vec<(String, RefOr<Schema>)>);
}

pub trait FromBody: Sized {
    /// Parses all fields. Returns the body, if every required field is valid, and the errors of invalid fields.
    ///
    /// # Errors
    ///
    /// Same as [`Fields::parse`].
    fn read(body: &[u8]) -> Result<(Option<Self>, Vec<FieldError>), ApiError>;
}

/// The body of a PATCH, which can contain read-only fields.
pub trait PatchBody: FromBody {
    /// Returns the read-only fields, to compare with the current values.
    fn unchanged(&self) -> &ReadOnlyFields;
}

/// Parses an object within a body. The object's type is declared like a body.
///
/// # Errors
///
/// Returns all errors with their JSON Pointers, relative to the object.
pub fn read_nested<B: FromBody>(text: &str) -> Result<B, Vec<(String, ValueError)>> {
    let (body, errors) = match B::read(text.as_bytes()) {
        Ok(read) => read,
        Err(ApiError::Invalid(errors)) => (None, errors),
        Err(error) => return Err(vec![(String::new(), error.to_string().into())]),
    };
    let located = |error: FieldError| match error.location {
        ErrorLocation::Pointer(pointer) => (pointer, error.reason),
        _ => (String::new(), error.reason),
    };
    match body {
        Some(body) if errors.is_empty() => Ok(body),
        _ => Err(errors.into_iter().map(located).collect()),
    }
}

/// Returns a reference to the schema of the field's type, or the schema itself if it has no name, with the field's description.
#[must_use]
pub fn field_schema<T: ToSchema>(nullable: bool, description: &str) -> RefOr<Schema> {
    let any_of = AnyOfBuilder::new().description(Some(description.trim())).item(schema_or_reference::<T>());
    if nullable { any_of.item(ObjectBuilder::new().schema_type(Type::Null)).into() } else { any_of.into() }
}

/// Declares a request body: the struct, its OpenAPI schema and its parser.
///
/// `as` names the schema; the default is the struct's name. Each field is `required`, `optional` (can be omitted), `nullable`
/// (can be omitted or null), or a `group`, which stands for the fields of a [`FieldGroup`]. Fields listed in `read_only` are
/// refused as read-only. Fields listed in `unchanged` are kept in a field of that name, for comparison with the current values.
/// `into` names the change that the body converts into, which has the body's fields and the fields in braces.
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
                let object = $crate::body!(@describe_guard $mode object, $read_only);
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
            ) -> Result<(Option<Self>, Vec<$crate::domain::values::field_error::FieldError>), $crate::http::responses::ApiError> {
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
            /// Read-only fields sent by the client.
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
    (@describe_guard read_only $object:ident, $read_only:expr) => { $object };
    (@describe_guard unchanged $object:ident, $read_only:expr) => {
        $crate::http::requests::body::ReadOnlyFields::describe($object, $read_only)
    };
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
    (@add_schemas $need:ident $schemas:ident $type:ty) => { $crate::http::openapi::add_schema::<$type>($schemas) };
    (@type group $type:ty) => { $type };
    (@type required $type:ty) => { $type };
    (@type optional $type:ty) => { Option<$type> };
    (@type nullable $type:ty) => { $crate::domain::record::Patch<$type> };
    (@value required $field:ident) => { $field? };
    (@value $need:ident $field:ident) => { $field };
}

pub trait FromJson: Sized {
    /// Parses the JSON text of a value.
    ///
    /// # Errors
    ///
    /// Returns an error that describes the accepted values.
    fn from_json(text: &str) -> Result<Self, ValueError>;

    /// Like [`FromJson::from_json`], for values that can have several errors.
    ///
    /// # Errors
    ///
    /// Returns all errors with their JSON Pointers, relative to the value. By default, a single error for the whole value.
    fn from_json_with_locations(text: &str) -> Result<Self, Vec<(String, ValueError)>> {
        Self::from_json(text).map_err(|error| vec![(String::new(), error)])
    }
}

macro_rules! from_json_string {
    ($($type:ty,)*) => {$(
        impl FromJson for $type {
            fn from_json(text: &str) -> Result<Self, ValueError> {
                String::from_json(text)?.parse()
            }
        }
    )*};
}

from_json_string! {
    AssetId, AssetTag, AssetTypeId, Date, Email, LabelUrlTemplate, Line, Locale, Location, ManufacturerId, ModelId, Name, Notes, ProcessId, RowTag,
    SerialNumber, Slug, TagPrefix, TagTemplate, TimeZone, Timestamp, TypeCode, UserId, WebhookUrl, Website,
}

/// Implements `FromJson` for a string enum. Other JSON types get the same error as unknown values, which lists the known values.
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
        // A lone surrogate such as \ud800 is well-formed JSON, but not text.
        serde_json::from_str(text).map_err(|_| ValueError::form("must be a string"))
    }
}

impl FromJson for ExpectedVersions {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        Self::parse(&String::from_json(text)?)
    }
}

impl FromJson for bool {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        serde_json::from_str(text).map_err(|_| ValueError::form("must be true or false"))
    }
}

impl FromJson for Price {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        match serde_json::from_str::<String>(text) {
            Ok(text) => Self::from_decimal_text(&text),
            Err(_) if text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => Self::from_json_number(text),
            Err(_) => Err(money::no_price()),
        }
    }
}

impl FromJson for CustomFields {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        Self::from_body(text).map_err(|_| ValueError::form("must be custom fields"))
    }

    fn from_json_with_locations(text: &str) -> Result<Self, Vec<(String, ValueError)>> {
        Self::from_body(text)
    }
}

impl FromJson for CustomFieldsPatch {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        Self::from_json(text).map_err(|_| ValueError::form("must be an object of custom fields"))
    }

    fn from_json_with_locations(text: &str) -> Result<Self, Vec<(String, ValueError)>> {
        Self::from_json(text)
    }
}

impl FromJson for FieldsSchema {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        Self::from_json(text).map_err(|_| ValueError::form("must be a flat JSON Schema"))
    }

    fn from_json_with_locations(text: &str) -> Result<Self, Vec<(String, ValueError)>> {
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
        Self::from_json(text).map_err(|_| ValueError::form("must be a list of steps"))
    }

    fn from_json_with_locations(text: &str) -> Result<Self, Vec<(String, ValueError)>> {
        Self::from_json(text)
    }
}

/// Submitted values by step key.
#[derive(Debug, Clone, Default, ToSchema)]
#[schema(value_type = Object)]
pub struct StepData(pub serde_json::Map<String, Value>);

impl FromJson for StepData {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        // Two levels: the object of values, and the value of a checklist.
        match parse_strict(text, 2)? {
            Value::Object(values) if values.len() > MAX_STEPS => {
                Err(ValueError::new(format!("must have at most {MAX_STEPS} values, one for each step")))
            }
            Value::Object(values) => Ok(Self(values)),
            _ => Err(ValueError::form("must be an object that maps step keys to values")),
        }
    }
}

/// Step keys.
#[derive(Debug, Clone, Default, ToSchema)]
#[schema(value_type = Vec<String>)]
pub struct StepKeys(pub Vec<String>);

impl FromJson for StepKeys {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        let keys: Vec<String> = serde_json::from_str(text).map_err(|_| ValueError::form("must be a list of step keys"))?;
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
            ValueError::form(format!("must be a list of scopes, each one of {known}"))
        })?;
        if scopes.is_empty() {
            return Err(ValueError::new("must name at least one scope"));
        }
        scopes.iter().map(|scope| scope.parse()).collect()
    }

    fn from_json_with_locations(text: &str) -> Result<Self, Vec<(String, ValueError)>> {
        let whole = |error: ValueError| vec![(String::new(), error)];
        let Ok(entries) = serde_json::from_str::<Vec<&RawValue>>(text) else { return Self::from_json(text).map_err(whole) };
        let read =
            |(index, entry): (usize, &&RawValue)| Scope::from_json(entry.get()).err().map(|error| (format!("/{index}"), error));
        let errors: Vec<(String, ValueError)> = entries.iter().enumerate().filter_map(read).take(MAX_FIELD_ERRORS).collect();
        if errors.is_empty() { Self::from_json(text).map_err(whole) } else { Err(errors) }
    }
}

impl FromJson for WebhookEvents {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        Self::from_json_with_locations(text).map_err(|_| ValueError::form("must be a list of event types"))
    }

    fn from_json_with_locations(text: &str) -> Result<Self, Vec<(String, ValueError)>> {
        let types: Vec<String> = serde_json::from_str(text).map_err(|_| {
            let known = WebhookEvents::known_names().collect::<Vec<_>>().join(", ");
            vec![(String::new(), ValueError::form(format!("must be a list of event types, each one of {known}")))]
        })?;
        let located =
            |(index, error): (Option<usize>, ValueError)| (index.map_or_else(String::new, |index| format!("/{index}")), error);
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
        number.map(Self).ok_or_else(|| ValueError::form(format!("must be a whole number from {MIN} to {MAX}")))
    }
}

const LOCATION: &str = "Location: up to 8 levels separated by `/`, the largest first.";

impl FieldGroup for AssetDetailsChange {
    fn read(fields: &mut Fields<'_>) -> Self {
        Self {
            serial_number: fields.nullable("serial_number"),
            location: fields.nullable("location"),
            purchase_date: fields.nullable("purchase_date"),
            purchase_price: fields.nullable("purchase_price"),
            warranty_until: fields.nullable("warranty_until"),
        }
    }

    fn describe(object: ObjectBuilder) -> ObjectBuilder {
        let price = "Purchase price, as a number or a decimal string. Every digit is kept.";
        object
            .property("serial_number", field_schema::<SerialNumber>(true, "Serial number."))
            .property("location", field_schema::<Location>(true, LOCATION))
            .property("purchase_date", field_schema::<Date>(true, "Date of purchase, `YYYY-MM-DD`."))
            .property("purchase_price", field_schema::<Price>(true, price))
            .property("warranty_until", field_schema::<Date>(true, "Last day of the warranty, `YYYY-MM-DD`."))
    }

    fn add_schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        add_schema::<SerialNumber>(schemas);
        add_schema::<Location>(schemas);
        add_schema::<Date>(schemas);
        add_schema::<Price>(schemas);
    }
}

/// No body, or an object without members. Rejects anything else, so that nothing a client sends is silently ignored.
pub struct NoBody(OptionalJsonBody<NoMembers>);

struct NoMembers;

impl FromBody for NoMembers {
    fn read(body: &[u8]) -> Result<(Option<Self>, Vec<FieldError>), ApiError> {
        Ok((Some(Self), Fields::parse(body)?.finish(&[])))
    }
}

impl NoBody {
    /// Checks the body, for a verified sender.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Invalid`] with an error for each member, or any error of [`JsonBody::parse`].
    pub fn check(&self, sender: &impl VerifiedSender) -> Result<(), ApiError> {
        self.0.parse(sender).map(|_| ())
    }
}

impl<S: Sync> FromRequestParts<S> for NoBody {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        OptionalJsonBody::from_request_parts(parts, state).await.map(Self)
    }
}

/// The OpenAPI document doesn't mention empty bodies.
impl Describe for NoBody {
    fn describe(_: &mut Operation, _: &mut Schemas) {}
}

/// The read-only fields of a PATCH, accepted with their current values, so that a client can send back a whole resource.
#[derive(Debug, Default)]
pub struct ReadOnlyFields {
    fields: Vec<ReadOnlyField>,
    updated_at: Option<Timestamp>,
}

/// A scan must not invalidate what a client has read.
const LAST_SEEN_AT: &str = "last_seen_at";
const UPDATED_AT: &str = "updated_at";
const UPDATED_AT_MEANING: &str = "`updated_at` as you read it. If the resource was changed since, the response is a 412.";

#[derive(Debug)]
struct ReadOnlyField {
    name: String,
    value: Option<Value>,
    /// Name of the resource's field to compare with.
    compared: String,
    /// Whether a time before the current one, or null, is accepted.
    may_be_earlier: bool,
}

impl ReadOnlyField {
    /// Whether the field has an accepted earlier time.
    fn is_earlier(&self, sent: &Value, current: &Value) -> bool {
        let time = |value: &Value| value.as_str().and_then(|text| text.parse::<Timestamp>().ok());
        self.may_be_earlier && (sent.is_null() || time(sent).is_some_and(|at| Some(at) <= time(current)))
    }
}

impl ReadOnlyFields {
    /// Adds the one read-only field with a meaning to the OpenAPI schema of a PATCH.
    #[must_use]
    pub fn describe(object: ObjectBuilder, read_only: &[&str]) -> ObjectBuilder {
        match read_only.contains(&UPDATED_AT) {
            true => object.property(UPDATED_AT, field_schema::<Timestamp>(false, UPDATED_AT_MEANING)),
            false => object,
        }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Returns the `updated_at` of the resource as the client read it. A change of another state of the resource is refused.
    #[must_use]
    pub fn updated_at(&self) -> Option<Timestamp> {
        self.updated_at
    }

    /// Adds an error for each read-only field of a new resource, unless the field already has an error. Ignores `updated_at`,
    /// which can only guard a change.
    pub fn refuse_in_creation(&self, errors: &mut Vec<FieldError>) {
        let is_new = |field: &&ReadOnlyField| !errors.iter().any(|error| error.is_about(&field.name));
        let error = |field: &ReadOnlyField| FieldError::field(&field.name, "is read-only: the service assigns it");
        let added: Vec<FieldError> = self.fields.iter().filter(is_new).map(error).collect();
        errors.extend(added);
    }

    /// Compares the ID in the field `expanded`, which contains another resource, with the field `reference`, which refers to it.
    #[must_use]
    pub fn by_reference(mut self, expanded: &str, reference: &str) -> Self {
        for field in self.fields.iter_mut().filter(|field| field.name == expanded) {
            field.compared = reference.to_owned();
            if let Some(Value::Object(shown)) = &mut field.value {
                field.value = shown.remove("id");
            }
        }
        self
    }

    /// Also accepts an earlier time in this field.
    #[must_use]
    pub fn accepting_earlier(mut self, name: &str) -> Self {
        self.fields.iter_mut().filter(|field| field.name == name).for_each(|field| field.may_be_earlier = true);
        self
    }

    /// Returns an error for each field that differs from `current`, the resource as a GET returns it. Missing fields count as
    /// null.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Internal`] if `current` can't be serialized.
    pub fn errors(&self, current: &impl Serialize) -> Result<Vec<FieldError>, ApiError> {
        if self.is_empty() {
            return Ok(Vec::new());
        }
        // Convert to text and back, so that numbers are compared in the form that clients read.
        let text = serde_json::to_string(current).map_err(|error| ApiError::Internal(error.into()))?;
        let current = json::parse(&text).map_err(|error| ApiError::Internal(error.into()))?;
        let differs = |field: &&ReadOnlyField| {
            let current = &current[field.compared.as_str()];
            field.value.as_ref().is_none_or(|sent| !json::equal(sent, current) && !field.is_earlier(sent, current))
        };
        let error = |field: &ReadOnlyField| FieldError::field(&field.name, "is read-only and can't change");
        Ok(self.fields.iter().filter(differs).map(error).collect())
    }

    /// Checks that every field equals the one in `current`, and that there are no other `errors`.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Invalid`] with all errors.
    pub fn check(&self, current: &impl Serialize, mut errors: Vec<FieldError>) -> Result<(), ApiError> {
        errors.extend(self.errors(current)?);
        if errors.is_empty() { Ok(()) } else { Err(ApiError::Invalid(errors)) }
    }
}

/// The error if [`utf8`] or [`utf8_json`] returns `None`.
pub const NOT_UTF8: &str = "is not UTF-8, or contains U+FFFD, the replacement character";

/// Decodes part of a body or of a URL. `None` if it isn't UTF-8 or contains U+FFFD: API Gateway passes bodies as strings, with
/// U+FFFD in place of each byte that it couldn't decode.
pub fn utf8(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| !text.contains(char::REPLACEMENT_CHARACTER))
}

/// Like [`utf8`], for JSON. Also rejects an escaped U+FFFD, from a client that decoded the text earlier.
pub fn utf8_json(bytes: &[u8]) -> Option<&str> {
    utf8(bytes).filter(|text| !has_escaped_replacement(text))
}

fn has_escaped_replacement(json: &str) -> bool {
    let mut rest = json.as_bytes();
    while let Some(at) = memchr::memchr(b'\\', rest) {
        // The escape, without its backslash.
        let (_, escape) = rest.split_at(at + 1);
        if escape.get(..5).is_some_and(|escape| escape.eq_ignore_ascii_case(b"ufffd")) {
            return true;
        }
        rest = escape.get(1..).unwrap_or_default();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_were_replaced_are_not_utf8() {
        assert_eq!(utf8("Größe".as_bytes()), Some("Größe"));
        assert_eq!([&b"Gr\xf6\xdfe"[..], "Gr\u{fffd}\u{fffd}e".as_bytes()].map(utf8), [None, None]);
        for json in [r#""\ufffd""#, r#""a\\\uFFFD""#, r#""\u00e9\uFffD"#] {
            assert_eq!(utf8_json(json.as_bytes()), None, "{json}");
        }
        for json in [r#""\\ufffd""#, r#""\ufffe \u00e9""#, r"\", r"\ufff", "ufffd"] {
            assert_eq!(utf8_json(json.as_bytes()), Some(json));
        }
    }
}
