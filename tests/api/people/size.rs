//! What commitments cost.

use crate::support::Api;
use crate::support::people::person;
use crate::support::table::dump::all_items;
use aws_sdk_dynamodb::types::AttributeValue;
use shared::store::keys::Item;

fn size(value: &AttributeValue) -> usize {
    match value {
        AttributeValue::S(text) | AttributeValue::N(text) => text.len(),
        AttributeValue::B(bytes) => bytes.as_ref().len(),
        AttributeValue::M(values) => 3 + values.iter().map(|(name, value)| 1 + name.len() + size(value)).sum::<usize>(),
        other => panic!("an event has {other:?}"),
    }
}

fn size_of(item: &Item) -> usize {
    item.iter().map(|(name, value)| name.len() + size(value)).sum()
}

/// As DynamoDB counts (AWS: Item sizes and formats).
#[tokio::test(start_paused = true)]
async fn an_entry_grows_by_at_most_three_tenths() {
    let (api, client) = Api::with_tenant().await;
    person(&client).await;
    let (mut all, mut grown) = (0, 0);
    for item in all_items(&api).await {
        let Some(entry) = item.get("entry") else { continue };
        let mut without = item.clone();
        without.remove("commitments");
        let (before, after) = (size_of(&without), size_of(&item));
        assert!(after * 10 <= before * 13, "from {before} to {after} bytes: {entry:?}");
        (all, grown) = (all + before, grown + after);
    }
    eprintln!("{all} bytes without commitments, {grown} with them: {} %", grown * 100 / all - 100);
}
