//! Signatures: images that a run, or the movement that it belongs to, keeps beside it, so that lists of runs stay small.

use super::TenantStore;
use super::error::StoreError;
use super::keys::{Item, Key, PK, TYPE};
use super::transact::{Guard, Part};
use super::write::Work;
use crate::domain::png::Signature;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem};
use std::collections::{BTreeSet, HashMap};
use uuid::Uuid;

const IMAGE: &str = "image";

impl Work<'_> {
    /// Keeps a signature's image. One that was sent ahead of its step may be replaced until the step is submitted,
    /// which the condition on the run guards.
    ///
    /// # Errors
    ///
    /// It can't be an item.
    pub fn sign(&mut self, store: &TenantStore, owner: Uuid, step: &str, image: &Signature) -> Result<(), StoreError> {
        let mut item = store.keys.signature(owner, step).item();
        item.insert(TYPE.to_owned(), AttributeValue::S("signature".to_owned()));
        item.insert(IMAGE.to_owned(), AttributeValue::B(Blob::new(image.bytes())));
        let put = Put::builder()
            .table_name(&store.store.table)
            .set_item(Some(item))
            .condition_expression("attribute_not_exists(#pk) OR attribute_exists(#image)")
            .expression_attribute_names("#pk", PK)
            .expression_attribute_names("#image", IMAGE)
            .build()
            .map_err(StoreError::broken)?;
        self.add(Part { guard: Guard::Certain, write: TransactWriteItem::builder().put(put).build() });
        Ok(())
    }
}

impl TenantStore {
    /// Reads signatures' images, by whose they are and the step's key; those that are not there are left out.
    ///
    /// # Errors
    ///
    /// The table.
    pub async fn signatures(&self, wanted: BTreeSet<(Uuid, String)>) -> Result<HashMap<(Uuid, String), Vec<u8>>, StoreError> {
        let keys: Vec<Key> = wanted.iter().map(|(owner, step)| self.keys.signature(*owner, step)).collect();
        let mut items = self.items(&keys).await?;
        let image = |item: Item| item.get(IMAGE).and_then(|value| value.as_b().ok()).map(|blob| blob.as_ref().to_vec());
        Ok(wanted.into_iter().zip(keys).filter_map(|(name, key)| Some((name, image(items.remove(&key)?)?))).collect())
    }
}
