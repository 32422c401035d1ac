//! What may become of an asset, and why not (contract 6).

use super::asset::{Asset, CatalogNames, Status};
use super::catalog::{AssetType, Manufacturer, Model};
use super::custom_fields::{CustomFields, Schemas};
use super::field_error::{FieldError, ValueError};
use super::id::{AssetId, AssetTypeId, Id, InstanceId, ModelId, UserId};
use super::money::Price;
use super::record::{Patch, Stored};
use super::tenant::Transitions;
use super::text::{Line, Name, Notes};
use super::time::Date;
use super::user::User;

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
    /// Faults of the request that are known already; whatever else is found is named together with them.
    pub errors: Vec<FieldError>,
}

/// What is known of the things that a change refers to; `None` where there is no such thing in the tenant.
#[derive(Debug, Clone, Default)]
pub struct AssetReferences {
    /// The type that the asset has afterwards.
    pub asset_type: Option<Stored<AssetType>>,
    /// The model that the change names.
    pub model: Option<Stored<Model>>,
    /// That model's manufacturer.
    pub manufacturer: Option<Stored<Manufacturer>>,
    /// The user that the change names.
    pub user: Option<Stored<User>>,
}

impl AssetReferences {
    /// What the asset shows of the catalog.
    #[must_use]
    pub fn names(&self) -> CatalogNames {
        CatalogNames::of(self.asset_type.as_ref(), self.model.as_ref(), self.manufacturer.as_ref())
    }
}

/// Why an asset can't be changed so.
#[derive(Debug, thiserror::Error)]
pub enum AssetChangeError {
    /// Parts of the request are not acceptable; all of them.
    #[error("{} parts were refused", .0.len())]
    Invalid(Vec<FieldError>),
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
    /// While this process runs, neither status nor assignment change but by it.
    #[error("a process runs on the asset")]
    Running(InstanceId),
    /// A stored schema does not compile.
    #[error("stored schema")]
    Schema(#[from] ValueError),
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

    /// The errors that show without knowing any other asset or catalog entry.
    fn contradictions(&self, present: Option<&Asset>) -> Vec<FieldError> {
        let mut errors = self.errors.clone();
        let texts = [("manufacturer", &self.manufacturer), ("model", &self.model)];
        if self.model_id.value().is_some() {
            for (field, _) in texts.iter().filter(|(_, text)| text.value().is_some()) {
                errors.push(FieldError::field(field, "must not be sent together with model_id, which fills it in"));
            }
        } else if self.model_id.is_absent() && present.is_some_and(|asset| asset.model_id.is_some()) {
            for (field, _) in texts.iter().filter(|(_, text)| !text.is_absent()) {
                errors.push(FieldError::field(field, "comes from the asset's model; set model_id to null to write it yourself"));
            }
            if !self.asset_type_id.is_absent() && self.asset_type_id.value().copied() != present.and_then(|a| a.asset_type_id) {
                errors.push(FieldError::field("asset_type_id", "differs from the type of the asset's model"));
            }
        }
        errors
    }
}

impl Asset {
    /// A new asset, still without its tag.
    ///
    /// # Errors
    ///
    /// [`AssetChangeError::Invalid`] with everything that is wrong.
    pub fn create(
        id: AssetId,
        name: Name,
        change: &AssetChange,
        found: &AssetReferences,
        schemas: &Schemas,
    ) -> Result<Self, AssetChangeError> {
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
            running_instance_id: None,
        };
        let errors = change.contradictions(None);
        // A type's schema binds a new asset whether or not it brings custom fields.
        blank.apply(change, found, schemas, errors, true)
    }

    /// The asset as `change` makes it.
    ///
    /// # Errors
    ///
    /// Everything that is wrong at once, or the move of status that the tenant does not permit.
    pub fn changed(
        &self,
        change: &AssetChange,
        found: &AssetReferences,
        schemas: &Schemas,
        transitions: Option<&Transitions>,
    ) -> Result<Self, AssetChangeError> {
        let errors = change.contradictions(Some(self));
        let next = self.apply(change, found, schemas, errors, false)?;
        if let Some(running) = self.running_instance_id
            && (next.status != self.status || next.assigned_to != self.assigned_to)
        {
            return Err(AssetChangeError::Running(running));
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
        found: &AssetReferences,
        schemas: &Schemas,
        mut errors: Vec<FieldError>,
        is_new: bool,
    ) -> Result<Self, AssetChangeError> {
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
            (Patch::Value(_), None) => errors.push(FieldError::field("model_id", "names no model of this tenant")),
            (Patch::Value(id), Some(model)) => {
                let model = &model.value;
                if differs(&change.asset_type_id, model) {
                    errors.push(FieldError::field("asset_type_id", "differs from the type of the model"));
                }
                next.model_id = Some(*id);
                next.manufacturer_id = Some(model.manufacturer_id);
                next.asset_type_id = Some(model.asset_type_id);
                next.manufacturer = found.manufacturer.as_ref().and_then(|maker| maker.value.name.parse().ok());
                next.model = model.name.parse().ok();
            }
        }
        // A type that differs from the model's has its field_error already, whether or not there is such a type.
        let differs = found.model.as_ref().is_some_and(|model| differs(&change.asset_type_id, &model.value));
        let asset_type = found.asset_type.as_ref();
        if let Some(wanted) = change.asset_type_id.value()
            && !differs
            && asset_type.is_none_or(|found| found.value.id != *wanted)
        {
            errors.push(FieldError::field("asset_type_id", "names no asset type of this tenant"));
        }
        match (&change.assigned_to, &found.user) {
            (Patch::Absent, _) => {}
            (Patch::Null, _) => next.assigned_to = None,
            (Patch::Value(id), Some(user)) if user.value.is_active => next.assigned_to = Some(*id),
            (Patch::Value(_), Some(_)) => errors.push(FieldError::field("assigned_to", "names a user who is not active")),
            (Patch::Value(_), None) => errors.push(FieldError::field("assigned_to", "names no user of this tenant")),
        }
        if (is_new || fields_change || next.asset_type_id != self.asset_type_id)
            && let Some(asset_type) = asset_type
            && let Some(schema) = &asset_type.value.custom_fields_schema
        {
            errors.extend(schemas.errors(asset_type.value.id.uuid(), asset_type.version, schema, &next.custom_fields)?);
        }
        if errors.is_empty() { Ok(next) } else { Err(AssetChangeError::Invalid(errors)) }
    }
}

/// Whether a request names another type than the model's.
fn differs(asset_type: &Patch<AssetTypeId>, model: &Model) -> bool {
    asset_type.value().is_some_and(|wanted| *wanted != model.asset_type_id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::Timestamp;
    use proptest::prelude::*;

    fn asset(change: &AssetChange) -> Asset {
        let id = AssetId::new(Timestamp::from_millis(0), [0; 10]);
        let name = "x".parse().expect("a name");
        Asset::create(id, name, change, &AssetReferences::default(), &Schemas::default()).expect("acceptable")
    }

    fn patched(asset: &Asset, change: &AssetChange) -> Asset {
        asset.changed(change, &AssetReferences::default(), &Schemas::default(), None).expect("acceptable")
    }

    fn patch<T: Clone + std::fmt::Debug + 'static>(value: impl Strategy<Value = T> + 'static) -> impl Strategy<Value = Patch<T>> {
        prop_oneof![Just(Patch::Absent).boxed(), Just(Patch::Null).boxed(), value.prop_map(Patch::Value).boxed()]
    }

    fn lines() -> impl Strategy<Value = Patch<Line>> {
        patch("[a-z]{0,3}".prop_map(|text| text.parse().expect("a line")))
    }

    prop_compose! {
        fn changes()(
            manufacturer in lines(), model in lines(), serial_number in lines(),
            notes in patch("[a-z]{0,3}".prop_map(|text| text.parse().expect("notes"))),
            warranty_until in patch(Just("2028-01-01".parse::<Date>().expect("a date"))),
            status in proptest::option::of(proptest::sample::select(Status::ALL)),
        ) -> AssetChange {
            AssetChange { manufacturer, model, serial_number, notes, warranty_until, status, ..AssetChange::default() }
        }
    }

    proptest! {
        #[test]
        fn a_patch_changes_what_it_names_and_nothing_else(before in changes(), change in changes()) {
            let old = asset(&before);
            let new = patched(&old, &change);
            prop_assert_eq!(&new.manufacturer, &change.manufacturer.clone().or(old.manufacturer.clone()));
            prop_assert_eq!(&new.model, &change.model.clone().or(old.model.clone()));
            prop_assert_eq!(&new.serial_number, &change.serial_number.clone().or(old.serial_number.clone()));
            prop_assert_eq!(&new.notes, &change.notes.clone().or(old.notes.clone()));
            prop_assert_eq!(new.warranty_until, change.warranty_until.clone().or(old.warranty_until));
            prop_assert_eq!(new.status, change.status.unwrap_or(old.status));
            prop_assert_eq!((&new.name, new.id, &new.asset_tag, &new.custom_fields), (&old.name, old.id, &old.asset_tag, &old.custom_fields));
            prop_assert_eq!(patched(&new, &change), new.clone(), "a patch twice is a patch once");
        }

        #[test]
        fn patches_of_different_fields_may_come_in_any_order(before in changes(), one in changes(), other in changes()) {
            let one = AssetChange { manufacturer: one.manufacturer, notes: one.notes, status: one.status, ..AssetChange::default() };
            let other = AssetChange { model: other.model, serial_number: other.serial_number, ..AssetChange::default() };
            let old = asset(&before);
            prop_assert_eq!(patched(&patched(&old, &one), &other), patched(&patched(&old, &other), &one));
        }
    }

    #[test]
    fn faults_known_before_are_named_with_those_found() {
        let change = AssetChange {
            assigned_to: Patch::Value(UserId::new(Timestamp::from_millis(0), [0; 10])),
            errors: vec![FieldError::field("notes", "must be a string")],
            ..AssetChange::default()
        };
        let old = asset(&AssetChange::default());
        let refusal = old.changed(&change, &AssetReferences::default(), &Schemas::default(), None);
        assert!(matches!(refusal, Err(AssetChangeError::Invalid(errors)) if errors.len() == 2));
    }
}
