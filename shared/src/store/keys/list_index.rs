//! Sort keys of the index `list_index`: a letter for the kind and the number of a bucket, such as `A07`.

use super::Keys;
use crate::domain::base62;
use crate::domain::record::Kind;
use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

/// How many digits the number of a bucket has.
const BUCKET_DIGITS: usize = 2;
/// How many buckets the index `list_index` has for each kind.
pub const BUCKETS: usize = 62 * 62;

/// Returns the letter that the keys of a kind begin with; `None` for kinds that are not in the index.
fn letter(kind: Kind) -> Option<char> {
    match kind {
        Kind::Asset => Some('A'),
        Kind::User => Some('U'),
        Kind::Instance => Some('I'),
        Kind::Movement => Some('M'),
        _ => None,
    }
}

impl Keys {
    /// Returns a record's sort key in the index; `None` for kinds that are not in the index.
    ///
    /// Keys of an index need not be unique, and this index is always read as a whole. So keys are short, which costs
    /// less, and random, which spreads a tenant's writes.
    #[must_use]
    pub fn list_index(kind: Kind, id: Uuid) -> Option<AttributeValue> {
        let bucket = usize::try_from(id.as_u128() % BUCKETS as u128).unwrap_or_default();
        letter(kind).map(|_| Self::bucket(kind, bucket))
    }

    /// Returns the sort key of a kind's bucket: `A07`.
    #[must_use]
    pub fn bucket(kind: Kind, number: usize) -> AttributeValue {
        let letter = letter(kind).unwrap_or('-');
        AttributeValue::S(format!("{letter}{}", base62::encode(number as u128, BUCKET_DIGITS)))
    }

    /// Returns the bucket's number in a sort key of the index.
    #[must_use]
    pub fn bucket_number(key: &AttributeValue) -> Option<usize> {
        usize::try_from(base62::decode(key.as_s().ok()?.get(1..)?)?).ok()
    }
}
