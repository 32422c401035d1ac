//! Filters with several values, or with a value for a missing one.

use crate::domain::assets::asset::Status;
use crate::domain::assets::location::Location;
use crate::domain::values::field_error::ValueError;
use crate::domain::values::id::UserId;
use crate::store::lists::list_index::{LOCATION, Wanted};
use std::str::FromStr;
use utoipa::openapi::schema::{AnyOfBuilder, ArrayBuilder, ObjectBuilder, Schema, Type};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

/// The text that stands for no user.
const NOBODY: &str = NONE;
/// The text that stands for no value.
const NONE: &str = "none";
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

/// The place of an asset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaceFilter {
    Nowhere,
    /// There, or below.
    In(Location),
}

impl FromStr for PlaceFilter {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        if text == NONE { Ok(Self::Nowhere) } else { literal(text).parse().map(Self::In) }
    }
}

impl PartialSchema for PlaceFilter {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)).examples(["Berlin / 3rd floor", NONE]).into()
    }
}

impl ToSchema for PlaceFilter {}

impl From<PlaceFilter> for Wanted {
    fn from(place: PlaceFilter) -> Self {
        let (place, none) = match place {
            PlaceFilter::Nowhere => (None, true),
            PlaceFilter::In(place) => (Some(String::from(place)), false),
        };
        Self { column: LOCATION.to_owned(), texts: Vec::new(), place, none }
    }
}

/// A custom field, given with its prefix, must have one of these values. A value can have several, separated by commas.
#[must_use]
pub fn wanted_field(column: String, values: &[String]) -> Wanted {
    let values: Vec<&str> = values.iter().flat_map(|value| split_values(value)).collect();
    let none = values.contains(&NONE);
    let texts = values.into_iter().filter(|value| *value != NONE).map(literal).collect();
    Wanted { column, texts, place: None, none }
}

/// Splits at commas, but for those behind a backslash.
fn split_values(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let is_end = |at: &usize| bytes.get(*at) == Some(&b',') && at.checked_sub(1).and_then(|at| bytes.get(at)) != Some(&b'\\');
    let (mut values, mut start) = (Vec::new(), 0);
    for end in (0..bytes.len()).filter(is_end) {
        values.extend(text.get(start..end));
        start = end + 1;
    }
    values.extend(text.get(start..));
    values
}

/// The text of a value, in which `\,` is a comma. `\none` is the word.
#[must_use]
pub fn literal(value: &str) -> String {
    if value == "\\none" { NONE.to_owned() } else { value.replace("\\,", ",") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_normalized_and_none_is_a_word_of_its_own() {
        let place = |text: &str| text.parse::<PlaceFilter>().map(Wanted::from);
        let of = |text: &str| place(text).ok().map(|wanted| (wanted.place, wanted.none));
        assert_eq!(of("Berlin/3"), Some((Some("Berlin / 3".to_owned()), false)));
        assert_eq!(of("none"), Some((None, true)));
        assert_eq!(of("\\none"), Some((Some("none".to_owned()), false)));
        assert_eq!(of("Berlin\\, Mitte"), Some((Some("Berlin, Mitte".to_owned()), false)));
        assert!(place("").is_err() && place("a//b").is_err());
    }

    #[test]
    fn values_of_custom_fields_are_separated_by_commas_and_by_parameters() {
        let wanted = |values: &[&str]| {
            let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
            let wanted = wanted_field("c".to_owned(), &values);
            (wanted.texts, wanted.none)
        };
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        for (values, expected, none) in [
            (&["a,b", "c"][..], &["a", "b", "c"][..], false),
            (&["none,a"], &["a"], true),
            (&["\\none"], &["none"], false),
            (&["a\\,b,c\\d"], &["a,b", "c\\d"], false),
            (&["a,"], &["a", ""], false),
        ] {
            assert_eq!(wanted(values), (texts(expected), none), "{values:?}");
        }
    }

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
