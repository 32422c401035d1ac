//! Each kind of record comes back from its own fields.

use super::*;
use crate::history::commitments::Commitments;
use crate::keys::api_key::{ApiKey, SecretHash};
use crate::keys::scope::Scopes;
use crate::processes::instance::{Instance, State};
use crate::processes::movement::Movement;
use crate::processes::process::values::StepValues;
use crate::record::changes;
use crate::samples;
use crate::tenants::tenant::Tenant;
use crate::values::id::{ApiKeyId, EventId, Id, InstanceId, ManufacturerId, MovementId, TenantId, UserId};
use crate::values::time::Timestamp;
use serde_json::json;
use uuid::Uuid;

fn actor() -> Actor {
    Actor { key_name: "Key".into(), ..Actor::operator() }
}

fn round_trip<T: Restore>(record: &T, origin: &Origin<'_, T>) -> Result<T, RestoreError> {
    restore(record.id(), &canonical(&record.history_fields()), origin)
}

#[test]
fn an_asset_comes_back_with_its_models_manufacturer() {
    let manufacturer_id = ManufacturerId::from_uuid(Uuid::from_u128(5));
    let model =
        json!({"id": Uuid::from_u128(6), "name": "M", "manufacturer_id": manufacturer_id, "asset_type_id": Uuid::from_u128(7)});
    let model: Model = serde_json::from_value(model).expect("a model");
    let asset = Asset {
        model_id: Some(model.id),
        manufacturer_id: Some(manufacturer_id),
        asset_type_id: Some(model.asset_type_id),
        assigned_to: Some(samples::user(3)),
        assigned_since: "2026-01-02".parse().ok(),
        last_seen_at: Some(Timestamp::from_millis(5)),
        scans: 2,
        details: serde_json::from_value(json!({"purchase_price": "12.50", "location": "A / B"})).expect("details"),
        custom_fields: serde_json::from_value(json!(r#"{"a": [1, 2.5]}"#)).expect("fields"),
        ..samples::asset(1)
    };
    let creator = actor();
    let origin = Origin { model: Some(&model), scans: Some(2), ..Origin::unknown(&creator) };
    assert_eq!(round_trip(&asset, &origin).as_ref(), Ok(&asset));
    assert_eq!(round_trip(&asset, &Origin { old: Some(&asset), ..Origin::unknown(&creator) }).as_ref(), Ok(&asset));
    assert!(matches!(round_trip(&asset, &Origin::unknown(&creator)), Err(RestoreError::NotShown(_))));
}

#[test]
fn an_instance_comes_back_with_what_it_copied() {
    let steps = json!([{"type": "text", "key": "t", "label": "T"}, {"type": "signature", "key": "s", "label": "S"}]);
    let process = samples::process(&steps);
    let asset = samples::asset(1);
    let creator = actor();
    let origin = Origin { process: Some(&process), asset: Some(&asset), ..Origin::unknown(&creator) };
    let at = samples::time(7);
    let signature = json!({"sha256": "hash", "bytes": 10, "typed": true});
    let values = StepValues(Map::from_iter([("t".to_owned(), json!("x")), ("s".to_owned(), signature)]));
    for state in
        [State::InProgress { step: 0 }, State::Completed { at }, State::Cancelled { step: 0, at, reason: "why".parse().ok() }]
    {
        let instance = Instance { state, step_values: values.clone(), ..samples::instance(2, &process) };
        assert_eq!(round_trip(&instance, &origin).as_ref(), Ok(&instance));
        let old = samples::instance(2, &process);
        assert_eq!(round_trip(&instance, &Origin { old: Some(&old), ..Origin::unknown(&creator) }).as_ref(), Ok(&instance));
    }
    assert_eq!(round_trip(&process, &Origin::unknown(&creator)).as_ref(), Ok(&process));
}

#[test]
fn an_instance_comes_back_with_its_signers() {
    let steps = json!([{"type": "text", "key": "t", "label": "T"}, {"type": "signature", "key": "s", "label": "S"}]);
    let (process, asset, creator) = (samples::process(&steps), samples::asset(1), actor());
    let values = |text: &str, signature: Value| Map::from_iter([("t".to_owned(), json!(text)), ("s".to_owned(), signature)]);
    let (first, second) = (json!({"sha256": "first", "bytes": 1}), json!({"sha256": "second", "bytes": 2}));
    let states = [Map::new(), values("x", first), values("x", second.clone()), values("y", second)];
    let event = |version: usize| Event {
        id: EventId::new(samples::time(1), [0; 10]),
        at: samples::time(i64::try_from(version).expect("small")),
        event_type: "instance.updated".into(),
        entity_id: Uuid::nil(),
        version: version as u64,
        actor: Actor { key_name: format!("Key {version}"), ..actor() },
        changes: changes(
            &Map::from_iter([("step_data".to_owned(), json!(states[version - 1]))]),
            &Map::from_iter([("step_data".to_owned(), json!(states[version]))]),
        ),
        previous_hash: None,
    };
    let (events, none) = ((1..4).map(event).collect::<Vec<_>>(), Commitments::default());
    let found = submissions(events.iter().map(|event| (event, &none)));
    let signed = Signed { by: "Key 2".to_owned(), at: samples::time(2) };
    assert_eq!((found["t"].by.as_str(), &found["s"]), ("Key 3", &signed));
    let origin = Origin { process: Some(&process), asset: Some(&asset), submissions: Some(&found), ..Origin::unknown(&creator) };
    let instance = Instance {
        held_by: Some(UserId::from_uuid(Uuid::from_u128(3))),
        step_values: StepValues(states[3].clone()),
        signed: [("s".to_owned(), signed)].into(),
        ..samples::instance(2, &process)
    };
    assert_eq!(round_trip(&instance, &origin).as_ref(), Ok(&instance));
}

#[test]
fn a_movement_and_a_tenant_come_back() {
    let process = samples::process(&json!([{"type": "text", "key": "t", "label": "T"}]));
    let movement = Movement {
        id: MovementId::from_uuid(Uuid::from_u128(1)),
        number: "MOV-000001".into(),
        process_id: process.id,
        process_name: process.name.clone(),
        instance_ids: vec![InstanceId::from_uuid(Uuid::from_u128(2))],
        started_by: None,
        started_by_name: "Key".into(),
    };
    let creator = actor();
    let origin = Origin { process: Some(&process), ..Origin::unknown(&creator) };
    assert_eq!(round_trip(&movement, &origin).as_ref(), Ok(&movement));
    let tenant = Tenant::new(TenantId::from_uuid(Uuid::from_u128(1)), "Acme".parse().expect("a name"));
    assert_eq!(round_trip(&tenant, &Origin::unknown(&creator)).as_ref(), Ok(&tenant));
}

#[test]
fn a_history_with_a_field_that_has_no_place_in_the_record_restores_nothing() {
    let tenant = Tenant::new(TenantId::from_uuid(Uuid::from_u128(1)), "Acme".parse().expect("a name"));
    let (mut other, creator) = (tenant.history_fields(), actor());
    other.insert("colour".into(), json!("red"));
    assert_eq!(restore::<Tenant>(tenant.id, &other, &Origin::unknown(&creator)), Err(RestoreError::OtherFields));
}

#[test]
fn a_key_comes_back_only_with_the_secret_that_it_has() {
    let id = ApiKeyId::from_uuid(Uuid::from_u128(1));
    let key = ApiKey::new(id, "ci".parse().expect("a name"), Scopes::new(), SecretHash("hash".into()), 5);
    let creator = actor();
    let origin = Origin { old: Some(&key), ..Origin::unknown(&creator) };
    let renamed = ApiKey { name: "other".parse().expect("a name"), ..key.clone() };
    assert_eq!(round_trip(&renamed, &origin).as_ref(), Ok(&renamed));
    let rotated = key.rotated(SecretHash("next".into()), samples::time(1), samples::time(2));
    assert_eq!(round_trip(&rotated, &origin), Err(RestoreError::NotShown("its secret")));
    assert_eq!(round_trip(&rotated, &Origin { old: Some(&rotated), ..origin }).as_ref(), Ok(&rotated));
    assert_eq!(round_trip(&key, &Origin::unknown(&creator)), Err(RestoreError::NotShown("its secret")));
}

#[test]
fn a_history_with_other_fields_restores_nothing() {
    let creator = actor();
    let mut fields = samples::asset(1).history_fields();
    fields.insert("colour".into(), json!("red"));
    let origin = Origin::unknown(&creator);
    assert_eq!(restore::<Asset>(samples::asset(1).id, &fields, &origin), Err(RestoreError::OtherFields));
    fields.insert("colour".into(), Value::Null);
    assert!(restore::<Asset>(samples::asset(1).id, &fields, &origin).is_ok());
}

#[test]
fn later_events_win() {
    let event = |version: u64, old: Value, new: Value| Event {
        id: EventId::new(samples::time(1), [0; 10]),
        at: samples::time(1),
        event_type: "asset.updated".into(),
        entity_id: Uuid::nil(),
        version,
        actor: actor(),
        changes: changes(&Map::from_iter([("a".to_owned(), old)]), &Map::from_iter([("a".to_owned(), new)])),
        previous_hash: None,
    };
    let events = [event(1, Value::Null, json!(1)), event(2, json!(1), json!(2)), event(3, json!(2), Value::Null)];
    assert_eq!(replay(Map::new(), &events[..2]), Map::from_iter([("a".to_owned(), json!(2))]));
    assert_eq!(replay(Map::new(), &events), Map::from_iter([("a".to_owned(), Value::Null)]));
}
