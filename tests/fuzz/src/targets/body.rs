//! Request bodies with a field of each type.

use super::assert_round_trip;
use shared::domain::assets::asset::{Status, Transitions};
use shared::domain::assets::tag::{TagPrefix, TagTemplate};
use shared::domain::catalog::custom_fields::{CustomFields, FieldsSchema};
use shared::domain::catalog::{AssetKind, TypeCode, Website};
use shared::domain::keys::scope::{Role, Scopes};
use shared::domain::processes::movement::AssetIds;
use shared::domain::processes::process::{ProcessStatus, Slug, Steps};
use shared::domain::record::Patch;
use shared::domain::user::Email;
use shared::domain::values::field_error::{ErrorLocation, FieldError};
use shared::domain::values::id::AssetId;
use shared::domain::values::money::Price;
use shared::domain::values::text::{Line, Name, Notes};
use shared::domain::values::time::{Date, Timestamp};
use shared::http::error::ApiError;
use shared::http::requests::body::{FromBody, FromJson, RateLimit, StepData};

shared::body! {
    /// A body with a field of each type.
    pub struct Everything {
        /// Required.
        required name: Name,
        /// Text.
        nullable line: Line,
        /// Text.
        nullable notes: Notes,
        /// Text.
        nullable email: Email,
        /// Text.
        nullable website: Website,
        /// Text.
        nullable slug: Slug,
        /// Text.
        nullable code: TypeCode,
        /// Text.
        nullable prefix: TagPrefix,
        /// Text.
        nullable template: TagTemplate,
        /// An enum.
        optional status: Status,
        /// An enum.
        optional kind: AssetKind,
        /// An enum.
        optional role: Role,
        /// An enum.
        optional process: ProcessStatus,
        /// An id.
        nullable id: AssetId,
        /// Ids.
        optional ids: AssetIds,
        /// A time.
        nullable time: Timestamp,
        /// A date.
        nullable date: Date,
        /// A number.
        nullable price: Price,
        /// A number.
        optional rate: RateLimit,
        /// A boolean.
        optional flag: bool,
        /// A list of enums.
        optional scopes: Scopes,
        /// An object.
        nullable fields: CustomFields,
        /// An object.
        nullable schema: FieldsSchema,
        /// A list.
        optional steps: Steps,
        /// An object.
        optional data: StepData,
        /// An object.
        nullable moves: Transitions,
    }
    read_only: &["created_at"]
}

/// Every accepted value can be stored, and every error points into the body.
pub fn run(bytes: &[u8]) {
    let read = match Everything::read(bytes) {
        Ok(read) => read,
        Err(ApiError::Malformed(_)) => return,
        Err(error) => {
            assert!(matches!(&error, ApiError::Invalid(errors) if errors.len() == 1), "{error}");
            return;
        }
    };
    let (body, errors) = read;
    errors.iter().for_each(assert_points_into_body);
    let Some(body) = body else {
        assert!(!errors.is_empty(), "a body without value and without error");
        return;
    };
    let Everything { line, notes, email, website, slug, code, prefix, template, id, time, date, price, fields, schema, .. } =
        &body;
    assert_round_trip(&body.name);
    line.value().into_iter().for_each(assert_round_trip);
    notes.value().into_iter().for_each(assert_round_trip);
    email.value().into_iter().for_each(assert_round_trip);
    website.value().into_iter().for_each(assert_round_trip);
    slug.value().into_iter().for_each(assert_round_trip);
    code.value().into_iter().for_each(assert_round_trip);
    prefix.value().into_iter().for_each(assert_round_trip);
    template.value().into_iter().for_each(assert_round_trip);
    id.value().into_iter().for_each(assert_round_trip);
    time.value().into_iter().for_each(assert_round_trip);
    date.value().into_iter().for_each(assert_round_trip);
    price.value().into_iter().for_each(assert_round_trip);
    fields.value().into_iter().for_each(assert_round_trip);
    schema.value().into_iter().for_each(assert_round_trip);
    body.steps.iter().for_each(assert_round_trip);
    body.scopes.iter().for_each(assert_round_trip);
    if let Patch::Value(moves) = &body.moves {
        assert_round_trip(moves);
    }
    if let Some(price) = price.value() {
        // Responses show a price as a JSON number with the same digits.
        assert_eq!(Price::from_json(&price.to_string()).as_ref(), Ok(price));
    }
}

fn assert_points_into_body(field_error: &FieldError) {
    assert!(matches!(&field_error.location, ErrorLocation::Pointer(pointer) if pointer.starts_with('/')), "{field_error:?}");
    assert!(!field_error.detail.is_empty(), "{field_error:?}");
}
