//! Signatures: images that a run, or the movement that it belongs to, keeps beside it, so that lists of runs stay small.

use super::TenantStore;
use super::error::StoreError;
use super::keys::{Item, Key, PK, TYPE};
use super::transaction::{Condition, TransactionItem};
use super::unit_of_work::UnitOfWork;
use crate::domain::instance::ImageName;
use crate::domain::signature_image::SignatureImage;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem};
use std::collections::{BTreeSet, HashMap};

const IMAGE: &str = "image";

impl UnitOfWork<'_> {
    /// Keeps a signature's image. It is never replaced: another image has another name. One that was sent ahead of its
    /// step and gave way to another before it was submitted stays, and nothing shows it but a movement's cancelled run.
    ///
    /// # Errors
    ///
    /// It can't be an item.
    pub fn sign(&mut self, store: &TenantStore, name: &ImageName, image: &SignatureImage) -> Result<(), StoreError> {
        let mut item = store.keys.signature(name).item();
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
        self.add(TransactionItem { condition: Condition::Invariant, write: TransactWriteItem::builder().put(put).build() });
        Ok(())
    }
}

impl TenantStore {
    /// Reads signatures' images; those that are not there are left out.
    ///
    /// # Errors
    ///
    /// The table.
    pub async fn signatures(&self, wanted: BTreeSet<ImageName>) -> Result<HashMap<ImageName, Vec<u8>>, StoreError> {
        let keys: Vec<Key> = wanted.iter().map(|name| self.keys.signature(name)).collect();
        let mut items = self.items(&keys).await?;
        let image = |item: Item| item.get(IMAGE).and_then(|value| value.as_b().ok()).map(|blob| blob.as_ref().to_vec());
        Ok(wanted.into_iter().zip(keys).filter_map(|(name, key)| Some((name, image(items.remove(&key)?)?))).collect())
    }
}
