//! Bodies with a field of each type.

use super::is_kept;
use shared::domain::asset::Status;
use shared::domain::asset_tag::{TagPrefix, TagTemplate};
use shared::domain::catalog::{AssetKind, TypeCode, Website};
use shared::domain::custom_fields::{CustomFields, FieldsSchema};
use shared::domain::field_error::{ErrorLocation, FieldError};
use shared::domain::id::AssetId;
use shared::domain::money::Price;
use shared::domain::movement::AssetIds;
use shared::domain::process::{ProcessStatus, Slug, Steps};
use shared::domain::record::Patch;
use shared::domain::scope::{Role, Scopes};
use shared::domain::tenant::Transitions;
use shared::domain::text::{Line, Name, Notes};
use shared::domain::time::{Date, Timestamp};
use shared::domain::user::Email;
use shared::http::body::{FromBody, FromJson, RateLimit, StepData};
use shared::http::error::ApiError;

shared::body! {
    /// A field of each type.
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
        /// A word.
        optional status: Status,
        /// A word.
        optional kind: AssetKind,
        /// A word.
        optional role: Role,
        /// A word.
        optional process: ProcessStatus,
        /// An id.
        nullable id: AssetId,
        /// Ids.
        optional ids: AssetIds,
        /// A moment.
        nullable time: Timestamp,
        /// A day.
        nullable date: Date,
        /// A number.
        nullable price: Price,
        /// A number.
        optional rate: RateLimit,
        /// Yes or no.
        optional flag: bool,
        /// Words.
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

/// Every value that is accepted can be kept, and every field_error has a place within the body.
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
    errors.iter().for_each(has_a_place);
    let Some(body) = body else {
        assert!(!errors.is_empty(), "nothing was read, and nothing was wrong");
        return;
    };
    let Everything { line, notes, email, website, slug, code, prefix, template, id, time, date, price, fields, schema, .. } =
        &body;
    is_kept(&body.name);
    macro_rules! are_kept {
        ($($field:ident)*) => { $(if let Some(value) = $field.value() { is_kept(value); })* };
    }
    are_kept!(line notes email website slug code prefix template id time date price fields schema);
    body.steps.iter().for_each(is_kept);
    body.scopes.iter().for_each(is_kept);
    if let Patch::Value(moves) = &body.moves {
        is_kept(moves);
    }
    if let Some(price) = price.value() {
        // Shown as a number with the digits that it has.
        assert_eq!(Price::from_json(&price.to_string()).as_ref(), Ok(price));
    }
}

fn has_a_place(field_error: &FieldError) {
    assert!(matches!(&field_error.location, ErrorLocation::Pointer(pointer) if pointer.starts_with('/')), "{field_error:?}");
    assert!(!field_error.detail.is_empty(), "{field_error:?}");
}
