//! Fuzz targets for parsers of unauthenticated input. Each target takes arbitrary bytes and panics if the parser violates a
//! property.
//!
//! `.ci/rust/fuzz` runs each target for a few seconds; docs/fuzzing.md describes longer runs.
#![expect(clippy::expect_used, reason = "a target fails by panicking")]

use axum::http::HeaderValue;
use percent_encoding::percent_decode_str;
use serde::Serialize;
use serde::de::DeserializeOwned;
use shared::domain::assets::asset::{Status, Transitions};
use shared::domain::catalog::custom_fields::{CustomFields, FieldsSchema, Patterns};
use shared::domain::catalog::{AssetKind, TypeCode, Website};
use shared::domain::import::Kind;
use shared::domain::import::parameters::{Mapping, Reading};
use shared::domain::import::suggestion::{Decided, Format, LookedUp, SuggestedColumn, Suggestion};
use shared::domain::keys::api_key::{BearerToken, Credential, LinkToken, Role, Scopes, Secret, Token};
use shared::domain::processes::instance::InstanceStatus;
use shared::domain::processes::movement::AssetIds;
use shared::domain::processes::process::{ProcessStatus, Slug, Steps};
use shared::domain::record::{
    ExpectedVersions, IdempotencyKey, IdempotentRequest, Mismatch, Patch, RecordVersion, entity_tag, if_none_match_contains,
};
use shared::domain::tenants::tenant::{TagPrefix, TagTemplate};
use shared::domain::user::Email;
use shared::domain::values::base62;
use shared::domain::values::field_error::{ErrorLocation, FieldError};
use shared::domain::values::id::{ApiKeyId, AssetId, AssetTypeId, Id, LinkId, TenantId};
use shared::domain::values::json::{parse, parse_strict, private_name};
use shared::domain::values::money::Price;
use shared::domain::values::signature_image::{SignatureImage, data_url, data_url_len};
use shared::domain::values::text::{Line, Name, Notes, SearchText};
use shared::domain::values::time::{Date, Timestamp};
use shared::http::bulk::rows::{MAX_ROWS, parse as parse_rows};
use shared::http::bulk::suggest::survey;
use shared::http::requests::body::{FromBody, FromJson, RateLimit, StepData};
use shared::http::requests::params::{FromQuery, Limit, PageNumber, Params};
use shared::http::responses::ApiError;
use shared::store::{AssetSort, Assignee, Statuses};
use std::fmt::{Debug, Write};
use std::io::Cursor;
use uuid::Uuid;

pub type Target = fn(&[u8]);

/// All targets by name, which is also the name of the folder in `tests/fuzz/corpus`.
pub const TARGETS: &[(&str, Target)] = &[
    ("body", body),
    ("header", header),
    ("import", import),
    ("key", key),
    ("png", png),
    ("query", query),
    ("schema", schema),
    ("tag", tag),
];

#[must_use]
pub fn target(name: &str) -> Option<Target> {
    TARGETS.iter().find(|(candidate, _)| *candidate == name).map(|(_, target)| *target)
}

/// Fuzzes `If-Match`, `If-None-Match` and `Idempotency-Key`: the first line is a header's value, the rest a body.
///
/// A valid list of entity tags stays valid and contains a tag appended to it. A valid idempotency key can be sent as a header,
/// and its fingerprint depends on path and body.
fn header(bytes: &[u8]) {
    let [value, body] = lines(text(bytes));
    let version = RecordVersion { record: Uuid::nil(), number: body.len() as u64 };
    let tag = entity_tag(version, body.as_bytes());
    assert!(HeaderValue::from_str(&tag).is_ok(), "{tag}");

    let expected = ExpectedVersions::parse(value);
    let is_named = if_none_match_contains(value, &tag);
    assert_eq!(expected.is_ok(), is_named.is_ok(), "{value:?}");
    if expected.is_ok() && value.trim() != "*" {
        for longer in [format!("{value},{tag}"), format!("{tag} , {value}")] {
            assert!(ExpectedVersions::parse(&longer).is_ok_and(|expected| expected.check(version).is_ok()), "{longer:?}");
            assert_eq!(if_none_match_contains(&longer, &tag), Ok(true), "{longer:?}");
        }
        let weak = format!("W/{tag}");
        assert!(ExpectedVersions::parse(&weak).is_ok_and(|expected| expected.check(version) == Err(Mismatch::WeakTag)));
    }
    if let Ok(ExpectedVersions::Tags(tags, _)) = expected {
        assert!(tags.len() <= value.len() / 2, "{value:?} has {tags:?}");
    }

    if let Ok(key) = value.parse::<IdempotencyKey>() {
        assert!(HeaderValue::from_str(value).is_ok(), "{value:?} is not a valid header value");
        let api_key = Token::new(TenantId::from_uuid(Uuid::nil()), ApiKeyId::from_uuid(Uuid::nil()), Secret::new([1; 32]));
        let fingerprint = |path: &str, body: &[u8]| IdempotentRequest::new(&api_key, key.clone(), path, body).fingerprint;
        assert_eq!(key.hash().len(), 64);
        assert_eq!(fingerprint("/v1/assets", body.as_bytes()), fingerprint("/v1/assets", body.as_bytes()));
        assert_ne!(fingerprint("/v1/assets", body.as_bytes()), fingerprint("/v1/asset", format!("s{body}").as_bytes()));
    }
}

/// Fuzzes files to import: the first line is `assets`, `users` or `objects`, the rest is the file.
///
/// An import accepts what a suggestion proposes, if the columns that it leaves open are ignored: only columns and rows can be refused.
fn import(bytes: &[u8]) {
    let [what, file] = lines(text(bytes));
    let (kind, format) = match what {
        "assets" => (Kind::Assets, Format::Csv),
        "users" => (Kind::Users, Format::Csv),
        "objects" => (Kind::Assets, Format::Ndjson),
        _ => return,
    };
    let Ok(survey) = survey(file.as_bytes(), format, kind, Decided::default()) else { return };
    let Suggestion { parameters, columns, rows, .. } = survey.suggest(&LookedUp::default());
    // Further columns weren't looked at, and further rows aren't imported.
    if rows > MAX_ROWS || columns.len() >= 200 {
        return;
    }
    let is_open = |column: &&SuggestedColumn| column.field.is_none();
    let ignored: Vec<String> =
        columns.iter().filter(is_open).map(|column| Mapping::of(&column.heading, None).to_string()).collect();
    let given = parameters.iter().map(|(name, value)| (*name, value.as_str()));
    let given: Vec<(&str, &str)> = given.chain(ignored.iter().map(|map| ("map", map.as_str()))).collect();
    let reading = Reading::parse(given.iter().copied()).expect("proposed parameters are valid");
    let matched = given.iter().find(|(name, _)| *name == "match").map(|(_, field)| *field);
    let Err(ApiError::Invalid(errors)) = parse_rows(file.as_bytes(), format, kind, &reading, matched) else { return };
    for error in errors {
        let is_of_parameter = match &error.location {
            // A line that isn't read can be the only one with the member.
            ErrorLocation::Parameter(name) => name != "match" || format == Format::Csv,
            _ => false,
        };
        assert!(!is_of_parameter, "{error:?} for {given:?}");
    }
}

/// Fuzzes API keys, secrets of signing links, IDs and base62 numbers.
///
/// A key that parses is printed unchanged. A key built from the input parses, but not with a changed character.
fn key(bytes: &[u8]) {
    let text = text(bytes);
    parse_token::<ApiKeyId>(text);
    parse_token::<LinkId>(text);
    if let Ok(id) = text.parse::<AssetId>() {
        assert_eq!(id.to_string(), text);
        assert_eq!(AssetId::from_short(&id.short()), Some(id));
    }
    if let Some(id) = AssetId::from_short(text) {
        assert_eq!(id.short(), text);
    }
    if let Some(number) = base62::decode(text) {
        assert_eq!(base62::encode(number, text.len()), text);
    }
    if let Some((raw, rest)) = bytes.split_at_checked(64) {
        let uuid = |at: usize| Uuid::from_slice(&raw[at..at + 16]).expect("16 bytes");
        let secret = Secret::new(raw[32..].try_into().expect("32 bytes"));
        let token = Token::new(TenantId::from_uuid(uuid(0)), ApiKeyId::from_uuid(uuid(16)), secret);
        let text = token.expose();
        assert_eq!(Token::parse(&text), Some(token));
        assert_eq!(LinkToken::parse(&text), None);
        if let [index, character, ..] = *rest
            && character.is_ascii()
        {
            let index = usize::from(index) % text.len();
            let mut changed = text.clone();
            changed.replace_range(index..=index, char::from(character).encode_utf8(&mut [0; 4]));
            assert_eq!(Token::parse(&changed).is_some(), changed == text);
        }
    }
}

fn parse_token<C: Credential>(text: &str) {
    if let Some(token) = BearerToken::<C>::parse(text) {
        assert_eq!(token.expose(), text);
    }
    // Adds the correct checksum, which random input hardly ever has.
    if text.len() == 92 && text.starts_with(C::PREFIX) {
        let text = format!("{text}{}", base62::encode(crc32fast::hash(text.as_bytes()).into(), 6));
        assert_eq!(BearerToken::<C>::parse(&text).map(|token| token.expose()).unwrap_or(text.clone()), text);
    }
}

/// Fuzzes asset tag templates: the three lines are a template, a prefix and a type code.
///
/// Templates and prefixes are printed unchanged, and different numbers give different tags.
fn tag(bytes: &[u8]) {
    let [template_text, prefix_text, code] = lines(text(bytes));
    let prefix = prefix_text.parse::<TagPrefix>().inspect(|prefix| {
        assert_eq!(String::from(prefix.clone()), prefix_text);
        assert_round_trip(prefix);
    });
    let code = code.parse::<TypeCode>().inspect(assert_round_trip);
    let Ok(template) = template_text.parse::<TagTemplate>() else { return };
    assert_eq!(template.to_string(), template_text);
    assert_round_trip(&template);
    let at = Timestamp::from_millis(i64::from(bytes.len() as u32) * 86_400_000);
    let range = template.range(&prefix.unwrap_or_default(), code.as_ref().ok().map(TypeCode::as_str), at);
    let numbers = [0, 1, 9, 10, 999, 1_000, 999_999_999_999, 1_000_000_000_000, u64::MAX];
    let tags = numbers.map(|number| range.tag(number));
    for (index, tag) in tags.iter().enumerate() {
        assert!(!tags[..index].contains(tag), "{tag} occurs twice");
        assert!(tag.chars().count() > range.width() - 1 && !tag.contains(['{', '}']), "{tag}");
    }
    assert_eq!(range.counter().matches("{N}").count(), 1, "{}", range.counter());
}

shared::body! {
    /// A body with a field of each type.
    pub struct EveryField {
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
        /// An ID.
        nullable id: AssetId,
        /// IDs.
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

/// Fuzzes request bodies with a field of each type.
///
/// Every accepted value can be stored, and every error points into the body.
fn body(bytes: &[u8]) {
    let read = match EveryField::read(bytes) {
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
    let EveryField { line, notes, email, website, slug, code, prefix, template, id, time, date, price, fields, schema, .. } =
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
    assert!(!field_error.reason.text.is_empty(), "{field_error:?}");
}

shared::query! {
    /// A query with a parameter of each type.
    pub struct EveryParameter {
        /// A page number.
        page: PageNumber as PageNumber,
        /// A page size.
        limit: Limit as Limit,
        /// Search text.
        q: SearchText as SearchText,
        /// Asset statuses.
        status: Statuses as Statuses,
        /// A user or none.
        assigned_to: Assignee as Assignee,
        /// A time.
        since: Timestamp as Timestamp,
        /// An address.
        email: Email as Email,
        /// A process instance status.
        state: InstanceStatus as InstanceStatus,
        /// An asset kind.
        kind: AssetKind as AssetKind,
        /// An ID.
        asset_id: AssetId as AssetId,
        /// An ID of a different type.
        asset_type_id: AssetTypeId as AssetTypeId,
        /// A date.
        before: Date as Date,
        /// A role.
        role: Role as Role,
        /// A boolean.
        active: bool as bool,
        /// A sort order.
        sort: AssetSort as String,
    }
}

/// Fuzzes query parameters.
///
/// Percent-encoding every character doesn't change the result, and every error names a parameter of the query.
fn query(bytes: &[u8]) {
    let query = text(bytes);
    let read = read_query(query);
    if let Err(ApiError::Malformed(_)) = read {
        return;
    }
    let pairs: Vec<(String, String)> = pairs(query).collect();
    let escaped: Vec<String> = pairs.iter().map(|(name, value)| format!("{}={}", escape(name), escape(value))).collect();
    let again = read_query(&escaped.join("&"));
    match (read, again) {
        (Ok(read), Ok(again)) => assert_eq!(format!("{read:?}"), format!("{again:?}")),
        (Err(ApiError::Invalid(errors)), Err(ApiError::Invalid(again))) => {
            assert_eq!(errors, again);
            for field_error in errors {
                let ErrorLocation::Parameter(parameter) = &field_error.location else { unreachable!("{field_error:?}") };
                assert!(pairs.iter().any(|(name, _)| name == parameter), "{field_error:?}");
            }
        }
        (read, again) => unreachable!("{query:?}: {read:?}, but {again:?}"),
    }
}

fn read_query(query: &str) -> Result<EveryParameter, ApiError> {
    EveryParameter::from_params(Params::parse(query)?)
}

fn pairs(query: &str) -> impl Iterator<Item = (String, String)> {
    let decode = |part: &str| {
        let with_spaces = part.replace('+', " ");
        percent_decode_str(&with_spaces).decode_utf8().expect("a query that was accepted is UTF-8").into_owned()
    };
    query.split('&').filter(|pair| !pair.is_empty()).map(move |pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(name), decode(value))
    })
}

/// Percent-encodes every byte.
fn escape(text: &str) -> String {
    text.bytes().fold(String::new(), |mut escaped, byte| {
        let _ = write!(escaped, "%{byte:02X}");
        escaped
    })
}

/// Fuzzes JSON Schemas of tenants: the first line is a schema, the rest are custom fields to validate.
///
/// An accepted schema can check any custom fields and returns at most 100 errors, all of them within the fields. libFuzzer's
/// `-timeout` catches slow checks.
fn schema(bytes: &[u8]) {
    let [schema, fields] = lines(text(bytes));
    if let Ok(value) = parse_strict(fields, 8) {
        assert_eq!(parse_strict(&value.to_string(), 8), Ok(value));
    }
    assert_stored(schema, fields);
    let fields = CustomFields::from_json(fields);
    if let Ok(fields) = &fields {
        assert_round_trip(fields);
    }
    let Ok(schema) = FieldsSchema::from_json(schema) else { return };
    let again = FieldsSchema::from_json(&String::from(schema.clone()));
    assert_eq!(again.as_ref(), Ok(&schema));
    assert_round_trip(&schema);
    let errors = schema.faults(&fields.unwrap_or_default(), &Patterns::default());
    assert!(errors.len() <= 100, "{} errors", errors.len());
    for fault in errors {
        let field_error = fault.located(None, true);
        let is_within_fields =
            matches!(&field_error.location, ErrorLocation::Pointer(pointer) if pointer.starts_with("/custom_fields"));
        assert!(is_within_fields && field_error.reason.text.chars().count() <= 600, "{field_error:?}");
    }
}

/// Checks that stored values are read as data, and that a schema that would be rejected today can be read.
fn assert_stored(schema: &str, fields: &str) {
    for text in [schema, fields] {
        if let Ok(value) = parse(text) {
            let written = value.to_string();
            assert_eq!(parse(&written).ok(), Some(value), "{written}");
            assert!(private_name(text).is_none() || parse_strict(text, 200).is_err(), "{text}");
        }
    }
    let (Ok(schema), Ok(fields)) = (FieldsSchema::try_from(schema.to_owned()), CustomFields::try_from(fields.to_owned())) else {
        return;
    };
    let errors = schema.faults(&fields, &Patterns::default());
    assert!(errors.len() <= 100, "{} errors", errors.len());
}

/// Fuzzes signature images: data URLs and raw PNG bytes.
///
/// An accepted image keeps its bytes, and is still accepted after another library decodes and encodes it.
fn png(bytes: &[u8]) {
    if let Ok(image) = SignatureImage::from_data_url(text(bytes)) {
        assert_eq!(data_url(image.bytes()), text(bytes));
    }
    for png in [bytes.to_vec(), with_valid_checksums(bytes)] {
        let url = data_url(&png);
        assert_eq!(url.len(), data_url_len(png.len()));
        if let Ok(image) = SignatureImage::from_data_url(&url) {
            assert_eq!(image.bytes(), png);
            assert_eq!(image.hash().len(), 64);
            assert_accepted_after_encoding_again(&png);
        }
    }
}

/// Corrects the checksum of every chunk, because the parser rejects a wrong one before it reads further.
fn with_valid_checksums(bytes: &[u8]) -> Vec<u8> {
    let mut image = bytes.to_vec();
    let mut at = 8;
    while let Some(length) = image.get(at..at + 4).and_then(|length| length.try_into().ok()).map(u32::from_be_bytes) {
        let end = at + 8 + length as usize;
        let Some(checksum) = image.get(at + 4..end).map(crc32fast::hash) else { break };
        let Some(stored) = image.get_mut(end..end + 4) else { break };
        stored.copy_from_slice(&checksum.to_be_bytes());
        at = end + 4;
    }
    image
}

/// Decodes and encodes an accepted image, unless it is large.
fn assert_accepted_after_encoding_again(image: &[u8]) {
    let mut reader = png::Decoder::new(Cursor::new(image)).read_info().expect("an accepted image has a header");
    let info = reader.info();
    let (width, height, color, depth) = (info.width, info.height, info.color_type, info.bit_depth);
    let (palette, transparent) = (info.palette.clone(), info.trns.clone());
    let Some(size) = reader.output_buffer_size().filter(|size| *size <= 1024 * 1024) else { return };
    let mut pixels = vec![0; size];
    reader.next_frame(&mut pixels).expect("an accepted image is decoded");
    let mut written = Vec::new();
    let mut encoder = png::Encoder::new(&mut written, width, height);
    encoder.set_color(color);
    encoder.set_depth(depth);
    if let Some(palette) = palette {
        encoder.set_palette(palette);
    }
    if let Some(transparent) = transparent {
        encoder.set_trns(transparent);
    }
    let mut writer = encoder.write_header().expect("writing a header to memory succeeds");
    writer.write_image_data(&pixels).expect("writing pixels to memory succeeds");
    writer.finish().expect("finishing the image succeeds");
    if written.len() <= 128 * 1024 {
        assert!(
            SignatureImage::from_data_url(&data_url(&written)).is_ok(),
            "an accepted image is rejected after encoding it again"
        );
    }
}

/// Returns the longest UTF-8 prefix. Text parsers only ever get UTF-8.
fn text(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}

/// Splits text into `COUNT` inputs at line breaks. The last input has the rest, and missing inputs are empty.
fn lines<const COUNT: usize>(text: &str) -> [&str; COUNT] {
    let mut lines = text.splitn(COUNT, '\n');
    [(); COUNT].map(|()| lines.next().unwrap_or_default())
}

/// Checks that an accepted value is unchanged after storing and reading it.
fn assert_round_trip<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    let written = serde_json::to_string(value).expect("an accepted value is serialized");
    let read: T = serde_json::from_str(&written).expect("a serialized value is read back");
    assert_eq!(&read, value, "{written}");
}
