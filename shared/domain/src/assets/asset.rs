//! Assets: their fields, chosen tags, statuses and the status transitions that a tenant permits; the rules for creating and
//! changing them; and the values that only lists need: location, model, dates, and the custom fields that lists can filter and
//! sort by.

use crate::assets::csv_cell;
use crate::catalog::custom_fields::{CustomFields, CustomFieldsPatch, Patterns};
use crate::catalog::{AssetKind, AssetType, Manufacturer, Model};
use crate::record::{Kind, Patch, Record, Reference, Stored, Unique, fields, record_change};
use crate::user::User;
use crate::values::field_error::{ErrorCode, FieldError, ValueError, text_form};
use crate::values::id::{AssetId, AssetTypeId, Id, InstanceId, ManufacturerId, ModelId, UserId, short};
use crate::values::json::parse_strict;
use crate::values::money::Price;
use crate::values::natural_order::natural_cmp_folded;
use crate::values::string_enum::string_enum;
use crate::values::text::{Line, Location, Name, Notes, SerialNumber, composed};
use crate::values::time::{Date, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::str::FromStr;

string_enum! {
    /// The status of an asset.
    #[schema(as = AssetStatus)]
    Status {
        /// The default status of a new asset.
        InStock = "in_stock",
        Preparing = "preparing",
        InUse = "in_use",
        InService = "in_service",
        Returned = "returned",
        /// The asset and its history are kept.
        Scrapped = "scrapped",
    }
}

impl Status {
    /// Whether a process that ends with this status clears the asset's assignment.
    pub fn clears_assignment(self) -> bool {
        matches!(self, Self::InStock | Self::Returned | Self::Scrapped)
    }
}

/// Current catalog names, as shown with an asset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogNames {
    pub asset_type: Option<Name>,
    /// The kind of the asset's type; physical if the asset has no type.
    pub kind: AssetKind,
    pub model: Option<Name>,
    /// The name of the model's manufacturer.
    pub manufacturer: Option<Name>,
}

impl CatalogNames {
    pub fn of(
        asset_type: Option<&Stored<AssetType>>,
        model: Option<&Stored<Model>>,
        manufacturer: Option<&Stored<Manufacturer>>,
    ) -> Self {
        Self {
            asset_type: asset_type.map(|stored| stored.value.name.clone()),
            kind: asset_type.map_or(AssetKind::Physical, |stored| stored.value.kind),
            model: model.map(|stored| stored.value.name.clone()),
            manufacturer: manufacturer.map(|stored| stored.value.name.clone()),
        }
    }
}

/// Maximum length in characters of a tag chosen by a client.
const MAX_TAG_CHARS: usize = 64;
/// Maximum length in characters of a tag in an import row, which can be a generated tag.
const MAX_ROW_TAG_CHARS: usize = 512;
const TAG_FORM: &str = "must be 1 to 64 visible ASCII characters without spaces";

/// Tag chosen by the client: 1 to 64 visible ASCII characters. `.` and `..` are reserved: URL normalization removes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, min_length = 1, max_length = 64, pattern = "^[!-~]{1,64}$", examples("INV-0143"))]
pub struct AssetTag(String);

impl FromStr for AssetTag {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let tag = Self(text.trim().to_owned());
        tag.check_new().map(|()| tag)
    }
}

impl AssetTag {
    pub(crate) fn check_new(&self) -> Result<(), ValueError> {
        let fits = (1..=MAX_TAG_CHARS).contains(&self.0.len()) && self.0.bytes().all(|byte| byte.is_ascii_graphic());
        match self.0.as_str() {
            "." | ".." => {
                let text = "must not be . or .., which URLs can't contain as a path segment";
                Err(ValueError::form(text))
            }
            _ if fits => Ok(()),
            _ => Err(ValueError::form(TAG_FORM)),
        }
    }
}

text_form!(AssetTag, |tag| tag.0);

impl Deref for AssetTag {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// Asset tag in an import row. Unlike a new tag, it can have any characters, because the row can refer to an existing asset with
/// a generated tag.
#[derive(Debug, Clone, PartialEq, Eq, utoipa::ToSchema)]
#[schema(value_type = String)]
pub struct RowTag(pub AssetTag);

impl FromStr for RowTag {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        match composed(text.trim()).into_owned() {
            text if (1..=MAX_ROW_TAG_CHARS).contains(&text.chars().count()) => Ok(Self(AssetTag(text))),
            _ => Err(ValueError::form(TAG_FORM)),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Asset {
    pub id: AssetId,
    /// Generated from the tenant's template, unless the client chose one. Never changes.
    pub asset_tag: String,
    pub name: Name,
    pub status: Status,
    /// The asset's type. With a model, this is the model's type.
    #[serde(default, with = "short", skip_serializing_if = "Option::is_none")]
    pub asset_type_id: Option<AssetTypeId>,
    #[serde(default, with = "short", skip_serializing_if = "Option::is_none")]
    pub model_id: Option<ModelId>,
    /// The model's manufacturer, copied so that the manufacturer's name can be read without reading the model first. The copy
    /// can't go stale: the manufacturer of a model in use can't change.
    #[serde(default, with = "short", skip_serializing_if = "Option::is_none")]
    pub manufacturer_id: Option<ManufacturerId>,
    /// Free text, or the manufacturer's name at the time the model was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manufacturer: Option<Line>,
    /// Free text, or the model's name at the time the model was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Line>,
    #[serde(flatten)]
    pub details: AssetDetails,
    #[serde(default, with = "short", skip_serializing_if = "Option::is_none")]
    pub assigned_to: Option<UserId>,
    /// First day of the assignment, as claimed by an import. In the history, the assignment can start later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assigned_since: Option<Date>,
    /// Time of the last scan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen_at: Option<Timestamp>,
    /// Time of the last change of the status; `None` if the status never changed. Derived from the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_changed_at: Option<Timestamp>,
    /// Number of versions that only record a scan. `If-Match` ignores them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub scans: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<Notes>,
    pub custom_fields: CustomFields,
    #[serde(default, with = "short", skip_serializing_if = "Option::is_none")]
    pub running_instance_id: Option<InstanceId>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Asset {
    /// Returns the unique value for a tag. Tags are case-insensitive.
    pub fn unique_tag(tag: &str) -> Unique {
        Unique { field: "asset_tag", value: tag.to_ascii_uppercase(), reserved_after_deletion: true }
    }

    /// Assigns the asset. If the user changes, drops `assigned_since`, which belongs to the previous assignment.
    pub fn reassign(&mut self, user: Option<UserId>) {
        if self.assigned_to != user {
            (self.assigned_to, self.assigned_since) = (user, None);
        }
    }

    /// Returns a reference to the model. The asset copies the model's manufacturer and type, so the reference fails if either
    /// changed after the model was read.
    fn model_reference(&self, id: ModelId) -> Reference {
        let copied = Model::requirements(self.manufacturer_id, self.asset_type_id);
        copied.into_iter().fold(Reference::new("model_id", Kind::Model, id.uuid()), Reference::requiring)
    }
}

impl Record for Asset {
    const KIND: Kind = Kind::Asset;
    const PERSONAL_FIELDS: &'static [&'static str] = &["notes"];
    type Id = AssetId;

    fn id(&self) -> AssetId {
        self.id
    }

    fn history_fields(&self) -> Map<String, Value> {
        let Self {
            id: _,
            asset_tag,
            name,
            status,
            asset_type_id,
            model_id,
            manufacturer_id: _,
            manufacturer,
            model,
            details,
            assigned_to,
            assigned_since,
            last_seen_at,
            status_changed_at: _,
            scans: _,
            notes,
            custom_fields,
            running_instance_id,
        } = self;
        let before = fields([
            ("asset_tag", json!(asset_tag)),
            ("name", json!(name)),
            ("status", json!(status)),
            ("asset_type_id", json!(asset_type_id)),
            ("model_id", json!(model_id)),
            ("manufacturer", json!(manufacturer)),
            ("model", json!(model)),
        ]);
        let after = fields([
            ("assigned_to", json!(assigned_to)),
            ("assigned_since", json!(assigned_since)),
            ("last_seen_at", json!(last_seen_at)),
            ("notes", json!(notes)),
            ("custom_fields", Value::Object(custom_fields.as_map().clone())),
            ("running_instance_id", json!(running_instance_id)),
        ]);
        let details = details.history_fields().map(|(field, value)| (field.to_owned(), value));
        before.into_iter().chain(details).chain(after).collect()
    }

    /// Hides two fields, so that scanning the asset, and starting or cancelling a process instance, don't change `updated_at`.
    fn is_shown(field: &str) -> bool {
        !matches!(field, "running_instance_id" | "last_seen_at")
    }

    fn uncounted_versions(&self) -> u64 {
        self.scans
    }

    fn stamp(&mut self, before: &Self, at: Timestamp) {
        if self.status != before.status {
            self.status_changed_at = Some(at);
        }
    }

    fn listed(&self) -> Option<String> {
        ListedFields::of(self).into_text()
    }

    fn unique(&self) -> Vec<Unique> {
        vec![Self::unique_tag(&self.asset_tag)]
    }

    fn references(&self) -> Vec<Reference> {
        let asset_type = self.asset_type_id.map(|id| Reference::new("asset_type_id", Kind::AssetType, id.uuid()));
        let user = self.assigned_to.map(|id| User::reference("assigned_to", id));
        [asset_type, self.model_id.map(|id| self.model_reference(id)), user].into_iter().flatten().collect()
    }
}

/// Permitted next statuses of an asset in a PATCH, by current status. An asset whose status has no entry can change to any other
/// status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
pub struct Transitions(BTreeMap<Status, BTreeSet<Status>>);

impl Transitions {
    /// Returns the permitted next statuses; `None` permits all.
    pub fn from(&self, status: Status) -> Option<&BTreeSet<Status>> {
        self.0.get(&status)
    }

    /// Parses an object that maps a status to a list of statuses.
    ///
    /// # Errors
    ///
    /// Returns a [`ValueError`] when the text is anything else.
    pub fn from_json(text: &str) -> Result<Self, ValueError> {
        serde_json::from_value(parse_strict(text, 2)?).map(Self).map_err(|_| {
            let statuses = Status::ALL.iter().map(|status| status.as_str()).collect::<Vec<_>>().join(", ");
            ValueError::new(format!(
                "must be null or an object that maps an asset status to the list of statuses it can change to, each one of {statuses}"
            ))
        })
    }
}

/// Fields without special rules.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssetDetails {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial_number: Option<SerialNumber>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purchase_date: Option<Date>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purchase_price: Option<Price>,
    /// The last day of the warranty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warranty_until: Option<Date>,
}

record_change! {
    AssetDetailsChange of pub AssetDetails::with {
        set_or_clear serial_number: SerialNumber,
        set_or_clear location: Location,
        set_or_clear purchase_date: Date,
        set_or_clear purchase_price: Price,
        set_or_clear warranty_until: Date,
    }
}

impl AssetDetailsChange {
    /// Drops fields that already have the same value in `current`.
    #[must_use]
    pub fn unless(self, current: &AssetDetails) -> Self {
        let Self { serial_number, location, purchase_date, purchase_price, warranty_until } = self;
        Self {
            serial_number: serial_number.unless(current.serial_number.as_ref()),
            location: location.unless(current.location.as_ref()),
            purchase_date: purchase_date.unless(current.purchase_date.as_ref()),
            purchase_price: purchase_price.unless(current.purchase_price.as_ref()),
            warranty_until: warranty_until.unless(current.warranty_until.as_ref()),
        }
    }
}

impl AssetDetails {
    fn history_fields(&self) -> impl Iterator<Item = (&'static str, Value)> {
        let Self { serial_number, location, purchase_date, purchase_price, warranty_until } = self;
        [
            ("serial_number", json!(serial_number)),
            ("location", json!(location)),
            ("purchase_date", json!(purchase_date)),
            // Store the price as text: canonical JSON (RFC 8785 §3.2.2.3) would round a number to a double.
            ("purchase_price", json!(purchase_price)),
            ("warranty_until", json!(warranty_until)),
        ]
        .into_iter()
    }
}

record_change! {
    AssetChange of pub Asset::with_plain_fields {
        set name: Name,
        set status: Status,
        set_or_clear manufacturer: Line,
        set_or_clear model: Line,
        set_or_clear notes: Notes,
    } and {
        /// For a new asset. If null, the service generates a tag.
        pub asset_tag: Patch<AssetTag>,
        pub details: AssetDetailsChange,
        pub asset_type_id: Patch<AssetTypeId>,
        pub model_id: Patch<ModelId>,
        pub assigned_to: Patch<UserId>,
        /// First day of the assignment, as claimed by an import. Not later than today.
        pub assigned_since: Patch<Date>,
        pub custom_fields: Patch<CustomFields>,
        /// Applied after `custom_fields`.
        pub custom_fields_patch: Option<CustomFieldsPatch>,
        /// Errors already found in the request, to be reported together with the errors in these fields.
        pub errors: Vec<FieldError>,
    }
}

/// Records that a change refers to; `None` for a record that the tenant doesn't have.
#[derive(Debug, Clone, Default)]
pub struct AssetReferences {
    pub asset_type: Option<Stored<AssetType>>,
    /// The model that the change sets.
    pub model: Option<Stored<Model>>,
    pub manufacturer: Option<Stored<Manufacturer>>,
    pub user: Option<Stored<User>>,
}

#[derive(Debug, thiserror::Error)]
pub enum AssetChangeError {
    /// All errors in the fields.
    #[error("{} fields are invalid", .0.len())]
    Invalid(Vec<FieldError>),
    /// The tenant's settings don't permit this status change.
    #[error("an asset's status can't change from {from} to {to}")]
    Transition { from: Status, to: Status, allowed: Vec<Status> },
    /// Status and assignment can't change while this process instance is in progress on the asset. Contains the fields that would
    /// change.
    #[error("a process is in progress on the asset")]
    Running(InstanceId, Vec<&'static str>),
}

fn fixed_by_model(field: &str, text: &str) -> FieldError {
    FieldError::field(field, ValueError::coded(ErrorCode::FixedByModel, text))
}

fn unknown(field: &str, text: &str) -> FieldError {
    FieldError::field(field, ValueError::coded(ErrorCode::UnknownReference, text))
}

impl AssetChange {
    /// Applies `custom_fields_patch` to the request's custom fields, or to the current ones if the request has none.
    fn with_single_fields(&self, current: &CustomFields) -> Self {
        let mut change = self.clone();
        if let Some(patch) = &self.custom_fields_patch {
            let whole = change.custom_fields.clone().or(Some(current.clone())).unwrap_or_default();
            match patch.applied_to(&whole) {
                Ok(fields) => change.custom_fields = Patch::Value(fields),
                Err(error) => change.errors.push(FieldError::field("custom_fields_patch", error)),
            }
        }
        change
    }

    /// Drops unchanged fields, so clients can send back everything they read, even an inactive user or texts filled in from the
    /// model. Numbers are compared by value.
    fn without_unchanged(&self, asset: &Asset) -> Self {
        let mut change = self.with_single_fields(&asset.custom_fields);
        let fields = Some(asset.custom_fields.clone()).filter(|fields| !fields.as_map().is_empty());
        change.asset_type_id = change.asset_type_id.unless(asset.asset_type_id.as_ref());
        change.model_id = change.model_id.unless(asset.model_id.as_ref());
        change.manufacturer = change.manufacturer.unless(asset.manufacturer.as_ref());
        change.model = change.model.unless(asset.model.as_ref());
        change.assigned_to = change.assigned_to.unless(asset.assigned_to.as_ref());
        change.details = change.details.unless(&asset.details);
        change.custom_fields = match change.custom_fields {
            Patch::Value(fields) => match fields.in_form_of(&asset.custom_fields) {
                fields if fields == asset.custom_fields => Patch::Absent,
                fields => Patch::Value(fields),
            },
            fields_change => fields_change.unless(fields.as_ref()),
        };
        change
    }

    pub fn next_type(&self, current: Option<&Asset>, model: Option<&Model>) -> Option<AssetTypeId> {
        match model {
            Some(model) => Some(model.asset_type_id),
            None => self.asset_type_id.clone().or(current.and_then(|asset| asset.asset_type_id)),
        }
    }

    pub fn needs_type(&self) -> bool {
        let sets_fields = !self.custom_fields.is_absent() || self.custom_fields_patch.is_some();
        sets_fields || !(self.asset_type_id.is_absent() && self.model_id.is_absent())
    }

    /// Returns the errors already found in the request, and the errors that don't depend on the referenced records.
    fn errors_without_references(&self, current: Option<&Asset>) -> Vec<FieldError> {
        let mut errors = self.errors.clone();
        let keeps_tag = |asset: &Asset| self.asset_tag.value().is_some_and(|tag| tag.eq_ignore_ascii_case(&asset.asset_tag));
        if !self.asset_tag.is_absent() && current.is_some_and(|asset| !keeps_tag(asset)) {
            errors.push(FieldError::field("asset_tag", "is read-only and can't change"));
        }
        if let (Some(tag), None) = (self.asset_tag.value(), current)
            && let Err(error) = tag.check_new()
        {
            errors.push(FieldError::field("asset_tag", error));
        }
        let texts = [("manufacturer", &self.manufacturer), ("model", &self.model)];
        if self.model_id.value().is_some() {
            for (field, _) in texts.iter().filter(|(_, text)| text.value().is_some()) {
                errors.push(fixed_by_model(field, "must not be sent together with model_id, which fills it in"));
            }
        } else if self.model_id.is_absent() && current.is_some_and(|asset| asset.model_id.is_some()) {
            for (field, _) in texts.iter().filter(|(_, text)| !text.is_absent()) {
                errors.push(fixed_by_model(field, "is filled in by the asset's model; to set it, set model_id to null"));
            }
            if !self.asset_type_id.is_absent() && self.asset_type_id.value().copied() != current.and_then(|a| a.asset_type_id) {
                errors.push(fixed_by_model("asset_type_id", "differs from the type of the asset's model"));
            }
        }
        errors
    }

    fn contradicts_type_of(&self, model: &Model) -> bool {
        self.asset_type_id.value().is_some_and(|asset_type| *asset_type != model.asset_type_id)
    }
}

impl Asset {
    /// Creates an asset. Its tag stays empty unless the change sets one.
    ///
    /// # Errors
    ///
    /// Returns [`AssetChangeError::Invalid`] with all invalid fields.
    pub fn create(
        id: AssetId,
        name: Name,
        change: &AssetChange,
        references: &AssetReferences,
        patterns: &Patterns,
    ) -> Result<Self, AssetChangeError> {
        let blank = Self {
            id,
            asset_tag: change.asset_tag.value().map(|tag| tag.to_string()).unwrap_or_default(),
            name,
            status: Status::InStock,
            asset_type_id: None,
            model_id: None,
            manufacturer_id: None,
            manufacturer: None,
            model: None,
            details: AssetDetails::default(),
            assigned_to: None,
            assigned_since: None,
            last_seen_at: None,
            status_changed_at: None,
            scans: 0,
            notes: None,
            custom_fields: CustomFields::default(),
            running_instance_id: None,
        };
        let sets_all_fields = !change.custom_fields.is_absent();
        let change = &change.with_single_fields(&blank.custom_fields);
        // The type's schema applies to a new asset even if the request has no custom fields.
        blank.apply(change, references, patterns, change.errors_without_references(None), (true, sets_all_fields))
    }

    /// Returns the asset with the change applied.
    ///
    /// # Errors
    ///
    /// Returns [`AssetChangeError::Invalid`] with all invalid fields, [`AssetChangeError::Running`] if the status or assignment
    /// would change while a process instance is in progress, and [`AssetChangeError::Transition`] if `transitions` don't permit
    /// the status change.
    pub fn changed(
        &self,
        change: &AssetChange,
        references: &AssetReferences,
        patterns: &Patterns,
        transitions: Option<&Transitions>,
    ) -> Result<Self, AssetChangeError> {
        let sets_all_fields = !change.custom_fields.is_absent();
        let change = &change.without_unchanged(self);
        let errors = change.errors_without_references(Some(self));
        let next = self.apply(change, references, patterns, errors, (false, sets_all_fields))?;
        if let Some(running) = self.running_instance_id {
            let held = [("status", next.status != self.status), ("assigned_to", next.assigned_to != self.assigned_to)];
            let held: Vec<_> = held.into_iter().filter_map(|(field, changes)| changes.then_some(field)).collect();
            if !held.is_empty() {
                return Err(AssetChangeError::Running(running, held));
            }
        }
        if next.status != self.status
            && let Some(allowed) = transitions.and_then(|t| t.from(self.status))
            && !allowed.contains(&next.status)
        {
            return Err(AssetChangeError::Transition {
                from: self.status,
                to: next.status,
                allowed: allowed.iter().copied().collect(),
            });
        }
        Ok(next)
    }

    fn apply(
        &self,
        change: &AssetChange,
        references: &AssetReferences,
        patterns: &Patterns,
        mut errors: Vec<FieldError>,
        (is_new, sets_all_fields): (bool, bool),
    ) -> Result<Self, AssetChangeError> {
        let mut next = self.with_plain_fields(change);
        next.details = next.details.with(&change.details);
        next.custom_fields = change.custom_fields.clone().or(Some(next.custom_fields)).unwrap_or_default();
        next.link_catalog(change, references, &mut errors);
        next.assign(&change.assigned_to, references.user.as_ref(), &mut errors);
        next.claim(&change.assigned_since, &mut errors);
        // If the patch couldn't be read, its fields would seem to be missing.
        let is_read = !errors.iter().any(|error| error.is_at("custom_fields_patch"));
        if is_read
            && (is_new || !change.custom_fields.is_absent() || next.asset_type_id != self.asset_type_id)
            && let Some(asset_type) = &references.asset_type
            && let Some(schema) = &asset_type.value.custom_fields_schema
        {
            let faults = schema.faults(&next.custom_fields, patterns);
            errors.extend(faults.iter().map(|fault| fault.located(change.custom_fields_patch.as_ref(), sets_all_fields)));
        }
        if errors.is_empty() { Ok(next) } else { Err(AssetChangeError::Invalid(errors)) }
    }

    fn link_catalog(&mut self, change: &AssetChange, references: &AssetReferences, errors: &mut Vec<FieldError>) {
        match (&change.model_id, &references.model) {
            (Patch::Absent, _) => self.asset_type_id = change.asset_type_id.clone().or(self.asset_type_id),
            (Patch::Null, _) => {
                (self.model_id, self.manufacturer_id) = (None, None);
                self.asset_type_id = change.asset_type_id.clone().or(self.asset_type_id);
            }
            (Patch::Value(_), None) => errors.push(unknown("model_id", "is not the ID of a model of this tenant")),
            (Patch::Value(id), Some(model)) => {
                let model = &model.value;
                if change.contradicts_type_of(model) {
                    errors.push(fixed_by_model("asset_type_id", "differs from the type of the model"));
                }
                let manufacturer = references.manufacturer.as_ref();
                self.model_id = Some(*id);
                self.manufacturer_id = Some(model.manufacturer_id);
                self.asset_type_id = Some(model.asset_type_id);
                let line = |name: &Name| Line::from_stored(String::from(name.clone()));
                self.manufacturer = manufacturer.map(|manufacturer| line(&manufacturer.value.name));
                self.model = Some(line(&model.name));
            }
        }
        // A type that differs from the model's already has an error, even if the type doesn't exist.
        let has_error = references.model.as_ref().is_some_and(|model| change.contradicts_type_of(&model.value));
        if let Some(id) = change.asset_type_id.value()
            && !has_error
            && references.asset_type.as_ref().is_none_or(|asset_type| asset_type.value.id != *id)
        {
            errors.push(unknown("asset_type_id", "is not the ID of an asset type of this tenant"));
        }
    }

    fn assign(&mut self, assigned_to: &Patch<UserId>, user: Option<&Stored<User>>, errors: &mut Vec<FieldError>) {
        match (assigned_to, user) {
            (Patch::Absent, _) => {}
            (Patch::Null, _) => self.reassign(None),
            (Patch::Value(id), Some(user)) if user.value.is_active => self.reassign(Some(*id)),
            (Patch::Value(_), Some(_)) => errors.push(unknown("assigned_to", "is the ID of an inactive user")),
            (Patch::Value(_), None) => errors.push(unknown("assigned_to", "is not the ID of a user of this tenant")),
        }
    }

    fn claim(&mut self, since: &Patch<Date>, errors: &mut Vec<FieldError>) {
        match since {
            Patch::Absent => {}
            Patch::Null => self.assigned_since = None,
            Patch::Value(_) if self.assigned_to.is_none() => {
                if !errors.iter().any(|error| error.is_about("assigned_to")) {
                    errors.push(FieldError::field("assigned_since", "requires the asset to be assigned to a user"));
                }
            }
            Patch::Value(since) => self.assigned_since = Some(*since),
        }
    }
}

/// Length of a date, `YYYY-MM-DD`.
const DATE_CHARS: usize = 10;
/// The name of the field with the time of the last change of the status.
pub const STATUS_CHANGED_AT: &str = "status_changed_at";
/// Prefix of custom fields in column and parameter names.
pub const CUSTOM_FIELD: &str = "custom_fields.";
/// Maximum number of custom fields per asset in lists, the first by name. Further fields are [`Cell::Unfit`].
pub const MAX_LISTED_FIELDS: usize = 20;
/// Maximum length of a custom field in lists, in characters. A longer field is [`Cell::Unfit`].
pub const MAX_CELL_CHARS: usize = 200;
/// Maximum number of unfit fields per asset whose names are stored, to reject requests that use these fields. For further unfit
/// fields, see [`ListedCustomFields::unfit_after`].
const MAX_UNFIT_NAMES: usize = 20;

/// A custom field's value in lists.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// A JSON number, as a double like stored numbers. Compared by value, and sorted before texts.
    Number(f64),
    Text(Box<str>),
    /// A value that lists can't use: not a scalar, too long, or beyond [`MAX_LISTED_FIELDS`].
    Unfit,
}

impl Cell {
    /// Converts a custom field's value; `None` for null.
    pub fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Null => None,
            // Adding zero turns -0 into 0, as in the history.
            Value::Number(number) => Some(number.as_f64().map_or(Self::Unfit, |number| Self::Number(number + 0.0))),
            Value::Array(_) | Value::Object(_) => Some(Self::Unfit),
            Value::Bool(_) | Value::String(_) => {
                let text = csv_cell::value_text(value);
                let is_long = text.chars().nth(MAX_CELL_CHARS).is_some();
                Some(if is_long { Self::Unfit } else { Self::Text(text.into()) })
            }
        }
    }

    /// Returns the value as exported; numbers in their shortest form.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        match self {
            Self::Number(number) => csv_cell::number_text(*number).into(),
            Self::Text(text) => (&**text).into(),
            Self::Unfit => "".into(),
        }
    }

    /// Compares numbers by value, and texts in case-insensitive natural order. Numbers come first.
    pub fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => a.total_cmp(b),
            (Self::Text(a), Self::Text(b)) => natural_cmp_folded(a, b),
            (a, b) => a.rank().cmp(&b.rank()),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Number(_) => 0,
            Self::Text(_) => 1,
            Self::Unfit => 2,
        }
    }
}

/// A bound of a range of custom field values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CellBound {
    Number(f64),
    Day(Date),
}

impl CellBound {
    /// Compares a value with the bound; `None` if the value is not a number or not a date, as the bound is. A text with the form
    /// of a JSON number counts as a number, because its exported cell is the same.
    fn compare(self, cell: &Cell) -> Option<Ordering> {
        match (self, cell) {
            (Self::Number(bound), Cell::Number(number)) => number.partial_cmp(&bound),
            (Self::Number(bound), Cell::Text(text)) => {
                let number: serde_json::Number = text.parse().ok()?;
                number.as_f64()?.partial_cmp(&bound)
            }
            // A longer or shorter text is no date.
            (Self::Day(bound), Cell::Text(text)) if text.len() == DATE_CHARS => Some(text.parse::<Date>().ok()?.cmp(&bound)),
            _ => None,
        }
    }
}

/// A range of custom field values. At least one bound is set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CellRange {
    /// Inclusive.
    pub from: Option<CellBound>,
    /// Exclusive.
    pub before: Option<CellBound>,
}

impl CellRange {
    pub fn contains(&self, cell: &Cell) -> bool {
        self.from.is_none_or(|from| from.compare(cell).is_some_and(Ordering::is_ge))
            && self.before.is_none_or(|before| before.compare(cell) == Some(Ordering::Less))
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ListedCustomFields {
    /// Sorted by name. Includes the unfit fields that lists can't filter or sort by.
    pub cells: Vec<(String, Cell)>,
    /// The name of the last field before the first field omitted from `cells`; `None` if no field is omitted. Any field with a
    /// later name can be unfit.
    pub unfit_after: Option<String>,
}

impl ListedCustomFields {
    pub fn of(fields: &Map<String, Value>) -> Self {
        let by_name: BTreeMap<&String, Cell> = fields.iter().filter_map(|(name, value)| Some((name, Cell::of(value)?))).collect();
        let (mut listed, mut fitting, mut unfit) = (Self::default(), 0, 0);
        for (name, cell) in by_name {
            let fits = cell != Cell::Unfit && fitting < MAX_LISTED_FIELDS;
            if !fits && unfit == MAX_UNFIT_NAMES {
                if listed.unfit_after.is_none() {
                    listed.unfit_after = listed.cells.last().map(|(last, _)| last.clone());
                }
                continue;
            }
            *(if fits { &mut fitting } else { &mut unfit }) += 1;
            listed.cells.push((name.clone(), if fits { cell } else { Cell::Unfit }));
        }
        listed
    }
}

/// Values of an asset that only lists need. The secondary index `list_index` has room for only a few attributes, and custom
/// fields can take up to 32 KiB, so these values are stored together, in one string.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ListedFields {
    /// Texts by field: `location`, `model`, `purchase_date`, `last_seen_at`, `status_changed_at`.
    pub texts: Vec<(&'static str, String)>,
    pub custom_fields: ListedCustomFields,
}

/// Stored as JSON. Names are short because every asset repeats them.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ListedText {
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    location: Option<String>,
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    purchase_date: Option<String>,
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    last_seen_at: Option<String>,
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    status_changed_at: Option<String>,
    #[serde(rename = "f", default, skip_serializing_if = "BTreeMap::is_empty")]
    custom_fields: BTreeMap<String, Scalar>,
    #[serde(rename = "u", default, skip_serializing_if = "Vec::is_empty")]
    unfit: Vec<String>,
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    unfit_after: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Scalar {
    Number(f64),
    Text(Box<str>),
}

impl ListedFields {
    pub fn of(asset: &Asset) -> Self {
        let text = |field, value: Option<String>| value.map(|value| (field, value));
        let texts = [
            text("location", asset.details.location.as_deref().map(str::to_owned)),
            text("model", asset.model.as_deref().map(str::to_owned)),
            text("purchase_date", asset.details.purchase_date.map(String::from)),
            text("last_seen_at", asset.last_seen_at.map(String::from)),
            text(STATUS_CHANGED_AT, asset.status_changed_at.map(String::from)),
        ];
        let custom_fields = ListedCustomFields::of(asset.custom_fields.as_map());
        Self { texts: texts.into_iter().flatten().collect(), custom_fields }
    }

    /// Returns the stored text; `None` if there are no values.
    pub fn into_text(self) -> Option<String> {
        let Self { texts, custom_fields: ListedCustomFields { cells, unfit_after } } = self;
        if texts.is_empty() && cells.is_empty() {
            return None;
        }
        let mut text = ListedText { unfit_after, ..ListedText::default() };
        for (field, value) in texts {
            match field {
                "location" => text.location = Some(value),
                "model" => text.model = Some(value),
                "purchase_date" => text.purchase_date = Some(value),
                STATUS_CHANGED_AT => text.status_changed_at = Some(value),
                _ => text.last_seen_at = Some(value),
            }
        }
        for (name, cell) in cells {
            match cell {
                Cell::Number(number) => drop(text.custom_fields.insert(name, Scalar::Number(number))),
                Cell::Text(value) => drop(text.custom_fields.insert(name, Scalar::Text(value))),
                Cell::Unfit => text.unfit.push(name),
            }
        }
        serde_json::to_string(&text).ok()
    }

    pub fn from_text(text: &str) -> Option<Self> {
        let text: ListedText = serde_json::from_str(text).ok()?;
        let ListedText { location, model, purchase_date, last_seen_at, status_changed_at, custom_fields, unfit, unfit_after } =
            text;
        let texts = [
            ("location", location),
            ("model", model),
            ("purchase_date", purchase_date),
            ("last_seen_at", last_seen_at),
            (STATUS_CHANGED_AT, status_changed_at),
        ];
        let cell = |scalar| match scalar {
            Scalar::Number(number) => Cell::Number(number),
            Scalar::Text(text) => Cell::Text(text),
        };
        let fitting = custom_fields.into_iter().map(|(name, scalar)| (name, cell(scalar)));
        let mut cells: Vec<_> = fitting.chain(unfit.into_iter().map(|name| (name, Cell::Unfit))).collect();
        cells.sort_by(|(a, _), (b, _)| a.cmp(b));
        let texts = texts.into_iter().filter_map(|(field, value)| Some((field, value?))).collect();
        Some(Self { texts, custom_fields: ListedCustomFields { cells, unfit_after } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::time::{Date, Timestamp};
    use proptest::prelude::*;
    use serde_json::json;

    fn asset(change: &AssetChange) -> Asset {
        let id = AssetId::new(Timestamp::from_millis(0), [0; 10]);
        let name = "x".parse().expect("a name");
        Asset::create(id, name, change, &AssetReferences::default(), &Patterns::default()).expect("acceptable")
    }

    fn patched(asset: &Asset, change: &AssetChange) -> Asset {
        asset.changed(change, &AssetReferences::default(), &Patterns::default(), None).expect("acceptable")
    }

    fn patch<T: Clone + std::fmt::Debug + 'static>(value: impl Strategy<Value = T> + 'static) -> impl Strategy<Value = Patch<T>> {
        prop_oneof![Just(Patch::Absent).boxed(), Just(Patch::Null).boxed(), value.prop_map(Patch::Value).boxed()]
    }

    fn lines<T: FromStr<Err = ValueError> + Clone + std::fmt::Debug + 'static>() -> impl Strategy<Value = Patch<T>> {
        patch("[a-z]{0,3}".prop_map(|text| text.parse().expect("a line")))
    }

    prop_compose! {
        fn changes()(
            manufacturer in lines(), model in lines(), serial_number in lines(),
            notes in patch("[a-z]{0,3}".prop_map(|text| text.parse().expect("notes"))),
            warranty_until in patch(Just("2028-01-01".parse::<Date>().expect("a date"))),
            status in proptest::option::of(proptest::sample::select(Status::ALL)),
        ) -> AssetChange {
            let details = AssetDetailsChange { serial_number, warranty_until, ..AssetDetailsChange::default() };
            AssetChange { manufacturer, model, details, notes, status, ..AssetChange::default() }
        }
    }

    proptest! {
        #[test]
        fn a_patch_changes_its_fields_and_nothing_else(before in changes(), change in changes()) {
            let old = asset(&before);
            let new = patched(&old, &change);
            prop_assert_eq!(&new.manufacturer, &change.manufacturer.clone().or(old.manufacturer.clone()));
            prop_assert_eq!(&new.model, &change.model.clone().or(old.model.clone()));
            let (old_serial, old_warranty) = (old.details.serial_number.clone(), old.details.warranty_until);
            prop_assert_eq!(&new.details.serial_number, &change.details.serial_number.clone().or(old_serial));
            prop_assert_eq!(new.details.warranty_until, change.details.warranty_until.clone().or(old_warranty));
            prop_assert_eq!(&new.notes, &change.notes.clone().or(old.notes.clone()));
            prop_assert_eq!(new.status, change.status.unwrap_or(old.status));
            prop_assert_eq!((&new.name, new.id, &new.asset_tag, &new.custom_fields), (&old.name, old.id, &old.asset_tag, &old.custom_fields));
            prop_assert_eq!(patched(&new, &change), new.clone(), "applying a patch twice changes nothing more");
        }
    }

    fn of(value: Value) -> ListedCustomFields {
        ListedCustomFields::of(value.as_object().expect("an object"))
    }

    fn names(listed: &ListedCustomFields, is_fit: bool) -> Vec<&str> {
        listed.cells.iter().filter(|(_, cell)| (*cell != Cell::Unfit) == is_fit).map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn scalars_are_known_by_their_exported_cell_and_others_are_unfit() {
        let listed =
            of(json!({"c": true, "a": 1.0, "b": "", "n": null, "l": [1], "o": {}, "t": "x".repeat(201), "x": "y".repeat(200)}));
        assert_eq!((names(&listed, true), names(&listed, false)), (vec!["a", "b", "c", "x"], vec!["l", "o", "t"]));
        let texts: Vec<_> = listed.cells.iter().take(3).map(|(_, cell)| cell.text().into_owned()).collect();
        assert_eq!(texts, ["1", "\"\"", "true"]);
        assert_eq!(listed.unfit_after, None);
    }

    #[test]
    fn the_first_twenty_by_name_are_known_and_no_other_is_forgotten() {
        let fields = |count| Value::Object((0..count).map(|n| (format!("f{n:03}"), json!(n))).collect());
        let listed = of(fields(30));
        assert_eq!((names(&listed, true).len(), names(&listed, false).len()), (20, 10));
        assert_eq!(names(&listed, false).first(), Some(&"f020"));
        let many = of(fields(500));
        assert_eq!((names(&many, false).len(), many.unfit_after.as_deref()), (20, Some("f039")));
        // The names of further fields are not stored, because names can be long.
        assert!(
            ListedFields { custom_fields: many, ..ListedFields::default() }.into_text().is_some_and(|text| text.len() < 1_000)
        );
    }

    #[test]
    fn the_text_is_read_as_it_was_written() {
        let custom_fields = of(json!({"a": 1.5, "b": "ß\"", "c": [1], "d": 9_007_199_254_740_992_u64, "e": -0.0}));
        let texts = vec![("location", "A / B".into()), ("last_seen_at", "x".into()), (STATUS_CHANGED_AT, "y".into())];
        let listed = ListedFields { texts, custom_fields };
        let text = listed.clone().into_text().expect("a text");
        assert_eq!(ListedFields::from_text(&text), Some(listed));
        assert_eq!((ListedFields::default().into_text(), ListedFields::from_text("[")), (None, None));
    }

    /// Histories store numbers in the form of RFC 8785; records store them as sent.
    #[test]
    fn other_forms_of_a_number_are_the_same_cell() {
        for (sent, stored) in [("1.0", "1"), ("1e3", "1000"), ("0.10", "0.1"), ("1E-7", "1e-7")] {
            let cell = |text: &str| Cell::of(&serde_json::from_str(text).expect(text));
            assert_eq!(cell(sent), cell(stored), "{sent}");
            assert_eq!(cell(sent).map(|cell| cell.text().into_owned()).as_deref(), Some(stored));
        }
    }

    #[test]
    fn numbers_sort_by_value_and_before_texts() {
        let values = [json!(-1), json!(2), json!(10.5), json!("1"), json!("Room 9"), json!("room 10"), json!([])];
        let cells: Vec<Cell> = values.iter().filter_map(Cell::of).collect();
        assert!(cells.is_sorted_by(|a, b| a.compare(b) == Ordering::Less), "{cells:?}");
    }

    #[test]
    fn only_a_different_status_has_a_new_time() {
        let (stock, at) = (asset(&AssetChange::default()), Timestamp::from_millis(5));
        let stamped = |status, at: Timestamp, before: &Asset| {
            let mut next = Asset { status, ..before.clone() };
            next.stamp(before, at);
            next
        };
        assert_eq!(stamped(Status::InStock, at, &stock).status_changed_at, None);
        let used = stamped(Status::InUse, at, &stock);
        assert_eq!(used.status_changed_at, Some(at));
        assert_eq!(stamped(Status::InUse, at.plus_seconds(1), &used).status_changed_at, Some(at));
    }

    #[test]
    fn a_tag_is_visible_and_short() {
        let longest = "x".repeat(64);
        for text in ["1", "...", ".a", "INV/0143#b", " padded ", &longest] {
            assert_eq!(text.parse::<AssetTag>().as_deref(), Ok(text.trim()));
        }
        for text in [".", " .. ", "two words", "Ä1", "a\u{7f}", &"x".repeat(65)] {
            let RowTag(tag) = text.parse().expect(text);
            assert!(text.parse::<AssetTag>().is_err() && tag.check_new().is_err(), "{text:?}");
        }
        for text in ["", " "] {
            assert!(text.parse::<AssetTag>().is_err() && text.parse::<RowTag>().is_err(), "{text:?}");
        }
    }
}
