//! Sort keys of the index `list_index`: a letter for the section and the number of a bucket, such as `A07`.

use super::Keys;
use crate::domain::record::Kind;
use crate::domain::values::base62;
use crate::domain::values::id::{AssetId, Id, UserId};
use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

const BUCKET_DIGITS: usize = 2;
/// The buckets of each section of the index `list_index`.
pub const BUCKETS: usize = 62 * 62;

/// The first letter of the keys of events that assign an asset to a user.
const ASSIGNMENTS: char = 'H';

/// A part of the index `list_index`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    Assets,
    Users,
    OpenInstances,
    EndedInstances,
    Movements,
}

impl Section {
    /// For records that have ended, or the others; `None` for kinds that are not in the index.
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

    fn letter(self) -> char {
        match self {
            Self::Assets => 'A',
            Self::Users => 'U',
            Self::OpenInstances => 'I',
            Self::EndedInstances => 'J',
            Self::Movements => 'M',
        }
    }

    /// `A07`
    #[must_use]
    pub fn bucket(self, number: usize) -> AttributeValue {
        AttributeValue::S(format!("{}{}", self.letter(), base62::encode(number as u128, BUCKET_DIGITS)))
    }

    /// `None` for a key of another section.
    #[must_use]
    pub fn bucket_number(self, key: &AttributeValue) -> Option<usize> {
        let digits = key.as_s().ok()?.strip_prefix(self.letter())?;
        usize::try_from(base62::decode(digits)?).ok()
    }
}

impl Keys {
    /// `None` for kinds that are not in the index.
    ///
    /// Keys of an index need not be unique, and each section is always read as a whole. So keys are short, which costs less, and
    /// random, which spreads a tenant's writes.
    #[must_use]
    pub fn list_index(kind: Kind, id: Uuid, is_ended: bool) -> Option<AttributeValue> {
        let bucket = usize::try_from(id.as_u128() % BUCKETS as u128).unwrap_or_default();
        Some(Section::of(kind, is_ended)?.bucket(bucket))
    }

    /// The sort key of an event that assigns an asset to a user: `H<user><asset>`.
    #[must_use]
    pub fn assignment(user: UserId, asset: AssetId) -> AttributeValue {
        AttributeValue::S(format!("{ASSIGNMENTS}{}{}", user.short(), asset.short()))
    }

    /// The prefix of the sort keys of all assignments to a user.
    #[must_use]
    pub fn assignments(user: UserId) -> AttributeValue {
        AttributeValue::S(format!("{ASSIGNMENTS}{}", user.short()))
    }

    #[must_use]
    pub fn assigned_asset(key: &AttributeValue) -> Option<AssetId> {
        let ids = key.as_s().ok()?.strip_prefix(ASSIGNMENTS)?;
        AssetId::from_short(ids.get(base62::WIDTH..)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::values::id::Id;

    #[test]
    fn assignments_are_in_no_section_and_name_their_asset() {
        let (user, asset) = (UserId::from_uuid(Uuid::from_u128(7)), AssetId::from_uuid(Uuid::from_u128(u128::MAX)));
        let key = Keys::assignment(user, asset);
        assert_eq!(Keys::assigned_asset(&key), Some(asset));
        let text = |key: &AttributeValue| key.as_s().cloned().unwrap_or_default();
        assert!(text(&key).starts_with(&text(&Keys::assignments(user))));
        let sections = [Section::Assets, Section::Users, Section::OpenInstances, Section::EndedInstances, Section::Movements];
        assert!(sections.iter().all(|section| section.bucket_number(&key).is_none() && section.letter() != ASSIGNMENTS));
        assert_eq!(Keys::assigned_asset(&Section::Assets.bucket(3)), None);
    }
}
