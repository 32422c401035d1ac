//! Reading files with rows: which field each column is, and how its cells are written. Functions over text, for the service and for
//! `assetctl`. An import never guesses: [`suggestion`] does, and proposes the parameters of an import.

pub mod columns;
pub mod dates;
pub mod header;
pub mod objects;
pub mod parameters;
pub mod prices;
pub mod records;
pub mod suggestion;

pub use crate::assets::asset::CUSTOM_FIELD;
use crate::values::field_error::ValueError;
use fields::compared::{compatible, fold};
use fields::{ASSET_COLUMNS, Column, USER_COLUMNS, serial_number};
use std::str::FromStr;

/// The column of the users who have the assets, by their display names.
pub const OWNER_NAME: &str = "assigned_to_name";
/// The column of reasons in a file of refused rows.
pub const REASONS: &str = "reasons";
/// Maximum size of a row, in bytes: the maximum size of a request.
pub const MAX_ROW: usize = 1 << 20;

/// The records of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    #[default]
    Assets,
    Users,
}

impl FromStr for Kind {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        [Self::Assets, Self::Users]
            .into_iter()
            .find(|kind| kind.path() == text)
            .ok_or_else(|| ValueError::not_one_of(["assets", "users"]))
    }
}

impl Kind {
    /// Returns `assets` or `users`.
    pub fn path(self) -> &'static str {
        match self {
            Self::Assets => "assets",
            Self::Users => "users",
        }
    }

    /// Returns the columns of an import, without `custom_fields.<name>`.
    pub fn columns(self) -> &'static [Column] {
        match self {
            Self::Assets => ASSET_COLUMNS,
            Self::Users => USER_COLUMNS,
        }
    }

    pub fn column(self, name: &str) -> Option<&'static Column> {
        self.columns().iter().find(|column| column.name == name)
    }

    pub fn has_field(self, name: &str) -> bool {
        self.column(name).is_some() || (self == Self::Assets && name.starts_with(CUSTOM_FIELD))
    }
}

/// Normalizes a value as the service does to find the record of a row. IDs and tags are case-insensitive.
pub fn compared(field: &str, value: &str) -> String {
    match field {
        "serial_number" => serial_number::key(value),
        "email" => compatible(value.trim()),
        _ => fold(value.trim()),
    }
}
