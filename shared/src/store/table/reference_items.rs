//! Reference items: the number of references to each record, beside the record.
//!
//! Every write of an item, and every check of a condition on it, costs by the size of the whole item. Records can be
//! large, so references are counted in a small item of their own: `REFERENCES#<noun>#<id>`. It also has the attributes
//! that references can require, and changes with the record in the same transaction.

use crate::domain::record::{Kind, Record, Reference, RequiredValue, Stored};
use crate::domain::values::id::Id;
use crate::store::TenantStore;
use crate::store::keys::{Item, TYPE};
use crate::store::table::condition::Condition;
use crate::store::table::item::USES;
use crate::store::table::transaction::{Purpose, TransactionItem, Write};
use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

fn attribute_value(value: &RequiredValue) -> AttributeValue {
    match value {
        RequiredValue::Text(text) => AttributeValue::S(text.clone()),
        RequiredValue::Bool(flag) => AttributeValue::Bool(*flag),
    }
}

impl TenantStore {
    /// `uses` is the number of references. `None` if no record can refer to its kind.
    pub(in crate::store) fn reference_item<T: Record>(&self, value: &T, uses: u64) -> Option<Item> {
        let attributes = value.referenceable_attributes()?;
        let mut item = self.keys.references(T::KIND, value.id().uuid()).item();
        item.insert(TYPE.to_owned(), AttributeValue::S("references".to_owned()));
        item.insert(USES.to_owned(), AttributeValue::N(uses.to_string()));
        item.extend(attributes.iter().map(|it| (it.attribute.to_owned(), attribute_value(&it.value))));
        Some(item)
    }

    pub(in crate::store) fn reference_item_put<T: Record>(&self, value: &T) -> Option<TransactionItem> {
        self.reference_item(value, 0).map(|item| TransactionItem::put_new(Purpose::Invariant, item))
    }

    /// Sets the attributes that differ; with `is_unreferenced`, requires that nothing refers to the record.
    pub(in crate::store) fn reference_item_update<T: Record>(
        &self,
        old: &Stored<T>,
        next: &T,
        is_unreferenced: bool,
    ) -> Option<TransactionItem> {
        let (before, after) = (old.value.referenceable_attributes()?, next.referenceable_attributes()?);
        let changed = after.iter().filter(|attribute| !before.contains(attribute));
        let set: Item = changed.map(|it| (it.attribute.to_owned(), attribute_value(&it.value))).collect();
        let key = self.keys.references(T::KIND, next.id().uuid());
        let write = match (set.is_empty(), is_unreferenced) {
            (true, false) => return None,
            (true, true) => Write::Check(key),
            (false, _) => Write::Update { key, set, remove: Vec::new() },
        };
        let (purpose, condition) = match is_unreferenced {
            true => (Purpose::Unreferenced, unreferenced()),
            false => (Purpose::RecordState, Condition::EXISTS),
        };
        Some(TransactionItem { purpose, condition, write })
    }

    /// On condition that nothing refers to the record.
    pub(in crate::store) fn reference_item_deletion<T: Record>(&self, value: &T) -> Option<TransactionItem> {
        value.referenceable_attributes()?;
        let write = Write::Delete(self.keys.references(T::KIND, value.id().uuid()));
        Some(TransactionItem { purpose: Purpose::Unreferenced, condition: unreferenced(), write })
    }

    /// An update of the count, or a check of the reference item if the count stays.
    ///
    /// For an added reference, the record must meet the reference's requirements. Its version does not matter: several units of
    /// work may add references at the same time.
    pub(in crate::store) fn reference_count_item(
        &self,
        kind: Kind,
        id: Uuid,
        delta: i64,
        added: Option<&Reference>,
    ) -> TransactionItem {
        let required = added.into_iter().flat_map(|added| &added.requirements);
        let required = required.map(|it| Condition::is(it.attribute, attribute_value(&it.value)));
        let condition = Condition::All(std::iter::once(Condition::EXISTS).chain(required).collect());
        let key = self.keys.references(kind, id);
        let write = if delta == 0 { Write::Check(key) } else { Write::Add { key, attribute: USES, delta } };
        let purpose = added.map_or(Purpose::RecordState, |added| Purpose::Reference(added.field));
        TransactionItem { purpose, condition, write }
    }
}

fn unreferenced() -> Condition {
    Condition::is(USES, AttributeValue::N("0".to_owned()))
}
