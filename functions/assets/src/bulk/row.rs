//! A row of an import: an asset's fields, with names in place of IDs, such as codes of asset types and users' e-mail addresses.

use crate::changes::{Action, AssetWrite, Target, tag_of_deleted};
use shared::domain::assets::asset::{Asset, AssetChange, AssetDetailsChange, RowTag, STATUS_CHANGED_AT, Status};
use shared::domain::catalog::custom_fields::CustomFields;
use shared::domain::catalog::{AssetType, Manufacturer, Model, TypeCode};
use shared::domain::record::{Patch, Unique};
use shared::domain::user::{Email, User};
use shared::domain::values::field_error::{FieldError, nearest_first};
use shared::domain::values::id::{AssetId, AssetTypeId, Id, ModelId, UserId};
use shared::domain::values::text::{Line, Name, Notes};
use shared::domain::values::time::{Date, Timestamp};
use shared::fields::compared::name_key;
use shared::fields::serial_number;
use shared::http::bulk::import::AssetMatch;
use shared::http::bulk::rows::Row;
use shared::store::{Reader, StoreError};
use std::collections::{BTreeSet, HashMap};

/// Maximum number of similar names in an error.
const MAX_SIMILAR: usize = 3;
/// Maximum number of catalog names to compare; an error suggests none of the others.
const MAX_COMPARED: usize = 1_000;

shared::body! {
    /// A row of an import.
    pub struct AssetRow {
        /// Display name.
        optional name: Name,
        /// Tag of a new asset. An existing asset's tag can't change.
        nullable asset_tag: RowTag,
        /// Status.
        optional status: Status,
        /// Asset type.
        nullable asset_type_id: AssetTypeId,
        /// Code of the asset type.
        nullable asset_type_code: TypeCode,
        /// Catalog model.
        nullable model_id: ModelId,
        /// Name of the catalog model's manufacturer.
        nullable manufacturer_name: Name,
        /// Name of the catalog model.
        nullable model_name: Name,
        /// Free text.
        nullable manufacturer: Line,
        /// Free text.
        nullable model: Line,
        group details: AssetDetailsChange,
        /// Assigned user.
        nullable assigned_to: UserId,
        /// E-mail address of the assigned user.
        nullable assigned_to_email: Email,
        /// Display name of the assigned user.
        nullable assigned_to_name: Line,
        /// First day of the assignment, not later than today.
        nullable assigned_since: Date,
        /// Internal notes.
        nullable notes: Notes,
        /// All custom field values.
        nullable custom_fields: CustomFields,
    }
    unchanged: &["id", "last_seen_at", "status_changed_at", "created_at", "updated_at"]
}

/// The cells of a row, before its names are looked up.
pub(crate) struct AssetRowCells {
    row: Row,
    fields: Option<AssetRow>,
    errors: Vec<FieldError>,
}

impl AssetRowCells {
    pub(crate) fn new(row: Row, now: Timestamp) -> Self {
        let (fields, mut errors) = row.read::<AssetRow>();
        let since = fields.as_ref().and_then(|fields| fields.assigned_since.value());
        if since.is_some_and(|since| since.to_string() > now.date().to_string()) {
            errors.push(FieldError::column("assigned_since", format!("must not be later than today, {}", now.date())));
        }
        Self { row, fields, errors }
    }

    pub(crate) fn add_names(&self, matching: AssetMatch, names: &mut NamesInRows) {
        let Some(fields) = &self.fields else { return };
        names.type_codes.extend(fields.asset_type_code.value().map(|code| code.as_str().to_owned()));
        names.emails.extend(fields.assigned_to_email.value().map(Email::folded));
        names.people.extend(fields.assigned_to_name.value().map(|name| name.to_string()));
        names.has_models |= fields.model_name.value().is_some();
        if matching == AssetMatch::AssetTag {
            names.tags.extend(self.row.text("asset_tag").map(|tag| Asset::unique_tag(tag.trim()).value));
        }
    }

    /// Returns `None` if the serial number is empty or invalid.
    fn serial(&self) -> Option<&str> {
        let serial = self.fields.as_ref()?.details.serial_number.value()?;
        Some(&**serial).filter(|serial| !serial.is_empty())
    }

    pub(crate) fn into_action(self, matching: AssetMatch, create_unmatched: bool, named: &NamedRecords) -> (Target, Action) {
        let target = self.target(matching, create_unmatched, named);
        let Self { row, fields, mut errors } = self;
        let Some(fields) = fields else { return (Target::New, Action::Refuse(errors)) };
        let target = match target {
            Ok(target) => target,
            Err(error) => {
                errors.push(error);
                Target::New
            }
        };
        let named_columns = [
            (fields.asset_type_code.value().is_some(), ("asset_type_id", "asset_type_code")),
            (fields.assigned_to_email.value().is_some(), ("assigned_to", "assigned_to_email")),
            (fields.assigned_to_name.value().is_some(), ("assigned_to", "assigned_to_name")),
            (fields.model_name.value().is_some(), ("model_id", "model_name")),
        ];
        let named_columns = named_columns.into_iter().filter_map(|(is_named, columns)| is_named.then_some(columns)).collect();
        let asset_type_id = either(
            (fields.asset_type_id, "asset_type_code"),
            fields.asset_type_code,
            |code| {
                let detail = "is not the code of an asset type of this tenant";
                named.asset_type(code.as_str()).ok_or_else(|| FieldError::column("asset_type_code", detail))
            },
            &mut errors,
        );
        let assigned_to = either(
            (fields.assigned_to, "assigned_to_email"),
            fields.assigned_to_email,
            |email| {
                let detail = "is not the e-mail address of a user of this tenant";
                named.user(&email.folded()).ok_or_else(|| FieldError::column("assigned_to_email", detail))
            },
            &mut errors,
        );
        let assigned_to = either(
            (assigned_to, "assigned_to_name"),
            fields.assigned_to_name,
            |name| named.person(name).map_err(|detail| FieldError::column("assigned_to_name", detail)),
            &mut errors,
        );
        let model_name = match (fields.manufacturer_name, fields.model_name) {
            (Patch::Value(manufacturer), Patch::Value(model)) => Patch::Value((manufacturer, model)),
            (Patch::Absent, Patch::Absent) => Patch::Absent,
            (Patch::Null, Patch::Null) => Patch::Null,
            _ => {
                errors.push(FieldError::column("model_name", "must be sent together with manufacturer_name"));
                Patch::Absent
            }
        };
        let find_model = |(manufacturer, model): &(Name, Name)| named.model(manufacturer, model);
        let model_id = either((fields.model_id, "model_name"), model_name, find_model, &mut errors);
        let mut custom_fields = fields.custom_fields;
        if !row.custom_fields.is_empty() {
            if !custom_fields.is_absent() {
                errors.push(FieldError::column("custom_fields", "must not be sent together with individual custom fields"));
            }
            // Makes sure the asset type is read: its schema defines the types of the cells.
            custom_fields = Patch::Value(CustomFields::default());
        }
        let change = AssetChange {
            name: fields.name,
            asset_tag: match fields.asset_tag {
                Patch::Value(RowTag(tag)) => Patch::Value(tag),
                Patch::Null => Patch::Null,
                Patch::Absent => Patch::Absent,
            },
            status: fields.status,
            asset_type_id,
            model_id,
            manufacturer: fields.manufacturer,
            model: fields.model,
            details: fields.details,
            assigned_to,
            assigned_since: fields.assigned_since,
            notes: fields.notes,
            custom_fields,
            custom_fields_patch: None,
            errors,
        };
        // Only `updated_at` guards a row: a row exported before a change of the status can still change other fields.
        let unchanged = fields.unchanged.accepting_earlier(STATUS_CHANGED_AT);
        let custom_fields = row.custom_fields;
        let write = AssetWrite { change, custom_fields, unchanged, named_columns, is_imported: true };
        (target, Action::Write(Box::new(write)))
    }

    fn target(&self, matching: AssetMatch, create_unmatched: bool, named: &NamedRecords) -> Result<Target, FieldError> {
        match matching {
            AssetMatch::None => Ok(Target::New),
            AssetMatch::SerialNumber => match self.serial() {
                None => Ok(Target::New),
                Some(serial) => match serial_number::fault(serial) {
                    Some(fault) => Err(FieldError::column("serial_number", fault)),
                    None => Ok(Target::Serial(serial_number::key(serial))),
                },
            },
            AssetMatch::Id => match self.row.text("id") {
                None => Ok(Target::New),
                Some(id) => {
                    id.parse().map(Target::Id).map_err(|_| FieldError::column("id", "is not the ID of an asset of this tenant"))
                }
            },
            AssetMatch::AssetTag => match self.row.text("asset_tag") {
                None => Ok(Target::New),
                Some(tag) => match named.asset(tag.trim()) {
                    Some(TagOwner::Asset(id)) => Ok(Target::Id(id)),
                    Some(TagOwner::Deleted(at)) => Err(FieldError::column("asset_tag", tag_of_deleted(at))),
                    None if create_unmatched => Ok(Target::New),
                    None => {
                        let detail = "is not the tag of an asset of this tenant; with create_unmatched=true, the row creates it";
                        Err(FieldError::column("asset_tag", detail))
                    }
                },
            },
        }
    }
}

/// Combines a reference by ID with a reference by name. If a row has both references, they must agree.
fn either<I: PartialEq + Copy, N>(
    (by_id, name_column): (Patch<I>, &str),
    by_name: Patch<N>,
    find: impl Fn(&N) -> Result<I, FieldError>,
    errors: &mut Vec<FieldError>,
) -> Patch<I> {
    let by_name = match by_name {
        Patch::Absent => return by_id,
        Patch::Null => Patch::Null,
        Patch::Value(name) => match find(&name) {
            Ok(id) => Patch::Value(id),
            Err(error) => {
                errors.push(error);
                return by_id;
            }
        },
    };
    if !by_id.is_absent() && by_id != by_name {
        errors.push(FieldError::column(name_column, "conflicts with the ID column"));
    }
    by_name
}

#[derive(Debug, Default)]
pub(crate) struct NamesInRows {
    type_codes: BTreeSet<String>,
    /// Folded.
    pub(crate) emails: BTreeSet<String>,
    /// Display names of users.
    pub(crate) people: BTreeSet<String>,
    /// Normalized asset tags, because a batch read must not contain a key twice.
    tags: BTreeSet<String>,
    has_models: bool,
}

#[derive(Debug, Default)]
pub(crate) struct NamedRecords {
    types: HashMap<String, AssetTypeId>,
    users: HashMap<String, UserId>,
    /// By display name, or why it isn't the name of one user.
    people: HashMap<String, Result<UserId, String>>,
    assets: HashMap<String, TagOwner>,
    catalog: HashMap<String, ManufacturerModels>,
}

#[derive(Debug, Clone, Copy)]
enum TagOwner {
    Asset(AssetId),
    Deleted(Timestamp),
}

/// Manufacturers with equivalent names are merged.
#[derive(Debug, Default)]
struct ManufacturerModels {
    name: String,
    /// IDs and names of the models, by compared name.
    models: HashMap<String, Vec<(ModelId, String)>>,
}

pub(crate) fn unique(field: &'static str, values: &BTreeSet<String>) -> Vec<Unique> {
    values.iter().map(|value| Unique { field, value: value.clone(), reserved_after_deletion: false }).collect()
}

impl NamedRecords {
    /// Reads the named records in one round trip, or two if there are asset tags. Models need the whole catalog, which is small.
    pub(crate) async fn read(store: &Reader, names: &NamesInRows) -> Result<Self, StoreError> {
        let (codes, emails, tags) =
            (unique("code", &names.type_codes), unique("email", &names.emails), unique("asset_tag", &names.tags));
        let catalog = async { if names.has_models { models_by_name(store).await } else { Ok(HashMap::new()) } };
        let (types, users, people, owners, catalog) = tokio::try_join!(
            store.owners::<AssetType>(&codes),
            store.owners::<User>(&emails),
            store.users_called(&names.people),
            store.owners::<Asset>(&tags),
            catalog
        )?;
        let deletions = store.deletions::<Asset>(owners.values().copied()).await?;
        let owner = |(tag, id): (String, AssetId)| {
            (tag, deletions.get(&id.uuid()).map_or(TagOwner::Asset(id), |at| TagOwner::Deleted(*at)))
        };
        Ok(Self { types, users, people, assets: owners.into_iter().map(owner).collect(), catalog })
    }

    fn asset_type(&self, code: &str) -> Option<AssetTypeId> {
        self.types.get(code).copied()
    }

    fn user(&self, email: &str) -> Option<UserId> {
        self.users.get(email).copied()
    }

    fn person(&self, name: &str) -> Result<UserId, String> {
        self.people.get(name).cloned().unwrap_or_else(|| Err("is not the name of a user".to_owned()))
    }

    fn asset(&self, tag: &str) -> Option<TagOwner> {
        self.assets.get(&Asset::unique_tag(tag).value).copied()
    }

    fn model(&self, manufacturer: &str, model: &str) -> Result<ModelId, FieldError> {
        let Some(found) = self.catalog.get(&name_key(manufacturer)) else {
            let names = self.catalog.values().map(|other| other.name.as_str());
            let detail = format!("is not the name of a manufacturer in the catalog{}", similar(manufacturer, names));
            return Err(FieldError::column("manufacturer_name", detail));
        };
        match found.models.get(&name_key(model)).map(Vec::as_slice) {
            Some([(id, _)]) => Ok(*id),
            Some(several) => {
                let detail = format!("is the name of {} models of this manufacturer; send model_id", several.len());
                Err(FieldError::column("model_name", detail))
            }
            None => {
                let names = found.models.values().flatten().map(|(_, name)| name.as_str());
                let detail = format!("is not the name of a model of {} in the catalog{}", found.name, similar(model, names));
                Err(FieldError::column("model_name", detail))
            }
        }
    }
}

/// Returns a suffix such as `; similar: ThinkPad T14`, or an empty text if no name is similar.
fn similar<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = names.take(MAX_COMPARED).collect();
    names.sort_unstable();
    let nearest: Vec<&str> = nearest_first(name, names).into_iter().take(MAX_SIMILAR).collect();
    if nearest.is_empty() { String::new() } else { format!("; similar: {}", nearest.join(", ")) }
}

async fn models_by_name(store: &Reader) -> Result<HashMap<String, ManufacturerModels>, StoreError> {
    let (manufacturers, models) =
        tokio::try_join!(store.all_without_blobs::<Manufacturer>(), store.all_without_blobs::<Model>())?;
    let keys: HashMap<_, _> = manufacturers.iter().map(|stored| (stored.value.id, name_key(&stored.value.name))).collect();
    let mut catalog: HashMap<String, ManufacturerModels> = HashMap::new();
    for manufacturer in manufacturers {
        let key = name_key(&manufacturer.value.name);
        catalog.entry(key).or_default().name = manufacturer.value.name.into();
    }
    for model in models {
        if let Some(manufacturer) = keys.get(&model.value.manufacturer_id).and_then(|key| catalog.get_mut(key)) {
            let name = String::from(model.value.name);
            manufacturer.models.entry(name_key(&name)).or_default().push((model.value.id, name));
        }
    }
    Ok(catalog)
}
