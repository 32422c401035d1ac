//! Names that people use instead of ids: codes of asset types, names of models, e-mail addresses of users, and asset tags.

use shared::domain::assets::asset::Asset;
use shared::domain::catalog::{AssetType, Manufacturer, Model};
use shared::domain::record::Unique;
use shared::domain::user::User;
use shared::domain::values::id::{AssetId, AssetTypeId, ModelId, UserId};
use shared::domain::values::text::fold;
use shared::store::{StoreError, TenantStore};
use std::collections::{BTreeSet, HashMap};

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
    assets: HashMap<String, AssetId>,
    /// By manufacturer and model, both folded.
    models: HashMap<(String, String), Vec<ModelId>>,
}

fn unique(field: &'static str, values: &BTreeSet<String>) -> Vec<Unique> {
    values.iter().map(|value| Unique { field, value: value.clone(), reserved_after_deletion: false }).collect()
}

impl NamedRecords {
    /// Takes one round trip; for models it reads the whole catalog, which is small.
    pub(crate) async fn read(store: &TenantStore, names: &NamesInRows) -> Result<Self, StoreError> {
        let (codes, emails, tags) =
            (unique("code", &names.type_codes), unique("email", &names.emails), unique("asset_tag", &names.tags));
        let models = async { if names.has_models { models_by_name(store).await } else { Ok(HashMap::new()) } };
        let (types, users, assets, models) = tokio::try_join!(
            store.owners::<AssetType>(&codes),
            store.owners::<User>(&emails),
            store.owners::<Asset>(&tags),
            models
        )?;
        Ok(Self { types, users, assets, models })
    }

    pub(crate) fn asset_type(&self, code: &str) -> Option<AssetTypeId> {
        self.types.get(code).copied()
    }

    pub(crate) fn user(&self, email: &str) -> Option<UserId> {
        self.users.get(email).copied()
    }

    pub(crate) fn asset(&self, tag: &str) -> Option<AssetId> {
        self.assets.get(&Asset::unique_tag(tag).value).copied()
    }

    /// The only model with this name of the manufacturer with this name, or the number of such models.
    pub(crate) fn model(&self, manufacturer: &str, model: &str) -> Result<ModelId, usize> {
        match self.models.get(&(fold(manufacturer), fold(model))).map(Vec::as_slice) {
            Some([model]) => Ok(*model),
            several => Err(several.map_or(0, <[_]>::len)),
        }
    }
}

async fn models_by_name(store: &TenantStore) -> Result<HashMap<(String, String), Vec<ModelId>>, StoreError> {
    let (manufacturers, models) =
        tokio::try_join!(store.all_without_blobs::<Manufacturer>(), store.all_without_blobs::<Model>())?;
    let names: HashMap<_, _> = manufacturers.iter().map(|stored| (stored.value.id, fold(&stored.value.name))).collect();
    let mut by_name: HashMap<(String, String), Vec<ModelId>> = HashMap::new();
    for model in models {
        if let Some(manufacturer) = names.get(&model.value.manufacturer_id) {
            by_name.entry((manufacturer.clone(), fold(&model.value.name))).or_default().push(model.value.id);
        }
    }
    Ok(by_name)
}
