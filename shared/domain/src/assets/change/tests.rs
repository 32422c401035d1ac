//! Tests of changes to assets.

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
