//! An asset and what may become of it (interface 2.1, contract 6).

use super::catalog::{AssetType, Manufacturer, Model};
use super::custom_fields::{CustomFields, Schemas};
use super::id::{AssetId, AssetTypeId, Id, ManufacturerId, ModelId, UserId, short};
use super::money::Price;
use super::record::{Kind, Patch, Record, Reference, Stored, Unique};
use super::refusal::{Fault, Refusal};
use super::scope::words;
use super::tenant::Transitions;
use super::text::{Line, Name, Notes};
use super::time::Date;
use super::user::User;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

words! {
    /// Where an asset stands (interface 3.1).
    Status, "in_stock, preparing, in_use, in_service, returned, scrapped", {
        /// In Stock: where a new asset begins.
        InStock = "in_stock",
        /// Preparing.
        Preparing = "preparing",
        /// In Use.
        InUse = "in_use",
        /// In Service.
        InService = "in_service",
        /// Returned.
        Returned = "returned",
        /// Scrapped: gone, but its history stays.
        Scrapped = "scrapped",
    }
}

/// An asset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Asset {
    /// Which one.
    pub id: AssetId,
    /// Given once, by the tenant's template; never changes.
    pub asset_tag: String,
    /// What it is called.
    pub name: Name,
    /// Where it stands.
    pub status: Status,
    /// What kind of thing it is; the model's type, when there is a model.
    #[serde(default, with = "short", skip_serializing_if = "Option::is_none")]
    pub asset_type_id: Option<AssetTypeId>,
    /// The product that it is an instance of.
    #[serde(default, with = "short", skip_serializing_if = "Option::is_none")]
    pub model_id: Option<ModelId>,
    /// The model's manufacturer, so that its name needs no read of the model first. A model in use keeps it.
    #[serde(default, with = "short", skip_serializing_if = "Option::is_none")]
    pub manufacturer_id: Option<ManufacturerId>,
    /// Free text, or the manufacturer's name when the model was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manufacturer: Option<Line>,
    /// Free text, or the model's name when it was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Line>,
    /// The maker's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial_number: Option<Line>,
    /// When it was bought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purchase_date: Option<Date>,
    /// What it cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purchase_price: Option<Price>,
    /// The last day of its warranty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warranty_until: Option<Date>,
    /// Who has it.
    #[serde(default, with = "short", skip_serializing_if = "Option::is_none")]
    pub assigned_to: Option<UserId>,
    /// For the tenant's own eyes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<Notes>,
    /// What the tenant adds.
    #[serde(default)]
    pub custom_fields: CustomFields,
}

/// What a POST or a PATCH says of each field.
#[derive(Debug, Clone, Default)]
#[expect(missing_docs, reason = "the fields of an asset")]
pub struct AssetChange {
    pub name: Option<Name>,
    pub status: Option<Status>,
    pub asset_type_id: Patch<AssetTypeId>,
    pub model_id: Patch<ModelId>,
    pub manufacturer: Patch<Line>,
    pub model: Patch<Line>,
    pub serial_number: Patch<Line>,
    pub purchase_date: Patch<Date>,
    pub purchase_price: Patch<Price>,
    pub warranty_until: Patch<Date>,
    pub assigned_to: Patch<UserId>,
    pub notes: Patch<Notes>,
    pub custom_fields: Patch<CustomFields>,
}

/// What is known of the things that a change refers to; `None` where there is no such thing in the tenant.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// The type that the asset has afterwards.
    pub asset_type: Option<Stored<AssetType>>,
    /// The model that the change names.
    pub model: Option<Stored<Model>>,
    /// That model's manufacturer.
    pub manufacturer: Option<Stored<Manufacturer>>,
    /// The user that the change names.
    pub user: Option<Stored<User>>,
}

/// Why an asset can't be changed so.
#[derive(Debug, thiserror::Error)]
pub enum AssetRefusal {
    /// Parts of the request are not acceptable; all of them.
    #[error("{} parts were refused", .0.len())]
    Faults(Vec<Fault>),
    /// The tenant does not permit this move.
    #[error("an asset that is {from} may not become {to}")]
    Transition {
        /// The present status.
        from: Status,
        /// The status asked for.
        to: Status,
        /// What it may become.
        allowed: Vec<Status>,
    },
    /// A stored schema does not compile.
    #[error("stored schema")]
    Schema(#[from] Refusal),
}

impl AssetChange {
    /// Which type the asset has afterwards, if `model` (the one that the change names) is known.
    #[must_use]
    pub fn next_type(&self, present: Option<&Asset>, model: Option<&Model>) -> Option<AssetTypeId> {
        match model {
            Some(model) => Some(model.asset_type_id),
            None => self.asset_type_id.clone().or(present.and_then(|asset| asset.asset_type_id)),
        }
    }

    /// Whether the change speaks of a field whose check needs more than the asset.
    #[must_use]
    pub fn needs_type(&self) -> bool {
        !(self.asset_type_id.is_absent() && self.model_id.is_absent() && self.custom_fields.is_absent())
    }

    /// The faults that show without knowing any other asset or catalog entry.
    fn contradictions(&self, present: Option<&Asset>) -> Vec<Fault> {
        let mut faults = Vec::new();
        let texts = [("manufacturer", &self.manufacturer), ("model", &self.model)];
        if self.model_id.value().is_some() {
            for (field, _) in texts.iter().filter(|(_, text)| text.value().is_some()) {
                faults.push(Fault::field(field, "must not be sent together with model_id, which fills it in"));
            }
        } else if self.model_id.is_absent() && present.is_some_and(|asset| asset.model_id.is_some()) {
            for (field, _) in texts.iter().filter(|(_, text)| !text.is_absent()) {
                faults.push(Fault::field(field, "comes from the asset's model; set model_id to null to write it yourself"));
            }
            if !self.asset_type_id.is_absent() && self.asset_type_id.value().copied() != present.and_then(|a| a.asset_type_id) {
                faults.push(Fault::field("asset_type_id", "differs from the type of the asset's model"));
            }
        }
        faults
    }
}

impl Asset {
    /// A new asset, still without its tag.
    ///
    /// # Errors
    ///
    /// [`AssetRefusal::Faults`] with everything that is wrong.
    pub fn create(id: AssetId, name: Name, change: &AssetChange, found: &Found, schemas: &Schemas) -> Result<Self, AssetRefusal> {
        let blank = Self {
            id,
            asset_tag: String::new(),
            name,
            status: Status::InStock,
            asset_type_id: None,
            model_id: None,
            manufacturer_id: None,
            manufacturer: None,
            model: None,
            serial_number: None,
            purchase_date: None,
            purchase_price: None,
            warranty_until: None,
            assigned_to: None,
            notes: None,
            custom_fields: CustomFields::default(),
        };
        let faults = change.contradictions(None);
        // A type's schema binds a new asset whether or not it brings custom fields.
        blank.apply(change, found, schemas, faults, true)
    }

    /// The asset as `change` makes it.
    ///
    /// # Errors
    ///
    /// Everything that is wrong at once, or the move of status that the tenant does not permit.
    pub fn changed(
        &self,
        change: &AssetChange,
        found: &Found,
        schemas: &Schemas,
        transitions: Option<&Transitions>,
    ) -> Result<Self, AssetRefusal> {
        let faults = change.contradictions(Some(self));
        let next = self.apply(change, found, schemas, faults, false)?;
        if next.status != self.status
            && let Some(allowed) = transitions.and_then(|t| t.from(self.status))
            && !allowed.contains(&next.status)
        {
            return Err(AssetRefusal::Transition {
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
        found: &Found,
        schemas: &Schemas,
        mut faults: Vec<Fault>,
        is_new: bool,
    ) -> Result<Self, AssetRefusal> {
        let change = change.clone();
        let mut next = self.clone();
        next.name = change.name.unwrap_or(next.name);
        next.status = change.status.unwrap_or(next.status);
        next.serial_number = change.serial_number.or(next.serial_number);
        next.purchase_date = change.purchase_date.or(next.purchase_date);
        next.purchase_price = change.purchase_price.or(next.purchase_price);
        next.warranty_until = change.warranty_until.or(next.warranty_until);
        next.notes = change.notes.or(next.notes);
        let fields_change = !change.custom_fields.is_absent();
        next.custom_fields = change.custom_fields.or(Some(next.custom_fields)).unwrap_or_default();
        next.manufacturer = change.manufacturer.or(next.manufacturer);
        next.model = change.model.or(next.model);

        match (&change.model_id, &found.model) {
            (Patch::Absent, _) => next.asset_type_id = change.asset_type_id.clone().or(next.asset_type_id),
            (Patch::Null, _) => {
                (next.model_id, next.manufacturer_id) = (None, None);
                next.asset_type_id = change.asset_type_id.clone().or(next.asset_type_id);
            }
            (Patch::Value(_), None) => faults.push(Fault::field("model_id", "names no model of this tenant")),
            (Patch::Value(id), Some(model)) => {
                let model = &model.value;
                if change.asset_type_id.value().is_some_and(|wanted| *wanted != model.asset_type_id) {
                    faults.push(Fault::field("asset_type_id", "differs from the type of the model"));
                }
                next.model_id = Some(*id);
                next.manufacturer_id = Some(model.manufacturer_id);
                next.asset_type_id = Some(model.asset_type_id);
                next.manufacturer = found.manufacturer.as_ref().and_then(|maker| maker.value.name.parse().ok());
                next.model = model.name.parse().ok();
            }
        }
        let asset_type = found.asset_type.as_ref().filter(|found| Some(found.value.id) == next.asset_type_id);
        if change.asset_type_id.value().is_some_and(|wanted| Some(*wanted) == next.asset_type_id) && asset_type.is_none() {
            faults.push(Fault::field("asset_type_id", "names no asset type of this tenant"));
        }
        match (&change.assigned_to, &found.user) {
            (Patch::Absent, _) => {}
            (Patch::Null, _) => next.assigned_to = None,
            (Patch::Value(id), Some(user)) if user.value.is_active => next.assigned_to = Some(*id),
            (Patch::Value(_), Some(_)) => faults.push(Fault::field("assigned_to", "names a user who is not active")),
            (Patch::Value(_), None) => faults.push(Fault::field("assigned_to", "names no user of this tenant")),
        }
        if (is_new || fields_change || next.asset_type_id != self.asset_type_id)
            && let Some(asset_type) = asset_type
            && let Some(schema) = &asset_type.value.custom_fields_schema
        {
            faults.extend(schemas.faults(asset_type.value.id.uuid(), asset_type.version, schema, &next.custom_fields)?);
        }
        if faults.is_empty() { Ok(next) } else { Err(AssetRefusal::Faults(faults)) }
    }
}

impl Record for Asset {
    const KIND: Kind = Kind::Asset;
    type Id = AssetId;

    fn id(&self) -> AssetId {
        self.id
    }

    fn audit(&self) -> Map<String, Value> {
        let fields = [
            ("asset_tag", json!(self.asset_tag)),
            ("name", json!(self.name)),
            ("status", json!(self.status)),
            ("asset_type_id", json!(self.asset_type_id)),
            ("model_id", json!(self.model_id)),
            ("manufacturer", json!(self.manufacturer)),
            ("model", json!(self.model)),
            ("serial_number", json!(self.serial_number)),
            ("purchase_date", json!(self.purchase_date)),
            // As text: the canonical form (RFC 8785 §3.2.2.3) would round a number to a double.
            ("purchase_price", json!(self.purchase_price)),
            ("warranty_until", json!(self.warranty_until)),
            ("assigned_to", json!(self.assigned_to)),
            ("notes", json!(self.notes)),
            ("custom_fields", Value::Object(self.custom_fields.as_map().clone())),
        ];
        fields.into_iter().map(|(field, value)| (field.to_owned(), value)).collect()
    }

    fn unique(&self) -> Vec<Unique> {
        vec![Unique { field: "asset_tag", value: self.asset_tag.clone(), kept: true }]
    }

    fn references(&self) -> Vec<Reference> {
        let reference = |field, kind, id: Option<uuid::Uuid>| id.map(|id| Reference { field, kind, id });
        [
            reference("asset_type_id", Kind::AssetType, self.asset_type_id.map(Id::uuid)),
            reference("model_id", Kind::Model, self.model_id.map(Id::uuid)),
            reference("assigned_to", Kind::User, self.assigned_to.map(Id::uuid)),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}
