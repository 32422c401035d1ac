//! Path and query parameters, parsed strictly. The first argument of a handler is the sender, so that unauthenticated requests
//! stay cheap. The query follows, then the path: errors are reported in this order. The handler itself parses the body (see
//! [`body`](super::body)), and adds further errors.

use super::body::{NOT_UTF8, utf8};
use crate::domain::assets::bound::{DayBound, TimeBound};
use crate::domain::assets::label::{LabelFormat, LabelIds, LabelSize, Resolution, SheetLayout, SkippedLabels};
use crate::domain::catalog::{AssetKind, TypeCode};
use crate::domain::history::filter::EventTypes;
use crate::domain::keys::api_key::Role;
use crate::domain::processes::instance::InstanceStatus;
use crate::domain::processes::process::Slug;
use crate::domain::user::Email;
use crate::domain::values::field_error::{ErrorCode, FieldError, ValueError, unknown_name};
use crate::domain::values::id::{
    ApiKeyId, AssetId, AssetTypeId, EventId, InstanceId, LinkId, ManufacturerId, ModelId, MovementId, ProcessId, TenantId,
    UserId, WebhookId,
};
use crate::domain::values::money::Price;
use crate::domain::values::text::{self, Name, SearchText};
use crate::domain::values::time::{Date, Timestamp};
use crate::domain::webhooks::DeliveryStatus;
use crate::http::openapi::{Describe, QueryParameters, Schemas, add_parameter, add_schema, schema_or_reference};
use crate::http::received::received;
use crate::http::responses::ApiError;
use crate::store::{AssetSort, Assignee, GroupBy, ManufacturerName, PageRequest, PlaceFilter, Statuses};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;
use std::collections::HashMap;
use std::str::FromStr;
use utoipa::ToSchema;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::{RefOr, Required};

pub struct Query<Q>(pub Q);

impl<Q: FromQuery, S: Sync> FromRequestParts<S> for Query<Q> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let received = received(parts)?;
        let mut params = received.params()?;
        let query = Q::take(&mut params);
        params.finish().map(|()| Self(query))
    }
}

impl<Q: FromQuery> Describe for Query<Q> {
    const QUERY: Option<QueryParameters> = Some(parameters_of::<Q>);

    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        Q::describe(schemas).into_iter().for_each(|parameter| add_parameter(operation, parameter));
    }
}

fn parameters_of<Q: FromQuery>() -> Vec<&'static str> {
    let mut params = Params::default();
    Q::take(&mut params);
    params.known
}

pub trait PathParameter {
    /// The parameter's name in the route.
    const NAME: &'static str;
    /// The parameter's description in the OpenAPI document.
    const DESCRIPTION: &'static str;
    type Value: ToSchema;

    /// Parses the value from percent-decoded text.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::NotFound`] for a malformed ID, and [`ApiError::Invalid`] for any other invalid value.
    fn read(text: &str) -> Result<Self::Value, ApiError>;
}

/// A path parameter: usually the ID of a resource. A delivery's ID is the ID of its event.
pub struct Path<P: PathParameter>(pub P::Value);

/// A step's key: any string, even if no step has this key.
pub struct StepKey;
pub struct SerialNumber;
/// An asset's tag: any string, even if no asset has this tag. Scanners add white space around it.
pub struct Tag;

macro_rules! path_ids {
    ($($id:ty: $name:literal, $description:literal;)*) => {$(
        impl PathParameter for $id {
            const NAME: &'static str = $name;
            const DESCRIPTION: &'static str = $description;
            type Value = Self;

            fn read(text: &str) -> Result<Self, ApiError> {
                text.parse().map_err(|_| ApiError::NotFound)
            }
        }
    )*};
}

path_ids! {
    ApiKeyId: "id", "API key ID";
    AssetId: "id", "Asset ID";
    AssetTypeId: "id", "Asset type ID";
    EventId: "delivery_id", "Delivery ID";
    InstanceId: "id", "Instance ID";
    LinkId: "link_id", "Link ID";
    ManufacturerId: "id", "Manufacturer ID";
    ModelId: "id", "Model ID";
    MovementId: "id", "Movement ID";
    ProcessId: "id", "Process ID";
    UserId: "id", "User ID";
    WebhookId: "id", "Webhook ID";
}

impl PathParameter for StepKey {
    const NAME: &'static str = "key";
    const DESCRIPTION: &'static str = "Step key";
    type Value = String;

    fn read(text: &str) -> Result<String, ApiError> {
        Ok(text.to_owned())
    }
}

impl PathParameter for Tag {
    const NAME: &'static str = "tag";
    const DESCRIPTION: &'static str = "Asset tag";
    type Value = String;

    fn read(text: &str) -> Result<String, ApiError> {
        Ok(text.trim().to_owned())
    }
}

impl PathParameter for SerialNumber {
    const NAME: &'static str = "serial";
    const DESCRIPTION: &'static str = "Serial number";
    type Value = text::SerialNumber;

    fn read(text: &str) -> Result<text::SerialNumber, ApiError> {
        let invalid = |reason: ValueError| ApiError::Invalid(vec![FieldError::parameter(Self::NAME, reason)]);
        let serial: text::SerialNumber = text.parse().map_err(invalid)?;
        if serial.is_empty() { Err(invalid(ValueError::coded(ErrorCode::Required, "must not be empty"))) } else { Ok(serial) }
    }
}

impl<P: PathParameter, S: Sync> FromRequestParts<S> for Path<P> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        P::read(received(parts)?.path_parameter(P::NAME)?).map(Self)
    }
}

impl<P: PathParameter> Describe for Path<P> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        add_schema::<P::Value>(schemas);
        let parameter = ParameterBuilder::new().name(P::NAME).parameter_in(ParameterIn::Path).required(Required::True);
        let parameter = parameter.schema(Some(schema_or_reference::<P::Value>())).description(Some(P::DESCRIPTION));
        // Insert the path parameter before the query parameters.
        let parameters = operation.parameters.get_or_insert_default();
        let in_path = |parameter: &RefOr<Parameter>| matches!(parameter, RefOr::T(it) if it.parameter_in == ParameterIn::Path);
        let index = parameters.iter().filter(|parameter| in_path(parameter)).count();
        parameters.insert(index, RefOr::T(parameter.build()));
    }
}

const MAX_PAGE_NUMBER: u32 = 1_000_000_000;
/// How far a client's clock can be ahead, in seconds.
const MAX_CLOCK_DIFFERENCE: u32 = 60;

pub trait FromParam: Sized {
    /// Whether the parameter takes several values, separated by commas or as repeated parameters.
    const IS_LIST: bool = false;

    /// Parses the value from percent-decoded text.
    ///
    /// # Errors
    ///
    /// Returns an error that describes the accepted values.
    fn from_param(text: &str) -> Result<Self, ValueError>;
}

/// Implements `FromParam` with `FromStr`.
macro_rules! from_param {
    (lists: $($type:ty,)*) => { $crate::http::requests::params::from_param! { @ true $($type,)* } };
    ($($type:ty,)*) => { $crate::http::requests::params::from_param! { @ false $($type,)* } };
    (@ $is_list:literal $($type:ty,)*) => {$(
        impl $crate::http::requests::params::FromParam for $type {
            const IS_LIST: bool = $is_list;

            fn from_param(text: &str) -> Result<Self, $crate::domain::values::field_error::ValueError> {
                text.parse()
            }
        }
    )*};
}
pub(in crate::http) use from_param;

from_param! {
    AssetId, AssetKind, AssetSort, AssetTypeId, Assignee, Date, DayBound, DeliveryStatus, EventId, GroupBy, InstanceStatus,
    LabelFormat, LabelSize, ManufacturerId, ManufacturerName, ModelId, Name, PlaceFilter, ProcessId, Resolution, Role, SearchText, SheetLayout, SkippedLabels,
    Slug, TenantId, UserId,
}

from_param! {
    lists: EventTypes, LabelIds, Statuses,
}

/// Parses a value that can contain `+` but no spaces.
fn parse_with_plus<T: FromStr<Err = ValueError>>(text: &str) -> Result<T, ValueError> {
    let hint = if text.contains(' ') { "; in a query, + means a space: send %2B" } else { "" };
    text.parse().map_err(|error: ValueError| ValueError { text: format!("{error}{hint}"), ..error })
}

impl FromParam for Email {
    fn from_param(text: &str) -> Result<Self, ValueError> {
        parse_with_plus(text)
    }
}

impl FromParam for Timestamp {
    fn from_param(text: &str) -> Result<Self, ValueError> {
        parse_with_plus(text)
    }
}

impl FromParam for TimeBound {
    fn from_param(text: &str) -> Result<Self, ValueError> {
        parse_with_plus(text)
    }
}

impl FromParam for Price {
    fn from_param(text: &str) -> Result<Self, ValueError> {
        Self::from_decimal_text(text)
    }
}

/// Asset type code, case-insensitive.
#[derive(Debug, ToSchema)]
#[schema(value_type = String, pattern = "^[A-Za-z0-9]{2,8}$", examples("LAP"))]
#[schema(as = TypeCodeFilter)]
pub struct CodeFilter(pub TypeCode);

impl FromParam for CodeFilter {
    fn from_param(text: &str) -> Result<Self, ValueError> {
        text.trim().to_ascii_uppercase().parse().map(Self)
    }
}

impl FromParam for bool {
    fn from_param(text: &str) -> Result<Self, ValueError> {
        text.parse().map_err(|_| ValueError::form("must be true or false"))
    }
}

/// Page number, from 1.
#[derive(Debug, Clone, Copy, ToSchema)]
#[schema(value_type = u32, minimum = 1, maximum = 1_000_000_000)]
pub struct PageNumber(u32);

/// Maximum number of items per page, 1 to 100.
#[derive(Debug, Clone, Copy, ToSchema)]
#[schema(value_type = u32, minimum = 1, maximum = 100)]
pub struct Limit(u32);

fn digits(text: &str, most: u32) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?.filter(|number| (1..=most).contains(number))
}

impl FromParam for PageNumber {
    fn from_param(text: &str) -> Result<Self, ValueError> {
        digits(text, MAX_PAGE_NUMBER)
            .map(Self)
            .ok_or_else(|| ValueError::form(format!("must be a whole number from 1 to {MAX_PAGE_NUMBER}")))
    }
}

impl FromParam for Limit {
    fn from_param(text: &str) -> Result<Self, ValueError> {
        digits(text, 100).map(Self).ok_or_else(|| ValueError::form("must be a whole number from 1 to 100"))
    }
}

/// Returns the requested page, by default page 1 with 20 items.
#[must_use]
pub fn page(number: Option<PageNumber>, limit: Option<Limit>) -> PageRequest {
    page_of(number, limit, 20)
}

/// Returns the requested page, by default page 1 with `default` items.
#[must_use]
pub fn page_of(number: Option<PageNumber>, limit: Option<Limit>, default: u32) -> PageRequest {
    PageRequest { number: number.map_or(1, |n| n.0), limit: limit.map_or(default, |l| l.0) }
}

/// Rejects a time in the future, with a minute's tolerance for clock differences.
///
/// # Errors
///
/// Returns [`ApiError::Invalid`] for the parameter `name`.
pub fn check_past(name: &str, at: Timestamp, now: Timestamp) -> Result<(), ApiError> {
    if at <= now.plus_seconds(MAX_CLOCK_DIFFERENCE) {
        return Ok(());
    }
    Err(ApiError::Invalid(vec![FieldError::parameter(name, format!("must not be in the future; server time: {now}"))]))
}

impl Limit {
    #[must_use]
    pub fn get(self) -> u32 {
        self.0
    }
}

/// Whether a parameter that takes a single value was given several, separated by commas.
fn are_several<T: FromParam>(text: &str) -> bool {
    !T::IS_LIST && text.contains(',') && text.split(',').all(|value| T::from_param(value).is_ok())
}

#[derive(Default)]
pub struct Params {
    /// Values that are not taken yet, by parameter name.
    given: Vec<(String, Vec<String>)>,
    /// Names of the endpoint's parameters.
    known: Vec<&'static str>,
    errors: Vec<FieldError>,
}

impl Params {
    /// Parses a query string.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Malformed`] for bad percent-encoding.
    pub fn parse(query: &str) -> Result<Self, ApiError> {
        let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(name)?, decode(value)?))
        });
        Ok(Self::of(pairs.collect::<Result<Vec<_>, ApiError>>()?))
    }

    /// Reads parameters that are not part of a URL.
    pub fn of(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        let (mut given, mut places) = (Vec::<(String, Vec<String>)>::new(), HashMap::new());
        for (name, value) in pairs {
            let place = *places.entry(name.clone()).or_insert(given.len());
            match given.get_mut(place) {
                Some((_, values)) => values.push(value),
                None => given.push((name, vec![value])),
            }
        }
        Self { given, ..Self::default() }
    }

    /// Takes all values of a parameter, which can be repeated, as they were sent.
    pub fn take_values(&mut self, name: &'static str) -> Vec<String> {
        self.known.push(name);
        self.given.iter_mut().find(|(known, _)| known == name).map(|(_, values)| std::mem::take(values)).unwrap_or_default()
    }

    /// Rejects all parameters that are left.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Invalid`] with an error for each.
    pub fn refuse_all(self, reason: &str) -> Result<(), ApiError> {
        let given = self.given.into_iter().filter(|(_, values)| !values.is_empty());
        let errors: Vec<FieldError> = given.map(|(name, _)| FieldError::parameter(&name, reason)).collect();
        if errors.is_empty() { Ok(()) } else { Err(ApiError::Invalid(errors)) }
    }

    /// Takes an optional parameter. Records an error if its value is invalid.
    pub fn take<T: FromParam>(&mut self, name: &'static str) -> Option<T> {
        self.known.push(name);
        let values = std::mem::take(&mut self.given.iter_mut().find(|(known, _)| known == name)?.1);
        let value = match values.as_slice() {
            [] => return None,
            [_, _, ..] if !T::IS_LIST => Err(ValueError::new("must not be sent more than once")),
            values => T::from_param(&values.join(",")).map_err(|error| match values {
                [text] if are_several::<T>(text) => {
                    ValueError { text: format!("{error}; send a separate request for each value"), ..error }
                }
                _ => error,
            }),
        };
        value.map_err(|error| self.errors.push(FieldError::parameter(name, error))).ok()
    }

    /// Takes all parameters whose names start with `prefix`, and returns the rest of each name with its values. Errors about
    /// unknown parameters list them as `shown`.
    pub fn take_prefixed(&mut self, prefix: &str, shown: &'static str) -> Vec<(String, Vec<String>)> {
        self.known.push(shown);
        let is_given = |(name, values): &&mut (String, Vec<String>)| name.starts_with(prefix) && !values.is_empty();
        let taken = self.given.iter_mut().filter(is_given);
        taken.map(|(name, values)| (name.replacen(prefix, "", 1), std::mem::take(values))).collect()
    }

    pub fn refuse(&mut self, name: &str, reason: ValueError) {
        self.errors.push(FieldError::parameter(name, reason));
    }

    /// Reports all errors, including unknown parameters.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Invalid`] with all errors.
    pub fn finish(mut self) -> Result<(), ApiError> {
        let unknown = self.given.iter().filter(|(_, values)| !values.is_empty()).enumerate();
        let detail = |name, index| match self.known.is_empty() {
            true => "unknown; this endpoint takes no parameters".to_owned(),
            false => unknown_name(name, &self.known, "parameter", index),
        };
        let error = |name, index| ValueError::coded(ErrorCode::UnknownField, detail(name, index));
        self.errors.extend(unknown.map(|(index, (name, _))| FieldError::parameter(name, error(name, index))));
        if self.errors.is_empty() { Ok(()) } else { Err(ApiError::Invalid(self.errors)) }
    }
}

/// Decodes part of a URL strictly: a `%` that doesn't start an escape is an error, and so is U+FFFD, as in [`utf8`].
///
/// # Errors
///
/// Returns [`ApiError::Malformed`] for anything else.
pub fn decode(text: &str) -> Result<String, ApiError> {
    let bytes = text.as_bytes();
    let escapes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'%');
    for (place, _) in escapes {
        if !bytes.get(place + 1..place + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)) {
            return Err(ApiError::Malformed("The URL has bad percent-encoding.".into()));
        }
    }
    let spaced = text.replace('+', " ");
    let bytes: Vec<u8> = percent_decode_str(&spaced).collect();
    utf8(&bytes).map(str::to_owned).ok_or_else(|| ApiError::Malformed(format!("The URL {NOT_UTF8}.")))
}

pub trait FromQuery: Sized {
    /// Takes the parameters of this type, and leaves others in `params`.
    fn take(params: &mut Params) -> Self;

    /// Parses all parameters of an endpoint.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Invalid`] with all invalid parameters.
    fn from_params(mut params: Params) -> Result<Self, ApiError> {
        let query = Self::take(&mut params);
        params.finish()?;
        Ok(query)
    }

    /// Describes the parameters for the OpenAPI document, and adds their schemas to `schemas`.
    fn describe(schemas: &mut Schemas) -> Vec<Parameter>;
}

/// Declares query parameters: the struct, its OpenAPI description and its parser. `..filter: Type` includes the parameters of
/// another declaration, shared with other endpoints.
#[macro_export]
macro_rules! query {
    ($(#[$doc:meta])* pub struct $name:ident {
        $($(#[doc = $fdoc:literal])* $field:ident: $type:ty as $schema:ty,)*
        $(..$group:ident: $group_type:ty, $($(#[doc = $ldoc:literal])* $last:ident: $last_type:ty as $last_schema:ty,)*)?
    }) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name {
            $($(#[doc = $fdoc])* pub $field: Option<$type>,)*
            $(
                /// Parameters shared with other endpoints.
                pub $group: $group_type,
                $($(#[doc = $ldoc])* pub $last: Option<$last_type>,)*
            )?
        }

        impl $crate::http::requests::params::FromQuery for $name {
            fn take(params: &mut $crate::http::requests::params::Params) -> Self {
                $(let $field = params.take::<$type>(stringify!($field).trim_start_matches("r#"));)*
                $(
                    let $group = <$group_type as $crate::http::requests::params::FromQuery>::take(params);
                    $(let $last = params.take::<$last_type>(stringify!($last));)*
                )?
                Self { $($field,)* $($group, $($last,)*)? }
            }

            fn describe(schemas: &mut $crate::http::openapi::Schemas) -> Vec<utoipa::openapi::path::Parameter> {
                [
                    vec![$($crate::query! { @describe schemas $field $schema, $($fdoc)* },)*],
                    $(
                        <$group_type as $crate::http::requests::params::FromQuery>::describe(schemas),
                        vec![$($crate::query! { @describe schemas $last $last_schema, $($ldoc)* },)*],
                    )?
                ]
                .concat()
            }
        }
    };
    (@describe $schemas:ident $field:ident $schema:ty, $($doc:literal)*) => {
        $crate::http::openapi::query_parameter::<$schema>($schemas, stringify!($field), concat!($($doc, "\n"),*))
    };
}
