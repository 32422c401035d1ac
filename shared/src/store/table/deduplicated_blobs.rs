//! Deduplicated blobs: large parts of records, beside them: the steps of process definitions and instances, and the schemas of
//! asset types.
//!
//! A definition can have 64 KB of steps, and each of its instances has the same ones; an asset type can have a schema of
//! 32 KB. As an attribute of the records, a write of any of them would cost by that size, and a list would read all of it.
//! A blob is therefore an item of its own, `STEPS#<hash>` or `SCHEMA#<hash>`, which is written once and never changed or
//! deleted; records have its hash. Reads fill it in, from memory if possible. Lists read it only for their page.

use crate::domain::catalog::custom_fields::schema_hash;
use crate::domain::record::Kind;
use crate::domain::values::hex;
use crate::store::keys::Item;
use aws_sdk_dynamodb::types::AttributeValue;

/// A part of records that is stored in an item of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::store) enum BlobKind {
    Steps,
    Schema,
}

impl BlobKind {
    pub(in crate::store) const ALL: [Self; 2] = [Self::Steps, Self::Schema];

    fn of_kind(kind: Kind) -> Option<Self> {
        match kind {
            Kind::Process | Kind::Instance => Some(Self::Steps),
            Kind::AssetType => Some(Self::Schema),
            _ => None,
        }
    }

    /// The attribute with the text: in the blob's item, and in the item of a record once it is filled in.
    pub(in crate::store) fn attribute(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::Schema => "custom_fields_schema",
        }
    }

    /// The attribute of a record that names its blob.
    fn hash_attribute(self) -> &'static str {
        match self {
            Self::Steps => "steps_hash",
            Self::Schema => "custom_fields_schema_hash",
        }
    }

    /// The item's type, for people who look at the table.
    pub(in crate::store) fn noun(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::Schema => "schema",
        }
    }

    pub(in crate::store) fn hash(self, text: &str) -> String {
        match self {
            Self::Steps => hex::sha256(text),
            Self::Schema => schema_hash(text),
        }
    }

    fn hash_of(self, item: &Item) -> Option<&str> {
        item.get(self.hash_attribute())?.as_s().ok().map(String::as_str)
    }
}

/// The name of a blob: its kind and its hash.
pub(in crate::store) type BlobName = (BlobKind, String);

/// The blob of a record that is being written, as JSON text.
pub(in crate::store) struct Blob {
    pub(in crate::store) name: BlobName,
    pub(in crate::store) text: String,
}

/// Takes the blob out of a record's attributes and puts its hash in its place.
pub(in crate::store) fn take_blob(kind: Kind, attributes: &mut Item) -> Option<Blob> {
    let blob = BlobKind::of_kind(kind)?;
    let AttributeValue::S(text) = attributes.remove(blob.attribute())? else { return None };
    let hash = blob.hash(&text);
    attributes.insert(blob.hash_attribute().to_owned(), AttributeValue::S(hash.clone()));
    Some(Blob { name: (blob, hash), text })
}

/// With an empty list of steps and no schema, for code that needs only the rest of a record.
pub(in crate::store) fn without_blob(mut item: Item) -> Item {
    if let Some((blob, _)) = blob_of(&item) {
        let empty = match blob {
            BlobKind::Steps => AttributeValue::S("[]".to_owned()),
            BlobKind::Schema => AttributeValue::Null(true),
        };
        item.insert(blob.attribute().to_owned(), empty);
    }
    item
}

pub(in crate::store) fn fill_in(item: &mut Item, blob: BlobKind, text: &str) {
    item.insert(blob.attribute().to_owned(), AttributeValue::S(text.to_owned()));
}

pub(in crate::store) fn blob_of(item: &Item) -> Option<BlobName> {
    BlobKind::ALL.into_iter().find_map(|blob| Some((blob, blob.hash_of(item)?.to_owned())))
}

pub(in crate::store) fn lacks_blob(item: &Item) -> bool {
    // A hash that can't be read names a blob, too.
    BlobKind::ALL.iter().any(|it| item.contains_key(it.hash_attribute()) && !item.contains_key(it.attribute()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_definitions_instances_and_asset_types_have_deduplicated_blobs() {
        for blob in BlobKind::ALL {
            let item = || Item::from([(blob.attribute().to_owned(), AttributeValue::S("[]".to_owned()))]);
            for kind in Kind::ALL {
                let mut attributes = item();
                let taken = take_blob(*kind, &mut attributes);
                assert_eq!(taken.is_some(), BlobKind::of_kind(*kind) == Some(blob), "{kind:?}");
                assert_eq!(attributes == item(), taken.is_none(), "{kind:?}");
                assert_eq!(lacks_blob(&attributes), taken.is_some(), "{kind:?}");
                assert_eq!(blob_of(&attributes), taken.map(|taken| taken.name), "{kind:?}");
            }
        }
    }

    #[test]
    fn the_order_of_members_does_not_change_the_hash_of_a_schema() {
        let hash = |text| BlobKind::Schema.hash(text);
        assert_eq!(hash(r#"{"a":1,"b":2}"#), hash(r#"{"b":2,"a":1}"#));
        assert_ne!(hash(r#"{"a":1,"b":2}"#), hash(r#"{"a":2,"b":1}"#));
    }
}
