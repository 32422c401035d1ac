//! Sort keys of the index `list_index`: a letter for the section and the number of a bucket, such as `A07`.

use super::Keys;
use crate::domain::base62;
use crate::domain::record::Kind;
use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

/// How many digits the number of a bucket has.
const BUCKET_DIGITS: usize = 2;
/// How many buckets the index `list_index` has for each section.
pub const BUCKETS: usize = 62 * 62;

/// A part of the index `list_index`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is named for the records that it has")]
pub enum Section {
    Assets,
    Users,
    OpenInstances,
    EndedInstances,
    Movements,
}

impl Section {
    /// Returns the section that has the records of a kind, those that have ended or the others; `None` for kinds that are
    /// not in the index.
    #[must_use]
    pub fn of(kind: Kind, is_ended: bool) -> Option<Self> {
        match kind {
            Kind::Asset => Some(Self::Assets),
            Kind::User => Some(Self::Users),
            Kind::Instance if is_ended => Some(Self::EndedInstances),
            Kind::Instance => Some(Self::OpenInstances),
            Kind::Movement => Some(Self::Movements),
            _ => None,
        }
    }

    /// Returns the letter that its keys begin with.
    fn letter(self) -> char {
        match self {
            Self::Assets => 'A',
            Self::Users => 'U',
            Self::OpenInstances => 'I',
            Self::EndedInstances => 'J',
            Self::Movements => 'M',
        }
    }

    /// Returns the sort key of a bucket: `A07`.
    #[must_use]
    pub fn bucket(self, number: usize) -> AttributeValue {
        AttributeValue::S(format!("{}{}", self.letter(), base62::encode(number as u128, BUCKET_DIGITS)))
    }

    /// Returns the bucket's number in a sort key of this section; `None` for a key of another.
    #[must_use]
    pub fn bucket_number(self, key: &AttributeValue) -> Option<usize> {
        let digits = key.as_s().ok()?.strip_prefix(self.letter())?;
        usize::try_from(base62::decode(digits)?).ok()
    }
}

impl Keys {
    /// Returns a record's sort key in the index; `None` for kinds that are not in the index.
    ///
    /// Keys of an index need not be unique, and each section is always read as a whole. So keys are short, which costs
    /// less, and random, which spreads a tenant's writes.
    #[must_use]
    pub fn list_index(kind: Kind, id: Uuid, is_ended: bool) -> Option<AttributeValue> {
        let bucket = usize::try_from(id.as_u128() % BUCKETS as u128).unwrap_or_default();
        Some(Section::of(kind, is_ended)?.bucket(bucket))
    }
}
