//! Tests of changing, rotating and disabling webhooks.

use super::*;
use crate::values::id::Id;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

fn webhook() -> Webhook {
    Webhook {
        id: WebhookId::new(at(0), [0; 10]),
        url: "https://example.com/a".parse().expect("a URL"),
        description: Notes::default(),
        events: WebhookEvents(vec!["asset.*".to_owned()]),
        is_active: true,
        disabled_reason: None,
        active_since: at(0),
        slot: 3,
        secret: EncryptedSecret(b"first".to_vec()),
        previous_secret: None,
        rotated_at: None,
        created_by: None,
    }
}

fn activation(is_active: bool) -> WebhookChange {
    WebhookChange { is_active: Some(is_active), ..WebhookChange::default() }
}

#[test]
fn what_a_change_does_not_name_stays() {
    let before = webhook();
    assert_eq!(before.changed(&WebhookChange::default(), at(9)), before);
    let change = WebhookChange {
        description: Patch::Value("ERP".parse().expect("text")),
        events: Some(WebhookEvents(vec!["*".to_owned()])),
        ..WebhookChange::default()
    };
    let after = before.changed(&change, at(9));
    assert_eq!((&*after.description, after.events.0[0].as_str(), after.active_since), ("ERP", "*", at(0)));
    let cleared = after.changed(&WebhookChange { description: Patch::Null, ..WebhookChange::default() }, at(9));
    assert_eq!(&*cleared.description, "");
}

#[test]
fn a_new_address_and_an_activation_begin_anew() {
    let moved = |url: &str| WebhookChange { url: Some(url.parse().expect("a URL")), ..WebhookChange::default() };
    assert_eq!(webhook().changed(&moved("https://example.com/a"), at(9)).active_since, at(0));
    assert_eq!(webhook().changed(&moved("https://example.com/b"), at(9)).active_since, at(9));
    let inactive = webhook().changed(&activation(false), at(5));
    assert_eq!((inactive.is_active, inactive.active_since), (false, at(0)));
    let active = inactive.changed(&activation(true), at(9));
    assert_eq!((active.is_active, active.active_since), (true, at(9)));
    assert_eq!(active.changed(&activation(true), at(12)), active);
}

#[test]
fn the_services_reason_stays_until_somebody_activates_the_webhook() {
    let disabled = webhook().disabled(DisabledReason::Failing);
    assert_eq!((disabled.is_active, disabled.disabled_reason), (false, Some(DisabledReason::Failing)));
    // Sent back as it was read.
    assert_eq!(disabled.changed(&activation(false), at(9)), disabled);
    let active = disabled.changed(&activation(true), at(9));
    assert_eq!((active.is_active, active.disabled_reason, active.active_since), (true, None, at(9)));
    assert_eq!(active.changed(&activation(false), at(10)).disabled_reason, None);
}

#[test]
fn a_replaced_secret_signs_until_its_end() {
    let (second, third) = (EncryptedSecret(b"second".to_vec()), EncryptedSecret(b"third".to_vec()));
    let rotated = webhook().rotated(second.clone(), at(10), at(70));
    let secrets = |webhook: &Webhook, now| webhook.secrets(now).cloned().collect::<Vec<_>>();
    assert_eq!(secrets(&rotated, at(69)), [second.clone(), webhook().secret]);
    assert_eq!(secrets(&rotated, at(70)), [second]);
    assert_eq!(rotated.history_fields()["previous_secret_until"], json!(at(70)));
    let again = rotated.rotated(third.clone(), at(20), at(20));
    assert_eq!((secrets(&again, at(20)), again.rotated_at), (vec![third], Some(at(20))));
}

#[test]
fn every_webhook_takes_a_slot() {
    let slots: std::collections::BTreeSet<String> = (0..MAX_WEBHOOKS).map(|slot| Webhook::unique_slot(slot).value).collect();
    assert_eq!(slots.len(), 20);
    assert_eq!(webhook().unique(), [Webhook::unique_slot(3)]);
}

#[test]
fn no_text_of_a_webhook_has_its_secret() {
    let text =
        format!("{:?} {:?}", webhook().rotated(EncryptedSecret(b"second".to_vec()), at(1), at(2)), webhook().history_fields());
    for secret in ["first", "second", "[102, 105", "Zmlyc3"] {
        assert!(!text.contains(secret), "{text}");
    }
    let with_token = Webhook { url: "https://example.com/?token=1".parse().expect("an address"), ..webhook() };
    assert!(!json!(with_token.history_fields()).to_string().contains("token"));
}
