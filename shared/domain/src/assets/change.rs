//! The rules for creating and changing assets.

use crate::assets::asset::{Asset, AssetDetails, AssetDetailsChange, Status, Transitions};
use crate::assets::tag::AssetTag;
use crate::catalog::custom_fields::{BudgetSpent, CustomFields, CustomFieldsPatch, Validations};
use crate::catalog::{AssetType, Manufacturer, Model};
use crate::record::{Patch, Stored, record_change};
use crate::user::User;
use crate::values::field_error::{ErrorCode, FieldError, ValueError};
use crate::values::id::{AssetId, AssetTypeId, Id, InstanceId, ModelId, UserId};
use crate::values::text::{Line, Name, Notes};
use crate::values::time::Date;

record_change! {
    /// Fields set by a POST or PATCH of an asset.
    AssetChange of Asset::with_plain_fields {
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
        /// Errors already found in the request, reported together with the errors found here.
        pub errors: Vec<FieldError>,
    }
}

/// Records that a change refers to; `None` if the tenant doesn't have them.
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
    /// All invalid fields.
    #[error("{} fields are invalid", .0.len())]
    Invalid(Vec<FieldError>),
    /// The tenant's settings don't permit this change of status.
    #[error("an asset's status can't change from {from} to {to}")]
    Transition { from: Status, to: Status, allowed: Vec<Status> },
    /// Status and assignment can't change while this process instance is in progress on the asset.
    #[error("a process is in progress on the asset")]
    Running(InstanceId),
    /// The custom fields can't be validated against the type's schema.
    #[error(transparent)]
    Schema(#[from] BudgetSpent),
}

fn fixed_by_model(field: &str, text: &str) -> FieldError {
    FieldError::field(field, ValueError::coded(ErrorCode::FixedByModel, text))
}

fn unknown(field: &str, text: &str) -> FieldError {
    FieldError::field(field, ValueError::coded(ErrorCode::UnknownReference, text))
}

impl AssetChange {
    /// Applies `custom_fields_patch` to the request's custom fields, or to the current ones if the request has none.
    fn with_single_fields(&self, present: &CustomFields) -> Self {
        let mut change = self.clone();
        if let Some(patch) = &self.custom_fields_patch {
            let whole = change.custom_fields.clone().or(Some(present.clone())).unwrap_or_default();
            match patch.applied_to(&whole) {
                Ok(fields) => change.custom_fields = Patch::Value(fields),
                Err(error) => change.errors.push(FieldError::field("custom_fields_patch", error)),
            }
        }
        change
    }

    /// Drops unchanged fields, so clients can send back everything they read, even an inactive user or texts filled in by the
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

    #[must_use]
    pub fn next_type(&self, current: Option<&Asset>, model: Option<&Model>) -> Option<AssetTypeId> {
        match model {
            Some(model) => Some(model.asset_type_id),
            None => self.asset_type_id.clone().or(current.and_then(|asset| asset.asset_type_id)),
        }
    }

    #[must_use]
    pub fn needs_type(&self) -> bool {
        let sets_fields = !self.custom_fields.is_absent() || self.custom_fields_patch.is_some();
        sets_fields || !(self.asset_type_id.is_absent() && self.model_id.is_absent())
    }

    /// Errors already found in the request, and errors that don't depend on the referenced records.
    fn errors_without_references(&self, current: Option<&Asset>) -> Vec<FieldError> {
        let mut errors = self.errors.clone();
        // Tags are case-insensitive.
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

    /// Whether the change sets a type other than the model's.
    fn contradicts_type_of(&self, model: &Model) -> bool {
        self.asset_type_id.value().is_some_and(|asset_type| *asset_type != model.asset_type_id)
    }
}

impl Asset {
    /// Creates an asset. Its tag is empty unless the change sets one.
    ///
    /// # Errors
    ///
    /// Returns [`AssetChangeError::Invalid`] with all invalid fields.
    pub fn create(
        id: AssetId,
        name: Name,
        change: &AssetChange,
        references: &AssetReferences,
        validations: &Validations,
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
            scans: 0,
            notes: None,
            custom_fields: CustomFields::default(),
            running_instance_id: None,
        };
        let sets_all_fields = !change.custom_fields.is_absent();
        let change = &change.with_single_fields(&blank.custom_fields);
        // The type's schema applies to a new asset even if the request has no custom fields.
        blank.apply(change, references, validations, change.errors_without_references(None), (true, sets_all_fields))
    }

    /// # Errors
    ///
    /// Returns [`AssetChangeError::Invalid`] with all invalid fields, [`AssetChangeError::Running`] if the status or assignment
    /// would change while a process instance is in progress, and [`AssetChangeError::Transition`] if `transitions` don't permit
    /// the change of status.
    pub fn changed(
        &self,
        change: &AssetChange,
        references: &AssetReferences,
        validations: &Validations,
        transitions: Option<&Transitions>,
    ) -> Result<Self, AssetChangeError> {
        let sets_all_fields = !change.custom_fields.is_absent();
        let change = &change.without_unchanged(self);
        let errors = change.errors_without_references(Some(self));
        let next = self.apply(change, references, validations, errors, (false, sets_all_fields))?;
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
        references: &AssetReferences,
        validations: &Validations,
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
            let faults = validations.errors(asset_type.value.id.uuid(), asset_type.version, schema, &next.custom_fields)?;
            errors.extend(faults.iter().map(|fault| fault.located(change.custom_fields_patch.as_ref(), sets_all_fields)));
        }
        if errors.is_empty() { Ok(next) } else { Err(AssetChangeError::Invalid(errors)) }
    }

    /// Sets the model, the asset type, and the fields filled in by the model.
    fn link_catalog(&mut self, change: &AssetChange, references: &AssetReferences, errors: &mut Vec<FieldError>) {
        match (&change.model_id, &references.model) {
            (Patch::Absent, _) => self.asset_type_id = change.asset_type_id.clone().or(self.asset_type_id),
            (Patch::Null, _) => {
                (self.model_id, self.manufacturer_id) = (None, None);
                self.asset_type_id = change.asset_type_id.clone().or(self.asset_type_id);
            }
            (Patch::Value(_), None) => errors.push(unknown("model_id", "is not the id of a model of this tenant")),
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
        // A type that differs from the model's already has an error, whether or not it exists.
        let has_error = references.model.as_ref().is_some_and(|model| change.contradicts_type_of(&model.value));
        if let Some(id) = change.asset_type_id.value()
            && !has_error
            && references.asset_type.as_ref().is_none_or(|asset_type| asset_type.value.id != *id)
        {
            errors.push(unknown("asset_type_id", "is not the id of an asset type of this tenant"));
        }
    }

    fn assign(&mut self, assigned_to: &Patch<UserId>, user: Option<&Stored<User>>, errors: &mut Vec<FieldError>) {
        match (assigned_to, user) {
            (Patch::Absent, _) => {}
            (Patch::Null, _) => self.reassign(None),
            (Patch::Value(id), Some(user)) if user.value.is_active => self.reassign(Some(*id)),
            (Patch::Value(_), Some(_)) => errors.push(unknown("assigned_to", "is the id of an inactive user")),
            (Patch::Value(_), None) => errors.push(unknown("assigned_to", "is not the id of a user of this tenant")),
        }
    }

    /// Sets the first day of the assignment, as claimed by an import.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::time::{Date, Timestamp};
    use proptest::prelude::*;

    fn asset(change: &AssetChange) -> Asset {
        let id = AssetId::new(Timestamp::from_millis(0), [0; 10]);
        let name = "x".parse().expect("a name");
        Asset::create(id, name, change, &AssetReferences::default(), &Validations::default()).expect("acceptable")
    }

    fn patched(asset: &Asset, change: &AssetChange) -> Asset {
        asset.changed(change, &AssetReferences::default(), &Validations::default(), None).expect("acceptable")
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

        #[test]
        fn patches_of_different_fields_can_be_applied_in_any_order(before in changes(), one in changes(), other in changes()) {
            let one = AssetChange { manufacturer: one.manufacturer, notes: one.notes, status: one.status, ..AssetChange::default() };
            let other = AssetChange { model: other.model, details: other.details, ..AssetChange::default() };
            let old = asset(&before);
            prop_assert_eq!(patched(&patched(&old, &one), &other), patched(&patched(&old, &other), &one));
        }
    }

    #[test]
    fn errors_of_the_request_are_reported_with_those_found_here() {
        let change = AssetChange {
            assigned_to: Patch::Value(UserId::new(Timestamp::from_millis(0), [0; 10])),
            errors: vec![FieldError::field("notes", "must be a string")],
            ..AssetChange::default()
        };
        let old = asset(&AssetChange::default());
        let result = old.changed(&change, &AssetReferences::default(), &Validations::default(), None);
        assert!(matches!(result, Err(AssetChangeError::Invalid(errors)) if errors.len() == 2));
    }
}
