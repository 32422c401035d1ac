//! Filters with several values, or with a value for a missing one.

use crate::domain::assets::asset::Status;
use crate::domain::values::field_error::ValueError;
use crate::domain::values::id::UserId;
use std::str::FromStr;
use utoipa::openapi::schema::{AnyOfBuilder, ArrayBuilder, ObjectBuilder, Schema, Type};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

/// The text that stands for no user.
const NOBODY: &str = "none";
/// The name of the schema of that text.
const UNASSIGNED: &str = "Unassigned";

/// An asset must have one of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statuses(Vec<Status>);

impl Statuses {
    #[must_use]
    pub fn contains(&self, status: Status) -> bool {
        self.0.contains(&status)
    }
}

impl FromStr for Statuses {
    type Err = ValueError;

    /// Separated by commas.
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let mut statuses = Vec::new();
        for name in text.split(',') {
            let status = name
                .parse()
                .map_err(|error: ValueError| ValueError::new(format!("{error}, or several of them, separated by commas")))?;
            if statuses.contains(&status) {
                return Err(ValueError::new(format!("must name {status} once")));
            }
            statuses.push(status);
        }
        Ok(Self(statuses))
    }
}

impl PartialSchema for Statuses {
    fn schema() -> RefOr<Schema> {
        ArrayBuilder::new().items(Status::schema()).min_items(Some(1)).unique_items(true).into()
    }
}

impl ToSchema for Statuses {}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assignee {
    Nobody,
    User(UserId),
}

impl Assignee {
    /// `None` for an asset that must not be assigned.
    #[must_use]
    pub fn user(self) -> Option<UserId> {
        match self {
            Self::Nobody => None,
            Self::User(id) => Some(id),
        }
    }
}

impl FromStr for Assignee {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        if text == NOBODY {
            return Ok(Self::Nobody);
        }
        text.parse().map(Self::User).map_err(|error: ValueError| ValueError::new(format!("{error}, or {NOBODY}")))
    }
}

impl PartialSchema for Assignee {
    fn schema() -> RefOr<Schema> {
        AnyOfBuilder::new().item(Ref::from_schema_name(UserId::name())).item(Ref::from_schema_name(UNASSIGNED)).into()
    }
}

impl ToSchema for Assignee {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        let nobody = ObjectBuilder::new().schema_type(Type::String).enum_values(Some([NOBODY]));
        schemas.push((UNASSIGNED.to_owned(), nobody.description(Some("Assets that are assigned to nobody.")).into()));
        schemas.push((UserId::name().into_owned(), UserId::schema()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_statuses_has_each_once_and_no_gaps() {
        let statuses: Statuses = "in_use,returned".parse().expect("two statuses");
        assert!(statuses.contains(Status::InUse) && statuses.contains(Status::Returned) && !statuses.contains(Status::InStock));
        let error = |text: &str| text.parse::<Statuses>().expect_err(text).to_string();
        assert_eq!(error("in_use,in_use"), "must name in_use once");
        for wrong in ["", ",", "in_use,", ",in_use", "in_use,,returned", "in_use, returned", "lost"] {
            assert!(error(wrong).starts_with("must be one of in_stock, preparing, "), "{wrong}");
            assert!(error(wrong).ends_with("separated by commas"), "{wrong}");
        }
    }

    #[test]
    fn an_assignee_is_a_user_or_nobody() {
        let id = "01890a5d-ac96-774b-bcce-b302099a8057";
        assert_eq!("none".parse(), Ok(Assignee::Nobody));
        assert_eq!(id.parse::<Assignee>().map(Assignee::user), Ok(id.parse().ok()));
        for wrong in ["", "None", "null", "me"] {
            assert!(wrong.parse::<Assignee>().expect_err(wrong).to_string().ends_with(", or none"), "{wrong}");
        }
    }
}
