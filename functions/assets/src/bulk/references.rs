//! Names that people use instead of ids: codes of asset types, names of models, e-mail addresses of users, and asset tags.

use shared::domain::assets::asset::Asset;
use shared::domain::catalog::{AssetType, Manufacturer, Model};
use shared::domain::record::Unique;
use shared::domain::user::User;
use shared::domain::values::field_error::FieldError;
use shared::domain::values::id::{AssetId, AssetTypeId, Id, ModelId, UserId};
use shared::domain::values::suggestions::nearest_first;
use shared::domain::values::time::Timestamp;
use shared::fields::compared::name_key;
use shared::store::{StoreError, TenantStore};
use std::collections::{BTreeSet, HashMap};

/// The similar names that an error lists, and the names of the catalog among which they are looked for.
const MAX_SIMILAR: usize = 3;
const MAX_COMPARED: usize = 1_000;

#[derive(Debug, Default)]
pub(crate) struct NamesInRows {
    pub(crate) type_codes: BTreeSet<String>,
    /// E-mail addresses, folded.
    pub(crate) emails: BTreeSet<String>,
    /// Asset tags in the form in which they are compared: two keys of one read can't be the same.
    pub(crate) tags: BTreeSet<String>,
    pub(crate) has_models: bool,
}

#[derive(Debug, Default)]
pub(crate) struct NamedRecords {
    types: HashMap<String, AssetTypeId>,
    users: HashMap<String, UserId>,
    assets: HashMap<String, TagOwner>,
    catalog: HashMap<String, ManufacturerModels>,
}

/// The asset with a tag.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TagOwner {
    Asset(AssetId),
    /// It was deleted then.
    Deleted(Timestamp),
}

/// A manufacturer with its models. Those of manufacturers whose names are compared as equal are together.
#[derive(Debug, Default)]
struct ManufacturerModels {
    name: String,
    /// Each with its name, by the name as it is compared.
    models: HashMap<String, Vec<(ModelId, String)>>,
}

fn unique(field: &'static str, values: &BTreeSet<String>) -> Vec<Unique> {
    values.iter().map(|value| Unique { field, value: value.clone(), reserved_after_deletion: false }).collect()
}

impl NamedRecords {
    /// Takes one round trip, and another one for asset tags; for models it reads the whole catalog, which is small.
    pub(crate) async fn read(store: &TenantStore, names: &NamesInRows) -> Result<Self, StoreError> {
        let (codes, emails, tags) =
            (unique("code", &names.type_codes), unique("email", &names.emails), unique("asset_tag", &names.tags));
        let catalog = async { if names.has_models { models_by_name(store).await } else { Ok(HashMap::new()) } };
        let (types, users, owners, catalog) = tokio::try_join!(
            store.owners::<AssetType>(&codes),
            store.owners::<User>(&emails),
            store.owners::<Asset>(&tags),
            catalog
        )?;
        let deletions = store.deletions::<Asset>(owners.values().copied()).await?;
        let owner = |(tag, id): (String, AssetId)| {
            (tag, deletions.get(&id.uuid()).map_or(TagOwner::Asset(id), |at| TagOwner::Deleted(*at)))
        };
        Ok(Self { types, users, assets: owners.into_iter().map(owner).collect(), catalog })
    }

    pub(crate) fn asset_type(&self, code: &str) -> Option<AssetTypeId> {
        self.types.get(code).copied()
    }

    pub(crate) fn user(&self, email: &str) -> Option<UserId> {
        self.users.get(email).copied()
    }

    pub(crate) fn asset(&self, tag: &str) -> Option<TagOwner> {
        self.assets.get(&Asset::unique_tag(tag).value).copied()
    }

    /// The only model with this name of the manufacturer with this name.
    pub(crate) fn model(&self, manufacturer: &str, model: &str) -> Result<ModelId, FieldError> {
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

/// `; similar: ThinkPad T14`, nothing if there are no names.
fn similar<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = names.take(MAX_COMPARED).collect();
    names.sort_unstable();
    let nearest: Vec<&str> = nearest_first(name, names).into_iter().take(MAX_SIMILAR).collect();
    if nearest.is_empty() { String::new() } else { format!("; similar: {}", nearest.join(", ")) }
}

async fn models_by_name(store: &TenantStore) -> Result<HashMap<String, ManufacturerModels>, StoreError> {
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
