//! Signature images. They are separate items beside their process instance or movement, so that lists stay small.

use crate::domain::processes::instance::ImageName;
use crate::domain::values::signature_image::SignatureImage;
use crate::store::TenantStore;
use crate::store::keys::{Item, Key, TYPE};
use crate::store::table::error::StoreError;
use crate::store::table::transaction::TransactionItem;
use crate::store::table::unit_of_work::UnitOfWork;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::{BTreeSet, HashMap};

const IMAGE: &str = "image";

impl UnitOfWork<'_> {
    /// An image is never replaced: another image has another name.
    ///
    /// If a signature is sent before its step and then replaced, the first image stays in the table. Only a cancelled instance of
    /// a movement shows it.
    pub fn put_signature_image(&mut self, store: &TenantStore, name: &ImageName, image: &SignatureImage) {
        let mut item = store.keys.signature(name).item();
        item.insert(TYPE.to_owned(), AttributeValue::S("signature".to_owned()));
        item.insert(IMAGE.to_owned(), AttributeValue::B(Blob::new(image.bytes())));
        self.add(TransactionItem::put_blob(item, IMAGE));
    }
}

impl TenantStore {
    /// PNG files. Images that do not exist are left out.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the images can't be read.
    pub async fn signature_images(&self, names: BTreeSet<ImageName>) -> Result<HashMap<ImageName, Vec<u8>>, StoreError> {
        let keys: Vec<Key> = names.iter().map(|name| self.keys.signature(name)).collect();
        let mut items = self.items(&keys).await?;
        let image = |item: Item| item.get(IMAGE).and_then(|value| value.as_b().ok()).map(|blob| blob.as_ref().to_vec());
        Ok(names.into_iter().zip(keys).filter_map(|(name, key)| Some((name, image(items.remove(&key)?)?))).collect())
    }
}
